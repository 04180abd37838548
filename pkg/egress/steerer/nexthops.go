package steerer

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// moment is a time, what the objects said shortly before, and which nodes can be the next hop.
type moment struct {
	cluster.Snapshot
	now  time.Time
	next nextHops
}

// nextHops are nodes, by their names, as next hops: under this address, or why they cannot be that, and since when; empty for those that can.
type nextHops map[string]nextHop

type nextHop struct {
	address netip.Addr
	why     holders.Reason
	since   time.Time
}

// hopKey names a node as a next hop of packets of an IP family.
type hopKey struct {
	family v1.IPFamily
	name   string
}

// lockAsked takes the lock, at a moment at which it is known of all nodes that have an egress IP of a family whether they can be the next
// hop: the kernel is asked without the lock, and so are the objects.
func (s *Steerer) lockAsked(family v1.IPFamily) moment {
	m := moment{next: nextHops{}}
	for {
		m.Snapshot = s.state.Snapshot()
		s.mu.Lock()
		m.now = time.Now()
		open := s.unasked(family, m)
		if len(open) == 0 {
			return m
		}
		s.mu.Unlock()
		self, nodes := m.Judged[s.config.Outer].Primary[s.state.Config.NodeName], m.Judged[family].Primary
		for _, name := range open {
			m.next[name] = s.askHop(hopKey{family, name}, self, nodes[name])
		}
	}
}

// unasked returns the nodes that have an egress IP and are not in next; none where there is a tunnel. The lock must be held.
func (s *Steerer) unasked(family v1.IPFamily, m moment) (names []string) {
	if s.config.Kernel.Transport != steering.Direct {
		return nil
	}
	for _, ip := range m.EgressIPs[family] {
		h := s.node.Holder(ip, m.now)
		if _, asked := m.next[h.Node]; h.State == holders.Remote && !asked && !slices.Contains(names, h.Node) {
			names = append(names, h.Node)
		}
	}
	return names
}

// holder returns what says who holds an egress IP of a family. One is lost whose holder cannot be the next hop of packets of this node, or
// cannot be told from another node in the tunnel. The lock must be held as [Steerer.lockAsked] takes it.
func (s *Steerer) holder(m moment) func(netip.Addr) holders.Holding {
	mistaken := s.mistaken(m.Judged[s.config.Outer])
	return func(ip netip.Addr) holders.Holding {
		h := s.node.Holder(ip, m.now)
		if h.State != holders.Remote {
			return h
		}
		hop, asked := m.next[h.Node]
		switch {
		case s.config.Kernel.Transport != steering.Direct:
			hop = nextHop{address: h.Address, why: mistaken[h.Address]}
		case !asked: // of an address that is not claimed any more
			hop.why = "it is not known yet whether the transport direct reaches the node"
		}
		h.Address = hop.address
		if hop.why != "" {
			h.State, h.Address, h.Why = holders.Lost, netip.Addr{}, hop.why
			if hop.since.After(h.Since) {
				h.Since = hop.since
			}
		}
		return h
	}
}

// mistaken returns the addresses of nodes to which nothing is sent in the tunnel, and from which nothing counts, with the reasons: a Node may
// report this node's own address, or in IPv6 choose one that has the same hardware address as this node's, or an older one's. The lock must be
// held.
func (s *Steerer) mistaken(judged *cluster.JudgedNodes) map[netip.Addr]holders.Reason {
	if s.mistakenOf == judged {
		return s.mistakes
	}
	self := judged.Primary[s.state.Config.NodeName]
	first := map[kernel.HardwareAddr]netip.Addr{steering.HardwareAddrOf(self): self}
	s.mistakenOf, s.mistakes = judged, map[netip.Addr]holders.Reason{self: "its Node reports the address of this node"}
	for _, ip := range judged.ByAge {
		at := steering.HardwareAddrOf(ip)
		switch other, taken := first[at]; {
		case s.config.Kernel.Transport == steering.Direct: // nodes have hardware addresses of their own
		case !taken:
			first[at] = ip
		case other != ip:
			s.mistakes[ip] = holders.Reason(fmt.Sprintf("its address %s has the same hardware address in the tunnel as the node at %s: give one of them another address", ip, other))
		}
	}
	return s.mistakes
}

// askHop asks the kernel whether a node can be the next hop. The log says it when that changes. The lock must not be held.
func (s *Steerer) askHop(of hopKey, self, node netip.Addr) nextHop {
	hop := nextHop{address: node, since: time.Now()}
	if !node.IsValid() {
		hop.why = holders.Reason(fmt.Sprintf("the node has no InternalIP that counts for %s, which the transport direct needs", of.family))
	} else if err := s.adjacent(self, node); err != nil {
		hop.why = holders.Reason(fmt.Sprintf("the transport direct does not reach the node: %v", err))
	}
	s.mu.Lock()
	before, was := s.unreached[of]
	if was {
		hop.since = before.since
	}
	if s.unreached[of] = hop; hop.why == "" {
		delete(s.unreached, of)
	}
	s.mu.Unlock()
	switch {
	case hop.why != "" && hop.why != before.why:
		s.logger.Error(errors.New(string(hop.why)), "Packets for the egress IPs of a node are rejected, because the transport direct cannot send them there; "+
			"bring these egress IPs to a node of the same network, or set egress-snat-steering-transport to vxlan on all nodes", "node", of.name, "ipFamily", of.family)
	case hop.why == "" && was:
		s.logger.Info("The transport direct reaches the node again", "node", of.name, "ipFamily", of.family)
	}
	return hop
}
