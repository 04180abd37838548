package holders

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// datagram is what nodes send each other. On the wire it is, with all numbers in network byte order:
//
//	"OEA"                     3 bytes
//	version                   1 byte; 1
//	signed                    1 byte; 1: a signature follows. Versions that sent 0 are not believed
//	kind                      1 byte; 1 to 3 about addresses, 4 to 6 about blocks, in this order. Versions that do not know the latter
//	                          do not read these, and understand the former
//	session, sequence, revision, nonce    8 bytes each
//	part, parts               2 bytes each
//	node                      1 byte, its length, and the name
//	addresses                 each 1 byte, 4 or 6, the address, and the epoch as a varint; or
//	blocks                    each 1 byte, 4 or 6, the pod's address, the egress IP, the first port in 2 bytes, and the binary logarithm
//	                          of the number of ports in 1 byte, and 16 more if it is the pod's second block
//	signature                 32 bytes: HMAC-SHA256 of everything in front of it
type datagram struct {
	about topic
	kind  kind
	// node is the name of the sender.
	node string
	// session is a random number that a process has for its life, sequence grows with each round of
	// datagrams that it sends.
	session, sequence uint64
	// revision is that of the statement that the sender makes now.
	revision uint64
	// nonce is the number that a question has, and the answer to it; 0 if nobody has asked.
	nonce uint64
	// part of parts: a statement needs several datagrams if it has many addresses.
	part, parts uint16
	addresses   map[netip.Addr]uint64
	blocks      []kernel.Block
}

// topic is what datagrams are about. What nodes say of one says nothing of another.
type topic byte

const (
	ofAddresses topic = 0 // which ones a node has
	ofBlocks    topic = 1 // which source ports of egress IPs its pods have
	topics            = 2
)

// kind is a kind of [datagram].
type kind byte

const (
	question  kind = 1 // for a statement
	heartbeat kind = 2 // says that the statement of a revision still holds
	statement kind = 3 // has a part of a statement
	kinds          = 3
)

const (
	magic           = "OEA"
	protocolVersion = 1
	signed          = 1
	// mostParts is how many a statement has at most: some thousand addresses. More are announced in the Lease alone.
	mostParts   = 64
	fixedLength = len(magic) + 3 + 4*8 + 2*2 + 1
	// largestDatagram fits, with the headers of IPv6 and UDP, into the MTU that every network has that
	// carries IPv6.
	largestDatagram = 1200
)

var errUnreadable = errors.New("no announcement, or one of another version")

// errTooLong is why a statement is not announced.
var errTooLong = fmt.Errorf("they do not fit into %d datagrams of %d bytes, the most that a node accepts", mostParts, largestDatagram)

// encode returns the datagram as it is sent. There must be a key.
func (d datagram) encode(keys Keys) []byte {
	b := append(make([]byte, 0, largestDatagram), magic...)
	b = append(b, protocolVersion, signed, byte(d.kind)+kinds*byte(d.about))
	for _, n := range []uint64{d.session, d.sequence, d.revision, d.nonce} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, d.part), d.parts)
	b = append(append(b, byte(len(d.node))), d.node...)
	for _, ip := range slices.SortedFunc(maps.Keys(d.addresses), netip.Addr.Compare) {
		b = append(append(b, familyOf(ip)), ip.AsSlice()...)
		b = binary.AppendUvarint(b, d.addresses[ip])
	}
	for _, block := range d.blocks {
		b = append(append(append(b, familyOf(block.Pod)), block.Pod.AsSlice()...), block.EgressIP.AsSlice()...)
		size := byte(bits.Len16(block.Ports.Last - block.Ports.First))
		if block.Second {
			size |= secondBlock
		}
		b = append(binary.BigEndian.AppendUint16(b, block.Ports.First), size)
	}
	return keys.sign(b)
}

// secondBlock is added to the size of a pod's second block.
const secondBlock = 16

func familyOf(ip netip.Addr) byte {
	if ip.Is4() {
		return 4
	}
	return 6
}

