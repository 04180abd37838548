package poolnode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/pool"
	"github.com/openshift/origin-node/pkg/egress/sourceports"
	"github.com/openshift/origin-node/pkg/egress/steerer"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/extension"
)

var egressIP = netip.MustParseAddr("203.0.113.10")

// poolTest is node-a, which has a configured pool, and no part in it. In its cluster shop/web has the external IP 203.0.113.10.
type poolTest struct {
	testing.TB
	*Part
	keys *holders.Keyring
	// noKey is why there is none.
	noKey error
}

func newPoolTest(t testing.TB) *poolTest {
	t.Helper()
	state := cluster.New(cluster.Config{
		NodeName: "node-a", Steering: cluster.Steering{Mode: holders.Auto},
		Pool: cluster.Pool{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28")}, Nodes: labels.SelectorFromSet(labels.Set{"pool": "yes"})},
	})
	state.SetService(&v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       v1.ServiceSpec{ExternalIPs: []string{"203.0.113.10"}, ClusterIP: "172.30.0.1", Ports: []v1.ServicePort{{Protocol: v1.ProtocolTCP, Port: 80}}},
	})
	p := &poolTest{TB: t, keys: holders.NewKeyring(nil), noKey: errors.New("no key")}
	p.Part = New(t.Context(), state, Config{
		Running: &sync.WaitGroup{}, Event: func(plan.Reason, string) {}, RequestSync: func() {}, Await: func(context.Context, v1.IPFamily) {},
		Reserved: func() map[netip.Addr]bool { return nil }, Keys: p.keys.Keys, NoKey: func() error { return p.noKey },
		Missing: func() []string { return []string{"Leases"} },
	})
	p.steerWith(nil)
	return p
}

// steerWith gives the node a Steerer that has other nodes' source ports from an Allocator.
func (p *poolTest) steerWith(ports *sourceports.Allocator) {
	p.steerer = steerer.New(p.Context(), p.state, steerer.Config{
		Outer: v1.IPv4Protocol, Ports: ports, Running: p.config.Running, RequestSync: func() { p.config.RequestSync() }, Wake: func() {}, LeasesKnown: func() {}, Came: func(map[netip.Addr]bool, time.Time) {},
	})
	for name, ip := range map[string]string{"node-a": "192.0.2.2", "node-b": "192.0.2.3"} {
		n := clustertest.NewNode(name, ip, v1.ConditionTrue)
		p.state.SetNode(n)
		p.steerer.SetNode(n)
	}
	p.steerer.Apply(holders.OwnAddresses{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}})
	p.steerer.Apply(holders.LeasesKnown{})
	p.steerer.Sync(v1.IPv4Protocol)
}

// plansFor are the addresses whose pods' rules this node has.
func (p *poolTest) plansFor() map[netip.Addr]bool {
	_, place := p.state.Input(v1.IPv4Protocol)
	return place.Held
}

// newRunner returns this node's Runner, which does not run.
func (p *poolTest) newRunner() *pool.Runner {
	return pool.NewRunner(pool.Config{NodeName: "node-a", Keys: p.keys.Keys, Wake: p.steerer.MemberWake()}, p.steerer.Join(false))
}

// isLocal tells whether the egress IP is here.
func (p *poolTest) isLocal() bool { return p.steerer.Holder(egressIP).State == holders.Local }

// label has a node be in the pool, or not.
func (p *poolTest) label(name string, in bool) {
	n := clustertest.NewNode(name, "", v1.ConditionTrue)
	if in {
		n.Labels = map[string]string{"pool": "yes"}
	}
	p.SetNode(n)
}

