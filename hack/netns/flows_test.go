package netns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/cluster"
)

// TestDeletedFlows_EndOnBothSides: with each change of a pod's identity its connections are reset on both sides, whoever
// of the two sends, and none goes on from the other side on. No packet of theirs leaves under the former address
// but the resets themselves, and what asks for one. All other connections of the pod and with it stay.
func TestDeletedFlows_EndOnBothSides(t *testing.T) {
	for _, way := range ways {
		for name, masquerade := range map[string]bool{"seen as itself": false, "masqueraded": true} {
			t.Run(way.name+", "+name, func(t *testing.T) {
				t.Parallel()
				n := newNode(t, lab.Config{IPv6: true, Pods: 2, Masquerade: masquerade, Backend: way.iptables})
				n.Backend, n.Arguments = way.backend, way.arguments
				n.Configure("")
				n.endsFlows(masquerade)
			})
		}
	}
}

func (n *node) endsFlows(masquerade bool) {
	pod := n.Pod(1)
	unbound := pair{pod.V4, pod.V6}
	if masquerade {
		unbound = pair{n.Node().V4, n.Node().V6}
	}
	// Another Service leads to the same pod, but binds nobody.
	inbound := service("inbound", dbIPs, []string{inboundV4.String(), inboundV6.String()},
		v1.ServicePort{Name: "tcp", Port: 80, NodePort: 30080, Protocol: v1.ProtocolTCP})
	inbound.Spec.Type = v1.ServiceTypeNodePort
	inbound.Annotations = map[string]string{cluster.Annotation: "false"}
	n.putService("shop", 9, inbound, pod.V4, pod.V6)
	bind := func(to pair) func() {
		return func() {
			n.putService("shop", 8, service("web", webIPs, []string{to.v4.String(), to.v6.String()}, allProtocols...), pod.V4, pod.V6)
		}
	}
	n.serve(n.Outside(), whoamiPort, "tcp4", "tcp6", "udp4", "udp6")
	for _, pod := range []*lab.Host{pod, n.Pod(2)} {
		n.serve(pod, 80, "tcp4", "tcp6", "udp4", "udp6")
	}
	// The kernel tells a peer of one UDP flow in a second, no matter who ends it.
	if _, err := n.Node().Run(n.Context(), "sysctl", "-w", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0"); err != nil {
		n.Fatal(err)
	}
	n.start()
	n.Ready()
	kept := n.rightFlows()
	leaves := capture(n.T, n.Outside())
	first, second := pair{egressV4, egressV6}, pair{anotherV4, anotherV6}
	for i, change := range []struct {
		what   string
		do     func()
		former pair
		now    pair
	}{
		{"bound", bind(first), unbound, first},
		{"bound to another address", bind(second), first, second},
		{"not bound any more", func() { n.removeService("shop", "web") }, second, unbound},
	} {
		talks := n.talks(9000+100*i, change.former)
		start := time.Now()
		change.do()
		n.areTold(talks, change.what)
		told, deleted := time.Since(start), n.deletedAfter(start)
		n.Logf("%s: flows deleted after %s and %s, all sides told after %s", change.what, deleted["IPv4"].Sub(start), deleted["IPv6"].Sub(start), told)
		n.leaveAs(leaves, talks, change.what, change.now, deleted)
		kept.live(n, change.what)
	}
	n.outlivesRestart(bind(first))
}

// outlivesRestart: what is right stays although all flows are judged anew, and the clean-up leaves nothing.
func (n *node) outlivesRestart(bind func()) {
	n.Helper()
	bind()
	n.asks("udp4", n.Pod(1), 4444, egressV4)
	n.asks("udp6", n.Pod(1), 4444, egressV6)
	right := n.rightFlows()
	for _, network := range []string{"tcp4", "tcp6", "udp4", "udp6"} {
		flow, err := n.Pod(1).Dial(n.Context(), network, n.outside(network), 0)
		if err != nil {
			n.Fatal(err)
		}
		right["of the bound pod, "+network] = flow
	}
	n.Stop()
	n.restart()
	right.live(n, "restarted")
	n.Stop()
	if _, stderr, status := n.Openshift("start", "node", "--config="+n.Config(), "--cleanup"); status != 0 {
		n.Fatalf("--cleanup: status %d: %s", status, stderr)
	}
	if tables, err := n.Node().Run(n.Context(), "nft", "list", "tables"); err != nil || strings.Contains(tables, "openshift") {
		n.Errorf("after --cleanup there are tables left: %v\n%s", err, tables)
	}
}

