package steering

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
)

var (
	firstBlock  = kernel.Ports{First: 31744, Last: 32255}
	secondBlock = kernel.Ports{First: 32256, Last: 32511}
	sharedPorts = kernel.Ports{First: 61440, Last: 65535}
)

// onBlocks runs test for each transport and family, on three nodes: the pods 1 and 2 are on the first two, and have blocks of one egress
// IP. The host outside answers by the route to that alone.
func onBlocks(t *testing.T, test func(c *cluster)) {
	for _, transport := range []Transport{VXLAN, Direct} {
		for _, family := range families {
			t.Run(fmt.Sprintf("%s/%s", transport, family), func(t *testing.T) {
				c := newCluster(t, family, lab.Config{Nodes: 3, Pods: 3, IPv6: true, Masquerade: true})
				c.portBlocks = true
				c.blocks = []kernel.Block{
					{Pod: c.addr(c.lab.Pod(1)), EgressIP: c.egressIP, Ports: firstBlock},
					{Pod: c.addr(c.lab.Pod(2)), EgressIP: c.egressIP, Ports: secondBlock},
				}
				c.shared = map[netip.Addr]kernel.Ports{c.egressIP: sharedPorts}
				c.use(transport)
				if fastKernel(c) {
					c.useFast(true)
				}
				c.run(c.lab.Outside(), "nft delete table inet reply-to")
				for i := range c.nodes {
					c.holdsOn(i, c.egressIP)
				}
				for pod := range 3 { // a pod answers each nudge, however soon after the last one
					c.homes = append(c.homes, c.lab.Pod(pod+1))
					c.run(c.lab.Pod(pod+1), "sysctl -q net.ipv4.tcp_invalid_ratelimit=0")
				}
				test(c)
			})
		}
	}
}

// goesTo has a node hold the egress IP: all nodes steer there, and the far side sends there.
func (c *cluster) goesTo(holder int, bindings []kernel.Binding) {
	c.Helper()
	c.steer(bindings, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(holder)})
	if err := c.lab.RouteVia(netip.PrefixFrom(c.egressIP, c.egressIP.BitLen()), c.nodes[holder].host); err != nil {
		c.Fatal(err)
	}
}

// bindEach binds each of the pods 1 to 3.
func (c *cluster) bindEach(protocols ...kernel.Protocol) (bindings []kernel.Binding) {
	for pod := range 3 {
		for _, protocol := range protocols {
			bindings = append(bindings, c.bind(pod+1, protocol, c.egressIP))
		}
	}
	return bindings
}

// outsideOf is the port that a pod with these ports gets for one of its own.
func outsideOf(ports kernel.Ports, source uint16) uint16 {
	if ports.Contains(source) {
		return source
	}
	return ports.First + source%(ports.Last-ports.First+1)
}

// TestBlocks_PortsOutside: what a pod sends leaves from its own ports, whatever port the pod has chosen, and that of a pod without a
// block from the shared ones. One that lies there stays, and another one becomes the same on every node.
func TestBlocks_PortsOutside(t *testing.T) {
	for name, protocols := range map[string][]kernel.Protocol{"by protocol": {kernel.TCP, kernel.UDP, kernel.SCTP}, "all": {kernel.All}} {
		t.Run(name, func(t *testing.T) {
			onBlocks(t, func(c *cluster) {
				networks := []string{"tcp", "udp", "sctp", "icmp"}
				servers := c.serve(c.lab.Outside(), networks...)
				if protocols[0] != kernel.All {
					networks = networks[:3]
				}
				for _, holder := range []int{0, 1, 2} {
					c.goesTo(holder, c.bindEach(protocols...))
					for pod, ports := range map[int]kernel.Ports{1: firstBlock, 2: secondBlock, 3: sharedPorts} {
						for i, network := range networks {
							for _, source := range []uint16{ports.First + uint16(holder), ports.Last - uint16(holder), 5000 + uint16(holder), 45000 + uint16(holder)} {
								seen, err := c.lab.Pod(pod).Ask(t.Context(), c.network(network), netip.AddrPortFrom(c.outside(), port), source)
								all := servers[i].Seen()
								if err != nil || seen != c.egressIP || len(all) == 0 {
									t.Fatalf("node %d, pod %d, %s from port %d: seen as %s, %v", holder, pod, network, source, seen, err)
								}
								got := all[len(all)-1].Port()
								if !ports.Contains(got) || (pod != 3 || ports.Contains(source)) && got != outsideOf(ports, source) {
									t.Errorf("node %d, pod %d, %s from port %d: leaves from port %d, want one of %s", holder, pod, network, source, got, ports)
								}
							}
						}
					}
				}
				for _, n := range c.nodes {
					n.dropped(nil)
				}
			})
		})
	}
}

