package steering

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
)

// useFast gives all nodes a fast path, which they have from their next write on. all: for bound pods' packets that leave from the
// pods' own node, too.
func (c *cluster) useFast(all bool) {
	c.Helper()
	if !fastKernel(c) {
		c.Skip("the fast path needs Linux 6.6")
	}
	for _, n := range c.nodes {
		n.inside(func() (err error) {
			n.fast, err = fastpath.Load(klog.Background(), all)
			return err
		})
		path := n.fast
		c.Cleanup(func() { _ = path.Close() }) // the nodes may have gone already
		n.restart(n.ways)
		n.place(c.addr(c.lab.Pod(1)), c.addr(c.lab.Pod(2)))
	}
}

// fastKernel tells whether the kernel is new enough for the fast path. TestFast_OlderKernel has all others.
func fastKernel(t testing.TB) bool {
	t.Helper()
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	return major > 6 || major == 6 && minor >= 6
}

// TestFast_OlderKernel: what the log says where the kernel is too old.
func TestFast_OlderKernel(t *testing.T) {
	if fastKernel(t) {
		t.Skip("this kernel is new enough: hack/kernels has older ones")
	}
	c := newCluster(t, kernel.IPv4, lab.Config{Nodes: 2})
	c.nodes[0].inside(func() error {
		path, err := fastpath.Load(klog.Background(), true)
		if err == nil {
			_ = path.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "Linux 6.6") {
			t.Errorf("error: %v; want one that says which kernel the fast path needs", err)
		}
		return nil
	})
}

// place tells a node's fast path where those of the pods are that run on it.
func (n *node) place(pods ...netip.Addr) { n.placed(n.places(pods...)) }

func (n *node) placed(places map[netip.Addr]int) {
	n.c.Helper()
	n.inside(func() error {
		n.fast.Place(places)
		return nil
	})
}

// places are the interfaces behind which those of the pods are that run on a node.
func (n *node) places(pods ...netip.Addr) map[netip.Addr]int {
	n.c.Helper()
	places := map[netip.Addr]int{}
	for i := range 2 {
		pod := n.c.lab.Pod(i + 1)
		if pod.Node != n.host || !slices.Contains(pods, n.c.addr(pod)) {
			continue
		}
		var at int
		if _, err := fmt.Sscan(n.c.run(pod, "cat /sys/class/net/eth0/iflink"), &at); err != nil {
			n.c.Fatal(err)
		}
		places[n.c.addr(pod)] = at
	}
	return places
}

// counts returns what took the fast path of a node.
func (n *node) counts() fastpath.Count {
	n.c.Helper()
	counts, err := n.fast.Counts()
	if err != nil {
		n.c.Fatal(err)
	}
	return counts[n.c.family]
}

// often returns how often something is tried: some times, and in E2E=all as often as it takes to believe it.
func often(some, all int) int {
	if os.Getenv("E2E") == "all" {
		return all
	}
	return some
}

// fastWay is a way of packets to the holder.
type fastWay struct {
	transport Transport
	family    kernel.Family
	// over is the family of the addresses by which the nodes know each other.
	over kernel.Family
}

// fastWays are those that packets on the fast path can take.
var fastWays = []fastWay{
	{VXLAN, kernel.IPv4, kernel.IPv4}, {VXLAN, kernel.IPv6, kernel.IPv4}, {VXLAN, kernel.IPv4, kernel.IPv6}, {VXLAN, kernel.IPv6, kernel.IPv6},
	{Direct, kernel.IPv4, kernel.IPv4}, {Direct, kernel.IPv6, kernel.IPv6},
}

// on runs test on a cluster whose nodes have a fast path.
func (way fastWay) on(t *testing.T, test func(c *cluster)) {
	t.Run(fmt.Sprintf("%s over %s/%s", way.transport, way.over, way.family), func(t *testing.T) {
		c := newClusterOver(t, way.family, lab.Config{Nodes: 2, Pods: 2, IPv6: true, Masquerade: true}, way.over)
		c.use(way.transport)
		c.useFast(true)
		test(c)
	})
}

// onFastWays is on for each way.
func onFastWays(t *testing.T, test func(c *cluster)) {
	for _, way := range fastWays {
		way.on(t, test)
	}
}

