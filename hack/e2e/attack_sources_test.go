package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
)

// TestAttack_SourceOfAnotherPod: a pod with nothing but a raw socket (CAP_NET_RAW, a container's default) sends with the address of a
// bound pod, which runs beside it or on another node. Nothing of it leaves the cluster from the egress IP, from no node, and it is
// counted. The bound pod is served as before.
func TestAttack_SourceOfAnotherPod(t *testing.T) {
	ways := []struct {
		name string
		settings
	}{
		{"iptables, VXLAN, bridge", settings{}},
		{"nftables, direct, ptp", settings{nftables: true, arguments: direct, ptp: true}},
		{"iptables, direct, bridge", settings{arguments: direct}},
		{"nftables, VXLAN, ptp", settings{nftables: true, ptp: true}},
		{"nftables, direct, bridge", settings{nftables: true, arguments: direct}},
		{"iptables, VXLAN, ptp", settings{ptp: true}},
		{"nftables, VXLAN, bridge", settings{nftables: true}},
		{"iptables, direct, ptp", settings{arguments: direct, ptp: true}},
	}
	for _, way := range ways[:by(t, 2, 4, len(ways))] {
		t.Run(way.name, func(t *testing.T) {
			w := newSteeredWorld(t, way.settings, nil)
			var attackers []*lab.Host
			for i, m := range w.members {
				attackers = append(attackers, w.runPod("shop", fmt.Sprintf("attacker-%d", i), m, nil))
			}
			w.atRest()
			for _, filter := range []int{0, 1, 2} {
				for _, m := range w.members {
					w.run(m.Host, fmt.Sprintf("sysctl -q -w net.ipv4.conf.all.rp_filter=%d", filter))
				}
				w.scenario(fmt.Sprintf("rp_filter %d", filter), func() { w.forgeSources(attackers, true) })
			}
			w.answered()
			w.clean(10)
		})
	}
}

// forgeSources has each of some pods send with the addresses of all bound pods. Each is dropped as spoofed where it is sent, if the
// victim is bound there: on its own node, and on the one that has the egress IPs. Another node sends what comes from its address as
// its own.
func (w *steeredWorld) forgeSources(attackers []*lab.Host, exactly bool) {
	w.Helper()
	for _, to := range at(w.Far(), 8079) { // nobody serves there
		family := familyOf(to.Addr())
		before, toldBefore, want := w.spoofed(), w.spoofedTold(family), map[*lab.Host]int{}
		for _, attacker := range attackers {
			for _, victim := range w.pods {
				w.must(attacker.Do(func() error { return sendRaw(like(to.Addr(), victim), to) }))
				if on := attacker.Node; on == w.holder.Host || on == victim.Node {
					want[on]++
				}
			}
		}
		w.eventually(func() error {
			now, told := w.spoofed(), w.spoofedTold(family)
			for node, packets := range want {
				if dropped := now[node] - before[node]; dropped < packets || exactly && dropped > packets {
					return fmt.Errorf("of %d packets %s has dropped %d as spoofed: %s", packets, node.Name, dropped, dropsTold(w.allDrops()))
				}
				if dropped := told[node] - toldBefore[node]; dropped < float64(packets) {
					return fmt.Errorf("%s has dropped %d packets of %s as spoofed, and the metric has %g", node.Name, packets, family, dropped)
				}
			}
			return nil
		})
		w.haveLeft(attackers, to.Addr())
		for source, packets := range w.wire.Sources("udp", to) {
			if slices.Contains(addrs(w.egressIPs), source) {
				w.Errorf("%d packets have left as %s", packets, source)
			}
		}
	}
}

// spoofed is what each node has dropped of packets that had another pod's address.
func (w *steeredWorld) spoofed() map[*lab.Host]int {
	w.Helper()
	spoofed := map[*lab.Host]int{}
	for _, m := range w.members {
		spoofed[m.Host] = m.drops(w.world)["spoofed"]
	}
	return spoofed
}

// spoofedTold is the same of one IP family as each node's metric has it.
func (w *steeredWorld) spoofedTold(family v1.IPFamily) map[*lab.Host]float64 {
	w.Helper()
	told := map[*lab.Host]float64{}
	for _, m := range w.members {
		told[m.Host] = w.metric(m, fmt.Sprintf("egress_snat_dropped_packets_total{ip_family=%q,reason=\"spoofed\"}", family))
	}
	return told
}

// haveLeft waits until all has left that some pods have sent to an address before: a packet of each from its own address comes
// behind it.
func (w *steeredWorld) haveLeft(pods []*lab.Host, addr netip.Addr) {
	w.Helper()
	to := netip.AddrPortFrom(addr, 8078) // nobody serves there, either
	left := func() (packets int) {
		for _, n := range w.wire.Sources("udp", to) {
			packets += n
		}
		return packets
	}
	before := left()
	for _, pod := range pods {
		w.must(pod.Do(func() error { return sendRaw(like(to.Addr(), pod), to) }))
	}
	w.eventually(func() error {
		if n := left() - before; n < len(pods) {
			return fmt.Errorf("of %d pods' own packets %d have left", len(pods), n)
		}
		return nil
	})
}

