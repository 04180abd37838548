package placement

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// Scope says whose pods a node writes rules for.
type Scope string

// The scopes, spelled as the argument egress-snat-scope takes them.
const (
	// Node: for those whose packets leave through this node. They run on it, or are steered to it.
	Node Scope = "node"
	// Cluster: for all.
	Cluster Scope = "cluster"
)

// Placement is what decides about one node. The zero Placement is a node without a name: it has
// the endpoints without one.
type Placement struct {
	Scope Scope
	// NodeName is the name of this node's Node object, PodCIDRs are the networks that it has for
	// its pods, of both IP families.
	NodeName string
	PodCIDRs []netip.Prefix
	// Held are the egress IPs that this node holds, or may get at any moment, of both IP families, never in the IPv4-mapped form. It
	// is a set: an address whose value is false is not in it.
	Held map[netip.Addr]bool
}

// Has tells whether an endpoint is on this node, as far as anybody knows.
func (p Placement) Has(endpoint plan.Endpoint) bool {
	return endpoint.Node == "" || p.surelyHas(&endpoint)
}

// surelyHas tells whether an endpoint is on this node and on no other.
func (p *Placement) surelyHas(endpoint *plan.Endpoint) bool {
	return p.Scope == Cluster || endpoint.Node == p.NodeName && endpoint.Node != "" || p.InPodCIDR(endpoint.Addr)
}

// InPodCIDR tells whether an address is in a network that this node's Node object has for its pods.
func (p *Placement) InPodCIDR(addr netip.Addr) bool {
	return slices.ContainsFunc(p.PodCIDRs, func(cidr netip.Prefix) bool { return cidr.Contains(addr) })
}

// Steered tells whether other nodes may send this node the packets of an endpoint of a claim. Then every
// endpoint at its address is this node's to bind, of whatever claim. Of a claim on several egress IPs, may tells from which of them an
// endpoint may leave, as [plan.Choices.May] does.
func (p Placement) Steered(claim *plan.Claim, endpoint plan.Endpoint, may func(plan.Service, plan.Endpoint, netip.Addr) bool) bool {
	return claim.Refused == "" && !p.surelyHas(&endpoint) && claim.Claims(func(ip netip.Addr) bool {
		return p.Held[ip] && (!claim.Several() || may(claim.Service, endpoint, ip))
	})
}

// Only returns those of endpoints that this node has, in the same order, in the same memory.
func (p Placement) Only(endpoints []plan.Endpoint) []plan.Endpoint {
	kept := endpoints[:0]
	for _, e := range endpoints { // a node does little else: this allocates nothing
		if p.Has(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// Of returns the part of in that is this node's to plan. It shares everything but the claims' lists
// of endpoints with in, which stays as it is.
func (p Placement) Of(in plan.Input) plan.Input {
	steered := p.steered(in)
	claims := slices.Clone(in.Claims)
	for i := range claims {
		claims[i].Endpoints = slices.DeleteFunc(slices.Clone(claims[i].Endpoints), func(e plan.Endpoint) bool {
			return !p.Has(e) && !steered[e.Addr]
		})
	}
	in.Claims = claims
	return in
}

// steered returns the addresses of the pods whose packets other nodes may send this node.
func (p Placement) steered(in plan.Input) map[netip.Addr]bool {
	addrs := map[netip.Addr]bool{}
	for i := range in.Claims {
		for _, e := range in.Claims[i].Endpoints {
			if p.Steered(&in.Claims[i], e, in.Choices.May) {
				addrs[e.Addr] = true
			}
		}
	}
	return addrs
}

// Equal tells whether p and q decide alike.
func (p Placement) Equal(q Placement) bool {
	return p.Scope == q.Scope && p.NodeName == q.NodeName && slices.Equal(p.PodCIDRs, q.PodCIDRs) && maps.Equal(p.Held, q.Held)
}
