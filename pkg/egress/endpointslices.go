package egress

import (
	"iter"
	"net/netip"
	"slices"

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
func (s *state) endpointsOf(name types.NamespacedName) iter.Seq[[]plan.Endpoint] {
	return s.endpointsOfKind(name, s.services[name].headless)
}

// endpointsOfKind returns those of a Service that is headless or not. Those in EndpointSlices with the label for headless Services
// count for a headless one alone.
func (s *state) endpointsOfKind(name types.NamespacedName, headless bool) iter.Seq[[]plan.Endpoint] {
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

// effect is what a change of an object may mean.
type effect int

const (
	// nothing: no plan changes.
	nothing effect = iota
	// elsewhere: the plans of other nodes may change.
	elsewhere
	// here: the plans of this node may change.
	here
)

// setSlice takes the newest version of an EndpointSlice and tells what that may mean. Addresses that
// cannot be parsed are returned in err; the others count.
func (s *state) setSlice(object *discovery.EndpointSlice) (changed effect, err error) {
	name := nameOf(object)
	owner := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[discovery.LabelServiceName]}
	s.mu.Lock()
	defer s.mu.Unlock()
	if unserved(object) {
		return max(s.removeSlice(name), s.replaceUnserved(slicesKind, name, convertUnserved(object))), nil
	}
	changed = s.replaceUnserved(slicesKind, name, unservedEndpoints{})
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
func (s *state) takeSlice(owner types.NamespacedName, name string) *discovery.EndpointSlice {
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
func (s *state) needsEndpoints(name types.NamespacedName) bool {
	_, known := s.services[name]
	return known || name == apiServer || s.pods != nil
}

// deleteSlice forgets an EndpointSlice and tells what that may mean.
func (s *state) deleteSlice(object *discovery.EndpointSlice) (changed effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(object)
	return max(s.removeSlice(name), s.replaceUnserved(slicesKind, name, unservedEndpoints{}))
}

func (s *state) removeSlice(name types.NamespacedName) (changed effect) {
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
func (s *state) replaceEndpoints(owner types.NamespacedName, old, now *discovery.EndpointSlice) (changed effect, err error) {
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
func (s *state) tellEndpoints(owner types.NamespacedName, before, after []plan.Endpoint) (changed effect) {
	if _, claimed := s.services[owner]; claimed {
		changed = elsewhere
	}
	changed = max(changed, s.renamePods(owner.Namespace, before, after))
	if owner == apiServer {
		s.move()
		changed = here
	}
	if s.steerSlice(owner, before, after) {
		changed = here
	}
	s.recountAssumed(owner, before, after)
	if before, after = ownEndpoints(s.placement, before), ownEndpoints(s.placement, after); changed == nothing || slices.Equal(before, after) {
		return changed
	}
	for _, family := range families {
		s.planners[family].ReplaceEndpoints(planName(owner), ofFamily(family, before, endpointAddr), ofFamily(family, after, endpointAddr))
	}
	return here
}

func endpointAddr(e plan.Endpoint) netip.Addr { return e.Addr }
