package steering

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
)

// probeName is the device by which [pathAvailable] finds out whether the kernel has VXLAN.
const probeName = "steer0-probe"

// entry is a [neighbour] or a [remote]: to netlink both are neighbours.
type entry interface {
	netlink(link netlink.Link) *netlink.Neigh
}

// addPart adds a part, in the place of what is in its slot. It is no error if the part is there already.
func addPart(p part) error {
	switch p := p.(type) {
	case device:
		return addDevice(p)
	case sysctl:
		return writeSysctl(p)
	case route:
		r, err := p.netlink()
		if err != nil {
			return err
		}
		return netlink.RouteReplace(r)
	case ipRule:
		if err := netlink.RuleAdd(p.netlink()); !errors.Is(err, unix.EEXIST) {
			return err
		}
		return nil
	}
	link, err := netlink.LinkByName(Device)
	if err != nil {
		return err
	}
	switch p := p.(type) {
	case deviceAddr:
		return netlink.AddrReplace(link, p.netlink())
	case entry:
		return netlink.NeighSet(p.netlink(link))
	}
	return fmt.Errorf("unknown part %T", p)
}

func writeSysctl(s sysctl) error {
	err := os.WriteFile(filepath.Join("/proc/sys", s.path), []byte(s.value), 0)
	if errors.Is(err, unix.EROFS) {
		elsewhere := os.WriteFile(filepath.Join(fastpath.MachinesSysctls, s.path), []byte(s.value), 0)
		if elsewhere == nil {
			return nil
		}
		err = errors.Join(err, elsewhere)
	}
	return err
}

// removePart removes a part. The error is one of [isGone] if it is not there.
func removePart(p part) error {
	switch p := p.(type) {
	case sysctl:
		return nil // that of a device goes with it
	case route:
		r, err := p.netlink()
		if err != nil {
			return err
		}
		return netlink.RouteDel(r)
	case ipRule:
		return netlink.RuleDel(p.netlink())
	}
	link, err := findDevice()
	if link == nil || err != nil {
		return err
	}
	switch p := p.(type) {
	case device:
		return netlink.LinkDel(link)
	case deviceAddr:
		return netlink.AddrDel(link, p.netlink())
	case entry:
		return netlink.NeighDel(p.netlink(link))
	}
	return fmt.Errorf("unknown part %T", p)
}

// addDevice makes the device, and makes one that is there as it should be.
func addDevice(want device) error {
	link, err := findDevice()
	if err != nil {
		return err
	}
	if link == nil {
		return makeDevice(want)
	}
	steer0 := ours(link)
	if steer0 == nil {
		return errors.New("another one was made meanwhile")
	}
	held := deviceOf(steer0)
	if held.vxlan != want.vxlan {
		if err := netlink.LinkDel(link); err != nil && !isGone(err) {
			return err
		}
		return makeDevice(want)
	}
	if held.hardwareAddr != want.hardwareAddr {
		err = netlink.LinkSetHardwareAddr(link, want.hardwareAddr[:])
	}
	if held.mtu != want.mtu {
		err = errors.Join(err, netlink.LinkSetMTU(link, want.mtu))
	}
	if !held.up {
		err = errors.Join(err, setUp(link, want.vxlan.port))
	}
	return err
}

// makeDevice makes the device, which is not there, and sets it up.
func makeDevice(want device) error {
	other, err := vxlanWith(want.vxlan.port)
	if err != nil {
		return err
	}
	if other != "" {
		return errors.New(portOf(other, want.vxlan.port))
	}
	if err := deleteDevices(); err != nil { // somebody has given it another name
		return err
	}
	link := &netlink.Vxlan{LinkAttrs: netlink.NewLinkAttrs(), VxlanId: vni, SrcAddr: want.vxlan.local.AsSlice(), Port: int(want.vxlan.port)}
	link.Name, link.MTU, link.HardwareAddr = Device, want.mtu, want.hardwareAddr[:]
	if err := netlink.LinkAdd(link); err != nil {
		return err
	}
	// What arrives has to meet the table of its family: the path of IPv6 switches it on.
	if err := addPart(sysctl{disableIPv6, "1"}); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, netlink.LinkDel(link))
	}
	if err = setUp(link, want.vxlan.port); err != nil {
		err = errors.Join(err, netlink.LinkDel(link))
	}
	return err
}

// setUp sets the device up, which opens its port.
func setUp(link netlink.Link, port uint16) error {
	err := netlink.LinkSetUp(link)
	if errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("%s: %w", portTaken(port), err)
	}
	return err
}

// netlink has the scope link, so that the kernel never chooses the address as a packet's source.
func (a deviceAddr) netlink() *netlink.Addr {
	return &netlink.Addr{IPNet: ipNet(a.Addr, a.BitLen()), Scope: unix.RT_SCOPE_LINK}
}

