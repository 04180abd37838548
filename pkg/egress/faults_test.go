package egress

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/cluster/clustertest"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/poolnode"
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
	e.faults.setMarked([]string{"a rule in the nftables chain pre uses bits of the mark"})
	e.faultsChanged()
	expect("a rule in the nftables chain pre uses bits of the mark", marked)
	e.faults.setMarked(nil)
	e.faultsChanged()
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

// TestFaults_OfThePool: a node that does not hear the others says so, as long as that is so.
func TestFaults_OfThePool(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		config := Config{Config: cluster.Config{NodeName: "node-a", Steering: cluster.Steering{Mode: holders.Auto}}, Membership: poolnode.Membership{Port: 17948}}
		config.Pool = cluster.Pool{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28")}, Nodes: labels.SelectorFromSet(labels.Set{"pool": "yes"})}
		e := New(ctx, config)
		e.steerer = e.newSteerer(ctx, nil, v1.IPv4Protocol)
		defer e.running.Wait()
		defer cancel()
		e.keys.ring.Set(holders.Keys{make([]byte, 32)})
		self := newNode("node-a", "192.0.2.2", v1.ConditionTrue)
		self.Labels = map[string]string{"pool": "yes"}
		e.setNode(self)
		for _, command := range []string{"ip address add 192.0.2.2/32 dev lo", "ip link set lo up"} {
			if out, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", command, err, out)
			}
		}
		e.pool.Start(e.steerer)
		for _, family := range cluster.Families {
			e.state.Update(family)
			e.pool.Sync(family)
		}
		for _, keys := range []holders.Keys{{make([]byte, 32)}, nil} {
			e.keys.ring.Set(keys)
			has := keys != nil
			clustertest.Eventually(t, fmt.Sprintf("it has a part in the pool, with a key: %v", has), func() bool {
				_, err := e.PoolStatus()
				return err == nil && (e.pool.Absent() == nil) == has
			})
			problems := strings.Join(e.Snapshot().SteeringProblems, "\n")
			troubles := e.troubles()[plan.Service{}]
			status, err := e.PoolStatus()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(problems, "has no key") == has || (len(troubles) == 1) == has || strings.Contains(status.Problem, "has no key") == has || (steeringFaultMetric(t)[string(absent)] == 1) == has {
				t.Errorf("has a key: %v; problems %q, Events %v, pool %q, metric %v", has, problems, troubles, status.Problem, steeringFaultMetric(t))
			}
		}
	})
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
