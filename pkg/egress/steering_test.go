package egress

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel"
)

// steered is a steerer of node-a, in whose cluster shop/web has the external IP 203.0.113.10.
type steered struct {
	*testing.T
	*steerer
	syncs, known int
}

func newSteered(t *testing.T, mode holders.Mode) *steered {
	t.Helper()
	s := &steered{T: t}
	e := &Extension{config: Config{NodeName: "node-a", Steering: Steering{Mode: mode}}}
	e.state = newState(e.config)
	e.state.setService(&v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       v1.ServiceSpec{ExternalIPs: []string{"203.0.113.10"}, ClusterIP: "172.30.0.1", Ports: []v1.ServicePort{{Protocol: v1.ProtocolTCP, Port: 80}}},
	})
	s.steerer = newSteerer(e, holders.Leases{}, v1.IPv4Protocol)
	s.changed, s.steerer.known = func() { s.syncs++ }, func() { s.known++ }
	for name, ip := range map[string]string{"node-a": "192.0.2.2", "node-b": "192.0.2.3"} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: ip}}
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		e.state.setNode(node)
		s.setNode(node)
	}
	s.apply(holders.OwnAddresses{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}})
	s.apply(holders.LeasesKnown{})
	return s
}

var egressIP = netip.MustParseAddr("203.0.113.10")

// announce has a node announce the egress IP, with an epoch; 0 for not any more.
func (s *steered) announce(node string, epoch uint64) holders.Event {
	addresses := map[netip.Addr]uint64{egressIP: epoch}
	if epoch == 0 {
		addresses = nil
	}
	return holders.Announced{Node: node, Statement: holders.Statement{Addresses: addresses}, Source: holders.Lease, Renewed: time.Unix(int64(epoch), 0)}
}

func (s *steered) expect(want map[netip.Addr]kernel.Way) {
	s.Helper()
	got, _ := s.steering(v1.IPv4Protocol)
	if diff := cmp.Diff(want, got.Ways, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		s.Errorf("ways (-want +got):\n%s", diff)
	}
}

func TestSteerer_Ways(t *testing.T) {
	s := newSteered(t, holders.Auto)
	s.expect(map[netip.Addr]kernel.Way{})
	got, _ := s.steering(v1.IPv4Protocol)
	if got.Self != netip.MustParseAddr("192.0.2.2") || !slices.Equal(got.Nodes, []netip.Addr{netip.MustParseAddr("192.0.2.3")}) {
		t.Errorf("this node is %s, the others are %s", got.Self, got.Nodes)
	}
	syncs := s.syncs
	s.apply(s.announce("node-b", 1))
	s.expect(map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.ToNode, Node: netip.MustParseAddr("192.0.2.3")}})
	if s.syncs != syncs+1 {
		t.Errorf("%d syncs were asked for, want one", s.syncs-syncs)
	}
	s.apply(s.announce("node-b", 0))
	s.expect(map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.Blackhole}})
	if _, wake := s.steering(v1.IPv4Protocol); wake.IsZero() {
		t.Error("nothing wakes the loop when the address becomes nobody's")
	}
	s.apply(holders.OwnAddresses{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2"), egressIP}})
	s.expect(map[netip.Addr]kernel.Way{})
	if !s.state.placement.Held[egressIP] {
		t.Error("pods elsewhere that need the address are not planned")
	}
}

func TestSteerer_RequiredMode(t *testing.T) {
	newSteered(t, holders.Required).expect(map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.Prohibit}})
}

func TestSteerer_OffSteersNothing(t *testing.T) {
	e := &Extension{config: Config{NodeName: "node-a", Steering: Steering{Mode: holders.Off}}}
	s := newSteerer(e, holders.Leases{}, v1.IPv4Protocol)
	s.setNode(&v1.Node{})
	s.deleteNode("node-b")
	if got, wake := s.steering(v1.IPv4Protocol); s != nil || !got.Equal(kernel.Steering{}) || !wake.IsZero() || s.troubles() != nil {
		t.Errorf("got %v, %v, %v", s, got, wake)
	}
}

// TestSteerer_WithoutLeases: rules do not wait for a right that nobody gives.
func TestSteerer_WithoutLeases(t *testing.T) {
	s := newSteered(t, holders.Auto)
	known := s.known
	s.apply(holders.Hearing{Now: false})
	if s.known != known+1 {
		t.Error("the rules still wait for the Leases")
	}
}

func TestSteerer_TroublesThatLast(t *testing.T) {
	s := newSteered(t, holders.Auto)
	web := plan.Service{Namespace: "shop", Name: "web"}
	s.apply(s.announce("node-b", 1))
	if got := s.troubles(); len(got) != 0 {
		t.Errorf("all is well: %v", got)
	}
	own := holders.OwnAddresses{Addresses: []netip.Addr{egressIP}}
	long := time.Now().Add(-time.Minute)
	s = newSteered(t, holders.Auto)
	s.directory = holders.NewDirectory(holders.Config{NodeName: "node-a", Outer: kernel.IPv4})
	for _, event := range []holders.Event{
		holders.NodeSeen{Name: "node-b", Ready: true, InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.3")}}, s.announce("node-b", 1), own, holders.LeasesKnown{},
	} {
		s.directory.Apply(event, long)
	}
	got := s.troubles()[web]
	if len(got) != 1 || got[0].reason != addressOnSeveral || !strings.Contains(got[0].note, "203.0.113.10 is on several nodes at the same time: node-a, node-b") {
		t.Errorf("two nodes have it for a minute: %v", got)
	}
}
