package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// TestCleanupSteering_KeepsTheEgressIP: where steering is switched off, a pod leaves from its egress IP throughout, its flows go on, and
// what was on its way out is on record, without an egress IP. Another try after one that was cut off does the same.
func TestCleanupSteering_KeepsTheEgressIP(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Pods: 1, Masquerade: true})
	t.Setenv("PATH", l.Path())
	egressIP, outside := netip.MustParseAddr("203.0.113.1"), netip.AddrPortFrom(l.Outside().V4, 8080)
	stays := kernel.Binding{Pod: l.Pod(1).V4, Protocol: kernel.UDP, EgressIP: egressIP}
	leaves, judged := stays, stays
	leaves.Pod, judged.Pod = netip.MustParseAddr("10.128.0.77"), netip.MustParseAddr("10.128.0.78")
	_, serveErr := l.Outside().ServeWhoami("udp4", 8080)
	if err := errors.Join(serveErr, l.AddAddr(l.Node(), egressIP)); err != nil {
		t.Fatal(err)
	}
	inside := func(f func(context.Context) error) {
		t.Helper()
		if err := l.Node().Do(func() error { return f(t.Context()) }); err != nil {
			t.Fatal(err)
		}
	}
	inside(func(ctx context.Context) error {
		w := steering.NewWriter(steering.Config{Family: kernel.IPv4, NodeIP: l.Node().V4, Transport: steering.VXLAN, Port: lab.TunnelPort, MarkMask: 0x7e})
		defer w.Close()
		w.Record([]kernel.Binding{leaves, judged})
		d := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{lab.ClusterV4}}, Bindings: []kernel.Binding{stays}}
		_, err := w.Write(ctx, d, []kernel.Binding{leaves})
		return err
	})
	flow, err := l.Pod(1).Dial(t.Context(), "udp4", outside, 0)
	if err != nil {
		t.Fatal(err)
	}
	traffic := lab.StartTraffic(lab.TrafficConfig{To: []netip.AddrPort{outside}, Protocols: []string{"udp"}, Check: func(q lab.Question) error {
		if q.Err == nil && q.Seen != egressIP {
			return fmt.Errorf("want %s", egressIP)
		}
		return nil
	}}, l.Pod(1))
	inside(func(ctx context.Context) error {
		return errors.Join(keepBindings(ctx, reconcile.NFTables, kernel.IPv4), steering.Halt(ctx))
	}) // and then it dies
	for range 2 {
		inside(func(ctx context.Context) error { return cleanupSteering(ctx, reconcile.NFTables) })
		inside(func(ctx context.Context) error {
			w := steering.NewLocalWriter(kernel.IPv4)
			defer w.Close()
			_, err := w.Read(ctx)
			held, _ := w.Standing()
			if want := kernel.Sorted([]kernel.Binding{stays, leaves, judged}); !slices.Equal(held.All(), want) || len(held.Given) != 1 {
				t.Errorf("the table has %+v, want the record of %v, and %v", held, want, stays)
			}
			return err
		})
	}
	if err := traffic.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sum := traffic.Stop(); sum.Wrong > 0 {
		t.Error(sum)
	}
	if seen, err := flow.Ask(t.Context()); err != nil || seen != egressIP {
		t.Errorf("the flow is seen as %s, %v", seen, err)
	}
	if listed, err := l.Node().Run(t.Context(), "nft", "list", "tables"); err != nil || strings.Contains(listed, steering.Table) {
		t.Errorf("%v; the tables are\n%s", err, listed)
	}
}

// TestCheckSteering_StoppedNode: what the next process finds is as it was, also if a node is stopped before it knows what this kernel can.
func TestCheckSteering_StoppedNode(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Pods: 1})
	p, _ := proxyFor(t, "https://127.0.0.1:1", "{}")
	config := steering.Config{Family: kernel.IPv4, NodeIP: l.Node().V4, Transport: steering.VXLAN, Port: lab.TunnelPort, MarkMask: 0x7e}
	p.extension.Backend, p.extension.Steering.Mode, p.extension.Ways.Kernel = reconcile.NFTables, holders.Auto, config
	stopped, stop := context.WithCancelCause(t.Context())
	cause := errors.New("stopped")
	stop(cause)
	if err := l.Node().Do(func() error {
		w := steering.NewWriter(config)
		defer w.Close()
		if _, err := w.Write(t.Context(), kernel.Desired{
			Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{lab.ClusterV4}},
			Bindings: []kernel.Binding{{Pod: l.Pod(1).V4, Protocol: kernel.UDP, EgressIP: netip.MustParseAddr("203.0.113.1")}},
			Steering: kernel.Steering{Ways: map[netip.Addr]kernel.Way{netip.MustParseAddr("203.0.113.1"): {Kind: kernel.Prohibit}}},
		}, nil); err != nil {
			return err
		}
		before, err := l.Node().Run(t.Context(), "nft", "list", "ruleset")
		if err != nil {
			return err
		}
		if err := p.checkSteering(stopped); !errors.Is(err, cause) || p.extension.Steering.Mode != holders.Auto || p.extension.Steering.Unavailable != nil {
			t.Errorf("the check returned %v; then the steering is %+v", err, p.extension.Steering)
		}
		after, err := l.Node().Run(t.Context(), "nft", "list", "ruleset")
		if after != before {
			t.Errorf("the tables were\n%s\nand are\n%s", before, after)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestCleanupSteering_InTheIPTablesBackEnd: where rules of iptables have the bindings, no table gets them; where there are none, one does.
func TestCleanupSteering_InTheIPTablesBackEnd(t *testing.T) {
	for name, has := range map[string]bool{"rules": true, "no rules": false} {
		t.Run(name, func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{Pods: 1})
			t.Setenv("PATH", l.Path())
			t.Setenv("XTABLES_LOCKFILE", filepath.Join(t.TempDir(), "lock"))
			d := kernel.Desired{
				Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{lab.ClusterV4}},
				Bindings: []kernel.Binding{{Pod: l.Pod(1).V4, Protocol: kernel.UDP, EgressIP: netip.MustParseAddr("203.0.113.1")}},
			}
			err := l.Node().Do(func() error {
				w := steering.NewWriter(steering.Config{Family: kernel.IPv4, NodeIP: l.Node().V4, Transport: steering.VXLAN, Port: lab.TunnelPort, MarkMask: 0x7e})
				defer w.Close()
				_, err := w.Write(t.Context(), d, nil)
				if has && err == nil {
					_, err = iptables.NewWriter(kernel.IPv4).Write(t.Context(), iptables.Render(d))
				}
				return errors.Join(err, cleanupSteering(t.Context(), reconcile.IPTables))
			})
			listed, listErr := l.Node().Run(t.Context(), "nft", "list", "tables")
			if err := errors.Join(err, listErr); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(listed, steering.Table) || strings.Contains(listed, steering.LocalTable) == has {
				t.Errorf("the tables are\n%s", listed)
			}
		})
	}
}

