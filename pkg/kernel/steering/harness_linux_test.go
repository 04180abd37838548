package steering

import (
	"context"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
)

const tunnelPort, announcePort, assignPort, tunnelMTU = 4799, 4798, 7947, 1430

var families = []kernel.Family{kernel.IPv4, kernel.IPv6}

// addrOf returns the one of the two that is of the family.
func addrOf(family kernel.Family, v4, v6 string) netip.Addr {
	if family == kernel.IPv4 {
		return netip.MustParseAddr(v4)
	}
	return netip.MustParseAddr(v6)
}

// cluster is a lab whose nodes steer packets of one IP family.
type cluster struct {
	testing.TB
	lab    *lab.Lab
	family kernel.Family
	nodes  []*node
	// Two egress IPs that nobody has yet.
	egressIP, another netip.Addr
	transport         Transport
	markMask          uint32
	// over is the family of the addresses by which the nodes know each other.
	over kernel.Family
	// homes are pods whose nodes are known.
	homes []*lab.Host
	// roaming: pods may leave through any node.
	roaming bool
	// portBlocks: the nodes know port blocks, and what they hold. These are the blocks, and the ports of pods without one.
	portBlocks bool
	blocks     []kernel.Block
	shared     map[netip.Addr]kernel.Ports
}

// node is a node of a cluster, with the writers of a process on it.
type node struct {
	c    *cluster
	host *lab.Host
	ip   netip.Addr
	ways *handMade
	fast *fastpath.Path
	*Writer
	// desired is what was written last.
	desired kernel.Desired
}

// onCluster runs test for each IP family, with two nodes and a pod on each of them.
func onCluster(t *testing.T, test func(c *cluster)) {
	for _, family := range families {
		t.Run(string(family), func(t *testing.T) {
			test(newCluster(t, family, lab.Config{Nodes: 2, Pods: 2, IPv6: true, Masquerade: true}))
		})
	}
}

// onTransports is onCluster for each transport, with a fast path beside it where the kernel can have one.
func onTransports(t *testing.T, test func(c *cluster)) {
	for _, transport := range []Transport{VXLAN, Direct} {
		t.Run(string(transport), func(t *testing.T) {
			onCluster(t, func(c *cluster) {
				c.use(transport)
				if fastKernel(c) {
					c.useFast(true)
				}
				test(c)
			})
		})
	}
}

// use has all nodes use a transport.
func (c *cluster) use(transport Transport) {
	c.transport = transport
	for _, n := range c.nodes {
		n.restart(n.ways)
	}
}

func newCluster(t testing.TB, family kernel.Family, config lab.Config) *cluster {
	return newClusterOver(t, family, config, family)
}

func newClusterOver(t testing.TB, family kernel.Family, config lab.Config, over kernel.Family) *cluster {
	c := &cluster{TB: t, lab: lab.ForTest(t, config), family: family, transport: VXLAN, markMask: 0x7e, over: over}
	c.egressIP, c.another = c.of("203.0.113.1", "2001:db8:113::1"), c.of("203.0.113.2", "2001:db8:113::2")
	for _, host := range c.lab.Nodes() {
		n := &node{c: c, host: host, ip: c.nodeIP(host)}
		n.ways = &handMade{n: n, made: map[int]netip.Addr{}}
		n.restart(n.ways)
		c.nodes = append(c.nodes, n)
		// Whoever asks again and again is told each time that nobody is there.
		c.run(host, "sysctl -q net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0")
	}
	return c
}

func (c *cluster) of(v4, v6 string) netip.Addr { return addrOf(c.family, v4, v6) }

func (c *cluster) addr(h *lab.Host) netip.Addr {
	if c.family == kernel.IPv4 {
		return h.V4
	}
	return h.V6
}

// nodeIP is the address by which the others know a node.
func (c *cluster) nodeIP(h *lab.Host) netip.Addr {
	if c.over == kernel.IPv4 {
		return h.V4
	}
	return h.V6
}

func (c *cluster) bits(v4, v6 int) int {
	if c.family == kernel.IPv4 {
		return v4
	}
	return v6
}

func (c *cluster) run(h *lab.Host, command string, args ...any) string {
	c.Helper()
	fields := strings.Fields(fmt.Sprintf(command, args...))
	out, err := h.Run(c.Context(), fields[0], fields[1:]...)
	if err != nil {
		c.Fatal(err)
	}
	return out
}

// desired binds pods to egress IPs. The nodes' addresses, link-local and multicast ones are excluded, as by default.
func (c *cluster) desired(bindings ...kernel.Binding) kernel.Desired {
	d := kernel.Desired{Bindings: kernel.Sorted(bindings)}
	d.ClusterCIDRs = []netip.Prefix{lab.ClusterV4}
	linkLocal, multicast := c.of("169.254.0.0", "fe80::"), c.of("224.0.0.0", "ff00::")
	d.Exclusions = []netip.Prefix{netip.PrefixFrom(linkLocal, c.bits(16, 10)), netip.PrefixFrom(multicast, c.bits(4, 8))}
	if c.family == kernel.IPv6 {
		d.ClusterCIDRs = []netip.Prefix{lab.ClusterV6}
	}
	for _, n := range c.nodes {
		d.Exclusions = append(d.Exclusions, netip.PrefixFrom(c.addr(n.host), c.addr(n.host).BitLen()))
	}
	return d
}

