package e2e

import (
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
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
