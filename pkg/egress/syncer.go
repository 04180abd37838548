package egress

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	// known: the kernel holds what since and networks say, as far as this process knows.
	known bool
	// networks are the plan's that was written last.
	networks plan.Plan
	// flows are those to judge when the rules are in place: all at the start, for nobody
	// knows what happened before.
	flows conntrack.Scope
	// nodeIP is this node's primary address, under which unbound pods may leave.
	nodeIP netip.Addr
	// placed: nothing of the proxier's first sync will come in front of our rules, as the last
	// look has shown.
	placed bool
	// complete: the rules were in place, once, when the proxier had written its own. seen: they
	// were looked at after that.
	complete     bool
	seen         bool
	warnedOfCIDR bool
	// suspect: somebody else has changed rules of ours, and perhaps of the proxier's, which has not
	// written all of its own since, nor been asked to.
	suspect bool
	// journal are the bindings that the last write has put on record.
	journal []plan.Binding
	// repairAsked is when the proxier was asked to repair its rules, which have not been
	// seen whole since; zero if they have.
	repairAsked time.Time
	// pruned: no rules of ours are left in other back ends. pruneError is why that cannot
	// be told.
	pruned     bool
	pruneError string
	backoff    wait.Backoff
	nextTry    time.Time
	// lookAt is when to look at the kernel next, beside every so often; zero for never. As long
	// as the rules are not placed, settle is how long to wait for that.
	lookAt time.Time
	settle wait.Backoff

	mu    sync.Mutex // protects the following fields
	notes notes
	// hurry: what made the last try fail may be over, do not wait for the backoff.
	hurry bool
	// proxierSynced: the proxier has written all of its rules, at least once.
	proxierSynced bool
	// audit: the plan has to be made from all objects at once, for comparison.
	audit bool
	// since has the bindings that were written last, with when each was first known to be in
	// the kernel.
	since map[plan.Binding]time.Time
	// judged: since the last write, the flows that it is about have been judged.
	judged bool
	// lastSync is when the last sync succeeded, failure why the last one did not.
	lastSync time.Time
	failure  string
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
		notes:  notes{look: true},
	}
	s.resetBackoff()
	s.settle = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 30, Cap: max(config.SyncPeriod/2, time.Second)}
	return s
}

func (s *syncer) resetBackoff() {
	s.backoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 30, Cap: max(s.config.SyncPeriod, time.Second)}
	s.nextTry = time.Time{}
}

// notes are what a sync is to take care of.
type notes struct {
	// look: the kernel has to be looked at, for others may have changed it.
	look bool
	// fullSync: the proxier has written all of its rules since the last sync.
	fullSync bool
}

// noteFullSync is told when the proxier has written all of its rules.
func (s *syncer) noteFullSync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.audit = s.proxierSynced // before the first there was not much to follow
	s.notes.fullSync, s.hurry, s.proxierSynced = true, true, true
}

// noteLook asks for a look at the kernel.
func (s *syncer) noteLook() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes.look = true
}

// takeNotes returns what was noted and takes the notes away.
func (s *syncer) takeNotes() (taken notes, proxierSynced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken = s.notes
	s.notes, s.hurry = notes{}, false
	return taken, s.proxierSynced
}

// hasProxierSynced tells whether the proxier has written all of its rules, at least once.
func (s *syncer) hasProxierSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proxierSynced
}

// takeAudit tells whether the plan has to be made from all objects at once, and forgets it.
func (s *syncer) takeAudit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	audit := s.audit
	s.audit = false
	return audit
}

