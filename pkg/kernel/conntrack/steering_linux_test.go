package conntrack

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// soon is within which a packet has to arrive.
var soon = lab.Stretch(10 * time.Second)

// steering is a lab of three nodes, in which the pod on the first has an egress IP, and connections to the
// host outside. What the tables and routes of steering do is done by hand, in a few commands.
type steering struct {
	*testing.T
	*lab.Lab
	network
	family        kernel.Family
	pod, egressIP netip.Addr
	binding       kernel.Binding
	holder        int  // of the nodes, which has the egress IP now
	lost          bool // no node has it
	// ports says how the holder chooses them: as in nft's snat statement, which keeps them if nothing is said.
	ports string
}

// onSteeredNode runs test for each IP family, with the egress IP on a node.
func onSteeredNode(t *testing.T, holder int, ports string, test func(s *steering)) {
	for family, network := range networks {
		t.Run(string(family), func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{IPv6: true, Nodes: 3, Pods: 1, Masquerade: true})
			s := &steering{T: t, Lab: l, network: network, family: family, pod: l.Pod(1).V4, egressIP: addr(network.egressIP), holder: -1, ports: ports}
			if family == kernel.IPv6 {
				s.pod = l.Pod(1).V6
			}
			s.binding = kernel.Binding{Pod: s.pod, Protocol: kernel.TCP, EgressIP: s.egressIP}
			// The host outside answers by the route to the egress IP alone, as others do.
			s.run(l.Outside(), "nft", "delete", "table", "inet", "reply-to")
			s.run(l.Outside(), "nft", fmt.Sprintf("add table inet seen; add chain inet seen arrivals { type filter hook prerouting priority -400; }; add rule inet seen arrivals %s saddr %s counter", s.ip(), s.pod))
			for _, node := range l.Nodes() { // as kube-proxy does
				s.run(node, "nft", "add table inet proxy; add chain inet proxy forward { type filter hook forward priority 0; }; add rule inet proxy forward ct state invalid drop")
			}
			s.takes(holder)
			s.comesIn(holder)
			test(s)
		})
	}
}

func (s *steering) run(h *lab.Host, args ...string) string {
	s.Helper()
	output, err := h.Run(s.Context(), args[0], args[1:]...)
	if err != nil {
		s.Fatal(err)
	}
	return output
}

// ip is the family for nft; for the tool ip it is an option.
func (s *steering) ip() string {
	return map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[s.family]
}

func (s *steering) address(h *lab.Host) netip.Addr {
	if s.family == kernel.IPv6 {
		return h.V6
	}
	return h.V4
}

// takes has a node hold the egress IP, and the first steer to it.
func (s *steering) takes(holder int) {
	s.Helper()
	option := map[kernel.Family]string{kernel.IPv4: "-4", kernel.IPv6: "-6"}[s.family]
	if s.holder >= 0 {
		s.run(s.Nodes()[s.holder], "nft", "delete", "table", s.ip(), "holder")
	}
	if s.holder > 0 {
		s.run(s.Node(), "ip", option, "rule", "del", "from", s.pod.String(), "iif", "cni0", "lookup", "7700")
		s.run(s.Node(), "nft", "delete", "table", s.ip(), "holder")
	}
	s.holder = holder
	s.translate(s.Nodes()[holder], s.egressIP, s.ports)
	if holder == 0 { // the guard
		s.run(s.Node(), "nft", fmt.Sprintf("add chain %[1]s holder guard { type filter hook postrouting priority 101; }; add rule %[1]s holder guard oifname eth0 %[1]s saddr %[2]s drop", s.ip(), s.pod))
	}
	if holder > 0 {
		s.translate(s.Node(), s.pod, "") // so that nobody masquerades it
		s.run(s.Node(), "ip", option, "route", "replace", "default", "via", s.address(s.Nodes()[holder]).String(), "dev", "eth0", "table", "7700")
		s.run(s.Node(), "ip", option, "rule", "add", "from", s.pod.String(), "iif", "cni0", "lookup", "7700")
	}
}

// translate has a node translate the pod's source.
func (s *steering) translate(node *lab.Host, to netip.Addr, ports string) {
	s.Helper()
	s.run(node, "nft", fmt.Sprintf("add table %[1]s holder; add chain %[1]s holder post { type nat hook postrouting priority 99; }; add rule %[1]s holder post oifname eth0 %[1]s saddr %[2]s meta l4proto tcp snat to %[3]s %[4]s",
		s.ip(), s.pod, to, ports))
}