// TestPart_DecidesWhileAPlanIsMade: what is decided about addresses, and said to other nodes, waits neither for the objects, nor for
// the source ports that follow from them, nor for what the pool is told of them.
func TestPart_DecidesWhileAPlanIsMade(t *testing.T) {
	p := newPoolTest(t)
	ports := sourceports.New(p.state, sourceports.Config{BlockSize: 512})
	p.steerWith(ports)
	p.adjacent = func(_, _ netip.Addr) error { return nil }
	p.steerer.Synced(v1.IPv4Protocol, cluster.Families[:1])
	member := p.steerer.Join(true)
	lockOf := func(other any) *sync.Mutex {
		return (*sync.Mutex)(reflect.ValueOf(other).Elem().FieldByName("mu").Addr().UnsafePointer())
	}
	for _, held := range []*sync.Mutex{lockOf(p.state), lockOf(ports), &p.mu} {
		held.Lock()
		defer held.Unlock()
	}
	decided := make(chan []pool.Action)
	go func() {
		var actions []pool.Action
		for _, event := range []pool.Event{
			pool.Pool{Nodes: []string{"node-a"}}, pool.Networks{Networks: []pool.Network{{Prefix: netip.MustParsePrefix("203.0.113.0/28"), Up: true}}},
			pool.Wanted{Addresses: []netip.Addr{egressIP}}, pool.Tick{},
		} {
			actions = append(actions, member.Next(event, time.Now())...)
			member.Wake()
			member.State()
		}
		p.steerer.Apply(holders.Announced{Node: "node-b", Statement: holders.Statement{Addresses: map[netip.Addr]uint64{egressIP: 1}}, Source: holders.Lease, Renewed: time.Unix(1, 0)})
		if node, err := p.neighbour(v1.IPv4Protocol, "node-b"); err != nil || node != netip.MustParseAddr("192.0.2.3") {
			t.Errorf("packets are passed on to %s, %v", node, err)
		}
		decided <- actions
	}()
	select {
	case actions := <-decided:
		if via := p.steerer.Via(egressIP); len(actions) == 0 || via != "node-b" {
			t.Errorf("actions %v, the address is on %q; want some, and node-b", actions, via)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for a lock")
	}
}

func TestPart_EmptyPoolIsTold(t *testing.T) {
	p := newPoolTest(t)
	web := plan.Service{Namespace: "shop", Name: "web"}
	series := func() map[string]float64 {
		all := map[string]float64{}
		add := func(desc *metrics.Desc, value float64, labels ...string) {
			all[strings.Join(append([]string{desc.String()}, labels...), " ")] = value
		}
		p.Collect(add, add)
		return all
	}
	p.wanted[v1.IPv4Protocol] = cluster.Grants{Addresses: map[netip.Addr]bool{egressIP: true}}
	if got := p.steerer.Troubles(p.Troubles()); len(got) > 0 || len(series()) > 0 {
		t.Errorf("before all objects are known: troubles %v, series %v; want none", got, series())
	}
	p.wanted[v1.IPv6Protocol] = cluster.Grants{}
	got := p.steerer.Troubles(p.Troubles())[web]
	if len(got) != 1 || got[0].Reason != addressUnplaced || got[0].Own || !strings.Contains(got[0].Note, `no Node matches "pool=yes"`) {
		t.Errorf("no node is in the pool: %v", got)
	}
	if n := len(series()); n != 3 {
		t.Errorf("no node is in the pool: series %v, want members live and dead, and unheld addresses", series())
	}
	p.label("node-b", true)
	if got := p.steerer.Troubles(p.Troubles()); len(got) > 0 || len(series()) > 0 {
		t.Errorf("another node is in the pool: troubles %v, series %v; want none", got, series())
	}
}

// TestPart_SeriesOfANodeThatHasLeft: when it has handed its addresses over, how it sees the pool is of no matter.
func TestPart_SeriesOfANodeThatHasLeft(t *testing.T) {
	p := newPoolTest(t)
	held := []pool.State{{Name: "node-a", Held: map[netip.Addr]uint64{egressIP: 1}}}
	for name, test := range map[string]struct {
		status pool.Status
		series int
	}{
		"in the pool":        {pool.Status{Pool: []string{"node-a", "node-b"}, Members: []pool.State{{Name: "node-a"}}}, 4},
		"has left, has some": {pool.Status{Pool: []string{"node-b"}, Members: held}, 4},
		"has left, has none": {pool.Status{Pool: []string{"node-b"}, Members: []pool.State{{Name: "node-a"}}}, 0},
		"nothing is known":   {pool.Status{}, 0},
	} {
		series := 0
		p.collectView(test.status, func(*metrics.Desc, float64, ...string) { series++ })
		if series != test.series {
			t.Errorf("%s: %d series, want %d", name, series, test.series)
		}
	}
}

func TestPart_SaysWhyItHasNoPart(t *testing.T) {
	p := newPoolTest(t)
	expect := func(want string) {
		t.Helper()
		if _, err := p.Report(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	expect("it waits for objects of the API server (Leases)")
	p.wanted[v1.IPv4Protocol], p.wanted[v1.IPv6Protocol] = cluster.Grants{}, cluster.Grants{}
	expect(`its Node does not match "pool=yes"`)
	p.label("node-a", true)
	p.noKey = errors.New("somebody has deleted it")
	expect("somebody has deleted it")
	p.keys.Set(holders.Keys{[]byte("a key")})
	expect("its Node has no InternalIP that counts for IPv4")
}

// TestPart_LetsGoWhatOthersCanTake: a node whose address does not count for them lets its addresses go, unless that is so of all.
func TestPart_LetsGoWhatOthersCanTake(t *testing.T) {
	for name, test := range map[string]struct {
		own, other string
		want       bool
	}{
		"its address counts":                    {"192.0.2.2", "192.0.2.3", false},
		"no address":                            {"", "", true},
		"one of the other IP family":            {"2001:db8::2", "192.0.2.3", true},
		"one in the pool's network":             {"203.0.113.2", "192.0.2.3", true},
		"all nodes' are in the pool's network":  {"203.0.113.2", "203.0.113.3", false},
		"all nodes' are of the other IP family": {"2001:db8::2", "2001:db8::3", false},
		"nobody else's counts, but it has none": {"", "2001:db8::3", true},
	} {
		p, got := newPoolTest(t), false
		p.stopKeeping = func() { got = true }
		for name, ip := range map[string]string{"node-a": test.own, "node-b": test.other} {
			p.state.SetNode(clustertest.NewNode(name, ip, v1.ConditionTrue))
			p.label(name, true)
		}
		if p.follow(); got != test.want {
			t.Errorf("%s: lets its addresses go: %v, want %v", name, got, test.want)
		}
	}
}

// TestPart_ThatHangsIsDue: the watchdog asks for the pool's loop, too.
func TestPart_ThatHangsIsDue(t *testing.T) {
	p := newPoolTest(t)
	due := func(want bool, when string) {
		t.Helper()
		if since := p.DueSince(); since.IsZero() == want {
			t.Errorf("%s: due since %v, want something due: %v", when, since, want)
		}
	}
	due(false, "without a part in the pool")
	p.runner = p.newRunner()
	due(false, "nothing has happened")
	p.runner.Tell(pool.Tick{}) // its loop does not run
	due(true, "an event waits")
}

// TestPart_FollowsThePlans: what they grant is due until the pool is told of it, which no sync waits for.
func TestPart_FollowsThePlans(t *testing.T) {
	p := newPoolTest(t)
	ctx, stop := context.WithCancel(t.Context())
	p.ctx = ctx
	isDue := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.due.IsZero()
	}
	p.Sync(v1.IPv4Protocol)
	if isDue() || !p.DueSince().IsZero() {
		t.Error("something is due before the plans of both families are known")
	}
	p.Sync(v1.IPv6Protocol)
	if _, starting := p.part(); !isDue() || p.DueSince().IsZero() || !starting {
		t.Error("nothing is due when the plans are known")
	}
	again := true
	p.config.Reserved = func() map[netip.Addr]bool {
		if again {
			again = false
			p.Sync(v1.IPv4Protocol)
		}
		return nil
	}
	if p.turn(); !isDue() {
		t.Error("nothing is due after a sync that came while the one before it was followed")
	}
	if p.turn(); isDue() || !p.DueSince().IsZero() {
		t.Error("something is due when all syncs were followed")
	}
	p.runner = p.newRunner()
	p.Sync(v1.IPv4Protocol)
	var running sync.WaitGroup
	running.Go(p.run)
	for deadline := time.Now().Add(30 * time.Second); isDue(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the pool does not follow")
		}
	}
	stop()
	running.Wait()
	if p.runner.DueSince().IsZero() || p.told.wanted == nil || len(p.told.addresses) != 2 {
		t.Errorf("the pool was told %+v", p.told)
	}
}

// TestPart_OneEventForMoves: of a node that had 200 addresses, no Event about some of them is lost.
func TestPart_OneEventForMoves(t *testing.T) {
	p := newPoolTest(t)
	p.logger = klog.Logger{}
	for why := range pool.Reasons() {
		if n, known := p.moveCounts()[why]; n != 0 || !known {
			t.Errorf("before any move, %d are counted as %s, known: %v; want 0", n, why, known)
		}
	}
	var moves []pool.Move
	ip := netip.MustParseAddr("203.0.113.1")
	for range 199 {
		moves = append(moves, pool.Move{Address: ip, Taken: true, Epoch: 2, Other: "node-b", Why: pool.Dead})
		ip = ip.Next()
	}
	moves = append(moves, pool.Move{Address: ip, Taken: true, Epoch: 2, Why: pool.Unheld})
	var notes []string
	p.config.Event = func(_ plan.Reason, note string) { notes = append(notes, note) }
	p.account(moves)
	slices.Sort(notes)
	if len(notes) != 2 || !strings.Contains(notes[1], "because no node had it: 203.0.113.200") ||
		!strings.Contains(notes[0], "from node-b") || !strings.Contains(notes[0], "203.0.113.1, 203.0.113.2, ") || !strings.HasSuffix(notes[0], "203.0.113.20 and 179 more") {
		t.Errorf("got %q, want one Event for node-b and one for no node", notes)
	}
	if got := p.moveCounts(); got[pool.Dead] != 199 || got[pool.Unheld] != 1 {
		t.Errorf("the moves are counted as %v", got)
	}
}

// TestPart_LeavesToABalancer what that has to announce, and tells if no node announces it.
func TestPart_LeavesToABalancer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoolTest(t)
		p.wanted[v1.IPv4Protocol] = cluster.Grants{Addresses: map[netip.Addr]bool{egressIP: true}}
		reserved := map[netip.Addr]bool{}
		p.config.Reserved = func() map[netip.Addr]bool { return reserved }
		if all, _ := p.allWanted(reserved); !all[egressIP] {
			t.Errorf("%s is not the pool's", egressIP)
		}
		reserved[egressIP] = true
		if all, _ := p.allWanted(reserved); len(all) > 0 {
			t.Errorf("%s is the pool's", egressIP)
		}
		for _, told := range []int{0, 1} {
			p.noteLeft(time.Now())
			if troubles := p.LeftTroubles(time.Now()); len(troubles) != told {
				t.Errorf("%d told, want %d: %+v", len(troubles), told, troubles)
			}
			time.Sleep(tell.Lasting + time.Second)
		}
	})
}

