package balancer

import (
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

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/metallb"
	"github.com/openshift/origin-node/pkg/egress/steerer"
	"github.com/openshift/origin-node/pkg/extension"
)

var egressIP = netip.MustParseAddr("203.0.113.10")

// follower is a Balancer of node-a, in whose cluster the Service shop/web has the egress IP by its load balancer. It tells a Steerer.
type follower struct {
	testing.TB
	*Balancer
	state   *cluster.State
	steerer *steerer.Steerer
	gate    *extension.Gate
	running sync.WaitGroup
	kube    *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
}

func newFollower(t *testing.T) *follower {
	t.Helper()
	config := cluster.Config{
		NodeName: "node-a", LoadBalancerIPs: true, ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}, Steering: cluster.Steering{Mode: holders.Auto},
	}
	f := &follower{TB: t, state: cluster.New(config), gate: extension.NewGate(cluster.Services, cluster.Balancers), kube: fake.NewClientset()}
	f.steerer = steerer.New(t.Context(), f.state, steerer.Config{
		Outer: v1.IPv4Protocol, Running: &f.running, Balanced: true,
		RequestSync: func() {}, Wake: func() {}, LeasesKnown: func() {}, Came: func(map[netip.Addr]bool, time.Time) {},
	})
	f.Balancer = New(klog.FromContext(t.Context()), Config{
		NodeName: "node-a", Namespace: "metallb-system", State: f.state, WaitsFor: f.gate.WaitsFor, Announced: f.steerer.SetAnnounced,
		Reserved: func() {}, Known: func() { f.gate.Known(cluster.Balancers) }, Explain: func(err error) error { return err },
	})
	f.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		metallb.Statuses: "ServiceL2StatusList", metallb.L2Advertisements: "L2AdvertisementList", metallb.BGPAdvertisements: "BGPAdvertisementList",
	})
	for name, ip := range map[string]string{"node-a": "192.0.2.2", "node-b": "192.0.2.3"} {
		n := clustertest.NewNode(name, ip, v1.ConditionTrue)
		f.state.SetNode(n)
		f.steerer.SetNode(n)
	}
	f.steerer.Apply(holders.LeasesKnown{})
	f.steerer.SetOnInterfaces(holders.OwnAddresses{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}})
	f.setService(balancedService("203.0.113.10"))
	f.gate.Known(cluster.Services)
	f.ServicesKnown()
	return f
}

