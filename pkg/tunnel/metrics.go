package tunnel

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

// images/node/README.md says what each metric means; keep it up to date.

const subsystem = "tunnel"

var (
	nodeAddresses = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "node_addresses", StabilityLevel: metrics.ALPHA,
		Help: "Addresses of nodes in the rules, by IP family: those that are redirected, or with tunnel-any-destination those that are not.",
	}, []string{"ip_family"})
	redirectedPorts = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "ports", StabilityLevel: metrics.ALPHA,
		Help: "Ports that are redirected, by IP family and the tunnel server's address that they go to: secure or insecure.",
	}, []string{"ip_family", "address"})
	problemsGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "problems", StabilityLevel: metrics.ALPHA,
		Help: "What cannot be redirected now, by reason.",
	}, []string{"reason"})
	resets = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "conntrack_deletions_total", StabilityLevel: metrics.ALPHA,
		Help: "Tracked connections that were deleted because they did not go where they should, by IP family.",
	}, []string{"ip_family"})
	syncDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "sync_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time that a sync with the kernel took, by IP family and result: success or error.",
		Buckets: metrics.ExponentialBuckets(0.001, 2, 15),
	}, []string{"ip_family", "result"})
	lastSuccess = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "last_sync_success_timestamp_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Unix time at which the kernel was last known to hold the plan, by IP family.",
	}, []string{"ip_family"})
)

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(nodeAddresses, redirectedPorts, problemsGauge, resets, syncDuration, lastSuccess)
})

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
