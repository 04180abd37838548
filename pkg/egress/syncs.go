package egress

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// Run is part of [extension.Extension].
func (e *Extension) Run(ctx context.Context) {
	e.gate.Await(ctx, e.config.SyncPeriod/2, func(missing string) {
		e.logger.Error(nil, "Egress SNAT rules are not written because some objects are not known yet; the rules in the kernel stay as they are", "waitingFor", missing)
	})
	e.warnOfUnknownNode()
	var running sync.WaitGroup
	for _, f := range e.families {
		running.Go(func() {
			f.loop.Run(ctx, func(ctx context.Context, regular bool) (time.Time, bool) { return e.sync(ctx, f, regular) }, f.observeLatency)
		})
	}
	running.Wait()
}

// warnOfUnknownNode says if no Node object has this node's name: EndpointSlices that name their pods'
// node then place none here.
func (e *Extension) warnOfUnknownNode() {
	if names := e.state.NodeNames(); len(names) > 0 && !slices.Contains(names, e.config.NodeName) && e.config.Scope != placement.Cluster {
		e.logger.Error(nil, "No Node object has the name of this node, so pods on it may leave without an egress IP; set nodeName in the node's configuration to the name of its Node",
			"nodeName", e.config.NodeName)
	}
}

// sync makes a plan of an IP family, tells people of it, and writes it: see [extension.Sync].
func (e *Extension) sync(ctx context.Context, f *ipFamily, regular bool) (again time.Time, failed bool) {
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
	e.events.Update(f.name, change)
	f.planned.Store(true)
	defer e.Reporter.SyncEnded()
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
	f.observe(result, numbers, time.Since(began))
	return holders.Earlier(holders.Earlier(result.Wake, wake), e.state.NextChoice(f.name)), result.Err != nil || result.Waiting
}

// update brings the plan up to date and returns what that changed.
func (e *Extension) update(f *ipFamily, regular bool) plan.Change {
	e.state.SetHolders(f.name, e.steerer.Holders(f.name))
	if !regular || !e.config.Audit {
		return e.state.Update(f.name)
	}
	change, right := e.state.Audit(f.name)
	if !right {
		f.logger.Error(nil, "The plan that was updated change by change differs from a plan made of all objects. This is a bug: please report it, and restart the node")
	}
	return change
}

// lastFailure returns why the last sync of one of these IP families failed, or nil.
func (e *Extension) lastFailure(families []v1.IPFamily) error {
	var errs []error
	for _, name := range families {
		errs = append(errs, e.families[name].reconciler.Status().Failure)
	}
	return errors.Join(errs...)
}

// awaitSyncs returns when a sync that began after the call has succeeded in each of these IP families.
func (e *Extension) awaitSyncs(ctx context.Context, families []v1.IPFamily, look bool) error {
	errs := make([]error, len(families))
	var waiting sync.WaitGroup
	for i, name := range families {
		f := e.families[name]
		if look {
			f.reconciler.RequestFullLook()
		}
		waiting.Go(func() { errs[i] = f.loop.Await(ctx) })
	}
	waiting.Wait()
	return errors.Join(errs...)
}
