package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/egress/rendezvous"
)

// Choices are the egress IPs that nodes have chosen for pods whose Services have several, by the name of the node.
type Choices map[string]NodeChoices

// NodeChoices are those of a node: by Service (namespace/name), and the pod's address.
type NodeChoices map[string]map[netip.Addr]netip.Addr

// Of returns which of some egress IPs of a Service an endpoint leaves from, as far as that is chosen. Nobody chooses for an endpoint of
// which no node is known: all take the same one.
func (c Choices) Of(service Service, e Endpoint, among []netip.Addr) (ip netip.Addr, chosen bool) {
	if e.Node == "" && len(among) > 0 {
		return Choose(e.Addr.String(), among, func(netip.Addr) int { return 0 }), true
	}
	ip = c[e.Node][service.String()][e.Addr]
	return ip, slices.Contains(among, ip)
}

// May tells whether an endpoint of a Service with several egress IPs may leave from this one.
func (c Choices) May(service Service, e Endpoint, ip netip.Addr) bool {
	return e.Node == "" || c[e.Node][service.String()][e.Addr] == ip
}

// Choose returns which of some egress IPs, at least one, a pod gets: one with the highest rank, and of several such the one with the
// highest score for the pod's name.
func Choose(name string, among []netip.Addr, rank func(netip.Addr) int) netip.Addr {
	return slices.MaxFunc(among, func(a, b netip.Addr) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(rendezvous.Score(a, name), rendezvous.Score(b, name)), a.Compare(b))
	})
}

// chooser returns which of some egress IPs of a Service an endpoint leaves from, as Choices.Of does.
type chooser func(service Service, e Endpoint, among []netip.Addr) (ip netip.Addr, chosen bool)

// offer is what a Service with several egress IPs has for its endpoints.
type offer struct {
	// claim is the Service's, and granted has a claim on each of its egress IPs that is granted.
	claim   *Claim
	granted []Claim
}

// pick returns the claim by which an endpoint is bound, or why there is none.
func (o offer) pick(s *surroundings, choose chooser, e Endpoint) (claim *Claim, reason Reason, because string) {
	nothing := o.claim.alone(Address{})
	if reason, because = s.judgeEndpoint(nothing.Service.Namespace, e); reason != "" {
		return &nothing, reason, because
	}
	among := make([]netip.Addr, len(o.granted))
	for i := range o.granted {
		among[i] = o.granted[i].EgressIP
	}
	ip, chosen := choose(nothing.Service, e, among)
	if !chosen {
		return &nothing, AddressNotChosen, fmt.Sprintf("the node %s has not yet published which of the Service's egress IPs the pod %s leaves from; "+
			"it does so in its Lease if origin-node runs there and if it has not already chosen for too many pods of the namespace", e.Node, e.Addr)
	}
	return &o.granted[slices.Index(among, ip)], "", ""
}
