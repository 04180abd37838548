package egress

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/proxy"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// Config is what an Extension has to know beside the objects.
type Config struct {
	// ClusterCIDRs are the networks of the cluster's pods, of both IP families. In a
	// family without one nothing is written.
	ClusterCIDRs []netip.Prefix
	// Exclusions are further destinations that are never SNATed, of both IP families.
	Exclusions []netip.Prefix
	// MinSyncPeriod is the least time between two syncs.
	MinSyncPeriod time.Duration
	// SyncPeriod is the time within which rules that somebody else has removed are back.
	// Twice in it the kernel is looked at.
	SyncPeriod time.Duration
}

// Extension keeps the egress rules of a node. Give it to the proxiers
// (proxy.ContextWithSyncExtension), then Wrap them.
type Extension struct {
	ctx     context.Context
	logger  klog.Logger
	config  Config
	state   *state
	syncers map[v1.IPFamily]*syncer
	loop    sync.WaitGroup

	// proxier and served are set once, by Wrap.
	proxier proxy.Provider
	served  []v1.IPFamily

	// wake asks the loop for a sync; it holds one request.
	wake chan struct{}

	topology sync.Mutex // held while the proxier is told its labels
	labels   map[string]string

	mu     sync.Mutex // protects the following fields
	synced synced
	// dueSince is when the oldest request came that no sync has answered; zero if none.
	dueSince time.Time
	status   Status
}

// synced tells which objects are known in full. Until all are, a plan would drop rules
// that are right.
type synced struct{ services, slices bool }

func (s synced) all() bool { return s.services && s.slices }

// Status tells how things stand.
type Status struct {
	// Ready: the plan has been written, once, and its place looked at after the
	// proxier's first sync, in every IP family that the proxier serves.
	Ready bool
	// DueSince is when the oldest change came that is not in the kernel; zero if none.
	DueSince time.Time
	// Numbers over both IP families.
	Bindings, EgressIPs, Refusals int
}

var _ proxy.SyncExtension = &Extension{}

// New returns an Extension whose loop ends with ctx. Its rules stay then.
func New(ctx context.Context, config Config) *Extension {
	registerMetrics()
	e := &Extension{
		ctx:     ctx,
		logger:  klog.LoggerWithName(klog.FromContext(ctx), "egress"),
		config:  config,
		state:   newState(),
		syncers: map[v1.IPFamily]*syncer{},
		wake:    make(chan struct{}, 1),
	}
	for _, family := range families {
		e.syncers[family] = newSyncer(family, e.logger, config)
	}
	return e
}

// Status may be called at any time.
func (e *Extension) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	status := e.status
	status.DueSince = e.dueSince
	return status
}

// Wait returns when the loop has ended, if it ever began: after that nothing is written.
func (e *Extension) Wait() { e.loop.Wait() }

// AfterSync is called by the proxier, with its lock held: it only leaves a note.
func (e *Extension) AfterSync(family v1.IPFamily, fullSync bool) {
	if fullSync {
		e.syncers[family].noteFullSync()
		e.request()
	}
}

// noteChange asks for a sync if changed.
func (e *Extension) noteChange(changed bool) {
	if changed {
		e.request()
	}
}

// noteSynced tells whether all objects are known now.
func (e *Extension) noteSynced(set func(*synced)) bool {
	e.mu.Lock()
	set(&e.synced)
	all := e.synced.all()
	e.mu.Unlock()
	e.request()
	return all
}

// request asks the loop for a sync. It does not block.
func (e *Extension) request() {
	e.mu.Lock()
	if e.dueSince.IsZero() {
		e.dueSince = time.Now()
	}
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default: // a request waits already
	}
}

// run is the extension's loop. It returns when the context ends.
func (e *Extension) run() {
	look := time.NewTicker(max(e.config.SyncPeriod/2, time.Millisecond))
	defer look.Stop()
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-look.C:
			for _, s := range e.syncers {
				s.noteLook()
			}
		case <-retry.C:
		case <-e.wake:
		}
		if again := e.sync(); again > 0 {
			retry.Reset(again)
		}
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(e.config.MinSyncPeriod):
		}
	}
}

// sync brings both families up to date. It returns after which time a family that failed
// wants to be tried again, or 0.
func (e *Extension) sync() (again time.Duration) {
	begun := time.Now()
	e.mu.Lock()
	known := e.synced.all()
	e.mu.Unlock()
	if !known {
		return 0
	}
	status := Status{Ready: true}
	for _, family := range families {
		s := e.syncers[family]
		in := e.state.input(family, e.config)
		in.NoProxier = !slices.Contains(e.served, family)
		p := plan.Build(in)
		s.report(p)
		status.Bindings += len(p.Bindings)
		status.EgressIPs += len(p.EgressIPs())
		status.Refusals += len(p.Refusals)
		if in.NoProxier {
			continue
		}
		if wait := s.trySync(e.ctx, p, e.repairProxier); wait > 0 {
			again = shorter(again, wait)
		}
		status.Ready = status.Ready && s.complete
	}
	e.finish(begun, status, again > 0)
	return again
}

// finish records how a sync that began at begun went.
func (e *Extension) finish(begun time.Time, status Status, failed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if status.Ready && !e.status.Ready {
		e.logger.Info("Egress SNAT rules are in place", "bindings", status.Bindings, "egressIPs", status.EgressIPs, "refusals", status.Refusals)
	}
	e.status = status
	switch {
	case failed && e.dueSince.IsZero():
		e.dueSince = begun
	case failed: // what was due still is
	case len(e.wake) > 0: // a request came meanwhile
		e.dueSince = begun
	default:
		e.dueSince = time.Time{}
	}
}

// setTopology tells the proxier its node's labels.
func (e *Extension) setTopology(labels map[string]string) {
	e.topology.Lock()
	defer e.topology.Unlock()
	e.labels = labels
	e.proxier.OnTopologyChange(labels)
}

// repairProxier lets the proxier write all of its rules anew. A change of topology is the
// one occasion of the Provider interface for that. The proxier's lock may be held for as
// long as a sync takes, hence the goroutine.
func (e *Extension) repairProxier() {
	go func() {
		e.topology.Lock()
		defer e.topology.Unlock()
		e.proxier.OnTopologyChange(e.labels)
	}()
}

// shorter returns the shorter of two times, not counting 0.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b < a {
		return b
	}
	return a
}
