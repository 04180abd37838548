package egress

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
)

// TestPortTroubles_Told: each kind of fault has its label, and an Event that says what to do.
func TestPortTroubles_Told(t *testing.T) {
	for _, test := range []struct {
		unavailable error
		status      portsecurity.Status
		fault       portFault
		reason      plan.Reason
		words       []string
	}{
		{errors.New("no hook"), portsecurity.Status{}, portsUnavailable, sourcesUnchecked, []string{"no hook"}},
		{nil, portsecurity.Status{Fault: errors.New("no table")}, portsUnwritten, sourcesUnchecked, []string{"no table"}},
		{nil, portsecurity.Status{Refused: []portsecurity.Refusal{{Address: egressIP, Interface: "veth1", Owner: "veth2"}}}, portsClaimed, addressClaimedTwice,
			[]string{egressIP.String(), "veth1", "veth2"}},
		{nil, portsecurity.Status{Redirected: []string{"veth1", "veth2"}}, portsRedirected, sourcesUnchecked,
			[]string{"the pods behind veth1, veth2 can", "tc filter show dev veth1 ingress"}},
		{nil, portsecurity.Status{Redirected: []string{"a", "b", "c", "d", "e", "f", "g"}}, portsRedirected, sourcesUnchecked,
			[]string{"the pods behind a, b, c, d, e and 2 more interfaces can"}},
	} {
		faults, troubles := portTroubles(test.unavailable, test.status)
		if !slices.Equal(faults, []portFault{test.fault}) || len(troubles) != 1 || troubles[0].reason != test.reason {
			t.Errorf("got %q, %v, want %s, %s", faults, troubles, test.fault, test.reason)
			continue
		}
		for _, words := range test.words {
			if !strings.Contains(troubles[0].note, words) {
				t.Errorf("%s: %q is not in %q", test.fault, words, troubles[0].note)
			}
		}
	}
	if faults, troubles := portTroubles(nil, portsecurity.Status{}); len(faults)+len(troubles) > 0 {
		t.Errorf("without a fault: %q, %v", faults, troubles)
	}
}