func TestFast_EstablishedFlows(t *testing.T) {
	onFastWays(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp", "udp")
		c.holdsOn(1, c.egressIP)
		c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		for _, offload := range []bool{true, false} { // without, packets look as those of a network's hardware
			c.offload(c.lab.Pod(1), "eth0", offload)
			for _, protocol := range []string{"tcp", "udp"} {
				c.goesOn(protocol)
			}
		}
		for _, n := range c.nodes {
			if s := n.fast.Status(); s.Fault != nil || len(s.Refused) > 0 || len(s.Unusable) > 0 {
				c.Errorf("%s: %+v", n.host.Name, s)
			}
		}
	})
}

// onTunnels is onFastWays for those by which packets are wrapped.
func onTunnels(t *testing.T, test func(c *cluster, over kernel.Family)) {
	for _, way := range fastWays {
		if way.transport == VXLAN {
			way.on(t, func(c *cluster) { test(c, way.over) })
		}
	}
}

// TestFast_WrappedForTheKernel: a holder without a fast path takes what another node's has wrapped, of which its kernel checks the checksums.
func TestFast_WrappedForTheKernel(t *testing.T) {
	onTunnels(t, func(c *cluster, over kernel.Family) {
		c.serve(c.lab.Outside(), "tcp", "udp")
		c.holdsOn(1, c.egressIP)
		c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		c.nodes[1].inside(c.nodes[1].fast.Close)
		c.offload(c.nodes[0].host, "eth0", false)
		for _, offload := range []bool{true, false} {
			c.offload(c.lab.Pod(1), "eth0", offload)
			for _, protocol := range []string{"tcp", "udp"} {
				flow := c.stream(protocol)
				const questions = 10
				before := c.nodes[0].counts().Sent.Packets
				for range questions {
					c.asks(flow, c.egressIP)
				}
				if sent := c.nodes[0].counts().Sent.Packets - before; sent < questions {
					c.Errorf("%s: %d packets took the fast path, of %d", protocol, sent, questions)
				}
			}
			client, server := c.connect()
			c.passes(4<<20, client, server)
		}
		if c.family == kernel.IPv4 {
			c.unsummed(over)
		}
	})
}

// unsummed fails unless datagrams without a checksum arrive. A tunnel between IPv6 addresses has one of its own, which the kernel alone can make
// for such.
func (c *cluster) unsummed(over kernel.Family) {
	c.Helper()
	conn, err := c.lab.Pod(1).DialContext(c.Context(), "udp4", netip.AddrPortFrom(c.outside(), port).String())
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	asks := func() (sent uint64) {
		c.Helper()
		before := c.nodes[0].counts().Sent.Packets
		_ = conn.SetDeadline(time.Now().Add(lab.Stretch(5 * time.Second)))
		_, err := conn.Write([]byte("who?"))
		if err == nil {
			_, err = conn.Read(make([]byte, 64))
		}
		if err != nil {
			c.Error(err)
		}
		return c.nodes[0].counts().Sent.Packets - before
	}
	asks()
	time.Sleep(streamAfter)
	asks()
	asks() // the one of this minute that takes the slow path
	if sent := asks(); sent != 1 {
		c.Errorf("%d datagrams took the fast path, want 1", sent)
	}
	raw, err := conn.(*net.UDPConn).SyscallConn()
	if err != nil {
		c.Fatal(err)
	}
	if err := errors.Join(raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1) }), err); err != nil {
		c.Fatal(err)
	}
	if sent := asks(); sent > 0 == (over == kernel.IPv6) {
		c.Errorf("%d datagrams without a checksum took the fast path", sent)
	}
}

