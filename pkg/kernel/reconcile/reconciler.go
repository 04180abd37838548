package reconcile

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// fullLook is how often the kernel is read in full where nothing seems to have changed.
const fullLook = 10 * time.Minute

// Config is what a [Reconciler] goes by.
type Config struct {
	Family kernel.Family
	// Backend is how rules are written, Proxier how the proxier writes its own; iptables if empty.
	Backend, Proxier Backend
	// SyncPeriod is the time within which rules that somebody else has removed are back. Whoever
	// runs the Reconciler requests a look twice in it.
	SyncPeriod time.Duration
	// RepairProxier has the proxier write all of its rules. It must not block.
	RepairProxier func()
	// Steering is how packets get to other nodes; nil for not at all. The IP family and the node's
	// address in it do not count: the address comes with what is wanted.
	Steering *steering.Config
	// Clock tells the time; the real one if nil.
	Clock clock.PassiveClock
}

// Wanted is what the kernel should hold.
type Wanted interface {
	// Desired returns it, for these pods alone if pods is not nil. It costs what it returns.
	Desired(pods map[netip.Addr]bool) kernel.Desired
}

// Reconciler makes one IP family of the kernel hold what is wanted. [Reconciler.Sync] is for one
// goroutine at a time; the other methods may be called by any.
type Reconciler struct {
	config Config
	logger klog.Logger

	// look and fullSync are requested; see [Requests]. They are atomics, for the proxier tells of
	// its syncs with its lock held.
	look, fullLook, fullSync atomic.Bool

	// For Sync's goroutine alone:

	driver driver
	// steering is nil if nothing is steered. unsteered: it was incomplete after the last sync.
	steering  steeringDriver
	unsteered bool
	// delete is conntrack.Delete; unit tests put something else in its place, for it acts
	// on the network namespace that they run in.
	delete func(context.Context, kernel.Family, kernel.Desired, conntrack.Scope) (int, error)
	state  State
	// fingerprint is that of the kernel's tables before the last look, or before the last glance that found
	// all that it is about untouched; empty once this process has written since.
	fingerprint string
	// debt are the flows to judge when the rules are in place: all at the start, for nobody
	// knows what happened before.
	debt conntrack.Scope
	// pendingRemovals are the bindings that the last write has put on record.
	pendingRemovals []kernel.Binding
	// staleErrors are why the last looks could not tell what is left in other back ends, by number.
	staleErrors map[int]string

	mu     sync.Mutex // protects what follows; nobody logs, runs programs or sets metrics under it
	belief belief
	status Status
}

// belief is what this process has written last.
type belief struct {
	networks kernel.Networks
	steering kernel.Steering
	// path is how that was written; nil if it was not.
	path *writtenSteering
	// since has the bindings, with when each was first known to be in the kernel.
	since map[kernel.Binding]time.Time
}

// Status is how an IP family stands.
type Status struct {
	// Ready is that of [State].
	Ready bool
	// LastSuccess is when the kernel was last known to hold what was wanted; zero for never.
	LastSuccess time.Time
	// Failure is why the last sync failed; nil if it did not.
	Failure error
	// SteeringFault is why packets that need it are not steered, but dropped; nil if they are, or if nothing is.
	SteeringFault error
	// FlowsJudged: since the last write, the flows that it is about have been judged.
	FlowsJudged bool
}

// Result is what a sync did.
type Result struct {
	// Idle: there was nothing to do, or not yet.
	Idle bool
	// Waiting: the last try has failed, and it is too early for another one.
	Waiting bool
	// Looked tells whether the kernel was read or glanced at, Written whether it was changed.
	Looked, Written bool
	// FlowsDeleted counts the tracked flows that were ended.
	FlowsDeleted int
	// Rules is how much the kernel holds after a write: rules, or elements of sets; else 0.
	Rules int
	// Wake is when the next sync is due without a request; zero for never.
	Wake time.Time
	// Err is why it failed. The kernel holds what it held before, or what is wanted with flows
	// left that contradict it.
	Err error
}

