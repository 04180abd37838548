package cluster

import (
	"iter"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// ownEndpoints returns those of an EndpointSlice that are a node's to bind, as a Planner takes them:
// sorted and without duplicates, in the same memory. Those elsewhere, which are most, cost no sorting.
func ownEndpoints(place placement.Placement, endpoints []plan.Endpoint) []plan.Endpoint {
	own := place.Only(endpoints)
	slices.SortFunc(own, plan.Endpoint.Compare)
	return slices.Compact(own)
}

// endpointsOf returns the endpoints of each of a Service's EndpointSlices, which the caller may change. Addresses that cannot be
// parsed are left out.
func (s *State) endpointsOf(name types.NamespacedName) iter.Seq[[]plan.Endpoint] {
	return s.endpointsOfKind(name, s.services[name].headless)
}

// endpointsOfKind returns those of a Service that is headless or not. Those in EndpointSlices with the label for headless Services
// count for a headless one alone.
func (s *State) endpointsOfKind(name types.NamespacedName, headless bool) iter.Seq[[]plan.Endpoint] {
	return func(yield func([]plan.Endpoint) bool) {
		for _, object := range s.slices[name] {
			if endpoints, _ := convertSlice(object); !yield(endpoints) {
				return
			}
		}
		if !headless {
			return
		}
		for _, slice := range s.headless[name] {
			if !yield(slices.Clone(s.unserved[slice].endpoints)) {
				return
			}
		}
	}
}

// Effect is what a change of an object may mean.
type Effect int

const (
	// nothing: no plan changes.
	nothing Effect = iota
	// Elsewhere says that the plans of other nodes may change.
	Elsewhere
	// Here says that the plans of this node may change.
	Here
)

// SetSlice takes the newest version of an EndpointSlice and tells what that may mean. Addresses that
// cannot be parsed are returned in err; the others count.
func (s *State) SetSlice(object *discovery.EndpointSlice) (changed Effect, err error) {
	name := NameOf(object)
	owner := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[discovery.LabelServiceName]}
	s.mu.Lock()
	defer s.mu.Unlock()
	if unserved(object) {
		return max(s.removeSlice(name), s.replaceUnserved(SlicesKind, name, convertUnserved(object))), nil
	}
	changed = s.replaceUnserved(SlicesKind, name, unservedEndpoints{})
	if old, known := s.serviceOf[name]; known && old != owner.Name {
		changed = max(changed, s.removeSlice(name))
	}
	if owner.Name == "" {
		return changed, nil
	}
	before := s.takeSlice(owner, name.Name)
	s.slices[owner], s.serviceOf[name] = append(s.slices[owner], object), owner.Name
	replaced, err := s.replaceEndpoints(owner, before, object)
	return max(changed, replaced), err
}

// takeSlice takes an EndpointSlice away from a Service; it returns nil if there is none.
func (s *State) takeSlice(owner types.NamespacedName, name string) *discovery.EndpointSlice {
	list := s.slices[owner]
	i := slices.IndexFunc(list, func(held *discovery.EndpointSlice) bool { return held.Name == name })
	if i < 0 {
		return nil
	}
	taken := list[i]
	s.slices[owner] = slices.Delete(list, i, i+1)
	return taken
}

// needsEndpoints tells whether plans depend on the endpoints of a Service.
func (s *State) needsEndpoints(name types.NamespacedName) bool {
	_, known := s.services[name]
	return known || name == apiServer || s.pods != nil
}

// DeleteSlice forgets an EndpointSlice and tells what that may mean.
func (s *State) DeleteSlice(object *discovery.EndpointSlice) (changed Effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := NameOf(object)
	return max(s.removeSlice(name), s.replaceUnserved(SlicesKind, name, unservedEndpoints{}))
}

func (s *State) removeSlice(name types.NamespacedName) (changed Effect) {
	service, known := s.serviceOf[name]
	if !known {
		return nothing
	}
	owner := types.NamespacedName{Namespace: name.Namespace, Name: service}
	before := s.takeSlice(owner, name.Name)
	delete(s.serviceOf, name)
	if len(s.slices[owner]) == 0 {
		delete(s.slices, owner)
	}
	changed, _ = s.replaceEndpoints(owner, before, nil)
	return changed
}

// replaceEndpoints tells the planners what became of an EndpointSlice, and returns what that may
// mean. What cannot be parsed of the one that is now is in err.
func (s *State) replaceEndpoints(owner types.NamespacedName, old, now *discovery.EndpointSlice) (changed Effect, err error) {
	if !s.needsEndpoints(owner) {
		return nothing, nil
	}
	before, _ := convertSlice(old) // it was said when it came
	after, err := convertSlice(now)
	if slices.Equal(before, after) {
		return nothing, err
	}
	return s.tellEndpoints(owner, before, after), err
}

// tellEndpoints tells the planners what became of an EndpointSlice whose endpoints count for its Service, and returns what that may
// mean. It changes the lists.
func (s *State) tellEndpoints(owner types.NamespacedName, before, after []plan.Endpoint) (changed Effect) {
	if _, claimed := s.services[owner]; claimed {
		changed = Elsewhere
	}
	changed = max(changed, s.renamePods(owner.Namespace, before, after))
	if owner == apiServer {
		s.move()
		changed = Here
	}
	if s.steerSlice(owner, before, after) {
		changed = Here
	}
	s.recountAssumed(owner, before, after)
	if before, after = ownEndpoints(s.placement, before), ownEndpoints(s.placement, after); changed == nothing || slices.Equal(before, after) {
		return changed
	}
	for _, family := range Families {
		s.planners[family].ReplaceEndpoints(PlanName(owner), ofFamily(family, before, endpointAddr), ofFamily(family, after, endpointAddr))
	}
	return Here
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

func endpointAddr(e plan.Endpoint) netip.Addr { return e.Addr }
