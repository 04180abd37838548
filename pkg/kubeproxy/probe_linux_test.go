package kubeproxy

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"
)

// TestProbed: a failure that passes is tried again, and no other one is.
func TestProbed(t *testing.T) {
	busy, lacking := fmt.Errorf("list the rules: %w", os.ErrDeadlineExceeded), fmt.Errorf("make the table: %w", unix.EOPNOTSUPP)
	for name, test := range map[string]struct {
		answers []error // the last one is given for good
		want    error
		probes  int
	}{
		"it can":             {[]error{nil}, nil, 1},
		"it cannot":          {[]error{lacking}, lacking, 1},
		"busy":               {[]error{busy, unix.ENOBUFS, nil}, nil, 3},
		"busy, and it lacks": {[]error{busy, lacking}, lacking, 2},
		"always busy":        {[]error{busy}, busy, probes},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			err := probed(t.Context(), func() error {
				n++
				return test.answers[min(n, len(test.answers))-1]
			})
			if !errors.Is(err, test.want) || n != test.probes {
				t.Errorf("%s: %v after %d probes, want %v after %d", name, err, n, test.want, test.probes)
			}
		})
	}
}
