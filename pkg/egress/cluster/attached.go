package cluster

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// SetAttachment takes whose an address on this node is, in the place of what was known of the address.
func (s *State) SetAttachment(a plan.Attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setAttachment(a)
}

func (s *State) setAttachment(a plan.Attachment) {
	if sameAttachment(s.attachments[a.Addr], a) {
		return
	}
	s.attachments[a.Addr] = a
	s.planners[FamilyOf(a.Addr)].SetAttachment(a)
}

// SetAttachments takes whose the addresses on this node are, all of them, unless it has had a list with this number or a higher one. The
// planners are told of what is different.
func (s *State) SetAttachments(number uint64, all []plan.Attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number <= s.attachmentsNumber {
		return
	}
	s.attachmentsNumber = number
	known := map[netip.Addr]bool{}
	for _, a := range all {
		known[a.Addr] = true
		s.setAttachment(a)
	}
	for addr := range s.attachments {
		if !known[addr] {
			delete(s.attachments, addr)
			s.planners[FamilyOf(addr)].DeleteAttachment(addr)
		}
	}
}

// sameAttachment tells whether a and b say the same.
func sameAttachment(a, b plan.Attachment) bool {
	return a.Addr == b.Addr && a.Pod == b.Pod && a.UID == b.UID && a.Node == b.Node && a.Ended == b.Ended &&
		a.Released == b.Released && maps.Equal(a.Labels, b.Labels)
}

// Unconfirmed returns the attached addresses that a Service selects although no EndpointSlice of it names them, and those
// of them that are bound for their labels alone.
func (s *State) Unconfirmed() (all, bound AddressSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, bound = AddressSet{}, AddressSet{}
	for _, planner := range s.planners {
		ofAll, ofBound := planner.Unconfirmed()
		all.Add(ofAll)
		bound.Add(ofBound)
	}
	return all, bound
}

// AddressSet is a set of addresses.
type AddressSet map[netip.Addr]bool

// Add adds addresses.
func (s AddressSet) Add(addrs []netip.Addr) {
	for _, addr := range addrs {
		s[addr] = true
	}
}

// AnyOf tells whether one of some addresses is in the set.
func (s AddressSet) AnyOf(addrs []netip.Addr) bool {
	return slices.ContainsFunc(addrs, func(addr netip.Addr) bool { return s[addr] })
}

// AttachedAddresses returns the addresses of all attachments.
func (s *State) AttachedAddresses() []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.attachments))
}

// BindingsOf returns those of a pod's address as of the last update.
func (s *State) BindingsOf(ip netip.Addr) []plan.Binding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.planners[FamilyOf(ip)].BindingsOf(ip)
}

// ClaimingNamespaces returns the namespaces of Services with claims, sorted.
func (s *State) ClaimingNamespaces() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	namespaces := map[string]bool{}
	for name, svc := range s.services {
		if svc.claims(netip.Addr.IsValid) {
			namespaces[name.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(namespaces))
}

// ClaimsIn tells whether a Service of a namespace has a claim.
func (s *State) ClaimsIn(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, svc := range s.services {
		if name.Namespace == namespace && svc.claims(netip.Addr.IsValid) {
			return true
		}
	}
	return false
}
