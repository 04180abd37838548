package fastpath

import (
	"net/netip"
	"testing"

	"github.com/openshift/origin-node/pkg/kernel"
)

// TestShare: unbound pods get a node's own addresses of their IP family, but none that is an egress IP, or was one.
func TestShare(t *testing.T) {
	node, former, hidden := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.100"), netip.MustParseAddr("192.0.2.3")
	w := wantedTables{outsides: map[programsAddress]uint32{}}
	w.share(kernel.IPv4, around{
		at:     map[netip.Addr]int{node: 2, former: 2, hidden: 3, six: 2},
		shared: map[netip.Addr]bool{node: true, former: true, hidden: false, six: true},
	}, map[netip.Addr]bool{former: true})
	if len(w.outsides) != 1 || w.outsides[addressOf(node)] != 2 {
		t.Errorf("got %v, want %s of interface 2 alone", w.outsides, node)
	}
}

// TestNetworkOf: all of IPv6 is not all of IPv4, whose addresses are among those of IPv6 in the kernel's maps.
func TestNetworkOf(t *testing.T) {
	v4, v6 := networkOf(netip.MustParsePrefix("0.0.0.0/0")), networkOf(netip.MustParsePrefix("::/0"))
	if v4.V6 == v6.V6 || v4.Bits != 32+96 || v6.Bits != 32 {
		t.Errorf("got %+v and %+v", v4, v6)
	}
}
