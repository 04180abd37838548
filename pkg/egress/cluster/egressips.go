package cluster

import (
	"maps"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// EgressIPs returns the addresses of a family that any Service claims as its egress IP and may have, sorted, as the objects are now: no plan
// need be updated before. Anybody may name any address; if only such claims are on it that are refused for the address, it may be a pod's or
// a host's. The list must not be changed. It is made anew only when it has changed.
func (s *State) EgressIPs(family v1.IPFamily) []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.egressIPs(family)
}

// egressIPs is EgressIPs with the lock held.
func (s *State) egressIPs(family v1.IPFamily) []netip.Addr {
	s.surround(family)
	return s.planners[family].EgressIPs()
}

// countAlternatives notes that a Service's claims have come in the place of others.
func (s *State) countAlternatives(before, after service) {
	for _, family := range Families {
		countSeveral(s.alternatives[family], after.parts[family], 1)
		countSeveral(s.alternatives[family], before.parts[family], -1)
	}
}

// countSeveral adds to the counts of the egress IPs of a Service that has several.
func countSeveral(counts map[netip.Addr]int, p *part, by int) {
	if p == nil || p.claim == nil || !p.claim.EgressIP.IsValid() || !p.claim.Several() {
		return
	}
	for _, ip := range p.claim.EgressIPs() {
		if counts[ip] += by; counts[ip] == 0 {
			delete(counts, ip)
		}
	}
}

// Alternatives returns the egress IPs of a family that Services with several have.
func (s *State) Alternatives(family v1.IPFamily) []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.alternatives[family]))
}
