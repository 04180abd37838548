package portsecurity

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
)

// Interfaces returns the interfaces of the thread's network namespace that lead to pods. pods are the cluster CIDRs, in which pods have
// their addresses, and own are this node's addresses, by which other nodes reach it. known tells whether it is known already that an
// interface leads to a pod, whatever is behind it now: whoever runs there may take its addresses away.
func Interfaces(pods []netip.Prefix, own []netip.Addr, known func(Link) bool) (found []Interface, err error) {
	l := look{pods: kernel.NewCIDRSet(pods), own: own, known: known}
	return changes.Outlast(l.all)
}

// look is a look for interfaces.
type look struct {
	pods  kernel.CIDRSet
	own   []netip.Addr
	known func(Link) bool
	links []netlink.Link
}

func (l *look) all() (found []Interface, err error) {
	if l.links, err = netlink.LinkList(); err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	behind, err := l.behind()
	if err != nil {
		return nil, err
	}
	outward, err := l.outward(behind)
	if err != nil {
		return nil, err
	}
	redirected := redirected()
	for _, link := range l.links {
		at := link.Attrs()
		if outward[at.Index] || !isPeered(link) && !isTap(link) {
			continue
		}
		i := Interface{Link: Link{Index: at.Index, Name: at.Name}, Redirected: redirected[at.Index]}
		if isPeered(link) {
			i.Behind = behind[peerOf(link)]
		}
		found = append(found, i)
	}
	return found, nil
}

// LeadToPods returns those of interfaces, by their names, that are of the kinds that lead to one pod each: no bridge does.
func LeadToPods(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		link, err := netlink.LinkByName(name)
		return err != nil || !isPeered(link) && !isTap(link) // one that has gone leads to nobody
	})
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

// outward returns the interfaces that lead to other nodes, and those that they consist of. behind are the addresses of pods at the other
// ends of links: a port of a bridge with such a one leads to a pod, although the bridge leads to other nodes, too.
func (l *look) outward(behind map[peer][]netip.Addr) (map[int]bool, error) {
	outward := map[int]bool{}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addresses {
		if slices.Contains(l.own, kernel.AddrOf(a.IP)) {
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
			toPod := isPeered(link) && (len(behind[peerOf(link)]) > 0 || l.known(Link{at.Index, at.Name}))
			if outward[at.MasterIndex] && !outward[at.Index] && !toPod {
				outward[at.Index], grown = true, true
			}
			if lower := at.ParentIndex; outward[at.Index] && at.NetNsID < 0 && lower > 0 && !outward[lower] {
				outward[lower], grown = true, true
			}
		}
	}
	return outward, nil
}

// addHops adds the interfaces by which a route leads to a router that is no pod. A pod can advertise itself as a router, so a route that
// the kernel has learned that way does not count.
func (l *look) addHops(outward map[int]bool, route netlink.Route) {
	if route.Protocol == unix.RTPROT_RA {
		return
	}
	isDefault := route.Dst == nil || route.Dst.IP.IsUnspecified()
	hops := append([]*netlink.NexthopInfo{{LinkIndex: route.LinkIndex, Gw: route.Gw}}, route.MultiPath...)
	for _, hop := range hops {
		gateway := kernel.AddrOf(hop.Gw)
		if !gateway.IsValid() || hop.LinkIndex == 0 {
			continue
		}
		if isDefault || !l.pods.Contains(gateway) && !gateway.IsLinkLocalUnicast() {
			outward[hop.LinkIndex] = true
		}
	}
}

// peer is the other end of a link: a network namespace, by its number in this one, and an index there.
type peer struct{ namespace, index int }

func peerOf(link netlink.Link) peer { return peer{link.Attrs().NetNsID, link.Attrs().ParentIndex} }

// mostBehind is how many addresses of pods count in a network namespace: whoever runs there may add any number.
const mostBehind = 64

// behind returns the addresses of pods at the other ends of links.
func (l *look) behind() (map[peer][]netip.Addr, error) {
	behind, seen := map[peer][]netip.Addr{}, map[int]bool{}
	c, err := dial()
	if err != nil {
		return nil, fmt.Errorf("connect to rtnetlink: %w", err)
	}
	defer c.Close()
	for _, link := range l.links {
		if namespace := link.Attrs().NetNsID; isPeered(link) && !seen[namespace] {
			seen[namespace] = true
			if err := l.readNamespace(c, namespace, behind); err != nil {
				return nil, fmt.Errorf("list the addresses behind the interfaces of pods: %w", err)
			}
		}
	}
	return behind, nil
}

// dial returns a socket for questions about other network namespaces.
func dial() (*nl.NetlinkSocket, error) {
	c, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	_ = c.SetReceiveTimeout(&nl.SocketTimeoutTv) // it never fails
	if err := unix.SetsockoptInt(c.GetFd(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1); err != nil {
		c.Close()
		return nil, fmt.Errorf("ask for the addresses of one network namespace (NETLINK_GET_STRICT_CHK, Linux 4.20): %w", err)
	}
	return c, nil
}

// readNamespace adds the addresses of pods in a network namespace. One that has gone meanwhile has none. Whoever changes addresses
// there all the time is not waited for: what is not told now is told by a later look, and nobody else's addresses are there.
func (l *look) readNamespace(c *nl.NetlinkSocket, namespace int, behind map[peer][]netip.Addr) error {
	request := nl.NewNetlinkRequest(unix.RTM_GETADDR, unix.NLM_F_DUMP)
	request.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: c, Seq: uint32(namespace) << 8}}
	request.AddData(nl.NewIfAddrmsg(unix.AF_UNSPEC))
	request.AddData(nl.NewRtAttr(unix.IFA_TARGET_NETNSID, nl.Uint32Attr(uint32(namespace))))
	count := 0
	err := request.ExecuteIter(unix.NETLINK_ROUTE, unix.RTM_NEWADDR, func(message []byte) bool {
		index, address := decodeAddress(message)
		if l.pods.Contains(address) {
			at := peer{namespace, index}
			behind[at] = append(behind[at], address)
			count++
		}
		return count < mostBehind
	})
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EACCES):
		return nil // it has gone, or is none of this node's to look into
	case errors.Is(err, nl.ErrDumpInterrupted):
		return nil
	}
	return err
}

// decodeAddress returns the address that a message of RTM_NEWADDR tells of, and the index of its interface; an invalid one if it
// tells of none.
func decodeAddress(message []byte) (index int, address netip.Addr) {
	if len(message) < unix.SizeofIfAddrmsg {
		return 0, netip.Addr{}
	}
	header := nl.DeserializeIfAddrmsg(message)
	attributes, err := nl.ParseRouteAttr(message[header.Len():])
	if err != nil {
		return 0, netip.Addr{}
	}
	for _, a := range attributes {
		local := a.Attr.Type == unix.IFA_LOCAL // of IPv4, where IFA_ADDRESS may be that of a peer
		if local || a.Attr.Type == unix.IFA_ADDRESS && !address.IsValid() {
			address = kernel.AddrOf(a.Value)
		}
	}
	return int(header.Index), address
}
