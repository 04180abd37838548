package kubeproxy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	proxymetrics "k8s.io/kubernetes/pkg/proxy/metrics"

	"github.com/openshift/origin-node/pkg/egress"
)

// notifyPeriod is how often things are looked at for systemd's sake.
const notifyPeriod = 250 * time.Millisecond

// notifier tells systemd, if it listens, how the proxy is: READY=1 after the first
// complete sync, STATUS= what is programmed, WATCHDOG=1 while syncs succeed or none is
// due, STOPPING=1 at the end (sd_notify(3)).
type notifier struct {
	mode       string
	syncPeriod time.Duration
	// egress returns the extension's status; nil if egress SNAT is off.
	egress func() egress.Status

	ready      bool
	lastStatus string
	lastAlive  time.Time
	// proxierDue is since when the proxier has had work that it has not done.
	proxierDue time.Time
}

// run returns when ctx ends.
func (n *notifier) run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		logger.Error(err, "The service manager's watchdog settings cannot be read, so it gets no signs of life")
	}
	ticker := time.NewTicker(notifyPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			n.tell(logger, n.look(now, watchdog))
		}
	}
}

func (n *notifier) stopping() {
	n.tell(klog.Background(), []string{daemon.SdNotifyStopping, "STATUS=Stopping; the rules stay in the kernel"})
}

func (n *notifier) tell(logger klog.Logger, state []string) {
	if len(state) == 0 {
		return
	}
	if _, err := daemon.SdNotify(false, strings.Join(state, "\n")); err != nil {
		logger.Error(err, "The service manager cannot be told of the node's state", "state", state)
	}
}

// look returns what is new for systemd at now.
func (n *notifier) look(now time.Time, watchdog time.Duration) []string {
	synced, overdue := n.proxier(now)
	status := n.mode + " proxy "
	if synced {
		status += "synced"
	} else {
		status += "waiting for its first sync"
	}
	if n.egress != nil {
		e := n.egress()
		synced = synced && e.Ready && e.DueSince.IsZero()
		overdue = max(overdue, since(now, e.DueSince))
		status += fmt.Sprintf("; egress SNAT: %d bindings to %d egress IPs, %d refused", e.Bindings, e.EgressIPs, e.Refusals)
	}
	healthy := overdue < n.patience()
	if !healthy {
		status += fmt.Sprintf("; rules not written for %s, see the log", overdue.Truncate(time.Second))
	}

	var state []string
	if synced && !n.ready {
		n.ready = true
		state = append(state, daemon.SdNotifyReady)
	}
	if status != n.lastStatus {
		n.lastStatus = status
		state = append(state, "STATUS="+status)
	}
	// Thrice as often as systemd demands it, for one that comes late.
	if watchdog > 0 && healthy && now.Sub(n.lastAlive) >= watchdog/3 {
		n.lastAlive = now
		state = append(state, daemon.SdNotifyWatchdog)
	}
	return state
}

// patience is how long work may be due: as long as kube-proxy's healthz allows.
func (n *notifier) patience() time.Duration { return max(2*n.syncPeriod, 10*time.Second) }

// proxier tells whether the proxiers of all IP families have synced, and for how long the
// slowest has owed a sync. kube-proxy's own metrics tell, in every mode.
func (n *notifier) proxier(now time.Time) (synced bool, overdue time.Duration) {
	running, waiting, due := false, false, false
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		queued := gauge(proxymetrics.SyncProxyRulesLastQueuedTimestamp, family)
		done := gauge(proxymetrics.SyncProxyRulesLastTimestamp, family)
		running = running || queued > 0 // else no proxier of this family, or not started
		waiting = waiting || queued > 0 && done == 0
		due = due || queued > done
	}
	switch {
	case !due:
		n.proxierDue = time.Time{}
	case n.proxierDue.IsZero():
		n.proxierDue = now
	}
	return running && !waiting, since(now, n.proxierDue)
}

func since(now, then time.Time) time.Duration {
	if then.IsZero() {
		return 0
	}
	return now.Sub(then)
}

// gauge returns the value of a gauge by IP family; 0 before the metric is registered.
func gauge(vec *metrics.GaugeVec, family v1.IPFamily) float64 {
	gauge, ok := vec.WithLabelValues(string(family)).(interface{ Write(*dto.Metric) error })
	if !ok {
		return 0
	}
	var m dto.Metric
	if err := gauge.Write(&m); err != nil {
		return 0
	}
	return m.GetGauge().GetValue()
}
