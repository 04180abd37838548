package conntrack

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

// attr is an attribute as the kernel sends it, with its padding.
func attr(kind uint16, values ...[]byte) []byte {
	value := slices.Concat(values...)
	b := binary.NativeEndian.AppendUint16(nil, uint16(attrHeader+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, aligned(len(b))-len(b))...)
}

// parts are those of a message that tells an entry; each has a name.
type parts struct {
	source, destination, seenAs, sourcePort, port, protocol, state, zone, originalZone, replyZone, id []byte
}

const nested = 1 << 15 // NLA_F_NESTED

// bodyOf is the message's.
func bodyOf(family kernel.Family, p parts) []byte {
	src, dst := uint16(sourceV4), uint16(destinationV4)
	if family == kernel.IPv6 {
		src, dst = sourceV6, destinationV6
	}
	optional := func(kind uint16, value []byte) []byte {
		if value == nil {
			return nil
		}
		return attr(kind, value)
	}
	tuple := func(kind uint16, source, destination, from, zone []byte) []byte {
		return attr(nested|kind,
			attr(nested|tupleAddresses, optional(src, source), optional(dst, destination)),
			attr(nested|tupleProtocol, optional(protocolNumber, p.protocol), optional(sourcePort, from), attr(destinationPort, []byte{9, 9})),
			optional(tupleZone, zone))
	}
	return slices.Concat([]byte{2, 0, 0, 0},
		tuple(attrOriginal, p.source, p.destination, p.sourcePort, p.originalZone),
		tuple(attrReply, p.destination, p.seenAs, p.port, p.replyZone),
		attr(3, []byte{0, 0, 1, 14}), // CTA_STATUS
		attr(nested|attrProtocol, attr(nested|protocolTCP, attr(9, []byte{9}), optional(stateTCP, p.state))),
		optional(attrID, p.id), optional(attrZone, p.zone))
}

// wholeParts are of a flow of n.pod that is seen as the node's address.
func wholeParts(n network) parts {
	return parts{
		source: addr(n.pod).AsSlice(), destination: addr(n.outside).AsSlice(), seenAs: addr(n.node).AsSlice(),
		sourcePort: []byte{8, 8}, port: []byte{1, 187}, protocol: []byte{tcp}, id: []byte{1, 2, 3, 4},
	}
}

func TestDecode_WholeEntries(t *testing.T) {
	for family, n := range networks {
		whole := flow(tcp, n.pod, n.outside, n.node)
		to := func(port uint16) Flow {
			f := whole
			f.Destination, f.To = netip.AddrPortFrom(addr(n.outside), port), netip.AddrPortFrom(addr(n.outside), 9<<8+9)
			return f
		}
		portless := to(0)
		portless.Protocol = esp
		for name, test := range map[string]struct {
			change func(*parts)
			want   Flow
		}{
			"whole":                 {func(*parts) {}, to(443)},
			"without ports":         {func(p *parts) { p.protocol, p.port = []byte{esp}, nil }, portless},
			"with its own port":     {func(p *parts) { p.sourcePort = []byte{9, 9} }, keepsPort(to(443))},
			"in a zone":             {func(p *parts) { p.zone = []byte{1, 2} }, inZone(258, to(443))},
			"in a zone as it asks":  {func(p *parts) { p.originalZone = []byte{0, 7} }, inZone(7, to(443))},
			"in a zone as answered": {func(p *parts) { p.replyZone = []byte{0, 8} }, inZone(8, to(443))},
		} {
			p := wholeParts(n)
			test.change(&p)
			got := decode(bodyOf(family, p))
			if diff := cmp.Diff(test.want, got.Flow, compareNetip); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", family, name, diff)
			}
			if !got.nameable() {
				t.Errorf("%s, %s: nobody can name it", family, name)
			}
		}
	}
}

func TestDecode_TellsBothEnds(t *testing.T) {
	for family, n := range networks {
		p := wholeParts(n)
		p.originalZone, p.state = []byte{0, 7}, []byte{3} // TCP_CONNTRACK_ESTABLISHED
		at := func(ip string, port uint16) netip.AddrPort { return netip.AddrPortFrom(addr(ip), port) }
		want := ends{
			original: tuple{tcp, at(n.pod, 0x808), at(n.outside, 0x909), 7},
			replying: tuple{tcp, at(n.outside, 443), at(n.node, 0x909), 0},
			state:    3,
			replied:  true,
		}
		if got := decode(bodyOf(family, p)).ends; got != want {
			t.Errorf("%s: got %+v, want %+v", family, got, want)
		}
	}
}

