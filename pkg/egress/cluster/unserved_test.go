package cluster

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// TestState_UnservedSlicesThatMatter: the loop is woken by those that name a pod which a claim's own
// slice does not, and by no others; and none is kept that names no pod.
func TestState_UnservedSlicesThatMatter(t *testing.T) {
	s := New(testConfig)
	object := clustertest.NewSlice("db-1", "db", "10.128.0.5", "10.128.0.9")
	object.Namespace = "bank"
	object.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: "bank", Name: "db-0"}
	object.Endpoints[1].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "not-its-own"}
	stripped, err := stripSlice(object)
	if err != nil {
		t.Fatal(err)
	}
	db := stripped.(*unservedSlice)
	want := []plan.Endpoint{{Addr: netip.MustParseAddr("10.128.0.5"), Pod: plan.Pod{Namespace: "bank", Name: "db-0"}}}
	if diff := cmp.Diff(want, db.endpoints, compareNetip); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	set := func(now unservedEndpoints) bool { return s.setUnserved(headlessSlices, NameOf(db), now) != nothing }
	none := unservedEndpoints{}
	if set(db.unservedEndpoints) {
		t.Error("nobody has a claim, and it matters")
	}
	s.SetService(clustertest.NewService("web", nil))
	if _, err := s.SetSlice(clustertest.NewSlice("web-1", "web", "10.128.0.5")); err != nil {
		t.Fatal(err)
	}
	if p := planOf(s, v1.IPv4Protocol); len(p.Refusals) != 1 || p.Refusals[0].Reason != plan.PodOfOtherNamespace {
		t.Errorf("refusals %v; want one, for the pod of another namespace", p.Refusals)
	}
	if s.pods != nil {
		t.Error("asking for the status counts all pods, for good")
	}
	s.Update(v1.IPv4Protocol)
	if !set(none) || set(none) || !set(db.unservedEndpoints) || !set(none) {
		t.Error("it matters when the pod is named, and when it is not any more")
	}
	if len(s.unserved)+len(s.pods) != 0 {
		t.Errorf("nothing names a pod, and the state has %v, %v", s.unserved, s.pods)
	}
}
