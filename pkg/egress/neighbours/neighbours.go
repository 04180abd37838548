package neighbours

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/kernel/steering"
	"github.com/openshift/origin-node/pkg/wake"
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

// Config is what a Watcher has to know.
type Config struct {
	// SourceNATPriority is that of our chain of source NAT.
	SourceNATPriority func(v1.IPFamily) int32
	// MarkMask has the bits of the mark of steered packets; 0 if nothing is steered.
	MarkMask uint32
	// LongestRest is how long it is from one look to the next at most.
	LongestRest time.Duration
	// Marked is told which rules use bits of the mark, if others do than before; ChangedNAT that the chains that come first are others.
	Marked     func(messages []string)
	ChangedNAT func()
}

// Watcher looks for such rules.
type Watcher struct {
	config Config
	logger klog.Logger
	// marks are the messages about the mark of the last look.
	marks []string
	// earlier are the chains that come first.
	earlier earlierNAT
}

// New returns a Watcher that logs with the logger; Run has it look.
func New(logger klog.Logger, config Config) *Watcher { return &Watcher{config: config, logger: logger} }

// Run looks until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	looks := w.looks()
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
				look.find(ctx)
				took[i] = time.Since(began)
			}
		}
		ended := time.Now() // of all looks, so that the next ones wake the process once
		for i := range took {
			due[i] = ended.Add(restAfter(took[i], w.config.LongestRest))
		}
		if !wake.Sleep(ctx.Done(), time.Until(slices.MinFunc(due, time.Time.Compare))) {
			return
		}
	}
}

// restAfter returns how long it is to the next look, after one that took so long.
func restAfter(took, longest time.Duration) time.Duration {
	return min(betweenLooks+restAfterLook*max(0, took-shortLook), max(longest, betweenLooks))
}

// look is a look at rules of other software.
type look struct {
	find  func(context.Context)
	close func()
}

// looks are those that there are.
func (w *Watcher) looks() (looks []look) {
	for _, name := range cluster.Families {
		finder := w.natFinder(name)
		looks = append(looks, look{func(ctx context.Context) { w.findEarlierNAT(ctx, name, finder) }, finder.Close})
	}
	if w.config.MarkMask != 0 {
		marks := &steering.MarkUsers{Mask: w.config.MarkMask}
		looks = append(looks, look{func(ctx context.Context) { w.findMarks(ctx, marks) }, marks.Close})
	}
	return looks
}

// findMarks tells people of rules of others that use bits of the mark of steered packets.
func (w *Watcher) findMarks(ctx context.Context, marks *steering.MarkUsers) {
	found, err := marks.Find(ctx)
	if err != nil {
		w.logger.V(2).Info("Cannot look everywhere for rules of other software that use bits of egress SNAT's mark; will retry", "err", err)
	}
	before := w.marks
	w.marks = firstNamed(found)
	for _, message := range w.marks {
		if !slices.Contains(before, message) {
			w.logger.Error(nil, "Other software uses bits of egress SNAT's mark", "message", message)
		}
	}
	if !slices.Equal(before, w.marks) {
		w.config.Marked(w.marks)
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
