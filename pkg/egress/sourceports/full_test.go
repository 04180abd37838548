package sourceports

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
)

// fullTest is a portsTest whose pods have so many of their ports in use.
type fullTest struct {
	*portsTest
	used   map[string]int // by the pod's address
	counts int
}

func newFullTest(ctx context.Context, t *testing.T, folder string) *fullTest {
	f := &fullTest{portsTest: newPortsTest(ctx, t, folder, 64), used: map[string]int{}}
	f.full.tracked = func() (flows int, err error) {
		for _, n := range f.used {
			flows += n
		}
		return flows, nil
	}
	f.full.count = func(_ context.Context, _ kernel.Family, pods map[netip.Addr]bool) (map[netip.Addr]conntrack.Busiest, error) {
		f.counts++
		busiest := map[netip.Addr]conntrack.Busiest{}
		for pod, n := range f.used {
			if ip := netip.MustParseAddr(pod); pods[ip] {
				busiest[ip] = conntrack.Busiest{Destination: netip.MustParseAddrPort("198.51.100.7:443"), Ports: n}
			}
		}
		return busiest, nil
	}
	return f
}

// pass passes a file as the setting of a pod's ports, and returns what reads it.
func (f *fullTest) pass(name string, ports kernel.Ports) (read func() string) {
	f.Helper()
	path := filepath.Join(f.folder, name)
	text := fmt.Sprintf("%d\t%d\n", ports.First, ports.Last)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		f.Fatal(err)
	}
	if err := f.TakeLocalPorts(name, file); err != nil {
		f.Fatal(err)
	}
	return func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		return strings.Join(strings.Fields(string(text)), "-")
	}
}

// startPassing starts web-0, whose setting is passed.
func (f *fullTest) startPassing() (first kernel.Ports, read func() string) {
	f.Helper()
	f.start("web-0", "10.128.0.5")
	first, _ = f.blocks("web-0")
	return first, f.pass("web-0", first)
}

// look has the process look once, and do what follows.
func (f *fullTest) look() (soon bool) {
	soon = f.lookForFull(f.ctx)
	synctest.Wait()
	f.reconcile(f.ctx)
	return soon
}

// blocks returns what a pod has.
func (f *fullTest) blocks(name string) (first, second kernel.Ports) {
	f.Helper()
	a, known := f.store.Get(name)
	if !known {
		f.Fatalf("there is no %s", name)
	}
	first.First, first.Last, _ = a.Block()
	second.First, second.Last, _ = a.SecondBlock()
	return first, second
}

// says fails unless the kernel, other nodes and the Lease are told of both blocks of 10.128.0.5.
func (f *fullTest) says(when string, first, second kernel.Ports) {
	f.Helper()
	stated, assigned, _ := f.Stated()
	for _, block := range []kernel.Block{{Ports: first}, {Ports: second, Second: true}} {
		block.Pod, block.EgressIP = netip.MustParseAddr("10.128.0.5"), egressIP
		said, err := portblocks.ParseBlocks(assigned)
		if !slices.Contains(f.steering(true).Blocks, block) || !slices.Contains(stated, block) || !slices.Contains(said, block) {
			f.Errorf("%s: %v is missing: kernel %v, stated %v, in the Lease %v %v", when, block, f.steering(true).Blocks, stated, said, err)
		}
	}
}

