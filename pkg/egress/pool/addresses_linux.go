package pool

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
)

// kernelAddresses are the pool's addresses on this node's interfaces. They can be told from those of other
// software, also by a process that has just started: they are in the pool's networks, host addresses without a
// route, of limited lifetime, and never preferred. No other software makes such ones; where the kernel chooses
// a source address for the node's own packets, it prefers others.
type kernelAddresses struct {
	networks []netip.Prefix
	// ignored is the name of an interface that has no neighbours.
	ignored string
}

// links are this node's interfaces, as far as they matter to the pool.
type links struct {
	// at is when they were read.
	at time.Time
	// byIndex has those with neighbours.
	byIndex map[int]*net.Interface
	// up has those of them that have a link, also without a subnet.
	up      map[int]bool
	subnets []subnetOn
	// networks are the subnets, each once; one is up if it is on one of its interfaces.
	networks []Network
	// ours are the pool's addresses, by interface; foreign are addresses in the pool's networks that
	// other software has put there.
	ours    map[netip.Addr]int
	foreign map[netip.Addr]int
	// groups has how many IPv6 addresses are in each group.
	groups map[group]int
}

// subnetOn is a subnet of an interface.
type subnetOn struct {
	Network
	index int
}

// read returns what there is now.
func (k kernelAddresses) read() (*links, error) {
	return changes.Outlast(k.readOnce) // others change links all the time
}