// comesIn has packets to the egress IP come in by a node.
func (s *steering) comesIn(node int) {
	s.Helper()
	if err := s.RouteVia(netip.PrefixFrom(s.egressIP, s.egressIP.BitLen()), s.Nodes()[node]); err != nil {
		s.Fatal(err)
	}
}

// deletes fails the test unless so many flows end on a node, by the way that holds now.
func (s *steering) deletes(node int, scope Scope, want int, bindings ...kernel.Binding) {
	s.Helper()
	after := s.plan(bindings...)
	switch {
	case s.lost:
		after.Steering.Ways = map[netip.Addr]kernel.Way{s.egressIP: {Kind: kernel.Prohibit}}
	case s.holder != node:
		after.Steering.Ways = map[netip.Addr]kernel.Way{s.egressIP: {Kind: kernel.ToNode, Node: s.address(s.Nodes()[s.holder])}}
	}
	err := s.Nodes()[node].Do(func() error {
		ended, err := Delete(s.Context(), s.family, after, scope)
		if err == nil && ended != (Deleted{Ended: want}) {
			err = fmt.Errorf("%d flows have ended, want %d", ended, want)
		}
		return err
	})
	if err != nil {
		s.Error(err)
	}
}

// connection is one of the pod with the host outside, which has the ends, seen as the egress IP.
type connection struct{ near, far net.Conn }

// connect opens one from a port of the pod, or any.
func (s *steering) connect(port int) connection {
	s.Helper()
	return s.connectTo(s.listen(), s.Pod(1), port)
}

// listen has the host outside listen on some port.
func (s *steering) listen() net.Listener {
	s.Helper()
	network := map[kernel.Family]string{kernel.IPv4: "tcp4", kernel.IPv6: "tcp6"}[s.family]
	l, err := s.Outside().Listen(s.Context(), network, ":0")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = l.Close() })
	return l
}

