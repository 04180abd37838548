package cluster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// stateTest is a state that objects are told to.
type stateTest struct {
	*testing.T
	*State
}

func newStateTest(t *testing.T, change func(*Config)) stateTest {
	config := testConfig
	config.NodeName = "here"
	if change != nil {
		change(&config)
	}
	return stateTest{t, New(config)}
}

// SetSlice is that of the state, whose errors fail the test.
func (s stateTest) setSlice(slice *discovery.EndpointSlice) Effect {
	s.Helper()
	changed, err := s.State.SetSlice(slice)
	if err != nil {
		s.Fatal(err)
	}
	return changed
}

// follow brings the plan of IPv4 up to date, and returns the pods whose bindings that adds and removes.
func (s stateTest) follow() (added, removed []string) {
	change := s.Update(v1.IPv4Protocol)
	pods := func(bindings []plan.Binding) (list []string) {
		for _, b := range bindings {
			list = append(list, b.Pod.String())
		}
		return list
	}
	return pods(change.Added), pods(change.Removed)
}

// planOf is this node's plan, made of all that the state knows at once.
func planOf(s *State, family v1.IPFamily) plan.Plan {
	in, place := s.Input(family)
	return plan.Build(place.Of(in))
}

// effectOf is what it means if plans may change.
func effectOf(changed bool) Effect {
	if changed {
		return Here
	}
	return nothing
}

// step is an event, with what it may mean and what the plan of IPv4 becomes by it.
type step struct {
	what           string
	do             func(s stateTest) Effect
	want           Effect
	added, removed []string // pods
}

// take does the steps, one after the other.
func (s stateTest) take(steps ...step) {
	s.Helper()
	for _, step := range steps {
		if got := step.do(s); got != step.want {
			s.Errorf("%s: changed = %v, want %v", step.what, got, step.want)
		}
		added, removed := s.follow()
		if diff := cmp.Diff([][]string{step.added, step.removed}, [][]string{added, removed}); diff != "" {
			s.Errorf("%s: added and removed (-want +got):\n%s", step.what, diff)
		}
	}
}

// followedPlan is this node's plan, as it followed the changes up to now.
func followedPlan(s *State, family v1.IPFamily) (p plan.Plan) {
	s.Update(family)
	Planned{State: s, Family: family}.ask(func(planner *plan.Planner) { p = planner.Plan() })
	return p
}

// newNode is a Node with these networks for its pods.
func newNode(name string, podCIDRs ...string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.NodeSpec{PodCIDRs: podCIDRs}}
}

