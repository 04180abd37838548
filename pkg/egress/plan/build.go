package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Build returns the plan for in. It is deterministic, independent of the order of in's
// slices, and does not keep or change them.
func Build(in Input) Plan {
	s := newSurroundings(in)
	owners := findOwners(s, in)
	g := grants{bound: make(map[target]Binding)}
	for _, claim := range oldestFirst(in.Claims) {
		if reason, message := s.judge(claim, owners[claim.EgressIP]); reason != "" {
			g.refuse(claim, target{}, reason, message)
			continue
		}
		g.give(s, claim, claim.Endpoints)
	}
	return Plan{
		ClusterCIDRs: sortedPrefixes(in.ClusterCIDRs),
		Exclusions:   sortedPrefixes(s.exclusions()),
		Bindings:     g.bindings(),
		Refusals:     sortedRefusals(g.refusals),
	}
}

// findOwners returns for each address the oldest Service that has it, of those whose
// namespace may.
func findOwners(s *surroundings, in Input) map[netip.Addr]Service {
	owners := make(map[netip.Addr]Service, len(in.Holdings))
	for _, holding := range oldestHoldings(in) {
		for _, address := range holding.Addresses {
			if _, owned := owners[address.IP]; !owned && s.mayOwn(holding.Service.Namespace, address) {
				owners[address.IP] = holding.Service
			}
		}
	}
	return owners
}

// oldestHoldings returns those of in, and what its claims hold, oldest first.
func oldestHoldings(in Input) []Holding {
	holdings := slices.Clone(in.Holdings)
	for _, claim := range in.Claims {
		holdings = append(holdings, Holding{claim.Service, claim.Created, []Address{{claim.EgressIP, claim.LoadBalancer}}})
	}
	slices.SortFunc(holdings, func(a, b Holding) int {
		return cmp.Or(a.Created.Compare(b.Created), compareServices(a.Service, b.Service))
	})
	return holdings
}

func oldestFirst(claims []Claim) []Claim {
	sorted := slices.Clone(claims)
	slices.SortFunc(sorted, func(a, b Claim) int {
		return cmp.Or(a.Created.Compare(b.Created), compareServices(a.Service, b.Service))
	})
	return sorted
}

// target is what can be bound once.
type target struct {
	pod      netip.Addr
	protocol Protocol
}

// grants are what claims get and what they do not.
type grants struct {
	bound    map[target]Binding
	refusals []Refusal
}

// give gives endpoints of a claim all that older claims have left. Claims must come oldest first.
func (g *grants) give(s *surroundings, claim Claim, endpoints []Endpoint) {
	for _, endpoint := range endpoints {
		if reason, message := s.judgeEndpoint(claim, endpoint); reason != "" {
			g.refuse(claim, target{pod: endpoint.Addr}, reason, message)
			continue
		}
		for _, protocol := range claim.Protocols {
			g.bind(claim, target{endpoint.Addr, protocol})
		}
	}
}

func (g *grants) bind(claim Claim, t target) {
	winner, taken := g.bound[t]
	if !taken {
		g.bound[t] = Binding{Pod: t.pod, Protocol: t.protocol, EgressIP: claim.EgressIP, Service: claim.Service}
		return
	}
	if winner.EgressIP != claim.EgressIP {
		g.refuse(claim, t, BoundByOlderService,
			fmt.Sprintf("pod %s already leaves from %s for %s, given by the older Service %s", t.pod, winner.EgressIP, t.protocol, winner.Service))
	}
}

func (g *grants) refuse(claim Claim, t target, reason Reason, message string) {
	g.refusals = append(g.refusals, refusal(claim, t, reason, message))
}

func refusal(claim Claim, t target, reason Reason, message string) Refusal {
	return Refusal{
		Service:  claim.Service,
		EgressIP: claim.EgressIP,
		Pod:      t.pod,
		Protocol: t.protocol,
		Reason:   reason,
		Message:  message,
	}
}

// bindings returns them sorted.
func (g *grants) bindings() []Binding {
	bindings := make([]Binding, 0, len(g.bound))
	for _, binding := range g.bound {
		bindings = append(bindings, binding)
	}
	slices.SortFunc(bindings, CompareBindings)
	return bindings
}

func sortedRefusals(refusals []Refusal) []Refusal {
	slices.SortFunc(refusals, CompareRefusals)
	return slices.Compact(refusals)
}

func sortedPrefixes(prefixes []netip.Prefix) []netip.Prefix {
	sorted := make([]netip.Prefix, 0, len(prefixes))
	for _, p := range prefixes {
		sorted = append(sorted, p.Masked())
	}
	slices.SortFunc(sorted, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	return slices.Compact(sorted)
}
