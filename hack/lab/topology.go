//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The cluster CIDRs: the node routes them to its pods, and the outside host
// routes them to the node.
var (
	ClusterV4 = netip.MustParsePrefix("10.128.0.0/14")
	ClusterV6 = netip.MustParsePrefix("fd00:10:128::/48")
)

// external is where the external IPs live: the outside host routes them to the
// node.
var external = []netip.Prefix{
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("2001:db8:113::/48"),
}

// network is one subnet in both families, as formats of a host number.
type network struct{ v4, v6 string }

var (
	lan    = network{"192.0.2.%d/24", "2001:db8:0:2::%d/64"}
	podNet = network{"10.128.0.%d/24", "fd00:10:128::%d/64"}
)

const (
	outsideNumber, nodeNumber = 1, 2 // in lan
	gatewayNumber             = 1    // in podNet
	firstPodNumber            = 10   // in podNet, plus the pod's own
	lastPod                   = 254 - firstPodNumber
)

func (n network) host(number int) (v4, v6 netip.Prefix) {
	return netip.MustParsePrefix(fmt.Sprintf(n.v4, number)), netip.MustParsePrefix(fmt.Sprintf(n.v6, number))
}

// families drops what is not IPv4 unless the lab is dual stack.
func (l *Lab) families(prefixes ...netip.Prefix) []netip.Prefix {
	var kept []netip.Prefix
	for _, p := range prefixes {
		if p.Addr().Is4() || l.cfg.IPv6 {
			kept = append(kept, p)
		}
	}
	return kept
}

func (l *Lab) addOutside(ctx context.Context) error {
	h, err := l.newHost(ctx, "outside")
	if err != nil {
		return err
	}
	l.outside = h
	if err := h.addBridge("lan0"); err != nil {
		return err
	}
	return l.number(h, "lan0", lan, outsideNumber)
}

func (l *Lab) addNode(ctx context.Context) error {
	h, err := l.newHost(ctx, "node")
	if err != nil {
		return err
	}
	l.node = h
	if err := h.set(nodeSysctls); err != nil {
		return err
	}
	if err := l.plug(ctx, h, l.outside, "lan0", "node"); err != nil {
		return err
	}
	if err := l.number(h, "eth0", lan, nodeNumber); err != nil {
		return err
	}
	if err := l.defaultRoutes(h, lan, outsideNumber); err != nil {
		return err
	}
	if err := l.routesTo(h); err != nil {
		return err
	}
	return l.addPodNetwork(h)
}

// addPodNetwork makes what a CNI plugin makes on the node.
func (l *Lab) addPodNetwork(node *Host) error {
	if err := node.addBridge("cni0"); err != nil {
		return err
	}
	v4, v6 := podNet.host(gatewayNumber)
	return node.addAddrs("cni0", l.families(v4, v6))
}

// routesTo has the outside host send to the node what belongs behind it.
func (l *Lab) routesTo(node *Host) error {
	for _, dst := range l.families(append([]netip.Prefix{ClusterV4, ClusterV6}, external...)...) {
		via := node.V4
		if dst.Addr().Is6() {
			via = node.V6
		}
		if err := l.outside.addRoute(dst, via); err != nil {
			return err
		}
	}
	return nil
}

// addPod is AddPod under the lock.
func (l *Lab) addPod(ctx context.Context) (_ *Host, err error) {
	i := 1
	for l.pods[i] != nil {
		i++
	}
	if i > lastPod {
		return nil, fmt.Errorf("lab: no address is left for one more than %d pods", lastPod)
	}
	h, err := l.newHost(ctx, fmt.Sprintf("pod-%d", i))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			h.close()
			err = errors.Join(err, removeNamespace(ctx, h.Name))
		}
	}()
	if err := l.plug(ctx, h, l.node, "cni0", podPort(i)); err != nil {
		return nil, err
	}
	if err := l.number(h, "eth0", podNet, firstPodNumber+i); err != nil {
		return nil, err
	}
	if err := l.defaultRoutes(h, podNet, gatewayNumber); err != nil {
		return nil, err
	}
	l.pods[i] = h
	return h, nil
}