// TestFullBlocks_Second: a pod that has three quarters of its block in use gets a second one, once. It is written down, and said to other
// nodes and to the kernel, and then the pod uses both. A process later it has both, and gives both back.
func TestFullBlocks_Second(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		folder := t.TempDir()
		f := newFullTest(ctx, t, folder)
		f.claims()
		f.start("web-0", "10.128.0.5")
		f.start("web-1", "10.128.0.6")
		first, _ := f.blocks("web-0")
		read := f.pass("web-0", first)
		f.wrote("started", "+ web-0 203.0.113.10 shop/web false", "+ web-1 203.0.113.10 shop/web false")

		f.used["10.128.0.5"] = 47
		if f.look() || f.counts != 0 {
			t.Errorf("counted %d times although not three quarters of a block are tracked", f.counts)
		}
		f.used["10.128.0.5"] = 48
		for range 3 {
			f.look()
		}
		_, second := f.blocks("web-0")
		if portblocks.Validate(second) != nil || second.Last-second.First != 63 {
			t.Fatalf("%s has %s besides", first, second)
		}
		f.wrote("full", "+ web-0 203.0.113.10 shop/web false")
		if wide := portblocks.Widened(first, second); read() != wide.String() {
			t.Errorf("it uses %s, want %s", read(), wide)
		}
		if _, other := f.blocks("web-1"); other != (kernel.Ports{}) {
			t.Errorf("another pod has %s besides", other)
		}
		f.says("full", first, second)
		if f.secondBlocks()[egressIP] != 1 || f.lastUsage()[egressIP] != 48./128 {
			t.Errorf("%v pods have a second block, usage %v", f.secondBlocks(), f.lastUsage())
		}

		f = newFullTest(ctx, t, folder)
		f.claims()
		f.used["10.128.0.5"] = 90
		f.reconcile(ctx)
		f.look()
		f.says("a process later", first, second)
		if again, _ := f.store.Get("web-0"); len(again.Ports) != 2 {
			t.Errorf("a process later: %+v", again.Ports)
		}
		f.wrote("a process later")
		f.end("web-0")
		f.wrote("ended", "- web-0 203.0.113.10 00:00:00", "- web-0 203.0.113.10 00:00:00")
		synctest.Wait()
		if stated, _, _ := f.Stated(); len(stated) != 1 {
			t.Errorf("ended, and stated are %v", stated)
		}
		if given, has := f.keeper.Of(portblocks.Second("web-0")); has {
			t.Errorf("ended, and has %v", given)
		}
	})
}

// noting notes what is told of pods.
func noting(notes *[]string) func(namespace, name, uid string, reason plan.Reason, note string) {
	return func(_, name, _ string, reason plan.Reason, note string) {
		*notes = append(*notes, fmt.Sprintf("%s %s: %s", name, reason, note))
	}
}

// wasTold fails unless a pod was told of for these reasons.
func wasTold(t *testing.T, notes []string, want ...string) {
	t.Helper()
	if len(notes) != len(want) {
		t.Fatalf("told %q", notes)
	}
	for i, note := range notes {
		if !strings.Contains(note, want[i]) || !strings.Contains(note, "web-0 EgressPortBlockFull: this pod uses ") || !strings.Contains(note, "towards tcp 198.51.100.7:443") {
			t.Errorf("told %q, want %q", note, want[i])
		}
	}
}

// TestFullBlocks_Told: of a pod that gets no more it is told why, once for each reason.
func TestFullBlocks_Told(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		f := newFullTest(ctx, t, t.TempDir())
		f.claims()
		var notes []string
		f.config.WarnPod = noting(&notes)
		f.start("web-0", "10.128.0.5")
		f.used["10.128.0.5"] = 60
		for range 3 {
			f.look() // it has started before this process
		}
		first, second := f.blocks("web-0")
		if second != (kernel.Ports{}) {
			t.Errorf("it has %s, which it cannot use", second)
		}
		f.pass("web-0", first)
		for range 3 {
			f.look()
		}
		f.used["10.128.0.5"] = 96
		for range 3 {
			f.look()
		}
		wasTold(t, notes, "has started before it", "it has two blocks already")
	})
}

// TestFullBlocks_EndedBeforeItWidened: a process that has given a pod a second block ends before the pod can use it. The next one counts the
// first block alone, and tells of the pod.
func TestFullBlocks_EndedBeforeItWidened(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		folder := t.TempDir()
		f := newFullTest(ctx, t, folder)
		f.claims()
		first, read := f.startPassing()
		f.used["10.128.0.5"] = 60
		f.look()
		if _, second := f.blocks("web-0"); second == (kernel.Ports{}) || read() != first.String() {
			t.Fatalf("it has %s besides, and uses %s", second, read())
		}
		f = newFullTest(ctx, t, folder)
		f.claims()
		var notes []string
		f.config.WarnPod = noting(&notes)
		f.used["10.128.0.5"] = 60
		f.reconcile(ctx)
		for range 3 {
			f.look()
		}
		wasTold(t, notes, "has started before it")
		if usage := f.lastUsage()[egressIP]; usage != 60./64 {
			t.Errorf("usage %v, want 60 of 64", usage)
		}
	})
}