// TestBlocks_PortOutsideIsTaken: a port outside of the block gets another one of it where the pod has a connection with the one that it
// would get.
func TestBlocks_PortOutsideIsTaken(t *testing.T) {
	onBlocks(t, func(c *cluster) {
		c.goesTo(1, c.bindEach(kernel.TCP))
		server := c.serve(c.lab.Outside(), "tcp")[0]
		const source = 6000
		taken := outsideOf(firstBlock, source)
		for i, source := range []uint16{taken, source} {
			seen, err := c.lab.Pod(1).Ask(t.Context(), c.network("tcp"), netip.AddrPortFrom(c.outside(), port), source)
			if all := server.Seen(); err != nil || seen != c.egressIP || len(all) != i+1 || !firstBlock.Contains(all[i].Port()) || (all[i].Port() == taken) != (i == 0) {
				t.Fatalf("from port %d: seen as %s: %v, %v", source, seen, all, err)
			}
		}
	})
}

// TestBlocks_OfOneOfTwoBindings: a pod that has another egress IP for TCP, without a block, than for all protocols, with one.
func TestBlocks_OfOneOfTwoBindings(t *testing.T) {
	onBlocks(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp")
		server := c.serve(c.lab.Outside(), "udp")[0]
		c.holdsOn(0, c.another)
		if err := c.lab.RouteVia(netip.PrefixFrom(c.another, c.another.BitLen()), c.nodes[0].host); err != nil {
			t.Fatal(err)
		}
		c.goesTo(0, []kernel.Binding{c.bind(1, kernel.TCP, c.another), c.bind(1, kernel.All, c.egressIP)})
		c.sees("by the binding of TCP", c.lab.Pod(1), "tcp", c.outside(), c.another)
		c.sees("by the binding of all protocols", c.lab.Pod(1), "udp", c.outside(), c.egressIP)
		if seen := server.Seen(); len(seen) == 0 || !firstBlock.Contains(seen[len(seen)-1].Port()) {
			t.Errorf("seen as %v, want ports of %s", seen, firstBlock)
		}
	})
}

// TestBlocks_AllInUse: a pod that has all of its ports in use towards a destination gets no others there. Elsewhere it connects.
func TestBlocks_AllInUse(t *testing.T) {
	onBlocks(t, func(c *cluster) {
		pod, ports := c.lab.Pod(1), kernel.Ports{First: 31744, Last: 31807}
		c.blocks[0].Ports = ports
		c.goesTo(1, c.bindEach(kernel.TCP))
		const outside = 5000
		full, other := c.accepts(), c.accepts()
		for source := ports.First; source <= ports.Last; source++ {
			c.dialFrom(pod, "tcp", netip.AddrPortFrom(c.addr(pod), source), full.port)
			if from := <-full.from; from != netip.AddrPortFrom(c.egressIP, source) {
				t.Fatalf("from port %d: seen as %s", source, from)
			}
		}
		err := pod.Do(func() error {
			d := net.Dialer{LocalAddr: &net.TCPAddr{Port: outside}, Timeout: lab.Stretch(1500 * time.Millisecond)} // and a second SYN
			conn, err := d.DialContext(t.Context(), c.network("tcp"), netip.AddrPortFrom(c.outside(), full.port).String())
			if err == nil {
				_ = conn.Close()
				return errors.New("it connects")
			}
			return nil
		})
		if len(full.from) > 0 || err != nil {
			t.Errorf("with all ports in use: %v, the far side has seen %d more", err, len(full.from))
		}
		c.dialFrom(pod, "tcp", netip.AddrPortFrom(c.addr(pod), outside), other.port)
		if from := <-other.from; from.Addr() != c.egressIP || !ports.Contains(from.Port()) {
			t.Errorf("to another destination: seen as %s, want a port of %s", from, ports)
		}
	})
}

// accepted is a server outside, and who connects to it.
type accepted struct {
	port uint16
	from chan netip.AddrPort
}

// accepts has the host outside take connections, and keep them.
func (c *cluster) accepts() accepted {
	c.Helper()
	listener, err := c.lab.Outside().Listen(c.Context(), c.network("tcp"), ":0")
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = listener.Close() })
	a := accepted{netip.MustParseAddrPort(listener.Addr().String()).Port(), make(chan netip.AddrPort, 100)}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.Cleanup(func() { _ = conn.Close() })
			from := netip.MustParseAddrPort(conn.RemoteAddr().String())
			a.from <- netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		}
	}()
	return a
}

