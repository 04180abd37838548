package sourceports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/wake"
)

var egressIP = netip.MustParseAddr("203.0.113.10")

// portsTest are the source ports of node-a, whose Service shop/web has 203.0.113.10 and selects app=web. It has pods on node-b and node-c, too.
type portsTest struct {
	*testing.T
	*Allocator
	ctx    context.Context
	folder string
	store  *attachments.Store
	// changes is how often the attachments have changed, syncs how often a sync was asked for.
	changes uint64
	syncs   atomic.Int32
	told    []string
	// written are the lines of a journal, unwritten is why it cannot be written. If there is a disk, each line waits for it.
	mu        sync.Mutex
	written   []string
	unwritten error
	disk      chan struct{}
}

// Assigned is part of [portblocks.Recorder].
func (p *portsTest) Assigned(_ context.Context, a portblocks.Assignment) error {
	return p.write("+ %s %s %s %t", a.Pod.Name, a.EgressIP, a.Service, a.Shared)
}

// Released is part of [portblocks.Recorder].
func (p *portsTest) Released(_ context.Context, a portblocks.Assignment, at time.Time) error {
	return p.write("- %s %s %s", a.Pod.Name, a.EgressIP, at.UTC().Format("15:04:05"))
}

func (p *portsTest) write(format string, args ...any) error {
	if p.disk != nil {
		<-p.disk
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written = append(p.written, fmt.Sprintf(format, args...))
	return p.unwritten
}

// newPortsTest returns those of a process that has just been started, with the attachments in a folder.
func newPortsTest(ctx context.Context, t *testing.T, folder string, size int) *portsTest {
	t.Helper()
	store, err := attachments.Open(filepath.Join(folder, "attachments"))
	if err != nil {
		t.Fatal(err)
	}
	config := cluster.Config{NodeName: "node-a", ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}, Steering: cluster.Steering{Mode: holders.Auto}}
	p := &portsTest{T: t, ctx: ctx, folder: folder, store: store}
	tell := func(text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told = append(p.told, text)
	}
	p.Allocator = New(cluster.New(config), Config{
		BlockSize: size, LeaseNamespace: "origin-node", Attachments: func() Attachments { return followed{p} },
		RequestSync: func() { p.syncs.Add(1) }, FaultsChanged: func() {}, Explain: func(err error) error { return err },
		WarnPod:  func(_, name, _ string, reason plan.Reason, _ string) { tell(name + " " + string(reason)) },
		WarnNode: func(reason plan.Reason, _ string) { tell(string(reason)) },
		TellNode: func(reason plan.Reason, _ string) { tell(string(reason)) },
	})
	p.recorder = p
	p.state.SetService(clustertest.NewService("web", func(s *v1.Service) {
		s.Namespace, s.Spec.Selector, s.Spec.IPFamilies = "shop", map[string]string{"app": "web"}, []v1.IPFamily{v1.IPv4Protocol}
		s.Spec.ExternalIPs = []string{egressIP.String()}
	}))
	elsewhere := clustertest.NewSlice("web-1", "web", "10.128.1.5", "10.128.2.5")
	elsewhere.Namespace, elsewhere.Endpoints[0].NodeName, elsewhere.Endpoints[1].NodeName = "shop", ptr.To("node-b"), ptr.To("node-c")
	if _, err := p.state.SetSlice(elsewhere); err != nil {
		t.Fatal(err)
	}
	p.state.SetHeld(map[netip.Addr]bool{egressIP: true}, 1) // or it may come here
	p.state.Update(v1.IPv4Protocol)
	for _, a := range store.All() {
		p.bind(a)
	}
	p.follow()
	return p
}

// follow has all attachments followed.
func (p *portsTest) follow() {
	p.changes++
	p.Follow(p.changes, p.store.All())
}

// followed are the attachments of a test, whose source ports follow each change, as an Attacher has them.
type followed struct{ p *portsTest }

func (f followed) All() []attachments.Attachment { return f.p.store.All() }

func (f followed) SetPorts(id string, ports []attachments.Ports, size int) error {
	return f.change(id, func(a *attachments.Attachment) { a.Ports, a.BlockSize = ports, size })
}

func (f followed) SetWidened(id string) error {
	return f.change(id, func(a *attachments.Attachment) { a.Widened = true })
}

