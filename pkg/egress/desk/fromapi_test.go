package desk

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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