// TestFast_ForgedWrapping: in an established flow, too, a holder takes from its tunnel what is from a node and says so.
func TestFast_ForgedWrapping(t *testing.T) {
	onTunnels(t, func(c *cluster, over kernel.Family) {
		c.serve(c.lab.Outside(), "udp")
		c.holdsOn(1, c.egressIP)
		c.steer([]kernel.Binding{c.bind(1, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		const podPort = 9000
		flow, err := c.lab.Pod(1).Dial(c.Context(), c.network("udp"), netip.AddrPortFrom(c.outside(), port), podPort)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(streamAfter)
		c.asks(flow, c.egressIP)
		home, holder, stranger := c.nodes[0], c.nodes[1], c.lab.Outside().V4
		if over == kernel.IPv6 {
			stranger = c.lab.Outside().V6
		}
		receiver, sender := HardwareAddrOf(holder.ip), HardwareAddrOf(home.ip)
		for _, forged := range []struct {
			what    string
			from    netip.Addr
			network uint32
			sender  net.HardwareAddr
			left    uint64
		}{
			{"as its node sends it", home.ip, vni, sender[:], 2},
			{"from somebody else", stranger, vni, sender[:], 1},
			{"as another node's", home.ip, vni, receiver[:], 1},
			{"of another network", home.ip, vni + 1, sender[:], 1},
		} {
			if forged.from == stranger && c.family != over {
				continue // the table of the other family keeps it from the kernel's tunnel, and is not there
			}
			before := holder.counts().Left.Packets
			payload := lab.Wrapped(forged.network, receiver[:], forged.sender, netip.AddrPortFrom(c.addr(c.lab.Pod(1)), podPort), netip.AddrPortFrom(c.outside(), port), "who?")
			if err := c.lab.Outside().Do(func() error {
				return c.lab.Outside().SendUDPFrom(netip.AddrPortFrom(forged.from, 40_000), netip.AddrPortFrom(holder.ip, tunnelPort), payload)
			}); err != nil {
				t.Fatal(err)
			}
			c.asks(flow, c.egressIP) // it comes behind the other one
			if left := holder.counts().Left.Packets - before; left != forged.left {
				c.Errorf("%s: with one of the pod's %d packets were taken, want %d", forged.what, left, forged.left)
			}
		}
	})
}

// goesOn fails unless packets of an established flow of the first pod and their answers take the fast path on both nodes.
func (c *cluster) goesOn(protocol string) {
	c.Helper()
	flow := c.stream(protocol)
	source, holder := c.nodes[0], c.nodes[1]
	sent, left := source.counts().Sent.Packets, holder.counts().Left.Packets
	answered, delivered := holder.counts().Answers.Packets, source.counts().Answers.Packets
	const questions = 10
	for range questions {
		c.asks(flow, c.egressIP)
	}
	sent, left = source.counts().Sent.Packets-sent, holder.counts().Left.Packets-left
	if sent < questions || left < questions {
		c.Errorf("%s: %d packets took the fast path to the holder, and %d from there, of %d", protocol, sent, left, questions)
	}
	answered, delivered = holder.counts().Answers.Packets-answered, source.counts().Answers.Packets-delivered
	if answered < questions || delivered < questions {
		c.Errorf("%s: %d answers took the fast path to the pod's node, and %d from there, of %d", protocol, answered, delivered, questions)
	}
}

// goesSlow fails if a packet of an established flow of the first pod, or an answer, takes the fast path of a node.
func (c *cluster) goesSlow(protocol string) {
	c.Helper()
	c.asksSlow(c.stream(protocol), c.egressIP)
}

// TestFast_SteeredAlone: a path that is not for all takes what goes to other nodes and its answers, and not what bound pods send that leaves from
// their own node, whose answers have the egress IP as well.
func TestFast_SteeredAlone(t *testing.T) {
	onFastWays(t, func(c *cluster) {
		c.useFast(false)
		c.serve(c.lab.Outside(), "tcp")
		c.holdsOn(1, c.egressIP)
		c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(2, kernel.TCP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		c.goesOn("tcp")

		holder := c.nodes[1]
		flow, err := c.lab.Pod(2).Dial(c.Context(), c.network("tcp"), netip.AddrPortFrom(c.outside(), port), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = flow.Close() }()
		before := c.settled()[1]
		for range 5 {
			c.asks(flow, c.egressIP)
		}
		if after := holder.counts(); after != before {
			t.Errorf("packets of the holder's own pod took the fast path: %+v before, %+v after", before, after)
		}
	})
}

// TestFast_UnknownNeighbours: packets take the fast path, too, when the kernel has to ask for the hardware addresses of who is next.
func TestFast_UnknownNeighbours(t *testing.T) {
	onFastWays(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp")
		c.holdsOn(1, c.egressIP)
		c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		flow := c.stream("tcp")
		source, holder := c.nodes[0], c.nodes[1]
		before, left := source.counts().Sent.Packets, holder.counts().Left.Packets
		const questions = 5
		for range questions {
			for _, n := range c.nodes {
				c.run(n.host, "ip neigh flush dev eth0 nud reachable nud stale nud delay nud probe")
			}
			c.asks(flow, c.egressIP)
		}
		if sent, left := source.counts().Sent.Packets-before, holder.counts().Left.Packets-left; sent < questions || left < questions {
			t.Errorf("%d packets took the fast path to the holder, and %d from there, of %d", sent, left, questions)
		}
	})
}

// TestFast_UplinkChanges: packets take the way that there is when the node's address has moved to a bridge, or the MTU is another one, as
// soon as that has been found.
func TestFast_UplinkChanges(t *testing.T) {
	onFastWays(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp")
		c.holdsOn(1, c.egressIP)
		for _, n := range c.nodes {
			n.anew()
		}
		c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		c.goesOn("tcp")
		source := c.nodes[0]
		address := fmt.Sprintf("%s/%d", source.ip, 24)
		if source.ip.Is6() {
			address = fmt.Sprintf("%s/%d nodad", source.ip, 64)
		}
		for _, commands := range [][]string{
			{"ip link set eth0 mtu 1400"},
			{"ip link add br0 type bridge", "ip link set eth0 master br0", "ip link set br0 up", "ip addr del " + address + " dev eth0", "ip addr add " + address + " dev br0"},
		} {
			for _, command := range commands {
				c.run(source.host, "%s", command)
			}
			if source.untouched() || len(source.read()) == 0 {
				c.Errorf("%s: nothing is found", commands)
			}
			source.write(source.desired)
			source.place(c.addr(c.lab.Pod(1)), c.addr(c.lab.Pod(2)))
			if found := source.read(); len(found) > 0 {
				c.Errorf("%s: %q", commands, found)
			}
			c.goesOn("tcp")
		}
	})
}

// TestFast_CountersAddUp: each packet that one node sends another is counted once on the pod's node, by the fast path or by the tunnel's device, and
// once on the holder, where it takes the fast path whichever way it has come.
func TestFast_CountersAddUp(t *testing.T) {
	for _, way := range fastWays {
		if way.transport != VXLAN {
			continue
		}
		way.on(t, func(c *cluster) {
			c.serve(c.lab.Outside(), "udp")
			c.holdsOn(1, c.egressIP)
			c.steer([]kernel.Binding{c.bind(1, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
			source, holder := c.nodes[0], c.nodes[1]
			sent := func() uint64 { return source.counts().Sent.Packets + source.tunnelSent() }
			left := func() uint64 { return holder.counts().Left.Packets }
			flow := c.stream("udp")
			sentBefore, leftBefore := sent(), left()
			const questions = 20
			for i := range questions {
				if i == questions/2 { // what follows takes the slow path, for a while
					source.place()
				}
				c.asks(flow, c.egressIP)
			}
			if sent, left := sent()-sentBefore, left()-leftBefore; sent != questions || left != questions {
				t.Errorf("%d packets were counted as sent and %d as left, want %d of each", sent, left, questions)
			}
		})
	}
}

// tunnelSent returns how many packets the tunnel's device of a node has sent.
func (n *node) tunnelSent() (count uint64) {
	n.c.Helper()
	if _, err := fmt.Sscan(n.c.run(n.host, "cat /sys/class/net/%s/statistics/tx_packets", Device), &count); err != nil {
		n.c.Fatal(err)
	}
	return count
}

// leavesFast fails unless packets of a flow of the first pod leave from its own node by the fast path, seen as want, and the answers take it.
func (c *cluster) leavesFast(flow *lab.Flow, want netip.Addr) {
	c.Helper()
	const questions = 10
	before := c.nodes[0].counts()
	for range questions {
		c.asks(flow, want)
	}
	after := c.nodes[0].counts()
	if own, answers := after.Own.Packets-before.Own.Packets, after.Answers.Packets-before.Answers.Packets; own < questions || answers < questions {
		c.Errorf("%d packets took the fast path, and %d answers, want %d of each", own, answers, questions)
	}
}

// TestFast_Unbound: pods that are not bound share the node's own address. When one is bound, or not any more, its flows leave the fast path,
// also those that conntrack still knows; a bound pod's take it only if all are to.
func TestFast_Unbound(t *testing.T) {
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprintf("all=%v", all), func(t *testing.T) {
			onFastWays(t, func(c *cluster) {
				c.useFast(all)
				c.serve(c.lab.Outside(), "tcp")
				c.holdsOn(0, c.egressIP)
				c.steer(nil, nil)
				shared := c.addr(c.nodes[0].host)
				flow := c.stream("tcp")
				c.asks(flow, shared)
				c.leavesFast(flow, shared)
				c.serve(c.nodes[1].host, "tcp")
				excluded, err := c.lab.Pod(1).Dial(c.Context(), c.network("tcp"), netip.AddrPortFrom(c.addr(c.nodes[1].host), port), 0)
				if err != nil {
					c.Fatal(err)
				}
				c.asksSlow(excluded, shared)

				c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP)}, nil)
				c.leavesSlow(flow)
				flow = c.stream("tcp")
				if c.asks(flow, c.egressIP); all {
					c.leavesFast(flow, c.egressIP)
				} else {
					c.asksSlow(flow, c.egressIP)
				}

				c.steer(nil, nil)
				c.leavesSlow(flow)
			})
		})
	}
}

