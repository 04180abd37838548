package portsecurity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// node is a node with two pods on a bridge, and a writer of it.
type node struct {
	*testing.T
	lab           *lab.Lab
	host          *lab.Host
	victim, other *lab.Host
	*Writer
	grants Grants
}

func newNode(t *testing.T) *node {
	l := lab.ForTest(t, lab.Config{Nodes: 1, Pods: 2, IPv6: true})
	n := &node{T: t, lab: l, host: l.Node(), victim: l.Pod(1), other: l.Pod(2)}
	n.restart()
	t.Cleanup(func() { n.Close() })
	return n
}

func (n *node) restart() {
	n.Helper()
	if n.Writer != nil {
		n.Close()
	}
	n.Writer = NewWriter()
	n.on(func() (err error) {
		n.grants, _, err = n.Adopt(n.Context())
		return err
	})
}

// on runs f on the node.
func (n *node) on(f func() error) {
	n.Helper()
	if err := n.host.Do(f); err != nil {
		n.Fatal(err)
	}
}

// assign looks at the interfaces, and writes what follows. It returns what was refused.
func (n *node) assign(told ...Told) (refused []Refusal) {
	n.Helper()
	n.on(func() error {
		interfaces, err := Interfaces([]netip.Prefix{lab.ClusterV4, lab.ClusterV6}, []netip.Addr{n.host.V4, n.host.V6}, n.isKnown)
		if err != nil {
			return err
		}
		n.grants, refused = Assign(n.grants, interfaces, told)
		n.SetInterfaces(interfaces, n.grants)
		_, err = n.Write(n.Context(), false)
		return err
	})
	return refused
}

// isKnown tells whether an interface has addresses, as for [Interfaces].
func (n *node) isKnown(l Link) bool { return len(n.grants[l]) > 0 }

func (n *node) bind(hosts ...*lab.Host) {
	for _, h := range hosts {
		n.Bind(h.V4)
		n.Bind(h.V6)
	}
}

func (n *node) run(h *lab.Host, commands ...string) string {
	n.Helper()
	var all strings.Builder
	for _, command := range commands {
		fields := strings.Fields(command)
		out, err := h.Run(n.Context(), fields[0], fields[1:]...)
		if err != nil {
			n.Fatal(err)
		}
		all.WriteString(out)
	}
	return all.String()
}

// far listens outside of the cluster for the packets of pods.
func (n *node) far(family kernel.Family) *net.UDPConn {
	n.Helper()
	at := map[kernel.Family]netip.Addr{kernel.IPv4: n.lab.Outside().V4, kernel.IPv6: n.lab.Outside().V6}[family]
	var far *net.UDPConn
	if err := n.lab.Outside().Do(func() (err error) {
		far, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 0)))
		return err
	}); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = far.Close() })
	return far
}

// leaves has a pod send a packet with a source address, which it gives itself if it has another one, and tells whether it has
// left the node. What has not is dropped and counted.
func (n *node) leaves(from *lab.Host, as netip.Addr) bool {
	n.Helper()
	if as != from.V4 && as != from.V6 {
		n.run(from, fmt.Sprintf("ip addr add %s/%d dev lo%s", as, as.BitLen(), map[bool]string{true: " nodad"}[as.Is6()]))
		defer n.run(from, fmt.Sprintf("ip addr del %s/%d dev lo", as, as.BitLen()))
	}
	far := n.far(kernel.FamilyOf(as))
	return n.arrives(far, as, func() error {
		return from.Do(func() error {
			c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(as, 0)), far.LocalAddr().(*net.UDPAddr))
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			_, err = c.Write([]byte("x"))
			return err
		})
	})
}

// arrives tells whether a packet that is sent arrives outside. It waits until it has arrived, or was counted as dropped.
func (n *node) arrives(far *net.UDPConn, as netip.Addr, send func() error) bool {
	n.Helper()
	before := n.drops()
	if err := send(); err != nil {
		n.Fatal(err)
	}
	for deadline := time.Now().Add(lab.Stretch(10 * time.Second)); time.Now().Before(deadline); {
		_ = far.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, seen, err := far.ReadFromUDPAddrPort(make([]byte, 10)); err == nil {
			if seen.Addr().Unmap() != as {
				n.Errorf("seen as %s, sent as %s", seen.Addr(), as)
			}
			return true
		}
		if !maps.Equal(before, n.drops()) {
			return false
		}
	}
	n.Fatalf("a packet as %s has neither arrived nor was it dropped", as)
	return false
}

