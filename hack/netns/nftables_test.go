package netns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
	process "github.com/openshift/origin-node/hack/node"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// nft runs nft as somebody else on the node would.
func (n *node) nft(command string) {
	n.Helper()
	n.AsSomebodyElse("", "nft", strings.Fields(command)...)
}

// TestRepair_NFTablesTable: whatever somebody does to the table, or to the proxier's, is repaired
// within the sync period, and pods leave from their egress IP again.
func TestRepair_NFTablesTable(t *testing.T) {
	const table = "ip " + steering.LocalTable
	inWays(t, ways[2:], func(n *node) {
		n.serve(n.Outside(), whoamiPort, "tcp4")
		n.serve(n.Pod(1), 80, "tcp4")
		n.putWeb([]string{egressV4.String()})
		n.start()
		n.Ready()
		n.holdsPlan(soon)
		for _, damage := range []string{
			"flush ruleset",
			"delete table " + table,
			"flush map " + table + " sources",
			"add element " + table + " sources { 10.128.0.77 . tcp : 203.0.113.77 }",
			"insert rule " + table + " postrouting accept",
			"flush chain " + table + " postrouting",
			"add chain " + table + " other { type nat hook postrouting priority 10 ; }",
			"flush ruleset",
		} {
			n.nft(damage)
			n.holdsPlan(2 * process.SyncPeriod)
			n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
		}
		if n.Arguments["proxy-mode"] != nil {
			n.proxierIsWhole()
			n.nft("delete table ip kube-proxy")
			n.proxierIsWhole()
		}
		// The Service serves as before.
		n.Sees("tcp4", n.Outside(), netip.AddrPortFrom(egressV4, 80), netip.MustParseAddr("10.128.0.1"))
	})
}

// proxierIsWhole waits until all of the nftables proxier's rules are there.
func (n *node) proxierIsWhole() {
	n.Helper()
	n.Eventually(soon, func() error {
		return n.Node().Do(func() error {
			missing, err := reconcile.MissingFromProxier(n.Context(), kernel.IPv4)
			if len(missing) > 0 {
				err = fmt.Errorf("missing: %v", missing)
			}
			return err
		})
	})
}

// TestTable_JournalEndsFlowsAfterAKill: a node that was killed between a write of the table and the deletion of the
// flows has left a journal, by which the next one ends them, and no others.
func TestTable_JournalEndsFlowsAfterAKill(t *testing.T) {
	inWays(t, ways[2:], func(n *node) {
		const port = 4000
		pod1, pod2 := n.Pod(1), n.Pod(2)
		n.serve(n.Outside(), whoamiPort, "udp4")
		n.remembers()
		n.putService("shop", 9, service("web", webIPs, []string{egressV4.String()}, allProtocols...), pod1.V4, pod2.V4)
		n.start()
		n.asks("udp4", pod1, port, egressV4)
		n.asks("udp4", pod2, port, egressV4)
		right := n.tracked("udp", pod2.V4, port)
		n.Kill()
		n.putService("shop", 9, service("web", webIPs, []string{egressV4.String()}, allProtocols...), pod2.V4)
		if err := n.Node().Do(func() error { return unbind(n.Context(), pod1.V4) }); err != nil {
			n.Fatal(err)
		}
		n.asks("udp4", pod1, port, egressV4) // the flow lives on
		n.restart()
		n.asks("udp4", pod1, port, n.Node().V4)
		if now := n.tracked("udp", pod2.V4, port); now != right {
			n.Errorf("a flow that was right was made anew: %s, then %s", right, now)
		}
	})
}

// unbind makes the write by which a node takes the bindings of a pod out of the table, and nothing more.
func unbind(ctx context.Context, pod netip.Addr) error {
	w := steering.NewLocalWriter(kernel.IPv4)
	defer w.Close()
	if _, err := w.Read(ctx); err != nil {
		return err
	}
	held, _ := w.Standing()
	others := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{lab.ClusterV4}}}
	var removed []kernel.Binding
	for _, b := range held.Bindings {
		if b.Pod == pod {
			removed = append(removed, b)
		} else {
			others.Bindings = append(others.Bindings, b)
		}
	}
	if len(removed) == 0 || len(others.Bindings) == 0 {
		return fmt.Errorf("%d bindings of %s and %d others are no test", len(removed), pod, len(others.Bindings))
	}
	_, err := w.Write(ctx, others, removed)
	return err
}

