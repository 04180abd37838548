package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// Three egress IPs of a Service.
const three = "203.0.113.1,203.0.113.2,203.0.113.3"

// newChoiceTest returns a state that steers.
func newChoiceTest(t *testing.T) stateTest {
	return newStateTest(t, func(c *Config) {
		c.Steering.Mode = holders.Auto
		c.NamespaceCIDRs = map[string][]netip.Prefix{"*": {netip.MustParsePrefix("203.0.113.0/29"), netip.MustParsePrefix("2001:db8::/64")}}
	})
}

// naming is the Service web with egress IPs that its annotation names.
func naming(ips string) *v1.Service {
	return clustertest.NewService("web", func(s *v1.Service) {
		s.Spec.ExternalIPs, s.Annotations = nil, map[string]string{EgressIPAnnotation: ips}
	})
}

// manyPods is an EndpointSlice of web with a number of pods of a node, each with a UID.
func manyPods(node string, from, to int) *discovery.EndpointSlice {
	var endpoints []string
	for i := from; i < to; i++ {
		endpoints = append(endpoints, fmt.Sprintf("10.128.%d.%d@%s", i/250, 1+i%250, node))
	}
	slice := clustertest.Placed("web-"+node, "web", endpoints...)
	for i := range slice.Endpoints {
		slice.Endpoints[i].TargetRef.UID = types.UID("uid of " + slice.Endpoints[i].Addresses[0])
	}
	return slice
}

// leaving are the egress IPs of pods, by these.
func (s stateTest) leaving() map[netip.Addr]netip.Addr {
	s.Helper()
	if _, right := s.Audit(v1.IPv4Protocol); !right {
		s.Error("the plan that followed is not the one for the objects")
	}
	leaving := map[netip.Addr]netip.Addr{}
	for _, b := range followedPlan(s.State, v1.IPv4Protocol).Bindings {
		leaving[b.Pod] = b.EgressIP
	}
	return leaving
}

// shares counts the pods by egress IP.
func shares(leaving map[netip.Addr]netip.Addr) map[string]int {
	counts := map[string]int{}
	for _, ip := range leaving {
		counts[ip.String()]++
	}
	return counts
}

// zoned is a Node in a zone.
func zoned(name, zone string) *v1.Node {
	node := newNode(name)
	node.Labels = map[string]string{v1.LabelTopologyZone: zone}
	node.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: map[string]string{"here": "192.0.2.1", "there": "192.0.2.2", "yonder": "192.0.2.3"}[name]}}
	return node
}

// TestChoices_SpreadByUID: without a holder, and among holders of no zone, each address gets its share.
func TestChoices_SpreadByUID(t *testing.T) {
	s := newChoiceTest(t)
	s.SetService(naming(three))
	s.setSlice(manyPods("here", 0, 600))
	for ip, n := range shares(s.leaving()) {
		if n < 150 || n > 250 {
			t.Errorf("%d of 600 pods leave from %s, want about 200", n, ip)
		}
	}
	if own := s.PublishChoices()["ns/web"]; len(own) != 600 {
		t.Errorf("%d choices are told, want 600", len(own))
	}
}

