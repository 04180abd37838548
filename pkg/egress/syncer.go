package egress

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/iptables"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// syncer brings the plans of one IP family into the kernel.
type syncer struct {
	family v1.IPFamily
	logger klog.Logger
	config Config

	// For the loop's goroutine alone:

	writer *iptables.Writer
	// written is the plan that was written last; known says that the kernel holds it.
	written plan.Plan
	known   bool
	// complete: the kernel was looked at after a full sync of the proxier, and right.
	complete bool
	// reported are the refusals that have been logged and still hold.
	reported     []plan.Refusal
	warnedOfCIDR bool
	// repairAsked is when the proxier was asked to repair its rules, which have not been
	// seen whole since; zero if they have.
	repairAsked time.Time
	// pruned: no rules of ours are left in the other iptables back end. pruneError is
	// why that cannot be told.
	pruned     bool
	pruneError string
	backoff    wait.Backoff
	nextTry    time.Time

	mu sync.Mutex // protects the following fields
	// look: the kernel has to be looked at.
	look bool
	// hurry: what made the last try fail may be over, do not wait for the backoff.
	hurry bool
	// proxierSynced: the proxier has written all of its rules, at least once.
	proxierSynced bool
}

func newSyncer(family v1.IPFamily, logger klog.Logger, config Config) *syncer {
	s := &syncer{
		family: family,
		logger: klog.LoggerWithValues(logger, "ipFamily", family),
		config: config,
		writer: iptables.NewWriter(iptables.Family(family)),
		look:   true,
	}
	s.resetBackoff()
	return s
}

func (s *syncer) resetBackoff() {
	s.backoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 30, Cap: max(s.config.SyncPeriod, time.Second)}
	s.nextTry = time.Time{}
}

// noteFullSync is told when the proxier has written all of its rules.
func (s *syncer) noteFullSync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look, s.hurry, s.proxierSynced = true, true, true
}

// noteLook asks for a look at the kernel.
func (s *syncer) noteLook() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look = true
}

// takeNotes returns what was noted and takes the notes away.
func (s *syncer) takeNotes() (look, proxierSynced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	look = s.look
	s.look, s.hurry = false, false
	return look, s.proxierSynced
}

// backingOff returns how long the backoff after a failure still lasts.
func (s *syncer) backingOff() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hurry {
		return 0
	}
	return time.Until(s.nextTry)
}

// trySync makes the kernel hold p. It returns 0, or after a failure the time after which to
// try again; the kernel then holds what it held before.
func (s *syncer) trySync(ctx context.Context, p plan.Plan, repairProxier func()) time.Duration {
	if wait := s.backingOff(); wait > 0 {
		return wait
	}
	start := time.Now()
	err := s.sync(ctx, p, repairProxier)
	if err == nil {
		s.resetBackoff()
		return 0
	}
	if ctx.Err() != nil {
		return time.Second // nobody will wait for it
	}
	wait := s.backoff.Step()
	s.nextTry = start.Add(wait)
	s.known = false
	s.noteLook()
	syncFailures.WithLabelValues(string(s.family)).Inc()
	s.logger.Error(err, "Egress SNAT rules were not written; the rules in the kernel stay as they are", "retryAfter", wait.Round(time.Millisecond))
	return wait
}

func (s *syncer) sync(ctx context.Context, p plan.Plan, repairProxier func()) error {
	look, proxierSynced := s.takeNotes()
	if !look && s.known && s.written.Equal(p) {
		return nil
	}
	start := time.Now()
	if look {
		save, err := s.writer.Read(ctx)
		if err != nil {
			return err
		}
		if proxierSynced {
			s.checkProxier(save, repairProxier)
		}
	}
	changed, err := s.writer.Write(ctx, iptables.Render(p))
	if err != nil {
		return err
	}
	s.logSync(p, look, changed, time.Since(start))
	s.written, s.known = p, true
	s.complete = s.complete || look && proxierSynced
	lastSuccess.WithLabelValues(string(s.family)).SetToCurrentTime()
	if look && !s.pruned {
		s.prune(ctx)
	}
	return nil
}

// prune removes what an earlier run has left in the other iptables back end, after our own
// rules are in place, so that no packet leaves under another address in between.
func (s *syncer) prune(ctx context.Context) {
	err := s.writer.PruneOtherBackend(ctx)
	s.pruned = err == nil
	if err != nil && err.Error() != s.pruneError {
		s.pruneError = err.Error()
		s.logger.Error(err, "Cannot tell whether egress SNAT rules of an earlier run are left in the other iptables back end; looking again, without saying so")
	}
}

// checkProxier asks the proxier to repair its rules if the kernel lacks some: at every look
// but those that the repair itself brings about, so that rules which somebody removes again
// and again are written again and again, and no faster.
func (s *syncer) checkProxier(save string, repair func()) {
	missing, err := iptables.MissingFromProxier(save)
	switch {
	case err != nil:
		s.logger.Error(err, "Cannot tell whether the proxier's rules are in the kernel")
		return
	case len(missing) == 0:
		s.repairAsked = time.Time{}
		return
	case time.Since(s.repairAsked) < s.config.SyncPeriod/4:
		return
	}
	still := !s.repairAsked.IsZero()
	s.repairAsked = time.Now()
	s.logger.Info("Rules of the proxier are missing from the kernel, having it write all of them", "missing", strings.Join(missing, "; "), "still", still)
	repair()
}

func (s *syncer) logSync(p plan.Plan, looked, changed bool, elapsed time.Duration) {
	syncDuration.WithLabelValues(string(s.family)).Observe(elapsed.Seconds())
	added, removed := plan.Diff(s.written, p)
	if changed && looked && s.complete && len(added)+len(removed) == 0 {
		s.logger.Info("Repaired egress SNAT rules that somebody else had changed")
	}
	s.logger.V(2).Info("Synced egress SNAT rules", "bindings", len(p.Bindings), "added", len(added), "removed", len(removed),
		"refusals", len(p.Refusals), "looked", looked, "changed", changed, "elapsed", elapsed)
	for _, b := range removed {
		s.logger.V(4).Info("Unbound", "pod", b.Pod, "protocol", b.Protocol, "egressIP", b.EgressIP, "service", b.Service)
	}
	for _, b := range added {
		s.logger.V(4).Info("Bound", "pod", b.Pod, "protocol", b.Protocol, "egressIP", b.EgressIP, "service", b.Service)
	}
}

// report tells people what p says, whether or not it can be written.
func (s *syncer) report(p plan.Plan) {
	setPlanMetrics(s.family, p)
	s.warnOfMissingCIDR(p)
	const most = 20 // lines in the log for one change; metrics have the full number
	logged := 0
	for _, r := range p.Refusals {
		if _, known := slices.BinarySearchFunc(s.reported, r, plan.CompareRefusals); known {
			continue
		}
		if logged++; logged <= most {
			s.logger.Info("Refused egress SNAT", "service", r.Service, "egressIP", r.EgressIP, "reason", r.Reason, "message", r.Message)
		}
	}
	if logged > most {
		s.logger.Info("Refused egress SNAT for more", "count", logged-most)
	}
	s.reported = p.Refusals
}

func (s *syncer) warnOfMissingCIDR(p plan.Plan) {
	claimed := slices.ContainsFunc(p.Refusals, func(r plan.Refusal) bool { return r.Reason == plan.NoClusterCIDR })
	if claimed && !s.warnedOfCIDR {
		s.logger.Error(nil, "No egress SNAT in this IP family, for no cluster CIDR of it is known; set proxyArguments.cluster-cidr in the node's configuration")
	}
	s.warnedOfCIDR = claimed
}
