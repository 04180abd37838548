package holders

import "net/netip"

// Took says that this node has just taken addresses, with epochs that are higher than any that was seen. OwnAddresses
// need not have them yet.
type Took struct{ Addresses map[netip.Addr]uint64 }

// Released says that this node is about to remove addresses. OwnAddresses may have them until it has.
type Released struct{ Addresses []netip.Addr }

func (e Took) apply(d *Directory) {
	for ip, epoch := range e.Addresses {
		d.own[ip], d.taken[ip] = min(max(epoch, d.own[ip]), maxEpoch), true
		delete(d.released, ip)
		d.settle(ip)
	}
}

func (e Released) apply(d *Directory) {
	for _, ip := range e.Addresses {
		delete(d.own, ip)
		delete(d.taken, ip)
		d.released[ip] = true
		d.settle(ip)
	}
}
