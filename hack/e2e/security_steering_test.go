package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// TestSteering_ForgedWithoutATunnel: a host on the nodes' network that has a bound pod's address, and sends to the holder, is
// no node: what it sends does not leave, and is counted.
func TestSteering_ForgedWithoutATunnel(t *testing.T) {
	w := newSteeredWorld(t, settings{arguments: direct}, nil)
	victim, attacker := w.pods[1], w.Outside()
	for i, to := range at(w.Far(), 8079) { // nobody serves there
		pod, holder := []netip.Addr{victim.V4, victim.V6}[i], []netip.Addr{w.holder.Host.V4, w.holder.Host.V6}[i]
		w.scenario(string(familyOf(pod)), func() {
			w.run(attacker, fmt.Sprintf("ip addr add %s/%d dev lo", pod, pod.BitLen()),
				fmt.Sprintf("ip route add %s/%d via %s src %s", to.Addr(), to.Addr().BitLen(), holder, pod))
			before := w.holder.drops(w.world)
			_, _ = w.askWithin(time.Second, "udp", attacker, to)
			w.eventually(func() error {
				if now := w.holder.drops(w.world); now["foreign"]+now["forged"] == before["foreign"]+before["forged"] {
					return fmt.Errorf("nothing is dropped as foreign or forged: %s", dropsTold(now))
				}
				return nil
			})
			w.run(attacker, fmt.Sprintf("ip route del %s/%d via %s", to.Addr(), to.Addr().BitLen(), holder), fmt.Sprintf("ip addr del %s/%d dev lo", pod, pod.BitLen()))
			if seen := w.wire.Sources("udp", to); len(seen) > 0 {
				w.Errorf("packets have left: %v", seen)
			}
		})
	}
	w.only(w.holder.Host, w.sends(w.answered))
	w.clean(10)
}

// TestSteering_ForgedByANode: a node that sends the holder packets of a pod which runs on another one does not make them
// leave from the pod's egress IP. A pod of its own has that one's address.
func TestSteering_ForgedByANode(t *testing.T) {
	for name, way := range map[string]struct{ arguments, via string }{
		"VXLAN":  {"", "via 169.254.77.1 dev steer0 onlink"},
		"direct": {direct, "via 192.0.2.2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSteeredWorld(t, settings{families: families[:1], arguments: way.arguments}, nil)
			victims := []*lab.Host{w.pods[1], w.pods[0]} // of another node, and of the holder
			traitor, to := w.members[2].Host, netip.AddrPortFrom(w.Far().V4, 8079)
			pod := w.runPod("shop", "traitor", w.members[2], nil)
			gateway := traitor.PodCIDRs()[0].Addr().Next()
			for _, victim := range victims {
				w.run(traitor, fmt.Sprintf("iptables -w -t nat -I POSTROUTING -s %s -j ACCEPT", victim.V4)) // or it is masqueraded
				w.run(traitor, fmt.Sprintf("ip route add %s/32 %s", to.Addr(), way.via))
				w.run(pod, fmt.Sprintf("ip addr add %s/32 dev lo", victim.V4), fmt.Sprintf("ip route add %s/32 via %s src %s", to.Addr(), gateway, victim.V4))
				before := w.holder.drops(w.world)["forged"]
				_, _ = w.askWithin(time.Second, "udp", pod, to)
				w.eventually(func() error {
					if now := w.holder.drops(w.world); now["forged"] == before {
						return fmt.Errorf("nothing is dropped as forged: %s", dropsTold(now))
					}
					return nil
				})
				w.run(traitor, fmt.Sprintf("ip route del %s/32 %s", to.Addr(), way.via))
				w.run(pod, fmt.Sprintf("ip route del %s/32", to.Addr()), fmt.Sprintf("ip addr del %s/32 dev lo", victim.V4))
			}
			if seen := w.wire.Sources("udp", to); len(seen) > 0 {
				w.Errorf("packets have left: %v", seen)
			}
			w.only(w.holder.Host, w.sends(w.answered))
			w.clean(10)
		})
	}
}

// TestSteering_PodWithANodesPort: a pod without an egress IP that sends from the tunnel's port, which it keeps where it is
// masqueraded, is answered.
func TestSteering_PodWithANodesPort(t *testing.T) {
	w := newWorld(t, settings{nodes: 1})
	w.shop(webIPs...)
	pod := w.runPod("shop", "plain", w.members[0], nil)
	w.atRest()
	for _, port := range []int{lab.AnnouncePort, lab.TunnelPort} {
		for _, to := range w.outside() {
			w.must(pod.Do(func() error {
				c, err := net.DialUDP(network("udp", to), &net.UDPAddr{Port: port}, net.UDPAddrFromAddrPort(to))
				if err != nil {
					return err
				}
				defer func() { _ = c.Close() }()
				if _, err = c.Write([]byte("x\n")); err == nil {
					_ = c.SetReadDeadline(time.Now().Add(soon))
					_, err = c.Read(make([]byte, 100))
				}
				return err
			}))
		}
	}
}
