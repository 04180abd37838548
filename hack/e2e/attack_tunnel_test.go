package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
)

// TestAttack_Tunnel: nobody sends under a bound pod's address by a datagram to a port of the nodes: no pod, no process without rights in a
// node's own network, and no host on the nodes' network, also not in the name of a node; whatever address the datagram is for. One
// exception is left out: the tunnel is not authenticated, so a host that has a node's address is that node, and sends as its pods.
func TestAttack_Tunnel(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings settings
		filter   int // of reverse paths
		share    share
	}{
		{"iptables", settings{}, 0, inCI},
		{"nftables, strict reverse paths", settings{nftables: true}, 1, usual},
		{"IPv6 alone, loose reverse paths", settings{families: families[1:]}, 2, usual},
		{"without a tunnel", settings{arguments: direct}, 2, usual},
		{"IPv6 alone, nftables", settings{families: families[1:], nftables: true}, 0, long},
		{"nftables, without a tunnel", settings{nftables: true, arguments: direct}, 1, long},
	} {
		t.Run(test.name, func(t *testing.T) {
			belongsTo(t, test.share)
			w := newSteeredWorld(t, test.settings, func(w *world) {
				for _, dev := range []string{"all", "default", "eth0", "cni0"} {
					w.onAll(fmt.Sprintf("sysctl -q -w net.ipv4.conf.%s.rp_filter=%d", dev, test.filter))
				}
				w.masqueradeBetweenNodes()
			})
			a := &tunnelAttack{steeredWorld: w, tunnel: test.settings.arguments != direct}
			a.reachHolderByAnycast()
			for _, from := range a.attackers() {
				w.scenario(from.name, func() { a.attack(from) })
			}
			w.only(w.holder.Host, w.sends(w.answered)) // and the others are steered as before
			w.clean(10)
		})
	}
}

// reachHolderByAnycast has what a host on the nodes' network sends to the routers' anycast address get to the holder. Each router there answers
// who asks for it, the first counts, and that may be no node.
func (a *tunnelAttack) reachHolderByAnycast() {
	a.Helper()
	mac, err := a.holder.Host.Run(a.Context(), "cat", "/sys/class/net/eth0/address")
	a.must(err)
	route, err := a.Outside().Run(a.Context(), "ip", "-6", "route", "get", a.holder.Host.V6.String())
	a.must(err)
	_, device, _ := strings.Cut(string(route), " dev ")
	a.run(a.Outside(), fmt.Sprintf("ip -6 neigh replace 2001:db8:0:2:: lladdr %s dev %s", strings.TrimSpace(string(mac)), strings.Fields(device)[0]))
}

// masqueradeBetweenNodes has pods be seen as their node by all that are not on it, as the plugin bridge does.
func (w *world) masqueradeBetweenNodes() {
	w.Helper()
	for _, m := range w.members {
		for _, pods := range m.Host.PodCIDRs() {
			tool := "iptables"
			if pods.Addr().Is6() {
				tool = "ip6tables"
			}
			w.run(m.Host, fmt.Sprintf("%s -w -t nat -A POSTROUTING -s %s ! -d %s -j MASQUERADE", tool, pods, pods))
		}
	}
}

// tunnelAttack is a world whose holder is attacked.
type tunnelAttack struct {
	*steeredWorld
	tunnel bool
}

// attacker is somebody who sends datagrams.
type attacker struct {
	name string
	host *lab.Host
	do   func(func() error) error
	// as is the address that he takes; zero for his own.
	as netip.Addr
}

func (a *tunnelAttack) attackers() []attacker {
	holder, elsewhere, outside := a.holder.Host, a.members[2].Host, a.Outside()
	near, far := a.runPod("shop", "attacker-1", a.holder, nil), a.runPod("shop", "attacker-3", a.members[2], nil)
	return []attacker{
		{"a pod on the holder", near, near.Do, netip.Addr{}},
		{"a pod on another node", far, far.Do, netip.Addr{}},
		{"a process of the holder", holder, holder.DoWithoutRights, netip.Addr{}},
		{"a process of another node", elsewhere, elsewhere.DoWithoutRights, netip.Addr{}},
		{"a host on the nodes' network", outside, outside.Do, netip.Addr{}},
		{"a host on the nodes' network, as a node", outside, outside.Do, outer(elsewhere)},
	}
}

// targets are all addresses by which a datagram gets to the holder, or to a node's own end of the tunnel.
func (a *tunnelAttack) targets() []netip.Addr {
	var texts []string
	if a.families[0] == v1.IPv4Protocol {
		texts = []string{"192.0.2.255", "255.255.255.255", "224.0.0.1", "10.128.0.255", "10.128.0.1", "127.0.0.1"}
	} else {
		texts = []string{"2001:db8:0:2::", "ff02::1", "ff02::2", "fd00:10:128::", "fd00:10:128::1", "::1"}
	}
	return append(addrs(append(texts, a.egressIPs[0])), outer(a.holder.Host))
}

