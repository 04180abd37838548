package egress

import (
	"fmt"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

const (
	// betweenLooks is how long it is from one look at the rules of other software to the next: people are told within a second. As long
	// as nobody changes rules of nftables, all looks together cost three messages, and 0.4 ms of CPU.
	betweenLooks = 900 * time.Millisecond
	// shortLook is how long a look may take at no cost. The next one of its kind is later by restAfterLook times what it has taken more:
	// others may have tens of thousands of rules, though kube-proxy's and ours are not among them.
	shortLook, restAfterLook = 5 * time.Millisecond, 50
	// mostNamed is how many chains are named in Events and in the log.
	mostNamed = 5
)

// followNeighbours looks for rules of other software that do not go together with ours.
func (e *Extension) followNeighbours() {
	looks := e.looksAtNeighbours()
	defer func() {
		for _, look := range looks {
			look.close()
		}
	}()
	for due := make([]time.Time, len(looks)); ; {
		now, took := time.Now(), map[int]time.Duration{}
		for i, look := range looks {
			if !now.Before(due[i]) {
				began := time.Now()
				look.find()
				took[i] = time.Since(began)
			}
		}
		ended := time.Now() // of all looks, so that the next ones wake the process once
		for i := range took {
			due[i] = ended.Add(restAfter(took[i], e.config.SyncPeriod/2))
		}
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(time.Until(slices.MinFunc(due, time.Time.Compare))):
		}
	}
}

// restAfter returns how long it is to the next look, after one that took so long. That is half a sync period at most, as until rules of
// ours are looked at again.
func restAfter(took, halfPeriod time.Duration) time.Duration {
	return min(betweenLooks+restAfterLook*max(0, took-shortLook), max(halfPeriod, betweenLooks))
}

// neighbourLook is a look at rules of other software.
type neighbourLook struct{ find, close func() }

// looksAtNeighbours are those that there are.
func (e *Extension) looksAtNeighbours() (looks []neighbourLook) {
	for _, name := range cluster.Families {
		finder := e.natFinder(name)
		looks = append(looks, neighbourLook{func() { e.findEarlierNAT(name, finder) }, finder.Close})
	}
	if e.steerer != nil {
		marks := &steering.MarkUsers{Mask: e.config.Ways.Kernel.MarkMask}
		looks = append(looks, neighbourLook{func() { e.findMarks(marks) }, marks.Close})
	}
	return looks
}

// findMarks tells people of rules of others that use bits of the mark of steered packets.
func (e *Extension) findMarks(marks *steering.MarkUsers) {
	found, err := marks.Find(e.ctx)
	if err != nil {
		e.logger.V(2).Info("Cannot look everywhere for rules of other software that use bits of egress SNAT's mark; will retry", "err", err)
	}
	found = firstNamed(found)
	before := e.faults.setMarked(found)
	for _, message := range found {
		if !slices.Contains(before, message) {
			e.logger.Error(nil, "Other software uses bits of egress SNAT's mark", "message", message)
		}
	}
	if !slices.Equal(before, found) {
		e.faultsChanged()
	}
}

// firstNamed returns some of the messages about marks, and how many more there are.
func firstNamed(found []string) []string {
	more := len(found) - mostNamed
	if more <= 0 {
		return found
	}
	return append(slices.Clone(found[:mostNamed]), fmt.Sprintf("%d more chains use bits of egress SNAT's mark", more))
}