// TestBackend_ChangesKeepTheEgressIP goes from each back end to each other, with an orderly end of the node and
// without: a bound pod leaves under its egress IP and no other address throughout, and
// nothing of the one before is left.
func TestBackend_ChangesKeepTheEgressIP(t *testing.T) {
	n := newNode(t, lab.Config{IPv6: true, Pods: 2, Masquerade: true})
	outside := []netip.AddrPort{}
	for _, network := range []string{"tcp4", "udp4", "tcp6", "udp6"} {
		n.serve(n.Outside(), whoamiPort, network)
	}
	for _, network := range []string{"tcp4", "tcp6"} {
		outside = append(outside, n.outside(network))
	}
	n.putWeb([]string{egressV4.String(), egressV6.String()}, allProtocols...)
	n.start()
	n.Ready()
	n.holdsPlan(soon)
	traffic := lab.StartTraffic(lab.TrafficConfig{To: outside, Timeout: 15 * time.Second, Check: func(q lab.Question) error {
		if want := of(q.Network, egressV4, egressV6); q.Err == nil && q.Seen != want {
			return fmt.Errorf("want %s", want)
		}
		return nil
	}}, n.Pod(1))
	for i, next := range []int{2, 1, 3, 2, 3, 1, 2, 1} {
		way := ways[next]
		if i%2 == 0 {
			n.Stop()
		} else {
			n.Kill()
		}
		n.Backend, n.Arguments = way.backend, way.arguments
		n.Configure("")
		n.restart()
		n.holdsPlan(soon)
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		err := traffic.Round(ctx)
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", way.name, err)
		}
	}
	summary := traffic.Stop()
	t.Log(summary)
	if summary.Wrong > 0 || summary.Unanswered > 0 || summary.Broken > 0 {
		t.Error("the pod was seen from another address than its egress IP, or got no answer")
	}
}

// TestTable_CommandsShowIt: the commands speak of the table as they do of iptables' rules.
func TestTable_CommandsShowIt(t *testing.T) {
	inWays(t, ways[2:], func(n *node) {
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		printed, stderr, status := n.Openshift("start", "node", "--config="+n.Config(), "--manifests="+n.manifests(), "--dry-run")
		for _, want := range []string{"table ip openshift-egress {", "\t\t\t10.128.0.11 . tcp : 203.0.113.10, # shop/web\n", "fd00:10:128::11 . tcp : 2001:db8:113::10,"} {
			if status != 0 || !strings.Contains(printed, want) {
				n.Errorf("dry run: status %d, %s, without %q:\n%s", status, stderr, want, printed)
			}
		}
		n.start()
		n.Ready()
		says := func(want int, text string, args ...string) {
			t.Helper()
			stdout, stderr, status := n.Openshift(append([]string{"egress"}, append(args, "--socket="+n.Socket())...)...)
			if status != want || !strings.Contains(stdout+stderr, text) {
				n.Errorf("%v: status %d, %s%s; want %d and %q", args, status, stdout, stderr, want, text)
			}
		}
		says(0, "table openshift-egress: snat to ip saddr . meta l4proto map @sources fully-random, with { 10.128.0.11 . tcp : 203.0.113.10 }", "explain", "10.128.0.11", "--protocol=tcp")
		says(0, "IPv4: in agreement", "verify")
		n.Signal(syscall.SIGSTOP)
		n.nft("delete element ip " + steering.LocalTable + " sources { 10.128.0.11 . tcp }")
		n.Signal(syscall.SIGCONT)
		n.holdsPlan(soon)
		says(0, "IPv4: in agreement", "verify")
	})
}