// TestChoices_HaveABound: a tenant that writes EndpointSlices without end leaves room for others, and for what else is in the Lease, also
// by way of a Service that had one egress IP. What there was no room for is chosen when there is.
func TestChoices_HaveABound(t *testing.T) {
	for name, first := range map[string]string{"several from the start": three, "one at first": "203.0.113.1"} {
		t.Run(name, func(t *testing.T) {
			s := newChoiceTest(t)
			s.SetService(naming(first))
			s.setSlice(manyPods("here", 0, 5000))
			s.leaving()
			s.SetService(naming(three))
			s.leaving()
			bank, slice := naming("203.0.113.4,203.0.113.5"), manyPods("here", 6000, 6010)
			bank.Namespace, slice.Namespace = "bank", "bank"
			for i := range slice.Endpoints {
				slice.Endpoints[i].TargetRef.Namespace = "bank"
			}
			s.SetService(bank)
			s.setSlice(slice)
			s.leaving()
			own := s.PublishChoices()
			text, err := json.Marshal(own)
			if n := len(own["ns/web"]); n < 500 || n > 1000 || len(own["bank/web"]) != 10 || len(text) > roomForNamespace+1000 || err != nil {
				t.Errorf("the node has chosen for %d and %d pods, in %d bytes, %v; want a part, and all of the other namespace", n, len(own["bank/web"]), len(text), err)
			}
			s.setSlice(manyPods("here", 4500, 5000))
			for range 3 { // some wait for the next look
				s.leaving()
			}
			if n := len(s.leaving()); n != 510 {
				t.Errorf("%d pods are bound, want all that are left", n)
			}
			counted := s.choices.room.all
			if s.choices.recount(s.choices.told["here"]); counted != s.choices.room.all {
				t.Errorf("%d bytes are counted, and there are %d", counted, s.choices.room.all)
			}
		})
	}
}

