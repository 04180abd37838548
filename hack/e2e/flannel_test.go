package e2e

import (
	"strings"
	"testing"
)

// TestFlannel_PodsLeaveFromTheHolder: flannel's daemons make the pods' network, and masquerade. Bound pods leave from their egress IP, by
// its holder, and the others from their nodes; pods see each other's own addresses. So it is for bound pods also while flannel's daemons
// are dead and the address moves, after somebody has flushed flannel's chains, and with its jump in front of all others.
func TestFlannel_PodsLeaveFromTheHolder(t *testing.T) {
	for _, way := range flannelWays() {
		t.Run(way.String(), func(t *testing.T) {
			share, has := map[flannelWay]share{{"vxlan", false, false}: inCI, {"host-gw", true, true}: usual}[way]
			if !has {
				share = long
			}
			belongsTo(t, share)
			besideFlannel(newFlannelWorld(t, way))
		})
	}
}

func besideFlannel(w *flannelWorld) {
	w.right()
	traffic := w.crowd(100)

	w.endDaemons()
	for _, m := range []*member{w.members[1], w.members[0]} {
		w.move(m)
		w.steered()
	}
	w.startDaemons()

	w.flushChains()
	w.answered()
	if w.way.nftables { // it does not look again
		w.endDaemons()
		w.startDaemons()
	} else {
		w.masquerading()
		w.onAll("iptables -w -t nat -I POSTROUTING -j FLANNEL-POSTRTG", "ip6tables -w -t nat -I POSTROUTING -j FLANNEL-POSTRTG")
		w.steered()
	}

	w.must(traffic.Round(w.Context()))
	w.Log(w.noneWrong(traffic))
	w.right()
	w.clean(1000)
}

// TestFlannel_PortClash: steering is to have the UDP port of flannel's VXLAN. The node names flannel's interface, in the log, by an Event
// and to verify, and ends if steering is required. With a port of its own it steers.
func TestFlannel_PortClash(t *testing.T) {
	belongsTo(t, usual)
	const clash = "interface flannel.1 uses the UDP port 8472: delete it, or choose another port with egress-snat-steering-port on all nodes"
	w := newFlannelWorld(t, flannelWay{backend: "vxlan"})
	m := w.members[1]
	w.restart(m, `egress-snat-steering-port: ["8472"]`)
	m.Says(clash)
	w.eventTold("EgressIPUnreachable", clash)
	if out, _, _ := m.Openshift("egress", "verify", "--socket="+m.Socket()); !strings.Contains(out, clash) {
		t.Errorf("verify does not say %q, but %s", clash, out)
	}
	m.Stop()
	m.Configure(`{egress-snat-steering-port: ["8472"], egress-snat-steering: [required]}`)
	m.Anew()
	m.Ends(1)
	m.Says(clash)
	m.Configure("")
	m.Start()
	m.Ready()
	w.steered()
	w.right()
	w.clean(50)
}
