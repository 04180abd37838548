package pool

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
)

// Network is a subnet that a member has on an interface.
type Network struct {
	Prefix netip.Prefix `json:"prefix"`
	// Up: the interface is, and has a carrier.
	Up bool `json:"up,omitempty"`
}

// State is what a member tells the others of itself.
type State struct {
	Name string `json:"name"`
	// Run tells two processes of a member apart. Of two states of one run, that with the higher Version
	// is the newer.
	Run     uint64 `json:"run"`
	Version uint64 `json:"version"`
	// Draining: it gives its addresses to others, and takes none.
	Draining bool      `json:"draining,omitempty"`
	Networks []Network `json:"networks,omitempty"`
	// Held are its addresses, with their epochs; 0 as long as one is not known.
	Held map[netip.Addr]uint64 `json:"held,omitempty"`
	// Claims are the addresses that it is about to take. The value is the MAC of another host that has
	// the address, so that it is not taken.
	Claims map[netip.Addr]string `json:"claims,omitempty"`
	// Failed are the addresses that it could not take.
	Failed []netip.Addr `json:"failed,omitempty"`
	// Handover: for a moment it serves the connections of an address that another member has taken over, and drops what is of
	// no connection that it tracks. So the new holder may pass packets on to it (pkg/kernel/handover).
	Handover bool `json:"handover,omitempty"`
	// Part: this has some of its addresses, and nothing else; see [Reminded].
	Part bool `json:"part,omitempty"`
}

// objects says why a member with this state cannot hold an address, if it is live.
func (s State) objects(ip netip.Addr) Objection {
	has := func(n Network) bool { return n.Prefix.Contains(ip) }
	hasUp := func(n Network) bool { return n.Up && has(n) }
	switch {
	case s.Draining:
		return Draining
	case !slices.ContainsFunc(s.Networks, has):
		return NoSubnet
	case !slices.ContainsFunc(s.Networks, hasUp):
		return LinkDown
	case slices.Contains(s.Failed, ip):
		return Failed
	}
	return ""
}

// load is how many addresses a member with this state has, or is about to get.
func (s State) load() int { return len(s.Held) + len(s.Claims) }

// equal tells whether a state says the same, whatever its version.
func (s State) equal(o State) bool {
	return s.Draining == o.Draining && s.Handover == o.Handover && slices.Equal(s.Networks, o.Networks) && maps.Equal(s.Held, o.Held) &&
		maps.Equal(s.Claims, o.Claims) && slices.Equal(s.Failed, o.Failed)
}

// newer tells whether a state came after another one of its member.
func (s State) newer(than State) bool { return s.Run != than.Run || s.Version > than.Version }

// datagram is how large a state may be, in bytes, to be sent by UDP.
const datagram = 1200

// parts returns the addresses of a member with this state in as many states as it takes for each to fit a datagram; in one if
// there are none.
func (s State) parts() []State {
	next := func() State {
		return State{Name: s.Name, Run: s.Run, Version: s.Version, Part: true, Held: map[netip.Addr]uint64{}}
	}
	const frame, entry = len(`{"name":"","run":,"version":,"held":{},"part":true}`) + 2*len("9007199254740991"), len(`"":,`)
	parts, size := []State{next()}, frame+len(s.Name)
	for _, ip := range sorted(s.Held) {
		more := len(ip.String()) + len(strconv.FormatUint(s.Held[ip], 10)) + entry
		if last := parts[len(parts)-1]; size+more > datagram && len(last.Held) > 0 {
			parts, size = append(parts, next()), frame+len(s.Name)
		}
		parts[len(parts)-1].Held[ip] = s.Held[ip]
		size += more
	}
	return parts
}

// maxEpoch bounds epochs. No address moves as often.
const maxEpoch = 1 << 62

// confine removes what no member can mean: addresses outside the pool's networks, and epochs after which none can follow.
func (s *State) confine(networks []netip.Prefix) {
	outside := func(ip netip.Addr) bool {
		return !slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(ip) })
	}
	maps.DeleteFunc(s.Held, func(ip netip.Addr, epoch uint64) bool { return outside(ip) || epoch > maxEpoch })
	maps.DeleteFunc(s.Claims, func(ip netip.Addr, _ string) bool { return outside(ip) })
	s.Failed = slices.DeleteFunc(s.Failed, outside)
}
