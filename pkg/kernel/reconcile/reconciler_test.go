package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

var (
	compareNetip    = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	comparePrefixes = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
)

// memory is a driver whose kernel is a list of bindings. What the real drivers do is tested with real
// kernels, in their own packages and in hack/netns.
type memory struct {
	bindings, recorded []kernel.Binding
	judgedBefore       []kernel.Binding // that rules have on record still
	blocks             []kernel.Block   // that packets of far sides are led to
	excluded           []netip.Prefix   // from the steering, at the start
	ways               map[kernel.Binding]netip.Addr
	// written is what this process has written last; nil if it has not, or forgot.
	written []kernel.Binding
	tables  string // the fingerprint
	// untampered: what a look is about is as it was seen or written last.
	untampered bool
	left       []kernel.Binding
	// inFront is somebody else's rule before the jump to those of this process; empty if there is none.
	inFront string

	// refuse is how many changes alone are refused; fail is why writes fail, unseen why the kernel cannot be read, unreadable why
	// stale rules cannot.
	refuse                   int
	fail, unseen, unreadable error
	// proxierLacks are the rules of the proxier that are missing.
	proxierLacks []string
	// did is what was done, in order.
	did []Step
}

// memorySteering is a steeringDriver beside a memory.
type memorySteering struct {
	*memory
	// failure is why it is incomplete, from the next write on; altered that somebody else has changed it.
	failure, failed error
	altered         bool
}

func (m *memorySteering) fault() error              { return m.failed }
func (m *memorySteering) unwritten() error          { return nil }
func (m *memorySteering) written() *writtenSteering { return nil }

func (m *memorySteering) writeSteering(context.Context, kernel.Desired, []kernel.Binding) (changed bool, err error) {
	m.did = append(m.did, WriteSteering)
	m.failed, m.altered = m.failure, false
	return m.failure == nil, nil
}

func (m *memorySteering) observe(ctx context.Context) (observation, error) {
	o, err := m.memory.observe(ctx)
	if m.altered {
		o.steering = []string{"a rule is missing"}
	}
	return o, err
}

func (m *memorySteering) write(ctx context.Context, d kernel.Desired, removed []kernel.Binding) (changed bool, size int, err error) {
	m.failed = m.failure
	return m.memory.write(ctx, d, removed)
}

func (m *memory) fingerprint(context.Context) (string, error) {
	return m.tables, nil
}

func (*memory) judged(context.Context) error { return nil }

func (m *memory) untouched(context.Context) (bool, error) { return m.untampered, nil }

func (m *memory) observe(context.Context) (observation, error) {
	m.did = append(m.did, Look)
	if m.unseen != nil {
		return observation{}, m.unseen
	}
	o := observation{jumpInFront: true, missing: func(context.Context) ([]string, error) { return m.proxierLacks, nil }}
	held := kernel.Sorted(slices.Concat(m.bindings, m.recorded, m.judgedBefore))
	o.bindings = func() []kernel.Binding { return held }
	o.steered = func() steering.Standing {
		return steering.Standing{Bindings: m.bindings, Removed: m.recorded, Blocks: m.blocks, Exclusions: m.excluded, Ways: m.ways}
	}
	if m.written != nil && !slices.Equal(m.written, m.bindings) {
		o.differences, o.altered = []string{"other bindings"}, true
	}
	if m.inFront != "" {
		o.differences, o.jumpInFront = append(o.differences, m.inFront), false
	}
	return o, nil
}

func (m *memory) write(_ context.Context, d kernel.Desired, removed []kernel.Binding) (changed bool, size int, err error) {
	m.did = append(m.did, WriteAll)
	return m.become(d.Bindings, removed)
}

func (m *memory) update(_ context.Context, c kernel.Change, removed []kernel.Binding) (changed bool, size int, err error) {
	m.did = append(m.did, WriteChange)
	if m.refuse > 0 {
		m.refuse--
		m.written = nil
		return false, 0, errors.New("busy")
	}
	kept := slices.DeleteFunc(slices.Clone(m.bindings), func(b kernel.Binding) bool { return slices.Contains(c.Removed, b) })
	return m.become(kernel.Sorted(append(kept, c.Added...)), removed)
}

func (m *memory) become(bindings, removed []kernel.Binding) (changed bool, size int, err error) {
	if m.fail != nil {
		m.written = nil
		return false, 0, m.fail
	}
	changed = !slices.Equal(m.bindings, bindings) || !slices.Equal(m.recorded, removed)
	m.bindings, m.recorded, m.written = slices.Clone(bindings), slices.Clone(removed), append([]kernel.Binding{}, bindings...)
	return changed, len(bindings), nil
}

func (m *memory) staleBackends() []staleBackend {
	return []staleBackend{
		{read: func(context.Context) ([]kernel.Binding, bool, error) { return nil, m.unreadable != nil, m.unreadable }},
		{
			read: func(context.Context) ([]kernel.Binding, bool, error) { return m.left, len(m.left) > 0, nil },
			prune: func(context.Context) error {
				m.did, m.left = append(m.did, PruneStale), nil
				return nil
			},
		},
	}
}

