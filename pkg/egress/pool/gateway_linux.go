package pool

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/openshift/origin-node/pkg/kernel"
)

// defaultGateways are the next hops of this node's default routes, by their interfaces.
func (l *links) defaultGateways() map[*net.Interface][]netip.Addr {
	gateways := map[*net.Interface][]netip.Addr{}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil // none is known, so none has a vote
	}
	add := func(gw net.IP, index int) {
		gateway := kernel.AddrOf(gw)
		if link := l.byIndex[index]; gateway.IsValid() && link != nil {
			gateways[link] = append(gateways[link], gateway)
		}
	}
	for _, route := range routes {
		if route.Dst != nil && !isDefault(route.Dst) {
			continue
		}
		add(route.Gw, route.LinkIndex)
		for _, hop := range route.MultiPath {
			add(hop.Gw, hop.LinkIndex)
		}
	}
	return gateways
}

func isDefault(dst *net.IPNet) bool {
	ones, _ := dst.Mask.Size()
	return ones == 0
}
