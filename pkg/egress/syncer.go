package egress

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/conntrack"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// syncer brings the plans of one IP family into the kernel.
type syncer struct {
	family v1.IPFamily
	logger klog.Logger
	config Config

	// For the loop's goroutine alone:

	writer writer
	// delete is conntrack.Delete; unit tests put something else in its place, for it acts
	// on the network namespace that they run in.
	delete func(context.Context, conntrack.Family, plan.Plan, conntrack.Scope) (int, error)
	// written is the plan that was written last; known says that the kernel holds it.
	written plan.Plan
	known   bool
	// flows are those to judge when the rules are in place: all at the start, for nobody
	// knows what happened before.
	flows conntrack.Scope
	// nodeIP is this node's primary address, under which unbound pods may leave.
	nodeIP netip.Addr
	// homes are the nodes of the pods that were bound last, as EndpointSlices give them.
	homes map[netip.Addr]string
	// since is when each binding was first known to be in the kernel.
	since map[plan.Binding]time.Time
	// lastSync is when the last sync succeeded, failure why the last one did not.
	lastSync time.Time
	failure  string
	// complete: the kernel was looked at after a full sync of the proxier, and right.
	complete bool
	// reported are the refusals that have been logged and still hold.
	reported     []plan.Refusal
	warnedOfCIDR bool
	// repairAsked is when the proxier was asked to repair its rules, which have not been
	// seen whole since; zero if they have.
	repairAsked time.Time
	// pruned: no rules of ours are left in other back ends. pruneError is why that cannot
	// be told.
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
		writer: newWriter(family, config),
		delete: conntrack.Delete,
		flows:  conntrack.Scope{All: true},
		since:  map[plan.Binding]time.Time{},
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
// try again; the kernel then holds the rules of before, or those of p with flows left that
// contradict them.
func (s *syncer) trySync(ctx context.Context, in plan.Input, p plan.Plan, repairProxier func()) time.Duration {
	if wait := s.backingOff(); wait > 0 {
		return wait
	}
	start := time.Now()
	err := s.sync(ctx, in, p, repairProxier)
	if err == nil {
		s.resetBackoff()
		s.failure = ""
		return 0
	}
	if ctx.Err() != nil {
		return time.Second // nobody will wait for it
	}
	wait := s.backoff.Step()
	s.nextTry = start.Add(wait)
	s.known = false
	s.failure = err.Error()
	s.noteLook()
	syncFailures.WithLabelValues(string(s.family)).Inc()
	s.logger.Error(err, "Egress SNAT is not as planned; trying again", "retryAfter", wait.Round(time.Millisecond))
	return wait
}

// sync writes the rules of p, then deletes the flows that wear a wrong identity by them. The
// bindings that it removes are recorded in the kernel with the same transaction, so that
// a process that dies in between leaves the next one to know whose flows to look at.
func (s *syncer) sync(ctx context.Context, in plan.Input, p plan.Plan, repairProxier func()) error {
	look, proxierSynced := s.takeNotes()
	if !look && s.known && s.written.Equal(p) {
		return nil
	}
	start := time.Now()
	previous := s.written
	before := previous.Bindings
	if look {
		found, err := s.writer.read(ctx)
		if err != nil {
			return err
		}
		if proxierSynced {
			found.altered = found.altered && s.known
			s.checkProxier(found, repairProxier)
		}
		before = slices.Concat(before, s.compare(found), s.leftovers(ctx))
	}
	homes := homesOf(in.Claims)
	s.noteFlows(before, p, func(pod netip.Addr) bool { return elsewhere(s.config.NodeName, pod, s.homes, homes) })
	s.homes = homes
	changed, size, err := s.writer.write(ctx, p, s.flows.Removed)
	if err != nil {
		return fmt.Errorf("the rules in the kernel stay as they are: %w", err)
	}
	s.noteWritten(p, size)
	if look {
		s.prune(ctx)
	}
	if err := s.deleteFlows(ctx, p); err != nil {
		return err
	}
	s.logSync(previous, p, look, changed, time.Since(start))
	s.complete = s.complete || look && proxierSynced
	s.lastSync = time.Now()
	lastSuccess.WithLabelValues(string(s.family)).SetToCurrentTime()
	return nil
}

// leftovers returns the bindings that an earlier run has written by other means, as long as
// they are there.
func (s *syncer) leftovers(ctx context.Context) []plan.Binding {
	if s.pruned {
		return nil
	}
	bindings, err := s.writer.others(ctx)
	s.complainOfPruning(err)
	if len(bindings) > 0 {
		s.flows.All = true // which of the two rules decided about a flow nobody knows
	}
	return bindings
}

// prune removes what an earlier run has written by other means, after our own rules are in
// place, so that no packet leaves under another address in between.
func (s *syncer) prune(ctx context.Context) {
	if s.pruned {
		return
	}
	err := s.writer.prune(ctx)
	s.pruned = err == nil
	s.complainOfPruning(err)
}

func (s *syncer) complainOfPruning(err error) {
	if err != nil && err.Error() != s.pruneError {
		s.pruneError = err.Error()
		s.logger.Error(err, "Cannot tell whether egress SNAT rules of an earlier run are left in another back end, iptables-legacy, iptables-nft or nftables; looking again, without saying so")
	}
}

// compare looks for changes that somebody else has made. It returns the bindings that the
// kernel holds and this process has not written, or not as far as it knows: all flows have
// to be judged then.
func (s *syncer) compare(found held) (foreign []plan.Binding) {
	if s.known {
		if len(found.differences) == 0 {
			return nil
		}
		s.logger.Info("Somebody else has changed egress SNAT rules, repairing them", "differences", len(found.differences), "first", found.differences[0])
	}
	s.flows.All = true
	return found.bindings
}

// noteFlows adds to the flows that are to be judged those that a change from the bindings
// before to p is about: but for those of pods that are elsewhere, whose packets leave
// through other nodes. In a large cluster these are nearly all.
func (s *syncer) noteFlows(before []plan.Binding, p plan.Plan, elsewhere func(pod netip.Addr) bool) {
	added, removed := plan.Diff(plan.Plan{Bindings: plan.WithoutServices(before)}, plan.Plan{Bindings: plan.WithoutServices(p.Bindings)})
	for _, b := range removed {
		// Masqueraded, the pod may go on wearing the node's own address.
		if b.EgressIP != s.nodeIP && !elsewhere(b.Pod) {
			s.flows.Removed = append(s.flows.Removed, b)
		}
	}
	s.flows.Removed = plan.WithoutServices(s.flows.Removed)
	if lacksAny(p.ClusterCIDRs, s.written.ClusterCIDRs) || lacksAny(p.Exclusions, s.written.Exclusions) {
		s.flows.All = true // what was excluded is not any more
	}
	if s.flows.All {
		return
	}
	for _, b := range added {
		if elsewhere(b.Pod) {
			continue
		}
		if s.flows.Pods == nil {
			s.flows.Pods = map[netip.Addr]bool{}
		}
		s.flows.Pods[b.Pod] = true
	}
}

// homesOf returns the nodes that pods' addresses are on: the empty name where EndpointSlices
// give none, or two.
func homesOf(claims []plan.Claim) map[netip.Addr]string {
	homes := map[netip.Addr]string{}
	for _, claim := range claims {
		for _, e := range claim.Endpoints {
			if node, known := homes[e.Addr]; known && node != e.Node {
				homes[e.Addr] = ""
			} else {
				homes[e.Addr] = e.Node
			}
		}
	}
	return homes
}

// elsewhere tells whether a pod is and was on other nodes than this, as far as these homes,
// before and after a change, know it.
func elsewhere(node string, pod netip.Addr, homes ...map[netip.Addr]string) bool {
	other := false
	for _, h := range homes {
		home, known := h[pod]
		if known && (home == "" || home == node) {
			return false
		}
		other = other || known
	}
	return other
}

// lacksAny tells whether something of before is not in now.
func lacksAny(now, before []netip.Prefix) bool {
	return slices.ContainsFunc(before, func(cidr netip.Prefix) bool { return !slices.Contains(now, cidr) })
}

func (s *syncer) noteWritten(p plan.Plan, size int) {
	now := time.Now()
	since := make(map[plan.Binding]time.Time, len(p.Bindings))
	for _, b := range p.Bindings {
		at, held := s.since[b]
		if !held {
			at = now
		}
		since[b] = at
	}
	s.written, s.since, s.known = p, since, true
	rulesGauge.WithLabelValues(string(s.family)).Set(float64(size))
}

// deleteFlows deletes the noted flows that wear a wrong identity. After an error they stay
// noted.
func (s *syncer) deleteFlows(ctx context.Context, p plan.Plan) error {
	deleted, err := s.delete(ctx, conntrack.Family(s.family), p, s.flows)
	flowDeletions.WithLabelValues(string(s.family)).Add(float64(deleted))
	if deleted > 0 {
		s.logger.Info("Deleted tracked flows that wore a wrong identity", "flows", deleted)
	}
	if err != nil {
		return err
	}
	s.flows = conntrack.Scope{}
	return nil
}

// checkProxier asks the proxier to repair its rules if the kernel lacks some, or if ours were
// altered: who restores an old state of the tables restores the proxier's rules of then as
// well, and the proxier does not look. It does at every look but those that the repair
// itself brings about, so that rules which somebody removes again and again are written
// again and again, and no faster.
func (s *syncer) checkProxier(found held, repair func()) {
	switch {
	case found.unclear != nil:
		s.logger.Error(found.unclear, "Cannot tell whether the proxier's rules are in the kernel")
		return
	case len(found.missing) == 0 && !found.altered:
		s.repairAsked = time.Time{}
		return
	case time.Since(s.repairAsked) < s.config.SyncPeriod/4:
		return
	}
	still := !s.repairAsked.IsZero()
	s.repairAsked = time.Now()
	if len(found.missing) > 0 {
		s.logger.Info("Rules of the proxier are missing from the kernel, having it write all of them", "missing", strings.Join(found.missing, "; "), "still", still)
	} else {
		s.logger.Info("Somebody else has changed rules, having the proxier write all of its own, too", "still", still)
	}
	repair()
}

func (s *syncer) logSync(previous, p plan.Plan, looked, changed bool, elapsed time.Duration) {
	syncDuration.WithLabelValues(string(s.family)).Observe(elapsed.Seconds())
	added, removed := plan.Diff(previous, p)
	s.logger.V(2).Info("Synced egress SNAT rules", "bindings", len(p.Bindings), "added", len(added), "removed", len(removed),
		"refusals", len(p.Refusals), "looked", looked, "changed", changed, "elapsed", elapsed)
	for _, b := range removed {
		s.logger.V(4).Info("Unbound", "pod", b.Pod, "protocol", b.Protocol, "egressIP", b.EgressIP, "service", b.Service)
	}
	for _, b := range added {
		s.logger.V(4).Info("Bound", "pod", b.Pod, "protocol", b.Protocol, "egressIP", b.EgressIP, "service", b.Service)
	}
}

// tell returns what the status says of the family.
func (s *syncer) tell(in plan.Input, p plan.Plan) status.Family {
	f := status.Family{
		Family: string(s.family), Input: in, Plan: p, Since: make([]time.Time, len(p.Bindings)),
		Written: s.known && s.written.Equal(p), LastSync: s.lastSync, Error: s.failure, Backend: string(s.config.Backend),
	}
	for i, b := range p.Bindings {
		f.Since[i] = s.since[b]
	}
	return f
}

// report tells people what p says, whether or not it can be written.
func (s *syncer) report(in plan.Input, p plan.Plan) {
	setPlanMetrics(s.family, in, p)
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
