package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
)

// surroundings are what a claim is judged by, beside other claims.
type surroundings struct {
	in           Input // without Attachments, Choices, Holdings and Claims
	clusterCIDRs kernel.CIDRSet
	serviceCIDRs kernel.CIDRSet
	nodes        *nodes
	pins         pins
	attachments  map[netip.Addr]Attachment
}

func newSurroundings(in Input) *surroundings {
	attachments := byAddress(in.Attachments)
	in.Holdings, in.Claims, in.Attachments, in.Choices = nil, nil, nil, nil
	return &surroundings{
		in:           in,
		clusterCIDRs: kernel.NewCIDRSet(in.ClusterCIDRs),
		serviceCIDRs: kernel.NewCIDRSet(in.ServiceCIDRs),
		nodes:        newNodes(in),
		pins:         newPins(in.NamespaceCIDRs),
		attachments:  attachments,
	}
}

// mayOwn tells whether a namespace may have an address, if no older Service's does.
func (s *surroundings) mayOwn(namespace string, address Address) bool {
	reason, _ := s.judgeAddress(address.IP)
	return reason == "" && s.forbid(namespace, address) == ""
}

// judgeAll returns a claim on each of a claim's egress IPs that is granted, and why the others are refused, sorted. owner tells whose an address is.
func (s *surroundings) judgeAll(claim *Claim, owner func(netip.Addr) Service) (granted []Claim, refused []Refusal) {
	for _, address := range claim.Addresses() {
		one := claim.alone(address)
		if reason, message := s.judge(one, owner(address.IP)); reason != "" {
			refused = append(refused, refusal(&one, target{}, reason, message))
		} else {
			granted = append(granted, one)
		}
	}
	return granted, sortedRefusals(refused)
}

// judge returns why a claim on one egress IP as a whole is refused, or an empty reason. The owner is that of its
// egress IP.
func (s *surroundings) judge(claim Claim, owner Service) (Reason, string) {
	if !claim.EgressIP.IsValid() {
		return claim.Refused, claim.RefusedBecause
	}
	if reason, message := s.judgeAddress(claim.EgressIP); reason != "" {
		return reason, message
	}
	if because := s.forbid(claim.Service.Namespace, Address{claim.EgressIP, claim.LoadBalancer, claim.Annotated}); because != "" {
		return NotAllowed, because
	}
	switch {
	case owner.Namespace != claim.Service.Namespace:
		return OwnedByOtherNamespace, fmt.Sprintf("egress IP %s belongs to the namespace %s, for its Service %s is older", claim.EgressIP, owner.Namespace, owner)
	case claim.Refused != "":
		return claim.Refused, claim.RefusedBecause
	case s.clusterCIDRs.Empty():
		return NoClusterCIDR, fmt.Sprintf("no cluster CIDR of the family of %s is known; set proxyArguments.cluster-cidr", claim.EgressIP)
	case s.in.NoProxier:
		return NoProxier, fmt.Sprintf("no proxier of the family of %s runs on this node; the log of its start says why", claim.EgressIP)
	}
	return "", ""
}

// judgeAddress returns why nobody may have an address, or an empty reason.
func (s *surroundings) judgeAddress(ip netip.Addr) (Reason, string) {
	if !usable(ip) {
		return InvalidAddress, fmt.Sprintf("egress IP %s is not a unicast address that packets can come from", ip)
	}
	if cidr, inside := s.clusterCIDRs.Find(ip); inside {
		return AddressInCluster, fmt.Sprintf("egress IP %s lies in the cluster CIDR %s, so it is a pod's address", ip, cidr)
	}
	if cidr, inside := s.serviceCIDRs.Find(ip); inside {
		return AddressInCluster, fmt.Sprintf("egress IP %s lies in the service CIDR %s, so it is a Service's cluster IP", ip, cidr)
	}
	node, isNode := s.nodes.kept(ip)
	switch {
	case isNode && !s.in.AllowNodeIPs:
		return NodeAddress, fmt.Sprintf("egress IP %s is the primary address of the node %s; proxyArguments.egress-snat-allow-node-ips would allow it", ip, node)
	case !isNode && slices.Contains(s.in.APIServers, ip):
		return APIServerAddress, fmt.Sprintf("egress IP %s is the address of the cluster's API server", ip)
	}
	return "", ""
}

// forbid returns why a policy does not let a namespace have an address, or nothing.
func (s *surroundings) forbid(namespace string, address Address) (because string) {
	for _, policy := range s.in.Policies {
		if !policy.allows(address) {
			return fmt.Sprintf("%s does not allow %s as an egress IP", policy.Source, address.IP)
		}
	}
	if because := s.pins.forbid(namespace, address.IP); because != "" {
		return because
	}
	if address.Annotated && !slices.ContainsFunc(s.in.Policies, Policy.permits) && !s.pins.permit(namespace, address.IP) {
		return fmt.Sprintf("egress IP %s is named by the annotation only, and no argument of the nodes allows it: add its network to proxyArguments.egress-snat-allowed-cidrs (which then limits all egress IPs), or add %s=CIDR to %s (which then limits the egress IPs of this namespace)",
			address.IP, namespace, pinsArgument)
	}
	return ""
}

// permits tells whether a policy has to allow every address that an annotation names.
func (p Policy) permits() bool { return !p.ExternalIPsOnly }

func (p Policy) allows(address Address) bool {
	contains := func(cidr netip.Prefix) bool { return cidr.Contains(address.IP) }
	return p.ExternalIPsOnly && address.LoadBalancer ||
		!slices.ContainsFunc(p.Rejected, contains) && slices.ContainsFunc(p.Allowed, contains)
}

// judgeEndpoint returns why an endpoint of a claim, which is of a namespace, is not bound, or an empty reason.
func (s *surroundings) judgeEndpoint(of string, endpoint Endpoint) (Reason, string) {
	if namespace := endpoint.Pod.Namespace; namespace != "" && namespace != of {
		return PodOfOtherNamespace, fmt.Sprintf("endpoint %s is the pod %q of another namespace", endpoint.Addr, endpoint.Pod)
	}
	if because := s.attachments[endpoint.Addr].contradicts(endpoint); because != "" {
		return AddressOfOtherPod, because
	}
	if node, is := s.nodes.has(endpoint); is {
		return EndpointOutsideCluster, fmt.Sprintf("endpoint %s is an address of the node %s, not of a pod alone", endpoint.Addr, node)
	}
	if _, inside := s.clusterCIDRs.Find(endpoint.Addr); !inside {
		return EndpointOutsideCluster, fmt.Sprintf("endpoint %s lies in no cluster CIDR, so it is no pod of this cluster's network", endpoint.Addr)
	}
	return "", ""
}

// networks returns the destinations that are never SNATed.
func (s *surroundings) networks() kernel.Networks {
	exclusions := s.in.Exclusions
	if s.in.ExcludeNodes {
		exclusions = slices.Clone(exclusions)
		for ip := range s.nodes.names {
			if !s.nodes.added[ip] {
				exclusions = append(exclusions, netip.PrefixFrom(ip, ip.BitLen()))
			}
		}
	}
	return kernel.Networks{ClusterCIDRs: sortedPrefixes(s.in.ClusterCIDRs), Exclusions: sortedPrefixes(exclusions)}
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
