package portsecurity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	rtnl "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
)

// Interfaces returns the interfaces of the thread's network namespace that lead to pods. pods are the cluster CIDRs, in which pods have
// their addresses, and own are this node's addresses, by which other nodes reach it.
func Interfaces(pods []netip.Prefix, own []netip.Addr) (found []Interface, err error) {
	l := look{pods: kernel.NewCIDRSet(pods), own: own}
	err = changes.Outlast(func() error {
		found, err = l.all()
		return err
	})
	return found, err
}

// look is a look for interfaces.
type look struct {
	pods  kernel.CIDRSet
	own   []netip.Addr
	links []netlink.Link
}

func (l *look) all() (found []Interface, err error) {
	if l.links, err = netlink.LinkList(); err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	outward, err := l.outward()
	if err != nil {
		return nil, err
	}
	behind, err := l.behind()
	if err != nil {
		return nil, err
	}
	for _, link := range l.links {
		at := link.Attrs()
		if outward[at.Index] || !isPeered(link) && !isTap(link) {
			continue
		}
		i := Interface{Name: at.Name, Index: at.Index}
		if isPeered(link) {
			i.Behind = behind[peer{at.NetNsID, at.ParentIndex}]
		}
		found = append(found, i)
	}
	return found, nil
}

// isPeered tells whether a link has its other end in another network namespace.
func isPeered(link netlink.Link) bool {
	kind := link.Type()
	return (kind == "veth" || kind == "netkit") && link.Attrs().NetNsID >= 0
}

func isTap(link netlink.Link) bool {
	tap, is := link.(*netlink.Tuntap)
	return is && tap.Mode == netlink.TUNTAP_MODE_TAP
}

// outward returns the interfaces that lead to other nodes, and those that they consist of.
func (l *look) outward() (map[int]bool, error) {
	outward := map[int]bool{}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addresses {
		if slices.Contains(l.own, addrOf(a.IP)) {
			outward[a.LinkIndex] = true
		}
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	for _, route := range routes {
		l.addHops(outward, route)
	}
	for grown := true; grown; {
		grown = false
		for _, link := range l.links {
			at := link.Attrs()
			if outward[at.MasterIndex] && !outward[at.Index] {
				outward[at.Index], grown = true, true
			}
			if lower := at.ParentIndex; outward[at.Index] && at.NetNsID < 0 && lower > 0 && !outward[lower] {
				outward[lower], grown = true, true
			}
		}
	}
	return outward, nil
}

// addHops adds the interfaces by which a route leads to a router that is no pod.
func (l *look) addHops(outward map[int]bool, route netlink.Route) {
	isDefault := route.Dst == nil || route.Dst.IP.IsUnspecified()
	hops := append([]*netlink.NexthopInfo{{LinkIndex: route.LinkIndex, Gw: route.Gw}}, route.MultiPath...)
	for _, hop := range hops {
		gateway := addrOf(hop.Gw)
		if !gateway.IsValid() || hop.LinkIndex == 0 {
			continue
		}
		if _, isPod := l.pods.Find(gateway); isDefault || !isPod && !gateway.IsLinkLocalUnicast() {
			outward[hop.LinkIndex] = true
		}
	}
}

// peer is the other end of a link: a network namespace, by its number in this one, and an index there.
type peer struct{ namespace, index int }

// behind returns the addresses of pods at the other ends of links.
func (l *look) behind() (map[peer][]netip.Addr, error) {
	behind, seen := map[peer][]netip.Addr{}, map[int]bool{}
	conn, err := rtnl.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to rtnetlink: %w", err)
	}
	defer func() { _ = conn.Close() }() // everything is read
	if err := conn.SetOption(rtnl.GetStrictCheck, true); err != nil {
		return nil, fmt.Errorf("ask for the addresses of one network namespace (NETLINK_GET_STRICT_CHK, Linux 4.20): %w", err)
	}
	for _, link := range l.links {
		if namespace := link.Attrs().NetNsID; isPeered(link) && !seen[namespace] {
			seen[namespace] = true
			if err := l.readNamespace(conn, namespace, behind); err != nil {
				return nil, err
			}
		}
	}
	return behind, nil
}

// readNamespace adds the addresses of pods in a network namespace. One that has gone meanwhile has none.
func (l *look) readNamespace(conn *rtnl.Conn, namespace int, behind map[peer][]netip.Addr) error {
	body := make([]byte, unix.SizeofIfAddrmsg)
	target := binary.NativeEndian.AppendUint16(nil, 8)
	target = binary.NativeEndian.AppendUint16(target, unix.IFA_TARGET_NETNSID)
	target = binary.NativeEndian.AppendUint32(target, uint32(namespace))
	messages, err := conn.Execute(rtnl.Message{
		Header: rtnl.Header{Type: unix.RTM_GETADDR, Flags: rtnl.Request | rtnl.Dump},
		Data:   append(body, target...),
	})
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EACCES):
		return nil // it has gone, or is none of this node's to look into
	case err != nil:
		return fmt.Errorf("list the addresses behind the interfaces of pods: %w", err)
	}
	for _, m := range messages {
		if m.Header.Flags&rtnl.DumpInterrupted != 0 {
			return netlink.ErrDumpInterrupted
		}
		if index, address, ok := decodeAddress(m.Data); ok {
			if _, isPod := l.pods.Find(address); isPod {
				behind[peer{namespace, index}] = append(behind[peer{namespace, index}], address)
			}
		}
	}
	return nil
}

// decodeAddress returns the address that a message of RTM_NEWADDR tells of, and the index of its interface.
func decodeAddress(message []byte) (index int, address netip.Addr, ok bool) {
	if len(message) < unix.SizeofIfAddrmsg {
		return 0, netip.Addr{}, false
	}
	index = int(binary.NativeEndian.Uint32(message[4:]))
	attributes, err := rtnl.NewAttributeDecoder(message[unix.SizeofIfAddrmsg:])
	if err != nil {
		return 0, netip.Addr{}, false
	}
	for attributes.Next() {
		local := attributes.Type() == unix.IFA_LOCAL // of IPv4, where IFA_ADDRESS may be that of a peer
		if !local && (attributes.Type() != unix.IFA_ADDRESS || address.IsValid()) {
			continue
		}
		address, ok = netip.AddrFromSlice(attributes.Bytes())
	}
	return index, address, ok && attributes.Err() == nil
}

func addrOf(ip net.IP) netip.Addr {
	address, _ := netip.AddrFromSlice(ip) // invalid if there is none
	return address.Unmap()
}