// TestState_ChangesThatMatter: the loop is woken when a plan may change, and only then.
func TestState_ChangesThatMatter(t *testing.T) {
	s := newStateTest(t, nil)
	pod := []string{"10.128.0.6"}
	s.take(
		step{"slice of no claimed Service", func(s stateTest) Effect { return s.setSlice(clustertest.NewSlice("web-1", "web", "10.128.0.5")) }, nothing, nil, nil},
		step{"Service without external IPs", func(s stateTest) Effect {
			return effectOf(s.SetService(clustertest.NewService("web", func(s *v1.Service) { s.Spec.ExternalIPs = nil })))
		}, nothing, nil, nil},
		step{"Service gets an external IP", func(s stateTest) Effect { return effectOf(s.SetService(clustertest.NewService("web", nil))) }, Here, []string{"10.128.0.5"}, nil},
		step{"the same again", func(s stateTest) Effect { return effectOf(s.SetService(clustertest.NewService("web", nil))) }, nothing, nil, nil},
		step{"a label of no interest", func(s stateTest) Effect {
			return effectOf(s.SetService(clustertest.NewService("web", func(s *v1.Service) { s.Labels = map[string]string{"a": "b"} })))
		}, nothing, nil, nil},
		step{"another address", func(s stateTest) Effect { return s.setSlice(clustertest.NewSlice("web-1", "web", "10.128.0.6")) }, Here, pod, []string{"10.128.0.5"}},
		step{"the same address, not ready", func(s stateTest) Effect { return s.setSlice(clustertest.NewSlice("web-1", "web", "10.128.0.6")) }, nothing, nil, nil},
		step{"the slice goes to another Service", func(s stateTest) Effect { return s.setSlice(clustertest.NewSlice("web-1", "other", "10.128.0.6")) }, Here, nil, pod},
		step{"and comes back", func(s stateTest) Effect { return s.setSlice(clustertest.NewSlice("web-1", "web", "10.128.0.6")) }, Here, pod, nil},
		step{"the slice is deleted", func(s stateTest) Effect { return s.DeleteSlice(clustertest.NewSlice("web-1", "web")) }, Here, nil, pod},
		step{"deleted again", func(s stateTest) Effect { return s.DeleteSlice(clustertest.NewSlice("web-1", "web")) }, nothing, nil, nil},
		step{"the Service is deleted", func(s stateTest) Effect { return effectOf(s.DeleteService(clustertest.NewService("web", nil))) }, Here, nil, nil},
		step{"deleted again", func(s stateTest) Effect { return effectOf(s.DeleteService(clustertest.NewService("web", nil))) }, nothing, nil, nil},
	)
	if len(s.services)+len(s.slices)+len(s.serviceOf) != 0 {
		t.Errorf("everything is deleted but state holds %v, %v, %v", s.services, s.slices, s.serviceOf)
	}
	if len(s.pods) != 0 {
		t.Errorf("everything is deleted but state knows pods %v", s.pods)
	}
}

// TestState_EndpointsElsewhere are no work for this node's loop, but news to those who watch the status,
// until they come here.
func TestState_EndpointsElsewhere(t *testing.T) {
	set := func(service string, endpoints ...string) func(stateTest) Effect {
		return func(s stateTest) Effect { return s.setSlice(clustertest.Placed("web-1", service, endpoints...)) }
	}
	five, six := []string{"10.128.0.5"}, []string{"10.128.0.6"}
	s := newStateTest(t, nil)
	s.SetService(clustertest.NewService("web", nil))
	s.SetService(clustertest.NewService("db", nil))
	s.follow()
	s.take(
		step{"one comes", set("web", "10.128.0.5@there"), Elsewhere, nil, nil},
		step{"the same again", set("web", "10.128.0.5@there"), nothing, nil, nil},
		step{"it goes to a third node", set("web", "10.128.0.5@yonder"), Elsewhere, nil, nil},
		step{"another comes", set("web", "10.128.0.5@yonder", "10.128.0.6@there"), Elsewhere, nil, nil},
		step{"one moves here", set("web", "10.128.0.5@here", "10.128.0.6@there"), Here, five, nil},
		step{"another moves on, elsewhere", set("web", "10.128.0.5@here", "10.128.0.6@yonder"), Elsewhere, nil, nil},
		step{"one comes that may be anywhere", set("web", "10.128.0.5@here", "10.128.0.6"), Here, six, nil},
		step{"it is elsewhere", set("web", "10.128.0.5@here", "10.128.0.6@yonder"), Here, nil, six},
		step{"the one here moves away", set("web", "10.128.0.5@there", "10.128.0.6@yonder"), Here, nil, five},
		step{"the slice goes to another Service", set("db", "10.128.0.5@there", "10.128.0.6@yonder"), Elsewhere, nil, nil},
		step{"the slice goes to a Service without a claim", set("other", "10.128.0.5@there"), Elsewhere, nil, nil},
		step{"and changes there", set("other", "10.128.0.5@yonder"), nothing, nil, nil},
		step{"and comes back", set("web", "10.128.0.5@yonder"), Elsewhere, nil, nil},
		step{"the slice is deleted", func(s stateTest) Effect { return s.DeleteSlice(clustertest.NewSlice("web-1", "web")) }, Elsewhere, nil, nil},
	)
}

