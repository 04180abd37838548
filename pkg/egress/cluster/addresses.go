package cluster

import (
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Families are both IP families.
var Families = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}

// FamilyOf returns the IP family of an address.
func FamilyOf(ip netip.Addr) v1.IPFamily { return v1.IPFamily(kernel.FamilyOf(ip)) }

// parseIP reads text as the proxier does, leading zeros included; ok is false if it is no IP address.
func parseIP(text string) (ip netip.Addr, ok bool) {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" { // as most are; it allocates nothing
		return ip.Unmap(), true
	}
	ip, ok = netip.AddrFromSlice(netutils.ParseIPSloppy(text))
	return ip.Unmap(), ok
}

// convertCIDRs reads CIDRs that the API server has validated; what cannot be read is left
// out.
func convertCIDRs(texts []string) []netip.Prefix {
	var result []netip.Prefix
	for _, text := range texts {
		if cidr, err := netip.ParsePrefix(text); err == nil {
			result = append(result, cidr.Masked())
		}
	}
	slices.SortFunc(result, netip.Prefix.Compare)
	return slices.Compact(result)
}