func (f followed) SetRecorded(id string) error {
	_, err := f.p.store.Change(id, func(a *attachments.Attachment) { a.Recorded = true })
	return err
}

func (f followed) change(id string, change func(*attachments.Attachment)) error {
	_, err := f.p.store.Change(id, change)
	f.p.follow()
	return err
}

// bind has the plan know a pod.
func (p *portsTest) bind(a attachments.Attachment) {
	p.state.SetAttachment(plan.Attachment{Addr: a.IPs[0], Pod: plan.Pod{Namespace: "shop", Name: a.Pod.Name}, UID: a.Pod.UID, Node: "node-a", Labels: map[string]string{"app": "web"}, Released: !a.Released.IsZero()})
	p.state.Update(v1.IPv4Protocol)
}

// start attaches a pod, as an Attacher does, and returns its ports.
func (p *portsTest) start(name, ip string) []attachments.Ports {
	p.Helper()
	ports := p.attach(name, ip)
	p.Allocator.Recorded(p.ctx, name)
	return ports
}

// attach is start without waiting for the journal.
func (p *portsTest) attach(name, ip string) []attachments.Ports {
	p.Helper()
	a := attachments.Attachment{ContainerID: name, IfName: "eth0", Pod: attachments.Pod{Namespace: "shop", Name: name, UID: "uid-" + name}, IPs: []netip.Addr{netip.MustParseAddr(ip)}, Since: time.Now()}
	if err := p.store.Put(p.Context(), a); err != nil {
		p.Fatal(err)
	}
	p.follow()
	p.bind(a)
	ports, size, err := p.Assign(p.ctx, a, p.bindingsOf(a))
	if err != nil {
		p.Fatal(err)
	}
	if ports != nil {
		if err := (followed{p}).SetPorts(name, ports, size); err != nil {
			p.Fatal(err)
		}
	}
	return ports
}

// end ends a pod.
func (p *portsTest) end(name string) {
	p.Helper()
	a, _, err := p.store.Release(name, time.Now())
	if err != nil {
		p.Fatal(err)
	}
	p.bind(a)
	p.follow()
	p.reconcile(p.ctx)
}

// steering is what a sync writes while this node holds egress IPs, or not.
func (p *portsTest) steering(held bool) kernel.Steering {
	result := kernel.Steering{Held: map[netip.Addr]bool{}}
	if held {
		result.Held[egressIP] = true
	}
	p.NotePorts(v1.IPv4Protocol, []netip.Addr{egressIP}, &result)
	return result
}

// wrote fails unless these lines were written down since the last call.
func (p *portsTest) wrote(when string, want ...string) {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if diff := cmp.Diff(want, p.written, cmpopts.EquateEmpty()); diff != "" {
		p.Errorf("%s: written down (-want +got):\n%s", when, diff)
	}
	p.written = nil
}

// claimed has a node claim a block, in a version of the Lease.
func (p *portsTest) claimed(version, claims string) {
	lease := &coordinationv1.Lease{}
	lease.Name, lease.Namespace, lease.ResourceVersion = portblocks.LeaseName(egressIP), "origin-node", version
	lease.Annotations = map[string]string{portblocks.Annotation: claims}
	p.SetClaims(lease, false)
}

// inBubble runs a test with a keeper that claims from an API server that takes everything.
func inBubble(t *testing.T, test func(ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		test(ctx)
	})
}

// claims has the keeper run, and claim.
func (p *portsTest) claims() {
	p.Apply(holders.LeasesKnown{})
	p.NodesKnown()
	go p.keeper.Run(p.ctx, versioned())
}

