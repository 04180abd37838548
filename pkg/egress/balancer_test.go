package egress

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/cluster/clustertest"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/metallb"
	"github.com/openshift/origin-node/pkg/wake"
)

var egressIP = netip.MustParseAddr("203.0.113.10")

// balancerTest is an Extension of node-a in a cluster where the Service shop/web has the egress IP by its load balancer.
type balancerTest struct {
	testing.TB
	*Extension
	kube    *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
}

func newBalancerTest(t *testing.T) *balancerTest {
	t.Helper()
	config := nodeConfig
	config.NodeName, config.LoadBalancerIPs, config.Steering.Mode, config.Ways.MetalLBNamespace = "node-a", true, holders.Auto, "metallb-system"
	b := &balancerTest{TB: t, Extension: New(t.Context(), config), kube: fake.NewClientset()}
	b.steerer = b.newSteerer(t.Context(), nil, v1.IPv4Protocol)
	b.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		metallb.Statuses: "ServiceL2StatusList", metallb.L2Advertisements: "L2AdvertisementList", metallb.BGPAdvertisements: "BGPAdvertisementList",
	})
	for name, ip := range map[string]string{"node-a": "192.0.2.2", "node-b": "192.0.2.3"} {
		n := clustertest.NewNode(name, ip, v1.ConditionTrue)
		b.state.SetNode(n)
		b.steerer.SetNode(n)
	}
	b.steerer.Apply(holders.LeasesKnown{})
	b.steerer.SetOnInterfaces(holders.OwnAddresses{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}})
	b.SetService(balancedService("203.0.113.10"))
	b.ServicesKnown()
	return b
}

func balancedService(ips ...string) *v1.Service {
	object := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{metallb.PoolAnnotation: "partners"}},
		Spec:       v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, ClusterIP: "172.30.0.1", Ports: []v1.ServicePort{{Protocol: v1.ProtocolTCP, Port: 80}}},
	}
	for _, ip := range ips {
		object.Status.LoadBalancer.Ingress = append(object.Status.LoadBalancer.Ingress, v1.LoadBalancerIngress{IP: ip, IPMode: ptr.To(v1.LoadBalancerIPModeVIP)})
	}
	return object
}

// install gives the API server MetalLB's kinds.
func (b *balancerTest) install() {
	b.kube.Lock() // which who asks does, too
	defer b.kube.Unlock()
	b.kube.Resources = []*metav1.APIResourceList{{GroupVersion: metallb.Statuses.GroupVersion().String(), APIResources: []metav1.APIResource{
		{Name: metallb.Statuses.Resource}, {Name: metallb.L2Advertisements.Resource}, {Name: metallb.BGPAdvertisements.Resource},
	}}}
}

// announce has a node announce shop/web, by a status of that name in MetalLB's namespace.
func (b *balancerTest) announce(name, node string) {
	b.Helper()
	b.create(metallb.Statuses, "metallb-system", name, map[string]string{metallb.NodeLabel: node, metallb.ServiceLabel: "web", metallb.NamespaceLabel: "shop"})
}

// advertise has MetalLB announce all that it gives, in layer 2 mode.
func (b *balancerTest) advertise() {
	b.Helper()
	b.create(metallb.L2Advertisements, "metallb-system", "all", nil)
}

