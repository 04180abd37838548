package ipset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// The types of sets.
const (
	addressType = "hash:ip"
	portType    = "bitmap:port"
)

// mostAddresses is the largest number of addresses that a set takes; the kernel's default is 65,536.
const mostAddresses = 1 << 20

// Set is an IP set.
type Set struct {
	// Name has at most 31 characters.
	Name string
	// Family is that of the addresses in the set. If it is empty the set has ports.
	Family kernel.Family
}

// Element is an address without a port, or a port without an address.
type Element = netip.AddrPort

// Addresses returns these addresses as elements.
func Addresses(addrs []netip.Addr) []Element {
	elements := make([]Element, 0, len(addrs))
	for _, addr := range addrs {
		elements = append(elements, netip.AddrPortFrom(addr, 0))
	}
	return elements
}

// Ports returns these ports as elements.
func Ports(ports []uint16) []Element {
	elements := make([]Element, 0, len(ports))
	for _, port := range ports {
		elements = append(elements, netip.AddrPortFrom(netip.Addr{}, port))
	}
	return elements
}

// Available tells whether the kernel has IP sets. It has the kernel load no module: without it there are none.
func Available() bool {
	_, err := os.Stat("/sys/module/ip_set")
	return err == nil
}

// Create makes the set unless there is such a one.
func (s Set) Create() error {
	kind, options := portType, netlink.IpsetCreateOptions{Replace: true, PortTo: 65535} // Replace: no error if it is there
	if s.Family != "" {
		kind, options = addressType, netlink.IpsetCreateOptions{Replace: true, Family: unix.AF_INET, MaxElements: mostAddresses}
	}
	if s.Family == kernel.IPv6 {
		options.Family = unix.AF_INET6
	}
	if err := netlink.IpsetCreate(s.Name, kind, options); err != nil {
		return fmt.Errorf("create the IP set %s: %w", s.Name, err)
	}
	return nil
}

// Read returns what the set holds, sorted; exists is false if there is no such set, as in a kernel without any. A thousand addresses take
// some 20 ms.
func (s Set) Read() (elements []Element, exists bool, err error) {
	if !Available() {
		return nil, false, nil
	}
	set, err := netlink.IpsetList(s.Name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("list the IP set %s: %w", s.Name, err)
	}
	for _, e := range set.Entries {
		addr, isAddr := netip.AddrFromSlice(e.IP)
		switch {
		case s.Family != "" && isAddr:
			elements = append(elements, netip.AddrPortFrom(addr, 0))
		case s.Family == "" && e.Port != nil:
			elements = append(elements, netip.AddrPortFrom(netip.Addr{}, *e.Port))
		}
	}
	slices.SortFunc(elements, Element.Compare)
	return elements, true, nil
}

// Add adds elements, which the set may have already. It ends at the first error.
func (s Set) Add(elements []Element) error { return s.each(nl.IPSET_CMD_ADD, elements) }

// Delete deletes elements, which the set may lack. It ends at the first error.
func (s Set) Delete(elements []Element) error { return s.each(nl.IPSET_CMD_DEL, elements) }

func (s Set) each(command int, elements []Element) error {
	for _, e := range elements {
		if err := s.change(command, e); err != nil {
			return fmt.Errorf("change %s in the IP set %s: %w", Text(e), s.Name, err)
		}
	}
	return nil
}

func (s Set) change(command int, e Element) error {
	switch {
	case s.Family == "":
		return changePort(s.Name, command, e.Port())
	case command == nl.IPSET_CMD_ADD:
		return netlink.IpsetAdd(s.Name, &netlink.IPSetEntry{IP: net.IP(e.Addr().AsSlice()), Replace: true})
	}
	return netlink.IpsetDel(s.Name, &netlink.IPSetEntry{IP: net.IP(e.Addr().AsSlice()), Replace: true})
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

// Destroy removes the set if it exists. It fails as long as a rule names the set. The kernel takes some tens of
// milliseconds.
func (s Set) Destroy() error {
	// The kernel takes as long to say that there is none.
	if _, exists, err := s.Read(); !exists {
		return err
	}
	if err := netlink.IpsetDestroy(s.Name); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("destroy the IP set %s: %w", s.Name, err)
	}
	return nil
}

// Text is an element as ipset prints it.
func Text(e Element) string {
	if e.Addr().IsValid() {
		return e.Addr().String()
	}
	return fmt.Sprint(e.Port())
}

// Payload is input of ipset restore that makes the set, for readers.
func (s Set) Payload(elements []Element) string {
	var text strings.Builder
	switch s.Family {
	case "":
		fmt.Fprintf(&text, "create %s %s range 0-65535\n", s.Name, portType)
	case kernel.IPv6:
		fmt.Fprintf(&text, "create %s %s family inet6 maxelem %d\n", s.Name, addressType, mostAddresses)
	default:
		fmt.Fprintf(&text, "create %s %s family inet maxelem %d\n", s.Name, addressType, mostAddresses)
	}
	for _, e := range elements {
		fmt.Fprintf(&text, "add %s %s\n", s.Name, Text(e))
	}
	return text.String()
}
