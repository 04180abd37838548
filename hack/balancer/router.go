//go:build linux

package balancer

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
)

// router is the host that sends packets to nodes.
type router struct {
	nl *netlink.Handle
	// held are the routes that it has, by their destinations.
	held map[netip.Addr][]netip.Addr
}

// newRouter prepares a host: it drops what is for the ranges, and chooses one of several ways by addresses and ports (layer 4).
func newRouter(host *lab.Host, ranges []netip.Prefix) (r *router, err error) {
	r = &router{held: map[netip.Addr][]netip.Addr{}}
	err = host.Do(func() error {
		for _, family := range []string{"ipv4", "ipv6"} {
			err := os.WriteFile("/proc/sys/net/"+family+"/fib_multipath_hash_policy", []byte("1"), 0)
			if err != nil && !errors.Is(err, os.ErrNotExist) { // IPv6 may be off
				return err
			}
		}
		r.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", host.Name, err)
	}
	for _, dst := range ranges {
		if err := r.nl.RouteReplace(&netlink.Route{Dst: ipNet(dst), Type: unix.RTN_BLACKHOLE}); err != nil {
			r.nl.Close()
			return nil, fmt.Errorf("drop what is for %s: %w", dst, err)
		}
	}
	return r, nil
}

// hold gives the host these routes and no others besides those of newRouter. It does all that it can.
func (r *router) hold(wanted map[netip.Addr][]netip.Addr) error {
	var errs []error
	for dst := range maps.Clone(r.held) {
		if len(wanted[dst]) == 0 {
			errs = append(errs, r.remove(dst))
		}
	}
	for dst, via := range wanted {
		if len(via) > 0 && !slices.Equal(via, r.held[dst]) {
			errs = append(errs, r.set(dst, via))
		}
	}
	return errors.Join(errs...)
}

// set replaces the route to an address.
func (r *router) set(dst netip.Addr, via []netip.Addr) error {
	route := &netlink.Route{Dst: host(dst)}
	for _, gateway := range via {
		route.MultiPath = append(route.MultiPath, &netlink.NexthopInfo{Gw: gateway.AsSlice()})
	}
	if err := r.nl.RouteReplace(route); err != nil {
		return fmt.Errorf("route %s via %v: %w", dst, via, err)
	}
	r.held[dst] = via
	return nil
}

func (r *router) remove(dst netip.Addr) error {
	if err := r.nl.RouteDel(&netlink.Route{Dst: host(dst)}); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("remove the route to %s: %w", dst, err)
	}
	delete(r.held, dst)
	return nil
}

func (r *router) close() { r.nl.Close() }

func host(addr netip.Addr) *net.IPNet { return ipNet(netip.PrefixFrom(addr, addr.BitLen())) }

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
