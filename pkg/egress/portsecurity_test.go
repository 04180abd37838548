package egress

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
)

// TestPortSecurity_UnavailableIsToldEverywhere: in an Event about the Node, by a verification, and in a metric.
func TestPortSecurity_UnavailableIsToldEverywhere(t *testing.T) {
	const why = "the kernel has no ingress hook"
	for name, test := range map[string]struct {
		config PortSecurity
		told   bool
		metric map[string]float64
	}{
		"unavailable":  {PortSecurity{Enabled: true, Unavailable: errors.New(why)}, true, map[string]float64{"unavailable": 1, "unwritten": 0, "claimed_twice": 0, "redirected": 0}},
		"switched off": {PortSecurity{}, false, map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(t.Context(), Config{Config: cluster.Config{NodeName: "node-a"}, PortSecurity: test.config})
			e.preparePortSecurity()
			e.faultsChanged()
			var events []string
			for _, w := range e.events.Standing(plan.Service{}) {
				if w.About.Kind == "Node" && w.Reason == "PodSourcesUnchecked" {
					events = append(events, w.Note)
				}
			}
			lines, err := e.portDifferences(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for where, said := range map[string][]string{"the Events": events, "a verification": lines} {
				if told := len(said) == 1 && strings.Contains(said[0], "can use the addresses of this node's bound pods") && strings.HasSuffix(said[0], why); told != test.told || len(said) > 1 {
					t.Errorf("%s say %q, want it told: %v", where, said, test.told)
				}
			}
			if test.told && !strings.HasPrefix(lines[0], status.Warning) {
				t.Errorf("a verification says %q, want a warning", lines)
			}
			if got := valuesByReason(t, "egress_snat_port_security_fault"); !maps.Equal(got, test.metric) {
				t.Errorf("the metric has %v, want %v", got, test.metric)
			}
		})
	}
}

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
		if !slices.Equal(faults, []portFault{test.fault}) || len(troubles) != 1 || troubles[0].Reason != test.reason {
			t.Errorf("got %q, %v, want %s, %s", faults, troubles, test.fault, test.reason)
			continue
		}
		for _, words := range test.words {
			if !strings.Contains(troubles[0].Note, words) {
				t.Errorf("%s: %q is not in %q", test.fault, words, troubles[0].Note)
			}
		}
	}
	if faults, troubles := portTroubles(nil, portsecurity.Status{}); len(faults)+len(troubles) > 0 {
		t.Errorf("without a fault: %q, %v", faults, troubles)
	}
}