func TestCannotHold_SaysWhy(t *testing.T) {
	addresses := []netip.Addr{netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("192.0.2.1")}
	subnets := []pool.Network{{Prefix: netip.MustParsePrefix("203.0.113.0/24"), Up: true}, {Prefix: netip.MustParsePrefix("198.51.100.0/24")}}
	want := []string{"no interface has a subnet with 192.0.2.1", "the link is down of the interface for 198.51.100.1"}
	if diff := cmp.Diff(want, cannotHold(subnets, addresses)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPart_DrainIsRememberedOrNot: a drain by people counts after a restart, one by a shutdown does not.
func TestPart_DrainIsRememberedOrNot(t *testing.T) {
	p := newPoolTest(t)
	p.config.DrainFile = filepath.Join(t.TempDir(), "drained")
	p.runner = p.newRunner()
	for _, step := range []struct{ now, remember, want bool }{
		{now: true, want: false}, {now: true, remember: true, want: true}, {now: true, want: true}, {now: false, want: false},
	} {
		if err := p.Drain(step.now, step.remember); err != nil {
			t.Fatal(err)
		}
		if got := p.remembersDrain(); got != step.want {
			t.Errorf("%+v: it is remembered: %v", step, got)
		}
	}
}

// TestPart_LeavesWithinTheShutdown: with addresses that nobody takes, a shutdown is not held up.
func TestPart_LeavesWithinTheShutdown(t *testing.T) {
	p := newPoolTest(t)
	p.GiveAllAway(t.Context()) // it has no part in the pool
	p.runner = p.newRunner()
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	p.GiveAllAway(ctx)
	p.GoOn()
}

// TestPart_DrainOutlastsACancelledShutdown: what an operator says holds beside a shutdown, and after one that does not come.
func TestPart_DrainOutlastsACancelledShutdown(t *testing.T) {
	p := newPoolTest(t)
	p.config.DrainFile = filepath.Join(t.TempDir(), "drained")
	p.runner = p.newRunner()
	over, stop := context.WithCancel(t.Context())
	stop()
	drain := func(now, remember bool) {
		if err := p.Drain(now, remember); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		want bool
	}{
		{"drained until a restart", func() { drain(true, false) }, true},
		{"it goes down", func() { p.GiveAllAway(over) }, true},
		{"cancelled", p.GoOn, true},
		{"undrained", func() { drain(false, false) }, false},
		{"it goes down again", func() { p.GiveAllAway(over) }, true},
		{"cancelled again", p.GoOn, false},
		{"it goes down", func() { p.GiveAllAway(over) }, true},
		{"undrained meanwhile", func() { drain(false, false) }, false},
	} {
		step.do()
		if drain := p.toldDrain(); drain.Now != step.want {
			t.Errorf("%s: %+v, want %v", step.what, drain, step.want)
		}
	}
}

// fakeHandover notes what a node is to pass on, and of which addresses it is to drop the rest. before is called first.
type fakeHandover struct {
	passed map[netip.Addr]netip.Addr
	left   []netip.Addr
	before func()
}

func (f *fakeHandover) Pass(former map[netip.Addr]netip.Addr) error {
	f.before()
	f.passed = former
	return nil
}

func (f *fakeHandover) Leave(addresses []netip.Addr) error {
	f.before()
	f.left = append(f.left, addresses...)
	return nil
}

// TestPart_PassesOnWhatItTakes from a neighbour that says that it drops the rest, before anybody sends it here.
func TestPart_PassesOnWhatItTakes(t *testing.T) {
	router := errors.New("behind a router")
	for name, test := range map[string]struct {
		move     pool.Move
		adjacent error
		want     map[netip.Addr]netip.Addr
	}{
		"drained":          {pool.Move{Other: "node-b", Why: pool.Drained, PassOn: true}, nil, map[netip.Addr]netip.Addr{egressIP: netip.MustParseAddr("192.0.2.3")}},
		"an older version": {pool.Move{Other: "node-b", Why: pool.Drained}, nil, nil},
		"an unknown node":  {pool.Move{Other: "node-x", Why: pool.Drained, PassOn: true}, nil, nil},
		"behind a router":  {pool.Move{Other: "node-b", Why: pool.Drained, PassOn: true}, router, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPoolTest(t)
			p.adjacent = func(_, _ netip.Addr) error { return test.adjacent }
			fake := &fakeHandover{before: func() {
				if p.isLocal() {
					t.Error("nodes are told of it before it is passed on")
				}
			}}
			p.handovers = handovers{v1.IPv4Protocol: fake}
			test.move.Address, test.move.Taken = egressIP, true
			p.steerer.Join(true).Next(pool.Found{Addresses: []netip.Addr{egressIP}}, time.Now())
			p.moved([]pool.Move{test.move})
			if !p.isLocal() {
				t.Errorf("it is not here: %+v", p.steerer.Holder(egressIP))
			}
			if !maps.Equal(fake.passed, test.want) {
				t.Errorf("passed on: %v, want %v", fake.passed, test.want)
			}
		})
	}
}

// TestPart_GoesOnAfterAHandover until all nodes know of the new holder, if that one passes packets on to it. What it does not
// track it drops first.
func TestPart_GoesOnAfterAHandover(t *testing.T) {
	for name, test := range map[string]struct {
		move     pool.Move
		adjacent error
		want     bool
	}{
		"handed over":          {pool.Move{Other: "node-b", Why: pool.HandedOver, GoOn: true}, nil, true},
		"nobody passes it on":  {pool.Move{Other: "node-b", Why: pool.HandedOver}, nil, false},
		"behind a router":      {pool.Move{Other: "node-b", Why: pool.HandedOver, GoOn: true}, errors.New("behind a router"), false},
		"an unknown node":      {pool.Move{Other: "node-x", Why: pool.HandedOver, GoOn: true}, nil, false},
		"it was out of reach":  {pool.Move{Other: "node-b", Why: pool.TakenOver}, nil, false},
		"no Service claims it": {pool.Move{Why: pool.Unwanted}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPoolTest(t)
				p.adjacent = func(_, _ netip.Addr) error { return test.adjacent }
				p.steerer.Apply(holders.OwnAddresses{Addresses: []netip.Addr{egressIP}})
				fake := &fakeHandover{before: func() {}}
				p.handovers = handovers{v1.IPv4Protocol: fake}
				test.move.Address = egressIP
				p.moved([]pool.Move{test.move})
				if test.want && !slices.Equal(fake.left, []netip.Addr{egressIP}) {
					t.Errorf("it drops the strays of %v at first", fake.left)
				}
				p.steerer.Apply(holders.OwnAddresses{})
				time.Sleep(goesOn - time.Millisecond)
				if p.isLocal() != test.want {
					t.Errorf("it goes on: %v, want %v", p.isLocal(), test.want)
				}
				time.Sleep(2 * time.Millisecond)
				if synctest.Wait(); p.isLocal() || !slices.Equal(fake.left, []netip.Addr{egressIP}) {
					t.Errorf("afterwards it goes on: %v; it dropped %v", p.isLocal(), fake.left)
				}
			})
		})
	}
}

