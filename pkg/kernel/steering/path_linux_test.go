package steering

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

const testPort, testMask = 4799, 0x7e

var arrivalTime = lab.Stretch(10 * time.Second)

// setup is how nodes reach each other.
type setup struct {
	name      string
	transport Transport
	outer     kernel.Family // of the nodes' addresses
	inner     kernel.Family // of what is steered
}

// setups are all there can be. The next hop of the transport Direct is of the family of what is steered.
var setups = []setup{
	{"VXLAN over IPv4, IPv4", VXLAN, kernel.IPv4, kernel.IPv4},
	{"VXLAN over IPv4, IPv6", VXLAN, kernel.IPv4, kernel.IPv6},
	{"VXLAN over IPv6, IPv4", VXLAN, kernel.IPv6, kernel.IPv4},
	{"VXLAN over IPv6, IPv6", VXLAN, kernel.IPv6, kernel.IPv6},
	{"direct, IPv4", Direct, kernel.IPv4, kernel.IPv4},
	{"direct, IPv6", Direct, kernel.IPv6, kernel.IPv6},
}

var overVXLAN, overLAN = setups[:4], setups[4:]

// ofFamily returns those by which packets of a family are steered.
func ofFamily(setups []setup, family kernel.Family) []setup {
	return slices.DeleteFunc(slices.Clone(setups), func(s setup) bool { return s.inner != family })
}

// pathNode is a node with a path.
type pathNode struct {
	*testing.T
	*path
	host  *lab.Host
	setup setup
}

// onPaths runs test for each setup, on nodes that have nothing yet.
func onPaths(t *testing.T, count int, setups []setup, test func(nodes []*pathNode, outside *lab.Host)) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{Nodes: count, IPv6: true})
			var nodes []*pathNode
			for _, h := range l.Nodes() {
				nodes = append(nodes, newPathNode(t, h, s))
			}
			test(nodes, l.Outside())
		})
	}
}

// onPath is onPaths with one node.
func onPath(t *testing.T, setups []setup, test func(n *pathNode)) {
	onPaths(t, 1, setups, func(nodes []*pathNode, _ *lab.Host) { test(nodes[0]) })
}

// holders are some that need not be there.
func (n *pathNode) holders(numbers ...int) map[int]netip.Addr {
	holders := map[int]netip.Addr{}
	for _, number := range numbers {
		holders[number] = netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", 100+number))
		if n.config.NodeIP.Is6() {
			holders[number] = netip.MustParseAddr(fmt.Sprintf("2001:db8:0:2::%x", 0x100+number))
		}
	}
	return holders
}

func newPathNode(t *testing.T, h *lab.Host, s setup) *pathNode {
	c := Config{Family: s.inner, NodeIP: addrOfHost(h, s.outer), Transport: s.transport, Port: testPort, MarkMask: testMask}
	return &pathNode{T: t, path: newPath(c), host: h, setup: s}
}

func addrOfHost(h *lab.Host, family kernel.Family) netip.Addr {
	if family == kernel.IPv4 {
		return h.V4
	}
	return h.V6
}

// of returns the address of the steered packets' family.
func (n *pathNode) of(v4, v6 string) netip.Addr {
	if n.setup.inner == kernel.IPv4 {
		return netip.MustParseAddr(v4)
	}
	return netip.MustParseAddr(v6)
}

// restarted is the same node with a new process.
func (n *pathNode) restarted() *pathNode { return newPathNode(n.T, n.host, n.setup) }

// otherFamily is the same process's path for the other family.
func (n *pathNode) otherFamily() *pathNode {
	s := n.setup
	s.inner = otherFamily(s.inner)
	return newPathNode(n.T, n.host, s)
}

func (n *pathNode) ensured(holders map[int]netip.Addr) (changed bool) {
	n.Helper()
	n.do(func() (err error) {
		changed, err = n.ensure(n.Context(), holders)
		return err
	})
	return changed
}

// refused fails unless ensure returns an error with these words and changes nothing.
func (n *pathNode) refused(holders map[int]netip.Addr, words string) {
	n.Helper()
	before := n.snapshot()
	err := n.host.Do(func() error {
		_, err := n.ensure(n.Context(), holders)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), words) {
		n.Errorf("error: %v; want one with %q", err, words)
	}
	n.unchanged(before)
}

// differ fails unless the differences are lines that contain these words.
func (n *pathNode) differ(holders map[int]netip.Addr, words ...string) {
	n.Helper()
	var differences []string
	n.do(func() (err error) {
		_, differences, err = n.glance(n.Context(), holders)
		return err
	})
	matches := len(differences) == len(words)
	for i := 0; matches && i < len(words); i++ {
		matches = strings.Contains(differences[i], n.fill(words[i]))
	}
	if !matches {
		n.Errorf("differences:\n%s\nwant lines with:\n%s", strings.Join(differences, "\n"), strings.Join(words, "\n"))
	}
}

// test runs f as a test of its own on the same node.
func (n *pathNode) test(name string, f func(n *pathNode)) {
	n.Run(name, func(t *testing.T) {
		sub := *n
		sub.T = t
		f(&sub)
	})
}

