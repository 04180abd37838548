package oracle

import (
	"net/netip"
	"slices"
)

// "Never SNATed are packets to the cluster CIDRs, egress-snat-exclude-cidrs, the nodes, and a pod's own
// egress IP."
func (c Cluster) neverSNATed(destination, egressIP netip.Addr) bool {
	return contain(c.PodNetworks(), destination) || contain(c.Exclusions(), destination) || destination == egressIP
}

// PodNetworks returns the cluster CIDRs.
func (c Cluster) PodNetworks() []netip.Prefix { return c.clusterCIDRs() }

// Exclusions returns the other destinations that no pod's packets are SNATed to.
func (c Cluster) Exclusions() []netip.Prefix {
	exclusions := slices.Clone(c.ExcludeCIDRs)
	if c.ExcludeNodes {
		for _, addr := range c.nodeAddresses() {
			exclusions = append(exclusions, netip.PrefixFrom(addr, addr.BitLen()))
		}
	}
	return exclusions
}