// New returns a Reconciler that knows nothing of the kernel. Its first sync looks.
func New(logger klog.Logger, config Config) *Reconciler {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	r := &Reconciler{
		config:      config,
		logger:      klog.LoggerWithValues(logger, "ipFamily", config.Family),
		delete:      conntrack.Delete,
		state:       State{Times: Times{SyncPeriod: config.SyncPeriod, FullLook: fullLook}},
		debt:        conntrack.Scope{All: true},
		belief:      belief{since: map[kernel.Binding]time.Time{}},
		staleErrors: map[int]string{},
	}
	r.driver, r.steering = newDriver(config)
	return r
}

// ProxierSynced tells that the proxier has written all of its rules. It never blocks.
func (r *Reconciler) ProxierSynced() { r.fullSync.Store(true) }

// RequestLook has the next sync look at the kernel, in full only where a glance shows a change.
func (r *Reconciler) RequestLook() { r.look.Store(true) }

// RequestFullLook has the next sync read all that the kernel holds.
func (r *Reconciler) RequestFullLook() { r.fullLook.Store(true) }

// Status returns how the family stands.
func (r *Reconciler) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// Since returns since when this process has had each of these bindings in the kernel, zero for one
// that it has not written, and whether the kernel holds them, these networks and ways, and nothing else.
func (r *Reconciler) Since(d kernel.Desired) (since []time.Time, holds bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since = make([]time.Time, len(d.Bindings))
	holds = r.status.Failure == nil && r.status.SteeringFault == nil && r.status.FlowsJudged && len(r.belief.since) == len(d.Bindings) &&
		r.belief.networks.Equal(d.Networks) && r.belief.steering.Equal(d.Steering)
	for i, b := range d.Bindings {
		at, written := r.belief.since[b]
		since[i], holds = at, holds && written
	}
	return since, holds
}

// Written returns what this process has written last: the bindings, in no order, the networks and the ways.
func (r *Reconciler) Written() kernel.Desired {
	r.mu.Lock()
	defer r.mu.Unlock()
	return kernel.Desired{Networks: r.belief.networks, Bindings: slices.Collect(maps.Keys(r.belief.since)), Steering: r.belief.steering}
}

// Sync makes the kernel hold what is wanted, of which change is what was not wanted at the last
// sync. nodeIP is the node's own address, under which pods without a binding may leave. The maps and slices
// of what is wanted and of change are kept, and must not be changed.
//
// The bindings that it removes are recorded in the kernel with the same transaction, so that a
// process that dies before their flows are ended leaves the next one to know whose they were.
func (r *Reconciler) Sync(ctx context.Context, wanted Wanted, change kernel.Change, nodeIP netip.Addr) Result {
	s := &run{Reconciler: r, wanted: wanted, change: change, nodeIP: nodeIP}
	began := Began{Requests{Look: r.look.Swap(false), FullLook: r.fullLook.Swap(false), FullSync: r.fullSync.Swap(false)}, !change.Empty()}
	s.result.Idle = true
	var steps []Step
	r.state, steps = r.state.Next(began, r.config.Clock.Now())
	for len(steps) > 0 {
		s.result.Idle = false
		event, err := s.do(ctx, steps[0])
		steps = steps[1:]
		if err != nil {
			return r.failed(ctx, s.result, err)
		}
		if event != nil {
			r.state, steps = r.state.Next(event, r.config.Clock.Now())
		}
	}
	if !s.result.Idle {
		unsteered := r.noteSteering(ctx)
		r.state, _ = r.state.Next(Succeeded{Looked: s.result.Looked, Unsteered: unsteered}, r.config.Clock.Now())
		r.setStatus(func(status *Status) {
			status.Failure, status.FlowsJudged, status.LastSuccess = nil, true, r.config.Clock.Now()
		})
	}
	s.result.Wake = r.state.Wake()
	s.result.Waiting = s.result.Idle && !r.state.RetryAt.IsZero()
	return s.result
}

