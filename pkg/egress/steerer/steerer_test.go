package steerer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/node"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// steered is a Steerer of node-a, in whose cluster shop/web has the external IP 203.0.113.10.
type steered struct {
	testing.TB
	*Steerer
	syncs, wakes int
	known        atomic.Int32
	// came has the addresses that have come, and when.
	came   map[netip.Addr]time.Time
	noting sync.Mutex // of came
}

func newSteered(t testing.TB, mode holders.Mode, clusterCIDRs ...netip.Prefix) *steered {
	t.Helper()
	return newSteeredOver(t, v1.IPv4Protocol, mode, clusterCIDRs...)
}

// newSteeredOver is newSteered where nodes reach each other in this IP family.
func newSteeredOver(t testing.TB, outer v1.IPFamily, mode holders.Mode, clusterCIDRs ...netip.Prefix) *steered {
	t.Helper()
	s := &steered{TB: t, came: map[netip.Addr]time.Time{}}
	config := cluster.Config{NodeName: "node-a", ClusterCIDRs: clusterCIDRs, Steering: cluster.Steering{Mode: mode}}
	state := cluster.New(config)
	state.SetService(&v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       v1.ServiceSpec{ExternalIPs: []string{"203.0.113.10"}, ClusterIP: "172.30.0.1", Ports: []v1.ServicePort{{Protocol: v1.ProtocolTCP, Port: 80}}},
	})
	s.Steerer = New(t.Context(), state, Config{
		Outer: outer, Running: &sync.WaitGroup{},
		RequestSync: func() { s.syncs++ }, Wake: func() { s.wakes++ }, LeasesKnown: func() { s.known.Add(1) },
		Came: func(came map[netip.Addr]bool, at time.Time) {
			s.noting.Lock()
			defer s.noting.Unlock()
			for ip := range came {
				s.came[ip] = at
			}
		},
	})
	for name, ip := range map[string]string{"node-a": "192.0.2.2", "node-b": "192.0.2.3"} {
		n := clustertest.NewNode(name, ip, v1.ConditionTrue)
		state.SetNode(n)
		s.SetNode(n)
	}
	s.Apply(holders.OwnAddresses{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}})
	s.Apply(holders.LeasesKnown{})
	return s
}

// plansFor are the addresses whose pods' rules this node has.
func (s *steered) plansFor() map[netip.Addr]bool {
	_, place := s.state.Input(v1.IPv4Protocol)
	return place.Held
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
	got, _ := s.Sync(v1.IPv4Protocol)
	if diff := cmp.Diff(want, got.Ways, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		s.Errorf("ways (-want +got):\n%s", diff)
	}
}

// TestSteerer_WhenAddressesCame: those of the first report may have been here before, and what belongs to no connection of theirs is no reason
// for a reset.
func TestSteerer_WhenAddressesCame(t *testing.T) {
	began, node, s := time.Now(), netip.MustParseAddr("192.0.2.2"), newSteered(t, holders.Auto)
	if at, came := s.came[node]; !came || !at.IsZero() {
		t.Errorf("the first report: %v", s.came)
	}
	s.Apply(holders.OwnAddresses{Addresses: []netip.Addr{node, egressIP}})
	if at := s.came[egressIP]; at.Before(began) || !s.came[node].IsZero() {
		t.Errorf("one more: %v", s.came)
	}
}

// TestSteerer_NextHops: without a tunnel a node is the next hop, by its address of the packets' family, and an egress IP
// is lost whose holder cannot be.
func TestSteerer_NextHops(t *testing.T) {
	s := newSteered(t, holders.Auto)
	s.config.Kernel.Transport = steering.Direct
	var failure error
	var looked []netip.Addr
	s.find = func(_, node netip.Addr) error {
		looked = append(looked, node)
		return nil
	}
	s.adjacent = func(_, _ netip.Addr) error { return failure }
	s.Apply(s.announce("node-b", 1))
	toNode := map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.ToNode, Node: netip.MustParseAddr("192.0.2.3")}}
	rejected := map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.Prohibit}}
	s.expect(toNode)
	failure = errors.New("it is behind a router")
	s.expect(rejected)
	if a := s.Addresses(v1.IPv4Protocol)[0]; a.State != string(holders.Lost) || a.Way != string(kernel.Prohibit) || !strings.Contains(a.Why, "behind a router") {
		t.Errorf("a node behind a router: %+v", a)
	}
	failure = nil
	s.expect(toNode)
	node, at, syncs := netip.MustParseAddr("192.0.2.3"), kernel.HardwareAddr{2, 0, 0, 0, 0, 3}, s.syncs
	if !slices.Contains(looked, node) {
		t.Errorf("the hardware address of %s was not looked for, only %s", node, looked)
	}
	s.setHardware(netip.MustParseAddr("192.0.2.99"), kernel.HardwareAddr{2, 0, 0, 0, 0, 99}) // no node
	s.setHardware(node, at)
	s.setHardware(node, at)
	if got, _ := s.Sync(v1.IPv4Protocol); len(got.Senders) != 1 || got.Senders[node] != at || s.syncs != syncs+1 {
		t.Errorf("the nodes are at %v after %d syncs, want %s at %s after one", got.Senders, s.syncs-syncs, node, at)
	}
	if got, _ := s.Sync(v1.IPv6Protocol); len(got.Nodes) > 0 || !got.Self.IsValid() {
		t.Errorf("IPv6: this node is %s, the others are %s; want none without an IPv6 address", got.Self, got.Nodes)
	}
}