// wanted is a list of bindings, with ways and networks.
type wanted struct {
	bindings []kernel.Binding
	steering kernel.Steering
	networks kernel.Networks
}

func (w wanted) Desired(pods map[netip.Addr]bool) kernel.Desired {
	bindings := slices.DeleteFunc(slices.Clone(w.bindings), func(b kernel.Binding) bool { return pods != nil && !pods[b.Pod] })
	return kernel.Desired{Networks: w.networks, Bindings: bindings, Steering: w.steering}
}

// node is a Reconciler over a memory.
type node struct {
	*testing.T
	*Reconciler
	kernel  *memory
	scopes  []conntrack.Scope
	fail    int // how many looks at the flows fail
	repairs int
	// last is what was wanted last, steering and networks what is from now on.
	last     wanted
	steering kernel.Steering
	networks kernel.Networks
	nodeIP   netip.Addr
	now      time.Time
}

// nodeClock is the clock of a node, which stands still until forget.
type nodeClock struct{ n *node }

func (c nodeClock) Now() time.Time                  { return c.n.now }
func (c nodeClock) Since(t time.Time) time.Duration { return c.n.now.Sub(t) }

func newNode(t *testing.T, m *memory) *node {
	n := &node{T: t, kernel: m, now: start}
	n.Reconciler = New(klog.Background(), Config{Family: kernel.IPv4, SyncPeriod: time.Hour, RepairProxier: func() { n.repairs++ }, Clock: nodeClock{n}})
	n.driver = m
	n.delete = func(_ context.Context, _ kernel.Desired, scope conntrack.Scope) (conntrack.Deleted, error) {
		if n.fail > 0 {
			n.fail--
			return conntrack.Deleted{}, errors.New("the table cannot be read")
		}
		m.did = append(m.did, DeleteFlows)
		n.scopes = append(n.scopes, scope)
		return conntrack.Deleted{}, nil
	}
	return n
}

// settledNode is a node that runs, and has written these.
func settledNode(t *testing.T, bindings ...kernel.Binding) *node {
	n := newNode(t, &memory{})
	n.ProxierSynced()
	n.want(bindings...)
	n.forget()
	return n
}

// want syncs, and returns what came of it.
func (n *node) want(bindings ...kernel.Binding) Result {
	next := wanted{kernel.Sorted(bindings), n.steering, n.networks}
	c := kernel.Change{
		Networks: next.networks, NetworksChanged: !next.networks.Equal(n.last.networks),
		Steering: next.steering, SteeringChanged: !next.steering.Equal(n.last.steering),
	}
	c.Added, c.Removed = kernel.Diff(n.last.bindings, next.bindings)
	n.last = next
	return n.Reconciler.Sync(n.Context(), next, c, n.nodeIP)
}

// forget forgets what was done, and lets time pass, more than a first backoff.
func (n *node) forget() {
	n.scopes, n.kernel.did, n.now = nil, nil, n.now.Add(time.Second)
}

func bind(pod, egressIP string) kernel.Binding {
	return kernel.Binding{Pod: netip.MustParseAddr(pod), Protocol: kernel.TCP, EgressIP: netip.MustParseAddr(egressIP)}
}

var (
	first, second = bind("10.128.0.1", "203.0.113.1"), bind("10.128.0.2", "203.0.113.2")
	moved         = bind("10.128.0.2", "203.0.113.3")
	foreign       = bind("10.128.0.9", "203.0.113.9")
)

