package netns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
	process "github.com/openshift/origin-node/hack/node"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

var (
	egressV4, egressV6   = netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("2001:db8:113::10")
	anotherV4, anotherV6 = netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2001:db8:113::7")
	webIPs               = []string{"172.30.0.10", "fd00:172:30::10"}
	dbIPs                = []string{"172.30.0.20", "fd00:172:30::20"}
	networks             = []string{"tcp4", "udp4", "sctp4", "tcp6", "udp6", "sctp6"}
)

const whoamiPort = 8080

// of returns the one of the two addresses that network can carry.
func of(network string, v4, v6 netip.Addr) netip.Addr {
	if strings.HasSuffix(network, "6") {
		return v6
	}
	return v4
}

func (n *node) outside(network string) netip.AddrPort {
	return netip.AddrPortFrom(of(network, n.Outside().V4, n.Outside().V6), whoamiPort)
}

func (n *node) nodeIP(network string) netip.Addr { return of(network, n.Node().V4, n.Node().V6) }

// putWeb puts the Service web, with these external IPs, and pod-1 behind it.
func (n *node) putWeb(externalIPs []string, ports ...v1.ServicePort) {
	n.Helper()
	n.putInFront(service("web", webIPs, externalIPs, ports...), n.Pod(1).V4, n.Pod(1).V6)
}

func TestIdentity_OfBoundAndUnboundPods(t *testing.T) {
	everyWay(t, func(n *node) {
		n.serve(n.Outside(), whoamiPort, networks...)
		n.serve(n.Pod(2), 80, networks...)
		n.putInFront(service("db", dbIPs, nil, allProtocols...), n.Pod(2).V4, n.Pod(2).V6)
		n.start()
		n.Ready()

		pod1, pod2 := n.Pod(1), n.Pod(2)
		inCluster := func(network string) netip.AddrPort {
			return netip.AddrPortFrom(of(network, netip.MustParseAddr(dbIPs[0]), netip.MustParseAddr(dbIPs[1])), 80)
		}
		for _, network := range networks {
			n.Sees(network, pod1, n.outside(network), n.nodeIP(network))
		}
		n.putWeb([]string{egressV4.String(), anotherV4.String(), egressV6.String(), anotherV6.String()}, allProtocols...)
		for _, network := range networks {
			n.Sees(network, pod1, n.outside(network), of(network, egressV4, egressV6))
			n.Sees(network, pod2, n.outside(network), n.nodeIP(network))
			n.Sees(network, pod1, inCluster(network), of(network, pod1.V4, pod1.V6))
			// Through the node, to a pod's own address.
			n.Sees(network, pod1, netip.AddrPortFrom(of(network, pod2.V4, pod2.V6), 80), of(network, pod1.V4, pod1.V6))
		}
		n.removeService("shop", "web")
		for _, network := range networks {
			n.Sees(network, pod1, n.outside(network), n.nodeIP(network))
		}
		n.holdsPlan(soon)
	})
}

func TestClusterCIDR_EachIsInside(t *testing.T) {
	everyWay(t, func(n *node) {
		// The outside host's network is one of the cluster's, too: not SNATed by us.
		n.Configure(`cluster-cidr: ["10.128.0.0/14,fd00:10:128::/48", "192.0.2.0/24"]`)
		n.serve(n.Outside(), whoamiPort, "tcp4", "tcp6")
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		n.start()
		n.Sees("tcp6", n.Pod(1), n.outside("tcp6"), egressV6)
		n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), n.Node().V4)
		n.holdsPlan(soon)
	})
}

func TestClusterCIDR_NoneMeansNoRules(t *testing.T) {
	everyWay(t, func(n *node) {
		n.Configure(`cluster-cidr: ["10.128.0.0/14"]`)
		n.serve(n.Outside(), whoamiPort, "tcp4", "tcp6")
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		n.start()
		n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
		n.Sees("tcp6", n.Pod(1), n.outside("tcp6"), n.Node().V6)
		n.Says("No egress SNAT in this IP family")
		n.metric(`egress_snat_refusals{ip_family="IPv6",reason="NoClusterCIDR"} 1`)
		n.metric(`egress_snat_claims{ip_family="IPv6"} 1`)
		if strings.Contains(n.Save(v1.IPv6Protocol), "OPENSHIFT-EGRESS") {
			n.Error("there are rules without an exclusion")
		}
		n.holdsPlan(soon)
	})
}

// metric waits until the metrics endpoint has the line.
func (n *node) metric(line string) {
	n.Helper()
	n.shows(metricsURL, line+"\n")
}

const metricsURL = "http://127.0.0.1:10249/metrics"

