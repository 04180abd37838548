package conntrack

import (
	"encoding/binary"
	"net/netip"
	"syscall"
)

// Attributes of an entry: linux/netfilter/nfnetlink_conntrack.h. Those of the kernel's own
// selection are newer than what the library knows.
const (
	attrOriginal = 1  // CTA_TUPLE_ORIG
	attrReply    = 2  // CTA_TUPLE_REPLY
	attrStatus   = 3  // CTA_STATUS
	attrProtocol = 4  // CTA_PROTOINFO
	attrID       = 12 // CTA_ID
	attrZone     = 18 // CTA_ZONE
	attrFilter   = 25 // CTA_FILTER

	tupleAddresses = 1 // CTA_TUPLE_IP
	tupleProtocol  = 2 // CTA_TUPLE_PROTO
	tupleZone      = 3 // CTA_TUPLE_ZONE

	sourceV4      = 1 // CTA_IP_V4_SRC
	destinationV4 = 2 // CTA_IP_V4_DST
	sourceV6      = 3 // CTA_IP_V6_SRC
	destinationV6 = 4 // CTA_IP_V6_DST

	protocolNumber  = 1 // CTA_PROTO_NUM
	sourcePort      = 2 // CTA_PROTO_SRC_PORT
	destinationPort = 3 // CTA_PROTO_DST_PORT

	protocolTCP   = 1 // CTA_PROTOINFO_TCP
	stateTCP      = 1 // CTA_PROTOINFO_TCP_STATE
	flagsOriginal = 4 // CTA_PROTOINFO_TCP_FLAGS_ORIGINAL
	flagsReply    = 5 // CTA_PROTOINFO_TCP_FLAGS_REPLY

	filterOriginal = 1 // CTA_FILTER_ORIG_FLAGS
	filterReply    = 2 // CTA_FILTER_REPLY_FLAGS
	filterSource   = 1 // CTA_FILTER_F_CTA_IP_SRC, net/netfilter/nf_internals.h
)

const (
	headerLength  = 16 // of a netlink message
	generalLength = 4  // of nfgenmsg, which comes before the attributes
	attrHeader    = 4
	attrType      = 0x3fff // without the flags NLA_F_NESTED and NLA_F_NET_BYTEORDER
)

// message is a netlink message.
type message struct {
	kind, flags uint16
	sequence    uint32
	body        []byte
}

// nextMessage takes the first message off datagram; not ok if there is no whole one.
func nextMessage(datagram []byte) (m message, rest []byte, ok bool) {
	if len(datagram) < headerLength {
		return message{}, nil, false
	}
	length := uint64(binary.NativeEndian.Uint32(datagram))
	if length < headerLength || length > uint64(len(datagram)) {
		return message{}, nil, false
	}
	return message{
		kind:     binary.NativeEndian.Uint16(datagram[4:]),
		flags:    binary.NativeEndian.Uint16(datagram[6:]),
		sequence: binary.NativeEndian.Uint32(datagram[8:]),
		body:     datagram[headerLength:length],
	}, datagram[min(aligned(int(length)), len(datagram)):], true
}

// errorOf returns the error that m tells, which is of kind NLMSG_DONE or NLMSG_ERROR. Neither
// need say that there is none.
func errorOf(m message) error {
	if len(m.body) < 4 {
		return nil
	}
	if errno := int32(binary.NativeEndian.Uint32(m.body)); errno != 0 {
		return syscall.Errno(-errno)
	}
	return nil
}

// attribute is a netlink attribute.
type attribute struct {
	kind uint16
	// value is what it says, whole that with its header and without padding.
	value, whole []byte
}

// nextAttribute takes the first attribute off attributes; not ok if there is no whole one.
func nextAttribute(attributes []byte) (a attribute, rest []byte, ok bool) {
	if len(attributes) < attrHeader {
		return attribute{}, nil, false
	}
	length := int(binary.NativeEndian.Uint16(attributes))
	if length < attrHeader || length > len(attributes) {
		return attribute{}, nil, false
	}
	return attribute{
		kind:  binary.NativeEndian.Uint16(attributes[2:]) & attrType,
		value: attributes[attrHeader:length],
		whole: attributes[:length],
	}, attributes[min(aligned(length), len(attributes)):], true
}

// aligned is where the next message or attribute begins after one of length bytes.
func aligned(length int) int { return (length + 3) &^ 3 }

// tracked is an entry of the table. Its bytes belong to the message that told it.
type tracked struct {
	Flow
	ends
	// reply, zone and id are attributes that name the entry; zone is nil for zone 0.
	reply, zone, id []byte
	// flags are what the kernel knows of each side of a TCP connection.
	flags [2]uint8
}

// ends are the two sides of an entry, as the node sees what they send.
type ends struct {
	// original is what packets of the flow's source have, replying what those of the far side have.
	original, replying tuple
	// state is that of a TCP connection.
	state uint8
	// replied: the far side has sent something.
	replied bool
}

// connected tells that either end of a TCP connection may still think that it has one
// (linux/netfilter/nf_conntrack_tcp.h: from TCP_CONNTRACK_SYN_RECV to TCP_CONNTRACK_LAST_ACK).
func (e *ends) connected() bool { return e.state >= 2 && e.state <= 6 }