// rules has a node write the rules of IPv4, each time for a while, until the test ends. synced is how often it has.
func (p *poolTest) rules(takes time.Duration) (synced *atomic.Int32) {
	synced = &atomic.Int32{}
	loop := extension.NewLoop(time.Millisecond, time.Hour)
	p.config.Await = func(ctx context.Context, _ v1.IPFamily) { _ = loop.Await(ctx) }
	p.config.RequestSync = func() { loop.Changed(time.Now()) }
	ctx, stop := context.WithCancel(p.ctx)
	ended := make(chan struct{})
	p.Cleanup(func() { stop(); <-ended })
	go func() {
		defer close(ended)
		loop.Run(ctx, func(context.Context, bool) (time.Time, bool) {
			time.Sleep(takes)
			synced.Add(1)
			return time.Time{}, false
		}, func([]time.Time) {})
	}()
	return synced
}

// TestPart_WaitsForItsRules where nothing is passed on, but not for long, and not otherwise.
func TestPart_WaitsForItsRules(t *testing.T) {
	const takes = 10 * time.Millisecond
	for name, test := range map[string]struct {
		move  pool.Move
		takes time.Duration
		want  time.Duration
	}{
		"from an older node": {pool.Move{Taken: true, Other: "node-b", Why: pool.Drained}, takes, takes},
		"to an older node":   {pool.Move{Other: "node-b", Why: pool.HandedOver}, takes, takes},
		"it takes long":      {pool.Move{Taken: true, Other: "node-b", Why: pool.Drained}, time.Second, ruleTime},
		"packets go on":      {pool.Move{Taken: true, Other: "node-b", Why: pool.Drained, PassOn: true}, takes, 0},
		"its node is dead":   {pool.Move{Taken: true, Other: "node-b", Why: pool.Dead}, takes, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPoolTest(t)
				p.adjacent = func(_, _ netip.Addr) error { return nil }
				p.handovers = handovers{v1.IPv4Protocol: &fakeHandover{before: func() {}}}
				p.rules(test.takes)
				time.Sleep(2 * time.Second) // the first sync
				test.move.Address, test.move.Epoch = egressIP, 2
				began := time.Now()
				p.moved([]pool.Move{test.move})
				if took := time.Since(began); took != test.want {
					t.Errorf("it waits for %v, want %v", took, test.want)
				}
			})
		})
	}
}

