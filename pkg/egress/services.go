package egress

import (
	"net/netip"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// setService takes the newest version of a Service and tells whether plans may change.
func (s *state) setService(object *v1.Service) (changed bool) {
	name := nameOf(object)
	converted := convertService(object, s.config)
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.services[name]
	if known && old.headless != converted.headless && object.CreationTimestamp.Time.Before(old.created()) {
		return false // another informer has told of the Service that has the name now
	}
	if len(converted.parts) == 0 {
		return s.removeService(name, converted.headless)
	}
	if known && converted.equal(old) {
		return false
	}
	if known && old.headless != converted.headless { // other EndpointSlices count
		s.removeService(name, old.headless)
		old, known = service{}, false
	}
	s.countClaims(old, converted)
	if converted.claims(func(ip netip.Addr) bool { return s.placement.Held[ip] }) {
		s.index()
	}
	s.steer(s.indexedAddresses(name), func() {
		s.services[name] = converted
		for _, family := range families {
			s.planService(family, name, old.parts[family] != nil)
		}
		if !known {
			s.indexService(name, 1)
		}
	})
	return true
}

// planService tells a planner of a Service. If it was not known there, it is told its endpoints, too.
func (s *state) planService(family v1.IPFamily, name types.NamespacedName, known bool) {
	part, planner := s.services[name].parts[family], s.planners[family]
	if part == nil {
		planner.DeleteService(planName(name))
		return
	}
	planner.SetService(part.holding, part.claim)
	if known {
		return
	}
	for endpoints := range s.endpointsOf(name) {
		planner.ReplaceEndpoints(planName(name), nil, ofFamily(family, ownEndpoints(s.placement, endpoints), endpointAddr))
	}
}

func planName(name types.NamespacedName) plan.Service {
	return plan.Service{Namespace: name.Namespace, Name: name.Name}
}

// deleteService forgets a Service and tells whether plans may change.
func (s *state) deleteService(object *v1.Service) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeService(nameOf(object), isHeadless(object))
}

// removeService forgets a Service, unless that one is headless and this one not, or the other way round: then it has got another
// one's name.
func (s *state) removeService(name types.NamespacedName, headless bool) (changed bool) {
	old, known := s.services[name]
	if !known || old.headless != headless {
		return false
	}
	s.countClaims(old, service{})
	s.steer(s.indexedAddresses(name), func() {
		s.indexService(name, -1)
		delete(s.services, name)
		for _, planner := range s.planners {
			planner.DeleteService(planName(name))
		}
	})
	return true
}

// uid returns that of a Service with claims, or nothing.
func (s *state) uid(name plan.Service) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.services[types.NamespacedName{Namespace: name.Namespace, Name: name.Name}].uid
}