// TestSteerer_AsksTheKernelWithoutTheLock: whether a node can be the next hop, and for its hardware address. An egress IP that goes to
// another node meanwhile has that one asked for, too.
func TestSteerer_AsksTheKernelWithoutTheLock(t *testing.T) {
	s := newSteered(t, holders.Auto)
	s.config.Kernel.Transport = steering.Direct
	third := clustertest.NewNode("node-c", "192.0.2.4", v1.ConditionTrue)
	s.state.SetNode(third)
	s.SetNode(third)
	s.Apply(s.announce("node-b", 1))
	free := func() {
		if !s.mu.TryLock() {
			t.Fatal("the kernel is asked with the lock held")
		}
		s.mu.Unlock()
	}
	s.find = func(_, _ netip.Addr) error { free(); return nil }
	s.adjacent = func(_, next netip.Addr) error {
		free()
		if next == netip.MustParseAddr("192.0.2.3") {
			s.Apply(s.announce("node-c", 2))
			return nil
		}
		return errors.New("it is behind a router")
	}
	s.expect(map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.Prohibit}})
	if a := s.Addresses(v1.IPv4Protocol)[0]; a.Holder != "node-c" || a.State != string(holders.Lost) {
		t.Errorf("got %+v, want it lost with node-c", a)
	}
}

// TestSteerer_AQuestionChangesNothing: a new egress IP is not noted, nobody is told, and no sync comes at another time.
func TestSteerer_AQuestionChangesNothing(t *testing.T) {
	s := newSteered(t, holders.Required)
	s.Apply(holders.OwnAddresses{Addresses: []netip.Addr{egressIP}})
	wakeAt := s.wakeAt
	s.Steering(v1.IPv4Protocol)
	if len(s.coming) > 0 || s.claims != nil || !s.wakeAt.Equal(wakeAt) {
		t.Errorf("a question notes %v and %v, and has a sync at %s instead of %s", s.coming, s.claims, s.wakeAt, wakeAt)
	}
	s.Synced(v1.IPv4Protocol, []v1.IPFamily{v1.IPv4Protocol})
	told := s.node.Said()
	if s.node.Apply(holders.OwnAddresses{}, time.Now()); told.Revision == 0 || len(told.Addresses) != 1 {
		t.Fatalf("others were told %+v, want that the egress IP is here", told)
	}
	if s.Steering(v1.IPv4Protocol); s.node.Said().Revision != told.Revision {
		t.Errorf("a question tells others %+v", s.node.Said())
	}
	if s.Sync(v1.IPv4Protocol); s.node.Said().Revision == told.Revision || len(s.coming) == 0 {
		t.Errorf("a sync tells others %+v, and notes %v", s.node.Said(), s.coming)
	}
}

// TestSteerer_RefusedClaims: a pod's address and this node's own are told no other node because a Service names them, have no way, and pods may
// send from them. The egress IPs of both IP families count from the first sync on, whichever family that is of.
func TestSteerer_RefusedClaims(t *testing.T) {
	s := newSteered(t, holders.Required, netip.MustParsePrefix("10.128.0.0/14"))
	ofIPv6, here := netip.MustParseAddr("2001:db8::9"), []netip.Addr{egressIP}
	for i, ip := range []string{"10.128.0.9", "192.0.2.2", ofIPv6.String()} {
		s.state.SetService(clustertest.NewService(fmt.Sprint("names-", i), func(s *v1.Service) { s.Spec.ExternalIPs = []string{ip} }))
		here = append(here, netip.MustParseAddr(ip))
	}
	s.Apply(holders.Own(here, nil))
	for _, family := range cluster.Families {
		s.Sync(family)
		s.Synced(family, []v1.IPFamily{family})
		if told := s.node.Said().Addresses; len(told) != 2 || told[egressIP] == 0 || told[ofIPv6] == 0 {
			t.Errorf("%s: other nodes are told of %v, want the two egress IPs alone", family, told)
		}
	}
	got, _ := s.Sync(v1.IPv4Protocol)
	if !slices.Equal(got.Claimed, []netip.Addr{egressIP}) || len(got.Ways) > 0 {
		t.Errorf("no pod may send from %v, and there are the ways %v; want the egress IP, which is here", got.Claimed, got.Ways)
	}
}

