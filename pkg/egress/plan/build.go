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
	pods := map[netip.Addr]*grants{}
	bindings := []Binding{}
	var refusals []Refusal
	for _, claim := range oldestFirst(withAttachments(in)) {
		if reason, message := s.judge(claim, owners[claim.EgressIP]); reason != "" {
			refusals = append(refusals, refusal(claim, target{}, reason, message))
			continue
		}
		for _, endpoint := range claim.Endpoints {
			if pods[endpoint.Addr] == nil {
				pods[endpoint.Addr] = &grants{}
			}
			pods[endpoint.Addr].give(s, claim, endpoint)
		}
	}
	for _, g := range pods {
		bindings, refusals = append(bindings, g.bindings...), append(refusals, g.refusals...)
	}
	slices.SortFunc(bindings, CompareBindings)
	return Plan{
		Networks: s.networks(),
		Bindings: bindings,
		Refusals: sortedRefusals(refusals),
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
		holdings = append(holdings, Holding{claim.Service, claim.Created, []Address{claim.address()}})
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

// grants are what claims get of one pod and what they do not.
type grants struct {
	bindings []Binding
	refusals []Refusal
}

// give gives an endpoint of a claim, the pod, all that older claims have left of it. Claims must
// come oldest first.
func (g *grants) give(s *surroundings, claim Claim, endpoint Endpoint) {
	if reason, message := s.judgeEndpoint(claim, endpoint); reason != "" {
		g.refuse(claim, target{pod: endpoint.Addr}, reason, message)
		return
	}
	for _, protocol := range claim.Protocols {
		g.bind(claim, target{endpoint.Addr, protocol})
	}
}

func (g *grants) bind(claim Claim, t target) {
	taken := slices.IndexFunc(g.bindings, func(b Binding) bool { return b.Protocol == t.protocol })
	if taken < 0 {
		g.bindings = append(g.bindings, Binding{Pod: t.pod, Protocol: t.protocol, EgressIP: claim.EgressIP, Service: claim.Service})
		return
	}
	if winner := g.bindings[taken]; winner.EgressIP != claim.EgressIP {
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
