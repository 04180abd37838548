package egress

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portguard"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// family brings the plans of one IP family into the kernel. The families do not wait for each other.
type family struct {
	name       v1.IPFamily
	logger     klog.Logger
	loop       *extension.Loop
	reconciler *reconcile.Reconciler
	refusals   *tell.RefusalLog
	nodeFaults *tell.NodeFaultLog
	// unguarded are bindings that have been removed, and whose pods' addresses are still guarded.
	unguarded []kernel.Binding
	// steering is that of the last sync.
	steering kernel.Steering
	// planned: there was a sync, so there is a plan.
	planned atomic.Bool
	// wrote: the last sync has changed the kernel.
	wrote bool
	// warnedOfCIDR: the log says that a cluster CIDR is missing.
	warnedOfCIDR bool
}

func newFamily(e *Extension, name v1.IPFamily) *family {
	logger := klog.LoggerWithValues(e.logger, "ipFamily", name)
	return &family{
		name:     name,
		logger:   logger,
		refusals: tell.NewRefusalLog(logger, clock.RealClock{}), nodeFaults: tell.NewNodeFaultLog(logger, clock.RealClock{}),
		loop: extension.NewLoop(e.config.MinSyncPeriod, e.config.SyncPeriod/2),
		reconciler: reconcile.New(e.logger, reconcile.Config{
			Family: kernel.Family(name), Backend: e.config.Backend, Proxier: e.config.Proxier, SyncPeriod: e.config.SyncPeriod,
			Steering:      e.config.kernelSteering(),
			RepairProxier: func() { e.proxier.Repair() },
		}),
	}
}

// sync makes a plan of an IP family, tells people of it, and writes it: see [extension.Sync].
func (e *Extension) sync(ctx context.Context, f *family, regular bool) (again time.Time, failed bool) {
	if regular {
		f.reconciler.RequestLook()
	}
	change := e.update(f, regular)
	e.pool.Sync(f.name)
	e.sourcePorts.Synced(f.name, regular)
	ways, wake := e.steerer.Sync(f.name)
	p := cluster.Planned{State: e.state, Family: f.name, Steering: ways}
	numbers := p.Numbers()
	f.report(change, numbers, e.state.NodeFaults(f.name))
	e.events.Update(map[v1.IPFamily]plan.Change{f.name: change})
	f.planned.Store(true)
	defer e.report.SyncEnded()
	if !slices.Contains(e.proxier.Served(), f.name) {
		return time.Time{}, false
	}
	began := time.Now()
	inKernel := f.inKernel(change, ways)
	f.guardSources(ctx, e.ports, inKernel)
	result := f.reconciler.Sync(ctx, p, inKernel, e.state.Primary(e.config.NodeName, f.name))
	if result.Err == nil && !result.Waiting {
		f.unguardSources(ctx, e.ports)
	}
	e.steerer.Synced(f.name, e.proxier.Served())
	f.wrote = result.Written
	f.observe(result, numbers, time.Since(began))
	return holders.Earlier(holders.Earlier(result.Wake, wake), e.state.NextChoice(f.name)), result.Err != nil || result.Waiting
}

// guardSources returns when the sources of added bindings are checked, or when that has failed.
func (f *family) guardSources(ctx context.Context, ports *portguard.Guard, change kernel.Change) {
	if ports.Checks() {
		f.unguarded = append(f.unguarded, change.Removed...)
	}
	ports.Bind(ctx, kernel.Family(f.name), change.Added, change.Networks.ClusterCIDRs)
}

// unguardSources has the sources of bindings not checked any more that have gone from the kernel.
func (f *family) unguardSources(ctx context.Context, ports *portguard.Guard) {
	ports.Unbind(ctx, f.unguarded)
	f.unguarded = nil
}

// inKernel returns what a change of the plan, and of the ways of its packets, means for the kernel.
func (f *family) inKernel(change plan.Change, ways kernel.Steering) kernel.Change {
	result := change.InKernel()
	result.Steering, result.SteeringChanged = ways, !ways.Equal(f.steering)
	f.steering = ways
	return result
}

// update brings the plan up to date and returns what that changed.
func (e *Extension) update(f *family, regular bool) plan.Change {
	e.state.SetHolders(f.name, e.steerer.Holders(f.name))
	if !regular || !e.config.Audit {
		return e.state.Update(f.name)
	}
	change, right := e.state.Audit(f.name)
	if !right {
		f.logger.Error(nil, "The plan that followed the changes is not the plan for the objects. This is a fault of the program: please report it, and restart the node")
	}
	return change
}

// report tells people what a change means, whether or not it can be written.
func (f *family) report(change plan.Change, numbers plan.Numbers, faults []plan.NodeFault) {
	setPlanMetrics(f.name, numbers)
	f.warnOfMissingCIDR(numbers)
	f.refusals.Log(change.Refused, change.Lifted)
	ignoredNodeAddresses.WithLabelValues(string(f.name)).Set(float64(len(faults)))
	f.nodeFaults.Log(faults)
}

func (f *family) warnOfMissingCIDR(numbers plan.Numbers) {
	claimed := numbers.Refusals[plan.NoClusterCIDR] > 0
	if claimed && !f.warnedOfCIDR {
		f.logger.Error(nil, "No egress SNAT in this IP family because it has no cluster CIDR; set proxyArguments.cluster-cidr in the node's configuration")
	}
	f.warnedOfCIDR = claimed
}

// observe sets the metrics of a sync.
func (f *family) observe(result reconcile.Result, numbers plan.Numbers, elapsed time.Duration) {
	name := string(f.name)
	tell.FlowDeletions.WithLabelValues(name).Add(float64(result.FlowsDeleted))
	tell.FlowsUnbarred.WithLabelValues(name).Add(float64(result.FlowsUnbarred))
	if result.Rules > 0 || result.Written {
		rulesGauge.WithLabelValues(name).Set(float64(result.Rules))
	}
	if result.Idle {
		return
	}
	observeSync(f.name, elapsed, result.Err)
	if result.Err == nil {
		lastSuccess.WithLabelValues(name).SetToCurrentTime()
		f.logger.V(2).Info("Synced egress SNAT rules", "bindings", numbers.Bindings, "looked", result.Looked, "changed", result.Written, "elapsed", elapsed)
	}
}

// observeLatency is told the times of the changes that are in the kernel now, if that is another one
// for them.
func (f *family) observeLatency(changes []time.Time) {
	if !f.wrote {
		return
	}
	for _, at := range changes {
		programmingLatency.WithLabelValues(string(f.name)).Observe(time.Since(at).Seconds())
	}
}
