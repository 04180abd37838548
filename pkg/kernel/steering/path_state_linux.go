package steering

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
)

// pathState is what the kernel holds for a path, and what it should hold.
type pathState struct {
	config Config
	uplink uplink
	// steer0 is nil if there is none that is ours.
	steer0 *netlink.Vxlan
	// want is in the order of [Config.parts], held in that of [sortParts]. Of the remotes, which both families share, held
	// has those that are wanted and those that only this family's neighbours use.
	want, held []part
	// remotes are all of them.
	remotes   []part
	conflicts conflict
}

// netlinkFamilies are netlink's numbers.
var netlinkFamilies = map[kernel.Family]int{kernel.IPv4: netlink.FAMILY_V4, kernel.IPv6: netlink.FAMILY_V6}

// look reads the state. The kernel is asked again if something changed while it was answering.
func (p *path) look(ctx context.Context, holders map[int]netip.Addr) (s *pathState, err error) {
	s, err = changes.Outlast(func() (*pathState, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s := &pathState{config: p.config}
		return s, s.read(holders)
	})
	if err != nil {
		return nil, fmt.Errorf("look at the path of steered packets: %w", err)
	}
	return s, nil
}

func (s *pathState) read(holders map[int]netip.Addr) error {
	if err := s.readUplink(); err != nil {
		return err
	}
	s.want = s.config.parts(s.uplink, holders)
	for _, read := range []func() error{s.readDevice, s.readSysctls, s.readEntries, s.readRoutes, s.readRules} {
		if err := read(); err != nil {
			return err
		}
	}
	sortParts(s.held)
	sortParts(s.remotes)
	return nil
}

// numberOf is the function of that name, and for a remote the number of its neighbour.
func (s *pathState) numberOf(p part) int {
	r, ok := p.(remote)
	if !ok {
		return numberOf(p)
	}
	for _, h := range s.held {
		if n, ok := h.(neighbour); ok && n.hardwareAddr == r.hardwareAddr {
			return numberOf(n)
		}
	}
	return 0
}

// uplinkState is a state of which only the uplink was read.
func (c Config) uplinkState() (*pathState, error) {
	return changes.Outlast(func() (*pathState, error) {
		s := &pathState{config: c}
		return s, s.readUplink()
	})
}

// readUplink finds the interface that has the node's address.
func (s *pathState) readUplink() error {
	node := s.config.NodeIP
	addrs, err := netlink.AddrList(nil, netlinkFamilies[kernel.FamilyOf(node)])
	if err != nil {
		return fmt.Errorf("list addresses: %w", err)
	}
	i := slices.IndexFunc(addrs, func(a netlink.Addr) bool { return kernel.AddrOf(a.IP) == node })
	if i < 0 {
		s.conflict("no interface has the node's address %s, which the other nodes know it by", node)
		return nil
	}
	link, err := netlink.LinkByIndex(addrs[i].LinkIndex)
	if err != nil {
		return fmt.Errorf("look at the interface that has %s: %w", node, err)
	}
	s.uplink = uplink{index: link.Attrs().Index, name: link.Attrs().Name, mtu: link.Attrs().MTU}
	return nil
}

func (s *pathState) conflict(format string, args ...any) {
	s.conflicts = append(s.conflicts, fmt.Sprintf(format, args...))
}

func (s *pathState) readDevice() error {
	link, err := findDevice()
	if link == nil || err != nil {
		return err
	}
	if s.steer0 = ours(link); s.steer0 == nil && s.config.Transport == Direct {
		return nil
	}
	if s.steer0 == nil {
		s.conflict("interface %s, of the type %s, is not egress SNAT's: rename or delete it", Device, link.Type())
		return nil
	}
	s.held = append(s.held, deviceOf(s.steer0))
	addrs, err := netlink.AddrList(s.steer0, netlinkFamilies[s.config.Family])
	if err != nil {
		return fmt.Errorf("list the addresses of %s: %w", Device, err)
	}
	for _, a := range addrs {
		if addr := kernel.AddrOf(a.IP); addr == innerAddr(s.config.Family, 0) {
			s.held = append(s.held, deviceAddr{addr})
		}
	}
	return nil
}

// ours returns the link if it is one that a process like this has made.
func ours(link netlink.Link) *netlink.Vxlan {
	vxlan, ok := link.(*netlink.Vxlan)
	if !ok || vxlan.VxlanId != vni {
		return nil
	}
	if mac := hardwareAddrFrom(vxlan.HardwareAddr); [2]byte(mac[:2]) != hardwareAddrPrefix {
		return nil
	}
	return vxlan
}