// distrust has the kernel looked at and all written, as if nothing had been.
func (s *syncer) distrust() {
	s.known = false
	s.noteLook()
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

// planner is what a syncer asks about the plan as a whole; [planned] and [plan.Planner] are.
type planner interface {
	Plan() plan.Plan
	PlanOf(pods map[netip.Addr]bool) plan.Plan
	Elsewhere(pod netip.Addr) bool
	Numbers() plan.Numbers
}

// wholeOnce is a planner whose Plan is made once, if at all: it costs what the cluster is large.
type wholeOnce struct {
	planner
	plan func() plan.Plan
}

func (p wholeOnce) Plan() plan.Plan { return p.plan() }

// trySync makes the kernel hold the planner's plan, of which change is what it does not hold yet
// if it was synced before. It returns 0, or after a failure the time after which to try again;
// the kernel then holds the rules of before, or those of the plan with flows left that
// contradict them.
func (s *syncer) trySync(ctx context.Context, p planner, change plan.Change, repairProxier func()) time.Duration {
	if wait := s.backingOff(); wait > 0 {
		return wait // the failure has made it forget what the kernel holds: no change is lost
	}
	start := time.Now()
	err := s.sync(ctx, p, change, repairProxier)
	if err == nil {
		s.resetBackoff()
		s.noteFailure("")
		return 0
	}
	s.distrust()
	if ctx.Err() != nil {
		return time.Second // nobody will wait for it
	}
	wait := s.backoff.Step()
	s.nextTry = start.Add(wait)
	s.noteFailure(err.Error())
	observeSync(s.family, time.Since(start), err)
	s.logger.Error(err, "Egress SNAT is not as planned; trying again", "retryAfter", wait.Round(time.Millisecond))
	return wait
}

func (s *syncer) noteFailure(failure string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = failure
}

// sync writes the rules of the plan, then deletes the flows that wear a wrong identity by them.
// The bindings that it removes are recorded in the kernel with the same transaction, so that
// a process that dies in between leaves the next one to know whose flows to look at.
func (s *syncer) sync(ctx context.Context, p planner, change plan.Change, repairProxier func()) error {
	noted, proxierSynced := s.takeNotes()
	look := s.needsLook(noted)
	if !look && !noted.fullSync && s.known && !change.InKernel() {
		return nil
	}
	start := time.Now()
	p = wholeOnce{p, sync.OnceValue(p.Plan)}
	if noted.fullSync {
		s.suspect = false
	}
	var before []plan.Binding // in the kernel, and not written by this process as far as it knows
	var prunable []other
	if look {
		found, err := s.writer.read(ctx)
		if err != nil {
			return err
		}
		if proxierSynced {
			s.checkProxier(ctx, found, repairProxier)
		}
		s.placed = found.placed
		var left []plan.Binding
		left, prunable = s.leftovers(ctx)
		before = slices.Concat(s.compare(found), left)
	}
	changed, err := s.write(ctx, p, change, before)
	if err != nil {
		return fmt.Errorf("the rules in the kernel stay as they are: %w", err)
	}
	if proxierSynced {
		s.prune(ctx, prunable)
	}
	if err := s.deleteFlows(ctx, p); err != nil {
		return err
	}
	s.logSync(p.Numbers(), look, changed, time.Since(start))
	s.complete = s.complete || proxierSynced && (look || s.placed)
	s.scheduleLook(look, proxierSynced)
	s.noteSuccess()
	return nil
}

// needsLook tells whether the kernel has to be looked at before anything is written.
func (s *syncer) needsLook(noted notes) bool {
	switch {
	case noted.look:
		return true
	case noted.fullSync: // the first can do without, if nothing is left to be moved or removed
		return s.complete || !s.placed || !s.pruned
	default:
		return !s.lookAt.IsZero() && !time.Now().Before(s.lookAt)
	}
}

// scheduleLook says when to look next: at once, if the proxier's first sync is over without a look;
// again and again until then, if the rules are not placed. The sooner they are, the smaller are
// the tables that have to be written to move a jump to the front.
func (s *syncer) scheduleLook(looked, proxierSynced bool) {
	switch {
	case proxierSynced && looked:
		s.lookAt = time.Time{}
	case proxierSynced && !s.seen:
		s.lookAt = time.Now()
	case s.placed:
		s.lookAt = time.Time{}
	case looked:
		s.lookAt = time.Now().Add(s.settle.Step())
	}
	s.seen = s.seen || proxierSynced && looked
}

// untilLook returns after which time the kernel wants to be looked at; 0 if no time is set.
func (s *syncer) untilLook() time.Duration {
	if s.lookAt.IsZero() {
		return 0
	}
	return max(time.Until(s.lookAt), time.Millisecond)
}

func (s *syncer) noteSuccess() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastSync, s.judged = time.Now(), true
	lastSuccess.WithLabelValues(string(s.family)).SetToCurrentTime()
}

// write writes the change, if the kernel is known to hold all else, or else the whole plan.
func (s *syncer) write(ctx context.Context, p planner, change plan.Change, before []plan.Binding) (changed bool, err error) {
	if s.known && len(before) == 0 {
		if changed, err = s.writeChange(ctx, p, change); err == nil || ctx.Err() != nil {
			return changed, err
		}
		// Somebody may have removed what it is a change of.
		s.logger.Info("Cannot write the change alone, writing all egress SNAT rules", "because", err)
		found, readErr := s.writer.read(ctx)
		if readErr != nil {
			return false, errors.Join(err, readErr)
		}
		s.suspect = s.suspect || found.altered || !s.wrote(found.bindings())
		s.known = false
		before = s.compare(found)
	}
	return s.writeAll(ctx, p, before)
}

// wrote tells whether these are the bindings that this process has written last.
func (s *syncer) wrote(bindings []plan.Binding) bool {
	written := slices.AppendSeq(slices.Clone(s.journal), maps.Keys(s.since))
	return slices.Equal(plan.WithoutServices(bindings), plan.WithoutServices(written))
}