// TestEnds_Connected: a connection that nobody has answered yet, or that both sides have ended, is none.
func TestEnds_Connected(t *testing.T) {
	for state, want := range []bool{false, false, true, true, true, true, true, false, false, false} {
		if e := (ends{state: uint8(state)}); e.connected() != want {
			t.Errorf("state %d: %t", state, e.connected())
		}
	}
}

// TestDecode_MaimedEntries: whatever the kernel left out, or the message was cut off, nothing panics
// and nothing is deleted.
func TestDecode_MaimedEntries(t *testing.T) {
	for family, n := range networks {
		s := NewSelector(n.plan(binding(n.pod, kernel.All, n.egressIP)), Scope{All: true}, kernel.CIDRSet{})
		deletes := func(body []byte) bool {
			entry := decode(body)
			return s.Judge(entry.Flow) == Ends && entry.nameable()
		}
		body := bodyOf(family, wholeParts(n))
		if !deletes(body) {
			t.Errorf("%s: the whole one is not deleted", family)
		}
		maimed := map[string]func(*parts){
			"no source":          func(p *parts) { p.source = nil },
			"no destination":     func(p *parts) { p.destination = nil },
			"no identity":        func(p *parts) { p.seenAs = nil },
			"half a source":      func(p *parts) { p.source = p.source[:2] },
			"half a destination": func(p *parts) { p.destination = p.destination[:2] },
			"half an identity":   func(p *parts) { p.seenAs = p.seenAs[:2] },
			"no id":              func(p *parts) { p.id = nil },
			"an empty id":        func(p *parts) { p.id = []byte{} },
			"nothing":            func(p *parts) { *p = parts{} },
		}
		for _, name := range slices.Sorted(maps.Keys(maimed)) {
			p := wholeParts(n)
			maimed[name](&p)
			if deletes(bodyOf(family, p)) {
				t.Errorf("%s, %s: deleted", family, name)
			}
		}
		for length := range body {
			if deletes(body[:length]) {
				t.Errorf("%s: deleted, with only %d bytes of %d", family, length, len(body))
			}
		}
	}
}

func TestDecode_AllocatesNothing(t *testing.T) {
	for family, n := range networks {
		body := bodyOf(family, wholeParts(n))
		name := make([]byte, 0, len(body))
		if got := testing.AllocsPerRun(100, func() {
			entry := decode(body)
			name = entry.appendName(name[:0])
		}); got != 0 {
			t.Errorf("%s: %v allocations", family, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for family, n := range networks {
		p := wholeParts(n)
		p.zone, p.replyZone = []byte{0, 1}, []byte{0, 2}
		for _, body := range [][]byte{bodyOf(family, wholeParts(n)), bodyOf(family, p)} {
			header := binary.NativeEndian.AppendUint32(nil, uint32(headerLength+len(body)))
			f.Add(slices.Concat(header, make([]byte, headerLength-4), body))
		}
	}
	f.Fuzz(func(t *testing.T, datagram []byte) {
		for m, rest, ok := nextMessage(datagram); ok; m, rest, ok = nextMessage(rest) {
			if len(rest) >= len(datagram) {
				t.Fatal("it does not get on")
			}
			_ = errorOf(m)
			entry := decode(m.body)
			if !entry.nameable() {
				continue
			}
			// What the kernel is asked to delete by is the same entry's, to the byte.
			again := decode(append([]byte{2, 0, 0, 0}, entry.appendName(nil)...))
			again.Protocol, again.Source = entry.Protocol, entry.Source // of the original tuple
			if again.SeenAs != entry.SeenAs || again.Destination != entry.Destination || !slices.Equal(again.reply, entry.reply) || !slices.Equal(again.id, entry.id) {
				t.Fatalf("it has the name of another:\n%+v\n%+v", entry, again)
			}
		}
	})
}