// connectTo opens one of a pod with whoever listens outside.
func (s *steering) connectTo(l net.Listener, pod *lab.Host, port int) connection {
	s.Helper()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	to := netip.AddrPortFrom(s.address(s.Outside()), netip.MustParseAddrPort(l.Addr().String()).Port())
	var c connection
	err := pod.Do(func() (err error) {
		dialer := net.Dialer{Timeout: soon, LocalAddr: &net.TCPAddr{IP: s.address(pod).AsSlice(), Port: port}, KeepAlive: -1, Control: reuse}
		c.near, err = dialer.Dial("tcp", to.String())
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	c.far = <-accepted
	s.Cleanup(func() { _, _ = c.near.Close(), c.far.Close() })
	if err := c.far.(*net.TCPConn).SetKeepAlive(false); err != nil {
		s.Fatal(err)
	}
	if seen := netip.MustParseAddrPort(c.far.RemoteAddr().String()).Addr(); seen != s.egressIP {
		s.Fatalf("seen as %s, want %s", seen, s.egressIP)
	}
	return c
}

// reuse lets a port be used again at once.
func reuse(_, _ string, c syscall.RawConn) error {
	var err error
	controlErr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
	return errors.Join(controlErr, err)
}

// carries fails the test unless one end gets what the other sends.
func (s *steering) carries(what string, from, to net.Conn) {
	s.Helper()
	s.carriesWithin(soon, what, from, to)
}

// carriesWithin is carries with how long that may take.
func (s *steering) carriesWithin(patience time.Duration, what string, from, to net.Conn) {
	s.Helper()
	if _, err := from.Write([]byte("on")); err != nil {
		s.Errorf("%s: %v", what, err)
		return
	}
	if err := to.SetReadDeadline(time.Now().Add(patience)); err != nil {
		s.Fatal(err)
	}
	if n, err := to.Read(make([]byte, 2)); err != nil || n != 2 {
		s.Errorf("%s: got %d bytes, %v", what, n, err)
	}
}

// isReset fails the test unless an end that only waits learns that its connection has ended.
func (s *steering) isReset(what string, end net.Conn) {
	s.Helper()
	if err := end.SetReadDeadline(time.Now().Add(soon)); err != nil {
		s.Fatal(err)
	}
	if _, err := end.Read(make([]byte, 2)); !errors.Is(err, syscall.ECONNRESET) {
		s.Errorf("%s: %v, want a reset", what, err)
	}
}

// neverSeenAsItself fails the test if a packet of the pod's own address has come to the host outside.
func (s *steering) neverSeenAsItself() {
	s.Helper()
	if counted := s.run(s.Outside(), "nft", "list", "chain", "inet", "seen", "arrivals"); !strings.Contains(counted, "counter packets 0 ") {
		s.Errorf("the pod was seen as itself:\n%s", counted)
	}
}

// goOn fails the test unless two connections do, over one of which only the far side has sent.
func (s *steering) goOn(sends, receives connection) {
	s.Helper()
	s.carries("the far side sends", receives.far, receives.near)
	s.carries("the pod sends", sends.near, sends.far)
	s.carries("the far side answers", sends.far, sends.near)
	for node := range s.Nodes() {
		s.deletes(node, Scope{All: true}, 0, s.binding)
	}
	s.neverSeenAsItself()
}

// TestDelete_TheAddressComesHere: connections that another node has translated go on from this one.
func TestDelete_TheAddressComesHere(t *testing.T) {
	onSteeredNode(t, 1, "", func(s *steering) {
		sends, receives := s.connect(0), s.connect(0)
		s.takes(0)
		s.comesIn(0)
		s.deletes(1, Scope{Removed: []kernel.Binding{s.binding}}, 0)
		s.deletes(0, Scope{Pods: pods(s.pod.String()), Steered: []kernel.Binding{s.binding}}, 0, s.binding)
		s.goOn(sends, receives)
	})
}

// TestDelete_TheAddressComesHereToChosenPorts: where this node's rules choose another port, the pod learns at once that
// its connection cannot go on.
func TestDelete_TheAddressComesHereToChosenPorts(t *testing.T) {
	onSteeredNode(t, 1, "", func(s *steering) {
		before := s.connect(0)
		s.ports = "fully-random"
		s.takes(0)
		s.comesIn(0)
		s.deletes(0, Scope{Pods: pods(s.pod.String()), Steered: []kernel.Binding{s.binding}}, 0, s.binding)
		s.isReset("the pod", before.near)
		s.neverSeenAsItself()
	})
}

// TestDelete_TheAddressGoesToAThirdNode: connections that another node has translated go on from a third, in
// whichever order the two others learn of it.
func TestDelete_TheAddressGoesToAThirdNode(t *testing.T) {
	for name, order := range map[string][]int{"the pod's node learns first": {0, 1}, "the former holder learns first": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			onSteeredNode(t, 1, "", func(s *steering) {
				sends, receives := s.connect(0), s.connect(0)
				s.takes(2)
				s.comesIn(2)
				for _, node := range order {
					if node == 0 {
						s.deletes(0, Scope{Pods: pods(s.pod.String()), Steered: []kernel.Binding{s.binding}}, 0, s.binding)
					} else {
						s.deletes(1, Scope{Removed: []kernel.Binding{s.binding}}, 0)
					}
				}
				s.goOn(sends, receives)
			})
		})
	}
}

// TestDelete_AfterAStrangersPacket: a pod that only receives goes on though it has answered a stranger's packet just before the address
// moves, and its kernel answers the next one after half a second.
func TestDelete_AfterAStrangersPacket(t *testing.T) {
	for name, next := range map[string]int{"a third node takes it": 2, "the pod's node takes it": 0} {
		t.Run(name, func(t *testing.T) {
			onSteeredNode(t, 1, "", func(s *steering) {
				receives := s.connect(0)
				s.takes(next)
				s.comesIn(next)
				s.dropsUnknown(next)
				s.nudges(receives)
				s.deletes(0, Scope{Pods: pods(s.pod.String()), Steered: []kernel.Binding{s.binding}}, 0, s.binding)
				s.carries("the far side sends", receives.far, receives.near)
				s.neverSeenAsItself()
			})
		})
	}
}

