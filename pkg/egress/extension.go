package egress

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/proxy"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// Config is what an Extension has to know beside the objects. Networks are of both IP
// families.
type Config struct {
	// NodeName is the name of this node's Node object, Version the program's; for people.
	NodeName, Version string
	// Backend is how rules are written, Proxier how the proxier writes its own; iptables if
	// empty.
	Backend, Proxier Backend
	// ClusterCIDRs are the networks of the cluster's pods. If there are none, OpenShift's
	// Network object tells them. In a family without one nothing is written.
	ClusterCIDRs []netip.Prefix
	// Exclusions are further destinations that are never SNATed.
	Exclusions []netip.Prefix
	// ExcludeNodes: neither are the addresses of the cluster's nodes.
	ExcludeNodes bool
	// AllowNodeIPs: an external IP may be a node's primary address.
	AllowNodeIPs bool
	// AllowedCIDRs are where egress IPs may lie; nil for anywhere.
	AllowedCIDRs []netip.Prefix
	// NamespacePolicies are where those of a namespace may lie, by its name.
	NamespacePolicies map[string]plan.Policy
	// AllProtocols: a pod is bound for every IP protocol, not only for those of the ports
	// of its Service.
	AllProtocols bool
	// LoadBalancerIPs: a Service without external IPs has those that its load balancer
	// gave it.
	LoadBalancerIPs bool
	// MinSyncPeriod is the least time between two syncs.
	MinSyncPeriod time.Duration
	// SyncPeriod is the time within which rules that somebody else has removed are back.
	// Twice in it the kernel is looked at.
	SyncPeriod time.Duration
}

// Extension keeps the egress rules of a node. Give it to the proxiers
// (proxy.ContextWithSyncExtension), then Wrap them, then Watch.
type Extension struct {
	ctx     context.Context
	logger  klog.Logger
	config  Config
	state   *state
	syncers map[v1.IPFamily]*syncer
	events  *eventRecorder
	loop    sync.WaitGroup

	// proxier and served are set once, by Wrap.
	proxier proxy.Provider
	served  []v1.IPFamily

	// explain is that of [Clients]; Watch sets it.
	explain func(error) error

	// wake asks the loop for a sync; it holds one request.
	wake chan struct{}
	// latencies are those of the changes that are not in the kernel.
	latencies latencies

	topology sync.Mutex // held while the proxier is told its labels
	labels   map[string]string

	mu sync.Mutex // protects the following fields
	// missing are the kinds of objects that are not known in full. As long as there is
	// one, a plan would drop rules that are right, or grant what is to be refused.
	missing map[string]bool
	// dueSince is when the oldest request came that no sync has answered; zero if none.
	dueSince time.Time
	summary  Summary
	// planned: there has been a sync, so there is a plan. changed is closed at the next one.
	planned bool
	changed chan struct{}
}

// The kinds of objects that plans depend on.
const (
	services     = "Services"
	slicesKind   = "EndpointSlices"
	serviceCIDRs = "ServiceCIDRs"
	nodes        = "Nodes"
	networks     = networkSource
)

// Summary tells how things stand, in short.
type Summary struct {
	// Ready: the plan has been written, in front of all rules of the proxier's first sync,
	// which is over, in every IP family that the proxier serves.
	Ready bool
	// Missing are the kinds of objects that are waited for.
	Missing []string
	// DueSince is when the oldest change came that is not in the kernel; zero if none, or
	// as long as objects are waited for: that is no fault that a restart would mend.
	DueSince time.Time
	// Numbers over both IP families.
	Bindings, EgressIPs, Refusals int
}

var _ proxy.SyncExtension = &Extension{}

// New returns an Extension whose loop ends with ctx. Its rules stay then.
func New(ctx context.Context, config Config) *Extension {
	e := &Extension{
		ctx:     ctx,
		logger:  klog.LoggerWithName(klog.FromContext(ctx), "egress"),
		config:  config,
		state:   newState(config),
		syncers: map[v1.IPFamily]*syncer{},
		explain: func(err error) error { return err },
		wake:    make(chan struct{}, 1),
		missing: map[string]bool{services: true, slicesKind: true, serviceCIDRs: true, nodes: true, networks: true},
		changed: make(chan struct{}),
	}
	for _, family := range families {
		e.syncers[family] = newSyncer(family, e.logger, config)
	}
	e.events = newEventRecorder(e.logger, config.NodeName, e.state)
	registerMetrics(e)
	return e
}

// Summary may be called at any time.
func (e *Extension) Summary() Summary {
	e.mu.Lock()
	defer e.mu.Unlock()
	summary := e.summary
	summary.Missing = slices.Sorted(maps.Keys(e.missing))
	if len(summary.Missing) == 0 {
		summary.DueSince = e.dueSince
	}
	return summary
}

// Wait returns when all that the extension has begun has ended: after that nothing is
// written.
func (e *Extension) Wait() { e.loop.Wait() }

