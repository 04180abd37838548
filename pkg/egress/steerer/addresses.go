package steerer

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// Addresses returns what is known of the egress IPs of a family.
func (s *Steerer) Addresses(family v1.IPFamily) (result []status.Address) {
	m := s.lockAsked(family)
	defer s.mu.Unlock()
	claimed, conflicts := m.EgressIPs[family], s.node.Conflicts(m.now)
	ways, holder := s.ways(claimed, m), s.holder(m)
	for _, ip := range claimed {
		h := holder(ip)
		a := status.Address{
			IP: ip, State: string(h.State), Holder: h.Node, Since: h.Since, Epoch: h.Epoch, Known: string(h.Known), Why: string(h.Why), Way: "here",
		}
		if way, elsewhere := ways[ip]; elsewhere {
			a.Way = string(way.Kind)
		}
		if i := slices.IndexFunc(conflicts, func(c holders.Conflict) bool { return c.Address == ip }); i >= 0 {
			a.Conflict = conflicts[i].Nodes[1:]
		}
		result = append(result, a)
	}
	return result
}

// Via returns the other node that has an egress IP; empty if none has.
func (s *Steerer) Via(egressIP netip.Addr) string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.node.Holder(egressIP, time.Now()); h.State == holders.Remote {
		return h.Node
	}
	return ""
}

// The reasons of Events about addresses.
const (
	addressLost      plan.Reason = "EgressIPLost"
	addressOnSeveral plan.Reason = "EgressIPOnSeveralNodes"
)

// Troubles returns what is wrong with where the egress IPs are, by the Services that claim them, and of what others say of addresses.
func (s *Steerer) Troubles(others ...map[netip.Addr]tell.Trouble) map[plan.Service][]tell.Trouble {
	if s == nil {
		return nil
	}
	troubles := map[plan.Service][]tell.Trouble{}
	for _, family := range cluster.Families {
		byAddress := s.troublesOf(family)
		for _, of := range others {
			maps.Copy(byAddress, of)
		}
		if len(byAddress) == 0 {
			continue
		}
		for service, ips := range s.state.Claims(family) {
			for _, address := range ips {
				if t, found := byAddress[address.IP]; found {
					troubles[service] = append(troubles[service], t)
				}
			}
		}
	}
	return troubles
}

// isOwnView tells whether it is this node that does not reach another one, and others may.
func (s *Steerer) isOwnView(m moment, node netip.Addr) bool {
	self := m.Judged[s.config.Outer].Primary[s.state.Config.NodeName]
	return s.config.Kernel.Transport == steering.Direct || steering.HardwareAddrOf(node) == steering.HardwareAddrOf(self)
}

// troublesOf returns what is wrong with the egress IPs of a family.
func (s *Steerer) troublesOf(family v1.IPFamily) map[netip.Addr]tell.Trouble {
	m := s.lockAsked(family)
	defer s.mu.Unlock()
	troubles := map[netip.Addr]tell.Trouble{}
	claimed, holder, now := m.EgressIPs[family], s.holder(m), m.now
	for _, ip := range claimed {
		if h := holder(ip); h.State == holders.Lost && now.Sub(h.Since) > tell.Lasting {
			note, own := fmt.Sprintf("%s is lost with %s, which has or had it (%s): pods reach nothing outside. Bring the node back, or put the address on another one.", ip, h.Node, h.Why), false
			if raw := s.node.Holder(ip, now); raw.State == holders.Remote && s.isOwnView(m, raw.Address) {
				note, own = "On some nodes, for example "+s.state.Config.NodeName+": "+note, true
			}
			troubles[ip] = tell.Trouble{Reason: addressLost, Note: note, Own: own}
		}
	}
	for _, c := range s.node.Conflicts(now) {
		if _, found := slices.BinarySearchFunc(claimed, c.Address, netip.Addr.Compare); found && now.Sub(c.Since) > tell.Lasting {
			nodes := slices.Sorted(slices.Values(c.Nodes)) // the same from all nodes
			troubles[c.Address] = tell.Trouble{Reason: addressOnSeveral, Note: fmt.Sprintf("%s is on several nodes at the same time: %s. Remove it from all but one.", c.Address, strings.Join(nodes, ", "))}
		}
	}
	return troubles
}

// Holders returns the nodes that hold the egress IPs of a family whose Services have several, by these.
func (s *Steerer) Holders(family v1.IPFamily) map[netip.Addr]string {
	if s == nil {
		return nil
	}
	ips := s.state.Alternatives(family)
	if len(ips) == 0 {
		return nil
	}
	held := map[netip.Addr]string{}
	m := s.lockAsked(family)
	defer s.mu.Unlock()
	holder := s.holder(m)
	for _, ip := range ips {
		if h := holder(ip); h.State == holders.Local || h.State == holders.Remote {
			held[ip] = h.Node
		}
	}
	return held
}
