package desk

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
)

// TestMemberState_FollowsLeaseAndNode: only a node that has addresses renews its Lease, so that of one without nothing is known while it is Ready.
func TestMemberState_FollowsLeaseAndNode(t *testing.T) {
	type member struct{ selected, fresh, ready, has bool }
	for m, want := range map[member]string{
		{selected: true, fresh: true, ready: true, has: true}: "live",
		{selected: true, fresh: true, has: true}:              "live",
		{selected: true, ready: true, has: true}:              dead,
		{selected: true, has: true}:                           dead,
		{selected: true, fresh: true, ready: true}:            "live",
		{selected: true, ready: true}:                         "unknown",
		{selected: true}:                                      dead,
		{fresh: true, ready: true, has: true}:                 "leaving",
		{ready: true, has: true}:                              dead,
		{fresh: true, ready: true}:                            "",
		{}:                                                    "",
	} {
		if got := memberState(m.selected, m.fresh, m.ready, m.has); got != want {
			t.Errorf("%+v is %q, want %q", m, got, want)
		}
	}
}

func TestIsFresh_ByTheLeasesOwnDuration(t *testing.T) {
	now := time.Now()
	lease := func(age time.Duration, seconds *int32) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: seconds, RenewTime: &metav1.MicroTime{Time: now.Add(-age)}}}
	}
	got := []bool{
		isFresh(lease(39*time.Second, ptr.To(int32(40))), now), isFresh(lease(41*time.Second, ptr.To(int32(40))), now),
		isFresh(lease(0, nil), now), isFresh(&coordinationv1.Lease{}, now),
	}
	if diff := cmp.Diff([]bool{true, false, false, false}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDirectoryOf_TwoNodesWithAnAddress: both have it if both still say so. One whose Lease is not renewed any more may be dead, also
// while its Node is Ready.
func TestDirectoryOf_TwoNodesWithAnAddress(t *testing.T) {
	now := time.Now()
	ip := netip.MustParseAddr("203.0.113.10")
	for name, test := range map[string]struct {
		ages  [2]time.Duration // since the Leases of node-a and node-b were renewed
		nodes bool             // whether Nodes are known
		want  []string
	}{
		"both are renewed":               {[2]time.Duration{3 * time.Second, 9 * time.Second}, true, []string{"node-b", "node-a"}},
		"Nodes are not known":            {[2]time.Duration{9 * time.Second, 3 * time.Second}, false, []string{"node-b", "node-a"}},
		"the first one was cut off":      {[2]time.Duration{time.Minute, 3 * time.Second}, true, nil},
		"the clock of one is in advance": {[2]time.Duration{3 * time.Second, -time.Hour}, true, []string{"node-b", "node-a"}},
	} {
		var objects cluster.Objects
		for i, age := range test.ages {
			node := "node-" + string(rune('a'+i))
			objects.Leases = append(objects.Leases, &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: node, Annotations: map[string]string{holders.Annotation: fmt.Sprintf(`{"203.0.113.10":{"epoch":%d}}`, i+1)}},
				Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To(int32(40)), RenewTime: &metav1.MicroTime{Time: now.Add(-age)}},
			})
			if test.nodes {
				objects.Nodes = append(objects.Nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: v1.NodeStatus{
					Addresses:  []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "192.0.2.1"}},
					Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
				}})
			}
		}
		state, _, err := cluster.StateFor(cluster.Config{}, objects)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		directory, err := directoryOf(state, objects, now)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h := directory.Holder(ip, now); h.Node != "node-b" {
			t.Errorf("%s: %+v holds it, want node-b", name, h)
		}
		var got []string
		for _, c := range directory.Conflicts(now) {
			got = c.Nodes
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: the nodes that have it (-want +got):\n%s", name, diff)
		}
	}
}