// TestFast_TwoExits: a masqueraded flow leaves by the interface of its address, or not by the fast path. When its route leads elsewhere the
// kernel ends it, and begins it anew by the other interface.
func TestFast_TwoExits(t *testing.T) {
	onFastWays(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp")
		c.steer(nil, nil)
		node, far, bits := c.nodes[0].host, c.of("198.18.1.1", "2001:db8:18::1"), c.bits(32, 128)
		aside, across := c.of("198.18.0.1", "2001:db8:18:1::1"), c.of("198.18.0.2", "2001:db8:18:1::2")
		c.run(node, "ip link add aside type veth peer name aside netns %s", c.lab.Outside().Name)
		c.run(c.lab.Outside(), "ip addr add %s/%d dev lo", far, bits)
		for at, own := range map[*lab.Host]netip.Addr{node: aside, c.lab.Outside(): across} {
			c.run(at, "ip addr add %s/%d dev aside%s", own, c.bits(30, 64), map[kernel.Family]string{kernel.IPv6: " nodad"}[c.family])
			c.run(at, "ip link set aside up")
		}
		leadsTo := func(next netip.Addr) { c.run(node, "ip route replace %s/%d via %s", far, bits, next) }
		dial := func(want netip.Addr) *lab.Flow {
			c.Helper()
			flow, err := c.lab.Pod(1).Dial(c.Context(), c.network("tcp"), netip.AddrPortFrom(far, port), 0)
			if err != nil {
				c.Fatal(err)
			}
			c.asks(flow, want)
			return flow
		}
		leadsTo(across)
		flow := dial(aside)
		c.leavesSlow(flow) // nobody has looked at the new interface
		c.nodes[0].place(c.addr(c.lab.Pod(1)))
		const questions = 5
		before := c.nodes[0].counts().Own.Packets
		for range questions {
			c.asks(flow, aside)
		}
		if own := c.nodes[0].counts().Own.Packets - before; own < questions {
			c.Errorf("%d packets took the fast path, of %d", own, questions)
		}
		leadsTo(c.outside())
		c.leavesSlow(flow)
		c.leavesFast(dial(c.addr(node)), c.addr(node))
	})
}

