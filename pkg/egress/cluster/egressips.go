package cluster

import (
	"maps"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// claimedIPs are the egress IPs that Services claim in one IP family.
type claimedIPs struct {
	// claims counts those on each, alternatives those of Services with several.
	claims, alternatives map[netip.Addr]int
	// sorted has the addresses; nil if it has to be made anew.
	sorted []netip.Addr
}

// EgressIPs returns the addresses of a family that any Service claims as its egress IP, granted or not,
// sorted. The list must not be changed. It is made anew only when it has changed.
func (s *State) EgressIPs(family v1.IPFamily) []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.egressIPs(family)
}

// egressIPs is EgressIPs with the lock held.
func (s *State) egressIPs(family v1.IPFamily) []netip.Addr {
	c := s.claimed[family]
	if c.sorted == nil {
		c.sorted = slices.SortedFunc(maps.Keys(c.claims), netip.Addr.Compare)
	}
	return c.sorted
}

// countClaims notes that a Service's claims have come in the place of others.
func (s *State) countClaims(before, after service) {
	for _, family := range Families {
		s.claimed[family].count(after.parts[family], 1)
		s.claimed[family].count(before.parts[family], -1)
	}
}

func (c *claimedIPs) count(p *part, by int) {
	if p == nil || p.claim == nil || !p.claim.EgressIP.IsValid() {
		return
	}
	for _, address := range p.claim.Addresses() {
		if p.claim.Several() {
			countOf(c.alternatives, address.IP, by)
		}
		if appears := countOf(c.claims, address.IP, by); appears {
			c.sorted = nil
		}
	}
}

// countOf adds to the count of an address, and tells whether the first came or the last went.
func countOf(counts map[netip.Addr]int, ip netip.Addr, by int) (appears bool) {
	before := counts[ip]
	if counts[ip] = before + by; before+by == 0 {
		delete(counts, ip)
	}
	return before == 0 || before+by == 0
}

// Alternatives returns the egress IPs of a family that Services with several have.
func (s *State) Alternatives(family v1.IPFamily) []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.claimed[family].alternatives))
}
