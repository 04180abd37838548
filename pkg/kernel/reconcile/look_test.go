package reconcile

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// TestWrote_HalfOfARefusedChange: what the steering has taken of a change that the rules refused is nobody else's.
func TestWrote_HalfOfARefusedChange(t *testing.T) {
	binding := func(pod string) kernel.Binding {
		return kernel.Binding{Pod: netip.MustParseAddr(pod), EgressIP: netip.MustParseAddr("203.0.113.10"), Protocol: kernel.All}
	}
	held, added, strange := binding("10.128.0.5"), binding("10.128.0.6"), binding("10.128.0.7")
	r := &run{Reconciler: &Reconciler{}, change: kernel.Change{Added: []kernel.Binding{added}}}
	r.belief.since = map[kernel.Binding]time.Time{held: {}}
	for name, test := range map[string]struct {
		found []kernel.Binding
		want  bool
	}{
		"nothing of it":  {[]kernel.Binding{held}, true},
		"what it adds":   {[]kernel.Binding{held, added}, true},
		"something else": {[]kernel.Binding{held, added, strange}, false},
		"one is missing": {[]kernel.Binding{added}, false},
		"nothing at all": {nil, false},
	} {
		if got := r.wrote(test.found); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