// TestSteerer_LeaseSaysWhatIsTold: a Lease is written when other nodes may be told, and says which egress IPs are here and what was chosen
// for pods. It belongs to the Node.
func TestSteerer_LeaseSaysWhatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := newSteered(t, holders.Auto), fake.NewClientset()
		s.publisher = holders.NewPublisher(holders.Leases{Client: client, Namespace: "origin-node"}, "node-a", s.published)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go s.publisher.Run(ctx)
		self := clustertest.NewNode("node-a", "192.0.2.2", v1.ConditionTrue)
		self.UID = "uid-1"
		s.SetNode(self)
		chosen := plan.NodeChoices{"shop/web": {netip.MustParseAddr("10.128.0.5"): egressIP}}
		s.state.SetChoices("node-a", chosen)
		s.Apply(holders.OwnAddresses{Addresses: []netip.Addr{egressIP}})
		lease := func() *coordinationv1.Lease {
			synctest.Wait()
			lease, err := client.CoordinationV1().Leases("origin-node").Get(ctx, "node-a", metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			return lease
		}
		if written := lease(); written != nil && written.Name != "" {
			t.Errorf("before a sync the Lease says %v", written.Annotations)
		}
		s.Synced(v1.IPv4Protocol, []v1.IPFamily{v1.IPv4Protocol})
		written := lease()
		told, err := holders.Choosing(written)
		if text := written.Annotations[holders.Annotation]; !strings.Contains(text, egressIP.String()) || err != nil || !maps.EqualFunc(told, chosen, maps.Equal) {
			t.Errorf("the Lease says %v, %v; want %s, and that %v was chosen", written.Annotations, err, egressIP, chosen)
		}
		if owners := written.OwnerReferences; len(owners) != 1 || owners[0].UID != "uid-1" {
			t.Errorf("the Lease belongs to %v", owners)
		}
		s.Apply(holders.OwnAddresses{})
		s.Sync(v1.IPv4Protocol)
		if text := lease().Annotations[holders.Annotation]; text != "{}" {
			t.Errorf("the Lease says %s when the address is gone", text)
		}
		changed := lease()
		changed.Annotations[holders.Annotation] = `{"203.0.113.10": {"epoch": 9}}`
		if _, err := client.CoordinationV1().Leases("origin-node").Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.Apply(s.announce("node-a", 9))
		if text := lease().Annotations[holders.Annotation]; text != "{}" {
			t.Errorf("the Lease says %s after somebody has changed it", text)
		}
	})
}

// TestSteerer_NotesTheNewestObjects: what was read before, and comes later, changes nothing: neither what is claimed, nor where nodes are,
// nor which pods this node plans.
func TestSteerer_NotesTheNewestObjects(t *testing.T) {
	s := newSteered(t, holders.Auto)
	older := s.state.Snapshot()
	s.state.DeleteNode("node-b")
	s.state.DeleteService(&v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	s.note(s.state.Snapshot(), v1.IPv4Protocol)
	s.note(older, v1.IPv4Protocol)
	if len(older.EgressIPs[v1.IPv4Protocol]) == 0 || len(s.claims) > 0 || s.Primaries(v1.IPv4Protocol)["node-b"].IsValid() {
		t.Errorf("claims %v of before %v, nodes %v", s.claims, older.EgressIPs, s.Primaries(v1.IPv4Protocol))
	}
	s = newSteered(t, holders.Auto)

	s.balanced = map[netip.Addr]bool{egressIP: true}
	here, revision := s.heldNow()
	s.balanced = nil
	s.setHeld()
	if s.state.SetHeld(here, revision) || s.plansFor()[egressIP] {
		t.Errorf("this node plans pods of %v", s.plansFor())
	}
}

// TestSteerer_WithoutMetalLB: where MetalLB is not followed, this node's addresses are those on its interfaces alone.
func TestSteerer_WithoutMetalLB(t *testing.T) {
	s := newSteered(t, holders.Auto)
	s.SetOnInterfaces(holders.OwnAddresses{Addresses: []netip.Addr{egressIP}})
	if _, has := s.node.Own()[egressIP]; !has || !s.Here()[egressIP] {
		t.Errorf("the node has %v, want %s", s.Here(), egressIP)
	}
}

// TestSteerer_AddressesInOrder: of what two tell at once of this node's addresses, the last that the directory was told counts for all.
func TestSteerer_AddressesInOrder(t *testing.T) {
	s := newSteered(t, holders.Auto)
	s.config.RequestSync, s.config.Wake = func() {}, func() {}
	var both sync.WaitGroup
	for range 100 {
		for n := range 20 {
			addresses := []netip.Addr{egressIP}[n%2:]
			both.Go(func() { s.SetOnInterfaces(holders.OwnAddresses{Addresses: addresses}) })
			both.Go(func() { s.SetAnnounced(addresses, nil) })
		}
		both.Wait()
		_, has := s.node.Own()[egressIP]
		if last := slices.Contains(holders.Own(s.own.onInterfaces, s.own.announced).Addresses, egressIP); has != last || s.Here()[egressIP] != last || s.plansFor()[egressIP] != last {
			t.Fatalf("it was told %v last, the directory says %v, the node %v, the plan %v", last, has, s.Here()[egressIP], s.plansFor()[egressIP])
		}
	}
}

// TestSteerer_HardwareOfNodesAlone: whatever a host on the network claims to be, only nodes are kept. The kernel is asked again
// when there is a node that it may know already.
func TestSteerer_HardwareOfNodesAlone(t *testing.T) {
	s := newSteered(t, holders.Auto)
	s.config.Kernel.Transport = steering.Direct
	s.find = func(_, _ netip.Addr) error { return nil }
	asked := func() bool {
		s.Sync(v1.IPv4Protocol)
		select {
		case <-s.ask:
			return true
		default:
			return false
		}
	}
	at, syncs := kernel.HardwareAddr{2, 0, 0, 0, 0, 3}, s.syncs
	for i := range 10_000 {
		s.setHardware(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), at)
	}
	if len(s.hardware) > 0 || s.syncs != syncs {
		t.Errorf("%d hosts that are no nodes are kept, and %d syncs were asked for", len(s.hardware), s.syncs-syncs)
	}
	if !asked() {
		t.Error("the kernel is not asked for a node that is not known")
	}
	s.setHardware(netip.MustParseAddr("192.0.2.3"), at)
	if asked() {
		t.Error("the kernel is asked though all nodes are known")
	}
	for i := range 100 { // nodes come and go
		name, ip := fmt.Sprintf("node-%d", i), netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		s.state.SetNode(clustertest.NewNode(name, ip.String(), v1.ConditionTrue))
		if !asked() {
			t.Fatalf("the kernel is not asked for %s, which has come", name)
		}
		s.setHardware(ip, at)
		s.state.DeleteNode(name)
	}
	if len(s.hardware) > 20 {
		t.Errorf("the hardware addresses of %d nodes are kept, though only two are left", len(s.hardware))
	}
}