// TestFullBlocks_Unbound: a pod that no Service gives the egress IP now gets no second block of it.
func TestFullBlocks_Unbound(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		f := newFullTest(ctx, t, t.TempDir())
		f.claims()
		f.startPassing()
		a, _ := f.store.Get("web-0")
		f.state.SetAttachment(plan.Attachment{Addr: a.IPs[0], Pod: plan.Pod{Namespace: "shop", Name: "web-0"}, UID: a.Pod.UID, Node: "node-a", Labels: map[string]string{"app": "other"}})
		f.state.Update(v1.IPv4Protocol)
		f.used["10.128.0.5"] = 60
		soon := f.look()
		synctest.Wait()
		if given, has := f.keeper.Of(portblocks.Second("web-0")); soon || has {
			t.Errorf("it is given a second block: %v", given)
		}
	})
}

// TestFullBlocks_NoneLeft: where other nodes have claimed all, the pod gets no second block, and it is told.
func TestFullBlocks_NoneLeft(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		f := newFullTest(ctx, t, t.TempDir())
		f.claims()
		var notes []string
		f.config.WarnPod = noting(&notes)
		first, _ := f.startPassing()
		synctest.Wait()
		var all []string
		for i := uint16(1024); i < portblocks.Shared.First; i += 64 {
			ports, node := kernel.Ports{First: i, Last: i + 63}, "node-b"
			if ports == first {
				node = "node-a"
			}
			all = append(all, fmt.Sprintf(`%q: {"node": %q, "since": "2026-11-27T08:00:00Z"}`, ports, node))
		}
		f.claimed("1000000", "{"+strings.Join(all, ",")+"}")
		f.used["10.128.0.5"] = 60
		for range 3 {
			f.look()
		}
		if _, second := f.blocks("web-0"); second != (kernel.Ports{}) {
			t.Errorf("it has %s, which another node has claimed", second)
		}
		wasTold(t, notes, "there is no second block")
	})
}

// TestFullBlocks_OwnRange: a pod that has set its range keeps it; the second block is for what is translated.
func TestFullBlocks_OwnRange(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		f := newFullTest(ctx, t, t.TempDir())
		f.claims()
		f.start("web-0", "10.128.0.5")
		read := f.pass("web-0", kernel.Ports{First: 20000, Last: 20999})
		f.used["10.128.0.5"] = 64
		for range 3 {
			f.look()
		}
		if _, second := f.blocks("web-0"); second == (kernel.Ports{}) || read() != "20000-20999" {
			t.Errorf("it has %s besides, and uses %s", second, read())
		}
	})
}

// TestFullBlocks_Settings are closed when their pods end, and those of unknown pods at once.
func TestFullBlocks_Settings(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		f := newFullTest(ctx, t, t.TempDir())
		f.start("web-0", "10.128.0.5")
		f.pass("web-0", portblocks.Shared)
		before := f.setting("web-0")
		f.pass("web-0", portblocks.Shared) // the plugin asks again
		kept := f.setting("web-0")
		f.end("web-0")
		unknown, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.TakeLocalPorts("web-9", unknown); err == nil {
			t.Error("the setting of an unknown pod was taken")
		}
		for i, file := range []*os.File{before, kept, unknown} {
			if _, err := file.Stat(); err == nil {
				t.Errorf("file %d is open", i)
			}
		}
		if f.setting("web-0") != nil {
			t.Error("it is kept")
		}
	})
}

// TestFullBlocks_Lost: what a pod has besides stays while its egress IP is not bound, and goes when another node has claimed it.
func TestFullBlocks_Lost(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		f := newFullTest(ctx, t, t.TempDir())
		f.claims()
		first, _ := f.startPassing()
		f.used["10.128.0.5"] = 50
		for range 3 {
			f.look()
		}
		_, second := f.blocks("web-0")
		a, _ := f.store.Get("web-0")
		if kept := f.secondsFor(a, a.Ports[1:], a.Ports[:1], nil); !slices.Equal(kept, a.Ports[1:]) {
			t.Errorf("not bound for a moment: %v", kept)
		}
		f.told = nil
		f.claimed("1000000", fmt.Sprintf(`{%q: {"node": "node-a", "since": "2026-11-27T08:00:00Z"}, %q: {"node": "node-b", "since": "2026-11-27T08:00:00Z"}}`, first, second))
		f.reconcile(ctx)
		if got, _ := f.store.Get("web-0"); len(got.Ports) != 1 || got.Ports[0] != a.Ports[0] || !slices.Equal(f.told, []string{"web-0 EgressPortBlockLost"}) {
			t.Errorf("%+v, told %v", got.Ports, f.told)
		}
	})
}
