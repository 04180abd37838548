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
	b := builder{
		clusterCIDRs: sortedPrefixes(in.ClusterCIDRs),
		exclusions:   sortedPrefixes(in.Exclusions),
		noProxier:    in.NoProxier,
		bound:        make(map[target]Binding),
		refusals:     slices.Clone(in.Refusals),
	}
	for _, claim := range oldestFirst(in.Claims) {
		b.add(claim)
	}
	return b.plan()
}

// target is what can be bound once.
type target struct {
	pod      netip.Addr
	protocol Protocol
}

type builder struct {
	clusterCIDRs []netip.Prefix
	exclusions   []netip.Prefix
	noProxier    bool
	bound        map[target]Binding
	refusals     []Refusal
}

// add gives claim all that older claims have left. Claims must come oldest first.
func (b *builder) add(claim Claim) {
	if reason, message := b.judge(claim); reason != "" {
		b.refuse(claim, target{}, reason, message)
		return
	}
	for _, pod := range claim.Endpoints {
		if !b.inCluster(pod) {
			b.refuse(claim, target{pod: pod}, EndpointOutsideCluster,
				fmt.Sprintf("endpoint %s lies in no cluster CIDR, so it is no pod of this cluster's network", pod))
			continue
		}
		for _, protocol := range claim.Protocols {
			b.bind(claim, target{pod, protocol})
		}
	}
}

func (b *builder) bind(claim Claim, t target) {
	winner, taken := b.bound[t]
	if !taken {
		b.bound[t] = Binding{Pod: t.pod, Protocol: t.protocol, EgressIP: claim.EgressIP, Service: claim.Service}
		return
	}
	if winner.EgressIP != claim.EgressIP {
		b.refuse(claim, t, BoundByOlderService,
			fmt.Sprintf("pod %s already leaves from %s for %s, given by the older Service %s", t.pod, winner.EgressIP, t.protocol, winner.Service))
	}
}

// judge returns why the whole claim is refused, or an empty reason.
func (b *builder) judge(claim Claim) (Reason, string) {
	switch {
	case !usable(claim.EgressIP):
		return InvalidAddress, fmt.Sprintf("external IP %s is not a unicast address that packets can come from", claim.EgressIP)
	case len(b.clusterCIDRs) == 0:
		return NoClusterCIDR, fmt.Sprintf("no cluster CIDR of the family of %s is known; set proxyArguments.cluster-cidr", claim.EgressIP)
	case b.noProxier:
		return NoProxier, fmt.Sprintf("no proxier of the family of %s runs on this node; the log of its start says why", claim.EgressIP)
	}
	return "", ""
}

func (b *builder) refuse(claim Claim, t target, reason Reason, message string) {
	b.refusals = append(b.refusals, Refusal{
		Service:  claim.Service,
		EgressIP: claim.EgressIP,
		Pod:      t.pod,
		Protocol: t.protocol,
		Reason:   reason,
		Message:  message,
	})
}

func (b *builder) inCluster(addr netip.Addr) bool {
	return slices.ContainsFunc(b.clusterCIDRs, func(p netip.Prefix) bool { return p.Contains(addr) })
}

func (b *builder) plan() Plan {
	bindings := make([]Binding, 0, len(b.bound))
	for _, binding := range b.bound {
		bindings = append(bindings, binding)
	}
	slices.SortFunc(bindings, compareBindings)
	slices.SortFunc(b.refusals, CompareRefusals)
	return Plan{
		ClusterCIDRs: b.clusterCIDRs,
		Exclusions:   b.exclusions,
		Bindings:     bindings,
		Refusals:     slices.Compact(b.refusals),
	}
}

func oldestFirst(claims []Claim) []Claim {
	sorted := slices.Clone(claims)
	slices.SortFunc(sorted, func(a, b Claim) int {
		return cmp.Or(a.Created.Compare(b.Created), compareServices(a.Service, b.Service))
	})
	return sorted
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

// usable tells whether a packet may have addr as its source on its way out: a unicast
// address that is neither unspecified, loopback, link-local nor reserved (RFC 1122
// section 3.2.1.3, RFC 4291 section 2.4).
func usable(addr netip.Addr) bool {
	return addr.IsGlobalUnicast() && addr.Zone() == "" && !addr.Is4In6() && !reserved.Contains(addr) && !thisNetwork.Contains(addr)
}

var (
	reserved    = netip.MustParsePrefix("240.0.0.0/4")
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
)
