package pool

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

// Network is a subnet that a member has on an interface.
type Network struct {
	Prefix netip.Prefix `json:"prefix"`
	// Up: the interface is, and has a carrier.
	Up bool `json:"up,omitempty"`
}

// State is what a member tells the others of itself. Members of older versions ignore fields that they do not know: a new one must do no
// harm there.
type State struct {
	// Name is its node's. It is not told: it follows from the address that a state comes from.
	Name string `json:"-"`
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

// SubnetOf returns the subnet of these that an address belongs to: that with the longest prefix, as for the kernel's routes, and of several
// with the same prefix one that is up.
func SubnetOf(networks []Network, ip netip.Addr) (best Network, found bool) {
	for _, n := range networks {
		if !n.Prefix.Contains(ip) {
			continue
		}
		if longer := n.Prefix.Bits() - best.Prefix.Bits(); !found || longer > 0 || longer == 0 && n.Up {
			best, found = n, true
		}
	}
	return best, found
}

// objects says why a member with this state cannot hold an address, if it is live.
func (s State) objects(ip netip.Addr) Objection {
	subnet, has := SubnetOf(s.Networks, ip)
	switch {
	case s.Draining:
		return Draining
	case !has:
		return NoSubnet
	case !subnet.Up:
		return LinkDown
	case slices.Contains(s.Failed, ip):
		return Failed
	case s.load() >= mostAddresses && !s.has(ip):
		return Full
	}
	return ""
}

// has tells whether a member with this state has an address, or is about to get it.
func (s State) has(ip netip.Addr) bool {
	_, held := s.Held[ip]
	_, claimed := s.Claims[ip]
	return held || claimed
}

// load is how many addresses a member with this state has, or is about to get.
func (s State) load() int { return len(s.Held) + len(s.Claims) }

// equal tells whether a state says the same, whatever its version.
func (s State) equal(o State) bool {
	return s.Draining == o.Draining && s.Handover == o.Handover && slices.Equal(s.Networks, o.Networks) && maps.Equal(s.Held, o.Held) &&
		maps.Equal(s.Claims, o.Claims) && slices.Equal(s.Failed, o.Failed)
}

// same tells whether this is another copy of a state of the same member.
func (s State) same(o State) bool { return s.Run == o.Run && s.Version == o.Version }

// newer tells whether a state came after another one of its member.
func (s State) newer(than State) bool { return s.Run != than.Run || s.Version > than.Version }

const (
	// datagram is how large a datagram may be, in bytes: with the headers of IPv6 and UDP, it fits into the MTU that every network has that
	// carries IPv6.
	datagram = 1200
	// largestState is how large the text of a state may be, and mostAddresses how many addresses it may have in all: as many as a node can
	// announce. mostNetworks is how many subnets it may have.
	largestState, mostAddresses, mostNetworks = 512 << 10, 2048, 1024
	// mostText is how long the text of a claim may be, which says who has the address.
	mostText = 200
)

// Parts returns the addresses of a member with this state in as many states as it takes for each to fit a datagram; in one if
// there are none.
func (s State) Parts() []State {
	next := func() State {
		return State{Name: s.Name, Run: s.Run, Version: s.Version, Part: true, Held: map[netip.Addr]uint64{}}
	}
	const frame, entry = len(`{"run":,"version":,"held":{},"part":true}`) + 2*len("9007199254740991") + overhead + 1, len(`"":,`)
	parts, size := []State{next()}, frame
	for _, ip := range sorted(s.Held) {
		more := len(ip.String()) + len(strconv.FormatUint(s.Held[ip], 10)) + entry
		if last := parts[len(parts)-1]; size+more > datagram && len(last.Held) > 0 {
			parts, size = append(parts, next()), frame
		}
		parts[len(parts)-1].Held[ip] = s.Held[ip]
		size += more
	}
	return parts
}

// parseState returns the state that a node has told, as far as it can be meant.
func parseState(name string, text []byte, networks []netip.Prefix) (s State, err error) {
	if len(text) > largestState {
		return s, fmt.Errorf("the state has %d bytes: there may be %d", len(text), largestState)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("it is no state: %w", err)
	}
	if s.Name = name; s.load()+len(s.Failed) > mostAddresses || len(s.Networks) > mostNetworks {
		return s, fmt.Errorf("the state has %d addresses and %d networks: there may be %d and %d", s.load()+len(s.Failed), len(s.Networks), mostAddresses, mostNetworks)
	}
	s.Confine(networks)
	return s, nil
}

// Confine removes what no member can mean: addresses outside the pool's networks, and epochs that none can have reached.
func (s *State) Confine(networks []netip.Prefix) {
	outside := func(ip netip.Addr) bool {
		return !slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(ip) })
	}
	maps.DeleteFunc(s.Held, func(ip netip.Addr, epoch uint64) bool { return outside(ip) || epoch > holders.MaxEpoch })
	maps.DeleteFunc(s.Claims, func(ip netip.Addr, text string) bool { return outside(ip) || len(text) > mostText })
	s.Failed = slices.DeleteFunc(s.Failed, outside)
}
