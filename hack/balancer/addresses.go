package balancer

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// addresses are those of a few ranges, and whose they are.
type addresses struct {
	// ranges are one of each family, and last is the address of each that was given last.
	ranges []netip.Prefix
	last   map[netip.Prefix]netip.Addr
	given  map[types.UID][]netip.Addr
}

func newAddresses(ranges []netip.Prefix) *addresses {
	return &addresses{ranges: ranges, last: map[netip.Prefix]netip.Addr{}, given: map[types.UID][]netip.Addr{}}
}

// give returns one address of each family of the Service, the same each time until keep takes it back.
func (a *addresses) give(svc *v1.Service) ([]netip.Addr, error) {
	var given []netip.Addr
	for _, family := range svc.Spec.IPFamilies {
		addr, err := a.of(svc.UID, family)
		if err != nil {
			return nil, err
		}
		given = append(given, addr)
	}
	a.given[svc.UID] = given
	return given, nil
}

// of is the address of a family that a Service has, or else the next free one.
func (a *addresses) of(svc types.UID, family v1.IPFamily) (netip.Addr, error) {
	for _, addr := range a.given[svc] {
		if familyOf(addr) == family {
			return addr, nil
		}
	}
	for _, r := range a.ranges {
		if familyOf(r.Addr()) == family {
			return a.next(r)
		}
	}
	return netip.Addr{}, fmt.Errorf("there is no range of %s addresses", family)
}

// next returns the next free address of a range. The first one, the network's, is given to nobody.
func (a *addresses) next(r netip.Prefix) (netip.Addr, error) {
	taken := map[netip.Addr]bool{r.Addr(): true}
	for _, addrs := range a.given {
		for _, addr := range addrs {
			taken[addr] = true
		}
	}
	start := a.last[r]
	if !start.IsValid() {
		start = r.Addr()
	}
	addr := start
	for {
		if addr = addr.Next(); !r.Contains(addr) {
			addr = r.Addr()
		}
		if !taken[addr] {
			a.last[r] = addr
			return addr, nil
		}
		if addr == start {
			return netip.Addr{}, fmt.Errorf("all addresses of %s are given", r)
		}
	}
}

// keep takes back the addresses of all Services but these.
func (a *addresses) keep(services []*v1.Service) {
	maps.DeleteFunc(a.given, func(uid types.UID, _ []netip.Addr) bool {
		return !slices.ContainsFunc(services, func(svc *v1.Service) bool { return svc.UID == uid })
	})
}

func familyOf(addr netip.Addr) v1.IPFamily {
	if addr.Is4() {
		return v1.IPv4Protocol
	}
	return v1.IPv6Protocol
}