// over tells that both ends of a TCP connection have ended it, or one has reset it (TCP_CONNTRACK_TIME_WAIT and TCP_CONNTRACK_CLOSE).
func (e *ends) over() bool { return e.state == 7 || e.state == 8 }

// decode reads the body of a message that tells an entry. It allocates nothing. What the
// message lacks, or tells in another shape than the kernel does, is missing in the result.
func decode(body []byte) (t tracked) {
	if len(body) < generalLength {
		return tracked{}
	}
	for a, rest, ok := nextAttribute(body[generalLength:]); ok; a, rest, ok = nextAttribute(rest) {
		switch a.kind {
		case attrOriginal:
			t.original = decodeTuple(a.value)
			t.Protocol, t.Source, t.To = t.original.protocol, t.original.source.Addr(), t.original.destination
			t.Zone |= t.original.zone
		case attrReply:
			t.replying = decodeTuple(a.value)
			t.reply, t.Destination, t.SeenAs = a.whole, t.replying.source, t.replying.destination.Addr()
			t.Zone |= t.replying.zone
		case attrProtocol:
			t.state, t.flags = decodeTCP(a.value)
		case attrStatus:
			t.replied = len(a.value) >= 4 && binary.BigEndian.Uint32(a.value)&statusReplied != 0
		case attrZone:
			t.zone, t.Zone = a.whole, t.Zone|port(a.value)
		case attrID:
			t.id = a.whole
		}
	}
	t.Answered, t.KeepsPort = t.replied, t.original.source.Port() == t.replying.destination.Port()
	return t
}

// tuple is what packets have in one direction of an entry. Ports are 0 for protocols without.
type tuple struct {
	protocol            uint8
	source, destination netip.AddrPort
	// zone is told here if the entry has one in this direction only.
	zone uint16
}

func decodeTuple(attributes []byte) (t tuple) {
	var source, destination netip.Addr
	var from, to uint16
	for a, rest, ok := nextAttribute(attributes); ok; a, rest, ok = nextAttribute(rest) {
		switch a.kind {
		case tupleAddresses:
			source, destination = decodeAddresses(a.value)
		case tupleProtocol:
			t.protocol, from, to = decodePorts(a.value)
		case tupleZone:
			t.zone = port(a.value)
		}
	}
	t.source, t.destination = netip.AddrPortFrom(source, from), netip.AddrPortFrom(destination, to)
	return t
}

func decodeAddresses(attributes []byte) (source, destination netip.Addr) {
	for a, rest, ok := nextAttribute(attributes); ok; a, rest, ok = nextAttribute(rest) {
		switch a.kind {
		case sourceV4, sourceV6:
			source = address(a.value)
		case destinationV4, destinationV6:
			destination = address(a.value)
		}
	}
	return source, destination
}

func decodePorts(attributes []byte) (protocol uint8, source, destination uint16) {
	for a, rest, ok := nextAttribute(attributes); ok; a, rest, ok = nextAttribute(rest) {
		switch {
		case a.kind == protocolNumber && len(a.value) > 0:
			protocol = a.value[0]
		case a.kind == sourcePort:
			source = port(a.value)
		case a.kind == destinationPort:
			destination = port(a.value)
		}
	}
	return protocol, source, destination
}

// decodeTCP returns the state of a TCP connection and the flags of both sides, 0 for other protocols.
func decodeTCP(attributes []byte) (state uint8, flags [2]uint8) {
	info, rest, ok := nextAttribute(attributes)
	for ok && info.kind != protocolTCP {
		info, rest, ok = nextAttribute(rest)
	}
	for a, rest, ok := nextAttribute(info.value); ok; a, rest, ok = nextAttribute(rest) {
		switch {
		case len(a.value) == 0:
		case a.kind == stateTCP:
			state = a.value[0]
		case a.kind == flagsOriginal:
			flags[0] = a.value[0]
		case a.kind == flagsReply:
			flags[1] = a.value[0]
		}
	}
	return state, flags
}

// address returns the zero Addr for what is no address.
func address(value []byte) netip.Addr {
	switch len(value) {
	case 4:
		return netip.AddrFrom4([4]byte(value))
	case 16:
		return netip.AddrFrom16([16]byte(value)) // an IPv4-mapped one of IPv6 stays that: it has 16 bytes in keys, too
	}
	return netip.Addr{}
}

// port reads a port or a zone; 0 for what is none.
func port(value []byte) uint16 {
	if len(value) < 2 {
		return 0
	}
	return binary.BigEndian.Uint16(value)
}

// nameable tells that the kernel can be told which entry t is.
func (t *tracked) nameable() bool { return len(t.reply) > attrHeader && len(t.id) > attrHeader }

// appendName appends the attributes that the kernel finds t by, and nothing but t: the reply
// tuple has the address that the flow uses, so that one with the same source port which uses
// another one by now is not found. The id alone does not tell them apart for certain:
// it is made of the entry's address in memory and its original tuple.
func (t *tracked) appendName(b []byte) []byte {
	for _, whole := range [...][]byte{t.reply, t.zone, t.id} {
		b = append(b, whole...)
		b = append(b, make([]byte, aligned(len(whole))-len(whole))...)
	}
	return b
}
