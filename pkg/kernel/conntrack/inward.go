package conntrack

import (
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
)

// A node to which an egress IP has come passes what the far side sends to the pod whose port it is for ([kernel.Block]), and knows the
// flow as one that the far side has begun:
//
//	original tuple           reply tuple
//	src 198.51.100.9         src 10.128.0.5      the pod
//	dst 203.0.113.1          dst 198.51.100.9    the egress IP
//
// So it has no wrong source, but it must not outlive what gave the pod the egress IP, or the address here.

// owners are the ports that pods have of egress IPs for themselves.
type owners map[owner][]kernel.Ports

type owner struct{ pod, egressIP netip.Addr }

func ownersOf(blocks []kernel.Block) owners {
	all := owners{}
	for _, b := range blocks {
		of := owner{b.Pod, b.EgressIP}
		all[of] = append(all[of], b.Ports)
	}
	return all
}

// have tells whether a port of an egress IP is a pod's own.
func (o owners) have(pod, egressIP netip.Addr, port uint16) bool {
	return slices.ContainsFunc(o[owner{pod, egressIP}], func(p kernel.Ports) bool { return p.Contains(port) })
}

// inwardOf are the ports of pods whose flows from the far side may have to end: those of bindings that are removed, and of those in scope
// that leave elsewhere.
func (s *Selector) inwardOf(blocks []kernel.Block) owners {
	return ownersOf(slices.DeleteFunc(slices.Clone(blocks), func(b kernel.Block) bool {
		if s.steering.HasWay(b.EgressIP) && s.inScope(b.Pod) {
			return false
		}
		for _, p := range [...]protocol{every, 6, 17} {
			if s.removed[taken{target{b.Pod, p}, b.EgressIP}] {
				return false
			}
		}
		return true
	}))
}

// judgeInward is Judge for a flow that the far side has made known here. What is no connection has no end that a reset tells.
func (s *Selector) judgeInward(f Flow) (verdict Verdict, is bool) {
	pod, egressIP := f.Destination.Addr(), f.To.Addr()
	if f.Zone != 0 || pod == egressIP || f.Destination.Port() != f.To.Port() || !s.inward.have(pod, egressIP, f.To.Port()) {
		return Stays, false
	}
	of := Flow{Protocol: f.Protocol, Source: pod, SeenAs: egressIP}
	now, bound := find(s.bound, of)
	switch {
	case bound && now == egressIP && (!s.steering.HasWay(egressIP) || s.waits(f, egressIP) && !s.steering.Elsewhere(pod)):
		return Stays, true
	case bound && now == egressIP && f.Protocol == tcp && !s.steering.Elsewhere(pod):
		return Returns, true
	case bound && now == egressIP:
		return Leaves, true
	case s.lost(of) && f.Protocol == tcp:
		return Ends, true
	case s.lost(of):
		return Leaves, true
	}
	return Stays, true
}