// TestSteerer_UnclaimedAddresses: what a node announces of an address that no Service claims counts as soon as one does. Both
// families sync then.
func TestSteerer_UnclaimedAddresses(t *testing.T) {
	s := newSteered(t, holders.Auto)
	other := netip.MustParseAddr("203.0.113.99")
	s.expect(map[netip.Addr]kernel.Way{})
	syncs := s.syncs
	s.Apply(holders.Announced{Node: "node-b", Source: holders.Announcement, Statement: holders.Statement{Addresses: map[netip.Addr]uint64{other: 3}, Revision: 1}})
	if h := s.node.Holder(other, time.Now()); h.State != holders.Unclaimed || s.syncs != syncs {
		t.Errorf("what nobody claims is %+v, and leads to %d syncs", h, s.syncs-syncs)
	}
	s.state.SetService(&v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"},
		Spec:       v1.ServiceSpec{ExternalIPs: []string{other.String()}, ClusterIP: "172.30.0.2", Ports: []v1.ServicePort{{Protocol: v1.ProtocolTCP, Port: 80}}},
	})
	wakes := s.wakes
	s.expect(map[netip.Addr]kernel.Way{other: {Kind: kernel.ToNode, Node: netip.MustParseAddr("192.0.2.3")}})
	s.expect(map[netip.Addr]kernel.Way{other: {Kind: kernel.ToNode, Node: netip.MustParseAddr("192.0.2.3")}})
	if s.wakes != wakes+1 {
		t.Errorf("it asks for %d syncs, want 1", s.wakes-wakes)
	}
}

func TestSteerer_Ways(t *testing.T) {
	s := newSteered(t, holders.Auto)
	s.expect(map[netip.Addr]kernel.Way{})
	got, _ := s.Sync(v1.IPv4Protocol)
	if got.Self != netip.MustParseAddr("192.0.2.2") || !slices.Equal(got.Nodes, []netip.Addr{netip.MustParseAddr("192.0.2.3")}) {
		t.Errorf("this node is %s, the others are %s", got.Self, got.Nodes)
	}
	syncs := s.syncs
	s.Apply(s.announce("node-b", 1))
	s.expect(map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.ToNode, Node: netip.MustParseAddr("192.0.2.3")}})
	if s.syncs != syncs+1 {
		t.Errorf("%d syncs were asked for, want one", s.syncs-syncs)
	}
	s.Apply(s.announce("node-b", 0))
	s.expect(map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.Blackhole}})
	if _, wake := s.Sync(v1.IPv4Protocol); wake.IsZero() {
		t.Error("nothing wakes the loop when the address becomes nobody's")
	}
	s.Apply(holders.OwnAddresses{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2"), egressIP}})
	s.expect(map[netip.Addr]kernel.Way{})
	if !s.plansFor()[egressIP] {
		t.Error("pods elsewhere that need the address are not planned")
	}
}

// TestFor_Leases: a dry run knows from Leases, Nodes and its own addresses what a node would learn.
func TestFor_Leases(t *testing.T) {
	objects := cluster.Objects{
		Nodes: []*v1.Node{clustertest.NewNode("node-a", "192.0.2.2", v1.ConditionTrue), clustertest.NewNode("node-b", "192.0.2.3", v1.ConditionTrue)},
		Services: []*v1.Service{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec:       v1.ServiceSpec{ExternalIPs: []string{"203.0.113.10"}, ClusterIP: "172.30.0.1", Ports: []v1.ServicePort{{Protocol: v1.ProtocolTCP, Port: 80}}},
		}},
		Leases: []*coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{
			Namespace: "origin-node", Name: "node-b", Annotations: map[string]string{holders.Annotation: `{"203.0.113.10": {"epoch": 3}}`},
		}}},
	}
	config := cluster.Config{NodeName: "node-a", Steering: cluster.Steering{Mode: holders.Auto}}
	got, err := For(v1.IPv4Protocol, config, steering.Config{}, 0, objects)
	want := map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.ToNode, Node: netip.MustParseAddr("192.0.2.3")}}
	if !maps.Equal(got.Ways, want) || got.Self != netip.MustParseAddr("192.0.2.2") || len(got.Nodes) != 1 || err != nil {
		t.Errorf("got %+v, %v; want the ways %v", got, err, want)
	}
	objects.Held = map[netip.Addr]bool{egressIP: true}
	if got, _ := For(v1.IPv4Protocol, config, steering.Config{}, 0, objects); len(got.Ways) > 0 {
		t.Errorf("an address of this node has the way %v", got.Ways)
	}
	objects.Leases[0].Annotations[holders.Annotation] = "nonsense"
	if _, err := For(v1.IPv4Protocol, config, steering.Config{}, 0, objects); err == nil || !strings.Contains(err.Error(), "origin-node/node-b") {
		t.Errorf("a Lease that cannot be read: %v", err)
	}
}