func (n *node) drops() (drops map[kernel.Family]uint64) {
	n.Helper()
	n.on(func() (err error) {
		drops, err = Drops(n.Context())
		return err
	})
	return drops
}

// both returns the addresses of a pod.
func both(h *lab.Host) []netip.Addr { return []netip.Addr{h.V4, h.V6} }

// TestWriter_OnlyTheOwnInterface: a pod leaves from its address, and no other one does while it is bound.
func TestWriter_OnlyTheOwnInterface(t *testing.T) {
	n := newNode(t)
	if refused := n.assign(); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
	for _, as := range both(n.victim) {
		if !n.leaves(n.other, as) {
			t.Errorf("another pod does not leave as %s, which is not bound", as)
		}
	}
	n.bind(n.victim)
	n.assign()
	for _, as := range both(n.victim) {
		if n.leaves(n.other, as) {
			t.Errorf("another pod leaves as %s", as)
		}
		if !n.leaves(n.victim, as) {
			t.Errorf("the pod itself does not leave as %s", as)
		}
	}
	for _, as := range both(n.other) {
		if !n.leaves(n.other, as) {
			t.Errorf("a pod that is not bound does not leave as itself, %s", as)
		}
	}
}

// TestWriter_PodOfAnotherNode: its address is behind no interface here, so no pod leaves from it.
func TestWriter_PodOfAnotherNode(t *testing.T) {
	n := newNode(t)
	for _, away := range []netip.Addr{netip.MustParseAddr("10.128.7.11"), netip.MustParseAddr("fd00:10:128:7::11")} {
		n.Bind(away)
		n.assign()
		if n.leaves(n.other, away) {
			t.Errorf("a pod leaves as %s", away)
		}
	}
}

// TestWriter_BehindTwoVLANTags: the kernel takes both off behind the hook, and forwards what is inside. If the outer one has a number,
// it takes that a bridge with VLANs, or a VLAN's interface. What is honest passes the hook, whatever becomes of it.
func TestWriter_BehindTwoVLANTags(t *testing.T) {
	n := newNode(t)
	n.run(n.host, "nft add table netdev passes", "nft add chain netdev passes seen { type filter hook ingress device pod2 priority 0 ; }",
		"nft add rule netdev passes seen @ll,128,16 0x8100 counter", "nft add rule netdev passes seen @ll,128,16 0x88a8 counter")
	passed := func() string { return n.run(n.host, "nft list chain netdev passes seen") }
	const q, ad = unix.ETH_P_8021Q, unix.ETH_P_8021AD
	unbound := map[kernel.Family]netip.Addr{kernel.IPv4: n.other.V4, kernel.IPv6: n.other.V6}
	bound := map[kernel.Family]netip.Addr{kernel.IPv4: n.victim.V4, kernel.IPv6: n.victim.V6}
	for family, away := range map[kernel.Family]string{kernel.IPv4: "10.128.7.11", kernel.IPv6: "fd00:10:128:7::11"} {
		far, honest := n.far(family), n.far(family)
		send := func(to *net.UDPConn, as netip.Addr, tags ...tag) func() error {
			return func() error { return n.other.Do(func() error { return n.sendTagged(tags, as, to) }) }
		}
		for _, address := range both(n.victim) {
			n.Unbind(address)
		}
		n.assign()
		if !n.arrives(far, bound[family], send(far, bound[family], tag{q, 0}, tag{q, 0})) {
			t.Errorf("%s: the frame does not arrive although nothing keeps it, so the test shows nothing", family)
		}
		n.bind(n.victim)
		n.Bind(netip.MustParseAddr(away))
		n.assign()
		for _, tags := range [][]tag{
			{{q, 0}, {q, 0}}, {{q, 5}, {q, 0}}, {{q, 5}, {q, 6}}, {{q, 5}, {ad, 0}}, {{ad, 0}, {q, 0}}, {{ad, 5}, {q, 6}}, {{ad, 5}, {ad, 6}},
		} {
			for _, as := range []netip.Addr{bound[family], netip.MustParseAddr(away)} {
				before := n.drops()
				if n.arrives(far, as, send(far, as, tags...)) {
					t.Errorf("%v: the frame has left as %s", tags, as)
				}
				before[family]++
				if after := n.drops(); !maps.Equal(before, after) {
					t.Errorf("%v: as %s, dropped are %v, expected %v", tags, as, after, before)
				}
			}
			dropped, before := n.drops(), passed()
			if err := send(honest, unbound[family], tags...)(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(lab.Stretch(5 * time.Second)); passed() == before; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%v: a pod's own frame does not pass:\n%s", tags, n.run(n.host, "nft list ruleset"))
				}
			}
			if after := n.drops(); !maps.Equal(dropped, after) {
				t.Errorf("%v: dropped were %v, and are %v with a pod's own frame", tags, dropped, after)
			}
		}
		for _, third := range []uint16{q, ad} {
			if n.arrives(far, unbound[family], send(far, unbound[family], tag{q, 5}, tag{q, 6}, tag{third, 0})) {
				t.Errorf("%#x: a frame with three tags has left", third)
			}
		}
	}
}

