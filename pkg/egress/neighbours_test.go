package egress

import (
	"slices"
	"testing"
)

// TestFirstNamed_CountsTheRest, which may be chains of iptables-legacy.
func TestFirstNamed_CountsTheRest(t *testing.T) {
	found := []string{"1", "2", "3", "4", "5", "6", "7"}
	if got, want := firstNamed(found), []string{"1", "2", "3", "4", "5", "2 more chains use bits of egress SNAT's mark"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := firstNamed(found[:5]); !slices.Equal(got, found[:5]) {
		t.Errorf("five: got %q", got)
	}
}
