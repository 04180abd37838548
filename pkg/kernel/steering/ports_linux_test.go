package steering

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// forgery is what a packet of the tunnel has inside, in the name of a node: a packet of a pod that runs there, to the outside.
func (c *cluster) forgery(to, as *node, pod netip.Addr) []byte {
	receiver, sender := HardwareAddrOf(to.ip), HardwareAddrOf(as.ip)
	return lab.Wrapped(vni, receiver[:], sender[:], netip.AddrPortFrom(pod, 9000), netip.AddrPortFrom(c.outside(), port), "who?")
}

// attacked is a cluster of three nodes: the first is attacked in the name of the second, on which the pod runs.
type attacked struct {
	*cluster
	victim, home, attacker *node
	pod                    *lab.Host
	// came counts what has come out of the tunnel of the victim.
	came counter
}

// onAttacked runs test for each IP family, on a cluster in which the attacker's node has nothing that keeps it from attacking:
// another version runs there, or nothing.
func onAttacked(t *testing.T, test func(a *attacked)) {
	for _, family := range families {
		t.Run(string(family), func(t *testing.T) {
			c := newCluster(t, family, lab.Config{Nodes: 3, Pods: 3, IPv6: true, Masquerade: true})
			c.holdsOn(0, c.egressIP)
			a := &attacked{cluster: c, victim: c.nodes[0], home: c.nodes[1], attacker: c.nodes[2], pod: c.lab.Pod(2)}
			c.homes = []*lab.Host{a.pod}
			c.steer([]kernel.Binding{c.bind(2, kernel.UDP, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(0)})
			a.came = c.count(a.victim.host, "prerouting", -400, "iifname steer0 ip saddr "+c.addr(a.pod).String())
			test(a)
		})
	}
}

// sends sends a datagram from a node.
func (n *node) sends(to netip.AddrPort, payload []byte) error {
	return n.host.Do(func() error { return n.host.SendUDP(netip.Addr{}, to, payload) })
}

// elsewhere are addresses by which a node gets packets that are not the one that other nodes send to.
func (a *attacked) elsewhere() map[string]netip.Addr {
	addr := netip.MustParseAddr
	if a.family == kernel.IPv4 {
		return map[string]netip.Addr{
			"the subnet's broadcast":            addr("192.0.2.255"),
			"the broadcast of the link":         addr("255.255.255.255"),
			"all hosts":                         addr("224.0.0.1"),
			"the pod network's broadcast":       addr("10.128.0.255"),
			"the node's address for its pods":   addr("10.128.0.1"),
			"the egress IP":                     a.egressIP,
			"the node's address for its tunnel": addr("169.254.77.0"),
		}
	}
	return map[string]netip.Addr{
		"the subnet's routers":              addr("2001:db8:0:2::"),
		"all nodes":                         addr("ff02::1"),
		"all routers":                       addr("ff02::2"),
		"the routers of the pod network":    addr("fd00:10:128::"),
		"the node's address for its pods":   addr("fd00:10:128::1"),
		"the egress IP":                     a.egressIP,
		"the node's address for its tunnel": addr("fe80::57:0"),
	}
}

// TestPorts_OnlyToTheNodesOwnAddress: what another node's address sends to any other address of this one, or to one of many hosts,
// does not get into the tunnel, nor to the other ports.
func TestPorts_OnlyToTheNodesOwnAddress(t *testing.T) {
	onAttacked(t, func(a *attacked) {
		a.attacker.nft("delete table %s", a.attacker.name())
		forged := a.forgery(a.victim, a.home, a.addr(a.pod))
		for what, to := range a.elsewhere() {
			if to.IsLinkLocalUnicast() {
				continue // no router leads there
			}
			switch what {
			case "the egress IP": // the router of the lab leads to it
				a.run(a.attacker.host, "ip route replace %s via %s", to, a.victim.ip)
			case "the subnet's routers": // each is one, so that the address is its own
				a.run(a.attacker.host, "sysctl -q net.ipv6.conf.eth0.forwarding=0")
				a.run(a.attacker.host, "ip neigh replace %s lladdr %s dev eth0", to, a.victim.uplink())
			}
			for _, port := range []uint16{tunnelPort, announcePort, assignPort} {
				before := a.victim.drops()
				if err := a.attacker.sends(netip.AddrPortFrom(to, port), forged); err != nil {
					t.Fatalf("%s, port %d: %v", what, port, err)
				}
				t.Logf("%s (%s), port %d", what, to, port)
				a.victim.dropped(before, foreignCounter)
			}
		}
		if n := a.came.packets(); n > 0 {
			t.Errorf("%d packets have come out of the tunnel", n)
		}
	})
}

// TestPorts_ByAService: nobody gets into the tunnel, or speaks to the pool, by a Service that leads to the node.
func TestPorts_ByAService(t *testing.T) {
	onAttacked(t, func(a *attacked) {
		a.attacker.nft("delete table %s", a.attacker.name())
		family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[a.family]
		forged := a.forgery(a.victim, a.home, a.addr(a.pod))
		for i, port := range []uint16{tunnelPort, announcePort, assignPort} {
			a.victim.nftInput(fmt.Sprintf("table %[1]s service%[2]d { chain c { type nat hook prerouting priority -100; udp dport %[3]d dnat to %[4]s; }; }\n",
				family, i, 30000+i, netip.AddrPortFrom(a.victim.ip, port)))
			before := a.victim.drops()
			if err := a.attacker.sends(netip.AddrPortFrom(a.victim.ip, uint16(30000+i)), forged); err != nil {
				t.Fatal(err)
			}
			a.victim.dropped(before, foreignCounter)
		}
		if n := a.came.packets(); n > 0 {
			t.Errorf("%d packets have come out of the tunnel", n)
		}
	})
}

// TestPorts_ByAServiceOfTheOwnNode: no process in a node's own network gets into another node's tunnel, or speaks to its other ports,
// by a Service that its own node leads there, whatever port the Service has.
func TestPorts_ByAServiceOfTheOwnNode(t *testing.T) {
	onAttacked(t, func(a *attacked) {
		family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[a.family]
		forged := a.forgery(a.victim, a.attacker, a.addr(a.lab.Pod(3)))
		came := a.count(a.victim.host, "prerouting", -400, "iifname steer0")
		for i, to := range []struct {
			port     uint16
			protocol string
		}{{tunnelPort, "udp"}, {announcePort, "udp"}, {assignPort, "udp"}, {assignPort, "tcp"}} {
			for _, service := range []uint16{80, to.port} {
				clusterIP := netip.AddrPortFrom(a.of("198.51.100.80", "2001:db8:51::80"), service)
				table := fmt.Sprintf("service%d-%d", i, service)
				a.attacker.nftInput(fmt.Sprintf("table %s %s { chain c { type nat hook output priority -100; %s daddr %s %s dport %d dnat to %s; }; }\n",
					family, table, family, clusterIP.Addr(), to.protocol, service, netip.AddrPortFrom(a.victim.ip, to.port)))
				before, elsewhere := a.attacker.drops(), a.victim.drops()
				if to.protocol == "tcp" {
					a.send("tcp", a.attacker.host, netip.Addr{}, clusterIP)
				} else if err := a.attacker.host.DoWithoutRights(func() error {
					return a.attacker.host.SendUDP(netip.Addr{}, clusterIP, forged)
				}); !errors.Is(err, unix.EPERM) {
					t.Errorf("%s port %d by %s: %v, want it to be refused", to.protocol, to.port, clusterIP, err)
				}
				a.attacker.dropped(before, forgedCounter)
				a.victim.dropped(elsewhere)
				a.attacker.nft("delete table %s %s", family, table)
			}
		}
		if n := came.packets(); n > 0 {
			t.Errorf("%d packets have come out of the tunnel", n)
		}
	})
}

// TestPorts_ProcessOfANode: a process in a node's own network, without any right, gets nothing into the tunnel: not into
// another node's, nor its own, nor all of them at once; and it does not speak as another node.
func TestPorts_ProcessOfANode(t *testing.T) {
	onAttacked(t, func(a *attacked) {
		at := a.attacker
		to := map[string]netip.Addr{
			"another node": a.victim.ip, "its own": at.ip, "the loopback address": a.of("127.0.0.1", "::1"), "the pod's": a.home.ip,
			"the node's address for its pods": a.of("10.128.2.1", "fd00:10:128:2::1"),
		}
		for _, what := range []string{"the subnet's broadcast", "the broadcast of the link", "all hosts", "the subnet's routers", "all nodes"} {
			if addr, is := a.elsewhere()[what]; is {
				to[what] = addr
			}
		}
		victims := []counter{a.came, a.count(at.host, "prerouting", -400, "iifname steer0"), a.count(a.home.host, "prerouting", -400, "iifname steer0")}
		for what, addr := range to {
			for _, as := range []*node{a.home, at} {
				before, elsewhere := at.drops(), a.victim.drops()
				err := at.host.DoWithoutRights(func() error {
					return at.host.SendUDP(netip.Addr{}, netip.AddrPortFrom(addr, tunnelPort), a.forgery(a.victim, as, a.addr(a.pod)))
				})
				if !errors.Is(err, unix.EPERM) { // so the kernel tells it
					t.Errorf("%s: %v, want it to be refused", what, err)
				}
				at.dropped(before, forgedCounter)
				a.victim.dropped(elsewhere)
			}
		}
		for _, port := range []uint16{tunnelPort, announcePort, assignPort} {
			before := at.drops()
			err := at.host.DoWithoutRights(func() error {
				return at.host.SendUDP(a.home.ip, netip.AddrPortFrom(a.victim.ip, port), a.forgery(a.victim, a.home, a.addr(a.pod)))
			})
			if a.family == kernel.IPv4 && err == nil {
				t.Error("the kernel lets a process send from an address that the node does not have")
			}
			if a.family == kernel.IPv6 {
				if !errors.Is(err, unix.EPERM) {
					t.Errorf("as another node, port %d: %v, want it to be refused", port, err)
				}
				at.dropped(before, forgedCounter)
			}
		}
		before := at.drops()
		if err := at.host.DoWithoutRights(func() error { return a.sendBySteer0(at.ways.numberOf(a.victim.ip)) }); err != nil {
			t.Errorf("by the tunnel's device: %v", err)
		}
		at.dropped(before, forgedCounter)
		for _, came := range victims {
			if n := came.packets(); n > 0 {
				t.Errorf("%s: %d packets have come out of the tunnel", came.host.Name, n)
			}
		}
		a.serve(a.lab.Outside(), "udp")
		a.sees("a pod of the node that is steered", a.pod, "udp", a.outside(), a.egressIP)
	})
}

// TestPorts_OfTheOtherFamily: the nodes speak to each other in one IP family, and nobody to their ports in the other.
func TestPorts_OfTheOtherFamily(t *testing.T) {
	onCluster(t, func(c *cluster) {
		for _, transport := range []Transport{VXLAN, Direct} {
			c.use(transport)
			c.steer(nil, nil)
			n, other := c.nodes[0], *c
			other.family = otherFamily(c.family)
			config := n.config()
			config.Family = other.family
			w := newWriter(config, n.ways)
			defer w.Close()
			d := other.desired()
			d.Exclusions = nil // the nodes' are of their family
			d.Steering = n.steering(nil)
			if transport == Direct {
				d.Steering.Nodes = []netip.Addr{other.addr(c.nodes[1].host)} // a next hop is of the packets' family
			}
			n.inside(func() error {
				_, err := w.Write(t.Context(), d, nil)
				return err
			})
			theirs := *n
			theirs.c = &other
			for _, port := range []struct {
				number   uint16
				protocol string
			}{{tunnelPort, "udp"}, {announcePort, "udp"}, {assignPort, "udp"}, {assignPort, "tcp"}} {
				if port.number == tunnelPort && transport == Direct {
					continue // there is none
				}
				before := theirs.drops()
				other.send(port.protocol, c.nodes[1].host, netip.Addr{}, netip.AddrPortFrom(other.addr(n.host), port.number))
				theirs.dropped(before, foreignCounter)
			}
		}
	})
}

// TestPackets_ProcessAsAPod: a process in a node's own network, without any right, leaves neither as a bound pod, wherever that
// runs, nor from an egress IP that is on another node. IPv6 alone lets it try.
func TestPackets_ProcessAsAPod(t *testing.T) {
	for name, protocol := range map[string]kernel.Protocol{"by protocol": kernel.UDP, "all": kernel.All} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, kernel.IPv6, lab.Config{Nodes: 2, Pods: 2, IPv6: true, Masquerade: true})
			c.holdsOn(0, c.egressIP)
			c.holdsOn(1, c.another)
			c.steer([]kernel.Binding{c.bind(1, protocol, c.egressIP), c.bind(2, protocol, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(0), c.another: c.toNode(1)})
			n, to := c.nodes[0], netip.AddrPortFrom(c.outside(), 8079)
			left := c.count(c.lab.Outside(), "prerouting", -400, "udp dport 8079")
			for what, source := range map[string]netip.Addr{
				"a pod of the node": c.addr(c.lab.Pod(1)), "a pod of another node": c.addr(c.lab.Pod(2)), "an egress IP of another node": c.another,
			} {
				before := n.drops()
				if err := n.host.DoWithoutRights(func() error { return n.host.SendUDP(source, to, []byte("who?")) }); !errors.Is(err, unix.EPERM) {
					t.Errorf("%s: %v, want it to be refused", what, err)
				}
				n.dropped(before, forgedCounter)
			}
			if packets := left.packets(); packets > 0 {
				t.Errorf("%d packets have left", packets)
			}
			if err := n.host.DoWithoutRights(func() error { return n.host.SendUDP(n.ip, to, []byte("who?")) }); err != nil {
				t.Errorf("from the node's own address: %v", err)
			}
			left.await()
		})
	}
}

