package cluster

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/placement"
)

// hold is a step's deed: the node holds these addresses, and no others.
func hold(list ...string) func(stateTest) Effect {
	return func(s stateTest) Effect { return effectOf(s.SetHeld(addresses(list...), 0)) }
}

// TestState_HolderBindsPodsElsewhere: as long as a node holds an egress IP it binds all pods that have it.
func TestState_HolderBindsPodsElsewhere(t *testing.T) {
	set := func(endpoints ...string) func(stateTest) Effect {
		return func(s stateTest) Effect { return s.setSlice(clustertest.Placed("web-1", "web", endpoints...)) }
	}
	five, six := []string{"10.128.0.5"}, []string{"10.128.0.6"}
	s := newStateTest(t, nil)
	s.SetService(clustertest.NewService("web", nil))
	s.setSlice(clustertest.Placed("web-1", "web", "10.128.0.5@there", "10.128.0.7@here"))
	s.follow()
	s.take(
		step{"it holds another address", hold("203.0.113.9"), nothing, nil, nil},
		step{"it takes the egress IP", hold("203.0.113.9", "203.0.113.1"), Here, five, nil},
		step{"the same again", hold("203.0.113.1", "203.0.113.9"), nothing, nil, nil},
		step{"a pod comes elsewhere", set("10.128.0.5@there", "10.128.0.7@here", "10.128.0.6@yonder"), Here, six, nil},
		step{"it moves to a third node", set("10.128.0.5@there", "10.128.0.7@here", "10.128.0.6@there"), Here, nil, nil},
		step{"it comes here", set("10.128.0.5@there", "10.128.0.7@here", "10.128.0.6@here"), Here, nil, nil},
		step{"it goes away", set("10.128.0.5@there", "10.128.0.7@here"), Here, nil, six},
		step{"the egress IP goes to another node", hold(), Here, nil, five},
		step{"a pod comes elsewhere, as does the egress IP", set("10.128.0.5@there", "10.128.0.7@here", "10.128.0.6@yonder"), Elsewhere, nil, nil},
		step{"the egress IP comes back", hold("203.0.113.1"), Here, append(five, six...), nil},
		step{"the Service gets another one", func(s stateTest) Effect {
			return effectOf(s.SetService(clustertest.NewService("web", func(s *v1.Service) { s.Spec.ExternalIPs = []string{"203.0.113.2"} })))
		}, Here, []string{"10.128.0.7"}, []string{"10.128.0.5", "10.128.0.6", "10.128.0.7"}},
		step{"the Service is deleted", func(s stateTest) Effect { return effectOf(s.DeleteService(clustertest.NewService("web", nil))) }, Here, nil, []string{"10.128.0.7"}},
		step{"it comes back, with the address that is held", func(s stateTest) Effect { return effectOf(s.SetService(clustertest.NewService("web", nil))) }, Here,
			[]string{"10.128.0.5", "10.128.0.6", "10.128.0.7"}, nil},
	)
}

// TestState_HolderSeesOlderServices: a pod elsewhere that an older Service binds to an address elsewhere is
// bound to that, and not to the one that is held.
func TestState_HolderSeesOlderServices(t *testing.T) {
	s := newStateTest(t, nil)
	s.SetService(clustertest.NewService("web", nil))
	s.setSlice(clustertest.Placed("web-1", "web", "10.128.0.5@there"))
	s.SetHeld(addresses("203.0.113.1"), 0)
	older := clustertest.NewService("older", func(s *v1.Service) {
		s.CreationTimestamp, s.Spec.ExternalIPs = metav1.Unix(1, 0), []string{"203.0.113.2"}
	})
	bound := func(want string) {
		t.Helper()
		p := followedPlan(s.State, v1.IPv4Protocol)
		if len(p.Bindings) != 1 || p.Bindings[0].EgressIP != netip.MustParseAddr(want) {
			t.Errorf("bindings %v, want one to %s", p.Bindings, want)
		}
	}
	bound("203.0.113.1")
	s.SetService(older)
	s.setSlice(clustertest.Placed("older-1", "older", "10.128.0.5@there", "10.128.0.6@there"))
	bound("203.0.113.2")
	s.setSlice(clustertest.Placed("older-1", "older", "10.128.0.6@there"))
	bound("203.0.113.1")
	s.setSlice(clustertest.Placed("older-1", "older", "10.128.0.5@there"))
	bound("203.0.113.2")
	s.DeleteService(older)
	bound("203.0.113.1")
}