func (c *cluster) bind(pod int, protocol kernel.Protocol, egressIP netip.Addr) kernel.Binding {
	return kernel.Binding{Pod: c.addr(c.lab.Pod(pod)), Protocol: protocol, EgressIP: egressIP}
}

// holdsOn gives an egress IP to the node with this index.
func (c *cluster) holdsOn(index int, egressIP netip.Addr) {
	c.Helper()
	if err := c.lab.AddAddr(c.nodes[index].host, egressIP); err != nil {
		c.Fatal(err)
	}
}

// steer has all nodes bind the same pods. Egress IPs that a way is given for take it on all nodes but the one that
// it leads to.
func (c *cluster) steer(bindings []kernel.Binding, ways map[netip.Addr]kernel.Way) {
	c.Helper()
	for _, n := range c.nodes {
		d := c.desired(bindings...)
		d.Steering = n.steering(ways)
		n.write(d)
	}
}

// toNode is the way to the node with this index.
func (c *cluster) toNode(index int) kernel.Way {
	return kernel.Way{Kind: kernel.ToNode, Node: c.nodes[index].ip}
}

func (n *node) steering(ways map[netip.Addr]kernel.Way) kernel.Steering {
	s := kernel.Steering{Ways: map[netip.Addr]kernel.Way{}, Senders: map[netip.Addr]kernel.HardwareAddr{}, Homes: map[netip.Addr]netip.Addr{}, Roaming: n.c.roaming}
	for egressIP, way := range ways {
		s.Claimed = append(s.Claimed, egressIP)
		if way.Node != n.ip {
			s.Ways[egressIP] = way
		}
	}
	slices.SortFunc(s.Claimed, netip.Addr.Compare)
	for _, other := range n.c.nodes {
		if other != n {
			s.Nodes = append(s.Nodes, other.ip)
			s.Senders[other.ip] = other.uplink()
		}
	}
	s.Self = n.ip
	for _, pod := range n.c.homes {
		for _, home := range n.c.nodes {
			if home.host == pod.Node {
				s.Homes[n.c.addr(pod)] = home.ip
			}
		}
	}
	slices.SortFunc(s.Nodes, netip.Addr.Compare)
	if n.c.portBlocks {
		s.Blocks, s.Shared, s.Held = n.c.blocks, n.c.shared, map[netip.Addr]bool{}
		for egressIP, way := range ways {
			if way.Node == n.ip {
				s.Held[egressIP] = true
			}
		}
	}
	return s
}

// uplink is the hardware address of the node's uplink.
func (n *node) uplink() (addr kernel.HardwareAddr) {
	n.c.Helper()
	n.inside(func() error {
		link, err := net.InterfaceByName("eth0")
		if err == nil {
			addr = kernel.HardwareAddr(link.HardwareAddr)
		}
		return err
	})
	return addr
}

func (n *node) config() Config {
	return Config{Family: n.c.family, NodeIP: n.ip, Transport: n.c.transport, Port: tunnelPort, AnnouncePort: announcePort, AssignPort: assignPort, MarkMask: n.c.markMask, PortBlocks: n.c.portBlocks, Fast: n.fast}
}

// restart puts the Writer of another process in the place of this one's.
func (n *node) restart(ways holderWays) {
	if n.Writer != nil {
		n.Close()
	}
	n.Writer = newWriter(n.config(), ways)
}

func (n *node) inside(f func() error) {
	n.c.Helper()
	if err := n.host.Do(f); err != nil {
		n.c.Fatal(err)
	}
}

// write writes what steers.
func (n *node) write(d kernel.Desired) (changed bool) {
	n.c.Helper()
	n.inside(func() (err error) {
		changed, err = n.Write(n.c.Context(), d, nil)
		return err
	})
	n.desired = d
	return changed
}

func (n *node) read() (differences []string) {
	n.c.Helper()
	n.inside(func() (err error) {
		read, err := n.Read(n.c.Context())
		differences = slices.Concat(read.Table, read.Path)
		return err
	})
	return differences
}

func (n *node) untouched() (same bool) {
	n.c.Helper()
	n.inside(func() (err error) {
		same, err = n.Untouched(n.c.Context())
		return err
	})
	return same
}

func (n *node) drops() (drops map[string]uint64) {
	n.c.Helper()
	n.inside(func() (err error) {
		drops, err = Drops(n.c.Context(), n.c.family)
		return err
	})
	return drops
}