// TestDelete_MoreThanMayAnswerAtOnce: where the kernel limits how many answers all pods together give in a second, all connections that
// only receive go on nevertheless, one after the other.
func TestDelete_MoreThanMayAnswerAtOnce(t *testing.T) {
	const limit = 8
	onSteeredNode(t, 1, "", func(s *steering) {
		for _, host := range []*lab.Host{s.Node(), s.Pod(1)} {
			if out, err := host.Run(s.Context(), "sysctl", "-w", fmt.Sprintf("net.ipv4.tcp_challenge_ack_limit=%d", limit)); err != nil {
				s.Skipf("this kernel has one limit for all network namespaces: %v %s", err, out)
			}
		}
		var receive []connection
		for range 12 {
			receive = append(receive, s.connect(0))
		}
		s.takes(2)
		s.comesIn(2)
		s.dropsUnknown(2)
		s.deletes(0, Scope{Pods: pods(s.pod.String()), Steered: []kernel.Binding{s.binding}}, 0, s.binding)
		for _, one := range receive {
			s.carriesWithin(3*soon, "the far side sends", one.far, one.near) // which sends again after 6 s, and then after 13
		}
		s.neverSeenAsItself()
	})
}

// dropsUnknown has a node drop what comes for the egress IP and belongs to no connection.
func (s *steering) dropsUnknown(node int) {
	s.Helper()
	s.run(s.Nodes()[node], "nft", fmt.Sprintf("add table inet nostate; add chain inet nostate arrivals { type filter hook prerouting priority -95; }; add rule inet nostate arrivals ct state new,invalid %s daddr %s drop", s.ip(), s.egressIP))
}

// nudges has the pod answer a packet of nobody, while nothing leaves its node.
func (s *steering) nudges(c connection) {
	s.Helper()
	s.run(s.Node(), "nft", "add table inet cut; add chain inet cut forward { type filter hook forward priority 0; policy drop; }")
	err := s.Node().Do(func() error {
		n, err := openNudger(s.family)
		if err != nil {
			return err
		}
		defer n.close()
		return n.nudge(tuple{protocol: unix.IPPROTO_TCP, source: addrPort(c.near.LocalAddr()), destination: addrPort(c.near.RemoteAddr())})
	})
	if err != nil {
		s.Fatal(err)
	}
	s.run(s.Node(), "nft", "delete", "table", "inet", "cut")
}

// TestDelete_NothingIsPickedUp: where the kernels track connections from their beginning alone, both sides learn at once that theirs
// is over when another node takes the address.
func TestDelete_NothingIsPickedUp(t *testing.T) {
	for _, next := range []int{2, 0} {
		t.Run(fmt.Sprintf("node %d takes it", next+1), func(t *testing.T) {
			onSteeredNode(t, 1, "", func(s *steering) {
				for _, node := range s.Nodes() {
					s.run(node, "sysctl", "-w", "net.netfilter.nf_conntrack_tcp_loose=0")
				}
				receives := s.connect(0)
				s.takes(next)
				s.comesIn(next)
				s.deletes(0, Scope{Pods: pods(s.pod.String()), Steered: []kernel.Binding{s.binding}}, 1, s.binding)
				s.isReset("the pod", receives.near)
				err := s.Nodes()[next].Do(func() error {
					table := NewTable(s.family)
					defer table.Close()
					_, err := table.EndClashes(s.Context(), map[netip.Addr]time.Time{s.egressIP: time.Now()}, nil)
					return err
				})
				if err != nil {
					s.Fatal(err)
				}
				if _, err := receives.far.Write([]byte("on")); err != nil {
					s.Fatal(err)
				}
				s.isReset("the far side", receives.far)
				after := s.connect(0)
				s.carries("a new connection", after.near, after.far)
				s.carries("its far side", after.far, after.near)
				s.neverSeenAsItself()
			})
		})
	}
}

// TestDelete_TheAddressGoesAway: connections that this node has translated go on from another one if they kept
// their ports.
func TestDelete_TheAddressGoesAway(t *testing.T) {
	onSteeredNode(t, 0, "", func(s *steering) {
		sends, receives := s.connect(0), s.connect(0)
		s.takes(1)
		s.comesIn(1)
		s.deletes(0, Scope{Pods: pods(s.pod.String())}, 0, s.binding)
		s.goOn(sends, receives)
	})
}

