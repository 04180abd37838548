package sourceports

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// slice has an EndpointSlice of the Service shop/web name these endpoints, each as "address@node".
func (p *portsTest) slice(endpoints ...string) {
	p.Helper()
	slice := clustertest.Placed("web-1", "web", endpoints...)
	slice.Namespace = "shop"
	for i := range slice.Endpoints {
		slice.Endpoints[i].TargetRef.Namespace = "shop"
	}
	if _, err := p.state.SetSlice(slice); err != nil {
		p.Fatal(err)
	}
	p.state.Update(v1.IPv4Protocol)
}

// shows fails unless so many pods share in the metric, in top, and in the status, where they are named.
func (p *portsTest) shows(when string, metric int, shared ...string) {
	p.Helper()
	series := []float64{}
	p.Collect(func(desc *metrics.Desc, value float64, labels ...string) {
		if desc == portSharingDesc && labels[0] == egressIP.String() {
			series = append(series, value)
		}
	})
	want := []float64{float64(metric)}
	if metric == 0 && len(series) == 0 {
		want = series // nobody has claimed blocks of the address
	}
	var names []string
	for _, a := range p.Assignments() {
		if a.Shared {
			names = append(names, fmt.Sprint(a.Pod.Namespace, "/", a.Pod.Name, " ", a.Pod.IP, " ", a.EgressIP, " ", a.Ports, " ", a.Service, " ", a.Node))
		}
	}
	slices.Sort(names)
	usage := status.Usage{Addresses: []status.AddressUsage{{IP: egressIP}}}
	usage.CountPorts(p.Assignments())
	if diff := cmp.Diff(shared, names, cmpopts.EquateEmpty()); diff != "" || !slices.Equal(series, want) || usage.Addresses[0].Sharing != len(shared) {
		p.Errorf("%s: series %v, want %v; %d in top; in the status (-want +got):\n%s", when, series, want, usage.Addresses[0].Sharing, diff)
	}
}

// pluginless is what the status has of a pod of clustertest.Placed that shares.
func pluginless(ip string) string {
	return fmt.Sprintf("shop/pod-%s %s 203.0.113.10 %s shop/web node-a", ip, ip, portblocks.Shared)
}

// TestUnattached_Shares: a bound pod of this node of which the plugin has told nothing shares, and is shown and counted once, as long as it
// is bound. The pod of an attachment is not counted twice, pods of other nodes not at all. The node's Lease has pods of attachments alone.
func TestUnattached_Shares(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := newPortsTest(ctx, t, t.TempDir(), 512)
		p.state.SetHeld(map[netip.Addr]bool{egressIP: true}, 0) // so the plan has pods of other nodes, too
		p.shows("no pod", 0)
		p.slice("10.128.0.8@node-a", "10.128.0.9@node-a", "10.129.0.9@node-b", "10.129.0.8")
		p.shows("no plugin", 2, pluginless("10.128.0.8"), pluginless("10.128.0.9"))
		if _, assigned, _ := p.Stated(); assigned != "" {
			t.Errorf("the Lease has %s", assigned)
		}
		p.claims()
		p.attach("web-0", "10.128.0.5") // predicted, before a slice names it
		p.shows("with a pod with a block", 2, pluginless("10.128.0.8"), pluginless("10.128.0.9"))
		p.slice("10.128.0.5@node-a", "10.128.0.8@node-a")
		p.shows("that an EndpointSlice names", 1, pluginless("10.128.0.8"))
		p.end("web-0")
		p.shows("that has ended, which the EndpointSlice does not know yet", 1, pluginless("10.128.0.8"))
		p.slice()
		p.shows("none is bound any more", 0)
	})
}

// TestUnattached_Attached: pods of attachments count as before: one that shares once, also if an EndpointSlice names it, and one that is
// not decided yet not at all.
func TestUnattached_Attached(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := newPortsTest(ctx, t, t.TempDir(), 512)
		ports := p.start("web-0", "10.128.0.5") // nobody has said what is claimed
		if len(ports) != 1 || !ports[0].Shared {
			t.Fatalf("ports %v", ports)
		}
		p.slice("10.128.0.5@node-a", "10.128.0.6@node-a")
		shares := fmt.Sprintf("shop/web-0 10.128.0.5 203.0.113.10 %s shop/web node-a", portblocks.Shared)
		p.shows("without a block", 2, pluginless("10.128.0.6"), shares)
		p.state.SetAttachment(plan.Attachment{Addr: netip.MustParseAddr("10.128.0.6"), Pod: plan.Pod{Namespace: "shop", Name: "web-6"}, UID: "6", Node: "node-a"})
		p.state.Update(v1.IPv4Protocol)
		p.shows("the plugin has told of the other one, and asks", 1, shares)
	})
}

// TestUnattached_WithoutBlocks: a pod that was to have no block, by its Service, shares and is no reason for an alert. On a node that gives
// no blocks nothing is shown.
func TestUnattached_WithoutBlocks(t *testing.T) {
	p := newPortsTest(t.Context(), t, t.TempDir(), 512)
	p.slice("10.128.0.8@node-a")
	p.state.SetService(clustertest.NewService("web", func(s *v1.Service) {
		s.Namespace, s.Spec.ExternalIPs, s.Annotations = "shop", []string{egressIP.String()}, map[string]string{cluster.PortBlockAnnotation: "0"}
	}))
	p.state.Update(v1.IPv4Protocol)
	p.shows("egress-port-block 0", 0, pluginless("10.128.0.8"))
	off := newPortsTest(t.Context(), t, t.TempDir(), 0)
	off.slice("10.128.0.8@node-a")
	off.shows("off", 0)
}
