package plan

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// owned returns a claim of the Service web of a namespace.
func owned(namespace string, age int, egressIP string, endpoints ...string) Claim {
	c := claim("web", age, egressIP, []Protocol{TCP}, endpoints...)
	c.Service.Namespace = namespace
	return c
}

func held(namespace string, age int, ips ...string) Holding {
	h := Holding{Service: Service{namespace, "web"}, Created: time.Unix(int64(1000-age), 0)}
	for _, ip := range ips {
		h.Addresses = append(h.Addresses, Address{IP: addr(ip)})
	}
	return h
}

// TestBuild_WhoMayWearAnAddress has the rules about claims, by the reason that each namespace's
// only Service is refused for; those that are bound are left out.
func TestBuild_WhoMayWearAnAddress(t *testing.T) {
	v4 := prefixes("10.128.0.0/14")
	loadBalancer := owned("a", 0, "203.0.113.1", "10.128.0.5")
	loadBalancer.LoadBalancer = true
	misspelt := owned("old", 2, "203.0.113.1", "10.128.0.5")
	misspelt.Refused, misspelt.RefusedBecause = InvalidAnnotation, "no such word"
	noExternalIPs := []Policy{{Source: "policy", ExternalIPsOnly: true}}
	annotated := owned("a", 0, "203.0.113.1", "10.128.0.5")
	annotated.Annotated = true
	both := owned("a", 9, "203.0.113.1", "10.128.0.6")
	both.Service.Name = "other"
	pinned := func(namespace, cidr string) map[string][]netip.Prefix {
		return map[string][]netip.Prefix{namespace: prefixes(cidr)}
	}
	tests := []struct {
		name  string
		input Input
		want  map[string]Reason
	}{
		{"the older namespace has it", Input{ClusterCIDRs: v4, Claims: []Claim{
			owned("thief", 1, "203.0.113.1", "10.128.0.6"), owned("old", 2, "203.0.113.1", "10.128.0.5"),
		}}, map[string]Reason{"thief": OwnedByOtherNamespace}},
		{"of the same age the first by namespace", Input{ClusterCIDRs: v4, Claims: []Claim{
			owned("b", 1, "203.0.113.1", "10.128.0.6"), owned("a", 1, "203.0.113.1", "10.128.0.5"),
		}}, map[string]Reason{"b": OwnedByOtherNamespace}},
		{"ownership needs no endpoint", Input{ClusterCIDRs: v4, Claims: []Claim{
			owned("thief", 1, "203.0.113.1", "10.128.0.6"), owned("old", 2, "203.0.113.1"),
		}}, map[string]Reason{"thief": OwnedByOtherNamespace}},
		{"a typing error gives nothing away", Input{ClusterCIDRs: v4, Claims: []Claim{
			owned("thief", 1, "203.0.113.1", "10.128.0.6"), misspelt,
		}}, map[string]Reason{"thief": OwnedByOtherNamespace, "old": InvalidAnnotation}},
		{"another of the older Service's addresses", Input{ClusterCIDRs: v4, Holdings: []Holding{held("old", 2, "203.0.113.1", "203.0.113.2")}, Claims: []Claim{
			owned("thief", 1, "203.0.113.2", "10.128.0.6"), owned("old", 2, "203.0.113.1", "10.128.0.5"),
		}}, map[string]Reason{"thief": OwnedByOtherNamespace}},
		{"an address of an older Service that claims nothing", Input{ClusterCIDRs: v4, Holdings: []Holding{held("old", 2, "203.0.113.1")}, Claims: []Claim{
			owned("thief", 1, "203.0.113.1", "10.128.0.6"),
		}}, map[string]Reason{"thief": OwnedByOtherNamespace}},
		{"who may not have it does not own it", Input{ClusterCIDRs: v4,
			NamespaceCIDRs: map[string][]netip.Prefix{"old": prefixes("198.51.100.0/24")},
			Claims: []Claim{
				owned("young", 1, "203.0.113.1", "10.128.0.6"), owned("old", 2, "203.0.113.1", "10.128.0.5"),
			}}, map[string]Reason{"old": NotAllowed}},
		{"inside the cluster CIDR", Input{ClusterCIDRs: v4, Claims: []Claim{owned("a", 0, "10.131.255.254", "10.128.0.5")}},
			map[string]Reason{"a": AddressInCluster}},
		{"inside a service CIDR", Input{ClusterCIDRs: v4, ServiceCIDRs: prefixes("172.30.0.0/16"),
			Claims: []Claim{owned("a", 0, "172.30.0.1", "10.128.0.5")}}, map[string]Reason{"a": AddressInCluster}},
		{"a node's primary address", Input{ClusterCIDRs: v4, Nodes: []Node{{Name: "n", InternalIPs: addrs("192.0.2.2")}},
			Claims: []Claim{owned("a", 0, "192.0.2.2", "10.128.0.5")}}, map[string]Reason{"a": NodeAddress}},
		{"a node's primary address, allowed", Input{ClusterCIDRs: v4, AllowNodeIPs: true, Nodes: []Node{{Name: "n", InternalIPs: addrs("192.0.2.2")}},
			Claims: []Claim{owned("a", 0, "192.0.2.2", "10.128.0.5")}}, nil},
		{"another address of a node", Input{ClusterCIDRs: v4, Nodes: []Node{{Name: "n", InternalIPs: addrs("192.0.2.2", "203.0.113.1")}},
			Claims: []Claim{owned("a", 0, "203.0.113.1", "10.128.0.5")}}, nil},
		{"the API server's address", Input{ClusterCIDRs: v4, AllowNodeIPs: true, APIServers: addrs("198.51.100.9", "192.0.2.9"),
			Claims: []Claim{owned("a", 0, "192.0.2.9", "10.128.0.5")}}, map[string]Reason{"a": APIServerAddress}},
		{"the API server's address, on a node of which addresses are allowed", Input{ClusterCIDRs: v4, AllowNodeIPs: true, APIServers: addrs("192.0.2.9"), Nodes: []Node{{Name: "n", InternalIPs: addrs("192.0.2.9")}},
			Claims: []Claim{owned("a", 0, "192.0.2.9", "10.128.0.5")}}, nil},
		{"outside of what is allowed", Input{ClusterCIDRs: v4, Policies: []Policy{{Source: "p", Allowed: prefixes("198.51.100.0/24", "2001:db8::/32")}},
			Claims: []Claim{owned("a", 0, "203.0.113.1", "10.128.0.5")}}, map[string]Reason{"a": NotAllowed}},
		{"rejected wins over allowed", Input{ClusterCIDRs: v4, Policies: []Policy{{Source: "p", Allowed: prefixes("203.0.113.0/24"), Rejected: prefixes("203.0.113.0/31")}},
			Claims: []Claim{owned("a", 0, "203.0.113.1", "10.128.0.5"), owned("b", 0, "203.0.113.2", "10.128.0.6")}}, map[string]Reason{"a": NotAllowed}},
		{"an empty policy forbids all", Input{ClusterCIDRs: v4, Policies: []Policy{{Source: "p"}},
			Claims: []Claim{owned("a", 0, "203.0.113.1", "10.128.0.5")}}, map[string]Reason{"a": NotAllowed}},
		{"a policy of unknown origin forbids too", Input{ClusterCIDRs: v4, Policies: []Policy{{}},
			Claims: []Claim{owned("a", 0, "203.0.113.1", "10.128.0.5")}}, map[string]Reason{"a": NotAllowed}},
		{"all policies must allow", Input{ClusterCIDRs: v4, Policies: []Policy{{Source: "p", Allowed: prefixes("203.0.113.0/24")}, {Source: "q", Allowed: prefixes("203.0.113.2/32")}},
			Claims: []Claim{owned("a", 0, "203.0.113.1", "10.128.0.5"), owned("b", 0, "203.0.113.2", "10.128.0.6")}}, map[string]Reason{"a": NotAllowed}},
		{"named by the annotation alone, and nothing allows it", Input{ClusterCIDRs: v4, Claims: []Claim{annotated}}, map[string]Reason{"a": NotAllowed}},
		{"named by the annotation alone, in the allowed networks", Input{ClusterCIDRs: v4, Policies: []Policy{{Source: "p", Allowed: prefixes("203.0.113.0/24")}}, Claims: []Claim{annotated}}, nil},
		{"named by the annotation alone, in a network of the namespace", Input{ClusterCIDRs: v4, NamespaceCIDRs: pinned("a", "203.0.113.0/24"), Claims: []Claim{annotated}}, nil},
		{"named by the annotation alone, in a network of all others", Input{ClusterCIDRs: v4, NamespaceCIDRs: pinned("*", "203.0.113.0/24"), Claims: []Claim{annotated}}, nil},
		{"named by the annotation alone, and networks of another namespace are elsewhere", Input{ClusterCIDRs: v4, NamespaceCIDRs: pinned("b", "198.51.100.0/24"), Claims: []Claim{annotated}}, map[string]Reason{"a": NotAllowed}},
		{"named by the annotation alone, and only external IPs are allowed", Input{ClusterCIDRs: v4, Policies: []Policy{{Source: "policy", ExternalIPsOnly: true, Allowed: prefixes("203.0.113.0/24")}}, Claims: []Claim{annotated}}, map[string]Reason{"a": NotAllowed}},
		{"named by the annotation alone does not own it", Input{ClusterCIDRs: v4, Holdings: []Holding{{Service: Service{"b", "web"}, Created: time.Unix(0, 0), Addresses: []Address{{IP: addr("203.0.113.1"), Annotated: true}}}},
			Claims: []Claim{owned("a", 0, "203.0.113.1", "10.128.0.5")}}, nil},
		{"named by the annotation alone of one Service, and an external IP of another", Input{ClusterCIDRs: v4, Claims: []Claim{annotated, both}}, map[string]Reason{"a": NotAllowed}},
		{"a policy on external IPs does not speak of load balancers", Input{ClusterCIDRs: v4, Policies: noExternalIPs, Claims: []Claim{loadBalancer}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := Build(test.input)
			got := map[string]Reason{}
			for _, r := range p.Refusals {
				got[r.Service.Namespace] = r.Reason
			}
			if diff := cmp.Diff(test.want, got, compareNetip); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, b := range p.Bindings {
				if got[b.Service.Namespace] != "" && b.Service.Name == "web" {
					t.Errorf("refused and bound: %v", b)
				}
			}
		})
	}
}

