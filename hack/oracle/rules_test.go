package oracle_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/apply"
	"github.com/openshift/origin-node/hack/oracle"
	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/desk"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// onlyPod is the endpoint of a/web.
var onlyPod = netip.MustParseAddr("10.128.0.1")

// change makes a cluster with the Service a/web another one.
type change = func(c *oracle.Cluster, web *v1.Service)

// ruledCluster has the Service a/web with two external IPs and a pod, and returns it.
func ruledCluster() (oracle.Cluster, *v1.Service) {
	web := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", CreationTimestamp: metav1.Unix(1000, 0)},
		Spec: v1.ServiceSpec{Type: v1.ServiceTypeClusterIP, ClusterIP: "172.30.0.10", IPFamilies: []v1.IPFamily{v1.IPv4Protocol},
			ExternalIPs: []string{"203.0.113.1", "203.0.113.2"}, Ports: []v1.ServicePort{{Port: 80, Protocol: v1.ProtocolTCP}}},
	}
	slice := &discovery.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "a", Name: "web-1", Labels: map[string]string{discovery.LabelServiceName: "web"}},
		AddressType: discovery.AddressTypeIPv4, Endpoints: []discovery.Endpoint{{Addresses: []string{onlyPod.String()}}},
	}
	c := oracle.Cluster{Services: []*v1.Service{web}, EndpointSlices: []*discovery.EndpointSlice{slice}}
	c.ClusterCIDRs = prefixes("10.128.0.0/14")
	return c, web
}

// said is what a plan says of a/web: what its pod leaves as, or why its claim is refused.
func said(p plan.Plan) (result struct{ leaves, refused string }) {
	for _, b := range p.Bindings {
		result.leaves = b.EgressIP.String()
	}
	for _, r := range p.Refusals {
		if r.Service.Namespace == "a" {
			result.refused = string(r.Reason)
		}
	}
	return result
}

