package steering

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
	"github.com/openshift/origin-node/pkg/wake"
)

// Adjacent returns why a node cannot be the next hop of packets of this one, whose address is self; nil if it can.
func Adjacent(self, node netip.Addr) error {
	uplink, err := uplinkOf(self)
	if err != nil {
		return err
	}
	routes, err := netlink.RouteGet(node.AsSlice())
	switch {
	case err != nil:
		return fmt.Errorf("%s has no route: %w", node, err)
	case routerOf(routes[0]) != nil:
		return fmt.Errorf("%s is behind the router %s, and not on the network of %s", node, routerOf(routes[0]), uplink.name)
	case routes[0].LinkIndex != uplink.index:
		return fmt.Errorf("%s is not on the network of %s, which has this node's address", node, uplink.name)
	}
	return nil
}

// routerOf returns the next hop of a route, which may be of the other IP family; nil if there is none.
func routerOf(r netlink.Route) fmt.Stringer {
	switch {
	case r.Gw != nil:
		return r.Gw
	case r.Via != nil:
		return r.Via
	}
	return nil
}

// uplinkOf returns the interface that has this node's address self.
func uplinkOf(self netip.Addr) (uplink, error) {
	s, err := Config{NodeIP: self}.uplinkState()
	if err != nil {
		return uplink{}, err
	}
	if s.uplink.name == "" {
		return uplink{}, s.conflicts
	}
	return s.uplink, nil
}

// known are the states of a neighbour whose hardware address the kernel has found.
const known = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT

// WatchNeighbours tells the hardware addresses of those hosts on this node's networks that are wanted: first those that the kernel
// knows, again each time that again says so, and then each that it learns, until ctx ends. Each may be told more than once. One
// that is learned by another interface than leads to the host is not told: a pod may claim to be any host there. Failures are
// logged and tried again. What counts is the network namespace of the caller's thread.
func WatchNeighbours(ctx context.Context, wanted func(host netip.Addr) bool, again <-chan struct{}, tell func(host netip.Addr, at kernel.HardwareAddr)) {
	told := func(n netlink.Neigh) {
		if host := kernel.AddrOf(n.IP); isKnown(n) && wanted(host) && isOnRoute(n) {
			tell(host, kernel.HardwareAddr(n.HardwareAddr))
		}
	}
	for {
		err := followNeighbours(ctx, again, told)
		if ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).Error(err, "Cannot follow the hardware addresses of other nodes; will retry")
		if !wake.Sleep(ctx.Done(), time.Second) {
			return
		}
	}
}

// followNeighbours tells what the kernel knows of neighbours until it fails.
func followNeighbours(ctx context.Context, again <-chan struct{}, tell func(netlink.Neigh)) error {
	done, updates, failed := make(chan struct{}), make(chan netlink.NeighUpdate), make(chan error, 1)
	options := netlink.NeighSubscribeOptions{ListExisting: true, ErrorCallback: func(err error) {
		select {
		case failed <- err:
		default: // the first one is enough
		}
	}}
	if err := netlink.NeighSubscribeWithOptions(updates, done, options); err != nil {
		close(done)
		return fmt.Errorf("subscribe to neighbours: %w", err)
	}
	defer func() {
		close(done)
		go changes.Drain(updates)
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return fmt.Errorf("read changes of neighbours: %w", err)
		case u, open := <-updates:
			if !open {
				return errors.New("changes of neighbours have ended")
			}
			if u.Type == unix.RTM_NEWNEIGH {
				tell(u.Neigh)
			}
		case <-again:
			list, err := listNeighbours()
			if err != nil {
				return err
			}
			for _, n := range list {
				tell(n)
			}
		}
	}
}

// isKnown tells whether the kernel has found a host's hardware address.
func isKnown(n netlink.Neigh) bool {
	return n.State&known != 0 && n.Family != unix.AF_BRIDGE && len(n.HardwareAddr) == len(kernel.HardwareAddr{})
}

// isOnRoute tells whether packets for a neighbour itself leave by the interface by which it is known.
func isOnRoute(n netlink.Neigh) bool {
	routes, err := netlink.RouteGet(n.IP)
	return err == nil && routes[0].LinkIndex == n.LinkIndex && routerOf(routes[0]) == nil
}

func listNeighbours() ([]netlink.Neigh, error) {
	list, err := changes.Outlast(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list neighbours: %w", err)
	}
	return list, nil
}

// Neighbours returns the hardware addresses that [WatchNeighbours] tells first if all are wanted.
func Neighbours() (map[netip.Addr]kernel.HardwareAddr, error) {
	list, err := listNeighbours()
	if err != nil {
		return nil, err
	}
	hardware := map[netip.Addr]kernel.HardwareAddr{}
	for _, n := range list {
		if isKnown(n) && isOnRoute(n) {
			hardware[kernel.AddrOf(n.IP)] = kernel.HardwareAddr(n.HardwareAddr)
		}
	}
	return hardware, nil
}

// FindNeighbour has the kernel look for the hardware address of a host on the network of this node's address self.
// [WatchNeighbours] tells what it finds.
func FindNeighbour(self, host netip.Addr) error {
	uplink, err := uplinkOf(self)
	if err != nil {
		return err
	}
	look := &netlink.Neigh{LinkIndex: uplink.index, Family: netlinkFamilies[kernel.FamilyOf(host)], Flags: netlink.NTF_USE, IP: host.AsSlice()}
	if err := netlink.NeighSet(look); err != nil {
		return fmt.Errorf("look for the hardware address of %s: %w", host, err)
	}
	return nil
}
