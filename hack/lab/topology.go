//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The cluster CIDRs, which the pod networks of the nodes are parts of.
var (
	ClusterV4 = netip.MustParsePrefix("10.128.0.0/14")
	ClusterV6 = netip.MustParsePrefix("fd00:10:128::/48")
)

// external is where the external IPs live: the outside host routes them to the
// first node until RouteVia.
var external = []netip.Prefix{
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("2001:db8:113::/48"),
}

// network is one subnet in both families, as formats of a host number.
type network struct{ v4, v6 string }

// lan is the underlay.
var lan = network{"192.0.2.%d/24", "2001:db8:0:2::%d/64"}

// farNet is the network behind the router.
var farNet = network{"198.18.0.%d/24", "2001:db8:0:3::%d/64"}

// podNet is the network of the pods on a node, by the node's index.
func podNet(index int) network {
	return network{fmt.Sprintf("10.128.%d.%%d/24", index), fmt.Sprintf("fd00:10:128:%d::%%d/64", index)}
}

const (
	outsideNumber, firstNodeNumber = 1, 2 // in lan
	routerNumber                   = 253  // in lan
	controlNumber                  = 254  // in lan
	lastNode                       = routerNumber - firstNodeNumber
	gatewayNumber                  = 1  // in podNet and farNet
	farNumber                      = 2  // in farNet
	firstPodNumber                 = 11 // in podNet
	lastPodNumber                  = 254
	lastPod                        = lastPodNumber - firstPodNumber + 1
)

func (n network) host(number int) (v4, v6 netip.Prefix) {
	return netip.MustParsePrefix(fmt.Sprintf(n.v4, number)), netip.MustParsePrefix(fmt.Sprintf(n.v6, number))
}

// families drops what the lab is without.
func (l *Lab) families(prefixes ...netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(prefixes, func(p netip.Prefix) bool { return !l.has(p.Addr()) })
}

func (l *Lab) has(addr netip.Addr) bool {
	if addr.Is4() {
		return !l.cfg.IPv6Only
	}
	return l.cfg.IPv6
}

func (l *Lab) addOutside(ctx context.Context) error {
	h := l.newHost("outside")
	l.outside = h
	if err := h.create(ctx); err != nil {
		return err
	}
	// What passes from node to node is none of its business.
	if err := h.set(bridgeSysctls("0")); err != nil {
		return err
	}
	v4, _ := lan.host(outsideNumber)
	if err := h.addBridge("lan0", hardwareAddr(v4)); err != nil {
		return err
	}
	return l.number(h, "lan0", lan, outsideNumber)
}

func (l *Lab) addControl(ctx context.Context) error {
	if !l.cfg.Control {
		return nil
	}
	h := l.newHost("control")
	l.control = h
	if err := h.create(ctx); err != nil {
		return err
	}
	return l.join(ctx, h, "control", controlNumber)
}

// addFar adds the router and the host behind it.
func (l *Lab) addFar(ctx context.Context) error {
	if !l.cfg.Far {
		return nil
	}
	l.router = l.newHost("router")
	if err := l.router.create(ctx); err != nil {
		return err
	}
	if err := l.router.set(nodeSysctls, bridgeSysctls("0")); err != nil {
		return err
	}
	if err := l.join(ctx, l.router, "router", routerNumber); err != nil {
		return err
	}
	v4, v6 := farNet.host(gatewayNumber)
	if err := l.router.addBridge("far0", hardwareAddr(v4)); err != nil {
		return err
	}
	if err := l.router.addAddrs("far0", l.families(v4, v6)); err != nil {
		return err
	}
	l.far = l.newHost("far")
	l.far.uplink = uplink{l.router, "far"}
	if err := l.far.create(ctx); err != nil {
		return err
	}
	if err := l.plug(ctx, l.far, "far0", farNet, farNumber); err != nil {
		return err
	}
	return l.defaultRoutes(l.far, farNet, gatewayNumber)
}