// TestPackets_ProcessInTheFlowOfAPod: a process in a node's own network, without any right, sends nothing in a flow that a bound pod has
// begun, neither where that leaves from nor where it is steered. This program's own nudges leave.
func TestPackets_ProcessInTheFlowOfAPod(t *testing.T) {
	for name, protocol := range map[string]kernel.Protocol{"by protocol": kernel.UDP, "all": kernel.All} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, kernel.IPv6, lab.Config{Nodes: 2, Pods: 2, IPv6: true, Masquerade: true})
			c.holdsOn(0, c.egressIP)
			bindings, ways := []kernel.Binding{c.bind(1, protocol, c.egressIP), c.bind(2, protocol, c.egressIP)}, map[netip.Addr]kernel.Way{c.egressIP: c.toNode(0)}
			c.steer(bindings, ways)
			to := netip.AddrPortFrom(c.outside(), 8079)
			for i, n := range c.nodes {
				pod := c.lab.Pod(i + 1)
				from := netip.AddrPortFrom(c.addr(pod), 7777)
				left := c.count(c.lab.Outside(), "prerouting", -400, "udp dport 8079")
				send := func() error { return pod.SendUDPFrom(from, to, []byte("I")) }
				if err := pod.Do(send); err != nil {
					t.Fatal(err)
				}
				left.await()
				before := n.drops()
				err := n.host.DoWithoutRights(func() error { return n.host.SendUDPFrom(from, to, []byte("who?")) })
				if !errors.Is(err, unix.EPERM) {
					t.Errorf("%s: %v, want it to be refused", n.host.Name, err)
				}
				n.dropped(before, forgedCounter)
				if err := pod.Do(send); err != nil {
					t.Fatal(err)
				}
				left.awaitMore(1)
				if packets := left.packets(); packets != 2 {
					t.Errorf("%s: %d packets have left, want the pod's two", n.host.Name, packets)
				}
			}
			n := c.nodes[1] // the egress IP may have been here before
			nudged, before := c.count(c.lab.Outside(), "prerouting", -400, "ip saddr "+c.egressIP.String()+" tcp dport 8079"), n.drops()
			if err := n.host.Do(func() error { return nudge(c.egressIP, to) }); err != nil {
				t.Fatal(err)
			}
			nudged.await()
			n.dropped(before)
		})
	}
}