// shows waits until an HTTP server on the node's loopback answers with a text.
func (n *node) shows(url, text string) {
	n.Helper()
	n.Eventually(soon, func() error {
		body, err := n.get(url)
		if err == nil && !strings.Contains(body, text) {
			err = fmt.Errorf("%s: got %.300q, want %q in it", url, body, text)
		}
		return err
	})
}

// TestRestart_DisturbsNothing: kept flows go on, and new ones leave from the egress IP at
// every moment of a restart, whether the node was told to end or was killed.
func TestRestart_DisturbsNothing(t *testing.T) {
	everyWay(t, func(n *node) {
		n.serve(n.Outside(), whoamiPort, "tcp4", "tcp6")
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		n.start()
		pod := n.Pod(1)
		n.Sees("tcp4", pod, n.outside("tcp4"), egressV4)
		n.Sees("tcp6", pod, n.outside("tcp6"), egressV6)
		n.holdsPlan(soon)
		n.Ready()
		before := rulesOnly(n.Save(v1.IPv4Protocol, "-t", "nat"))
		flow, err := pod.Dial(n.Context(), "tcp4", n.outside("tcp4"), 0)
		if err != nil {
			n.Fatal(err)
		}
		defer func() { _ = flow.Close() }()
		ask := func() {
			n.Helper()
			if seen, err := flow.Ask(n.Context()); err != nil || seen != egressV4 {
				n.Errorf("the kept flow is seen as %v, %v; want %v", seen, err, egressV4)
			}
		}

		stopWatching := n.watchSource(pod, egressV4)
		for range 3 {
			n.Stop()
			ask()
			n.restart()
			ask()
			n.Kill()
			ask()
			n.restart()
			ask()
		}
		stopWatching()
		if after := rulesOnly(n.Save(v1.IPv4Protocol, "-t", "nat")); after != before {
			n.Errorf("a restart changed the rules; before:\n%s\nafter:\n%s", before, after)
		}
	})
}

// restart starts the node and waits for its first complete sync.
func (n *node) restart() {
	n.Helper()
	n.AnewReady("--manifests=" + n.manifests())
}

// watchSource makes flows from the pod all the time; each must be answered, and seen as want.
// No packet that begins one may be lost: TCP would send it again, so neither side may have done that.
func (n *node) watchSource(pod *lab.Host, want netip.Addr) (stop func()) {
	ctx, cancel := context.WithCancel(n.Context())
	var wg sync.WaitGroup
	flows := 0
	sides := []*lab.Host{pod, n.Outside()}
	var before []string
	for _, side := range sides {
		before = append(before, n.sentAgain(side))
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			ctx, cancel := context.WithTimeout(n.Context(), lab.Stretch(10*time.Second)) // for a busy machine
			seen, err := pod.Ask(ctx, "tcp4", n.outside("tcp4"), 0)
			cancel()
			flows++
			if err != nil || seen != want {
				n.Errorf("flow %d is seen as %s, %v; want %s", flows, seen, err, want)
				return
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
		if flows == 0 {
			n.Error("no flow was observed")
		}
		for i, side := range sides {
			if after := n.sentAgain(side); after != before[i] {
				n.Errorf("packets were lost: %s had sent SYN or SYN-ACK again %s times, then %s", side.Name, before[i], after)
			}
		}
	}
}

// sentAgain is how many times a host's kernel has sent a SYN or a SYN-ACK again.
func (n *node) sentAgain(host *lab.Host) string {
	n.Helper()
	var text []byte
	err := host.Do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/netstat")
		return err
	})
	if err != nil {
		n.Fatal(err)
	}
	// A line of names, and one of values.
	names, values, _ := strings.Cut(string(text), "\n")
	i := slices.Index(strings.Fields(names), "TCPSynRetrans")
	fields := strings.Fields(values)
	if i < 0 || i >= len(fields) {
		n.Fatalf("%s: the kernel does not count what it sends again:\n%s", host.Name, text)
	}
	return fields[i]
}

