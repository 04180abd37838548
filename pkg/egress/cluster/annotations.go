package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
)

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

// parseNames returns the addresses that an annotation's value names, as far as they can be read, and what is wrong with it, and what to do.
func parseNames(annotation, value string, may names) (ips []netip.Addr, wrong string) {
	count := map[v1.IPFamily]int{}
	for text := range strings.SplitSeq(value, ",") {
		ip, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil || ip.Zone() != "" || ip.Is4In6() && !may.mapped { // a zone is any text
			wrong = fmt.Sprintf("annotation %s has the value %.100q; %s", annotation, value, may.advice)
			continue
		}
		ip = ip.Unmap()
		ips = append(ips, ip)
		count[FamilyOf(ip)]++
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
	candidates []candidate
	// wrong is what is wrong with it, served are the IP families in which that is told.
	wrong  string
	served []v1.IPFamily
}

func egressIPsOf(object *v1.Service, config Config) egressIPs {
	value, given := object.Annotations[EgressIPAnnotation]
	if !given {
		return egressIPs{}
	}
	result := egressIPs{given: true, served: familiesOf(object)}
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
		result.candidates = append(result.candidates, candidate{
			ip: ip, field: "metadata.annotations[" + EgressIPAnnotation + "]",
			loadBalancer: !external[ip] && balanced[ip], annotated: !external[ip] && !balanced[ip],
		})
	}
	return result
}

// ipsOf returns the addresses of candidates.
func ipsOf(candidates []candidate) map[netip.Addr]bool {
	ips := make(map[netip.Addr]bool, len(candidates))
	for _, c := range candidates {
		_, ip := parseExternalIP(c.text)
		ips[ip] = true
	}
	return ips
}

// of returns the addresses of a family.
func (e egressIPs) of(family v1.IPFamily) []candidate {
	return ofFamily(family, e.candidates, func(c candidate) netip.Addr { return c.ip })
}

// choose is as that of a wish, which is the Service's, and counts only if it is wrong. It returns the first address of the family.
func (e egressIPs) choose(family v1.IPFamily, w wish) (chosen *candidate, reason plan.Reason, because string) {
	if all := e.of(family); len(all) > 0 {
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

// PortBlock returns the number of source ports in a block of a Service's pods, if its annotation says it.
func (s *State) PortBlock(service plan.Service) (size int, given bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	block := s.services[types.NamespacedName{Namespace: service.Namespace, Name: service.Name}].block
	return block.size, block.given
}

// WrongPortBlocks returns what is wrong with the PortBlockAnnotation of Services that claim egress IPs.
func (s *State) WrongPortBlocks() map[plan.Service]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var wrong map[plan.Service]string
	for name, svc := range s.services {
		if svc.block.wrong != "" && svc.claims(netip.Addr.IsValid) {
			if wrong == nil {
				wrong = map[plan.Service]string{}
			}
			wrong[PlanName(name)] = svc.block.wrong
		}
	}
	return wrong
}