// TestBuild_OwnershipPassesOn: from the oldest to the next oldest when the owner's last Service
// is gone, whatever ports and protocols are.
func TestBuild_OwnershipPassesOn(t *testing.T) {
	claims := []Claim{owned("a", 9, "203.0.113.1", "10.128.0.5"), owned("b", 8, "203.0.113.1", "10.128.0.6"), owned("c", 7, "203.0.113.1", "10.128.0.7")}
	claims[1].Protocols = []Protocol{UDP}
	for i := range claims {
		p := Build(Input{ClusterCIDRs: prefixes("10.128.0.0/14"), Claims: claims[i:]})
		if len(p.Bindings) != 1 || p.Bindings[0].Service != claims[i].Service || len(p.Refusals) != len(claims)-i-1 {
			t.Errorf("with %d claims left: bindings %v, refusals %v", len(claims)-i, p.Bindings, p.Refusals)
		}
	}
}

func TestBuild_PodOfOtherNamespace(t *testing.T) {
	c := owned("a", 0, "203.0.113.1", "10.128.0.5", "10.128.0.6", "10.128.0.7")
	c.Endpoints[0].Pod = Pod{"a", "mine"}
	c.Endpoints[1].Pod = Pod{"b", "theirs"}
	p := Build(Input{ClusterCIDRs: prefixes("10.128.0.0/14"), Claims: []Claim{c}})
	var bound []netip.Addr
	for _, b := range p.Bindings {
		bound = append(bound, b.Pod)
	}
	if diff := cmp.Diff(addrs("10.128.0.5", "10.128.0.7"), bound, compareNetip); diff != "" {
		t.Errorf("bound (-want +got):\n%s", diff)
	}
	if len(p.Refusals) != 1 || p.Refusals[0].Reason != PodOfOtherNamespace || p.Refusals[0].Pod != addr("10.128.0.6") {
		t.Errorf("refusals %v", p.Refusals)
	}
}