// TestWriter_ForgedMAC: a frame from another pod with the hardware address of the bound pod, and its IP address, as source is dropped and
// counted. The bound pod itself leaves all the same.
func TestWriter_ForgedMAC(t *testing.T) {
	n := newNode(t)
	text := strings.TrimSpace(n.run(n.victim, "cat /sys/class/net/eth0/address"))
	mac, err := net.ParseMAC(text)
	if err != nil {
		t.Fatal(err)
	}
	for family, as := range map[kernel.Family]netip.Addr{kernel.IPv4: n.victim.V4, kernel.IPv6: n.victim.V6} {
		far := n.far(family)
		from, to := netip.AddrPortFrom(as, 7777), far.LocalAddr().(*net.UDPAddr).AddrPort()
		forge := func() error {
			return n.other.Do(func() error {
				return n.sendFrame(nil, from, to, func(frame []byte) []byte {
					const source = 6 // behind the receiver's
					copy(frame[source:], mac)
					return frame
				})
			})
		}
		n.Unbind(as)
		n.assign()
		if !n.arrives(far, as, forge) {
			t.Errorf("%s: the frame does not arrive although nothing keeps it, so the test shows nothing", family)
		}
		n.Bind(as)
		n.assign()
		want := n.drops()
		want[family]++
		if n.arrives(far, as, forge) {
			t.Errorf("another pod leaves as %s with the hardware address %s", as, mac)
		}
		if got := n.drops(); !maps.Equal(want, got) {
			t.Errorf("%s: dropped are %v, expected %v", family, got, want)
		}
		if !n.leaves(n.victim, as) {
			t.Errorf("the pod itself does not leave as %s", as)
		}
	}
}

// tag is that of a VLAN.
type tag struct {
	kind   uint16
	number byte
}

// TestWriter_IncompleteBehindTags: an IPv6 packet whose extension headers end too early is dropped as every other one, behind tags, too.
func TestWriter_IncompleteBehindTags(t *testing.T) {
	n := newNode(t)
	n.bind(n.victim)
	n.assign()
	const q, ad = unix.ETH_P_8021Q, unix.ETH_P_8021AD
	for _, tags := range [][]tag{{}, {{q, 5}}, {{q, 0}, {q, 0}}, {{q, 5}, {q, 6}}, {{q, 5}, {ad, 0}}, {{ad, 0}, {q, 0}}, {{ad, 5}, {ad, 6}}} {
		want := n.drops()
		want[kernel.IPv6]++
		if err := n.other.Do(func() error {
			return n.sendFrame(tags, netip.AddrPortFrom(n.victim.V6, 7777), netip.AddrPortFrom(n.lab.Outside().V6, 7777), func(frame []byte) []byte {
				const header, fixed = 14, 40
				frame[header+4], frame[header+5], frame[header+6] = 0, 0, unix.IPPROTO_DSTOPTS // which do not follow
				return frame[:header+fixed]
			})
		}); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(lab.Stretch(5 * time.Second)); !maps.Equal(want, n.drops()); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%v: a packet as %s is not dropped: dropped are %v, want %v", tags, n.victim.V6, n.drops(), want)
			}
		}
	}
}

// sendTagged sends a datagram from the pod of the thread's network namespace, as if from an address, in a frame with VLAN tags.
func (n *node) sendTagged(tags []tag, as netip.Addr, to *net.UDPConn) error {
	return n.sendFrame(tags, netip.AddrPortFrom(as, 7777), to.LocalAddr().(*net.UDPAddr).AddrPort(), func(frame []byte) []byte { return frame })
}

