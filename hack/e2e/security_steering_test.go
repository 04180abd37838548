package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// TestSteering_ForgedPackets: what a pod or a host outside sends to the port of the tunnel, as if it were a node with a packet
// of a bound pod, does not leave under the egress IP, and is counted.
func TestSteering_ForgedPackets(t *testing.T) {
	w := newSteeredWorld(t, settings{families: families[:1]}, nil)
	victim := w.pods[1]
	onHolder, elsewhere := w.runPod("shop", "attacker-1", w.holder, nil), w.runPod("shop", "attacker-3", w.members[2], nil)
	for _, attack := range []struct {
		name  string
		from  *lab.Host
		outer netip.Addr
	}{
		{"a pod on the holder", onHolder, onHolder.V4},
		{"a pod on another node", elsewhere, elsewhere.V4},
		{"a host outside", w.Outside(), w.Outside().V4},
		{"a pod on the holder, as if it were a node", onHolder, w.members[1].Host.V4},
		{"a pod on another node, as if it were a node", elsewhere, w.members[1].Host.V4},
	} {
		w.scenario(attack.name, func() { w.forge(attack.from, attack.outer, victim) })
	}
	w.only(w.holder.Host, w.sends(w.answered)) // and the others are steered as before
	w.clean(10)
}

// forge has a host send packets of a pod in VXLAN to the holder, in the name of a node.
func (w *steeredWorld) forge(from *lab.Host, outer netip.Addr, victim *lab.Host) {
	w.Helper()
	const forgedPort = 8079 // nobody else's
	target := netip.AddrPortFrom(w.Far().V4, forgedPort)
	mac, err := w.holder.Host.Run(w.Context(), "cat", "/sys/class/net/steer0/address")
	w.must(err)
	if outer != from.V4 {
		w.run(from, fmt.Sprintf("ip addr add %s/32 dev lo", outer))
		defer w.run(from, fmt.Sprintf("ip addr del %s/32 dev lo", outer))
	}
	w.run(from, fmt.Sprintf("ip link add forged type vxlan id 4789 dstport %d nolearning local %s remote %s", lab.TunnelPort, outer, w.holder.Host.V4),
		"ip link set forged mtu 1400 up", fmt.Sprintf("ip addr add %s/32 dev forged", victim.V4),
		fmt.Sprintf("ip neigh add %s lladdr %s dev forged nud permanent", target.Addr(), strings.TrimSpace(mac)),
		fmt.Sprintf("ip route add %s/32 dev forged src %s", target.Addr(), victim.V4))
	defer w.run(from, "ip link del forged")
	before := w.allDrops()
	ctx, cancel := context.WithTimeout(w.Context(), time.Second)
	defer cancel()
	_, _ = from.Ask(ctx, "udp4", target, 0) // nobody serves there
	w.eventually(func() error {
		now := w.allDrops()
		if now["foreign"]+now["forged"] == before["foreign"]+before["forged"] {
			return fmt.Errorf("nothing is dropped as foreign or forged: %s", dropsTold(now))
		}
		return nil
	})
	if seen := w.wire.Sources("udp", target); len(seen) > 0 {
		w.Errorf("packets have left: %v", seen)
	}
}

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
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			defer cancel()
			_, _ = attacker.Ask(ctx, network("udp", to), to, 0)
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
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				_, _ = pod.Ask(ctx, "udp4", to, 0)
				cancel()
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