// do runs f on the node, and fails the test if it fails.
func (n *pathNode) do(f func() error) {
	n.Helper()
	if err := n.host.Do(f); err != nil {
		n.Fatal(err)
	}
}

func (n *pathNode) print() (fingerprint string) {
	n.Helper()
	n.do(func() (err error) {
		fingerprint, _, err = n.glance(n.Context(), nil)
		return err
	})
	return fingerprint
}

// fill replaces words in capitals: IP is "ip" for the family of what is steered; HOP1 and MAC1 are those of the holder
// with the number 1; OTHER is an address of the family; NODE is the node's, and LENGTH that of its prefix.
func (n *pathNode) fill(text string) string {
	length := map[kernel.Family]string{kernel.IPv4: "24", kernel.IPv6: "64"}[n.setup.outer]
	return strings.NewReplacer(
		"IP ", map[kernel.Family]string{kernel.IPv4: "ip -4 ", kernel.IPv6: "ip -6 "}[n.setup.inner],
		"HOP1", innerAddr(n.setup.inner, 1).String(), "MAC1", HardwareAddrOf(n.holders(1)[1]).String(),
		"OTHER", n.of("192.0.2.77", "2001:db8:0:2::77").String(), "NODE", n.config.NodeIP.String(), "LENGTH", length,
	).Replace(text)
}

// run runs a command on the node, filled.
func (n *pathNode) run(command string) string {
	n.Helper()
	words := strings.Fields(n.fill(command))
	out, err := n.host.Run(n.Context(), words[0], words[1:]...)
	if err != nil {
		n.Fatal(err)
	}
	return out
}

// carrier is what ip says of the carrier of the node's bridge, which has no pods here: older kernels take it away some time later.
var carrier = regexp.MustCompile(`NO-CARRIER,|,LOWER_UP| state [A-Z]+| linkdown`)

// snapshot is what a node has of all that a path may change, a line each.
func (n *pathNode) snapshot() []string {
	n.Helper()
	var lines []string
	for _, command := range []string{
		"ip -4 rule", "ip -6 rule", "ip -4 route show table all", "ip -6 route show table all", "ip -d link show type vxlan", "ip addr",
		"bridge fdb", "ip -4 neigh show nud permanent", "ip -6 neigh show nud permanent",
		"grep -rs . /proc/sys/net/ipv4/conf", "grep -rs --exclude=stable_secret . /proc/sys/net/ipv6/conf",
	} {
		for line := range strings.Lines(n.run(command)) {
			// ip says so when a namespace of another test goes while it lists links.
			if strings.HasPrefix(line, "Error: Peer netns reference is invalid") {
				continue
			}
			if strings.Contains(line, "cni0") {
				line = carrier.ReplaceAllString(line, "")
			}
			lines = append(lines, command+": "+line)
		}
	}
	slices.Sort(lines) // of some the kernel tells in any order
	return lines
}

// unchanged fails unless the node has what it had before.
func (n *pathNode) unchanged(before []string) {
	n.Helper()
	after := n.snapshot()
	only := func(lines, others []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(others, line) }), "")
	}
	if !slices.Equal(before, after) {
		n.Errorf("there was before:\n%sthere is:\n%s", only(before, after), only(after, before))
	}
}

// forgetMarks does what the nftables table does to packets that enter steer0: the outer packet would keep the mark, and
// be routed into steer0 again.
func (n *pathNode) forgetMarks() {
	n.Helper()
	n.run("nft add table inet guard ; " +
		"add chain inet guard postrouting { type filter hook postrouting priority 101 ; } ; " +
		fmt.Sprintf("add rule inet guard postrouting oifname %s meta mark set meta mark & %#x", Device, ^uint32(testMask)))
}

// holders gives numbers to nodes, from 1.
func holdersOf(nodes ...*pathNode) map[int]netip.Addr {
	holders := map[int]netip.Addr{}
	for i, n := range nodes {
		holders[i+1] = n.config.NodeIP
	}
	return holders
}

// strictly has all interfaces of the node drop what comes from where they would not send to.
func (n *pathNode) strictly() {
	n.Helper()
	n.do(func() error {
		files, err := filepath.Glob("/proc/sys/" + filterPath("*"))
		for _, file := range files {
			err = errors.Join(err, os.WriteFile(file, []byte("1"), 0))
		}
		return err
	})
}

// receiver notes what arrives on an interface of a host.
type receiver struct {
	*testing.T
	conn net.PacketConn
	got  []string
}

const targetPort = 7777

func (n *pathNode) receiver(h *lab.Host, device string) *receiver {
	n.Helper()
	r := &receiver{T: n.T}
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		controlErr := raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) })
		return errors.Join(err, controlErr)
	}}
	err := h.Do(func() (err error) {
		r.conn, err = config.ListenPacket(n.Context(), "udp", fmt.Sprintf(":%d", targetPort))
		return err
	})
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = r.conn.Close() })
	return r
}