// TestState_EndpointsBeforeTheirService: what is elsewhere stays there when the claim comes.
func TestState_EndpointsBeforeTheirService(t *testing.T) {
	newStateTest(t, nil).take(
		step{"the slice", func(s stateTest) Effect {
			return s.setSlice(clustertest.Placed("web-1", "web", "10.128.0.5@there", "10.128.0.6@here"))
		}, nothing, nil, nil},
		step{"the Service", func(s stateTest) Effect { return effectOf(s.SetService(clustertest.NewService("web", nil))) }, Here, []string{"10.128.0.6"}, nil},
		step{"the Service, deleted", func(s stateTest) Effect { return effectOf(s.DeleteService(clustertest.NewService("web", nil))) }, Here, nil, []string{"10.128.0.6"}},
	)
}

// TestState_ScopeCluster: there are no pods elsewhere.
func TestState_ScopeCluster(t *testing.T) {
	s := newStateTest(t, func(c *Config) { c.Scope = placement.Cluster })
	s.SetService(clustertest.NewService("web", nil))
	pod := []string{"10.128.0.5"}
	s.take(
		step{"one comes on another node", func(s stateTest) Effect { return s.setSlice(clustertest.Placed("web-1", "web", "10.128.0.5@there")) }, Here, pod, nil},
		step{"it is deleted", func(s stateTest) Effect { return s.DeleteSlice(clustertest.NewSlice("web-1", "web")) }, Here, nil, pod},
	)
}

// TestState_PodCIDRsAfterTheSlices: Nodes are watched by somebody else than EndpointSlices, so they come
// later, and a node that has just joined gets its pods' networks later still.
func TestState_PodCIDRsAfterTheSlices(t *testing.T) {
	set := func(node *v1.Node) func(stateTest) Effect {
		return func(s stateTest) Effect { return effectOf(s.SetNode(node)) }
	}
	named, unnamed := "10.128.0.5", "10.128.1.5"
	s := newStateTest(t, nil)
	s.SetService(clustertest.NewService("web", nil))
	s.setSlice(clustertest.Placed("web-1", "web", named+"@there", unnamed+"@there", "10.128.2.5@there", "10.128.3.5@here"))
	s.follow()
	s.take(
		step{"another node's", set(newNode("there", "10.128.2.0/24")), nothing, nil, nil},
		step{"this node's, without networks", set(newNode("here")), nothing, nil, nil},
		step{"this node's", set(newNode("here", "10.128.0.0/24", "fd00:10::/64")), Here, []string{named}, nil},
		step{"the same again, in another order", set(newNode("here", "fd00:10::/64", "10.128.0.0/24")), nothing, nil, nil},
		step{"another network", set(newNode("here", "10.128.1.0/24")), Here, []string{unnamed}, []string{named}},
		step{"the Node is deleted", func(s stateTest) Effect { return effectOf(s.DeleteNode("here")) }, Here, nil, []string{unnamed}},
		step{"deleted again", func(s stateTest) Effect { return effectOf(s.DeleteNode("here")) }, nothing, nil, nil},
	)
}

// TestState_NamesMatterWhereTheyAreMissing: a slice of a Service without external IPs wakes the loop
// if it may name the pod that a claim's own slice does not.
func TestState_NamesMatterWhereTheyAreMissing(t *testing.T) {
	for _, node := range []string{"here", "there"} {
		named := clustertest.Placed("atm-1", "atm", "10.128.0.5@"+node)
		named.Namespace = "bank"
		named.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: "bank", Name: "atm"}
		s := newStateTest(t, nil)
		s.SetService(clustertest.NewService("web", nil))
		pod := []string{"10.128.0.5"}
		s.take(
			step{"an endpoint without a name", func(s stateTest) Effect { return s.setSlice(clustertest.NewSlice("web-1", "web", pod...)) }, Here, pod, nil},
			step{"another namespace names it, on the node " + node, func(s stateTest) Effect { return s.setSlice(named) }, Here, nil, pod},
			step{"it does not any more", func(s stateTest) Effect { return s.DeleteSlice(named) }, Here, pod, nil},
		)
	}
}

