package plan

import "net/netip"

// address is one that the outside knows Services by.
//
// Its holders are a linked list, so that one comes and goes at the same cost however many there are:
// anybody may write a Service with thousands of external IPs, or thousands of Services with one.
type address struct {
	ip    netip.Addr
	first *holder
	// owner is the oldest holder whose namespace may own the address, as of the last Update; nil
	// if there is none.
	owner *service
	// dirty: the next Update has to judge it.
	dirty bool
}

// holder is a Service that has an address.
type holder struct {
	service *service
	address *address
	// held says how the Service has it, claims that it is one of its egress IPs.
	held           Address
	claims         bool
	previous, next *holder
}

// link puts h into its address's list.
func (h *holder) link() {
	a := h.address
	h.previous, h.next = nil, a.first
	if a.first != nil {
		a.first.previous = h
	}
	a.first = h
}

// unlink takes h out of its address's list.
func (h *holder) unlink() {
	if h.previous == nil {
		h.address.first = h.next
	} else {
		h.previous.next = h.next
	}
	if h.next != nil {
		h.next.previous = h.previous
	}
}

// oldest returns the oldest holder whose namespace may own the address; nil if there is none.
func (a *address) oldest(s *surroundings) *service {
	type who struct {
		namespace string
		held      Address
	}
	var oldest *service
	var judged who // mostly the next is the same: then one judgement is enough for thousands of Services
	var may bool
	for h := a.first; h != nil; h = h.next {
		if oldest != nil && h.service.compare(oldest) >= 0 {
			continue
		}
		if this := (who{h.service.name.Namespace, h.held}); this != judged {
			judged, may = this, s.mayOwn(this.namespace, this.held)
		}
		if may {
			oldest = h.service
		}
	}
	return oldest
}

// claimedBy tells whether a Service of a namespace claims the address, and may have it. The owner may have got it in a way that is allowed,
// and another Service of the namespace name it in one that is not.
func (a *address) claimedBy(namespace string, s *surroundings) bool {
	var refused Address // mostly the next is the same
	for h := a.first; h != nil; h = h.next {
		if !h.claims || h.service.name.Namespace != namespace || h.held == refused {
			continue
		}
		if s.mayOwn(namespace, h.held) {
			return true
		}
		refused = h.held
	}
	return false
}
