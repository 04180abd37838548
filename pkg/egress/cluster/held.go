package cluster

import (
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// A node also plans the pods elsewhere whose egress IP it holds (package placement). It then needs to
// find what other Services have a pod, so it keeps the endpoints by address. A node that has never
// held an egress IP keeps nothing.

// addressIndex has the endpoints of all Services in [State.services], by address: an endpoint once for
// each time that it occurs in EndpointSlices.
type addressIndex map[netip.Addr][]located

// located is an endpoint of a Service.
type located struct {
	service  types.NamespacedName
	endpoint plan.Endpoint
}

// count takes note when endpoints of a Service come (by is 1) or go (-1).
func (i addressIndex) count(service types.NamespacedName, endpoints []plan.Endpoint, by int) {
	for _, e := range endpoints {
		l, list := located{service, e}, i[e.Addr]
		if by > 0 {
			i[e.Addr] = append(list, l)
			continue
		}
		if at := slices.Index(list, l); at >= 0 {
			list = slices.Delete(list, at, at+1)
		}
		if i[e.Addr] = list; len(list) == 0 {
			delete(i, e.Addr)
		}
	}
}

// SetHeld takes the addresses that this node holds or may get at any moment, egress IPs and others, and tells whether plans may change. A
// revision that is smaller than one taken before is ignored. The cost follows from the Services concerned; for the first of them, all
// endpoints of claims are gone through.
func (s *State) SetHeld(held map[netip.Addr]bool, revision uint64) (changed bool) {
	if s.Config.Scope == placement.Cluster {
		return false // it has all endpoints
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision < s.heldRevision {
		return false
	}
	s.heldRevision = revision
	before, now := s.placement, s.placement
	if now.Held = maps.Clone(held); now.Equal(before) {
		return false
	}
	var concerned []netip.Addr
	differs := func(ip netip.Addr) bool { return before.Held[ip] != now.Held[ip] }
	for name, svc := range s.services {
		if svc.claims(differs) {
			s.index()
			concerned = append(concerned, s.indexedAddresses(name, svc.headless)...)
		}
	}
	return s.replanSteered(concerned, func() { s.placement = now })
}

// index makes the index, if there is none.
func (s *State) index() {
	if s.byAddress != nil {
		return
	}
	s.byAddress = addressIndex{}
	for name := range s.services {
		s.indexService(name, 1)
	}
}

// indexService takes note in the index, if there is one, when a Service comes (by is 1) or goes (-1).
func (s *State) indexService(name types.NamespacedName, by int) {
	if s.byAddress == nil {
		return
	}
	for endpoints := range s.endpointsOf(name) {
		s.byAddress.count(name, endpoints, by)
	}
}

// indexedAddresses returns those of a Service's endpoints, which is headless or not; none as long as there is no index.
func (s *State) indexedAddresses(name types.NamespacedName, headless bool) (addrs []netip.Addr) {
	if s.byAddress == nil {
		return nil
	}
	for endpoints := range s.endpointsOfKind(name, headless) {
		addrs = append(addrs, addressesIn(endpoints)...)
	}
	return addrs
}

func addressesIn(endpoints []plan.Endpoint) []netip.Addr {
	addrs := make([]netip.Addr, len(endpoints))
	for i, e := range endpoints {
		addrs[i] = e.Addr
	}
	return addrs
}

// replanSteered does a change, and tells the planners which endpoints at these addresses other nodes steer here
// or do not any more because of it. It tells whether there are any. The endpoints that this node has are
// not among them.
func (s *State) replanSteered(addrs []netip.Addr, change func()) (changed bool) {
	if s.byAddress == nil {
		change()
		return false
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	times := map[located]int{}
	s.countSteered(times, addrs, -1)
	change()
	s.countSteered(times, addrs, 1)
	for l, by := range times {
		planner, one := s.planners[FamilyOf(l.endpoint.Addr)], []plan.Endpoint{l.endpoint}
		for ; by > 0; by-- {
			planner.ReplaceEndpoints(PlanName(l.service), nil, one)
			changed = true
		}
		for ; by < 0; by++ {
			planner.ReplaceEndpoints(PlanName(l.service), one, nil)
			changed = true
		}
	}
	return changed
}

// countSteered counts the endpoints elsewhere at addresses whose packets may be steered here, of the
// Services that the planners know.
func (s *State) countSteered(times map[located]int, addrs []netip.Addr, by int) {
	for _, addr := range addrs {
		list := s.byAddress[addr]
		if !slices.ContainsFunc(list, s.steered) {
			continue
		}
		for _, l := range list {
			if s.partOf(l) != nil && !s.placement.Has(l.endpoint) {
				times[l] += by
			}
		}
	}
}

// steered tells whether other nodes may steer the packets of an endpoint here.
func (s *State) steered(l located) bool {
	part := s.partOf(l)
	return part != nil && part.claim != nil && s.placement.Steered(part.claim, l.endpoint, s.choices.may)
}

// partOf returns what the Service of an endpoint takes part with in the plan of the endpoint's family.
func (s *State) partOf(l located) *part {
	return s.services[l.service].parts[FamilyOf(l.endpoint.Addr)]
}

// steerSlice tells what became of the endpoints of a Service's EndpointSlice, and whether plans change by
// those that are steered here.
func (s *State) steerSlice(owner types.NamespacedName, before, after []plan.Endpoint) (changed bool) {
	if _, claimed := s.services[owner]; s.byAddress == nil || !claimed {
		return false
	}
	gone, added := differing(before, after)
	return s.replanSteered(append(addressesIn(gone), addressesIn(added)...), func() {
		s.byAddress.count(owner, gone, -1)
		s.byAddress.count(owner, added, 1)
	})
}

// differing returns both lists without what they have in common at their beginnings and ends: of two
// versions of an EndpointSlice mostly all but an endpoint.
func differing[T comparable](a, b []T) (restOfA, restOfB []T) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}