var (
	inboundV4, inboundV6 = netip.MustParseAddr("203.0.113.77"), netip.MustParseAddr("2001:db8:113::77")
	podSide, farSide     = "the pod's side", "the far side"
)

// pair is an address of each family.
type pair struct{ v4, v6 netip.Addr }

// flows are kept connections, by what they are.
type flows map[string]*lab.Flow

// rightFlows opens those that no change of pod-1's identity is about, or that have the right one.
func (n *node) rightFlows() flows {
	n.Helper()
	opened := flows{}
	for _, family := range []string{"4", "6"} {
		tcp, udp := "tcp"+family, "udp"+family
		at := func(ip netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(ip, port) }
		pod1, pod2 := of(tcp, n.Pod(1).V4, n.Pod(1).V6), of(tcp, n.Pod(2).V4, n.Pod(2).V6)
		for _, f := range []struct {
			what, network string
			from          *lab.Host
			to            netip.AddrPort
		}{
			{"to the pod", tcp, n.Outside(), at(pod1, 80)},
			{"to the pod, UDP", udp, n.Outside(), at(pod1, 80)},
			{"to the external IP", tcp, n.Outside(), at(of(tcp, inboundV4, inboundV6), 80)},
			{"to the node port", tcp, n.Outside(), at(n.nodeIP(tcp), 30080)},
			{"of an unbound pod", tcp, n.Pod(2), n.outside(tcp)},
			{"from another pod", tcp, n.Pod(2), at(pod1, 80)},
			{"from the pod to another", tcp, n.Pod(1), at(pod2, 80)},
		} {
			n.Eventually(soon, func() (err error) {
				opened[f.what+", IPv"+family], err = f.from.Dial(n.Context(), f.network, f.to, 0)
				return err
			})
		}
	}
	return opened
}

// live fails the test for flows that have ended.
func (f flows) live(n *node, when string) {
	n.Helper()
	for what, flow := range f {
		if _, err := flow.Ask(n.Context()); err != nil {
			n.Errorf("%s: the flow %s has ended: %v", when, what, err)
		}
	}
}

// talk is a flow of pod-1 to the outside host, over which one of them sends, or both, or nobody.
type talk struct {
	what, network      string
	port               int // of the outside host
	podSends, farSends bool

	mu    sync.Mutex
	ended map[string]error // by side
}

// talks opens flows of all kinds, from a port on, which are seen as a certain address.
func (n *node) talks(port int, as pair) []*talk {
	n.Helper()
	var all []*talk
	for _, network := range []string{"tcp4", "tcp6", "udp4", "udp6"} {
		for _, tk := range []*talk{
			{what: "upload", podSends: true},
			{what: "download", farSends: true},
			{what: "both ways", podSends: true, farSends: true},
			{what: "silence"},
		} {
			tk.network, tk.port, tk.ended = network, port, map[string]error{}
			port++
			pod, far := n.open(tk, of(network, as.v4, as.v6))
			tk.speak(n.Context(), podSide, pod, tk.podSends)
			tk.speak(n.Context(), farSide, far, tk.farSends)
			all = append(all, tk)
		}
	}
	return all
}