func (r *Reconciler) failed(ctx context.Context, result Result, err error) Result {
	result.Err = err
	r.noteSteering(ctx)
	r.state, _ = r.state.Next(Failed{}, r.config.Clock.Now())
	result.Wake = r.state.Wake()
	if ctx.Err() == nil { // else nobody waits for another try
		r.setStatus(func(status *Status) { status.Failure = err })
		r.logger.Error(err, "Could not write the egress SNAT rules or end flows that contradict them; will retry",
			"retryAfter", result.Wake.Sub(r.config.Clock.Now()).Round(time.Millisecond))
	}
	return result
}

// noteSteering notes how the steering of packets stands, and tells whether it is incomplete.
func (r *Reconciler) noteSteering(ctx context.Context) (unsteered bool) {
	if r.steering == nil || ctx.Err() != nil {
		return false
	}
	fault, before := r.steering.fault(), r.Status().SteeringFault
	switch {
	case fault != nil && (before == nil || before.Error() != fault.Error()):
		r.logger.Error(fault, "Packets whose egress IP is on another node are dropped until the cause is removed; pods that leave from this node go on. Will retry; the same failure is not logged again")
	case fault == nil && before != nil:
		r.logger.Info("Packets whose egress IP is on another node are sent there again")
	}
	r.unsteered = fault != nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.SteeringFault, r.belief.path = fault, r.steering.written()
	return r.unsteered
}

// CompareSteering says, for an operator and in a line each, how the kernel differs from what steers packets as d
// asks for; nothing if it does not, or if nothing is steered. It changes nothing.
func (r *Reconciler) CompareSteering(ctx context.Context, d kernel.Desired) ([]string, error) {
	r.mu.Lock()
	path := r.belief.path
	r.mu.Unlock()
	if path == nil {
		return nil, nil
	}
	return steering.Compare(ctx, path.config, d, path.numbers)
}

// SteeringWarnings says, for an operator and in a line each, what of others may keep packets from being steered.
func (r *Reconciler) SteeringWarnings(ctx context.Context, d kernel.Desired) ([]string, error) {
	r.mu.Lock()
	path := r.belief.path
	r.mu.Unlock()
	if path == nil {
		return nil, nil
	}
	return steering.Warnings(ctx, path.config, d.ClusterCIDRs)
}

