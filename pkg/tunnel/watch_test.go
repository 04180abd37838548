package tunnel

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

// TestConfig_NodeOf: what of a Node counts, also after it was stripped.
func TestConfig_NodeOf(t *testing.T) {
	config := Config{Labels: []Label{{"edge", "true"}, {"tunnel", "on"}}}
	address := func(kind v1.NodeAddressType, text string) v1.NodeAddress {
		return v1.NodeAddress{Type: kind, Address: text}
	}
	for name, test := range map[string]struct {
		labels    map[string]string
		ready     v1.ConditionStatus
		addresses []v1.NodeAddress
		want      plan.Node
	}{
		"a direct node":     {map[string]string{"edge": "false"}, v1.ConditionTrue, []v1.NodeAddress{address(v1.NodeInternalIP, "192.0.2.1")}, plan.Node{Name: "n", Ready: true, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}},
		"the second label":  {map[string]string{"edge": "", "tunnel": "on"}, v1.ConditionFalse, nil, plan.Node{Name: "n", Agent: true}},
		"nobody hears it":   {nil, v1.ConditionUnknown, nil, plan.Node{Name: "n"}},
		"unusual addresses": {nil, v1.ConditionTrue, []v1.NodeAddress{address(v1.NodeHostName, "192.0.2.9"), address(v1.NodeExternalIP, "2001:db8::1"), address(v1.NodeInternalIP, "127.0.0.1"), address(v1.NodeInternalIP, "fe80::1"), address(v1.NodeInternalIP, "0.0.0.0"), address(v1.NodeInternalIP, "none")}, plan.Node{Name: "n", Ready: true, Addresses: []netip.Addr{netip.MustParseAddr("2001:db8::1")}}},
	} {
		t.Run(name, func(t *testing.T) {
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: test.labels}, Status: v1.NodeStatus{
				Addresses: test.addresses, Conditions: []v1.NodeCondition{{Type: v1.NodeMemoryPressure, Status: v1.ConditionTrue}, {Type: v1.NodeReady, Status: test.ready}},
			}}
			for _, n := range []*v1.Node{node, extension.StripNode(node, config.LabelKeys()).(*v1.Node)} {
				if diff := cmp.Diff(test.want, config.nodeOf(n), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