// TestReconciler_FlowsToJudge: all at the start and after somebody else changed the rules, those that a
// change is about otherwise, none if nothing changed; and again what was not done.
func TestReconciler_FlowsToJudge(t *testing.T) {
	pod := func(b kernel.Binding) map[netip.Addr]bool { return map[netip.Addr]bool{b.Pod: true} }
	recorded, guest := bind("10.128.0.8", "203.0.113.8"), bind("10.129.0.1", first.EgressIP.String())
	n := newNode(t, &memory{tables: "1", bindings: []kernel.Binding{foreign}, recorded: []kernel.Binding{recorded}})
	n.ProxierSynced()
	for _, step := range []struct {
		what string
		do   func()
		wish []kernel.Binding
		want []conntrack.Scope
	}{
		{"the start, after bindings that are gone", func() {}, []kernel.Binding{first}, []conntrack.Scope{{All: true, Removed: []kernel.Binding{recorded, foreign}}}},
		{"nothing changed", func() {}, []kernel.Binding{first}, nil},
		{"a look after a write, which deletes the record", n.RequestLook, []kernel.Binding{first}, []conntrack.Scope{{}}},
		{"a look after that", n.RequestLook, []kernel.Binding{first}, []conntrack.Scope{{}}},
		{"the kernel is as it was", n.RequestLook, []kernel.Binding{first}, nil},
		{"one more", func() {}, []kernel.Binding{first, second}, []conntrack.Scope{{Pods: pod(second)}}},
		{"one changed", func() {}, []kernel.Binding{first, moved}, []conntrack.Scope{{Pods: pod(second), Removed: []kernel.Binding{second}}}},
		{"one gone, and the flows cannot be read", func() { n.fail = 1 }, []kernel.Binding{first}, nil},
		{"they can again", func() {}, []kernel.Binding{first}, []conntrack.Scope{{All: true, Removed: []kernel.Binding{moved}}}},
		{"somebody else flushed", func() { n.kernel.bindings, n.kernel.recorded, n.kernel.tables = nil, nil, "flushed"; n.RequestLook() }, []kernel.Binding{first}, []conntrack.Scope{{All: true}}},
		{"somebody restored other rules", func() {
			n.kernel.bindings, n.kernel.recorded, n.kernel.tables = []kernel.Binding{foreign}, nil, "restored"
			n.RequestLook()
		}, []kernel.Binding{first}, []conntrack.Scope{{All: true, Removed: []kernel.Binding{foreign}}}},
		{"gone, and the flows cannot be read", func() { n.fail = 1 }, nil, nil},
		{"then flushed", func() { n.kernel.bindings, n.kernel.recorded = nil, nil }, nil, []conntrack.Scope{{All: true, Removed: []kernel.Binding{first}}}},
		{"back", func() {}, []kernel.Binding{first}, []conntrack.Scope{{Pods: pod(first)}}},
		{"gone, but it was the node's own address", func() { n.nodeIP = first.EgressIP }, nil, []conntrack.Scope{{}}},
		{"two of the node's own address, one of them of another node's pod", func() {
			n.steering = kernel.Steering{Self: secondNode, Nodes: []netip.Addr{thirdNode}, Homes: map[netip.Addr]netip.Addr{first.Pod: secondNode, guest.Pod: thirdNode}}
		}, []kernel.Binding{first, guest}, []conntrack.Scope{{Pods: map[netip.Addr]bool{first.Pod: true, guest.Pod: true}}}},
		{"both gone", func() { n.steering.Homes = nil }, nil, []conntrack.Scope{{Removed: []kernel.Binding{guest}}}},
	} {
		n.forget()
		step.do()
		n.want(step.wish...)
		if diff := cmp.Diff(step.want, n.scopes, compareNetip); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

// steer has egress IPs take these ways from now on, and all others none.
func (n *node) steer(ways map[string]kernel.Way) func() {
	return func() {
		n.steering = kernel.Steering{Ways: map[netip.Addr]kernel.Way{}, Nodes: []netip.Addr{secondNode, thirdNode}}
		for ip, way := range ways {
			n.steering.Ways[netip.MustParseAddr(ip)] = way
		}
	}
}

var secondNode, thirdNode = netip.MustParseAddr("192.0.2.3"), netip.MustParseAddr("192.0.2.4")

// TestReconciler_FlowsToJudgeByTheWay: those of the pods whose egress IPs take another way, with what was steered
// before.
func TestReconciler_FlowsToJudgeByTheWay(t *testing.T) {
	pods := func(bindings ...kernel.Binding) map[netip.Addr]bool {
		set := map[netip.Addr]bool{}
		for _, b := range bindings {
			set[b.Pod] = true
		}
		return set
	}
	list := func(bindings ...kernel.Binding) []kernel.Binding { return bindings }
	type ways = map[string]kernel.Way
	toSecond, toThird := kernel.Way{Kind: kernel.ToNode, Node: secondNode}, kernel.Way{Kind: kernel.ToNode, Node: thirdNode}
	lost := kernel.Way{Kind: kernel.Blackhole}
	same := bind("10.128.0.3", first.EgressIP.String())
	n := settledNode(t, first, second)
	for _, step := range []struct {
		what string
		do   func()
		wish []kernel.Binding
		want []conntrack.Scope
	}{
		{"there are other nodes", n.steer(nil), list(first, second), []conntrack.Scope{{}}},
		{"nothing changed", func() {}, list(first, second), nil},
		{"one is on another node", n.steer(ways{"203.0.113.1": toSecond}), list(first, second), []conntrack.Scope{{Pods: pods(first)}}},
		{"another pod has it", func() {}, list(first, same, second), []conntrack.Scope{{Pods: pods(same)}}},
		{"one that no pod has is", n.steer(ways{"203.0.113.1": toSecond, "203.0.113.7": toThird}), list(first, same, second), []conntrack.Scope{{}}},
		{"it goes to a third node", n.steer(ways{"203.0.113.1": toThird}), list(first, same, second), []conntrack.Scope{{Pods: pods(first, same), Steered: list(first, same)}}},
		{"that is lost, and the flows cannot be read", func() { n.steer(ways{"203.0.113.1": lost})(); n.fail = 1 }, list(first, same, second), nil},
		{"they can again", func() {}, list(first, same, second), []conntrack.Scope{{All: true, Pods: pods(first, same), Steered: list(first, same)}}},
		{"it comes here", n.steer(nil), list(first, same, second), []conntrack.Scope{{Pods: pods(first, same), Steered: list(first, same)}}},
		{"it goes away again, with a pod less", n.steer(ways{"203.0.113.1": toSecond}), list(first, second), []conntrack.Scope{{Pods: pods(first, same), Removed: list(same)}}},
		{"a binding goes that was steered", func() {}, list(second), []conntrack.Scope{{Removed: list(first), Steered: list(first)}}},
		{"the next one is not", func() {}, nil, []conntrack.Scope{{Removed: list(second)}}},
		{"somebody restored other rules", func() {
			n.kernel.bindings, n.kernel.recorded, n.kernel.tables = list(foreign), nil, "restored"
			n.RequestLook()
		}, nil, []conntrack.Scope{{All: true, Removed: list(foreign), Steered: list(foreign)}}},
	} {
		n.forget()
		step.do()
		n.want(step.wish...)
		if diff := cmp.Diff(step.want, n.scopes, compareNetip); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

// TestReconciler_FlowsFromBefore: the flows of bindings that an earlier process has steered are judged if their packets took another way than
// now, or if that cannot be told. The connections of others are not nudged.
func TestReconciler_FlowsFromBefore(t *testing.T) {
	both := []kernel.Binding{first, second}
	ways := func(kind kernel.WayKind, node netip.Addr) kernel.Steering {
		return kernel.Steering{Ways: map[netip.Addr]kernel.Way{first.EgressIP: {Kind: kind, Node: node}}, Nodes: []netip.Addr{secondNode, thirdNode}}
	}
	toSecond, led := ways(kernel.ToNode, secondNode), map[kernel.Binding]netip.Addr{first: secondNode, second: secondNode}
	for what, test := range map[string]struct {
		kernel   memory
		steering kernel.Steering
		want     []kernel.Binding
	}{
		"without steering":               {kernel: memory{bindings: both, ways: led}},
		"nobody knows where it went":     {memory{bindings: both}, toSecond, both},
		"one goes on, the other is here": {memory{bindings: both, ways: led}, toSecond, []kernel.Binding{second}},
		"to a third node":                {memory{bindings: both, ways: led}, ways(kernel.ToNode, thirdNode), both},
		"the node is lost":               {memory{bindings: both, ways: led}, ways(kernel.Blackhole, netip.Addr{}), both},
		"the steering has not had them":  {memory{judgedBefore: both, ways: led}, ways(kernel.ToNode, thirdNode), nil},
	} {
		n := newNode(t, &test.kernel)
		n.steering = test.steering
		n.ProxierSynced()
		n.want(first, second, bind("10.128.0.3", "203.0.113.2"))
		if diff := cmp.Diff([]conntrack.Scope{{All: true, Steered: test.want}}, n.scopes, compareNetip); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// TestReconciler_FlowsOfRemovedBindingsFromBefore: what only rules have on record has been judged, and its pods may have begun flows under their
// own addresses since. What the steering has on record may have left through another node.
func TestReconciler_FlowsOfRemovedBindingsFromBefore(t *testing.T) {
	n := newNode(t, &memory{bindings: []kernel.Binding{first}, recorded: []kernel.Binding{moved}, judgedBefore: []kernel.Binding{foreign}})
	n.steer(nil)()
	n.ProxierSynced()
	n.want(second)
	want := conntrack.Scope{All: true, Removed: []kernel.Binding{first, moved, foreign}, Steered: []kernel.Binding{first, moved}}
	if diff := cmp.Diff([]conntrack.Scope{want}, n.scopes, compareNetip); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReconciler_FlowsOfTheNodesOwnAddressFromBefore: an earlier process put bindings to the node's own address on record in the steering because
// their pods ran elsewhere. What rules have on record may be a pod's that goes on here, masqueraded.
func TestReconciler_FlowsOfTheNodesOwnAddressFromBefore(t *testing.T) {
	guest := bind("10.129.0.1", first.EgressIP.String())
	n := newNode(t, &memory{recorded: []kernel.Binding{guest}, judgedBefore: []kernel.Binding{first}})
	n.nodeIP = first.EgressIP
	n.steer(nil)()
	n.ProxierSynced()
	n.want(second)
	if len(n.scopes) != 1 || !slices.Equal(n.scopes[0].Removed, []kernel.Binding{guest}) {
		t.Errorf("judged are %+v, want those of %v among them", n.scopes, guest)
	}
}

// TestReconciler_FlowsOfWaysInBetween: while the rules could not be read, a way was written and is wanted no more.
func TestReconciler_FlowsOfWaysInBetween(t *testing.T) {
	n := settledNode(t, first)
	n.steer(nil)()
	n.want(first)
	n.kernel.unseen, n.kernel.tables = errors.New("the table is incompatible"), "another"
	n.RequestLook()
	n.want(first)
	n.forget()
	n.kernel.unseen, n.kernel.ways = nil, map[kernel.Binding]netip.Addr{first: secondNode}
	n.ProxierSynced()
	n.want(first)
	if want := []conntrack.Scope{{All: true, Steered: []kernel.Binding{first}}}; !cmp.Equal(want, n.scopes, compareNetip) {
		t.Errorf("judged are %+v, want %+v", n.scopes, want)
	}
}

// TestReconciler_FlowsToWhatIsExcludedNoMore: all flows are judged when a network is not excluded any more, for those to it have no egress
// IP. When one more is excluded, those are that were sent to another node.
func TestReconciler_FlowsToWhatIsExcludedNoMore(t *testing.T) {
	cluster, excluded := []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	both := slices.Concat(cluster, excluded)
	type scope = conntrack.Scope
	for name, ways := range map[string]map[string]kernel.Way{"all leave here": nil, "one leaves elsewhere": {"203.0.113.1": {Kind: kernel.ToNode, Node: secondNode}}} {
		n := settledNode(t, first, second)
		n.steer(ways)()
		n.want(first, second)
		sent := func(before []netip.Prefix) scope {
			if ways == nil {
				return scope{}
			}
			return scope{Sent: []kernel.Binding{first}, Excluded: before}
		}
		for _, step := range []struct {
			what     string
			networks kernel.Networks
			want     scope
		}{
			{"two networks more", kernel.Networks{ClusterCIDRs: cluster, Exclusions: excluded}, sent(nil)},
			{"without the exclusion", kernel.Networks{ClusterCIDRs: cluster}, scope{All: true}},
			{"with it again", kernel.Networks{ClusterCIDRs: cluster, Exclusions: excluded}, sent(cluster)},
			{"without the cluster's network", kernel.Networks{Exclusions: excluded}, scope{All: true}},
			{"another kind of network", kernel.Networks{ClusterCIDRs: excluded}, scope{All: true}},
		} {
			n.forget()
			n.networks = step.networks
			n.want(first, second)
			if diff := cmp.Diff([]scope{step.want}, n.scopes, compareNetip, comparePrefixes); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, step.what, diff)
			}
		}
		if ways == nil {
			continue
		}
		n.forget()
		n.networks, n.fail = kernel.Networks{ClusterCIDRs: excluded, Exclusions: cluster}, 1
		n.want(first, second)
		n.forget()
		n.want(second)
		if diff := cmp.Diff([]scope{{All: true, Removed: []kernel.Binding{first}, Steered: []kernel.Binding{first}, Sent: []kernel.Binding{first}, Excluded: excluded}}, n.scopes, compareNetip, comparePrefixes); diff != "" {
			t.Errorf("the flows can be read again, and the binding is gone (-want +got):\n%s", diff)
		}
	}
	for what, before := range map[string][]netip.Prefix{"less was": cluster, "the same was": both, "nothing was": {}} {
		n := newNode(t, &memory{bindings: []kernel.Binding{first}, excluded: before})
		n.ProxierSynced()
		n.networks = kernel.Networks{ClusterCIDRs: cluster, Exclusions: excluded}
		n.steer(nil)()
		n.want(first)
		want := scope{All: true, Steered: []kernel.Binding{first}}
		if len(before) < 2 {
			want.Sent, want.Excluded = want.Steered, before
		}
		if diff := cmp.Diff([]scope{want}, n.scopes, compareNetip, comparePrefixes); diff != "" {
			t.Errorf("excluded before the start: %s (-want +got):\n%s", what, diff)
		}
	}
}

// TestReconciler_FlowsOfOthersPodsToWhatIsExcluded: the holder judges what it has translated for pods of other nodes.
func TestReconciler_FlowsOfOthersPodsToWhatIsExcluded(t *testing.T) {
	n := settledNode(t, first, second)
	n.steering = kernel.Steering{Self: secondNode, Nodes: []netip.Addr{thirdNode}, Homes: map[netip.Addr]netip.Addr{first.Pod: thirdNode, second.Pod: secondNode}}
	n.want(first, second)
	n.forget()
	n.networks = kernel.Networks{Exclusions: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	n.want(first, second)
	if diff := cmp.Diff([]conntrack.Scope{{Sent: []kernel.Binding{first}}}, n.scopes, compareNetip); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReconciler_FlowsWhileAnotherRuleWasInFront: all flows are judged when somebody else's rule is found in front of the jump. It may have
// decided about any of them.
func TestReconciler_FlowsWhileAnotherRuleWasInFront(t *testing.T) {
	n := settledNode(t, first)
	n.kernel.inFront, n.kernel.tables = "-A POSTROUTING -j MASQUERADE", "another rule is in front"
	n.RequestLook()
	n.want(first)
	if diff := cmp.Diff([]conntrack.Scope{{All: true}}, n.scopes, compareNetip); diff != "" {
		t.Errorf("judged (-want +got):\n%s", diff)
	}
}

// TestReconciler_FlowsThatFarSidesBegan: the ports of a pod count as long as flows to them may go on without a binding.
func TestReconciler_FlowsThatFarSidesBegan(t *testing.T) {
	block := func(b kernel.Binding, port uint16) kernel.Block {
		return kernel.Block{Pod: b.Pod, EgressIP: b.EgressIP, Ports: kernel.Ports{First: port, Last: port + 511}}
	}
	judged := func(n *node, when string, want ...kernel.Block) {
		n.Helper()
		var got []kernel.Block
		for _, scope := range n.scopes {
			got = append(got, scope.Blocks...)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			n.Errorf("%s: the blocks whose flows are judged (-want +got):\n%s", when, diff)
		}
		n.forget()
	}
	t.Run("of an earlier process", func(t *testing.T) {
		n := newNode(t, &memory{bindings: []kernel.Binding{first}, blocks: []kernel.Block{block(first, 2048)}})
		n.ProxierSynced()
		n.want()
		judged(n, "the start", block(first, 2048))
	})
	t.Run("of an earlier process, whose pod has lost its ports and stays bound", func(t *testing.T) {
		n := newNode(t, &memory{bindings: []kernel.Binding{first}, blocks: []kernel.Block{block(first, 2048)}})
		n.ProxierSynced()
		n.want(first)
		n.forget()
		n.want()
		judged(n, "the binding goes later", block(first, 2048))
	})
	t.Run("which go before the binding", func(t *testing.T) {
		n := settledNode(t, first, second)
		n.steering.Blocks = []kernel.Block{block(first, 2048), block(second, 4096)}
		n.want(first, second)
		judged(n, "they come")
		n.steering.Blocks = nil
		n.want(first, second)
		judged(n, "they go")
		n.want(second)
		judged(n, "a binding goes", block(first, 2048), block(second, 4096))
		n.want()
		judged(n, "the other one goes", block(second, 4096))
		n.want(first)
		n.forget()
		n.want()
		judged(n, "a binding without ports goes")
	})
}

// TestReconciler_SinceComparesWays: rules that are in place hold other things if the packets take other ways.
func TestReconciler_SinceComparesWays(t *testing.T) {
	n := settledNode(t, first)
	here := n.last.Desired(nil)
	n.steer(map[string]kernel.Way{"203.0.113.1": {Kind: kernel.ToNode, Node: secondNode}})()
	steered := wanted{n.last.bindings, n.steering, n.networks}.Desired(nil)
	holds := func(what string, want kernel.Desired, but kernel.Desired) {
		t.Helper()
		if _, holds := n.Since(want); !holds {
			t.Errorf("%s: %+v is not held", what, want.Steering)
		}
		if _, holds := n.Since(but); holds {
			t.Errorf("%s: %+v is said to be held", what, but.Steering)
		}
	}
	holds("before", here, steered)
	n.want(first)
	holds("afterwards", steered, here)
}

// TestReconciler_IdleCostsNothing: without a change nothing is done, and a regular look reads nothing
// as long as the kernel's tables are as they were at the last look.
func TestReconciler_IdleCostsNothing(t *testing.T) {
	n := settledNode(t, first)
	n.want(first, second)
	n.forget()
	if result := n.want(first, second); !result.Idle || n.kernel.did != nil {
		t.Errorf("%+v, did %v; want nothing", result, n.kernel.did)
	}
	for _, test := range []struct {
		name      string
		tables    string
		untouched bool
		want      []Step
	}{
		{"after a write of its own", "1", false, []Step{Look, WriteChange, DeleteFlows}},
		{"nothing has changed", "1", false, nil},
		{"nothing has changed, again", "1", false, nil},
		{"somebody has changed a table", "2", false, []Step{Look, WriteChange, DeleteFlows}},
		{"nothing has changed since", "2", false, nil},
		{"the proxier has changed its own", "3", true, nil},
		{"nothing has changed since then", "3", false, nil},
	} {
		n.forget()
		n.kernel.tables, n.kernel.untampered = test.tables, test.untouched
		n.RequestLook()
		result := n.want(first, second)
		if diff := cmp.Diff(test.want, n.kernel.did); diff != "" || !result.Looked || result.Written {
			t.Errorf("%s: %+v (-want +got):\n%s", test.name, result, diff)
		}
	}
}

// TestReconciler_ChangeRefused: what cannot be written alone is written with all else, after a look.
// The proxier is asked to write its own rules if the kernel holds others than were written, and only then.
func TestReconciler_ChangeRefused(t *testing.T) {
	for _, test := range []struct {
		name    string
		happens func(n *node)
		repairs int
	}{
		{"for a moment", func(*node) {}, 0},
		{"for somebody restored other rules", func(n *node) { n.kernel.bindings = []kernel.Binding{foreign} }, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := settledNode(t, first)
			n.kernel.refuse = 1
			test.happens(n)
			if result := n.want(first, second); result.Err != nil || !slices.Equal(n.kernel.bindings, []kernel.Binding{first, second}) {
				t.Errorf("%+v, the kernel holds %v", result, n.kernel.bindings)
			}
			if diff := cmp.Diff([]Step{WriteChange, Look, WriteAll, DeleteFlows}, n.kernel.did); diff != "" || n.repairs != test.repairs {
				t.Errorf("the proxier was asked %d times, want %d; steps (-want +got):\n%s", n.repairs, test.repairs, diff)
			}
		})
	}
}

// TestReconciler_FailureKeepsChanges: a change that comes while writes fail is written with the next try
// that succeeds, and the status says why it is late.
func TestReconciler_FailureKeepsChanges(t *testing.T) {
	n := settledNode(t, first)
	n.kernel.fail = errors.New("the lock is held")
	if result := n.want(first, second); !errors.Is(result.Err, n.kernel.fail) || result.Wake.IsZero() || n.Status().Failure == nil {
		t.Fatalf("%+v, status %+v; want the failure, and another try", result, n.Status())
	}
	if result := n.want(second); !result.Idle || !result.Waiting {
		t.Errorf("%+v in the backoff, want nothing done, and the change still due", result)
	}
	n.kernel.fail = nil
	n.forget()
	if result := n.want(second); result.Err != nil || !slices.Equal(n.kernel.bindings, []kernel.Binding{second}) || n.Status().Failure != nil {
		t.Errorf("%+v, the kernel holds %v, status %+v", result, n.kernel.bindings, n.Status())
	}
	since, holds := n.Since(kernel.Desired{Bindings: []kernel.Binding{second}})
	if !holds || since[0].IsZero() {
		t.Errorf("since %v, holds %v; want it known to be in the kernel", since, holds)
	}
	if _, holds := n.Since(kernel.Desired{}); holds {
		t.Error("the status says that the kernel holds nothing, which holds a binding")
	}
}

// TestReconciler_Written: what could not be written is not there.
func TestReconciler_Written(t *testing.T) {
	n := settledNode(t)
	for _, step := range []struct {
		what string
		wish []kernel.Binding
		fail error
		want []kernel.Binding
	}{
		{"nothing is wanted", nil, nil, nil},
		{"two are", []kernel.Binding{first, second}, nil, []kernel.Binding{first, second}},
		{"one is left", []kernel.Binding{second}, nil, []kernel.Binding{second}},
		{"another one cannot be written", []kernel.Binding{second, first}, errors.New("the lock is held"), []kernel.Binding{second}},
	} {
		n.kernel.fail = step.fail
		n.want(step.wish...)
		if got := kernel.Sorted(n.Written().Bindings); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.what, got, step.want)
		}
	}
}

// TestReconciler_StaleBackEnds: rules of an earlier run go when ours are in place, and their flows are
// judged after that. What cannot be read stays: its flows could not be judged.
func TestReconciler_StaleBackEnds(t *testing.T) {
	n := newNode(t, &memory{left: []kernel.Binding{foreign}, unreadable: errors.New("busy")})
	n.want(first)
	if diff := cmp.Diff([]Step{Look, WriteAll, DeleteFlows}, n.kernel.did); diff != "" {
		t.Errorf("before the proxier's first sync (-want +got):\n%s", diff)
	}
	n.forget()
	n.ProxierSynced()
	n.want(first)
	if diff := cmp.Diff([]Step{Look, WriteAll, PruneStale, DeleteFlows}, n.kernel.did); diff != "" {
		t.Errorf("after it (-want +got):\n%s", diff)
	}
	if len(n.scopes) != 1 || !n.scopes[0].All || !slices.Contains(n.scopes[0].Removed, foreign) {
		t.Errorf("judged %+v; want all flows, and those of %v", n.scopes, foreign)
	}
	for _, unreadable := range []error{n.kernel.unreadable, nil} {
		n.kernel.unreadable = unreadable
		n.RequestLook()
		if n.want(first); n.state.StaleGone != (unreadable == nil) {
			t.Errorf("all is gone: %v, although the rules could not be read: %v", n.state.StaleGone, unreadable)
		}
	}
	// Another iptables is on PATH from now on: what was written is in the other back end.
	for what, happens := range map[string]func(){
		"the rules are others": func() { n.kernel.bindings = nil },
		"a write has failed": func() {
			n.kernel.fail = errors.New("no such chain")
			n.want(second)
			n.kernel.fail = nil
		},
	} {
		n.want(first)
		happens()
		n.forget()
		n.kernel.left = []kernel.Binding{foreign}
		n.RequestLook()
		n.want(second)
		if diff := cmp.Diff([]Step{Look, WriteAll, PruneStale, DeleteFlows}, n.kernel.did); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if len(n.scopes) != 1 || !slices.Contains(n.scopes[0].Removed, foreign) {
			t.Errorf("%s: judged %+v; want those of %v", what, n.scopes, foreign)
		}
	}
}

// TestReconciler_ProxierRepaired: rules of the proxier that are missing are its own to write.
func TestReconciler_ProxierRepaired(t *testing.T) {
	n := settledNode(t, first)
	n.kernel.proxierLacks, n.kernel.tables = []string{"nat: rules of KUBE-SERVICES"}, "flushed"
	n.RequestLook()
	n.want(first)
	if n.repairs != 1 {
		t.Errorf("the proxier was asked %d times, want once", n.repairs)
	}
}

// TestReconciler_SteeringFault: what keeps packets from being steered does not keep bindings of this node's addresses
// from being written. It is tried again, and when it is over, all flows are judged.
func TestReconciler_SteeringFault(t *testing.T) {
	n := newNode(t, &memory{})
	s := &memorySteering{memory: n.kernel, failure: errors.New("the port is taken")}
	n.driver, n.Reconciler.steering = s, s
	n.ProxierSynced()
	first := bind("10.0.0.1", "203.0.113.1")
	if result := n.want(first); result.Err != nil || result.Waiting || result.Wake != n.now.Add(firstRetry) {
		t.Errorf("the sync: %+v", result)
	}
	status := n.Status()
	if !status.Ready || status.Failure != nil || status.SteeringFault == nil || status.LastSuccess != n.now {
		t.Errorf("the status: %+v", status)
	}
	if _, holds := n.Since(kernel.Desired{Bindings: []kernel.Binding{first}}); holds {
		t.Error("the kernel is said to hold all that is wanted")
	}
	n.forget()
	second := bind("10.0.0.2", "203.0.113.1")
	n.want(first, second)
	if diff := cmp.Diff([]Step{WriteChange, WriteSteering, DeleteFlows}, n.kernel.did); diff != "" || len(n.kernel.bindings) != 2 {
		t.Errorf("a change while it lasts (-want +got):\n%s", diff)
	}
	n.forget()
	s.failure = nil
	n.want(first, second)
	if diff := cmp.Diff([]Step{WriteSteering, DeleteFlows}, n.kernel.did); diff != "" {
		t.Errorf("when it is over (-want +got):\n%s", diff)
	}
	if len(n.scopes) != 1 || !n.scopes[0].All || n.Status().SteeringFault != nil {
		t.Errorf("judged %+v, fault %v", n.scopes, n.Status().SteeringFault)
	}
	if result := n.want(first, second); !result.Idle || !result.Wake.IsZero() {
		t.Errorf("afterwards: %+v", result)
	}
}

// TestReconciler_SteeringAltered: what others do to the steering is repaired alone, without the proxier, and all flows
// are judged.
func TestReconciler_SteeringAltered(t *testing.T) {
	n := settledNode(t, bind("10.0.0.1", "203.0.113.1"))
	s := &memorySteering{memory: n.kernel, altered: true}
	n.driver, n.Reconciler.steering = s, s
	n.RequestFullLook()
	n.want(bind("10.0.0.1", "203.0.113.1"))
	if diff := cmp.Diff([]Step{Look, WriteChange, WriteSteering, DeleteFlows}, n.kernel.did); diff != "" || n.repairs > 0 {
		t.Errorf("%d repairs of the proxier; (-want +got):\n%s", n.repairs, diff)
	}
	if len(n.scopes) != 1 || !n.scopes[0].All {
		t.Errorf("judged %+v", n.scopes)
	}
}

// BenchmarkReconciler_WayChanged is one of 1,000 egress IPs that goes to another node and comes back, among so
// many bindings: what it costs to find the pods whose flows are to be judged.
func BenchmarkReconciler_WayChanged(b *testing.B) {
	for _, count := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s := &run{Reconciler: New(klog.Background(), Config{Family: kernel.IPv4})}
			s.debt = conntrack.Scope{}
			var change kernel.Change
			for i := range count {
				pod := netip.AddrFrom4([4]byte{10, 128 + byte(i>>16), byte(i >> 8), byte(i)})
				change.Added = append(change.Added, kernel.Binding{Pod: pod, Protocol: kernel.TCP, EgressIP: netip.AddrFrom4([4]byte{203, 0, byte(i % 1000 >> 8), byte(i % 1000)})})
			}
			s.believe(change)
			change.Added = nil
			ways := []map[netip.Addr]kernel.Way{nil, {netip.AddrFrom4([4]byte{203, 0, 0, 7}): {Kind: kernel.ToNode, Node: secondNode}}}
			for n := 1; b.Loop(); n++ {
				change.Steering.Ways = ways[n%2]
				s.owe(change)
				if len(s.debt.Pods) != count/1000 {
					b.Fatalf("%d pods are to be judged, want %d", len(s.debt.Pods), count/1000)
				}
				s.debt = conntrack.Scope{}
				s.believe(change)
			}
		})
	}
}