func (r *Reconciler) setStatus(set func(*Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set(&r.status)
	r.status.Ready = r.state.Ready
}

// run is one sync.
type run struct {
	*Reconciler
	wanted Wanted
	change kernel.Change
	nodeIP netip.Addr
	result Result

	// refused: the change alone could not be written.
	refused bool
	// unplanned are bindings in the kernel that this process has not written, as far as it knows.
	unplanned []kernel.Binding
	prunable  map[int]staleBackend // by number
}

// do takes a step, and returns an event if it decides about further ones.
func (s *run) do(ctx context.Context, step Step) (event any, err error) {
	switch step {
	case Glance:
		return s.glance(ctx), nil
	case Look:
		return s.lookAtKernel(ctx)
	case RepairProxier:
		s.config.RepairProxier()
	case WriteChange:
		return s.writeChange(ctx)
	case WriteAll:
		return nil, s.writeAll(ctx)
	case WriteSteering:
		s.writeSteering(ctx)
	case PruneStale:
		s.prune(ctx)
	case DeleteFlows:
		return nil, s.deleteFlows(ctx)
	}
	return nil, nil
}

// glance tells whether others may have changed what a look is about. In a busy cluster the proxier changes
// the tables all the time, so another fingerprint alone does not tell.
func (s *run) glance(ctx context.Context) Glanced {
	s.result.Looked = true
	began := s.config.Clock.Now()
	now, err := s.driver.fingerprint(ctx)
	same := err == nil && s.fingerprint != "" && now == s.fingerprint
	if err == nil && !same {
		if same, err = s.driver.untouched(ctx); same {
			s.fingerprint = now // of before, so that what has changed meanwhile shows at the next glance
		}
	}
	if err != nil {
		s.logger.V(2).Info("Cannot tell whether the kernel's tables have changed; will read them", "err", err)
	}
	return Glanced{Moved: !same, Changed: !s.change.Empty(), Cost: s.config.Clock.Since(began)}
}

// lookAtKernel reads the kernel. Bindings that it holds and this process has not written, or not as
// far as it knows, are unplanned: all flows have to be judged then.
func (s *run) lookAtKernel(ctx context.Context) (Looked, error) {
	s.result.Looked = true
	// Before the look: what changes meanwhile shows at the next glance.
	before, err := s.driver.fingerprint(ctx)
	if err != nil {
		before = ""
	}
	found, err := s.driver.observe(ctx)
	if err != nil {
		return Looked{}, err
	}
	s.fingerprint = before
	event := Looked{Altered: found.altered || s.refused && !s.wrote(found.bindings()), JumpInFront: found.jumpInFront}
	event.ProxierLacks, event.ProxierUnknown = s.proxierLacks(ctx, found)
	var left []kernel.Binding
	left, event.Stale = s.readStale(ctx)
	known := s.state.Belief == Holds && !event.Altered
	switch {
	case !known:
		s.unplanned = slices.Concat(found.bindings(), left)
	default:
		s.unplanned = left
	}
	s.debt.All = s.debt.All || !known || len(found.differences) > 0 || len(left) > 0
	s.logDifferences(event, found.differences)
	s.lookAtSteering(&event, found.steering)
	return event, nil
}

// lookAtSteering has the steering written if it differs. Nobody knows what packets did meanwhile.
func (s *run) lookAtSteering(event *Looked, differences []string) {
	event.SteeringAltered = len(differences) > 0
	if !event.SteeringAltered || s.unsteered {
		return
	}
	s.debt.All = true
	if s.state.Belief != Unknown {
		s.logger.Info("Somebody else has changed what steers packets; repairing it", "differences", len(differences), "first", differences[0])
	}
}

// writeSteering writes what steers packets. A fault of that is no error of the rules'.
func (s *run) writeSteering(ctx context.Context) {
	if s.steering.writeSteering(ctx, s.wanted.Desired(nil)) {
		s.result.Written, s.fingerprint = true, ""
	}
}

func (s *run) logDifferences(event Looked, differences []string) {
	switch {
	case s.state.Belief == Unknown || len(differences) == 0:
	case event.Altered:
		s.logger.Info("Somebody else has changed egress SNAT rules; repairing them", "differences", len(differences), "first", differences[0])
	default:
		s.logger.Info("The jump to the egress SNAT rules is not in front; moving it there", "found", differences[0])
	}
}

// wrote tells whether these are the bindings that this process has written last.
func (s *run) wrote(bindings []kernel.Binding) bool {
	written := slices.AppendSeq(slices.Clone(s.pendingRemovals), maps.Keys(s.belief.since))
	return slices.Equal(kernel.Sorted(bindings), kernel.Sorted(written))
}

// proxierLacks tells whether rules of the proxier are missing, or that this cannot be told.
func (s *run) proxierLacks(ctx context.Context, found observation) (lacks, unknown bool) {
	if s.state.Proxier == BeforeFirstSync {
		return false, false
	}
	missing, err := found.missing(ctx)
	if err != nil {
		s.logger.Error(err, "Cannot tell whether the proxier's rules are in the kernel; will retry with the next look")
		return false, true
	}
	if len(missing) > 0 {
		s.logger.Info("Rules of the proxier are missing from the kernel", "missing", strings.Join(missing, "; "), "repairAskedBefore", !s.state.RepairAsked.IsZero())
	}
	return len(missing) > 0, false
}

// readStale returns the bindings that earlier runs have written by other means, as long as they are
// there. What of that may be removed, for all bindings of it are known, is kept for prune.
func (s *run) readStale(ctx context.Context) (bindings []kernel.Binding, stale Stale) {
	s.prunable = map[int]staleBackend{}
	if s.state.StaleGone {
		return nil, Gone
	}
	for i, backend := range s.driver.staleBackends() {
		found, left, err := backend.read(ctx)
		bindings = append(bindings, found...)
		s.complainOfStale(i, err)
		switch {
		case err != nil:
			stale = max(stale, Unreadable)
		case left:
			stale = max(stale, Left)
			s.prunable[i] = backend
		}
	}
	if len(bindings) > 0 {
		stale = Binds // which of the two rules decided about a flow nobody knows
	}
	return bindings, stale
}

// prune removes what earlier runs have written by other means. The next look finds it gone.
func (s *run) prune(ctx context.Context) {
	for i, backend := range s.prunable {
		s.complainOfStale(i, backend.prune(ctx))
	}
}

func (s *run) complainOfStale(number int, err error) {
	switch {
	case err == nil:
		delete(s.staleErrors, number)
	case err.Error() != s.staleErrors[number]:
		s.staleErrors[number] = err.Error()
		s.logger.Error(err, "Cannot read or remove egress SNAT rules of an earlier run in another back end (iptables-legacy, iptables-nft or nftables); will retry, further failures are not logged")
	}
}

// writeChange writes the change alone. If that is refused, somebody may have removed what it is a
// change of.
func (s *run) writeChange(ctx context.Context) (event any, err error) {
	s.owe(s.change)
	changed, size, err := s.driver.update(ctx, s.change, s.debt.Removed)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		s.logger.Info("Cannot write the change alone; writing all egress SNAT rules", "reason", err)
		s.refused = true
		return Refused{}, nil
	}
	s.wroteNow(s.change, changed, size)
	return nil, nil
}