func TestAllocator_LifeOfAPod(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		folder := t.TempDir()
		p := newPortsTest(ctx, t, folder, 512)
		p.claims()
		ports := p.start("web-0", "10.128.0.5")
		if len(ports) != 1 || ports[0].Shared || ports[0].Last-ports[0].First != 511 || ports[0].Service != "shop/web" {
			t.Fatalf("ports %+v", ports)
		}
		p.wrote("started", "+ web-0 203.0.113.10 shop/web false")
		want := []kernel.Block{{Pod: netip.MustParseAddr("10.128.0.5"), EgressIP: egressIP, Ports: kernel.Ports{First: ports[0].First, Last: ports[0].Last}}}
		expect := func(when string, p *portsTest, want []kernel.Block) {
			t.Helper()
			got := p.steering(false)
			stated, assigned, _ := p.Stated()
			if !slices.Equal(got.Blocks, want) || got.Shared[egressIP] != portblocks.Shared || !slices.Equal(stated, want) || (assigned == "") != (want == nil) {
				t.Errorf("%s: blocks %v, shared %v, stated %v and %q; want %v", when, got.Blocks, got.Shared, stated, assigned, want)
			}
		}
		expect("started", p, want)

		p = newPortsTest(ctx, t, folder, 512)
		expect("a process later, before any Lease is known", p, want)
		p.claims()
		p.reconcile(ctx)
		p.wrote("a process later")
		expect("a process later", p, want)
		if again, _, err := p.Assign(ctx, p.store.All()[0], p.bindingsOf(p.store.All()[0])); err != nil || !slices.Equal(again, ports) {
			t.Errorf("the plugin asks again: %v, %v", again, err)
		}
		p.end("web-0")
		p.wrote("ended", "- web-0 203.0.113.10 00:00:00")
		p.reconcile(ctx)
		p.wrote("once")
		expect("ended", p, nil)
	})
}

// TestAllocator_EndedWhileAway: a pod had its ports until its end, and not until a process heard of that.
func TestAllocator_EndedWhileAway(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		folder, left := t.TempDir(), t.TempDir()
		p := newPortsTest(ctx, t, folder, 512)
		p.claims()
		p.start("web-0", "10.128.0.5")
		p.wrote("started", "+ web-0 203.0.113.10 shop/web false")
		note := p.store.All()[0]
		time.Sleep(10 * time.Minute)
		note.Released = time.Now()
		if err := attachments.Leave(left, note); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		p = newPortsTest(ctx, t, folder, 512)
		if _, err := p.store.TakeLeft(left, time.Now()); err != nil {
			t.Fatal(err)
		}
		p.follow()
		p.reconcile(ctx)
		p.wrote("ended", "- web-0 203.0.113.10 00:10:00")
	})
}

// TestAllocator_RecordedMeanwhile: what a pod gets is written down while the kernel is written, and before the pod runs. If it ends before that
// is done, its end is written down after it, and not lost.
func TestAllocator_RecordedMeanwhile(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := newPortsTest(ctx, t, t.TempDir(), 512)
		p.claims()
		p.disk = make(chan struct{})
		ports := p.attach("web-0", "10.128.0.5")
		if got := p.steering(false).Blocks; len(ports) != 1 || len(got) != 1 {
			t.Fatalf("ports %+v, blocks %v; expected that the kernel can be written", ports, got)
		}
		ready := make(chan struct{})
		go func() {
			p.Allocator.Recorded(ctx, "web-0")
			close(ready)
		}()
		p.end("web-0")
		synctest.Wait()
		select {
		case <-ready:
			t.Error("the pod runs, and it is not written down which ports it has")
		default:
		}
		p.wrote("the disk is busy")
		close(p.disk)
		<-ready
		synctest.Wait()
		p.reconcile(ctx)
		p.wrote("later", "+ web-0 203.0.113.10 shop/web false", "- web-0 203.0.113.10 00:00:00")
	})
}

// TestAllocator_RecordedBeforeTheEnd: the journal is not closed while something is being written down.
func TestAllocator_RecordedBeforeTheEnd(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := newPortsTest(ctx, t, t.TempDir(), 512)
		p.claims()
		p.disk = make(chan struct{})
		p.attach("web-0", "10.128.0.5")
		time.AfterFunc(time.Second, func() { close(p.disk) })
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		p.wrote("closed", "+ web-0 203.0.113.10 shop/web false")
	})
}

// TestAllocator_RecordingHangs: a pod does not wait for a disk that does not answer, nor for longer than its request.
func TestAllocator_RecordingHangs(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := newPortsTest(ctx, t, t.TempDir(), 512)
		p.claims()
		p.recorder = silentDisk{}
		began := time.Now()
		p.attach("web-0", "10.128.0.5")
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		for _, c := range []struct {
			ctx   context.Context
			until time.Duration
		}{{short, time.Second}, {ctx, recordPatience}} {
			if p.Allocator.Recorded(c.ctx, "web-0"); time.Since(began) != c.until {
				t.Errorf("waited until %s, want %s", time.Since(began), c.until)
			}
		}
		if !slices.Equal(p.told, []string{"EgressPortsNotRecorded"}) {
			t.Errorf("told %v", p.told)
		}
	})
}