func deviceOf(link *netlink.Vxlan) device {
	return device{
		hardwareAddr: hardwareAddrFrom(link.HardwareAddr), mtu: link.MTU, up: link.Flags&net.FlagUp != 0,
		vxlan: tunnel{local: kernel.AddrOf(link.SrcAddr), port: uint16(link.Port), learning: link.Learning},
	}
}

// readSysctls reads those that are wanted, for nobody asks about others.
func (s *pathState) readSysctls() error {
	for _, w := range s.want {
		want, ok := w.(sysctl)
		if !ok {
			continue
		}
		value, err := readSysctl(want.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the device is not there yet
		}
		if err != nil {
			return err
		}
		s.held = append(s.held, sysctl{want.path, value})
	}
	return nil
}

// readEntries reads the neighbours, and the remotes.
func (s *pathState) readEntries() error {
	if s.steer0 == nil {
		return nil
	}
	users := map[kernel.Family]map[kernel.HardwareAddr]bool{kernel.IPv4: {}, kernel.IPv6: {}}
	for family, macs := range users {
		neighbours, err := netlink.NeighList(s.steer0.Index, netlinkFamilies[family])
		if err != nil {
			return fmt.Errorf("list the %s neighbours on %s: %w", family, Device, err)
		}
		for _, n := range neighbours {
			found := neighbour{kernel.AddrOf(n.IP), hardwareAddrFrom(n.HardwareAddr)}
			if n.State != netlink.NUD_PERMANENT || innerNumber(family, found.addr) == 0 {
				continue
			}
			macs[found.hardwareAddr] = true
			if family == s.config.Family {
				s.held = append(s.held, found)
			}
		}
	}
	mine, others := users[s.config.Family], users[otherFamily(s.config.Family)]
	entries, err := netlink.NeighList(s.steer0.Index, unix.AF_BRIDGE)
	if err != nil {
		return fmt.Errorf("list the forwarding entries of %s: %w", Device, err)
	}
	for _, e := range entries {
		found := remote{hardwareAddrFrom(e.HardwareAddr), kernel.AddrOf(e.IP)}
		s.remotes = append(s.remotes, found)
		if mac := found.hardwareAddr; mine[mac] && !others[mac] || s.wants(found.slot()) {
			s.held = append(s.held, found)
		}
	}
	return nil
}

// wants tells whether something should be in a slot.
func (s *pathState) wants(slot any) bool {
	return slices.ContainsFunc(s.want, func(p part) bool { return p.slot() == slot })
}

// readRoutes reads the routes that are ours, and finds those of others in the same tables.
func (s *pathState) readRoutes() error {
	handle, err := openRoutes()
	if err != nil {
		return err
	}
	defer handle.Close()
	ours, err := s.listRoutes(handle, netlink.Route{Protocol: routeProtocol})
	if err != nil {
		return err
	}
	tables := map[int]bool{}
	for _, p := range s.want {
		if r, ok := p.(route); ok {
			tables[r.table] = true
		}
	}
	for _, r := range ours {
		if number := r.Table - firstTable; number < 1 || number > lastNumber {
			continue
		}
		tables[r.Table] = true
		s.held = append(s.held, s.routeOf(r))
	}
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		all, err := s.listRoutes(handle, netlink.Route{Table: table})
		if err != nil {
			return err
		}
		for _, r := range all {
			if r.Protocol != routeProtocol && !s.replaces(r) {
				s.foreignRoute(r)
			}
		}
	}
	return nil
}

// replaces tells whether one of the wanted routes takes the place of a foreign one.
func (s *pathState) replaces(r netlink.Route) bool {
	bits, _ := r.Dst.Mask.Size()
	return bits == 0 && s.wants(s.routeOf(r).slot())
}

// openRoutes opens netlink so that the kernel chooses which routes it tells. Kernels before Linux 4.20 tell all, and the
// library chooses.
func openRoutes() (*netlink.Handle, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	if err := handle.SetStrictCheck(true); err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
		handle.Close()
		return nil, fmt.Errorf("have the kernel choose routes: %w", err)
	}
	return handle, nil
}