// writeAll writes what is wanted into a kernel that may hold other bindings than were written.
func (s *run) writeAll(ctx context.Context) error {
	desired := s.wanted.Desired(nil)
	change := kernel.Change{Networks: desired.Networks, Steering: desired.Steering}
	written := slices.SortedFunc(maps.Keys(s.belief.since), kernel.CompareBindings)
	change.Added, change.Removed = kernel.Diff(written, desired.Bindings)
	_, unwanted := kernel.Diff(kernel.Sorted(s.unplanned), desired.Bindings)
	s.owe(change)
	s.oweUnplanned(unwanted, desired.Steering)
	changed, size, err := s.driver.write(ctx, desired, s.debt.Removed)
	if err != nil {
		return err
	}
	s.wroteNow(change, changed, size)
	return nil
}

// owe adds the flows that a change is about to those that are to be judged.
func (s *run) owe(change kernel.Change) {
	s.oweRemoved(change.Removed, func(b kernel.Binding) bool { return hasWay(s.belief.steering, b) })
	before, now := s.belief.networks, change.Networks
	if lacksAny(now.ClusterCIDRs, before.ClusterCIDRs) || lacksAny(now.Exclusions, before.Exclusions) {
		s.debt.All = true // what was excluded is not any more
	}
	s.owePods(change.Added)
	s.oweWays(change.Steering)
}

// oweUnplanned is owe for the removal of bindings that this process has not written. If there is steering,
// their packets may have left through another node.
func (s *run) oweUnplanned(removed []kernel.Binding, now kernel.Steering) {
	s.oweRemoved(removed, func(kernel.Binding) bool { return len(now.Nodes)+len(now.Ways) > 0 })
}

