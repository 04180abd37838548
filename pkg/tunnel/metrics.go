package tunnel

import (
	"time"

	"k8s.io/component-base/metrics"

	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

// images/node/README.md says what each metric means; keep it up to date.
var (
	exported = extension.NewMetrics("tunnel")

	nodeAddresses = exported.Gauge("node_addresses",
		"Addresses of nodes in the rules, by IP family: those that are redirected, or with tunnel-any-destination those that are not.", "ip_family")
	redirectedPorts = exported.Gauge("ports",
		"Ports that are redirected, by IP family and the tunnel server's address that they go to: secure or insecure.", "ip_family", "address")
	problemsGauge = exported.Gauge("problems",
		"What cannot be redirected now, by reason.", "reason")
	resets = exported.Counter("conntrack_deletions_total",
		"Tracked connections that were deleted because they did not go where they should, by IP family.", "ip_family")
	syncDuration = exported.Histogram("sync_duration_seconds",
		"Time that a sync with the kernel took, by IP family and result: success or error.", metrics.ExponentialBuckets(0.001, 2, 15), "ip_family", "result")
	lastSuccess = exported.Gauge("last_sync_success_timestamp_seconds",
		"Unix time at which the kernel was last known to hold the plan, by IP family.", "ip_family")
)

// Metrics are the definitions of all metrics of the tunnel.
func Metrics() []extension.Metric { return exported.Definitions() }

func setProblemMetrics(problems []plan.Problem) {
	count := map[plan.Reason]int{}
	for _, p := range problems {
		count[p.Reason]++
	}
	for _, reason := range plan.Reasons {
		problemsGauge.WithLabelValues(string(reason)).Set(float64(count[reason]))
	}
}

// observe records how a sync went.
func observe(family kernel.Family, r kernel.Redirects, ended int, elapsed time.Duration, err error) {
	name, result := string(family), "success"
	if err != nil {
		result = "error"
	} else {
		lastSuccess.WithLabelValues(name).SetToCurrentTime()
		nodeAddresses.WithLabelValues(name).Set(float64(len(r.Nodes)))
		redirectedPorts.WithLabelValues(name, "secure").Set(float64(len(r.Secure.Ports)))
		redirectedPorts.WithLabelValues(name, "insecure").Set(float64(len(r.Insecure.Ports)))
	}
	resets.WithLabelValues(name).Add(float64(ended))
	syncDuration.WithLabelValues(name, result).Observe(elapsed.Seconds())
}
