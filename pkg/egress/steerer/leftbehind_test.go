package steerer

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
		failed         bool
	}{
		{both, nil, nil, false},
		{both, []netip.Addr{a}, []netip.Addr{a}, false},
		{both, nil, []netip.Addr{a}, false},
		{both, nil, []netip.Addr{a}, false},
		{both, []netip.Addr{a, b}, both, false}, // an answer was lost twice
		{both, []netip.Addr{b}, both, false},
		{both, []netip.Addr{b}, both, false},
		{both, []netip.Addr{b}, both, true},
		{both, []netip.Addr{b}, []netip.Addr{b}, false}, // three times
		{nil, nil, nil, false},
	} {
		before, answered := r.addresses(), map[netip.Addr]bool{}
		for _, ip := range round.answered {
			answered[ip] = true
		}
		changed := r.note(round.open, answered, !round.failed)
		if got := r.addresses(); !slices.Equal(got, round.want) || changed == slices.Equal(before, got) {
			t.Errorf("round %d: %v, changed %v; want %v", i, got, changed, round.want)
		}
	}
}
