package steering

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"

	"github.com/google/nftables/userdata"
	"github.com/vishvananda/netlink"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// setting is a sysctl of an interface that is not ours. What it was before is on record in the table, as the comment of a
// rule that no packet meets, so that [Cleanup] can put it back.
type setting struct{ path, before, now string }

func (s setting) String() string { return fmt.Sprintf("%s was %s is %s", s.path, s.before, s.now) }

// settings returns those that have to be changed: what a fast path needs, and in IPv4, for IPv6 has none of these, those of interfaces.
//
// Interfaces over which pod networks are routed have to take packets of any source that has a route, if they take only
// those that they would send to themselves (rp_filter 1): the holder sends replies home by the pod network, and they have
// the addresses of hosts outside. A route that has a gateway leads to other nodes' pods, and so may one to a whole network;
// a narrower one leads to pods of this node, whose interfaces stay strict.
//
// Without a tunnel the uplink must do so, too, and neither it nor all interfaces together may send redirects: the
// holder would tell pods to send to the router themselves, and the kernel does so if either of two says so.
func (c Config) settings(networks []netip.Prefix) (changes []setting, err error) {
	var wanted []sysctl
	if c.Fast != nil {
		if wanted, err = fastSettings(); err != nil {
			return nil, err
		}
	}
	if c.Family == kernel.IPv4 {
		ofInterfaces, err := c.interfaceSettings(networks)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, ofInterfaces...)
	}
	for _, w := range wanted {
		before, err := readSysctl(w.path)
		if err != nil {
			return nil, err
		}
		if before != w.value {
			changes = append(changes, setting{w.path, before, w.value})
		}
	}
	return changes, nil
}

// interfaceSettings returns those of interfaces that IPv4 needs.
func (c Config) interfaceSettings(networks []netip.Prefix) (wanted []sysctl, err error) {
	devices, err := podInterfaces(networks)
	if err != nil {
		return nil, err
	}
	if c.Transport == Direct {
		s, err := c.uplinkState()
		if err != nil {
			return nil, err
		}
		if name := s.uplink.name; name != "" {
			devices[name] = true
			wanted = append(wanted, sysctl{redirectsPath("all"), "0"}, sysctl{redirectsPath(name), "0"})
		}
	}
	for _, device := range slices.Sorted(maps.Keys(devices)) {
		strict, err := isStrict(device)
		if err != nil {
			return nil, err
		}
		if strict {
			wanted = append(wanted, sysctl{filterPath(device), "2"})
		}
	}
	return wanted, nil
}

// podInterfaces returns the names of the interfaces behind which pods of other nodes may be.
func podInterfaces(networks []netip.Prefix) (names map[string]bool, err error) {
	routes, err := changes.Outlast(func() ([]netlink.Route, error) { return netlink.RouteList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return nil, fmt.Errorf("list the IPv4 routes: %w", err)
	}
	names, seen := map[string]bool{}, map[int]bool{}
	for _, r := range routes {
		for _, index := range linksToPods(r, networks) {
			if seen[index] {
				continue
			}
			seen[index] = true
			link, err := netlink.LinkByIndex(index)
			if err != nil {
				return nil, fmt.Errorf("look at interface %d, by which %s is routed: %w", index, r.Dst, err)
			}
			names[link.Attrs().Name] = true
		}
	}
	return names, nil
}

// linksToPods returns the indexes of the interfaces of a route behind which pods of other nodes may be. It may have several next hops, and
// those of IPv4 may be IPv6 addresses.
func linksToPods(r netlink.Route, networks []netip.Prefix) (indexes []int) {
	hops := r.MultiPath
	if len(hops) == 0 {
		hops = []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Gw: r.Gw, Via: r.Via}}
	}
	bits, _ := r.Dst.Mask.Size()
	dst := netip.PrefixFrom(kernel.AddrOf(r.Dst.IP), bits)
	for _, hop := range hops {
		beyond := hop.Gw != nil || hop.Via != nil
		leads := func(network netip.Prefix) bool { return network.Overlaps(dst) && (beyond || bits <= network.Bits()) }
		if bits > 0 && hop.LinkIndex != 0 && slices.ContainsFunc(networks, leads) {
			indexes = append(indexes, hop.LinkIndex)
		}
	}
	return indexes
}

// changeSettings changes settings. What they were must be on record.
func changeSettings(ctx context.Context, changes []setting) error {
	for _, s := range changes {
		if err := addPart(sysctl{s.path, s.now}); err != nil {
			return err
		}
		klog.FromContext(ctx).Info("Changed a setting of the kernel for steered packets; --cleanup puts it back", "sysctl", s.path, "before", s.before, "now", s.now)
	}
	return nil
}

// putBack makes settings what they were before, where nobody has changed them since. What cannot be put back is logged: it
// keeps nobody from removing the rest.
func putBack(ctx context.Context, before settings) {
	for _, s := range before {
		now, err := readSysctl(s.path)
		if err == nil && now == s.now && s.path == liberalPath {
			// Connections go on of which conntrack has not seen all packets.
			err = errors.Join(conntrack.MakeLiberal(ctx, kernel.IPv4), conntrack.MakeLiberal(ctx, kernel.IPv6))
		}
		if err == nil && now == s.now {
			if err = addPart(sysctl{s.path, s.before}); err == nil {
				klog.FromContext(ctx).Info("Put a setting of the kernel back", "sysctl", s.path, "before", s.now, "now", s.before)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the interface has gone
			klog.FromContext(ctx).Error(err, "Cannot put a setting back; set it by hand", "sysctl", s.path, "before", s.before)
		}
	}
}

// describeSettings says in words what settings has found.
func describeSettings(changes []setting) (lines []string) {
	for _, s := range changes {
		lines = append(lines, fmt.Sprintf("%s: should be: %s", sysctl{s.path, s.before}, sysctl{s.path, s.now}))
	}
	return lines
}

// settings are those on record, by their paths.
type settings map[string]setting

// recordOf returns those that a table has on record.
func recordOf(held nft.Held) settings {
	before := settings{}
	for _, mark := range held.Chains[beforeChain] {
		comment, _ := userdata.GetString([]byte(mark), userdata.TypeComment)
		var s setting
		if n, _ := fmt.Sscanf(comment, "%s was %s is %s", &s.path, &s.before, &s.now); n == 3 {
			before[s.path] = s
		}
	}
	return before
}

// add records what settings are before they change. What was recorded first counts.
func (s settings) add(changes []setting) {
	for _, c := range changes {
		if _, known := s[c.path]; !known {
			s[c.path] = c
		}
	}
}

// before returns the rules that record settings.
func (l layout) before(s settings) (rules []nft.Rule) {
	for _, path := range slices.Sorted(maps.Keys(s)) {
		rules = append(rules, l.rule(s[path].String(), "return"))
	}
	return rules
}
