package cluster

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

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

// isNone tells whether there is nothing that a Service has or claims.
func (svc service) isNone() bool { return len(svc.parts) == 0 }

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

// claims tells whether a Service claims an egress IP of which is says so.
func (svc service) claims(is func(netip.Addr) bool) bool {
	for _, part := range svc.parts {
		if part.claim != nil && part.claim.Claims(is) {
			return true
		}
	}
	return false
}

// SetService takes the newest version of a Service and tells whether plans may change.
func (s *State) SetService(object *v1.Service) (changed bool) {
	converted := convertService(object, s.Config)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setService(NameOf(object), converted)
}

// DeleteService forgets a Service and tells whether plans may change.
func (s *State) DeleteService(object *v1.Service) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setService(NameOf(object), service{headless: isHeadless(object)})
}

// setService takes what a Service has and claims, which is nothing if it is gone.
//
// Two informers tell of Services, one of the headless ones, and neither waits for the other when a name passes from one Service to
// another. The younger Service has the name; the other one is kept until its own informer says that it is gone.
func (s *State) setService(name types.NamespacedName, now service) (changed bool) {
	old, known := s.services[name]
	other, shadowed := s.shadowed[name]
	switch own := !known || old.headless == now.headless; {
	case own && now.isNone() && shadowed:
		delete(s.shadowed, name)
		s.replaceService(name, service{}) // other EndpointSlices count
		now = other
	case own:
	case now.isNone():
		delete(s.shadowed, name)
		return false
	case now.created().Before(old.created()):
		s.shadowed[name] = now
		return false
	default:
		s.shadowed[name] = old
		s.replaceService(name, service{})
	}
	return s.replaceService(name, now)
}

// replaceService notes a Service in the place of the one of this name, and tells the planners. Either may be none; if neither is, they are both
// headless, or not.
func (s *State) replaceService(name types.NamespacedName, now service) (changed bool) {
	old, known := s.services[name]
	if !known && now.isNone() || known && now.equal(old) {
		return false
	}
	s.countAlternatives(old, now)
	if now.claims(func(ip netip.Addr) bool { return s.placement.Held[ip] }) {
		s.index()
	}
	s.replanSteered(s.indexedAddresses(name, old.headless || now.headless), func() {
		s.keepChoices(name, old, now)
		if now.isNone() {
			s.indexService(name, -1)
			delete(s.services, name)
		} else {
			s.services[name] = now
		}
		for _, family := range Families {
			s.planService(family, name, old.parts[family] != nil)
		}
		if !known {
			s.indexService(name, 1)
		}
	})
	return true
}

// planService tells a planner of a Service. If it was not known there, it is told its endpoints, too.
func (s *State) planService(family v1.IPFamily, name types.NamespacedName, known bool) {
	part, planner := s.services[name].parts[family], s.planners[family]
	if part == nil {
		planner.DeleteService(PlanName(name))
		return
	}
	planner.SetService(part.holding, part.claim)
	if known {
		return
	}
	for endpoints := range s.endpointsOf(name) {
		planner.ReplaceEndpoints(PlanName(name), nil, ofFamily(family, ownEndpoints(s.placement, endpoints), endpointAddr))
	}
}

// PlanName is the name of a Service as plans have it.
func PlanName(name types.NamespacedName) plan.Service {
	return plan.Service{Namespace: name.Namespace, Name: name.Name}
}

// UID returns that of a Service with claims, or nothing.
func (s *State) UID(name plan.Service) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.services[types.NamespacedName{Namespace: name.Namespace, Name: name.Name}].uid
}

// Claims returns the egress IPs of a family that Services claim, by these.
func (s *State) Claims(family v1.IPFamily) map[plan.Service][]plan.Address {
	s.mu.Lock()
	defer s.mu.Unlock()
	claims := map[plan.Service][]plan.Address{}
	for name, svc := range s.services {
		if part := svc.parts[family]; part != nil && part.claim != nil {
			claims[PlanName(name)] = part.claim.Addresses()
		}
	}
	return claims
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
