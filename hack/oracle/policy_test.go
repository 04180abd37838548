package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/apply"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
)

// TestPolicy_AgreesWithThePlan: of 10,000 random Services under random configurations, the API server refuses exactly those that the plan
// refuses for a reason that the Service alone decides, and says the same. E2E=all: of 100,000.
func TestPolicy_AgreesWithThePlan(t *testing.T) {
	configs, services := 20, 500
	if os.Getenv("E2E") == "all" {
		configs, services = 50, 2000
	}
	refused := 0
	for seed := range configs {
		r := random{rand.New(rand.NewPCG(uint64(seed), 1))}
		arguments := r.arguments()
		arguments.AssignCIDRs = nil // the pool's networks are no concern of apply
		config := config(arguments)
		validator := compile(t, config)
		for range services {
			svc := r.service()
			svc.Name = "web"
			if r.IntN(4) == 0 { // more of what means nothing than the Services of a cluster have
				svc.Annotations = map[string]string{one(r, cluster.Annotation, cluster.EgressIPAnnotation): one(r, oddWords...)}
			}
			if r.IntN(10) == 0 {
				svc.Spec.Ports = []v1.ServicePort{{Port: 80, Protocol: "ICMP"}}
			}
			said, want := validator.apply(svc, nil), refusalsOf(t, config, svc)
			switch {
			case strings.Contains(svc.Annotations[cluster.Annotation], "::ffff:"): // it means something to the plan alone
			case !canonical(svc):
				if said == "" && len(want) > 0 {
					t.Fatalf("seed %d: apply lets pass what the plan refuses: %q\n%+v\n%s", seed, want, config, claimOf(svc))
				}
			case config.LoadBalancerIPs && svc.Spec.Type == v1.ServiceTypeLoadBalancer && len(svc.Status.LoadBalancer.Ingress) == 0 && len(svc.Annotations) > 0:
				if said != "" && len(want) == 0 { // what its load balancer gives it the plan alone sees
					t.Fatalf("seed %d: apply says %q, and the plan lets it pass\n%+v\n%s", seed, said, config, claimOf(svc))
				}
			case said == "" && len(want) > 0, said != "" && !slices.Contains(want, said):
				t.Fatalf("seed %d: apply says %q, and the plan %q\n%+v\n%s", seed, said, want, config, claimOf(svc))
			}
			if said != "" {
				refused++
			}
		}
	}
	t.Logf("%d of %d Services are refused at apply", refused, configs*services)
	if refused < configs*services/10 || refused > configs*services*9/10 {
		t.Errorf("of %d Services %d are refused; the test compares too little", configs*services, refused)
	}
}

// refusalsOf returns what the plan of a cluster with no other object says of a Service, by the reasons that it alone decides.
func refusalsOf(t *testing.T, config cluster.Config, svc *v1.Service) (refusals []string) {
	t.Helper()
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		p, err := cluster.PlanFor(family, config, cluster.Objects{Services: []*v1.Service{svc}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Refusals {
			if r.Reason != plan.NoClusterCIDR {
				refusals = append(refusals, fmt.Sprintf("%s: %s", r.Reason, r.Message))
			}
		}
	}
	return refusals
}

// canonical tells whether a Service's addresses are written as the API server prints them.
func canonical(svc *v1.Service) bool {
	return !slices.ContainsFunc(svc.Spec.ExternalIPs, func(text string) bool {
		ip, err := netip.ParseAddr(text)
		return err != nil || ip.Is4In6()
	})
}

// validator is a policy that has to compile, and whose expressions must not fail.
type validator struct {
	*testing.T
	*apply.Policy
}

func compile(t *testing.T, config cluster.Config) validator {
	t.Helper()
	policy, _ := cluster.AdmissionPolicy(config)
	compiled, err := apply.Compile(policy)
	if err != nil {
		t.Fatal(err)
	}
	return validator{t, compiled}
}

func (v validator) apply(svc, old *v1.Service) string {
	v.Helper()
	refused, err := v.Apply(v.Context(), svc, old)
	if err != nil {
		v.Fatalf("%v\n%s", err, claimOf(svc))
	}
	return refused
}

// claimOf is what decides whether a Service is refused.
func claimOf(svc *v1.Service) string {
	return fmt.Sprintf("namespace %s, annotations %q, external IPs %q, cluster IP %q, type %s, ingress %v", svc.Namespace, svc.Annotations, svc.Spec.ExternalIPs, svc.Spec.ClusterIP, svc.Spec.Type, svc.Status.LoadBalancer.Ingress)
}

// TestPolicy_Changes: a Service that was there before the policy can be changed in all that is no concern of its claims.
func TestPolicy_Changes(t *testing.T) {
	v := compile(t, cluster.Config{AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}})
	old := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: v1.ServiceSpec{Type: v1.ServiceTypeClusterIP, ClusterIP: "172.30.0.10", ExternalIPs: []string{"203.0.113.1"}}}
	const refused = "NotAllowed: proxyArguments.egress-snat-allowed-cidrs does not allow 203.0.113.1 as an egress IP"
	for _, test := range []struct {
		name   string
		change func(*v1.Service)
		want   string
	}{
		{"nothing", func(*v1.Service) {}, ""},
		{"a label", func(s *v1.Service) { s.Labels = map[string]string{"a": "b"} }, ""},
		{"another annotation", func(s *v1.Service) { s.Annotations = map[string]string{"a": "b"} }, ""},
		{"its status", func(s *v1.Service) { s.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: "203.0.113.9"}} }, ""},
		{"its selector", func(s *v1.Service) { s.Spec.Selector = map[string]string{"a": "b"} }, ""},
		{"its ports", func(s *v1.Service) { s.Spec.Ports = []v1.ServicePort{{Port: 443, Protocol: v1.ProtocolTCP}} }, ""},
		{"its external IPs", func(s *v1.Service) { s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, "203.0.113.2") }, refused},
		{"it is switched off", func(s *v1.Service) { s.Annotations = map[string]string{cluster.Annotation: "false"} }, ""},
		{"it is switched on", func(s *v1.Service) { s.Annotations = map[string]string{cluster.Annotation: "true"} }, refused},
		{"it names what is no address", func(s *v1.Service) { s.Annotations = map[string]string{cluster.EgressIPAnnotation: "-"} },
			`InvalidAnnotation: annotation network.openshift.io/egress-ip has the value "-"; name IP addresses, separated by commas`},
		{"it gets an address that is allowed", func(s *v1.Service) { s.Spec.ExternalIPs = []string{"198.51.100.1"} }, ""},
	} {
		changed := old.DeepCopy()
		test.change(changed)
		if said := v.apply(changed, old); said != test.want {
			t.Errorf("%s: apply says %q, want %q", test.name, said, test.want)
		}
	}
}