// TestBuild_HundredServicesOfOnePod: the oldest wins, and each of the others learns it.
func TestBuild_HundredServicesOfOnePod(t *testing.T) {
	in := Input{ClusterCIDRs: prefixes("10.128.0.0/14")}
	for i := range 100 {
		in.Claims = append(in.Claims, claim(fmt.Sprintf("s%02d", i), i, fmt.Sprintf("203.0.113.%d", 1+i), []Protocol{TCP}, "10.128.0.5"))
	}
	p := Build(in)
	if len(p.Bindings) != 1 || p.Bindings[0].Service.Name != "s99" || len(p.Refusals) != 99 {
		t.Errorf("bindings %v, %d refusals; want the oldest, s99, and 99", p.Bindings, len(p.Refusals))
	}
}

// TestBuild_NodesAreNotPods: where nodes have addresses in a cluster CIDR, none of these is bound as an endpoint on them. On
// other nodes the addresses are pods', whatever a Node tells.
func TestBuild_NodesAreNotPods(t *testing.T) {
	c := owned("a", 0, "203.0.113.1", "10.128.0.5", "10.128.9.1", "10.128.9.2", "10.128.9.2")
	for i, node := range []string{"m", "n", "n", "m"} {
		c.Endpoints[i].Node = node
	}
	p := Build(Input{ClusterCIDRs: prefixes("10.128.0.0/14"), Nodes: []Node{{Name: "n", InternalIPs: addrs("10.128.9.1", "10.128.9.2", "10.128.0.5")}}, Claims: []Claim{c}})
	if len(p.Bindings) != 2 || p.Bindings[1].Pod != addr("10.128.9.2") || len(p.Refusals) != 2 || p.Refusals[0].Reason != EndpointOutsideCluster {
		t.Errorf("bindings %v, refusals %v", p.Bindings, p.Refusals)
	}
}