// name is that of the table for nft.
func (n *node) name() string {
	if n.c.family == kernel.IPv4 {
		return "ip " + Table
	}
	return "ip6 " + Table
}

func (n *node) nft(command string, args ...any) string {
	n.c.Helper()
	return n.c.run(n.host, "nft "+command, args...)
}

// nftInput has nft read a text.
func (n *node) nftInput(text string) {
	n.c.Helper()
	if err := n.host.Feed(n.c.Context(), text, "nft", "-f", "-"); err != nil {
		n.c.Fatal(err)
	}
}

// dropped fails unless, soon, exactly these counters have grown since before, as given by n.drops.
func (n *node) dropped(before map[string]uint64, want ...string) {
	n.c.Helper()
	var grown []string
	for deadline := time.Now().Add(lab.Stretch(5 * time.Second)); ; time.Sleep(5 * time.Millisecond) {
		grown = nil
		for name, packets := range n.drops() {
			if packets > before[name] {
				grown = append(grown, name)
			}
		}
		slices.Sort(grown)
		if slices.Equal(grown, want) {
			return
		}
		if time.Now().After(deadline) {
			n.c.Errorf("%s: counters that have grown: %v, want %v", n.host.Name, grown, want)
			return
		}
	}
}

// handMade are ways to other nodes as an administrator would make them.
type handMade struct {
	n    *node
	made map[int]netip.Addr
}

// mac is that of the tunnel's device of a node with this address.
func mac(node netip.Addr) string {
	return HardwareAddrOf(node).String()
}

func (h *handMade) ip(lines ...string) error {
	family := map[kernel.Family]string{kernel.IPv4: "-4", kernel.IPv6: "-6"}[h.n.c.family]
	return h.n.host.Feed(context.Background(), strings.Join(lines, "\n"), "ip", family, "-batch", "-")
}

func (h *handMade) ensure(_ context.Context, holders map[int]netip.Addr) (changed bool, err error) {
	if _, err := os.Stat("/proc/thread-self/net/dev_snmp6/" + Device); err != nil && h.n.c.transport == VXLAN {
		if err := h.makeDevice(); err != nil {
			return false, err
		}
	}
	for number, node := range holders {
		if h.made[number] == node {
			continue
		}
		way := []string{fmt.Sprintf("route replace default via %s dev eth0 onlink table %d", node, 7700+number)}
		if h.n.c.transport == VXLAN {
			way = h.through(number, node)
		}
		if err := h.ip(append(way, h.rule(900+number, number))...); err != nil {
			return false, err
		}
		h.made[number], changed = node, true
	}
	return changed, nil
}

// rule leads what is marked with a number to its table.
func (h *handMade) rule(preference, number int) string {
	mark := number << bits.TrailingZeros32(h.n.c.markMask)
	return fmt.Sprintf("rule add pref %d fwmark %#x/%#x lookup %d", preference, mark, h.n.c.markMask, 7700+number)
}

// through is the way through the tunnel.
func (h *handMade) through(number int, node netip.Addr) []string {
	h.n.c.run(h.n.host, "bridge fdb replace %s dev %s dst %s", mac(node), Device, node)
	next := addrOf(h.n.c.family, fmt.Sprintf("169.254.77.%d", number), fmt.Sprintf("fe80::57:%x", number))
	return []string{
		fmt.Sprintf("neigh replace %s lladdr %s dev %s nud permanent", next, mac(node), Device),
		fmt.Sprintf("route replace default via %s dev %s onlink table %d", next, Device, 7700+number),
	}
}

// numberOf is the number of a node that packets are sent to.
func (h *handMade) numberOf(node netip.Addr) int {
	for number, made := range h.made {
		if made == node {
			return number
		}
	}
	return 0
}

func (h *handMade) makeDevice() error {
	return h.ip(
		fmt.Sprintf("link add %s type vxlan id 4789 local %s dstport %d nolearning", Device, h.n.ip, tunnelPort),
		fmt.Sprintf("link set %s address %s mtu %d up", Device, mac(h.n.ip), tunnelMTU),
		fmt.Sprintf("addr add %s dev %s nodad", addrOf(h.n.c.family, "169.254.77.0", "fe80::57:0"), Device))
}

func (h *handMade) remove(_ context.Context, number int) error {
	delete(h.made, number)
	return h.ip(fmt.Sprintf("rule del pref %d", 900+number), fmt.Sprintf("route flush table %d", 7700+number))
}

func (h *handMade) glance(context.Context, map[int]netip.Addr) (string, []string, error) {
	return "", nil, nil
}
func (h *handMade) known(context.Context, []netip.Addr) (numbers, error) {
	return numbersOf(h.made), nil
}

// numbersOf is the reverse of [numbers.holders].
func numbersOf(holders map[int]netip.Addr) numbers {
	of := numbers{}
	for number, node := range holders {
		of[node] = number
	}
	return of
}
