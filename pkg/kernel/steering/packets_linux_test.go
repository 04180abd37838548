package steering

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
)

const flagSYN, flagRST, flagACK = 0x02, 0x04, 0x10

const (
	port = 8080
	// unanswered is how long a question waits that should not be answered.
	unanswered = 300 * time.Millisecond
)

// network is a network of the lab's servers: "tcp" of the cluster's family.
func (c *cluster) network(protocol string) string {
	if c.family == kernel.IPv4 {
		return protocol + "4"
	}
	return protocol + "6"
}

func (c *cluster) outside() netip.Addr { return c.addr(c.lab.Outside()) }

func (c *cluster) serve(h *lab.Host, protocols ...string) (servers []*lab.Server) {
	c.Helper()
	for _, protocol := range protocols {
		server, err := h.ServeWhoami(c.network(protocol), port)
		if err != nil {
			c.Fatal(err)
		}
		servers = append(servers, server)
	}
	return servers
}

// sees fails unless a server at an address sees the pod as want.
func (c *cluster) sees(what string, pod *lab.Host, protocol string, to, want netip.Addr) {
	c.Helper()
	seen, err := pod.Ask(c.Context(), c.network(protocol), netip.AddrPortFrom(to, port), lab.FreshPort())
	if err != nil || seen != want {
		c.Errorf("%s, %s: seen as %s (%v), want %s", what, protocol, seen, err, want)
	}
}

// unseen fails if a server at an address answers the pod in time, and returns why there was no answer.
func (c *cluster) unseen(what string, pod *lab.Host, protocol string, to netip.Addr, wait time.Duration) error {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), wait)
	defer cancel()
	seen, err := pod.Ask(ctx, c.network(protocol), netip.AddrPortFrom(to, port), lab.FreshPort())
	if err == nil {
		c.Errorf("%s, %s: seen as %s, want nothing to leave", what, protocol, seen)
	}
	return err
}

// counter is a rule on a host that counts packets.
type counter struct {
	c     *cluster
	host  *lab.Host
	chain string
}

// count counts packets on a host from now on. nft's ip stands for the cluster's family.
func (c *cluster) count(h *lab.Host, hook string, priority int, match string) counter {
	c.Helper()
	family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[c.family]
	counter := counter{c, h, fmt.Sprintf("%s counted c%d", family, time.Now().UnixNano())}
	c.run(h, "nft add table %s counted", family)
	c.run(h, "nft add chain %s { type filter hook %s priority %d ; }", counter.chain, hook, priority)
	c.run(h, "nft add rule %s %s counter", counter.chain, strings.ReplaceAll(match, "ip ", family+" "))
	return counter
}

func (k counter) packets() int {
	k.c.Helper()
	_, after, _ := strings.Cut(k.c.run(k.host, "nft list chain %s", k.chain), "counter packets ")
	n, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		k.c.Fatal(err)
	}
	return n
}

// await waits for the first packet, awaitMore for more than so many.
func (k counter) await() { k.awaitMore(0) }

func (k counter) awaitMore(than int) {
	k.c.Helper()
	for deadline := time.Now().Add(lab.Stretch(5 * time.Second)); k.packets() <= than; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			k.c.Fatalf("%s: no packet more in %s", k.host.Name, k.chain)
		}
	}
}

// leaks counts what the outside host gets from a pod under its own or a node's address.
func (c *cluster) leaks(pod *lab.Host) counter {
	c.Helper()
	wrong := []string{c.addr(pod).String()}
	for _, n := range c.nodes {
		wrong = append(wrong, n.ip.String())
	}
	return c.count(c.lab.Outside(), "prerouting", -400, "ip saddr { "+strings.Join(wrong, ", ")+" } meta l4proto { tcp, udp } th dport { 8080, 9000 }")
}

func (c *cluster) noLeak(leaks counter) {
	c.Helper()
	if n := leaks.packets(); n > 0 {
		c.Errorf("%d packets have left from another address than the egress IP", n)
	}
}

func TestPackets_LeaveFromEgressIPThroughItsHolder(t *testing.T) {
	onTransports(t, func(c *cluster) {
		c.holdsOn(1, c.egressIP)
		leaks := c.leaks(c.lab.Pod(1))
		servers := c.serve(c.lab.Outside(), "tcp", "udp")
		both := []kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP)}
		for name, bindings := range map[string][]kernel.Binding{
			"bound for TCP and UDP": both,
			"bound for all":         {c.bind(1, kernel.All, c.egressIP)},
		} {
			c.steer(bindings, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
			for i, protocol := range []string{"tcp", "udp"} {
				c.sees(name, c.lab.Pod(1), protocol, c.outside(), c.egressIP)
				const sourcePort = 34567
				seen, err := c.lab.Pod(1).Ask(t.Context(), c.network(protocol), netip.AddrPortFrom(c.outside(), port), sourcePort)
				if err != nil || seen != c.egressIP {
					t.Errorf("%s, %s from a port: seen as %s, %v", name, protocol, seen, err)
				}
				if all := servers[i].Seen(); all[len(all)-1].Port() != sourcePort {
					t.Errorf("%s, %s: seen from %s, want the port %d", name, protocol, all[len(all)-1], sourcePort)
				}
			}
		}
		// The answers come by another pod network than they went.
		for _, n := range c.nodes {
			n.dropped(nil)
		}
		c.noLeak(leaks)
		if tracked := c.run(c.nodes[0].host, "conntrack -L -p udp --dport %d", tunnelPort) + c.run(c.nodes[1].host, "conntrack -L -p udp --dport %d", tunnelPort); strings.Contains(tracked, "dport") {
			t.Errorf("packets of the tunnel are tracked:\n%s", tracked)
		}
	})
}

// TestPackets_OtherConfigurations: without a tunnel, and with other bits of the mark.
func TestPackets_OtherConfigurations(t *testing.T) {
	for name, configure := range map[string]func(c *cluster){
		"other bits":                 func(c *cluster) { c.markMask = 0x3f << 26 },
		"more bits than it takes":    func(c *cluster) { c.markMask = 0xffff << 8 },
		"direct, and with all of it": func(c *cluster) { c.transport, c.markMask = Direct, 0xffffffff },
	} {
		t.Run(name, func(t *testing.T) {
			onCluster(t, func(c *cluster) {
				configure(c)
				c.use(c.transport)
				c.serve(c.lab.Outside(), "tcp", "udp")
				c.holdsOn(0, c.egressIP)
				c.holdsOn(1, c.egressIP)
				leaks, source := c.leaks(c.lab.Pod(1)), c.nodes[0]
				steered := c.count(source.host, "forward", 0, fmt.Sprintf("meta mark & %#x == %#x ip saddr %s", c.markMask, c.markMask&-c.markMask, c.addr(c.lab.Pod(1))))
				bindings := []kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP)}
				for _, way := range []kernel.Way{{}, c.toNode(1)} {
					c.steer(bindings, map[netip.Addr]kernel.Way{c.egressIP: way})
					for _, protocol := range []string{"tcp", "udp"} {
						c.sees(fmt.Sprintf("%q", way.Kind), c.lab.Pod(1), protocol, c.outside(), c.egressIP)
					}
					if packets := steered.packets(); (packets > 0) != (way.Kind == kernel.ToNode) {
						t.Errorf("%q: %d packets have the mark of the other node", way.Kind, packets)
					}
				}
				before := source.drops()
				c.run(source.host, "%s rule del pref 901", map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip -6"}[c.family])
				_ = c.unseen("no ip rule", c.lab.Pod(1), "udp", c.outside(), unanswered)
				source.dropped(before, unsnattedCounter)
				c.noLeak(leaks)
			})
		})
	}
}

// TestPackets_FollowTheWay moves an egress IP around. New flows take each way, and nothing leaves by another.
func TestPackets_FollowTheWay(t *testing.T) {
	onCluster(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp", "udp")
		c.holdsOn(0, c.egressIP)
		c.holdsOn(1, c.egressIP)
		leaks := c.leaks(c.lab.Pod(1))
		c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP)}, nil)
		told := map[string][]unix.Errno{"tcp": {unix.ECONNREFUSED}, "udp": {unix.EHOSTUNREACH, unix.EACCES}}
		source := c.nodes[0]
		steered := c.count(source.host, "forward", 0, "meta mark & 0x7e == 0x2 ip saddr "+c.addr(c.lab.Pod(1)).String())
		for step, way := range []kernel.Way{{}, c.toNode(1), {Kind: kernel.Blackhole}, {Kind: kernel.Prohibit}, {}, {Kind: kernel.Prohibit}, c.toNode(1), {}} {
			source.update(kernel.Steering{Ways: map[netip.Addr]kernel.Way{c.egressIP: way}, Nodes: source.desired.Steering.Nodes})
			before := steered.packets()
			for _, protocol := range []string{"tcp", "udp"} {
				what := fmt.Sprintf("step %d: %q", step, way.Kind)
				switch way.Kind {
				case kernel.Blackhole:
					if err := c.unseen(what, c.lab.Pod(1), protocol, c.outside(), unanswered); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("%s, %s: %v, want silence", what, protocol, err)
					}
				case kernel.Prohibit:
					if err := c.unseen(what, c.lab.Pod(1), protocol, c.outside(), lab.Stretch(10*time.Second)); !slices.ContainsFunc(told[protocol], func(want unix.Errno) bool { return errors.Is(err, want) }) {
						t.Errorf("%s, %s: %v, want to be told", what, protocol, err)
					}
				default:
					c.sees(what, c.lab.Pod(1), protocol, c.outside(), c.egressIP)
				}
			}
			if after := steered.packets(); (after > before) != (way.Kind == kernel.ToNode) {
				t.Errorf("step %d: %q: %d packets have the mark of the other node", step, way.Kind, after-before)
			}
		}
		source.dropped(nil)
		c.noLeak(leaks)
	})
}

