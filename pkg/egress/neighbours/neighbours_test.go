package neighbours

import (
	"slices"
	"testing"
	"time"
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

// TestRestAfter_OfALook: short looks go on, long ones take little of a processor, and none is later than half a sync period.
func TestRestAfter_OfALook(t *testing.T) {
	for _, test := range []struct{ took, halfPeriod, want time.Duration }{
		{time.Millisecond, 15 * time.Second, betweenLooks},
		{5 * time.Millisecond, 15 * time.Second, betweenLooks},
		{19 * time.Millisecond, 15 * time.Second, 1600 * time.Millisecond},
		{105 * time.Millisecond, 15 * time.Second, 5900 * time.Millisecond},
		{time.Second, 15 * time.Second, 15 * time.Second},
		{time.Second, 50 * time.Millisecond, betweenLooks},
	} {
		if got := restAfter(test.took, test.halfPeriod); got != test.want {
			t.Errorf("after a look of %s, with half a period of %s: %s, want %s", test.took, test.halfPeriod, got, test.want)
		}
	}
}
