package steering

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"k8s.io/klog/v2"
)

// looseFilters makes the interfaces over which pod networks are routed take packets of any source that has a route, if
// they take only those that they would send to themselves (rp_filter 1): the holder sends replies home by the pod
// network, and they have the addresses of hosts outside. It tells whether it had to change anything.
//
// A route that has a gateway leads to other nodes' pods, and so may one to a whole network; a narrower one leads to
// pods of this node, whose interfaces stay strict. IPv6 has no such setting.
//
// What was there before is in the alias of steer0, which `ip link` shows, so that [cleanupPath] can put it back. Without
// the device nothing arrives, and nothing is changed; with the transport Direct the log alone has it.
func looseFilters(ctx context.Context, networks []netip.Prefix, transport Transport) (changed bool, err error) {
	strict, err := strictFilters(networks)
	if err != nil || len(strict) == 0 {
		return false, err
	}
	var record netlink.Link
	if transport == VXLAN {
		if record, err = findLink(Device); record == nil || err != nil {
			return false, err
		}
	}
	for _, name := range strict {
		before, err := readSysctl(filterPath(name))
		if err != nil {
			return changed, err
		}
		if record != nil {
			if _, err := recordFilters(map[string]string{name: before}); err != nil { // with a dozen of them it is too long
				klog.FromContext(ctx).Error(err, "Cannot record a setting; it stays when egress SNAT is removed", "sysctl", filterPath(name), "before", before)
			}
		}
		if err := addPart(sysctl{filterPath(name), "2"}); err != nil {
			return changed, err
		}
		klog.FromContext(ctx).Info("Let an interface of the pod network take replies to steered packets", "interface", name, "sysctl", filterPath(name), "before", before, "now", "2")
		changed = true
	}
	return changed, nil
}

// filterRecord begins the alias of steer0. Behind it are the settings of before, by interface: "eth1=1 vxlan0=0".
const filterRecord = "rp_filter before: "

// filtersIn returns what an alias has of interfaces' settings.
func filtersIn(alias string) map[string]string {
	filters := map[string]string{}
	text, _ := strings.CutPrefix(alias, filterRecord)
	for _, field := range strings.Fields(text) {
		if name, value, ok := strings.Cut(field, "="); ok {
			filters[name] = value
		}
	}
	return filters
}

// recordFilters adds the settings that interfaces had to the alias, and returns all that it has. The oldest ones count. A
// device that is made anew has none, so the Writer remembers them.
func recordFilters(before map[string]string) (recorded map[string]string, err error) {
	steer0, err := findLink(Device)
	if steer0 == nil || err != nil {
		return before, err
	}
	recorded = filtersIn(steer0.Attrs().Alias)
	count := len(recorded)
	for name, value := range before {
		if _, known := recorded[name]; !known {
			recorded[name] = value
		}
	}
	if len(recorded) == count {
		return recorded, nil
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		fields = append(fields, name+"="+recorded[name])
	}
	if err := netlink.LinkSetAlias(steer0, filterRecord+strings.Join(fields, " ")); err != nil {
		return recorded, fmt.Errorf("record %s in the alias of %s: %w", strings.Join(fields, " "), Device, err)
	}
	return recorded, nil
}

// restoreFilters puts back what looseFilters has changed, where nobody has changed it since. What cannot be put back is
// logged: it keeps nobody from removing the rest.
func restoreFilters(ctx context.Context, steer0 netlink.Link) {
	for name, before := range filtersIn(steer0.Attrs().Alias) {
		now, err := readSysctl(filterPath(name))
		if err == nil && now == "2" {
			err = addPart(sysctl{filterPath(name), before})
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the interface has gone
			klog.FromContext(ctx).Error(err, "Cannot put a setting back; set it by hand", "sysctl", filterPath(name), "before", before)
		}
	}
}

// strictFilters returns the names of the interfaces that looseFilters would change.
func strictFilters(networks []netip.Prefix) (names []string, err error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list the IPv4 routes: %w", err)
	}
	seen := map[int]bool{}
	for _, r := range routes {
		if !leadsToPods(r, networks) || seen[r.LinkIndex] {
			continue
		}
		seen[r.LinkIndex] = true
		link, err := netlink.LinkByIndex(r.LinkIndex)
		if err != nil {
			return nil, fmt.Errorf("look at interface %d, by which %s is routed: %w", r.LinkIndex, r.Dst, err)
		}
		strict, err := isStrict(link.Attrs().Name)
		if err != nil {
			return nil, err
		}
		if strict {
			names = append(names, link.Attrs().Name)
		}
	}
	return names, nil
}

// leadsToPods tells whether pods of other nodes may be behind a route.
func leadsToPods(r netlink.Route, networks []netip.Prefix) bool {
	bits, _ := r.Dst.Mask.Size()
	dst := netip.PrefixFrom(addrFromIP(r.Dst.IP), bits)
	if bits == 0 || r.LinkIndex == 0 {
		return false
	}
	for _, network := range networks {
		if network.Overlaps(dst) && (r.Gw != nil || bits <= network.Bits()) {
			return true
		}
	}
	return false
}
