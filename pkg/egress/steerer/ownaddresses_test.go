package steerer

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

// TestOwnAddresses_AdvertisesWhatOthersPutHere: egress IPs that come, neither those of the start nor what is none, nor what the pool puts here.
func TestOwnAddresses_AdvertisesWhatOthersPutHere(t *testing.T) {
	own, egressIP, pooled := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("203.0.113.11")
	var announced []netip.Addr
	s := newSteered(t, holders.Auto)
	s.Steerer.advertise = func(addresses []netip.Addr) { announced = append(announced, addresses...) }
	s.claims = []netip.Addr{egressIP, pooled}
	s.assign(map[netip.Addr]bool{pooled: true}, time.Now())
	for _, step := range []struct{ here, want []netip.Addr }{
		{[]netip.Addr{own, egressIP}, nil},
		{[]netip.Addr{own}, nil},
		{[]netip.Addr{own, egressIP, pooled, own.Next()}, []netip.Addr{egressIP}},
		{[]netip.Addr{own, egressIP, pooled}, nil},
	} {
		announced = nil
		s.SetOnInterfaces(holders.OwnAddresses{Addresses: step.here})
		if !slices.Equal(announced, step.want) {
			t.Errorf("with %s here now, %s were announced, want %s", step.here, announced, step.want)
		}
	}
}