// silentDisk is a [portblocks.Recorder] on a disk that does not answer.
type silentDisk struct{}

func (silentDisk) Assigned(ctx context.Context, _ portblocks.Assignment) error {
	<-ctx.Done()
	return ctx.Err()
}

func (silentDisk) Released(ctx context.Context, _ portblocks.Assignment, _ time.Time) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestAllocator_Sharing: a pod that can get no block is told of, and counted, and the journal says that it shares.
func TestAllocator_Sharing(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := newPortsTest(ctx, t, t.TempDir(), 512)
		p.unwritten = errors.New("no space left")
		if ports := p.start("web-0", "10.128.0.5"); len(ports) != 1 || !ports[0].Shared || ports[0].First != portblocks.Shared.First {
			t.Fatalf("ports %+v", ports) // nobody has said what is claimed
		}
		p.wrote("started", "+ web-0 203.0.113.10 shop/web true")
		slices.Sort(p.told) // in any order
		if want := []string{"EgressPortsNotRecorded", "web-0 EgressPortsShared"}; !slices.Equal(p.told, want) {
			t.Errorf("told %v, want %v", p.told, want)
		}
		if got := p.steering(true); got.Blocks != nil || got.Shared[egressIP] != portblocks.Shared || p.sharing()[egressIP] != 1 {
			t.Errorf("%+v, sharing %v", got, p.sharing())
		}
	})
}

// TestAllocator_BoundLater: a pod that no Service had given an egress IP when it started shares from when one does, which is written down; so
// does one that was not bound when an earlier process ended.
func TestAllocator_BoundLater(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		folder := t.TempDir()
		p := newPortsTest(ctx, t, folder, 512)
		a := attachments.Attachment{ContainerID: "web-0", IfName: "eth0", Pod: attachments.Pod{Namespace: "shop", Name: "web-0", UID: "uid-web-0"}, IPs: []netip.Addr{netip.MustParseAddr("10.128.0.5")}, Since: time.Now()}
		if err := p.store.Put(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		p.follow()
		<-p.wake
		if ports, _, err := p.Assign(ctx, a, nil); ports != nil || err != nil {
			t.Fatalf("ports %v, err %v", ports, err)
		}
		select {
		case <-p.wake:
		default:
			t.Error("nobody looks again whether it is bound, though it may have been since its bindings were asked for")
		}
		p.reconcile(ctx)
		p.wrote("started")
		next := newPortsTest(ctx, t, folder, 512) // which binds all pods
		for when, p := range map[string]*portsTest{"later": p, "by the next process": next} {
			if p == next { // for which it may be about to start
				p.bind(a)
				p.reconcile(ctx)
				p.wrote("by the next process, too early")
				time.Sleep(longestStart + time.Second)
			}
			p.bind(a)
			p.reconcile(ctx)
			p.reconcile(ctx)
			p.wrote(when, "+ web-0 203.0.113.10 shop/web true")
			if !slices.Equal(p.told, []string{"web-0 EgressPortsShared"}) || p.sharing()[egressIP] != 1 {
				t.Errorf("%s: told %v, sharing %v", when, p.told, p.sharing())
			}
		}
	})
}

// TestAllocator_StartedUndecided: a pod that has started although the node did not decide shares when it is bound, and not while it may still
// be about to start.
func TestAllocator_StartedUndecided(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := newPortsTest(ctx, t, t.TempDir(), 512)
		p.follow()                     // what an earlier process knew
		p.Apply(holders.LeasesKnown{}) // but the keeper does not run, so no claim is answered
		p.NodesKnown()
		a := attachments.Attachment{ContainerID: "web-0", IfName: "eth0", Pod: attachments.Pod{Namespace: "shop", Name: "web-0", UID: "uid-web-0"}, IPs: []netip.Addr{netip.MustParseAddr("10.128.0.5")}, Since: time.Now()}
		if err := p.store.Put(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		p.follow()
		p.bind(a)
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, _, err := p.Assign(short, a, p.bindingsOf(a)); err == nil {
			t.Fatal("it has ports before anything is claimed")
		}
		p.reconcile(ctx)
		p.wrote("it may be about to start")
		time.Sleep(longestStart + time.Second)
		p.reconcile(ctx)
		p.wrote("it has started", "+ web-0 203.0.113.10 shop/web true")
		go p.keeper.Run(ctx, versioned())
		time.Sleep(time.Second)
		p.reconcile(ctx)
		p.wrote("claims are answered")
	})
}

