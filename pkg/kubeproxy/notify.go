package kubeproxy

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	proxymetrics "k8s.io/kubernetes/pkg/proxy/metrics"

	"github.com/openshift/origin-node/pkg/extension"
)

// notifyPeriod is how often the state for systemd is checked until it is ready, readyPeriod how often after that. Where nobody listens,
// it is checked every watchPeriod, and a node ends when its rules have been due for patience plus mostLate: as with the unit's watchdog,
// whatever runs it starts it anew.
const (
	notifyPeriod, readyPeriod = 250 * time.Millisecond, time.Second
	watchPeriod, mostLate     = 10 * time.Second, 2 * time.Minute
)

// notifier notifies systemd, if it listens, of the proxy's state (sd_notify(3)): READY=1 after the
// first complete sync of the proxier and of all extensions, STATUS= with their numbers, WATCHDOG=1 while syncs succeed or none
// is due, STOPPING=1 at the end. Without systemd, as in a container, it does what the watchdog would.
type notifier struct {
	mode       string
	syncPeriod time.Duration
	// queued returns when the proxier of each IP family was last asked for a sync, and synced when it last completed one, in seconds of Unix
	// time. Knows tells whether it knows all Services and EndpointSlices: before that it writes nothing.
	queued, synced func() map[string]float64
	knows          func() bool
	// extensions return the summaries of those that are switched on.
	extensions []func() extension.Summary
	// refused, if not nil, is told what the API server answers while it is waited for; it may be called again and again.
	refused func(error)
	// invalid tells whether the configuration has become invalid, so that the node continues with the old one.
	invalid func() bool

	ready      bool
	lastStatus string
	lastAlive  time.Time
	debts      map[string]debt
}

// debt is the sync that the proxier of an IP family has not done yet.
type debt struct {
	// done is when it last synced.
	done float64
	// since is when a sync first was due after that, or zero.
	since time.Time
}

// run returns when ctx ends; before that with an error, if systemd does not listen, and rules have not been written for so long that the node
// is to be started anew.
func (n *notifier) run(ctx context.Context) error {
	if os.Getenv("NOTIFY_SOCKET") == "" { // nobody listens
		return n.watch(ctx)
	}
	logger := klog.FromContext(ctx)
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		logger.Error(err, "Cannot read the watchdog settings of the service manager; the watchdog is not notified")
	}
	ticker := time.NewTicker(notifyPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			n.tell(logger, n.look(now, watchdog, n.queued(), n.synced()))
			if n.ready {
				ticker.Reset(settledPeriod(watchdog))
			}
		}
	}
}

// watch is run where nobody listens.
func (n *notifier) watch(ctx context.Context) error {
	ticker := time.NewTicker(watchPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			if !n.knows() {
				n.debts = nil // it waits for objects, which no restart would bring: rules are due when they have come
			}
			_, overdue := n.proxier(now, n.queued(), n.synced())
			for _, summary := range n.extensions {
				overdue = max(overdue, since(now, summary().DueSince))
			}
			if overdue >= n.patience()+mostLate {
				return fmt.Errorf("rules, or this node's part in the pool, have been due for %s: see the log. The node ends, to be started anew; what is in the kernel stays", overdue.Truncate(time.Second))
			}
		}
	}
}

// lastQueued is when the proxier of each IP family was last asked for a sync.
func lastQueued() map[string]float64 { return byFamily(proxymetrics.SyncProxyRulesLastQueuedTimestamp) }

// lastSynced is when it last completed one.
func lastSynced() map[string]float64 { return byFamily(proxymetrics.SyncProxyRulesLastTimestamp) }

// settledPeriod is how often the state is checked once it is ready; often enough for a watchdog, if it is not zero.
func settledPeriod(watchdog time.Duration) time.Duration {
	if watchdog > 0 {
		return min(readyPeriod, watchdog/3)
	}
	return readyPeriod
}