func (s *syncer) writeChange(ctx context.Context, p planner, change plan.Change) (changed bool, err error) {
	networks := p.PlanOf(nil)
	s.noteFlows(change, networks, func(pod netip.Addr) bool { return change.Elsewhere[pod] })
	changed, size, err := s.writer.update(ctx, change, networks, s.flows.Removed)
	if err != nil {
		return false, err
	}
	s.noteWritten(change, networks, size)
	return changed, nil
}

// writeAll writes the plan into a kernel that may hold other bindings, before, than were written.
func (s *syncer) writeAll(ctx context.Context, p planner, before []plan.Binding) (changed bool, err error) {
	whole := p.Plan()
	written := slices.SortedFunc(maps.Keys(s.since), plan.CompareBindings)
	added, removed := plan.Diff(plan.Plan{Bindings: written}, whole)
	s.noteFlows(plan.Change{Added: added, Removed: append(unplanned(before, whole), removed...)}, whole, p.Elsewhere)
	changed, size, err := s.writer.write(ctx, whole, s.flows.Removed)
	if err != nil {
		return false, err
	}
	s.noteWritten(plan.Change{Added: added, Removed: removed}, whole, size)
	return changed, nil
}

// unplanned returns those of bindings, without their Services, that are not in the plan.
func unplanned(bindings []plan.Binding, p plan.Plan) []plan.Binding {
	if len(bindings) == 0 {
		return nil
	}
	_, others := plan.Diff(plan.Plan{Bindings: plan.WithoutServices(bindings)}, plan.Plan{Bindings: plan.WithoutServices(p.Bindings)})
	return others
}

// leftovers returns the bindings that earlier runs have written by other means, as long as
// they are there, and what of that may be removed, for all bindings of it are known.
func (s *syncer) leftovers(ctx context.Context) (bindings []plan.Binding, prunable []other) {
	if s.pruned {
		return nil, nil
	}
	s.pruned = true
	for _, o := range s.writer.others() {
		found, left, err := o.read(ctx)
		bindings = append(bindings, found...)
		s.complainOfPruning(err)
		s.pruned = s.pruned && err == nil && !left
		if err == nil && left {
			prunable = append(prunable, o)
		}
	}
	if len(bindings) > 0 {
		s.flows.All = true // which of the two rules decided about a flow nobody knows
	}
	return bindings, prunable
}

// prune removes what earlier runs have written by other means, after our own rules are in
// place, so that no packet leaves under another address in between. The next look finds it gone.
func (s *syncer) prune(ctx context.Context, prunable []other) {
	for _, o := range prunable {
		s.complainOfPruning(o.prune(ctx))
	}
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
		switch n := len(found.differences); {
		case n == 0:
			return nil
		case found.altered:
			s.logger.Info("Somebody else has changed egress SNAT rules, repairing them", "differences", n, "first", found.differences[0])
		default:
			s.logger.Info("The jump to the egress SNAT rules is not where it belongs, moving it there", "found", found.differences[0])
			s.flows.All = true
			return nil // all else is known to be right
		}
	}
	s.known = false
	s.flows.All = true
	return found.bindings()
}

