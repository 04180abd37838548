package kernel

import (
	"maps"
	"net/netip"
	"slices"
)

// CIDRSet finds the network that an address lies in, among many.
type CIDRSet struct {
	cidrs map[netip.Prefix]bool
	// lengths are those that occur among cidrs, longest first.
	lengths []int
}

// NewCIDRSet returns the set of these networks, which may overlap and repeat.
func NewCIDRSet(cidrs []netip.Prefix) CIDRSet {
	s := CIDRSet{cidrs: make(map[netip.Prefix]bool, len(cidrs))}
	lengths := map[int]bool{}
	for _, cidr := range cidrs {
		s.cidrs[cidr.Masked()] = true
		lengths[cidr.Bits()] = true
	}
	s.lengths = slices.Sorted(maps.Keys(lengths))
	slices.Reverse(s.lengths)
	return s
}

// Empty tells whether the set has no network.
func (s CIDRSet) Empty() bool { return len(s.cidrs) == 0 }

// Contains tells whether ip lies in a network of the set.
func (s CIDRSet) Contains(ip netip.Addr) bool {
	_, found := s.Find(ip)
	return found
}

// Find returns the smallest network of the set that ip lies in.
func (s CIDRSet) Find(ip netip.Addr) (cidr netip.Prefix, found bool) {
	for _, bits := range s.lengths {
		if cidr, err := ip.Prefix(bits); err == nil && s.cidrs[cidr] {
			return cidr, true
		}
	}
	return netip.Prefix{}, false
}
