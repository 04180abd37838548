package egress

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

// TestOwnAddresses_AnnouncesWhatOthersPutHere: egress IPs that come, neither those of the start nor what is none, nor what the pool puts here.
func TestOwnAddresses_AnnouncesWhatOthersPutHere(t *testing.T) {
	node, egressIP, pooled := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("203.0.113.11")
	var announced []netip.Addr
	s := &steerer{announce: func(addresses []netip.Addr) { announced = append(announced, addresses...) }}
	s.claims, s.assignable = []netip.Addr{egressIP, pooled}, map[netip.Addr]bool{pooled: true}
	for _, step := range []struct{ here, want []netip.Addr }{
		{[]netip.Addr{node, egressIP}, nil},
		{[]netip.Addr{node}, nil},
		{[]netip.Addr{node, egressIP, pooled, node.Next()}, []netip.Addr{egressIP}},
		{[]netip.Addr{node, egressIP, pooled}, nil},
	} {
		announced = nil
		s.setOnInterfaces(holders.OwnAddresses{Addresses: step.here})
		if !slices.Equal(announced, step.want) {
			t.Errorf("with %s here now, %s were announced, want %s", step.here, announced, step.want)
		}
	}
}
