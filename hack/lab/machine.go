//go:build linux

package lab

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// SlownessVariable is the environment variable that says how many times slower this machine is than those that the tests' deadlines
// are made for, for example one that is emulated (hack/kernels).
const SlownessVariable = "SLOWNESS"

var slowness = func() float64 {
	factor, err := strconv.ParseFloat(os.Getenv(SlownessVariable), 64)
	if err != nil || factor < 1 {
		return 1
	}
	return factor
}()

// Stretch returns what a deadline is on this machine. It is for those that bound how long something may take; not for the time in which
// nothing must happen, and not for a question that may have no answer. It is for pauses as well between things that cost the machine time.
func Stretch(deadline time.Duration) time.Duration {
	return time.Duration(float64(deadline) * slowness)
}

// Slow tells whether this machine is slower than those that the tests are made for.
func Slow() bool { return slowness > 1 }

// LacksVariable is the environment variable that names the modules, with commas between them, that the kernel does not have now
// (hack/kernels).
const LacksVariable = "LACKS"

// NeedsLack skips the test on a kernel that has one of these modules.
func NeedsLack(t *testing.T, modules ...string) {
	t.Helper()
	for _, module := range modules {
		if !slices.Contains(strings.Split(os.Getenv(LacksVariable), ","), module) {
			t.Skipf("hack/kernels has a kernel without %s", module)
		}
	}
}
