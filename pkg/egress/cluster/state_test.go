package cluster

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

var compareNetip = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

var testConfig = Config{ClusterCIDRs: []netip.Prefix{
	netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("fd00:10::/32"),
}}

func openshiftNetwork(change func(*configv1.Network)) *configv1.Network {
	n := &configv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	change(n)
	return n
}

// TestPlanFor_NetworkPolicies has OpenShift's rules: rejected wins, then allowed; an empty policy
// forbids all, no policy allows.
func TestPlanFor_NetworkPolicies(t *testing.T) {
	external := func(policy *configv1.ExternalIPPolicy) *configv1.Network {
		return openshiftNetwork(func(n *configv1.Network) { n.Spec.ExternalIP = &configv1.ExternalIPConfig{Policy: policy} })
	}
	for name, test := range map[string]struct {
		network *configv1.Network
		allowed bool
	}{
		"no Network":        {nil, true},
		"no configuration":  {openshiftNetwork(func(*configv1.Network) {}), true},
		"no policy":         {external(nil), true},
		"empty":             {external(&configv1.ExternalIPPolicy{}), false},
		"allowed":           {external(&configv1.ExternalIPPolicy{AllowedCIDRs: []string{"203.0.113.0/24"}}), true},
		"not among allowed": {external(&configv1.ExternalIPPolicy{AllowedCIDRs: []string{"198.51.100.0/24"}}), false},
		"rejected wins":     {external(&configv1.ExternalIPPolicy{AllowedCIDRs: []string{"203.0.113.0/24"}, RejectedCIDRs: []string{"203.0.113.1/32"}}), false},
		"another rejected":  {external(&configv1.ExternalIPPolicy{AllowedCIDRs: []string{"203.0.113.0/24"}, RejectedCIDRs: []string{"203.0.113.2/32"}}), true},
		"rejected alone":    {external(&configv1.ExternalIPPolicy{RejectedCIDRs: []string{"198.51.100.0/24"}}), false},
		"unreadable":        {external(&configv1.ExternalIPPolicy{AllowedCIDRs: []string{"203.0.113.0/24"}, RejectedCIDRs: []string{"203.0.113.1"}}), false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{
				Services: []*v1.Service{clustertest.NewService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{clustertest.NewSlice("web-1", "web", "10.128.0.5")}, Network: test.network,
			})
			if (err != nil) != (name == "unreadable") {
				t.Error(err)
			}
			if allowed := len(p.Bindings) == 1; allowed != test.allowed || allowed == (len(p.Refusals) == 1) {
				t.Errorf("bindings %v, refusals %v; want allowed %v", p.Bindings, p.Refusals, test.allowed)
			}
		})
	}
}

func TestPlanFor_ClusterCIDRsOfTheNetwork(t *testing.T) {
	objects := Objects{
		Services: []*v1.Service{clustertest.NewService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{clustertest.NewSlice("web-1", "web", "10.128.0.5", "10.200.0.5")},
		Network: openshiftNetwork(func(n *configv1.Network) {
			n.Spec.ClusterNetwork = []configv1.ClusterNetworkEntry{{CIDR: "10.0.0.0/8"}}
			n.Status.ClusterNetwork = []configv1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14"}, {CIDR: "fd01::/48"}}
			n.Status.ServiceNetwork = []string{"203.0.113.0/31"}
		}),
	}
	p, err := PlanFor(v1.IPv4Protocol, Config{}, objects)
	if err != nil || len(p.Refusals) != 1 || p.Refusals[0].Reason != plan.AddressInCluster {
		t.Errorf("refusals %v, %v; want one, for the service network", p.Refusals, err)
	}
	objects.Network.Status.ServiceNetwork = nil
	if p, _ = PlanFor(v1.IPv4Protocol, Config{}, objects); len(p.Bindings) != 1 || len(p.Refusals) != 1 {
		t.Errorf("bindings %v, refusals %v; want one of each, by the networks in force", p.Bindings, p.Refusals)
	}
	if p, _ = PlanFor(v1.IPv4Protocol, Config{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")}}, objects); len(p.Bindings) != 1 || p.Bindings[0].Pod.String() != "10.200.0.5" {
		t.Errorf("bindings %v; want the configured networks before the Network's", p.Bindings)
	}
}

// TestPlanFor_SliceNamesNoPod: an address that another namespace's EndpointSlice names as its pod's is
// that pod's, whoever is older.
func TestPlanFor_SliceNamesNoPod(t *testing.T) {
	forged, theirs := clustertest.NewSlice("web-1", "web", "10.128.0.5"), clustertest.NewSlice("atm-1", "atm", "10.128.0.5")
	theirs.Namespace = "bank"
	theirs.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: "bank", Name: "atm"}
	for name, ref := range map[string]*v1.ObjectReference{
		"none": nil, "no namespace": {Kind: "Pod", Name: "atm"}, "no pod": {Kind: "VirtualMachine", Namespace: "ns", Name: "atm"},
	} {
		forged.Endpoints[0].TargetRef = ref
		p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{clustertest.NewService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{forged, theirs}})
		if err != nil || len(p.Bindings) != 0 || len(p.Refusals) != 1 || p.Refusals[0].Reason != plan.PodOfOtherNamespace {
			t.Errorf("%s: bindings %v, refusals %v, %v", name, p.Bindings, p.Refusals, err)
		}
	}
}