// AfterSync is called by the proxier, with its lock held: it only leaves a note.
func (e *Extension) AfterSync(family v1.IPFamily, fullSync bool) {
	if fullSync {
		e.syncers[family].noteFullSync()
		e.request()
	}
}

// noteChange asks for a sync if changed, for an object that changed at a time.
func (e *Extension) noteChange(changed bool, at time.Time) {
	if !changed {
		return
	}
	e.latencies.note(at, e.served)
	e.request()
}

// noteKnown tells that all objects of a kind are known. What came before the last of them was not due.
func (e *Extension) noteKnown(kind string) {
	e.mu.Lock()
	if waited := e.missing[kind]; waited && len(e.missing) == 1 {
		e.dueSince = time.Now()
	}
	delete(e.missing, kind)
	waitingForObjects.WithLabelValues(kind).Set(0)
	e.mu.Unlock()
	e.request()
}

func (e *Extension) waitsFor(kind string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.missing[kind]
}

// request asks the loop for a sync. It does not block.
func (e *Extension) request() {
	e.mu.Lock()
	defer e.mu.Unlock() // so that a sync that ends now sees both or neither
	if e.dueSince.IsZero() {
		e.dueSince = time.Now()
	}
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
			e.remindOfMissing()
			for _, s := range e.syncers {
				s.noteLook()
			}
		case <-retry.C:
		case <-e.wake:
		}
		e.awaitQuiet() // whatever was the reason, changes may be coming
		began := time.Now()
		if again := e.sync(); again > 0 {
			retry.Reset(again)
		}
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(e.rest(time.Since(began))):
		}
	}
}

// rest returns how long to wait after a sync that took so long: at least as long, within limits. In
// a large table of iptables a change takes a second, in which nobody else can write.
func (e *Extension) rest(worked time.Duration) time.Duration {
	return max(e.config.MinSyncPeriod, min(worked, time.Second))
}

// awaitQuiet returns when no change has come for a moment, or after the least time between
// two syncs. Changes that were made together come one by one, in any order after a watch
// had to begin anew: in their middle an address could seem to be somebody else's.
func (e *Extension) awaitQuiet() {
	const moment = 10 * time.Millisecond
	limit := time.After(e.config.MinSyncPeriod)
	for {
		select {
		case <-e.wake:
		case <-time.After(min(moment, e.config.MinSyncPeriod)):
			return
		case <-limit:
			return
		case <-e.ctx.Done():
			return
		}
	}
}

// remindOfMissing says what is waited for.
func (e *Extension) remindOfMissing() {
	if missing := e.Summary().Missing; len(missing) > 0 {
		e.logger.Error(nil, "Egress SNAT rules are not written, for not all objects are known; the rules in the kernel stay as they are", "waitingFor", strings.Join(missing, ", "))
	}
}

// sync brings both families up to date. It returns after which time one wants to be tried again or
// looked at again, or 0.
func (e *Extension) sync() (again time.Duration) {
	begun := time.Now()
	if len(e.Summary().Missing) > 0 {
		return 0
	}
	noted := e.latencies.noted()
	planChanges := map[v1.IPFamily]plan.Change{}
	summary, failed := Summary{Ready: true}, false
	for _, family := range families {
		s, p := e.syncers[family], planned{e.state, family}
		planChanges[family] = e.update(s)
		s.report(planChanges[family], p)
		summary.count(p.Numbers())
	}
	e.events.update(planChanges)
	for _, family := range e.served {
		s := e.syncers[family]
		s.nodeIP = e.state.primary(e.config.NodeName, family)
		wait := s.trySync(e.ctx, planned{e.state, family}, planChanges[family], e.repairProxier)
		if failed = failed || wait > 0; wait == 0 {
			wait = s.untilLook()
			e.latencies.observe(family, noted[family])
		}
		again = shorter(again, wait)
		summary.Ready = summary.Ready && s.complete
	}
	e.finish(begun, summary, failed)
	return again
}

// update brings the plan of a syncer's family up to date and returns what that changed. After a
// full sync of the proxier it is made from all objects at once, for comparison.
func (e *Extension) update(s *syncer) plan.Change {
	if !s.takeAudit() {
		return e.state.update(s.family)
	}
	change, right := e.state.audit(s.family)
	if !right {
		s.logger.Error(nil, "The plan that followed the changes was not the plan for the objects; taking the latter. This is a fault of the program: please report it")
		s.distrust()
	}
	return change
}

// count adds the numbers of an IP family.
func (s *Summary) count(numbers plan.Numbers) {
	s.Bindings += numbers.Bindings
	s.EgressIPs += numbers.EgressIPs
	for _, n := range numbers.Refusals {
		s.Refusals += n
	}
}

// finish records how a sync that began at begun went.
func (e *Extension) finish(begun time.Time, summary Summary, failed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if summary.Ready && !e.summary.Ready {
		e.logger.Info("Egress SNAT rules are in place", "bindings", summary.Bindings, "egressIPs", summary.EgressIPs, "refusals", summary.Refusals)
	}
	e.summary, e.planned = summary, true
	close(e.changed)
	e.changed = make(chan struct{})
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
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
