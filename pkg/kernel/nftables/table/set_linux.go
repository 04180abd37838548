package table

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Numbers of the protocols in a packet. That of all is for sets that no packet meets: 0 is IPv6's
// hop-by-hop options, which no binding is about.
var Numbers = map[kernel.Protocol]byte{kernel.TCP: unix.IPPROTO_TCP, kernel.UDP: unix.IPPROTO_UDP, kernel.SCTP: unix.IPPROTO_SCTP, kernel.All: 0}

// elementsInMessage: an attribute takes 64 KiB.
const elementsInMessage = 400

// definition returns a set as the library has it.
func (s Set) definition(t *nftables.Table, f Family) *nftables.Set {
	fields := []nftables.SetDatatype{f.address}
	if s.Protocol {
		fields = append(fields, nftables.TypeInetProto)
	}
	if s.Other {
		fields = append(fields, f.address)
	}
	set := &nftables.Set{
		Table: t, Name: s.Name, KeyType: nftables.MustConcatSetType(fields...),
		Concatenation: len(fields) > 1, Interval: s.Ranges, IsMap: s.Map,
	}
	if s.Hardware {
		set.KeyType = nftables.TypeEtherAddr
	}
	switch {
	case s.Chains != "":
		set.DataType = nftables.TypeVerdict
	case s.Map:
		set.DataType = f.address
	}
	return set
}

// messages returns elements as the kernel has them, as many at a time as a message takes. What it
// yields must not be kept.
func (s Set) messages(elements Elements) iter.Seq[[]nftables.SetElement] {
	return func(yield func([]nftables.SetElement) bool) {
		encoded := make([]nftables.SetElement, 0, min(2*len(elements), elementsInMessage+1))
		for key, value := range elements {
			encoded = s.encode(encoded, key, value)
			if len(encoded) >= elementsInMessage {
				if !yield(encoded) {
					return
				}
				encoded = encoded[:0]
			}
		}
		if len(encoded) > 0 {
			yield(encoded)
		}
	}
}

// encode appends an element as the kernel has it: a range as two.
func (s Set) encode(to []nftables.SetElement, key Key, value netip.Addr) []nftables.SetElement {
	switch {
	case s.Ranges:
		to = append(to, nftables.SetElement{Key: key.Pod.AsSlice()})
		if end := key.Other.Next(); end.IsValid() {
			to = append(to, nftables.SetElement{Key: end.AsSlice(), IntervalEnd: true})
		}
		return to
	case s.Chains != "":
		verdict := &expr.Verdict{Kind: expr.VerdictGoto, Chain: ChainOf(s.Chains, value)}
		return append(to, nftables.SetElement{Key: s.keyBytes(key), VerdictData: verdict})
	case s.Map:
		return append(to, nftables.SetElement{Key: s.keyBytes(key), Val: value.AsSlice()})
	}
	return append(to, nftables.SetElement{Key: s.keyBytes(key)})
}

// keyBytes returns a key as the kernel has it: its fields one behind the other, each at a
// multiple of four bytes.
func (s Set) keyBytes(key Key) []byte {
	if s.Hardware {
		return key.Hardware[:]
	}
	bytes := key.Pod.AsSlice()
	if s.Protocol {
		bytes = append(bytes, Numbers[key.Protocol], 0, 0, 0)
	}
	if s.Other {
		bytes = append(bytes, key.Other.AsSlice()...)
	}
	return bytes
}

// decode returns the elements of a set; ok is false if there is one that this package does not
// write.
func (s Set) decode(f Family, encoded []nftables.SetElement) (elements Elements, ok bool) {
	if s.Ranges {
		return decodeRanges(f, encoded)
	}
	elements = make(Elements, len(encoded))
	for _, e := range encoded {
		key, validKey := s.decodeKey(f, e.Key)
		value, validValue := s.decodeValue(e.Val)
		if !validKey || !validValue {
			return elements, false
		}
		elements[key] = value
	}
	return elements, true
}

func (s Set) decodeKey(f Family, bytes []byte) (key Key, ok bool) {
	if s.Hardware {
		return Key{Hardware: kernel.HardwareAddr(append(slices.Clone(bytes), key.Hardware[:]...))}, len(bytes) == len(key.Hardware)
	}
	take := func() netip.Addr {
		if len(bytes) < int(f.length) {
			return netip.Addr{}
		}
		addr, _ := netip.AddrFromSlice(bytes[:f.length]) // of either length
		bytes = bytes[f.length:]
		return addr
	}
	key.Pod = take()
	ok = key.Pod.IsValid()
	if s.Protocol {
		if len(bytes) < 4 {
			return key, false
		}
		number := binary.LittleEndian.Uint32(bytes)
		bytes = bytes[4:]
		known := false
		for protocol, n := range Numbers {
			if number == uint32(n) {
				key.Protocol, known = protocol, true
			}
		}
		ok = ok && known
	}
	if s.Other {
		key.Other = take()
		ok = ok && key.Other.IsValid()
	}
	return key, ok && len(bytes) == 0
}

func (s Set) decodeValue(bytes []byte) (value netip.Addr, ok bool) {
	switch {
	case s.Chains != "":
		return s.decodeVerdict(bytes)
	case s.Map:
		return netip.AddrFromSlice(bytes)
	}
	return netip.Addr{}, len(bytes) == 0
}

// decodeVerdict reads the attributes of a verdict: its code (type 1), and the name of a chain (type 2).
func (s Set) decodeVerdict(bytes []byte) (value netip.Addr, ok bool) {
	const header, code = 4, 4
	if len(bytes) < 2*header+code || int32(binary.BigEndian.Uint32(bytes[header:])) != unix.NFT_GOTO {
		return netip.Addr{}, false
	}
	return addressOf(s.Chains, strings.TrimRight(string(bytes[2*header+code:]), "\x00"))
}

// decodeRanges reads an interval set: the first address of each range, and the one behind the last.
func decodeRanges(f Family, encoded []nftables.SetElement) (elements Elements, ok bool) {
	type edge struct {
		at  netip.Addr
		end bool
	}
	var edges []edge
	for _, e := range encoded {
		at, valid := netip.AddrFromSlice(e.Key)
		if !valid || len(e.Key) != int(f.length) {
			return nil, false
		}
		edges = append(edges, edge{at, e.IntervalEnd})
	}
	slices.SortFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	if len(edges) > 0 && edges[0].end && edges[0].at.IsUnspecified() {
		edges = edges[1:] // nft begins with the end of nothing
	}
	elements = Elements{}
	for len(edges) > 0 {
		if edges[0].end {
			return elements, false
		}
		key := Key{Pod: edges[0].at, Other: f.lastAddress()}
		edges = edges[1:]
		if len(edges) > 0 {
			if !edges[0].end {
				return elements, false
			}
			key.Other = edges[0].at.Prev()
			edges = edges[1:]
		}
		elements[key] = netip.Addr{}
	}
	return elements, true
}

// lastAddress is the last that there is in the family.
func (f Family) lastAddress() netip.Addr {
	all, _ := netip.AddrFromSlice(slices.Repeat([]byte{0xff}, int(f.length)))
	return all
}