// TestState_NothingHeldNothingKept: no endpoints are indexed on a node that holds no egress IP of a claim, or that
// has all endpoints anyway.
func TestState_NothingHeldNothingKept(t *testing.T) {
	for scope, held := range map[placement.Scope]string{placement.Node: "203.0.113.9", placement.Cluster: "203.0.113.1"} {
		s := newStateTest(t, func(c *Config) { c.Scope = scope })
		s.SetService(clustertest.NewService("web", nil))
		s.SetHeld(addresses(held), 0)
		s.setSlice(clustertest.Placed("web-1", "web", "10.128.0.5@there"))
		s.SetNode(newNode("here", "10.128.1.0/24"))
		if s.byAddress != nil {
			t.Errorf("scope %s, holding %s: indexed %v", scope, held, s.byAddress)
		}
	}
}

func TestState_EgressIPs(t *testing.T) {
	claiming := func(name string, ips ...string) *v1.Service {
		return clustertest.NewService(name, func(s *v1.Service) { s.Spec.ExternalIPs = ips })
	}
	s := newStateTest(t, nil)
	for _, step := range []struct {
		what   string
		do     func()
		v4, v6 []string
	}{
		{"none", func() {}, nil, nil},
		{"one of each family", func() { s.SetService(claiming("a", "203.0.113.5", "203.0.113.4", "2001:db8::1")) }, []string{"203.0.113.5"}, []string{"2001:db8::1"}},
		{"the same for another", func() { s.SetService(claiming("b", "203.0.113.5")) }, []string{"203.0.113.5"}, []string{"2001:db8::1"}},
		{"a lower one", func() { s.SetService(claiming("c", "203.0.113.1")) }, []string{"203.0.113.1", "203.0.113.5"}, []string{"2001:db8::1"}},
		{"a refused one", func() { s.SetService(claiming("d", "10.128.0.1")) }, []string{"203.0.113.1", "203.0.113.5"}, []string{"2001:db8::1"}},
		{"one that cannot be read", func() { s.SetService(claiming("d", "nonsense")) }, []string{"203.0.113.1", "203.0.113.5"}, []string{"2001:db8::1"}},
		{"one of two claims goes", func() { s.SetService(claiming("a")) }, []string{"203.0.113.1", "203.0.113.5"}, nil},
		{"the other goes, too", func() { s.DeleteService(claiming("b")) }, []string{"203.0.113.1"}, nil},
		{"it is gone already", func() { s.DeleteService(claiming("b")) }, []string{"203.0.113.1"}, nil},
		{"endpoints", func() { s.setSlice(clustertest.Placed("c-1", "c", "10.128.0.5@here")) }, []string{"203.0.113.1"}, nil},
		{"the last goes", func() { s.DeleteService(claiming("c")) }, nil, nil},
	} {
		step.do()
		got := [][]string{spelled(s.EgressIPs(v1.IPv4Protocol)), spelled(s.EgressIPs(v1.IPv6Protocol))}
		if diff := cmp.Diff([][]string{step.v4, step.v6}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

// TestState_EgressIPsAreOfWhoMayHaveThem: anybody may write a Service that names any address. That makes it an egress IP for nobody, as long
// as the Service is refused it for the address, or for an older owner who does not claim it.
func TestState_EgressIPsAreOfWhoMayHaveThem(t *testing.T) {
	const egressIP, late = "203.0.113.1", "203.0.113.2"
	claiming := func(namespace string, age int64, ips ...string) *v1.Service {
		return clustertest.NewService("web", func(s *v1.Service) {
			s.Namespace, s.CreationTimestamp, s.Spec.ExternalIPs = namespace, metav1.Unix(100-age, 0), ips
		})
	}
	s := newStateTest(t, nil)
	expect := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, spelled(s.EgressIPs(v1.IPv4Protocol))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	s.SetNode(clustertest.NewNode("there", "192.0.2.2", v1.ConditionTrue))
	s.SetServiceCIDRs([]string{"172.30.0.0/16"})
	for namespace, refused := range map[string]string{
		"pod": "10.128.0.5", "cluster": "172.30.0.1", "node": "192.0.2.2", "loopback": "127.0.0.1", "annotated": "203.0.113.9", "owned": "203.0.113.8",
	} {
		named := claiming(namespace, 1, refused)
		if namespace == "annotated" { // nothing allows it
			named.Spec.ExternalIPs, named.Annotations = nil, map[string]string{EgressIPAnnotation: refused}
		}
		s.SetService(named)
	}
	s.SetService(clustertest.NewService("shop", func(s *v1.Service) { // it has an address, and claims none
		s.CreationTimestamp, s.Spec.ExternalIPs, s.Annotations = metav1.Unix(1, 0), []string{"203.0.113.8"}, map[string]string{Annotation: "false"}
	}))
	expect("refused ones alone")
	s.SetService(claiming("younger", 2, egressIP))
	s.SetService(claiming("older", 3, egressIP))
	expect("one of two namespaces", egressIP)
	s.DeleteService(claiming("older", 3))
	expect("the older is gone", egressIP)
	s.SetService(claiming("pod", 1, late))
	expect("another Service names one that it may have", egressIP, late)
	s.SetNode(clustertest.NewNode("joined", late, v1.ConditionTrue))
	expect("that is a node's now", egressIP)
	s.DeleteNode("joined")
	expect("and is not any more", egressIP, late)
	if change := s.Update(v1.IPv4Protocol); len(change.Refused) != 5 {
		t.Errorf("%d refusals, want one of each other Service that names what it may not have: %v", len(change.Refused), change.Refused)
	}
}

func spelled(ips []netip.Addr) (list []string) {
	for _, ip := range ips {
		list = append(list, ip.String())
	}
	return list
}

// largeState has 1,000 Services with 100 endpoints each, of which a quarter of a percent is here.
func largeState(tb testing.TB) (s *State, services int, slice func(service, changed int) *discovery.EndpointSlice) {
	tb.Helper()
	s = New(Config{NodeName: "here", ClusterCIDRs: testConfig.ClusterCIDRs})
	slice = func(service, changed int) *discovery.EndpointSlice {
		endpoints := make([]string, 100)
		for i := range endpoints {
			number := service*100 + i
			node := fmt.Sprint("node-", number%400)
			if number%400 == 0 {
				node = "here"
			}
			if i == 50 {
				number, node = 200_000+changed, "node-1"
			}
			endpoints[i] = fmt.Sprintf("10.%d.%d.%d@%s", 128+number>>16, number>>8&255, number&255, node)
		}
		name := fmt.Sprint("s", service)
		return clustertest.Placed(name+"-1", name, endpoints...)
	}
	services = 1000
	for i := range services {
		s.SetService(clustertest.NewService(fmt.Sprint("s", i), func(s *v1.Service) {
			s.Spec.ExternalIPs = []string{fmt.Sprintf("203.0.%d.%d", i>>8, i&255)}
		}))
		if _, err := s.SetSlice(slice(i, 0)); err != nil {
			tb.Fatal(err)
		}
	}
	s.Update(v1.IPv4Protocol)
	return s, services, slice
}

// firstAddresses are the egress IPs of so many Services of a largeState.
func firstAddresses(count int) map[netip.Addr]bool {
	held := map[netip.Addr]bool{}
	for i := range count {
		held[netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})] = true
	}
	return held
}

// BenchmarkState_EndpointElsewhere is a pod elsewhere that is replaced by another one, on a node that holds so
// many of 1,000 egress IPs: of the first Service, whose address the node holds if it holds any, and of the last.
func BenchmarkState_EndpointElsewhere(b *testing.B) {
	for _, count := range []int{0, 1, 200} {
		for _, which := range []string{"first", "last"} {
			b.Run(fmt.Sprintf("held=%d/service=%s", count, which), func(b *testing.B) {
				s, services, slice := largeState(b)
				s.SetHeld(firstAddresses(count), 0)
				s.Update(v1.IPv4Protocol)
				service := map[string]int{"first": 0, "last": services - 1}[which]
				versions := []*discovery.EndpointSlice{slice(service, 1), slice(service, 2)}
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					if changed, _ := s.SetSlice(versions[n%2]); changed == Here {
						s.Update(v1.IPv4Protocol)
					}
				}
			})
		}
	}
}

