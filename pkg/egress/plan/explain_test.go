package plan

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// world has one of everything that an explanation speaks of.
func world() Input {
	tcp := []Protocol{TCP}
	in := Input{
		ClusterCIDRs: prefixes("10.128.0.0/14"),
		ServiceCIDRs: prefixes("172.30.0.0/16"),
		Exclusions:   prefixes("169.254.0.0/16", "192.0.2.96/27"),
		ExcludeNodes: true,
		Nodes:        []Node{{Name: "node-1", InternalIPs: addrs("192.0.2.2", "192.0.2.100")}, {Name: "node-2", InternalIPs: addrs("192.0.2.105")}},
		Policies:     []Policy{{Source: "egress-snat-allowed-cidrs", Allowed: prefixes("203.0.113.0/24", "192.0.2.0/24")}},
		Claims: []Claim{
			claim("web", 9, "203.0.113.10", tcp, "10.128.0.11", "10.128.0.12"),
			claim("young", 1, "203.0.113.11", []Protocol{TCP, UDP}, "10.128.0.11"),
			claim("typo", 8, "0.0.0.0", tcp, "10.128.0.13"),
			claim("forbidden", 8, "198.51.100.1", tcp, "10.128.0.13"),
			claim("host", 8, "203.0.113.12", tcp, "192.0.2.2"),
			claim("everything", 8, "203.0.113.14", []Protocol{All}, "10.128.0.14"),
		},
	}
	for i := range in.Claims {
		in.Claims[i].Field = "spec.externalIPs[0]"
	}
	thief := claim("thief", 5, "203.0.113.10", tcp, "10.128.0.15")
	thief.Service.Namespace, thief.Field = "other", "spec.externalIPs[1]"
	foreign := claim("foreign", 4, "203.0.113.16", tcp, "10.128.0.15")
	foreign.Endpoints[0].Pod = Pod{"other", "theirs"}
	in.Claims = append(in.Claims, thief, foreign)
	return in
}

const webGives = "the Service ns/web gives it 203.0.113.10 (spec.externalIPs[0]) for tcp, an address that belongs to the namespace ns"