// TestChoices_WhoWaitedAndWent is forgotten, and takes nobody's grace.
func TestChoices_WhoWaitedAndWent(t *testing.T) {
	s := newChoiceTest(t)
	s.SetService(naming(three))
	s.setSlice(manyPods("here", 0, 5000))
	s.leaving()
	if len(s.choices.waiting) == 0 {
		t.Fatal("there is room for 5000 pods")
	}
	s.setSlice(manyPods("here", 0, 0))
	s.leaving()
	s.leaving() // of this one, too
	if n := len(s.choices.waiting); n > 0 {
		t.Errorf("%d pods wait that are gone", n)
	}
	few := manyPods("here", 6000, 6010)
	s.setSlice(few)
	before := s.leaving()
	s.setSlice(manyPods("here", 0, 0))
	s.leaving()
	s.SetService(naming(three + ",203.0.113.4,203.0.113.5,203.0.113.6"))
	s.setSlice(few)
	if diff := cmp.Diff(before, s.leaving(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || len(before) != 10 {
		t.Errorf("the EndpointSlice was gone for a moment, and the pods leave from others (-before +after):\n%s", diff)
	}
}

// TestChoices_OneForAMoment: pods stay with the only address that their Service has had for a moment.
func TestChoices_OneForAMoment(t *testing.T) {
	s := newChoiceTest(t)
	s.SetService(naming("203.0.113.1,203.0.113.2"))
	s.setSlice(manyPods("here", 0, 20))
	s.leaving()
	s.SetService(naming("203.0.113.2"))
	s.leaving()
	s.SetService(naming("203.0.113.1,203.0.113.2"))
	if got := shares(s.leaving()); got["203.0.113.2"] != 20 {
		t.Errorf("pods are shared as %v, want all where they were", got)
	}
}

// TestChoices_ZoneThenHolder: a node chooses what its zone holds, else what any node holds.
func TestChoices_ZoneThenHolder(t *testing.T) {
	at := func(ips map[string]string) map[netip.Addr]string {
		held := map[netip.Addr]string{}
		for ip, node := range ips {
			held[netip.MustParseAddr(ip)] = node
		}
		return held
	}
	for name, test := range map[string]struct {
		held map[netip.Addr]string
		want []string
	}{
		"two in the zone":          {at(map[string]string{"203.0.113.1": "here", "203.0.113.2": "there", "203.0.113.3": "yonder"}), []string{"203.0.113.1", "203.0.113.2"}},
		"held in another zone":     {at(map[string]string{"203.0.113.3": "yonder"}), []string{"203.0.113.3"}},
		"one in the zone, two not": {at(map[string]string{"203.0.113.2": "there", "203.0.113.3": "yonder", "203.0.113.1": "yonder"}), []string{"203.0.113.2"}},
		"by nodes that are gone":   {at(map[string]string{"203.0.113.1": "gone"}), []string{"203.0.113.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChoiceTest(t)
			s.SetNode(zoned("here", "a"))
			s.SetNode(zoned("there", "a"))
			s.SetNode(zoned("yonder", "b"))
			s.SetHolders(v1.IPv4Protocol, test.held)
			s.SetService(naming(three))
			s.setSlice(manyPods("here", 0, 60))
			if got := slices.Sorted(maps.Keys(shares(s.leaving()))); !slices.Equal(got, test.want) {
				t.Errorf("pods leave from %v, want %v", got, test.want)
			}
		})
	}
}

// TestChoices_PodsKeepTheirs while the Service has it, whatever comes, goes or moves; what goes moves its own pods alone.
func TestChoices_PodsKeepTheirs(t *testing.T) {
	s := newChoiceTest(t)
	held := map[netip.Addr]string{netip.MustParseAddr("203.0.113.1"): "there"}
	s.SetHolders(v1.IPv4Protocol, held)
	s.SetService(naming("203.0.113.1"))
	s.setSlice(manyPods("here", 0, 100))
	before := s.leaving()
	keeps := func(when string) {
		t.Helper()
		after := s.leaving()
		for pod, ip := range before {
			if after[pod] != ip {
				t.Fatalf("%s: %s leaves from %s, and left from %s", when, pod, after[pod], ip)
			}
		}
		before = after
	}
	s.SetService(naming(three))
	keeps("two addresses come")
	s.SetHolders(v1.IPv4Protocol, map[netip.Addr]string{netip.MustParseAddr("203.0.113.2"): "there", netip.MustParseAddr("203.0.113.3"): "there"})
	keeps("the first is lost")
	s.setSlice(manyPods("here", 0, 300))
	keeps("pods come")
	if got := shares(before); got["203.0.113.1"] != 100 || got["203.0.113.2"] < 60 || got["203.0.113.3"] < 60 {
		t.Errorf("the pods are shared as %v, want 100 that stay, and the others with the two that are held", got)
	}
	s.SetService(naming("203.0.113.3, 203.0.113.2,203.0.113.4 ,203.0.113.1"))
	keeps("another comes, in another order")
	stays := maps.Clone(before)
	maps.DeleteFunc(stays, func(_, ip netip.Addr) bool { return ip.String() == "203.0.113.2" })
	before = stays
	s.SetService(naming("203.0.113.1,203.0.113.3,203.0.113.4"))
	keeps("one goes")
	all := manyPods("here", 0, 300)
	s.setSlice(manyPods("here", 0, 0))
	if left := s.leaving(); len(left) > 0 {
		t.Errorf("all pods are gone, and %v leave", left)
	}
	s.setSlice(all)
	keeps("the EndpointSlice was gone for a moment")
	s.setSlice(manyPods("here", 0, 0))
	s.leaving()
	s.pruneChoices(v1.IPv4Protocol, time.Now().Add(unusedFor))
	if own := s.PublishChoices(); len(own) > 0 {
		t.Errorf("all pods are gone, and %v is told", own)
	}
}

// TestChoices_OpenWithoutHolders: what was chosen when nobody held any address is made again when all are held, or ten seconds later; then
// it is final, also if nobody holds any, for pods use them where they run.
func TestChoices_OpenWithoutHolders(t *testing.T) {
	held := func(ips ...string) map[netip.Addr]string {
		result := map[netip.Addr]string{}
		for _, ip := range ips {
			result[netip.MustParseAddr(ip)] = "here"
		}
		return result
	}
	start := func(t *testing.T, mode holders.Mode) (s stateTest, first map[netip.Addr]netip.Addr) {
		s = newChoiceTest(t)
		s.Config.Steering.Mode = mode
		s.SetNode(zoned("here", "a"))
		s.SetService(naming(three))
		s.setSlice(manyPods("here", 0, 60))
		return s, s.leaving()
	}
	for name, test := range map[string]struct {
		mode  holders.Mode
		after time.Duration
		held  map[netip.Addr]string
		want  []string // with what all pods leave from then; nothing if they keep what they have
	}{
		"one is held, and others may be about to": {holders.Auto, time.Second, held("203.0.113.1"), nil},
		"one is held for long":                    {holders.Auto, openFor, held("203.0.113.1"), []string{"203.0.113.1"}},
		"all are held":                            {holders.Auto, time.Second, held("203.0.113.1", "203.0.113.2", "203.0.113.3"), nil},
		"one is held later":                       {holders.Auto, openFor + time.Second, nil, nil},
		"one is held later, and has to be":        {holders.Required, openFor + time.Second, nil, []string{"203.0.113.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, first := start(t, test.mode)
				time.Sleep(test.after)
				s.SetHolders(v1.IPv4Protocol, test.held)
				got := s.leaving()
				if test.held == nil {
					time.Sleep(time.Hour)
					s.SetHolders(v1.IPv4Protocol, held("203.0.113.1"))
					got = s.leaving()
				}
				if all := slices.Sorted(maps.Keys(shares(got))); test.want != nil && !slices.Equal(all, test.want) {
					t.Errorf("pods leave from %v, want %v", all, test.want)
				}
				if diff := cmp.Diff(first, got, compareNetip); test.want == nil && diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				time.Sleep(time.Hour)
				s.SetHolders(v1.IPv4Protocol, held("203.0.113.2"))
				if test.after < openFor && len(test.held) < 3 {
					return
				}
				if diff := cmp.Diff(got, s.leaving(), compareNetip); diff != "" {
					t.Errorf("the choice is final, and changes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestChoices_OpenForWhatComes: as long as no node holds any of its Service's addresses, a pod may get one that the Service has only since.
func TestChoices_OpenForWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newChoiceTest(t)
		s.Config.Steering.Mode = holders.Required
		s.SetNode(zoned("here", "a"))
		s.SetService(naming("203.0.113.1,203.0.113.2"))
		s.setSlice(manyPods("here", 0, 20))
		s.leaving()
		s.SetService(naming(three))
		s.SetHolders(v1.IPv4Protocol, map[netip.Addr]string{netip.MustParseAddr("203.0.113.3"): "here"})
		s.leaving()
		time.Sleep(openFor)
		if all := shares(s.leaving()); all["203.0.113.3"] != 20 {
			t.Errorf("pods leave from %v, want the one that is held", all)
		}
	})
}

// TestChoices_OpenInAnotherZone: while one of the addresses is held by nobody, a pod that was given one of another zone gets the one of its
// own zone when that is held. It gets no other one, and after ten seconds it keeps what it has.
func TestChoices_OpenInAnotherZone(t *testing.T) {
	first, second, third := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr("203.0.113.3")
	for name, test := range map[string]struct {
		after time.Duration
		held  map[netip.Addr]string
		want  string
	}{
		"its zone's is held":              {time.Second, map[netip.Addr]string{first: "yonder", second: "here"}, "203.0.113.2"},
		"its zone's is held after long":   {openFor, map[netip.Addr]string{first: "yonder", second: "yonder"}, "203.0.113.1"},
		"the others are in another zone":  {time.Second, map[netip.Addr]string{first: "yonder", second: "yonder", third: "yonder"}, "203.0.113.1"},
		"the one that it has is not held": {time.Second, map[netip.Addr]string{second: "yonder"}, "203.0.113.1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newChoiceTest(t)
				s.SetNode(zoned("here", "a"))
				s.SetNode(zoned("yonder", "b"))
				s.SetHolders(v1.IPv4Protocol, map[netip.Addr]string{first: "yonder"})
				s.SetService(naming(three))
				s.setSlice(manyPods("here", 0, 60))
				s.leaving()
				time.Sleep(test.after)
				s.SetHolders(v1.IPv4Protocol, test.held)
				got := s.leaving()
				if all := slices.Sorted(maps.Keys(shares(got))); !slices.Equal(all, []string{test.want}) {
					t.Errorf("pods leave from %v, want %s", all, test.want)
				}
				time.Sleep(openFor)
				s.leaving()
				s.SetHolders(v1.IPv4Protocol, map[netip.Addr]string{first: "yonder", second: "yonder", third: "here"})
				if diff := cmp.Diff(got, s.leaving(), compareNetip); diff != "" {
					t.Errorf("the choice is final, and changes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestChoices_TwoServices of a pod do not disturb each other: whatever becomes of one, the pod keeps the other's egress IP. Two that can
// agree do.
func TestChoices_TwoServices(t *testing.T) {
	s := newChoiceTest(t)
	udp := func(ips string) *v1.Service {
		svc := naming(ips)
		svc.Name, svc.Spec.Ports = "dns", []v1.ServicePort{{Port: 53, Protocol: v1.ProtocolUDP}}
		return svc
	}
	dns := manyPods("here", 0, 60)
	dns.Name, dns.Labels = "dns-1", map[string]string{discovery.LabelServiceName: "dns"}
	s.SetHolders(v1.IPv4Protocol, map[netip.Addr]string{netip.MustParseAddr("203.0.113.1"): "there"})
	s.SetService(naming("203.0.113.1,203.0.113.2"))
	s.setSlice(manyPods("here", 0, 60))
	s.SetService(udp("203.0.113.3"))
	s.setSlice(dns)
	of := func(protocol plan.Protocol) map[string]int {
		s.leaving()
		counts := map[string]int{}
		for _, b := range followedPlan(s.State, v1.IPv4Protocol).Bindings {
			if b.Protocol == protocol {
				counts[b.EgressIP.String()]++
			}
		}
		return counts
	}
	is := func(when string, tcp, udp map[string]int) {
		t.Helper()
		if diff := cmp.Diff([]map[string]int{tcp, udp}, []map[string]int{of(plan.TCP), of(plan.UDP)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	one, three := map[string]int{"203.0.113.1": 60}, map[string]int{"203.0.113.3": 60}
	is("at first", one, three)
	s.SetService(udp("203.0.113.1,203.0.113.3"))
	is("the second has what was chosen for the first as well", one, three)
	s.SetService(udp("203.0.113.1,203.0.113.3,203.0.113.2"))
	is("and more", one, three)
	s.SetService(naming("203.0.113.2,203.0.113.3"))
	is("the first loses its own, and agrees with the second", map[string]int{"203.0.113.3": 60}, three)
	s.DeleteService(udp(""))
	is("the second goes", map[string]int{"203.0.113.3": 60}, map[string]int{})
}

// TestChoices_NodeRegistersAnew: what a node has chosen counts as long as its Node or its Lease is there.
func TestChoices_NodeRegistersAnew(t *testing.T) {
	five := []string{"10.128.0.5"}
	told := plan.NodeChoices{"ns/web": {netip.MustParseAddr(five[0]): netip.MustParseAddr("203.0.113.1")}}
	s := newChoiceTest(t)
	s.SetHeld(addresses("203.0.113.1"), 0)
	s.SetNode(zoned("there", "a"))
	s.SetService(naming(three))
	s.setSlice(clustertest.Placed("web-1", "web", "10.128.0.5@there"))
	s.SetChoices("there", told)
	s.follow()
	does := func(what func()) func(stateTest) Effect { return func(stateTest) Effect { what(); return Here } }
	s.take(
		step{"the Node is deleted", does(func() { s.DeleteNode("there") }), Here, nil, nil},
		step{"it registers anew", does(func() { s.SetNode(zoned("there", "a")) }), Here, nil, nil},
		step{"its Lease goes", does(func() { s.Unlease("there") }), Here, nil, nil},
		step{"and comes back", does(func() { s.SetChoices("there", told) }), Here, nil, nil},
		step{"its Lease goes again", does(func() { s.Unlease("there") }), Here, nil, nil},
		step{"and its Node", does(func() { s.DeleteNode("there") }), Here, nil, five},
	)
}

// TestChoices_HoldersFollowThePodsNode: a holder binds the pods for which their nodes chose what it holds, and what a node has not said
// yet it does not guess; but a pod keeps what it had before there was a choice.
func TestChoices_HoldersFollowThePodsNode(t *testing.T) {
	one, two := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")
	five, six := netip.MustParseAddr("10.128.0.5"), netip.MustParseAddr("10.128.0.6")
	chose := func(choices map[netip.Addr]netip.Addr) func(stateTest) Effect {
		return func(s stateTest) Effect {
			return effectOf(s.SetChoices("there", plan.NodeChoices{"ns/web": choices}))
		}
	}
	set := func(service *v1.Service) func(stateTest) Effect {
		return func(s stateTest) Effect { return effectOf(s.SetService(service)) }
	}
	s := newChoiceTest(t)
	s.SetHeld(map[netip.Addr]bool{one: true}, 0)
	s.setSlice(clustertest.Placed("web-1", "web", "10.128.0.5@there", "10.128.0.6@there"))
	s.take(
		step{"the Service", set(naming(three)), Here, nil, nil},
		step{"one pod's node chooses what is here", chose(map[netip.Addr]netip.Addr{five: one}), Here, []string{"10.128.0.5"}, nil},
		step{"the same again", chose(map[netip.Addr]netip.Addr{five: one}), nothing, nil, nil},
		step{"the other one's, what is elsewhere", chose(map[netip.Addr]netip.Addr{five: one, six: two}), nothing, nil, nil},
		step{"it comes here as well", hold("203.0.113.1", "203.0.113.2"), Here, []string{"10.128.0.6"}, nil},
		step{"they change", chose(map[netip.Addr]netip.Addr{five: two, six: two}), Here, []string{"10.128.0.5"}, []string{"10.128.0.5"}},
		step{"the Service has one alone", set(naming("203.0.113.1")), Here, []string{"10.128.0.5", "10.128.0.6"}, []string{"10.128.0.5", "10.128.0.6"}},
		step{"the node forgets", chose(nil), Here, nil, nil},
		step{"it has several again", set(naming(three)), Here, nil, nil},
		step{"the node tells of one", chose(map[netip.Addr]netip.Addr{five: one}), Here, nil, nil},
		step{"and of the other, which it moves", chose(map[netip.Addr]netip.Addr{five: one, six: two}), Here, []string{"10.128.0.6"}, []string{"10.128.0.6"}},
		step{"the Lease is deleted, and there is no Node", func(s stateTest) Effect { s.Unlease("there"); return Here }, Here, nil, []string{"10.128.0.5", "10.128.0.6"}},
	)
}

// TestChoices_OutliveTheProcess: a process that starts abides by what its node's Lease says, and by nothing that it says later.
func TestChoices_OutliveTheProcess(t *testing.T) {
	s := newChoiceTest(t)
	s.SetService(naming(three))
	s.setSlice(manyPods("here", 0, 60))
	before := s.leaving()
	next := newChoiceTest(t)
	next.SetChoices("here", s.PublishChoices())
	next.SetService(naming("203.0.113.9," + three))
	next.setSlice(manyPods("here", 0, 60))
	if diff := cmp.Diff(before, next.leaving(), compareNetip); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	next.PublishChoices()
	if next.SetChoices("here", nil) {
		t.Error("what this node says in its Lease is news to it")
	}
	if diff := cmp.Diff(before, next.leaving(), compareNetip); diff != "" {
		t.Errorf("when its Lease comes late (-want +got):\n%s", diff)
	}
	if !next.TellsOther(nil) || next.TellsOther(next.PublishChoices()) {
		t.Error("it is not known whether the Lease says what the node does")
	}
}

// leases are those that say what a state knows to be chosen.
func (s stateTest) leases() (leases []*coordinationv1.Lease) {
	byNode := map[string]plan.NodeChoices{}
	for _, family := range Families {
		for node, choices := range s.choicesOf(family) {
			if byNode[node] == nil {
				byNode[node] = plan.NodeChoices{}
			}
			for service, of := range choices {
				if byNode[node][service] == nil {
					byNode[node][service] = map[netip.Addr]netip.Addr{}
				}
				maps.Copy(byNode[node][service], of)
			}
		}
	}
	for node, choices := range byNode {
		text, err := json.Marshal(choices)
		if err != nil {
			s.Fatal(err)
		}
		leases = append(leases, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node, Annotations: map[string]string{holders.ChoicesAnnotation: string(text)}}})
	}
	return leases
}

// TestChoices_RandomEvents: whatever comes, the plan is that of the objects and of what is chosen, whoever was told that nothing changes
// was told the truth, and this node's pods keep their egress IPs as long as they may.
func TestChoices_RandomEvents(t *testing.T) {
	kept := 0
	for seed := range uint64(600) {
		s := newChoiceTest(t)
		h := &history{
			Rand: rand.New(rand.NewPCG(seed, 5)), several: true,
			services: map[string]*v1.Service{}, slices: map[string]*discovery.EndpointSlice{}, nodes: map[string]*v1.Node{},
		}
		for range 60 {
			before := s.several()
			s.checkEffect(h.event(s))
			kept += s.checkKept(before)
		}
		objects := h.objects()
		objects.Leases = s.leases()
		for _, family := range Families {
			s.checkPlan(family, objects)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if kept < 1000 {
		t.Errorf("%d bindings were compared; that is too little", kept)
	}
}

// several are the bindings of pods of this node alone by Services that have several egress IPs.
func (s stateTest) several() map[plan.Binding]bool {
	bindings := map[plan.Binding]bool{}
	for _, family := range Families {
		own, open := s.choices.told[s.Config.NodeName], s.choices.open
		for _, b := range followedPlan(s.State, family).Bindings {
			if _, isOpen := open[openPod{b.Service, b.Pod}]; !isOpen && own[b.Service.String()][b.Pod] == b.EgressIP && s.planners[family].Home(b.Pod) == s.Config.NodeName {
				bindings[b] = true
			}
		}
	}
	return bindings
}

// checkKept fails if a pod leaves from another egress IP of the same Service than before, which it has and may have still. It returns how
// many it compared.
func (s stateTest) checkKept(before map[plan.Binding]bool) (compared int) {
	s.Helper()
	for _, family := range Families {
		in, _ := s.Input(family)
		p := followedPlan(s.State, family)
		refused := map[netip.Addr]bool{}
		for _, r := range p.Refusals {
			refused[r.EgressIP] = refused[r.EgressIP] || !r.Pod.IsValid()
		}
		for _, after := range p.Bindings {
			for b := range before {
				if s.planners[family].Home(b.Pod) != s.Config.NodeName || b.Pod != after.Pod || b.Protocol != after.Protocol || b.Service != after.Service {
					continue
				}
				claims := slices.ContainsFunc(in.Claims, func(c plan.Claim) bool {
					return c.Service == b.Service && c.Several() && c.Claims(func(ip netip.Addr) bool { return ip == b.EgressIP })
				})
				if compared++; claims && !refused[b.EgressIP] && b.EgressIP != after.EgressIP {
					s.Errorf("%+v, and before %+v", after, b)
				}
			}
		}
	}
	return compared
}

// TestChoices_OneNamespaceIsFull: pods that wait for room in their own namespace take nobody's grace in another one.
func TestChoices_OneNamespaceIsFull(t *testing.T) {
	s := newChoiceTest(t)
	s.SetService(naming(three))
	few := manyPods("here", 6000, 6010)
	s.setSlice(few)
	other := naming("203.0.113.6,203.0.113.7")
	other.Namespace = "full"
	slice := manyPods("here", 0, 2000)
	slice.Namespace = other.Namespace
	for i := range slice.Endpoints {
		slice.Endpoints[i].TargetRef.Namespace = other.Namespace
	}
	s.SetService(other)
	s.setSlice(slice)
	before := s.leaving()
	if len(s.choices.waiting) == 0 {
		t.Fatal("there is room for all pods of a namespace")
	}
	s.setSlice(manyPods("here", 6000, 6000))
	s.leaving()
	s.SetService(naming(three + ",203.0.113.4,203.0.113.5"))
	s.setSlice(few)
	for pod, ip := range s.leaving() {
		if before[pod] != ip {
			t.Errorf("the EndpointSlice was gone for a moment, and %s leaves from %s, before from %s", pod, ip, before[pod])
		}
	}
}