// TestBlocks_ListingIsRestored: somebody restores a listing of the tables by nft, which makes other rules of it for blocks. Pods leave from
// their egress IP as before; it is found, and repaired.
func TestBlocks_ListingIsRestored(t *testing.T) {
	onBlocks(t, func(c *cluster) {
		if c.family == kernel.IPv6 {
			c.Skip("nft does not read its own listing")
		}
		c.goesTo(1, c.bindEach(kernel.TCP))
		server := c.serve(c.lab.Outside(), "tcp")[0]
		for _, n := range c.nodes {
			listing := n.nft("list table %s", n.name())
			if !strings.Contains(listing, ": interval ") {
				c.Skip("nft does not print maps of ports")
			}
			n.nft("delete table %s", n.name())
			if err := n.host.Feed(t.Context(), listing, "nft", "-f", "-"); err != nil {
				t.Fatalf("%v\n%s", err, listing)
			}
		}
		asks := func(when string, source uint16) (outside []uint16) {
			for pod, ports := range map[int]kernel.Ports{1: firstBlock, 2: secondBlock, 3: sharedPorts} {
				seen, err := c.lab.Pod(pod).Ask(t.Context(), c.network("tcp"), netip.AddrPortFrom(c.outside(), port), source)
				all := server.Seen()
				if err != nil || seen != c.egressIP || !ports.Contains(all[len(all)-1].Port()) {
					t.Fatalf("%s, pod %d from port %d: seen as %s, %v, want a port of %s", when, pod, source, all[len(all)-1], err, ports)
				}
				if pod == 1 {
					outside = append(outside, all[len(all)-1].Port())
				}
			}
			return outside
		}
		var inUse []uint16
		for source := range uint16(5) {
			inUse = append(inUse, asks("restored", 6000+source)...)
		}
		for i, n := range c.nodes {
			if n.read() == nil {
				t.Errorf("node %d does not find that its table was restored by nft", i)
			}
			if !n.write(n.desired) || n.read() != nil {
				t.Errorf("node %d does not repair its table", i)
			}
		}
		for source := uint16(7000); source < 7005; source++ {
			want, outside := outsideOf(firstBlock, source), asks("repaired", source)[0]
			if outside != want && !slices.Contains(inUse, want) {
				t.Errorf("repaired, from port %d: leaves from port %d, want %d", source, outside, want)
			}
			inUse = append(inUse, outside)
		}
	})
}

// TestBlocks_SecondPortsOutside: of a pod with two blocks, a port of either stays, also of the one that lies in front, and what is from
// other ports gets one of the second. So it is on each holder, and what comes for a port of either goes to the pod.
func TestBlocks_SecondPortsOutside(t *testing.T) {
	onBlocks(t, func(c *cluster) {
		pod, second := c.addr(c.lab.Pod(1)), kernel.Ports{First: 31232, Last: 31743}
		c.blocks = append([]kernel.Block{{Pod: pod, EgressIP: c.egressIP, Ports: second, Second: true}}, c.blocks...)
		networks := []string{"tcp", "udp"}
		servers := c.serve(c.lab.Outside(), networks...)
		for _, holder := range []int{0, 1, 2} {
			c.goesTo(holder, c.bindEach(kernel.TCP, kernel.UDP))
			for i, network := range networks {
				for source, ports := range map[uint16]kernel.Ports{
					firstBlock.First + uint16(holder): firstBlock, firstBlock.Last - uint16(holder): firstBlock,
					second.First + uint16(holder): second, second.Last - uint16(holder): second,
					5000 + uint16(holder): second, 45000 + uint16(holder): second,
				} {
					seen, err := c.lab.Pod(1).Ask(t.Context(), c.network(network), netip.AddrPortFrom(c.outside(), port), source)
					all := servers[i].Seen()
					if err != nil || seen != c.egressIP || len(all) == 0 {
						t.Fatalf("node %d, %s from port %d: seen as %s, %v", holder, network, source, seen, err)
					}
					if got := all[len(all)-1].Port(); got != outsideOf(ports, source) {
						t.Errorf("node %d, %s from port %d: leaves from port %d, want %d", holder, network, source, got, outsideOf(ports, source))
					}
				}
			}
		}
		bindings := c.bindEach(kernel.TCP, kernel.UDP)
		c.goesTo(1, bindings)
		flows := c.begin(c.lab.Pod(1), firstBlock.First+9, second.First+9)
		c.carries("at first", flows)
		c.goesTo(2, bindings)
		c.carries("on a third node", flows)
	})
}

