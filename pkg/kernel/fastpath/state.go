package fastpath

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Numbers is how many numbers the holders of an IP family can have, from 0 on. Here is this node's. A pod whose packets go Nowhere is bound,
// and none of them takes the fast path.
const (
	Numbers = 64
	Here    = 0
	Nowhere = -1
)

// unbound is in the kernel's maps in the place of a holder, as in the programs.
const unbound = 2 * Numbers

// Pod is whose packets of one protocol, or of all, take a way.
type Pod struct {
	Address  netip.Addr
	Protocol kernel.Protocol
}

// Uplink is how this node reaches the others.
type Uplink struct {
	// Index is that of the interface that has this node's address, and MTU the largest packet of a pod that other nodes get by it,
	// without a tunnel's headers.
	Index, MTU int
	// Tunnel is the index of the tunnel's interface; 0 if the other nodes are next hops. Self, Port and VNI are the tunnel's.
	Tunnel int
	Self   netip.Addr
	Port   uint16
	VNI    uint32
}

// Holder is a node that packets are sent to. Hardware addresses are those of the ends of the tunnel.
type Holder struct {
	Node          netip.Addr
	Hardware, Own kernel.HardwareAddr
}

// Surroundings are what one IP family's packets meet, apart from the ways of pods.
type Surroundings struct {
	Uplink Uplink
	// Holders are by their numbers.
	Holders map[int]Holder
	// Exclusions are the destinations of packets that leave from no egress IP.
	Exclusions map[netip.Prefix]bool
	// EgressIPs are those that this node gives to what other nodes send here, and Elsewhere all others: no destinations either.
	EgressIPs, Elsewhere map[netip.Addr]bool
	// Senders are the nodes that may send packets here, with the hardware address that each has behind the tunnel, or, without a
	// tunnel, on the nodes' network.
	Senders map[netip.Addr]kernel.HardwareAddr
}

// Equal tells whether s and o say the same.
func (s Surroundings) Equal(o Surroundings) bool {
	return s.Uplink == o.Uplink && maps.Equal(s.Holders, o.Holders) && maps.Equal(s.Exclusions, o.Exclusions) && maps.Equal(s.EgressIPs, o.EgressIPs) && maps.Equal(s.Elsewhere, o.Elsewhere) && maps.Equal(s.Senders, o.Senders)
}

// narrowed returns what both s and o let into the fast path.
func (s Surroundings) narrowed(o Surroundings) Surroundings {
	if s.Uplink != o.Uplink {
		s.Uplink = Uplink{}
	}
	s.Exclusions, s.Elsewhere = either(s.Exclusions, o.Exclusions), either(s.Elsewhere, o.Elsewhere, s.EgressIPs, o.EgressIPs)
	s.Holders, s.EgressIPs, s.Senders = common(s.Holders, o.Holders), common(s.EgressIPs, o.EgressIPs), common(s.Senders, o.Senders)
	return s
}

// either returns what any of some sets has.
func either[K comparable](sets ...map[K]bool) map[K]bool {
	all := map[K]bool{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}

// common returns what two maps both have.
func common[K, V comparable](a, b map[K]V) map[K]V {
	both := map[K]V{}
	for key, value := range a {
		if has(b, key, value) {
			both[key] = value
		}
	}
	return both
}

func has[K, V comparable](m map[K]V, key K, value V) bool {
	v, there := m[key]
	return there && v == value
}

// Change is what becomes of one IP family. What it does not say stays.
type Change struct {
	// Ways are the numbers of the holders that pods' packets go to, and Gone those pods whose packets go the slow path.
	Ways map[Pod]int
	Gone []Pod
	// Whole: Ways are all that there are.
	Whole bool
	// Surroundings are all that there are; nil if they stay.
	Surroundings *Surroundings
}

// changed returns the pods whose ways are not what they were.
func (c Change) changed(before map[Pod]int) []Pod {
	changed := slices.Clone(c.Gone)
	for pod, number := range c.Ways {
		if !has(before, pod, number) {
			changed = append(changed, pod)
		}
	}
	if c.Whole {
		for pod := range before {
			if _, led := c.Ways[pod]; !led {
				changed = append(changed, pod)
			}
		}
	}
	return changed
}

// way is that of a pod's address: the interface behind which it is, and the places of its holders among all, or that it is unbound, plus
// one; 0 for none.
type way struct{ at, tcp, udp int }

// wayOf returns the way of an address. Pods that are limited have none, and others that are not led anywhere are unbound.
func wayOf(ways map[Pod]int, limited map[Pod]bool, places map[netip.Addr]int, address netip.Addr) way {
	of := func(protocol kernel.Protocol) int {
		for _, pod := range []Pod{{address, protocol}, {address, kernel.All}} {
			number, led := ways[pod]
			switch {
			case limited[pod], led && number == Nowhere:
				return 0
			case led:
				return placeOf(kernel.FamilyOf(address), number) + 1
			}
		}
		return unbound + 1
	}
	w := way{places[address], of(kernel.TCP), of(kernel.UDP)}
	if w.at == 0 || w.tcp+w.udp == 0 {
		return way{}
	}
	return w
}

// protocols are those of the flows that take a way.
func (w way) protocols() (protocols []kernel.Protocol) {
	if w.tcp > 0 {
		protocols = append(protocols, kernel.TCP)
	}
	if w.udp > 0 {
		protocols = append(protocols, kernel.UDP)
	}
	return protocols
}

// placeOf is where a number's holder is in the kernel's map: IPv6's are behind IPv4's, for the numbers are each family's own.
func placeOf(name kernel.Family, number int) int {
	if name == kernel.IPv4 {
		return number
	}
	return Numbers + number
}
