//go:build linux

package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// MoveAddr moves an address from one host to another, as VRRP does: the first drops it, then the
// second takes it and says so.
func (l *Lab) MoveAddr(addr netip.Addr, from, to *Host) error {
	if err := from.DropAddr(addr); err != nil {
		return err
	}
	return to.TakeAddr(addr)
}

// TakeAddr is [Lab.AddAddr] that also tells the network: hosts that knew the address at another
// place send to this host from now on.
func (h *Host) TakeAddr(addr netip.Addr) error {
	if err := h.lab.AddAddr(h, addr); err != nil {
		return err
	}
	return h.advertise(addr)
}

// DropAddr takes an address away from a host that AddAddr or TakeAddr gave it to.
func (h *Host) DropAddr(addr netip.Addr) error {
	link, err := h.nl.LinkByName(h.dev)
	if err == nil {
		err = h.nl.AddrDel(link, netlinkAddr(netip.PrefixFrom(addr, addr.BitLen())))
	}
	if err != nil {
		return fmt.Errorf("%s: delete address %s: %w", h.Name, addr, err)
	}
	return nil
}

// Held are the addresses on interfaces of a host that answer ARP: not on loopback, and not where ARP is off.
func (h *Host) Held() ([]netip.Addr, error) {
	links, err := h.nl.LinkList()
	if err != nil {
		return nil, fmt.Errorf("%s: list interfaces: %w", h.Name, err)
	}
	silent := map[int]bool{}
	for _, link := range links {
		silent[link.Attrs().Index] = link.Attrs().RawFlags&(unix.IFF_LOOPBACK|unix.IFF_NOARP) != 0
	}
	addrs, err := h.nl.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("%s: list addresses: %w", h.Name, err)
	}
	var held []netip.Addr
	for _, a := range addrs {
		if addr, ok := netip.AddrFromSlice(a.IP); ok && !silent[a.LinkIndex] {
			held = append(held, addr.Unmap())
		}
	}
	return held, nil
}

// advertise sends a gratuitous ARP in both its forms (RFC 5227, section 3), or an unsolicited
// neighbour advertisement (RFC 4861, section 7.2.6).
func (h *Host) advertise(addr netip.Addr) error {
	link, err := h.nl.LinkByName(h.dev)
	if err != nil {
		return fmt.Errorf("%s: find %s: %w", h.Name, h.dev, err)
	}
	mac := link.Attrs().HardwareAddr
	frames := [][]byte{advertisement(mac, addr)}
	if addr.Is4() {
		frames = [][]byte{gratuitousARP(mac, addr, arpRequest), gratuitousARP(mac, addr, arpReply)}
	}
	if err := h.Do(func() error { return sendFrames(link, frames) }); err != nil {
		return fmt.Errorf("%s: advertise %s: %w", h.Name, addr, err)
	}
	return nil
}

// sendFrames sends Ethernet frames as they are.
func sendFrames(link netlink.Link, frames [][]byte) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for _, frame := range frames {
		err = errors.Join(err, unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index, Halen: 6}))
	}
	return errors.Join(err, unix.Close(fd))
}

const (
	arpRequest, arpReply = 1, 2
	ethernetHeader       = 14 // destination, source, EtherType
)

var everybody = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// ethernet begins a frame.
func ethernet(to, from net.HardwareAddr, etherType uint16) []byte {
	return binary.BigEndian.AppendUint16(append(append([]byte{}, to...), from...), etherType)
}

// gratuitousARP says that an IPv4 address is at a hardware address.
func gratuitousARP(mac net.HardwareAddr, addr netip.Addr, operation byte) []byte {
	frame := ethernet(everybody, mac, unix.ETH_P_ARP)
	frame = append(frame, 0, 1, 8, 0, 6, 4, 0, operation) // Ethernet, IPv4, the lengths of their addresses
	frame = append(append(frame, mac...), addr.AsSlice()...)
	return append(append(frame, everybody...), addr.AsSlice()...)
}

// advertisement says that an IPv6 address is at a hardware address.
func advertisement(mac net.HardwareAddr, addr netip.Addr) []byte {
	const override, targetLinkLayerAddress = 0x20, 2
	message := append([]byte{icmpv6Advertisement, 0, 0, 0, override, 0, 0, 0}, addr.AsSlice()...)
	message = append(append(message, targetLinkLayerAddress, 1), mac...)
	allNodes := netip.IPv6LinkLocalAllNodes()
	packet := Packet(addr, allNodes, unix.IPPROTO_ICMPV6, message, 2)
	packet[7] = 255 // hops, which say that it comes from the same link
	return append(ethernet(net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, mac, unix.ETH_P_IPV6), packet...)
}

// pseudoHeader is what checksums include of the IP header (RFC 9293, section 3.1, and RFC 8200,
// section 8.1).
func pseudoHeader(src, dst netip.Addr, protocol byte, length int) []byte {
	header := append(src.AsSlice(), dst.AsSlice()...)
	if src.Is4() {
		return append(header, 0, protocol, byte(length>>8), byte(length))
	}
	return append(header, 0, 0, byte(length>>8), byte(length), 0, 0, 0, protocol)
}

// checksum is the Internet's (RFC 1071) of what follows each other, in parts of even length but for the last.
func checksum(parts ...[]byte) uint16 {
	sum := uint32(0)
	for _, part := range parts {
		for i, b := range part {
			sum += uint32(b) << (8 * ((i + 1) % 2))
		}
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