// TestPart_ReportHasWhatIsHandedOver until this node's pods do not use it any more: a drain, or a shutdown, is over then,
// and the process may end.
func TestPart_ReportHasWhatIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoolTest(t)
		p.adjacent = func(_, _ netip.Addr) error { return nil }
		p.handovers = handovers{v1.IPv4Protocol: &fakeHandover{before: func() {}}}
		synced := p.rules(100 * time.Millisecond)
		time.Sleep(time.Second)
		p.steerer.Apply(holders.OwnAddresses{Addresses: []netip.Addr{egressIP}})
		p.moved([]pool.Move{{Address: egressIP, Other: "node-b", Why: pool.HandedOver, GoOn: true}})
		p.steerer.Apply(holders.OwnAddresses{})
		time.Sleep(goesOn / 2)
		expect := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			s := p.report(pool.Status{Members: []pool.State{{Name: "node-a", Run: 1, Draining: true}, {Name: "node-b", Run: 1}}})
			if len(s.Members) != 2 || len(s.Members[0].Held) != want || len(s.Members[1].Held) > 0 {
				t.Errorf("%s: %+v; want %d addresses of node-a", when, s.Members, want)
			}
		}
		expect("it is handed over", 1)
		time.Sleep(goesOn / 2)
		before := synced.Load()
		expect("its rules are late", 1)
		time.Sleep(time.Second)
		expect("its rules are there", 0)
		if synced.Load() == before {
			t.Error("no rules were written")
		}
	})
}

