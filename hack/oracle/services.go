package oracle

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"
)

// everyProtocol is the Binding.Protocol of egress-snat-protocols: all.
const everyProtocol = "all"

const (
	annotation         = "network.openshift.io/egress-snat"
	egressIPAnnotation = "network.openshift.io/egress-ip"
)

// address is one that the outside knows a Service by.
type address struct {
	ip netip.Addr // invalid if the object's text is no IP address
	v6 bool
	// balanced: a load balancer gave it. annotated: the annotation alone names it.
	balanced, annotated bool
}

// "creationTimestamp, then namespace, then name"
func (c Cluster) oldestFirst() []*v1.Service {
	return slices.SortedFunc(slices.Values(c.Services), func(a, b *v1.Service) int {
		return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// "Services of type ExternalName, headless ones without the annotation egress-ip, and those with the label
// service.kubernetes.io/service-proxy-name claim nothing and have no address."
func ignored(svc *v1.Service) bool {
	_, anotherProxy := svc.Labels["service.kubernetes.io/service-proxy-name"]
	if _, named := svc.Annotations[egressIPAnnotation]; named && isHeadless(svc) && !anotherProxy {
		return false
	}
	return anotherProxy || svc.Spec.Type == v1.ServiceTypeExternalName || svc.Spec.ClusterIP == v1.ClusterIPNone || svc.Spec.ClusterIP == ""
}

func isHeadless(svc *v1.Service) bool {
	return svc.Spec.ClusterIP == v1.ClusterIPNone && svc.Spec.Type != v1.ServiceTypeExternalName
}

// "A Service has all its external IPs, those that a load balancer gave it (ipMode: VIP), and those that its annotation egress-ip
// names, whether its pods leave from them or not, but for those that the following two rules deny it." These rules are mayHave.
func (c Cluster) addressesOf(svc *v1.Service) []address {
	if ignored(svc) {
		return nil
	}
	named, _, _ := c.namedBy(svc)
	return slices.Concat(externalIPs(svc), loadBalancerIPs(svc), named)
}

// namedBy returns the addresses that the annotation egress-ip names, as far as they can be read. wrong: it cannot be understood.
// "Up to 16 of each IP family; one where nothing is steered."
//
// "An address that the Service also has as an external IP, or by a load balancer whose IPs count, is judged as such."
func (c Cluster) namedBy(svc *v1.Service) (addresses []address, given, wrong bool) {
	value, given := svc.Annotations[egressIPAnnotation]
	if !given {
		return nil, false, false
	}
	seen, most := map[bool]int{}, 16
	if c.SteeringOff {
		most = 1
	}
	for text := range strings.SplitSeq(value, ",") {
		ip, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil || ip.Zone() != "" || ip.Is4In6() {
			wrong = true
			continue
		}
		a := address{ip: ip, v6: ip.Is6()}
		is := func(o address) bool { return o.ip == a.ip }
		if !slices.ContainsFunc(externalIPs(svc), is) {
			a.balanced = c.LoadBalancerIPs && slices.ContainsFunc(loadBalancerIPs(svc), is)
			a.annotated = !a.balanced
		}
		seen[a.v6]++
		wrong = wrong || seen[a.v6] > most
		if seen[a.v6] <= 16 { // "the first 16 of each IP family"
			addresses = append(addresses, a)
		}
	}
	return addresses, true, wrong
}

func externalIPs(svc *v1.Service) (addresses []address) {
	if isHeadless(svc) {
		return nil
	}
	for _, text := range svc.Spec.ExternalIPs {
		addresses = append(addresses, newAddress(text, false))
	}
	return addresses
}

// No ipMode means VIP, says the API.
func loadBalancerIPs(svc *v1.Service) (addresses []address) {
	if svc.Spec.Type != v1.ServiceTypeLoadBalancer {
		return nil
	}
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		if ingress.IP != "" && (ingress.IPMode == nil || *ingress.IPMode == v1.LoadBalancerIPModeVIP) {
			addresses = append(addresses, newAddress(ingress.IP, true))
		}
	}
	return addresses
}

// Claims returns the egress IPs that a Service claims, granted or not.
func (c Cluster) Claims(svc *v1.Service) (ips []netip.Addr) {
	for _, claim := range c.claims(svc) {
		ips = append(ips, claim.ip)
	}
	return ips
}

// "A Service claims its first external IP of each IP family, in the order of spec.externalIPs." And
// "InvalidAddress: no later entry takes its place".
func (c Cluster) claims(svc *v1.Service) (claims []address) {
	if ignored(svc) || !c.protocolsAreKnown(svc) {
		return nil
	}
	if named, given, wrong := c.namedBy(svc); given {
		if wrong || !understood(svc.Annotations) {
			return nil
		}
		return named
	}
	for _, v6 := range []bool{false, true} {
		candidates := slices.DeleteFunc(c.candidates(svc), func(a address) bool { return a.v6 != v6 })
		if claim, ok := choose(svc.Annotations, candidates); ok && claim.ip.IsValid() {
			claims = append(claims, claim)
		}
	}
	return claims
}

// "egress-snat-load-balancer-ips: a Service of type LoadBalancer without external IPs has its first
// load-balancer IP"
func (c Cluster) candidates(svc *v1.Service) []address {
	if len(svc.Spec.ExternalIPs) == 0 && c.LoadBalancerIPs {
		return loadBalancerIPs(svc)
	}
	return externalIPs(svc)
}

// choose returns the one of the candidates, all of one IP family, that a Service claims.
//
// "The annotation is "true", the default; "false": its pods leave as without external IPs; or one of its
// addresses of each IP family, with a comma in between: the egress IPs instead of the first ones. A family
// that is not named has none then."
// "InvalidAnnotation: the annotation cannot be understood, or names an address that the Service does not have"
func choose(annotations map[string]string, candidates []address) (claim address, ok bool) {
	if len(candidates) == 0 {
		return address{}, false
	}
	value, given := annotations[annotation]
	if !given || value == "true" {
		return candidates[0], true
	}
	named := map[bool]netip.Addr{} // by whether it is of IPv6
	for text := range strings.SplitSeq(value, ",") {
		ip, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil || ip.Zone() != "" {
			return address{}, false // "false", or not understood
		}
		ip = ip.Unmap()
		if _, twice := named[ip.Is6()]; twice {
			return address{}, false
		}
		named[ip.Is6()] = ip
	}
	for _, candidate := range candidates {
		if candidate.ip.IsValid() && candidate.ip == named[candidate.v6] {
			return candidate, true
		}
	}
	return address{}, false
}

// "Beside egress-ip, only "false" counts of the annotation egress-snat", and what cannot be understood is refused.
func understood(annotations map[string]string) bool {
	value, given := annotations[annotation]
	if !given || value == "true" {
		return true
	}
	seen := map[bool]bool{}
	for text := range strings.SplitSeq(value, ",") {
		ip, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil || ip.Zone() != "" || seen[ip.Unmap().Is6()] {
			return false // also "false"
		}
		seen[ip.Unmap().Is6()] = true
	}
	return true
}

// "InvalidProtocol: a port of the Service is neither TCP, UDP nor SCTP"
func (c Cluster) protocolsAreKnown(svc *v1.Service) bool {
	return c.AllProtocols || !slices.ContainsFunc(svc.Spec.Ports, func(port v1.ServicePort) bool {
		return !slices.Contains([]v1.Protocol{v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP, ""}, port.Protocol)
	})
}

// "Its pods are bound for the protocols of its ports, TCP, UDP or SCTP [...] unless egress-snat-protocols
// is all." No protocol means TCP, says the API.
func (c Cluster) protocolsOf(svc *v1.Service) (protocols []string) {
	if c.AllProtocols {
		return []string{everyProtocol}
	}
	if isHeadless(svc) && len(svc.Spec.Ports) == 0 {
		return []string{"sctp", "tcp", "udp"}
	}
	for _, port := range svc.Spec.Ports {
		protocols = append(protocols, strings.ToLower(string(cmp.Or(port.Protocol, v1.ProtocolTCP))))
	}
	return protocols
}

// newAddress reads the text of an object.
func newAddress(text string, balanced bool) address {
	ip := parseIP(text)
	return address{ip: ip, v6: ip.Is6() || !ip.IsValid() && strings.Contains(text, ":"), balanced: balanced}
}

// parseIP reads text as Kubernetes does, which lets an IPv4 address have leading zeros; it is invalid if it
// is no IP address.
func parseIP(text string) netip.Addr {
	ip, _ := netip.AddrFromSlice(netutils.ParseIPSloppy(text)) // invalid for nil
	return ip.Unmap()
}

func parsePrefixes(texts []string) (cidrs []netip.Prefix) {
	for _, text := range texts {
		if cidr, err := netip.ParsePrefix(text); err == nil {
			cidrs = append(cidrs, cidr.Masked())
		}
	}
	return cidrs
}
