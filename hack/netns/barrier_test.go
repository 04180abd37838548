package netns

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
)

// TestBarrier_FullIsCounted: connections that end when too many others have ended before are deleted all the same, a metric counts
// them in their IP family, and the log tells of them.
func TestBarrier_FullIsCounted(t *testing.T) {
	t.Parallel()
	n := newNode(t, lab.Config{IPv6: true, Pods: 1, Masquerade: true})
	n.serve(n.Outside(), whoamiPort, "tcp4", "tcp6")
	former, now := []string{egressV4.String(), egressV6.String()}, []string{anotherV4.String(), anotherV6.String()}
	n.putWeb(former)
	n.start()
	n.Ready()
	const connections, told = 3, "the other side may take some of them up again"
	expect := func(deleted, unbarred4, unbarred6 int) {
		t.Helper()
		for _, family := range []string{"IPv4", "IPv6"} {
			n.metric(fmt.Sprintf(`egress_snat_conntrack_deletions_total{ip_family=%q} %d`, family, deleted))
		}
		n.metric(fmt.Sprintf(`egress_snat_conntrack_unbarred_total{ip_family="IPv4"} %d`, unbarred4))
		n.metric(fmt.Sprintf(`egress_snat_conntrack_unbarred_total{ip_family="IPv6"} %d`, unbarred6))
	}
	n.connects(connections)
	n.putWeb(now)
	n.holdsPlan(soon)
	expect(connections, 0, 0)
	if strings.Contains(n.Printed.String(), told) {
		t.Errorf("the log says that %s, and there is room", told)
	}
	n.fillBarrier()
	n.connects(connections)
	n.putWeb(former)
	n.holdsPlan(soon)
	expect(2*connections, connections, 0)
	n.Says(told)
	n.Says(fmt.Sprintf("notPrevented=%d", connections))
}

// connects has the pod make so many connections of each IP family, which stay.
func (n *node) connects(times int) {
	n.Helper()
	for range times {
		for _, network := range []string{"tcp4", "tcp6"} {
			flow, err := n.Pod(1).Dial(n.Context(), network, n.outside(network), 0)
			if err != nil {
				n.Fatal(err)
			}
			n.Cleanup(func() { _ = flow.Close() })
		}
	}
}

// fillBarrier has the kernel's set of IPv4 connections that have ended hold as many as it may.
func (n *node) fillBarrier() {
	n.Helper()
	const size = 1 << 16 // of the set, see pkg/kernel/conntrack/doc.go
	there, err := n.Node().Run(n.Context(), "nft", "list", "set", "ip", "openshift-egress-ended", "flows")
	if err != nil {
		n.Fatal(err)
	}
	var elements strings.Builder
	for i := range size - strings.Count(there, " expires ") {
		fmt.Fprintf(&elements, "add element ip openshift-egress-ended flows { 198.18.%d.%d . 198.19.0.1 . tcp . 1 . 1 }\n", i>>8, i&255)
	}
	if err := n.Node().Feed(n.Context(), elements.String(), "nft", "-f", "-"); err != nil {
		n.Fatal(err)
	}
}

// TestBarrier_KilledWhileItListened: what a process that was killed has left, by which it listened to connections, is removed by the next one.
func TestBarrier_KilledWhileItListened(t *testing.T) {
	t.Parallel()
	n := newNode(t, lab.Config{Pods: 1})
	const table = "openshift-egress-heard"
	if _, err := n.Node().Run(t.Context(), "nft", "add", "table", "ip", table); err != nil {
		t.Fatal(err)
	}
	n.putWeb([]string{egressV4.String()})
	n.start()
	n.Ready()
	if tables, err := n.Node().Run(t.Context(), "nft", "list", "tables"); err != nil || strings.Contains(tables, table) {
		t.Errorf("%v; there are the tables\n%s", err, tables)
	}
}