// asksSlow fails unless a question of a flow is seen as want and answered, and neither takes a fast path.
func (c *cluster) asksSlow(flow *lab.Flow, want netip.Addr) {
	c.Helper()
	before := c.settled()
	c.asks(flow, want)
	if after := []fastpath.Count{c.nodes[0].counts(), c.nodes[1].counts()}; !slices.Equal(after, before) {
		c.Errorf("packets took the fast path: %+v before, %+v after", before, after)
	}
}

// leavesSlow fails if a packet of a flow of the first pod leaves from its own node by the fast path.
func (c *cluster) leavesSlow(flow *lab.Flow) {
	c.Helper()
	before := c.settled()[0]
	_, _ = flow.Ask(c.Context()) // it may be dropped
	if after := c.nodes[0].counts(); after.Own != before.Own {
		c.Errorf("packets took the fast path: %+v before, %+v after", before, after)
	}
}

// settled returns what has taken the fast path, when nothing has for longer than a kernel waits until it acknowledges an answer.
func (c *cluster) settled() []fastpath.Count {
	for before := []fastpath.Count(nil); ; {
		now := []fastpath.Count{c.nodes[0].counts(), c.nodes[1].counts()}
		if slices.Equal(now, before) {
			return now
		}
		before = now
		time.Sleep(60 * time.Millisecond)
	}
}

// streamAfter is when conntrack takes datagrams for a stream, which is after two seconds of the kernel's own clock.
const streamAfter = 2100 * time.Millisecond

// stream is a flow of the first pod to the outside that conntrack has seen for long enough.
func (c *cluster) stream(protocol string) *lab.Flow {
	c.Helper()
	flow, err := c.lab.Pod(1).Dial(c.Context(), c.network(protocol), netip.AddrPortFrom(c.outside(), port), 0)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = flow.Close() })
	if protocol == "udp" {
		time.Sleep(streamAfter)
		c.asks(flow, c.egressIP)
		c.asks(flow, c.egressIP) // the one of this minute that takes the slow path
	}
	return flow
}

