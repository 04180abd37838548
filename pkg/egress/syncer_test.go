package egress

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/proxy"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

// iptablesStub puts programs in iptables' place, of which the next lines tell what they
// do: fail, or record that they ran. What the real ones do is tested in hack/netns.
func iptablesStub(t *testing.T, save, restore string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, script := range map[string]string{
		"iptables": "echo 'iptables v1.8.9 (nf_tables)'", "ip6tables": "echo 'ip6tables v1.8.9 (nf_tables)'",
		"iptables-save": save, "ip6tables-save": save, "iptables-restore": restore, "ip6tables-restore": restore,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin") // without the other back end's programs
	return dir
}

// flowsStub stands for the conntrack table: it keeps what it was asked for, and fails as
// often as it is told to.
type flowsStub struct {
	scopes []conntrack.Scope
	fail   int
}

func (f *flowsStub) delete(_ context.Context, _ conntrack.Family, _ plan.Plan, scope conntrack.Scope) (int, error) {
	if f.fail > 0 {
		f.fail--
		return 0, errors.New("the table cannot be read")
	}
	f.scopes = append(f.scopes, scope)
	return 0, nil
}

// aloneWriter knows of no other means than iptables: nftables would be the machine's own.
type aloneWriter struct{ *rulesWriter }

func (w aloneWriter) others() []other { return []other{otherBackend(w.rules)} }

// stub keeps a syncer away from what is the machine's own.
func stub(s *syncer) *flowsStub {
	flows := &flowsStub{}
	s.delete, s.writer = flows.delete, aloneWriter{&rulesWriter{rules: iptables.NewWriter(iptables.IPv4)}}
	return flows
}

func newTestSyncer(config Config) (*syncer, *flowsStub) {
	s := newSyncer(v1.IPv4Protocol, klog.Background(), config)
	return s, stub(s)
}

// plans is a Planner that is told all that there is, each time.
type plans struct {
	*plan.Planner
	services map[plan.Service]bool
}

func newPlans(node string) *plans {
	return &plans{plan.NewPlanner(node, func(netip.Addr) plan.Pod { return plan.Pod{} }), map[plan.Service]bool{}}
}

func (p *plans) next(claims ...plan.Claim) plan.Change {
	for service := range p.services {
		p.DeleteService(service)
	}
	p.SetSurroundings(plan.Input{ClusterCIDRs: testConfig.ClusterCIDRs[:1]})
	for _, claim := range claims {
		p.services[claim.Service] = true
		p.SetService(plan.Holding{Service: claim.Service}, &claim)
		p.ReplaceEndpoints(claim.Service, nil, claim.Endpoints)
	}
	return p.Update()
}

func oneClaim() plan.Claim {
	return plan.Claim{
		Service: plan.Service{Namespace: "ns", Name: "web"}, EgressIP: netip.MustParseAddr("203.0.113.1"),
		Protocols: []plan.Protocol{plan.TCP}, Endpoints: []plan.Endpoint{{Addr: netip.MustParseAddr("10.128.0.5")}},
	}
}

func TestBackoffGrowsAndEnds(t *testing.T) {
	dir := iptablesStub(t, "exit 4", "exit 4")
	s, _ := newTestSyncer(Config{SyncPeriod: 4 * time.Second})
	p := newPlans("")
	change := p.next(oneClaim())
	try := func() time.Duration {
		s.nextTry = time.Time{}
		return s.trySync(t.Context(), p, change, nil)
	}
	for _, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		if got := try(); got < want || got > want+want/5 {
			t.Errorf("wait %s, want %s and up to a fifth more", got, want)
		}
	}
	next := s.nextTry
	if s.trySync(t.Context(), p, change, nil); s.nextTry != next {
		t.Error("tried again without waiting")
	}
	s.noteFullSync()
	for _, name := range []string{"iptables-save", "iptables-restore"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.trySync(t.Context(), p, change, func() {}); got != 0 {
		t.Errorf("the proxier's full sync did not end the backoff, %s left", got)
	}
	if !s.complete || !s.known {
		t.Errorf("complete %v, known %v; want both", s.complete, s.known)
	}
}

// kernelStub puts an iptables in place that keeps what is restored, as far as this package
// reads it: restore begins with chains that are there anew.
func kernelStub(t *testing.T) (write func(rules string)) {
	t.Helper()
	dir := iptablesStub(t, "cat $(dirname $0)/kernel", "{ echo '*nat'; grep -e '^:' -e '^-A'; echo '-A POSTROUTING -m comment --comment \"OpenShift egress SNAT\" -j OPENSHIFT-EGRESS-SNAT'; echo COMMIT; } >$(dirname $0)/kernel")
	write = func(rules string) {
		if err := os.WriteFile(filepath.Join(dir, "kernel"), []byte(rules), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	return write
}

// TestFlowsToJudge: all at the start and after somebody else changed the rules, those that
// a change is about otherwise, none if nothing changed; and again what was not done.
func TestFlowsToJudge(t *testing.T) {
	bindings := func(ips ...string) (claims []plan.Claim) {
		for i, ip := range ips {
			claims = append(claims, plan.Claim{
				Service: plan.Service{Namespace: "ns", Name: ip}, EgressIP: netip.MustParseAddr(ip), Protocols: []plan.Protocol{plan.TCP},
				Endpoints: []plan.Endpoint{{Addr: netip.AddrFrom4([4]byte{10, 128, 0, byte(1 + i)})}},
			})
		}
		return claims
	}
	binding := func(pod, ip string) plan.Binding {
		return plan.Binding{Pod: netip.MustParseAddr(pod), Protocol: plan.TCP, EgressIP: netip.MustParseAddr(ip)}
	}
	pod := func(ip string) map[netip.Addr]bool { return map[netip.Addr]bool{netip.MustParseAddr(ip): true} }
	write := kernelStub(t)
	write("*nat\n:OPENSHIFT-EGRESS-SNAT - [0:0]\n:OPENSHIFT-EGRESS-REMOVED - [0:0]\n" +
		"-A OPENSHIFT-EGRESS-SNAT -s 10.128.0.9/32 ! -d 203.0.113.9/32 -p tcp -j SNAT --to-source 203.0.113.9 --random-fully\n" +
		"-A OPENSHIFT-EGRESS-REMOVED -s 10.128.0.8/32 ! -d 203.0.113.8/32 -p tcp -j SNAT --to-source 203.0.113.8 --random-fully\nCOMMIT\n")
	s, flows := newTestSyncer(Config{SyncPeriod: time.Hour})
	p := newPlans("")
	var at time.Time
	for _, step := range []struct {
		what   string
		do     func()
		claims []plan.Claim
		want   []conntrack.Scope
	}{
		{"the start, after bindings that are gone", func() {}, bindings("203.0.113.1"), []conntrack.Scope{{All: true, Removed: []plan.Binding{binding("10.128.0.8", "203.0.113.8"), binding("10.128.0.9", "203.0.113.9")}}}},
		{"nothing changed", func() {}, bindings("203.0.113.1"), nil},
		{"a look that finds nothing", s.noteLook, bindings("203.0.113.1"), []conntrack.Scope{{}}},
		{"one more", func() {}, bindings("203.0.113.1", "203.0.113.2"), []conntrack.Scope{{Pods: pod("10.128.0.2")}}},
		{"one changed", func() {}, bindings("203.0.113.1", "203.0.113.3"), []conntrack.Scope{{Pods: pod("10.128.0.2"), Removed: []plan.Binding{binding("10.128.0.2", "203.0.113.2")}}}},
		{"one gone, and the table cannot be read", func() { flows.fail = 1 }, bindings("203.0.113.1"), nil},
		{"it can again", func() { s.hurry = true }, bindings("203.0.113.1"), []conntrack.Scope{{All: true, Removed: []plan.Binding{binding("10.128.0.2", "203.0.113.3")}}}},
		{"somebody else flushed", func() { write(""); s.noteLook() }, bindings("203.0.113.1"), []conntrack.Scope{{All: true}}},
		{"somebody restored what was there before", func() {
			write("*nat\n:OPENSHIFT-EGRESS-SNAT - [0:0]\n-A OPENSHIFT-EGRESS-SNAT -s 10.128.0.7/32 ! -d 203.0.113.7/32 -p tcp -j SNAT --to-source 203.0.113.7 --random-fully\nCOMMIT\n")
			s.noteLook()
		}, bindings("203.0.113.1"), []conntrack.Scope{{All: true, Removed: []plan.Binding{binding("10.128.0.7", "203.0.113.7")}}}},
		{"one more again", func() {}, bindings("203.0.113.1", "203.0.113.2"), []conntrack.Scope{{Pods: pod("10.128.0.2")}}},
		{"gone, and the table cannot be read", func() { flows.fail = 1 }, bindings("203.0.113.1"), nil},
		{"then flushed", func() { write(""); s.hurry = true }, bindings("203.0.113.1"), []conntrack.Scope{{All: true, Removed: []plan.Binding{binding("10.128.0.2", "203.0.113.2")}}}},
		{"gone, but the node's own address", func() { s.nodeIP = netip.MustParseAddr("203.0.113.1") }, bindings(), []conntrack.Scope{{}}},
	} {
		flows.scopes, s.lookAt = nil, time.Time{}
		step.do()
		s.trySync(t.Context(), p, p.next(step.claims...), nil)
		if diff := cmp.Diff(step.want, flows.scopes, compareNetip); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.what, diff)
		}
		if s.lastSync.Before(at) {
			t.Errorf("%s: the last sync was at %s, want it after %s", step.what, s.lastSync, at)
		}
		at = s.lastSync
	}
}

// TestPodsElsewhere: what happens on other nodes costs this one no look through its flows.
func TestPodsElsewhere(t *testing.T) {
	kernelStub(t)
	at := func(name, ip, node string) plan.Claim {
		return plan.Claim{
			Service: plan.Service{Namespace: "ns", Name: name}, EgressIP: netip.MustParseAddr("203.0.113.1"), Protocols: []plan.Protocol{plan.TCP},
			Endpoints: []plan.Endpoint{{Addr: netip.MustParseAddr(ip), Node: node}},
		}
	}
	s, flows := newTestSyncer(Config{SyncPeriod: time.Hour, NodeName: "here"})
	p := newPlans("here")
	for _, step := range []struct {
		what    string
		claims  []plan.Claim
		pods    int // judged, -1 for all
		removed int
	}{
		{"the start", nil, -1, 0},
		{"one elsewhere", []plan.Claim{at("a", "10.128.0.1", "there")}, 0, 0},
		{"one here", []plan.Claim{at("a", "10.128.0.1", "there"), at("b", "10.128.0.2", "here")}, 1, 0},
		{"one that may be anywhere", []plan.Claim{at("a", "10.128.0.1", "there"), at("b", "10.128.0.2", "here"), at("c", "10.128.0.3", "")}, 1, 0},
		{"one in two places", []plan.Claim{at("a", "10.128.0.1", "there"), at("b", "10.128.0.2", "here"), at("d", "10.128.0.4", "there"), at("e", "10.128.0.4", "yonder")}, 1, 1},
		{"those here and elsewhere gone", []plan.Claim{at("d", "10.128.0.4", "there")}, 0, 1},
		{"one elsewhere gone, another come", []plan.Claim{at("d", "10.128.0.5", "there")}, 0, 0},
		{"and gone", nil, 0, 0},
	} {
		flows.scopes = nil
		if wait := s.trySync(t.Context(), p, p.next(step.claims...), nil); wait != 0 {
			t.Fatalf("%s: failed", step.what)
		}
		scope := flows.scopes[0]
		if scope.All != (step.pods < 0) || len(scope.Pods) != max(step.pods, 0) || len(scope.Removed) != step.removed {
			t.Errorf("%s: judged %+v, want %d pods and %d removed", step.what, scope, step.pods, step.removed)
		}
	}
}

// TestRepairIsAskedForAgain: as long as rules of the proxier are missing, or ours are altered,
// and not faster than the kernel is looked at.
func TestRepairIsAskedForAgain(t *testing.T) {
	missing := func(rules ...string) func(context.Context) ([]string, error) {
		return func(context.Context) ([]string, error) { return rules, nil }
	}
	for _, test := range []struct {
		name  string
		found held
		want  [3]int // at once, again at once, at the next look
	}{
		{"rules are missing", held{missing: missing("nat: rules of KUBE-SERVICES")}, [3]int{1, 1, 2}},
		{"ours are altered", held{altered: true, missing: missing()}, [3]int{1, 1, 2}},
		{"all is well", held{missing: missing()}, [3]int{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := newTestSyncer(Config{SyncPeriod: time.Hour})
			var got [3]int
			asked := 0
			for i := range got {
				if i == 2 && asked > 0 {
					s.repairAsked = time.Now().Add(-s.config.SyncPeriod / 2)
				}
				s.checkProxier(t.Context(), test.found, func() { asked++ })
				got[i] = asked
			}
			if got != test.want {
				t.Errorf("asked %v times, want %v", got, test.want)
			}
		})
	}
}

// placeWriter is a kernel in which rules are placed or not, and rules of an earlier run left or not, which
// may be unreadable. The proxier's are there. It counts the looks at it, and is too busy for some updates.
type placeWriter struct {
	writer
	placed     bool
	altered    bool
	left       []plan.Binding
	unreadable error
	looks      int
	busy       int
}

func (w *placeWriter) read(ctx context.Context) (held, error) {
	w.looks++
	found, err := w.writer.read(ctx)
	found.placed, found.altered = w.placed, found.altered || w.altered
	found.missing = func(context.Context) ([]string, error) { return nil, nil }
	return found, err
}

func (w *placeWriter) update(ctx context.Context, change plan.Change, networks plan.Plan, removed []plan.Binding) (changed bool, size int, err error) {
	if w.busy > 0 {
		w.busy--
		return false, 0, errors.New("busy")
	}
	return w.writer.update(ctx, change, networks, removed)
}

func (w *placeWriter) others() []other {
	return []other{
		{ // nothing of it may be removed
			read: func(context.Context) (bindings []plan.Binding, left bool, err error) {
				return nil, w.unreadable != nil, w.unreadable
			},
		},
		{
			read: func(context.Context) (bindings []plan.Binding, left bool, err error) {
				return w.left, len(w.left) > 0, nil
			},
			prune: func(context.Context) error {
				w.left = nil
				return nil
			},
		},
	}
}

// placing is a syncer that has written a plan, before the proxier's first sync.
type placing struct {
	*testing.T
	*syncer
	kernel *placeWriter
	flows  *flowsStub
	plans  *plans
	// repairs counts how often the proxier was asked to write its rules; restore is what somebody
	// else does.
	repairs int
	restore func(rules string)
}

func newPlacing(t *testing.T, kernel placeWriter) *placing {
	t.Helper()
	p := &placing{T: t, kernel: &kernel, plans: newPlans("10.128.0.0/14"), restore: kernelStub(t)}
	p.syncer, p.flows = newTestSyncer(Config{SyncPeriod: time.Hour})
	p.kernel.writer, p.syncer.writer = p.syncer.writer, p.kernel
	p.sync()
	return p
}

// sync returns how often the kernel was looked at.
func (p *placing) sync() (looks int) {
	p.Helper()
	before := p.kernel.looks
	if wait := p.try(oneClaim()); wait != 0 {
		p.Fatalf("failed: %s", p.failure)
	}
	return p.kernel.looks - before
}

func (p *placing) try(claims ...plan.Claim) time.Duration {
	return p.trySync(p.Context(), p.plans, p.plans.next(claims...), func() { p.repairs++ })
}

// another is the claim of another Service.
func another() plan.Claim {
	claim := oneClaim()
	claim.Service.Name, claim.Endpoints = "db", []plan.Endpoint{{Addr: netip.MustParseAddr("10.128.0.6")}}
	return claim
}

// TestPlacing: before the proxier's first sync has ended, the kernel is looked at until its jump is seen,
// for ours has to be in front of it. Then the first sync need not wait for a look.
func TestPlacing(t *testing.T) {
	for _, placed := range []bool{true, false} {
		t.Run(fmt.Sprintf("placed=%v", placed), func(t *testing.T) {
			p := newPlacing(t, placeWriter{})
			first := p.untilLook()
			p.lookAt = time.Now()
			if looks := p.sync(); looks != 1 {
				t.Errorf("looked %d times when the time had come, want once", looks)
			}
			second := p.untilLook()
			later := time.Now().Add(time.Hour)
			p.lookAt = later
			if looks := p.sync(); looks != 0 || p.lookAt != later {
				t.Errorf("another sync looked %d times, or put off the next look", looks)
			}
			if first == 0 || second <= first {
				t.Errorf("the next looks after %s, then %s; want some time, then more", first, second)
			}
			p.kernel.placed, p.lookAt = placed, time.Now()
			p.sync()
			if settled := p.untilLook() == 0; settled != placed || p.complete {
				t.Errorf("settled %v, want %v; complete %v before the proxier has synced", settled, placed, p.complete)
			}
			var looks []int
			for range 2 {
				p.noteFullSync()
				looks = append(looks, p.sync())
				if !p.complete {
					t.Error("not complete after the proxier has synced")
				}
			}
			want := []int{1, 1}
			if placed {
				want[0] = 0
			}
			if diff := cmp.Diff(want, looks); diff != "" {
				t.Errorf("looks after full syncs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLookAfterTheFirstSync: who flushes the tables while the proxier writes its rules is noticed at once.
func TestLookAfterTheFirstSync(t *testing.T) {
	p := newPlacing(t, placeWriter{placed: true})
	p.noteFullSync()
	if looks := p.sync(); looks != 0 || !p.complete || p.untilLook() == 0 || p.untilLook() > time.Second {
		t.Fatalf("looked %d times, complete %v, next look after %s; want none, and one at once", looks, p.complete, p.untilLook())
	}
	p.lookAt = time.Now()
	if looks := p.sync(); looks != 1 || p.untilLook() != 0 {
		t.Errorf("looked %d times, next look after %s; want once, and no more", looks, p.untilLook())
	}
}

// TestWhoChangesOursIsSuspected: whoever restored our rules of before may have restored the proxier's,
// which is asked to write them; not so where nobody has, and a write failed.
func TestWhoChangesOursIsSuspected(t *testing.T) {
	const old = "*nat\n:OPENSHIFT-EGRESS-SNAT - [0:0]\n-A OPENSHIFT-EGRESS-SNAT -s 10.128.0.7/32 ! -d 203.0.113.7/32 -p tcp -j SNAT --to-source 203.0.113.7 --random-fully\nCOMMIT\n"
	for _, test := range []struct {
		name    string
		happens func(p *placing)
		want    int
	}{
		{"restored, and a look sees it", func(p *placing) { p.restore(old) }, 1},
		{"restored, and a change cannot be written", func(p *placing) {
			p.restore(old)
			p.kernel.busy = 1
			p.try(oneClaim(), another())
		}, 1},
		{"the same is restored, and a change cannot be written", func(p *placing) {
			p.kernel.busy, p.kernel.altered = 1, true
			p.try(oneClaim(), another())
			p.kernel.altered = false
		}, 1},
		{"a change cannot be written", func(p *placing) {
			p.kernel.busy = 1
			p.try(oneClaim(), another())
		}, 0},
		{"restored after a failure", func(p *placing) {
			p.flows.fail = 1
			p.try(oneClaim(), another())
			p.restore(old)
			p.hurry = true
		}, 1},
		{"restored again before the proxier is asked again", func(p *placing) {
			p.restore(old)
			p.noteLook()
			p.sync()
			p.restore(old)
			p.noteLook()
			p.sync()
			p.repairAsked = time.Now().Add(-p.config.SyncPeriod)
		}, 2},
		{"restored, and the proxier writes all", func(p *placing) {
			p.restore(old)
			p.kernel.busy = 1
			p.try(oneClaim(), another())
			p.noteFullSync()
		}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlacing(t, placeWriter{placed: true})
			p.noteFullSync()
			p.sync()
			p.lookAt = time.Now()
			p.sync()
			test.happens(p)
			p.noteLook()
			p.sync()
			if p.repairs != test.want {
				t.Errorf("the proxier was asked %d times, want %d", p.repairs, test.want)
			}
		})
	}
}

// TestUnreadableRulesAreNotPruned: their flows could not be judged afterwards. Others are, and both are looked at
// again.
func TestUnreadableRulesAreNotPruned(t *testing.T) {
	p := newPlacing(t, placeWriter{placed: true, left: []plan.Binding{{Pod: netip.MustParseAddr("10.128.0.9")}}, unreadable: errors.New("busy")})
	p.noteFullSync()
	p.sync()
	if len(p.kernel.left) != 0 {
		t.Error("rules are not removed that can be read")
	}
	for _, unreadable := range []error{errors.New("busy"), nil} {
		p.kernel.unreadable = unreadable
		p.noteLook()
		p.sync()
		if p.pruned != (unreadable == nil) {
			t.Errorf("all is pruned: %v, although the rules could not be read: %v", p.pruned, unreadable)
		}
	}
}

// TestFlowsOfPrunedRulesAreJudged: rules of an earlier run decide about flows until they are removed.
func TestFlowsOfPrunedRulesAreJudged(t *testing.T) {
	old := plan.Binding{Pod: netip.MustParseAddr("10.128.0.9"), Protocol: plan.TCP, EgressIP: netip.MustParseAddr("203.0.113.9")}
	p := newPlacing(t, placeWriter{placed: true, left: []plan.Binding{old}})
	p.flows.scopes = nil
	p.noteFullSync()
	p.sync()
	if p.kernel.left != nil || len(p.flows.scopes) != 1 || !p.flows.scopes[0].All || !slices.Contains(p.flows.scopes[0].Removed, old) {
		t.Errorf("left %v, judged %+v; want none left, and the flows of those before judged", p.kernel.left, p.flows.scopes)
	}
}

// recorder stands for a proxier that has nothing to do.
type recorder struct {
	proxy.Provider
	syncs chan struct{}
}

func (r *recorder) OnServiceAdd(*v1.Service)           {}
func (r *recorder) OnServiceSynced()                   {}
func (r *recorder) OnEndpointSlicesSynced()            {}
func (r *recorder) OnTopologyChange(map[string]string) {}
func (r *recorder) Sync()                              { r.syncs <- struct{}{} }
func (r *recorder) SyncLoop()                          {}

// sideBySide is a proxier that is told of all EndpointSlices while it has begun to hear of all
// Services; that is where it syncs, and fails.
type sideBySide struct {
	recorder
	failed chan struct{}
}

func (s *sideBySide) OnServiceSynced() { <-s.failed }

// TestFirstSyncIsTriedAgain, in whichever of the two calls it failed.
func TestFirstSyncIsTriedAgain(t *testing.T) {
	e := New(t.Context(), testConfig)
	inner := &sideBySide{recorder{syncs: make(chan struct{}, 1)}, make(chan struct{})}
	p := e.Wrap(inner, v1.IPv4Protocol)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		p.OnServiceSynced()
	}()
	eventually(t, "told that all Services are known", func() bool { return !e.waitsFor(services) })
	p.OnEndpointSlicesSynced()
	if len(inner.syncs) != 0 {
		t.Error("a sync is asked for while the first goes on")
	}
	close(inner.failed)
	<-returned
	if len(inner.syncs) != 1 {
		t.Error("the first sync failed, and is not tried again")
	}
}

// TestBurstsCoalesce: many changes at once are few writes, and the last one counts.
func TestBurstsCoalesce(t *testing.T) {
	record := filepath.Join(t.TempDir(), "writes")
	iptablesStub(t, "", "cat >>"+record)
	config := testConfig
	config.MinSyncPeriod, config.SyncPeriod = 50*time.Millisecond, time.Hour
	e := New(t.Context(), config)
	stub(e.syncers[v1.IPv4Protocol])
	inner := &recorder{syncs: make(chan struct{}, 10)}
	p := e.Wrap(inner, v1.IPv4Protocol)
	p.SyncLoop()
	if _, err := e.state.setSlice(newSlice("web-1", "web", "10.128.0.5")); err != nil {
		t.Fatal(err)
	}
	p.OnServiceSynced()
	if len(inner.syncs) != 0 {
		t.Error("the proxier is asked for a sync before everything is known")
	}
	p.OnEndpointSlicesSynced()
	e.noteKnown(serviceCIDRs)
	e.noteKnown(nodes)
	e.noteKnown(headlessSlices)
	e.noteKnown(otherProxySlices)
	if missing := e.Summary().Missing; len(missing) != 1 {
		t.Errorf("waiting for %v, want for one kind", missing)
	}
	e.noteKnown(networks)
	if len(inner.syncs) != 1 {
		t.Error("the proxier's runner is not given the first sync, so it would not be tried again")
	}
	began := time.Now()
	const changes = 200
	for i := range changes {
		p.OnServiceAdd(newService("web", func(s *v1.Service) {
			s.Spec.ExternalIPs = []string{netip.AddrFrom4([4]byte{203, 0, 113, byte(1 + i)}).String()}
		}))
	}
	written := func() string {
		text, err := os.ReadFile(record)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(text)
	}
	eventually(t, "the last change is written", func() bool { return strings.Contains(written(), "203.0.113.200 ") })
	most := 2 + int(time.Since(began)/config.MinSyncPeriod)
	if got := strings.Count(written(), "COMMIT"); got > most {
		t.Errorf("%d changes were %d writes, want %d at most", changes, got, most)
	}
	eventually(t, "nothing is due", func() bool { return e.Summary().DueSince.IsZero() })
	if status := e.Summary(); status.Bindings != 1 || status.Ready {
		t.Errorf("status %+v; want one binding, not ready before the proxier has synced", status)
	}
	e.AfterSync(v1.IPv4Protocol, true)
	eventually(t, "ready after the proxier has synced", func() bool { return e.Summary().Ready })
}

// TestDueSinceAllIsKnown: what is waited for is not late.
func TestDueSinceAllIsKnown(t *testing.T) {
	e := New(t.Context(), testConfig)
	e.noteChange(true, time.Now())
	var last time.Time
	for kind := range e.missing {
		if due := e.Summary().DueSince; !due.IsZero() {
			t.Fatalf("due since %s while %v are missing", due, e.Summary().Missing)
		}
		last = time.Now()
		e.noteKnown(kind)
	}
	if due := e.Summary().DueSince; due.Before(last) {
		t.Errorf("due since %s, before all was known at %s", due, last)
	}
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !check(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