// both are the ends of a flow: near is the pod's.
type both struct {
	what string
	near net.Conn
	// says has the far side say something.
	says func(text string) error
	// hears is what the far side hears next.
	hears func() (string, error)
}

// begin opens a connection and a flow of UDP from ports of a pod.
func (c *cluster) begin(pod *lab.Host, ports ...uint16) (flows []both) {
	c.Helper()
	listener, err := c.lab.Outside().Listen(c.Context(), c.network("tcp"), ":0")
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = listener.Close() })
	for _, from := range ports {
		local := netip.AddrPortFrom(c.addr(pod), from)
		near := c.dialFrom(pod, "tcp", local, netip.MustParseAddrPort(listener.Addr().String()).Port())
		far, err := listener.Accept()
		if err != nil {
			c.Fatal(err)
		}
		c.Cleanup(func() { _ = far.Close() })
		flows = append(flows, both{fmt.Sprintf("tcp from port %d", from), near, func(text string) error {
			_, err := far.Write([]byte(text))
			return err
		}, func() (string, error) {
			_ = far.SetReadDeadline(time.Now().Add(lab.Stretch(5 * time.Second)))
			heard := make([]byte, 100)
			n, err := far.Read(heard)
			return string(heard[:n]), err
		}})
		flows = append(flows, c.datagrams(pod, local))
	}
	return flows
}

func (c *cluster) dialFrom(pod *lab.Host, network string, local netip.AddrPort, to uint16) (near net.Conn) {
	c.Helper()
	err := pod.Do(func() (err error) {
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(local), Timeout: lab.Stretch(5 * time.Second)}
		if network == "udp" {
			d.LocalAddr = net.UDPAddrFromAddrPort(local)
		}
		near, err = d.DialContext(c.Context(), c.network(network), netip.AddrPortFrom(c.outside(), to).String())
		return err
	})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = near.Close() })
	return near
}

// datagrams opens a flow of UDP, of which the far side has heard.
func (c *cluster) datagrams(pod *lab.Host, local netip.AddrPort) both {
	c.Helper()
	var server net.PacketConn
	if err := c.lab.Outside().Do(func() (err error) {
		server, err = net.ListenPacket(c.network("udp"), ":0")
		return err
	}); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = server.Close() })
	near := c.dialFrom(pod, "udp", local, netip.MustParseAddrPort(server.LocalAddr().String()).Port())
	c.says(near, "begin")
	var peer net.Addr
	hears := func() (string, error) {
		_ = server.SetReadDeadline(time.Now().Add(lab.Stretch(5 * time.Second)))
		heard := make([]byte, 100)
		n, from, err := server.ReadFrom(heard)
		if peer == nil {
			peer = from
		} else if err == nil && from.String() != peer.String() {
			err = fmt.Errorf("it is from %s now", from)
		}
		return string(heard[:n]), err
	}
	if _, err := hears(); err != nil {
		c.Fatal(err)
	}
	return both{fmt.Sprintf("udp from port %d", local.Port()), near, func(text string) error {
		_, err := server.WriteTo([]byte(text), peer)
		return err
	}, hears}
}

// carries fails unless each far side is heard by the pod first, and then the other way round.
func (c *cluster) carries(when string, flows []both) {
	c.Helper()
	for i, f := range flows {
		for _, text := range []string{fmt.Sprint("first ", i), fmt.Sprint("second ", i)} {
			if err := f.says(text); err != nil {
				c.Errorf("%s, %s: %v", when, f.what, err)
				return
			}
			c.hears(f.near, text)
		}
		c.says(f.near, when)
		if heard, err := f.hears(); err != nil || heard != when {
			c.Errorf("%s, %s: the far side hears %q, %v", when, f.what, heard, err)
		}
	}
}

