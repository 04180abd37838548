//go:build linux

package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// DoWithoutRights is [Host.Do] as a user without any right: what a container in the network of its node can do that has no
// capability. fn must not rely on more than one thread.
func (h *Host) DoWithoutRights(fn func() error) error {
	return h.Do(func() error { // the thread cannot come back, so it ends
		const nobody = 65534
		for _, call := range []struct {
			name   string
			number uintptr
			ids    [3]uintptr
		}{
			{"setgroups", unix.SYS_SETGROUPS, [3]uintptr{}},
			{"setresgid", unix.SYS_SETRESGID, [3]uintptr{nobody, nobody, nobody}},
			{"setresuid", unix.SYS_SETRESUID, [3]uintptr{nobody, nobody, nobody}},
		} { // of this thread: those of the library are of all
			if _, _, errno := unix.RawSyscall(call.number, call.ids[0], call.ids[1], call.ids[2]); errno != 0 {
				return fmt.Errorf("%s: %w", call.name, errno)
			}
		}
		return fn()
	})
}

// DoWithoutRawSockets is Do in a thread that may not open raw sockets, and may do all else.
func (h *Host) DoWithoutRawSockets(fn func() error) error {
	return h.Do(func() error {
		header, had := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		if err := unix.Capget(&header, &had[0]); err != nil {
			return fmt.Errorf("capget: %w", err)
		}
		without := had
		without[0].Effective &^= 1 << unix.CAP_NET_RAW
		if err := unix.Capset(&header, &without[0]); err != nil {
			return fmt.Errorf("capset: %w", err)
		}
		err := fn()
		return errors.Join(err, unix.Capset(&header, &had[0]))
	})
}

// SendUDP sends a datagram from the network of the thread in which it is called by [Host.Do], to whatever address: by the
// host's interface where an address does not say which one. A source that is valid need not be the host's, where the kernel
// allows that.
func (h *Host) SendUDP(source netip.Addr, to netip.AddrPort, payload []byte) error {
	return h.SendUDPFrom(netip.AddrPortFrom(source, 0), to, payload)
}

// SendUDPFrom is SendUDP from a port; from any if it is 0.
func (h *Host) SendUDPFrom(source, to netip.AddrPort, payload []byte) (err error) {
	device, err := net.InterfaceByName(h.dev)
	if err != nil {
		return err
	}
	v6 := to.Addr().Is6()
	domain, level, transparent, freebind := unix.AF_INET, unix.IPPROTO_IP, unix.IP_TRANSPARENT, unix.IP_FREEBIND
	if v6 {
		domain, level, transparent, freebind = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_TRANSPARENT, unix.IPV6_FREEBIND
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
		return err
	}
	if !v6 && to.Addr().IsMulticast() {
		if err := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(device.Index)}); err != nil {
			return err
		}
	}
	if !v6 && to.Addr() == limitedBroadcast { // any process may, once
		if err := unix.BindToDevice(fd, device.Name); err != nil {
			return err
		}
	}
	if !v6 { // a tunnel's datagrams have no checksum in IPv4
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
			return err
		}
	}
	if source.Addr().IsValid() {
		err := unix.SetsockoptInt(fd, level, transparent, 1)
		if errors.Is(err, unix.EPERM) { // without rights the address has to be one of the host's when it sends
			err = unix.SetsockoptInt(fd, level, freebind, 1)
		}
		if err != nil {
			return err
		}
		if err := unix.Bind(fd, SocketAddress(source, device.Index)); err != nil {
			return err
		}
	}
	return unix.Sendto(fd, payload, 0, SocketAddress(to, device.Index))
}

// limitedBroadcast is that of the link (RFC 919).
var limitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// SocketAddress is an address for system calls, on a link if it is one of links.
func SocketAddress(addr netip.AddrPort, link int) unix.Sockaddr {
	if addr.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	}
	to := &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
	if addr.Addr().IsLinkLocalMulticast() || addr.Addr().IsLinkLocalUnicast() {
		to.ZoneId = uint32(link)
	}
	return to
}

// SendBehindAH sends an IPv6 datagram that has an Authentication Header (RFC 4302) in front, as an address of the host. That takes the right
// to open raw sockets.
func (h *Host) SendBehindAH(from, to netip.AddrPort, data string) (err error) {
	device, err := net.InterfaceByName(h.dev)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_AH)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := unix.Bind(fd, SocketAddress(netip.AddrPortFrom(from.Addr(), 0), device.Index)); err != nil {
		return err
	}
	const words = 4 // of 4 bytes: what comes next, the words but for two, security parameters, number, and nothing that proves anything
	header := [4 * words]byte{unix.IPPROTO_UDP, words - 2, 7: 1, 11: 1}
	return unix.Sendto(fd, append(header[:], Datagram(from, to, data)[headerIPv6:]...), 0, SocketAddress(netip.AddrPortFrom(to.Addr(), 0), device.Index))
}

// Wrapped is what a datagram to the tunnel has inside (RFC 7348): another one, in a frame from one hardware address to another.
func Wrapped(network uint32, receiver, sender net.HardwareAddr, from, to netip.AddrPort, data string) []byte {
	etherType := uint16(unix.ETH_P_IPV6)
	if from.Addr().Is4() {
		etherType = unix.ETH_P_IP
	}
	packet := binary.BigEndian.AppendUint32([]byte{0x08, 0, 0, 0}, network<<8)
	packet = append(packet, ethernet(receiver, sender, etherType)...)
	return append(packet, Datagram(from, to, data)...)
}

// Datagram is an IP packet with a datagram of UDP.
func Datagram(from, to netip.AddrPort, data string) []byte {
	datagram := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from.Port()), to.Port())
	datagram = append(binary.BigEndian.AppendUint16(datagram, uint16(8+len(data))), 0, 0)
	return Packet(from.Addr(), to.Addr(), unix.IPPROTO_UDP, append(datagram, data...), 6)
}

// Packet is an IP packet with a segment of another protocol. It fills in the segment's checksum, at an index where that has zeros; the checksum
// includes the addresses, as those of TCP, UDP and ICMPv6 do.
func Packet(from, to netip.Addr, protocol byte, segment []byte, sum int) []byte {
	const hops = 64
	length := len(segment)
	binary.BigEndian.PutUint16(segment[sum:], checksum(pseudoHeader(from, to, protocol, length), segment))
	header := []byte{0x60, 0, 0, 0, byte(length >> 8), byte(length), protocol, hops}
	if from.Is4() {
		length += headerIPv4
		header = []byte{0x45, 0, byte(length >> 8), byte(length), 0, 0, 0, 0, hops, protocol, 0, 0}
	}
	header = append(append(header, from.AsSlice()...), to.AsSlice()...)
	if from.Is4() {
		binary.BigEndian.PutUint16(header[10:], checksum(header))
	}
	return append(header, segment...)
}

// The lengths of IP headers without options.
const (
	headerIPv4 = 20
	headerIPv6 = 40
)
