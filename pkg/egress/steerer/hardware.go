package steerer

import (
	"maps"
	"net/netip"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// senders returns the hardware addresses of the other nodes, as far as they are known. Through a tunnel they do not count. The lock must
// be held.
func (s *Steerer) senders(in kernel.Steering) map[netip.Addr]kernel.HardwareAddr {
	if s.config.Kernel.Transport != steering.Direct {
		return nil
	}
	senders := map[netip.Addr]kernel.HardwareAddr{}
	for _, node := range in.Nodes {
		if at, known := s.hardware[node]; known {
			senders[node] = at
		}
	}
	return senders
}

// findSenders has the kernel tell, or look for, the hardware addresses that are not known: it may know one of a node that was none when
// it learned of it.
func (s *Steerer) findSenders(in kernel.Steering) {
	if s.config.Kernel.Transport != steering.Direct {
		return
	}
	for _, node := range in.Nodes {
		if _, known := in.Senders[node]; known {
			continue
		}
		if err := s.find(in.Self, node); err != nil {
			s.logger.V(2).Info("Cannot look for the hardware address of a node; what it sends here is dropped until it is known", "node", node, "err", err)
		}
		s.ask.Send()
	}
}

// setHardware takes the hardware address of a host. It keeps those of nodes: any host on the network can claim to be many.
func (s *Steerer) setHardware(host netip.Addr, at kernel.HardwareAddr) {
	if !s.state.IsPrimary(host) {
		return
	}
	objects := s.state.Snapshot()
	s.mu.Lock()
	before, known := s.hardware[host]
	s.hardware[host] = at
	if len(s.hardware) > s.hardwareLimit { // some may be of nodes that are gone
		maps.DeleteFunc(s.hardware, func(host netip.Addr, _ kernel.HardwareAddr) bool { return !objects.IsPrimary(host) })
		s.hardwareLimit = 2*len(s.hardware) + 10 // so that a thousand nodes are not looked at for each of them
	}
	s.mu.Unlock()
	if !known || before != at {
		s.config.RequestSync()
	}
}
