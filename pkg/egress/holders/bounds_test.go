package holders

import (
	"encoding/binary"
	"errors"
	"maps"
	"net/netip"
	"runtime"
	"testing"
)

// largest are the datagrams of the largest statement that can be read: IPv4 addresses, always others, with the shortest epochs.
func largest(x *exchange, session, revision uint64) (list []datagram) {
	const needs = 1 + 4 + 1 // bytes of an address
	for part := range uint16(mostParts) {
		d := datagram{
			kind: statement, node: "node-a", session: session, sequence: revision, revision: revision, part: part, parts: mostParts,
			nonce: x.peers["node-a"].nonce, addresses: map[netip.Addr]uint64{},
		}
		for i := range (largestDatagram - len(datagram{node: "node-a"}.encode(ours))) / needs {
			number := (uint32(revision)*mostParts+uint32(part))<<8 + uint32(i)
			d.addresses[netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 11<<24+number)))] = 1
		}
		list = append(list, d)
	}
	return list
}

// TestAttack_UnclaimedAddressesAreBounded: of a node that says, over and over, that it has as many addresses as a statement can have, and
// always others, the last statement is kept, and no more than that of what no Service claims. It is kept because the node repeats its
// revision and no address: what a Service claims a moment later is found in it.
func TestAttack_UnclaimedAddressesAreBounded(t *testing.T) {
	x := newExchange(ofAddresses, "node-b", func() uint64 { return 7 })
	x.setPeers(v4)
	d := newDirectory()
	apply(d, timed{0, seen("node-a", true)}, timed{0, LeasesKnown{}}, timed{0, Claimed{map[netip.Addr]bool{}}})
	before, last := inUse(), Statement{}
	for revision := range uint64(20) {
		x.ask(x.peers["node-a"], at(int(revision)))
		for _, sent := range largest(x, revision+1, revision) { // of another process each time
			content := sent.encode(ours)
			if len(content) > largestDatagram {
				t.Fatalf("a datagram has %d bytes", len(content))
			}
			read, err := decode(content, ours)
			if err != nil {
				t.Fatal(err)
			}
			if _, said, _ := x.receive(read, v4["node-a"], at(int(revision))); said != nil {
				d.Apply(*said, at(int(revision)))
				last = said.Statement
			}
		}
	}
	if last.Revision != 19 || len(last.Addresses) < 10_000 {
		t.Fatalf("revision %d is known last, with %d addresses", last.Revision, len(last.Addresses))
	}
	n, p := d.nodes["node-a"], x.peers["node-a"]
	if !maps.Equal(n.direct.Addresses, last.Addresses) || len(p.said.Addresses) != len(last.Addresses) || len(p.parts) > 0 {
		t.Errorf("%d and %d addresses, and %d parts, are kept; want the %d of the last statement", len(n.direct.Addresses), len(p.said.Addresses), len(p.parts), len(last.Addresses))
	}
	if len(d.addresses)+len(d.leaving)+len(d.lost) > 0 {
		t.Errorf("of addresses that no Service claims %d are known, %d are leaving, %d are lost", len(d.addresses), len(d.leaving), len(d.lost))
	}
	if grown := inUse() - before; grown > 4<<20 {
		t.Errorf("%d KiB are kept of a node", grown>>10)
	} else {
		t.Logf("%d KiB are kept of a node that says %d addresses", grown>>10, len(last.Addresses))
	}
	for ip := range last.Addresses {
		apply(d, timed{20, Claimed{map[netip.Addr]bool{ip: true}}})
		if got := d.Holder(ip, at(20)); got.Node != "node-a" || len(d.addresses) != 1 {
			t.Errorf("a Service claims %s: %+v, and %d addresses are known", ip, got, len(d.addresses))
		}
		break
	}
	runtime.KeepAlive(x)
}

// inUse is how many bytes of memory are.
func inUse() int {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// TestDatagram_SignedButTooShort: what is signed as it should be, and is empty, or ends within its header, cannot be read.
func TestDatagram_SignedButTooShort(t *testing.T) {
	whole := datagram{kind: statement, node: "node-a", session: 1, sequence: 1, revision: 1, parts: 1}.encode(ours)
	for length := range fixedLength {
		if d, err := decode(ours.sign(whole[:length:length]), ours); err == nil {
			t.Errorf("%d bytes are read as %+v", length, d)
		}
	}
	for _, b := range [][]byte{nil, {}, signature(ours[0], nil), ours.sign(nil), make([]byte, fixedLength)} {
		if d, err := decode(b, ours); !errors.Is(err, errUnreadable) {
			t.Errorf("%d bytes are read as %+v, %v", len(b), d, err)
		}
	}
}