func (l *Lab) addNodes(ctx context.Context) error {
	for i := range l.cfg.Nodes {
		name := "node"
		if i > 0 {
			name = fmt.Sprintf("node-%d", i+1)
		}
		h := l.newHost(name)
		h.index = i
		l.nodes = append(l.nodes, h)
		if err := h.create(ctx); err != nil {
			return err
		}
		if err := h.set(nodeSysctls, bridgeSysctls("1")); err != nil {
			return err
		}
		if err := l.join(ctx, h, name, firstNodeNumber+i); err != nil {
			return err
		}
		if err := l.addPodNetwork(h); err != nil {
			return err
		}
	}
	return nil
}

// join connects a host to the underlay.
func (l *Lab) join(ctx context.Context, h *Host, name string, number int) error {
	h.uplink = uplink{l.outside, name}
	if err := l.plug(ctx, h, "lan0", lan, number); err != nil {
		return err
	}
	return l.defaultRoutes(h, lan, outsideNumber)
}

// addPodNetwork makes what a CNI plugin makes on the node before there are pods.
func (l *Lab) addPodNetwork(node *Host) error {
	if l.cfg.PointToPoint {
		return nil
	}
	v4, v6 := podNet(node.index).host(gatewayNumber)
	if err := node.addBridge("cni0", hardwareAddr(v4)); err != nil {
		return err
	}
	return node.addAddrs("cni0", l.families(v4, v6))
}

// PodCIDRs returns the pod networks of a node, one per family of the lab, IPv4
// first.
func (h *Host) PodCIDRs() []netip.Prefix {
	v4, v6 := podNet(h.index).host(0)
	return h.lab.families(v4, v6)
}

// addRoutes has every host of the underlay send to a node what belongs to its
// pods, to the router what is behind that, and the outside host to the first node what belongs to
// nobody yet.
func (l *Lab) addRoutes(context.Context) error {
	for _, dst := range l.families(append([]netip.Prefix{ClusterV4, ClusterV6}, external...)...) {
		if err := l.outside.routeVia(dst, l.Node()); err != nil {
			return err
		}
	}
	for _, node := range l.nodes {
		if err := l.routeAllVia(node, node.PodCIDRs()); err != nil {
			return err
		}
	}
	if l.router == nil {
		return nil
	}
	v4, v6 := farNet.host(0)
	return l.routeAllVia(l.router, l.families(v4, v6))
}

// routeAllVia has every other host of the underlay route prefixes via one of them.
func (l *Lab) routeAllVia(via *Host, prefixes []netip.Prefix) error {
	for _, h := range l.underlay() {
		if h == via || l.cfg.Apart && slices.Contains(l.nodes, h) && slices.Contains(l.nodes, via) {
			continue
		}
		for _, dst := range prefixes {
			if err := h.routeVia(dst, via); err != nil {
				return err
			}
		}
	}
	return nil
}