func (n *notifier) stopping() {
	n.tell(klog.Background(), []string{daemon.SdNotifyStopping, "STATUS=Stopping; the rules stay in the kernel"})
}

func (n *notifier) tell(logger klog.Logger, state []string) {
	if len(state) == 0 {
		return
	}
	if _, err := daemon.SdNotify(false, strings.Join(state, "\n")); err != nil {
		logger.Error(err, "Cannot notify the service manager", "state", state)
	}
}

// look returns the notifications that are due at now. queued and done are the times at which the
// proxier of each IP family was last asked for a sync and last completed one.
func (n *notifier) look(now time.Time, watchdog time.Duration, queued, done map[string]float64) []string {
	synced, overdue := n.proxier(now, queued, done)
	status := n.mode + " proxy "
	if synced {
		status += "synced"
	} else {
		status += "waiting for its first sync"
	}
	for _, summary := range n.extensions {
		e := summary()
		synced = synced && e.Ready
		overdue = max(overdue, since(now, e.DueSince))
		if len(e.Missing) > 0 {
			status += "; " + e.Name + " waiting for " + strings.Join(e.Missing, ", ")
		} else {
			status += "; " + e.Name + ": " + e.Numbers
		}
	}
	healthy := overdue < n.patience()
	if !healthy {
		status += fmt.Sprintf("; rules, or this node's part in the pool, have been due for %s, see the log", overdue.Truncate(time.Second))
	}
	if n.invalid() {
		status += "; the changed configuration is not valid and not used, see the log"
	}
	status = strings.ReplaceAll(status, "\n", " ") // systemd reads the next line as something else

	var state []string
	if synced && !n.ready {
		n.ready = true
		state = append(state, daemon.SdNotifyReady)
	}
	if status != n.lastStatus {
		n.lastStatus = status
		state = append(state, "STATUS="+status)
	}
	// Three times as often as systemd requires, because one may be late.
	if watchdog > 0 && healthy && now.Sub(n.lastAlive) >= watchdog/3 {
		n.lastAlive = now
		state = append(state, daemon.SdNotifyWatchdog)
	}
	return state
}

// patience is how long a sync may be due: as long as in kube-proxy's healthz.
func (n *notifier) patience() time.Duration { return max(2*n.syncPeriod, 10*time.Second) }

// proxier returns whether the proxiers of all IP families have synced, and for how long a sync of
// the slowest has been due. A completed sync counts even if the next one is due already.
func (n *notifier) proxier(now time.Time, queued, done map[string]float64) (synced bool, overdue time.Duration) {
	if n.debts == nil {
		n.debts = map[string]debt{}
	}
	synced = len(queued) > 0
	for family, when := range queued {
		d := n.debts[family]
		switch {
		case when <= done[family]:
			d.since = time.Time{}
		case d.since.IsZero() || d.done != done[family]:
			d.since = now
		}
		d.done = done[family]
		n.debts[family] = d
		synced = synced && d.done > 0
		overdue = max(overdue, since(now, d.since))
	}
	return synced, overdue
}

func since(now, then time.Time) time.Duration {
	if then.IsZero() {
		return 0
	}
	return now.Sub(then)
}

// byFamily returns the values of one of kube-proxy's gauges by its label ip_family. It collects
// them, because a lookup by label would create the gauge.
func byFamily(vec *metrics.GaugeVec) map[string]float64 {
	values := map[string]float64{}
	if !vec.IsCreated() {
		return values // not registered yet
	}
	collected := make(chan prometheus.Metric, 2) // one for each IP family, so that the two goroutines do not wait for each other
	go func() {
		defer close(collected)
		vec.GaugeVec.Collect(collected)
	}()
	for metric := range collected {
		var m dto.Metric
		if err := metric.Write(&m); err != nil {
			continue // a gauge cannot fail
		}
		for _, label := range m.GetLabel() {
			if label.GetName() == "ip_family" {
				values[label.GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return values
}
