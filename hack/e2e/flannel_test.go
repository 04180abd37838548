package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestFlannel_PodsLeaveFromTheHolder: flannel's daemons make the pods' network, and masquerade. Bound pods leave from their egress IP, by
// its holder, and the others from their nodes; pods see each other's own addresses. So it is for bound pods also while flannel's daemons
// are dead and the address moves, after somebody has flushed flannel's chains, and with its jump in front of all others.
func TestFlannel_PodsLeaveFromTheHolder(t *testing.T) {
	shares := map[flannelWay]share{{"vxlan", false, false}: inCI, {"host-gw", true, true}: usual}
	for _, nftables := range []bool{false, true} {
		for _, direct := range []bool{false, true} {
			for _, backend := range []string{"vxlan", "host-gw"} {
				way := flannelWay{backend, nftables, direct}
				name := fmt.Sprintf("%s, %s, steering %s", backend, map[bool]string{false: "iptables", true: "nftables"}[nftables], map[bool]string{false: "VXLAN", true: "direct"}[direct])
				t.Run(name, func(t *testing.T) {
					share, has := shares[way]
					if !has {
						share = long
					}
					belongsTo(t, share)
					besideFlannel(newFlannelWorld(t, way))
				})
			}
		}
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
	sum := traffic.Stop()
	line, _, _ := strings.Cut(sum.String(), "\n")
	w.Log(line)
	if sum.Wrong > 0 {
		w.Errorf("pods were seen as others: %s", sum)
	}
	w.right()
	w.clean(1000)
}
