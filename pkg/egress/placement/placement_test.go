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

func TestPlacement_Steered(t *testing.T) {
	held := held("203.0.113.1", "2001:db8::1")
	here := Placement{Scope: Node, NodeName: "here", PodCIDRs: cidrs("10.128.0.0/24"), Held: held}
	for name, test := range map[string]struct {
		placement Placement
		egressIP  string
		endpoint  plan.Endpoint
		want      bool
	}{
		"on another node":              {here, "203.0.113.1", endpoint("10.128.9.1", "there"), true},
		"in IPv6":                      {here, "2001:db8::1", endpoint("fd00:11::1", "there"), true},
		"perhaps on another node":      {here, "203.0.113.1", endpoint("10.128.9.1", ""), true},
		"of an address elsewhere":      {here, "203.0.113.2", endpoint("10.128.9.1", "there"), false},
		"on this node":                 {here, "203.0.113.1", endpoint("10.128.9.1", "here"), false},
		"in this node's network":       {here, "203.0.113.1", endpoint("10.128.0.1", "there"), false},
		"where all are on this node":   {Placement{Scope: Cluster, NodeName: "here", Held: held}, "203.0.113.1", endpoint("10.128.9.1", "there"), false},
		"of a node that holds nothing": {Placement{NodeName: "here"}, "203.0.113.1", endpoint("10.128.9.1", "there"), false},
		"of a node without a name":     {Placement{Held: held}, "203.0.113.1", endpoint("10.128.9.1", ""), true},
	} {
		claim := plan.Claim{EgressIP: netip.MustParseAddr(test.egressIP)}
		if got := test.placement.Steered(&claim, test.endpoint, nil); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		claim.Refused = plan.InvalidProtocol
		if test.placement.Steered(&claim, test.endpoint, nil) {
			t.Errorf("%s: steered, though the claim is refused", name)
		}
	}
}

// held is a set of addresses.
func held(texts ...string) map[netip.Addr]bool {
	set := map[netip.Addr]bool{}
	for _, text := range texts {
		set[netip.MustParseAddr(text)] = true
	}
	return set
}

