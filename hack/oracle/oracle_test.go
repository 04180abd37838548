package oracle

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// newService is a Service for TCP, with endpoints at these addresses on these nodes; "" for nowhere.
func newService(c *Cluster, namespace, externalIP string, created int64, nodes map[string]string) {
	svc := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	svc.CreationTimestamp.Time = time.Unix(created, 0)
	svc.Spec = v1.ServiceSpec{ClusterIP: "172.30.0.1", ExternalIPs: []string{externalIP}, Ports: []v1.ServicePort{{Port: 80, Protocol: v1.ProtocolTCP}}}
	slice := &discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{discovery.LabelServiceName: "web"}}}
	for ip, node := range nodes {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{Addresses: []string{ip}})
		if node != "" {
			slice.Endpoints[len(slice.Endpoints)-1].NodeName = ptr.To(node)
		}
	}
	c.Services, c.EndpointSlices = append(c.Services, svc), append(c.EndpointSlices, slice)
}

func podsOf(bindings []Binding) (pods []string) {
	for _, b := range bindings {
		pods = append(pods, b.Pod.String())
	}
	return pods
}

func TestBindingsOn_ScopeOfANode(t *testing.T) {
	c := Cluster{Nodes: []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: v1.NodeSpec{PodCIDRs: []string{"10.128.1.0/24"}}}}}
	newService(&c, "shop", "203.0.113.1", 1, map[string]string{
		"10.128.0.1": "node-1", "10.128.0.2": "node-2", "10.128.0.3": "", "10.128.1.4": "node-2",
	})
	c.ClusterCIDRs = []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}
	all := []string{"10.128.0.1", "10.128.0.2", "10.128.0.3", "10.128.1.4"}
	if diff := cmp.Diff(all, podsOf(c.BindingsOn("node-1"))); diff != "" {
		t.Errorf("scope cluster (-want +got):\n%s", diff)
	}
	c.NodeScope = true
	if diff := cmp.Diff([]string{"10.128.0.1", "10.128.0.3", "10.128.1.4"}, podsOf(c.BindingsOn("node-1"))); diff != "" {
		t.Errorf("scope node, node-1 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"10.128.0.2", "10.128.0.3", "10.128.1.4"}, podsOf(c.BindingsOn("node-2"))); diff != "" {
		t.Errorf("scope node, node-2, which has no Node object (-want +got):\n%s", diff)
	}
}

func TestBindingsOn_HolderOfTheEgressIP(t *testing.T) {
	var c Cluster
	newService(&c, "shop", "203.0.113.1", 1, map[string]string{"10.128.0.1": "node-1", "10.128.0.2": "node-2"})
	newService(&c, "press", "203.0.113.2", 2, map[string]string{"10.128.0.3": "node-2"})
	c.ClusterCIDRs = []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}
	c.NodeScope = true
	c.Held = map[string][]netip.Addr{"node-1": {netip.MustParseAddr("203.0.113.1")}, "node-3": {netip.MustParseAddr("203.0.113.2")}}
	check := func(want map[string][]string) {
		t.Helper()
		for node, pods := range want {
			if diff := cmp.Diff(pods, podsOf(c.BindingsOn(node))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", node, diff)
			}
		}
	}
	check(map[string][]string{"node-1": {"10.128.0.1", "10.128.0.2"}, "node-2": {"10.128.0.2", "10.128.0.3"}, "node-3": {"10.128.0.3"}})
	c.SteeringOff = true
	check(map[string][]string{"node-1": {"10.128.0.1"}, "node-2": {"10.128.0.2", "10.128.0.3"}, "node-3": nil})
}

func TestNamespaceCIDRs_WhoMayHaveAnAddress(t *testing.T) {
	const pins = "bank=203.0.113.0/28,vault=203.0.113.0/28,bank=198.51.100.0/24"
	for _, test := range []struct {
		arguments, namespace, ip string
		want                     bool
	}{
		{pins, "bank", "203.0.113.1", true},
		{pins, "bank", "198.51.100.1", true}, // its networks add up
		{pins, "vault", "203.0.113.1", true}, // it shares one
		{pins, "vault", "198.51.100.1", false},
		{pins, "bank", "203.0.113.200", false}, // in none of its own
		{pins, "shop", "203.0.113.1", false},   // pinned to others
		{pins, "shop", "203.0.113.200", true},
		{pins + ",*=203.0.113.0/24", "shop", "203.0.113.200", true},
		{pins + ",*=203.0.113.0/24", "shop", "203.0.113.1", false}, // pinned to others all the same
		{pins + ",*=203.0.113.0/24", "shop", "192.0.2.1", false},
		{pins + ",*=203.0.113.0/24", "bank", "203.0.113.200", false}, // "*" is for namespaces without networks of their own
		{"*=203.0.113.0/24", "shop", "203.0.113.1", true},
		{"*=203.0.113.0/24", "shop", "192.0.2.1", false},
	} {
		a, err := ParseArguments(map[string][]string{"egress-snat-namespace-cidrs": {test.arguments}})
		if err != nil {
			t.Fatal(err)
		}
		if got := (Cluster{Arguments: a}).namespaceAllows(test.namespace, netip.MustParseAddr(test.ip)); got != test.want {
			t.Errorf("%s: %s may have %s: %v, want %v", test.arguments, test.namespace, test.ip, got, test.want)
		}
	}
}

// An older Service owns no address that is pinned to others, so it does not keep them from having it.
func TestOwnership_PinnedNetworkKeepsOthersOut(t *testing.T) {
	a, err := ParseArguments(map[string][]string{"cluster-cidr": {"10.128.0.0/14"}, "egress-snat-namespace-cidrs": {"bank=203.0.113.0/28"}})
	if err != nil {
		t.Fatal(err)
	}
	c := Cluster{Arguments: a}
	newService(&c, "thief", "203.0.113.1", 1, map[string]string{"10.128.0.1": ""})
	newService(&c, "bank", "203.0.113.1", 2, map[string]string{"10.128.0.2": ""})
	if diff := cmp.Diff([]string{"10.128.0.2"}, podsOf(c.Bindings())); diff != "" {
		t.Errorf("bound pods (-want +got):\n%s", diff)
	}
}

func TestParseArguments_Invalid(t *testing.T) {
	for key, value := range map[string]string{"cluster-cidr": "10.128.0.0", "egress-snat-allowed-cidrs": "x", "egress-snat-namespace-cidrs": "bank"} {
		if a, err := ParseArguments(map[string][]string{key: {value}}); err == nil {
			t.Errorf("%s: %q is taken for %+v", key, value, a)
		}
	}
}