func (k kernelAddresses) readOnce() (*links, error) {
	l := &links{at: time.Now(), byIndex: map[int]*net.Interface{}, up: map[int]bool{}, ours: map[netip.Addr]int{}, foreign: map[netip.Addr]int{}, groups: map[group]int{}}
	list, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	for _, link := range list {
		a := link.Attrs()
		if a.RawFlags&(unix.IFF_LOOPBACK|unix.IFF_NOARP) == 0 && len(a.HardwareAddr) == 6 && a.Name != k.ignored {
			l.byIndex[a.Index] = &net.Interface{Index: a.Index, Name: a.Name, HardwareAddr: a.HardwareAddr, MTU: a.MTU}
			l.up[a.Index] = a.RawFlags&unix.IFF_UP != 0 && a.RawFlags&unix.IFF_RUNNING != 0
		}
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addresses {
		l.add(k, a)
	}
	slices.SortFunc(l.subnets, func(a, b subnetOn) int { return cmp.Or(a.Prefix.Compare(b.Prefix), cmp.Compare(a.index, b.index)) })
	l.networks = networksOf(l.subnets)
	return l, nil
}

// add takes note of an address.
func (l *links) add(k kernelAddresses, a netlink.Addr) {
	ip := kernel.AddrOf(a.IP)
	if ip.Is6() {
		l.groups[groupOf(ip, a.LinkIndex)]++
	}
	bits, size := a.Mask.Size()
	_, neighbours := l.byIndex[a.LinkIndex]
	switch {
	case k.contains(ip) && isOurs(a, bits == size):
		l.ours[ip] = a.LinkIndex
	case k.contains(ip):
		l.foreign[ip] = a.LinkIndex
	}
	if neighbours && bits < size && !ip.IsLinkLocalUnicast() {
		l.subnets = append(l.subnets, subnetOn{Network{Prefix: netip.PrefixFrom(ip, bits).Masked(), Up: l.up[a.LinkIndex]}, a.LinkIndex})
	}
}

func (k kernelAddresses) contains(ip netip.Addr) bool {
	return slices.ContainsFunc(k.networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

func isOurs(a netlink.Addr, host bool) bool {
	const want = unix.IFA_F_NOPREFIXROUTE | unix.IFA_F_DEPRECATED
	return host && a.Flags&want == want && a.Flags&unix.IFA_F_PERMANENT == 0
}

// networksOf returns sorted subnets, each once; it is up if it is on one of its interfaces.
func networksOf(subnets []subnetOn) (result []Network) {
	for _, s := range subnets {
		if last := len(result) - 1; last >= 0 && result[last].Prefix == s.Prefix {
			result[last].Up = result[last].Up || s.Up
		} else {
			result = append(result, s.Network)
		}
	}
	return result
}

// link returns the interface that an address belongs on: it has the subnet that [SubnetOf] returns.
func (l *links) link(ip netip.Addr) (*net.Interface, bool) {
	subnet, found := SubnetOf(l.networks, ip)
	if !found {
		return nil, false
	}
	i := slices.IndexFunc(l.subnets, func(s subnetOn) bool { return s.Network == subnet })
	return l.byIndex[l.subnets[i].index], true
}

// serves tells whether an address of the pool is on this node, and not on an interface without a link while another one with a link
// could have it.
func (l *links) serves(ip netip.Addr) bool {
	index, there := l.ours[ip]
	subnet, _ := SubnetOf(l.networks, ip)
	return there && (l.up[index] || !subnet.Up)
}

// isDisplaced tells whether an address of the pool is on an interface that has not its subnet, while another one with a link has.
func (l *links) isDisplaced(ip netip.Addr) bool {
	index, there := l.ours[ip]
	subnet, found := SubnetOf(l.networks, ip)
	return there && found && subnet.Up && !slices.Contains(l.subnets, subnetOn{subnet, index})
}

// byLink groups addresses by the interfaces that they are asked for on.
func (l *links) byLink(addresses []netip.Addr) map[*net.Interface][]netip.Addr {
	result := map[*net.Interface][]netip.Addr{}
	for _, ip := range addresses {
		if link, found := l.link(ip); found {
			result[link] = append(result[link], ip)
		}
	}
	return result
}

// byOwn groups addresses of the pool by the interfaces that they are on.
func (l *links) byOwn(addresses []netip.Addr) map[*net.Interface][]netip.Addr {
	result := map[*net.Interface][]netip.Addr{}
	for _, ip := range addresses {
		if link := l.byIndex[l.ours[ip]]; link != nil {
			result[link] = append(result[link], ip)
		}
	}
	return result
}

// hardware are the MACs of the interfaces.
func (l *links) hardware() (list []net.HardwareAddr) {
	for _, link := range l.byIndex {
		list = append(list, link.HardwareAddr)
	}
	return list
}

// put puts an address on an interface, or has the kernel keep one for longer that is there.
func (k kernelAddresses) put(ip netip.Addr, index int) error {
	link := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}
	if err := netlink.AddrReplace(link, ours(ip)); err != nil {
		return fmt.Errorf("put %s on an interface: %w", ip, err)
	}
	return nil
}

// remove removes an address. It is no error if it is gone.
func (k kernelAddresses) remove(ip netip.Addr, index int) error {
	link := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}
	err := netlink.AddrDel(link, ours(ip))
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove %s from an interface: %w", ip, err)
	}
	return nil
}

func ours(ip netip.Addr) *netlink.Addr {
	flags := unix.IFA_F_NOPREFIXROUTE
	if ip.Is6() {
		flags |= unix.IFA_F_NODAD // it has been asked for
	}
	return &netlink.Addr{
		IPNet:    &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())},
		ValidLft: int(Lifetime / time.Second),
		Flags:    flags,
	}
}

// HasAddresses tells whether this node has addresses of the pool.
func HasAddresses(networks []netip.Prefix) (bool, error) {
	l, err := kernelAddresses{networks: networks}.read()
	return err == nil && len(l.ours) > 0, err
}

// RemoveAddresses removes the addresses of the pool from this node, and returns them.
func RemoveAddresses(networks []netip.Prefix) (removed []netip.Addr, err error) {
	k := kernelAddresses{networks: networks}
	l, err := k.read()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, ip := range sorted(l.ours) {
		if err := k.remove(ip, l.ours[ip]); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, ip)
	}
	return removed, errors.Join(errs...)
}
