package nft

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"slices"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/version"
	utilkernel "k8s.io/kubernetes/pkg/util/kernel"

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
	if s.Tuple {
		fields = append(fields, f.address, nftables.TypeInetProto)
	}
	if s.Protocol {
		fields = append(fields, nftables.TypeInetProto)
	}
	if s.Other {
		fields = append(fields, f.address)
	}
	if s.Ports {
		fields = append(fields, nftables.TypeInetService, nftables.TypeInetService)
	}
	if s.From {
		fields = append(fields, nftables.TypeEtherAddr)
	}
	if s.PortRange {
		fields = append(fields, nftables.TypeInetService)
	}
	set := &nftables.Set{
		Table: t, Name: s.Name, KeyType: nftables.MustConcatSetType(fields...),
		Concatenation: len(fields) > 1, Interval: s.Ranges || s.PortRange, IsMap: s.Map,
		Dynamic: s.learned() && !s.Passing, HasTimeout: s.learned(), Timeout: s.Timeout, Size: s.Size,
	}
	switch {
	case s.Port:
		set.KeyType = nftables.TypeInetService
	case s.Hardware:
		set.KeyType = nftables.TypeEtherAddr
	}
	switch {
	case s.Chains != "":
		set.DataType = nftables.TypeVerdict
	case s.ClassIDs:
		set.DataType = nftables.TypeClassID
	case s.GivesPorts:
		set.DataType, set.DataInterval = nftables.MustConcatSetType(f.address, nftables.TypeInetService), nftPrintsIntervals()
		if !set.DataInterval {
			set.DataType.Bytes *= 2
		}
	case s.Map:
		set.DataType = f.address
	}
	return set
}

// nftPrintsIntervals tells whether nft may be told that a map's values are intervals. Versions before 0.9.9, as they come with kernels before
// Linux 5.11, abort when they list one: then nft prints their first addresses and ports alone, and not what the rule does that asks the map.
var nftPrintsIntervals = sync.OnceValue(func() bool {
	running, err := utilkernel.GetVersion()
	return err == nil && running.AtLeast(version.MajorMinor(5, 11))
})

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
	}
	element := nftables.SetElement{Key: s.keyBytes(key)}
	if s.PortRange {
		element.KeyEnd = withPort(slices.Clone(element.Key), key.Ports.Last)
		element.Key = withPort(element.Key, key.Ports.First)
	}
	switch {
	case s.GivesPorts:
		element.Val = withPort(append(withPort(value.AsSlice(), key.Ports.First), value.AsSlice()...), key.Ports.Last)
	case s.Map:
		element.Val = value.AsSlice()
	}
	return append(to, element)
}

// withPort appends a port to fields of an element.
func withPort(fields []byte, port uint16) []byte {
	return append(binary.BigEndian.AppendUint16(fields, port), 0, 0)
}

// keyBytes returns a key as the kernel has it, but for ports in a row: its fields one behind the other, each at a
// multiple of four bytes.
func (s Set) keyBytes(key Key) []byte {
	switch {
	case s.Port:
		return binary.BigEndian.AppendUint16(nil, key.Port)
	case s.Hardware:
		return key.Hardware[:]
	}
	bytes := key.Pod.AsSlice()
	if s.Protocol {
		bytes = append(bytes, Numbers[key.Protocol], 0, 0, 0)
	}
	if s.Other {
		bytes = append(bytes, key.Other.AsSlice()...)
	}
	if s.From {
		bytes = append(append(bytes, key.Hardware[:]...), 0, 0)
	}
	return bytes
}

// decode returns what an element is of a set that has no ranges; ok is false if this package does not write such
// ones.
func (s Set) decode(f Family, element []byte) (key Key, value netip.Addr, ok bool) {
	key, validKey := s.decodeKey(f, keyOf(element))
	data := attribute(element, unix.NFTA_SET_ELEM_DATA)
	if s.PortRange {
		last, validLast := s.decodeKey(f, attribute(attribute(element, nftables.NFTA_SET_ELEM_KEY_END), unix.NFTA_DATA_VALUE))
		key.Ports.Last, last.Ports = last.Ports.First, kernel.Ports{First: key.Ports.First, Last: last.Ports.First}
		validKey = validKey && validLast && last == key
	}
	if s.GivesPorts {
		value, ports, validValue := decodeGiven(f, attribute(data, unix.NFTA_DATA_VALUE))
		validValue = validValue && (!s.PortRange || ports == key.Ports)
		key.Ports = ports
		return key, value, validKey && validValue
	}
	value, validValue := s.decodeValue(data)
	return key, value, validKey && validValue
}