// TestBlocks_FarSideAloneSpeaks: a node to which the egress IP comes passes what the far side sends to the pod whose port it is for, and
// knows the flow from then on. Nobody is reset.
func TestBlocks_FarSideAloneSpeaks(t *testing.T) {
	onBlocks(t, func(c *cluster) {
		leaks := c.leaks(c.lab.Pod(1))
		resets := c.count(c.lab.Outside(), "prerouting", -400, "meta l4proto tcp tcp flags & rst == rst")
		unreachable := c.count(c.lab.Outside(), "prerouting", -400, "meta l4proto { icmp, icmpv6 } ct state related")
		bindings := c.bindEach(kernel.TCP, kernel.UDP)
		c.goesTo(1, bindings)
		flows := c.begin(c.lab.Pod(1), firstBlock.First, firstBlock.Last)
		fromHolder := c.begin(c.lab.Pod(2), secondBlock.First)
		c.carries("at first", append(flows, fromHolder...))
		c.goesTo(2, bindings)
		c.carries("on a third node", flows)
		c.judge(1, nil)
		for _, f := range fromHolder { // the former holder has forgotten it, too
			c.says(f.near, "by itself")
			if heard, err := f.hears(); err != nil || heard != "by itself" {
				t.Errorf("%s: the far side hears %q, %v", f.what, heard, err)
			}
		}
		flows = append(flows, fromHolder...)
		before := []map[string]uint64{c.nodes[0].drops(), c.nodes[1].drops(), c.nodes[2].drops()}
		c.carries("from the former holder", flows)
		c.goesTo(0, bindings)
		came := c.count(c.nodes[0].host, "prerouting", -400, "ip daddr "+c.egressIP.String()+" tcp dport "+fmt.Sprint(firstBlock.First))
		if err := flows[0].says("early"); err != nil { // the node still has the flow that it steered
			t.Fatal(err)
		}
		came.await()
		c.forget(0, 1)
		c.hears(flows[0].near, "early")
		c.carries("on the first pod's own node", flows)
		c.nodes[1].dropped(before[1])
		c.goesTo(1, bindings)
		c.judge(0, nil)
		c.judge(1, bindings)
		before[1] = c.nodes[1].drops() // what its pod repeats until its flow is judged is dropped, and may be
		c.carries("from the pod's own node", slices.DeleteFunc(flows, func(f both) bool { return strings.HasPrefix(f.what, "udp") }))
		for i, n := range c.nodes[1:] {
			n.dropped(before[i+1])
		}
		if n := resets.packets() + unreachable.packets(); n > 0 {
			t.Errorf("the far side got %d resets and ICMP errors", n)
		}
		c.noLeak(leaks)
	})
}

// forget has a node delete the flows of a pod that it has steered, as package conntrack does when their egress IP comes there.
func (c *cluster) forget(node, pod int) {
	c.Helper()
	for _, protocol := range []string{"tcp", "udp"} {
		c.run(c.nodes[node].host, "conntrack -D -p %s -s %s -d %s", protocol, c.addr(c.lab.Pod(pod)), c.outside())
	}
}

// judge has the flows of all bindings on a node judged, whose egress IP has come there or gone. Those of steered bindings were steered
// before.
func (c *cluster) judge(node int, steered []kernel.Binding) {
	c.Helper()
	n, scope := c.nodes[node], conntrack.Scope{Pods: map[netip.Addr]bool{}, Blocks: c.blocks, Steered: steered}
	for _, b := range n.desired.Bindings {
		scope.Pods[b.Pod] = true
	}
	n.inside(func() error {
		_, err := conntrack.Delete(c.Context(), c.family, n.desired, scope)
		return err
	})
}

// service leads a port of the egress IP to a pod on all nodes, as kube-proxy does.
func (c *cluster) service(at uint16, pod *lab.Host) {
	c.Helper()
	family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[c.family]
	for _, n := range c.nodes {
		n.nftInput(fmt.Sprintf("table %[1]s services { chain c { type nat hook prerouting priority -100; %[1]s daddr %[2]s meta l4proto { tcp, udp } th dport %[3]d dnat to %[4]s; }; }\n",
			family, c.egressIP, at, netip.AddrPortFrom(c.addr(pod), port)))
	}
}

