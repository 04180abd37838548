package conntrack

import (
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Flow is what decides about one tracked connection. Addresses are invalid where the
// kernel told none; IPv4 addresses are never in their IPv4-mapped form.
type Flow struct {
	// Protocol is the IP protocol number.
	Protocol uint8
	// Source is the source address of the original direction, before any SNAT.
	Source netip.Addr
	// Destination is who answers, after DNAT: the source of the reply direction. The port
	// is 0 for protocols without ports.
	Destination netip.AddrPort
	// Wears is the address that the far side sees: the destination of the reply direction.
	Wears netip.Addr
	// Zone is the conntrack zone, of either direction; 0 is the one of the node's own network.
	Zone uint16
}

// Scope says what to judge after a change. The zero Scope judges nothing.
type Scope struct {
	// All judges the flows of every bound pod: at the start, after somebody else changed
	// the rules, when the exclusions changed.
	All bool
	// Pods are otherwise the bound pods to judge: those whose binding is new or changed.
	Pods map[netip.Addr]bool
	// Removed are bindings that held before and do not any more, whose egress IP nobody
	// may go on wearing for them. Their Service does not matter.
	Removed []kernel.Binding
}

// target is what can be bound once.
type target struct {
	pod      netip.Addr
	protocol protocol
}

// protocol is an IP protocol number, or every.
type protocol uint16

const every protocol = 256

// worn is an identity that was taken away.
type worn struct {
	target
	egressIP netip.Addr
}

// Selector tells which flows wear a wrong identity. It does not change and may be used by
// several goroutines.
type Selector struct {
	// bound has the egress IPs of those whose flows may be selected.
	bound   map[target]netip.Addr
	inScope func(netip.Addr) bool
	removed map[worn]bool
	// inside are the destinations that are never SNATed, whosever the flow is.
	inside [2]kernel.CIDRSet
	local  kernel.CIDRSet
}

// NewSelector returns the Selector for what scope says of the plan after a change. local
// are the node's own addresses: packets to them never pass POSTROUTING.
func NewSelector(after kernel.Desired, scope Scope, local kernel.CIDRSet) *Selector {
	s := &Selector{
		bound:   map[target]netip.Addr{},
		inScope: func(pod netip.Addr) bool { return scope.All || scope.Pods[pod] },
		removed: make(map[worn]bool, len(scope.Removed)),
		inside:  [...]kernel.CIDRSet{kernel.NewCIDRSet(after.ClusterCIDRs), kernel.NewCIDRSet(after.Exclusions)},
		local:   local,
	}
	lost := make(map[netip.Addr]bool, len(scope.Removed))
	for _, b := range scope.Removed {
		if number, ok := numberOf(b.Protocol); ok {
			s.removed[worn{target{b.Pod, number}, b.EgressIP}] = true
			lost[b.Pod] = true
		}
	}
	for _, b := range after.Bindings {
		if number, ok := numberOf(b.Protocol); ok && (s.inScope(b.Pod) || lost[b.Pod]) {
			s.bound[target{b.Pod, number}] = b.EgressIP
		}
	}
	return s
}

// Empty tells that no flow can be selected.
func (s *Selector) Empty() bool {
	return len(s.bound) == 0 && len(s.removed) == 0
}

// pods returns those of family whose flows can be selected, in no order, if they are at
// most limit.
func (s *Selector) pods(family kernel.Family, limit int) (pods []netip.Addr, few bool) {
	add := func(pod netip.Addr) bool {
		if pod.Is4() == (family == kernel.IPv4) && !slices.Contains(pods, pod) {
			pods = append(pods, pod)
		}
		return len(pods) <= limit
	}
	for t := range s.bound {
		if !add(t.pod) {
			return nil, false
		}
	}
	for w := range s.removed {
		if !add(w.pod) {
			return nil, false
		}
	}
	return pods, true
}

// Selects tells whether f wears a wrong identity. It takes constant time and allocates
// nothing. A flow does, in zone 0, if
//
//   - it wears the egress IP of a binding that was removed, unless the plan gives it the
//     same one; or
//   - its source is bound and in scope, and it wears another address than the egress IP,
//     although it leaves: the destination is neither in the cluster, excluded, one of the
//     node's own addresses nor the pod's own egress IP.
func (s *Selector) Selects(f Flow) bool {
	destination := f.Destination.Addr()
	if f.Zone != 0 || !f.Source.IsValid() || !f.Wears.IsValid() || !destination.IsValid() {
		return false
	}
	egressIP, bound := s.egressIP(f)
	if bound && f.Wears == egressIP {
		return false
	}
	if s.lost(f) {
		return true
	}
	return bound && s.inScope(f.Source) && destination != egressIP && !s.staysInside(destination)
}

// egressIP returns what f should wear, if its source is bound. A binding of all protocols
// comes before one of f's own, as it does in a plan's order and so in the rules.
func (s *Selector) egressIP(f Flow) (ip netip.Addr, bound bool) {
	if ip, bound = s.bound[target{f.Source, every}]; bound {
		return ip, true
	}
	ip, bound = s.bound[target{f.Source, protocol(f.Protocol)}]
	return ip, bound
}

// lost tells whether f wears what a removed binding gave it.
func (s *Selector) lost(f Flow) bool {
	return s.removed[worn{target{f.Source, protocol(f.Protocol)}, f.Wears}] ||
		s.removed[worn{target{f.Source, every}, f.Wears}]
}

func (s *Selector) staysInside(destination netip.Addr) bool {
	for _, cidrs := range s.inside {
		if _, inside := cidrs.Find(destination); inside {
			return true
		}
	}
	_, inside := s.local.Find(destination)
	return inside
}

// numberOf returns the number of a plan's protocol; not ok if no packet can have it.
func numberOf(p kernel.Protocol) (number protocol, ok bool) {
	switch p {
	case kernel.TCP:
		return 6, true
	case kernel.UDP:
		return 17, true
	case kernel.SCTP:
		return 132, true
	case kernel.All:
		return every, true
	}
	return 0, false
}
