package plan

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var compareNetip = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func addrs(list ...string) (result []netip.Addr) {
	for _, s := range list {
		result = append(result, addr(s))
	}
	return result
}

func prefixes(list ...string) (result []netip.Prefix) {
	for _, s := range list {
		result = append(result, netip.MustParsePrefix(s))
	}
	return result
}

func at(list ...string) (result []Endpoint) {
	for _, s := range list {
		result = append(result, Endpoint{Addr: addr(s)})
	}
	return result
}

func claim(name string, age int, egressIP string, protocols []Protocol, endpoints ...string) Claim {
	return Claim{
		Service:   Service{Namespace: "ns", Name: name},
		Created:   time.Unix(int64(1000-age), 0),
		EgressIP:  addr(egressIP),
		Protocols: protocols,
		Endpoints: at(endpoints...),
	}
}

func binding(pod string, protocol Protocol, egressIP, service string) Binding {
	return Binding{Pod: addr(pod), Protocol: protocol, EgressIP: addr(egressIP), Service: Service{"ns", service}}
}

func TestBuild_BindsEndpoints(t *testing.T) {
	tcp := []Protocol{TCP}
	v4, v6 := prefixes("10.128.0.0/14"), prefixes("fd00:10::/32")
	tests := []struct {
		name     string
		input    Input
		bindings []Binding
		refusals []Refusal // messages are not compared
	}{{
		name:  "nothing claimed",
		input: Input{ClusterCIDRs: v4},
	}, {
		name: "every endpoint, every protocol",
		input: Input{ClusterCIDRs: v4, Claims: []Claim{
			claim("web", 0, "203.0.113.1", []Protocol{UDP, TCP, TCP}, "10.128.0.5", "10.129.0.5", "10.128.0.5"),
		}},
		bindings: []Binding{
			binding("10.128.0.5", TCP, "203.0.113.1", "web"),
			binding("10.128.0.5", UDP, "203.0.113.1", "web"),
			binding("10.129.0.5", TCP, "203.0.113.1", "web"),
			binding("10.129.0.5", UDP, "203.0.113.1", "web"),
		},
	}, {
		name: "IPv6",
		input: Input{ClusterCIDRs: v6, Claims: []Claim{
			claim("web", 0, "2001:db8::1", []Protocol{SCTP}, "fd00:10::5"),
		}},
		bindings: []Binding{binding("fd00:10::5", SCTP, "2001:db8::1", "web")},
	}, {
		name: "several cluster CIDRs",
		input: Input{ClusterCIDRs: prefixes("10.128.0.0/14", "172.20.0.0/16"), Claims: []Claim{
			claim("web", 0, "203.0.113.1", tcp, "172.20.0.5", "10.128.0.5"),
		}},
		bindings: []Binding{
			binding("10.128.0.5", TCP, "203.0.113.1", "web"),
			binding("172.20.0.5", TCP, "203.0.113.1", "web"),
		},
	}, {
		name: "no cluster CIDR",
		input: Input{Claims: []Claim{
			claim("web", 0, "203.0.113.1", tcp, "10.128.0.5"),
		}},
		refusals: []Refusal{{Service: Service{"ns", "web"}, EgressIP: addr("203.0.113.1"), Reason: NoClusterCIDR}},
	}, {
		name: "no proxier",
		input: Input{ClusterCIDRs: v6, NoProxier: true, Claims: []Claim{
			claim("web", 0, "2001:db8::1", tcp, "fd00:10::5"),
		}},
		refusals: []Refusal{{Service: Service{"ns", "web"}, EgressIP: addr("2001:db8::1"), Reason: NoProxier}},
	}, {
		name: "host network endpoint",
		input: Input{ClusterCIDRs: v4, Claims: []Claim{
			claim("web", 0, "203.0.113.1", tcp, "10.128.0.5", "192.0.2.2"),
		}},
		bindings: []Binding{binding("10.128.0.5", TCP, "203.0.113.1", "web")},
		refusals: []Refusal{{Service: Service{"ns", "web"}, EgressIP: addr("203.0.113.1"), Pod: addr("192.0.2.2"), Reason: EndpointOutsideCluster}},
	}, {
		name: "the older Service wins, per protocol",
		input: Input{ClusterCIDRs: v4, Claims: []Claim{
			claim("young", 1, "203.0.113.1", []Protocol{TCP, UDP}, "10.128.0.5"),
			claim("old", 2, "203.0.113.2", tcp, "10.128.0.5"),
		}},
		bindings: []Binding{
			binding("10.128.0.5", TCP, "203.0.113.2", "old"),
			binding("10.128.0.5", UDP, "203.0.113.1", "young"),
		},
		refusals: []Refusal{{Service: Service{"ns", "young"}, EgressIP: addr("203.0.113.1"), Pod: addr("10.128.0.5"), Protocol: TCP, Reason: BoundByOlderService}},
	}, {
		name: "of the same age the first by name wins",
		input: Input{ClusterCIDRs: v4, Claims: []Claim{
			claim("b", 1, "203.0.113.1", tcp, "10.128.0.5"),
			claim("a", 1, "203.0.113.2", tcp, "10.128.0.5"),
		}},
		bindings: []Binding{binding("10.128.0.5", TCP, "203.0.113.2", "a")},
		refusals: []Refusal{{Service: Service{"ns", "b"}, EgressIP: addr("203.0.113.1"), Pod: addr("10.128.0.5"), Protocol: TCP, Reason: BoundByOlderService}},
	}, {
		name: "a pod is of one namespace",
		input: Input{ClusterCIDRs: v4, Claims: []Claim{
			claim("old", 2, "203.0.113.1", tcp, "10.128.0.5"),
			{Service: Service{"other", "young"}, Created: time.Unix(999, 0), EgressIP: addr("203.0.113.2"), Protocols: []Protocol{UDP}, Endpoints: at("10.128.0.5")},
		}},
		bindings: []Binding{binding("10.128.0.5", TCP, "203.0.113.1", "old")},
		refusals: []Refusal{{Service: Service{"other", "young"}, EgressIP: addr("203.0.113.2"), Pod: addr("10.128.0.5"), Protocol: UDP, Reason: BoundByOlderService}},
	}, {
		name: "two Services that agree",
		input: Input{ClusterCIDRs: v4, Claims: []Claim{
			claim("b", 1, "203.0.113.1", tcp, "10.128.0.5"),
			claim("a", 2, "203.0.113.1", tcp, "10.128.0.5"),
		}},
		bindings: []Binding{binding("10.128.0.5", TCP, "203.0.113.1", "a")},
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Build(test.input)
			if diff := cmp.Diff(test.bindings, got.Bindings, compareNetip); diff != "" {
				t.Errorf("bindings (-want +got):\n%s", diff)
			}
			for i := range got.Refusals {
				if got.Refusals[i].Message == "" {
					t.Errorf("refusal without a message: %+v", got.Refusals[i])
				}
				got.Refusals[i].Message = ""
			}
			if diff := cmp.Diff(test.refusals, got.Refusals, compareNetip); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuild_UnusableEgressIPs(t *testing.T) {
	for _, ip := range []string{
		"0.0.0.0", "0.1.2.3", "127.0.0.1", "169.254.1.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "fe80::1", "ff02::1", "::ffff:203.0.113.1", "2001:db8::1%eth0",
	} {
		p := Build(Input{
			ClusterCIDRs: prefixes("10.128.0.0/14", "fd00:10::/32"),
			Claims:       []Claim{claim("web", 0, ip, []Protocol{TCP}, "10.128.0.5")},
		})
		if len(p.Bindings) != 0 || len(p.Refusals) != 1 || p.Refusals[0].Reason != InvalidAddress {
			t.Errorf("egress IP %s: got bindings %v, refusals %v; want one refusal, %s", ip, p.Bindings, p.Refusals, InvalidAddress)
		}
	}
	for _, ip := range []string{"203.0.113.1", "10.0.0.1", "192.168.64.57", "2001:db8::1", "fd00::1"} {
		if !usable(addr(ip)) {
			t.Errorf("%s is refused; want it usable", ip)
		}
	}
}

// randomInput makes a small world in which claims collide often.
func randomInput(r *rand.Rand) Input {
	in := Input{
		ClusterCIDRs: prefixes("10.128.0.0/16", "10.130.0.0/16"),
		ServiceCIDRs: prefixes("203.0.113.0/32"),
		Exclusions:   prefixes("192.0.2.0/24", "198.51.100.0/24", "192.0.2.0/24"),
		ExcludeNodes: r.IntN(2) == 0,
		AllowNodeIPs: r.IntN(2) == 0,
		Nodes: []Node{
			{Name: "node-1", InternalIPs: addrs("203.0.113.1", "192.0.2.1")},
			{Name: "node-2", Created: time.Unix(1, 0), InternalIPs: addrs("10.128.0.1", "203.0.113.1")},
			{Name: "node-3", InternalIPs: addrs("203.0.113.2", "192.0.2.3")},
		},
	}
	if r.IntN(2) == 0 {
		in.NamespaceCIDRs = map[string][]netip.Prefix{"a": prefixes("203.0.113.2/32")}
	}
	for i := range r.IntN(8) {
		c := claim(fmt.Sprintf("s%d", i), r.IntN(3), fmt.Sprintf("203.0.113.%d", r.IntN(4)), nil)
		c.Service.Namespace = []string{"a", "b"}[r.IntN(2)]
		if r.IntN(8) == 0 {
			c.Refused, c.RefusedBecause = InvalidProtocol, "a port has no meaning"
		}
		for range r.IntN(4) {
			c.Protocols = append(c.Protocols, []Protocol{TCP, UDP, SCTP}[r.IntN(3)])
		}
		for range r.IntN(6) {
			c.Endpoints = append(c.Endpoints, Endpoint{
				Addr: netip.AddrFrom4([4]byte{10, byte(128 + r.IntN(4)), 0, byte(r.IntN(4))}),
				Pod:  []Pod{{}, {"a", "pod"}, {"b", "pod"}}[r.IntN(3)],
			})
		}
		in.Claims = append(in.Claims, c)
	}
	return in
}

func shuffled(r *rand.Rand, in Input) Input {
	out := in
	out.ClusterCIDRs, out.Exclusions = slices.Clone(in.ClusterCIDRs), slices.Clone(in.Exclusions)
	out.Nodes, out.Claims = slices.Clone(in.Nodes), slices.Clone(in.Claims)
	slices.Reverse(out.Exclusions)
	slices.Reverse(out.Nodes)
	r.Shuffle(len(out.ClusterCIDRs), func(i, j int) {
		out.ClusterCIDRs[i], out.ClusterCIDRs[j] = out.ClusterCIDRs[j], out.ClusterCIDRs[i]
	})
	r.Shuffle(len(out.Claims), func(i, j int) { out.Claims[i], out.Claims[j] = out.Claims[j], out.Claims[i] })
	for i := range out.Claims {
		c := &out.Claims[i]
		c.Endpoints, c.Protocols = slices.Clone(c.Endpoints), slices.Clone(c.Protocols)
		r.Shuffle(len(c.Endpoints), func(i, j int) { c.Endpoints[i], c.Endpoints[j] = c.Endpoints[j], c.Endpoints[i] })
		r.Shuffle(len(c.Protocols), func(i, j int) { c.Protocols[i], c.Protocols[j] = c.Protocols[j], c.Protocols[i] })
	}
	return out
}

func TestBuild_Properties(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		in := randomInput(r)
		p := Build(in)
		if q := Build(shuffled(r, in)); !p.Equal(q) {
			t.Fatalf("seed %d: the input's order matters: %s", seed, cmp.Diff(p, q, compareNetip))
		}
		if !slices.IsSortedFunc(p.Bindings, CompareBindings) || !slices.IsSortedFunc(p.Refusals, CompareRefusals) {
			t.Fatalf("seed %d: the plan is not sorted", seed)
		}
		nobodyWearsAnothersAddress(t, seed, p)
		seen := map[target]bool{}
		for _, b := range p.Bindings {
			if seen[target{b.Pod, b.Protocol}] {
				t.Fatalf("seed %d: %v/%s is bound twice", seed, b.Pod, b.Protocol)
			}
			seen[target{b.Pod, b.Protocol}] = true
			if !slices.ContainsFunc(p.ClusterCIDRs, func(c netip.Prefix) bool { return c.Contains(b.Pod) }) {
				t.Fatalf("seed %d: %v lies in no cluster CIDR", seed, b.Pod)
			}
		}
		everyWishIsAnswered(t, seed, in, p)
	}
}

// nobodyWearsAnothersAddress: an egress IP is bound by Services of one namespace only.
func nobodyWearsAnothersAddress(t *testing.T, seed uint64, p Plan) {
	t.Helper()
	owner := map[netip.Addr]string{}
	for _, b := range p.Bindings {
		if other, owned := owner[b.EgressIP]; owned && other != b.Service.Namespace {
			t.Fatalf("seed %d: %v is given to the namespaces %s and %s", seed, b.EgressIP, other, b.Service.Namespace)
		}
		owner[b.EgressIP] = b.Service.Namespace
	}
}

// everyWishIsAnswered: each (pod, protocol) of each claim is bound to the claim's IP, maybe
// by another Service, or refused; nothing is skipped silently.
func everyWishIsAnswered(t *testing.T, seed uint64, in Input, p Plan) {
	t.Helper()
	for _, c := range in.Claims {
		for _, endpoint := range c.Endpoints {
			pod := endpoint.Addr
			for _, protocol := range c.Protocols {
				if foreign := endpoint.Pod.Namespace != "" && endpoint.Pod.Namespace != c.Service.Namespace; foreign {
					if !slices.ContainsFunc(p.Refusals, func(r Refusal) bool { return r.Service == c.Service }) {
						t.Fatalf("seed %d: %s names %s, and that is not refused", seed, c.Service, endpoint.Pod)
					}
					continue
				}
				bound := slices.ContainsFunc(p.Bindings, func(b Binding) bool {
					return b.Pod == pod && b.Protocol == protocol && b.EgressIP == c.EgressIP
				})
				refused := slices.ContainsFunc(p.Refusals, func(r Refusal) bool {
					return r.Reason != PodOfOtherNamespace && r.Service == c.Service && (!r.Pod.IsValid() || r.Pod == pod) && (r.Protocol == "" || r.Protocol == protocol)
				})
				if !bound && !refused {
					t.Fatalf("seed %d: %s %v %s: bound %v, refused %v; want one of them", seed, c.Service, pod, protocol, bound, refused)
				}
			}
		}
	}
}

func TestDiff_Applied(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		before, after := Build(randomInput(r)), Build(randomInput(r))
		added, removed := diff(nil, nil, before.Bindings, after.Bindings, CompareBindings)
		applied := slices.DeleteFunc(slices.Clone(before.Bindings), func(b Binding) bool { return slices.Contains(removed, b) })
		applied = append(applied, added...)
		slices.SortFunc(applied, CompareBindings)
		if diff := cmp.Diff(after.Bindings, applied, compareNetip); diff != "" {
			t.Fatalf("seed %d: before - removed + added is not after (-want +got):\n%s", seed, diff)
		}
	}
}

func TestPlan_EgressIPs(t *testing.T) {
	p := Build(Input{ClusterCIDRs: prefixes("10.128.0.0/14"), Claims: []Claim{
		claim("a", 1, "203.0.113.9", []Protocol{TCP, UDP}, "10.128.0.5"),
		claim("b", 1, "203.0.113.1", []Protocol{TCP}, "10.128.0.6"),
	}})
	if diff := cmp.Diff(addrs("203.0.113.1", "203.0.113.9"), p.EgressIPs(), compareNetip); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