// BenchmarkState_SetHeld is an egress IP of 100 pods that comes and goes: the first one, for which all endpoints
// are indexed, and one of more.
func BenchmarkState_SetHeld(b *testing.B) {
	b.Run("first", func(b *testing.B) {
		s, _, _ := largeState(b)
		before := heap()
		for b.Loop() {
			s.byAddress = nil
			s.SetHeld(firstAddresses(1), 0)
			b.StopTimer()
			b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-kept")
			s.SetHeld(nil, 0)
			b.StartTimer()
		}
	})
	b.Run("another", func(b *testing.B) {
		s, _, _ := largeState(b)
		held := []map[netip.Addr]bool{firstAddresses(100), firstAddresses(101)}
		for n := 0; b.Loop(); n++ {
			s.SetHeld(held[n%2], 0)
			s.Update(v1.IPv4Protocol)
		}
	})
}

// heap returns how much memory is in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestDiffering_CutsBothEnds(t *testing.T) {
	for _, test := range []struct{ a, b, wantA, wantB string }{
		{"", "", "", ""},
		{"abc", "abc", "", ""},
		{"abc", "axc", "b", "x"},
		{"abc", "ac", "b", ""},
		{"ac", "abc", "", "b"},
		{"abc", "", "abc", ""},
		{"aa", "aaa", "", "a"},
		{"abcd", "acbd", "bc", "cb"},
	} {
		a, b := differing([]byte(test.a), []byte(test.b))
		if !slices.Equal([]string{string(a), string(b)}, []string{test.wantA, test.wantB}) {
			t.Errorf("%q and %q: %q and %q, want %q and %q", test.a, test.b, a, b, test.wantA, test.wantB)
		}
	}
}