// sendFrame is sendTagged of a frame that is changed before it gets its tags.
func (n *node) sendFrame(tags []tag, from, to netip.AddrPort, change func(frame []byte) []byte) error {
	eth0, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	bridge := strings.TrimSpace(n.run(n.host, "cat /sys/class/net/cni0/address"))
	gateway, err := net.ParseMAC(bridge)
	if err != nil {
		return err
	}
	// What a frame of the lab has inside is behind two hardware addresses.
	frame := change(lab.Wrapped(0, gateway, eth0.HardwareAddr, from, to, "x")[8:])
	var header []byte
	for _, tag := range tags {
		header = append(binary.BigEndian.AppendUint16(header, tag.kind), 0, tag.number)
	}
	frame = slices.Insert(frame, 12, header...)
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	return unix.Sendto(socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: eth0.Index, Halen: 6})
}

// TestAssign_PodTakesAnothersAddress: a pod that may change its addresses gets nobody else's, neither beside its own nor in its place,
// and also not from a new process.
func TestAssign_PodTakesAnothersAddress(t *testing.T) {
	n := newNode(t)
	n.bind(n.victim)
	n.assign()
	for _, commands := range [][]string{
		{fmt.Sprintf("ip addr add %s/32 dev eth0", n.victim.V4)},
		{"ip addr flush dev eth0", fmt.Sprintf("ip addr add %s/32 dev eth0", n.victim.V4)},
	} {
		n.run(n.other, commands...)
		name := commands[0]
		for _, process := range []string{"the same process", "a new one"} {
			refused := n.assign()
			if len(refused) == 0 || refused[0].Address != n.victim.V4 || refused[0].Owner == "" {
				t.Errorf("%s, %s: refused %v", name, process, refused)
			}
			if got := n.tell(n.victim.V4); got != 1 {
				t.Errorf("%s, %s: %d interfaces have the address", name, process, got)
			}
			n.restart()
			n.bind(n.victim)
		}
	}
}

// tell returns how many interfaces have an address.
func (n *node) tell(address netip.Addr) (interfaces int) {
	for _, addresses := range n.grants {
		if slices.Contains(addresses, address) {
			interfaces++
		}
	}
	return interfaces
}

// TestWriter_Table: the table as nft lists it.
func TestWriter_Table(t *testing.T) {
	n := newNode(t)
	n.bind(n.victim)
	n.assign()
	listed := n.run(n.host, "nft list table netdev "+Table)
	for _, want := range []string{
		"ip saddr " + n.victim.V4.String() + " accept", "ip6 saddr " + n.victim.V6.String() + " accept",
		"ip saddr @bound-ipv4 counter name \"spoofed-ipv4\" drop", "ip6 saddr @placed-ipv6 counter name \"spoofed-ipv6\" drop",
		"hook ingress device", "priority -500",
	} {
		if !strings.Contains(listed, want) {
			t.Errorf("no %q in\n%s", want, listed)
		}
	}
	n.on(func() error {
		differences, err := n.Compare(n.Context())
		if len(differences) > 0 {
			t.Errorf("differences: %v", differences)
		}
		return err
	})
}

// TestWriter_RepairsAndFollows: what somebody else has changed is repaired, and chains go with their interfaces.
func TestWriter_RepairsAndFollows(t *testing.T) {
	n := newNode(t)
	n.bind(n.victim)
	n.assign()
	for _, damage := range []string{"nft delete table netdev " + Table, "nft flush chain netdev " + Table + " told", "nft flush set netdev " + Table + " bound-ipv4"} {
		n.run(n.host, damage)
		n.on(func() error {
			_, err := n.Write(n.Context(), true)
			return err
		})
		if n.leaves(n.other, n.victim.V4) {
			t.Errorf("after %q another pod leaves as %s", damage, n.victim.V4)
		}
	}
	n.unhook()
	n.on(func() error {
		if differences, err := n.Compare(n.Context()); err != nil || len(differences) == 0 {
			t.Errorf("a chain is at no interface, and the differences are %q, %v", differences, err)
		}
		_, err := n.Write(n.Context(), true)
		return err
	})
	if n.leaves(n.other, n.victim.V4) {
		t.Errorf("after a chain was at no interface another pod leaves as %s", n.victim.V4)
	}
	n.run(n.host, "ip link set pod2 down", "ip link set pod2 name renamed", "ip link set renamed up")
	n.assign()
	if n.leaves(n.other, n.victim.V4) {
		t.Errorf("after its interface was renamed another pod leaves as %s", n.victim.V4)
	}
	n.run(n.host, "ip link set renamed down", "ip link set renamed name pod2")
	if err := n.lab.RemovePod(n.other); err != nil {
		t.Fatal(err)
	}
	n.assign()
	if got := strings.Count(n.run(n.host, "nft list table netdev "+Table), "hook ingress"); got != 1 {
		t.Errorf("%d chains at interfaces, expected 1", got)
	}
	n.on(func() error { return Cleanup(n.Context()) })
	if left := n.run(n.host, "nft list ruleset netdev"); strings.Contains(left, Table) {
		t.Errorf("left: %s", left)
	}
}

