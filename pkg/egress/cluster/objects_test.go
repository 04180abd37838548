package cluster

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/proxy/apis"
	netutils "k8s.io/utils/net"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// claimed is what a test expects of a claim: its egress IP and field, or why it is refused.
type claimed struct {
	ip, field string
	refused   plan.Reason
}

func TestConvertService_EgressIP(t *testing.T) {
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
	named := func(value string, change func(*v1.Service)) func(*v1.Service) {
		return func(s *v1.Service) {
			s.Annotations = map[string]string{EgressIPAnnotation: value}
			if s.Spec.ExternalIPs = nil; change != nil {
				change(s)
			}
		}
	}
	headless := func(s *v1.Service) { s.Spec.ClusterIP, s.Spec.ExternalIPs = v1.ClusterIPNone, []string{"203.0.113.7"} }
	const byName = "metadata.annotations[network.openshift.io/egress-ip]"
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
		{"named by the annotation alone", named("203.0.113.9", nil), v4(claimed{ip: "203.0.113.9", field: byName})},
		{"named, and external IPs are others", named("203.0.113.9", func(s *v1.Service) { s.Spec.ExternalIPs = dual }), v4(claimed{ip: "203.0.113.9", field: byName})},
		{"named for each family", named("203.0.113.9, 2001:db8::9", nil), map[v1.IPFamily]claimed{
			v1.IPv4Protocol: {ip: "203.0.113.9", field: byName}, v1.IPv6Protocol: {ip: "2001:db8::9", field: byName}}},
		{"named, and headless", named("203.0.113.9", headless), v4(claimed{ip: "203.0.113.9", field: byName})},
		{"named, and ExternalName", named("203.0.113.9", func(s *v1.Service) { s.Spec.Type = v1.ServiceTypeExternalName }), nil},
		{"named, and another proxy's", named("203.0.113.9", func(s *v1.Service) { s.Labels = map[string]string{apis.LabelServiceProxyName: "other"} }), nil},
		{"named, and switched off", named("203.0.113.9", func(s *v1.Service) { s.Annotations[Annotation] = "false" }), nil},
		{"named, beside another one of egress-snat", named("203.0.113.9", func(s *v1.Service) { s.Annotations[Annotation] = "203.0.113.1" }), v4(claimed{ip: "203.0.113.9", field: byName})},
		{"named, beside nonsense in egress-snat", named("203.0.113.9", func(s *v1.Service) { s.Annotations[Annotation] = "off" }), v4(claimed{"203.0.113.9", byName, plan.InvalidAnnotation})},
		{"two named of one family", named("203.0.113.9,203.0.113.8", nil), v4(claimed{"203.0.113.9", byName, plan.InvalidAnnotation})},
		{"nonsense named", named("203.0.113", nil), v4(claimed{refused: plan.InvalidAnnotation})},
		{"nothing named", named("", headless), v4(claimed{refused: plan.InvalidAnnotation})},
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
	for family, part := range convertService(clustertest.NewService("web", change), config).parts {
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

func TestConvertService_LoadBalancerIPs(t *testing.T) {
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

func TestConvertService_AllProtocols(t *testing.T) {
	config := testConfig
	config.AllProtocols = true
	svc := convertService(clustertest.NewService("web", func(s *v1.Service) { s.Spec.Ports[0].Protocol = "DCCP" }), config)
	c := svc.parts[v1.IPv4Protocol].claim
	if diff := cmp.Diff([]plan.Protocol{plan.All}, c.Protocols); diff != "" || c.Refused != "" {
		t.Errorf("refused %q, protocols (-want +got):\n%s", c.Refused, diff)
	}
}

func TestConvertNode_AddressesByFamily(t *testing.T) {
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
		v1.IPv4Protocol: {Name: "n", InternalIPs: addrs("192.0.2.2", "192.0.2.3")},
		v1.IPv6Protocol: {Name: "n", InternalIPs: addrs("fd00::2")},
	}
	if diff := cmp.Diff(want, got, compareNetip); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConvertService_AnnotationWithAZone(t *testing.T) {
	svc := clustertest.NewService("web", func(s *v1.Service) {
		s.Spec.ExternalIPs = []string{"2001:db8::1"}
		s.Annotations = map[string]string{Annotation: "fe80::1%\nCOMMIT"}
	})
	c := convertService(svc, testConfig).parts[v1.IPv6Protocol].claim
	if c.Refused != plan.InvalidAnnotation || strings.Contains(c.RefusedBecause, "\n") {
		t.Errorf("refused %q: %q", c.Refused, c.RefusedBecause)
	}
}

// TestConvert_HugeTexts: what nobody limits does not become a row, a line or an Event of that size.
func TestConvert_HugeTexts(t *testing.T) {
	huge := strings.Repeat("\x1b", 100000)
	svc := clustertest.NewService("web", func(s *v1.Service) { s.Annotations = map[string]string{Annotation: huge} })
	if c := convertService(svc, testConfig).parts[v1.IPv4Protocol].claim; c.Refused != plan.InvalidAnnotation || len(c.RefusedBecause) > 1000 {
		t.Errorf("refused %q with %d bytes", c.Refused, len(c.RefusedBecause))
	}
	slice := clustertest.NewSlice("web-1", "web", "10.128.0.5")
	slice.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: strings.Repeat("n", 63) + huge, Name: huge}
	endpoints, err := convertSlice(slice)
	if pod := endpoints[0].Pod; err != nil || len(pod.Namespace) != 64 || len(pod.Name) != 254 {
		t.Errorf("%d bytes/%d bytes, %v; want what no name has, 64/254", len(pod.Namespace), len(pod.Name), err)
	}
}

// TestConvert_ManyOfOne: neither thousands of names of egress IPs nor one address a thousand times cost more than they may.
func TestConvert_ManyOfOne(t *testing.T) {
	var names []string
	for ip := netip.MustParseAddr("203.0.113.1"); len(names) < 1000; ip = ip.Next() {
		names = append(names, ip.String())
	}
	svc := clustertest.NewService("web", func(s *v1.Service) {
		s.Spec.ExternalIPs, s.Annotations = nil, map[string]string{EgressIPAnnotation: strings.Join(names, ",")}
	})
	part := convertService(svc, testConfig).parts[v1.IPv4Protocol]
	if has := part.holding.Addresses; len(has) != MostEgressIPs || part.claim.Refused != plan.InvalidAnnotation {
		t.Errorf("%d addresses, refused %q; want %d and a refusal", len(has), part.claim.Refused, MostEgressIPs)
	}
	slice := clustertest.NewSlice("web-1", "web", "10.128.0.4", "10.128.0.5")
	for i := range 998 {
		endpoint := *slice.Endpoints[1].DeepCopy()
		endpoint.TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: slice.Namespace, Name: "web", UID: types.UID(strconv.Itoa(i))}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	slice.Endpoints = append(slice.Endpoints, clustertest.NewSlice("", "", "10.128.1.5").Endpoints...)
	endpoints, err := convertSlice(slice)
	if n := len(endpoints); err != nil || n != 1+mostAtAnAddress+1 || endpoints[n-1].Addr != netip.MustParseAddr("10.128.1.5") {
		t.Errorf("%d endpoints, %v; want %d of the address that is there a thousand times, and the others", n, err, mostAtAnAddress)
	}
}

// TestParseIP_AsTheProxier: addresses are what the proxier takes them for.
func TestParseIP_AsTheProxier(t *testing.T) {
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

// TestConvertService_NamedAddresses: what the annotation names belongs to the Service, and by what it has it decides which policies count.
func TestConvertService_NamedAddresses(t *testing.T) {
	balanced := testConfig
	balanced.LoadBalancerIPs = true
	ip := netip.MustParseAddr("203.0.113.9")
	for name, test := range map[string]struct {
		config Config
		change func(*v1.Service)
		want   plan.Address
	}{
		"by the annotation alone":                         {testConfig, nil, plan.Address{IP: ip, Annotated: true}},
		"an external IP":                                  {testConfig, func(s *v1.Service) { s.Spec.ExternalIPs = []string{"203.0.113.009"} }, plan.Address{IP: ip}},
		"a load balancer's":                               {balanced, balancedAt("203.0.113.9"), plan.Address{IP: ip, LoadBalancer: true}},
		"a load balancer's, whose addresses do not count": {testConfig, balancedAt("203.0.113.9"), plan.Address{IP: ip, Annotated: true}},
		"switched off":                                    {testConfig, func(s *v1.Service) { s.Annotations[Annotation] = "false" }, plan.Address{IP: ip, Annotated: true}},
		"misspelt": {testConfig, func(s *v1.Service) {
			s.Annotations[EgressIPAnnotation] = "203.0.113.9;" + s.Annotations[EgressIPAnnotation] + ",203.0.113.9"
		}, plan.Address{IP: ip, Annotated: true}},
	} {
		t.Run(name, func(t *testing.T) {
			part := convertService(clustertest.NewService("web", func(s *v1.Service) {
				s.Spec.ExternalIPs, s.Annotations = nil, map[string]string{EgressIPAnnotation: "203.0.113.9"}
				if test.change != nil {
					test.change(s)
				}
			}), test.config).parts[v1.IPv4Protocol]
			if !slices.Contains(part.holding.Addresses, test.want) {
				t.Errorf("the Service has %v, want %v among them", part.holding.Addresses, test.want)
			}
			if c := part.claim; c != nil && (plan.Address{IP: c.EgressIP, LoadBalancer: c.LoadBalancer, Annotated: c.Annotated}) != test.want {
				t.Errorf("the Service claims %+v, want %v", c, test.want)
			}
		})
	}
}

func balancedAt(ip string) func(*v1.Service) {
	return func(s *v1.Service) {
		s.Spec.Type, s.Status.LoadBalancer.Ingress = v1.ServiceTypeLoadBalancer, []v1.LoadBalancerIngress{{IP: ip}}
	}
}