// attack sends packets of all pods, each in the name of its node, to all of the targets. Each is dropped. Some attackers can send to some
// of the targets only, but each of them to one at least: else it would show nothing.
func (a *tunnelAttack) attack(from attacker) {
	a.Helper()
	if from.as.IsValid() {
		a.run(from.host, fmt.Sprintf("ip addr add %s/%d dev lo", from.as, from.as.BitLen()))
		defer a.run(from.host, fmt.Sprintf("ip addr del %s/%d dev lo", from.as, from.as.BitLen()))
	}
	payloads, judged := a.payloads(), 0
	for _, to := range a.targets() {
		for _, port := range []uint16{lab.TunnelPort, lab.AnnouncePort} {
			before := a.refusals()
			sent := a.send(from, netip.AddrPortFrom(to, port), payloads)
			if !a.refuses(from, to, port) {
				continue
			}
			judged += sent
			a.eventually(func() error {
				if dropped := a.refusals() - before; dropped < sent {
					return fmt.Errorf("%s, to %s port %d: of %d datagrams %d are dropped as foreign or forged: %s",
						from.name, to, port, sent, dropped, dropsTold(a.allDrops()))
				}
				return nil
			})
		}
	}
	if judged == 0 {
		a.Errorf("%s could send to none of the targets, so nothing has shown that its datagrams are dropped", from.name)
	}
	a.answered()                                 // by now all has been forwarded that is
	for _, to := range at(a.Far(), forgedPort) { // in each family of the cluster
		if seen := a.wire.Sources("udp", to); len(seen) > 0 {
			a.Errorf("packets have left: %v", seen)
		}
	}
}

// refusals is what all nodes have dropped as foreign or forged.
func (a *tunnelAttack) refusals() int {
	a.Helper()
	drops := a.allDrops()
	return drops["foreign"] + drops["forged"]
}

// send sends payloads and returns how many a node has to drop: also those that are dropped at once, which the sender is told. Left
// out is what the node itself would send: a host on the nodes' network that has a node's address is that node (images/node/README.md,
// threat model). It logs a target to which nothing could be sent.
func (a *tunnelAttack) send(from attacker, to netip.AddrPort, payloads [][]byte) (sent int) {
	a.Helper()
	var impossible error
	for i, payload := range payloads {
		if to.Addr() == outer(a.holder.Host) && from.as == outer(a.pods[i%len(a.pods)].Node) {
			continue
		}
		err := from.do(func() error { return from.host.SendUDP(from.as, to, payload) })
		switch {
		case err == nil || errors.Is(err, unix.EPERM):
			sent++
		case errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EINVAL):
			impossible = err
		default:
			a.Errorf("to %s: %v", to, err)
		}
	}
	if sent == 0 && impossible != nil {
		a.Logf("%s cannot send to %s: %v", from.name, to, impossible)
	}
	return sent
}

// refuses tells whether nodes drop what somebody sends to a port: where there is one, and where it gets to a node. A
// datagram without a signature from a node's own address to another's is left to the program that gets it.
func (a *tunnelAttack) refuses(from attacker, to netip.Addr, port uint16) bool {
	process := a.isNode(from.host)
	if port == lab.TunnelPort && !a.tunnel || to.IsLoopback() && !process {
		return false
	}
	speaks := process && from.host != a.holder.Host || from.as.IsValid()
	return port != lab.AnnouncePort || !speaks || to != outer(a.holder.Host)
}

func (a *tunnelAttack) isNode(h *lab.Host) bool {
	return slices.ContainsFunc(a.members, func(m *member) bool { return m.Host == h })
}

// forgedPort is nobody's on the host far away.
const forgedPort = 8079

// payloads are packets of each pod to the outside, as its node would send them to the holder: all pods' in turn, in each family.
func (a *tunnelAttack) payloads() (payloads [][]byte) {
	a.Helper()
	mac := func(m *member) net.HardwareAddr {
		if !a.tunnel {
			return make(net.HardwareAddr, 6)
		}
		text, err := m.Host.Run(a.Context(), "cat", "/sys/class/net/steer0/address")
		a.must(err)
		addr, err := net.ParseMAC(strings.TrimSpace(text))
		a.must(err)
		return addr
	}
	for _, to := range at(a.Far(), forgedPort) {
		for i, pod := range a.pods {
			from := pod.V4
			if to.Addr().Is6() {
				from = pod.V6
			}
			const vni = 4789
			payloads = append(payloads, lab.Wrapped(vni, mac(a.holder), mac(a.members[i]), netip.AddrPortFrom(from, 9000), to, "who am I"))
		}
	}
	return payloads
}

// TestAttack_TunnelPortIsTaken by a process without any right, before the node starts for the first time: people are told who it is, what
// needs the tunnel is dropped, and leaves from its egress IP as soon as the port is free.
func TestAttack_TunnelPortIsTaken(t *testing.T) {
	w := newSteeredWorld(t, settings{}, nil)
	squatted := w.members[0]
	if squatted == w.holder {
		squatted = w.members[1]
	}
	squatted.Kill()
	w.run(squatted.Host, "ip link delete steer0")
	var squatter net.PacketConn
	w.must(squatted.Host.DoWithoutRights(func() (err error) {
		squatter, err = net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", lab.TunnelPort))
		return err
	}))
	defer func() { _ = squatter.Close() }()
	squatted.Start()
	squatted.Ready()
	owner := fmt.Sprintf("process %d ", os.Getpid())
	w.eventually(func() error { return w.faulty(squatted, "path", 1) })
	w.eventually(func() error { return w.hasEvent("EgressIPUnreachable", "Node/"+squatted.Name, owner) })
	w.must(squatter.Close())
	w.eventually(func() error { return w.faulty(squatted, "path", 0) })
	w.answered()
	w.clean(1)
}
