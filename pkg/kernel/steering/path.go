package steering

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
)

// What carries a marked packet to the node that holds its egress IP, here number 3, and what receives it there; IPv6 has the
// same with fe80::57:3 for 169.254.77.3:
//
//	ip rule   pref 903 fwmark 0x6/0x7e lookup 7703        the table of number 3
//	ip route  default via 169.254.77.3 dev steer0 onlink table 7703 metric 10
//	ip route  blackhole default table 7703 metric 4294967295
//	ip neigh  169.254.77.3 lladdr 02:57:c0:00:02:04 dev steer0 nud permanent
//	bridge fdb 02:57:c0:00:02:04 dev steer0 dst 192.0.2.4
//	ip link   steer0 type vxlan id 4789 local 192.0.2.2 dstport 4799 nolearning
//
// With the transport [Direct] the next hop of the route is the node itself, on the uplink, and there is no device.

// Device is the VXLAN device between the nodes. Both IP families share it.
const Device = "steer0"

// disableIPv6 is the sysctl that switches IPv6 off on it.
const disableIPv6 = "net/ipv6/conf/" + Device + "/disable_ipv6"

const (
	vni = 4789
	// routeProtocol marks the rules and routes that are ours: `ip rule` and `ip route` print it as "proto 77".
	routeProtocol = 77
	// firstTable and firstPreference are those of number 0, which is nobody's.
	firstTable, firstPreference = 7700, 900
	lastPreference              = 999
	realMetric, lastMetric      = 10, math.MaxUint32
)

// The numbers of holders are less than maxNumber, which is numberDropped. lastNumber is what fits into six bits.
const (
	maxNumber     = 60
	numberArrived = 61
	lastNumber    = 63
)

// overhead is what VXLAN takes of the uplink's MTU: outer IP header, UDP, VXLAN and inner Ethernet.
func overhead(outer netip.Addr) int {
	if outer.Is6() {
		return 70
	}
	return 50
}

// part is one thing that the kernel holds for a path. Parts are comparable. String is what comes after the
// name of the tool that shows it, nearly as that tool prints it.
type part interface {
	fmt.Stringer
	// slot is the same for two parts if adding one of them replaces the other.
	slot() any
}

// uplink is the interface that has the node's address.
type uplink struct {
	index int
	name  string
	mtu   int
}

// hardwareAddrPrefix is that of all nodes; the first byte says that it is locally administered.
var hardwareAddrPrefix = [2]byte{0x02, 0x57}

// HardwareAddrOf returns the hardware address of a node's steer0, so that nobody has to announce it. In IPv6 addresses have more bits, so two
// nodes may have the same one.
func HardwareAddrOf(node netip.Addr) (a kernel.HardwareAddr) {
	copy(a[:], hardwareAddrPrefix[:])
	if node.Is4() {
		copy(a[2:], node.AsSlice())
		return a
	}
	h := fnv.New32a()
	_, _ = h.Write(node.AsSlice()) // it never fails
	binary.BigEndian.PutUint32(a[2:], h.Sum32())
	return a
}

// innerAddr returns the next hop of a number, an address on steer0. That of number 0 is this node's.
func innerAddr(family kernel.Family, number int) netip.Addr {
	if family == kernel.IPv4 {
		return netip.AddrFrom4([4]byte{169, 254, 77, byte(number)})
	}
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 13: 0x57, 15: byte(number)})
}

// innerNumber is the reverse of innerAddr; 0 for an address that is no next hop.
func innerNumber(family kernel.Family, addr netip.Addr) int {
	bytes := addr.AsSlice()
	if len(bytes) == 0 {
		return 0
	}
	number := int(bytes[len(bytes)-1])
	if number > maxNumber || addr != innerAddr(family, number) {
		return 0
	}
	return number
}

// markFor returns the mark that leads to a number.
func markFor(mask uint32, number int) uint32 {
	return uint32(number) << bits.TrailingZeros32(mask)
}

type device struct {
	hardwareAddr kernel.HardwareAddr
	mtu          int
	up           bool
	vxlan        tunnel
}

// tunnel is what cannot be changed of a device that is there.
type tunnel struct {
	local    netip.Addr
	port     uint16
	learning bool
}

func (d device) slot() any { return Device }
func (d device) String() string {
	state, learning := "down", "nolearning"
	if d.up {
		state = "up"
	}
	if d.vxlan.learning {
		learning = "learning"
	}
	return fmt.Sprintf("ip link %s address %s mtu %d %s type vxlan id %d local %s dstport %d %s",
		Device, d.hardwareAddr, d.mtu, state, vni, d.vxlan.local, d.vxlan.port, learning)
}