// TestPart_LooksAtEachNodeOnce, however many addresses move: another look takes time in which nobody serves them.
func TestPart_LooksAtEachNodeOnce(t *testing.T) {
	p := newPoolTest(t)
	looks := 0
	p.adjacent = func(_, _ netip.Addr) error { looks++; return nil }
	fake := &fakeHandover{before: func() {}}
	p.handovers = handovers{v1.IPv4Protocol: fake}
	var moves []pool.Move
	for ip := egressIP; len(moves) < 200; ip = ip.Next() {
		moves = append(moves, pool.Move{Address: ip, Taken: true, Epoch: 2, Other: "node-b", Why: pool.Drained, PassOn: true})
	}
	p.moved(moves)
	if looks != 1 || len(fake.passed) != len(moves) {
		t.Errorf("it looked %d times to pass on %d addresses, want once for %d", looks, len(fake.passed), len(moves))
	}
}

// TestPart_PlansPodsOfWhatItHandsOver, also when it is not in the pool any more: their packets are passed on to it.
func TestPart_PlansPodsOfWhatItHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoolTest(t)
		until := time.Now().Add(goesOn)
		here := holders.OwnAddresses{Addresses: []netip.Addr{egressIP}}
		expect := func(when string, want bool) {
			t.Helper()
			if p.plansFor()[egressIP] != want {
				t.Errorf("%s it plans for %v, want that of %s: %v", when, p.plansFor(), egressIP, want)
			}
		}
		for _, event := range []holders.Event{here, holders.Left{Addresses: here.Addresses, Until: until}, holders.OwnAddresses{}} {
			p.steerer.Apply(event)
			expect(fmt.Sprintf("after %+v", event), true)
		}
		time.Sleep(goesOn)
		p.steerer.PlanAgain()
		expect("when it is over", false)
	})
}