func (c *cluster) asks(flow *lab.Flow, want netip.Addr) {
	c.Helper()
	if seen, err := flow.Ask(c.Context()); err != nil || seen != want {
		c.Errorf("seen as %s (%v), want %s", seen, err, want)
	}
}

// TestFast_LargeStream: what a pod sends in aggregates, over a tunnel and without one, arrives as it was sent, and so do answers.
func TestFast_LargeStream(t *testing.T) {
	onFastWays(t, func(c *cluster) {
		c.holdsOn(1, c.egressIP)
		c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		c.streams(8 << 20)
		c.offload(c.lab.Pod(1), "eth0", false)
		c.streams(8 << 20)
		c.offload(c.lab.Outside(), "lan0", false)
		c.streams(8 << 20)
	})
}

// offload has an interface make segments and checksums, or the kernel before it.
func (c *cluster) offload(at *lab.Host, device string, on bool) {
	c.Helper()
	if err := at.Offload(device, on); err != nil {
		c.Fatal(err)
	}
}

// streams sends so many bytes from the first pod to the outside, and back.
func (c *cluster) streams(size int) {
	c.Helper()
	client, server := c.connect()
	answers := c.nodes[0].counts().Answers.Packets
	c.passes(size, client, server)
	c.passes(size, server, client)
	if answers = c.nodes[0].counts().Answers.Packets - answers; answers < uint64(size/2/1500) {
		c.Errorf("%d answers took the fast path, want at least %d", answers, size/2/1500)
	}
}

// connect returns both ends of a connection of the first pod with the outside.
func (c *cluster) connect() (client, server net.Conn) {
	c.Helper()
	listener, err := c.lab.Outside().Listen(c.Context(), c.network("tcp"), ":5001")
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	client, err = c.lab.Pod(1).DialContext(c.Context(), c.network("tcp"), netip.AddrPortFrom(c.outside(), 5001).String())
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = client.Close() })
	if server, err = listener.Accept(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = server.Close() })
	return client, server
}

// passes sends so many bytes from one end of a connection to the other.
func (c *cluster) passes(size int, from, to net.Conn) {
	c.Helper()
	want, got := make([]byte, size), make([]byte, size)
	_, _ = rand.Read(want)
	go func() { _, _ = from.Write(want) }()
	_ = to.SetReadDeadline(time.Now().Add(lab.Stretch(20 * time.Second)))
	if n, err := io.ReadFull(to, got); err != nil || !bytes.Equal(got, want) {
		c.Errorf("%d bytes arrived as they were sent: %v (%v), want %d", n, bytes.Equal(got, want), err, size)
	}
}

// TestFast_SwitchedOff: connections of which conntrack has not seen all packets go on without the fast path, when the kernel's settings are back.
func TestFast_SwitchedOff(t *testing.T) {
	onFastWays(t, func(c *cluster) {
		c.holdsOn(1, c.egressIP)
		bindings, ways := []kernel.Binding{c.bind(1, kernel.TCP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)}
		c.steer(bindings, ways)
		client, server := c.connect()
		c.passes(8<<20, client, server)
		c.passes(8<<20, server, client)
		for _, n := range c.nodes {
			n.inside(func() error { return errors.Join(n.fast.Close(), PutBackFast(t.Context())) })
			if liberal := strings.TrimSpace(c.run(n.host, "sysctl -n net.netfilter.nf_conntrack_tcp_be_liberal")); liberal != "0" {
				t.Errorf("%s is still liberal: %s", n.host.Name, liberal)
			}
			n.fast = nil
			n.restart(n.ways)
		}
		c.steer(bindings, ways)
		c.passes(1<<20, client, server)
		c.passes(1<<20, server, client)
	})
}

// TestFast_Revoked: when a write has taken a binding away, no packet of its flows leaves that is sent then.
func TestFast_Revoked(t *testing.T) {
	onFastWays(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "udp")
		c.holdsOn(1, c.egressIP)
		binding := c.bind(1, kernel.UDP, c.egressIP)
		c.steer([]kernel.Binding{binding}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		source := c.nodes[0]
		f := c.flood()
		for range often(50, 2500) {
			change := kernel.Change{Removed: []kernel.Binding{binding}, Networks: source.desired.Networks, Steering: source.desired.Steering}
			source.follow(change, change.Removed)
			last := f.sent.Load() + 1        // the one that is under way
			time.Sleep(2 * time.Millisecond) // for what should not leave to arrive
			if got := f.arrived.Load(); got > last {
				t.Fatalf("datagram %d has left, and the last one before the binding went was %d", got, last)
			}
			change.Added, change.Removed = change.Removed, nil
			before := source.counts().Sent.Packets
			source.follow(change, nil)
			c.soon(func() bool {
				return f.arrived.Load() > last && source.counts().Sent.Packets > before
			})
		}
	})
}

