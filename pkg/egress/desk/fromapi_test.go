package desk

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

// TestMemberState_FollowsLeaseAndNode: only a node that has addresses renews its Lease, so that of one without nothing is known while it is Ready.
func TestMemberState_FollowsLeaseAndNode(t *testing.T) {
	type member struct{ selected, fresh, ready, has bool }
	for m, want := range map[member]string{
		{selected: true, fresh: true, ready: true, has: true}: status.Live,
		{selected: true, fresh: true, has: true}:              status.Live,
		{selected: true, ready: true, has: true}:              status.Dead,
		{selected: true, has: true}:                           status.Dead,
		{selected: true, fresh: true, ready: true}:            status.Live,
		{selected: true, ready: true}:                         status.Unknown,
		{selected: true}:                                      status.Dead,
		{fresh: true, ready: true, has: true}:                 status.Leaving,
		{ready: true, has: true}:                              status.Dead,
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

// TestFromAPI_TwoNodesWithAnAddress: both have it if both say so in Leases that are renewed. One whose Lease is not may be dead, also
// while its Node is Ready.
func TestFromAPI_TwoNodesWithAnAddress(t *testing.T) {
	now := time.Now()
	service := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: v1.ServiceSpec{
		ExternalIPs: []string{"203.0.113.10"}, IPFamilies: []v1.IPFamily{v1.IPv4Protocol}, ClusterIP: "172.30.0.10", ClusterIPs: []string{"172.30.0.10"},
		Ports: []v1.ServicePort{{Port: 80}},
	}}
	for name, test := range map[string]struct {
		ages  [2]time.Duration // since the Leases of node-a and node-b were renewed
		nodes []string         // nil: they are not known
		want  []string
	}{
		"both are renewed":               {[2]time.Duration{3 * time.Second, 9 * time.Second}, []string{"node-a", "node-b"}, []string{"node-a"}},
		"Nodes are not known":            {[2]time.Duration{9 * time.Second, 3 * time.Second}, nil, []string{"node-a"}},
		"the first one was cut off":      {[2]time.Duration{time.Minute, 3 * time.Second}, []string{"node-a", "node-b"}, nil},
		"the Node of the first has gone": {[2]time.Duration{3 * time.Second, 3 * time.Second}, []string{"node-b"}, nil},
		"the clock of one is in advance": {[2]time.Duration{3 * time.Second, -time.Hour}, []string{"node-a", "node-b"}, []string{"node-a"}},
	} {
		objects := cluster.Objects{Services: []*v1.Service{service}}
		for i, age := range test.ages {
			objects.Leases = append(objects.Leases, &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: []string{"node-a", "node-b"}[i], Annotations: map[string]string{holders.Annotation: fmt.Sprintf(`{"203.0.113.10":{"epoch":%d}}`, i+1)}},
				Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To(int32(40)), RenewTime: &metav1.MicroTime{Time: now.Add(-age)}},
			})
		}
		for _, node := range test.nodes {
			objects.Nodes = append(objects.Nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: v1.NodeStatus{
				Addresses:  []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "192.0.2.1"}},
				Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
			}})
		}
		snapshot, err := FromAPI(egress.Config{Config: cluster.Config{Steering: cluster.Steering{Mode: holders.Auto}}}, objects, now)
		if err != nil || len(snapshot.Addresses) != 1 || snapshot.Addresses[0].Holder != "node-b" {
			t.Errorf("%s: %v, %+v; want that node-b holds the address", name, err, snapshot.Addresses)
			continue
		}
		if diff := cmp.Diff(test.want, snapshot.Addresses[0].Conflict, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: the other nodes that have it (-want +got):\n%s", name, diff)
		}
	}
}

// TestFromAPI_SilentSince: a node that is not Ready is silent since its Lease has not been renewed, whenever somebody asks. For 5 s packets
// are dropped, then refused.
func TestFromAPI_SilentSince(t *testing.T) {
	now := time.Now()
	for age, want := range map[time.Duration]kernel.WayKind{39 * time.Second: kernel.ToNode, 42 * time.Second: kernel.Blackhole, 48 * time.Hour: kernel.Prohibit} {
		objects := cluster.Objects{
			Nodes: []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}, Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "192.0.2.1"}}}}},
			Leases: []*coordinationv1.Lease{{
				ObjectMeta: metav1.ObjectMeta{Name: "node-a", Annotations: map[string]string{holders.Annotation: `{"203.0.113.10":{"epoch":1}}`}},
				Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Add(-age)}},
			}},
		}
		state, _, err := cluster.StateFor(cluster.Config{}, objects)
		if err != nil {
			t.Fatal(err)
		}
		directory, _, err := directoryOf(state, objects, now)
		if err != nil {
			t.Fatal(err)
		}
		ip := netip.MustParseAddr("203.0.113.10")
		if got := directory.Ways([]netip.Addr{ip}, holders.Auto, now)[ip].Kind; got != want {
			t.Errorf("renewed %v ago: %q, want %q", age, got, want)
		}
	}
}
