package neighbor

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/ndp"
)

// message is what is sent in a frame: the destination and the payload.
type message struct {
	to      net.HardwareAddr
	payload []byte
}

var (
	broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	noMAC     = make(net.HardwareAddr, 6)
)

// question asks who has an address: an ARP probe (RFC 5227, 2.1.1), or a neighbour solicitation from a link-local address of
// this host. One from no address, as in duplicate address detection, would be answered to all hosts, and take the
// address away from another one that has it as well (RFC 4861, 7.2.4); it is what is left if there is no such address.
func question(mac net.HardwareAddr, local, ip netip.Addr) (message, error) {
	if ip.Is4() {
		return arpMessage(arp.OperationRequest, mac, netip.IPv4Unspecified(), noMAC, ip)
	}
	to, err := ndp.SolicitedNodeMulticast(ip)
	if err != nil {
		return message{}, fmt.Errorf("make a solicitation for %s: %w", ip, err)
	}
	if !local.IsValid() {
		return ndpMessage(&ndp.NeighborSolicitation{TargetAddress: ip}, netip.IPv6Unspecified(), to)
	}
	source := &ndp.LinkLayerAddress{Direction: ndp.Source, Addr: mac}
	return ndpMessage(&ndp.NeighborSolicitation{TargetAddress: ip, Options: []ndp.Option{source}}, local, to)
}

// advertisements say that an address is here: both forms of gratuitous ARP (RFC 5227, 3), since some hosts heed
// only one of them, or an unsolicited advertisement (RFC 4861, 7.2.6).
func advertisements(mac net.HardwareAddr, ip netip.Addr) ([]message, error) {
	if !ip.Is4() {
		m, err := ndpMessage(&ndp.NeighborAdvertisement{
			Override: true, TargetAddress: ip,
			Options: []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: mac}},
		}, ip, netip.IPv6LinkLocalAllNodes())
		return []message{m}, err
	}
	request, err := arpMessage(arp.OperationRequest, mac, ip, noMAC, ip)
	if err != nil {
		return nil, err
	}
	reply, err := arpMessage(arp.OperationReply, mac, ip, broadcast, ip)
	return []message{request, reply}, err
}

func arpMessage(operation arp.Operation, mac net.HardwareAddr, sender netip.Addr, targetMAC net.HardwareAddr, target netip.Addr) (message, error) {
	packet, err := arp.NewPacket(operation, mac, sender, targetMAC, target)
	if err != nil {
		return message{}, fmt.Errorf("make an ARP packet for %s: %w", target, err)
	}
	payload, err := packet.MarshalBinary()
	return message{broadcast, payload}, err
}

const (
	ipv6HeaderLength = 40
	icmpv6           = 58
	// hopLimit of neighbour discovery shows that no router has forwarded the packet.
	hopLimit = 255
)

func ndpMessage(m ndp.Message, from, to netip.Addr) (message, error) {
	body, err := ndp.MarshalMessageChecksum(m, from, to)
	if err != nil {
		return message{}, fmt.Errorf("make a message of neighbour discovery: %w", err)
	}
	packet := make([]byte, 0, ipv6HeaderLength+len(body))
	packet = append(packet, 0x60, 0, 0, 0) // version 6
	packet = binary.BigEndian.AppendUint16(packet, uint16(len(body)))
	packet = append(packet, icmpv6, hopLimit)
	packet = append(packet, from.AsSlice()...)
	packet = append(packet, to.AsSlice()...)
	group := to.As16()
	mac := net.HardwareAddr{0x33, 0x33, group[12], group[13], group[14], group[15]} // RFC 2464, 7
	return message{mac, append(packet, body...)}, nil
}

// arpAnswer returns which address an ARP packet says that a host has, and its MAC.
func arpAnswer(payload []byte) (ip netip.Addr, mac net.HardwareAddr, ok bool) {
	var packet arp.Packet
	if err := packet.UnmarshalBinary(payload); err != nil || packet.SenderIP.IsUnspecified() {
		return netip.Addr{}, nil, false
	}
	return packet.SenderIP, packet.SenderHardwareAddr, true
}

// ndpAnswer returns which address an IPv6 packet advertises, and the MAC; that of the frame's sender unless the
// advertisement has one.
func ndpAnswer(packet []byte, sender net.HardwareAddr) (ip netip.Addr, mac net.HardwareAddr, ok bool) {
	if len(packet) < ipv6HeaderLength || packet[6] != icmpv6 || packet[7] != hopLimit {
		return netip.Addr{}, nil, false
	}
	m, err := ndp.ParseMessage(packet[ipv6HeaderLength:])
	advertisement, is := m.(*ndp.NeighborAdvertisement)
	if err != nil || !is {
		return netip.Addr{}, nil, false
	}
	for _, option := range advertisement.Options {
		if link, is := option.(*ndp.LinkLayerAddress); is {
			sender = link.Addr
		}
	}
	return advertisement.TargetAddress, sender, true
}