func keyOf(element []byte) []byte {
	return attribute(attribute(element, unix.NFTA_SET_ELEM_KEY), unix.NFTA_DATA_VALUE)
}

func (s Set) decodeKey(f Family, bytes []byte) (key Key, ok bool) {
	if s.Port {
		if len(bytes) != 2 {
			return Key{}, false
		}
		return Key{Port: binary.BigEndian.Uint16(bytes)}, true
	}
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
	if s.From {
		const padded = 8
		if len(bytes) != padded {
			return key, false
		}
		key.Hardware, bytes = kernel.HardwareAddr(bytes[:len(key.Hardware)]), nil
	}
	if s.PortRange {
		const padded = 4
		if len(bytes) != padded {
			return key, false
		}
		key.Ports.First, bytes = binary.BigEndian.Uint16(bytes), nil
	}
	return key, ok && len(bytes) == 0
}

func (s Set) decodeValue(data []byte) (value netip.Addr, ok bool) {
	switch {
	case s.Chains != "":
		return s.decodeVerdict(attribute(data, unix.NFTA_DATA_VERDICT))
	case s.Map:
		return netip.AddrFromSlice(attribute(data, unix.NFTA_DATA_VALUE))
	}
	return netip.Addr{}, len(data) == 0
}

// decodeGiven returns the address and the ports that an element gives: the first address and port, and the last ones.
func decodeGiven(f Family, data []byte) (value netip.Addr, ports kernel.Ports, ok bool) {
	half := int(f.length) + 4
	if len(data) != 2*half {
		return netip.Addr{}, ports, false
	}
	value, _ = netip.AddrFromSlice(data[:f.length]) // of either length
	last, _ := netip.AddrFromSlice(data[half : half+int(f.length)])
	ports = kernel.Ports{First: binary.BigEndian.Uint16(data[f.length:]), Last: binary.BigEndian.Uint16(data[half+int(f.length):])}
	return value, ports, last == value
}

func (s Set) decodeVerdict(verdict []byte) (value netip.Addr, ok bool) {
	if !leadsOn(verdict) {
		return netip.Addr{}, false
	}
	return addressOf(s.Chains, word(attribute(verdict, unix.NFTA_VERDICT_CHAIN)))
}

// leadsOn tells whether a verdict is to go to a chain.
func leadsOn(verdict []byte) bool {
	code := attribute(verdict, unix.NFTA_VERDICT_CODE)
	return len(code) == 4 && int32(binary.BigEndian.Uint32(code)) == unix.NFT_GOTO
}

// edge is an element of an interval set: the first address of a range, or the one behind the last.
type edge struct {
	at  netip.Addr
	end bool
}

func decodeEdge(f Family, element []byte) (e edge, ok bool) {
	key, flags := keyOf(element), attribute(element, unix.NFTA_SET_ELEM_FLAGS)
	e.at, ok = netip.AddrFromSlice(key)
	e.end = len(flags) == 4 && binary.BigEndian.Uint32(flags)&unix.NFT_SET_ELEM_INTERVAL_END != 0
	return e, ok && len(key) == int(f.length)
}

// rangesOf calls visit with the ranges that have these edges; ok is false if there are some without an end.
func rangesOf(f Family, edges []edge, visit func(Key, netip.Addr)) (ok bool) {
	slices.SortFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	if len(edges) > 0 && edges[0].end && edges[0].at.IsUnspecified() {
		edges = edges[1:] // nft begins with the end of nothing
	}
	for len(edges) > 0 {
		if edges[0].end {
			return false
		}
		key := Key{Pod: edges[0].at, Other: f.lastAddress()}
		edges = edges[1:]
		if len(edges) > 0 {
			if !edges[0].end {
				return false
			}
			key.Other = edges[0].at.Prev()
			edges = edges[1:]
		}
		visit(key, netip.Addr{})
	}
	return true
}

// lastAddress is the last that there is in the family.
func (f Family) lastAddress() netip.Addr {
	all, _ := netip.AddrFromSlice(slices.Repeat([]byte{0xff}, int(f.length)))
	return all
}
