package cluster

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/proxy/apis"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util"
	netutils "k8s.io/utils/net"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// This file turns Kubernetes objects into plain input, with annotations.go for a Service's annotations, and no other does.

// service is what a Service has and claims, by IP family; nothing in most.
type service struct {
	uid types.UID
	// headless: EndpointSlices with the label for headless Services count for it, too.
	headless bool
	parts    map[v1.IPFamily]*part
	block    portBlock
}

// part is what a Service takes part with in the plan of one family. It is not changed.
type part struct {
	holding plan.Holding
	claim   *plan.Claim // without endpoints; nil if there is none
}

// created returns when a Service was made that has a part.
func (svc service) created() (at time.Time) {
	for _, part := range svc.parts {
		at = part.holding.Created
	}
	return at
}

func (svc service) equal(other service) bool {
	return svc.uid == other.uid && svc.headless == other.headless && svc.block == other.block && maps.EqualFunc(svc.parts, other.parts, (*part).equal)
}

func (p *part) equal(o *part) bool {
	if !p.holding.Created.Equal(o.holding.Created) || !slices.Equal(p.holding.Addresses, o.holding.Addresses) {
		return false
	}
	a, b := p.claim, o.claim
	if a == nil || b == nil {
		return a == b
	}
	return a.Service == b.Service && a.EgressIP == b.EgressIP && a.Field == b.Field && a.Created.Equal(b.Created) &&
		a.LoadBalancer == b.LoadBalancer && a.Annotated == b.Annotated && slices.Equal(a.Others, b.Others) && a.Refused == b.Refused && a.RefusedBecause == b.RefusedBecause && slices.Equal(a.Protocols, b.Protocols) &&
		maps.Equal(a.Selector, b.Selector)
}

// candidate is an address that a Service could leave from.
type candidate struct {
	text, field  string
	ip           netip.Addr // invalid if text is no address
	loadBalancer bool
	annotated    bool // by the annotation alone
}

func (c candidate) address() plan.Address {
	return plan.Address{IP: c.ip, LoadBalancer: c.loadBalancer, Annotated: c.annotated}
}

// convertService reads a Service's claims. The external IPs come from the object itself:
// the proxier's own view of them goes silent with the gate AllowServiceExternalIPs.
func convertService(object *v1.Service, config Config) service {
	svc := service{uid: object.UID}
	svc.headless, svc.block = isHeadless(object), portBlockOf(object)
	if !takesPart(object) {
		return svc
	}
	named := egressIPsOf(object, config)
	addresses, claims := addressesOf(object, named), parseClaims(object, config, named)
	for _, family := range Families {
		if len(addresses[family]) == 0 && claims[family] == nil {
			continue
		}
		if svc.parts == nil {
			svc.parts = map[v1.IPFamily]*part{}
		}
		svc.parts[family] = &part{
			holding: plan.Holding{Service: PlanName(NameOf(object)), Created: object.CreationTimestamp.Time, Addresses: addresses[family]},
			claim:   claims[family],
		}
	}
	return svc
}

// takesPart tells whether a Service can have addresses: one that the proxier serves, or a headless one with the annotation that
// names some.
func takesPart(object *v1.Service) bool {
	if _, others := object.Labels[apis.LabelServiceProxyName]; others {
		return false
	}
	_, named := object.Annotations[EgressIPAnnotation]
	return named && isHeadless(object) || !proxyutil.ShouldSkipService(object)
}

func isHeadless(object *v1.Service) bool {
	return object.Spec.ClusterIP == v1.ClusterIPNone && object.Spec.Type != v1.ServiceTypeExternalName
}

