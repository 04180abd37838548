package balancer

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func addrs(texts ...string) (result []netip.Addr) {
	for _, text := range texts {
		result = append(result, netip.MustParseAddr(text))
	}
	return result
}

func service(uid types.UID, change func(*v1.Service)) *v1.Service {
	svc := &v1.Service{ObjectMeta: metav1.ObjectMeta{UID: uid}}
	svc.Spec.Type, svc.Spec.IPFamilies = v1.ServiceTypeLoadBalancer, []v1.IPFamily{v1.IPv4Protocol}
	if change != nil {
		change(svc)
	}
	return svc
}

func TestBalanced_OnlyServicesOfThisBalancer(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1.Service)
		want   bool
	}{
		"a load balancer": {nil, true},
		"another type":    {func(svc *v1.Service) { svc.Spec.Type = v1.ServiceTypeNodePort }, false},
		"a class":         {func(svc *v1.Service) { svc.Spec.LoadBalancerClass = ptr.To("example.com/other") }, false},
		"deleted":         {func(svc *v1.Service) { svc.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
	} {
		if got := balanced(service("a", test.change)); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

func TestNextWrite_OneStepAtATime(t *testing.T) {
	told := v1.LoadBalancerStatus{Ingress: []v1.LoadBalancerIngress{{IP: "198.19.0.1", IPMode: ptr.To(v1.LoadBalancerIPModeVIP)}}}
	type state struct {
		finalizers []string
		status     v1.LoadBalancerStatus
	}
	of := func(s state) *v1.Service {
		return service("a", func(svc *v1.Service) { svc.Finalizers, svc.Status.LoadBalancer = s.finalizers, s.status })
	}
	for name, test := range map[string]struct {
		is       state
		addrs    []netip.Addr
		becomes  state // the same if there is nothing to write
		asStatus bool
	}{
		"new": {
			is: state{finalizers: []string{"other"}}, addrs: addrs("198.19.0.1"),
			becomes: state{[]string{"other", finalizer}, told},
		},
		"with a finalizer": {
			is: state{finalizers: []string{finalizer}}, addrs: addrs("198.19.0.1"),
			becomes: state{[]string{finalizer}, told}, asStatus: true,
		},
		"done": {
			is: state{[]string{finalizer}, told}, addrs: addrs("198.19.0.1"),
			becomes: state{[]string{finalizer}, told},
		},
		"taken back": {
			is:      state{[]string{finalizer}, told},
			becomes: state{finalizers: []string{finalizer}}, asStatus: true,
		},
		"taken back and told": {
			is:      state{finalizers: []string{"other", finalizer}},
			becomes: state{finalizers: []string{"other"}},
		},
		"another's": {is: state{status: told}, becomes: state{status: told}},
	} {
		t.Run(name, func(t *testing.T) {
			var want *write
			if !cmp.Equal(test.is, test.becomes, cmp.AllowUnexported(state{})) {
				want = &write{object: of(test.becomes), status: test.asStatus}
			}
			if diff := cmp.Diff(want, nextWrite(of(test.is), test.addrs), cmp.AllowUnexported(write{})); diff != "" {
				t.Errorf("write (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChooseNodes_OneWithSessionAffinity(t *testing.T) {
	for name, test := range map[string]struct {
		affinity               v1.ServiceAffinity
		healthy, current, want []string
	}{
		"without affinity":             {v1.ServiceAffinityNone, []string{"a", "b"}, []string{"b"}, []string{"a", "b"}},
		"nothing healthy":              {v1.ServiceAffinityClientIP, nil, []string{"b"}, nil},
		"the first time":               {v1.ServiceAffinityClientIP, []string{"a", "b"}, nil, []string{"a"}},
		"the current one":              {v1.ServiceAffinityClientIP, []string{"a", "b"}, []string{"b"}, []string{"b"}},
		"the current one is unhealthy": {v1.ServiceAffinityClientIP, []string{"a", "b"}, []string{"c"}, []string{"a"}},
		"affinity is new":              {v1.ServiceAffinityClientIP, []string{"b", "c"}, []string{"a", "b", "c"}, []string{"b"}},
	} {
		svc := service("a", func(svc *v1.Service) { svc.Spec.SessionAffinity = test.affinity })
		if diff := cmp.Diff(test.want, chooseNodes(svc, test.healthy, test.current)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNodeAddrs_OfReadyNodes(t *testing.T) {
	for name, test := range map[string]struct {
		ready  v1.ConditionStatus
		labels map[string]string
		want   []netip.Addr
	}{
		"ready":     {v1.ConditionTrue, nil, addrs("192.0.2.2", "2001:db8::2")},
		"not ready": {v1.ConditionUnknown, nil, nil},
		"excluded":  {v1.ConditionTrue, map[string]string{v1.LabelNodeExcludeBalancers: ""}, nil},
	} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}}
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: test.ready}}
		node.Status.Addresses = []v1.NodeAddress{
			{Type: v1.NodeHostName, Address: "node"}, {Type: v1.NodeExternalIP, Address: "203.0.113.1"},
			{Type: v1.NodeInternalIP, Address: "192.0.2.2"}, {Type: v1.NodeInternalIP, Address: "192.0.2.9"},
			{Type: v1.NodeInternalIP, Address: "2001:db8::2"},
		}
		if got := nodeAddrs(node); !cmp.Equal(test.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestRoutes_ViaAddressesOfTheSameFamily(t *testing.T) {
	of := &balance{addrs: addrs("198.19.0.1", "2001:db8:0:4::1"), nodes: []string{"a", "c"}}
	nodes := map[string][]netip.Addr{"a": addrs("192.0.2.2", "2001:db8::2"), "b": addrs("192.0.2.3"), "c": addrs("192.0.2.4")}
	want := map[netip.Addr][]netip.Addr{
		of.addrs[0]: addrs("192.0.2.2", "192.0.2.4"), of.addrs[1]: addrs("2001:db8::2"),
	}
	if diff := cmp.Diff(want, routes(of, nodes), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}