// TestAllocator_AddressOfAnother: what a node says of a pod that runs on another node counts for nothing: its address was used again, or the node
// lies.
func TestAllocator_AddressOfAnother(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := newPortsTest(ctx, t, t.TempDir(), 512)
		p.claims()
		own := p.start("web-0", "10.128.0.5")[0]
		p.claimed("1000000", fmt.Sprintf(`{"%d-%d": {"node": "node-a"}, "2048-2559": {"node": "node-b"}}`, own.First, own.Last))
		p.Apply(holders.Assigned{Node: "node-b", Blocks: []kernel.Block{{Pod: own.IP, EgressIP: egressIP, Ports: kernel.Ports{First: 2048, Last: 2559}}}, Revision: 3, Source: holders.Announcement})
		if got := p.steering(true).Blocks; len(got) != 1 || got[0].Ports.First != own.First {
			t.Errorf("blocks %v, want the pod's own", got)
		}
	})
}

// TestAllocator_OlderAttachments: attachments that come late, from before others, count for nothing.
func TestAllocator_OlderAttachments(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := newPortsTest(ctx, t, t.TempDir(), 512)
		p.claims()
		before := p.store.All()
		p.start("web-0", "10.128.0.5")
		p.Follow(p.changes-1, before)
		if got := p.steering(false); len(got.Blocks) != 1 {
			t.Errorf("blocks %v, want one", got.Blocks)
		}
	})
}

// TestAllocator_Lost: a pod whose block another node has claimed shares from then on.
func TestAllocator_Lost(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := newPortsTest(ctx, t, t.TempDir(), 512)
		p.claims()
		had := p.start("web-0", "10.128.0.5")[0]
		p.wrote("started", "+ web-0 203.0.113.10 shop/web false")
		p.claimed("1000000", fmt.Sprintf(`{"%d-%d": {"node": "node-b"}}`, had.First, had.Last))
		p.mayDiffer()
		if got := p.steering(false); got.Blocks != nil {
			t.Errorf("blocks %v", got.Blocks)
		}
		p.reconcile(ctx)
		p.wrote("lost", "- web-0 203.0.113.10 00:00:00", "+ web-0 203.0.113.10 shop/web true")
		if !slices.Contains(p.told, "web-0 EgressPortBlockLost") || !p.store.All()[0].Ports[0].Shared {
			t.Errorf("told %v, attachment %+v", p.told, p.store.All()[0])
		}
	})
}

// late are the attachments of a test as they were.
type late struct {
	followed
	before []attachments.Attachment
}

func (l late) All() []attachments.Attachment { return l.before }

// TestAllocator_EndsMeanwhile: a pod that ends while others are looked at has lost nothing to another node.
func TestAllocator_EndsMeanwhile(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := newPortsTest(ctx, t, t.TempDir(), 512)
		p.claims()
		p.start("web-0", "10.128.0.5")
		p.wrote("started", "+ web-0 203.0.113.10 shop/web false")
		before := p.store.All()
		if _, _, err := p.store.Release("web-0", time.Now()); err != nil {
			t.Fatal(err)
		}
		p.follow() // no plan knows it yet
		p.config.Attachments = func() Attachments { return late{followed{p}, before} }
		p.reconcile(ctx)
		if p.wrote("meanwhile"); len(p.told) > 0 {
			t.Errorf("told %v", p.told)
		}
		p.config.Attachments = func() Attachments { return followed{p} }
		p.reconcile(ctx)
		p.wrote("then", "- web-0 203.0.113.10 00:00:00")
	})
}

