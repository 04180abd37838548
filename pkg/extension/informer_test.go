package extension

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestStripNode_LeavesWhatExtensionsNeed(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "7", CreationTimestamp: metav1.Unix(7, 0), Labels: map[string]string{"a": "b", "c": ""}, Annotations: map[string]string{"a": "b"}}}
	node.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "192.0.2.2"}}
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeMemoryPressure}, {Type: v1.NodeReady, Status: v1.ConditionTrue}}
	node.Status.Images = make([]v1.ContainerImage, 50)
	got, isNode := StripNode(node, []string{"c", "d"}).(*v1.Node)
	if !isNode || got.Name != "n" || got.ResourceVersion != "7" || got.CreationTimestamp.Unix() != 7 || len(got.Status.Addresses) != 1 {
		t.Fatalf("%+v", got)
	}
	if len(got.Status.Conditions) != 1 || got.Status.Conditions[0].Type != v1.NodeReady || len(node.Status.Conditions) != 2 {
		t.Errorf("the conditions are %v, want Ready alone; before %v", got.Status.Conditions, node.Status.Conditions)
	}
	if value, has := got.Labels["c"]; !has || value != "" || len(got.Labels) != 1 || len(got.Annotations)+len(got.Status.Images) != 0 {
		t.Errorf("%+v is more than a name, addresses and one label", got)
	}
}

// TestHandler_Deleted: the name is told, also if the end was not heard and only the last version is known, or not even that.
func TestHandler_Deleted(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	set, gone := 0, 0
	handler := Handler(func(got *v1.Node) {
		if set++; got != node {
			t.Errorf("got %v", got)
		}
	}, func(name cache.ObjectName) {
		if gone++; name != (cache.ObjectName{Name: "n"}) {
			t.Errorf("%v is gone", name)
		}
	})
	handler.OnAdd(node, true)
	handler.OnUpdate(&v1.Node{}, node)
	for _, object := range []any{node, cache.DeletedFinalStateUnknown{Key: "n", Obj: node}, cache.DeletedFinalStateUnknown{Key: "n"}} {
		handler.OnDelete(object)
	}
	if set != 2 || gone != 3 {
		t.Errorf("set %d times, gone %d times; want 2 and 3", set, gone)
	}
}
