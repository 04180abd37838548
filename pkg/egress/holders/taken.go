package holders

import (
	"net/netip"
	"slices"
)

// Took says that this node has just taken addresses, with epochs that are higher than any that was seen. OwnAddresses
// need not have them yet.
type Took struct{ Addresses map[netip.Addr]uint64 }

// Released says that this node is about to remove addresses. OwnAddresses may have them until it has.
type Released struct{ Addresses []netip.Addr }

// HandingOver says that this node removes addresses that another one has taken over, and that its packets leave from here until
// HandedOver says otherwise. The Number, which is not 0, tells it from other handovers of the same addresses.
type HandingOver struct {
	Addresses []netip.Addr
	Number    int
}

// HandedOver ends what the HandingOver of its Number began. It does not count for addresses that this node has taken again since.
type HandedOver HandingOver

func (e Took) apply(d *Directory) {
	for ip, epoch := range e.Addresses {
		d.own[ip], d.taken[ip] = min(max(epoch, d.own[ip]), MaxEpoch), true
		delete(d.released, ip)
		delete(d.handing, ip)
		d.settle(ip)
	}
}

func (e Released) apply(d *Directory) {
	for _, ip := range e.Addresses {
		if d.present[ip] || d.taken[ip] {
			d.released[ip] = true
		}
		delete(d.own, ip)
		delete(d.taken, ip)
		delete(d.handing, ip)
		d.settle(ip)
	}
}

func (e HandingOver) apply(d *Directory) {
	for _, ip := range e.Addresses {
		if _, here := d.own[ip]; here {
			d.handing[ip] = e.Number
		}
	}
}

func (e HandedOver) apply(d *Directory) {
	Released{slices.DeleteFunc(slices.Clone(e.Addresses), func(ip netip.Addr) bool { return d.handing[ip] != e.Number })}.apply(d)
}