// next waits for a message, which it has sent until it arrives: a link that was set up carries nothing before the kernel gets
// to it, and that takes seconds while namespaces of other tests go.
func (r *receiver) next(send func() error) {
	r.Helper()
	const repeat = 200 * time.Millisecond
	for deadline := time.Now().Add(arrivalTime); time.Now().Before(deadline); {
		if err := send(); err != nil {
			r.Fatal(err)
		}
		if message := r.within(repeat); message != "" && !slices.Contains(r.got, message) {
			r.got = append(r.got, message)
			return
		}
	}
	r.Fatalf("nothing new arrives within %s, after %q", arrivalTime, r.got)
}

// within returns a message that comes within a time; empty if none does.
func (r *receiver) within(patience time.Duration) string {
	r.Helper()
	buffer := make([]byte, 100)
	_ = r.conn.SetReadDeadline(time.Now().Add(patience))
	length, from, err := r.conn.ReadFrom(buffer)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ""
	}
	if err != nil {
		r.Fatal(err)
	}
	return fmt.Sprintf("%s from %s", buffer[:length], from.(*net.UDPAddr).IP)
}

// target is an address that every holder and the outside host have.
func (n *pathNode) target() netip.Addr { return n.of("198.51.100.9", "2001:db8:113::9") }

// send sends a message to the target, as the node's pods would be seen, with the mark of a number.
func (n *pathNode) send(number int, message string) error {
	n.Helper()
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		controlErr := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(markFor(testMask, number)))
		})
		return errors.Join(err, controlErr)
	}}
	return n.host.Do(func() error {
		conn, err := config.ListenPacket(n.Context(), "udp", netip.AddrPortFrom(n.pod(), 0).String())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }() // it has sent all
		_, err = conn.WriteTo([]byte(message), net.UDPAddrFromAddrPort(netip.AddrPortFrom(n.target(), targetPort)))
		return err
	})
}

// pod is an address of the first node in its pod network, whose other addresses are the pods'.
func (n *pathNode) pod() netip.Addr { return n.of("10.128.0.1", "fd00:10:128::1") }

// giveTarget gives the target to an interface of a host.
func (n *pathNode) giveTarget(h *lab.Host, device string) {
	n.Helper()
	address := netip.PrefixFrom(n.target(), n.target().BitLen()).String()
	if _, err := h.Run(n.Context(), "ip", "addr", "add", address, "dev", device, "nodad"); err != nil {
		n.Fatal(err)
	}
}

// arrivals is the interface by which steered packets arrive.
func (n *pathNode) arrivals() string {
	if n.setup.transport == Direct {
		return "eth0"
	}
	return Device
}

// TestPath_CarriesMarkedPackets: with strict filters everywhere, a node's packets arrive where their marks say, and those
// without a mark where they would without a path.
func TestPath_CarriesMarkedPackets(t *testing.T) {
	onPaths(t, 3, setups, func(nodes []*pathNode, outside *lab.Host) {
		a, b, c := nodes[0], nodes[1], nodes[2]
		for _, n := range nodes {
			n.strictly()
			n.do(func() error {
				changes, err := n.config.settings(nil)
				return errors.Join(err, changeSettings(n.Context(), changes))
			})
		}
		b.giveTarget(b.host, "eth0")
		c.giveTarget(c.host, "eth0")
		a.giveTarget(outside, "lan0")
		b.ensured(nil)
		c.ensured(nil)
		a.ensured(holdersOf(b, c))
		a.forgetMarks()
		at := []*receiver{a.receiver(outside, "lan0"), a.receiver(b.host, b.arrivals()), a.receiver(c.host, c.arrivals())}
		want := make([][]string, len(at))
		for round := range 3 {
			for number, r := range at {
				message := fmt.Sprintf("message %d for %d", round, number)
				want[number] = append(want[number], fmt.Sprintf("%s from %s", message, a.pod()))
				r.next(func() error { return a.send(number, message) })
			}
		}
		for number, r := range at {
			if diff := cmp.Diff(want[number], r.got); diff != "" {
				a.Errorf("at %d (-want +got):\n%s", number, diff)
			}
		}
	})
}

// TestPath_FailsClosed: when the way to a holder is gone, nothing leaves another way; ensure makes it again.
func TestPath_FailsClosed(t *testing.T) {
	for damage, setups := range map[string][]setup{
		"ip link set steer0 down":                      overVXLAN,
		"ip link delete steer0":                        overVXLAN,
		"IP route delete default table 7701 metric 10": setups,
	} {
		t.Run(damage, func(t *testing.T) {
			onPaths(t, 2, setups, func(nodes []*pathNode, _ *lab.Host) {
				a, b := nodes[0], nodes[1]
				b.giveTarget(b.host, "eth0")
				b.ensured(nil)
				a.ensured(holdersOf(b))
				a.forgetMarks()
				a.run(damage)
				if err := a.send(1, "nothing"); !errors.Is(err, unix.EINVAL) {
					a.Errorf("sent: %v, want what a blackhole says", err)
				}
				if !a.ensured(holdersOf(b)) {
					a.Error("nothing was changed")
				}
				r := a.receiver(b.host, b.arrivals())
				r.next(func() error { return a.send(1, "repaired") })
				if diff := cmp.Diff([]string{fmt.Sprintf("repaired from %s", a.pod())}, r.got); diff != "" {
					a.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}