// TestAllocator_Others: what another node says counts where this one has the egress IP, and if that node has claimed it. It counts on nodes
// that give no blocks, too.
func TestAllocator_Others(t *testing.T) {
	for _, size := range []int{0, 512} {
		p := newPortsTest(t.Context(), t, t.TempDir(), size)
		p.Apply(holders.LeasesKnown{})
		block := kernel.Block{Pod: netip.MustParseAddr("10.128.1.5"), EgressIP: egressIP, Ports: kernel.Ports{First: 2048, Last: 2559}}
		say := holders.Assigned{Node: "node-b", Blocks: []kernel.Block{block}, Revision: 3, Source: holders.Announcement}
		expect := func(when string, held, counts bool) {
			t.Helper()
			got := p.steering(held)
			if is := slices.Contains(got.Blocks, block); is != counts || len(p.PortMap()) > 0 != counts || (got.Shared != nil) != (counts || size > 0) {
				t.Errorf("%d: %s: %+v, map %v", size, when, got, p.PortMap())
			}
		}
		expect("nothing is said", true, false)
		if p.Apply(say) {
			t.Error("a sync follows from what counts for nothing")
		}
		expect("not claimed", true, false)
		p.claimed("5", `{"2048-2559": {"node": "node-b"}}`)
		if !p.mayDiffer() || p.Apply(say) {
			t.Error("a sync follows from what counts, when it is new")
		}
		expect("claimed", true, true)
		expect("the egress IP is elsewhere", false, false)
		p.claimed("6", `{"2048-2559": {"node": "node-c"}}`)
		p.mayDiffer()
		expect("claimed by another node", true, false)
		p.Apply(holders.Hearing{Now: false})
		p.mayDiffer()
		expect("nobody knows who has claimed it", true, true)
		p.Apply(holders.NodeDeleted{Name: "node-b"})
		expect("its node is gone", true, false)
		stranger := holders.Assigned{Node: "node-b", Blocks: []kernel.Block{{Pod: netip.MustParseAddr("10.128.9.9"), EgressIP: egressIP, Ports: block.Ports}}, Revision: 4}
		if p.Apply(stranger) || len(p.steering(true).Blocks) > 0 {
			t.Error("a pod that nobody knows has a block")
		}
	}
}

// TestAllocator_Off: nothing is added to what the kernel holds, to what is announced, or to what the plugin is answered.
func TestAllocator_Off(t *testing.T) {
	p := newPortsTest(t.Context(), t, t.TempDir(), 0)
	p.Apply(holders.LeasesKnown{})
	if ports := p.start("web-0", "10.128.0.5"); ports != nil {
		t.Errorf("ports %v", ports)
	}
	p.reconcile(t.Context())
	p.wrote("off")
	blocks, assigned, _ := p.Stated()
	if got := p.steering(true); got.Blocks != nil || got.Shared != nil || blocks != nil || assigned != "" || p.Assignments() != nil {
		t.Errorf("%+v, %v, %q", got, blocks, assigned)
	}
	var none *Allocator
	none.Synced(v1.IPv4Protocol, true)
	none.AddPorts(v1.IPv4Protocol, nil, nil)
	if none.Apply(holders.LeasesKnown{}) || none.Assignments() != nil || none.Fault() != nil {
		t.Error("steering is off, and something follows")
	}
}

// TestAllocator_Annotation: a Service says how many ports its pods have; what cannot be understood is told.
func TestAllocator_Annotation(t *testing.T) {
	for value, want := range map[string]int{"": 512, "64": 64, "8192": 8192, "0": 0, "100": 512, "many": 512} {
		p := newPortsTest(t.Context(), t, t.TempDir(), 512)
		p.state.SetService(clustertest.NewService("web", func(s *v1.Service) {
			s.Namespace, s.Spec.ExternalIPs = "shop", []string{egressIP.String()}
			if value != "" {
				s.Annotations = map[string]string{cluster.PortBlockAnnotation: value}
			}
		}))
		size := p.sizeFor([]plan.Binding{{Service: plan.Service{Namespace: "shop", Name: "web"}, EgressIP: egressIP}})
		_, told := p.Troubles()[plan.Service{Namespace: "shop", Name: "web"}]
		if wrong := value == "100" || value == "many"; size != want || told != wrong {
			t.Errorf("%q: %d ports, want %d; told %t", value, size, want, told)
		}
	}
}

