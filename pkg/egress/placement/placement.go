package placement

import (
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// Scope says whose pods a node writes rules for.
type Scope string

// The scopes, spelled as the argument egress-snat-scope takes them.
const (
	// Node: for those whose packets leave through this node.
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
}

// Has tells whether an endpoint is this node's to bind.
func (p Placement) Has(endpoint plan.Endpoint) bool {
	return p.Scope == Cluster || endpoint.Node == "" || endpoint.Node == p.NodeName || p.inPodCIDR(endpoint.Addr)
}

func (p Placement) inPodCIDR(addr netip.Addr) bool {
	return slices.ContainsFunc(p.PodCIDRs, func(cidr netip.Prefix) bool { return cidr.Contains(addr) })
}

// Only returns those of endpoints that are this node's to bind, in the same order, in the same
// memory.
func (p Placement) Only(endpoints []plan.Endpoint) []plan.Endpoint {
	return slices.DeleteFunc(endpoints, func(e plan.Endpoint) bool { return !p.Has(e) })
}

// Of returns the part of in that is this node's to plan. It shares everything but the claims' lists
// of endpoints with in, which stays as it is.
func (p Placement) Of(in plan.Input) plan.Input {
	claims := slices.Clone(in.Claims)
	for i := range claims {
		claims[i].Endpoints = p.Only(slices.Clone(claims[i].Endpoints))
	}
	in.Claims = claims
	return in
}

// Equal tells whether p and q decide alike.
func (p Placement) Equal(q Placement) bool {
	return p.Scope == q.Scope && p.NodeName == q.NodeName && slices.Equal(p.PodCIDRs, q.PodCIDRs)
}
