package egress

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/metallb"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

var egressIP = netip.MustParseAddr("203.0.113.10")

// TestExtension_WiresTheBalancer: what MetalLB announces from here is this node's, and the pool leaves it alone.
func TestExtension_WiresTheBalancer(t *testing.T) {
	config := nodeConfig
	config.NodeName, config.LoadBalancerIPs, config.Steering.Mode, config.Ways.MetalLBNamespace = "node-a", true, holders.Auto, "metallb-system"
	config.Pool = cluster.Pool{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28")}, Nodes: labels.SelectorFromSet(labels.Set{"pool": "yes"})}
	e := New(t.Context(), config)
	e.steerer = e.newSteerer(t.Context(), nil, v1.IPv4Protocol)
	e.steerer.Apply(holders.LeasesKnown{})
	e.steerer.SetOnInterfaces(holders.OwnAddresses{})
	e.SetService(balanced())
	e.ServicesKnown()
	api, objects := metalLB("ns", "web", "node-a")
	e.balancer.Follow(e.ctx, &e.running, objects, api.Discovery())
	clustertest.Eventually(t, "the egress IP is this node's", func() bool { return e.steerer.Holder(egressIP).State == holders.Local })
	clustertest.Eventually(t, "nothing is waited for", func() bool { return !e.gate.WaitsFor(cluster.Balancers) })
	if reserved := e.poolConfig().Reserved(); !reserved[egressIP] {
		t.Errorf("the pool leaves %v alone", reserved)
	}
}

// TestExtension_TellsWhatIsNotKnownOfMetalLB, as a fault of steering: in the status, and by Events and a metric like all faults.
func TestExtension_TellsWhatIsNotKnownOfMetalLB(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := nodeConfig
		config.NodeName, config.LoadBalancerIPs, config.Steering.Mode, config.Ways.MetalLBNamespace = "node-a", true, holders.Auto, "metallb-system"
		e := New(t.Context(), config)
		e.steerer = e.newSteerer(t.Context(), nil, v1.IPv4Protocol)
		e.Reporter.SetParts(e.parts())
		e.SetService(balanced())
		e.ServicesKnown()
		api, objects := metalLB("ns", "web", "node-a")
		objects.PrependReactor("list", metallb.Statuses.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(metallb.Statuses.GroupResource(), "", nil)
		})
		e.balancer.Follow(e.ctx, &e.running, objects, api.Discovery())
		time.Sleep(20 * time.Second)
		if problems := e.Snapshot().SteeringProblems; len(problems) != 1 || !strings.Contains(problems[0], "rbac-metallb.yaml") {
			t.Errorf("the status says %q", problems)
		}
		e.Reporter.FaultsChanged()
		if events := e.events.Standing(plan.Service{}); len(events) != 1 || events[0].About.Kind != "Node" || !strings.Contains(events[0].Note, "rbac-metallb.yaml") {
			t.Errorf("Events %+v, want one about the Node", events)
		}
		if metric := clustertest.ValuesByReason(t, "egress_snat_steering_fault"); metric["load_balancer"] != 1 {
			t.Errorf("the metric has %v", metric)
		}
	})
}

// balanced is a Service that has the egress IP by its load balancer.
func balanced() *v1.Service {
	return clustertest.NewService("web", func(s *v1.Service) {
		s.Annotations = map[string]string{metallb.PoolAnnotation: "partners"}
		s.Spec.Type, s.Spec.ExternalIPs = v1.ServiceTypeLoadBalancer, nil
		s.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: egressIP.String(), IPMode: ptr.To(v1.LoadBalancerIPModeVIP)}}
	})
}

// metalLB is an API server with MetalLB, which announces a Service from a node, in layer 2 mode.
func metalLB(namespace, service, node string) (*fake.Clientset, *dynamicfake.FakeDynamicClient) {
	api := fake.NewClientset()
	api.Resources = []*metav1.APIResourceList{{GroupVersion: metallb.Statuses.GroupVersion().String(), APIResources: []metav1.APIResource{
		{Name: metallb.Statuses.Resource}, {Name: metallb.L2Advertisements.Resource}, {Name: metallb.BGPAdvertisements.Resource},
	}}}
	object := func(resource schema.GroupVersionResource, kind, name string, labels map[string]string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
		o.SetNamespace("metallb-system")
		o.SetName(name)
		o.SetLabels(labels)
		return o
	}
	return api, dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		metallb.Statuses: "ServiceL2StatusList", metallb.L2Advertisements: "L2AdvertisementList", metallb.BGPAdvertisements: "BGPAdvertisementList",
	}, object(metallb.Statuses, "ServiceL2Status", "first", map[string]string{metallb.NodeLabel: node, metallb.ServiceLabel: service, metallb.NamespaceLabel: namespace}),
		object(metallb.L2Advertisements, "L2Advertisement", "all", nil))
}