// TestPart_SpeaksWithANodeThatIsGone for a while, unless it is there again, or another one has its address.
func TestPart_SpeaksWithANodeThatIsGone(t *testing.T) {
	const gone, other = "192.0.2.3", "192.0.2.9"
	tell := func(p *poolTest) {
		p.mu.Lock()
		defer p.unlock()
		p.told.addresses = p.owned(p.state.JudgedNodes(v1.IPv4Protocol))
	}
	for name, test := range map[string]struct {
		then func(p *poolTest)
		want string // the address at which node-b is spoken with
	}{
		"gone":                        {func(*poolTest) {}, gone},
		"for long":                    {func(p *poolTest) { p.goneAt["node-b"] = time.Now().Add(-farewell) }, ""},
		"there again":                 {func(p *poolTest) { p.state.SetNode(clustertest.NewNode("node-b", other, v1.ConditionTrue)) }, other},
		"another one has its address": {func(p *poolTest) { p.state.SetNode(clustertest.NewNode("node-c", gone, v1.ConditionTrue)) }, ""},
		"gone again": {func(p *poolTest) {
			p.goneAt["node-b"] = time.Now().Add(-farewell)
			p.state.SetNode(clustertest.NewNode("node-b", gone, v1.ConditionTrue))
			tell(p)
			p.state.DeleteNode("node-b")
		}, gone},
	} {
		p := newPoolTest(t)
		tell(p)
		p.state.DeleteNode("node-b")
		tell(p)
		test.then(p)
		tell(p)
		got, want := p.told.addresses["node-b"], netip.Addr{}
		if test.want != "" {
			want = netip.MustParseAddr(test.want)
		}
		if got != want {
			t.Errorf("%s: node-b is spoken with at %s, want %s", name, got, want)
		}
	}
}