func (b *balancerTest) create(resource schema.GroupVersionResource, namespace, name string, labels map[string]string) {
	b.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(resource.GroupVersion().WithKind(map[schema.GroupVersionResource]string{metallb.Statuses: "ServiceL2Status", metallb.L2Advertisements: "L2Advertisement"}[resource]))
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetLabels(labels)
	if _, err := b.dynamic.Resource(resource).Namespace(namespace).Create(b.Context(), object, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// held are the addresses whose pods' rules it has.
func (b *balancerTest) held() map[netip.Addr]bool {
	_, place := b.state.Input(v1.IPv4Protocol)
	return place.Held
}

func (b *balancerTest) follow() { b.balancer.follow(b.dynamic, b.kube.Discovery()) }

func (b *balancerTest) becomes(state holders.State, known holders.Source) {
	b.Helper()
	clustertest.Eventually(b.TB.(*testing.T), fmt.Sprintf("the egress IP is %q, known by %q", state, known), func() bool {
		h := b.steerer.Holder(egressIP)
		return h.State == state && h.Known == known
	})
}

// TestBalancer_FollowsTheStatuses: an address is this node's as long as a status says that it announces the Service.
func TestBalancer_FollowsTheStatuses(t *testing.T) {
	b := newBalancerTest(t)
	b.install()
	b.announce("first", "node-a")
	b.announce("other", "node-b")
	b.advertise()
	if b.steerer.Here() != nil {
		t.Error("other nodes may be told of addresses before all are known")
	}
	b.follow()
	b.becomes(holders.Local, holders.LoadBalancer)
	clustertest.Eventually(t, "nothing is waited for", func() bool { return !b.barrier.WaitsFor(cluster.Balancers) })
	if !b.held()[egressIP] {
		t.Errorf("it has not the rules for the pods of %s", egressIP)
	}
	b.readsItsOwn(t)
	statuses := b.dynamic.Resource(metallb.Statuses).Namespace("metallb-system")
	if err := statuses.Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.becomes(holders.Lost, holders.LoadBalancer)
	if !b.held()[egressIP] {
		t.Errorf("it is not prepared to announce %s again", egressIP)
	}
	b.announce("second", "node-a")
	b.becomes(holders.Local, holders.LoadBalancer)
	b.SetService(balancedService("203.0.113.11"))
	b.becomes(holders.Lost, holders.LoadBalancer)
}

// readsItsOwn fails if it has asked for the statuses of other nodes, or for anything outside of MetalLB's namespace.
func (b *balancerTest) readsItsOwn(t *testing.T) {
	t.Helper()
	asked := 0
	for _, action := range b.dynamic.Actions() {
		list, is := action.(clienttesting.ListAction)
		if !is {
			continue
		}
		if action.GetNamespace() != "metallb-system" {
			t.Errorf("it asks for %s in the namespace %q", action.GetResource().Resource, action.GetNamespace())
		}
		if selector := list.GetListRestrictions().Labels.String(); action.GetResource() == metallb.Statuses {
			if asked++; selector != "metallb.io/node=node-a" {
				t.Errorf("it asks for the statuses with %q", selector)
			}
		}
	}
	if asked == 0 {
		t.Error("it has asked for no status")
	}
}

// TestBalancer_OtherNamespaces: what somebody writes who may not write in MetalLB's own counts for nothing.
func TestBalancer_OtherNamespaces(t *testing.T) {
	b := newBalancerTest(t)
	b.install()
	b.create(metallb.Statuses, "shop", "forged", map[string]string{metallb.NodeLabel: "node-a", metallb.ServiceLabel: "web", metallb.NamespaceLabel: "shop"})
	b.create(metallb.L2Advertisements, "shop", "forged", nil)
	b.follow()
	clustertest.Eventually(t, "nothing is waited for", func() bool { return !b.barrier.WaitsFor(cluster.Balancers) })
	if r := b.balancer.read(); len(r.Here)+len(r.Reserved) > 0 {
		t.Errorf("%+v", r)
	}
}

// TestBalancer_WithoutMetalLB nothing is waited for, and nothing prepared: another load balancer announces nothing from nodes.
func TestBalancer_WithoutMetalLB(t *testing.T) {
	b := newBalancerTest(t)
	b.follow()
	clustertest.Eventually(t, "nothing is waited for", func() bool { return !b.barrier.WaitsFor(cluster.Balancers) })
	if b.held()[egressIP] {
		t.Errorf("it is prepared to announce %s", egressIP)
	}
	if b.steerer.Here() == nil {
		t.Error("the addresses on its interfaces are not known")
	}
}

// TestBalancer_InstalledLater: what MetalLB announces is followed when it comes, without a restart.
func TestBalancer_InstalledLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancerTest(t)
		b.follow()
		time.Sleep(time.Hour)
		if b.barrier.WaitsFor(cluster.Balancers) {
			t.Error("it waits for MetalLB")
		}
		synctest.Wait() // it asks at this moment
		b.install()
		b.announce("first", "node-a")
		b.advertise()
		time.Sleep(2 * time.Minute)
		if here := b.balancer.read().Here; !slices.Equal(here, []netip.Addr{egressIP}) || !b.held()[egressIP] {
			t.Errorf("MetalLB has come: it announces %v, and has the rules for %v", here, b.held())
		}
		b.becomes(holders.Local, holders.LoadBalancer)
	})
}

