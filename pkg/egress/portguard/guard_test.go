package portguard

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
)

// TestTroubles_Told: each kind of fault has its label, and an Event that says what to do.
func TestTroubles_Told(t *testing.T) {
	address := netip.MustParseAddr("10.128.0.7")
	for _, test := range []struct {
		cannot error
		status portsecurity.Status
		fault  fault
		reason plan.Reason
		words  []string
	}{
		{errors.New("no hook"), portsecurity.Status{}, unavailable, sourcesUnchecked, []string{"no hook"}},
		{nil, portsecurity.Status{Fault: errors.New("no table")}, unwritten, sourcesUnchecked, []string{"no table"}},
		{nil, portsecurity.Status{Refused: []portsecurity.Refusal{{Address: address, Interface: "veth1", Owner: "veth2"}}}, claimed, addressClaimedTwice,
			[]string{address.String(), "veth1", "veth2"}},
		{nil, portsecurity.Status{Redirected: []string{"veth1", "veth2"}}, redirected, sourcesUnchecked,
			[]string{"the pods behind veth1, veth2 can", "tc filter show dev veth1 ingress"}},
		{nil, portsecurity.Status{Redirected: []string{"a", "b", "c", "d", "e", "f", "g"}}, redirected, sourcesUnchecked,
			[]string{"the pods behind a, b, c, d, e and 2 more interfaces can"}},
	} {
		faults, told := troubles(test.cannot, test.status)
		if !slices.Equal(faults, []fault{test.fault}) || len(told) != 1 || told[0].Reason != test.reason {
			t.Errorf("got %q, %v, want %s, %s", faults, told, test.fault, test.reason)
			continue
		}
		for _, words := range test.words {
			if !strings.Contains(told[0].Note, words) {
				t.Errorf("%s: %q is not in %q", test.fault, words, told[0].Note)
			}
		}
	}
	if faults, told := troubles(nil, portsecurity.Status{}); len(faults)+len(told) > 0 {
		t.Errorf("without a fault: %q, %v", faults, told)
	}
}
