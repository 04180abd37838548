package egress

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/pool"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

func TestMetrics_AllAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("../../images/node/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(egress_snat_[a-z_]+)` \\|").FindAllStringSubmatch(string(readme), -1) {
		documented = append(documented, row[1])
	}
	var all []string
	for _, metric := range Metrics() {
		all = append(all, metric.Name)
	}
	slices.Sort(documented)
	slices.Sort(all)
	if diff := cmp.Diff(all, documented); diff != "" {
		t.Errorf("metrics that are exported, and that images/node/README.md has (-want +got):\n%s", diff)
	}
}

// TestMetrics_ReasonsAreDocumented: why an address moves is in the row of the metric that counts it, and each refusal has a row of its own.
func TestMetrics_ReasonsAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("../../images/node/README.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `egress_snat_pool_moves_total` .*$").FindString(string(readme))
	for reason := range pool.Reasons() {
		if !strings.Contains(row, "`"+string(reason)+"`") {
			t.Errorf("images/node/README.md has no `%s` in the row of egress_snat_pool_moves_total", reason)
		}
	}
	for _, reason := range plan.Reasons {
		if !strings.Contains(string(readme), "\n| `"+string(reason)+"` | ") {
			t.Errorf("images/node/README.md has no row of the refusal %s", reason)
		}
	}
}

func gauge(t *testing.T, m metrics.GaugeMetric) float64 {
	t.Helper()
	value, err := testutil.GetGaugeMetricValue(m)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// observed is how often something was observed.
func observed(t *testing.T, m metrics.ObserverMetric) uint64 {
	t.Helper()
	count, err := testutil.GetHistogramMetricCount(m)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// TestMetrics_WaitingForObjects: no other metric of egress SNAT tells of a node that never gets its objects.
func TestMetrics_WaitingForObjects(t *testing.T) {
	config := nodeConfig
	config.SyncPeriod = 7 * time.Second
	e := New(t.Context(), config)
	kinds := e.gate.Missing()
	for i, known := range kinds {
		for j, kind := range kinds {
			want := 1.0
			if j < i {
				want = 0
			}
			if got := gauge(t, waitingForObjects.WithLabelValues(kind)); got != want {
				t.Errorf("waiting for %s: %g with %q known, want %g", kind, got, kinds[:i], want)
			}
		}
		e.known(known)
	}
	if got := gauge(t, syncPeriod.WithLabelValues()); got != 7 {
		t.Errorf("sync period %g, want 7", got)
	}
}

// TestMetrics_SyncResult: a sync counts with its result, and a failure for itself, too.
func TestMetrics_SyncResult(t *testing.T) {
	New(t.Context(), nodeConfig) // registers the metrics
	counts := func() [3]float64 {
		failures, err := testutil.GetCounterMetricValue(syncFailures.WithLabelValues("IPv4"))
		if err != nil {
			t.Fatal(err)
		}
		count := func(result string) float64 { return float64(observed(t, syncDuration.WithLabelValues("IPv4", result))) }
		return [3]float64{failures, count("error"), count("success")}
	}
	for _, test := range []struct {
		err  error
		want [3]float64
	}{
		{errors.New("the lock is held"), [3]float64{1, 1, 0}},
		{nil, [3]float64{0, 0, 1}},
	} {
		before := counts()
		observeSync(v1.IPv4Protocol, time.Second, test.err)
		got := counts()
		for i := range got {
			got[i] -= before[i]
		}
		if got != test.want {
			t.Errorf("%v adds %v failures, errors and successes; want %v", test.err, got, test.want)
		}
	}
}

// TestMetrics_LatencyOfWhatWasWritten: changes count once their rules are written and a sync has succeeded, which may be a later one.
func TestMetrics_LatencyOfWhatWasWritten(t *testing.T) {
	New(t.Context(), nodeConfig) // registers the metrics
	f := newIPFamily(v1.IPv4Protocol, klog.Background(), nodeConfig, func() {})
	count := func() uint64 { return observed(t, programmingLatency.WithLabelValues("IPv4")) }
	before := count()
	sync := func(result reconcile.Result, want uint64) {
		t.Helper()
		f.observe(result, plan.Numbers{}, 0)
		if result.Err == nil {
			f.observeLatency([]time.Time{time.Now()})
		}
		if got := count() - before; got != want {
			t.Errorf("after %+v %d changes count, want %d", result, got, want)
		}
	}
	sync(reconcile.Result{}, 0)
	sync(reconcile.Result{Written: true, Err: errors.New("flows cannot be deleted")}, 0)
	sync(reconcile.Result{}, 1)
	sync(reconcile.Result{}, 1)
	sync(reconcile.Result{Written: true}, 2)
	sync(reconcile.Result{}, 2)
}