func (n neighbour) netlink(link netlink.Link) *netlink.Neigh {
	return &netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: netlinkFamilies[kernel.FamilyOf(n.addr)], State: netlink.NUD_PERMANENT,
		IP: n.addr.AsSlice(), HardwareAddr: n.hardwareAddr[:],
	}
}

func (r remote) netlink(link netlink.Link) *netlink.Neigh {
	return &netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT, Flags: netlink.NTF_SELF,
		IP: r.node.AsSlice(), HardwareAddr: r.hardwareAddr[:],
	}
}

func (r route) netlink() (*netlink.Route, error) {
	all := netip.IPv4Unspecified()
	if r.family == kernel.IPv6 {
		all = netip.IPv6Unspecified()
	}
	made := &netlink.Route{
		Family: netlinkFamilies[r.family], Table: r.table, Dst: ipNet(all, 0), Priority: int(r.metric), Protocol: routeProtocol,
	}
	for number, kind := range kinds {
		if kind == r.kind {
			made.Type = number
		}
	}
	if r.kind != "unicast" {
		return made, nil
	}
	link, err := netlink.LinkByName(r.device)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", r.device, err)
	}
	made.LinkIndex, made.Gw, made.Flags = link.Attrs().Index, r.via.AsSlice(), unix.RTNH_F_ONLINK
	return made, nil
}

func (r ipRule) netlink() *netlink.Rule {
	made := netlink.NewRule()
	made.Family, made.Priority, made.Table, made.Protocol = netlinkFamilies[r.family], r.preference, r.lookupTable, routeProtocol
	made.Mark, made.Mask = r.mark, &r.mask
	return made
}

func ipNet(addr netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(bits, addr.BitLen())}
}

// cleanupPath removes what any process has made for steering, of both families. It is no error if there is nothing.
func cleanupPath(ctx context.Context) error {
	sharing.Lock()
	defer sharing.Unlock()
	var errs []error
	for family := range netlinkFamilies {
		errs = append(errs, cleanupFamily(ctx, family))
	}
	return errors.Join(append(errs, deleteDevices())...)
}

// deleteDevices deletes all interfaces that a process like this has made, whatever their names are now.
func deleteDevices() error {
	links, err := changes.Outlast(netlink.LinkList)
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	var errs []error
	for _, link := range links {
		if ours(link) == nil {
			continue
		}
		if err := netlink.LinkDel(link); err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("delete interface %s: %w", link.Attrs().Name, err))
		}
	}
	return errors.Join(errs...)
}

// cleanupFamily removes the rules and routes of a family.
func cleanupFamily(ctx context.Context, family kernel.Family) error {
	s := &pathState{config: Config{Family: family}}
	if err := s.readRules(); errors.Is(err, unix.EAFNOSUPPORT) {
		return nil // the kernel has no IPv6
	} else if err != nil {
		return err
	}
	if err := s.readRoutes(); err != nil {
		return err
	}
	sortParts(s.held)
	return replace(ctx, nil, s.held)
}

// pathAvailable returns why the kernel cannot do what a path with this configuration takes, or what of somebody else's is
// in its way; nil if it can. Nothing is left of the attempt.
func pathAvailable(ctx context.Context, c Config) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := os.Stat("/proc/sys/net/ipv6"); err != nil && c.Family == kernel.IPv6 {
		return fmt.Errorf("the kernel has no IPv6: %w", err)
	}
	sharing.Lock()
	defer sharing.Unlock()
	if err := probeRule(c); err != nil {
		return fmt.Errorf("the kernel cannot choose routes by the mark of packets (CONFIG_IP_MULTIPLE_TABLES, Linux 4.17): %w", err)
	}
	conflicts, err := c.conflictsAtStart(ctx)
	switch {
	case err != nil:
		return err
	case len(conflicts) > 0:
		return conflicts
	case c.Transport == Direct:
		return nil
	}
	return probeDevice()
}

// probeRule looks for a rule that says whose it is, as the kernel's own do. It adds none: that would slow down all packets
// of the node.
func probeRule(c Config) error {
	rules, err := listRules(c.Family)
	if err != nil {
		return err
	}
	for _, r := range rules {
		if r.Protocol != 0 {
			return nil
		}
	}
	return errors.New("no rule says whose it is")
}

// probeDevice makes a device like steer0 and deletes it.
func probeDevice() error {
	if link, err := findDevice(); err != nil || link != nil {
		return err
	}
	const unusedPort = 1 // it is opened only by a device that is up
	mac := HardwareAddrOf(netip.IPv4Unspecified())
	probe := &netlink.Vxlan{LinkAttrs: netlink.NewLinkAttrs(), VxlanId: vni, Port: unusedPort}
	probe.Name, probe.HardwareAddr = probeName, mac[:]
	if err := netlink.LinkAdd(probe); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("the kernel has no VXLAN (CONFIG_VXLAN): %w", err)
	}
	if err := netlink.LinkDel(probe); err != nil && !isGone(err) {
		return fmt.Errorf("delete interface %s: %w", probeName, err)
	}
	return nil
}