// addPod has a pod started.
func (l *Lab) addPod(ctx context.Context, node *Host, start func(context.Context, *Host) error) (*Host, error) {
	h, err := l.admit(node)
	if err != nil {
		return nil, err
	}
	if err := start(ctx, h); err != nil {
		return nil, errors.Join(err, l.discard(ctx, h))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h.ready = true
	return h, nil
}

// admit gives a pod its number and its place, and keeps them for it.
func (l *Lab) admit(node *Host) (*Host, error) {
	if node == nil || !slices.Contains(l.nodes, node) {
		return nil, fmt.Errorf("lab: not a node of lab %s", l.cfg.Prefix)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := map[int]*Host{}
	for _, pod := range l.pods {
		if pod.Node == node {
			taken[pod.number] = pod
		}
	}
	number := lowestFree(firstPodNumber, taken)
	if number > lastPodNumber {
		return nil, fmt.Errorf("lab: no address is left on %s for one more than %d pods", node.Name, lastPod)
	}
	i := lowestFree(1, l.pods)
	h := l.newHost(fmt.Sprintf("pod-%d", i))
	h.Node, h.number, h.uplink = node, number, uplink{node, fmt.Sprintf("pod%d", i)}
	l.pods[i] = h
	return h, nil
}

func lowestFree(first int, taken map[int]*Host) int {
	for taken[first] != nil {
		first++
	}
	return first
}

func (l *Lab) startPod(ctx context.Context, h *Host) error {
	if err := h.create(ctx); err != nil {
		return err
	}
	net := podNet(h.Node.index)
	if l.cfg.PointToPoint {
		return l.connect(ctx, h, net)
	}
	if err := l.plug(ctx, h, "cni0", net, h.number); err != nil {
		return err
	}
	return l.defaultRoutes(h, net, gatewayNumber)
}

// number gives a host its addresses.
func (l *Lab) number(h *Host, dev string, n network, number int) error {
	prefixes := l.families(n.host(number))
	h.note(dev, prefixes)
	return h.addAddrs(dev, prefixes)
}

// note has a host know its addresses, and the interface that has them.
func (h *Host) note(dev string, prefixes []netip.Prefix) {
	h.dev = dev
	for _, p := range prefixes {
		if p.Addr().Is4() {
			h.V4 = p.Addr()
		} else {
			h.V6 = p.Addr()
		}
	}
}

func (l *Lab) defaultRoutes(h *Host, n network, gateway int) error {
	v4, v6 := n.host(gateway)
	for _, via := range l.families(v4, v6) {
		everywhere := netip.PrefixFrom(via.Addr(), 0).Masked()
		if err := h.addRoute(everywhere, via.Addr()); err != nil {
			return err
		}
	}
	return nil
}

// uplink is the port of a bridge that a host is plugged into.
type uplink struct {
	host *Host
	name string
}

// remove pulls the plug, if it is in.
func (u uplink) remove() error {
	link, err := u.host.nl.LinkByName(u.name)
	var none netlink.LinkNotFoundError
	if errors.As(err, &none) {
		return nil
	}
	if err == nil {
		err = u.host.nl.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("%s: remove %s: %w", u.host.Name, u.name, err)
	}
	return nil
}

// plug connects eth0 of h to its port, a new one of the bridge, gives it its
// addresses, and returns when both carry packets.
func (l *Lab) plug(ctx context.Context, h *Host, bridge string, n network, number int) error {
	to := h.uplink
	master, err := to.host.nl.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("%s: find %s: %w", to.host.Name, bridge, err)
	}
	v4, _ := n.host(number)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = to.name, master.Attrs().Index
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerNamespace = "eth0", netlink.NsFd(int(h.ns))
	veth.PeerHardwareAddr = hardwareAddr(v4)
	if err := to.host.nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("%s: plug %s into %s: %w", to.host.Name, h.Name, bridge, err)
	}
	// A pod that asks a Service which it backs itself gets its packet back.
	if err := to.host.nl.LinkSetHairpin(veth, true); err != nil {
		return fmt.Errorf("%s: hairpin of %s: %w", to.host.Name, to.name, err)
	}
	if err := errors.Join(to.host.setUp(to.name), h.setUp("eth0")); err != nil {
		return err
	}
	if err := to.host.waitUp(ctx, bridge); err != nil {
		return err
	}
	if err := l.waitPlugged(ctx, h); err != nil {
		return err
	}
	return l.number(h, "eth0", n, number)
}

