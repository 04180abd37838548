package changes

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestOutlast_InterruptedListsOnly(t *testing.T) {
	other := errors.New("other")
	for _, test := range []struct {
		name        string
		interrupted int
		err         error
		reads       int
		want        error
	}{
		{"at once", 0, nil, 1, nil},
		{"another error", 0, other, 1, other},
		{"interrupted", attempts - 1, nil, attempts, nil},
		{"another error after that", 1, other, 2, other},
		{"always interrupted", attempts, nil, attempts, netlink.ErrDumpInterrupted},
	} {
		reads := 0
		found, err := Outlast(func() (int, error) {
			if reads++; reads <= test.interrupted {
				return reads, fmt.Errorf("read: %w", netlink.ErrDumpInterrupted)
			}
			return reads, test.err
		})
		if !errors.Is(err, test.want) || reads != test.reads || found != reads {
			t.Errorf("%s: %v after %d reads, want %v after %d", test.name, err, reads, test.want, test.reads)
		}
	}
}
