package holders

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
	"github.com/openshift/origin-node/pkg/wake"
)

const (
	// pauseAfterChange is how long changes of addresses are gathered: software that moves addresses
	// often changes several.
	pauseAfterChange = 20 * time.Millisecond
	// restBeforeRead is how long it rests before all addresses are read because changes were missed.
	restBeforeRead = 100 * time.Millisecond
	// readAgain is when they are read again that could not be read.
	readAgain = time.Second
)

// WatchAddresses tells which addresses this node has for others to reach, as OwnAddresses, sorted, until
// ctx ends. Failures are logged and tried again. All sockets are opened on the caller's thread: what
// counts is the network namespace of that.
//
// An address counts if
//   - its interface is neither LOOPBACK nor NOARP: nodes have addresses there that others have, too, for
//     example those of Services on IPVS's dummy device;
//   - its interface is up. On one that was set down the kernel treats no address as its own, and answers
//     no ARP request for it, so packets do not come back here. The carrier does not matter: with a cable
//     unplugged the kernel still answers on other interfaces;
//   - IPv6's duplicate address detection is over and has found no other host that has it. An address that
//     may be used meanwhile (optimistic) counts at once;
//   - it is not link-local, and not on the steering device, which has the same addresses on all nodes.
func WatchAddresses(ctx context.Context, steeringDevice string, tell func(Event)) {
	w := &addressWatch{steeringDevice: steeringDevice, tell: tell, logger: klog.FromContext(ctx)}
	for {
		reported, err := w.follow(ctx)
		wait := restBeforeRead
		switch {
		case ctx.Err() != nil:
			return
		case reported || errors.Is(err, netlink.ErrDumpInterrupted):
			w.logger.V(2).Info("Changes of this node's addresses were missed; reading all addresses", "reason", err.Error())
			w.unread = failure.Streak{}
		default:
			wait = readAgain
			if w.unread.Turns(err) {
				w.logger.Error(err, "Cannot read the addresses of this node, so other nodes do not learn of changes; will retry, further failures are not logged")
			}
		}
		if !wake.Sleep(ctx.Done(), wait) {
			return
		}
	}
}

// OwnAddressesNow returns the addresses that WatchAddresses tells of.
func OwnAddressesNow(steeringDevice string) (OwnAddresses, error) {
	interfaces, err := listInterfaces(steeringDevice)
	if err != nil {
		return OwnAddresses{}, err
	}
	return OwnAddresses{Addresses: interfaces.addresses()}, nil
}

// PreferredNow returns the IPv6 addresses that the kernel may choose as the source of what this node sends, or masquerades: those that are
// not deprecated (RFC 6724, rule 3). The values are the names of their interfaces.
func PreferredNow() (map[netip.Addr]string, error) {
	addresses, err := changes.Outlast(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_V6) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	preferred := map[netip.Addr]string{}
	for _, a := range addresses {
		addr, ok := netip.AddrFromSlice(a.IP)
		if !ok || a.Flags&unix.IFA_F_DEPRECATED != 0 {
			continue
		}
		link, err := net.InterfaceByIndex(a.LinkIndex)
		if err != nil {
			continue // it is gone
		}
		preferred[addr] = link.Name
	}
	return preferred, nil
}

// addressWatch is what WatchAddresses does.
type addressWatch struct {
	steeringDevice string
	tell           func(Event)
	logger         klog.Logger
	// told are the addresses that were told last; nil if none were.
	told []netip.Addr
	// unread is why the addresses cannot be read.
	unread failure.Streak
}

// follow reports all addresses, and again whenever they have changed, until it fails.
func (w *addressWatch) follow(ctx context.Context) (reported bool, err error) {
	s, err := changes.Subscribe()
	if err != nil {
		return false, err
	}
	defer s.End()
	// What changes from here on is in the subscription, and that is read afterwards.
	interfaces, err := listInterfaces(w.steeringDevice)
	if err != nil {
		return false, err
	}
	w.report(interfaces)
	var pause <-chan time.Time
	for {
		changed := false
		select {
		case <-ctx.Done():
			return true, nil
		case err := <-s.Failed:
			return true, err
		case <-pause:
			pause = nil
			w.report(interfaces)
		case u, open := <-s.Addresses:
			changed = open && interfaces.setAddress(u.LinkIndex, u.LinkAddress.IP, u.Flags, u.NewAddr)
		case u, open := <-s.Links:
			changed = open && interfaces.setLink(u)
		}
		if changed && pause == nil {
			pause = time.After(pauseAfterChange)
		}
	}
}

// report tells the addresses if they are not those that were told last.
func (w *addressWatch) report(i *interfaces) {
	if addresses := i.addresses(); w.told == nil || !slices.Equal(addresses, w.told) {
		w.told = addresses
		w.tell(OwnAddresses{Addresses: slices.Clone(addresses)})
	}
}

// interfaces are those of this node, with their addresses.
type interfaces struct {
	steeringDevice string
	// counts has the interfaces whose addresses count.
	counts map[int]bool
	// onLink has the addresses of each interface that count if the interface does.
	onLink map[int]map[netip.Addr]bool
}

// listInterfaces reads all.
func listInterfaces(steeringDevice string) (*interfaces, error) {
	i := &interfaces{steeringDevice: steeringDevice, counts: map[int]bool{}, onLink: map[int]map[netip.Addr]bool{}}
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	for _, link := range links {
		i.counts[link.Attrs().Index] = i.linkCounts(link.Attrs())
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addresses {
		i.setAddress(a.LinkIndex, a.IP, a.Flags, true)
	}
	return i, nil
}

func (i *interfaces) linkCounts(link *netlink.LinkAttrs) bool {
	return link.RawFlags&unix.IFF_UP != 0 && link.RawFlags&(unix.IFF_LOOPBACK|unix.IFF_NOARP) == 0 && link.Name != i.steeringDevice
}

// setLink notes a change of an interface. It tells whether that may be of importance.
func (i *interfaces) setLink(update netlink.LinkUpdate) (changed bool) {
	if update.Family != unix.AF_UNSPEC {
		return false // about a port of a bridge: it left the bridge, for example, and not the node
	}
	index := update.Attrs().Index
	before := i.counts[index]
	if update.Header.Type == unix.RTM_DELLINK {
		delete(i.counts, index)
		delete(i.onLink, index)
	} else {
		i.counts[index] = i.linkCounts(update.Attrs())
	}
	return i.counts[index] != before
}

// setAddress notes that an address is there with these flags (IFA_F_…), or is not. It tells whether that
// is of importance.
func (i *interfaces) setAddress(link int, ip net.IP, flags int, exists bool) (changed bool) {
	addr := kernel.AddrOf(ip)
	if !addr.IsValid() || addr.IsLinkLocalUnicast() {
		return false
	}
	// An address that another host has stays tentative.
	tentative := flags&unix.IFA_F_TENTATIVE != 0 && flags&unix.IFA_F_OPTIMISTIC == 0
	if !exists || tentative {
		changed = i.onLink[link][addr]
		delete(i.onLink[link], addr)
		return changed
	}
	changed = !i.onLink[link][addr]
	kernel.Put(i.onLink, link, addr, true)
	return changed
}

// addresses returns those that count, sorted; it is not nil.
func (i *interfaces) addresses() []netip.Addr {
	list := []netip.Addr{}
	for link, addresses := range i.onLink {
		if i.counts[link] {
			list = slices.AppendSeq(list, maps.Keys(addresses))
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}