// TestRules has the documented rules of claims, one in a row: what the oracle, the plan and 'kubectl egress' say of the Service a/web, whose
// only endpoint is a pod, and what apply says of it where it alone decides.
func TestRules(t *testing.T) {
	annotated := func(name, value string) change {
		return func(_ *oracle.Cluster, svc *v1.Service) { svc.Annotations = map[string]string{name: value} }
	}
	named := func(value string) change {
		return func(_ *oracle.Cluster, svc *v1.Service) {
			svc.Spec.ExternalIPs, svc.Annotations = nil, map[string]string{cluster.EgressIPAnnotation: value}
		}
	}
	external := func(ips ...string) change {
		return func(_ *oracle.Cluster, svc *v1.Service) { svc.Spec.ExternalIPs = ips }
	}
	allow := func(cidrs ...string) change {
		return func(c *oracle.Cluster, _ *v1.Service) { c.AllowedCIDRs = prefixes(cidrs...) }
	}
	pin := func(namespace string, cidrs ...string) change {
		return func(c *oracle.Cluster, _ *v1.Service) {
			if c.NamespaceCIDRs == nil {
				c.NamespaceCIDRs = map[string][]netip.Prefix{}
			}
			c.NamespaceCIDRs[namespace] = prefixes(cidrs...)
		}
	}
	headless := func(c *oracle.Cluster, svc *v1.Service) {
		svc.Spec.ClusterIP = v1.ClusterIPNone
		c.EndpointSlices[0].Labels[v1.IsHeadlessService] = ""
	}
	balanced := func(c *oracle.Cluster, svc *v1.Service) {
		c.LoadBalancerIPs, svc.Spec.Type, svc.Spec.ExternalIPs = true, v1.ServiceTypeLoadBalancer, nil
		svc.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: "203.0.113.7"}}
	}
	older := func(c *oracle.Cluster, svc *v1.Service) {
		other := svc.DeepCopy()
		other.Namespace, other.CreationTimestamp = "b", metav1.Unix(1, 0)
		c.Services = append(c.Services, other)
	}
	two := func(c *oracle.Cluster, svc *v1.Service) {
		named("203.0.113.9,203.0.113.8")(c, svc)
		allow("203.0.113.0/24")(c, svc)
	}
	chosen := func(ip string) change {
		return func(c *oracle.Cluster, _ *v1.Service) {
			c.EndpointSlices[0].Endpoints[0].NodeName = ptr.To("n0")
			c.Chosen = map[string]map[string]map[netip.Addr]netip.Addr{"n0": {"a/web": {onlyPod: netip.MustParseAddr(ip)}}}
		}
	}
	many := func(n int) string {
		var ips []string
		for i := range n {
			ips = append(ips, fmt.Sprintf("203.0.113.%d", 9+i))
		}
		return strings.Join(ips, ",")
	}
	const first = "203.0.113.1"
	for _, rule := range []struct {
		name   string
		change []change
		// leaves is what the pod leaves as, refused the reason if it does not. Neither: nothing is claimed.
		leaves, refused string
		// later: apply lets it pass, for other objects decide.
		later bool
	}{
		{name: "the first external IP", leaves: first},
		{name: "no external IP", change: []change{external()}},
		{name: "the first counts, also if it is refused", change: []change{external("224.0.0.1", first)}, refused: "InvalidAddress"},
		{name: "switched off", change: []change{annotated(cluster.Annotation, "false")}},
		{name: "another one is chosen", change: []change{annotated(cluster.Annotation, "203.0.113.2")}, leaves: "203.0.113.2"},
		{name: "one is chosen that the Service does not have", change: []change{annotated(cluster.Annotation, "203.0.113.9")}, refused: "InvalidAnnotation"},
		{name: "nonsense is chosen", change: []change{annotated(cluster.Annotation, "off")}, refused: "InvalidAnnotation"},
		{name: "named, and nothing allows it", change: []change{named("203.0.113.9")}, refused: "NotAllowed"},
		{name: "named, in the allowed networks", change: []change{named("203.0.113.9"), allow("203.0.113.0/24")}, leaves: "203.0.113.9"},
		{name: "named, in a network of the namespace", change: []change{named("203.0.113.9"), pin("a", "203.0.113.0/24")}, leaves: "203.0.113.9"},
		{name: "named, in a network of all others", change: []change{named("203.0.113.9"), pin("*", "203.0.113.0/24")}, leaves: "203.0.113.9"},
		{name: "named, and an external IP", change: []change{annotated(cluster.EgressIPAnnotation, first)}, leaves: first},
		{name: "named, two of a family, of a pod whose node is not known", change: []change{two}, leaves: "203.0.113.9"},
		{name: "named, two of which one is allowed", change: []change{named("203.0.113.9,203.0.113.8"), allow("203.0.113.8/32")}, leaves: "203.0.113.8", refused: "NotAllowed"},
		{name: "named, two, and the node has chosen", change: []change{two, chosen("203.0.113.8")}, leaves: "203.0.113.8"},
		{name: "named, two, and the node has not chosen", change: []change{two, chosen("203.0.113.7")}, refused: "AddressNotChosen", later: true},
		{name: "named, two where nothing is steered", change: []change{two, func(c *oracle.Cluster, _ *v1.Service) { c.SteeringOff = true }}, refused: "InvalidAnnotation"},
		{name: "named, as many as there may be", change: []change{named(many(16)), allow("203.0.113.0/24")}, leaves: "203.0.113.14"},
		{name: "named, one more than there may be", change: []change{named(many(17)), allow("203.0.113.0/24")}, refused: "InvalidAnnotation"},
		{name: "nonsense is named", change: []change{named("203.0.113")}, refused: "InvalidAnnotation"},
		{name: "headless", change: []change{headless}},
		{name: "headless, and named", change: []change{headless, named("203.0.113.9"), allow("203.0.113.0/24")}, leaves: "203.0.113.9"},
		{name: "load-balancer IPs", change: []change{balanced}, leaves: "203.0.113.7"},
		{name: "outside of the allowed networks", change: []change{allow("198.51.100.0/24")}, refused: "NotAllowed"},
		{name: "in a network of another namespace", change: []change{pin("b", "203.0.113.0/24")}, refused: "NotAllowed"},
		{name: "outside of the namespace's networks", change: []change{pin("a", "198.51.100.0/24")}, refused: "NotAllowed"},
		{name: "in a cluster CIDR", change: []change{external("10.128.0.9")}, refused: "AddressInCluster"},
		{name: "a protocol of no meaning", change: []change{func(_ *oracle.Cluster, svc *v1.Service) { svc.Spec.Ports[0].Protocol = "ICMP" }}, refused: "InvalidProtocol"},
		{name: "an older Service of another namespace has it", change: []change{older}, refused: "OwnedByOtherNamespace", later: true},
		{name: "a node has it", change: []change{func(c *oracle.Cluster, _ *v1.Service) {
			c.Nodes = append(c.Nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}, Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: first}}}})
		}}, refused: "NodeAddress", later: true},
		{name: "another proxy's", change: []change{func(_ *oracle.Cluster, svc *v1.Service) {
			svc.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "other"}
		}}},
	} {
		t.Run(rule.name, func(t *testing.T) {
			c, svc := ruledCluster()
			for _, change := range rule.change {
				change(&c, svc)
			}
			want := rule.leaves
			if got := c.Source(onlyPod, "tcp", destinations[0]); got.IsValid() && got.String() != want || !got.IsValid() && want != "" {
				t.Errorf("the oracle has the pod leave as %v, want %q", got, want)
			}
			whole := planOf(c, v1.IPv4Protocol, placement.Cluster, "")
			seen, err := desk.FromAPI(egress.Config{Config: config(c.Arguments)}, objects(c), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for who, p := range map[string]struct{ leaves, refused string }{"the plan": said(whole), "the desk": said(seen.Families[0].Plan)} {
				if p.leaves != want || p.refused != rule.refused {
					t.Errorf("%s has the pod leave as %q, refused %q; want %q, %q", who, p.leaves, p.refused, want, rule.refused)
				}
			}
			policy, _ := cluster.AdmissionPolicy(config(c.Arguments))
			compiled, err := apply.Compile(policy)
			if err != nil {
				t.Fatal(err)
			}
			refused, err := compiled.Apply(t.Context(), svc, nil)
			reason, _, _ := strings.Cut(refused, ":")
			if wants := rule.refused; err != nil || !rule.later && reason != wants || rule.later && refused != "" {
				t.Errorf("apply says %q, %v; want the reason %q, unless other objects decide: %t", refused, err, wants, rule.later)
			}
		})
	}
}