// TestPackets_ToTheNodeWhileLost: while a pod's egress IP is lost, what it sends to its own node arrives there, with the pod's address. That
// needs no egress IP.
func TestPackets_ToTheNodeWhileLost(t *testing.T) {
	onCluster(t, func(c *cluster) {
		source, pod := c.nodes[0], c.lab.Pod(1)
		c.holdsOn(0, c.another) // which is no exclusion, as the node's own address is
		c.serve(source.host, "tcp", "udp")
		for _, way := range []kernel.WayKind{kernel.Blackhole, kernel.Prohibit} {
			c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: {Kind: way}})
			for _, protocol := range []string{"tcp", "udp"} {
				c.sees(fmt.Sprintf("the way is %q", way), pod, protocol, c.another, c.addr(pod))
			}
		}
		source.dropped(nil)
	})
}

// TestPackets_EstablishedFlowsGoOn: neither a write nor another way of its egress IP ends a flow that is right, and
// answers to what began outside pass.
func TestPackets_EstablishedFlowsGoOn(t *testing.T) {
	onTransports(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp", "udp")
		c.serve(c.lab.Pod(1), "tcp", "udp")
		c.holdsOn(0, c.egressIP)
		c.holdsOn(1, c.egressIP)
		bindings := []kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP)}
		here, there := map[netip.Addr]kernel.Way{}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)}
		var flows []*lab.Flow
		dial := func(from *lab.Host, to netip.Addr) {
			for _, protocol := range []string{"tcp", "udp"} {
				flow, err := from.Dial(t.Context(), c.network(protocol), netip.AddrPortFrom(to, port), 0)
				if err != nil {
					t.Fatal(err)
				}
				flows = append(flows, flow)
			}
		}
		c.steer(bindings, here)
		dial(c.lab.Pod(1), c.outside())
		dial(c.lab.Outside(), c.addr(c.lab.Pod(1)))
		c.steer(bindings, there)
		dial(c.lab.Outside(), c.addr(c.lab.Pod(1)))
		for _, n := range c.nodes {
			n.nft("add chain %s foreign", n.name()) // all of the table is written anew
			n.read()
			if !n.write(n.desired) {
				t.Fatal("nothing was repaired")
			}
		}
		for i, flow := range flows {
			if _, err := flow.Ask(t.Context()); err != nil {
				t.Errorf("flow %d: %v", i, err)
			}
		}
		c.nodes[0].dropped(nil)
	})
}

func TestPackets_WhatIsNotSteered(t *testing.T) {
	for name, protocols := range map[string][]kernel.Protocol{"by protocol": {kernel.TCP, kernel.UDP}, "all": {kernel.All}} {
		t.Run(name, func(t *testing.T) {
			onTransports(t, func(c *cluster) {
				var bindings []kernel.Binding
				for _, protocol := range protocols {
					bindings = append(bindings, c.bind(1, protocol, c.egressIP))
				}
				excluded := c.of("198.51.100.77", "2001:db8:113::77")
				if err := c.lab.AddAddr(c.lab.Outside(), excluded); err != nil {
					t.Fatal(err)
				}
				c.holdsOn(1, c.egressIP)
				c.run(c.nodes[0].host, "ip route add %s via %s", c.egressIP, c.nodes[1].ip)
				for _, h := range append(c.lab.Nodes(), c.lab.Outside(), c.lab.Pod(1), c.lab.Pod(2)) {
					c.serve(h, "tcp", "udp")
				}
				for _, n := range c.nodes {
					d := c.desired(bindings...)
					d.Exclusions = append(d.Exclusions, netip.PrefixFrom(excluded, excluded.BitLen()))
					d.Steering = n.steering(map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
					n.write(d)
				}
				pod, node := c.addr(c.lab.Pod(1)), c.nodes[0].ip
				for what, to := range map[string]struct{ addr, want netip.Addr }{
					"to an excluded destination": {excluded, node},
					"to a pod of another node":   {c.addr(c.lab.Pod(2)), pod},
					"to itself":                  {pod, pod},
					"to its node":                {node, pod},
					"to another node":            {c.nodes[1].ip, node},
					"to its own egress IP":       {c.egressIP, node},
				} {
					for _, protocol := range []string{"tcp", "udp"} {
						c.sees(what, c.lab.Pod(1), protocol, to.addr, to.want)
					}
				}
				for _, protocol := range []string{"tcp", "udp"} {
					c.sees("from outside to the pod", c.lab.Outside(), protocol, pod, c.outside())
					c.sees("another pod", c.lab.Pod(2), protocol, c.outside(), c.nodes[1].ip)
				}
				for _, n := range c.nodes {
					n.dropped(nil)
				}
			})
		})
	}
}

// TestPackets_ToEndpointOutside: a Service may lead out of the cluster.
func TestPackets_ToEndpointOutside(t *testing.T) {
	onCluster(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp", "udp")
		c.holdsOn(0, c.egressIP)
		c.holdsOn(1, c.egressIP)
		service, family := c.of("172.30.0.10", "fd00:172:30::10"), map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[c.family]
		source := c.nodes[0]
		source.nftInput(fmt.Sprintf("table %[1]s services { chain c { type nat hook prerouting priority -100; %[1]s daddr %[2]s dnat to %[3]s; }; }\n", family, service, c.outside()))
		for _, way := range []kernel.Way{{}, c.toNode(1)} {
			c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: way})
			for _, protocol := range []string{"tcp", "udp"} {
				c.sees(fmt.Sprintf("%q", way.Kind), c.lab.Pod(1), protocol, service, c.egressIP)
			}
		}
		source.dropped(nil)
	})
}

// TestPackets_OtherBitsOfTheMarkStay, and ours are gone from what leaves the node.
func TestPackets_OtherBitsOfTheMarkStay(t *testing.T) {
	onCluster(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp")
		c.holdsOn(0, c.egressIP)
		c.holdsOn(1, c.egressIP)
		family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[c.family]
		for _, n := range c.nodes {
			n.nftInput(fmt.Sprintf("table %s others { chain c { type filter hook prerouting priority -150; meta mark set meta mark | 0x10001; }; }\n", family))
		}
		source, holder := c.nodes[0], c.nodes[1]
		match := "ip daddr " + c.outside().String() + " tcp dport 8080 meta mark "
		for _, way := range []kernel.Way{{}, c.toNode(1)} {
			c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: way})
			left, wrong := c.count(source.host, "postrouting", 300, match+"0x10001"), c.count(source.host, "postrouting", 300, match+"!= 0x10001")
			c.sees(fmt.Sprintf("%q", way.Kind), c.lab.Pod(1), "tcp", c.outside(), c.egressIP)
			if left.packets() == 0 || wrong.packets() > 0 {
				t.Errorf("%q: %d packets have left with the mark of others alone, %d with another", way.Kind, left.packets(), wrong.packets())
			}
		}
		left, wrong := c.count(holder.host, "postrouting", 300, match+"0x10001"), c.count(holder.host, "postrouting", 300, match+"!= 0x10001")
		c.sees("arrivals", c.lab.Pod(1), "tcp", c.outside(), c.egressIP)
		if left.packets() == 0 || wrong.packets() > 0 {
			t.Errorf("arrivals: %d packets have left with the mark of others alone, %d with another", left.packets(), wrong.packets())
		}
	})
}

// udpFlow is a flow of a pod to a server outside that has got a packet of it.
type udpFlow struct {
	c      *cluster
	client net.Conn
	server net.PacketConn
	peer   net.Addr
}

func (c *cluster) udpFlow(pod *lab.Host, port uint16) udpFlow {
	c.Helper()
	f := udpFlow{c: c}
	err := c.lab.Outside().Do(func() (err error) {
		f.server, err = net.ListenPacket(c.network("udp"), fmt.Sprintf(":%d", port))
		return err
	})
	if err == nil {
		c.Cleanup(func() { _ = f.server.Close() })
		f.client, err = pod.DialContext(c.Context(), c.network("udp"), netip.AddrPortFrom(c.outside(), port).String())
	}
	if err != nil {
		c.Fatal(err)
	}
	f.ask()
	_ = f.server.SetReadDeadline(time.Now().Add(lab.Stretch(5 * time.Second)))
	if _, f.peer, err = f.server.ReadFrom(make([]byte, 100)); err != nil {
		c.Fatal(err)
	}
	return f
}

func (f udpFlow) ask() {
	f.c.Helper()
	if _, err := f.client.Write([]byte("question")); err != nil {
		f.c.Fatal(err)
	}
}

// answerLate has the server answer when nobody listens any more, which the pod says in an ICMP error.
func (f udpFlow) answerLate() {
	f.c.Helper()
	_ = f.client.Close()
	if _, err := f.server.WriteTo([]byte("late answer"), f.peer); err != nil {
		f.c.Fatal(err)
	}
}