// TestDelete_TheAddressIsLostForAWhile: connections that this node has translated go on when a node takes the address, which nobody has
// had for a while. Until then no answer of a pod to a nudge is heard.
func TestDelete_TheAddressIsLostForAWhile(t *testing.T) {
	for name, next := range map[string]int{"another node takes it": 1, "it comes back": 0} {
		t.Run(name, func(t *testing.T) {
			onSteeredNode(t, 0, "", func(s *steering) {
				sends, receives := s.connect(0), s.connect(0)
				s.lost = true
				s.run(s.Node(), "nft", fmt.Sprintf("add table inet lost; add chain inet lost way { type filter hook prerouting priority -95; }; add rule inet lost way iifname cni0 ct status != snat %s saddr %s drop", s.ip(), s.pod))
				s.deletes(0, Scope{Pods: pods(s.pod.String())}, 0, s.binding)
				time.Sleep(2 * answersAgain) // a nudge that is repeated now must not help
				s.lost = false
				s.run(s.Node(), "nft", "delete", "table", "inet", "lost")
				s.takes(next)
				s.comesIn(next)
				s.dropsUnknown(next)
				s.deletes(0, Scope{Pods: pods(s.pod.String()), Steered: []kernel.Binding{s.binding}}, 0, s.binding)
				s.goOn(sends, receives)
			})
		})
	}
}

// TestDelete_TheAddressGoesAwayFromChosenPorts: connections that this node has translated to ports of its choice are
// reset, on both sides as long as the far side's packets come here. The pod's next one goes by the node that has
// the address, though it has the same ports, and goes on when the address is back.
func TestDelete_TheAddressGoesAwayFromChosenPorts(t *testing.T) {
	onSteeredNode(t, 0, "fully-random", func(s *steering) {
		l := s.listen()
		before := s.connectTo(l, s.Pod(1), 40000)
		s.ports = ""
		s.takes(1)
		s.deletes(0, Scope{Pods: pods(s.pod.String())}, 1, s.binding)
		s.isReset("the pod", before.near)
		s.isReset("the far side", before.far)
		s.comesIn(1)
		next := s.connectTo(l, s.Pod(1), 40000)
		s.carries("the pod sends", next.near, next.far)
		s.carries("the far side sends", next.far, next.near)
		s.deletes(0, Scope{All: true}, 0, s.binding)
		for deadline := time.Now().Add(soon); strings.Contains(s.run(s.Node(), "nft", "list", "set", s.ip(), barrierTable, flowsSet), s.pod.String()); {
			if time.Now().After(deadline) {
				s.Fatal("the barrier does not forget the pod's side")
			}
		}
		s.takes(0)
		s.comesIn(0)
		s.deletes(0, Scope{Pods: pods(s.pod.String()), Steered: []kernel.Binding{s.binding}}, 0, s.binding)
		s.goOn(next, next)
	})
}

// TestDelete_SteeredBindingIsRemoved: the pod's connections are reset, and the far side hears nothing of the pod's
// own address, which it has never seen, whatever it sends and whoever drops what conntrack calls invalid. The holder
// resets the far side.
func TestDelete_SteeredBindingIsRemoved(t *testing.T) {
	for name, dropsInvalid := range map[string]bool{"as kube-proxy for iptables": true, "as kube-proxy for nftables": false} {
		t.Run(name, func(t *testing.T) {
			onSteeredNode(t, 1, "", func(s *steering) {
				if !dropsInvalid {
					for _, node := range s.Nodes() {
						s.run(node, "nft", "delete", "table", "inet", "proxy")
					}
				}
				before := s.connect(0)
				s.deletes(0, Scope{Removed: []kernel.Binding{s.binding}, Steered: []kernel.Binding{s.binding}}, 1)
				s.isReset("the pod", before.near)
				s.sends(before.far)
				s.deletes(1, Scope{Removed: []kernel.Binding{s.binding}}, 1)
				s.isReset("the far side", before.far)
				s.neverSeenAsItself()
			})
		})
	}
}

// sends waits until a packet that the far side sends has come to the pod's node.
func (s *steering) sends(far net.Conn) {
	s.Helper()
	s.run(s.Node(), "nft", fmt.Sprintf("add table inet sent; add chain inet sent arrivals { type filter hook prerouting priority -400; }; add rule inet sent arrivals %s daddr %s counter", s.ip(), s.pod))
	if _, err := far.Write([]byte("on")); err != nil {
		s.Fatal(err)
	}
	for deadline := time.Now().Add(soon); strings.Contains(s.run(s.Node(), "nft", "list", "chain", "inet", "sent", "arrivals"), "counter packets 0 "); {
		if time.Now().After(deadline) {
			s.Fatal("what the far side sends does not come to the pod's node")
		}
	}
}