func TestBuild_NodesAreExcluded(t *testing.T) {
	in := Input{
		Exclusions: prefixes("169.254.0.0/16"), ExcludeNodes: true,
		Nodes: []Node{{Name: "n", InternalIPs: addrs("192.0.2.2", "198.51.100.2")}, {Name: "m", InternalIPs: addrs("192.0.2.2")}},
	}
	if diff := cmp.Diff(prefixes("169.254.0.0/16", "192.0.2.2/32"), Build(in).Exclusions, compareNetip); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in.ExcludeNodes = false
	if diff := cmp.Diff(prefixes("169.254.0.0/16"), Build(in).Exclusions, compareNetip); diff != "" {
		t.Errorf("switched off (-want +got):\n%s", diff)
	}
}

// BenchmarkBuild shows what a plan costs by its number of bindings.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1000, 100000} {
		in := Input{ClusterCIDRs: prefixes("10.128.0.0/14")}
		for i := range n / 20 {
			c := Claim{Service: Service{"ns", fmt.Sprintf("s%d", i)}, Created: time.Unix(int64(i), 0), EgressIP: netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}), Protocols: []Protocol{TCP}}
			for j := range 20 {
				pod := i*20 + j
				c.Endpoints = append(c.Endpoints, Endpoint{Addr: netip.AddrFrom4([4]byte{10, 128 + byte(pod>>16), byte(pod >> 8), byte(pod)}), Pod: Pod{"ns", "pod"}})
			}
			in.Claims = append(in.Claims, c)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Build(in)
			}
		})
	}
}
