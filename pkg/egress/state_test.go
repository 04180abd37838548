package egress

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/proxy/apis"
	netutils "k8s.io/utils/net"

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

func newService(name string, change func(*v1.Service)) *v1.Service {
	s := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.Unix(1000, 0)},
		Spec: v1.ServiceSpec{
			Type:        v1.ServiceTypeClusterIP,
			ClusterIP:   "172.30.0.1",
			ExternalIPs: []string{"203.0.113.1"},
			Ports:       []v1.ServicePort{{Port: 80, Protocol: v1.ProtocolTCP}},
		},
	}
	if change != nil {
		change(s)
	}
	return s
}

func newSlice(name, service string, addresses ...string) *discovery.EndpointSlice {
	slice := &discovery.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{discovery.LabelServiceName: service}},
		AddressType: discovery.AddressTypeIPv4,
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{Addresses: []string{address}})
	}
	return slice
}

// claimed is what a test expects of a claim: its egress IP and field, or why it is refused.
type claimed struct {
	ip, field string
	refused   plan.Reason
}

func TestConvertService(t *testing.T) {
	first := claimed{ip: "203.0.113.1", field: "spec.externalIPs[0]"}
	v4 := func(c claimed) map[v1.IPFamily]claimed { return map[v1.IPFamily]claimed{v1.IPv4Protocol: c} }
	refused := func(reason plan.Reason) map[v1.IPFamily]claimed {
		return v4(claimed{first.ip, first.field, reason})
	}
	annotated := func(value string, externalIPs ...string) func(*v1.Service) {
		return func(s *v1.Service) {
			s.Annotations = map[string]string{Annotation: value}
			s.Spec.ExternalIPs = externalIPs
		}
	}
	dual := []string{"203.0.113.1", "203.0.113.2", "2001:db8::1", "2001:db8::2"}
	tests := []struct {
		name   string
		change func(*v1.Service)
		want   map[v1.IPFamily]claimed
	}{
		{"one external IP", nil, v4(first)},
		{"none", func(s *v1.Service) { s.Spec.ExternalIPs = nil }, nil},
		{"the first of each family", func(s *v1.Service) {
			s.Spec.ExternalIPs = []string{"2001:db8::2", "203.0.113.2", "2001:db8::1", "203.0.113.1"}
		}, map[v1.IPFamily]claimed{v1.IPv4Protocol: {ip: "203.0.113.2", field: "spec.externalIPs[1]"}, v1.IPv6Protocol: {ip: "2001:db8::2", field: "spec.externalIPs[0]"}}},
		{"leading zeros, as old objects have them", func(s *v1.Service) { s.Spec.ExternalIPs = []string{"203.000.113.001"} }, v4(first)},
		{"IPv4 in IPv6", func(s *v1.Service) { s.Spec.ExternalIPs = []string{"::ffff:203.0.113.1"} }, v4(first)},
		{"unreadable first IP", func(s *v1.Service) { s.Spec.ExternalIPs = []string{"203.0.113", "203.0.113.1"} },
			v4(claimed{field: first.field, refused: plan.InvalidAddress})},
		{"headless", func(s *v1.Service) { s.Spec.ClusterIP = v1.ClusterIPNone }, nil},
		{"without a cluster IP", func(s *v1.Service) { s.Spec.ClusterIP = "" }, nil},
		{"ExternalName", func(s *v1.Service) { s.Spec.Type = v1.ServiceTypeExternalName }, nil},
		{"another proxy's", func(s *v1.Service) { s.Labels = map[string]string{apis.LabelServiceProxyName: "other"} }, nil},
		{"another proxy's, without a name", func(s *v1.Service) { s.Labels = map[string]string{apis.LabelServiceProxyName: ""} }, nil},
		{"a protocol of no meaning", func(s *v1.Service) { s.Spec.Ports[0].Protocol = "DCCP" }, refused(plan.InvalidProtocol)},
		{"the default protocol", func(s *v1.Service) { s.Spec.Ports[0].Protocol = "" }, v4(first)},
		{"switched off", annotated("false", dual...), nil},
		{"switched on", annotated("true", "203.0.113.1"), v4(first)},
		{"switched to nonsense", annotated("off", "203.0.113.1"), refused(plan.InvalidAnnotation)},
		{"one of the list, and none of the other family", annotated("203.0.113.2", dual...), v4(claimed{ip: "203.0.113.2", field: "spec.externalIPs[1]"})},
		{"one of the list for each family", annotated(" 2001:db8::2 , 203.0.113.2", dual...), map[v1.IPFamily]claimed{
			v1.IPv4Protocol: {ip: "203.0.113.2", field: "spec.externalIPs[1]"}, v1.IPv6Protocol: {ip: "2001:db8::2", field: "spec.externalIPs[3]"}}},
		{"none of the list", annotated("203.0.113.9", dual...), refused(plan.InvalidAnnotation)},
		{"two of one family", annotated("203.0.113.1,203.0.113.2", "203.0.113.1", "203.0.113.2"), refused(plan.InvalidAnnotation)},
		{"one, of a family that is not there", annotated("2001:db8::1", "203.0.113.1"), map[v1.IPFamily]claimed{v1.IPv6Protocol: {refused: plan.InvalidAnnotation}}},
		{"one, without a list", annotated("203.0.113.1"), v4(claimed{refused: plan.InvalidAnnotation})},
		{"load-balancer IPs are not asked for", func(s *v1.Service) {
			s.Spec.ExternalIPs = nil
			s.Spec.Type = v1.ServiceTypeLoadBalancer
			s.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: "198.51.100.1"}}
		}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, claimsOf(t, test.change, testConfig), cmp.AllowUnexported(claimed{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func claimsOf(t *testing.T, change func(*v1.Service), config Config) map[v1.IPFamily]claimed {
	t.Helper()
	got := map[v1.IPFamily]claimed{}
	for family, part := range convertService(newService("web", change), config).parts {
		c := part.claim
		if c == nil {
			continue
		}
		converted := claimed{field: c.Field, refused: c.Refused}
		if c.EgressIP.IsValid() {
			converted.ip = c.EgressIP.String()
		}
		if (c.Refused == "") != (c.RefusedBecause == "") {
			t.Errorf("refused %q because %q", c.Refused, c.RefusedBecause)
		}
		if c.Service != (plan.Service{Namespace: "ns", Name: "web"}) || !c.Created.Equal(time.Unix(1000, 0)) {
			t.Errorf("claim of %v, created %v", c.Service, c.Created)
		}
		got[family] = converted
	}
	return got
}

func TestLoadBalancerIPs(t *testing.T) {
	config := testConfig
	config.LoadBalancerIPs = true
	vip, proxy := v1.LoadBalancerIPModeVIP, v1.LoadBalancerIPModeProxy
	balanced := func(externalIPs ...string) func(*v1.Service) {
		return func(s *v1.Service) {
			s.Spec.Type, s.Spec.ExternalIPs = v1.ServiceTypeLoadBalancer, externalIPs
			s.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{
				{Hostname: "lb.example.com"}, {IP: "198.51.100.1", IPMode: &proxy}, {IP: "198.51.100.2", IPMode: &vip}, {IP: "198.51.100.3"}, {IP: "2001:db8::3"},
			}
		}
	}
	for name, test := range map[string]struct {
		change func(*v1.Service)
		want   map[v1.IPFamily]claimed
	}{
		"the first of mode VIP": {balanced(), map[v1.IPFamily]claimed{
			v1.IPv4Protocol: {ip: "198.51.100.2", field: "status.loadBalancer.ingress[2].ip"}, v1.IPv6Protocol: {ip: "2001:db8::3", field: "status.loadBalancer.ingress[4].ip"}}},
		"external IPs come first": {balanced("203.0.113.1"), map[v1.IPFamily]claimed{v1.IPv4Protocol: {ip: "203.0.113.1", field: "spec.externalIPs[0]"}}},
		"what was left of another type": {func(s *v1.Service) {
			balanced()(s)
			s.Spec.Type = v1.ServiceTypeClusterIP
		}, nil},
		"the annotation names one": {func(s *v1.Service) {
			balanced()(s)
			s.Annotations = map[string]string{Annotation: "198.51.100.3"}
		}, map[v1.IPFamily]claimed{v1.IPv4Protocol: {ip: "198.51.100.3", field: "status.loadBalancer.ingress[3].ip"}}},
		"the annotation names one of mode Proxy": {func(s *v1.Service) {
			balanced()(s)
			s.Annotations = map[string]string{Annotation: "198.51.100.1"}
		}, map[v1.IPFamily]claimed{v1.IPv4Protocol: {ip: "198.51.100.2", field: "status.loadBalancer.ingress[2].ip", refused: plan.InvalidAnnotation}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, claimsOf(t, test.change, config), cmp.AllowUnexported(claimed{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllProtocols(t *testing.T) {
	config := testConfig
	config.AllProtocols = true
	svc := convertService(newService("web", func(s *v1.Service) { s.Spec.Ports[0].Protocol = "DCCP" }), config)
	c := svc.parts[v1.IPv4Protocol].claim
	if diff := cmp.Diff([]plan.Protocol{plan.All}, c.Protocols); diff != "" || c.Refused != "" {
		t.Errorf("refused %q, protocols (-want +got):\n%s", c.Refused, diff)
	}
}

func TestConvertNode(t *testing.T) {
	got := convertNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1.NodeStatus{Addresses: []v1.NodeAddress{
		{Type: v1.NodeHostName, Address: "192.0.2.9"}, {Type: v1.NodeExternalIP, Address: "198.51.100.2"}, {Type: v1.NodeInternalIP, Address: "192.0.2.2"},
		{Type: v1.NodeInternalIP, Address: "192.0.2.3"}, {Type: v1.NodeInternalIP, Address: "fd00::2"}, {Type: v1.NodeInternalIP, Address: "nonsense"},
	}}})
	addrs := func(texts ...string) (result []netip.Addr) {
		for _, text := range texts {
			result = append(result, netip.MustParseAddr(text))
		}
		return result
	}
	want := map[v1.IPFamily]plan.Node{
		v1.IPv4Protocol: {Name: "n", Primary: addrs("192.0.2.2")[0], Addresses: addrs("198.51.100.2", "192.0.2.2", "192.0.2.3")},
		v1.IPv6Protocol: {Name: "n", Primary: addrs("fd00::2")[0], Addresses: addrs("fd00::2")},
	}
	if diff := cmp.Diff(want, got, compareNetip); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func openshiftNetwork(change func(*configv1.Network)) *configv1.Network {
	n := &configv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	change(n)
	return n
}

// TestNetworkPolicies has OpenShift's rules: rejected wins, then allowed; an empty policy
// forbids all, no policy allows.
func TestNetworkPolicies(t *testing.T) {
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
				Services: []*v1.Service{newService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{newSlice("web-1", "web", "10.128.0.5")}, Network: test.network,
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

func TestClusterCIDRsOfTheNetwork(t *testing.T) {
	objects := Objects{
		Services: []*v1.Service{newService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{newSlice("web-1", "web", "10.128.0.5", "10.200.0.5")},
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

// TestSliceNamesNoPod: an address that another namespace's EndpointSlice names as its pod's is
// that pod's, whoever is older.
func TestSliceNamesNoPod(t *testing.T) {
	forged, theirs := newSlice("web-1", "web", "10.128.0.5"), newSlice("atm-1", "atm", "10.128.0.5")
	theirs.Namespace = "bank"
	theirs.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: "bank", Name: "atm"}
	for name, ref := range map[string]*v1.ObjectReference{
		"none": nil, "no namespace": {Kind: "Pod", Name: "atm"}, "no pod": {Kind: "VirtualMachine", Namespace: "ns", Name: "atm"},
	} {
		forged.Endpoints[0].TargetRef = ref
		p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{newService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{forged, theirs}})
		if err != nil || len(p.Bindings) != 0 || len(p.Refusals) != 1 || p.Refusals[0].Reason != plan.PodOfOtherNamespace {
			t.Errorf("%s: bindings %v, refusals %v, %v", name, p.Bindings, p.Refusals, err)
		}
	}
}

// TestNamesMatterWhereTheyAreMissing: a slice of a Service without external IPs wakes the loop
// if it may name the pod that a claim's own slice does not.
func TestNamesMatterWhereTheyAreMissing(t *testing.T) {
	s := newState(testConfig)
	named := func(slice *discovery.EndpointSlice) *discovery.EndpointSlice {
		slice.Namespace = "bank"
		slice.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: "bank", Name: "atm"}
		return slice
	}
	set := func(slice *discovery.EndpointSlice) bool {
		t.Helper()
		changed, err := s.setSlice(slice)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	s.setService(newService("web", nil))
	set(newSlice("web-1", "web", "10.128.0.5"))
	if p := plan.Build(s.input(v1.IPv4Protocol)); len(p.Bindings) != 1 {
		t.Fatalf("bindings %v, want one", p.Bindings)
	}
	if !set(named(newSlice("atm-1", "atm", "10.128.0.5"))) {
		t.Error("the loop sleeps although the pod is known to be another namespace's now")
	}
	if p := plan.Build(s.input(v1.IPv4Protocol)); len(p.Bindings) != 0 {
		t.Errorf("bindings %v, want none", p.Bindings)
	}
}

// TestAllAddressesAreHeld: what a Service lists belongs to its namespace, used or not.
func TestAllAddressesAreHeld(t *testing.T) {
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
		owner, thief := newService("web", change), newService("web", nil)
		owner.Namespace, owner.CreationTimestamp = "bank", metav1.Unix(1, 0)
		p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{owner, thief}, EndpointSlices: []*discovery.EndpointSlice{newSlice("web-1", "web", "10.128.0.5")}})
		refused := slices.ContainsFunc(p.Refusals, func(r plan.Refusal) bool {
			return r.Service.Namespace == "ns" && r.Reason == plan.OwnedByOtherNamespace
		})
		if err != nil || len(p.Bindings) != 0 || !refused {
			t.Errorf("%s: bindings %v, refusals %v, %v; want the thief refused", name, p.Bindings, p.Refusals, err)
		}
	}
}

func TestAnnotationWithAZone(t *testing.T) {
	svc := newService("web", func(s *v1.Service) {
		s.Spec.ExternalIPs = []string{"2001:db8::1"}
		s.Annotations = map[string]string{Annotation: "fe80::1%\nCOMMIT"}
	})
	c := convertService(svc, testConfig).parts[v1.IPv6Protocol].claim
	if c.Refused != plan.InvalidAnnotation || strings.Contains(c.RefusedBecause, "\n") {
		t.Errorf("refused %q: %q", c.Refused, c.RefusedBecause)
	}
}

// TestHugeTexts: what nobody limits does not become a row, a line or an Event of that size.
func TestHugeTexts(t *testing.T) {
	huge := strings.Repeat("\x1b", 100000)
	svc := newService("web", func(s *v1.Service) { s.Annotations = map[string]string{Annotation: huge} })
	if c := convertService(svc, testConfig).parts[v1.IPv4Protocol].claim; c.Refused != plan.InvalidAnnotation || len(c.RefusedBecause) > 1000 {
		t.Errorf("refused %q with %d bytes", c.Refused, len(c.RefusedBecause))
	}
	slice := newSlice("web-1", "web", "10.128.0.5")
	slice.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: strings.Repeat("n", 63) + huge, Name: huge}
	endpoints, err := convertSlice(slice)
	if pod := endpoints[0].Pod; err != nil || len(pod.Namespace) != 64 || len(pod.Name) != 254 {
		t.Errorf("%d bytes/%d bytes, %v; want what no name has, 64/254", len(pod.Namespace), len(pod.Name), err)
	}
}

// TestParseIP: addresses are what the proxier takes them for.
func TestParseIP(t *testing.T) {
	for _, text := range []string{
		"10.128.0.5", "010.128.0.05", "10.128.0.256", "10.128.0", "::ffff:10.128.0.5", "fd00::1", "FD00:0::0001", "fe80::1", "fe80::1%eth0",
		"::ffff:10.128.0.5%eth0", "::", "0.0.0.0", "10.128.0.5 ", "10.128.0.5/32", "", ":",
	} {
		want, _ := netip.AddrFromSlice(netutils.ParseIPSloppy(text))
		if got, ok := parseIP(text); got != want.Unmap() || ok != want.IsValid() {
			t.Errorf("parseIP(%q) = %v, %v; the proxier's is %v", text, got, ok, want)
		}
	}
}

func TestAPIServersAddress(t *testing.T) {
	kubernetes := newSlice("kubernetes", "kubernetes", "203.0.113.1")
	kubernetes.Namespace = "default"
	p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{newService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{kubernetes}})
	if err != nil || len(p.Refusals) != 1 || p.Refusals[0].Reason != plan.APIServerAddress {
		t.Errorf("refusals %v, %v", p.Refusals, err)
	}
}

func TestTargetRef(t *testing.T) {
	slice := newSlice("web-1", "web", "10.128.0.5", "10.128.0.6", "10.128.0.7")
	slice.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "mine"}
	slice.Endpoints[1].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: "other", Name: "theirs"}
	slice.Endpoints[2].TargetRef = &v1.ObjectReference{Kind: "VirtualMachine", Namespace: "other", Name: "no pod"}
	p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{newService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{slice}})
	if err != nil || len(p.Bindings) != 2 || len(p.Refusals) != 1 || p.Refusals[0].Reason != plan.PodOfOtherNamespace {
		t.Errorf("bindings %v, refusals %v, %v", p.Bindings, p.Refusals, err)
	}
}

func TestReadinessDoesNotMatter(t *testing.T) {
	no := false
	slice := newSlice("web-1", "web", "10.128.0.5")
	slice.Endpoints[0].Conditions.Ready = &no
	slice.Endpoints[0].Conditions.Serving = &no
	p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{newService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{slice}})
	if err != nil || len(p.Bindings) != 1 {
		t.Errorf("got %v, %v; want one binding", p.Bindings, err)
	}
}

func TestUnreadableEndpointIsReported(t *testing.T) {
	slice := newSlice("web-1", "web", "10.128.0.5", "nonsense")
	p, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{Services: []*v1.Service{newService("web", nil)}, EndpointSlices: []*discovery.EndpointSlice{slice}})
	if err == nil || len(p.Bindings) != 1 {
		t.Errorf("got %v, %v; want one binding and an error", p.Bindings, err)
	}
}

func TestFQDNSliceIsIgnored(t *testing.T) {
	slice := newSlice("web-1", "web", "pod.example.com")
	slice.AddressType = discovery.AddressTypeFQDN
	if _, err := PlanFor(v1.IPv4Protocol, testConfig, Objects{EndpointSlices: []*discovery.EndpointSlice{slice}}); err != nil {
		t.Error(err)
	}
}

// TestChangesThatMatter: the loop is woken when a plan may change, and only then.
func TestChangesThatMatter(t *testing.T) {
	s := newState(testConfig)
	set := func(slice *discovery.EndpointSlice) bool {
		t.Helper()
		changed, err := s.setSlice(slice)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	for _, step := range []struct {
		what string
		do   func() bool
		want bool
	}{
		{"slice of no claimed Service", func() bool { return set(newSlice("web-1", "web", "10.128.0.5")) }, false},
		{"Service without external IPs", func() bool {
			return s.setService(newService("web", func(s *v1.Service) { s.Spec.ExternalIPs = nil }))
		}, false},
		{"Service gets an external IP", func() bool { return s.setService(newService("web", nil)) }, true},
		{"the same again", func() bool { return s.setService(newService("web", nil)) }, false},
		{"a label of no interest", func() bool {
			return s.setService(newService("web", func(s *v1.Service) { s.Labels = map[string]string{"a": "b"} }))
		}, false},
		{"another address", func() bool { return set(newSlice("web-1", "web", "10.128.0.6")) }, true},
		{"the same address, not ready", func() bool { return set(newSlice("web-1", "web", "10.128.0.6")) }, false},
		{"the slice goes to another Service", func() bool { return set(newSlice("web-1", "other", "10.128.0.6")) }, true},
		{"and comes back", func() bool { return set(newSlice("web-1", "web", "10.128.0.6")) }, true},
		{"the slice is deleted", func() bool { return s.deleteSlice(newSlice("web-1", "web")) }, true},
		{"deleted again", func() bool { return s.deleteSlice(newSlice("web-1", "web")) }, false},
		{"the Service is deleted", func() bool { return s.deleteService(newService("web", nil)) }, true},
		{"deleted again", func() bool { return s.deleteService(newService("web", nil)) }, false},
	} {
		if got := step.do(); got != step.want {
			t.Errorf("%s: changed = %v, want %v", step.what, got, step.want)
		}
	}
	if len(s.services)+len(s.slices)+len(s.serviceOf) != 0 {
		t.Errorf("everything is deleted but state holds %v, %v, %v", s.services, s.slices, s.serviceOf)
	}
	if len(s.pods) != 0 {
		t.Errorf("everything is deleted but state knows pods %v", s.pods)
	}
}

// TestStateForgetsNothingAndKeepsNothing: after any sequence of events the plan is that of
// the objects that are left.
func TestStateForgetsNothingAndKeepsNothing(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		s := newState(testConfig)
		services, endpointSlices := map[string]*v1.Service{}, map[string]*discovery.EndpointSlice{}
		for range 60 {
			name := fmt.Sprintf("s%d", r.IntN(5))
			switch r.IntN(4) {
			case 0:
				services[name] = newService(name, func(s *v1.Service) {
					s.CreationTimestamp = metav1.Unix(int64(r.IntN(3)), 0)
					s.Spec.ExternalIPs = []string{"203.0.113.1", "203.0.113.2", "2001:db8::1"}[r.IntN(3) : 2+r.IntN(2)]
				})
				s.setService(services[name])
			case 1:
				if services[name] != nil {
					s.deleteService(services[name])
					delete(services, name)
				}
			case 2:
				slice := fmt.Sprintf("e%d", r.IntN(6))
				endpointSlices[slice] = newSlice(slice, name, fmt.Sprintf("10.128.0.%d", r.IntN(4)), fmt.Sprintf("10.128.0.%d", r.IntN(4)))
				if _, err := s.setSlice(endpointSlices[slice]); err != nil {
					t.Fatal(err)
				}
			case 3:
				slice := fmt.Sprintf("e%d", r.IntN(6))
				if endpointSlices[slice] != nil {
					s.deleteSlice(endpointSlices[slice])
					delete(endpointSlices, slice)
				}
			}
		}
		for _, family := range families {
			want, err := PlanFor(family, testConfig, Objects{Services: values(services), EndpointSlices: values(endpointSlices)})
			if err != nil {
				t.Fatal(err)
			}
			if got := plan.Build(s.input(family)); !got.Equal(want) {
				t.Fatalf("seed %d (-want +got):\n%s", seed, cmp.Diff(want, got, compareNetip))
			}
			s.update(family)
			if _, right := s.audit(family); !right {
				t.Fatalf("seed %d: the audit finds fault with what follows", seed)
			}
			if got := (planned{s, family}).Plan(); !got.Equal(want) {
				t.Fatalf("seed %d, followed (-want +got):\n%s", seed, cmp.Diff(want, got, compareNetip))
			}
		}
	}
}

// TestAudit: a plan that went astray is replaced.
func TestAudit(t *testing.T) {
	s := newState(testConfig)
	s.setService(newService("web", nil))
	if _, err := s.setSlice(newSlice("web-1", "web", "10.128.0.5")); err != nil {
		t.Fatal(err)
	}
	s.update(v1.IPv4Protocol)
	s.planners[v1.IPv4Protocol].DeleteService(plan.Service{Namespace: "ns", Name: "web"}) // unknown to the state
	change, right := s.audit(v1.IPv4Protocol)
	if right || len(change.Added) != 1 {
		t.Errorf("right %v, change %+v; want the fault found and the binding back", right, change)
	}
	if p := (planned{s, v1.IPv4Protocol}).Plan(); !p.Equal(plan.Build(s.input(v1.IPv4Protocol))) {
		t.Errorf("the plan is still astray: %+v", p)
	}
	if _, right := s.audit(v1.IPv4Protocol); !right {
		t.Error("the audit finds fault again")
	}
}

func values[T any](m map[string]T) (list []T) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}