// TestTellOthers_IfSteeringStands: a node on which an earlier process has steered packets withdraws its Lease before its rules go; another one
// asks the API server nothing.
func TestTellOthers_IfSteeringStands(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/leases") && r.Method == http.MethodGet {
			asked.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1"}`))
	}))
	defer server.Close()
	p, _ := proxyFor(t, server.URL, "{}")
	p.options.Config().ClientConnection.ContentType = "application/json"
	p.options.Config().HostnameOverride = "node-1"
	l := lab.ForTest(t, lab.Config{Pods: 1})
	if err := l.Node().Do(func() error {
		if p.tellOthers(t.Context()) || asked.Load() != 0 {
			t.Errorf("without a table: %d questions", asked.Load())
		}
		w := steering.NewWriter(steering.Config{Family: kernel.IPv4, NodeIP: l.Node().V4, Transport: steering.VXLAN, Port: lab.TunnelPort, MarkMask: 0x7e})
		defer w.Close()
		_, err := w.Write(t.Context(), kernel.Desired{
			Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{lab.ClusterV4}},
			Bindings: []kernel.Binding{{Pod: l.Pod(1).V4, Protocol: kernel.UDP, EgressIP: netip.MustParseAddr("203.0.113.1")}},
		}, nil)
		if !p.tellOthers(t.Context()) || asked.Load() != 1 {
			t.Errorf("with a table: %d questions, want 1", asked.Load())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestCleanupExtensions_NoSocket: where nobody is to answer the CNI plugin any more, no pod waits; but what belongs to another process stays,
// and what the plugin goes by as long as rules are left.
func TestCleanupExtensions_NoSocket(t *testing.T) {
	if os.Geteuid() != 0 {
		lab.Lacks(t, "needs root, to mount a file system")
	}
	const isChild = "CLEANS_UP_EXTENSIONS"
	if os.Getenv(isChild) == "" {
		child := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		child.Env = append(os.Environ(), isChild+"=1")
		child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET}
		if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	socket := attachments.DefaultSocket
	if err := errors.Join(
		unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""),
		unix.Mount("tmpfs", "/run", "tmpfs", 0, ""), unix.Mount("tmpfs", "/var/lib", "tmpfs", 0, ""), os.Mkdir(filepath.Dir(socket), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	kept := func(arguments string) bool {
		t.Helper()
		p, err := New(parse(t, "proxyArguments: {proxy-mode: [nftables], "+arguments+"}"), Overrides{Manifests: t.TempDir()})
		if err := errors.Join(err, attachments.WriteClaims(attachments.Claims(socket), []string{"shop"})); err != nil {
			t.Fatal(err)
		}
		p.cleanupExtensions(t.Context())
		_, err = os.Stat(attachments.Claims(socket))
		return err == nil
	}
	if !kept("egress-snat: ['true']") {
		t.Error("with the socket, the claims are gone")
	}
	// Rules that cannot be removed: pods may be bound. What the plugin goes by stays until they are.
	nft := func(command string) {
		t.Helper()
		if out, err := exec.Command("nft", command).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	nft("table ip " + steering.Table + " { set own { type ipv4_addr; }; }")
	if !kept("egress-snat: ['false'], iptables-sync-period: [1s]") {
		t.Error("with rules that are left, the claims are gone")
	}
	nft("delete table ip " + steering.Table)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(attachments.Claims(socket)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody has tried again to remove the rules")
		}
	}
	if kept("egress-snat-cni-socket: ['']") {
		t.Error("without a socket, the claims are still there")
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if !kept("egress-snat-cni-socket: ['']") {
		t.Error("the claims of another process are gone")
	}
}