// noteFlows adds to the flows that are to be judged those that a change is about: but for
// those of pods that are elsewhere, whose packets leave through other nodes. In a large
// cluster these are nearly all.
func (s *syncer) noteFlows(change plan.Change, networks plan.Plan, elsewhere func(pod netip.Addr) bool) {
	added, removed := change.Added, change.Removed
	if len(removed) > 0 {
		// Another Service is no other identity.
		added, removed = plan.Diff(plan.Plan{Bindings: plan.WithoutServices(removed)}, plan.Plan{Bindings: plan.WithoutServices(added)})
	}
	for _, b := range removed {
		// Masqueraded, the pod may go on wearing the node's own address.
		if b.EgressIP != s.nodeIP && !elsewhere(b.Pod) {
			s.flows.Removed = append(s.flows.Removed, b)
		}
	}
	s.flows.Removed = plan.WithoutServices(s.flows.Removed)
	if lacksAny(networks.ClusterCIDRs, s.networks.ClusterCIDRs) || lacksAny(networks.Exclusions, s.networks.Exclusions) {
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

// lacksAny tells whether something of before is not in now.
func lacksAny(now, before []netip.Prefix) bool {
	if slices.Equal(now, before) {
		return false
	}
	there := make(map[netip.Prefix]bool, len(now))
	for _, cidr := range now {
		there[cidr] = true
	}
	return slices.ContainsFunc(before, func(cidr netip.Prefix) bool { return !there[cidr] })
}

// noteWritten records that the kernel holds what change makes of what was written before, and
// tells of each binding, for those who follow the log.
func (s *syncer) noteWritten(change plan.Change, networks plan.Plan, size int) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range change.Removed {
		delete(s.since, b)
		s.logger.V(4).Info("Unbound", "pod", b.Pod, "protocol", b.Protocol, "egressIP", b.EgressIP, "service", b.Service)
	}
	if len(s.since) == 0 {
		s.since = make(map[plan.Binding]time.Time, len(change.Added)) // most come with the first plan
	}
	for _, b := range change.Added {
		s.since[b] = now
		s.logger.V(4).Info("Bound", "pod", b.Pod, "protocol", b.Protocol, "egressIP", b.EgressIP, "service", b.Service)
	}
	s.networks = plan.Plan{ClusterCIDRs: networks.ClusterCIDRs, Exclusions: networks.Exclusions}
	s.journal = s.flows.Removed
	s.known, s.judged = true, false
	rulesGauge.WithLabelValues(string(s.family)).Set(float64(size))
}

// deleteFlows deletes the noted flows that wear a wrong identity. After an error they stay
// noted.
func (s *syncer) deleteFlows(ctx context.Context, p planner) error {
	deleted, err := s.delete(ctx, conntrack.Family(s.family), s.concerned(p), s.flows)
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

// concerned returns what of the plan the noted flows are judged by.
func (s *syncer) concerned(p planner) plan.Plan {
	if s.flows.All {
		return p.Plan()
	}
	pods := maps.Clone(s.flows.Pods)
	for _, b := range s.flows.Removed {
		if pods == nil {
			pods = map[netip.Addr]bool{}
		}
		pods[b.Pod] = true
	}
	return p.PlanOf(pods)
}

// checkProxier asks the proxier to repair its rules if the kernel lacks some, or if ours were
// changed: who restores an old state of the tables restores the proxier's rules of then as
// well, and the proxier does not look. It does at every look but those that the repair
// itself brings about, so that rules which somebody removes again and again are written
// again and again, and no faster.
func (s *syncer) checkProxier(ctx context.Context, found held, repair func()) {
	s.suspect = s.suspect || found.altered
	missing, err := found.missing(ctx)
	switch {
	case err != nil:
		s.logger.Error(err, "Cannot tell whether the proxier's rules are in the kernel")
		return
	case len(missing) == 0 && !s.suspect:
		s.repairAsked = time.Time{}
		return
	case time.Since(s.repairAsked) < s.config.SyncPeriod/4:
		return
	}
	still := !s.repairAsked.IsZero()
	s.repairAsked, s.suspect = time.Now(), false
	if len(missing) > 0 {
		s.logger.Info("Rules of the proxier are missing from the kernel, having it write all of them", "missing", strings.Join(missing, "; "), "still", still)
	} else {
		s.logger.Info("Somebody else has changed rules, having the proxier write all of its own, too", "still", still)
	}
	repair()
}

func (s *syncer) logSync(numbers plan.Numbers, looked, changed bool, elapsed time.Duration) {
	observeSync(s.family, elapsed, nil)
	s.logger.V(2).Info("Synced egress SNAT rules", "bindings", numbers.Bindings, "looked", looked, "changed", changed, "elapsed", elapsed)
}

// tell returns what the status says of the family, of which p is the plan for in.
func (s *syncer) tell(in plan.Input, p plan.Plan) status.Family {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := status.Family{
		Family: string(s.family), Input: in, Plan: p, Since: make([]time.Time, len(p.Bindings)),
		LastSync: s.lastSync, Error: s.failure, Backend: string(s.config.Backend),
	}
	f.Written = s.failure == "" && s.judged && len(s.since) == len(p.Bindings) &&
		slices.Equal(s.networks.ClusterCIDRs, p.ClusterCIDRs) && slices.Equal(s.networks.Exclusions, p.Exclusions)
	for i, b := range p.Bindings {
		since, written := s.since[b]
		f.Since[i], f.Written = since, f.Written && written
	}
	return f
}

// report tells people what a change means, whether or not it can be written.
func (s *syncer) report(change plan.Change, p planner) {
	numbers := p.Numbers()
	setPlanMetrics(s.family, numbers)
	s.warnOfMissingCIDR(numbers)
	const most = 20 // lines in the log for one change; metrics have the full number
	for _, r := range change.Refused[:min(len(change.Refused), most)] {
		s.logger.Info("Refused egress SNAT", "service", r.Service, "egressIP", r.EgressIP, "reason", r.Reason, "message", r.Message)
	}
	if more := len(change.Refused) - most; more > 0 {
		s.logger.Info("Refused egress SNAT for more", "count", more)
	}
}

func (s *syncer) warnOfMissingCIDR(numbers plan.Numbers) {
	claimed := numbers.Refusals[plan.NoClusterCIDR] > 0
	if claimed && !s.warnedOfCIDR {
		s.logger.Error(nil, "No egress SNAT in this IP family, for no cluster CIDR of it is known; set proxyArguments.cluster-cidr in the node's configuration")
	}
	s.warnedOfCIDR = claimed
}