// TestPolicy_AwaitsTheLoadBalancer: when a Service is created it has no status, so its annotation may name the address that its load balancer
// gives it then. Another address is refused all the same.
func TestPolicy_AwaitsTheLoadBalancer(t *testing.T) {
	v := compile(t, cluster.Config{LoadBalancerIPs: true, AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
	for annotation, want := range map[string]string{
		cluster.Annotation + "=203.0.113.10":         "",
		cluster.EgressIPAnnotation + "=203.0.113.10": "",
		cluster.EgressIPAnnotation + "=198.51.100.1": "NotAllowed: proxyArguments.egress-snat-allowed-cidrs does not allow 198.51.100.1 as an egress IP",
		cluster.Annotation + "=224.0.0.1":            "InvalidAddress: egress IP 224.0.0.1 is not a unicast address that packets can come from",
		cluster.Annotation + "=nothing":              "",
		cluster.EgressIPAnnotation + "=224.0.0.1":    "InvalidAddress: egress IP 224.0.0.1 is not a unicast address that packets can come from",
	} {
		name, value, _ := strings.Cut(annotation, "=")
		svc := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{name: value}},
			Spec: v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, ClusterIP: "172.30.0.10"}}
		if said := v.apply(svc, nil); said != want {
			t.Errorf("%s: apply says %q, want %q", annotation, said, want)
		}
	}
}

// TestPolicy_AnotherProxys: a Service is judged when it is no other proxy's any more.
func TestPolicy_AnotherProxys(t *testing.T) {
	v := compile(t, cluster.Config{})
	old := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"service.kubernetes.io/service-proxy-name": "other"}},
		Spec: v1.ServiceSpec{Type: v1.ServiceTypeClusterIP, ClusterIP: "172.30.0.10", ExternalIPs: []string{"224.0.0.1"}}}
	ours := old.DeepCopy()
	ours.Labels = nil
	if said := v.apply(old, nil); said != "" {
		t.Errorf("another proxy's Service is refused: %s", said)
	}
	if said := v.apply(ours, old); said != "InvalidAddress: egress IP 224.0.0.1 is not a unicast address that packets can come from" {
		t.Errorf("when the label goes, apply says %q", said)
	}
}

// TestPolicy_PortBlocks: a number of source ports that nodes would not understand is refused, if the Service claims an egress IP.
func TestPolicy_PortBlocks(t *testing.T) {
	v := compile(t, cluster.Config{})
	for _, value := range []string{"0", "64", "512", "8192", "63", "500", "16384", "0512", "+64", " 64", "", "many", `"`, strings.Repeat("9", 120)} {
		svc := &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{cluster.PortBlockAnnotation: value}},
			Spec:       v1.ServiceSpec{Type: v1.ServiceTypeClusterIP, ClusterIP: "172.30.0.10", ExternalIPs: []string{"203.0.113.1"}},
		}
		want := ""
		if _, err := portblocks.ParseSize(value); err != nil {
			want = "InvalidEgressPortBlock: annotation network.openshift.io/egress-port-block: " + err.Error()
		}
		old := svc.DeepCopy()
		old.Annotations = nil
		if said := v.apply(svc, old); said != want {
			t.Errorf("%q: apply says %q, want %q", value, said, want)
		}
		svc.Spec.ExternalIPs = nil
		if said := v.apply(svc, nil); said != "" {
			t.Errorf("%q of a Service without an egress IP: apply says %q", value, said)
		}
	}
}