// TestTable_WithoutIPTables: in the nftables mode the node does without the iptables programs.
func TestTable_WithoutIPTables(t *testing.T) {
	inWays(t, ways[2:3], func(n *node) {
		n.serve(n.Outside(), whoamiPort, "tcp4")
		for _, name := range []string{"iptables", "ip6tables"} {
			for _, suffix := range []string{"", "-save", "-restore"} {
				if err := os.WriteFile(filepath.Join(n.BinDir, name+suffix), []byte("#!/bin/sh\necho 'out of order' >&2\nexit 4\n"), 0o755); err != nil {
					n.Fatal(err)
				}
			}
		}
		n.putWeb([]string{egressV4.String()})
		n.start()
		n.Ready()
		n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
	})
}

// TestBackend_InvalidIsRefused: what cannot be is refused when the configuration is read.
func TestBackend_InvalidIsRefused(t *testing.T) {
	n := simpleNode(t)
	for arguments, want := range map[string]string{
		`{egress-snat-backend: [ipset]}`:                            `proxyArguments.egress-snat-backend: invalid value "ipset": expected "iptables", "nftables" or "auto"`,
		`{egress-snat-backend: [iptables], proxy-mode: [nftables]}`: `invalid value "iptables" in the proxy mode "nftables"`,
		`{proxy-mode: [ipvs]}`:                                      `egress SNAT does not support the mode "ipvs"`,
	} {
		n.Configure(arguments)
		if _, stderr, status := n.Openshift("ex", "validate", "node-config", "--manifests="+n.manifests(), n.Config()); status != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %q; want %q", arguments, status, stderr, want)
		}
	}
	n.Configure(`{egress-snat-backend: [auto]}`)
	n.Backend = reconcile.NFTables
	n.putWeb([]string{egressV4.String()})
	n.start()
	n.Ready()
	n.Eventually(soon, func() error {
		objects, err := n.objects()
		return errors.Join(err, n.CheckPlan(objects, v1.IPv4Protocol))
	})
}

// TestBackend_KernelRefuses: a kernel that cannot do what the nftables back end takes is found out at the start. The node ends, and names the
// argument; with "auto" it says so once, and uses iptables.
func TestBackend_KernelRefuses(t *testing.T) {
	t.Parallel()
	n := newNode(t, lab.Config{IPv6: true, Pods: 1, Masquerade: true})
	n.serve(n.Outside(), whoamiPort, "tcp4")
	n.putWeb([]string{egressV4.String()})
	n.Refuses("ip " + steering.LocalTable + "-probe")
	const mode = `proxyArguments.proxy-mode: egress SNAT cannot be done in the mode "nftables": use "iptables": the kernel refuses what egress SNAT needs of nftables: `
	for arguments, want := range map[string]string{
		`egress-snat-backend: [nftables]`:                       `proxyArguments.egress-snat-backend: use "iptables" or "auto": the kernel refuses what egress SNAT needs of nftables: `,
		`proxy-mode: [nftables]`:                                mode,
		`{proxy-mode: [nftables], egress-snat-backend: [auto]}`: mode,
	} {
		n.Configure(arguments)
		n.Printed.Reset()
		n.start()
		if status := n.Exit(); status != 1 {
			t.Errorf("%s: status %d, want 1", arguments, status)
		}
		n.Says(want)
		if strings.Contains(n.Printed.String(), "uses iptables rules") {
			t.Errorf("%s: it says that it uses iptables: %s", arguments, n.Printed.String())
		}
	}
	n.Configure(`egress-snat-backend: [auto]`)
	n.restart()
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
	if said := strings.Count(n.Printed.String(), "Egress SNAT uses iptables rules because nftables is unavailable"); said != 1 {
		t.Errorf("it has said %d times that it uses iptables, want once", said)
	}
	if save := n.Save(v1.IPv4Protocol); !strings.Contains(save, "OPENSHIFT-EGRESS-SNAT") {
		t.Errorf("there are no rules of iptables:\n%s", save)
	}
}