func TestPlacement_OnlyKeepsTheOrder(t *testing.T) {
	mine, yours, anyones := endpoint("10.128.0.3", "here"), endpoint("10.128.0.2", "there"), endpoint("10.128.0.1", "")
	got := Placement{NodeName: "here"}.Only([]plan.Endpoint{yours, mine, yours, anyones})
	if diff := cmp.Diff([]plan.Endpoint{mine, anyones}, got, compareNetip); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPlacement_Equal(t *testing.T) {
	p := Placement{Scope: Node, NodeName: "here", PodCIDRs: cidrs("10.128.0.0/24"), Held: held("203.0.113.1")}
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
		"another held":   {func(q *Placement) { q.Held = held("203.0.113.2") }, false},
		"nothing held":   {func(q *Placement) { q.Held = nil }, false},
		"the same held":  {func(q *Placement) { q.Held = held("203.0.113.1") }, true},
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
type cluster struct {
	plan.Input
	// held are the addresses that each node holds. Two may hold one for a while.
	held [3]map[netip.Addr]bool
}

var nodeNames = []string{"node-0", "node-1", "node-2"}

func (c cluster) placementOf(node int) Placement {
	return Placement{Scope: Node, NodeName: nodeNames[node], PodCIDRs: cidrs(fmt.Sprintf("10.128.%d.0/24", node)), Held: c.held[node]}
}

// randomCluster has endpoints that name nodes of the cluster, and, if odd ones are wanted, also such that
// name none or an unknown one.
func randomCluster(r *rand.Rand, odd bool) cluster {
	in := plan.Input{ClusterCIDRs: cidrs("10.128.0.0/14")}
	for _, name := range nodeNames {
		in.Nodes = append(in.Nodes, plan.Node{Name: name})
	}
	in.Nodes[1].InternalIPs = []netip.Addr{netip.MustParseAddr("10.128.1.2")}
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
		if r.IntN(8) == 0 {
			claim.Refused, claim.RefusedBecause = plan.InvalidProtocol, "a port has no meaning"
		}
		for range r.IntN(6) {
			claim.Endpoints = append(claim.Endpoints, plan.Endpoint{
				Addr: netip.AddrFrom4([4]byte{10, 128 + 4*byte(r.IntN(8)/7), byte(r.IntN(3)), byte(r.IntN(3))}),
				Node: names[r.IntN(len(names))], Pod: []plan.Pod{{}, {Namespace: "ns0", Name: "a"}, {Namespace: "ns1", Name: "b"}}[r.IntN(3)],
			})
		}
		in.Claims = append(in.Claims, claim)
	}
	return cluster{Input: in}
}

// withHolders has nodes hold random addresses.
func (c cluster) withHolders(r *rand.Rand) cluster {
	for node := range c.held {
		c.held[node] = map[netip.Addr]bool{}
		for i := range byte(4) {
			if r.IntN(3) == 0 {
				c.held[node][netip.AddrFrom4([4]byte{203, 0, 113, i})] = true
			}
		}
	}
	return c
}

// withChoices has some claims name a second address, and nodes choose one for their pods, mostly.
func (c cluster) withChoices(r *rand.Rand) cluster {
	c.Choices = plan.Choices{}
	for i := range c.Claims {
		claim := &c.Claims[i]
		if other := (netip.AddrFrom4([4]byte{203, 0, 113, byte(r.IntN(4))})); r.IntN(2) == 0 && other != claim.EgressIP {
			claim.Others = []plan.Address{{IP: other}}
		}
		for _, e := range claim.Endpoints {
			if c.Choices[e.Node] == nil {
				c.Choices[e.Node] = plan.NodeChoices{}
			}
			if c.Choices[e.Node][claim.Service.String()] == nil {
				c.Choices[e.Node][claim.Service.String()] = map[netip.Addr]netip.Addr{}
			}
			if r.IntN(4) > 0 {
				c.Choices[e.Node][claim.Service.String()][e.Addr] = claim.Addresses()[r.IntN(1+len(claim.Others))].IP
			}
		}
	}
	return c
}

// bindings are those that a node is to have, by the rules that the package's comment gives, of the
// claims that the cluster's plan does not refuse: the pods of those endpoints that are here or steered
// here get the oldest Service's egress IP.
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
	bound, boundBy := map[target]plan.Binding{}, map[netip.Addr]string{}
	for _, claim := range claims {
		if refused[claim.Service] {
			continue
		}
		for _, e := range claim.Endpoints {
			if !isHere(e, node) && !c.isSteered(e.Addr, node) || !isPodOf(e, claim.Service.Namespace) {
				continue
			}
			if by, is := boundBy[e.Addr]; is && by != claim.Service.Namespace {
				continue // a pod is of one namespace
			}
			for _, protocol := range claim.Protocols {
				boundBy[e.Addr] = claim.Service.Namespace
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
	return e.Node == "" || e.Node == nodeNames[node] || isInNetwork(e.Addr, node)
}

// isInNetwork tells whether an address is in the nth node's pod network.
func isInNetwork(addr netip.Addr, node int) bool {
	octets := addr.As4()
	return octets[1] == 128 && int(octets[2]) == node
}

// isSteered tells whether the nth node holds the egress IP of a claim that has an endpoint at an address,
// which does not say that it is on that node.
func (c cluster) isSteered(pod netip.Addr, node int) bool {
	for _, claim := range c.Claims {
		for _, e := range claim.Endpoints {
			if e.Addr == pod && c.held[node][claim.EgressIP] && claim.Refused == "" && e.Node != nodeNames[node] && !isInNetwork(e.Addr, node) {
				return true
			}
		}
	}
	return false
}

// isPodOf tells whether an endpoint can be a pod of a namespace: its address is not outside, nor, on node-1, that node's.
func isPodOf(e plan.Endpoint, namespace string) bool {
	octets := e.Addr.As4()
	return octets[1] == 128 && (e.Node != nodeNames[1] || e.Addr.String() != "10.128.1.2") && (e.Pod.Namespace == "" || e.Pod.Namespace == namespace)
}

// claimRefusals are those of whole claims.
func claimRefusals(p plan.Plan) []plan.Refusal {
	return slices.DeleteFunc(slices.Clone(p.Refusals), func(r plan.Refusal) bool { return r.Pod.IsValid() })
}

// TestPlacement_NodeBindsItsOwnPods: a node's plan has exactly the bindings that the rules give it, those of
// pods that are steered to it among them. Who owns an address, what of whole Services is refused, and the
// networks are the cluster's on every node.
func TestPlacement_NodeBindsItsOwnPods(t *testing.T) {
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 7))
		c := randomCluster(r, true)
		if seed%2 == 0 {
			c = c.withHolders(r)
		}
		whole := plan.Build(c.Input)
		for node, name := range nodeNames {
			got := plan.Build(c.placementOf(node).Of(c.Input))
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
		r := rand.New(rand.NewPCG(seed, 8))
		c := randomCluster(r, true).withHolders(r)
		p := c.placementOf(0)
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
		r := rand.New(rand.NewPCG(seed, 9))
		c := randomCluster(r, false).withChoices(r)
		var somewhere []plan.Binding
		for node := range nodeNames {
			somewhere = append(somewhere, plan.Build(c.placementOf(node).Of(c.Input)).Bindings...)
		}
		for _, b := range plan.Build(c.Input).Bindings {
			if !slices.Contains(somewhere, b) {
				t.Fatalf("seed %d: no node has %+v, of %+v", seed, b, c)
			}
		}
	}
}

// TestPlacement_HoldersBindAsThePodsNode: where EndpointSlices agree about where pods are, the node that holds a
// pod's egress IP binds it as the pod's own node does, and no node binds it otherwise.
func TestPlacement_HoldersBindAsThePodsNode(t *testing.T) {
	steered := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 11))
		c := randomCluster(r, false).withHolders(r)
		for _, claim := range c.Claims {
			for i, e := range claim.Endpoints {
				claim.Endpoints[i].Node = nodeNames[e.Addr.As4()[2]]
			}
		}
		c = c.withChoices(r)
		var plans []plan.Plan
		for node := range nodeNames {
			plans = append(plans, plan.Build(c.placementOf(node).Of(c.Input)))
		}
		for node, p := range plans {
			for _, b := range p.Bindings {
				if own := int(b.Pod.As4()[2]); !slices.Contains(plans[own].Bindings, b) {
					t.Fatalf("seed %d: %s binds %+v and %s does not, of %+v", seed, nodeNames[node], b, nodeNames[own], c)
				}
			}
			for _, b := range plan.Build(c.Input).Bindings {
				if !c.held[node][b.EgressIP] {
					continue
				}
				if steered++; !slices.Contains(p.Bindings, b) {
					t.Fatalf("seed %d: %s holds %s and does not bind %+v, of %+v", seed, nodeNames[node], b.EgressIP, b, c)
				}
			}
		}
	}
	if steered < 2000 {
		t.Errorf("holders have %d bindings; the test proves little", steered)
	}
}

// TestPlacement_OfLeavesTheInput as it is: others read it, too.
func TestPlacement_OfLeavesTheInput(t *testing.T) {
	c, same := randomCluster(rand.New(rand.NewPCG(1, 10)), true), randomCluster(rand.New(rand.NewPCG(1, 10)), true)
	c.held[0] = held("203.0.113.0", "203.0.113.1", "203.0.113.2", "203.0.113.3")
	c.placementOf(0).Of(c.Input)
	if diff := cmp.Diff(same.Input, c.Input, compareNetip); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}