// TestBalancer_WithoutTheRight all else goes on a moment later. It is a fault only if a load balancer's address is an egress IP, and until
// there is the right.
func TestBalancer_WithoutTheRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancerTest(t)
		b.install()
		b.announce("first", "node-a")
		var allowed atomic.Bool
		b.dynamic.PrependReactor("list", metallb.Statuses.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return !allowed.Load(), nil, apierrors.NewForbidden(metallb.Statuses.GroupResource(), "", nil)
		})
		b.follow()
		time.Sleep(9 * time.Second)
		if !b.barrier.WaitsFor(cluster.Balancers) {
			t.Error("an API server that has just started may not know the rights yet")
		}
		time.Sleep(4 * time.Second)
		if b.barrier.WaitsFor(cluster.Balancers) {
			t.Error("it waits for a right that nobody may give")
		}
		faults := b.steeringFaults()
		if len(faults) != 1 || faults[0].kind != unfollowed || !strings.Contains(faults[0].message, "rbac-metallb.yaml") {
			t.Errorf("faults: %+v", faults)
		}
		b.DeleteService(balancedService())
		if synctest.Wait(); len(b.steeringFaults()) > 0 {
			t.Errorf("it is of matter although no Service has a load balancer's address: %+v", b.steeringFaults())
		}
		b.SetService(balancedService("203.0.113.10"))
		allowed.Store(true)
		time.Sleep(2 * time.Minute)
		if faults := b.steeringFaults(); len(faults) > 0 || len(b.balancer.read().Here) == 0 {
			t.Errorf("with the right: %+v, and it announces %v", faults, b.balancer.read().Here)
		}
	})
}

// TestBalancer_Reserves what MetalLB has to announce: the pool leaves it alone.
func TestBalancer_Reserves(t *testing.T) {
	b := &balancer{state: cluster.New(nodeConfig.Config), wake: wake.New(), book: metallb.NewBook()}
	b.setService(balancedService(egressIP.String()))
	if b.reserved()[egressIP] {
		t.Errorf("%s is reserved though nothing advertises it", egressIP)
	}
	b.replace(metallb.L2Advertisements, []any{&unstructured.Unstructured{Object: map[string]any{}}})
	if !b.reserved()[egressIP] {
		t.Errorf("%s is not reserved", egressIP)
	}
}

// TestObjects_AddBalanced: a dry run has what the node has.
func TestObjects_AddBalanced(t *testing.T) {
	b := newBalancerTest(t)
	objects := func() cluster.Objects {
		o := cluster.Objects{Services: []*v1.Service{balancedService("203.0.113.10")}, Held: map[netip.Addr]bool{netip.MustParseAddr("192.0.2.2"): true}}
		if err := AddBalanced(t.Context(), &o, b.dynamic, b.kube.Discovery(), b.config); err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := objects(); len(o.Held) != 1 || len(o.Balanced) > 0 {
		t.Errorf("without MetalLB: %+v", o)
	}
	b.install()
	b.advertise()
	if o := objects(); len(o.Held) != 1 || !o.Balanced[egressIP] {
		t.Errorf("announced by nobody: %+v", o)
	}
	b.announce("first", "node-a")
	if o := objects(); !o.Held[egressIP] || !slices.Equal(o.Announced, []netip.Addr{egressIP}) || !slices.Equal(slices.Collect(maps.Keys(o.Balanced)), []netip.Addr{egressIP}) {
		t.Errorf("announced from here: %+v", o)
	}
}