// NameOf is the name of an object.
func NameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// parseClaims returns what a Service claims, without endpoints.
func parseClaims(object *v1.Service, config Config, named egressIPs) map[v1.IPFamily]*plan.Claim {
	wish := parseWish(object.Annotations)
	if wish.off {
		return nil
	}
	claims := map[v1.IPFamily]*plan.Claim{}
	protocols, unknown := protocols(object, config.AllProtocols)
	candidates := candidatesOf(object, config.LoadBalancerIPs)
	for _, family := range Families {
		chosen, reason, because := wish.choose(family, candidates[family])
		if named.given {
			chosen, reason, because = named.choose(family, wish)
		}
		switch {
		case chosen == nil && reason == "":
			continue
		case chosen == nil:
			chosen = &candidate{}
		case reason != "":
		case !chosen.ip.IsValid():
			reason, because = plan.InvalidAddress, fmt.Sprintf("%s %q is not an IP address", chosen.field, chosen.text)
		case unknown != "":
			reason, because = plan.InvalidProtocol, fmt.Sprintf("a port has the protocol %q; expected TCP, UDP or SCTP", unknown)
		}
		var others []plan.Address
		if named.given && reason == "" {
			for _, c := range named.of(family)[1:] {
				others = append(others, c.address())
			}
		}
		claims[family] = &plan.Claim{
			Service:  PlanName(NameOf(object)),
			Created:  object.CreationTimestamp.Time,
			EgressIP: chosen.ip, Field: chosen.field, LoadBalancer: chosen.loadBalancer, Annotated: chosen.annotated, Others: others,
			Protocols: protocols,
			Refused:   reason, RefusedBecause: because,
			Selector: selectorOf(object, family),
		}
	}
	return claims
}

// selectorOf returns what chooses a Service's pods that have endpoints in an IP family; nil if none have.
func selectorOf(object *v1.Service, family v1.IPFamily) map[string]string {
	if !slices.Contains(familiesOf(object), family) {
		return nil
	}
	return object.Spec.Selector
}

// familiesOf returns the IP families that a Service serves.
func familiesOf(object *v1.Service) []v1.IPFamily {
	if len(object.Spec.IPFamilies) > 0 {
		return object.Spec.IPFamilies
	}
	family, _ := parseExternalIP(object.Spec.ClusterIP) // as the EndpointSlice controller does
	return []v1.IPFamily{family}
}

// candidatesOf returns the addresses that a Service could leave from, in its own order.
func candidatesOf(object *v1.Service, loadBalancerIPs bool) map[v1.IPFamily][]candidate {
	candidates := externalIPs(object)
	if len(candidates) == 0 && loadBalancerIPs {
		candidates = balancedIPs(object)
	}
	result := map[v1.IPFamily][]candidate{}
	for _, c := range candidates {
		var family v1.IPFamily
		family, c.ip = parseExternalIP(c.text)
		result[family] = append(result[family], c)
	}
	return result
}

// addressesOf returns all addresses that the outside knows a Service by: none of a headless one but those that it names.
func addressesOf(object *v1.Service, named egressIPs) map[v1.IPFamily][]plan.Address {
	result := map[v1.IPFamily][]plan.Address{}
	for _, c := range slices.Concat(externalIPs(object), balancedIPs(object)) {
		if family, ip := parseExternalIP(c.text); ip.IsValid() {
			c.ip = ip
			result[family] = append(result[family], c.address())
		}
	}
	for _, c := range named.candidates {
		if c.annotated {
			result[FamilyOf(c.ip)] = append(result[FamilyOf(c.ip)], c.address())
		}
	}
	return result
}

func externalIPs(object *v1.Service) []candidate {
	if isHeadless(object) {
		return nil
	}
	var result []candidate
	for i, text := range object.Spec.ExternalIPs {
		result = append(result, candidate{text: text, field: "spec.externalIPs[" + strconv.Itoa(i) + "]"})
	}
	return result
}

// balancedIPs returns those that a load balancer gave the Service. In the mode Proxy the
// address is the load balancer's own, which packets of the cluster cannot come from.
func balancedIPs(object *v1.Service) []candidate {
	if object.Spec.Type != v1.ServiceTypeLoadBalancer {
		return nil
	}
	var result []candidate
	for i, ingress := range object.Status.LoadBalancer.Ingress {
		if ingress.IP != "" && (ingress.IPMode == nil || *ingress.IPMode == v1.LoadBalancerIPModeVIP) {
			result = append(result, candidate{text: ingress.IP, field: "status.loadBalancer.ingress[" + strconv.Itoa(i) + "].ip", loadBalancer: true})
		}
	}
	return result
}

// BalancedAddresses are those that balancedIPs tells, as far as they can be an address of a Service.
func BalancedAddresses(object *v1.Service) (addresses []netip.Addr) {
	for _, c := range balancedIPs(object) {
		if _, ip := parseExternalIP(c.text); ip.IsValid() {
			addresses = append(addresses, ip)
		}
	}
	return addresses
}