func TestExplainer_Packets(t *testing.T) {
	in := world()
	e := NewExplainer(in, Build(in))
	tests := []struct {
		pod         string
		protocol    Protocol
		destination string
		outcome     Outcome
		leavesAs    string
		because     string
		to          string
	}{
		{"10.128.0.11", TCP, "", EgressIP, "203.0.113.10", webGives, ""},
		{"10.128.0.11", TCP, "8.8.8.8", EgressIP, "203.0.113.10", webGives, "outside: in no cluster CIDR, service CIDR or exclusion"},
		{"10.128.0.11", UDP, "8.8.8.8", EgressIP, "203.0.113.11",
			"the Service ns/young gives it 203.0.113.11 (spec.externalIPs[0]) for udp, an address that belongs to the namespace ns", "outside: in no cluster CIDR, service CIDR or exclusion"},
		{"10.128.0.11", TCP, "10.131.0.1", Unchanged, "", webGives, "in the cluster CIDR 10.128.0.0/14, so never SNATed"},
		{"10.128.0.11", TCP, "169.254.169.254", Unchanged, "", webGives, "in 169.254.0.0/16, which is excluded, so never SNATed"},
		{"10.128.0.11", TCP, "192.0.2.2", Unchanged, "", webGives, "an address of the node node-1, and nodes are excluded, so never SNATed"},
		{"10.128.0.11", TCP, "192.0.2.101", Unchanged, "", webGives, "in 192.0.2.96/27, which is excluded, so never SNATed"},
		{"10.128.0.11", TCP, "203.0.113.10", Unchanged, "", webGives, "the pod's own egress IP, so never SNATed"},
		{"10.128.0.11", TCP, "172.30.0.1", EndpointDecides, "203.0.113.10", webGives,
			"in the service CIDR 172.30.0.0/16: the proxier sends it to an endpoint, whose address decides"},
		{"10.128.0.11", TCP, "203.0.113.11", EndpointDecides, "203.0.113.10", webGives,
			"an address of the Service ns/young: the proxier sends packets for its ports to an endpoint, whose address decides"},
		{"10.128.0.12", UDP, "", Unchanged, "", "the Service ns/web claims 203.0.113.10 for tcp only", ""},
		{"10.128.0.12", OtherProtocols, "", Unchanged, "", "the Service ns/web claims 203.0.113.10 for tcp only", ""},
		{"10.128.0.12", "icmp", "172.30.0.1", Unchanged, "", "the Service ns/web claims 203.0.113.10 for tcp only",
			"in the service CIDR 172.30.0.0/16: the proxier sends it to an endpoint, whose address decides"},
		{"10.128.0.13", TCP, "", Unchanged, "",
			"the claim of the Service ns/forbidden is refused (NotAllowed): egress-snat-allowed-cidrs does not allow 198.51.100.1 as an egress IP; " +
				"the claim of the Service ns/typo is refused (InvalidAddress): egress IP 0.0.0.0 is not a unicast address that packets can come from", ""},
		{"10.128.0.14", "icmp", "", EgressIP, "203.0.113.14",
			"the Service ns/everything gives it 203.0.113.14 (spec.externalIPs[0]) for all, an address that belongs to the namespace ns", ""},
		{"10.128.0.14", OtherProtocols, "", EgressIP, "203.0.113.14",
			"the Service ns/everything gives it 203.0.113.14 (spec.externalIPs[0]) for all, an address that belongs to the namespace ns", ""},
		{"10.128.0.15", TCP, "", Unchanged, "",
			"the claim of the Service other/thief is refused (OwnedByOtherNamespace): egress IP 203.0.113.10 belongs to the namespace ns, for its Service ns/web is older; " +
				"the claim of the Service ns/foreign is refused (PodOfOtherNamespace): endpoint 10.128.0.15 is the pod \"other/theirs\" of another namespace", ""},
		{"10.128.0.99", TCP, "", Unchanged, "", "no Service that claims an egress IP has the endpoint 10.128.0.99", ""},
		{"192.0.2.2", TCP, "", Unchanged, "",
			"the claim of the Service ns/host is refused (EndpointOutsideCluster): endpoint 192.0.2.2 is an address of the node node-1, not of a pod alone", ""},
		{"192.0.2.105", TCP, "", Unchanged, "",
			"no Service that claims an egress IP has the endpoint 192.0.2.105, which lies in no cluster CIDR (it is an address of the node node-2)", ""},
		{"203.0.113.10", TCP, "", Unchanged, "",
			"no Service that claims an egress IP has the endpoint 203.0.113.10, which lies in no cluster CIDR (it is an external address of the Service ns/web)", ""},
		{"fd00::1", TCP, "2001:db8::1", Unchanged, "", "no Service that claims an egress IP has the endpoint fd00::1, which lies in no cluster CIDR",
			"outside: in no cluster CIDR, service CIDR or exclusion"},
	}
	for _, test := range tests {
		t.Run(test.pod+" "+string(test.protocol)+" "+test.destination, func(t *testing.T) {
			packet := Packet{Pod: addr(test.pod), Protocol: test.protocol}
			if test.destination != "" {
				packet.Destination = addr(test.destination)
			}
			d := e.Explain(packet)
			type summary struct {
				Outcome               Outcome
				LeavesAs, Because, To string
			}
			got := summary{Outcome: d.Outcome, Because: d.Because}
			if d.LeavesAs.IsValid() {
				got.LeavesAs = d.LeavesAs.String()
			}
			if d.To != nil {
				got.To = d.To.String()
			}
			if diff := cmp.Diff(summary{test.outcome, test.leavesAs, test.because, test.to}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainer_NodesThatAreNotExcluded(t *testing.T) {
	in := world()
	in.ExcludeNodes = false
	e := NewExplainer(in, Build(in))
	d := e.Explain(Packet{Pod: addr("10.128.0.11"), Protocol: TCP, Destination: addr("192.0.2.2")})
	if d.Outcome != EgressIP || d.To.Kind != Outside || !strings.HasSuffix(d.To.String(), "(it is also an address of the node node-1)") {
		t.Errorf("%+v, to %s", d, d.To)
	}
}

// TestExplainer_ExternalIPOnNode: what the proxier does not serve there goes to the node.
func TestExplainer_ExternalIPOnNode(t *testing.T) {
	in := world()
	in.AllowNodeIPs = true
	in.Claims = append(in.Claims, claim("onnode", 2, "192.0.2.2", []Protocol{TCP}, "10.128.0.77"))
	e := NewExplainer(in, Build(in))
	d := e.Explain(Packet{Pod: addr("10.128.0.11"), Protocol: TCP, Destination: addr("192.0.2.2")})
	if d.Outcome != EndpointDecides || d.LeavesAs.IsValid() || !d.To.Excluded || d.To.Node != "node-1" {
		t.Errorf("%+v, to %+v", d, d.To)
	}
}

func TestExplainer_Protocols(t *testing.T) {
	in := world()
	e := NewExplainer(in, Build(in))
	for pod, want := range map[string][]Protocol{
		"10.128.0.11": {TCP, UDP, OtherProtocols}, "10.128.0.13": {TCP, OtherProtocols},
		"10.128.0.14": {All}, "10.128.0.99": {OtherProtocols},
	} {
		if diff := cmp.Diff(want, e.Protocols(addr(pod))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pod, diff)
		}
	}
}

func TestExplainer_Service(t *testing.T) {
	in := world()
	web := &in.Claims[0]
	web.Protocols = []Protocol{UDP, TCP, UDP}
	// Two entries for one address, of which one is not the Service's own; and a duplicate.
	web.Endpoints = append(web.Endpoints, Endpoint{Addr: addr("10.128.0.12"), Pod: Pod{"other", "theirs"}}, Endpoint{Addr: addr("10.128.0.11")})
	e := NewExplainer(in, Build(in))
	tests := []struct {
		service Service
		owner   Service
		refusal Reason
		// Endpoint, protocol, what it leaves as, by which Service, refused for which reason.
		endpoints []string
	}{
		{Service{"ns", "web"}, Service{"ns", "web"}, "", []string{
			"10.128.0.11 tcp 203.0.113.10 ns/web ", "10.128.0.11 udp 203.0.113.10 ns/web ",
			"10.128.0.12 tcp 203.0.113.10 ns/web ", "10.128.0.12 udp 203.0.113.10 ns/web ",
			"10.128.0.12(other/theirs) tcp 203.0.113.10 ns/web PodOfOtherNamespace", "10.128.0.12(other/theirs) udp 203.0.113.10 ns/web PodOfOtherNamespace",
		}},
		{Service{"ns", "young"}, Service{"ns", "young"}, "", []string{
			"10.128.0.11 tcp 203.0.113.10 ns/web BoundByOlderService", "10.128.0.11 udp 203.0.113.10 ns/web BoundByOlderService",
		}},
		{Service{"other", "thief"}, Service{"ns", "web"}, OwnedByOtherNamespace, []string{"10.128.0.15 tcp - - OwnedByOtherNamespace"}},
		{Service{"ns", "typo"}, Service{}, InvalidAddress, []string{"10.128.0.13 tcp - - InvalidAddress"}},
	}
	for _, test := range tests {
		t.Run(test.service.String(), func(t *testing.T) {
			states := e.ExplainService(test.service, netip.Addr{})
			if len(states) != 1 {
				t.Fatalf("%d claims, want one", len(states))
			}
			state := states[0]
			var refusal Reason
			if state.Refusal != nil {
				refusal = state.Refusal.Reason
			}
			if state.Owner != test.owner || refusal != test.refusal {
				t.Errorf("owner %s, refusal %q; want %s, %q", state.Owner, refusal, test.owner, test.refusal)
			}
			if diff := cmp.Diff(test.endpoints, summaries(state)); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
		})
	}
	if states := e.ExplainService(Service{"ns", "nobody"}, netip.Addr{}); len(states) > 0 {
		t.Error("a Service without a claim is known")
	}
}

func summaries(state ClaimState) []string {
	var result []string
	for _, s := range state.Endpoints {
		endpoint, leavesAs, by, reason := s.Endpoint.Addr.String(), "-", "-", Reason("")
		if s.Endpoint.Pod != (Pod{}) {
			endpoint += "(" + s.Endpoint.Pod.String() + ")"
		}
		if b := s.Decision.Binding; b != nil {
			leavesAs, by = b.EgressIP.String(), b.Service.String()
		}
		if s.Refusal != nil {
			reason = s.Refusal.Reason
		}
		result = append(result, strings.Join([]string{endpoint, string(s.Decision.Protocol), leavesAs, by, string(reason)}, " "))
	}
	return result
}

func TestExplainer_Endpoint(t *testing.T) {
	in := world()
	in.Claims[0].Endpoints = []Endpoint{
		{Addr: addr("10.128.0.12"), Pod: Pod{"a", "theirs"}}, {Addr: addr("10.128.0.12"), Pod: Pod{"ns", "mine"}, Node: "node-1"}, {Addr: addr("10.128.0.13")},
	}
	e := NewExplainer(in, Build(in))
	web := Service{"ns", "web"}
	got, ok := e.Endpoint(web, addr("10.128.0.12"))
	if want := in.Claims[0].Endpoints[1]; !ok || got != want {
		t.Errorf("got %v, %v; want %v", got, ok, want)
	}
	if _, ok := e.Endpoint(web, addr("10.128.0.14")); ok {
		t.Error("found an endpoint that is not there")
	}
	if _, ok := e.Endpoint(Service{"ns", "nobody"}, addr("10.128.0.12")); ok {
		t.Error("found an endpoint of a Service that is not there")
	}
	if got := e.Endpoints(addr("10.128.0.12")); len(got) != 2 {
		t.Errorf("got %v; want both entries", got)
	}
}

// TestExplainer_AgreesWithPlan: for any packet, what is said is what the plan holds.
func TestExplainer_AgreesWithPlan(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		in := randomInput(r)
		before := shuffled(r, in)
		p := Build(in)
		e := NewExplainer(in, p)
		for _, b := range p.Bindings {
			d := e.Explain(Packet{Pod: b.Pod, Protocol: b.Protocol})
			if d.Outcome != EgressIP || d.LeavesAs != b.EgressIP || *d.Binding != b {
				t.Fatalf("seed %d: %v is explained as %+v", seed, b, d)
			}
			if d.Owner.Namespace != b.Service.Namespace {
				t.Fatalf("seed %d: %v is owned by %v", seed, b, d.Owner)
			}
		}
		for _, c := range in.Claims {
			states := e.ExplainService(c.Service, netip.Addr{})
			if len(states) == 0 {
				t.Fatalf("seed %d: %s is not known", seed, c.Service)
			}
			for _, s := range states[0].Endpoints {
				bound := s.Decision.Binding != nil && s.Decision.Binding.EgressIP == c.EgressIP
				if s.Refusal == nil && !bound {
					t.Fatalf("seed %d: %s %v %s is neither refused nor bound", seed, c.Service, s.Endpoint, s.Decision.Protocol)
				}
			}
		}
		if q := Build(before); !p.Equal(q) || slices.ContainsFunc(p.Bindings, func(b Binding) bool { return !b.Pod.IsValid() }) {
			t.Fatalf("seed %d: explaining changed the input", seed)
		}
	}
}

// TestExplainer_SeveralEgressIPs: each is a claim of its own, with the pods that leave from it.
func TestExplainer_SeveralEgressIPs(t *testing.T) {
	at := func(ip, node string) Endpoint { return Endpoint{Addr: addr(ip), Pod: Pod{"ns", "pod"}, Node: node} }
	in := Input{
		ClusterCIDRs: prefixes("10.128.0.0/14"), Policies: []Policy{{Source: "policy", Allowed: prefixes("203.0.113.0/31")}},
		Claims: []Claim{{
			Service: Service{"ns", "web"}, EgressIP: addr("203.0.113.9"), Others: []Address{{IP: addr("203.0.113.0")}, {IP: addr("203.0.113.1")}},
			Protocols: []Protocol{TCP}, Endpoints: []Endpoint{at("10.128.0.5", "here"), at("10.128.0.6", "there"), at("10.128.0.7", "there")},
		}},
		Choices: Choices{"here": {"ns/web": {addr("10.128.0.5"): addr("203.0.113.1")}}, "there": {"ns/web": {addr("10.128.0.6"): addr("203.0.113.0")}}},
	}
	e := NewExplainer(in, Build(in))
	var got []string
	for _, state := range e.ExplainService(Service{"ns", "web"}, netip.Addr{}) {
		line := state.EgressIP.String()
		if state.Refusal != nil {
			line += " " + string(state.Refusal.Reason)
		}
		got = append(got, line)
		got = append(got, summaries(state)...)
	}
	want := []string{
		"203.0.113.9 NotAllowed", "10.128.0.7(ns/pod) tcp - - AddressNotChosen",
		"203.0.113.0", "10.128.0.6(ns/pod) tcp 203.0.113.0 ns/web ",
		"203.0.113.1", "10.128.0.5(ns/pod) tcp 203.0.113.1 ns/web ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	d := e.Explain(Packet{Pod: addr("10.128.0.5"), Protocol: TCP})
	if len(d.Alternatives) != 3 || !strings.Contains(d.Because, "one of the Service's 3 egress IPs, chosen by the pod's node") {
		t.Errorf("alternatives %v, because %s", d.Alternatives, d.Because)
	}
	if d := e.Explain(Packet{Pod: addr("10.128.0.7"), Protocol: TCP}); !strings.Contains(d.Because, "has not yet published") {
		t.Errorf("because %s", d.Because)
	}
}