func (s *run) oweRemoved(removed []kernel.Binding, steered func(kernel.Binding) bool) {
	for _, b := range removed {
		// Masqueraded, the pod may go on with the node's own address.
		if b.EgressIP != s.nodeIP {
			s.debt.Removed = append(s.debt.Removed, b)
		}
		if steered(b) {
			s.debt.Steered = append(s.debt.Steered, b)
		}
	}
	s.debt.Removed, s.debt.Steered = kernel.Sorted(s.debt.Removed), kernel.Sorted(s.debt.Steered)
}

// oweWays adds the flows of the pods whose egress IPs take another way now. It costs nothing if none does,
// and goes through all bindings otherwise.
func (s *run) oweWays(now kernel.Steering) {
	before := s.belief.steering
	if maps.Equal(before.Ways, now.Ways) {
		return
	}
	var moved, steered []kernel.Binding
	for b := range s.belief.since {
		if before.Ways[b.EgressIP] == now.Ways[b.EgressIP] {
			continue
		}
		moved = append(moved, b)
		if hasWay(before, b) {
			steered = append(steered, b)
		}
	}
	s.owePods(moved)
	s.debt.Steered = kernel.Sorted(append(s.debt.Steered, steered...))
}

func hasWay(s kernel.Steering, b kernel.Binding) bool {
	_, has := s.Ways[b.EgressIP]
	return has
}

// owePods adds the flows of the pods of bindings.
func (s *run) owePods(bindings []kernel.Binding) {
	if s.debt.All {
		return
	}
	for _, b := range bindings {
		if s.debt.Pods == nil {
			s.debt.Pods = map[netip.Addr]bool{}
		}
		s.debt.Pods[b.Pod] = true
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

// wroteNow notes that the kernel holds what change makes of what was written before.
func (s *run) wroteNow(change kernel.Change, changed bool, size int) {
	s.result.Written, s.result.Rules = s.result.Written || changed, size
	s.pendingRemovals = s.debt.Removed
	if changed {
		s.fingerprint = ""
	}
	s.believe(change)
	for _, b := range change.Removed {
		s.logger.V(4).Info("Unbound", "pod", b.Pod, "protocol", b.Protocol, "egressIP", b.EgressIP)
	}
	for _, b := range change.Added {
		s.logger.V(4).Info("Bound", "pod", b.Pod, "protocol", b.Protocol, "egressIP", b.EgressIP)
	}
}

func (s *run) believe(change kernel.Change) {
	now := s.config.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range change.Removed {
		delete(s.belief.since, b)
	}
	if len(s.belief.since) == 0 {
		s.belief.since = make(map[kernel.Binding]time.Time, len(change.Added)) // most come with the first write
	}
	for _, b := range change.Added {
		s.belief.since[b] = now
	}
	s.belief.networks, s.belief.steering = change.Networks, change.Steering
	s.status.FlowsJudged = false
}

// deleteFlows ends the flows of the debt that have the wrong source address. After an error the debt
// stays.
func (s *run) deleteFlows(ctx context.Context) error {
	if s.unsteered && s.steering.fault() == nil {
		s.debt.All = true // flows may have begun that should have been steered
	}
	deleted, err := s.delete(ctx, s.config.Family, s.wanted.Desired(s.concerned()), s.debt)
	s.result.FlowsDeleted += deleted
	if deleted > 0 {
		s.logger.Info("Reset connections that used the wrong source address", "flows", deleted)
	}
	if err != nil {
		return err
	}
	s.debt = conntrack.Scope{}
	return s.driver.judged(ctx)
}

// concerned returns the pods whose flows are to be judged; nil for all.
func (s *run) concerned() map[netip.Addr]bool {
	if s.debt.All {
		return nil
	}
	pods := map[netip.Addr]bool{}
	maps.Copy(pods, s.debt.Pods)
	for _, b := range s.debt.Removed { // what else was steered is in Pods
		pods[b.Pod] = true
	}
	return pods
}