// parseExternalIP reads text as [parseIP] does. What cannot be read counts for the family that it
// looks like, so that no later entry takes its place.
func parseExternalIP(text string) (v1.IPFamily, netip.Addr) {
	ip, ok := parseIP(text)
	if !ok {
		if strings.Contains(text, ":") {
			return v1.IPv6Protocol, netip.Addr{}
		}
		return v1.IPv4Protocol, netip.Addr{}
	}
	return FamilyOf(ip), ip
}

// parseIP reads text as the proxier does, leading zeros included; ok is false if it is no IP address.
func parseIP(text string) (ip netip.Addr, ok bool) {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" { // as most are; it allocates nothing
		return ip.Unmap(), true
	}
	ip, ok = netip.AddrFromSlice(netutils.ParseIPSloppy(text))
	return ip.Unmap(), ok
}

// protocols returns those of the Service's ports, sorted, or one that cannot be used.
func protocols(object *v1.Service, all bool) (result []plan.Protocol, unknown string) {
	if all {
		return []plan.Protocol{plan.All}, ""
	}
	if isHeadless(object) && len(object.Spec.Ports) == 0 { // it is a selector, and no more
		return []plan.Protocol{plan.SCTP, plan.TCP, plan.UDP}, ""
	}
	for _, port := range object.Spec.Ports {
		switch port.Protocol {
		case v1.ProtocolTCP, "": // the API's default
			result = append(result, plan.TCP)
		case v1.ProtocolUDP:
			result = append(result, plan.UDP)
		case v1.ProtocolSCTP:
			result = append(result, plan.SCTP)
		default:
			return nil, string(port.Protocol)
		}
	}
	slices.Sort(result)
	return slices.Compact(result), ""
}

// convertSlice returns the endpoints of an EndpointSlice, which may be nil, in its order. What is not
// an IP address is left out and in err.
func convertSlice(object *discovery.EndpointSlice) ([]plan.Endpoint, error) {
	if object == nil || object.AddressType == discovery.AddressTypeFQDN {
		return nil, nil
	}
	result := make([]plan.Endpoint, 0, len(object.Endpoints)) // an endpoint has one address mostly
	var unreadable []string
	for _, endpoint := range object.Endpoints {
		converted := plan.Endpoint{}
		if ref := endpoint.TargetRef; ref != nil && ref.Kind == "Pod" {
			converted.Pod = plan.Pod{Namespace: cut(ref.Namespace, maxNamespace), Name: cut(ref.Name, maxName)}
			converted.UID = cut(string(ref.UID), maxName)
		}
		if endpoint.NodeName != nil {
			converted.Node = *endpoint.NodeName
		}
		for _, text := range endpoint.Addresses {
			ip, ok := parseIP(text)
			if !ok {
				unreadable = append(unreadable, text)
				continue
			}
			converted.Addr = ip
			result = append(result, converted)
		}
	}
	if len(unreadable) > 0 {
		return result, fmt.Errorf("not IP addresses: %q", unreadable)
	}
	return result, nil
}

// What no name of a namespace or a pod is as long as, in bytes. API servers do not validate
// those that an EndpointSlice gives: they may be as long as the slice.
const maxNamespace, maxName = 64, 254

// cut returns text, or as much of it as fits into this many bytes.
func cut(text string, most int) string { return text[:min(len(text), most)] }

// convertNode reads a Node's InternalIPs by IP family. ExternalIPs and host names are left out.
func convertNode(object *v1.Node) map[v1.IPFamily]plan.Node {
	result := map[v1.IPFamily]plan.Node{}
	for _, ip := range internalIPs(object) {
		node, known := result[FamilyOf(ip)]
		if !known {
			node = plan.Node{Name: object.Name, Created: object.CreationTimestamp.Time, Zone: object.Labels[v1.LabelTopologyZone]}
		}
		node.InternalIPs = append(node.InternalIPs, ip)
		result[FamilyOf(ip)] = node
	}
	return result
}

// internalIPs returns those that a Node tells, in its order.
func internalIPs(object *v1.Node) (ips []netip.Addr) {
	for _, address := range object.Status.Addresses {
		if ip, ok := parseIP(address.Address); ok && address.Type == v1.NodeInternalIP {
			ips = append(ips, ip)
		}
	}
	return ips
}

