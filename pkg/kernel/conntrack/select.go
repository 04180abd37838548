package conntrack

import (
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Flow is what decides about one tracked connection. Addresses are invalid where the
// kernel told none; those of IPv4 are never in their IPv4-mapped form, and mapped ones of IPv6 stay so.
type Flow struct {
	// Protocol is the IP protocol number.
	Protocol uint8
	// Source is the source address of the original direction, before any SNAT.
	Source netip.Addr
	// Destination is who answers, after DNAT: the source of the reply direction. The port
	// is 0 for protocols without ports.
	Destination netip.AddrPort
	// To is where the flow was sent, before any DNAT.
	To netip.AddrPort
	// SeenAs is the address that the far side sees: the destination of the reply direction.
	SeenAs netip.Addr
	// KeepsPort: the far side sees the source's own port, too. A flow without ports keeps it.
	KeepsPort bool
	// Answered: the far side has sent something.
	Answered bool
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
	// Removed are bindings that held before and do not any more. No flow of theirs may go on
	// using their egress IP. Their Service does not matter.
	Removed []kernel.Binding
	// Steered are bindings that held before, whose packets took another way then than they do
	// now: their egress IP had a [kernel.Way], to another node mostly. Those of them that are
	// removed are in both lists.
	Steered []kernel.Binding
	// Sent are bindings that held before, whose packets went to another node, or came from one, unless the destination was in Excluded.
	// They are here if more is excluded now.
	Sent     []kernel.Binding
	Excluded []netip.Prefix
	// Blocks are the ports that pods had for themselves before the change, if bindings were removed or have taken another way.
	Blocks []kernel.Block
}

// Verdict is what is to become of a tracked flow.
type Verdict int

// The verdicts.
const (
	// Stays: the flow is right.
	Stays Verdict = iota
	// Resumes: the flow is right, and goes on through another node, which learns of it from the pod's next packet. A pod that only
	// receives has to be nudged.
	Resumes
	// Moves: the flow goes on from another node than before, and the far side sees the same address and port. It is deleted, and goes
	// on with the pod's next packet.
	Moves
	// Leaves: as Moves, but the pod is not bound here any more, or runs on another node. The flow is deleted, and the pod is not
	// nudged from here: its own node does that, a pod answers one nudge in half a second (net.ipv4.tcp_invalid_ratelimit), and one
	// from here may come too early.
	Leaves
	// Returns: the far side has made the flow known here, and it goes on through another node. It is deleted, and goes on with the
	// pod's next packet.
	Returns
	// EndsAtPod: the far side saw the flow by way of another node, which ends it there. Here it is deleted, and the pod gets a reset.
	EndsAtPod
	// Ends: it is deleted, and both sides get a reset.
	Ends
)

// message is what the log says of a flow that does not stay as it is.
func (v Verdict) message() string {
	switch v {
	case Resumes, Moves, Leaves, Returns:
		return "A connection goes on, as its egress IP has moved between nodes"
	}
	return "Deleting a connection that uses the wrong source address"
}

// target is what can be bound once.
type target struct {
	pod      netip.Addr
	protocol protocol
}

// protocol is an IP protocol number, or every.
type protocol uint16

const every protocol = 256

// tcp is the number of TCP.
const tcp = 6

// taken is a pod and protocol with an egress IP that was taken away from them.
type taken struct {
	target
	egressIP netip.Addr
}

// Selector tells which flows use a wrong source address. It does not change and may be used by
// several goroutines.
type Selector struct {
	// bound has the egress IPs of those whose flows may be selected.
	bound   map[target]netip.Addr
	inScope func(netip.Addr) bool
	// steering is that after the change.
	steering kernel.Steering
	removed  map[taken]bool
	// inward are the ports of pods whose flows that the far side has made known here are judged.
	inward owners
	// steered has the egress IPs under which packets left through another node before.
	steered map[target]netip.Addr
	// sent are those of the Scope, and excluded what was excluded then.
	sent     map[target]netip.Addr
	excluded kernel.CIDRSet
	// concerned are the pods whose flows can be selected.
	concerned map[netip.Addr]bool
	// begun: the kernel knows connections from their beginning alone, so none goes on from another node.
	begun bool
	// inside are the destinations that are never SNATed, whosever the flow is.
	inside, local kernel.CIDRSet
}

// NewSelector returns the Selector for what scope says of the plan after a change. local
// are the node's own addresses: packets to them never pass POSTROUTING.
func NewSelector(after kernel.Desired, scope Scope, local kernel.CIDRSet) *Selector {
	s := &Selector{
		bound:     map[target]netip.Addr{},
		inScope:   func(pod netip.Addr) bool { return scope.All || scope.Pods[pod] },
		steering:  after.Steering,
		removed:   make(map[taken]bool, len(scope.Removed)),
		steered:   make(map[target]netip.Addr, len(scope.Steered)),
		sent:      make(map[target]netip.Addr, len(scope.Sent)),
		excluded:  kernel.NewCIDRSet(scope.Excluded),
		inside:    kernel.NewCIDRSet(slices.Concat(after.ClusterCIDRs, after.Exclusions)),
		local:     local,
		concerned: map[netip.Addr]bool{},
	}
	each(scope.Removed, func(t target, egressIP netip.Addr) { s.removed[taken{t, egressIP}], s.concerned[t.pod] = true, true })
	each(scope.Steered, func(t target, egressIP netip.Addr) { s.steered[t], s.concerned[t.pod] = egressIP, true })
	each(scope.Sent, func(t target, egressIP netip.Addr) { s.sent[t], s.concerned[t.pod] = egressIP, true })
	each(after.Bindings, func(t target, egressIP netip.Addr) {
		if s.concerned[t.pod] || s.inScope(t.pod) {
			s.bound[t], s.concerned[t.pod] = egressIP, true
		}
	})
	s.inward = s.inwardOf(scope.Blocks)
	if scope.All {
		s.inward = s.inwardOf(slices.Concat(scope.Blocks, after.Steering.Blocks))
	}
	return s
}

// each calls do with what can be bound and its egress IP.
func each(bindings []kernel.Binding, do func(t target, egressIP netip.Addr)) {
	for _, b := range bindings {
		if number, ok := numberOf(b.Protocol); ok {
			do(target{b.Pod, number}, b.EgressIP)
		}
	}
}

// Empty tells that no flow can be selected.
func (s *Selector) Empty() bool { return len(s.concerned) == 0 }

// pods returns those of family whose flows can be selected, in no order, if they are at
// most limit.
func (s *Selector) pods(family kernel.Family, limit int) (pods []netip.Addr, few bool) {
	for pod := range s.concerned {
		if pod.Is4() != (family == kernel.IPv4) {
			continue
		}
		if len(pods) == limit {
			return nil, false
		}
		pods = append(pods, pod)
	}
	return pods, true
}

// Judge returns what is to become of f. It takes constant time and allocates nothing. The address that
// a bound flow should use here is the egress IP, or its own source if the egress IP has a way: the node
// that holds it translates the source then. A flow ends, in zone 0, if
//
//   - it uses the egress IP of a binding that was removed, unless the plan gives it the
//     same one; or
//   - its source is bound and in scope, and it uses another address than it should,
//     although it leaves: the destination is neither in the cluster, excluded, one of the
//     node's own addresses nor the pod's own egress IP; or
//   - it uses its own source and leaves, and its binding was removed that had another node
//     translate it; or
//   - its destination was not excluded when another node translated it, or this one did for a pod of another node.
//
// If only the way has changed, and the far side need not notice, a flow goes on instead: see [Resumes], [Moves] and [Leaves]. A flow that
// another node translated has kept its port there. A flow that was translated here goes on only if it has kept its port, as all that were
// steered here do. Where kernels do not pick TCP connections up in the middle, these end. While no node that can be reached has the egress
// IP, TCP connections of pods here that could go on stay as they are, to be judged when one takes it: a pod that is nudged before is heard
// nowhere. Others stay for as long as a node may take it at any moment ([kernel.Blackhole]).
func (s *Selector) Judge(f Flow) Verdict {
	if len(s.inward) > 0 {
		if verdict, is := s.judgeInward(f); is {
			return verdict
		}
	}
	verdict := s.judge(f)
	if !s.begun || f.Protocol != tcp {
		return verdict
	}
	switch {
	case verdict == Leaves, verdict == Moves && f.SeenAs != f.Source:
		return Ends
	case verdict == Resumes, verdict == Moves:
		return EndsAtPod
	}
	return verdict
}

// judge is Judge where connections go on.
func (s *Selector) judge(f Flow) Verdict {
	destination := f.Destination.Addr()
	if f.Zone != 0 || !f.Source.IsValid() || !f.SeenAs.IsValid() || !destination.IsValid() {
		return Stays
	}
	egressIP, bound := find(s.bound, f)
	way, hasWay := s.steering.Ways[egressIP]
	right := egressIP
	if hasWay {
		right = f.Source
	}
	formerIP, steered := s.wasSteered(f)
	same := bound && steered && formerIP == egressIP
	switch {
	case s.leavesNoMore(f) && f.SeenAs == f.Source:
		return EndsAtPod
	case s.leavesNoMore(f): // nothing of its pod comes here any more, and the far side would wait for it
		return Ends
	case bound && f.SeenAs == right && same && way.Kind == kernel.ToNode:
		return Resumes
	case bound && f.SeenAs == right:
		return Stays
	case same:
		return Moves
	case steered:
		return EndsAtPod
	case s.lost(f), bound && s.inScope(f.Source) && s.leaves(destination, egressIP):
		return s.judgeWrong(f, egressIP)
	}
	return Stays
}

// judgeWrong judges a flow that is wrong here. The egress IP is that of its source, invalid if it has none.
func (s *Selector) judgeWrong(f Flow, egressIP netip.Addr) Verdict {
	switch {
	case !f.KeepsPort || !s.steering.HasWay(f.SeenAs):
		return Ends
	case !egressIP.IsValid(), f.SeenAs == egressIP && s.steering.Elsewhere(f.Source):
		return Leaves
	case f.SeenAs == egressIP && s.waits(f, egressIP):
		return Stays
	case f.SeenAs == egressIP:
		return Moves
	}
	return Ends
}

// waits tells whether a flow is to be judged when a node takes an egress IP: it may do so at any moment, or a TCP connection can go on there
// however late that is. Who sends otherwise is rather told that nobody has the address.
func (s *Selector) waits(f Flow, egressIP netip.Addr) bool {
	kind := s.steering.Ways[egressIP].Kind
	return kind == kernel.Blackhole || kind == kernel.Prohibit && f.Protocol == tcp && f.Answered && !s.begun
}

// find returns the egress IP of f's source. One of all protocols comes before one of f's own, as it does
// in a plan's order and so in the rules.
func find(egressIPs map[target]netip.Addr, f Flow) (ip netip.Addr, found bool) {
	if ip, found = egressIPs[target{f.Source, every}]; found {
		return ip, true
	}
	ip, found = egressIPs[target{f.Source, protocol(f.Protocol)}]
	return ip, found
}

// wasSteered tells whether another node translated f's source, to which egress IP, before the change.
func (s *Selector) wasSteered(f Flow) (egressIP netip.Addr, steered bool) {
	if f.SeenAs != f.Source {
		return netip.Addr{}, false
	}
	egressIP, steered = find(s.steered, f)
	return egressIP, steered && s.leaves(f.Destination.Addr(), egressIP)
}

// leavesNoMore tells whether f went to another node, or came from one, before its destination was excluded. Nobody translates what its pod
// sends now.
func (s *Selector) leavesNoMore(f Flow) bool {
	egressIP, sent := find(s.sent, f)
	destination := f.Destination.Addr()
	goes, came := f.SeenAs == f.Source, f.SeenAs == egressIP && s.steering.Elsewhere(f.Source)
	if !sent || !goes && !came || destination == egressIP || !s.staysInside(destination) {
		return false
	}
	return !s.excluded.Contains(destination) && !s.local.Contains(destination)
}

// sendsOn tells whether f, which uses its own source, leaves from another node, under which egress IP.
func (s *Selector) sendsOn(f Flow) (egressIP netip.Addr, sends bool) {
	egressIP, bound := find(s.bound, f)
	return egressIP, bound && s.steering.Ways[egressIP].Kind == kernel.ToNode && s.leaves(f.Destination.Addr(), egressIP)
}

// lost tells whether f uses what a removed binding gave it.
func (s *Selector) lost(f Flow) bool {
	return s.removed[taken{target{f.Source, protocol(f.Protocol)}, f.SeenAs}] ||
		s.removed[taken{target{f.Source, every}, f.SeenAs}]
}

// leaves tells whether a packet to destination leaves the cluster from the egress IP of a pod that has one.
func (s *Selector) leaves(destination, egressIP netip.Addr) bool {
	return destination != egressIP && !s.staysInside(destination)
}

func (s *Selector) staysInside(destination netip.Addr) bool {
	return s.inside.Contains(destination) || s.local.Contains(destination)
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
