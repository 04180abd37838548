package reconcile

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
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
	// steering is nil if nothing is steered. unsteered is why it was incomplete after the last sync.
	steering  steeringDriver
	unsteered failure.Streak
	// delete is that of a conntrack.Table; unit tests put something else in its place, for it acts
	// on the network namespace that they run in.
	delete func(context.Context, kernel.Desired, conntrack.Scope) (conntrack.Deleted, error)
	state  State
	// fingerprint is that of the kernel's tables before the last look, or before the last glance that found
	// all that it is about untouched; empty once this process has written since.
	fingerprint string
	// debt are the flows to judge when the rules are in place: all at the start, for nobody
	// knows what happened before.
	debt conntrack.Scope
	// lostBlocks are ports that pods had and have not any more, although they are still bound.
	lostBlocks []kernel.Block
	// pendingRemovals are the bindings that the last write has put on record.
	pendingRemovals []kernel.Binding
	// staleErrors are why the last looks could not tell what is left in other back ends, by number.
	staleErrors map[int]failure.Streak

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
	// FlowsDeleted counts the tracked flows that were ended, FlowsUnbarred those that nothing keeps from being taken up
	// again.
	FlowsDeleted, FlowsUnbarred int
	// Rules is how much the kernel holds after a write of rules: rules, or elements of sets. Counted tells whether there was one.
	Rules   int
	Counted bool
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
		delete:      conntrack.NewTable(config.Family).Delete,
		state:       State{Times: Times{SyncPeriod: config.SyncPeriod, FullLook: fullLook}},
		debt:        conntrack.Scope{All: true},
		belief:      belief{since: map[kernel.Binding]time.Time{}},
		staleErrors: map[int]failure.Streak{},
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
		r.state, _ = r.state.Next(Succeeded{Looked: s.result.Looked, Steered: s.steered, Unsteered: unsteered}, r.config.Clock.Now())
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
	if r.steering.unwritten() != nil { // a failure that says nothing of where packets are sent
		r.mu.Lock()
		defer r.mu.Unlock()
		r.belief.path = r.steering.written()
		return r.unsteered.Err() != nil
	}
	fault := r.steering.fault()
	switch news := r.unsteered.Changes(fault); {
	case news && fault != nil:
		r.logger.Error(fault, "Packets whose egress IP is on another node are dropped until the cause is removed; pods that leave from this node go on. Will retry; the same failure is not logged again")
	case news:
		r.logger.Info("Packets whose egress IP is on another node are sent there again")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.SteeringFault, r.belief.path = fault, r.steering.written()
	return fault != nil
}

// SourceNATPriority is the priority of the chain in which the first packet of a bound pod's flow gets its egress IP.
func (r *Reconciler) SourceNATPriority() int32 {
	switch {
	case r.config.Steering != nil:
		return steering.SourceNATPriority
	case r.config.Backend == NFTables:
		return steering.LocalSourceNATPriority
	}
	return iptables.SourceNATPriority
}

// NFTable returns the name of the nftables table by which flows get their egress IPs; "" if it is rules of iptables that say so.
func (r *Reconciler) NFTable() string {
	switch {
	case r.config.Backend != NFTables:
		return ""
	case r.path() != nil:
		return steering.Table
	}
	return steering.LocalTable
}

// path is how the steering was written; nil if it was not.
func (r *Reconciler) path() *writtenSteering {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.belief.path
}

// Compare says, for an operator and in a line each, how the rules in the kernel differ from those for d; nothing if they do not. It
// changes nothing.
func (r *Reconciler) Compare(ctx context.Context, d kernel.Desired) ([]string, error) {
	if r.NFTable() == steering.Table { // CompareSteering says how that differs
		return steering.CompareLocal(ctx, r.config.Family, kernel.Desired{})
	}
	earlier, err := r.decidesEarlier(ctx)
	if err != nil {
		return nil, err
	}
	if r.NFTable() == steering.LocalTable {
		differences, err := steering.CompareLocal(ctx, r.config.Family, d)
		return append(earlier, differences...), err
	}
	found, err := iptables.Look(ctx, r.config.Family)
	if err != nil {
		return nil, err
	}
	return append(earlier, iptables.Differences(iptables.Render(d), found)...), nil
}

// decidesEarlier says that a table of an earlier process gives flows their egress IPs, in front of the rules of this one.
func (r *Reconciler) decidesEarlier(ctx context.Context) (differences []string, err error) {
	if r.path() != nil {
		return nil, nil
	}
	stands, err := steering.Stands(ctx, r.config.Family)
	if err != nil || len(stands.Given) == 0 {
		return nil, err
	}
	return []string{"the table " + steering.Table + " of an earlier run gives flows their egress IPs until this node's address is known"}, nil
}

// CompareSteering says, for an operator and in a line each, how the kernel differs from what steers packets as d
// asks for; nothing if it does not, or if nothing is steered. It changes nothing.
func (r *Reconciler) CompareSteering(ctx context.Context, d kernel.Desired) ([]string, error) {
	path := r.path()
	if path == nil {
		return nil, nil
	}
	return steering.Compare(ctx, path.config, d, path.numbers)
}

// SteeringWarnings says, for an operator and in a line each, what of others may keep packets from being steered.
func (r *Reconciler) SteeringWarnings(ctx context.Context, d kernel.Desired) ([]string, error) {
	path := r.path()
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

	// refused: the change alone could not be written. steered: all of the steering was written, or was tried to be.
	refused, steered bool
	// unplanned are bindings in the kernel that this process has not written, as far as it knows.
	unplanned []kernel.Binding
	// stood is what the table of the steering had then.
	stood    steering.Standing
	prunable map[int]staleBackend // by number
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
		s.steered = true
		return nil, s.writeAll(ctx)
	case WriteSteering:
		s.steered = true
		return nil, s.writeSteering(ctx, s.wanted.Desired(nil))
	case PruneStale:
		s.prune(ctx)
	case DeleteFlows:
		return nil, s.deleteFlows(ctx)
	}
	return nil, nil
}
