package oracle

import (
	"net/netip"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
)

// "An egress IP belongs to the namespace of the oldest Service that has it [...], for all ports and
// protocols."
func (c Cluster) ownerOf(ip netip.Addr) (namespace string) {
	for _, svc := range c.oldestFirst() {
		for _, a := range c.addressesOf(svc) {
			if a.ip == ip && c.mayHave(svc.Namespace, a) {
				return svc.Namespace
			}
		}
	}
	return ""
}

// mayHave tells whether a namespace may have an address, whoever else has it.
func (c Cluster) mayHave(namespace string, a address) bool {
	return a.ip.IsValid() && !c.isNobodys(a.ip) && c.clusterAllows(a) && c.networkAllows(a) && c.namespaceAllows(namespace, a.ip) && c.permits(namespace, a)
}

// "Nobody gets an address inside a cluster or service CIDR, a node's, the API server's, or one that packets cannot come from."
func (c Cluster) isNobodys(ip netip.Addr) bool {
	return contain(c.clusterCIDRs(), ip) || contain(c.serviceCIDRs(), ip) || c.isNodes(ip) || c.isAPIServers(ip) || cannotBeSource(ip)
}

// "Without cluster-cidr the cluster CIDRs are those of OpenShift's Network, if there is one": those in force,
// or, as long as none are, those that are wanted.
func (c Cluster) clusterCIDRs() []netip.Prefix {
	if len(c.ClusterCIDRs) > 0 || c.Network == nil {
		return c.ClusterCIDRs
	}
	entries := c.Network.Status.ClusterNetwork
	if len(entries) == 0 {
		entries = c.Network.Spec.ClusterNetwork
	}
	var texts []string
	for _, entry := range entries {
		texts = append(texts, entry.CIDR)
	}
	return parsePrefixes(texts)
}

// The service CIDRs are those of the ServiceCIDR objects and of OpenShift's Network.
func (c Cluster) serviceCIDRs() (cidrs []netip.Prefix) {
	for _, object := range c.ServiceCIDRs {
		cidrs = append(cidrs, parsePrefixes(object.Spec.CIDRs)...)
	}
	if c.Network == nil {
		return cidrs
	}
	if len(c.Network.Status.ClusterNetwork) == 0 {
		return append(cidrs, parsePrefixes(c.Network.Spec.ServiceNetwork)...)
	}
	return append(cidrs, parsePrefixes(c.Network.Status.ServiceNetwork)...)
}

// "egress-snat-allow-node-ips: an external IP may be a node's primary address, also where an API server runs"
func (c Cluster) isNodes(ip netip.Addr) bool {
	return slices.Contains(c.nodeAddresses(), ip) && !c.AllowNodeIPs
}

// "Of each IP family, a node's address is the first InternalIP that is not ignored of those with which it registered": here, of all.
func (c Cluster) nodeAddresses() (addrs []netip.Addr) {
	for _, node := range c.Nodes {
		for _, is4 := range []bool{true, false} {
			for _, ip := range internalIPs(node) {
				if ip.Is4() == is4 && !c.isIgnored(ip) {
					addrs = append(addrs, ip)
					break
				}
			}
		}
	}
	return addrs
}

// isIgnored tells whether an address cannot be a node's: one "that packets cannot come from", "that lies in a cluster CIDR
// [...] or in a service CIDR", or "where egress IPs are".
func (c Cluster) isIgnored(ip netip.Addr) bool {
	return cannotBeSource(ip) || contain(c.clusterCIDRs(), ip) || contain(c.serviceCIDRs(), ip) || contain(c.egressNetworks(), ip)
}

// "in a network of egress-snat-assign-cidrs, or in one that egress-snat-namespace-cidrs reserves for a namespace, but not
// for all others. With egress-snat-allow-node-ips this does not hold."
func (c Cluster) egressNetworks() []netip.Prefix {
	if c.AllowNodeIPs {
		return nil
	}
	networks := slices.Clone(c.AssignCIDRs)
	for namespace, reserved := range c.NamespaceCIDRs {
		if namespace != "*" {
			networks = append(networks, reserved...)
		}
	}
	return networks
}

func internalIPs(node *v1.Node) (ips []netip.Addr) {
	for _, a := range node.Status.Addresses {
		if ip := parseIP(a.Address); ip.IsValid() && a.Type == v1.NodeInternalIP {
			ips = append(ips, ip)
		}
	}
	return ips
}

// "APIServerAddress: the address is an endpoint of the Service default/kubernetes." One that is a node's
// primary address, too, is judged as such.
func (c Cluster) isAPIServers(ip netip.Addr) bool {
	for _, slice := range c.EndpointSlices {
		if slice.Namespace == "default" && slice.Labels[discovery.LabelServiceName] == "kubernetes" &&
			slices.ContainsFunc(endpointsIn(slice), func(e endpoint) bool { return e.addr == ip }) {
			return !slices.Contains(c.nodeAddresses(), ip)
		}
	}
	return false
}

// "InvalidAddress: not a unicast address that packets can come from": RFC 1122, section 3.2.1.3, and RFC
// 4291, section 2.4.
func cannotBeSource(ip netip.Addr) bool {
	return ip.IsUnspecified() || ip.IsLoopback() || ip.IsMulticast() || ip.IsLinkLocalUnicast() ||
		netip.MustParsePrefix("0.0.0.0/8").Contains(ip) || netip.MustParsePrefix("240.0.0.0/4").Contains(ip)
}

// "egress-snat-allowed-cidrs: where egress IPs may lie"
func (c Cluster) clusterAllows(a address) bool {
	return c.AllowedCIDRs == nil || contain(c.AllowedCIDRs, a.ip)
}

// "spec.externalIP.policy of the Network object [...]: rejectedCIDRs win, then allowedCIDRs allow, an empty
// policy forbids all, none allows all. That policy is on external IPs and does not speak of load-balancer IPs."
func (c Cluster) networkAllows(a address) bool {
	policy := c.externalIPPolicy()
	if policy == nil || a.balanced {
		return true
	}
	return !contain(parsePrefixes(policy.RejectedCIDRs), a.ip) && contain(parsePrefixes(policy.AllowedCIDRs), a.ip)
}

// "An address that the annotation alone names has to lie in egress-snat-allowed-cidrs, or in a network that
// egress-snat-namespace-cidrs has for the namespace."
func (c Cluster) permits(namespace string, a address) bool {
	own := c.NamespaceCIDRs[namespace]
	if len(own) == 0 {
		own = c.NamespaceCIDRs["*"]
	}
	return !a.annotated || contain(c.AllowedCIDRs, a.ip) || contain(own, a.ip)
}

func (c Cluster) externalIPPolicy() *configv1.ExternalIPPolicy {
	if c.Network == nil || c.Network.Spec.ExternalIP == nil {
		return nil
	}
	return c.Network.Spec.ExternalIP.Policy
}

// egress-snat-namespace-cidrs: a network that is pinned to namespaces is for those only, and a namespace that
// has networks of its own gets no others. "*" says where the other namespaces' addresses may lie.
func (c Cluster) namespaceAllows(namespace string, ip netip.Addr) bool {
	if own := c.NamespaceCIDRs[namespace]; len(own) > 0 {
		return contain(own, ip)
	}
	for other, pinned := range c.NamespaceCIDRs {
		if other != "*" && contain(pinned, ip) {
			return false
		}
	}
	rest := c.NamespaceCIDRs["*"]
	return len(rest) == 0 || contain(rest, ip)
}
