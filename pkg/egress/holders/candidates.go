package holders

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// candidates returns what the holding would be for each node that has the address or announces it if
// there were no other, in the order of precedence.
func (d *Directory) candidates(ip netip.Addr, a *address) (list []Holding) {
	if o := d.own[ip]; o != nil && o.here() {
		list = append(list, Holding{State: Local, Node: d.config.NodeName, Epoch: o.epoch, Known: d.ownSource(ip)})
	}
	for name := range a.announcers {
		if holding, counts := d.announced(ip, name); counts {
			list = append(list, holding)
		}
	}
	slices.SortFunc(list, func(x, y Holding) int {
		return cmp.Or(cmp.Compare(d.precedence(ip, x), d.precedence(ip, y)), d.compareLater(a, x, y))
	})
	return list
}

// announced returns what the holding would be for another node that announces the address, if that counts.
func (d *Directory) announced(ip netip.Addr, name string) (holding Holding, counts bool) {
	if name == d.config.NodeName {
		return Holding{}, false
	}
	n := d.nodes[name]
	epoch, counts := n.counts.Addresses[ip]
	if !n.exists || !counts {
		return Holding{}, false
	}
	holding = Holding{State: Lost, Node: name, Epoch: epoch, Known: n.source(ip)}
	switch {
	case n.silent:
		holding.Why = Silent
	case !n.address.IsValid():
		holding.Why = Unreachable
	default:
		holding.State, holding.Address = Remote, n.address
	}
	return holding, true
}

// compareLater is negative if a node has got an address later than another one.
func (d *Directory) compareLater(a *address, x, y Holding) int {
	return cmp.Or(cmp.Compare(y.Epoch, x.Epoch), d.compareAtBound(a, y, x), strings.Compare(y.Node, x.Node))
}

// Outranked returns the addresses on this node's interfaces that another live node has got later, sorted.
func (d *Directory) Outranked(now time.Time) (addresses []netip.Addr) {
	d.advance(now)
	for ip, o := range d.own {
		a := d.addresses[ip]
		if !o.here() || o.yielding || a == nil || len(a.rivals) == 0 {
			continue
		}
		candidates := d.candidates(ip, a)
		own := candidates[slices.IndexFunc(candidates, func(h Holding) bool { return h.State == Local })]
		if slices.ContainsFunc(candidates, func(h Holding) bool { return h.State == Remote && d.compareLater(a, h, own) < 0 }) {
			addresses = append(addresses, ip)
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return addresses
}

// compareAtBound compares two holdings of one epoch. With the largest one, that of a node whose process has died would count for as
// long as its Lease is there, if its name sorts last: a later one could not exceed it.
func (d *Directory) compareAtBound(a *address, x, y Holding) int {
	if x.Epoch < MaxEpoch {
		return 0
	}
	moving := func(h Holding) int {
		if n := d.nodes[h.Node]; n != nil && n.moving {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(moving(x), moving(y)), a.announcers[x.Node].Compare(a.announcers[y.Node]))
}

// precedence is the order in which candidates for an address count: one on an interface of this node comes first whatever others say,
// unless another host answers for it, too.
func (d *Directory) precedence(ip netip.Addr, h Holding) int {
	switch {
	case h.Known == OwnAddress && !d.elsewhere[ip]:
		return 0
	case h.State != Lost:
		return 1
	}
	return 2
}

// ownSource says how this node has an address.
func (d *Directory) ownSource(ip netip.Addr) Source {
	if d.own[ip].yielding {
		return LoadBalancer
	}
	return OwnAddress
}

// rivals returns the names of live holders if there are several.
func rivals(candidates []Holding) (names []string) {
	for _, c := range candidates {
		if c.State != Lost {
			names = append(names, c.Node)
		}
	}
	if len(names) < 2 {
		return nil
	}
	return names
}