// TestPackets_OneWay: all packets of a flow leave that nobody answers.
func TestPackets_OneWay(t *testing.T) {
	onCluster(t, func(c *cluster) {
		c.holdsOn(0, c.egressIP)
		c.holdsOn(1, c.egressIP)
		for i, way := range []kernel.Way{{}, c.toNode(1)} {
			c.steer([]kernel.Binding{c.bind(1, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: way})
			f := c.udpFlow(c.lab.Pod(1), uint16(9000+i))
			for packet := range 3 {
				f.ask()
				if _, from, err := f.server.ReadFrom(make([]byte, 100)); err != nil || from.String() != f.peer.String() {
					t.Errorf("%q: packet %d is from %v (%v), want %s", way.Kind, packet, from, err, f.peer)
				}
			}
		}
		for _, n := range c.nodes {
			n.dropped(nil)
		}
	})
}

// TestPackets_ICMPErrorOfTheFlow: the pod's error about a flow goes the way of the flow, though only UDP is bound.
func TestPackets_ICMPErrorOfTheFlow(t *testing.T) {
	onTransports(t, func(c *cluster) {
		c.holdsOn(0, c.egressIP)
		c.holdsOn(1, c.egressIP)
		errorType := map[kernel.Family]string{kernel.IPv4: "icmp type destination-unreachable", kernel.IPv6: "icmpv6 type destination-unreachable"}[c.family]
		for i, way := range []kernel.Way{{}, c.toNode(1)} {
			c.steer([]kernel.Binding{c.bind(1, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: way})
			right := c.count(c.lab.Outside(), "prerouting", -400, "ip saddr "+c.egressIP.String()+" "+errorType)
			wrong := c.count(c.lab.Outside(), "prerouting", -400, "ip saddr != "+c.egressIP.String()+" "+errorType)
			c.udpFlow(c.lab.Pod(1), uint16(9000+i)).answerLate()
			right.await()
			if n := wrong.packets(); n > 0 {
				t.Errorf("%q: %d ICMP errors have left from another address", way.Kind, n)
			}
		}
	})
}

// TestPackets_AnswersFitTheTunnel: a pod that is steered sends segments that fit, and others as before.
func TestPackets_AnswersFitTheTunnel(t *testing.T) {
	onCluster(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp")
		c.holdsOn(0, c.egressIP)
		c.holdsOn(1, c.egressIP)
		const uplinkMTU = 1500
		headers, timestamps := c.bits(40, 60), 12
		for kind, test := range map[string]struct {
			way kernel.Way
			mtu int
		}{"here": {kernel.Way{}, uplinkMTU}, "to another node": {c.toNode(1), tunnelMTU}} {
			c.steer([]kernel.Binding{c.bind(1, kernel.All, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: test.way})
			conn, err := c.lab.Pod(1).DialContext(t.Context(), c.network("tcp"), netip.AddrPortFrom(c.outside(), port).String())
			if err != nil {
				t.Fatal(err)
			}
			raw, err := conn.(*net.TCPConn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			var segment int
			if controlErr := raw.Control(func(fd uintptr) { segment, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG) }); controlErr != nil || err != nil {
				t.Fatal(controlErr, err)
			}
			if want := test.mtu - headers - timestamps; segment != want {
				t.Errorf("%s: segments of %d bytes, want %d", kind, segment, want)
			}
			_ = conn.Close()
		}
	})
}

// inFront has somebody else decide about a pod's source before this package does: of chains with the lowest priority there is the newest is
// the first.
func (n *node) inFront(pod netip.Addr, decision string) (undo func()) {
	n.c.Helper()
	family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[n.c.family]
	n.nftInput(fmt.Sprintf("table %[1]s infront { chain c { type nat hook postrouting priority %[4]d; %[1]s saddr %[2]s %[3]s; }; }\n", family, pod, decision, SourceNATPriority))
	return func() { n.nft("delete table %s infront", family) }
}

// TestGuard_SourceNATOfOthers: what is steered and somebody else has given an address does not leave, be it another pod's egress IP.
func TestGuard_SourceNATOfOthers(t *testing.T) {
	for name, protocols := range map[string][]kernel.Protocol{"by protocol": {kernel.TCP, kernel.UDP}, "all": {kernel.All}} {
		t.Run(name, func(t *testing.T) {
			onTransports(t, func(c *cluster) {
				c.serve(c.lab.Outside(), "tcp", "udp")
				c.holdsOn(0, c.egressIP)
				c.holdsOn(1, c.egressIP)
				source, holder := c.nodes[0], c.nodes[1]
				leaks := c.leaks(c.lab.Pod(1))
				foreign := c.count(c.lab.Outside(), "prerouting", -400, "ip saddr "+c.another.String())
				var bindings []kernel.Binding
				for _, protocol := range protocols {
					bindings = append(bindings, c.bind(1, protocol, c.egressIP), c.bind(2, protocol, c.another))
				}
				for what, test := range map[string]struct {
					way     kernel.Way
					at      *node
					counter string
				}{
					"on the pod's node":   {c.toNode(1), source, unsnattedCounter},
					"on the holder":       {c.toNode(1), holder, staleCounter},
					"nobody masquerades":  {c.toNode(1), nil, ""},
					"nobody, and is here": {kernel.Way{}, nil, ""},
				} {
					c.steer(bindings, map[netip.Addr]kernel.Way{c.egressIP: test.way})
					for _, protocol := range []string{"tcp", "udp"} {
						if test.at == nil {
							c.sees(what, c.lab.Pod(1), protocol, c.outside(), c.egressIP)
							continue
						}
						for _, decision := range []string{"masquerade", "snat to " + c.another.String()} {
							before, undo := test.at.drops(), test.at.inFront(c.addr(c.lab.Pod(1)), decision)
							_ = c.unseen(what+", "+decision, c.lab.Pod(1), protocol, c.outside(), unanswered)
							test.at.dropped(before, test.counter)
							undo()
						}
					}
				}
				c.noLeak(leaks)
				c.noLeak(foreign)
			})
		})
	}
}

// TestPostrouting_ComesBeforeOthers: whatever masquerades pods, at any priority behind ours and whoever came first, changes nothing.
func TestPostrouting_ComesBeforeOthers(t *testing.T) {
	onTransports(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp", "udp")
		c.holdsOn(1, c.egressIP)
		leaks := c.leaks(c.lab.Pod(1))
		bindings := []kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(2, kernel.UDP, c.egressIP)}
		own := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[c.family]
		masquerade := func(when string) {
			var tables strings.Builder
			priorities := []int{SourceNATPriority + 1, -150, 50, 90, 99, 100}
			if when == "before" { // of chains with one priority the newest is the first
				priorities = append(priorities, SourceNATPriority)
			}
			for i, priority := range priorities {
				for _, family := range []string{own, "inet"} {
					fmt.Fprintf(&tables, "table %s %s%d { chain c { type nat hook postrouting priority %d; oifname \"eth0\" masquerade; }; }\n", family, when, i, priority)
				}
			}
			for _, n := range c.nodes {
				n.nftInput(tables.String())
			}
		}
		masquerade("before")
		c.steer(bindings, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		masquerade("after")
		for what, pod := range map[string]int{"steered": 1, "on the holder": 2} {
			protocol := string(map[int]kernel.Protocol{1: kernel.TCP, 2: kernel.UDP}[pod])
			c.sees(what, c.lab.Pod(pod), strings.ToLower(protocol), c.outside(), c.egressIP)
		}
		c.noLeak(leaks)
	})
}

// leave removes bindings, of which the guard keeps hold.
func (n *node) leave(bindings []kernel.Binding) {
	n.c.Helper()
	d := n.desired
	d.Bindings = nil
	n.inside(func() error {
		_, err := n.Update(n.c.Context(), kernel.Change{Removed: bindings, Networks: d.Networks, Steering: d.Steering}, bindings)
		return err
	})
	n.desired = d
}

// TestGuard_WithoutWhatSteers: whatever somebody has taken away, nothing leaves from another address.
func TestGuard_WithoutWhatSteers(t *testing.T) {
	onTransports(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "tcp", "udp")
		c.holdsOn(0, c.egressIP)
		c.holdsOn(1, c.egressIP)
		source, holder := c.nodes[0], c.nodes[1]
		leaks := c.leaks(c.lab.Pod(1))
		bindings := []kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP)}
		family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip -6"}[c.family]
		for what, test := range map[string]struct {
			way     kernel.Way
			take    func()
			at      *node
			counter string
		}{
			"a binding that is leaving": {way: kernel.Way{}, at: source, counter: unsnattedCounter, take: func() { source.leave(bindings) }},
			"leaving, and steered":      {way: c.toNode(1), at: source, counter: unsnattedCounter, take: func() { source.leave(bindings) }},
			"leaving on the holder":     {way: c.toNode(1), at: holder, counter: staleCounter, take: func() { holder.leave(bindings) }},
			"no ip rule": {way: c.toNode(1), at: source, counter: unsnattedCounter, take: func() {
				c.run(source.host, "%s rule del pref 901", family)
				clear(source.ways.made)
				source.restart(source.ways)
			}},
			"no binding on the holder": {way: c.toNode(1), at: holder, counter: staleCounter, take: func() {
				d := holder.desired
				d.Bindings = nil
				holder.write(d)
			}},
		} {
			c.steer(bindings, map[netip.Addr]kernel.Way{c.egressIP: test.way})
			before := test.at.drops()
			test.take()
			for _, protocol := range []string{"tcp", "udp"} {
				_ = c.unseen(what, c.lab.Pod(1), protocol, c.outside(), unanswered)
			}
			test.at.dropped(before, test.counter)
		}
		c.noLeak(leaks)
	})
}

