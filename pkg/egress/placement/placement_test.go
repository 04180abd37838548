package placement

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

	"github.com/openshift/origin-node/pkg/egress/plan"
)

var compareNetip = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

func cidrs(texts ...string) (result []netip.Prefix) {
	for _, text := range texts {
		result = append(result, netip.MustParsePrefix(text))
	}
	return result
}

func endpoint(addr, node string) plan.Endpoint {
	return plan.Endpoint{Addr: netip.MustParseAddr(addr), Node: node}
}

func TestPlacement_Has(t *testing.T) {
	here := Placement{Scope: Node, NodeName: "here", PodCIDRs: cidrs("10.128.0.0/24", "fd00:10::/64")}
	for name, test := range map[string]struct {
		placement Placement
		endpoint  plan.Endpoint
		want      bool
	}{
		"this node's name":    {here, endpoint("10.128.9.1", "here"), true},
		"no name":             {here, endpoint("10.128.9.1", ""), true},
		"another node's name": {here, endpoint("10.128.9.1", "there"), false},
		"another name that begins with this one's": {here, endpoint("10.128.9.1", "here-too"), false},
		"another's name, an address of this node":  {here, endpoint("10.128.0.1", "there"), true},
		"the same in IPv6":                         {here, endpoint("fd00:10::1", "there"), true},
		"another's name and address, in IPv6":      {here, endpoint("fd00:11::1", "there"), false},
		"another's, where all count":               {Placement{Scope: Cluster, NodeName: "here"}, endpoint("10.128.9.1", "there"), true},
		"no scope is this node":                    {Placement{NodeName: "here"}, endpoint("10.128.9.1", "there"), false},
		"a node without a name":                    {Placement{}, endpoint("10.128.9.1", "there"), false},
		"a node without a name, no name":           {Placement{}, endpoint("10.128.9.1", ""), true},
	} {
		if got := test.placement.Has(test.endpoint); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestPlacement_OnlyKeepsTheOrder(t *testing.T) {
	mine, yours, anyones := endpoint("10.128.0.3", "here"), endpoint("10.128.0.2", "there"), endpoint("10.128.0.1", "")
	got := Placement{NodeName: "here"}.Only([]plan.Endpoint{yours, mine, yours, anyones})
	if diff := cmp.Diff([]plan.Endpoint{mine, anyones}, got, compareNetip); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPlacement_Equal(t *testing.T) {
	p := Placement{Scope: Node, NodeName: "here", PodCIDRs: cidrs("10.128.0.0/24")}
	for name, test := range map[string]struct {
		change func(*Placement)
		want   bool
	}{
		"the same":       {func(q *Placement) { q.PodCIDRs = slices.Clone(q.PodCIDRs) }, true},
		"scope":          {func(q *Placement) { q.Scope = Cluster }, false},
		"name":           {func(q *Placement) { q.NodeName = "there" }, false},
		"another CIDR":   {func(q *Placement) { q.PodCIDRs = cidrs("10.128.1.0/24") }, false},
		"one more CIDR":  {func(q *Placement) { q.PodCIDRs = cidrs("10.128.0.0/24", "fd00:10::/64") }, false},
		"no CIDR at all": {func(q *Placement) { q.PodCIDRs = nil }, false},
	} {
		q := p
		test.change(&q)
		if got := p.Equal(q); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// cluster is a random one with three nodes, of which the nth has the pods 10.128.n.0/24. There are few
// names and addresses, so that everything meets everything.
type cluster struct{ plan.Input }

var nodeNames = []string{"node-0", "node-1", "node-2"}

func placementOf(node int) Placement {
	return Placement{Scope: Node, NodeName: nodeNames[node], PodCIDRs: cidrs(fmt.Sprintf("10.128.%d.0/24", node))}
}

// randomCluster has endpoints that name nodes of the cluster, and, if odd ones are wanted, also such that
// name none or an unknown one.
func randomCluster(r *rand.Rand, odd bool) cluster {
	in := plan.Input{ClusterCIDRs: cidrs("10.128.0.0/14")}
	for _, name := range nodeNames {
		in.Nodes = append(in.Nodes, plan.Node{Name: name})
	}
	in.Nodes[1].Addresses = []netip.Addr{netip.MustParseAddr("10.128.1.2")}
	if r.IntN(3) == 0 {
		in.Policies = []plan.Policy{{Source: "policy", Allowed: cidrs("203.0.113.0/31")}}
	}
	names := nodeNames
	if odd {
		names = append(slices.Clone(nodeNames), "", "gone")
	}
	for i := range 1 + r.IntN(5) {
		claim := plan.Claim{
			Service:  plan.Service{Namespace: fmt.Sprintf("ns%d", r.IntN(2)), Name: fmt.Sprintf("s%d", i)},
			Created:  time.Unix(int64(r.IntN(3)), 0),
			EgressIP: netip.AddrFrom4([4]byte{203, 0, 113, byte(r.IntN(4))}), Protocols: []plan.Protocol{plan.TCP, plan.UDP}[r.IntN(2):],
		}
		for range r.IntN(6) {
			claim.Endpoints = append(claim.Endpoints, plan.Endpoint{
				Addr: netip.AddrFrom4([4]byte{10, 128 + 4*byte(r.IntN(8)/7), byte(r.IntN(3)), byte(r.IntN(3))}),
				Node: names[r.IntN(len(names))], Pod: []plan.Pod{{}, {Namespace: "ns0", Name: "a"}, {Namespace: "ns1", Name: "b"}}[r.IntN(3)],
			})
		}
		in.Claims = append(in.Claims, claim)
	}
	return cluster{in}
}

// bindings are those that a node is to have, by the rules that the package's comment gives, of the
// claims that the cluster's plan does not refuse: the pods of those endpoints that are here get the
// oldest Service's egress IP.
func (c cluster) bindings(node int) []plan.Binding {
	refused := map[plan.Service]bool{}
	for _, r := range plan.Build(c.Input).Refusals {
		refused[r.Service] = refused[r.Service] || !r.Pod.IsValid()
	}
	claims := slices.Clone(c.Claims)
	slices.SortFunc(claims, func(a, b plan.Claim) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.Service.String(), b.Service.String())
	})
	type target struct {
		pod      netip.Addr
		protocol plan.Protocol
	}
	bound := map[target]plan.Binding{}
	for _, claim := range claims {
		if refused[claim.Service] {
			continue
		}
		for _, e := range claim.Endpoints {
			if !isHere(e, node) || !isPodOf(e, claim.Service.Namespace) {
				continue
			}
			for _, protocol := range claim.Protocols {
				if _, taken := bound[target{e.Addr, protocol}]; !taken {
					bound[target{e.Addr, protocol}] = plan.Binding{Pod: e.Addr, Protocol: protocol, EgressIP: claim.EgressIP, Service: claim.Service}
				}
			}
		}
	}
	var list []plan.Binding
	for _, b := range bound {
		list = append(list, b)
	}
	slices.SortFunc(list, plan.CompareBindings)
	return list
}

// isHere tells whether an endpoint is on the nth node.
func isHere(e plan.Endpoint, node int) bool {
	octets := e.Addr.As4()
	return e.Node == "" || e.Node == nodeNames[node] || octets[1] == 128 && int(octets[2]) == node
}

// isPodOf tells whether an endpoint can be a pod of a namespace: its address is not outside, nor node-1's.
func isPodOf(e plan.Endpoint, namespace string) bool {
	octets := e.Addr.As4()
	return octets[1] == 128 && e.Addr.String() != "10.128.1.2" && (e.Pod.Namespace == "" || e.Pod.Namespace == namespace)
}

// claimRefusals are those of whole claims.
func claimRefusals(p plan.Plan) []plan.Refusal {
	return slices.DeleteFunc(slices.Clone(p.Refusals), func(r plan.Refusal) bool { return r.Pod.IsValid() })
}

// TestPlacement_NodeBindsItsOwnPods: a node's plan has exactly the bindings that the rules give it. Who
// owns an address, what of whole Services is refused, and the networks are the cluster's on every node.
func TestPlacement_NodeBindsItsOwnPods(t *testing.T) {
	for seed := range uint64(2000) {
		c := randomCluster(rand.New(rand.NewPCG(seed, 7)), true)
		whole := plan.Build(c.Input)
		for node, name := range nodeNames {
			got := plan.Build(placementOf(node).Of(c.Input))
			want := plan.Plan{Networks: whole.Networks, Bindings: c.bindings(node), Refusals: claimRefusals(whole)}
			got.Refusals = claimRefusals(got)
			if diff := cmp.Diff(want, got, compareNetip); diff != "" {
				t.Fatalf("seed %d, %s (-want +got):\n%s\nof %+v", seed, name, diff, c)
			}
		}
	}
}

// TestPlacement_ClusterIsEverything: with that scope a node's plan is the cluster's, refusals of pods
// included.
func TestPlacement_ClusterIsEverything(t *testing.T) {
	for seed := range uint64(500) {
		c := randomCluster(rand.New(rand.NewPCG(seed, 8)), true)
		p := placementOf(0)
		p.Scope = Cluster
		if diff := cmp.Diff(plan.Build(c.Input), plan.Build(p.Of(c.Input)), compareNetip); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// TestPlacement_NoBindingIsLost: if each endpoint names a node of the cluster, every binding of the
// cluster's plan is in that of some node.
func TestPlacement_NoBindingIsLost(t *testing.T) {
	for seed := range uint64(2000) {
		c := randomCluster(rand.New(rand.NewPCG(seed, 9)), false)
		var somewhere []plan.Binding
		for node := range nodeNames {
			somewhere = append(somewhere, plan.Build(placementOf(node).Of(c.Input)).Bindings...)
		}
		for _, b := range plan.Build(c.Input).Bindings {
			if !slices.Contains(somewhere, b) {
				t.Fatalf("seed %d: no node has %+v, of %+v", seed, b, c)
			}
		}
	}
}

// TestPlacement_OfLeavesTheInput as it is: others read it, too.
func TestPlacement_OfLeavesTheInput(t *testing.T) {
	c, same := randomCluster(rand.New(rand.NewPCG(1, 10)), true), randomCluster(rand.New(rand.NewPCG(1, 10)), true)
	placementOf(0).Of(c.Input)
	if diff := cmp.Diff(same, c, compareNetip); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}