// TestPlanFor_TwoNamespacesNameAPod: what others say of an address takes no pod away from a namespace whose own
// EndpointSlice names it, whichever name comes first.
func TestPlanFor_TwoNamespacesNameAPod(t *testing.T) {
	for _, other := range []string{"aaa", "zzz"} {
		unnamed, named, theirs := clustertest.NewSlice("web-1", "web", "10.128.0.5"), clustertest.NewSlice("db-1", "db", "10.128.0.5"), clustertest.NewSlice("atm-1", "atm", "10.128.0.5")
		theirs.Namespace = other
		for _, slice := range []*discovery.EndpointSlice{named, theirs} {
			slice.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: slice.Namespace, Name: "pod"}
		}
		p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{clustertest.NewService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{unnamed, named, theirs}})
		if err != nil || len(p.Bindings) != 1 || len(p.Refusals) != 0 {
			t.Errorf("beside the namespace %s: bindings %v, refusals %v, %v; want one binding", other, p.Bindings, p.Refusals, err)
		}
	}
}

// TestPlanFor_AllAddressesAreHeld: what a Service lists belongs to its namespace, used or not.
func TestPlanFor_AllAddressesAreHeld(t *testing.T) {
	for name, change := range map[string]func(*v1.Service){
		"second in the list": func(s *v1.Service) { s.Spec.ExternalIPs = []string{"203.0.113.2", "203.0.113.1"} },
		"switched off":       func(s *v1.Service) { s.Annotations = map[string]string{Annotation: "false"} },
		"another one named": func(s *v1.Service) {
			s.Spec.ExternalIPs = []string{"203.0.113.1", "203.0.113.2"}
			s.Annotations = map[string]string{Annotation: "203.0.113.2"}
		},
		"a name that is misspelt": func(s *v1.Service) {
			s.Spec.ExternalIPs = []string{"203.0.113.2", "203.0.113.1"}
			s.Annotations = map[string]string{Annotation: "203.0.113.11"}
		},
		"a load balancer's": func(s *v1.Service) {
			s.Spec.ExternalIPs, s.Spec.Type = nil, v1.ServiceTypeLoadBalancer
			s.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: "203.0.113.1"}}
		},
	} {
		owner, thief := clustertest.NewService("web", change), clustertest.NewService("web", nil)
		owner.Namespace, owner.CreationTimestamp = "bank", metav1.Unix(1, 0)
		p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{owner, thief}, EndpointSlices: []*discovery.EndpointSlice{clustertest.NewSlice("web-1", "web", "10.128.0.5")}})
		refused := slices.ContainsFunc(p.Refusals, func(r plan.Refusal) bool {
			return r.Service.Namespace == "ns" && r.Reason == plan.OwnedByOtherNamespace
		})
		if err != nil || len(p.Bindings) != 0 || !refused {
			t.Errorf("%s: bindings %v, refusals %v, %v; want the thief refused", name, p.Bindings, p.Refusals, err)
		}
	}
}

func TestPlanFor_APIServersAddress(t *testing.T) {
	kubernetes := clustertest.NewSlice("kubernetes", "kubernetes", "203.0.113.1")
	kubernetes.Namespace = "default"
	p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{clustertest.NewService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{kubernetes}})
	if err != nil || len(p.Refusals) != 1 || p.Refusals[0].Reason != plan.APIServerAddress {
		t.Errorf("refusals %v, %v", p.Refusals, err)
	}
}

func TestPlanFor_TargetRef(t *testing.T) {
	slice := clustertest.NewSlice("web-1", "web", "10.128.0.5", "10.128.0.6", "10.128.0.7")
	slice.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "mine"}
	slice.Endpoints[1].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: "other", Name: "theirs"}
	slice.Endpoints[2].TargetRef = &v1.ObjectReference{Kind: "VirtualMachine", Namespace: "other", Name: "no pod"}
	p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{clustertest.NewService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{slice}})
	if err != nil || len(p.Bindings) != 2 || len(p.Refusals) != 1 || p.Refusals[0].Reason != plan.PodOfOtherNamespace {
		t.Errorf("bindings %v, refusals %v, %v", p.Bindings, p.Refusals, err)
	}
}

func TestPlanFor_ReadinessDoesNotMatter(t *testing.T) {
	no := false
	slice := clustertest.NewSlice("web-1", "web", "10.128.0.5")
	slice.Endpoints[0].Conditions.Ready = &no
	slice.Endpoints[0].Conditions.Serving = &no
	p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{clustertest.NewService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{slice}})
	if err != nil || len(p.Bindings) != 1 {
		t.Errorf("got %v, %v; want one binding", p.Bindings, err)
	}
}

func TestPlanFor_UnreadableEndpointIsReported(t *testing.T) {
	slice := clustertest.NewSlice("web-1", "web", "10.128.0.5", "nonsense")
	p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{clustertest.NewService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{slice}})
	if err == nil || len(p.Bindings) != 1 {
		t.Errorf("got %v, %v; want one binding and an error", p.Bindings, err)
	}
}

func TestPlanFor_FQDNSliceIsIgnored(t *testing.T) {
	slice := clustertest.NewSlice("web-1", "web", "pod.example.com")
	slice.AddressType = discovery.AddressTypeFQDN
	if _, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{EndpointSlices: []*discovery.EndpointSlice{slice}}); err != nil {
		t.Error(err)
	}
}

// TestState_NodeWithoutAddresses: it is a Node, and changes no plan.
func TestState_NodeWithoutAddresses(t *testing.T) {
	s := New(Config{NodeName: "here"})
	if s.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here"}}) || !slices.Equal(s.NodeNames(), []string{"here"}) || s.HasInternalIP("here") {
		t.Errorf("the nodes are %v, and this one has an address: %v", s.NodeNames(), s.HasInternalIP("here"))
	}
	if s.DeleteNode("here") || len(s.NodeNames()) > 0 {
		t.Errorf("the nodes are %v, want none", s.NodeNames())
	}
}
