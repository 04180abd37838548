package egress

import (
	"net/netip"
	"slices"
	"testing"
)

// TestRivals_Note: an address is elsewhere from the first answer on, until nobody answers for a while, or no other node has got it later.
func TestRivals_Note(t *testing.T) {
	a, b := netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("203.0.113.11")
	both, r := []netip.Addr{a, b}, rivals{}
	for i, round := range []struct {
		open, answered []netip.Addr
		want           []netip.Addr
	}{
		{both, nil, nil},
		{both, []netip.Addr{a}, []netip.Addr{a}},
		{both, nil, []netip.Addr{a}},
		{both, nil, []netip.Addr{a}},
		{both, []netip.Addr{a, b}, both}, // an answer was lost twice
		{both, []netip.Addr{b}, both},
		{both, []netip.Addr{b}, both},
		{both, []netip.Addr{b}, []netip.Addr{b}}, // three times
		{nil, nil, nil},
	} {
		before, answered := r.addresses(), map[netip.Addr]bool{}
		for _, ip := range round.answered {
			answered[ip] = true
		}
		changed := r.note(round.open, answered)
		if got := r.addresses(); !slices.Equal(got, round.want) || changed == slices.Equal(before, got) {
			t.Errorf("round %d: %v, changed %v; want %v", i, got, changed, round.want)
		}
	}
}