// history is a cluster's, as plain data. There are few names and addresses, so that everything meets
// everything.
type history struct {
	*rand.Rand
	services map[string]*v1.Service
	slices   map[string]*discovery.EndpointSlice
	nodes    map[string]*v1.Node
	held     map[netip.Addr]bool
	// several: Services may have several egress IPs.
	several bool
}

// objects are those that are left.
func (h *history) objects() Objects {
	return Objects{
		Services:       slices.Collect(maps.Values(h.services)),
		EndpointSlices: slices.Collect(maps.Values(h.slices)),
		Nodes:          slices.Collect(maps.Values(h.nodes)),
		Held:           h.held,
	}
}

func (h *history) one(of ...string) string { return of[h.IntN(len(of))] }

// event makes a random change, tells s of it and returns what it may mean.
func (h *history) event(s stateTest) Effect {
	service, slice, node := clustertest.NewService(fmt.Sprintf("s%d", h.IntN(5)), nil), clustertest.NewSlice(fmt.Sprintf("e%d", h.IntN(6)), ""), h.one("here", "there")
	service.Namespace, slice.Namespace = namespaceOf(service.Name), namespaceOf(slice.Name)
	if h.several && h.IntN(6) == 0 {
		return effectOf(s.SetChoices(h.one("there", "yonder"), h.choices()))
	}
	if h.several && h.IntN(6) == 0 {
		held := map[netip.Addr]string{}
		for _, ip := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "2001:db8::1", "2001:db8::2"} {
			if node := h.one("", "here", "there"); node != "" {
				held[netip.MustParseAddr(ip)] = node
			}
		}
		for _, family := range Families {
			s.SetHolders(family, held)
		}
		return Here
	}
	switch h.IntN(8) {
	case 0:
		service.CreationTimestamp = metav1.Unix(int64(h.IntN(3)), 0)
		service.Spec.ExternalIPs = []string{"203.0.113.1", "203.0.113.2", "2001:db8::1"}[h.IntN(3) : 2+h.IntN(2)]
		service.Spec.Ports[0].Protocol = v1.Protocol(h.one("TCP", "TCP", "TCP", "ICMP"))
		if h.IntN(3) == 0 {
			service.Annotations = map[string]string{EgressIPAnnotation: h.one("203.0.113.1", "203.0.113.2", "203.0.113.2,2001:db8::1", "203.0.113.3")}
		}
		if h.several && h.IntN(2) == 0 {
			service.Annotations = map[string]string{EgressIPAnnotation: h.one("203.0.113.1,203.0.113.2", "203.0.113.2,203.0.113.3,2001:db8::1,2001:db8::2", "203.0.113.1,203.0.113.9,203.0.113.3")}
		}
		if h.IntN(3) == 0 {
			service.Spec.ClusterIP = v1.ClusterIPNone
		}
		return h.tellService(s, service.Name, service)
	case 1:
		return h.tellService(s, service.Name, nil)
	case 2, 3:
		return h.tellSlice(s, slice.Name, h.slice(slice, service.Name))
	case 4:
		return h.tellSlice(s, slice.Name, nil)
	case 5:
		h.nodes[node] = newNode(node, [][]string{nil, {"10.128.0.0/31"}, {"10.128.0.2/31", "fd00:10::/127"}}[h.IntN(3)]...)
		if h.IntN(2) > 0 {
			h.nodes[node].Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: h.one("203.0.113.2", "10.128.0.1")}}
		}
		return effectOf(s.SetNode(h.nodes[node]))
	case 6:
		h.held = map[netip.Addr]bool{}
		for _, ip := range []string{"203.0.113.1", "203.0.113.2", "2001:db8::1"} {
			if h.IntN(2) == 0 {
				h.held[netip.MustParseAddr(ip)] = true
			}
		}
		return effectOf(s.SetHeld(h.held, 0))
	default:
		delete(h.nodes, node)
		return effectOf(s.DeleteNode(node))
	}
}

