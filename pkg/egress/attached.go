package egress

import (
	"maps"
	"net/netip"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// setAttachment takes whose an address on this node is, in the place of what was known of the address.
func (s *state) setAttachment(a plan.Attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sameAttachment(s.attachments[a.Addr], a) {
		return
	}
	s.attachments[a.Addr] = a
	s.planners[familyOf(a.Addr)].SetAttachment(a)
}

// deleteAttachment forgets whose an address is.
func (s *state) deleteAttachment(addr netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.attachments, addr)
	s.planners[familyOf(addr)].DeleteAttachment(addr)
}

// sameAttachment tells whether a and b say the same.
func sameAttachment(a, b plan.Attachment) bool {
	return a.Addr == b.Addr && a.Pod == b.Pod && a.UID == b.UID && a.Node == b.Node && a.Ended == b.Ended &&
		a.Released == b.Released && maps.Equal(a.Labels, b.Labels)
}
