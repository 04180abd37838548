package nftables

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// layout is what the table of a family is made of.
type layout struct {
	table *nftables.Table
	chain *nftables.Chain
	sets  map[string]*nftables.Set
	// What differs between the families: where a packet has its addresses, and the registers
	// that follow a first one which holds one, and a second one which holds a protocol.
	sourceOffset, destinationOffset, length, second, third uint32
	natFamily                                              uint32
}

// chainName is that of the only chain.
const chainName = "postrouting"

// priority is that of the chain: before everybody's at srcnat.
var priority = *nftables.ChainPriorityNATSource - 1

func newLayout(family kernel.Family) *layout {
	l := &layout{sourceOffset: 12, destinationOffset: 16, length: 4, second: unix.NFT_REG32_01, third: unix.NFT_REG32_02, natFamily: unix.NFPROTO_IPV4}
	tableFamily, address := nftables.TableFamilyIPv4, nftables.TypeIPAddr
	if family == kernel.IPv6 {
		l.sourceOffset, l.destinationOffset, l.length, l.natFamily = 8, 24, 16, unix.NFPROTO_IPV6
		l.second, l.third = unix.NFT_REG32_04, unix.NFT_REG32_05
		tableFamily, address = nftables.TableFamilyIPv6, nftables.TypeIP6Addr
	}
	l.table = &nftables.Table{Name: Table, Family: tableFamily}
	policy := nftables.ChainPolicyAccept
	l.chain = &nftables.Chain{
		Name: chainName, Table: l.table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: &priority, Policy: &policy,
	}
	concat := nftables.MustConcatSetType
	l.sets = map[string]*nftables.Set{
		exclusionsSet: {KeyType: address, Interval: true},
		egressIPsSet:  {KeyType: address},
		ownSet:        {KeyType: concat(address, nftables.TypeInetProto, address), Concatenation: true},
		ownPodsSet:    {KeyType: concat(address, address), Concatenation: true},
		bindingsMap:   {KeyType: concat(address, nftables.TypeInetProto), Concatenation: true, IsMap: true, DataType: address},
		podsMap:       {KeyType: address, IsMap: true, DataType: address},
		removedSet:    {KeyType: concat(address, nftables.TypeInetProto, address), Concatenation: true},
	}
	for name, set := range l.sets {
		set.Name, set.Table = name, l.table
	}
	return l
}

// rule is one of the chain, with a mark by which it is known again.
type rule struct {
	mark  string
	exprs []expr.Any
}

// The rules' marks. One that is changed needs another mark: the number is the version.
const (
	bindingMark       = "openshift-egress 2 binding"
	bindingAmongMark  = "openshift-egress 2 binding, to an egress IP"
	podMark           = "openshift-egress 2 pod"
	podAmongMark      = "openshift-egress 2 pod, to an egress IP"
	firstRegister     = unix.NFT_REG_1 // where keys begin
	egressIPRegister  = unix.NFT_REG_3
	recipientRegister = unix.NFT_REG_4 // the destination
)

// rules returns those of the chain for a content. Whether the source is bound is asked first: who is
// not is through with one look at the map, and one at the egress IPs.
func (l *layout) rules(c Content) []rule {
	source, destination := l.load(l.sourceOffset, firstRegister), l.load(l.destinationOffset, recipientRegister)
	protocol := []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: l.second}}
	var rules []rule
	if len(c[bindingsMap]) > 0 {
		key, own := slices.Concat(source, protocol), l.load(l.destinationOffset, l.third)
		rules = append(rules,
			rule{bindingMark, slices.Concat(key, egressIP(bindingsMap), destination, outside(exclusionsSet, egressIPsSet), l.snat())},
			rule{bindingAmongMark, slices.Concat(destination, inside(egressIPsSet), outside(exclusionsSet), key, own, notOwn(ownSet), egressIP(bindingsMap), l.snat())})
	}
	if len(c[podsMap]) > 0 {
		key, own := source, l.load(l.destinationOffset, l.second)
		rules = append(rules,
			rule{podMark, slices.Concat(key, egressIP(podsMap), destination, outside(exclusionsSet, egressIPsSet), l.snat())},
			rule{podAmongMark, slices.Concat(destination, inside(egressIPsSet), outside(exclusionsSet), key, own, notOwn(ownPodsSet), egressIP(podsMap), l.snat())})
	}
	return rules
}

// load loads an address of the packet into a register.
func (l *layout) load(offset, register uint32) []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: l.length}}
}

// inside lets packets pass whose destination is in a set, outside those whose is in none of them.
func inside(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: recipientRegister, SetName: set}}
}

func outside(sets ...string) []expr.Any {
	var exprs []expr.Any
	for _, set := range sets {
		exprs = append(exprs, &expr.Lookup{SourceRegister: recipientRegister, SetName: set, Invert: true})
	}
	return exprs
}