// TestFor_WhoSends: a dry run of the node that has an egress IP, or may get it as a node of the pool, knows on which
// nodes the pods run, and without a tunnel the nodes' hardware addresses.
func TestFor_WhoSends(t *testing.T) {
	here := clustertest.NewNode("node-a", "192.0.2.2", v1.ConditionTrue)
	here.Labels = map[string]string{"pool": "yes"}
	slice := clustertest.NewSlice("web-1", "web", "10.128.1.11")
	slice.Endpoints[0].NodeName = ptr.To("node-b")
	web := clustertest.NewService("web", func(s *v1.Service) { s.Spec.ExternalIPs = []string{egressIP.String()} })
	at, far := kernel.HardwareAddr{2, 0, 0, 0, 0, 3}, netip.MustParseAddr("192.0.2.3")
	objects := cluster.Objects{
		Nodes:    []*v1.Node{here, clustertest.NewNode("node-b", far.String(), v1.ConditionTrue)},
		Services: []*v1.Service{web}, EndpointSlices: []*discovery.EndpointSlice{slice},
		Held:     map[netip.Addr]bool{egressIP: true},
		Hardware: map[netip.Addr]kernel.HardwareAddr{far: at, netip.MustParseAddr("192.0.2.99"): {2}},
	}
	config := cluster.Config{NodeName: "node-a", Scope: placement.Node, ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("fd01::/48")}}
	config.Steering.Mode = holders.Auto
	kernelConfig := steering.Config{Transport: steering.Direct}
	expect := func(how string, has bool) {
		t.Helper()
		got, err := For(v1.IPv4Protocol, config, kernelConfig, 0, objects)
		if absent := has && !objects.Held[egressIP]; got.Absent[egressIP] != absent {
			t.Errorf("%s: no node has what may come: %v, want %v", how, got.Absent[egressIP], absent)
		}
		if home := got.Homes[netip.MustParseAddr("10.128.1.11")]; (home == far) != has || got.Held[egressIP] != has || err != nil {
			t.Errorf("%s: got %+v, %v; want the pod's node: %v", how, got, err, has)
		}
		if want := map[netip.Addr]kernel.HardwareAddr{far: at}; !maps.Equal(got.Senders, want) {
			t.Errorf("%s: senders %v, want %v", how, got.Senders, want)
		}
	}
	expect("held", true)
	objects.Held = nil
	expect("not held", false)
	config.Pool = cluster.Pool{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}, Nodes: labels.SelectorFromSet(labels.Set{"pool": "yes"})}
	expect("in the pool", true)
	if p, err := cluster.PlanFor(v1.IPv4Protocol, config, objects); len(p.Bindings) != 1 || err != nil {
		t.Errorf("in the pool: the plan has %v, %v; want the pod's binding", p.Bindings, err)
	}
	here.Labels = nil
	expect("not in the pool", false)
	for scope, want := range map[placement.Scope]bool{placement.Node: false, placement.Cluster: true} {
		config.Scope = scope
		if got, err := For(v1.IPv4Protocol, config, kernelConfig, 0, objects); got.Roaming != want || err != nil {
			t.Errorf("scope %s: pods roam: %v, %v, want %v", scope, got.Roaming, err, want)
		}
	}
}

