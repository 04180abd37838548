package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
)

// TestAttack_FlowsWithoutEnd: a pod sends to tens of thousands of ports that nobody answers, while its Service gets another external IP
// again and again, so that the node ends all of these flows each time. It does not remember them, and the pod leaves as it should.
func TestAttack_FlowsWithoutEnd(t *testing.T) {
	const flows, rounds = 20_000, 3
	w := newWorld(t, settings{nodes: 1})
	pod, node := w.shop(webIPs...)[0], w.members[0].Host
	_, err := node.Run(t.Context(), "sysctl", "-q", "-w", "net.netfilter.nf_conntrack_udp_timeout=600") // the node ends them, not their timeout
	w.must(err)
	begun := flows * len(w.outside())
	var ips []string
	for round := range rounds {
		before := w.deleted(w.members[0])
		for _, to := range w.outside() {
			w.spray(pod, to.Addr(), flows)
		}
		w.eventually(func() error {
			tracked, err := w.tracked(node)
			if err == nil && tracked < begun {
				err = fmt.Errorf("the node tracks %d flows, want %d and more", tracked, begun)
			}
			return err
		})
		ips = w.ips(20 + round)
		w.editService("shop", "web", func(s *v1.Service) { s.Spec.ExternalIPs = ips })
		w.bound("shop", "web", 1)
		w.eventually(func() error {
			if ended := w.deleted(w.members[0]) - before; ended < float64(begun)*3/4 {
				return fmt.Errorf("round %d: the node has ended %g flows, want about %d", round, ended, begun)
			}
			return nil
		})
		if remembered := w.remembered(node); remembered > flows/10 {
			t.Errorf("round %d: the node remembers %d flows of %d that nobody has answered", round, remembered, (round+1)*begun)
		}
	}
	w.leaves("tcp", pod, ips...)
	w.leaves("udp", pod, ips...)
}

// deleted returns how many flows a node's process has deleted.
func (w *world) deleted(m *member) float64 {
	w.Helper()
	return w.metric(m, "egress_snat_conntrack_deletions_total")
}

// spray has a host send a datagram to each of so many ports.
func (w *world) spray(from *lab.Host, to netip.Addr, ports int) {
	w.Helper()
	var c net.PacketConn
	w.must(from.Do(func() (err error) {
		var config net.ListenConfig
		c, err = config.ListenPacket(w.Context(), "udp", netip.AddrPortFrom(like(to, from), 0).String())
		return err
	}))
	defer func() { _ = c.Close() }()
	for i := range ports {
		_, err := c.WriteTo([]byte("x"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, uint16(20_000+i))))
		w.must(err)
	}
}

// tracked returns how many flows a node tracks.
func (w *world) tracked(node *lab.Host) (int, error) {
	text, err := node.Run(w.Context(), "cat", "/proc/sys/net/netfilter/nf_conntrack_count")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(text))
}

// remembered returns how many flows a node keeps from being taken up again.
func (w *world) remembered(node *lab.Host) (elements int) {
	w.Helper()
	for _, family := range []string{"ip", "ip6"} {
		table, err := node.Run(w.Context(), "nft", "list", "table", family, "openshift-egress-ended")
		if err != nil && !strings.Contains(table+err.Error(), "No such file or directory") {
			w.Fatal(err)
		}
		elements += strings.Count(table, " expires ")
	}
	return elements
}

// TestAttack_ForgedFarSides: the holder of an egress IP fails, and a host that knows all connections sends packets into them under
// the far side's address, with numbers of chance. None of them ends for that.
func TestAttack_ForgedFarSides(t *testing.T) {
	lasts := by(t, 3*time.Second, 10*time.Second, 10*time.Second) // the node looks for clashes after half a second, after 2 s and after 5 s
	w := newPoolWorld(t, 3)
	for _, ip := range w.egressIPs[:by(t, 1, 2, 2)] {
		w.complete()
		w.settled()
		holder := w.holderOf(ip, nil)
		c := w.keepConnections(ip, w.podsOff(holder))
		end := w.forgeFarSides(ip, c)
		w.must(w.SetLink(holder.Host, false))
		next := w.holderOf(ip, holder)
		time.Sleep(lasts)
		end()
		for deadline := time.Now().Add(2 * w.longestStall()); c.alive() < len(c.all) && time.Now().Before(deadline); {
			time.Sleep(beat) // what the node had no time for during the attack is sent again
		}
		lost := 0
		for _, one := range c.all {
			if err := one.lives(); err != nil {
				lost++
				t.Logf("%s: %s: %v", ip, one.what, err)
			}
		}
		if lost*20 > len(c.all) { // as without an attack: a node that fails takes some along
			t.Errorf("%s: %d of %d connections have ended", ip, lost, len(c.all))
		}
		if said := "Reset connections whose ports"; strings.Contains(next.Printed.String(), said) {
			t.Errorf("%s: %s has logged %q", ip, next.Name, said)
		}
		c.close()
		w.must(w.SetLink(holder.Host, true))
	}
}

// forgeFarSides has a host send packets in the middle of connections under an egress IP, from their far side's address, until the test
// calls end.
func (w *poolWorld) forgeFarSides(ip string, connections *connections) (end func()) {
	w.Helper()
	egressIP, from := netip.MustParseAddr(ip), w.Control()
	fd := 0
	w.must(from.Do(func() (err error) {
		fd, err = rawSocket(egressIP)
		return err
	}))
	ctx, cancel := context.WithCancel(w.Context())
	ended, sent := make(chan struct{}), 0
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			for _, one := range connections.all {
				farSide := netip.MustParseAddrPort(one.conn.RemoteAddr().String())
				if sendForged(fd, farSide, netip.AddrPortFrom(egressIP, portOf(one.conn))) == nil {
					sent++
				}
			}
			time.Sleep(100 * time.Microsecond)
		}
	}()
	return func() {
		cancel()
		<-ended
		_ = unix.Close(fd)
		w.Logf("%s: %d packets were forged in %d connections", ip, sent, len(connections.all))
		if sent == 0 {
			w.Errorf("%s: no packet could be forged", ip)
		}
	}
}

// sendForged sends an ACK with numbers of chance.
func sendForged(fd int, from, to netip.AddrPort) error {
	const length, ack = 20, 0x10
	segment := binary.BigEndian.AppendUint16(nil, from.Port())
	segment = binary.BigEndian.AppendUint16(segment, to.Port())
	segment = binary.BigEndian.AppendUint32(segment, rand.Uint32())
	segment = binary.BigEndian.AppendUint32(segment, rand.Uint32())
	segment = append(segment, length/4<<4, ack, 4, 0, 0, 0, 0, 0)
	packet := lab.Packet(from.Addr(), to.Addr(), unix.IPPROTO_TCP, segment, 16)
	return unix.Sendto(fd, packet, 0, lab.SocketAddress(netip.AddrPortFrom(to.Addr(), 0), 0))
}
