package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/proxy/apis"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
)

// This file reads what a Service has and claims, annotations included, and no other does.

const (
	// Annotation on a Service says which of its addresses are egress IPs: "true", the default,
	// the first of each IP family; "false" none; or the addresses themselves, at most one of
	// each family, separated by commas. A family that is not named has none then.
	Annotation = "network.openshift.io/egress-snat"
	// EgressIPAnnotation on a Service names its egress IPs, whether or not it has them as external IPs or by a load
	// balancer: up to MostEgressIPs of each IP family, separated by commas, and each pod leaves from one of them; one if nothing is
	// steered. A family that is not named has none then. Of Annotation only "false" counts beside it.
	EgressIPAnnotation = "network.openshift.io/egress-ip"
	// PortBlockAnnotation on a Service is the number of source ports in a block of its pods, in the place of that of
	// proxyArguments.egress-snat-port-blocks; 0 for no blocks.
	PortBlockAnnotation = "network.openshift.io/egress-port-block"
	// MostEgressIPs is how many egress IPs of an IP family a Service may have.
	MostEgressIPs = 16
)

// candidate is an address that a Service could leave from.
type candidate struct {
	text, field  string
	family       v1.IPFamily // what text looks like, if it is no address
	ip           netip.Addr  // invalid if text is no address
	loadBalancer bool
	annotated    bool // by the annotation alone
}

func (c candidate) address() plan.Address {
	return plan.Address{IP: c.ip, LoadBalancer: c.loadBalancer, Annotated: c.annotated}
}

// convertService reads a Service's claims. The external IPs come from the object itself:
// the proxier's own view of them goes silent with the gate AllowServiceExternalIPs.
func convertService(object *v1.Service, config Config) service {
	svc := service{uid: object.UID, headless: isHeadless(object)}
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
	svc.block = portBlockOf(object)
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
			for _, c := range named.candidates[family][1:] {
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
		result[c.family] = append(result[c.family], c)
	}
	return result
}

// addressesOf returns all addresses that the outside knows a Service by: none of a headless one but those that it names.
func addressesOf(object *v1.Service, named egressIPs) map[v1.IPFamily][]plan.Address {
	result := map[v1.IPFamily][]plan.Address{}
	for _, c := range slices.Concat(externalIPs(object), balancedIPs(object)) {
		if c.ip.IsValid() {
			result[c.family] = append(result[c.family], c.address())
		}
	}
	for family, candidates := range named.candidates {
		for _, c := range candidates {
			if c.annotated {
				result[family] = append(result[family], c.address())
			}
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
		c := candidate{text: text, field: "spec.externalIPs[" + strconv.Itoa(i) + "]"}
		c.family, c.ip = parseExternalIP(text)
		result = append(result, c)
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
			c := candidate{text: ingress.IP, field: "status.loadBalancer.ingress[" + strconv.Itoa(i) + "].ip", loadBalancer: true}
			c.family, c.ip = parseExternalIP(ingress.IP)
			result = append(result, c)
		}
	}
	return result
}

