package steerer

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// Sync returns which ways the packets of an IP family take from now on, and when that changes without an event; zero for never. It tells
// the other nodes which egress IPs are here, if they have been told before, and makes the kernel look for hardware addresses of nodes
// that it does not know.
func (s *Steerer) Sync(family v1.IPFamily) (result kernel.Steering, wake time.Time) {
	if s == nil {
		return kernel.Steering{}, time.Time{}
	}
	if s.note(s.state.Snapshot(), family) { // for the other family as well
		defer s.config.Wake()
	}
	m := s.lockAsked(family)
	result, here := s.steeringAt(family, m)
	said := s.node.Say()
	s.wakeAt = s.node.Directory.Wake(m.now)
	for _, until := range s.coming {
		s.wakeAt = holders.Earlier(s.wakeAt, until)
	}
	wake = s.wakeAt
	s.mu.Unlock()
	s.memberWake.Send() // time has passed
	s.tell(said)
	s.tellPorts(said)
	s.addPods(&result, family, m, here, s.config.Ports.NotePorts)
	s.findSenders(result)
	return result, wake
}

// note takes note of what the objects say that nobody has told of, and tells whether an answer has changed. Older objects than those noted
// last change nothing.
func (s *Steerer) note(objects cluster.Snapshot, family v1.IPFamily) (differs bool) {
	if nodes := objects.Judged[s.config.Outer]; s.announcer != nil && s.toldNodes.Swap(nodes) != nodes {
		s.announcer.SetNodes(objects.Revision, nodes.Primary[s.state.Config.NodeName], nodes.Primary)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeObjects(objects)
	now := time.Now()
	s.readdress(s.objects.Judged[s.config.Outer], now)
	s.expectNew(s.objects.EgressIPs[family], family, now)
	return s.noteClaims(now)
}

// takeObjects takes what the objects say, unless something newer is known. The lock must be held.
func (s *Steerer) takeObjects(objects cluster.Snapshot) {
	if objects.Revision > s.objects.Revision {
		s.objects = objects
	}
}

// Steering returns which ways the packets of an IP family take now. The question changes no way.
func (s *Steerer) Steering(family v1.IPFamily) kernel.Steering {
	if s == nil {
		return kernel.Steering{}
	}
	m := s.lockAsked(family)
	result, here := s.steeringAt(family, m)
	s.mu.Unlock()
	s.addPods(&result, family, m, here, s.config.Ports.AddPorts)
	return result
}

// arrival is how long a new egress IP may take to come to a node, and its announcement to come here: the pool asks first
// whether another host has it.
const arrival = 5 * time.Second

// expectNew notes which egress IPs of a family are new, and which ones are not any more. The lock must be held.
func (s *Steerer) expectNew(claimed []netip.Addr, family v1.IPFamily, now time.Time) {
	if s.state.Config.Steering.Mode != holders.Required {
		return // no node is needed
	}
	maps.DeleteFunc(s.coming, func(_ netip.Addr, until time.Time) bool { return !until.After(now) })
	for _, ip := range claimed {
		if _, known := slices.BinarySearchFunc(s.claimed[family], ip, netip.Addr.Compare); !known {
			s.coming[ip] = now.Add(arrival)
		}
	}
	s.claimed[family] = claimed
}

// noteClaims tells the directory which addresses are claimed, if these are others than before, and whether an answer has changed.
// The lock must be held.
func (s *Steerer) noteClaims(now time.Time) (changed bool) {
	claims := slices.Concat(s.objects.EgressIPs[v1.IPv4Protocol], s.objects.EgressIPs[v1.IPv6Protocol])
	if s.claims != nil && slices.Equal(claims, s.claims) {
		return false
	}
	s.claims = append([]netip.Addr{}, claims...) // not nil
	_, changed = s.node.Next(holders.Claimed{Addresses: kernel.SetOf(claims)}, now)
	return changed
}

// steeringAt returns which ways the packets of an IP family take, but for what follows from pods, and whether other nodes may send packets
// here. The lock must be held.
func (s *Steerer) steeringAt(family v1.IPFamily, m moment) (result kernel.Steering, here bool) {
	self := s.state.Config.NodeName
	result.Self = m.Judged[s.config.Outer].Primary[self]
	nodes := s.nodes(family, m)
	mistaken := s.mistaken(m.Judged[s.config.Outer])
	result.Nodes = slices.DeleteFunc(slices.Clone(nodes.Addresses), func(ip netip.Addr) bool {
		return ip == nodes.Primary[self] || mistaken[ip] != "" // nobody else speaks from these
	})
	claimed, own := m.EgressIPs[family], s.node.Own()
	result.Claimed = claimed
	result.Ways = s.ways(claimed, m)
	result.Held, result.Absent = map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, ip := range claimed {
		// Connections to one that this node is about to take live on only if it is prepared.
		local := s.node.Holder(ip, m.now).State == holders.Local
		if s.mayCome(ip) || local {
			result.Held[ip] = true
			if _, away := result.Ways[ip]; !away && !local {
				result.Absent[ip] = true
			}
		}
		_, has := own[ip]
		here = here || has || s.mayCome(ip)
	}
	result.Senders = s.senders(result)
	return result, here
}

// addPods adds to the ways of an IP family which source ports pods have, and, if other nodes may send packets here, on which nodes bound
// pods run. The lock must not be held.
func (s *Steerer) addPods(result *kernel.Steering, family v1.IPFamily, m moment, here bool, addPorts func(v1.IPFamily, []netip.Addr, *kernel.Steering)) {
	addPorts(family, m.EgressIPs[family], result)
	result.Roaming = s.state.Config.Scope == placement.Cluster
	if here {
		result.Homes = s.state.HomesAt(family, s.nodes(family, m), result.Self)
	}
}

// nodes returns all nodes, with the addresses to which packets of an IP family are sent.
func (s *Steerer) nodes(family v1.IPFamily, m moment) *cluster.JudgedNodes {
	if s.config.Kernel.Transport == steering.Direct {
		return m.Judged[family] // a next hop is of the packets' family
	}
	return m.Judged[s.config.Outer]
}

// ways returns which ways the packets of these egress IPs, of a family, take. A refusal is final for a connection, so what has
// a new egress IP is dropped in silence instead: its SYN comes again. The lock must be held.
func (s *Steerer) ways(egressIPs []netip.Addr, m moment) map[netip.Addr]kernel.Way {
	ways := s.node.Ways(egressIPs, s.state.Config.Steering.Mode, m.now)
	holder := s.holder(m)
	for ip, way := range ways {
		if _, coming := s.coming[ip]; coming && way.Kind == kernel.Prohibit {
			ways[ip] = kernel.Way{Kind: kernel.Blackhole}
		}
		if way.Kind != kernel.ToNode {
			continue
		}
		ways[ip] = kernel.Way{Kind: kernel.Prohibit}
		if h := holder(ip); h.State == holders.Remote {
			ways[ip] = kernel.Way{Kind: kernel.ToNode, Node: h.Address}
		}
	}
	return ways
}
