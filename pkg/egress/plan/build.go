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
		granted, refused := s.judgeAll(&claim, func(ip netip.Addr) Service { return owners[ip] })
		refusals = append(refusals, refused...)
		if len(granted) == 0 {
			continue
		}
		at := func(addr netip.Addr) *grants {
			if pods[addr] == nil {
				pods[addr] = &grants{}
			}
			return pods[addr]
		}
		if !claim.Several() {
			for _, endpoint := range claim.Endpoints {
				at(endpoint.Addr).give(s, &granted[0], endpoint)
			}
			continue
		}
		byPod := map[netip.Addr][]Endpoint{}
		for _, endpoint := range claim.Endpoints {
			byPod[endpoint.Addr] = append(byPod[endpoint.Addr], endpoint)
		}
		for addr, endpoints := range byPod {
			at(addr).giveChosen(s, offer{&claim, granted}, in.Choices.Of, endpoints)
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
		holdings = append(holdings, Holding{claim.Service, claim.Created, claim.Addresses()})
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
	// picked are the egress IPs of claims of Services with several.
	picked map[picked]bool
}

// picked is an egress IP of a Service.
type picked struct {
	service Service
	ip      netip.Addr
}

// give gives an endpoint of a claim on one egress IP, the pod, all that older claims have left of it. Claims must
// come oldest first.
func (g *grants) give(s *surroundings, claim *Claim, endpoint Endpoint) {
	if reason, message := s.judgeEndpoint(claim.Service.Namespace, endpoint); reason != "" {
		g.refuse(claim, target{pod: endpoint.Addr}, reason, message)
		return
	}
	for _, protocol := range claim.Protocols {
		g.bind(claim, target{endpoint.Addr, protocol})
	}
}

// giveChosen is give for endpoints at one address, of a Service with several egress IPs. Where they leave from different ones, the lowest
// comes first.
func (g *grants) giveChosen(s *surroundings, o offer, choose chooser, endpoints []Endpoint) {
	var chosen []*Claim
	slices.SortFunc(endpoints, Endpoint.Compare) // what is chosen for the first may be for the next as well
	for _, e := range endpoints {
		claim, reason, message := o.pick(s, choose, e)
		switch {
		case reason != "":
			g.refuse(claim, target{pod: e.Addr}, reason, message)
		case !slices.Contains(chosen, claim):
			if g.picked == nil {
				g.picked = map[picked]bool{}
			}
			chosen, g.picked[picked{claim.Service, claim.EgressIP}] = append(chosen, claim), true
		}
	}
	slices.SortFunc(chosen, func(a, b *Claim) int { return a.EgressIP.Compare(b.EgressIP) })
	for _, claim := range chosen {
		for _, protocol := range claim.Protocols {
			g.bind(claim, target{endpoints[0].Addr, protocol})
		}
	}
}

// bind binds a pod's packets of a protocol if no older claim has them. A pod is of one namespace, so the first claim's has it whole: what
// Services of others say of the pod, the node where it runs included, counts no more.
func (g *grants) bind(claim *Claim, t target) {
	if len(g.bindings) > 0 && g.bindings[0].Service.Namespace != claim.Service.Namespace {
		g.refuse(claim, t, BoundByOlderService,
			fmt.Sprintf("pod %s is already bound by the older Service %s of another namespace, and a pod is of one namespace", t.pod, g.bindings[0].Service))
		return
	}
	taken := slices.IndexFunc(g.bindings, func(b Binding) bool { return b.Protocol == t.protocol })
	if taken < 0 {
		g.bindings = append(g.bindings, Binding{Pod: t.pod, Protocol: t.protocol, EgressIP: claim.EgressIP, Service: claim.Service})
		return
	}
	switch winner := g.bindings[taken]; {
	case winner.EgressIP == claim.EgressIP:
	case winner.Service == claim.Service:
		g.refuse(claim, t, BoundByOlderService,
			fmt.Sprintf("pod %s already leaves from %s for %s: EndpointSlices of the Service list the pod on two nodes", t.pod, winner.EgressIP, t.protocol))
	default:
		g.refuse(claim, t, BoundByOlderService,
			fmt.Sprintf("pod %s already leaves from %s for %s, given by the older Service %s", t.pod, winner.EgressIP, t.protocol, winner.Service))
	}
}

func (g *grants) refuse(claim *Claim, t target, reason Reason, message string) {
	g.refusals = append(g.refusals, refusal(claim, t, reason, message))
}

func refusal(claim *Claim, t target, reason Reason, message string) Refusal {
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
