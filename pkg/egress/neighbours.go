package egress

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/natorder"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// leastBetweenNeighbours is how long it is at least from one look at the rules of other software to the next, however short the sync
// period.
const leastBetweenNeighbours = time.Second

// followNeighbours looks twice in a sync period for rules of other software that do not go together with ours.
func (e *Extension) followNeighbours() {
	ticker := time.NewTicker(max(e.config.SyncPeriod/2, leastBetweenNeighbours))
	defer ticker.Stop()
	finders, marks := map[v1.IPFamily]*natorder.Finder{}, map[v1.IPFamily]*steering.MarkUsers{}
	for _, name := range families {
		finders[name] = e.natFinder(name)
		marks[name] = &steering.MarkUsers{Family: kernel.Family(name), Mask: e.config.Steering.Kernel.MarkMask}
	}
	for {
		for _, name := range families {
			e.findEarlierNAT(name, finders[name])
			e.findMarks(name, marks[name])
		}
		select {
		case <-e.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// findMarks tells people of rules of others that use bits of the mark of steered packets.
func (e *Extension) findMarks(name v1.IPFamily, marks *steering.MarkUsers) {
	s := e.steerer
	if s == nil {
		return
	}
	found, err := marks.Find(e.ctx)
	if err != nil {
		e.logger.V(2).Info("Cannot look for rules of other software that use bits of egress SNAT's mark; will retry", "ipFamily", name, "err", err)
		return
	}
	s.mu.Lock()
	before := s.marked[name]
	s.marked[name] = found
	s.mu.Unlock()
	for _, message := range found {
		if !slices.Contains(before, message) {
			e.logger.Error(nil, "Other software uses bits of egress SNAT's mark", "ipFamily", name, "message", message)
		}
	}
	if !slices.Equal(before, found) {
		e.faultsChanged()
	}
}
