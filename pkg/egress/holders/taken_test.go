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
	d.Apply(OwnAddresses{Addresses: []netip.Addr{other}}, now) // read before it was taken
	expect(Local, 7)
	d.Apply(OwnAddresses{Addresses: []netip.Addr{other, ip}}, now)
	expect(Local, 7)
	if own := d.Own(); len(own) != 2 || own[ip] != 7 {
		t.Errorf("own addresses %v, want two, %s with epoch 7", own, ip)
	}
	d.Apply(OwnAddresses{Addresses: []netip.Addr{other}}, now) // gone
	if h := d.Holder(ip, now); h.State == Local {
		t.Error("an address that is gone is still here")
	}
}

func TestReleased_CountsBeforeTheKernelTellsOfIt(t *testing.T) {
	d, now := NewDirectory(Config{NodeName: "a", Outer: kernel.IPv4}), time.Unix(1000, 0)
	ip := netip.MustParseAddr("203.0.113.10")
	d.Apply(OwnAddresses{Addresses: []netip.Addr{ip}}, now)
	d.Apply(LeasesKnown{}, now)
	d.Apply(NodeSeen{Name: "b", Ready: true, InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.3")}}, now)
	d.Apply(Announced{Node: "b", Statement: Statement{Addresses: map[netip.Addr]uint64{ip: 9}, Revision: 1}, Source: Announcement}, now)
	remote := func(when string) {
		t.Helper()
		if h := d.Holder(ip, now); h.State != Remote || h.Node != "b" {
			t.Errorf("%s: got %+v, want it remote, on b", when, h)
		}
		if _, own := d.Own()[ip]; own {
			t.Errorf("%s: it is announced as this node's", when)
		}
	}
	d.Apply(Released{[]netip.Addr{ip}}, now)
	remote("released")
	other := netip.MustParseAddr("203.0.113.11")
	d.Apply(OwnAddresses{Addresses: []netip.Addr{ip, other}}, now) // read before it was removed
	remote("a late report")
	d.Apply(OwnAddresses{Addresses: []netip.Addr{other}}, now)
	remote("removed")
	d.Apply(OwnAddresses{Addresses: []netip.Addr{ip, other}}, now) // somebody has put it there again
	if h := d.Holder(ip, now); h.State != Local || h.Epoch != 10 {
		t.Errorf("put there again: got %+v, want it here with epoch 10", h)
	}
	d.Apply(OwnAddresses{Addresses: []netip.Addr{other}}, now)
	d.Apply(Took{map[netip.Addr]uint64{ip: 11}}, now)
	d.Apply(Released{[]netip.Addr{ip}}, now)
	d.Apply(OwnAddresses{Addresses: []netip.Addr{ip, other}}, now) // read between the two
	if _, own := d.Own()[ip]; own {
		t.Error("released before any report: it is announced as this node's")
	}
	d.Apply(Took{map[netip.Addr]uint64{ip: 12}}, now) // before any report
	d.Apply(OwnAddresses{Addresses: []netip.Addr{ip, other}}, now)
	if h := d.Holder(ip, now); h.State != Local || h.Epoch != 12 {
		t.Errorf("taken again: got %+v, want it here with epoch 12", h)
	}
}

func TestHandedOver_EndsWhatHandingOverBegan(t *testing.T) {
	ip, now := netip.MustParseAddr("203.0.113.10"), time.Unix(1000, 0)
	list := []netip.Addr{ip}
	here, taken := OwnAddresses{Addresses: list}, Took{map[netip.Addr]uint64{ip: 12}}
	for name, test := range map[string]struct {
		meanwhile []Event
		want      State
		// later is what comes of the address being there again afterwards.
		later State
	}{
		"removed":           {[]Event{OwnAddresses{}}, Remote, Local},
		"a late report":     {[]Event{here, OwnAddresses{}}, Remote, Local},
		"not yet removed":   {[]Event{here}, Remote, Remote},
		"taken again":       {[]Event{OwnAddresses{}, taken}, Local, Local},
		"handed over again": {[]Event{OwnAddresses{}, taken, HandingOver{list, 2}}, Local, Local},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDirectory(Config{NodeName: "a", Outer: kernel.IPv4})
			for _, e := range []Event{
				here, LeasesKnown{}, NodeSeen{Name: "b", Ready: true, InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.3")}},
				Announced{Node: "b", Statement: Statement{Addresses: map[netip.Addr]uint64{ip: 9}, Revision: 1}, Source: Announcement},
				HandingOver{list, 1},
			} {
				d.Apply(e, now)
			}
			for _, e := range test.meanwhile {
				if d.Apply(e, now); d.Holder(ip, now).State != Local {
					t.Errorf("after %+v it does not count any more", e)
				}
			}
			d.Apply(HandedOver{list, 1}, now)
			if h := d.Holder(ip, now); h.State != test.want {
				t.Errorf("got %+v, want it %s", h, test.want)
			}
			d.Apply(here, now)
			if h := d.Holder(ip, now); h.State != test.later {
				t.Errorf("later: got %+v, want it %s", h, test.later)
			}
		})
	}
}

// TestReleased_ToALoadBalancer: an address that this node has removed, and a load balancer announces from here, is this node's.
func TestReleased_ToALoadBalancer(t *testing.T) {
	ip, now := netip.MustParseAddr("203.0.113.9"), at(0)
	list := []netip.Addr{ip}
	d := newDirectory()
	d.Apply(LeasesKnown{}, now)
	d.Apply(OwnAddresses{Addresses: list}, now)
	d.Apply(Released{list}, now)
	d.Apply(OwnAddresses{Addresses: list}, now) // read before it was removed
	if got := d.Holder(ip, now).State; got != Lost {
		t.Errorf("released: %q", got)
	}
	d.Apply(OwnAddresses{Addresses: list, Announced: list}, now)
	if got := d.Holder(ip, now); got.State != Local || got.Known != LoadBalancer || got.Epoch != 2 {
		t.Errorf("announced from here: %+v", got)
	}
}