// unhook puts chains in the place of those at interfaces that are at none, with the same rules.
func (n *node) unhook() {
	n.Helper()
	listed := n.run(n.host, "nft list table netdev "+Table)
	hook := regexp.MustCompile(`type filter hook ingress .*\n`)
	var batch strings.Builder
	for _, chain := range regexp.MustCompile(`(?s)\tchain (pod-\S+) \{\n.*?\n\t\}\n`).FindAllStringSubmatch(listed, -1) {
		fmt.Fprintf(&batch, "flush chain netdev %s %s\ndelete chain netdev %s %s\n", Table, chain[1], Table, chain[1])
		fmt.Fprintf(&batch, "table netdev %s {\n%s}\n", Table, hook.ReplaceAllString(chain[0], ""))
	}
	n.run(n.host, "nft -f "+n.file(batch.String()))
}

// file returns the name of a file with a text.
func (n *node) file(text string) (name string) {
	n.Helper()
	name = filepath.Join(n.TempDir(), "batch")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		n.Fatal(err)
	}
	return name
}

// TestInterfaces_WhereAddressesChangeAllTheTime: a pod that may change its addresses keeps the node from learning nobody else's, and
// no more than some of its own are told.
func TestInterfaces_WhereAddressesChangeAllTheTime(t *testing.T) {
	n := newNode(t)
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, "addr add 10.129.%d.%d/32 dev eth0\n", i/250, i%250)
	}
	n.run(n.other, "ip -batch "+n.file(many.String()))
	var ended atomic.Bool
	var flapping sync.WaitGroup
	flapping.Go(func() {
		if err := n.other.Do(func() error {
			eth0, err := netlink.LinkByName("eth0")
			address := &netlink.Addr{IPNet: netlink.NewIPNet(net.IPv4(10, 130, 0, 1))}
			for err == nil && !ended.Load() {
				err = errors.Join(netlink.AddrAdd(eth0, address), netlink.AddrDel(eth0, address))
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	})
	defer flapping.Wait()
	defer ended.Store(true)
	for range 50 {
		n.on(func() error {
			l := look{pods: kernel.NewCIDRSet([]netip.Prefix{lab.ClusterV4, lab.ClusterV6}), own: []netip.Addr{n.host.V4, n.host.V6}, known: n.isKnown}
			interfaces, err := l.all()
			found := false
			for _, i := range interfaces {
				found = found || i.Name == "pod1" && slices.Contains(i.Behind, n.victim.V4)
				if len(i.Behind) > mostBehind {
					t.Errorf("behind %s are %v", i.Name, i.Behind)
				}
			}
			if err == nil && !found {
				t.Errorf("%s is not behind pod1, of %v", n.victim.V4, interfaces)
			}
			return err
		})
	}
}

// TestAvailable_ChangesNothing: it leaves nothing behind, and the table as it is.
func TestAvailable_ChangesNothing(t *testing.T) {
	n := newNode(t)
	n.on(func() error { return Available(n.Context()) })
	if left := n.run(n.host, "nft list ruleset netdev"); left != "" {
		t.Errorf("left: %s", left)
	}
	n.bind(n.victim)
	n.assign()
	before := n.run(n.host, "nft list ruleset netdev")
	n.on(func() error { return Available(n.Context()) })
	if after := n.run(n.host, "nft list ruleset netdev"); after != before {
		t.Errorf("before %s\nafter %s", before, after)
	}
}

// TestAvailable_HookIsRefused: a kernel that has nftables, but refuses one more hook at the ingress of an interface (it takes 1,024 of all
// tables), cannot check sources. That is found out, it leaves nothing behind, and it is over when there is room.
func TestAvailable_HookIsRefused(t *testing.T) {
	n := newNode(t)
	var chains strings.Builder
	for i := range 1024 {
		fmt.Fprintf(&chains, "add chain netdev others c%d { type filter hook ingress device lo priority 0; }\n", i)
	}
	n.run(n.host, "nft add table netdev others", "nft -f "+n.file(chains.String()))
	before := n.run(n.host, "nft list tables")
	n.on(func() error {
		err := Available(n.Context())
		if !errors.Is(err, unix.E2BIG) || !strings.Contains(err.Error(), "hook at the ingress of interfaces") || strings.Contains(err.Error(), "\n") {
			t.Errorf("without room for a hook: %v", err)
		}
		return nil
	})
	if after := n.run(n.host, "nft list tables"); after != before {
		t.Errorf("before %s\nafter %s", before, after)
	}
	n.run(n.host, "nft delete chain netdev others c0")
	n.on(func() error { return Available(n.Context()) })
}

// pointToPoint takes the interfaces of pods from their bridge, and leads a route to each pod, as the network plugin ptp does.
func (n *node) pointToPoint() {
	n.Helper()
	for i, pod := range []*lab.Host{n.victim, n.other} {
		name := fmt.Sprintf("pod%d", i+1)
		n.run(n.host, "ip link set "+name+" nomaster", "ip addr add 10.128.0.1/32 dev "+name, "ip -6 addr add fd00:10:128::1/128 dev "+name+" nodad",
			fmt.Sprintf("ip route add %s/32 dev %s", pod.V4, name), fmt.Sprintf("ip route add %s/128 dev %s", pod.V6, name))
		n.run(pod, "ip neigh flush all")
	}
}

// TestWriter_PointToPoint: the same without a bridge, with any reverse path filter.
func TestWriter_PointToPoint(t *testing.T) {
	n := newNode(t)
	n.pointToPoint()
	n.bind(n.victim)
	n.assign()
	for _, filter := range []int{0, 1, 2} {
		n.run(n.host, fmt.Sprintf("sysctl -q -w net.ipv4.conf.all.rp_filter=%d", filter))
		for _, as := range both(n.victim) {
			if n.leaves(n.other, as) {
				t.Errorf("rp_filter %d: another pod leaves as %s", filter, as)
			}
			if !n.leaves(n.victim, as) {
				t.Errorf("rp_filter %d: the pod itself does not leave as %s", filter, as)
			}
		}
	}
}

// TestInterfaces_LeadToPods: no chain is at what leads to other nodes, nor at what that consists of.
func TestInterfaces_LeadToPods(t *testing.T) {
	n := newNode(t)
	names := func() (names []string) {
		n.on(func() error {
			interfaces, err := Interfaces([]netip.Prefix{lab.ClusterV4, lab.ClusterV6}, []netip.Addr{n.host.V4, n.host.V6}, n.isKnown)
			for _, i := range interfaces {
				names = append(names, i.Name)
			}
			slices.Sort(names)
			return err
		})
		return names
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if got := names(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, expected %v", what, got, want)
		}
	}
	expect("two pods and the uplink", "pod1", "pod2")
	n.run(n.host, "ip tuntap add vm0 mode tap", "ip tuntap add vpn0 mode tun", "ip link add both0 type veth peer name both1")
	expect("a virtual machine, a VPN, and what leads to this node itself", "pod1", "pod2", "vm0")
	n.run(n.host, "ip link set vm0 master cni0", "ip route add 198.51.100.0/24 via 10.128.0.11")
	expect("with a pod as a router", "pod1", "pod2", "vm0")
	n.run(n.host, "ip addr add 10.9.0.1/24 dev cni0", "ip route add 198.18.7.0/24 via 10.9.0.2")
	expect("where a router is on the pods' bridge", "pod1", "pod2")
	n.run(n.host, "ip route del 198.18.7.0/24", "ip addr del 10.9.0.1/24 dev cni0",
		"ip -6 route add default via fe80::1 dev pod1 proto ra metric 9", "ip -6 route add 2001:db8:9::/48 via fe80::1 dev cni0 proto ra")
	expect("where pods have advertised themselves as routers", "pod1", "pod2", "vm0")
	n.run(n.host, "ip link add ext0 type bridge", "ip link set ext0 up", "ip link set eth0 master ext0", "ip link set pod2 master ext0",
		"ip addr flush dev eth0", fmt.Sprintf("ip addr add %s/24 dev ext0", n.host.V4))
	expect("where the uplink and a pod are on one bridge", "pod1", "pod2", "vm0")
}

// TestWriter_OnTheNodesBridge: pods are looked at whose bridge leads to other nodes, too.
func TestWriter_OnTheNodesBridge(t *testing.T) {
	n := newNode(t)
	n.run(n.host, "ip addr add 10.9.0.1/24 dev cni0", "ip route add 198.18.7.0/24 via 10.9.0.2")
	n.bind(n.victim)
	n.assign()
	for _, as := range both(n.victim) {
		if n.leaves(n.other, as) {
			t.Errorf("another pod leaves as %s", as)
		}
		if !n.leaves(n.victim, as) {
			t.Errorf("the pod itself does not leave as %s", as)
		}
	}
	n.run(n.other, "ip addr flush dev eth0")
	for _, process := range []string{"the same process", "a new one"} {
		n.assign()
		if got := n.tell(n.other.V4); got != 1 {
			t.Errorf("%s: a pod has taken its addresses away, and %d interfaces are its, so nobody looks at what it sends", process, got)
		}
		n.restart()
		n.bind(n.victim)
	}
}

// TestLeadToPods_NoBridge: a CNI plugin tells of its bridge as of the pod's interface.
func TestLeadToPods_NoBridge(t *testing.T) {
	n := newNode(t)
	n.on(func() error {
		if got, want := LeadToPods([]string{"cni0", "pod1", "gone"}), []string{"pod1"}; !slices.Equal(got, want) {
			t.Errorf("%v lead to pods, expected %v", got, want)
		}
		return nil
	})
}

// TestInterfaces_Redirected: what the CNI plugin bandwidth redirects to an ifb device is not checked, and is told. What is sent to a pod,
// or copied elsewhere, does not count.
func TestInterfaces_Redirected(t *testing.T) {
	n := newNode(t)
	n.bind(n.victim)
	n.assign()
	redirected := func() (names []string) {
		n.on(func() error {
			interfaces, err := Interfaces([]netip.Prefix{lab.ClusterV4, lab.ClusterV6}, []netip.Addr{n.host.V4, n.host.V6}, n.isKnown)
			for _, i := range interfaces {
				if i.Redirected {
					names = append(names, i.Name)
				}
			}
			return err
		})
		return names
	}
	n.run(n.host, "ip link add ifb7 type ifb", "ip link set ifb7 up", "ip link add mirror type veth peer name mirrored", "ip link set mirror up",
		"tc qdisc add dev pod1 clsact",
		"tc filter add dev pod1 egress protocol all u32 match u32 0 0 action mirred egress redirect dev ifb7")
	if got := redirected(); got != nil {
		t.Errorf("without a redirection: %v", got)
	}
	for _, test := range []struct {
		qdisc, action string
		evades        bool
	}{
		{"clsact", "mirred egress redirect dev ifb7", true},
		{"ingress", "mirred egress redirect dev ifb7", true},
		{"ingress", "mirred egress mirror dev ifb7", false}, // which gives back nothing that was copied
		{"ingress", "mirred egress mirror dev mirror", false},
	} {
		n.run(n.host, "tc qdisc add dev pod2 "+test.qdisc, "tc filter add dev pod2 parent ffff:fff2 protocol all u32 match u32 0 0 action "+test.action)
		if left := n.evades(); left != test.evades {
			t.Errorf("%s, %s: another pod leaves as %s: %v, expected %v", test.qdisc, test.action, n.victim.V4, left, test.evades)
		}
		if got := redirected(); slices.Equal(got, []string{"pod2"}) != test.evades {
			t.Errorf("%s, %s: redirected are %v, expected %v", test.qdisc, test.action, got, test.evades)
		}
		n.run(n.host, "tc qdisc del dev pod2 "+test.qdisc)
	}
}

// evades tells whether a packet of the other pod leaves with the victim's address, whether or not another one was dropped.
func (n *node) evades() bool {
	n.Helper()
	far := n.far(kernel.IPv4)
	if err := n.other.Do(func() error { return n.sendTagged(nil, n.victim.V4, far) }); err != nil {
		n.Fatal(err)
	}
	_ = far.SetReadDeadline(time.Now().Add(time.Second))
	_, err := far.Read(make([]byte, 10))
	return err == nil
}