// BalancedAddresses are those that balancedIPs tells, as far as they can be an address of a Service.
func BalancedAddresses(object *v1.Service) (addresses []netip.Addr) {
	for _, c := range balancedIPs(object) {
		if c.ip.IsValid() {
			addresses = append(addresses, c.ip)
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

// wish is what a Service's annotation says.
type wish struct {
	off bool
	// named are the addresses that it names; empty for the first of each family.
	named map[v1.IPFamily]netip.Addr
	// wrong is what is wrong with the annotation.
	wrong string
}

func parseWish(annotations map[string]string) wish {
	value, given := annotations[Annotation]
	switch {
	case !given || value == "true":
		return wish{}
	case value == "false":
		return wish{off: true}
	}
	ips, wrong := parseNames(Annotation, value, names{mapped: true, most: 1, tooMany: "two", beyond: "a pod leaves from one",
		advice: "use \"true\", \"false\", or one of the Service's addresses of each IP family, separated by commas"})
	if wrong != "" {
		return wish{wrong: wrong}
	}
	w := wish{named: map[v1.IPFamily]netip.Addr{}}
	for _, ip := range ips {
		w.named[FamilyOf(ip)] = ip
	}
	return w
}

// names says what an annotation may name: most addresses of each IP family, what to call more of them, and why no more; mapped allows
// IPv4 ones in IPv6 form. The advice says how to write them.
type names struct {
	mapped                  bool
	most                    int
	tooMany, beyond, advice string
}

// egressIPNames is what EgressIPAnnotation may name.
func egressIPNames(config Config) names {
	n := names{most: MostEgressIPs, tooMany: fmt.Sprintf("more than %d", MostEgressIPs), beyond: "each pod leaves from one of them, and there may be no more", advice: "name IP addresses, separated by commas"}
	if config.Steering.Off() {
		n.most, n.tooMany, n.beyond = 1, "two", "nodes choose among several for their pods only with proxyArguments.egress-snat-steering"
		if config.Steering.Unavailable != nil {
			n.beyond = "this node cannot steer packets, as the log of its start says, so it cannot choose among several for its pods"
		}
	}
	return n
}

// parseNames returns the addresses that an annotation's value names, as far as they can be read, the first MostEgressIPs of each IP family,
// and what is wrong with it, and what to do.
func parseNames(annotation, value string, may names) (ips []netip.Addr, wrong string) {
	count := map[v1.IPFamily]int{}
	for text := range strings.SplitSeq(value, ",") {
		ip, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil || ip.Zone() != "" || ip.Is4In6() && !may.mapped { // a zone is any text
			wrong = fmt.Sprintf("annotation %s has the value %.100q; %s", annotation, value, may.advice)
			continue
		}
		ip = ip.Unmap()
		if count[FamilyOf(ip)]++; count[FamilyOf(ip)] <= MostEgressIPs { // each that a Service has costs every node something
			ips = append(ips, ip)
		}
	}
	for _, family := range Families {
		if count[family] > may.most && wrong == "" {
			wrong = fmt.Sprintf("annotation %s names %s %s addresses; %s", annotation, may.tooMany, family, may.beyond)
		}
	}
	return ips, wrong
}

// choose returns the candidate of a family that the wish means: none if it means none, and
// the first, with a reason, if it cannot be told.
func (w wish) choose(family v1.IPFamily, candidates []candidate) (chosen *candidate, reason plan.Reason, because string) {
	var first *candidate
	if len(candidates) > 0 {
		first = &candidates[0]
	}
	named, given := w.named[family]
	switch {
	case w.wrong != "" && first != nil:
		return first, plan.InvalidAnnotation, w.wrong
	case w.wrong != "" || w.named != nil && !given:
		return nil, "", ""
	case !given:
		return first, "", ""
	}
	for i := range candidates {
		if candidates[i].ip == named {
			return &candidates[i], "", ""
		}
	}
	return first, plan.InvalidAnnotation, fmt.Sprintf("annotation %s names %s, which is none of the Service's %s addresses", Annotation, named, family)
}

// egressIPs is what a Service's EgressIPAnnotation says.
type egressIPs struct {
	given bool
	// candidates are the addresses that it names, as far as they can be read.
	candidates map[v1.IPFamily][]candidate
	// wrong is what is wrong with it, served are the IP families in which that is told.
	wrong  string
	served []v1.IPFamily
}

func egressIPsOf(object *v1.Service, config Config) egressIPs {
	value, given := object.Annotations[EgressIPAnnotation]
	if !given {
		return egressIPs{}
	}
	result := egressIPs{given: true, candidates: map[v1.IPFamily][]candidate{}, served: familiesOf(object)}
	var ips []netip.Addr
	ips, result.wrong = parseNames(EgressIPAnnotation, value, egressIPNames(config))
	external, balanced := ipsOf(externalIPs(object)), map[netip.Addr]bool{}
	if config.LoadBalancerIPs {
		balanced = ipsOf(balancedIPs(object))
	}
	seen := map[netip.Addr]bool{}
	for _, ip := range ips {
		if seen[ip] {
			continue
		}
		seen[ip] = true
		family := FamilyOf(ip)
		result.candidates[family] = append(result.candidates[family], candidate{
			family: family, ip: ip, field: "metadata.annotations[" + EgressIPAnnotation + "]",
			loadBalancer: !external[ip] && balanced[ip], annotated: !external[ip] && !balanced[ip],
		})
	}
	return result
}

// ipsOf returns the addresses of candidates.
func ipsOf(candidates []candidate) map[netip.Addr]bool {
	ips := make(map[netip.Addr]bool, len(candidates))
	for _, c := range candidates {
		ips[c.ip] = true
	}
	return ips
}

// choose is as that of a wish, which is the Service's, and counts only if it is wrong. It returns the first address of the family.
func (e egressIPs) choose(family v1.IPFamily, w wish) (chosen *candidate, reason plan.Reason, because string) {
	if all := e.candidates[family]; len(all) > 0 {
		chosen = &all[0]
	}
	switch {
	case e.wrong != "" && (chosen != nil || slices.Contains(e.served, family)):
		return chosen, plan.InvalidAnnotation, e.wrong
	case chosen != nil && w.wrong != "":
		return chosen, plan.InvalidAnnotation, w.wrong
	}
	return chosen, "", ""
}

// portBlock is what a Service's PortBlockAnnotation says.
type portBlock struct {
	given bool
	size  int
	// wrong is what is wrong with it; then nothing is given.
	wrong string
}

func portBlockOf(object *v1.Service) portBlock {
	value, given := object.Annotations[PortBlockAnnotation]
	if !given {
		return portBlock{}
	}
	size, err := portblocks.ParseSize(value)
	if err != nil {
		return portBlock{wrong: fmt.Sprintf("annotation %s: %v", PortBlockAnnotation, err)}
	}
	return portBlock{given: true, size: size}
}
