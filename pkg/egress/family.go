package egress

import (
	"context"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portguard"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// ipFamily brings the plans of one IP family into the kernel. The families do not wait for each other.
type ipFamily struct {
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
	// wrote: a sync has changed the kernel since the last one that did not fail.
	wrote bool
	// warnedOfCIDR: the log says that a cluster CIDR is missing.
	warnedOfCIDR bool
}

// newIPFamily returns one that has the proxier write its rules anew by repair.
func newIPFamily(name v1.IPFamily, all klog.Logger, config Config, repair func()) *ipFamily {
	logger := klog.LoggerWithValues(all, "ipFamily", name)
	return &ipFamily{
		name:     name,
		logger:   logger,
		refusals: tell.NewRefusalLog(logger, clock.RealClock{}), nodeFaults: tell.NewNodeFaultLog(logger, clock.RealClock{}),
		loop: extension.NewLoop(config.MinSyncPeriod, config.SyncPeriod/2),
		reconciler: reconcile.New(all, reconcile.Config{
			Family: kernel.Family(name), Backend: config.Backend, Proxier: config.Proxier, SyncPeriod: config.SyncPeriod,
			Steering:      config.kernelSteering(),
			RepairProxier: repair,
		}),
	}
}

// guardSources returns when the sources of added bindings are checked, or when that has failed.
func (f *ipFamily) guardSources(ctx context.Context, ports *portguard.Guard, change kernel.Change) {
	if ports.Checks() {
		f.unguarded = append(f.unguarded, change.Removed...)
	}
	ports.Bind(ctx, kernel.Family(f.name), change.Added, change.Steering.Claimed, change.Networks.ClusterCIDRs)
}

// unguardSources has the sources of bindings not checked any more that have gone from the kernel.
func (f *ipFamily) unguardSources(ctx context.Context, ports *portguard.Guard) {
	ports.Unbind(ctx, f.unguarded)
	f.unguarded = nil
}

// inKernel returns what a change of the plan, and of the ways of its packets, means for the kernel.
func (f *ipFamily) inKernel(change plan.Change, ways kernel.Steering) kernel.Change {
	result := change.InKernel()
	result.Steering, result.SteeringChanged = ways, !ways.Equal(f.steering)
	f.steering = ways
	return result
}

// report tells people what a change means, whether or not it can be written.
func (f *ipFamily) report(change plan.Change, numbers plan.Numbers, faults []plan.NodeFault) {
	setPlanMetrics(f.name, numbers)
	f.warnOfMissingCIDR(numbers)
	f.refusals.Log(change.Refused, change.Lifted)
	ignoredNodeAddresses.WithLabelValues(string(f.name)).Set(float64(len(faults)))
	f.nodeFaults.Log(faults)
}

func (f *ipFamily) warnOfMissingCIDR(numbers plan.Numbers) {
	claimed := numbers.Refusals[plan.NoClusterCIDR] > 0
	if claimed && !f.warnedOfCIDR {
		f.logger.Error(nil, "No egress SNAT in this IP family because it has no cluster CIDR; set proxyArguments.cluster-cidr in the node's configuration")
	}
	f.warnedOfCIDR = claimed
}

// observe sets the metrics of a sync.
func (f *ipFamily) observe(result reconcile.Result, numbers plan.Numbers, elapsed time.Duration) {
	name := string(f.name)
	f.wrote = f.wrote || result.Written
	tell.FlowDeletions.WithLabelValues(name).Add(float64(result.FlowsDeleted))
	tell.FlowsUnbarred.WithLabelValues(name).Add(float64(result.FlowsUnbarred))
	if result.Counted {
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
func (f *ipFamily) observeLatency(changes []time.Time) {
	wrote := f.wrote
	if f.wrote = false; !wrote {
		return
	}
	for _, at := range changes {
		programmingLatency.WithLabelValues(string(f.name)).Observe(time.Since(at).Seconds())
	}
}