// rulesOnly drops counters and comments from iptables-save's output.
func rulesOnly(save string) string {
	var lines []string
	for line := range strings.Lines(save) {
		if !strings.HasPrefix(line, "#") {
			line, _, _ = strings.Cut(line, " [")
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

// TestRepair_IPTablesRules: what somebody else does to the rules is undone by the next look at them, the
// proxier's own rules included, every time.
func TestRepair_IPTablesRules(t *testing.T) {
	damage := []struct {
		name string
		do   func(n *node)
	}{
		{"nat flushed", func(n *node) { n.Iptables("-t", "nat", "-F") }},
		{"nat flushed again", func(n *node) { n.Iptables("-t", "nat", "-F") }},
		{"nat emptied, chains included", func(n *node) { n.Reload("nat") }},
		{"filter flushed", func(n *node) { n.Iptables("-t", "filter", "-F") }},
		{"both flushed", func(n *node) { n.Iptables("-t", "nat", "-F"); n.Iptables("-t", "filter", "-F") }},
		{"all tables emptied, as a firewall's reload does", func(n *node) { n.Reload("nat", "filter", "mangle") }},
		{"masquerade in front", func(n *node) { n.Iptables("-t", "nat", "-I", "POSTROUTING", "1", "-j", "MASQUERADE") }},
		{"jump deleted", func(n *node) { n.Iptables("-t", "nat", "-D", "POSTROUTING", "1") }},
		{"our chain emptied", func(n *node) { n.Iptables("-t", "nat", "-F", "OPENSHIFT-EGRESS-SNAT") }},
	}
	onBackends(t, func(n *node) {
		n.serve(n.Outside(), whoamiPort, "tcp4", "tcp6")
		n.serve(n.Pod(1), 80, "tcp4", "tcp6")
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		n.start()
		n.Ready()
		n.Eventually(soon, n.checkService)
		for _, d := range damage {
			began := time.Now()
			d.do(n)
			// It may take most of a sync period; the other is for a busy machine.
			n.Eventually(2*process.SyncPeriod, func() error { return errors.Join(n.checkPlan(), n.checkService()) })
			n.Logf("%s: repaired after %s", d.name, time.Since(began).Round(time.Millisecond))
			n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
			n.Sees("tcp6", n.Pod(1), n.outside("tcp6"), egressV6)
		}
	})
}

// TestRepair_AfterConstantFlushes: when it ends, everything comes back.
func TestRepair_AfterConstantFlushes(t *testing.T) {
	onBackends(t, func(n *node) {
		n.serve(n.Pod(1), 80, "tcp4", "tcp6")
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		n.start()
		n.Ready()
		for end := time.Now().Add(process.SyncPeriod); time.Now().Before(end); {
			n.Iptables("-t", "nat", "-F")
		}
		began := time.Now()
		// It may take most of a sync period; the other is for a busy machine.
		n.Eventually(2*process.SyncPeriod, func() error { return errors.Join(n.checkPlan(), n.checkService()) })
		n.Logf("repaired after %s", time.Since(began).Round(time.Millisecond))
	})
}

// TestWrite_FirstSyncFails: the proxier's first sync fails, once, and is tried again by itself.
func TestWrite_FirstSyncFails(t *testing.T) {
	onBackends(t, func(n *node) {
		n.serve(n.Pod(1), 80, "tcp4", "tcp6")
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		n.breakRestore()
		n.start()
		n.Says("Sync failed")
		n.Says("the rules in the kernel stay as they are")
		n.mendRestore()
		n.Eventually(2*process.SyncPeriod, func() error { return errors.Join(n.checkPlan(), n.checkService()) })
	})
}

// TestWrite_BesideATableThatIPTablesCannotShow: a rule that somebody has added to another table with
// nft keeps nothing of ours from working.
func TestWrite_BesideATableThatIPTablesCannotShow(t *testing.T) {
	t.Parallel()
	n := newNode(t, lab.Config{Pods: 1, Masquerade: true, Backend: lab.NFT})
	n.serve(n.Outside(), whoamiPort, "tcp4")
	n.putWeb([]string{egressV4.String()})
	n.start()
	n.Ready()
	n.AsSomebodyElse("", "nft", "add rule ip filter FORWARD ct state new meter m size 10 { ip saddr limit rate 10/second } accept")
	if save := n.Save(v1.IPv4Protocol); !strings.Contains(save, "`filter' is incompatible") {
		t.Fatalf("iptables-save shows the table after all:\n%s", save)
	}
	n.putWeb([]string{anotherV4.String()})
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), anotherV4)
	n.Iptables("-t", "nat", "-F", "OPENSHIFT-EGRESS-SNAT")
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), anotherV4)
}

// checkService: web is served on its external IPs, to a client outside, with all of the
// proxier's rules in place.
func (n *node) checkService() error {
	for network, ip := range map[string]netip.Addr{"tcp4": egressV4, "tcp6": egressV6} {
		if _, err := n.ask(network, n.Outside(), netip.AddrPortFrom(ip, 80)); err != nil {
			return err
		}
	}
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		if missing, err := iptables.MissingFromProxier(n.Save(family)); err != nil || len(missing) > 0 {
			return errors.Join(fmt.Errorf("%s: missing: %v", family, missing), err)
		}
	}
	return nil
}

