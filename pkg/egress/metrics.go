package egress

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	proxymetrics "k8s.io/kubernetes/pkg/proxy/metrics"

	"github.com/openshift/origin-node/pkg/egress/attach"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/poolnode"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/extension"
)

// images/node/README.md says what each metric means; keep it up to date.

var (
	bindings = tell.Metrics.Gauge("bindings",
		"Pod addresses and protocols that leave from an egress IP, by IP family.", "ip_family")
	claims = tell.Metrics.Gauge("claims",
		"Services that claim an egress IP, granted or refused, by IP family.", "ip_family")
	refusals = tell.Metrics.Gauge("refusals",
		"Claims and bindings that are refused now, by IP family and reason.", "ip_family", "reason")
	ignoredNodeAddresses = tell.Metrics.Gauge("ignored_node_addresses",
		"Addresses that Nodes report and should not: they lie where pods, Services or egress IPs are, or are another Node's, or the Node did not register with them. At most 5 of each Node are counted. By IP family.", "ip_family")
	rulesGauge = tell.Metrics.Gauge("rules",
		"Rules in the chains of egress SNAT, or elements in the sets of its nftables table, by IP family.", "ip_family")
	programmingLatency = tell.Metrics.Histogram("network_programming_duration_seconds",
		"Time from a change of an object until the kernel had the rules of the IP family that follow from it. The change of an EndpointSlice is timed by its controller, other changes when they arrive here.", proxymetrics.NetworkProgrammingLatency.Buckets, "ip_family") // as kube-proxy's, so that the two compare
	syncDuration = tell.Metrics.Histogram("sync_duration_seconds",
		"Time that a sync with the kernel took, by IP family and result: success or error. A sync that finds nothing to do is not counted.", metrics.ExponentialBuckets(0.001, 2, 15), "ip_family", "result")
	syncFailures = tell.Metrics.Counter("sync_failures_total",
		"Syncs that failed: rules could not be written and are as before, or flows with a wrong source address could not be deleted. By IP family.", "ip_family")
	lastSuccess = tell.Metrics.Gauge("last_sync_success_timestamp_seconds",
		"Unix time at which rules were last written, or compared with the plan and found equal, by IP family.", "ip_family")
	syncPeriod = tell.Metrics.Gauge("sync_period_seconds",
		"The configured sync period. The rules are compared with the plan twice in it.")
	waitingForObjects = tell.Metrics.Gauge("waiting_for_objects",
		"1 as long as the objects of a kind have not all arrived from the API server, else 0; also 0 once the node does without them, because the API server lacks or refuses them. No rules are written while any is 1.", "kind")
)

// Metrics are the definitions of all metrics of egress SNAT.
func Metrics() []extension.Metric { return tell.Metrics.Definitions() }

var register = sync.OnceFunc(func() {
	tell.Metrics.Register()
	poolnode.ZeroMetrics()
	attach.ZeroMetrics()
	for _, name := range cluster.Families { // so that the first increase is one
		syncFailures.WithLabelValues(string(name))
		tell.FlowDeletions.WithLabelValues(string(name))
		tell.FlowsUnbarred.WithLabelValues(string(name))
		programmingLatency.WithLabelValues(string(name))
	}
})

func setPlanMetrics(name v1.IPFamily, numbers plan.Numbers) {
	claims.WithLabelValues(string(name)).Set(float64(numbers.Claims))
	bindings.WithLabelValues(string(name)).Set(float64(numbers.Bindings))
	for _, reason := range plan.Reasons {
		refusals.WithLabelValues(string(name), string(reason)).Set(float64(numbers.Refusals[reason]))
	}
}

// observeSync records how long a sync took that ended with err.
func observeSync(name v1.IPFamily, elapsed time.Duration, err error) {
	result := "success"
	if err != nil {
		result = "error"
		syncFailures.WithLabelValues(string(name)).Inc()
	}
	syncDuration.WithLabelValues(string(name), result).Observe(elapsed.Seconds())
}