// choices are what a node may say.
func (h *history) choices() plan.NodeChoices {
	choices := plan.NodeChoices{}
	for range h.IntN(6) {
		pod, ips := h.one("10.128.0.", "fd00:10::"), []string{"203.0.113.1", "203.0.113.2", "203.0.113.3"}
		if strings.Contains(pod, ":") {
			ips = []string{"2001:db8::1", "2001:db8::2"}
		}
		service := fmt.Sprintf("s%d", h.IntN(5))
		service = namespaceOf(service) + "/" + service
		if choices[service] == nil {
			choices[service] = map[netip.Addr]netip.Addr{}
		}
		choices[service][netip.MustParseAddr(fmt.Sprint(pod, h.IntN(4)))] = netip.MustParseAddr(h.one(ips...))
	}
	return choices
}

// tellService tells what has the name of a Service now, nothing if it is nil. Of a headless Service another informer tells than of one that
// is not: it may say that the old one is gone before the other tells of the new one, or after that.
func (h *history) tellService(s stateTest, name string, now *v1.Service) (changed Effect) {
	old := h.services[name]
	if h.services[name] = now; now == nil {
		delete(h.services, name)
	}
	var tell []func() Effect
	if old != nil && (now == nil || isHeadless(old) != isHeadless(now)) {
		tell = append(tell, func() Effect { return effectOf(s.DeleteService(old)) })
	}
	if now != nil {
		tell = append(tell, func() Effect { return effectOf(s.SetService(now)) })
	}
	return h.inAnyOrder(tell...)
}

// tellSlice is tellService for an EndpointSlice, with the label of headless Services or without.
func (h *history) tellSlice(s stateTest, name string, now *discovery.EndpointSlice) (changed Effect) {
	old := h.slices[name]
	if h.slices[name] = now; now == nil {
		delete(h.slices, name)
	}
	unserve := func(object *discovery.EndpointSlice, what unservedEndpoints) Effect {
		return s.setUnserved(headlessSlices, NameOf(object), what)
	}
	var tell []func() Effect
	if old != nil && (now == nil || unserved(old) != unserved(now)) {
		tell = append(tell, func() Effect {
			if unserved(old) {
				return unserve(old, unservedEndpoints{})
			}
			return s.DeleteSlice(old)
		})
	}
	if now != nil {
		tell = append(tell, func() Effect {
			if unserved(now) {
				return unserve(now, convertUnserved(now))
			}
			return s.setSlice(now)
		})
	}
	return h.inAnyOrder(tell...)
}

// inAnyOrder does what it is given, in any order, and returns the most that one of it may mean.
func (h *history) inAnyOrder(tell ...func() Effect) (changed Effect) {
	for _, i := range h.Perm(len(tell)) {
		changed = max(changed, tell[i]())
	}
	return changed
}

// addresses is a set of them.
func addresses(list ...string) map[netip.Addr]bool {
	set := map[netip.Addr]bool{}
	for _, address := range list {
		set[netip.MustParseAddr(address)] = true
	}
	return set
}

// namespaceOf is that of the Services and slices of this name.
func namespaceOf(name string) string {
	if strings.HasSuffix(name, "4") {
		return "bank"
	}
	return "ns"
}

// slice gives a slice two random endpoints, on random nodes or none, with pods' names or without.
func (h *history) slice(slice *discovery.EndpointSlice, service string) *discovery.EndpointSlice {
	network := h.one("10.128.0.", "10.128.0.", "fd00:10::")
	var endpoints []string
	for range 2 {
		endpoints = append(endpoints, fmt.Sprint(network, h.IntN(4), h.one("", "@here", "@there", "@yonder")))
	}
	namespace := slice.Namespace
	slice = clustertest.Placed(slice.Name, service, endpoints...)
	slice.Namespace = namespace
	if network == "fd00:10::" {
		slice.AddressType = discovery.AddressTypeIPv6
	}
	for i := range slice.Endpoints {
		slice.Endpoints[i].TargetRef.Namespace = h.one("ns", "bank")
		if h.IntN(3) == 0 {
			slice.Endpoints[i].TargetRef = nil
		}
	}
	if h.IntN(3) == 0 {
		slice.Labels[v1.IsHeadlessService] = ""
	}
	return slice
}