func equalNodes(a, b map[v1.IPFamily]plan.Node) bool {
	return maps.EqualFunc(a, b, func(x, y plan.Node) bool {
		return x.Name == y.Name && x.Zone == y.Zone && x.Created.Equal(y.Created) && slices.Equal(x.InternalIPs, y.InternalIPs) &&
			(x.Registered == nil) == (y.Registered == nil) && slices.Equal(x.Registered, y.Registered)
	})
}

// networkName is the one Network of config.openshift.io that means anything.
const networkName = "cluster"

const networkSource = "Network.config.openshift.io/" + networkName

// network is what an OpenShift cluster's Network says.
type network struct {
	clusterCIDRs, serviceCIDRs []netip.Prefix
	// policy is on external IPs; nil allows all.
	policy *plan.Policy
}

// convertNetwork reads the networks in force (status), or those that are wanted as long as
// none are, and the policy on external IPs. What cannot be read is in err, and a policy
// that cannot be read allows nothing.
func convertNetwork(object *configv1.Network) (network, error) {
	var unreadable []string
	parse := func(field string, texts []string) (result []netip.Prefix) {
		for i, text := range texts {
			cidr, err := netip.ParsePrefix(text)
			if err != nil {
				unreadable = append(unreadable, fmt.Sprintf("%s[%d]: %q", field, i, text))
				continue
			}
			result = append(result, cidr.Masked())
		}
		return result
	}
	from, clusterNetwork, serviceNetwork := "status", object.Status.ClusterNetwork, object.Status.ServiceNetwork
	if len(clusterNetwork) == 0 {
		from, clusterNetwork, serviceNetwork = "spec", object.Spec.ClusterNetwork, object.Spec.ServiceNetwork
	}
	var cidrs []string
	for _, entry := range clusterNetwork {
		cidrs = append(cidrs, entry.CIDR)
	}
	result := network{clusterCIDRs: parse(from+".clusterNetwork", cidrs)}
	if len(unreadable) > 0 {
		result.clusterCIDRs = nil // rather none than an incomplete list: what is left out would be SNATed to
	}
	result.serviceCIDRs = parse(from+".serviceNetwork", serviceNetwork)
	if external := object.Spec.ExternalIP; external != nil && external.Policy != nil {
		const field = "spec.externalIP.policy"
		before := len(unreadable)
		result.policy = &plan.Policy{
			Source:          networkSource + " " + field,
			Allowed:         parse(field+".allowedCIDRs", external.Policy.AllowedCIDRs),
			Rejected:        parse(field+".rejectedCIDRs", external.Policy.RejectedCIDRs),
			ExternalIPsOnly: true,
		}
		if len(unreadable) > before {
			result.policy.Allowed = nil
		}
	}
	if len(unreadable) > 0 {
		return result, fmt.Errorf("%s: not CIDRs: %s", networkSource, strings.Join(unreadable, ", "))
	}
	return result, nil
}

func (n network) equal(o network) bool {
	return slices.Equal(n.clusterCIDRs, o.clusterCIDRs) && slices.Equal(n.serviceCIDRs, o.serviceCIDRs) &&
		(n.policy == nil) == (o.policy == nil) &&
		(n.policy == nil || slices.Equal(n.policy.Allowed, o.policy.Allowed) && slices.Equal(n.policy.Rejected, o.policy.Rejected))
}

// convertCIDRs reads CIDRs that the API server has validated; what cannot be read is left
// out.
func convertCIDRs(texts []string) []netip.Prefix {
	var result []netip.Prefix
	for _, text := range texts {
		if cidr, err := netip.ParsePrefix(text); err == nil {
			result = append(result, cidr.Masked())
		}
	}
	slices.SortFunc(result, comparePrefixes)
	return slices.Compact(result)
}

func comparePrefixes(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// Families are both IP families.
var Families = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}

// FamilyOf returns the IP family of an address.
func FamilyOf(ip netip.Addr) v1.IPFamily {
	if ip.Is4() {
		return v1.IPv4Protocol
	}
	return v1.IPv6Protocol
}

// ofFamily returns those of list whose address is of family.
func ofFamily[T any](family v1.IPFamily, list []T, address func(T) netip.Addr) []T {
	var result []T
	for _, item := range list {
		if FamilyOf(address(item)) == family {
			result = append(result, item)
		}
	}
	return result
}
