package cluster

import (
	"net/netip"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/proxy/apis"

	"github.com/openshift/origin-node/hack/clustertest"
)

// headlessService names an egress IP. In testConfig no argument allows that.
func headlessService(change func(*v1.Service)) *v1.Service {
	return clustertest.NewService("db", func(s *v1.Service) {
		s.Spec.ClusterIP, s.Spec.ExternalIPs = v1.ClusterIPNone, nil
		s.Annotations = map[string]string{EgressIPAnnotation: "203.0.113.9"}
		if change != nil {
			change(s)
		}
	})
}

// TestState_HeadlessService: EndpointSlices with the label of headless Services bind for a headless one alone, in whatever order objects
// come and go.
func TestState_HeadlessService(t *testing.T) {
	config := testConfig
	config.AllowedCIDRs = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	s := New(config)
	slice := func(name, service, pod string, labels ...string) func() {
		object := clustertest.NewSlice(name, service, pod)
		for _, label := range labels {
			object.Labels[label] = ""
		}
		stripped, err := stripSlice(object)
		if err != nil {
			t.Fatal(err)
		}
		if len(labels) == 0 {
			return func() {
				if _, err := s.SetSlice(object); err != nil {
					t.Fatal(err)
				}
			}
		}
		return func() { s.setUnserved(headlessSlices, NameOf(object), stripped.(*unservedSlice).unservedEndpoints) }
	}
	const headless = v1.IsHeadlessService
	deleted := func(object *v1.Service) func() { return func() { s.DeleteService(object) } }
	set := func(object *v1.Service) func() { return func() { s.SetService(object) } }
	younger := func(s *v1.Service) { s.CreationTimestamp = metav1.Time{Time: time.Unix(2000, 0)} }
	served := clustertest.NewService("db", func(s *v1.Service) { younger(s); s.Spec.ExternalIPs = []string{"203.0.113.9"} })
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"its slice comes first", slice("db-1", "db", "10.128.0.5", headless), ""},
		{"one that the proxier serves has its label", slice("db-2", "db", "10.128.0.6"), ""},
		{"the Service comes", set(headlessService(nil)), "10.128.0.5 10.128.0.6"},
		{"another slice", slice("db-3", "db", "10.128.0.7", headless), "10.128.0.5 10.128.0.6 10.128.0.7"},
		{"one for another proxy", slice("db-4", "db", "10.128.0.8", headless, apis.LabelServiceProxyName), "10.128.0.5 10.128.0.6 10.128.0.7"},
		{"one changes its Service", slice("db-3", "other", "10.128.0.7", headless), "10.128.0.5 10.128.0.6"},
		{"and comes back", slice("db-3", "db", "10.128.0.7", headless), "10.128.0.5 10.128.0.6 10.128.0.7"},
		{"one goes", func() { s.setUnserved(headlessSlices, NameOf(clustertest.NewSlice("db-1", "db")), unservedEndpoints{}) }, "10.128.0.6 10.128.0.7"},
		{"the annotation goes", set(headlessService(func(s *v1.Service) { s.Annotations = nil })), ""},
		{"and comes back", set(headlessService(nil)), "10.128.0.6 10.128.0.7"},
		{"a Service with a cluster IP has its name now", set(served), "10.128.0.6"},
		{"the headless one is told again, late", set(headlessService(nil)), "10.128.0.6"},
		{"the end of the headless one is told late", deleted(headlessService(nil)), "10.128.0.6"},
		{"a headless one has the name now", set(headlessService(func(s *v1.Service) { s.CreationTimestamp = metav1.Time{Time: time.Unix(3000, 0)} })), "10.128.0.6 10.128.0.7"},
		{"the end of the other is told late", deleted(served), "10.128.0.6 10.128.0.7"},
		{"the end", deleted(headlessService(nil)), ""},
	} {
		step.do()
		got := clustertest.BoundPods(followedPlan(s, v1.IPv4Protocol))
		if whole := clustertest.BoundPods(planOf(s, v1.IPv4Protocol)); got != step.want || whole != step.want {
			t.Errorf("%s: bound is %q, and from all objects at once %q, want %q", step.name, got, whole, step.want)
		}
	}
	if len(s.headless) != 1 {
		t.Errorf("the state keeps %v, want what the Service had", s.headless)
	}
}
