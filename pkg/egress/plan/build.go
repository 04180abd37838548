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
	b := newBuilder(in)
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
	in           Input
	clusterCIDRs CIDRSet
	serviceCIDRs CIDRSet
	nodes        map[netip.Addr]string // names by primary address
	nodeIPs      map[netip.Addr]string // names by any address
	owners       map[netip.Addr]Service
	bound        map[target]Binding
	refusals     []Refusal
}

func newBuilder(in Input) *builder {
	b := &builder{
		in:           in,
		clusterCIDRs: NewCIDRSet(in.ClusterCIDRs),
		serviceCIDRs: NewCIDRSet(in.ServiceCIDRs),
		nodes:        namesByAddress(in.Nodes, func(n Node) []netip.Addr { return []netip.Addr{n.Primary} }),
		nodeIPs:      namesByAddress(in.Nodes, func(n Node) []netip.Addr { return n.Addresses }),
		bound:        make(map[target]Binding),
	}
	b.owners = b.findOwners()
	return b
}

// findOwners returns for each address the oldest Service that has it, of those whose
// namespace may.
func (b *builder) findOwners() map[netip.Addr]Service {
	owners := make(map[netip.Addr]Service, len(b.in.Holdings))
	for _, holding := range oldestHoldings(b.in) {
		for _, address := range holding.Addresses {
			if _, owned := owners[address.IP]; owned {
				continue
			}
			reason, _ := b.judgeAddress(address.IP)
			if _, forbidden := b.forbidding(holding.Service.Namespace, address); reason == "" && !forbidden {
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

// add gives claim all that older claims have left. Claims must come oldest first.
func (b *builder) add(claim Claim) {
	if reason, message := b.judge(claim); reason != "" {
		b.refuse(claim, target{}, reason, message)
		return
	}
	for _, endpoint := range claim.Endpoints {
		if reason, message := b.judgeEndpoint(claim, endpoint); reason != "" {
			b.refuse(claim, target{pod: endpoint.Addr}, reason, message)
			continue
		}
		for _, protocol := range claim.Protocols {
			b.bind(claim, target{endpoint.Addr, protocol})
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
	if !claim.EgressIP.IsValid() {
		return claim.Refused, claim.RefusedBecause
	}
	if reason, message := b.judgeAddress(claim.EgressIP); reason != "" {
		return reason, message
	}
	if source, forbidden := b.forbidding(claim.Service.Namespace, Address{claim.EgressIP, claim.LoadBalancer}); forbidden {
		return NotAllowed, fmt.Sprintf("%s does not allow %s as an egress IP", source, claim.EgressIP)
	}
	owner := b.owners[claim.EgressIP]
	switch {
	case owner.Namespace != claim.Service.Namespace:
		return OwnedByOtherNamespace, fmt.Sprintf("external IP %s belongs to the namespace %s, for its Service %s is older", claim.EgressIP, owner.Namespace, owner)
	case claim.Refused != "":
		return claim.Refused, claim.RefusedBecause
	case b.clusterCIDRs.Empty():
		return NoClusterCIDR, fmt.Sprintf("no cluster CIDR of the family of %s is known; set proxyArguments.cluster-cidr", claim.EgressIP)
	case b.in.NoProxier:
		return NoProxier, fmt.Sprintf("no proxier of the family of %s runs on this node; the log of its start says why", claim.EgressIP)
	}
	return "", ""
}

// judgeAddress returns why nobody may have an address, or an empty reason.
func (b *builder) judgeAddress(ip netip.Addr) (Reason, string) {
	if !usable(ip) {
		return InvalidAddress, fmt.Sprintf("external IP %s is not a unicast address that packets can come from", ip)
	}
	if cidr, inside := b.clusterCIDRs.Find(ip); inside {
		return AddressInCluster, fmt.Sprintf("external IP %s lies in the cluster CIDR %s, so it is a pod's address", ip, cidr)
	}
	if cidr, inside := b.serviceCIDRs.Find(ip); inside {
		return AddressInCluster, fmt.Sprintf("external IP %s lies in the service CIDR %s, so it is a Service's cluster IP", ip, cidr)
	}
	node, isNode := b.nodes[ip]
	switch {
	case isNode && !b.in.AllowNodeIPs:
		return NodeAddress, fmt.Sprintf("external IP %s is the primary address of the node %s; proxyArguments.egress-snat-allow-node-ips would allow it", ip, node)
	case !isNode && slices.Contains(b.in.APIServers, ip):
		return APIServerAddress, fmt.Sprintf("external IP %s is the address of the cluster's API server", ip)
	}
	return "", ""
}

// forbidding tells whether a policy does not let a namespace have an address, and returns
// the policy's source.
func (b *builder) forbidding(namespace string, address Address) (source string, forbidden bool) {
	for _, policy := range b.in.Policies {
		if !policy.allows(address) {
			return policy.Source, true
		}
	}
	if policy, ok := b.in.NamespacePolicies[namespace]; ok && !policy.allows(address) {
		return policy.Source, true
	}
	return "", false
}

func (p Policy) allows(address Address) bool {
	contains := func(cidr netip.Prefix) bool { return cidr.Contains(address.IP) }
	return p.ExternalIPsOnly && address.LoadBalancer ||
		!slices.ContainsFunc(p.Rejected, contains) && slices.ContainsFunc(p.Allowed, contains)
}

// judgeEndpoint returns why an endpoint of a claim is not bound, or an empty reason.
func (b *builder) judgeEndpoint(claim Claim, endpoint Endpoint) (Reason, string) {
	if namespace := endpoint.Pod.Namespace; namespace != "" && namespace != claim.Service.Namespace {
		return PodOfOtherNamespace, fmt.Sprintf("endpoint %s is the pod %q of another namespace", endpoint.Addr, endpoint.Pod)
	}
	if node, is := b.nodeIPs[endpoint.Addr]; is {
		return EndpointOutsideCluster, fmt.Sprintf("endpoint %s is an address of the node %s, not of a pod alone", endpoint.Addr, node)
	}
	if _, inside := b.clusterCIDRs.Find(endpoint.Addr); !inside {
		return EndpointOutsideCluster, fmt.Sprintf("endpoint %s lies in no cluster CIDR, so it is no pod of this cluster's network", endpoint.Addr)
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

func (b *builder) plan() Plan {
	bindings := make([]Binding, 0, len(b.bound))
	for _, binding := range b.bound {
		bindings = append(bindings, binding)
	}
	slices.SortFunc(bindings, CompareBindings)
	slices.SortFunc(b.refusals, CompareRefusals)
	return Plan{
		ClusterCIDRs: sortedPrefixes(b.in.ClusterCIDRs),
		Exclusions:   sortedPrefixes(b.exclusions()),
		Bindings:     bindings,
		Refusals:     slices.Compact(b.refusals),
	}
}

func (b *builder) exclusions() []netip.Prefix {
	if !b.in.ExcludeNodes {
		return b.in.Exclusions
	}
	exclusions := slices.Clone(b.in.Exclusions)
	for _, node := range b.in.Nodes {
		for _, ip := range node.Addresses {
			exclusions = append(exclusions, netip.PrefixFrom(ip, ip.BitLen()))
		}
	}
	return exclusions
}

// namesByAddress returns the names of the nodes by these of their addresses. Where two
// have the same, the first by name stands for both.
func namesByAddress(nodes []Node, addresses func(Node) []netip.Addr) map[netip.Addr]string {
	names := make(map[netip.Addr]string, len(nodes))
	for _, node := range nodes {
		for _, ip := range addresses(node) {
			if other, taken := names[ip]; ip.IsValid() && (!taken || node.Name < other) {
				names[ip] = node.Name
			}
		}
	}
	return names
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