// deviceAddr is an address of steer0.
type deviceAddr struct{ netip.Addr }

func (a deviceAddr) slot() any { return a }
func (a deviceAddr) String() string {
	return fmt.Sprintf("ip addr %s/%d dev %s", a.Addr, a.BitLen(), Device)
}

// sysctl has the path of a setting below /proc/sys.
type sysctl struct{ path, value string }

func (s sysctl) slot() any      { return s.path }
func (s sysctl) String() string { return fmt.Sprintf("sysctl %s=%s", s.path, s.value) }

// neighbour is who has a next hop on steer0.
type neighbour struct {
	addr         netip.Addr
	hardwareAddr kernel.HardwareAddr
}

func (n neighbour) slot() any { return n.addr }
func (n neighbour) String() string {
	return fmt.Sprintf("ip neigh %s lladdr %s dev %s nud permanent", n.addr, n.hardwareAddr, Device)
}

// remote is where steer0 sends what is for a hardware address.
type remote struct {
	hardwareAddr kernel.HardwareAddr
	node         netip.Addr
}

func (r remote) slot() any { return r.hardwareAddr }
func (r remote) String() string {
	return fmt.Sprintf("bridge fdb %s dev %s dst %s self permanent", r.hardwareAddr, Device, r.node)
}

// route is a default route in a table of ours.
type route struct {
	family kernel.Family
	table  int
	metric uint32
	kind   string // unicast, blackhole, prohibit
	via    netip.Addr
	device string
}

func (r route) slot() any {
	return route{family: r.family, table: r.table, metric: r.metric}
}

func (r route) String() string {
	what := r.kind + " default"
	if r.kind == "unicast" {
		what = fmt.Sprintf("default via %s dev %s onlink", r.via, r.device)
	}
	return fmt.Sprintf("%s route %s table %d metric %d proto %d", ipCommand(r.family), what, r.table, r.metric, routeProtocol)
}

// filterPath is the sysctl by which an interface drops IPv4 packets from where it would not send to: 1 for strictly by
// its own routes, 2 for loosely by any.
func filterPath(device string) string { return "net/ipv4/conf/" + device + "/rp_filter" }

// redirectsPath is the sysctl by which an interface tells senders of IPv4 packets of a shorter way.
func redirectsPath(device string) string { return "net/ipv4/conf/" + device + "/send_redirects" }

type ipRule struct {
	family      kernel.Family
	preference  int
	mark, mask  uint32
	lookupTable int
}

func (r ipRule) slot() any { return r }
func (r ipRule) String() string {
	return fmt.Sprintf("%s rule pref %d fwmark %#x/%#x lookup %d proto %d", ipCommand(r.family), r.preference, r.mark, r.mask, r.lookupTable, routeProtocol)
}

// ipCommand is the command for a family.
func ipCommand(family kernel.Family) string {
	if family == kernel.IPv6 {
		return "ip -6"
	}
	return "ip"
}

// parts are what the kernel should hold, in the order in which they are added: a packet that a rule
// sends to a table finds a way there, or an end.
//
// There are no rules where no other node holds an egress IP: the first one takes the kernel's short way to routes from all
// packets of the node, until it restarts. There is none that leads unmarked packets past the others: with 5 holders it costs
// them 10 ns more than it saves, and with 60 it saves 70 ns of a forwarded packet's 13 µs. And somebody else's rules may be
// among ours.
func (c Config) parts(up uplink, holders map[int]netip.Addr) []part {
	var parts []part
	if c.Transport == VXLAN {
		parts = c.deviceParts(up)
	}
	for _, number := range slices.Sorted(maps.Keys(holders)) {
		parts = append(parts, c.holderParts(up, number, holders[number])...)
	}
	return parts
}

// deviceParts are steer0, ready to receive.
func (c Config) deviceParts(up uplink) []part {
	parts := []part{device{
		hardwareAddr: HardwareAddrOf(c.NodeIP), mtu: up.mtu - overhead(c.NodeIP), up: true,
		vxlan: tunnel{local: c.NodeIP, port: c.Port},
	}}
	if c.Family == kernel.IPv6 {
		return append(parts,
			sysctl{disableIPv6, "0"},
			sysctl{"net/ipv6/conf/" + Device + "/accept_ra", "0"},
		)
	}
	return append(parts,
		// What arrives is from a pod that is routed elsewhere.
		sysctl{filterPath(Device), "2"},
		sysctl{"net/ipv4/conf/" + Device + "/forwarding", "1"},
		// On a device without an address rp_filter=2 drops everything.
		deviceAddr{innerAddr(c.Family, 0)},
	)
}