func (f *follower) setService(service *v1.Service) {
	f.SetService(service)
	f.state.SetService(service)
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
func (f *follower) install() {
	f.kube.Lock() // which who asks does, too
	defer f.kube.Unlock()
	f.kube.Resources = []*metav1.APIResourceList{{GroupVersion: metallb.Statuses.GroupVersion().String(), APIResources: []metav1.APIResource{
		{Name: metallb.Statuses.Resource}, {Name: metallb.L2Advertisements.Resource}, {Name: metallb.BGPAdvertisements.Resource},
	}}}
}

// announce has a node announce shop/web, by a status of that name in MetalLB's namespace.
func (f *follower) announce(name, node string) {
	f.Helper()
	f.create(metallb.Statuses, "metallb-system", name, map[string]string{metallb.NodeLabel: node, metallb.ServiceLabel: "web", metallb.NamespaceLabel: "shop"})
}

// advertise has MetalLB announce all that it gives, in layer 2 mode.
func (f *follower) advertise() {
	f.Helper()
	f.create(metallb.L2Advertisements, "metallb-system", "all", nil)
}

func (f *follower) create(resource schema.GroupVersionResource, namespace, name string, labels map[string]string) {
	f.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(resource.GroupVersion().WithKind(map[schema.GroupVersionResource]string{metallb.Statuses: "ServiceL2Status", metallb.L2Advertisements: "L2Advertisement"}[resource]))
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetLabels(labels)
	if _, err := f.dynamic.Resource(resource).Namespace(namespace).Create(f.Context(), object, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// held are the addresses whose pods' rules it has.
func (f *follower) held() map[netip.Addr]bool {
	_, place := f.state.Input(v1.IPv4Protocol)
	return place.Held
}

func (f *follower) follow() { f.Follow(f.Context(), &f.running, f.dynamic, f.kube.Discovery()) }

func (f *follower) becomes(state holders.State, known holders.Source) {
	f.Helper()
	clustertest.Eventually(f.TB.(*testing.T), fmt.Sprintf("the egress IP is %q, known by %q", state, known), func() bool {
		h := f.steerer.Holder(egressIP)
		return h.State == state && h.Known == known
	})
}

// TestBalancer_FollowsTheStatuses: an address is this node's as long as a status says that it announces the Service.
func TestBalancer_FollowsTheStatuses(t *testing.T) {
	f := newFollower(t)
	f.install()
	f.announce("first", "node-a")
	f.announce("other", "node-b")
	f.advertise()
	if f.steerer.Here() != nil {
		t.Error("other nodes may be told of addresses before all are known")
	}
	f.follow()
	f.becomes(holders.Local, holders.LoadBalancer)
	clustertest.Eventually(t, "nothing is waited for", func() bool { return !f.gate.WaitsFor(cluster.Balancers) })
	if !f.held()[egressIP] {
		t.Errorf("it has not the rules for the pods of %s", egressIP)
	}
	f.readsItsOwn(t)
	statuses := f.dynamic.Resource(metallb.Statuses).Namespace("metallb-system")
	if err := statuses.Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.becomes(holders.Lost, holders.LoadBalancer)
	if !f.held()[egressIP] {
		t.Errorf("it is not prepared to announce %s again", egressIP)
	}
	f.announce("second", "node-a")
	f.becomes(holders.Local, holders.LoadBalancer)
	f.setService(balancedService("203.0.113.11"))
	f.becomes(holders.Lost, holders.LoadBalancer)
}

// readsItsOwn fails if it has asked for the statuses of other nodes, or for anything outside of MetalLB's namespace.
func (f *follower) readsItsOwn(t *testing.T) {
	t.Helper()
	asked := 0
	for _, action := range f.dynamic.Actions() {
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
	f := newFollower(t)
	f.install()
	f.create(metallb.Statuses, "shop", "forged", map[string]string{metallb.NodeLabel: "node-a", metallb.ServiceLabel: "web", metallb.NamespaceLabel: "shop"})
	f.create(metallb.L2Advertisements, "shop", "forged", nil)
	f.follow()
	clustertest.Eventually(t, "nothing is waited for", func() bool { return !f.gate.WaitsFor(cluster.Balancers) })
	if r := f.read(); len(r.Here)+len(r.Reserved) > 0 {
		t.Errorf("%+v", r)
	}
}

// TestBalancer_WithoutMetalLB nothing is waited for, and nothing prepared: another load balancer announces nothing from nodes.
func TestBalancer_WithoutMetalLB(t *testing.T) {
	f := newFollower(t)
	f.follow()
	clustertest.Eventually(t, "nothing is waited for", func() bool { return !f.gate.WaitsFor(cluster.Balancers) })
	if f.held()[egressIP] {
		t.Errorf("it is prepared to announce %s", egressIP)
	}
	if f.steerer.Here() == nil {
		t.Error("the addresses on its interfaces are not known")
	}
}

// TestBalancer_InstalledLater: what MetalLB announces is followed when it comes, without a restart.
func TestBalancer_InstalledLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.follow()
		time.Sleep(time.Hour)
		if f.gate.WaitsFor(cluster.Balancers) {
			t.Error("it waits for MetalLB")
		}
		synctest.Wait() // it asks at this moment
		f.install()
		f.announce("first", "node-a")
		f.advertise()
		time.Sleep(2 * time.Minute)
		if here := f.read().Here; !slices.Equal(here, []netip.Addr{egressIP}) || !f.held()[egressIP] {
			t.Errorf("MetalLB has come: it announces %v, and has the rules for %v", here, f.held())
		}
		f.becomes(holders.Local, holders.LoadBalancer)
	})
}

// TestBalancer_WithoutTheRight all else goes on a moment later. It is a fault only if a load balancer's address is an egress IP, and until
// there is the right.
func TestBalancer_WithoutTheRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.install()
		f.announce("first", "node-a")
		var allowed atomic.Bool
		f.dynamic.PrependReactor("list", metallb.Statuses.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return !allowed.Load(), nil, apierrors.NewForbidden(metallb.Statuses.GroupResource(), "", nil)
		})
		f.follow()
		time.Sleep(9 * time.Second)
		if !f.gate.WaitsFor(cluster.Balancers) {
			t.Error("an API server that has just started may not know the rights yet")
		}
		time.Sleep(9 * time.Second)
		if f.gate.WaitsFor(cluster.Balancers) {
			t.Error("it waits for a right that nobody may give")
		}
		if err := f.Fault(); err == nil || !strings.Contains(err.Error(), "rbac-metallb.yaml") {
			t.Errorf("fault: %v", err)
		}
		f.DeleteService(balancedService())
		f.state.DeleteService(balancedService())
		if err := f.Fault(); err != nil {
			t.Errorf("it is of matter although no Service has a load balancer's address: %v", err)
		}
		f.setService(balancedService("203.0.113.10"))
		allowed.Store(true)
		time.Sleep(2 * time.Minute)
		if err := f.Fault(); err != nil || len(f.read().Here) == 0 {
			t.Errorf("with the right: %v, and it announces %v", err, f.read().Here)
		}
	})
}

// TestBalancer_Reserves what MetalLB has to announce: the pool leaves it alone.
func TestBalancer_Reserves(t *testing.T) {
	f := newFollower(t)
	f.SetService(balancedService(egressIP.String()))
	if f.Reserved()[egressIP] {
		t.Errorf("%s is reserved though nothing advertises it", egressIP)
	}
	f.replace(metallb.L2Advertisements, func() []any { return []any{&unstructured.Unstructured{Object: map[string]any{}}} })
	if !f.Reserved()[egressIP] {
		t.Errorf("%s is not reserved", egressIP)
	}
}

// TestAdd_LikeTheNode: a dry run has what the node has.
func TestAdd_LikeTheNode(t *testing.T) {
	f := newFollower(t)
	objects := func() cluster.Objects {
		o := cluster.Objects{Services: []*v1.Service{balancedService("203.0.113.10")}, Held: map[netip.Addr]bool{netip.MustParseAddr("192.0.2.2"): true}}
		if err := Add(t.Context(), &o, f.dynamic, f.kube.Discovery(), "node-a", "metallb-system"); err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := objects(); len(o.Held) != 1 || len(o.Balanced) > 0 {
		t.Errorf("without MetalLB: %+v", o)
	}
	f.install()
	f.advertise()
	if o := objects(); len(o.Held) != 1 || !o.Balanced[egressIP] {
		t.Errorf("announced by nobody: %+v", o)
	}
	f.announce("first", "node-a")
	if o := objects(); !o.Held[egressIP] || !slices.Equal(o.Announced, []netip.Addr{egressIP}) || !slices.Equal(slices.Collect(maps.Keys(o.Balanced)), []netip.Addr{egressIP}) {
		t.Errorf("announced from here: %+v", o)
	}
}