// sendRaw sends a datagram from any address by a raw socket.
func sendRaw(from netip.Addr, to netip.AddrPort) error {
	socket, err := rawSocket(to.Addr())
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	return unix.Sendto(socket, lab.Datagram(netip.AddrPortFrom(from, 7777), to, "x"), 0, lab.SocketAddress(netip.AddrPortFrom(to.Addr(), 0), 0))
}

// rawSocket opens a socket for whole IP packets of an address's family.
func rawSocket(to netip.Addr) (int, error) {
	domain := map[bool]int{true: unix.AF_INET, false: unix.AF_INET6}[to.Is4()]
	return unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
}

// TestAttack_AddressOfAnotherPod: a pod that may change its addresses (CAP_NET_ADMIN) takes that of a bound pod, beside its own and
// in its place. It does not leave from the egress IP, the node says who it is, and a restart of the node's process changes nothing.
func TestAttack_AddressOfAnotherPod(t *testing.T) {
	ways := []struct {
		name string
		settings
		steal []theft
	}{
		{"bridge", settings{}, bridgeThefts},
		{"ptp", settings{nftables: true, ptp: true}, pointToPointThefts},
	}
	for _, way := range ways[:by(t, 1, len(ways), len(ways))] {
		t.Run(way.name, func(t *testing.T) {
			w := newSteeredWorld(t, way.settings, nil)
			attacker := w.runPod("shop", "attacker", w.members[0], nil)
			w.atRest()
			for _, steal := range way.steal {
				if wanted(t) >= steal.share {
					w.scenario(steal.name, func() { w.stealAddress(attacker, w.pods[0], steal) })
				}
			}
			// On a bridge, both pods answer for the address, and the node remembers the one that was faster.
			w.run(attacker, "ip link set eth0 down")
			w.run(w.members[0].Host, "ip neigh flush all")
			w.answered()
		})
	}
}

// theft is how a pod takes the address of another one, %s.
type theft struct {
	name     string
	share    share // of the tests
	v6       bool
	commands []string
}

var bridgeThefts = []theft{
	{"IPv4 beside its own", usual, false, []string{"ip addr add %s/32 dev eth0"}},
	{"IPv4 in its place", inCI, false, []string{"ip -4 addr flush dev eth0", "ip addr add %s/24 dev eth0", "ip route replace default via 10.128.0.1"}},
	{"IPv6 beside its own", inCI, true, []string{"ip addr add %s/128 dev eth0 nodad"}},
	{"IPv6 in its place", usual, true, []string{"ip -6 addr flush dev eth0 scope global", "ip addr add %s/64 dev eth0 nodad", "ip route replace default via fd00:10:128::1"}},
}

var pointToPointThefts = []theft{
	{"IPv4 beside its own", usual, false, []string{"ip addr add %s/32 dev eth0"}},
	{"IPv4 in its place", usual, false, []string{
		"ip -4 addr flush dev eth0", "ip addr add %s/32 dev eth0", "ip route replace 10.128.0.1/32 dev eth0", "ip route replace default via 10.128.0.1",
	}},
	{"IPv6 beside its own", usual, true, []string{"ip addr add %s/128 dev eth0 nodad"}},
	{"IPv6 in its place", usual, true, []string{
		"ip -6 addr flush dev eth0 scope global", "ip addr add %s/128 dev eth0 nodad",
		"ip route replace fd00:10:128::1/128 dev eth0", "ip route replace default via fd00:10:128::1",
	}},
}

// stealAddress has a pod on the first node take the address of a bound one there, and send with it.
func (w *steeredWorld) stealAddress(attacker, victim *lab.Host, steal theft) {
	w.Helper()
	node, address := w.members[0], victim.V4
	if steal.v6 {
		address = victim.V6
	}
	for _, command := range steal.commands {
		w.run(attacker, strings.ReplaceAll(command, "%s", address.String()))
	}
	w.forgeSources([]*lab.Host{attacker}, false)
	w.eventually(func() error {
		out, errs, _ := node.Openshift("egress", "verify", "--socket="+node.Socket())
		if !strings.Contains(out, address.String()+" is behind") {
			return fmt.Errorf("verify does not tell of it: %s%s", out, errs)
		}
		return nil
	})
	w.eventTold("PodAddressClaimedTwice", address.String())
	node.Stop()
	node.AnewReady()
	w.forgeSources([]*lab.Host{attacker}, false)
}
