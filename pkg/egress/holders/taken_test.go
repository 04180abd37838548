package holders

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

func TestTook_CountsBeforeTheKernelTellsOfIt(t *testing.T) {
	d, now := NewDirectory(Config{NodeName: "a", Outer: kernel.IPv4}), time.Unix(1000, 0)
	ip, other := netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("203.0.113.11")
	expect := func(state State, epoch uint64) {
		t.Helper()
		if h := d.Holder(ip, now); h.State != state || h.Epoch != epoch {
			t.Errorf("got %s with epoch %d, want %s with %d", h.State, h.Epoch, state, epoch)
		}
	}
	d.Apply(OwnAddresses{}, now)
	d.Apply(LeasesKnown{}, now)
	d.Apply(Took{map[netip.Addr]uint64{ip: 7}}, now)
	expect(Local, 7)
	d.Apply(OwnAddresses{[]netip.Addr{other}}, now) // read before it was taken
	expect(Local, 7)
	d.Apply(OwnAddresses{[]netip.Addr{other, ip}}, now)
	expect(Local, 7)
	if own := d.Own(); len(own) != 2 || own[ip] != 7 {
		t.Errorf("own addresses %v, want two, %s with epoch 7", own, ip)
	}
	d.Apply(OwnAddresses{[]netip.Addr{other}}, now) // gone
	if h := d.Holder(ip, now); h.State == Local {
		t.Error("an address that is gone is still here")
	}
}

func TestReleased_CountsBeforeTheKernelTellsOfIt(t *testing.T) {
	d, now := NewDirectory(Config{NodeName: "a", Outer: kernel.IPv4}), time.Unix(1000, 0)
	ip := netip.MustParseAddr("203.0.113.10")
	d.Apply(OwnAddresses{[]netip.Addr{ip}}, now)
	d.Apply(LeasesKnown{}, now)
	d.Apply(NodeSeen{Name: "b", Ready: true, InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.3")}}, now)
	d.Apply(Announced{Node: "b", Statement: Statement{Addresses: map[netip.Addr]uint64{ip: 9}, Revision: 1}, Source: Announcement}, now)
	d.Apply(Released{[]netip.Addr{ip}}, now)
	if h := d.Holder(ip, now); h.State != Remote || h.Node != "b" {
		t.Errorf("got %+v, want it remote, on b", h)
	}
}