// TestBlocks_WhatIsNotThePods: a SYN is no part of a flow that another node knew, a Service's port is the Service's, and a
// datagram comes to a pod only if that has begun the flow. Nothing leaves from the pod's own address.
func TestBlocks_WhatIsNotThePods(t *testing.T) {
	onBlocks(t, func(c *cluster) {
		const servicePort = 32100
		for _, h := range []*lab.Host{c.lab.Pod(1), c.lab.Pod(3)} {
			c.serve(h, "tcp", "udp")
		}
		c.service(servicePort, c.lab.Pod(3))
		bindings := c.bindEach(kernel.TCP, kernel.UDP)
		c.goesTo(2, bindings)
		holder, home := c.nodes[2], c.nodes[0]
		leaks := c.leaks(c.lab.Pod(1))
		arrived := c.count(c.lab.Pod(1), "prerouting", -400, "ip saddr "+c.outside().String())
		for _, protocol := range []string{"tcp", "udp"} {
			seen, err := c.lab.Outside().Ask(t.Context(), c.network(protocol), netip.AddrPortFrom(c.egressIP, servicePort), 0)
			if err != nil || seen != c.outside() {
				t.Errorf("the Service's port, %s: seen as %s, %v", protocol, seen, err)
			}
		}
		if _, err := c.lab.Outside().Ask(t.Context(), c.network("tcp"), netip.AddrPortFrom(c.egressIP, firstBlock.First), 0); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("a SYN to a pod's port: %v, want it refused by the holder", err)
		}
		before := home.drops()
		c.send("udp", c.lab.Outside(), c.outside(), netip.AddrPortFrom(c.egressIP, firstBlock.First))
		home.dropped(before, flippedCounter)
		before = home.drops()
		c.ack(c.egressIP, firstBlock.First)
		home.dropped(before, flippedCounter)
		before = holder.drops()
		c.ack(c.egressIP, sharedPorts.First)
		c.ack(c.egressIP, 1024)
		holder.dropped(before, nostateCounter)
		if n := arrived.packets(); n > 0 {
			t.Errorf("%d packets have come to the pod that are for nothing of it", n)
		}
		c.noLeak(leaks)
	})
}

// ack sends a segment of no connection from outside.
func (c *cluster) ack(to netip.Addr, dport uint16) {
	c.Helper()
	segment := make([]byte, 20)
	segment[0], segment[1], segment[2], segment[3] = 0x30, 0x39, byte(dport>>8), byte(dport)
	segment[12], segment[13] = 5<<4, flagACK
	c.sendRaw(c.lab.Outside(), segment, to)
}

// TestBlocks_DatagramsWhileFresh: datagrams of flows that are not known go to pods for as long as another node's conntrack would have
// remembered them. A process that begins takes nothing for fresh that was here.
func TestBlocks_DatagramsWhileFresh(t *testing.T) {
	onBlocks(t, func(c *cluster) {
		bindings, holder := c.bindEach(kernel.UDP), c.nodes[0]
		c.goesTo(1, bindings)
		flow := c.datagrams(c.lab.Pod(1), netip.AddrPortFrom(c.addr(c.lab.Pod(1)), firstBlock.First))
		c.goesTo(0, bindings)
		if listed := holder.nft("list set %s fresh", holder.name()); !strings.Contains(listed, "expires 1m") {
			t.Errorf("the address that has come is not fresh:\n%s", listed)
		}
		holder.restart(holder.ways)
		if holder.write(holder.desired) {
			t.Error("a new process has changed something")
		}
		c.run(holder.host, "conntrack -F")
		c.carries("while fresh", []both{flow})
		holder.nft("flush set %s fresh", holder.name())
		holder.restart(holder.ways)
		holder.write(holder.desired)
		if listed := holder.nft("list set %s fresh", holder.name()); strings.Contains(listed, "elements") {
			t.Errorf("an address that was here is fresh:\n%s", listed)
		}
		c.run(holder.host, "conntrack -F")
		seen := c.count(c.lab.Pod(1), "prerouting", -400, "ip saddr "+c.outside().String())
		came := c.count(holder.host, "prerouting", -400, "ip daddr "+c.egressIP.String())
		if err := flow.says("late"); err != nil {
			t.Fatal(err)
		}
		came.await()
		if n := seen.packets(); n > 0 {
			t.Errorf("%d datagrams have come to the pod", n)
		}
	})
}

