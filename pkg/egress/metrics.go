package egress

import (
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

const subsystem = "egress_snat"

var (
	bindings = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "bindings", StabilityLevel: metrics.ALPHA,
		Help: "Pod addresses and protocols that leave from an egress IP, by IP family.",
	}, []string{"ip_family"})
	refusals = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "refusals", StabilityLevel: metrics.ALPHA,
		Help: "Claims and bindings that are refused now, by IP family and reason.",
	}, []string{"ip_family", "reason"})
	claims = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "claims", StabilityLevel: metrics.ALPHA,
		Help: "Services that claim an egress IP, granted or refused, by IP family.",
	}, []string{"ip_family"})
	rulesGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "rules", StabilityLevel: metrics.ALPHA,
		Help: "Rules in the chains of egress SNAT, by IP family.",
	}, []string{"ip_family"})
	flowDeletions = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "conntrack_deletions_total", StabilityLevel: metrics.ALPHA,
		Help: "Tracked flows that were deleted because they wore a wrong identity, by IP family.",
	}, []string{"ip_family"})
	programmingLatency = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "network_programming_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time from a change of an object (for EndpointSlices, the time that their controller gives; for others, when the change came here) until the rules of both IP families that follow from it were in the kernel.",
		Buckets: metrics.ExponentialBuckets(0.01, 2, 16),
	})
	noClusterCIDR = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "no_cluster_cidr", StabilityLevel: metrics.ALPHA,
		Help: "1 if no rules are written in this IP family because no cluster CIDR of it is known, else 0.",
	}, []string{"ip_family"})
	syncDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "sync_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time that a successful sync with the kernel took, by IP family.",
		Buckets: metrics.ExponentialBuckets(0.001, 2, 15),
	}, []string{"ip_family"})
	syncFailures = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "sync_failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Syncs that failed: rules were not written, and are as they were, or flows with a wrong identity could not be deleted. By IP family.",
	}, []string{"ip_family"})
	lastSuccess = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "last_sync_success_timestamp_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Unix time at which rules were last written, or looked at and found to be the plan, by IP family.",
	}, []string{"ip_family"})
)

// current is the Extension whose egress IPs are counted at a scrape.
var current atomic.Pointer[Extension]

// registerMetrics adds the metrics to the registry that the proxy's endpoint serves. There
// is one Extension in a process; where tests make more, the last one counts.
func registerMetrics(e *Extension) {
	current.Store(e)
	register()
}

var register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(bindings, claims, refusals, rulesGauge, noClusterCIDR, syncDuration, syncFailures, lastSuccess, flowDeletions, programmingLatency)
	legacyregistry.CustomMustRegister(&usageCollector{})
	for _, family := range families { // so that the first increase is one
		syncFailures.WithLabelValues(string(family))
		flowDeletions.WithLabelValues(string(family))
	}
})

func setPlanMetrics(family v1.IPFamily, numbers plan.Numbers, clusterCIDR bool) {
	claims.WithLabelValues(string(family)).Set(float64(numbers.Claims))
	bindings.WithLabelValues(string(family)).Set(float64(numbers.Bindings))
	for _, reason := range plan.Reasons {
		refusals.WithLabelValues(string(family), string(reason)).Set(float64(numbers.Refusals[reason]))
	}
	missing := 1.0
	if clusterCIDR {
		missing = 0
	}
	noClusterCIDR.WithLabelValues(string(family)).Set(missing)
}
