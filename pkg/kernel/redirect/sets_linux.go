package redirect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// The types of the IP sets.
const (
	addressType = "hash:ip"
	portType    = "bitmap:port"
)

// ipSets are a family's IP sets, in the network namespace of the thread.
type ipSets struct {
	family kernel.Family
	names  setNames
}

// read returns what the sets hold. One that does not exist holds nothing. With a thousand nodes it takes some 20 ms.
func (s ipSets) read() (c setContents, err error) {
	for name, addresses := range map[string]*[]netip.Addr{s.names.nodes: &c.nodes, s.names.direct: &c.direct} {
		entries, _, listErr := list(name)
		for _, e := range entries {
			if addr, ok := netip.AddrFromSlice(e.IP); ok {
				*addresses = append(*addresses, addr)
			}
		}
		slices.SortFunc(*addresses, netip.Addr.Compare)
		err = errors.Join(err, listErr)
	}
	for name, ports := range map[string]*[]uint16{s.names.secure: &c.secure, s.names.insecure: &c.insecure} {
		entries, _, listErr := list(name)
		for _, e := range entries {
			if e.Port != nil {
				*ports = append(*ports, *e.Port)
			}
		}
		slices.Sort(*ports)
		err = errors.Join(err, listErr)
	}
	return c, err
}

func list(name string) (entries []netlink.IPSetEntry, exists bool, err error) {
	set, err := netlink.IpsetList(name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("list the IP set %s: %w", name, err)
	}
	return set.Entries, true, nil
}

// write makes the sets, which hold what was held, hold want, element by element: see the package's documentation for
// the order.
func (s ipSets) write(held setContents, want kernel.Redirects) (changed bool, err error) {
	if err := s.create(want.Others); err != nil {
		return false, err
	}
	nodes, name := held.nodes, s.names.nodes
	if want.Others {
		nodes, name = held.direct, s.names.direct
	}
	w := &setWriter{}
	stop, start := without(nodes, want.Nodes), without(want.Nodes, nodes)
	if want.Others {
		w.addresses(name, netlink.IpsetAdd, start)
	} else {
		w.addresses(name, netlink.IpsetDel, stop)
	}
	all := slices.Concat(want.Secure.Ports, want.Insecure.Ports)
	w.ports(s.names.secure, nl.IPSET_CMD_DEL, without(held.secure, all))
	w.ports(s.names.insecure, nl.IPSET_CMD_DEL, without(held.insecure, all))
	w.ports(s.names.secure, nl.IPSET_CMD_ADD, without(want.Secure.Ports, held.secure))
	w.ports(s.names.insecure, nl.IPSET_CMD_ADD, without(want.Insecure.Ports, held.insecure))
	w.ports(s.names.secure, nl.IPSET_CMD_DEL, both(held.secure, want.Insecure.Ports))
	w.ports(s.names.insecure, nl.IPSET_CMD_DEL, both(held.insecure, want.Secure.Ports))
	if want.Others {
		w.addresses(name, netlink.IpsetDel, stop)
	} else {
		w.addresses(name, netlink.IpsetAdd, start)
	}
	return w.changed, w.err
}

// create makes the sets that do not exist.
func (s ipSets) create(others bool) error {
	family, nodes := uint8(unix.AF_INET), s.names.nodes
	if s.family == kernel.IPv6 {
		family = unix.AF_INET6
	}
	if others {
		nodes = s.names.direct
	}
	create := func(name, kind string, options netlink.IpsetCreateOptions) error {
		options.Replace = true // no error if there is such a set
		if err := netlink.IpsetCreate(name, kind, options); err != nil {
			return fmt.Errorf("create the IP set %s: %w", name, err)
		}
		return nil
	}
	ports := netlink.IpsetCreateOptions{PortTo: 65535}
	return errors.Join(
		create(nodes, addressType, netlink.IpsetCreateOptions{Family: family, MaxElements: mostAddresses}),
		create(s.names.secure, portType, ports),
		create(s.names.insecure, portType, ports))
}

// destroy removes these sets, if they exist. It fails for one that a rule still names. The kernel takes some tens of
// milliseconds, also to say that there is none.
func destroy(names ...string) error {
	var errs []error
	for _, name := range names {
		if _, exists, err := list(name); !exists {
			errs = append(errs, err)
			continue
		}
		if err := netlink.IpsetDestroy(name); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("destroy the IP set %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// destroyAll removes all sets of a family. Where the kernel has no IP sets there are none.
func destroyAll(family kernel.Family) error {
	if _, _, err := netlink.IpsetProtocol(); err != nil {
		return nil
	}
	names := setNamesOf(family)
	return destroy(names.nodes, names.direct, names.secure, names.insecure)
}

// setWriter changes sets until something fails.
type setWriter struct {
	changed bool
	err     error
}

func (w *setWriter) addresses(name string, change func(name string, entry *netlink.IPSetEntry) error, addrs []netip.Addr) {
	for _, addr := range addrs {
		w.do(name, func() error { return change(name, &netlink.IPSetEntry{IP: net.IP(addr.AsSlice()), Replace: true}) })
	}
}

func (w *setWriter) ports(name string, command int, ports []uint16) {
	for _, port := range ports {
		w.do(name, func() error { return changePort(name, command, port) })
	}
}

func (w *setWriter) do(name string, change func() error) {
	if w.err != nil {
		return
	}
	if err := change(); err != nil {
		w.err = fmt.Errorf("change the IP set %s: %w", name, err)
		return
	}
	w.changed = true
}

// changePort adds a port to a set, or deletes it. The library adds a protocol, which a bitmap does not take.
func changePort(name string, command int, port uint16) error {
	request := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_IPSET<<8|command, unix.NLM_F_ACK)
	request.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_NETLINK, Version: nl.NFNETLINK_V0})
	request.AddData(nl.NewRtAttr(nl.IPSET_ATTR_PROTOCOL, nl.Uint8Attr(nl.IPSET_PROTOCOL)))
	request.AddData(nl.NewRtAttr(nl.IPSET_ATTR_SETNAME, nl.ZeroTerminated(name)))
	data := nl.NewRtAttr(nl.IPSET_ATTR_DATA|unix.NLA_F_NESTED, nil)
	data.AddChild(nl.NewRtAttr(nl.IPSET_ATTR_PORT|unix.NLA_F_NET_BYTEORDER, binary.BigEndian.AppendUint16(nil, port)))
	request.AddData(data)
	_, err := request.Execute(unix.NETLINK_NETFILTER, 0)
	return err
}

// without returns the elements of a that b lacks, and both those that b has.
func without[T comparable](a, b []T) []T { return filter(a, b, false) }
func both[T comparable](a, b []T) []T    { return filter(a, b, true) }

func filter[T comparable](a, b []T, keep bool) (result []T) {
	in := make(map[T]bool, len(b))
	for _, x := range b {
		in[x] = true
	}
	for _, x := range a {
		if in[x] == keep {
			result = append(result, x)
		}
	}
	return result
}
