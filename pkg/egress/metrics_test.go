package egress

import (
	"net/netip"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/openshift/origin-node/pkg/egress/plan"
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
	var exported []string
	for _, collector := range collectors {
		exported = append(exported, collector.FQName())
	}
	descs := make(chan *metrics.Desc, 10)
	(&usageCollector{}).DescribeWithStability(descs)
	close(descs)
	for desc := range descs {
		exported = append(exported, regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(desc.String())[1])
	}
	slices.Sort(documented)
	slices.Sort(exported)
	if diff := cmp.Diff(exported, documented); diff != "" {
		t.Errorf("metrics that are exported, and that images/node/README.md has (-want +got):\n%s", diff)
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
	config := testConfig
	config.SyncPeriod = 7 * time.Second
	e := New(t.Context(), config)
	kinds := []string{services, slicesKind, serviceCIDRs, nodes, networks}
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
		e.noteKnown(known)
	}
	if got := gauge(t, syncPeriod); got != 7 {
		t.Errorf("sync period %g, want 7", got)
	}
}

func TestMetrics_SyncResult(t *testing.T) {
	iptablesStub(t, "exit 4", "exit 4")
	e := New(t.Context(), Config{SyncPeriod: 4 * time.Second}) // registers the metrics
	s := e.syncers[v1.IPv4Protocol]
	stub(s)
	p := newPlans("")
	change := p.next(oneClaim())
	count := func(result string) uint64 { return observed(t, syncDuration.WithLabelValues("IPv4", result)) }
	errorsBefore, successesBefore := count("error"), count("success")
	s.trySync(t.Context(), p, change, nil)
	if count("error") != errorsBefore+1 || count("success") != successesBefore {
		t.Error("a failed sync is not counted as an error")
	}
	kernelStub(t)
	s.nextTry = time.Time{}
	s.trySync(t.Context(), p, change, nil)
	if count("error") != errorsBefore+1 || count("success") != successesBefore+1 {
		t.Error("a sync that succeeded is not counted as a success")
	}
}

// TestSyncer_EgressIPsOfWrittenBindings: a node has series for its own egress IPs, not for those of the cluster.
func TestSyncer_EgressIPsOfWrittenBindings(t *testing.T) {
	e := New(t.Context(), testConfig)
	e.state.setService(newService("elsewhere", func(s *v1.Service) { s.Spec.ExternalIPs = []string{"203.0.113.9"} }))
	s := e.syncers[v1.IPv4Protocol]
	if got := s.egressIPs(); len(got) != 0 {
		t.Errorf("egress IPs %v before anything is written", got)
	}
	ip := netip.MustParseAddr("203.0.113.1")
	bound := []plan.Binding{{Pod: netip.MustParseAddr("10.128.0.5"), Protocol: plan.TCP, EgressIP: ip}, {Pod: netip.MustParseAddr("10.128.0.6"), Protocol: plan.TCP, EgressIP: ip}}
	s.noteWritten(plan.Change{Added: bound}, plan.Plan{}, 0)
	if got := s.egressIPs(); !slices.Equal(got, []netip.Addr{ip}) {
		t.Errorf("egress IPs %v, want %s", got, ip)
	}
	s.noteWritten(plan.Change{Removed: bound}, plan.Plan{}, 0)
	if got := s.egressIPs(); len(got) != 0 {
		t.Errorf("egress IPs %v after all bindings are removed", got)
	}
}
