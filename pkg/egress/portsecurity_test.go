package egress

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/placement"
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
		"unavailable":  {PortSecurity{Enabled: true, Unavailable: errors.New(why)}, true, map[string]float64{"unavailable": 1, "unwritten": 0, "claimed_twice": 0, "redirected": 0}},
		"switched off": {PortSecurity{}, false, map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(t.Context(), Config{Config: cluster.Config{NodeName: "node-a"}, PortSecurity: test.config})
			e.Reporter.FaultsChanged()
			var events []string
			for _, w := range e.events.Standing(plan.Service{}) {
				if w.About.Kind == "Node" && w.Reason == "PodSourcesUnchecked" {
					events = append(events, w.Note)
				}
			}
			lines := e.ports.Warnings(t.Context())
			for where, said := range map[string][]string{"the Events": events, "a verification": lines} {
				if told := len(said) == 1 && strings.Contains(said[0], "can use the addresses of this node's bound pods") && strings.HasSuffix(said[0], why); told != test.told || len(said) > 1 {
					t.Errorf("%s say %q, want it told: %v", where, said, test.told)
				}
			}
			if test.told && !strings.HasPrefix(lines[0], status.Warning) {
				t.Errorf("a verification says %q, want a warning", lines)
			}
			if got := clustertest.ValuesByReason(t, "egress_snat_port_security_fault"); !maps.Equal(got, test.metric) {
				t.Errorf("the metric has %v, want %v", got, test.metric)
			}
		})
	}
}

// TestPortSecurity_UncheckedPodsAreToldEverywhere: a verification lists the bound pods of this node that are behind no interface that is
// known, and a metric counts them. Those behind a known interface, and those of other nodes, are no concern of either.
func TestPortSecurity_UncheckedPodsAreToldEverywhere(t *testing.T) {
	network := lab.ForTest(t, lab.Config{Nodes: 1, Pods: 1, IPv6: true})
	known, unknown, unknownV6, away := network.Pod(1).V4, "10.128.0.99", "fd00:10:128::99", "10.128.7.11"
	e := newCheckingExtension(t, network.Node())
	v6 := clustertest.Placed("web-2", "web", unknownV6+"@here")
	v6.AddressType = discovery.AddressTypeIPv6
	e.SetService(clustertest.NewService("web", func(s *v1.Service) { s.Spec.ExternalIPs = []string{"203.0.113.1", "2001:db8::1"} }))
	e.SetEndpointSlice(clustertest.Placed("web-1", "web", known.String()+"@here", unknown+"@here", away+"@there"))
	e.SetEndpointSlice(v6)
	for name, f := range e.families {
		f.guardSources(t.Context(), e.ports, e.state.Update(name).InKernel())
	}

	lines := e.ports.Warnings(t.Context())
	var want []string
	for _, pod := range []string{unknown, unknownV6} {
		want = append(want, status.Warning+"other pods may be able to use the address of the bound pod "+pod+", because it is not known behind which interface it is")
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("a verification (-want +got):\n%s", diff)
	}
	if got, want := clustertest.ValuesByReason(t, "egress_snat_port_security_unchecked_pods"), map[string]float64{"IPv4": 1, "IPv6": 1}; !maps.Equal(got, want) {
		t.Errorf("the metric has %v, want %v", got, want)
	}
}

// newCheckingExtension checks the sources of what pods of a host send, until the test ends. It plans for all nodes, and is "here".
func newCheckingExtension(t *testing.T, host *lab.Host) *Extension {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	e := New(ctx, Config{
		Config:       cluster.Config{NodeName: "here", Scope: placement.Cluster, ClusterCIDRs: []netip.Prefix{lab.ClusterV4, lab.ClusterV6}},
		PortSecurity: PortSecurity{Enabled: true}, SyncPeriod: time.Hour,
	})
	var running sync.WaitGroup
	running.Go(func() {
		if err := host.Do(func() error { e.ports.Run(ctx); return nil }); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return e
}