// follow changes what a node steers.
func (n *node) follow(change kernel.Change, leaving []kernel.Binding) {
	n.c.Helper()
	n.inside(func() error {
		_, err := n.Update(n.c.Context(), change, leaving)
		return err
	})
}

// soon fails unless something becomes so.
func (c *cluster) soon(so func() bool) {
	c.Helper()
	for deadline := time.Now().Add(lab.Stretch(5 * time.Second)); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.Fatal("it does not become so")
		}
	}
}

// flood are numbered datagrams of an established flow, as fast as they go.
type flood struct{ sent, arrived atomic.Uint64 }

func (c *cluster) flood() *flood {
	c.Helper()
	const floodPort = 5002
	f := &flood{}
	var server net.PacketConn
	if err := c.lab.Outside().Do(func() (err error) {
		server, err = net.ListenPacket(c.network("udp"), fmt.Sprintf(":%d", floodPort))
		return err
	}); err != nil {
		c.Fatal(err)
	}
	client, err := c.lab.Pod(1).DialContext(c.Context(), c.network("udp"), netip.AddrPortFrom(c.outside(), floodPort).String())
	if err != nil {
		c.Fatal(err)
	}
	var done sync.WaitGroup
	c.Cleanup(func() {
		_ = errors.Join(client.Close(), server.Close())
		done.Wait()
	})
	done.Go(func() { // it answers, so that the flow is established
		message := make([]byte, 8)
		for {
			_, from, err := server.ReadFrom(message)
			if err != nil {
				return
			}
			number := binary.BigEndian.Uint64(message)
			f.arrived.Store(number)
			if number%64 == 0 {
				_, _ = server.WriteTo(message, from)
			}
		}
	})
	done.Go(func() {
		for {
			number := f.sent.Load() + 1
			if _, err := client.Write(binary.BigEndian.AppendUint64(nil, number)); errors.Is(err, net.ErrClosed) {
				return
			}
			f.sent.Store(number)
			if number%16 == 0 {
				time.Sleep(50 * time.Microsecond) // others need the CPUs, too
			}
		}
	})
	time.Sleep(streamAfter)
	return f
}

// TestFast_ConnectionsGoInAndOut: connections live on while their packets take the fast path and the slow one in turn.
func TestFast_ConnectionsGoInAndOut(t *testing.T) {
	onFastWays(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp")
		c.holdsOn(1, c.egressIP)
		c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		const connections = 20
		done := make(chan struct{})
		var all sync.WaitGroup
		for range connections {
			flow := c.stream("tcp")
			all.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					if seen, err := flow.Ask(t.Context()); err != nil || seen != c.egressIP {
						t.Errorf("seen as %s (%v), want %s", seen, err, c.egressIP)
						return
					}
				}
			})
		}
		source := c.nodes[0]
		places := source.places(c.addr(c.lab.Pod(1)))
		for range often(200, 1_000_000/connections/len(fastWays)) / 2 {
			source.placed(nil)
			source.placed(places)
		}
		close(done)
		all.Wait()
	})
}

// TestFast_FilterOfOthers: where somebody has a tc filter, its packets take the slow path, and so pass it.
func TestFast_FilterOfOthers(t *testing.T) {
	c := newCluster(t, kernel.IPv4, lab.Config{Nodes: 2, Pods: 2, Masquerade: true})
	c.useFast(true)
	c.serve(c.lab.Outside(), "tcp")
	c.holdsOn(1, c.egressIP)
	c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
	c.goesOn("tcp")
	source := c.nodes[0]
	device := strings.TrimSpace(strings.SplitN(c.run(source.host, "ip -o link show master cni0"), ":", 3)[1])
	device, _, _ = strings.Cut(device, "@")
	c.run(source.host, "tc qdisc add dev %s clsact", device)
	source.place(c.addr(c.lab.Pod(1)))
	c.goesOn("tcp")
	c.run(source.host, "tc filter add dev %s ingress protocol all u32 match u32 0 0 flowid 1:1", device)
	source.place(c.addr(c.lab.Pod(1)))
	if got := source.fast.Status().Refused; !slices.Equal(got, []string{device}) {
		t.Errorf("refused are %v, want %s", got, device)
	}
	before := source.counts().Sent.Packets
	flow := c.stream("tcp")
	c.asks(flow, c.egressIP)
	if after := source.counts().Sent.Packets; after != before {
		t.Errorf("%d packets took the fast path", after-before)
	}
	c.run(source.host, "tc filter del dev %s ingress", device)
	source.place(c.addr(c.lab.Pod(1)))
	c.goesOn("tcp")
}

