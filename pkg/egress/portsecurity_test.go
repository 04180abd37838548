package egress

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// TestPortSecurity_UnavailableIsToldEverywhere: in an Event about the Node, by a verification, and in a metric.
func TestPortSecurity_UnavailableIsToldEverywhere(t *testing.T) {
	const why = "the kernel has no ingress hook"
	for name, test := range map[string]struct {
		config PortSecurity
		told   bool
		metric map[string]float64
	}{
		"unavailable":  {PortSecurity{Enabled: true, Unavailable: errors.New(why)}, true, map[string]float64{"unavailable": 1, "unwritten": 0, "claimed_twice": 0}},
		"switched off": {PortSecurity{}, false, map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(t.Context(), Config{NodeName: "node-a", PortSecurity: test.config})
			e.preparePortSecurity()
			e.faultsChanged()
			var events []string
			for _, w := range e.events.warnings[plan.Service{}] {
				if w.about.Kind == "Node" && w.reason == "PodSourcesUnchecked" {
					events = append(events, w.note)
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