// open opens a talk, of which both ends are connected.
func (n *node) open(tk *talk, as netip.Addr) (pod, far net.Conn) {
	n.Helper()
	to := netip.AddrPortFrom(of(tk.network, n.Outside().V4, n.Outside().V6), uint16(tk.port))
	if strings.HasPrefix(tk.network, "udp") {
		return n.openUDP(tk, to, as)
	}
	l, err := n.Outside().Listen(n.Context(), tk.network, fmt.Sprintf(":%d", tk.port))
	if err != nil {
		n.Fatal(err)
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	if pod, err = n.Pod(1).DialContext(n.Context(), tk.network, to.String()); err != nil {
		n.Fatal(err)
	}
	if far = <-accepted; far == nil {
		n.Fatalf("port %d: nothing was accepted", tk.port)
	}
	n.Cleanup(func() { pod.Close(); far.Close() })
	for _, c := range []net.Conn{pod, far} { // whoever is silent learns of the end by nothing but what the node does
		if err := c.(*net.TCPConn).SetKeepAlive(false); err != nil {
			n.Fatal(err)
		}
	}
	if seen := netip.MustParseAddrPort(far.RemoteAddr().String()).Addr(); seen != as {
		n.Fatalf("%s, %s: the pod is seen as %s, want %s", tk.what, tk.network, seen, as)
	}
	return pod, far
}

// openUDP connects the far side to whom it sees.
func (n *node) openUDP(tk *talk, to netip.AddrPort, as netip.Addr) (pod, far net.Conn) {
	n.Helper()
	pod, err := n.Pod(1).DialContext(n.Context(), tk.network, to.String())
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { pod.Close() })
	err = n.Outside().Do(func() error {
		l, err := net.ListenUDP(tk.network, net.UDPAddrFromAddrPort(to))
		if err != nil {
			return err
		}
		defer l.Close()
		if _, err := pod.Write([]byte("hello")); err != nil {
			return err
		}
		if err := l.SetReadDeadline(time.Now().Add(soon)); err != nil {
			return err
		}
		_, peer, err := l.ReadFromUDPAddrPort(make([]byte, 100))
		if err != nil {
			return err
		}
		if peer.Addr().Unmap() != as {
			return fmt.Errorf("%s, %s: the pod is seen as %s, want %s", tk.what, tk.network, peer, as)
		}
		l.Close()
		// A program that another test starts just now has the socket, too, until it runs.
		for start := time.Now(); time.Since(start) < soon; time.Sleep(time.Millisecond) {
			far, err = net.DialUDP(tk.network, net.UDPAddrFromAddrPort(to), net.UDPAddrFromAddrPort(peer))
			if !errors.Is(err, syscall.EADDRINUSE) {
				break
			}
		}
		return err
	})
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { far.Close() })
	if _, err := far.Write([]byte("hello")); err != nil {
		n.Fatal(err)
	}
	return pod, far
}

// speak notes when one side is told that the talk has ended, and has it send until then, if it sends.
func (tk *talk) speak(ctx context.Context, side string, c net.Conn, sends bool) {
	if sends {
		go func() {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				_, err := c.Write([]byte("a part of it"))
				if tk.ends(side, err) {
					return
				}
				<-tick.C
			}
		}()
	}
	go func() {
		for buffer := make([]byte, 1000); ; {
			_, err := c.Read(buffer)
			if tk.ends(side, err) {
				return
			}
		}
	}()
}

// ends notes an error, and tells whether the side ends with it. The kernel tells of a reset once, to
// who writes or to who reads: to a reader who comes second it is the end of the stream. Over UDP the pod goes on all the same.
func (tk *talk) ends(side string, err error) bool {
	tk.mu.Lock()
	defer tk.mu.Unlock()
	writes := map[string]bool{podSide: tk.podSends, farSide: tk.farSends}[side]
	told := err != nil && (!writes || !errors.Is(err, io.EOF))
	if tk.ended[side] == nil && told {
		tk.ended[side] = err
	}
	return err != nil && (side == farSide || !errors.Is(err, syscall.ECONNREFUSED))
}

// sides are those that have to be told that the talk has ended: of UDP whoever cannot go on.
func (tk *talk) sides() []string {
	switch {
	case strings.HasPrefix(tk.network, "tcp"):
		return []string{podSide, farSide}
	case tk.farSends:
		return []string{farSide}
	}
	return nil
}

// told returns why one side's talk has ended; nil if it has not.
func (tk *talk) told(side string) error {
	tk.mu.Lock()
	defer tk.mu.Unlock()
	return tk.ended[side]
}

