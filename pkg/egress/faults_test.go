package egress

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// TestFaults_AreToldEverywhere: in the status, in an Event about the Node, and in a metric, until they are over.
func TestFaults_AreToldEverywhere(t *testing.T) {
	e := New(t.Context(), Config{Config: cluster.Config{NodeName: "node-a", Steering: cluster.Steering{Mode: holders.Auto}}})
	e.steerer = e.newSteerer(t.Context(), nil, v1.IPv4Protocol)
	expect := func(message string, reason faultKind) {
		t.Helper()
		problems := e.Snapshot().SteeringProblems
		if told := len(problems) == 1 && strings.Contains(problems[0], message); told != (message != "") {
			t.Errorf("the status says %q, want %q", problems, message)
		}
		events := e.events.Standing(plan.Service{})
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
	e.leasesFail(holders.Reading, errors.New(`cannot list resource "leases"`))
	expect(`does not hear which nodes have which egress IPs: cannot list resource "leases"`, unheard)
	e.leasesFail(holders.Reading, nil)
	expect("", "")
	e.leasesFail(holders.Writing, errors.New(`namespaces "origin-node" not found`))
	expect(`do not hear which egress IPs this node has: namespaces "origin-node" not found`, unsaid)
	e.leasesFail(holders.Writing, nil)
	expect("", "")
	e.keysFail(errors.New("the Secret does not exist"))
	expect("has no part in the pool, and learns from the Leases alone where egress IPs are: the Secret does not exist", keyless)
	e.keys.ring.Set(holders.Keys{[]byte("a key")})
	e.keysFail(errors.New("the disk is full"))
	expect("this node has keys, but something is wrong with how they are shared or kept: the disk is full", rekeying)
	if warnings := e.announcementWarnings(); len(warnings) != 1 || !strings.HasPrefix(warnings[0], status.Warning) {
		t.Errorf("a verification says %q", warnings)
	}
	e.keysFail(nil)
	expect("", "")
	e.marksUsed([]string{"a rule in the nftables chain pre uses bits of the mark"})
	expect("a rule in the nftables chain pre uses bits of the mark", marked)
	e.marksUsed(nil)
	expect("", "")
	e.announcerFails(errors.New("process 7 has the port"))
	expect("other nodes learn of changes from its Lease alone: process 7 has the port", unannounced)
	e.announcerFails(nil)
	expect("", "")
	if warnings := e.announcementWarnings(); len(warnings) > 0 {
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
	e := New(t.Context(), Config{Config: cluster.Config{NodeName: "node-a", Steering: cluster.Steering{Mode: holders.Off, Unavailable: errors.New("the kernel has no VXLAN")}}})
	if problems := e.Snapshot().SteeringProblems; len(problems) != 1 || !strings.Contains(problems[0], "use these where they run: the kernel has no VXLAN") {
		t.Errorf("the status says %q", problems)
	}
	if warnings := e.announcementWarnings(); len(warnings) != 1 || !strings.HasPrefix(warnings[0], status.Warning) || !strings.HasSuffix(warnings[0], "the kernel has no VXLAN") {
		t.Errorf("a verification says %q", warnings)
	}
	if values := steeringFaultMetric(t); values[string(unavailable)] != 1 || len(values) != len(faultKinds) {
		t.Errorf("the metric has %v", values)
	}
}

// steeringFaultMetric returns the values of the metric by its reasons.
func steeringFaultMetric(t *testing.T) map[string]float64 {
	t.Helper()
	return valuesByReason(t, "egress_snat_steering_fault")
}

// valuesByReason returns the values of a gauge whose only label is a reason.
func valuesByReason(t *testing.T, name string) map[string]float64 {
	t.Helper()
	gathered, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range gathered {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			values[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return values
}
