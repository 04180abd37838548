package egress

import (
	"net/netip"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel"
)

// update brings the plan of family up to date and returns what that changed, at a cost that
// follows from the changes.
func (s *state) update(family v1.IPFamily) plan.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updatePlanner(family)
}

func (s *state) updatePlanner(family v1.IPFamily) plan.Change {
	planner := s.planners[family]
	if s.moved[family] {
		s.moved[family] = false
		planner.SetSurroundings(s.surroundings(family))
	}
	s.closeChoices(family, time.Now())
	change := planner.Update()
	s.pruneChoices(family, time.Now())
	return change
}

// audit is update, and tells whether the plan that followed the changes is the one that is made of all
// objects at once. It costs as much as there are objects.
func (s *state) audit(family v1.IPFamily) (change plan.Change, right bool) {
	s.mu.Lock()
	change = s.updatePlanner(family)
	followed, in := s.planners[family].Plan(), s.placement.Of(s.wholeInput(family))
	s.mu.Unlock() // building keeps no object waiting
	return change, followed.Equal(plan.Build(in))
}

// planned is the plan of one IP family as of the last update, and which ways its packets take.
type planned struct {
	state    *state
	family   v1.IPFamily
	steering kernel.Steering
}

// ask calls f with the planner, which must not be kept.
func (p planned) ask(f func(*plan.Planner)) {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	f(p.state.planners[p.family])
}

// Desired is that of [reconcile.Wanted].
func (p planned) Desired(pods map[netip.Addr]bool) (result kernel.Desired) {
	p.ask(func(planner *plan.Planner) { result = planner.Desired(pods) })
	result.Steering = p.steering
	return result
}

func (p planned) RefusalsOf(service plan.Service) (result refused) {
	p.ask(func(planner *plan.Planner) {
		result = refused{planner.RefusalsOf(service), planner.GrantsSome(service)}
	})
	return result
}

func (p planned) Placed(service plan.Service, pod netip.Addr) (result bool) {
	p.ask(func(planner *plan.Planner) { result = planner.Placed(service, pod) })
	return result
}

// homes returns the names of the nodes on which bound pods run, unless they are those of this revision of the plan, and
// which one they are of.
func (s *state) homes(family v1.IPFamily, known uint64) (homes map[netip.Addr]string, revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision = s.planners[family].Revision(); revision != known {
		homes = s.planners[family].Homes()
	}
	return homes, revision
}

func (p planned) Numbers() (result plan.Numbers) {
	p.ask(func(planner *plan.Planner) { result = planner.Numbers() })
	return result
}