// SetLink cuts a node, a pod or the control host off from its bridge (up false) or
// connects it again, which it awaits. The host keeps its addresses and routes: its
// interface loses the carrier and no more. A pod is cut off from everybody, a node
// from everybody but its own pods. With Config.PointToPoint pods cannot be cut off: their node would lose its routes to them.
func (l *Lab) SetLink(h *Host, up bool) error {
	if h.lab != l || h.uplink.host == nil {
		return fmt.Errorf("lab: %s has no link of lab %s", h.Name, l.cfg.Prefix)
	}
	if h.Node != nil && l.cfg.PointToPoint {
		return fmt.Errorf("lab: %s is not on a bridge", h.Name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if up {
		return errors.Join(h.uplink.host.setUp(h.uplink.name), l.waitPlugged(ctx, h))
	}
	link, err := h.uplink.host.nl.LinkByName(h.uplink.name)
	if err == nil {
		err = h.uplink.host.nl.LinkSetDown(link)
	}
	if err != nil {
		return fmt.Errorf("%s: set %s down: %w", h.uplink.host.Name, h.uplink.name, err)
	}
	return nil
}

// SetForwarding says whether the switch forwards the frames of a host, whose link is up all the time.
func (l *Lab) SetForwarding(h *Host, forwards bool) error {
	if h.lab != l || h.uplink.host == nil {
		return fmt.Errorf("lab: %s has no link of lab %s", h.Name, l.cfg.Prefix)
	}
	state := map[bool]string{true: "3", false: "0"}[forwards] // BR_STATE_FORWARDING, BR_STATE_DISABLED
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := h.uplink.host.Run(ctx, "bridge", "link", "set", "dev", h.uplink.name, "state", state)
	return err
}

// waitPlugged waits until both ends of the link of h carry packets.
func (l *Lab) waitPlugged(ctx context.Context, h *Host) error {
	return errors.Join(h.uplink.host.waitUp(ctx, h.uplink.name), h.waitUp(ctx, "eth0"))
}

// hardwareAddr is the same for the same address, so that a pod which takes over
// one needs no neighbour to forget the pod before.
func hardwareAddr(v4 netip.Prefix) net.HardwareAddr {
	return append(net.HardwareAddr{0x0a, 0x58}, v4.Addr().AsSlice()...)
}

// AddAddr gives a host one more address, as /32 or /128 on the interface that
// has its first ones: the node an external IP, the outside host a second
// identity. The address is never chosen as a source by itself.
func (l *Lab) AddAddr(h *Host, addr netip.Addr) error {
	a := netlinkAddr(netip.PrefixFrom(addr, addr.BitLen()))
	if addr.Is6() {
		// Deprecated, as keepalived adds a virtual address (RFC 6724, rule 3).
		a.ValidLft, a.PreferedLft = math.MaxUint32, 0
	}
	return h.addAddr(h.dev, a)
}

func netlinkAddr(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: ipNet(p)}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func (h *Host) addAddrs(dev string, prefixes []netip.Prefix) error {
	for _, p := range prefixes {
		if err := h.addAddr(dev, netlinkAddr(p)); err != nil {
			return err
		}
	}
	return nil
}

// addAddr returns when neighbours can find the address.
func (h *Host) addAddr(dev string, a *netlink.Addr) error {
	link, err := h.nl.LinkByName(dev)
	if err != nil {
		return fmt.Errorf("%s: find %s: %w", h.Name, dev, err)
	}
	if err := h.nl.AddrAdd(link, a); err != nil {
		return fmt.Errorf("%s: add address %s: %w", h.Name, a.IPNet, err)
	}
	if a.IP.To4() != nil {
		return nil
	}
	return h.waitSolicitable(link, a.IP)
}

// waitSolicitable waits until the host has joined the solicited-node multicast
// group of its new address (RFC 4291, section 2.7.1), once for each of its addresses
// in that group. The kernel joins a moment after it added the address, and a neighbour
// whose solicitation comes before that asks again only a second later. An address that is
// deleted before it has joined takes the group from the others.
func (h *Host) waitSolicitable(link netlink.Link, ip net.IP) error {
	users := regexp.MustCompile(fmt.Sprintf(`(?m)^%d\s+\S+\s+ff0200000000000000000001ff%x\s+(\d+)`, link.Attrs().Index, []byte(ip[13:])))
	err := poll(context.Background(), func() (bool, error) {
		var groups []byte // before the addresses: what comes in between has not joined
		err := h.Do(func() (err error) {
			groups, err = os.ReadFile("/proc/thread-self/net/igmp6")
			return err
		})
		if err != nil {
			return false, err
		}
		addrs, err := h.nl.AddrList(link, netlink.FAMILY_V6)
		if errors.Is(err, netlink.ErrDumpInterrupted) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		members := 0
		for _, a := range addrs {
			if [3]byte(a.IP[13:]) == [3]byte(ip[13:]) {
				members++
			}
		}
		joined := users.FindSubmatch(groups)
		if joined == nil {
			return false, nil
		}
		n, err := strconv.Atoi(string(joined[1]))
		return n >= members, err
	})
	if err != nil {
		return fmt.Errorf("%s: wait for the multicast group of %s: %w", h.Name, ip, err)
	}
	return nil
}

// routeVia routes a prefix via a host of the underlay, as of now.
func (h *Host) routeVia(dst netip.Prefix, via *Host) error {
	if err := h.nl.RouteReplace(&netlink.Route{Dst: ipNet(dst), Gw: via.sameFamily(dst.Addr()).AsSlice()}); err != nil {
		return fmt.Errorf("%s: route %s via %s: %w", h.Name, dst, via.Name, err)
	}
	return nil
}

// sameFamily returns the host's address of the family that addr is of.
func (h *Host) sameFamily(addr netip.Addr) netip.Addr {
	if addr.Is4() {
		return h.V4
	}
	return h.V6
}

func (h *Host) addRoute(dst netip.Prefix, via netip.Addr) error {
	if err := h.nl.RouteAdd(&netlink.Route{Dst: ipNet(dst), Gw: via.AsSlice()}); err != nil {
		return fmt.Errorf("%s: route %s via %s: %w", h.Name, dst, via, err)
	}
	return nil
}

func (h *Host) addBridge(name string, mac net.HardwareAddr) error {
	snooping := false // it has nothing to learn here, and loses neighbour discovery while it learns
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	// Of its own: a bridge otherwise takes the address of one of its ports and
	// changes it as they come and go.
	attrs.HardwareAddr = mac
	if err := h.nl.LinkAdd(&netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &snooping}); err != nil {
		return fmt.Errorf("%s: add bridge %s: %w", h.Name, name, err)
	}
	return h.setUp(name)
}

func (h *Host) setUp(name string) error {
	link, err := h.nl.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: find %s: %w", h.Name, name, err)
	}
	if err := h.nl.LinkSetUp(link); err != nil {
		return fmt.Errorf("%s: set %s up: %w", h.Name, name, err)
	}
	return nil
}