// listRoutes lists the routes that have the table or the protocol of like, whichever is set.
func (s *pathState) listRoutes(handle *netlink.Handle, like netlink.Route) ([]netlink.Route, error) {
	filter := netlink.RT_FILTER_TABLE // without it the library tells those of the table main
	if like.Protocol != 0 {
		filter |= netlink.RT_FILTER_PROTOCOL
	}
	routes, err := handle.RouteListFiltered(netlinkFamilies[s.config.Family], &like, filter)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil // there is no such table
	}
	if err != nil {
		return nil, fmt.Errorf("list the %s routes: %w", s.config.Family, err)
	}
	return routes, nil
}

// kinds are the types of routes that we make, and how they are printed.
var kinds = map[int]string{unix.RTN_UNICAST: "unicast", unix.RTN_BLACKHOLE: "blackhole", unix.RTN_PROHIBIT: "prohibit"}

func (s *pathState) routeOf(r netlink.Route) route {
	found := route{family: s.config.Family, table: r.Table, metric: uint32(r.Priority), kind: kinds[r.Type]}
	if r.Type == unix.RTN_UNICAST {
		found.via, found.device = kernel.AddrOf(r.Gw), s.nameOf(r.LinkIndex)
	}
	return found
}

// nameOf returns the name of an interface. Nearly all that are asked for are these two.
func (s *pathState) nameOf(index int) string {
	switch {
	case s.steer0 != nil && s.steer0.Index == index:
		return Device
	case s.uplink.index == index:
		return s.uplink.name
	}
	if link, err := netlink.LinkByIndex(index); err == nil {
		return link.Attrs().Name
	}
	return fmt.Sprintf("if%d", index) // it has gone meanwhile
}

func listRules(family kernel.Family) ([]netlink.Rule, error) {
	rules, err := changes.Outlast(func() ([]netlink.Rule, error) { return netlink.RuleList(netlinkFamilies[family]) })
	if err != nil {
		return nil, fmt.Errorf("list the %s rules: %w", family, err)
	}
	return rules, nil
}

// readRules reads the rules that are ours, and finds those of others that use the same bits of the mark.
func (s *pathState) readRules() error {
	rules, err := listRules(s.config.Family)
	if err != nil {
		return err
	}
	for _, r := range rules {
		mask := uint32(0)
		if r.Mask != nil {
			mask = *r.Mask
		}
		found := ipRule{family: s.config.Family, preference: r.Priority, mark: r.Mark, mask: mask, lookupTable: r.Table}
		switch {
		case isOurs(r):
			s.held = append(s.held, found)
		case s.config.clashes(r.Mark, mask):
			s.conflict("%s rule %d, with fwmark %#x/%#x, uses bits of egress SNAT's mark %#x, so packets of either would be misrouted: "+
				"delete the rule, or choose another mask with egress-snat-mark-mask",
				ipCommand(s.config.Family), r.Priority, r.Mark, mask, s.config.MarkMask)
		}
	}
	return nil
}

// isOurs tells whether a process like this has made a rule.
func isOurs(r netlink.Rule) bool {
	return r.Protocol == routeProtocol && r.Priority > firstPreference && r.Priority <= lastPreference
}

// findDevice returns nil if there is no such interface.
func findDevice() (netlink.Link, error) {
	link, err := netlink.LinkByName(Device)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for interface %s: %w", Device, err)
	}
	return link, nil
}

// isStrict tells whether an interface drops IPv4 packets from where it would not send to: its own setting and that of
// all interfaces are looked at, and the higher one counts (Documentation/networking/ip-sysctl.rst).
func isStrict(device string) (bool, error) {
	effective := 0
	for _, name := range []string{"all", device} {
		text, err := readSysctl(filterPath(name))
		if err != nil {
			return false, err
		}
		value, err := strconv.Atoi(text)
		if err != nil {
			return false, fmt.Errorf("read %s: %w", filterPath(name), err)
		}
		effective = max(effective, value)
	}
	return effective == 1, nil
}

func readSysctl(path string) (string, error) {
	value, err := os.ReadFile(filepath.Join("/proc/sys", path))
	return strings.TrimSpace(string(value)), err
}

func otherFamily(family kernel.Family) kernel.Family {
	if family == kernel.IPv4 {
		return kernel.IPv6
	}
	return kernel.IPv4
}

func hardwareAddrFrom(a net.HardwareAddr) (mac kernel.HardwareAddr) {
	copy(mac[:], a)
	return mac
}