// TestAllocator_Revision: what this node says of its pods' ports has another revision each time that it is something else.
func TestAllocator_Revision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPortsTest(t.Context(), t, t.TempDir(), 512)
		revision := func() uint64 {
			_, _, revision := p.Stated()
			return revision
		}
		if first := revision(); first != 0 {
			t.Errorf("with nothing to say the revision is %d", first)
		}
		p.start("web-0", "10.128.0.5")
		p.mayDiffer()
		one := revision()
		p.mayDiffer()
		if again := revision(); one == 0 || again != one {
			t.Errorf("the same has the revisions %d and %d", one, again)
		}
		p.start("web-1", "10.128.0.6")
		p.mayDiffer()
		if two := revision(); two <= one {
			t.Errorf("something else has the revision %d, after %d", two, one)
		}
	})
}

// TestAllocator_BackAgain: a pod that leaves from its first egress IP again has its block of that again, although a sync has asked before its
// ports could follow.
func TestAllocator_BackAgain(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := newPortsTest(ctx, t, t.TempDir(), 512)
		p.claims()
		p.start("web-0", "10.128.0.5")
		leaves := func(ip string) {
			p.state.SetService(clustertest.NewService("web", func(s *v1.Service) {
				s.Namespace, s.Spec.Selector, s.Spec.IPFamilies = "shop", map[string]string{"app": "web"}, []v1.IPFamily{v1.IPv4Protocol}
				s.Spec.ExternalIPs = []string{ip}
			}))
			p.state.Update(v1.IPv4Protocol)
			p.Synced(v1.IPv4Protocol, false)
			p.steering(false)
			p.reconcile(ctx)
			synctest.Wait()
		}
		before := p.steering(false).Blocks
		leaves("203.0.113.11")
		syncs := p.syncs.Load()
		leaves(egressIP.String())
		if now := p.steering(false).Blocks; len(before) != 1 || !slices.Equal(now, before) || p.syncs.Load() == syncs {
			t.Errorf("it has the blocks %v, want %v; %d syncs were asked for", now, before, p.syncs.Load()-syncs)
		}
	})
}

// TestAllocator_AQuestionNotesNothing: what is asked for addresses that are not here does not keep a sync from coming that is due.
func TestAllocator_AQuestionNotesNothing(t *testing.T) {
	p := newPortsTest(t.Context(), t, t.TempDir(), 512)
	p.steering(true)
	p.AddPorts(v1.IPv4Protocol, nil, &kernel.Steering{Held: map[netip.Addr]bool{}})
	block := kernel.Block{Pod: netip.MustParseAddr("10.128.1.5"), EgressIP: egressIP, Ports: kernel.Ports{First: 2048, Last: 2559}}
	if !p.Apply(holders.Assigned{Node: "node-b", Blocks: []kernel.Block{block}, Revision: 3, Source: holders.Lease}) {
		t.Error("no sync follows from a pod's block")
	}
}

// TestAllocator_Clash: of two pods with one port one counts, and it is told, once.
func TestAllocator_Clash(t *testing.T) {
	p := newPortsTest(t.Context(), t, t.TempDir(), 512)
	for i, node := range []string{"node-b", "node-c"} {
		block := kernel.Block{Pod: netip.AddrFrom4([4]byte{10, 128, byte(i + 1), 5}), EgressIP: egressIP, Ports: kernel.Ports{First: 2048, Last: 2559}}
		p.Apply(holders.Assigned{Node: node, Blocks: []kernel.Block{block}, Revision: 3, Source: holders.Lease})
	}
	for range 3 {
		if got := p.steering(true); len(got.Blocks) != 1 || got.Blocks[0].Pod != netip.MustParseAddr("10.128.1.5") {
			t.Errorf("blocks %v", got.Blocks)
		}
		p.mayDiffer()
		p.reconcile(t.Context())
	}
	if !slices.Equal(p.told, []string{"EgressPortBlockClash"}) {
		t.Errorf("told %v", p.told)
	}
}

// versioned returns a client whose Leases have versions.
func versioned() *fake.Clientset {
	client, version := fake.NewClientset(), 100
	client.PrependReactor("create", "leases", giveVersion(client, &version))
	client.PrependReactor("patch", "leases", giveVersion(client, &version))
	return client
}