// TestBlocks_FreshWhereAnyMayCome: an egress IP that may come to a node is fresh when its packets leave from there, and were sent elsewhere
// before, or dropped, or no node had it. It is not when somebody else has deleted the table.
func TestBlocks_FreshWhereAnyMayCome(t *testing.T) {
	onBlocks(t, func(c *cluster) {
		n, d := c.nodes[0], c.desired(append(c.bindEach(kernel.UDP), c.bind(1, kernel.All, c.another))...)
		here, there, lost, nowhere := c.toNode(0), c.toNode(1), kernel.Way{Kind: kernel.Blackhole}, kernel.Way{Kind: "by the pod's node"}
		takes := func(way kernel.Way) kernel.Steering {
			absent := way == nowhere
			if absent {
				way = here
			}
			d.Steering = n.steering(map[netip.Addr]kernel.Way{c.egressIP: way, c.another: way})
			d.Steering.Held = map[netip.Addr]bool{c.egressIP: true, c.another: true}
			if absent {
				d.Steering.Absent = d.Steering.Held
			}
			return d.Steering
		}
		write := func(way kernel.Way) {
			takes(way)
			n.write(d)
		}
		update := func(way kernel.Way) { n.update(takes(way)) }
		goOn := func() {}
		anew := func() { // another process, after what was fresh is forgotten
			n.nft("flush set %s fresh", n.name())
			n.restart(n.ways)
		}
		deleted := func() {
			n.nft("delete table %s", n.name())
			n.read()
		}
		for i, step := range []struct {
			first func()
			how   func(kernel.Way)
			way   kernel.Way
			want  int
		}{
			{goOn, write, there, 0},
			{goOn, update, here, 2},
			{goOn, update, lost, 0},
			{goOn, update, nowhere, 0},
			{goOn, update, here, 2},
			{goOn, update, there, 0},
			{goOn, write, here, 2},
			{anew, write, here, 0},
			{deleted, write, here, 0},
			{goOn, update, nowhere, 0},
			{goOn, write, here, 2},
			{anew, write, there, 0},
			{anew, write, here, 2},
		} {
			step.first()
			step.how(step.way)
			if listed := n.nft("list set %s fresh", n.name()); strings.Count(listed, "expires") != step.want {
				t.Errorf("step %d: want %d that are fresh:\n%s", i, step.want, listed)
			}
		}
	})
}

// TestBlocks_FreshOfAnEarlierProcess: what was fresh when a process began stays so when another egress IP comes.
func TestBlocks_FreshOfAnEarlierProcess(t *testing.T) {
	onBlocks(t, func(c *cluster) {
		n, d := c.nodes[0], c.desired(append(c.bindEach(kernel.UDP), c.bind(1, kernel.All, c.another))...)
		takes := func(first, second int) kernel.Steering {
			return n.steering(map[netip.Addr]kernel.Way{c.egressIP: c.toNode(first), c.another: c.toNode(second)})
		}
		d.Steering = takes(1, 1)
		n.write(d)
		n.update(takes(0, 1))
		n.restart(n.ways)
		n.write(n.desired)
		n.update(takes(0, 0))
		if listed := n.nft("list set %s fresh", n.name()); strings.Count(listed, "expires") != 2 {
			t.Errorf("want 2 that are fresh:\n%s", listed)
		}
	})
}

// TestBlocks_ErrorsReachThePod: an ICMP error about what a pod has sent reaches it, also in a flow that the far side has made known.
func TestBlocks_ErrorsReachThePod(t *testing.T) {
	onBlocks(t, func(c *cluster) {
		bindings := c.bindEach(kernel.TCP, kernel.UDP)
		c.goesTo(1, bindings)
		flow := c.datagrams(c.lab.Pod(1), netip.AddrPortFrom(c.addr(c.lab.Pod(1)), firstBlock.First))
		c.goesTo(2, bindings)
		c.carries("from the far side", []both{flow})
		family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[c.family]
		c.run(c.lab.Outside(), "nft add table %s refusing", family)
		c.run(c.lab.Outside(), "nft add chain %s refusing arriving { type filter hook input priority 0 ; }", family)
		c.run(c.lab.Outside(), "nft add rule %s refusing arriving meta l4proto udp reject", family)
		c.says(flow.near, "refused")
		_ = flow.near.SetReadDeadline(time.Now().Add(lab.Stretch(5 * time.Second)))
		if _, err := flow.near.Read(make([]byte, 10)); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("the pod hears %v, want that it is refused", err)
		}
	})
}

