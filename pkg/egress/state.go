package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/proxy/apis"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util"
	netutils "k8s.io/utils/net"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// Annotation on a Service, with the value "false", keeps its pods' egress as it would be
// without its external IPs. "true" is what holds without it.
const Annotation = "network.openshift.io/egress-snat"

// state is what the plan needs of the Kubernetes objects. Its methods may be called by
// several goroutines at once.
type state struct {
	mu sync.Mutex
	// services has those Services that claim an egress IP, or would if they could be
	// understood.
	services map[types.NamespacedName]service
	// endpoints has the addresses of every EndpointSlice, by Service and slice.
	endpoints map[types.NamespacedName]map[string][]netip.Addr
	// serviceOf has the Service of every EndpointSlice in endpoints.
	serviceOf map[types.NamespacedName]types.NamespacedName
}

// service is a claim by IP family, without its endpoints.
type service struct {
	claims   map[v1.IPFamily]plan.Claim
	refusals map[v1.IPFamily]plan.Refusal
}

func newState() *state {
	return &state{
		services:  map[types.NamespacedName]service{},
		endpoints: map[types.NamespacedName]map[string][]netip.Addr{},
		serviceOf: map[types.NamespacedName]types.NamespacedName{},
	}
}

// setService takes the newest version of a Service and tells whether plans may change.
func (s *state) setService(object *v1.Service) (changed bool) {
	name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	converted := convertService(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if converted.empty() {
		return s.removeService(name)
	}
	if converted.equal(s.services[name]) {
		return false
	}
	s.services[name] = converted
	return true
}

// deleteService forgets a Service and tells whether plans may change.
func (s *state) deleteService(object *v1.Service) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeService(types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
}

func (s *state) removeService(name types.NamespacedName) (changed bool) {
	_, changed = s.services[name]
	delete(s.services, name)
	return changed
}

// setSlice takes the newest version of an EndpointSlice and tells whether plans may
// change. Addresses that cannot be parsed are returned in err; the others count.
func (s *state) setSlice(object *discovery.EndpointSlice) (changed bool, err error) {
	name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	owner := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[discovery.LabelServiceName]}
	addresses, err := convertSlice(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, known := s.serviceOf[name]; known && old != owner {
		changed = s.removeSlice(name)
	}
	if owner.Name == "" || slices.Equal(s.endpoints[owner][name.Name], addresses) {
		return changed, err
	}
	if s.endpoints[owner] == nil {
		s.endpoints[owner] = map[string][]netip.Addr{}
	}
	s.endpoints[owner][name.Name] = addresses
	s.serviceOf[name] = owner
	_, claimed := s.services[owner]
	return changed || claimed, err
}

// deleteSlice forgets an EndpointSlice and tells whether plans may change.
func (s *state) deleteSlice(object *discovery.EndpointSlice) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeSlice(types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
}

func (s *state) removeSlice(name types.NamespacedName) (changed bool) {
	owner, known := s.serviceOf[name]
	if !known {
		return false
	}
	delete(s.serviceOf, name)
	delete(s.endpoints[owner], name.Name)
	if len(s.endpoints[owner]) == 0 {
		delete(s.endpoints, owner)
	}
	_, changed = s.services[owner]
	return changed
}

// input returns what the plan of family depends on.
func (s *state) input(family v1.IPFamily, config Config) plan.Input {
	in := plan.Input{
		ClusterCIDRs: ofFamily(family, config.ClusterCIDRs, netip.Prefix.Addr),
		Exclusions:   ofFamily(family, config.Exclusions, netip.Prefix.Addr),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, svc := range s.services {
		if refusal, ok := svc.refusals[family]; ok {
			in.Refusals = append(in.Refusals, refusal)
		}
		if claim, ok := svc.claims[family]; ok {
			for _, addresses := range s.endpoints[name] {
				claim.Endpoints = append(claim.Endpoints, ofFamily(family, addresses, func(a netip.Addr) netip.Addr { return a })...)
			}
			in.Claims = append(in.Claims, claim)
		}
	}
	return in
}

func (svc service) empty() bool { return len(svc.claims) == 0 && len(svc.refusals) == 0 }

func (svc service) equal(other service) bool {
	for _, family := range families {
		a, b := svc.claims[family], other.claims[family]
		if a.EgressIP != b.EgressIP || !a.Created.Equal(b.Created) || !slices.Equal(a.Protocols, b.Protocols) ||
			svc.refusals[family] != other.refusals[family] {
			return false
		}
	}
	return true
}

// convertService reads a Service's claims. The external IPs come from the object itself:
// the proxier's own view of them goes silent with the gate AllowServiceExternalIPs.
func convertService(object *v1.Service) service {
	svc := service{claims: map[v1.IPFamily]plan.Claim{}, refusals: map[v1.IPFamily]plan.Refusal{}}
	if _, others := object.Labels[apis.LabelServiceProxyName]; others || proxyutil.ShouldSkipService(object) {
		return svc
	}
	value, annotated := object.Annotations[Annotation]
	if annotated && value == "false" {
		return svc
	}
	protocols, unknown := protocols(object)
	for _, text := range object.Spec.ExternalIPs {
		family, ip := parseExternalIP(text)
		if svc.has(family) {
			continue // only the first of a family is the egress IP
		}
		name := plan.Service{Namespace: object.Namespace, Name: object.Name}
		switch {
		case annotated && value != "true":
			svc.refusals[family] = plan.Refusal{Service: name, EgressIP: ip, Reason: plan.InvalidAnnotation,
				Message: fmt.Sprintf("annotation %s has the value %q; use \"true\" or \"false\"", Annotation, value)}
		case !ip.IsValid():
			svc.refusals[family] = plan.Refusal{Service: name, Reason: plan.InvalidAddress,
				Message: fmt.Sprintf("external IP %q is not an IP address", text)}
		case unknown != "":
			svc.refusals[family] = plan.Refusal{Service: name, EgressIP: ip, Reason: plan.InvalidProtocol,
				Message: fmt.Sprintf("a port has the protocol %q; expected TCP, UDP or SCTP", unknown)}
		default:
			svc.claims[family] = plan.Claim{Service: name, Created: object.CreationTimestamp.Time, EgressIP: ip, Protocols: protocols}
		}
	}
	return svc
}

func (svc service) has(family v1.IPFamily) bool {
	_, claimed := svc.claims[family]
	_, refused := svc.refusals[family]
	return claimed || refused
}

// parseExternalIP reads text as the proxier does, leading zeros included. What cannot be
// read counts for the family that it looks like, so that no later entry takes its place.
func parseExternalIP(text string) (v1.IPFamily, netip.Addr) {
	ip, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(text))
	if !ok {
		if strings.Contains(text, ":") {
			return v1.IPv6Protocol, netip.Addr{}
		}
		return v1.IPv4Protocol, netip.Addr{}
	}
	ip = ip.Unmap()
	return familyOf(ip), ip
}

// protocols returns those of the Service's ports, sorted, or one that cannot be used.
func protocols(object *v1.Service) (result []plan.Protocol, unknown string) {
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

func convertSlice(object *discovery.EndpointSlice) ([]netip.Addr, error) {
	if object.AddressType == discovery.AddressTypeFQDN {
		return nil, nil
	}
	var result []netip.Addr
	var unreadable []string
	for _, endpoint := range object.Endpoints {
		for _, text := range endpoint.Addresses {
			ip, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(text))
			if !ok {
				unreadable = append(unreadable, text)
				continue
			}
			result = append(result, ip.Unmap())
		}
	}
	slices.SortFunc(result, netip.Addr.Compare)
	result = slices.Compact(result)
	if len(unreadable) > 0 {
		return result, fmt.Errorf("not IP addresses: %q", unreadable)
	}
	return result, nil
}

var families = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}

func familyOf(ip netip.Addr) v1.IPFamily {
	if ip.Is4() {
		return v1.IPv4Protocol
	}
	return v1.IPv6Protocol
}

// ofFamily returns those of list whose address is of family.
func ofFamily[T any](family v1.IPFamily, list []T, address func(T) netip.Addr) []T {
	var result []T
	for _, item := range list {
		if familyOf(address(item)) == family {
			result = append(result, item)
		}
	}
	return result
}

// PlanFor returns the plan of family for these objects. What of them cannot be read is in
// err; the plan is complete without it.
func PlanFor(family v1.IPFamily, config Config, services []*v1.Service, endpointSlices []*discovery.EndpointSlice) (plan.Plan, error) {
	s := newState()
	var errs []error
	for _, object := range services {
		s.setService(object)
	}
	for _, object := range endpointSlices {
		if _, err := s.setSlice(object); err != nil {
			errs = append(errs, fmt.Errorf("EndpointSlice %s/%s: %w", object.Namespace, object.Name, err))
		}
	}
	return plan.Build(s.input(family, config)), errors.Join(errs...)
}
