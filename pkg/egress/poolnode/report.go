package poolnode

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/openshift/origin-node/pkg/egress/pool"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// Report says for people how the pool stands, as far as this node knows; an error if it has no part in it.
func (p *Part) Report() (status.Pool, error) {
	s, known := p.status()
	if !known {
		return status.Pool{}, p.absence()
	}
	result := p.report(s)
	if absence := p.Absent(); absence != nil {
		result.Problem = absence.Error()
	}
	return result, nil
}

func (p *Part) report(s pool.Status) status.Pool {
	result := status.Pool{Node: p.state.Config.NodeName, Votes: s.Votes, Of: s.Of, Majority: s.Majority, Members: []status.PoolMember{}, Unheld: []status.UnheldAddress{}}
	states := map[string]pool.State{}
	for _, name := range s.Pool {
		states[name] = pool.State{Name: name}
	}
	for _, m := range s.Members {
		states[m.Name] = m
	}
	handing := p.handingOver()
	for _, m := range states {
		member := poolMember(s, m)
		if m.Name == p.state.Config.NodeName {
			member.Held = union(member.Held, handing)
		}
		result.Members = append(result.Members, member)
	}
	slices.SortFunc(result.Members, func(a, b status.PoolMember) int { return strings.Compare(a.Name, b.Name) })
	for _, ip := range slices.SortedFunc(maps.Keys(s.Unheld), netip.Addr.Compare) {
		result.Unheld = append(result.Unheld, unheldAddress(s, ip))
	}
	return result
}

// Standing returns what tells how the pool of an address stands; nil if this node has no part in it.
func (p *Part) Standing() func(ip netip.Addr) *status.AddressPool {
	s, known := p.status()
	return func(ip netip.Addr) *status.AddressPool {
		if !known || !p.state.Config.Pool.Has(ip) {
			return nil
		}
		result := &status.AddressPool{Votes: s.Votes, Of: s.Of}
		if m, moved := s.Moves[ip]; moved {
			result.Moved, result.LastMove = m.At, lastMove(m)
		}
		return result
	}
}

// lastMove says for people what a node has done with an address.
func lastMove(m pool.Move) string {
	what, direction := "released", " to "
	if m.Taken {
		what, direction = "taken", " from "
	}
	if m.Other != "" {
		what += direction + m.Other
	}
	return what + ": " + m.Why.Because()
}

func union(a, b []netip.Addr) []netip.Addr {
	all := slices.Concat(a, b)
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

func poolMember(s pool.Status, m pool.State) status.PoolMember {
	state := status.Live
	switch {
	case m.Run == 0:
		state = status.Unknown
	case !s.Alive[m.Name]:
		state = status.Dead
	case !slices.Contains(s.Pool, m.Name):
		state = status.Leaving
	case m.Draining:
		state = status.Draining
	}
	result := status.PoolMember{Name: m.Name, State: state, Held: slices.SortedFunc(maps.Keys(m.Held), netip.Addr.Compare)}
	for _, n := range m.Networks {
		result.Networks = append(result.Networks, status.PoolNetwork{Prefix: n.Prefix, Up: n.Up})
	}
	return result
}

func unheldAddress(s pool.Status, ip netip.Addr) status.UnheldAddress {
	result := status.UnheldAddress{IP: ip, Since: s.Unheld[ip], Lost: s.Lost[ip], Why: map[string]string{}}
	for _, m := range s.Members {
		if s.Alive[m.Name] && m.Claims[ip] != "" {
			result.UsedBy = m.Claims[ip]
		}
	}
	for name, objection := range s.Objections(ip) {
		if objection != "" {
			result.Why[name] = string(objection)
		}
	}
	return result
}
