package egress

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

// ownAddresses are a node's addresses by where they are known from. The directory is told of them when both are known: what an earlier
// process has announced is not withdrawn because not all is known yet.
type ownAddresses struct {
	mu sync.Mutex // held until the directory has been told, so that it is told in order
	// onInterfaces are on this node's interfaces; announced, sorted, are those that a load balancer announces from here.
	onInterfaces, announced           []netip.Addr
	onInterfacesKnown, announcedKnown bool
}

// setOnInterfaces takes the addresses on this node's interfaces.
func (s *steerer) setOnInterfaces(event holders.Event) {
	s.setOwn(func(own *ownAddresses) {
		own.onInterfaces, own.onInterfacesKnown = event.(holders.OwnAddresses).Addresses, true
	})
}

// setAnnounced takes the addresses that a load balancer announces from here, and those that it may announce from here next.
func (s *steerer) setAnnounced(announced []netip.Addr, next map[netip.Addr]bool) {
	changed := s.setHeld(func() { s.balanced = next })
	s.setOwn(func(own *ownAddresses) { own.announced, own.announcedKnown = announced, true })
	if changed {
		s.changed()
	}
}

func (s *steerer) setOwn(change func(*ownAddresses)) {
	s.own.mu.Lock()
	defer s.own.mu.Unlock()
	change(&s.own)
	if s.own.onInterfacesKnown && s.own.announcedKnown {
		s.apply(s.own.event())
	}
}

// event is what the directory is told of them.
func (own *ownAddresses) event() holders.OwnAddresses {
	event := holders.OwnAddresses{Addresses: slices.Clone(own.onInterfaces)}
	for _, ip := range own.announced {
		if !slices.Contains(own.onInterfaces, ip) {
			event.Announced = append(event.Announced, ip)
		}
	}
	event.Addresses = append(event.Addresses, event.Announced...)
	return event
}
