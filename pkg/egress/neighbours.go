package egress

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/kernel/natorder"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

const (
	// leastBetweenNeighbours is how long it is at least from one look at the rules of other software to the next, however short the
	// sync period.
	leastBetweenNeighbours = time.Second
	// restAfterMarks is how many times as long as a look at all chains it is until the next one: there may be tens of thousands.
	restAfterMarks = 100
	// mostMarked is how many chains that use our mark are named.
	mostMarked = 5
)

// followNeighbours looks twice in a sync period for rules of other software that do not go together with ours.
func (e *Extension) followNeighbours() {
	ticker := time.NewTicker(max(e.config.SyncPeriod/2, leastBetweenNeighbours))
	defer ticker.Stop()
	finders := map[v1.IPFamily]*natorder.Finder{}
	for _, name := range cluster.Families {
		finders[name] = e.natFinder(name)
	}
	marks, marksDue := &steering.MarkUsers{Mask: e.config.Ways.Kernel.MarkMask}, time.Time{}
	for {
		for name, finder := range finders {
			e.findEarlierNAT(name, finder)
		}
		if began := time.Now(); e.steerer != nil && !began.Before(marksDue) {
			e.findMarks(marks)
			marksDue = time.Now().Add(restAfterMarks * time.Since(began))
		}
		select {
		case <-e.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// findMarks tells people of rules of others that use bits of the mark of steered packets.
func (e *Extension) findMarks(marks *steering.MarkUsers) {
	found, err := marks.Find(e.ctx)
	if err != nil {
		e.logger.V(2).Info("Cannot look for rules of other software that use bits of egress SNAT's mark; will retry", "err", err)
		return
	}
	if more := len(found) - mostMarked; more > 0 {
		found = append(slices.Clone(found[:mostMarked]), fmt.Sprintf("%d more nftables chains use bits of egress SNAT's mark", more))
	}
	s := e.steerer
	s.mu.Lock()
	before := s.marked
	s.marked = found
	s.mu.Unlock()
	for _, message := range found {
		if !slices.Contains(before, message) {
			e.logger.Error(nil, "Other software uses bits of egress SNAT's mark", "message", message)
		}
	}
	if !slices.Equal(before, found) {
		e.faultsChanged()
	}
}