func podPort(i int) string { return fmt.Sprintf("pod%d", i) }

// number gives a host its addresses.
func (l *Lab) number(h *Host, dev string, n network, number int) error {
	v4, v6 := n.host(number)
	h.dev, h.V4 = dev, v4.Addr()
	if l.cfg.IPv6 {
		h.V6 = v6.Addr()
	}
	return h.addAddrs(dev, l.families(v4, v6))
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

// plug connects eth0 of h to a port of the bridge of another host, and returns
// when both carry packets.
func (l *Lab) plug(ctx context.Context, h, to *Host, bridge, port string) error {
	master, err := to.nl.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("%s: find %s: %w", to.Name, bridge, err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = port, master.Attrs().Index
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerNamespace = "eth0", netlink.NsFd(int(h.ns))
	veth.PeerHardwareAddr = hardwareAddr(h.Name[len(l.cfg.Prefix):])
	if err := to.nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("%s: plug %s into %s: %w", to.Name, h.Name, bridge, err)
	}
	// A pod that asks a Service which it backs itself gets its packet back.
	if err := to.nl.LinkSetHairpin(veth, true); err != nil {
		return fmt.Errorf("%s: hairpin of %s: %w", to.Name, port, err)
	}
	if err := errors.Join(to.setUp(port), h.setUp("eth0")); err != nil {
		return err
	}
	return errors.Join(to.waitUp(ctx, port), to.waitUp(ctx, bridge), h.waitUp(ctx, "eth0"))
}

// hardwareAddr is the same for the same host in every lab, so that a pod which
// takes over an address needs no neighbour to forget the one before.
func hardwareAddr(name string) net.HardwareAddr {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return sum.Sum([]byte{0x0a, 0x58})
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
	return h.waitSolicitable(dev, a.IP)
}

// waitSolicitable waits until the host has joined the solicited-node multicast
// group of its new address (RFC 4291, section 2.7.1). The kernel joins a moment
// after it added the address, and a neighbour whose solicitation comes before
// that asks again only a second later.
func (h *Host) waitSolicitable(dev string, ip net.IP) error {
	joined := regexp.MustCompile(fmt.Sprintf(`(?m)^\d+\s+%s\s+ff0200000000000000000001ff%x\s`, dev, []byte(ip[13:])))
	err := poll(context.Background(), func() (bool, error) {
		var groups []byte
		err := h.Do(func() (err error) {
			groups, err = os.ReadFile("/proc/thread-self/net/igmp6")
			return err
		})
		return joined.Match(groups), err
	})
	if err != nil {
		return fmt.Errorf("%s: wait for the multicast group of %s: %w", h.Name, ip, err)
	}
	return nil
}

func (h *Host) addRoute(dst netip.Prefix, via netip.Addr) error {
	if err := h.nl.RouteAdd(&netlink.Route{Dst: ipNet(dst), Gw: via.AsSlice()}); err != nil {
		return fmt.Errorf("%s: route %s via %s: %w", h.Name, dst, via, err)
	}
	return nil
}

func (h *Host) addBridge(name string) error {
	snooping := false // it has nothing to learn here, and loses neighbour discovery while it learns
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	// Of its own: a bridge otherwise takes the address of one of its ports and
	// changes it as they come and go.
	attrs.HardwareAddr = hardwareAddr(name)
	if err := h.nl.LinkAdd(&netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &snooping}); err != nil {
		return fmt.Errorf("%s: add bridge %s: %w", h.Name, name, err)
	}
	return h.setUp(name)
}

func (h *Host) removeLink(name string) error {
	link, err := h.nl.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: find %s: %w", h.Name, name, err)
	}
	if err := h.nl.LinkDel(link); err != nil {
		return fmt.Errorf("%s: remove %s: %w", h.Name, name, err)
	}
	return nil
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
	// Packets between two pods of a node pass iptables too, so that the answer of
	// a Service's endpoint to its neighbour is translated back.
	{"bridge/bridge-nf-call-iptables", "1"},
	{"bridge/bridge-nf-call-ip6tables", "1"},
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
