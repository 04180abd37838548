package steerer

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// alike returns another address that has the same hardware address in the tunnel.
func alike(t *testing.T, as netip.Addr) netip.Addr {
	t.Helper()
	const basis, prime = 2166136261, 16777619 // of FNV-1a with 32 bits
	inverse := uint32(1)
	for range 5 { // by Newton
		inverse *= 2 - prime*inverse
	}
	at := steering.HardwareAddrOf(as)
	want := binary.BigEndian.Uint32(at[2:])
	found := netip.MustParseAddr("2001:db8:bad::").As16()
	forward := func(h uint32, bytes []byte) uint32 {
		for _, b := range bytes {
			h = (h ^ uint32(b)) * prime
		}
		return h
	}
	// Forwards to the middle, and backwards from the end: any four bytes and four more meet soon.
	middle := map[uint32][4]byte{}
	for i := range uint32(1 << 17) {
		var bytes [4]byte
		binary.BigEndian.PutUint32(bytes[:], i)
		middle[forward(basis, append(slices.Clone(found[:8]), bytes[:]...))] = bytes
	}
	for i := range uint32(1 << 24) {
		var bytes [4]byte
		binary.BigEndian.PutUint32(bytes[:], i)
		h := want
		for _, b := range slices.Backward(bytes[:]) {
			h = h*inverse ^ uint32(b)
		}
		if begin, meets := middle[h]; meets {
			copy(found[8:], begin[:])
			copy(found[12:], bytes[:])
			return netip.AddrFrom16(found)
		}
	}
	t.Fatal("no address was found")
	return netip.Addr{}
}

// TestSteerer_NodesAlike: a node with the address of this one, or with one that cannot be told from another node's in the tunnel, neither gets
// packets nor counts as a sender, and takes that from nobody else.
func TestSteerer_NodesAlike(t *testing.T) {
	victim := netip.MustParseAddr("2001:db8::3")
	for name, test := range map[string]struct {
		outer v1.IPFamily
		ip    netip.Addr
		why   string
	}{
		"this node's address":      {v1.IPv4Protocol, netip.MustParseAddr("192.0.2.2"), "reports the address of this node"},
		"one like another node's":  {v1.IPv6Protocol, alike(t, victim), "in the tunnel as the node at 2001:db8::3"},
		"one like this node's own": {v1.IPv6Protocol, alike(t, netip.MustParseAddr("2001:db8::2")), "in the tunnel as the node at 2001:db8::2"},
	} {
		s := newSteeredOver(t, test.outer, holders.Auto)
		for name, ip := range map[string]netip.Addr{"node-a": netip.MustParseAddr("2001:db8::2"), "node-b": victim, "node-c": test.ip} {
			n := clustertest.NewNode(name, ip.String(), v1.ConditionTrue)
			if test.outer == v1.IPv4Protocol && name != "node-c" {
				continue
			}
			s.state.SetNode(n)
			s.SetNode(n)
		}
		s.Apply(s.announce("node-c", 1))
		s.expect(map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.Prohibit}})
		if a := s.Addresses(v1.IPv4Protocol)[0]; !strings.Contains(a.Why, test.why) {
			t.Errorf("%s: %q, want %q", name, a.Why, test.why)
		}
		m := s.lockAsked(v1.IPv4Protocol)
		own := s.isOwnView(m, test.ip)
		if s.mu.Unlock(); own == (name == "one like another node's") {
			t.Errorf("%s: other nodes do not see it: %t", name, own)
		}
		got, _ := s.Sync(v1.IPv4Protocol)
		if len(got.Nodes) != 1 {
			t.Errorf("%s: senders %v, want node-b alone", name, got.Nodes)
		}
		s.Apply(s.announce("node-b", 2))
		if way := s.Steering(v1.IPv4Protocol).Ways[egressIP]; way.Kind != kernel.ToNode {
			t.Errorf("%s: node-b has it: %v", name, way)
		}
	}
}
