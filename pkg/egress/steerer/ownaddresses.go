package steerer

import (
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

// ownAddresses are a node's addresses by where they are known from. The directory is told of them when both are known: what an earlier
// process has announced is not withdrawn because not all is known yet.
type ownAddresses struct {
	// onInterfaces are on this node's interfaces; announced, sorted, are those that a load balancer announces from here.
	onInterfaces, announced           []netip.Addr
	onInterfacesKnown, announcedKnown bool
}

// SetOnInterfaces takes the addresses on this node's interfaces. Run calls it when they change.
func (s *Steerer) SetOnInterfaces(event holders.Event) {
	addresses := event.(holders.OwnAddresses).Addresses
	var arrived []netip.Addr
	s.setOwn(func(own *ownAddresses) {
		if own.onInterfacesKnown {
			arrived = slices.DeleteFunc(slices.Clone(addresses), func(ip netip.Addr) bool { return slices.Contains(own.onInterfaces, ip) })
		}
		own.onInterfaces, own.onInterfacesKnown = addresses, true
	})
	if silent := s.putByOthers(arrived); len(silent) > 0 {
		s.advertise(silent)
	}
}

// putByOthers returns those of addresses that are egress IPs which the pool does not put on nodes. The network has to be told that they are
// here: whoever put them here may not have done that, and hosts that know them at another node would send there for seconds.
func (s *Steerer) putByOthers(addresses []netip.Addr) []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(addresses, func(ip netip.Addr) bool { return s.node.MayCome(ip) || !slices.Contains(s.claims, ip) })
}

// SetAnnounced takes the addresses that a load balancer announces from here, and those that it may announce from here next.
func (s *Steerer) SetAnnounced(announced []netip.Addr, next map[netip.Addr]bool) {
	s.mu.Lock()
	s.balanced = next
	s.mu.Unlock()
	changed := s.setHeld()
	s.setOwn(func(own *ownAddresses) { own.announced, own.announcedKnown = announced, true })
	if changed {
		s.config.RequestSync()
	}
}

func (s *Steerer) setOwn(change func(*ownAddresses)) {
	s.mu.Lock()
	change(&s.own)
	if !s.own.onInterfacesKnown || !s.own.announcedKnown {
		s.mu.Unlock()
		return
	}
	event := holders.Own(s.own.onInterfaces, s.own.announced)
	after := s.next(event)
	s.mu.Unlock()
	s.follow(event, after)
}
