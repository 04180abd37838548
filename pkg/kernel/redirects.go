package kernel

import (
	"net/netip"
	"slices"
)

// Redirects says which TCP connections are sent elsewhere than they were meant to go (destination
// NAT), in one IP family. A connection to one of the node's own addresses never is.
type Redirects struct {
	// Nodes are the destinations, sorted and free of duplicates; with Others all destinations but
	// these.
	Nodes  []netip.Addr `json:"nodes"`
	Others bool         `json:"others,omitempty"`
	// Secure and Insecure are where connections go. No port is of both.
	Secure   Target `json:"secure"`
	Insecure Target `json:"insecure"`
	// Sources are the networks whose connections are redirected on their way through this node, as
	// its own are. They are sorted, and neither overlap nor touch.
	Sources []netip.Prefix `json:"sources,omitempty"`
}

// Target is where connections to some ports go.
type Target struct {
	// To is invalid if there are no ports.
	To netip.AddrPort `json:"to,omitzero"`
	// Ports are sorted and free of duplicates.
	Ports []uint16 `json:"ports,omitempty"`
}

// Equal tells whether r and o are the same.
func (r Redirects) Equal(o Redirects) bool {
	return r.Others == o.Others && slices.Equal(r.Nodes, o.Nodes) && slices.Equal(r.Sources, o.Sources) &&
		r.Secure.equal(o.Secure) && r.Insecure.equal(o.Insecure)
}

func (t Target) equal(o Target) bool { return t.To == o.To && slices.Equal(t.Ports, o.Ports) }

// Empty tells whether no connection is redirected.
func (r Redirects) Empty() bool {
	return len(r.Nodes) == 0 && !r.Others || len(r.Secure.Ports)+len(r.Insecure.Ports) == 0
}

// Without returns what is redirected by r, and not so by o.
func (r Redirects) Without(o Redirects) Redirects {
	if r.Others || o.Others || !r.Secure.equal(o.Secure) || !r.Insecure.equal(o.Insecure) || !slices.Equal(r.Sources, o.Sources) {
		if r.Equal(o) {
			return Redirects{}
		}
		return r
	}
	r.Nodes = slices.DeleteFunc(slices.Clone(r.Nodes), func(addr netip.Addr) bool {
		_, stays := slices.BinarySearchFunc(o.Nodes, addr, netip.Addr.Compare)
		return stays
	})
	return r
}

// Targets are those that have ports.
func (r Redirects) Targets() []Target {
	return slices.DeleteFunc([]Target{r.Secure, r.Insecure}, func(t Target) bool { return len(t.Ports) == 0 })
}

// To returns where a connection goes that is meant for a destination, which is none of the node's own
// addresses; redirected is false if it goes there.
func (r Redirects) To(destination netip.AddrPort) (to netip.AddrPort, redirected bool) {
	if _, listed := slices.BinarySearchFunc(r.Nodes, destination.Addr(), netip.Addr.Compare); listed == r.Others {
		return netip.AddrPort{}, false
	}
	for _, t := range r.Targets() {
		if _, found := slices.BinarySearch(t.Ports, destination.Port()); found {
			return t.To, true
		}
	}
	return netip.AddrPort{}, false
}