// TestFast_IPsec: a node with a policy of IPsec has no fast path, for packets would pass by the policy.
func TestFast_IPsec(t *testing.T) {
	c := newCluster(t, kernel.IPv4, lab.Config{Nodes: 2, Pods: 2, Masquerade: true})
	c.useFast(true)
	c.serve(c.lab.Outside(), "tcp")
	c.holdsOn(1, c.egressIP)
	c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
	policies := func(change string) {
		for _, n := range c.nodes {
			c.run(n.host, "ip xfrm policy %s", change)
			n.place(c.addr(c.lab.Pod(1)))
		}
	}
	policies("add src 10.0.0.0/8 dst 203.0.113.128/25 dir out")
	c.goesSlow("tcp")
	policies("flush")
	c.goesOn("tcp")
}

// TestFast_Settings: those that a fast path needs come back when it is switched off, and with a clean-up.
func TestFast_Settings(t *testing.T) {
	onFastWays(t, func(c *cluster) {
		bindings := []kernel.Binding{c.bind(1, kernel.TCP, c.egressIP)}
		ways := map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)}
		n := c.nodes[0]
		are := func(when string, want ...string) {
			t.Helper()
			if got := strings.Fields(c.run(n.host, "sysctl -n net.netfilter.nf_conntrack_tcp_be_liberal net.netfilter.nf_conntrack_tcp_timeout_unacknowledged")); !slices.Equal(got, want) {
				t.Errorf("%s they are %v, want %v", when, got, want)
			}
		}
		c.steer(bindings, ways)
		are("with a fast path", "1", "7440")
		n.fast = nil
		n.restart(n.ways)
		c.steer(bindings, ways)
		are("without it", "0", "300")
		c.useFast(true)
		c.steer(bindings, ways)
		are("with it again", "1", "7440")
		n.restart(n.ways)
		c.steer(bindings, ways)
		n.inside(func() error { return PutBackFast(t.Context()) })
		are("put back after another start with it", "0", "300")
		n.restart(n.ways)
		c.steer(bindings, ways)
		are("with it once more", "1", "7440")
		n.inside(func() error { return Cleanup(t.Context()) })
		are("after a clean-up", "0", "300")
	})
}

// TestFast_TooManyHolders: where nodes hold egress IPs that get no number, the packets to all others take the fast path.
func TestFast_TooManyHolders(t *testing.T) {
	c := newCluster(t, kernel.IPv4, lab.Config{Nodes: 2, Pods: 2, Masquerade: true})
	c.useFast(true)
	c.serve(c.lab.Outside(), "tcp")
	c.holdsOn(1, c.egressIP)
	bindings := []kernel.Binding{c.bind(1, kernel.TCP, c.egressIP)}
	ways := map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)}
	c.steer(bindings, ways)
	source := c.nodes[0]
	source.fast.Limit(c.family, fastpath.Change{Whole: true, Surroundings: &fastpath.Surroundings{}})
	c.run(source.host, "sysctl -q net.netfilter.nf_conntrack_tcp_be_liberal=0")
	for i := range byte(numberDropped) {
		egressIP := netip.AddrFrom4([4]byte{203, 0, 113, 100 + i})
		bindings = append(bindings, kernel.Binding{Pod: netip.AddrFrom4([4]byte{10, 128, 0, 100 + i}), Protocol: kernel.TCP, EgressIP: egressIP})
		ways[egressIP] = kernel.Way{Kind: kernel.ToNode, Node: netip.AddrFrom4([4]byte{192, 0, 2, 100 + i})}
	}
	d := c.desired(bindings...)
	d.Steering = source.steering(ways)
	var tooMany tooManyError
	source.inside(func() error {
		if _, err := source.Write(t.Context(), d, nil); !errors.As(err, &tooMany) {
			return fmt.Errorf("got %w, want that there are too many", err)
		}
		return nil
	})
	if liberal := strings.TrimSpace(c.run(source.host, "sysctl -n net.netfilter.nf_conntrack_tcp_be_liberal")); liberal != "1" {
		t.Errorf("conntrack is liberal: %s, want 1", liberal)
	}
	c.goesOn("tcp")
}