// giveVersion has each write of a Lease make another version.
func giveVersion(client *fake.Clientset, version *int) clienttesting.ReactionFunc {
	leases := coordinationv1.SchemeGroupVersion.WithResource("leases")
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		*version++
		lease := &coordinationv1.Lease{}
		switch action := action.(type) {
		case clienttesting.CreateAction:
			lease = action.GetObject().(*coordinationv1.Lease).DeepCopy()
			lease.ResourceVersion = strconv.Itoa(*version)
			return true, lease, client.Tracker().Create(leases, lease, "origin-node")
		case clienttesting.PatchAction:
			if err := json.Unmarshal(action.GetPatch(), lease); err != nil {
				return true, nil, err
			}
			lease.Namespace, lease.Name, lease.ResourceVersion = "origin-node", action.GetName(), strconv.Itoa(*version)
			return true, lease, client.Tracker().Update(leases, lease, "origin-node")
		}
		return false, nil, nil
	}
}

// TestAllocator_AtOnce: while a node says one thing after the other, and loses its claim and gets it back, syncs follow no later than what is so
// last.
func TestAllocator_AtOnce(t *testing.T) {
	p := newPortsTest(t.Context(), t, t.TempDir(), 512)
	p.Apply(holders.LeasesKnown{})
	changed := wake.New()
	p.config.RequestSync = changed.Send
	var inKernel []kernel.Block
	sync1 := func() { inKernel = p.steering(true).Blocks }
	sync1()
	ctx, cancel := context.WithCancel(t.Context())
	var saying, syncing sync.WaitGroup
	syncing.Go(func() { changed.Follow(ctx, sync1) })
	say := func(i int, blocks ...kernel.Block) {
		if p.Apply(holders.Assigned{Node: "node-b", Blocks: blocks, Revision: uint64(i + 1), Source: holders.Announcement}) {
			changed.Send()
		}
	}
	blockAt := func(first uint16) kernel.Block {
		return kernel.Block{Pod: netip.MustParseAddr("10.128.1.5"), EgressIP: egressIP, Ports: kernel.Ports{First: first, Last: first + 511}}
	}
	saying.Go(func() {
		for i := range 1000 {
			say(i, blockAt(uint16(1024+512*(i%2))))
		}
		say(1000, blockAt(1024))
	})
	saying.Go(func() {
		for i := range 1001 {
			p.claimed(strconv.Itoa(i+1), fmt.Sprintf(`{"1024-1535": {"node": "node-%c"}}`, 'b'+byte(i%2)))
			if p.mayDiffer() {
				changed.Send()
			}
		}
	})
	saying.Wait()
	cancel()
	syncing.Wait()
	select {
	case <-changed:
		sync1()
	default:
	}
	if want := []kernel.Block{blockAt(1024)}; !slices.Equal(inKernel, want) {
		t.Errorf("the kernel has %v, want %v", inKernel, want)
	}
}

// TestAllocator_NotesNothingOlder: what a node's pods have is not noted if something has changed since it was found out, and what others have
// is looked at again.
func TestAllocator_NotesNothingOlder(t *testing.T) {
	p := newPortsTest(t.Context(), t, t.TempDir(), 512)
	now, clashes := p.blocksNow(v1.IPv4Protocol, map[netip.Addr]bool{egressIP: true})
	if p.note(v1.IPv4Protocol, now, clashes) {
		t.Error("nothing has changed")
	}
	block := kernel.Block{Pod: netip.MustParseAddr("10.128.1.5"), EgressIP: egressIP, Ports: kernel.Ports{First: 1024, Last: 1535}}
	p.Apply(holders.Assigned{Node: "node-b", Blocks: []kernel.Block{block}, Revision: 1, Source: holders.Announcement})
	if !p.note(v1.IPv4Protocol, now, clashes) || !p.isOver(v1.IPv4Protocol, now) {
		t.Error("what another node says since was not noticed")
	}
	mine := p.own()
	p.mayDiffer()
	if p.noteOwn(&mine, 0) || !p.note(v1.IPv4Protocol, now, clashes) {
		t.Error("what has changed since was not noticed")
	}
	later := p.own()
	mine.generation, mine.revisions = later.generation, [2]uint64{}
	if later.revisions[0]++; !p.noteOwn(&later, 0) || p.noteOwn(&mine, 0) {
		t.Error("the plan that is noted is not the newest")
	}
}