// nudge sends a SYN+ACK of no connection from whatever address of IPv6.
func nudge(from netip.Addr, to netip.AddrPort) (err error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	packet := append([]byte{0x60, 0, 0, 0, 0, 20, unix.IPPROTO_TCP, 64}, append(from.AsSlice(), to.Addr().AsSlice()...)...)
	packet = append(packet, 0x1f, 0x90, byte(to.Port()>>8), byte(to.Port()), 0, 0, 0, 0, 0, 0, 0, 0, 5<<4, flagSYN|flagACK, 0, 0, 0, 0, 0, 0)
	return unix.Sendto(fd, packet, 0, &unix.SockaddrInet6{Addr: to.Addr().As16()})
}

// sendBySteer0 sends to the node with a number by the tunnel's own device, as any process may.
func (a *attacked) sendBySteer0(number int) (err error) {
	fd, err := unix.Socket(map[kernel.Family]int{kernel.IPv4: unix.AF_INET, kernel.IPv6: unix.AF_INET6}[a.family], unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := unix.BindToDevice(fd, Device); err != nil {
		return err
	}
	next := innerAddr(a.family, number)
	if a.family == kernel.IPv4 {
		return unix.Sendto(fd, []byte("who?"), 0, &unix.SockaddrInet4{Port: port, Addr: next.As4()})
	}
	return unix.Sendto(fd, []byte("who?"), 0, &unix.SockaddrInet6{Port: port, Addr: next.As16()})
}
