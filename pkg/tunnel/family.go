package tunnel

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/redirect"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

// longestRest is how long a family rests after a sync at most. Changes of many nodes are one change of a set, but the first
// sync waits for the proxier's, and what comes then has to be followed within a second.
const longestRest = 200 * time.Millisecond

// retries are how long after a failed sync comes the next one.
var retries = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 10, Cap: 30 * time.Second}

// family brings the plans of one IP family into the kernel. The families do not wait for each other.
type family struct {
	extension *Extension
	name      kernel.Family
	logger    klog.Logger
	loop      *extension.Loop
	writer    *redirect.Writer
	status    atomic.Pointer[status] // nil before the first sync

	// synced: a sync has succeeded. retry is for those that fail since.
	synced bool
	retry  wait.Backoff
}

// status is how the last sync went.
type status struct {
	redirects kernel.Redirects
	problems  []plan.Problem
	// lastSync is when the kernel was last known to hold the plan; zero for never.
	lastSync time.Time
	err      error
}

func newFamily(e *Extension, name kernel.Family) *family {
	f := &family{
		extension: e, name: name, logger: klog.LoggerWithValues(e.logger, "ipFamily", name),
		loop:   extension.NewLoop(e.config.MinSyncPeriod, e.config.SyncPeriod/2),
		writer: redirect.NewWriter(e.config.Backend, name),
		retry:  retries,
	}
	f.loop.LimitRest(longestRest)
	return f
}

func (f *family) run(ctx context.Context) {
	defer f.writer.Close()
	f.loop.Run(klog.NewContext(ctx, f.logger), f.sync, func([]time.Time) {})
}

// sync is an [extension.Sync].
func (f *family) sync(ctx context.Context, _ bool) (again time.Time, failed bool) {
	began := time.Now()
	p := plan.Build(f.name, f.extension.input())
	result, err := f.writer.Sync(ctx, p.Redirects)
	s := &status{redirects: p.Redirects, problems: p.Problems, err: err}
	if err == nil {
		s.lastSync = time.Now()
	} else if last := f.status.Load(); last != nil {
		s.lastSync = last.lastSync
	}
	f.status.Store(s)
	f.extension.report()
	observe(f.name, p.Redirects, result.Ended, time.Since(began), err)
	if err != nil {
		after := f.retry.Step()
		f.logger.Error(err, "Failed to write the rules of the tunnel's ports, or to reset connections that go the wrong way; will retry", "wait", after)
		return time.Now().Add(after), true
	}
	if !f.synced {
		f.logger.Info("The rules of the tunnel's ports are in place", "nodes", len(p.Redirects.Nodes), "securePorts", p.Redirects.Secure.Ports, "insecurePorts", p.Redirects.Insecure.Ports)
	}
	f.synced, f.retry = true, retries
	f.logger.V(2).Info("Synced the rules of the tunnel's ports", "nodes", len(p.Redirects.Nodes), "changed", result.Changed, "connectionsReset", result.Ended, "elapsed", time.Since(began))
	return time.Time{}, false
}
