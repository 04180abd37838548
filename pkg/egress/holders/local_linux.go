package holders

import (
	"context"
	"fmt"
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
	logger := klog.FromContext(ctx)
	var told []netip.Addr     // nil if none were
	var unread failure.Streak // why the addresses cannot be read
	for {
		read := false
		err := changes.Follow(ctx.Done(), pauseAfterChange, func() error {
			own, err := OwnAddressesNow(steeringDevice)
			if err != nil {
				return err
			}
			if read = true; told == nil || !slices.Equal(own.Addresses, told) {
				told = slices.Clone(own.Addresses)
				tell(own)
			}
			return nil
		})
		wait := restBeforeRead
		switch {
		case ctx.Err() != nil:
			return
		case read:
			logger.V(2).Info("Changes of this node's addresses were missed; reading all addresses", "reason", err.Error())
			unread = failure.Streak{}
		default:
			wait = readAgain
			if unread.Turns(err) {
				logger.Error(err, "Cannot read the addresses of this node, so other nodes do not learn of changes; will retry, further failures are not logged")
			}
		}
		if !wake.Sleep(ctx.Done(), wait) {
			return
		}
	}
}

// OwnAddressesNow returns the addresses that WatchAddresses tells of. The list is not nil.
func OwnAddressesNow(steeringDevice string) (OwnAddresses, error) {
	return changes.Outlast(func() (OwnAddresses, error) {
		links, err := netlink.LinkList()
		if err != nil {
			return OwnAddresses{}, fmt.Errorf("list links: %w", err)
		}
		counts := map[int]bool{}
		for _, link := range links {
			a := link.Attrs()
			counts[a.Index] = a.RawFlags&unix.IFF_UP != 0 && a.RawFlags&(unix.IFF_LOOPBACK|unix.IFF_NOARP) == 0 && a.Name != steeringDevice
		}
		list, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
		if err != nil {
			return OwnAddresses{}, fmt.Errorf("list addresses: %w", err)
		}
		own := []netip.Addr{}
		for _, a := range list {
			// An address that another host has stays tentative.
			tentative := a.Flags&unix.IFA_F_TENTATIVE != 0 && a.Flags&unix.IFA_F_OPTIMISTIC == 0
			if addr := kernel.AddrOf(a.IP); counts[a.LinkIndex] && !tentative && addr.IsValid() && !addr.IsLinkLocalUnicast() {
				own = append(own, addr)
			}
		}
		slices.SortFunc(own, netip.Addr.Compare)
		return OwnAddresses{Addresses: slices.Compact(own)}, nil
	})
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