// TestState_ForgetsNothingAndKeepsNothing: after any sequence of events the plan is that of the objects
// that are left, in whatever portions it follows, and whoever was told that nothing changes was told
// the truth.
func TestState_ForgetsNothingAndKeepsNothing(t *testing.T) {
	for _, scope := range []placement.Scope{placement.Node, placement.Cluster} {
		for seed := range uint64(600) {
			s := newStateTest(t, func(c *Config) {
				c.Scope, c.NamespaceCIDRs = scope, map[string][]netip.Prefix{"*": {netip.MustParsePrefix("203.0.113.0/30"), netip.MustParsePrefix("2001:db8::/64")}}
			})
			h := &history{
				Rand:     rand.New(rand.NewPCG(seed, 4)),
				services: map[string]*v1.Service{}, slices: map[string]*discovery.EndpointSlice{}, nodes: map[string]*v1.Node{},
			}
			for range 60 {
				changed := h.event(s)
				if seed%2 == 0 {
					s.checkEffect(changed)
				}
			}
			for _, family := range Families {
				s.checkPlan(family, h.objects())
			}
			if t.Failed() {
				t.Fatalf("scope %s, seed %d", scope, seed)
			}
		}
	}
}

// checkEffect brings the plans up to date, and fails the test if they change although an event was said
// not to be about this node.
func (s stateTest) checkEffect(changed Effect) {
	s.Helper()
	for _, family := range Families {
		change := s.Update(family)
		if news := len(change.Added) + len(change.Removed) + len(change.Refused) + len(change.Lifted); changed != Here && news > 0 {
			s.Errorf("said to be %v, changes the plan: %+v", changed, change)
		}
	}
}

// checkPlan holds all that the state says of its plan against what the objects give.
func (s stateTest) checkPlan(family v1.IPFamily, objects Objects) {
	s.Helper()
	want, err := PlanFor(family, s.Config, objects)
	if err != nil {
		s.Fatal(err)
	}
	if got := planOf(s.State, family); !got.Equal(want) {
		s.Errorf("made at once (-want +got):\n%s", cmp.Diff(want, got, compareNetip))
	}
	if got := followedPlan(s.State, family); !got.Equal(want) {
		s.Errorf("followed (-want +got):\n%s", cmp.Diff(want, got, compareNetip))
	}
	if _, right := s.Audit(family); !right {
		s.Error("the audit finds fault with what follows")
	}
	anew, _, err := StateFor(s.Config, objects)
	if err != nil {
		s.Fatal(err)
	}
	in, _ := s.Input(family)
	cluster, _ := anew.Input(family)
	if !plan.Build(in).Equal(plan.Build(cluster)) {
		s.Errorf("the cluster's (-want +got):\n%s", cmp.Diff(plan.Build(cluster), plan.Build(in), compareNetip))
	}
}

// TestState_AuditFindsAPlanThatWentAstray, and finds no fault with one that has not. It changes nothing
// but what an update does.
func TestState_AuditFindsAPlanThatWentAstray(t *testing.T) {
	s := newStateTest(t, nil)
	s.SetService(clustertest.NewService("web", nil))
	s.setSlice(clustertest.Placed("web-1", "web", "10.128.0.5@here", "10.128.0.6@there"))
	change, right := s.Audit(v1.IPv4Protocol)
	if !right || len(change.Added) != 1 {
		t.Errorf("right %v, change %+v; want no fault found, and one binding added", right, change)
	}
	s.planners[v1.IPv4Protocol].DeleteService(plan.Service{Namespace: "ns", Name: "web"}) // unknown to the state
	if change, right := s.Audit(v1.IPv4Protocol); right || len(change.Removed) != 1 {
		t.Errorf("right %v, change %+v; want the fault found, and what it does", right, change)
	}
	if _, right := s.Audit(v1.IPv4Protocol); right {
		t.Error("the audit finds the fault once only")
	}
}