// TestSteerer_RequiredMode: an egress IP that no node has is refused. One that a Service has just got may be on its way, so what
// needs it is dropped in silence for a while.
func TestSteerer_RequiredMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t, holders.Required)
		silent, refused := map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.Blackhole}}, map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.Prohibit}}
		began := time.Now()
		s.expect(silent)
		time.Sleep(arrival / 2)
		s.expect(silent)
		if _, wake := s.Sync(v1.IPv4Protocol); !wake.Equal(began.Add(arrival)) {
			t.Errorf("the next sync is at %s, want %s after the start", wake, arrival)
		}
		time.Sleep(arrival / 2)
		s.expect(refused)
		if _, wake := s.Sync(v1.IPv4Protocol); !wake.IsZero() {
			t.Errorf("the next sync is at %s, want none", wake)
		}
		s.Apply(s.announce("node-b", 1))
		s.expect(map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.ToNode, Node: netip.MustParseAddr("192.0.2.3")}})
		s.Apply(s.announce("node-b", 0))
		s.expect(silent)
		time.Sleep(2 * arrival)
		s.expect(refused)
	})
}

// TestSteerer_NilSteersNothing: there is none where steering is off.
func TestSteerer_NilSteersNothing(t *testing.T) {
	var s *Steerer
	s.SetNode(&v1.Node{})
	s.DeleteNode("node-b")
	if got, wake := s.Sync(v1.IPv4Protocol); !got.Equal(kernel.Steering{}) || !wake.IsZero() || s.Troubles() != nil {
		t.Errorf("got %v, %v", got, wake)
	}
}

// TestSteerer_WithoutLeases: rules do not wait for long for a right that nobody gives; what the API server refuses now it may allow a moment
// later.
func TestSteerer_WithoutLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t, holders.Auto)
		known := s.known.Load()
		s.Apply(holders.Hearing{Now: false}) // there may be no API server
		time.Sleep(leasesPatience + time.Second)
		s.LeasesRefused()
		s.LeasesRefused()
		for _, want := range []int32{known, known + 1} {
			if got := s.known.Load(); got != want {
				t.Errorf("the rules wait for the Leases: %v, want %v", got == known, want == known)
			}
			time.Sleep(leasesPatience)
			synctest.Wait()
		}
	})
}

// TestSteerer_WakesInTime: a sync comes when the holder becomes silent, and not with the next regular one.
func TestSteerer_WakesInTime(t *testing.T) {
	s := newSteered(t, holders.Auto)
	s.Apply(s.announce("node-b", 1))
	if _, wake := s.Sync(v1.IPv4Protocol); !wake.IsZero() {
		t.Errorf("all is well, and the next sync is at %s", wake)
	}
	for _, wakes := range []int{1, 1} { // it knows already
		s.SetNode(clustertest.NewNode("node-b", "192.0.2.3", v1.ConditionFalse))
		if s.wakes != wakes {
			t.Errorf("woken %d times, want %d", s.wakes, wakes)
		}
	}
	if _, wake := s.Sync(v1.IPv4Protocol); time.Until(wake) > 40*time.Second || time.Until(wake) < 30*time.Second {
		t.Errorf("the next sync is in %s, want that in which it is silent", time.Until(wake))
	}
}

// TestSteerer_TellsAtOnce: an address that comes is announced before any sync, but not before the first of both IP families,
// which knows all objects.
func TestSteerer_TellsAtOnce(t *testing.T) {
	s := newSteered(t, holders.Auto)
	own := func(list ...netip.Addr) holders.Event { return holders.OwnAddresses{Addresses: list} }
	s.Apply(own(egressIP))
	if s.node.Said().Revision != 0 {
		t.Errorf("told %v before all objects were known", s.node.Said())
	}
	s.Sync(v1.IPv4Protocol)
	s.Synced(v1.IPv4Protocol, cluster.Families)
	if s.node.Said().Revision != 0 {
		t.Errorf("told %v before the IPv6 rules were there", s.node.Said())
	}
	s.Synced(v1.IPv6Protocol, cluster.Families)
	var told uint64
	for i, want := range []map[netip.Addr]uint64{{egressIP: 1}, {}, {egressIP: 2}} {
		if i > 0 {
			s.Apply(own(slices.Collect(maps.Keys(want))...))
		}
		if got := s.node.Said(); !maps.Equal(got.Addresses, want) || got.Revision <= told {
			t.Errorf("told %v, want %v, with a revision after %d", got, want, told)
		}
		told = s.node.Said().Revision
	}
	s.Sync(v1.IPv6Protocol)
	if s.node.Said().Revision != told {
		t.Errorf("the same is told as revision %d", s.node.Said().Revision)
	}
}

// TestSteerer_RevisionGoesOn over a restart, from what the Lease has.
func TestSteerer_RevisionGoesOn(t *testing.T) {
	s := newSteered(t, holders.Auto)
	const later = 1 << 40 // than the clock: it is there in 2060
	s.Apply(holders.Announced{Node: "node-a", Statement: holders.Statement{Revision: later}, Source: holders.Lease})
	s.Synced(v1.IPv4Protocol, cluster.Families[:1])
	if s.node.Said().Revision != later+1 {
		t.Errorf("revision %d, want %d", s.node.Said().Revision, later+1)
	}
}