// areTold waits until all sides know that the talks have ended.
func (n *node) areTold(talks []*talk, when string) {
	n.Helper()
	for _, tk := range talks {
		for _, side := range tk.sides() {
			n.Eventually(soon, func() error {
				if tk.told(side) == nil {
					return fmt.Errorf("%s: %s, %s: %s does not know that it has ended", when, tk.what, tk.network, side)
				}
				return nil
			})
			if err := tk.told(side); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.EPIPE) {
				n.Errorf("%s: %s, %s: %s ended by %v, want a reset", when, tk.what, tk.network, side, err)
			}
		}
	}
}

var deletedLine = regexp.MustCompile(`(?m)^I(\d{4} \d\d:\d\d:\d\d\.\d{6}).*"Reset connections that used the wrong source address".*ipFamily="(IPv[46])"`)

// deletedAfter returns when flows of each family had been deleted, since start.
func (n *node) deletedAfter(start time.Time) map[string]time.Time {
	n.Helper()
	deleted := map[string]time.Time{}
	n.Eventually(soon, func() error {
		for _, match := range deletedLine.FindAllStringSubmatch(n.Printed.String(), -1) {
			at, err := time.ParseInLocation("20060102 15:04:05.000000", fmt.Sprint(start.Year())+match[1], time.Local)
			if err != nil {
				return err
			}
			if at.After(start) {
				deleted[match[2]] = at
			}
		}
		if len(deleted) < 2 {
			return fmt.Errorf("the log tells of deleted flows in these families only: %v", deleted)
		}
		return nil
	})
	return deleted
}

// leaveAs judges what has left since the flows were deleted: UDP goes on under the address now, and nothing under any other, but
// for packets of TCP without data that end a connection, of which each has few.
func (n *node) leaveAs(leaves *captured, talks []*talk, when string, now pair, deleted map[string]time.Time) {
	n.Helper()
	for _, tk := range talks {
		right := of(tk.network, now.v4, now.v6)
		after := deleted["IPv"+tk.network[3:]]
		goesOn := tk.podSends && strings.HasPrefix(tk.network, "udp")
		if goesOn {
			n.Eventually(soon, func() error {
				if !slices.ContainsFunc(leaves.to(tk.port, after), func(p packet) bool { return p.source == right }) {
					return fmt.Errorf("%s: %s, %s: the pod's packets do not leave as %s", when, tk.what, tk.network, right)
				}
				return nil
			})
		}
		ending := 0
		for _, p := range leaves.to(tk.port, after) {
			switch {
			case p.source == right:
			case p.ending():
				ending++
			default:
				n.Errorf("%s: %s, %s: a packet has left as %s, %s after the flows were deleted: %+v", when, tk.what, tk.network, p.source, p.at.Sub(after), p)
			}
		}
		if ending > 20 {
			n.Errorf("%s: %s, %s: it took %d packets to end", when, tk.what, tk.network, ending)
		}
	}
}

// packet is one that has arrived at the outside host.
type packet struct {
	at     time.Time
	source netip.Addr
	port   int // at which it has arrived
	flags  byte
	data   int
	tcp    bool
}

// ending tells that the node has sent the packet itself, to end a connection: RST, or SYN and ACK.
func (p packet) ending() bool {
	const syn, rst, ack = 0x02, 0x04, 0x10
	return p.tcp && p.data == 0 && (p.flags&rst != 0 || p.flags&(syn|ack) == syn|ack)
}

// captured are packets of TCP and UDP.
type captured struct {
	mu      sync.Mutex
	packets []packet
}

// to returns those that arrived at a port after some time.
func (c *captured) to(port int, after time.Time) (packets []packet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.packets {
		if p.port == port && p.at.After(after) {
			packets = append(packets, p)
		}
	}
	return packets
}

// capture takes what arrives at a host for ports from 9000 on, until the test ends.
func capture(t *testing.T, host *lab.Host) *captured {
	t.Helper()
	const protocols = 0x0300 // ETH_P_ALL, in network byte order
	fd := -1
	err := host.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, protocols)
		return err
	})
	if err == nil {
		err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}))
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &captured{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for t.Context().Err() == nil {
			if err := c.receive(fd); err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
				t.Errorf("capture: %v", err)
				return
			}
		}
	}()
	t.Cleanup(func() {
		<-done
		_ = unix.Close(fd)
	})
	return c
}