// TestCleanup_AwaitsOtherNodes: what they still send when a node cleans up does not leave there.
func TestCleanup_AwaitsOtherNodes(t *testing.T) {
	onTransports(t, func(c *cluster) {
		c.serve(c.lab.Outside(), "udp")
		c.holdsOn(1, c.egressIP)
		pod, source, holder := c.lab.Pod(1), c.nodes[0], c.nodes[1]
		c.steer([]kernel.Binding{c.bind(1, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		c.sees("before", pod, "udp", c.outside(), c.egressIP)
		leaks := c.leaks(pod)
		sent := c.count(source.host, "prerouting", -400, fmt.Sprintf("ip saddr %s", c.addr(pod)))
		traffic := lab.StartTraffic(lab.TrafficConfig{
			To: []netip.AddrPort{netip.AddrPortFrom(c.outside(), port)}, Protocols: []string{"udp"}, Timeout: 20 * time.Millisecond,
		}, pod)
		defer traffic.Stop()
		ended := make(chan error, 1)
		go func() {
			ended <- holder.host.Do(func() error { return Cleanup(c.Context()) })
		}()
		sent.awaitMore(sent.packets() + 20)
		source.update(source.steering(map[netip.Addr]kernel.Way{c.egressIP: {Kind: kernel.Blackhole}})) // it has heard
		if err := <-ended; err != nil {
			c.Fatal(err)
		}
		c.noLeak(leaks)
		if listed := c.run(holder.host, "nft list ruleset"); strings.Contains(listed, Table) {
			c.Errorf("it leaves\n%s", listed)
		}
	})
}

// TestGuard_FlowWhileLeaving: what a pod sends while its flows are judged, for it is bound no more, makes no flow that would
// go on under the pod's own address.
func TestGuard_FlowWhileLeaving(t *testing.T) {
	onTransports(t, func(c *cluster) {
		c.holdsOn(1, c.egressIP)
		source := c.nodes[0]
		for i, protocol := range []kernel.Protocol{kernel.UDP, kernel.All} {
			bindings := []kernel.Binding{c.bind(1, protocol, c.egressIP)}
			c.steer(bindings, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
			flow := c.udpFlow(c.lab.Pod(1), uint16(9000+i))
			before := source.drops()
			source.leave(bindings)
			c.run(source.host, "conntrack -D -s %s", c.addr(c.lab.Pod(1)))
			flow.ask()
			source.dropped(before, unsnattedCounter)
			c.steer(nil, nil)
			flow.ask()
			_ = flow.server.SetReadDeadline(time.Now().Add(lab.Stretch(5 * time.Second)))
			_, from, err := flow.server.ReadFrom(make([]byte, 100))
			if seen, _ := netip.ParseAddrPort(fmt.Sprint(from)); seen.Addr() != source.ip {
				t.Errorf("%s: not bound, it is seen as %v (%v), want %s", protocol, from, err, source.ip)
			}
		}
	})
}

// TestPackets_ExcludedMeanwhile: a flow that was sent to another node begins anew when its destination is excluded. It would go on under the
// pod's own address.
func TestPackets_ExcludedMeanwhile(t *testing.T) {
	onTransports(t, func(c *cluster) {
		c.holdsOn(1, c.egressIP)
		source, bindings := c.nodes[0], []kernel.Binding{c.bind(1, kernel.UDP, c.egressIP)}
		c.steer(bindings, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		flow := c.udpFlow(c.lab.Pod(1), 9000)
		before, next := source.desired, source.desired
		next.Exclusions = append(slices.Clone(next.Exclusions), netip.PrefixFrom(c.outside(), c.outside().BitLen()))
		source.updateTo(next)
		source.inside(func() error {
			_, err := conntrack.Delete(c.Context(), c.family, next, conntrack.Scope{Sent: bindings, Excluded: slices.Concat(before.ClusterCIDRs, before.Exclusions)})
			return err
		})
		flow.ask()
		_ = flow.server.SetReadDeadline(time.Now().Add(lab.Stretch(5 * time.Second)))
		_, from, err := flow.server.ReadFrom(make([]byte, 100))
		if seen, _ := netip.ParseAddrPort(fmt.Sprint(from)); seen.Addr() != source.ip {
			t.Errorf("excluded, it is seen as %v (%v), want %s", from, err, source.ip)
		}
	})
}

// TestGuard_FlowsFromBefore: a flow that has begun from the pod's own address, which nobody gives another any more,
// does not go on when the pod is bound.
func TestGuard_FlowsFromBefore(t *testing.T) {
	for _, family := range families {
		t.Run(string(family), func(t *testing.T) {
			c := newCluster(t, family, lab.Config{Nodes: 2, Pods: 2, IPv6: true})
			c.holdsOn(0, c.egressIP)
			source := c.nodes[0]
			for i, protocol := range []kernel.Protocol{kernel.UDP, kernel.All} {
				c.steer(nil, nil)
				flow := c.udpFlow(c.lab.Pod(1), uint16(9000+i))
				if _, err := flow.server.WriteTo([]byte("answer"), flow.peer); err != nil {
					t.Fatal(err)
				}
				if _, err := flow.client.Read(make([]byte, 100)); err != nil {
					t.Fatal(err)
				}
				c.steer([]kernel.Binding{c.bind(1, protocol, c.egressIP)}, nil)
				before, leaks := source.drops(), c.leaks(c.lab.Pod(1))
				flow.ask()
				source.dropped(before, unsnattedCounter)
				before = source.drops()
				flow.answerLate()
				source.dropped(before, unsnattedCounter)
				c.noLeak(leaks)
			}
		})
	}
}

// TestGuard_AnotherNodeAsRouter: without a tunnel, what was to leave from this node does not pass for steered
// because another node is its router.
func TestGuard_AnotherNodeAsRouter(t *testing.T) {
	for _, family := range families {
		t.Run(string(family), func(t *testing.T) {
			c := newCluster(t, family, lab.Config{Nodes: 2, Pods: 2, IPv6: true})
			c.transport = Direct
			c.holdsOn(0, c.egressIP)
			source := c.nodes[0]
			source.restart(source.ways)
			c.run(source.host, "ip route add %s via %s", c.outside(), c.nodes[1].ip)
			bindings := []kernel.Binding{c.bind(1, kernel.UDP, c.egressIP)}
			c.steer(bindings, nil)
			source.leave(bindings)
			before, leaks := source.drops(), c.leaks(c.lab.Pod(1))
			_ = c.unseen("leaving", c.lab.Pod(1), "udp", c.outside(), unanswered)
			source.dropped(before, unsnattedCounter)
			c.noLeak(leaks)
		})
	}
}

// TestGuard_PacketsWithoutFlow: source NAT does not meet what conntrack calls INVALID, the guard does.
func TestGuard_PacketsWithoutFlow(t *testing.T) {
	onTransports(t, func(c *cluster) {
		c.holdsOn(0, c.egressIP)
		c.holdsOn(1, c.egressIP)
		leaks := c.leaks(c.lab.Pod(1))
		synAck := make([]byte, 20)
		binary.BigEndian.PutUint16(synAck[0:], 34567)
		binary.BigEndian.PutUint16(synAck[2:], port)
		synAck[12], synAck[13] = 5<<4, flagSYN|flagACK
		for _, protocol := range []kernel.Protocol{kernel.TCP, kernel.All} {
			for way, test := range map[kernel.Way]struct {
				at      *node
				counter string
			}{{}: {c.nodes[0], unsnattedCounter}, c.toNode(1): {c.nodes[1], staleCounter}} {
				c.steer([]kernel.Binding{c.bind(1, protocol, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: way})
				before := test.at.drops()
				err := c.lab.Pod(1).Do(func() error {
					conn, err := net.ListenPacket(c.network("ip")+":tcp", c.addr(c.lab.Pod(1)).String())
					if err != nil {
						return err
					}
					defer func() { _ = conn.Close() }()
					_, err = conn.WriteTo(synAck, &net.IPAddr{IP: c.outside().AsSlice()})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				test.at.dropped(before, test.counter)
			}
		}
		c.noLeak(leaks)
	})
}

// TestGuard_ForgottenFlow: when a flow is forgotten, what still comes from the far side makes no flow in the
// other direction, and the pod's own next packet takes it up again.
func TestGuard_ForgottenFlow(t *testing.T) {
	onTransports(t, func(c *cluster) {
		c.holdsOn(1, c.egressIP)
		listener, err := c.lab.Outside().Listen(t.Context(), c.network("tcp"), ":9000")
		if err != nil {
			t.Fatal(err)
		}
		leaks := c.leaks(c.lab.Pod(1))
		source := c.nodes[0]
		for _, protocol := range []kernel.Protocol{kernel.TCP, kernel.All} {
			c.steer([]kernel.Binding{c.bind(1, protocol, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
			client, err := c.lab.Pod(1).DialContext(t.Context(), c.network("tcp"), netip.AddrPortFrom(c.outside(), 9000).String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			server, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = server.Close() }()
			before := source.drops()
			c.run(source.host, "conntrack -D -s %s -d %s", c.addr(c.lab.Pod(1)), c.outside())
			c.says(server, "late")
			source.dropped(before, flippedCounter)
			c.says(client, "ahead")
			c.hears(server, "ahead")
			c.hears(client, "late")
		}
		c.noLeak(leaks)
	})
}

// TestGuard_ForgottenDatagrams: as TestGuard_ForgottenFlow, of protocols that do not say who begins a flow. What else comes
// from the far side reaches the pod.
func TestGuard_ForgottenDatagrams(t *testing.T) {
	onTransports(t, func(c *cluster) {
		c.holdsOn(1, c.egressIP)
		c.serve(c.lab.Pod(1), "udp")
		source, pod, leaks := c.nodes[0], c.addr(c.lab.Pod(1)), c.leaks(c.lab.Pod(1))
		for i, protocol := range []kernel.Protocol{kernel.UDP, kernel.All} {
			c.steer([]kernel.Binding{c.bind(1, protocol, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
			port := uint16(9000 - 920*i) // those that leaks counts
			flow := c.udpFlow(c.lab.Pod(1), port)
			c.run(source.host, "conntrack -D -s %s -d %s", pod, c.outside())
			before := source.drops()
			if _, err := flow.server.WriteTo([]byte("late"), flow.peer); err != nil {
				t.Fatal(err)
			}
			source.dropped(before, flippedCounter)
			c.says(flow.client, "ahead")
			_ = flow.server.SetReadDeadline(time.Now().Add(lab.Stretch(5 * time.Second)))
			if _, from, err := flow.server.ReadFrom(make([]byte, 100)); err != nil || from.String() != flow.peer.String() {
				t.Errorf("%s: seen as %v (%v), want %s", protocol, from, err, flow.peer)
			}
			if _, err := flow.server.WriteTo([]byte("answer"), flow.peer); err != nil {
				t.Fatal(err)
			}
			c.hears(flow.client, "answer")
			before = source.drops()
			c.sees("another flow of the far side", c.lab.Outside(), "udp", pod, c.outside())
			source.dropped(before)
		}
		c.noLeak(leaks)
	})
}

// TestGuard_ForgottenFlowWithoutPorts: as TestGuard_ForgottenDatagrams, of a protocol that has no ports.
func TestGuard_ForgottenFlowWithoutPorts(t *testing.T) {
	onTransports(t, func(c *cluster) {
		c.holdsOn(1, c.egressIP)
		source, pod, outside := c.nodes[0], c.lab.Pod(1), c.lab.Outside()
		const experimental = 253 // RFC 3692
		packetsOf := func(from netip.Addr) counter {
			return c.count(outside, "prerouting", -400, fmt.Sprintf("ip saddr %s meta l4proto %d", from, experimental))
		}
		right, wrong := packetsOf(c.egressIP), packetsOf(c.addr(pod))
		c.steer([]kernel.Binding{c.bind(1, kernel.All, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		c.sendIP(pod, experimental, c.outside())
		right.await()
		c.run(source.host, "conntrack -D -s %s -d %s", c.addr(pod), c.outside())
		before := source.drops()
		c.sendIP(outside, experimental, c.egressIP)
		source.dropped(before, flippedCounter)
		c.sendIP(pod, experimental, c.outside())
		if right.awaitMore(1); wrong.packets() > 0 {
			t.Errorf("%d packets have left under the pod's own address", wrong.packets())
		}
	})
}

// TestPackets_ConnectionThatAnotherNodeKnew: a connection of a held egress IP lives on though this node does not know it.
// What the far side sends is dropped until the pod sends. The pod's port stays.
func TestPackets_ConnectionThatAnotherNodeKnew(t *testing.T) {
	onCluster(t, func(c *cluster) {
		c.holdsOn(0, c.egressIP)
		listener, err := c.lab.Outside().Listen(t.Context(), c.network("tcp"), ":9000")
		if err != nil {
			t.Fatal(err)
		}
		leaks, n := c.leaks(c.lab.Pod(1)), c.nodes[0]
		resets := c.count(c.lab.Outside(), "prerouting", -400, "ip saddr "+c.egressIP.String()+" tcp flags & rst == rst")
		for _, protocol := range []kernel.Protocol{kernel.TCP, kernel.All} {
			d := c.desired(c.bind(1, protocol, c.egressIP))
			d.Steering.Held = map[netip.Addr]bool{c.egressIP: true}
			n.write(d)
			client, err := c.lab.Pod(1).DialContext(t.Context(), c.network("tcp"), netip.AddrPortFrom(c.outside(), 9000).String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			server, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = server.Close() }()
			near, far := netip.MustParseAddrPort(client.LocalAddr().String()), netip.MustParseAddrPort(server.RemoteAddr().String())
			if far != netip.AddrPortFrom(c.egressIP, near.Port()) {
				t.Errorf("%s is seen as %s, want its port", near, far)
			}
			before := n.drops()
			c.run(n.host, "conntrack -D -s %s -d %s", near.Addr(), c.outside())
			c.says(server, "late")
			n.dropped(before, nostateCounter)
			c.says(client, "ahead")
			c.hears(server, "ahead")
			c.hears(client, "late")
		}
		if packets := resets.packets(); packets > 0 {
			t.Errorf("%d resets have come from the egress IP", packets)
		}
		c.noLeak(leaks)
	})
}

// TestPackets_FlowThatAnotherNodeKnew: a UDP flow of a held egress IP lives on though this node does not know it, also if the far side is
// the first to send. The pod's port stays.
func TestPackets_FlowThatAnotherNodeKnew(t *testing.T) {
	for _, on := range []string{"on an interface", "on none"} { // as MetalLB has it
		t.Run(on, func(t *testing.T) { flowThatAnotherNodeKnew(t, on == "on an interface") })
	}
}

func flowThatAnotherNodeKnew(t *testing.T, assigned bool) {
	onCluster(t, func(c *cluster) {
		n := c.nodes[0]
		if assigned {
			c.holdsOn(0, c.egressIP)
		} else if err := c.lab.RouteVia(netip.PrefixFrom(c.egressIP, c.egressIP.BitLen()), n.host); err != nil {
			c.Fatal(err)
		}
		d := c.desired(c.bind(1, kernel.UDP, c.egressIP))
		d.Steering.Held = map[netip.Addr]bool{c.egressIP: true}
		n.write(d)
		leaks := c.leaks(c.lab.Pod(1))
		var far *net.UDPConn
		if err := c.lab.Outside().Do(func() (err error) {
			far, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.outside(), 0)))
			return err
		}); err != nil {
			c.Fatal(err)
		}
		defer func() { _ = far.Close() }()
		client, err := c.lab.Pod(1).DialContext(t.Context(), c.network("udp"), far.LocalAddr().String())
		if err != nil {
			c.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		want := netip.AddrPortFrom(c.egressIP, netip.MustParseAddrPort(client.LocalAddr().String()).Port())
		for _, text := range []string{"first", "ahead"} {
			c.says(client, text)
			_ = far.SetReadDeadline(time.Now().Add(lab.Stretch(5 * time.Second)))
			if _, seen, err := far.ReadFromUDPAddrPort(make([]byte, 10)); err != nil || netip.AddrPortFrom(seen.Addr().Unmap(), seen.Port()) != want {
				c.Fatalf("%s: seen as %s, %v; want %s", text, seen, err, want)
			}
			before := n.drops()
			c.run(n.host, "conntrack -D -p udp -d %s", c.outside())
			if _, err := far.WriteToUDPAddrPort([]byte("late"), want); err != nil {
				c.Fatal(err)
			}
			n.dropped(before, nostateCounter)
		}
		c.noLeak(leaks)
	})
}

// TestPackets_HeadersEndTooEarly: a packet of a pod that is bound for all protocols, of which nobody can tell the protocol, has no flow and
// gets no egress IP. It does not leave.
func TestPackets_HeadersEndTooEarly(t *testing.T) {
	c := newCluster(t, kernel.IPv6, lab.Config{Nodes: 2, Pods: 2, IPv6: true})
	n, pod := c.nodes[0], c.lab.Pod(1)
	c.holdsOn(0, c.egressIP)
	left := c.count(n.host, "postrouting", 300, "ip saddr "+c.addr(pod).String()+" ip daddr "+c.outside().String())
	n.write(c.desired(c.bind(1, kernel.All, c.egressIP)))
	c.sendIP(pod, unix.IPPROTO_DSTOPTS, c.outside())
	n.dropped(nil, unsnattedCounter)
	if left.packets() > 0 {
		t.Error("it has left the node")
	}
}

// TestPackets_ForTheNodeItself: what this node listens for at a held egress IP is its own, and so are resets from there.
func TestPackets_ForTheNodeItself(t *testing.T) {
	onCluster(t, func(c *cluster) {
		c.holdsOn(0, c.egressIP)
		n := c.nodes[0]
		if err := c.lab.RouteVia(netip.PrefixFrom(c.egressIP, c.egressIP.BitLen()), n.host); err != nil {
			t.Fatal(err)
		}
		d := c.desired(c.bind(1, kernel.TCP, c.egressIP))
		d.Steering.Held = map[netip.Addr]bool{c.egressIP: true}
		n.write(d)
		c.serve(n.host, "tcp")
		c.sees("from outside to the node", c.lab.Outside(), "tcp", c.egressIP, c.outside())
		const noEndpoints = 9999 // a Service's port, as the proxier has it
		n.nftInput(fmt.Sprintf("table inet services { chain c { type filter hook input priority 0; udp dport %d reject; }; }\n", noEndpoints))
		if _, err := c.lab.Outside().Ask(t.Context(), c.network("udp"), netip.AddrPortFrom(c.egressIP, noEndpoints), 0); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("a datagram to a Service without endpoints: %v, want it refused", err)
		}
		resets := c.count(c.lab.Outside(), "prerouting", -400, "ip saddr "+c.egressIP.String()+" tcp flags & rst == rst")
		ack := make([]byte, 20)
		binary.BigEndian.PutUint16(ack[0:], 34567)
		ack[12], ack[13] = 5<<4, flagACK
		for to, counters := range map[uint16][]string{port: nil, port + 1: {nostateCounter}} {
			before := n.drops()
			binary.BigEndian.PutUint16(ack[2:], to)
			c.sendRaw(c.lab.Outside(), ack, c.egressIP)
			if counters == nil {
				resets.await()
			}
			n.dropped(before, counters...)
		}
		if packets := resets.packets(); packets != 1 {
			t.Errorf("%d resets, want one", packets)
		}
	})
}

// sendRaw sends a segment of TCP from a host, with the right checksum.
func (c *cluster) sendRaw(from *lab.Host, segment []byte, to netip.Addr) {
	c.Helper()
	pseudo := append(append(c.addr(from).AsSlice(), to.AsSlice()...), 0, 0, 0, unix.IPPROTO_TCP, 0, 0, 0, byte(len(segment)))
	binary.BigEndian.PutUint16(segment[16:], 0)
	var sum uint32
	for b := append(pseudo, segment...); len(b) > 0; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(segment[16:], ^uint16(sum))
	c.sendIP(from, unix.IPPROTO_TCP, to, segment...)
}

// sendIP sends a packet of a protocol from a host.
func (c *cluster) sendIP(from *lab.Host, protocol int, to netip.Addr, payload ...byte) {
	c.Helper()
	err := from.Do(func() error {
		conn, err := net.ListenPacket(fmt.Sprintf("%s:%d", c.network("ip"), protocol), c.addr(from).String())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		_, err = conn.WriteTo(payload, &net.IPAddr{IP: to.AsSlice()})
		return err
	})
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) says(from net.Conn, text string) {
	c.Helper()
	if _, err := from.Write([]byte(text)); err != nil {
		c.Fatal(err)
	}
}

// hears fails unless an end of a connection soon gets a text.
func (c *cluster) hears(at net.Conn, text string) {
	c.Helper()
	heard := make([]byte, len(text))
	_ = at.SetReadDeadline(time.Now().Add(lab.Stretch(5 * time.Second)))
	if _, err := at.Read(heard); err != nil || !bytes.Equal(heard, []byte(text)) {
		c.Errorf("heard %q (%v), want %q", heard, err, text)
	}
}

// TestGuard_PortsOfNodes: nobody but the other nodes speaks into the tunnel, announces anything, or
// takes part in the pool. Into the tunnel only their kernels speak, and no process.
func TestGuard_PortsOfNodes(t *testing.T) {
	onCluster(t, func(c *cluster) {
		c.steer(nil, nil)
		source, other := c.nodes[0], c.nodes[1]
		if err := c.lab.AddAddr(c.lab.Pod(2), source.ip); err != nil {
			t.Fatal(err)
		}
		for _, test := range map[string]struct {
			from    *lab.Host
			source  netip.Addr
			to      netip.Addr
			at      *node
			counter string // none if the packet is to arrive
		}{
			"from outside":                      {from: c.lab.Outside(), to: source.ip, at: source, counter: foreignCounter},
			"from a pod to its node":            {from: c.lab.Pod(1), to: source.ip, at: source, counter: foreignCounter},
			"from a pod to another node":        {from: c.lab.Pod(1), to: other.ip, at: source, counter: forgedCounter},
			"from a pod that pretends to be it": {from: c.lab.Pod(2), source: source.ip, to: other.ip, at: other, counter: foreignCounter},
			"from the node itself":              {from: source.host, to: source.ip, at: source, counter: foreignCounter},
			"from another node":                 {from: other.host, to: source.ip, at: source},
		} {
			for _, port := range []struct {
				number   uint16
				protocol string
				state    string
			}{{tunnelPort, "udp", "untracked"}, {announcePort, "udp", "untracked"}, {assignPort, "udp", "new"}, {assignPort, "tcp", "new"}} {
				counter := test.counter
				if test.from == test.at.host && port.number == tunnelPort {
					counter = forgedCounter // the kernel alone sends into the tunnel
				}
				toTunnel := test.counter == "" && port.number == tunnelPort
				state := port.state
				if toTunnel {
					state = "untracked,new"
				}
				before, sent := test.at.drops(), other.drops()
				arrived := c.count(test.at.host, "prerouting", -150, fmt.Sprintf("ct state %s %s dport %d", state, port.protocol, port.number))
				c.send(port.protocol, test.from, test.source, netip.AddrPortFrom(test.to, port.number))
				switch {
				case counter != "":
					test.at.dropped(before, counter)
				case toTunnel: // its own node drops what a process sends; what the tunnel takes is in other tests
					other.dropped(sent, forgedCounter)
					test.at.dropped(before)
					if n := arrived.packets(); n > 0 {
						t.Errorf("%d packets of a process of another node have arrived for the tunnel", n)
					}
				default:
					arrived.await()
					test.at.dropped(before)
				}
			}
		}
	})
}

// send sends a packet from a host; from whichever of its addresses if source is invalid.
func (c *cluster) send(protocol string, from *lab.Host, source netip.Addr, to netip.AddrPort) {
	c.Helper()
	dialer := net.Dialer{Timeout: 100 * time.Millisecond} // nobody listens
	if source.IsValid() {
		dialer.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(source, 0))
		if protocol == "tcp" {
			dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0))
		}
	}
	err := from.Do(func() error {
		conn, err := dialer.Dial(c.network(protocol), to.String())
		if protocol == "tcp" {
			return nil // its first packet is enough
		}
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if _, err = conn.Write([]byte("a packet for a node")); errors.Is(err, unix.EPERM) {
			return nil // dropped where it is sent
		}
		return err
	})
	if err != nil {
		c.Errorf("from %s to %s: %v", from.Name, to, err)
	}
}

// TestGuard_KernelsOwnReports: IGMP and MLD reports of the node, which have some mark, leave.
func TestGuard_KernelsOwnReports(t *testing.T) {
	onCluster(t, func(c *cluster) {
		c.steer([]kernel.Binding{c.bind(1, kernel.All, c.egressIP)}, nil)
		group := net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.of("239.1.2.3", "ff05::1:3"), 9999))
		n := c.nodes[0]
		marked := c.count(n.host, "postrouting", 90, "ip daddr "+c.of("224.0.0.22", "ff02::16").String()+" meta mark & 0x7e != 0")
		n.inside(func() error {
			link, err := net.InterfaceByName("eth0")
			if err != nil {
				return err
			}
			conn, err := net.ListenMulticastUDP(c.network("udp"), link, group)
			if err == nil {
				t.Cleanup(func() { _ = conn.Close() })
			}
			return err
		})
		marked.await()
		n.dropped(nil)
	})
}

// TestArrivals_WhatIsNoArrival: without a tunnel, packets of other nodes' pods that are not bound come in like those that
// are sent here: answers to clients that this node has let in, and packets to a Service of this node that leads out of the
// cluster.
func TestArrivals_WhatIsNoArrival(t *testing.T) {
	for name, protocol := range map[string]kernel.Protocol{"by protocol": kernel.UDP, "all": kernel.All} {
		for _, family := range families {
			t.Run(name+", "+string(family), func(t *testing.T) {
				c := newCluster(t, family, lab.Config{Nodes: 2, Pods: 2, IPv6: true}) // nobody masquerades
				c.use(Direct)
				here, there, pod := c.nodes[0], c.nodes[1], c.lab.Pod(2)
				c.holdsOn(0, c.egressIP)
				c.holdsOn(0, c.another)
				c.serve(c.lab.Outside(), "tcp")
				c.serve(pod, "tcp")
				c.steer([]kernel.Binding{c.bind(1, protocol, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(0)})
				family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[c.family]
				here.nftInput(fmt.Sprintf("table %[1]s services { chain c { type nat hook prerouting priority -100; tcp dport 80 dnat to %[2]s; tcp dport 81 dnat to %[3]s; }; }\n",
					family, netip.AddrPortFrom(c.addr(pod), port), netip.AddrPortFrom(c.outside(), port)))
				command := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip -6"}[c.family]
				c.run(there.host, "%s route add default via %s table 100", command, here.ip)
				c.run(there.host, "%s rule add from %s lookup 100", command, c.addr(pod))
				for what, ask := range map[string]struct {
					from *lab.Host
					to   netip.AddrPort
					want netip.Addr
				}{
					"a client outside, of the pod": {c.lab.Outside(), netip.AddrPortFrom(c.another, 80), c.outside()},
					"the pod, of a host outside":   {pod, netip.AddrPortFrom(c.another, 81), c.addr(pod)},
				} {
					seen, err := ask.from.Ask(t.Context(), c.network("tcp"), ask.to, 0)
					if err != nil || seen != ask.want {
						t.Errorf("%s: seen as %s (%v), want %s", what, seen, err, ask.want)
					}
				}
				here.dropped(nil)
				before := here.drops()
				_ = c.unseen("without a binding", pod, "tcp", c.outside(), unanswered) // here is its router
				here.dropped(before, staleCounter)
			})
		}
	}
}

// TestArrivals_ServiceLeadsBack: a Service at some other address of the holder may lead into the cluster, where nothing comes from egress IPs.
func TestArrivals_ServiceLeadsBack(t *testing.T) {
	onCluster(t, func(c *cluster) {
		holder, endpoint := c.nodes[1], c.lab.Pod(2)
		c.holdsOn(1, c.egressIP)
		c.holdsOn(1, c.another)
		c.serve(endpoint, "tcp", "udp")
		c.steer([]kernel.Binding{c.bind(1, kernel.TCP, c.egressIP), c.bind(1, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
		family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[c.family]
		holder.nftInput(fmt.Sprintf("table %[1]s services { chain c { type nat hook prerouting priority -100; %[1]s daddr %[2]s dnat to %[3]s; }; }\n", family, c.another, c.addr(endpoint)))
		for _, protocol := range []string{"tcp", "udp"} {
			c.sees("by a Service of the holder", c.lab.Pod(1), protocol, c.another, c.addr(c.lab.Pod(1)))
		}
		holder.dropped(nil)
	})
}

// TestArrivals_FromNoNode: without a tunnel, a host on the nodes' network that has a bound pod's address does not get its
// egress IP.
func TestArrivals_FromNoNode(t *testing.T) {
	for name, protocol := range map[string]kernel.Protocol{"by protocol": kernel.UDP, "all": kernel.All} {
		t.Run(name, func(t *testing.T) {
			onCluster(t, func(c *cluster) {
				c.use(Direct)
				holder, pod, attacker := c.nodes[1], c.addr(c.lab.Pod(1)), c.lab.Outside()
				c.holdsOn(1, c.egressIP)
				c.steer([]kernel.Binding{c.bind(1, protocol, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)})
				target := c.of("198.51.100.77", "2001:db8:113::77")
				left := c.count(holder.host, "postrouting", 300, "ip daddr "+target.String())
				family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip -6"}[c.family]
				if err := c.lab.AddAddr(attacker, pod); err != nil {
					t.Fatal(err)
				}
				c.run(attacker, "%s route replace %s via %s src %s", family, target, holder.ip, pod)
				before := holder.drops()
				_ = c.unseen("a host with a pod's address", attacker, "udp", target, unanswered)
				holder.dropped(before, foreignCounter)
				if n := left.packets(); n > 0 {
					t.Errorf("%d packets have left", n)
				}
				c.run(attacker, "%s addr del %s dev lan0", family, netip.PrefixFrom(pod, pod.BitLen()))
			})
		})
	}
}

// TestArrivals_FromAnotherNodeThanThePods: a node sends packets of its own pods alone, where it is known which these are.
func TestArrivals_FromAnotherNodeThanThePods(t *testing.T) {
	for _, transport := range []Transport{VXLAN, Direct} {
		for _, family := range families {
			t.Run(fmt.Sprintf("%s, %s", transport, family), func(t *testing.T) {
				c := newCluster(t, family, lab.Config{Nodes: 3, Pods: 3, IPv6: true, Masquerade: true})
				c.use(transport)
				c.serve(c.lab.Outside(), "udp")
				source, holder, traitor := c.nodes[0], c.nodes[1], c.nodes[2]
				pod, victim := c.lab.Pod(3), c.addr(c.lab.Pod(1))
				c.holdsOn(1, c.egressIP)
				var bindings []kernel.Binding
				for i := 1; i <= 3; i++ {
					bindings = append(bindings, c.bind(i, kernel.UDP, c.egressIP))
				}
				ways := map[netip.Addr]kernel.Way{c.egressIP: c.toNode(1)}
				leaks := c.leaks(c.lab.Pod(1))
				c.homes = []*lab.Host{c.lab.Pod(2), c.lab.Pod(3)}
				c.steer(bindings, ways)
				c.sees("a pod whose node is not known", c.lab.Pod(1), "udp", c.outside(), c.egressIP)
				c.homes = append(c.homes, c.lab.Pod(1))
				c.steer(bindings, ways)
				for i := 1; i <= 3; i++ {
					c.sees("a pod of its node", c.lab.Pod(i), "udp", c.outside(), c.egressIP)
				}
				for _, n := range c.nodes {
					n.dropped(nil)
				}
				// A pod of the traitor has the victim's address, which its node takes for one of its pods' and sends on: it does not
				// know of homes, for nothing is sent there.
				d := traitor.desired
				d.Steering.Homes = nil
				traitor.write(d)
				command := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip -6"}[family]
				steals := func(what string, stolen netip.Addr) {
					t.Helper()
					c.run(traitor.host, "%s route replace %s dev cni0", command, netip.PrefixFrom(stolen, stolen.BitLen()))
					if err := c.lab.AddAddr(pod, stolen); err != nil {
						t.Fatal(err)
					}
					before := holder.drops()
					left := c.count(c.lab.Outside(), "prerouting", -400, "ip saddr "+c.egressIP.String()+" udp dport 8080")
					err := pod.Do(func() error {
						dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(stolen, 0))}
						conn, err := dialer.Dial(c.network("udp"), netip.AddrPortFrom(c.outside(), port).String())
						if err != nil {
							return err
						}
						defer func() { _ = conn.Close() }()
						_, err = conn.Write([]byte("who am I"))
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					holder.dropped(before, forgedCounter)
					if n := left.packets(); n > 0 {
						t.Errorf("%s: %d packets have left", what, n)
					}
					c.run(pod, "%s addr del %s dev eth0", command, netip.PrefixFrom(stolen, stolen.BitLen()))
				}
				steals("a pod of another node", victim)
				steals("a pod of the holder", c.addr(c.lab.Pod(2)))
				if transport == VXLAN {
					// Its node speaks as if it were the victim's.
					c.run(traitor.host, "ip link set %s address %s", Device, mac(source.ip)) // which forgets neighbours
					if err := traitor.ways.ip(traitor.ways.through(traitor.ways.numberOf(holder.ip), holder.ip)...); err != nil {
						t.Fatal(err)
					}
					steals("a pod of another node, in the name of that", victim)
				}
				c.noLeak(leaks)
			})
		}
	}
}

// TestPackets_FromWhereThePodIsNot: a pod that gives itself the address of a bound pod of another node does not leave from its
// egress IP, neither from the node that has this nor from another one, whether or not anything is steered. What it sends to the node
// itself arrives there.
func TestPackets_FromWhereThePodIsNot(t *testing.T) {
	for name, protocol := range map[string]kernel.Protocol{"by protocol": kernel.UDP, "all": kernel.All} {
		t.Run(name, func(t *testing.T) {
			onTransports(t, func(c *cluster) {
				c.serve(c.lab.Outside(), "udp")
				attacker, victim := c.lab.Pod(1), c.addr(c.lab.Pod(2))
				bindings := []kernel.Binding{c.bind(2, protocol, c.egressIP)}
				if err := c.lab.AddAddr(attacker, victim); err != nil {
					t.Fatal(err)
				}
				c.holdsOn(0, c.another) // no egress IP
				for holder, what := range []string{"from the node that has the egress IP", "from another node"} {
					c.holdsOn(holder, c.egressIP)
					c.steer(bindings, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(holder)})
					left := c.count(c.lab.Outside(), "prerouting", -400, "ip saddr "+c.egressIP.String()+" udp dport 8080")
					before := c.nodes[0].drops()
					c.send("udp", attacker, victim, netip.AddrPortFrom(c.outside(), port))
					c.nodes[0].dropped(before, forgedCounter)
					if n := left.packets(); n > 0 {
						t.Errorf("%s: %d packets have left", what, n)
					}
					before = c.nodes[0].drops()
					passes := c.count(c.nodes[0].host, "prerouting", -90, "ip daddr "+c.another.String()+" udp dport 8080")
					c.send("udp", attacker, victim, netip.AddrPortFrom(c.another, port))
					passes.await()
					c.nodes[0].dropped(before)
					c.sees(what+", the pod itself", c.lab.Pod(2), "udp", c.outside(), c.egressIP)
					c.run(c.nodes[holder].host, "ip addr del %s dev eth0", netip.PrefixFrom(c.egressIP, c.egressIP.BitLen()))
				}
			})
		})
	}
}

// overlay has nodes send to each other's pods through a tunnel, as a network plugin does: into which anybody can send who reaches
// a node. It returns the hardware address of each node's end.
func (c *cluster) overlay() (ends []net.HardwareAddr) {
	c.Helper()
	for i := range c.nodes {
		ends = append(ends, net.HardwareAddr{2, 0xf1, 0, 0, 0, byte(i)})
	}
	for i, n := range c.nodes {
		lines := []string{
			fmt.Sprintf("link add %s address %s type vxlan id 1 local %s dstport %d nolearning", overlay, ends[i], n.ip, overlayPort),
			fmt.Sprintf("link set %s mtu 1400 up", overlay),
		}
		for j, other := range c.nodes {
			if j == i {
				continue
			}
			next := c.of(fmt.Sprintf("169.254.88.%d", j+1), fmt.Sprintf("fe80::88:%d", j+1))
			lines = append(lines, fmt.Sprintf("neigh replace %s lladdr %s dev %s nud permanent", next, ends[j], overlay))
			for _, pods := range other.host.PodCIDRs() {
				if pods.Addr().Is4() == (c.family == kernel.IPv4) {
					lines = append(lines, fmt.Sprintf("route replace %s via %s dev %s onlink", pods, next, overlay))
				}
			}
		}
		n.inside(func() error { return n.ways.ip(lines...) })
		for j, other := range c.nodes {
			if j != i {
				c.run(n.host, "bridge fdb replace %s dev %s dst %s", ends[j], overlay, other.ip)
			}
		}
	}
	return ends
}

// overlay and overlayPort are the device and the port of the network plugin's tunnel.
const overlay, overlayPort = "flannel.1", 8472

// TestPackets_FromTheOverlay: what is sent into the network plugin's tunnel with the address of a pod that is bound on another node
// does not leave from its egress IP, whether or not the node that has it steers others. The pod itself is served.
func TestPackets_FromTheOverlay(t *testing.T) {
	for name, protocol := range map[string]kernel.Protocol{"by protocol": kernel.UDP, "all": kernel.All} {
		t.Run(name, func(t *testing.T) {
			onTransports(t, func(c *cluster) {
				ends := c.overlay()
				c.holdsOn(0, c.egressIP)
				c.holdsOn(1, c.another)
				c.serve(c.lab.Outside(), "udp")
				pod := c.lab.Pod(2)
				victim, attacker := c.addr(pod), c.lab.Outside()
				c.homes = []*lab.Host{c.lab.Pod(1), pod}
				holder := c.nodes[0]
				forged := lab.Wrapped(1, ends[0], ends[1], netip.AddrPortFrom(victim, 9000), netip.AddrPortFrom(c.outside(), 8079), "who?")
				for what, bindings := range map[string][]kernel.Binding{
					"that steers nothing":    {c.bind(2, protocol, c.egressIP)},
					"that steers other pods": {c.bind(2, protocol, c.egressIP), c.bind(1, protocol, c.another)},
				} {
					c.steer(bindings, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(0), c.another: c.toNode(1)})
					left := c.count(attacker, "prerouting", -400, "udp dport 8079")
					before := holder.drops()
					err := attacker.DoWithoutRights(func() error {
						return attacker.SendUDP(netip.Addr{}, netip.AddrPortFrom(holder.ip, overlayPort), forged)
					})
					if err != nil {
						t.Fatal(err)
					}
					t.Logf("at a node %s", what)
					holder.dropped(before, forgedCounter)
					if packets := left.packets(); packets > 0 {
						t.Errorf("at a node %s: %d packets have left", what, packets)
					}
					before = holder.drops()
					c.sees("the pod itself", pod, "udp", c.outside(), c.egressIP)
					holder.dropped(before)
				}
			})
		})
	}
}

// TestPackets_Roaming: where pods may leave through any node, a pod leaves from its egress IP by the network plugin's tunnel to the node
// that has it, too, whether or not that node steers others.
func TestPackets_Roaming(t *testing.T) {
	onCluster(t, func(c *cluster) {
		ends := c.overlay()
		c.holdsOn(0, c.egressIP)
		c.holdsOn(1, c.another)
		pod := c.lab.Pod(2)
		c.homes, c.roaming = []*lab.Host{c.lab.Pod(1), pod}, true
		holder := c.nodes[0]
		sent := lab.Wrapped(1, ends[0], ends[1], netip.AddrPortFrom(c.addr(pod), 9000), netip.AddrPortFrom(c.outside(), 8079), "it is me")
		for what, bindings := range map[string][]kernel.Binding{
			"steers nothing":    {c.bind(2, kernel.UDP, c.egressIP)},
			"steers other pods": {c.bind(2, kernel.UDP, c.egressIP), c.bind(1, kernel.UDP, c.another)},
		} {
			c.steer(bindings, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(0), c.another: c.toNode(1)})
			before := holder.drops()
			left := c.count(c.lab.Outside(), "prerouting", -400, "ip saddr "+c.egressIP.String()+" udp dport 8079")
			c.nodes[1].inside(func() error {
				return c.nodes[1].host.SendUDP(netip.Addr{}, netip.AddrPortFrom(holder.ip, overlayPort), sent)
			})
			t.Logf("at a node that %s", what)
			left.await()
			holder.dropped(before)
			c.run(holder.host, "conntrack -F")
		}
	})
}

// TestPackets_RoamsToAThirdNode: a pod leaves by a node that neither is its own nor has its egress IP, which is on another one, or on the pod's own.
func TestPackets_RoamsToAThirdNode(t *testing.T) {
	for _, family := range families {
		for holder, at := range []string{"another node has the egress IP", "the pod's own node has the egress IP"} {
			t.Run(fmt.Sprintf("%s, %s", family, at), func(t *testing.T) {
				c := newCluster(t, family, lab.Config{Nodes: 3, Pods: 3, IPv6: true})
				ends, pod, home, third := c.overlay(), c.lab.Pod(2), c.nodes[1], c.nodes[2]
				c.holdsOn(holder, c.egressIP)
				c.homes, c.roaming = []*lab.Host{pod}, true
				c.steer([]kernel.Binding{c.bind(2, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(holder)})
				left := c.count(c.lab.Outside(), "prerouting", -400, "ip saddr "+c.egressIP.String()+" udp dport 8079")
				sent := lab.Wrapped(1, ends[2], ends[1], netip.AddrPortFrom(c.addr(pod), 9000), netip.AddrPortFrom(c.outside(), 8079), "it is me")
				home.inside(func() error {
					return home.host.SendUDP(netip.Addr{}, netip.AddrPortFrom(third.ip, overlayPort), sent)
				})
				left.await()
				c.nodes[holder].dropped(nil)
			})
		}
	}
}

// finBehindAH is the end of a TCP connection that nobody knows, behind an Authentication Header.
var finBehindAH = []byte{unix.IPPROTO_TCP, 2, 7: 1, 11: 1, 16: 40, 0, 31, 143, 28: 5 << 4, 0x11, 35: 0}

// TestPackets_HiddenProtocol: a bound pod that puts an Authentication Header in front of its datagrams begins no flow with it, and sends nothing
// in one that it has begun, here or by another node, nor what is of no flow.
func TestPackets_HiddenProtocol(t *testing.T) {
	for name, protocol := range map[string]kernel.Protocol{"by protocol": kernel.UDP, "all": kernel.All} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, kernel.IPv6, lab.Config{Nodes: 2, Pods: 3, IPv6: true, Masquerade: true})
			c.holdsOn(0, c.egressIP)
			c.steer([]kernel.Binding{c.bind(1, protocol, c.egressIP), c.bind(2, protocol, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(0)})
			to := netip.AddrPortFrom(c.outside(), 8079)
			all := c.count(c.lab.Outside(), "prerouting", -400, "udp dport 8079")
			wrong := c.count(c.lab.Outside(), "prerouting", -400, "ip6 daddr "+to.Addr().String()+" ip6 saddr != "+c.egressIP.String()+" udp dport 8079")
			hidden := c.count(c.lab.Outside(), "prerouting", -400, "meta l4proto 51 ip6 saddr != "+c.egressIP.String())
			for pod := 1; pod <= 2; pod++ {
				from := c.lab.Pod(pod)
				source := netip.AddrPortFrom(c.addr(from), 9000)
				do := func(send func() error) {
					t.Helper()
					if err := from.Do(send); err != nil {
						t.Fatal(err)
					}
				}
				hide := func() error { return from.SendBehindAH(source, to, "who?") }
				say := func() error { return from.SendUDPFrom(source, to, []byte("I")) }
				do(hide)
				before := all.packets()
				do(say)
				all.awaitMore(before)
				do(hide)
				c.sendIP(from, unix.IPPROTO_AH, to.Addr(), finBehindAH...)
				do(say)
			}
			all.awaitMore(3)
			if packets := wrong.packets() + hidden.packets(); packets > 0 {
				t.Errorf("%d packets have left from elsewhere than the egress IP", packets)
			}
		})
	}
}

// TestPackets_FromTheNodesNetwork: what a host on the nodes' network sends with the address of a bound pod, whose node is known,
// does not leave from its egress IP. What the pod itself sends to an address of the node that has that arrives there as it is.
func TestPackets_FromTheNodesNetwork(t *testing.T) {
	for name, protocol := range map[string]kernel.Protocol{"by protocol": kernel.UDP, "all": kernel.All} {
		for _, transport := range []Transport{VXLAN, Direct} {
			for _, family := range families {
				t.Run(fmt.Sprintf("%s, %s, %s", name, transport, family), func(t *testing.T) {
					c := newCluster(t, family, lab.Config{Nodes: 2, Pods: 2, IPv6: true}) // nobody masquerades
					c.use(transport)
					pod, attacker, holder := c.lab.Pod(2), c.lab.Outside(), c.nodes[0]
					c.holdsOn(0, c.egressIP)
					c.holdsOn(0, c.another)
					c.serve(holder.host, "udp")
					c.homes = []*lab.Host{pod}
					c.steer([]kernel.Binding{c.bind(2, protocol, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(0)})
					command := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip -6"}[family]
					for _, to := range []netip.Addr{c.egressIP, c.another} {
						c.run(c.nodes[1].host, "%s route add %s via %s", command, to, holder.ip)
					}
					c.sees("at its own egress IP", pod, "udp", c.egressIP, c.addr(pod))
					if transport == Direct { // which does not take it for an arrival, either
						c.sees("at another address of the node", pod, "udp", c.another, c.addr(pod))
					}
					holder.dropped(nil)
					target := c.of("198.51.100.77", "2001:db8:113::77")
					left := c.count(holder.host, "postrouting", 300, "ip daddr "+target.String())
					if err := c.lab.AddAddr(attacker, c.addr(pod)); err != nil {
						t.Fatal(err)
					}
					c.run(attacker, "%s route replace %s via %s src %s", command, target, holder.ip, c.addr(pod))
					_ = c.unseen("a host with a pod's address", attacker, "udp", target, unanswered)
					holder.dropped(nil, forgedCounter)
					if packets := left.packets(); packets > 0 {
						t.Errorf("%d packets have left", packets)
					}
				})
			}
		}
	}
}