// decode reads a datagram that is signed with one of the keys. It is errUnreadable or errUnauthenticated otherwise.
func decode(b []byte, keys Keys) (datagram, error) {
	if len(b) < fixedLength || string(b[:len(magic)]) != magic || b[len(magic)] != protocolVersion {
		return datagram{}, errUnreadable
	}
	if b[len(magic)+1] != signed {
		return datagram{}, errUnauthenticated
	}
	b, err := keys.verify(b)
	if err != nil {
		return datagram{}, err
	}
	if len(b) < fixedLength {
		return datagram{}, errUnreadable
	}
	sent := b[len(magic)+2] - 1 // the least is 1; 0 becomes too large
	d := datagram{about: topic(sent / kinds), kind: kind(sent%kinds + 1)}
	if d.about >= topics {
		return datagram{}, errUnreadable
	}
	b = b[len(magic)+3:]
	for _, n := range []*uint64{&d.session, &d.sequence, &d.revision, &d.nonce} {
		*n, b = binary.BigEndian.Uint64(b), b[8:]
	}
	d.part, d.parts, b = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), b[4:]
	length := int(b[0])
	if b = b[1:]; len(b) < length {
		return datagram{}, errUnreadable
	}
	d.node = string(b[:length])
	if b = b[length:]; d.about == ofBlocks {
		d.blocks, err = decodeBlocks(b)
	} else {
		d.addresses, err = decodeAddresses(b)
	}
	if err != nil {
		return datagram{}, err
	}
	return d, d.check()
}

func decodeAddresses(b []byte) (map[netip.Addr]uint64, error) {
	addresses := map[netip.Addr]uint64{}
	for len(b) > 0 {
		length := 16
		if b[0] == 4 {
			length = 4
		}
		if b[0] != 4 && b[0] != 6 || len(b) < 1+length {
			return nil, errUnreadable
		}
		ip, _ := netip.AddrFromSlice(b[1 : 1+length]) // these lengths never fail
		epoch, n := binary.Uvarint(b[1+length:])
		if n <= 0 || epoch == 0 || epoch > MaxEpoch || ip.Is4In6() {
			return nil, errUnreadable
		}
		addresses[ip] = epoch
		b = b[1+length+n:]
	}
	return addresses, nil
}

func decodeBlocks(b []byte) (list []kernel.Block, err error) {
	for len(b) > 0 {
		length := 16
		if b[0] == 4 {
			length = 4
		}
		if b[0] != 4 && b[0] != 6 || len(b) < 1+2*length+3 {
			return nil, errUnreadable
		}
		pod, _ := netip.AddrFromSlice(b[1 : 1+length]) // these lengths never fail
		egressIP, _ := netip.AddrFromSlice(b[1+length : 1+2*length])
		b = b[1+2*length:]
		first, size := binary.BigEndian.Uint16(b), b[2]
		second := size&secondBlock != 0
		size &^= secondBlock
		block := kernel.Block{Pod: pod, EgressIP: egressIP, Ports: kernel.Ports{First: first, Last: first + 1<<(size%16) - 1}, Second: second}
		if size >= 16 || portblocks.ValidateBlock(block) != nil {
			return nil, errUnreadable
		}
		list, b = append(list, block), b[3:]
	}
	return list, nil
}

// check returns errUnreadable if no node sends such a datagram.
func (d datagram) check() error {
	switch {
	case d.node == "" || d.revision > maxRevision:
	case d.kind == question && d.nonce != 0 && len(d.addresses)+len(d.blocks) == 0:
		return nil
	case d.kind == heartbeat && len(d.addresses)+len(d.blocks) == 0:
		return nil
	case d.kind == statement && d.part < d.parts && d.parts <= mostParts:
		return nil
	}
	return errUnreadable
}

// split returns the datagrams that have a statement, of addresses or of blocks: like d, with a part of it in each. There may be more
// than mostParts.
func (d datagram) split(s Statement, of ...kernel.Block) (list []datagram) {
	d.kind, d.revision = statement, s.Revision
	room, whole := 0, largestDatagram-fixedLength-len(d.node)-sha256.Size
	for _, ip := range slices.SortedFunc(maps.Keys(s.Addresses), netip.Addr.Compare) {
		needs := 1 + len(ip.AsSlice()) + len(binary.AppendUvarint(nil, s.Addresses[ip]))
		if room -= needs; len(list) == 0 || room < 0 {
			d.addresses = map[netip.Addr]uint64{}
			list, room = append(list, d), whole-needs
		}
		d.addresses[ip] = s.Addresses[ip]
	}
	for _, block := range of {
		needs := 1 + 2*len(block.Pod.AsSlice()) + 3
		if room -= needs; len(list) == 0 || room < 0 {
			d.blocks = nil
			list, room = append(list, d), whole-needs
		}
		list[len(list)-1].blocks = append(list[len(list)-1].blocks, block)
	}
	if len(list) == 0 {
		list = []datagram{d}
	}
	for i := range list {
		list[i].part, list[i].parts = uint16(i), uint16(len(list))
	}
	return list
}