func (c *captured) receive(fd int) error {
	buffer, control := make([]byte, 200), make([]byte, 200)
	n, controlled, _, from, err := unix.Recvmsg(fd, buffer, control, 0)
	if err != nil {
		return os.NewSyscallError("recvmsg", err)
	}
	link, ok := from.(*unix.SockaddrLinklayer)
	if !ok || link.Pkttype == unix.PACKET_OUTGOING {
		return nil
	}
	messages, err := unix.ParseSocketControlMessage(control[:controlled])
	if err != nil {
		return err
	}
	p, ok := parsePacket(buffer[:n])
	if !ok || p.port < 9000 || p.port >= 10000 {
		return nil
	}
	for _, m := range messages {
		if m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			p.at = time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.packets = append(c.packets, p)
	return nil
}

// parsePacket reads a packet that has no IP options.
func parsePacket(b []byte) (p packet, ok bool) {
	var protocol byte
	var length int
	switch {
	case len(b) >= 40 && b[0] == 0x45:
		p.source, protocol, length = netip.AddrFrom4([4]byte(b[12:16])), b[9], int(binary.BigEndian.Uint16(b[2:]))-20
		b = b[20:]
	case len(b) >= 60 && b[0]>>4 == 6:
		p.source, protocol, length = netip.AddrFrom16([16]byte(b[8:24])), b[6], int(binary.BigEndian.Uint16(b[4:]))
		b = b[40:]
	default:
		return packet{}, false
	}
	p.port, p.tcp = int(binary.BigEndian.Uint16(b[2:])), protocol == unix.IPPROTO_TCP
	if p.tcp {
		p.flags, p.data = b[13], length-int(b[12]>>4)*4
	}
	return p, p.tcp || protocol == unix.IPPROTO_UDP
}

// TestWho_ByTheTrackedFlow: the address and port that the other side sees name the pod, also where pods have no ports of their own.
func TestWho_ByTheTrackedFlow(t *testing.T) {
	everyWay(t, func(n *node) {
		n.putWeb([]string{egressV4.String(), egressV6.String()}, allProtocols...)
		n.start()
		n.Ready()
		for _, network := range []string{"tcp4", "tcp6"} {
			seen := n.seenByOutside(network)
			if seen.Addr() != of(network, egressV4, egressV6) {
				n.Fatalf("%s: the other side sees %s", network, seen)
			}
			out, errs, status := n.Openshift("egress", "who", "--socket="+n.Socket(), seen.String(), "--protocol=tcp")
			pod := of(network, n.Pod(1).V4, n.Pod(1).V6).String()
			if status != 0 || !strings.HasPrefix(out, "no pod has this port alone: 1 candidate for "+seen.String()) || !strings.Contains(out, pod) || !strings.Contains(out, "tcp "+n.outside(network).String()) {
				n.Errorf("%s: status %d, %s\n%s", network, status, errs, out)
			}
			for _, args := range [][]string{{"--protocol=udp"}, {"--at=2020-01-01T00:00:00Z"}} {
				out, errs, status = n.Openshift(append([]string{"egress", "who", "--socket=" + n.Socket(), seen.String()}, args...)...)
				if status != 1 || out != "" || !strings.Contains(errs, "egress-snat-port-blocks") {
					n.Errorf("%s %s: status %d, %s\n%s", network, args, status, errs, out)
				}
			}
		}
	})
}

// seenByOutside opens a connection of pod-1 to the outside, for as long as the test takes, and returns where it comes from there.
func (n *node) seenByOutside(network string) netip.AddrPort {
	n.Helper()
	server, err := n.Outside().Listen(n.Context(), network, n.outside(network).String())
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = server.Close() })
	client, err := n.Pod(1).DialContext(n.Context(), network, n.outside(network).String())
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = client.Close() })
	accepted, err := server.Accept()
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = accepted.Close() })
	return netip.MustParseAddrPort(accepted.RemoteAddr().String())
}