// waitUp waits until the link carries packets, which is not as soon as it is set
// up: the first ones would be lost.
func (h *Host) waitUp(ctx context.Context, name string) error {
	err := poll(ctx, func() (bool, error) {
		link, err := h.nl.LinkByName(name)
		return err == nil && link.Attrs().OperState == netlink.OperUp, err
	})
	if err != nil {
		return fmt.Errorf("%s: wait for %s: %w", h.Name, name, err)
	}
	return nil
}

// sysctl is a path under /proc/sys/net and its value.
type sysctl struct{ path, value string }

// hostSysctls make a host quick and predictable: a new namespace may inherit any
// of these from the machine.
var hostSysctls = []sysctl{
	{"ipv4/ip_forward", "0"},
	{"ipv4/conf/all/rp_filter", "0"},
	{"ipv4/conf/default/rp_filter", "0"},
	{"ipv4/conf/all/accept_redirects", "0"},
	{"ipv4/conf/default/accept_redirects", "0"},
	{"ipv6/conf/all/accept_redirects", "0"},
	{"ipv6/conf/default/accept_redirects", "0"},
	{"ipv6/conf/all/accept_ra", "0"},
	{"ipv6/conf/default/accept_ra", "0"},
	// An address under duplicate address detection cannot be used for a second.
	{"ipv6/conf/all/accept_dad", "0"},
	{"ipv6/conf/default/accept_dad", "0"},
}

// nodeSysctls are what a node of a cluster has.
var nodeSysctls = []sysctl{
	{"ipv4/ip_forward", "1"},
	{"ipv4/conf/all/send_redirects", "0"},
	{"ipv4/conf/default/send_redirects", "0"},
	{"ipv6/conf/all/forwarding", "1"},
}

// bridgeSysctls say whether packets between two ports of a bridge pass iptables.
// On a node they do, so that the answer of a Service's endpoint to its neighbour
// is translated back.
func bridgeSysctls(value string) []sysctl {
	return []sysctl{
		{"bridge/bridge-nf-call-iptables", value},
		{"bridge/bridge-nf-call-ip6tables", value},
	}
}

func (l *Lab) ipv6Sysctls() []sysctl {
	disable := "1"
	if l.cfg.IPv6 {
		disable = "0"
	}
	return []sysctl{
		{"ipv6/conf/all/disable_ipv6", disable},
		{"ipv6/conf/default/disable_ipv6", disable},
	}
}

// set writes sysctls of the host's namespace. One that the kernel lacks is left
// out: IPv6 may be off, br_netfilter not loaded.
func (h *Host) set(sysctls ...[]sysctl) error {
	return h.Do(func() error {
		for _, s := range slices.Concat(sysctls...) {
			err := os.WriteFile(filepath.Join("/proc/sys/net", s.path), []byte(s.value), 0)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		}
		return nil
	})
}