// notOwn lets packets pass that are not to their source's own egress IP.
func notOwn(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: firstRegister, SetName: set, Invert: true}}
}

// egressIP lets packets pass whose key is in a map, and loads what that has for it.
func egressIP(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: firstRegister, DestRegister: egressIPRegister, IsDestRegSet: true, SetName: set}}
}

// snat gives the packet the address that was loaded.
func (l *layout) snat() []expr.Any {
	return []expr.Any{&expr.NAT{Type: expr.NATTypeSourceNAT, Family: l.natFamily, RegAddrMin: egressIPRegister, FullyRandom: true}}
}

// numbers of the protocols in a packet. That of all is for the journal alone: 0 is IPv6's
// hop-by-hop options, which no binding is about.
var numbers = map[kernel.Protocol]byte{kernel.TCP: unix.IPPROTO_TCP, kernel.UDP: unix.IPPROTO_UDP, kernel.SCTP: unix.IPPROTO_SCTP, kernel.All: 0}

// messages returns the elements of a set as the kernel has them, as many at a time as a message
// takes. What it yields must not be kept.
func messages(set string, elements Elements) iter.Seq[[]nftables.SetElement] {
	return func(yield func([]nftables.SetElement) bool) {
		encoded := make([]nftables.SetElement, 0, min(2*len(elements), elementsInMessage+1))
		for key, value := range elements {
			encoded = encode(encoded, set, key, value)
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

// encode appends an element of a set as the kernel has it: a range as two.
func encode(to []nftables.SetElement, set string, key Key, value netip.Addr) []nftables.SetElement {
	switch set {
	case exclusionsSet:
		to = append(to, nftables.SetElement{Key: key.Pod.AsSlice()})
		if end := key.Other.Next(); end.IsValid() {
			to = append(to, nftables.SetElement{Key: end.AsSlice(), IntervalEnd: true})
		}
		return to
	case bindingsMap, podsMap:
		return append(to, nftables.SetElement{Key: keyBytes(set, key), Val: value.AsSlice()})
	}
	return append(to, nftables.SetElement{Key: keyBytes(set, key)})
}

// keyBytes returns a key as the kernel has it: its fields one behind the other, each at a
// multiple of four bytes.
func keyBytes(set string, key Key) []byte {
	bytes := key.Pod.AsSlice()
	if hasProtocol(set) {
		bytes = append(bytes, numbers[key.Protocol], 0, 0, 0)
	}
	if hasOther(set) {
		bytes = append(bytes, key.Other.AsSlice()...)
	}
	return bytes
}

// hasProtocol and hasOther tell which fields a set's keys have behind the pod.
func hasProtocol(set string) bool { return set == bindingsMap || set == ownSet || set == removedSet }
func hasOther(set string) bool    { return set == ownSet || set == ownPodsSet || set == removedSet }

// decode returns the elements of a set; ok is false if there is one that this package does not
// write.
func (l *layout) decode(set string, encoded []nftables.SetElement) (elements Elements, ok bool) {
	if set == exclusionsSet {
		return l.decodeRanges(encoded)
	}
	elements = make(Elements, len(encoded))
	for _, e := range encoded {
		key, valid := l.decodeKey(set, e.Key)
		value, hasValue := netip.AddrFromSlice(e.Val)
		if !valid || hasValue != l.sets[set].IsMap {
			return elements, false
		}
		elements[key] = value
	}
	return elements, true
}

func (l *layout) decodeKey(set string, bytes []byte) (key Key, ok bool) {
	take := func() netip.Addr {
		if len(bytes) < int(l.length) {
			return netip.Addr{}
		}
		addr, _ := netip.AddrFromSlice(bytes[:l.length]) // of either length
		bytes = bytes[l.length:]
		return addr
	}
	key.Pod = take()
	ok = key.Pod.IsValid()
	if hasProtocol(set) {
		if len(bytes) < 4 {
			return key, false
		}
		number := binary.LittleEndian.Uint32(bytes)
		bytes = bytes[4:]
		known := false
		for protocol, n := range numbers {
			if number == uint32(n) {
				key.Protocol, known = protocol, true
			}
		}
		ok = ok && known
	}
	if hasOther(set) {
		key.Other = take()
		ok = ok && key.Other.IsValid()
	}
	return key, ok && len(bytes) == 0
}

// decodeRanges reads an interval set: the first address of each range, and the one behind the last.
func (l *layout) decodeRanges(encoded []nftables.SetElement) (elements Elements, ok bool) {
	type edge struct {
		at  netip.Addr
		end bool
	}
	var edges []edge
	for _, e := range encoded {
		at, valid := netip.AddrFromSlice(e.Key)
		if !valid || len(e.Key) != int(l.length) {
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
		key := Key{Pod: edges[0].at, Other: l.lastAddress()}
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
func (l *layout) lastAddress() netip.Addr {
	all, _ := netip.AddrFromSlice(slices.Repeat([]byte{0xff}, int(l.length)))
	return all
}