// TestSteerer_PoisonedRevision: a Lease of this node with a revision that no node gets to does not lead it beyond what others read, at
// its start or later.
func TestSteerer_PoisonedRevision(t *testing.T) {
	const most = 1 << 42
	for _, when := range []string{"at the start", "later"} {
		s := newSteered(t, holders.Auto)
		if when == "later" {
			s.Synced(v1.IPv4Protocol, []v1.IPFamily{v1.IPv4Protocol})
		}
		began, before := time.Now(), s.node.Said().Revision
		s.Apply(holders.Announced{Node: "node-a", Statement: holders.Statement{Revision: most}, Source: holders.Lease, Renewed: time.Unix(1, 0)})
		s.Synced(v1.IPv4Protocol, []v1.IPFamily{v1.IPv4Protocol})
		s.Apply(holders.OwnAddresses{Addresses: []netip.Addr{egressIP}})
		if got := s.node.Said(); got.Revision <= before || got.Revision > portblocks.NextRevision(before, began.Add(time.Minute)) || got.Addresses[egressIP] == 0 {
			t.Errorf("poisoned %s: it says %v as revision %d after %d", when, got.Addresses, got.Revision, before)
		}
	}
}

func TestSteerer_TroublesThatLast(t *testing.T) {
	s := newSteered(t, holders.Auto)
	web := plan.Service{Namespace: "shop", Name: "web"}
	s.Apply(s.announce("node-b", 1))
	if got := s.Troubles(); len(got) != 0 {
		t.Errorf("all is well: %v", got)
	}
	own := holders.OwnAddresses{Addresses: []netip.Addr{egressIP}}
	long := time.Now().Add(-time.Minute)
	s = newSteered(t, holders.Auto)
	s.node = node.New(holders.Config{NodeName: "node-a", Outer: kernel.IPv4})
	for _, event := range []holders.Event{
		holders.NodeSeen{Name: "node-b", Ready: true, InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.3")}}, s.announce("node-b", 1), own, holders.LeasesKnown{},
	} {
		s.node.Apply(event, long)
	}
	again := s.announce("node-b", 1).(holders.Announced)
	for range 2 { // the first time that its Lease changes may be news of before
		again.Renewed = again.Renewed.Add(10 * time.Second)
		s.node.Apply(again, again.Renewed.Add(long.Sub(time.Unix(1, 0))))
	}
	got := s.Troubles()[web]
	if len(got) != 1 || got[0].Reason != addressOnSeveral || !strings.Contains(got[0].Note, "203.0.113.10 is on several nodes at the same time: node-a, node-b") {
		t.Errorf("two nodes have it for a minute: %v", got)
	}
}

// TestSteerer_TroubleOfTheNextHop: that this node does not reach a holder, others may not know, so it tells of that itself, some time after the
// node was not reached any more. Of nodes that it reaches, or that are gone, it remembers nothing.
func TestSteerer_TroubleOfTheNextHop(t *testing.T) {
	s := newSteered(t, holders.Auto)
	s.config.Kernel.Transport = steering.Direct
	var failure error
	s.adjacent = func(_, _ netip.Addr) error { return failure }
	s.Apply(s.announce("node-b", 1))
	reached := s.Addresses(v1.IPv4Protocol)[0]
	failure = errors.New("it is behind a router")
	before := time.Now()
	if a := s.Addresses(v1.IPv4Protocol)[0]; a.State != string(holders.Lost) || a.Since.Before(before) {
		t.Errorf("it is lost since %s, and was held since %s", a.Since, reached.Since)
	}
	if got := s.Troubles(); len(got) != 0 {
		t.Errorf("told at once: %v", got)
	}
	of := hopKey{v1.IPv4Protocol, "node-b"}
	hop := s.unreached[of]
	hop.since = before.Add(-time.Minute)
	s.unreached[of] = hop
	s.node = node.New(holders.Config{NodeName: "node-a", Outer: kernel.IPv4})
	for _, event := range []holders.Event{
		holders.NodeSeen{Name: "node-b", Ready: true, InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.3")}}, s.announce("node-b", 1), holders.OwnAddresses{}, holders.LeasesKnown{},
	} {
		s.node.Apply(event, before.Add(-time.Hour))
	}
	got := s.Troubles()[plan.Service{Namespace: "shop", Name: "web"}]
	if len(got) != 1 || got[0].Reason != addressLost || !got[0].Own || !strings.HasPrefix(got[0].Note, "On some nodes, for example node-a: 203.0.113.10 is lost") {
		t.Errorf("it has not been reached for a minute: %+v", got)
	}
	if a := s.Addresses(v1.IPv4Protocol)[0]; !a.Since.Equal(hop.since) {
		t.Errorf("it is lost since %s, want %s", a.Since, hop.since)
	}
	s.DeleteNode("node-b")
	if len(s.unreached) > 0 {
		t.Errorf("remembered of a node that is gone: %v", s.unreached)
	}
	s.unreached[of] = hop
	if failure = nil; s.askHop(of, netip.Addr{}, netip.MustParseAddr("192.0.2.3")).why != "" || len(s.unreached) > 0 {
		t.Errorf("remembered of a node that is reached: %v", s.unreached)
	}
}

// TestSteerer_Homes: the node that has an egress IP knows on which nodes the pods run that leave from it; no other one does.
func TestSteerer_Homes(t *testing.T) {
	s := newSteered(t, holders.Auto, netip.MustParsePrefix("10.128.0.0/14"))
	set := func(slice, pod, node string) {
		t.Helper()
		object := &discovery.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: slice, Labels: map[string]string{discovery.LabelServiceName: "web"}},
			AddressType: discovery.AddressTypeIPv4, Endpoints: []discovery.Endpoint{{Addresses: []string{pod}}},
		}
		if node != "" {
			object.Endpoints[0].NodeName = &node
		}
		if _, err := s.state.SetSlice(object); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want map[string]string) {
		t.Helper()
		s.state.Update(v1.IPv4Protocol)
		steering, _ := s.Sync(v1.IPv4Protocol)
		got := map[string]string{}
		for pod, node := range steering.Homes {
			got[pod.String()] = node.String()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	own := []netip.Addr{egressIP}
	s.Apply(holders.OwnAddresses{Addresses: own})
	set("a", "10.128.0.11", "node-a")
	set("b", "10.128.1.11", "node-b")
	set("c", "10.128.2.11", "")
	set("c2", "10.128.2.11", "node-b") // the first slice names none
	set("d", "10.128.3.11", "node-d")  // whose Node is not known
	expect(map[string]string{"10.128.0.11": "192.0.2.2", "10.128.1.11": "192.0.2.3"})
	set("e", "10.128.1.11", "node-a") // as long as it is on two nodes
	expect(map[string]string{"10.128.0.11": "192.0.2.2"})
	set("b", "10.128.1.12", "node-b")
	expect(map[string]string{"10.128.0.11": "192.0.2.2", "10.128.1.11": "192.0.2.2", "10.128.1.12": "192.0.2.3"})
	moved := clustertest.NewNode("node-d", "192.0.2.5", v1.ConditionTrue)
	s.state.SetNode(moved)
	s.SetNode(moved)
	expect(map[string]string{"10.128.0.11": "192.0.2.2", "10.128.1.11": "192.0.2.2", "10.128.1.12": "192.0.2.3", "10.128.3.11": "192.0.2.5"})
	s.Apply(holders.OwnAddresses{})
	expect(map[string]string{})
	s.Apply(holders.OwnAddresses{Addresses: own})
	expect(map[string]string{"10.128.0.11": "192.0.2.2", "10.128.1.11": "192.0.2.2", "10.128.1.12": "192.0.2.3", "10.128.3.11": "192.0.2.5"})
}

// BenchmarkSteerer_Steering is what a sync asks for that is about something else, on a node of 5,000 that has the egress IP of
// 10,000 pods.
func BenchmarkSteerer_Steering(b *testing.B) {
	s := newSteered(b, holders.Auto, netip.MustParsePrefix("10.128.0.0/14"))
	for i := range 5_000 {
		s.state.SetNode(clustertest.NewNode(fmt.Sprint("node-", i), fmt.Sprintf("100.64.%d.%d", i>>8, i&255), v1.ConditionTrue))
	}
	s.Apply(holders.OwnAddresses{Addresses: []netip.Addr{egressIP}})
	for slice := range 100 {
		object := clustertest.NewSlice(fmt.Sprintf("web-%d", slice), "web")
		object.Namespace = "shop"
		for pod := range 100 {
			object.Endpoints = append(object.Endpoints, discovery.Endpoint{Addresses: []string{fmt.Sprintf("10.128.%d.%d", slice, pod+1)}, NodeName: ptr.To("node-b")})
		}
		if _, err := s.state.SetSlice(object); err != nil {
			b.Fatal(err)
		}
	}
	s.state.Update(v1.IPv4Protocol)
	for b.Loop() {
		if got, _ := s.Sync(v1.IPv4Protocol); len(got.Homes) != 10_000 {
			b.Fatalf("%d homes", len(got.Homes))
		}
	}
}

// TestSteerer_AddressJudgedLater: a node's address stops to count when it is known where pods are, and its egress IPs are lost.
func TestSteerer_AddressJudgedLater(t *testing.T) {
	s := newSteered(t, holders.Auto)
	s.Apply(s.announce("node-b", 1))
	s.expect(map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.ToNode, Node: netip.MustParseAddr("192.0.2.3")}})
	s.state.SetServiceCIDRs([]string{"192.0.2.3/32"})
	s.expect(map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.Blackhole}})
	s.state.SetServiceCIDRs(nil)
	s.expect(map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.ToNode, Node: netip.MustParseAddr("192.0.2.3")}})
	own := clustertest.NewNode("node-b", "192.0.2.2", v1.ConditionTrue) // this node's
	s.state.SetNode(own)
	s.SetNode(own)
	if got, _ := s.Sync(v1.IPv4Protocol); got.Self != netip.MustParseAddr("192.0.2.2") || len(got.Nodes) > 0 {
		t.Errorf("this node is %s, the others are %s; want none that has this node's address", got.Self, got.Nodes)
	}
}