// holderParts are those of one number. The blackhole is first and last: it stays when the link goes down
// and takes the real route with it.
func (c Config) holderParts(up uplink, number int, node netip.Addr) []part {
	blackhole := route{family: c.Family, table: firstTable + number, metric: lastMetric, kind: "blackhole"}
	way := route{family: c.Family, table: firstTable + number, metric: realMetric, kind: "unicast", via: node, device: up.name}
	if c.Transport == Direct {
		return []part{blackhole, way, c.rule(number)}
	}
	way.via, way.device = innerAddr(c.Family, number), Device
	return []part{
		neighbour{way.via, HardwareAddrOf(node)}, remote{HardwareAddrOf(node), node},
		blackhole, way, c.rule(number),
	}
}

func (c Config) rule(number int) ipRule {
	return ipRule{
		family: c.Family, preference: firstPreference + number, mark: markFor(c.MarkMask, number), mask: c.MarkMask, lookupTable: firstTable + number,
	}
}

// numberOf returns the number that a part is for; 0 if it is for none, or for what has several.
func numberOf(p part) int {
	switch p := p.(type) {
	case neighbour:
		return max(innerNumber(kernel.IPv4, p.addr), innerNumber(kernel.IPv6, p.addr))
	case route:
		return p.table - firstTable
	case ipRule:
		return p.lookupTable - firstTable
	}
	return 0
}

// checkHolders returns why holders cannot be reached with this configuration.
func (c Config) checkHolders(holders map[int]netip.Addr) error {
	var errs []error
	macs := map[kernel.HardwareAddr]netip.Addr{HardwareAddrOf(c.NodeIP): c.NodeIP}
	for _, number := range slices.Sorted(maps.Keys(holders)) {
		node := holders[number]
		other, taken := macs[HardwareAddrOf(node)]
		switch {
		case number < 1 || number > maxNumber || !node.IsValid():
			errs = append(errs, fmt.Errorf("number %d of node %s: numbers are from 1 to %d, and each is of a node", number, node, maxNumber))
		case c.Transport == VXLAN && node.Is4() != c.NodeIP.Is4():
			errs = append(errs, fmt.Errorf("node %s cannot be reached from %s by VXLAN: the addresses are of two IP families", node, c.NodeIP))
		case c.Transport == Direct && node.Is4() != (c.Family == kernel.IPv4):
			errs = append(errs, fmt.Errorf("node %s cannot be the next hop of %s", node, c.Family))
		case taken && (c.Transport == VXLAN || other == node):
			errs = append(errs, fmt.Errorf("nodes %s and %s cannot be told apart on %s: their hardware addresses are both %s",
				other, node, Device, HardwareAddrOf(node)))
		}
		macs[HardwareAddrOf(node)] = node
	}
	return errors.Join(errs...)
}

// clashes tells whether packets that a foreign rule matches have a mark that our rules match, too.
func (c Config) clashes(mark, mask uint32) bool { return mark&mask&c.MarkMask != 0 }

// compareParts returns the parts that are wanted and not held, and those that are held and not wanted, in their
// order. A part that is held twice is wanted once.
func compareParts(want, held []part) (missing, unexpected []part) {
	return kernel.Left(want, held), kernel.Left(held, want)
}

// describeParts says in words what compareParts has found.
func describeParts(missing, unexpected []part) []string {
	instead := map[any]part{}
	for _, p := range unexpected {
		instead[p.slot()] = p
	}
	var lines []string
	for _, p := range missing {
		if held := instead[p.slot()]; held != nil {
			lines = append(lines, fmt.Sprintf("%s: should be: %s", held, p))
			delete(instead, p.slot())
			continue
		}
		lines = append(lines, p.String()+": is missing")
	}
	for _, p := range unexpected {
		if instead[p.slot()] == p {
			lines = append(lines, p.String()+": is unexpected")
		}
	}
	return lines
}

// sortParts sorts parts that were read as [Config.parts] orders those of a number.
func sortParts(parts []part) {
	rank := func(p part) int {
		switch p := p.(type) {
		case device:
			return 0
		case sysctl:
			return 1
		case deviceAddr:
			return 2
		case neighbour:
			return 3
		case remote:
			return 4
		case route:
			if p.kind != "unicast" {
				return 5
			}
			return 6
		}
		return 7
	}
	slices.SortFunc(parts, func(a, b part) int {
		if c := cmp.Or(rank(a)-rank(b), numberOf(a)-numberOf(b)); c != 0 {
			return c
		}
		return cmp.Compare(a.String(), b.String())
	})
}