// TestWrite_FailureLeavesTheOldRules: while iptables-restore fails the old rules stay, log and metrics say
// so, and when it works again the node catches up by itself.
func TestWrite_FailureLeavesTheOldRules(t *testing.T) {
	onBackends(t, func(n *node) {
		n.serve(n.Outside(), whoamiPort, "tcp4")
		n.putWeb([]string{egressV4.String()})
		n.start()
		n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)

		n.breakRestore()
		n.putWeb([]string{anotherV4.String()})
		n.Says("out of order")
		n.Says("the rules in the kernel stay as they are")
		n.shows(metricsURL, `egress_snat_sync_failures_total{ip_family="IPv4"}`)
		n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
		if _, stderr, status := n.Openshift("start", "node", "--config="+n.Config(), "--manifests="+n.manifests(), "--dry-run"); status != 1 || !strings.Contains(stderr, "out of order") {
			n.Errorf("--dry-run: got status %d, %q; want 1 and the reason", status, stderr)
		}
		n.mendRestore()
		n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), anotherV4)
	})
}

// TestLock_HeldForLong: somebody holds the xtables lock for longer than iptables waits for it. The node's process is killed meanwhile.
func TestLock_HeldForLong(t *testing.T) {
	t.Parallel()
	n := newNode(t, lab.Config{Pods: 1, Masquerade: true, Backend: lab.Legacy})
	n.serve(n.Outside(), whoamiPort, "tcp4")
	n.putWeb([]string{egressV4.String()})
	n.start()
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)

	release := n.holdLock()
	n.putWeb([]string{anotherV4.String()})
	n.Says("the rules in the kernel stay as they are")
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
	n.Kill()
	n.Printed.Reset()
	n.start()
	n.Says("Another process holds the iptables lock")
	if strings.Contains(n.Printed.String(), "Egress SNAT rules are in place") {
		t.Error("the node says that its rules are in place while it could write none")
	}
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
	release()
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), anotherV4)
}

// TestWrite_NothingForAnUnchangedPlan: changes that do not concern egress make us write nothing.
// The proxier writes with --counters, we do not.
func TestWrite_NothingForAnUnchangedPlan(t *testing.T) {
	onBackends(t, func(n *node) {
		n.putWeb([]string{egressV4.String()})
		n.start()
		n.Ready()
		restore, err := exec.LookPath("/usr/sbin/iptables-" + filepath.Base(n.T.Name()) + "-restore")
		if err != nil {
			n.Fatal(err)
		}
		record := n.File("execs")
		n.Write(filepath.Join(n.BinDir, "iptables-restore"), []byte("#!/bin/sh\necho \"$@\" >>"+record+"\nexec "+restore+" \"$@\"\n"))
		if err := os.Chmod(filepath.Join(n.BinDir, "iptables-restore"), 0o755); err != nil {
			n.Fatal(err)
		}
		execs := func() (proxier, ours int) {
			text, err := os.ReadFile(record)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				n.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, "--counters") {
					proxier++
				} else {
					ours++
				}
			}
			return proxier, ours
		}
		for round := range 3 {
			before, _ := execs()
			n.putInFront(service("db", dbIPs, nil, allProtocols[:1+round]...), n.Pod(2).V4)
			n.Eventually(soon, func() error {
				if after, _ := execs(); after == before {
					return errors.New("the proxier has not written its change")
				}
				return nil
			})
		}
		looks := strings.Count(n.Printed.String(), "looked=true")
		n.Eventually(soon, func() error {
			if strings.Count(n.Printed.String(), "looked=true") < looks+4 {
				return errors.New("the kernel was not looked at")
			}
			return nil
		})
		if _, ours := execs(); ours != 0 {
			n.Errorf("%d writes of ours, want none", ours)
		}
	})
}

// breakRestore makes iptables-restore fail on the node, mendRestore work again.
func (n *node) breakRestore() {
	n.Helper()
	for _, name := range []string{"iptables-restore", "ip6tables-restore"} {
		if err := os.WriteFile(filepath.Join(n.BinDir, name), []byte("#!/bin/sh\necho 'out of order' >&2\nexit 4\n"), 0o755); err != nil {
			n.Fatal(err)
		}
	}
}

func (n *node) mendRestore() {
	n.Helper()
	for _, name := range []string{"iptables-restore", "ip6tables-restore"} {
		if err := os.Remove(filepath.Join(n.BinDir, name)); err != nil {
			n.Fatal(err)
		}
	}
}

// holdLock takes the xtables lock, as another iptables-legacy would.
func (n *node) holdLock() (release func()) {
	n.Helper()
	lock, err := os.OpenFile(n.Node().XtablesLock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		n.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		n.Fatal(err)
	}
	return func() { _ = lock.Close() } // which releases it
}
