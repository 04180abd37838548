package pool

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// defaultGateways are the next hops of this node's default routes.
func defaultGateways() (gateways []netip.Addr) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil // none is known, so none has a vote
	}
	for _, route := range routes {
		if route.Dst != nil && !isDefault(route.Dst) {
			continue
		}
		if gateway, ok := netip.AddrFromSlice(route.Gw); ok && !gateway.IsLinkLocalUnicast() {
			gateways = append(gateways, gateway.Unmap())
		}
	}
	return gateways
}

func isDefault(dst *net.IPNet) bool {
	ones, _ := dst.Mask.Size()
	return ones == 0
}
