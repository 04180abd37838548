package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// TestKernel_WithoutVXLAN: a node whose packets go without a tunnel steers. One that needs the tunnel says what the kernel lacks, and its
// pods use their egress IPs where they run; it ends where it must steer.
func TestKernel_WithoutVXLAN(t *testing.T) {
	lab.NeedsLack(t, "vxlan")
	w := newSteeredWorld(t, settings{nodes: 2, arguments: direct}, nil)
	w.steered()
	w.leaveByTheHolder()
	m, lacks := w.members[1], "the kernel has no VXLAN (CONFIG_VXLAN)"
	w.restart(m, "")
	w.tells(m, "EgressIPUnreachable", `egress_snat_steering_fault{reason="unavailable"} 1`, lacks)
	w.goesAlone(m, lacks)
	m.Configure(direct)
	m.Start()
	m.Ready()
	w.steered()
	w.clean(10)
}

// TestKernel_WithoutNFTables: a node whose iptables is the legacy one gives pods their egress IPs, ends their connections when these go, and
// redirects ports of nodes. It says why it does not steer.
func TestKernel_WithoutNFTables(t *testing.T) {
	lab.NeedsLack(t, "nf_tables")
	w := newWorld(t, settings{nodes: 1, backend: lab.Legacy, arguments: "tunnel-ports: [\"true\"]\ntunnel-secure-address: [\"192.0.2.99:10263\"]"})
	m := w.members[0]
	m.Says("This node cannot send packets to the nodes that hold their egress IPs")
	m.Says("Connections are redirected by chains of iptables because this kernel's nftables cannot do that")
	w.namespace("shop")
	w.service("shop", "web", w.ips(10), nil, tcp80, udp80)
	pod := w.runPod("shop", "web-1", m, web)
	for _, to := range w.outside() {
		m.Sees(network("tcp", to), pod, to, identity(pod, to, w.ips(10)))
	}
	flows := w.flows(pod, "tcp", "udp")
	if out, errs, status := m.Openshift("egress", "verify", "--socket="+m.Socket()); status != 0 {
		w.Errorf("egress verify: status %d: %s%s", status, out, errs)
	}
	w.deleteService("shop", "web")
	for _, to := range w.outside() {
		m.Sees(network("tcp", to), pod, to, identity(pod, to, nil))
	}
	now := time.Now()
	w.eventually(func() error { // a sync ends with the flows
		snapshot, err := status.NewClient(m.Socket()).Snapshot(w.Context())
		for _, f := range snapshot.Families {
			if err == nil && !f.LastSync.After(now) {
				err = fmt.Errorf("the last sync of %s was at %s, before %s", f.Family, f.LastSync, now)
			}
		}
		return err
	})
	w.ended(flows)
	_, err := w.CreateNode(w.Context(), "edge-1", netip.MustParseAddr("192.0.2.98"))
	w.must(err)
	_, err = w.Client().CoreV1().Nodes().Patch(w.Context(), "edge-1", types.MergePatchType, []byte(`{"metadata": {"labels": {"`+agentLabel+`": "true"}}}`), metav1.PatchOptions{})
	w.must(err)
	rules := func() (text string) {
		for _, program := range []string{"iptables-save", "ip6tables-save"} {
			out, err := m.Host.Run(w.Context(), program)
			w.must(err)
			text += out
		}
		return text
	}
	w.eventually(func() error {
		if now := rules(); !strings.Contains(now, "192.0.2.98/32") || !strings.Contains(now, "--to-destination 192.0.2.99:10263") {
			return fmt.Errorf("there are no redirects:\n%s", now)
		}
		return nil
	})
	if out, errs, status := m.Openshift("tunnel", "verify", "--socket="+m.Socket()); status != 0 {
		w.Errorf("tunnel verify: status %d: %s%s", status, out, errs)
	}
	m.Stop()
	if _, errs, status := m.Openshift("start", "node", "--config="+m.Config(), "--cleanup"); status != 0 {
		w.Errorf("--cleanup: status %d: %s", status, errs)
	}
	if left := rules(); strings.Contains(left, "OPENSHIFT") {
		w.Errorf("left behind:\n%s", left)
	}
}

// TestKernel_WithoutDuplicates: a node that cannot pass packets on to another node says what that costs and which modules it needs. Its
// pool moves addresses all the same, and connections live.
func TestKernel_WithoutDuplicates(t *testing.T) {
	lab.NeedsLack(t, "nft_dup_ipv4", "nft_dup_ipv6")
	w := newPoolWorld(t, 2)
	for _, m := range w.members {
		m.Says("Connections that begin while an egress IP is handed over may take a second, because this kernel cannot pass packets on to another node; it needs the modules nft_dup_ipv4 and nft_dup_ipv6")
	}
	for _, ip := range w.egressIPs {
		w.complete()
		holder := w.holderOf(ip, nil)
		c := w.keepConnections(ip, w.podsOff(holder))
		w.drain(holder, true)
		w.holderOf(ip, holder)
		c.heard(w, time.Now())
		c.end(w, ip, "drained", 100)
		w.drain(holder, false)
	}
}
