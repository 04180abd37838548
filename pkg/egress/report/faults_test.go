package report

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/neighbours"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portguard"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/egress/steerer"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/egress/usage"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/kernel"
)

// newReporter returns one of a node whose parts do nothing, and which has no plan yet. It steers if the configuration says so.
func newReporter(t *testing.T, config cluster.Config) *Reporter {
	t.Helper()
	logger, state := klog.FromContext(t.Context()), cluster.New(config)
	unplanned := Family{Loop: extension.NewLoop(time.Second, time.Minute), Planned: func() bool { return false }}
	r := New(t.Context(), Config{
		NodeName: config.NodeName, Steering: config.Steering, Keys: holders.NewKeyring(nil), State: state, Events: tell.NewEventRecorder(logger, config, state),
		Missing: func() []string { return nil }, Served: func() []v1.IPFamily { return nil },
		Families: map[v1.IPFamily]Family{v1.IPv4Protocol: unplanned, v1.IPv6Protocol: unplanned},
	})
	parts := Parts{
		Ports: portguard.New(portguard.Config{}), Neighbours: neighbours.New(logger, neighbours.Config{}),
		Usage: usage.New(usage.Config{Written: func(v1.IPFamily) kernel.Desired { return kernel.Desired{} }}),
	}
	if !config.Steering.Off() {
		parts.Steerer = steerer.New(t.Context(), state, steerer.Config{
			Outer: v1.IPv4Protocol, Running: &sync.WaitGroup{},
			RequestSync: func() {}, Wake: func() {}, LeasesKnown: func() {}, Came: func(map[netip.Addr]bool, time.Time) {},
		})
	}
	r.SetParts(parts)
	Collect(r)
	return r
}

// TestFaults_AreToldEverywhere: in the status, in an Event about the Node, and in a metric, until they are over.
func TestFaults_AreToldEverywhere(t *testing.T) {
	r := newReporter(t, cluster.Config{NodeName: "node-a", Steering: cluster.Steering{Mode: holders.Auto}})
	expect := func(message string, reason faultKind) {
		t.Helper()
		drops := slices.Contains([]faultKind{unheard, marked}, reason)
		if undelivered := r.Snapshot().Undelivered; len(undelivered) > 0 != drops {
			t.Errorf("%s: packets are not delivered because of %q, want that %v", reason, undelivered, drops)
		}
		problems := r.Snapshot().SteeringProblems
		if told := len(problems) == 1 && strings.Contains(problems[0], message); told != (message != "") {
			t.Errorf("the status says %q, want %q", problems, message)
		}
		events := r.config.Events.Standing(plan.Service{})
		if told := len(events) == 1 && events[0].About.Kind == "Node" && events[0].Reason == reason.reason() && strings.Contains(events[0].Note, message); told != (message != "") {
			t.Errorf("Events %+v, want one that says %q", events, message)
		}
		for kind, value := range steeringFaultMetric(t) {
			if value != (map[bool]float64{true: 1}[kind == string(reason)]) {
				t.Errorf("the metric has %v for %s", value, kind)
			}
		}
	}
	expect("", "")
	r.LeasesFail(holders.Reading, errors.New(`cannot list resource "leases"`))
	expect(`does not hear which nodes have which egress IPs: cannot list resource "leases"`, unheard)
	if warnings := r.announcementWarnings(); len(warnings) != 1 {
		t.Errorf("a verification warns of %q, want that Leases are not read", warnings)
	}
	r.LeasesFail(holders.Reading, nil)
	expect("", "")
	r.LeasesFail(holders.Writing, errors.New(`namespaces "origin-node" not found`))
	expect(`do not hear which egress IPs this node has: namespaces "origin-node" not found`, unsaid)
	r.LeasesFail(holders.Writing, nil)
	expect("", "")
	r.KeysFail(errors.New("the Secret does not exist"))
	expect("has no part in the pool, and learns from the Leases alone where egress IPs are: the Secret does not exist", keyless)
	r.config.Keys.Set(holders.Keys{[]byte("a key")})
	r.KeysFail(errors.New("the disk is full"))
	expect("this node has keys, but something is wrong with how they are shared or kept: the disk is full", rekeying)
	if warnings := r.announcementWarnings(); len(warnings) != 1 || !strings.HasPrefix(warnings[0], status.Warning) {
		t.Errorf("a verification says %q", warnings)
	}
	r.KeysFail(nil)
	expect("", "")
	r.MarksUsed([]string{"a rule in the nftables chain pre uses bits of the mark"})
	expect("a rule in the nftables chain pre uses bits of the mark", marked)
	r.MarksUsed(nil)
	expect("", "")
	r.AnnouncerFails(errors.New("process 7 has the port"))
	expect("other nodes learn of changes from its Lease alone: process 7 has the port", unannounced)
	r.AnnouncerFails(nil)
	expect("", "")
	if warnings := r.announcementWarnings(); len(warnings) > 0 {
		t.Errorf("a verification says %q", warnings)
	}
	for kind, want := range map[faultKind]plan.Reason{unheard: "EgressIPUnreachable", keyless: "EgressKeyMissing", rekeying: "EgressKeysFailing", unannounced: "EgressIPsNotAnnounced", absent: "EgressPoolAbsent"} {
		if kind.reason() != want {
			t.Errorf("the reason of Events for %s is %s, want %s", kind, kind.reason(), want)
		}
	}
}

// TestFaults_OfANodeThatCannotSteer: it goes on without, and says so as long as it runs.
func TestFaults_OfANodeThatCannotSteer(t *testing.T) {
	r := newReporter(t, cluster.Config{NodeName: "node-a", Steering: cluster.Steering{Mode: holders.Off, Unavailable: errors.New("the kernel has no VXLAN")}})
	if problems := r.Snapshot().SteeringProblems; len(problems) != 1 || !strings.Contains(problems[0], "use their egress IPs on this node instead: the kernel has no VXLAN") {
		t.Errorf("the status says %q", problems)
	}
	if warnings := r.announcementWarnings(); len(warnings) != 1 || !strings.HasPrefix(warnings[0], status.Warning) || !strings.HasSuffix(warnings[0], "the kernel has no VXLAN") {
		t.Errorf("a verification says %q", warnings)
	}
	if values := steeringFaultMetric(t); values[string(unavailable)] != 1 || len(values) != len(faultKinds) {
		t.Errorf("the metric has %v", values)
	}
}

// steeringFaultMetric returns the values of the metric by its reasons.
func steeringFaultMetric(t *testing.T) map[string]float64 {
	t.Helper()
	return clustertest.ValuesByReason(t, "egress_snat_steering_fault")
}
