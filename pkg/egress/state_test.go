package egress

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/proxy/apis"

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

func TestConvertService(t *testing.T) {
	name := plan.Service{Namespace: "ns", Name: "web"}
	claim := func(ip string) plan.Claim {
		return plan.Claim{Service: name, Created: time.Unix(1000, 0), EgressIP: netip.MustParseAddr(ip), Protocols: []plan.Protocol{plan.TCP}}
	}
	tests := []struct {
		name     string
		change   func(*v1.Service)
		claims   map[v1.IPFamily]plan.Claim
		refusals map[v1.IPFamily]plan.Reason
	}{
		{"one external IP", nil, map[v1.IPFamily]plan.Claim{v1.IPv4Protocol: claim("203.0.113.1")}, nil},
		{"none", func(s *v1.Service) { s.Spec.ExternalIPs = nil }, nil, nil},
		{"the first of each family", func(s *v1.Service) {
			s.Spec.ExternalIPs = []string{"2001:db8::2", "203.0.113.2", "2001:db8::1", "203.0.113.1"}
		}, map[v1.IPFamily]plan.Claim{v1.IPv4Protocol: claim("203.0.113.2"), v1.IPv6Protocol: claim("2001:db8::2")}, nil},
		{"leading zeros, as old objects have them", func(s *v1.Service) { s.Spec.ExternalIPs = []string{"203.000.113.001"} },
			map[v1.IPFamily]plan.Claim{v1.IPv4Protocol: claim("203.0.113.1")}, nil},
		{"IPv4 in IPv6", func(s *v1.Service) { s.Spec.ExternalIPs = []string{"::ffff:203.0.113.1"} },
			map[v1.IPFamily]plan.Claim{v1.IPv4Protocol: claim("203.0.113.1")}, nil},
		{"unreadable first IP", func(s *v1.Service) { s.Spec.ExternalIPs = []string{"203.0.113", "203.0.113.1"} },
			nil, map[v1.IPFamily]plan.Reason{v1.IPv4Protocol: plan.InvalidAddress}},
		{"headless", func(s *v1.Service) { s.Spec.ClusterIP = v1.ClusterIPNone }, nil, nil},
		{"without a cluster IP", func(s *v1.Service) { s.Spec.ClusterIP = "" }, nil, nil},
		{"ExternalName", func(s *v1.Service) { s.Spec.Type = v1.ServiceTypeExternalName }, nil, nil},
		{"another proxy's", func(s *v1.Service) { s.Labels = map[string]string{apis.LabelServiceProxyName: "other"} }, nil, nil},
		{"switched off", func(s *v1.Service) { s.Annotations = map[string]string{Annotation: "false"} }, nil, nil},
		{"switched on", func(s *v1.Service) { s.Annotations = map[string]string{Annotation: "true"} },
			map[v1.IPFamily]plan.Claim{v1.IPv4Protocol: claim("203.0.113.1")}, nil},
		{"switched to nonsense", func(s *v1.Service) { s.Annotations = map[string]string{Annotation: "off"} },
			nil, map[v1.IPFamily]plan.Reason{v1.IPv4Protocol: plan.InvalidAnnotation}},
		{"a protocol of no meaning", func(s *v1.Service) { s.Spec.Ports[0].Protocol = "DCCP" },
			nil, map[v1.IPFamily]plan.Reason{v1.IPv4Protocol: plan.InvalidProtocol}},
		{"the default protocol", func(s *v1.Service) { s.Spec.Ports[0].Protocol = "" },
			map[v1.IPFamily]plan.Claim{v1.IPv4Protocol: claim("203.0.113.1")}, nil},
		{"another proxy's, without a name", func(s *v1.Service) { s.Labels = map[string]string{apis.LabelServiceProxyName: ""} }, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := convertService(newService("web", test.change))
			if diff := cmp.Diff(test.claims, got.claims, compareNetip); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			reasons := map[v1.IPFamily]plan.Reason{}
			for family, r := range got.refusals {
				reasons[family] = r.Reason
			}
			if diff := cmp.Diff(test.refusals, reasons, compareNetip); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadinessDoesNotMatter(t *testing.T) {
	no := false
	slice := newSlice("web-1", "web", "10.128.0.5")
	slice.Endpoints[0].Conditions.Ready = &no
	slice.Endpoints[0].Conditions.Serving = &no
	p, err := PlanFor(v1.IPv4Protocol, testConfig, []*v1.Service{newService("web", nil)}, []*discovery.EndpointSlice{slice})
	if err != nil || len(p.Bindings) != 1 {
		t.Errorf("got %v, %v; want one binding", p.Bindings, err)
	}
}

func TestUnreadableEndpointIsReported(t *testing.T) {
	slice := newSlice("web-1", "web", "10.128.0.5", "nonsense")
	p, err := PlanFor(v1.IPv4Protocol, testConfig, []*v1.Service{newService("web", nil)}, []*discovery.EndpointSlice{slice})
	if err == nil || len(p.Bindings) != 1 {
		t.Errorf("got %v, %v; want one binding and an error", p.Bindings, err)
	}
}

func TestFQDNSliceIsIgnored(t *testing.T) {
	slice := newSlice("web-1", "web", "pod.example.com")
	slice.AddressType = discovery.AddressTypeFQDN
	if _, err := PlanFor(v1.IPv4Protocol, testConfig, nil, []*discovery.EndpointSlice{slice}); err != nil {
		t.Error(err)
	}
}

// TestChangesThatMatter: the loop is woken when a plan may change, and only then.
func TestChangesThatMatter(t *testing.T) {
	s := newState()
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
	if len(s.services)+len(s.endpoints)+len(s.serviceOf) != 0 {
		t.Errorf("everything is deleted but state holds %v, %v, %v", s.services, s.endpoints, s.serviceOf)
	}
}

// TestStateForgetsNothingAndKeepsNothing: after any sequence of events the plan is that of
// the objects that are left.
func TestStateForgetsNothingAndKeepsNothing(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		s := newState()
		services, slices := map[string]*v1.Service{}, map[string]*discovery.EndpointSlice{}
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
				slices[slice] = newSlice(slice, name, fmt.Sprintf("10.128.0.%d", r.IntN(4)), fmt.Sprintf("10.128.0.%d", r.IntN(4)))
				if _, err := s.setSlice(slices[slice]); err != nil {
					t.Fatal(err)
				}
			case 3:
				slice := fmt.Sprintf("e%d", r.IntN(6))
				if slices[slice] != nil {
					s.deleteSlice(slices[slice])
					delete(slices, slice)
				}
			}
		}
		for _, family := range families {
			want, err := PlanFor(family, testConfig, values(services), values(slices))
			if err != nil {
				t.Fatal(err)
			}
			if got := plan.Build(s.input(family, testConfig)); !got.Equal(want) {
				t.Fatalf("seed %d (-want +got):\n%s", seed, cmp.Diff(want, got, compareNetip))
			}
		}
	}
}

func values[T any](m map[string]T) (list []T) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}
