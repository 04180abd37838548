package cluster

import (
	"net/netip"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel"
)

// Update brings the plan of family up to date and returns what that changed, at a cost that
// follows from the changes.
func (s *State) Update(family v1.IPFamily) plan.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updatePlanner(family)
}

// Judge brings the plans of both families up to date. What that changes, the next Update of each returns as well.
func (s *State) Judge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, family := range Families {
		s.surround(family)
		s.planners[family].Judge()
	}
}

// surround tells a planner its surroundings, if they are others.
func (s *State) surround(family v1.IPFamily) {
	if s.moved[family] {
		s.moved[family] = false
		s.planners[family].SetSurroundings(s.surroundings(family))
	}
}

func (s *State) updatePlanner(family v1.IPFamily) plan.Change {
	planner := s.planners[family]
	s.surround(family)
	s.closeChoices(family, time.Now())
	change := planner.Update()
	s.pruneChoices(family, time.Now())
	return change
}

// Audit is Update, and tells whether the plan that followed the changes is the one that is made of all
// objects at once. It costs as much as there are objects.
func (s *State) Audit(family v1.IPFamily) (change plan.Change, right bool) {
	s.mu.Lock()
	change = s.updatePlanner(family)
	followed, in := s.planners[family].Plan(), s.placement.Of(s.wholeInput(family))
	s.mu.Unlock() // building keeps no object waiting
	return change, followed.Equal(plan.Build(in))
}

// Planned is the plan of one IP family as of the last update, and which ways its packets take.
type Planned struct {
	State    *State
	Family   v1.IPFamily
	Steering kernel.Steering
}

// ask calls f with the planner, which must not be kept.
func (p Planned) ask(f func(*plan.Planner)) {
	p.State.mu.Lock()
	defer p.State.mu.Unlock()
	f(p.State.planners[p.Family])
}

// Desired is that of [reconcile.Wanted].
func (p Planned) Desired(pods map[netip.Addr]bool) (result kernel.Desired) {
	p.ask(func(planner *plan.Planner) { result = planner.Desired(pods) })
	result.Steering = p.Steering
	return result
}

// RefusalsOf returns what a Service is refused.
func (p Planned) RefusalsOf(service plan.Service) (result Refused) {
	p.ask(func(planner *plan.Planner) {
		result = Refused{planner.RefusalsOf(service), planner.GrantsSome(service)}
	})
	return result
}

// Tells returns the pods of which refusals of a Service are, as far as this node tells of them: an endpoint of the Service there names this node,
// or it names another one and this node has one of the Service's egress IPs. It has these addresses. Others may know as much, but not the pod's
// own node: it may see no reason to refuse.
func (p Planned) Tells(service plan.Service, refusals []plan.Refusal, has map[netip.Addr]bool) map[netip.Addr]bool {
	tells := map[netip.Addr]bool{}
	p.ask(func(planner *plan.Planner) {
		part := p.State.services[types.NamespacedName{Namespace: service.Namespace, Name: service.Name}].parts[p.Family]
		holds := part != nil && part.claim != nil && part.claim.Claims(func(ip netip.Addr) bool { return has[ip] })
		for _, refusal := range refusals {
			for _, node := range planner.Places(service, refusal.Pod) {
				if node == p.State.Config.NodeName || node != "" && holds {
					tells[refusal.Pod] = true
				}
			}
		}
	})
	return tells
}

// homes are the nodes on which bound pods run, of a revision of the plan: their names, and where these nodes are. There may be thousands of
// pods, and mostly a sync is about something else.
type homes struct {
	revision  uint64
	names     map[netip.Addr]string
	nodes     *JudgedNodes
	self      netip.Addr
	addresses map[netip.Addr]netip.Addr
}

// Homes returns the names of the nodes on which bound pods of a family run. The map must not be changed.
func (s *State) Homes(family v1.IPFamily) map[netip.Addr]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.homesOf(family).names
}

// HomesAt returns the addresses that nodes has of the nodes on which bound pods of a family run, and self of this node. The map must not be
// changed.
func (s *State) HomesAt(family v1.IPFamily, nodes *JudgedNodes, self netip.Addr) map[netip.Addr]netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.homesOf(family)
	if h.addresses != nil && h.nodes == nodes && h.self == self {
		return h.addresses
	}
	h.nodes, h.self, h.addresses = nodes, self, make(map[netip.Addr]netip.Addr, len(h.names))
	for pod, name := range h.names {
		node := nodes.Primary[name]
		if name == s.Config.NodeName {
			node = self
		}
		if node.IsValid() {
			h.addresses[pod] = node
		}
	}
	return h.addresses
}

// homesOf returns those of a family. The lock must be held.
func (s *State) homesOf(family v1.IPFamily) *homes {
	planner := s.planners[family]
	if s.homes[family] == nil || s.homes[family].revision != planner.Revision() {
		s.homes[family] = &homes{revision: planner.Revision(), names: planner.Homes()}
	}
	return s.homes[family]
}

// PodOf returns the pod at an address to which a Service gives an egress IP; zero if nothing names it.
func (s *State) PodOf(service plan.Service, ip netip.Addr) plan.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.planners[FamilyOf(ip)].PodOf(service, ip)
}

// Revision returns that of a family's plan: it grows with each change.
func (s *State) Revision(family v1.IPFamily) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.planners[family].Revision()
}

// Numbers counts what the plan has.
func (p Planned) Numbers() (result plan.Numbers) {
	p.ask(func(planner *plan.Planner) { result = planner.Numbers() })
	return result
}

// Grants are the addresses that a revision of a family's plan grants.
type Grants struct {
	Addresses map[netip.Addr]bool
	Siblings  map[netip.Addr][]netip.Addr
	Revision  uint64
}

// Granted returns the egress IPs in these networks that the plan of a family grants; nothing if they are those of this revision of it.
func (s *State) Granted(family v1.IPFamily, networks []netip.Prefix, known uint64) (granted Grants) {
	s.mu.Lock()
	defer s.mu.Unlock()
	planner := s.planners[family]
	if granted.Revision = planner.Revision(); granted.Revision == 0 || granted.Revision != known {
		granted.Addresses, granted.Siblings = planner.Granted(networks)
	}
	return granted
}

// Away tells whether a pod with an address runs on another node.
func (s *State) Away(address netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	home := s.planners[FamilyOf(address)].Home(address)
	return home != "" && home != s.Config.NodeName && !s.placement.InPodCIDR(address)
}

// Refused is what one Service was refused in an IP family, as of one update: what the plan says by now may be younger.
type Refused struct {
	Refusals []plan.Refusal
	// Others: it has other egress IPs.
	Others bool
}