// TestBlocks_TableFollows: a change of blocks makes of the table what a new process makes of it, which finds nothing to change; what
// somebody takes away is found and repaired.
func TestBlocks_TableFollows(t *testing.T) {
	onCluster(t, func(c *cluster) {
		c.portBlocks = true
		c.use(VXLAN)
		n, bindings := c.nodes[0], []kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP), c.bind(2, kernel.All, c.another)}
		pod, second := c.addr(c.lab.Pod(1)), c.addr(c.lab.Pod(2))
		block := func(pod, egressIP netip.Addr, first, size uint16) kernel.Block {
			return kernel.Block{Pod: pod, EgressIP: egressIP, Ports: kernel.Ports{First: first, Last: first + size - 1}}
		}
		more := block(pod, c.egressIP, 4096, 512)
		more.Second = true
		for step, blocks := range [][]kernel.Block{
			{block(pod, c.egressIP, 1024, 512)},
			{block(pod, c.egressIP, 1024, 512), block(second, c.another, 1024, 1024)},
			{block(pod, c.egressIP, 1536, 512), block(second, c.another, 1024, 512), block(second, c.another, 2048, 64)},
			{block(pod, c.egressIP, 1536, 512), block(second, c.another, 1024, 512), more},
			{block(second, c.egressIP, 1536, 512), block(pod, c.egressIP, 1600, 64), block(pod, c.another, 2048, 64), block(second, c.another, 2048, 64)},
			nil,
		} {
			d := c.desired(bindings...)
			if step > 3 {
				d.Bindings = d.Bindings[1:]
			}
			d.Steering = n.steering(map[netip.Addr]kernel.Way{c.egressIP: c.toNode(0)})
			slices.SortFunc(blocks, kernel.CompareBlocks)
			d.Steering.Blocks, d.Steering.Shared = blocks, map[netip.Addr]kernel.Ports{c.egressIP: sharedPorts}
			if step == 0 {
				n.write(d)
			} else {
				added, removed := kernel.Diff(n.desired.Bindings, d.Bindings)
				n.inside(func() error {
					_, err := n.Update(t.Context(), kernel.Change{Added: added, Removed: removed, Networks: d.Networks, Steering: d.Steering, SteeringChanged: true}, nil)
					return err
				})
				n.desired = d
			}
			n.restart(n.ways)
			if n.write(d) {
				t.Errorf("step %d: a new process has changed something", step)
			}
			if differences := n.read(); differences != nil || !n.untouched() {
				t.Errorf("step %d: %v", step, differences)
			}
			n.standsWith(step, blocks)
			table := n.nft("list table %s", n.name())
			knowsPorts := strings.Contains(table, ": interval ") // those that do not, do not read them either
			if step == 3 && knowsPorts {
				for _, element := range []string{
					fmt.Sprintf("%s . tcp : %s . 4096-4607", pod, c.egressIP), fmt.Sprintf("%s . tcp . 1536-2047 : %s . 1536-2047", pod, c.egressIP),
					fmt.Sprintf("%s : %s . 1024-1535", second, c.another),
				} {
					if !strings.Contains(table, element) {
						t.Errorf("nft does not print %s:\n%s", element, table)
					}
				}
			}
			err := c.lab.Outside().Feed(t.Context(), textOf(t, n.config(), d), "nft", "-c", "-f", "-") // where there is no table
			if err != nil && knowsPorts {
				t.Errorf("step %d: nft does not read the table's text: %v", step, err)
			}
			if step == 1 {
				n.nft("delete element %s inward { %s . 1024-1535 : %s }", n.name(), c.egressIP, pod)
				if differences := n.read(); len(differences) != 1 || !n.write(d) || n.read() != nil {
					t.Errorf("a missing element: %v", differences)
				}
			}
		}
	})
}

// TestBlocks_FastPath: packets of a pod's flows from its own ports take the fast path on both nodes, and so do their answers.
func TestBlocks_FastPath(t *testing.T) {
	if !fastKernel(t) {
		t.Skip("the fast path needs Linux 6.6")
	}
	onBlocks(t, func(c *cluster) {
		servers := c.serve(c.lab.Outside(), "tcp", "udp")
		c.goesTo(1, c.bindEach(kernel.TCP, kernel.UDP))
		command := c.lab.Pod(1).Command(t.Context(), "sysctl", "-q", fmt.Sprintf("net.ipv4.ip_local_port_range=%d %d", firstBlock.First, firstBlock.Last))
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for i, protocol := range []string{"tcp", "udp"} {
			c.goesOn(protocol)
			for _, seen := range servers[i].Seen() {
				if !firstBlock.Contains(seen.Port()) {
					t.Errorf("%s: seen from %s, want one of %s", protocol, seen, firstBlock)
				}
			}
		}
	})
}

// standsWith fails unless a process that cleans up finds blocks in the table, of those that were written: those of bound pods.
func (n *node) standsWith(step int, written []kernel.Block) {
	n.c.Helper()
	n.inside(func() error {
		got, err := Stands(n.c.Context(), n.c.family)
		for _, b := range got.Blocks {
			isSame := func(w kernel.Block) bool { return w.Pod == b.Pod && w.EgressIP == b.EgressIP && w.Ports == b.Ports }
			if !slices.ContainsFunc(written, isSame) {
				n.c.Errorf("step %d: %v stands, and %v were written", step, b, written)
			}
		}
		if step == 0 && len(got.Blocks) != len(written) {
			n.c.Errorf("step %d: %v stand, and %v were written", step, got.Blocks, written)
		}
		return err
	})
}