// TestPart_AddressOfAnother: a node that says to have another one's address does not silence it, also where this process finds both
// when it starts.
func TestPart_AddressOfAnother(t *testing.T) {
	const ownIP, otherIP = "192.0.2.2", "192.0.2.3"
	for name, c := range map[string]struct {
		known   bool   // the process knows the others before the thief
		thief   string // its name sorts before the victim's, or after
		age     int
		steals  string
		removed bool // the thief has an address of its own again
		want    map[string]string
	}{
		"a younger one, at a start":      {thief: "infra-0", age: -1, steals: otherIP, want: map[string]string{"node-a": ownIP, "node-b": otherIP}},
		"whatever its name":              {thief: "worker", age: -1, steals: otherIP, want: map[string]string{"node-a": ownIP, "node-b": otherIP}},
		"an older one, later":            {known: true, thief: "infra-0", age: 1, steals: otherIP, want: map[string]string{"node-a": ownIP, "node-b": otherIP}},
		"an older one, this node's":      {thief: "infra-0", age: 1, steals: ownIP, want: map[string]string{"node-a": ownIP, "node-b": otherIP}},
		"it has another one in the end":  {thief: "infra-0", age: -1, steals: otherIP, removed: true, want: map[string]string{"node-a": ownIP, "node-b": otherIP, "infra-0": "192.0.2.4"}},
		"it has none but its own at all": {thief: "infra-0", age: 1, steals: "192.0.2.4", want: map[string]string{"node-a": ownIP, "node-b": otherIP, "infra-0": "192.0.2.4"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPoolTest(t)
			p.runner = p.newRunner()
			set := func(name, ip string, age int) {
				n := clustertest.NewNode(name, ip, v1.ConditionTrue)
				n.Labels, n.CreationTimestamp = map[string]string{"pool": "yes"}, metav1.Unix(int64(1000-age), 0)
				p.state.SetNode(n)
				p.SetNode(n)
			}
			sync := func() {
				for _, family := range cluster.Families {
					p.Sync(family)
				}
				p.follow()
			}
			log := 0
			p.logger = funcr.New(func(_, text string) {
				if log++; !p.mu.TryLock() {
					t.Errorf("logged under the lock: %s", text)
					return
				}
				p.mu.Unlock()
			}, funcr.Options{})
			set("node-a", ownIP, 0)
			set("node-b", otherIP, 0)
			if c.known {
				sync()
			}
			set(c.thief, c.steals, c.age)
			sync()
			if c.removed {
				set(c.thief, "192.0.2.4", c.age)
				sync()
			}
			got := map[string]string{}
			for name, ip := range p.told.addresses {
				got[name] = ip.String()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the pool speaks with (-want +got):\n%s", diff)
			}
			if shared := len(c.want) < 3; shared != (len(p.warned.shared) == 1) {
				t.Errorf("the log says %q", p.warned.shared)
			}
			if log == 0 && len(p.warned.shared) > 0 {
				t.Errorf("not logged: %q", p.warned.shared)
			}
		})
	}
}
