package holders

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// take has this node get addresses.
func (d *Directory) take(now time.Time, addresses ...netip.Addr) {
	for _, ip := range addresses {
		d.Take(ip)
	}
	d.Apply(Arrived{addresses}, now)
}

// leaveUntil has this node give addresses up, whose packets leave from here until a time.
func (d *Directory) leaveUntil(until, now time.Time, addresses ...netip.Addr) {
	for _, ip := range addresses {
		d.Release(ip)
	}
	d.Apply(Left{addresses, until}, now)
}

func TestDirectory_TakenCountsBeforeTheKernelTellsOfIt(t *testing.T) {
	d, now := NewDirectory(Config{NodeName: "a", Outer: kernel.IPv4}), time.Unix(1000, 0)
	ip, other := netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("203.0.113.11")
	expect := func(state State, epoch uint64) {
		t.Helper()
		if h := d.Holder(ip, now); h.State != state || h.Epoch != epoch {
			t.Errorf("got %s with epoch %d, want %s with %d", h.State, h.Epoch, state, epoch)
		}
	}
	d.Want(map[netip.Addr]bool{ip: true})
	d.See(ip, 6)
	d.Apply(OwnAddresses{}, now)
	d.Apply(LeasesKnown{}, now)
	if epoch := d.Take(ip); epoch != 7 {
		t.Errorf("taken with epoch %d, want 7", epoch)
	}
	expect(Unclaimed, 0)
	d.Apply(OwnAddresses{Addresses: []netip.Addr{ip}}, now) // nothing is passed on yet
	expect(Unclaimed, 0)
	d.Apply(OwnAddresses{}, now)
	d.Apply(Arrived{[]netip.Addr{ip}}, now)
	expect(Local, 7)
	d.Apply(OwnAddresses{Addresses: []netip.Addr{other}}, now) // read before it was taken
	expect(Local, 7)
	d.Apply(OwnAddresses{Addresses: []netip.Addr{other, ip}}, now)
	expect(Local, 7)
	if own := d.Own(); len(own) != 2 || own[ip] != 7 {
		t.Errorf("own addresses %v, want two, %s with epoch 7", own, ip)
	}
	if epoch, holds := d.Holds(ip); !holds || epoch != 7 || d.Load() != 1 {
		t.Errorf("of the pool's it holds %v, want %s with epoch 7", d.Held(), ip)
	}
	d.Apply(OwnAddresses{Addresses: []netip.Addr{other}}, now) // gone
	if h := d.Holder(ip, now); h.State == Local {
		t.Error("an address that is gone is still here")
	}
}

func TestDirectory_LeftCountsBeforeTheKernelTellsOfIt(t *testing.T) {
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
	d.leaveUntil(time.Time{}, now, ip)
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
	d.take(now, ip)
	d.leaveUntil(time.Time{}, now, ip)
	d.Apply(OwnAddresses{Addresses: []netip.Addr{ip, other}}, now) // read between the two
	if _, own := d.Own()[ip]; own {
		t.Error("released before any report: it is announced as this node's")
	}
	d.take(now, ip) // before any report
	d.Apply(OwnAddresses{Addresses: []netip.Addr{ip, other}}, now)
	if h := d.Holder(ip, now); h.State != Local || h.Epoch != 10 {
		t.Errorf("taken again: got %+v, want it here with epoch 10", h)
	}
}

func TestDirectory_HandoverEnds(t *testing.T) {
	ip, now := netip.MustParseAddr("203.0.113.10"), time.Unix(1000, 0)
	list, until := []netip.Addr{ip}, now.Add(time.Second)
	here := OwnAddresses{Addresses: list}
	report := func(e Event) func(*Directory) { return func(d *Directory) { d.Apply(e, now) } }
	for name, test := range map[string]struct {
		meanwhile []func(*Directory)
		want      State
		// later is what comes of the address being there again afterwards.
		later State
	}{
		"removed":         {[]func(*Directory){report(OwnAddresses{})}, Remote, Local},
		"a late report":   {[]func(*Directory){report(here), report(OwnAddresses{})}, Remote, Local},
		"not yet removed": {[]func(*Directory){report(here)}, Remote, Remote},
		"on its way here": {[]func(*Directory){report(OwnAddresses{}), func(d *Directory) { d.Take(ip) }}, Remote, Remote},
		"taken again":     {[]func(*Directory){report(OwnAddresses{}), func(d *Directory) { d.take(now, ip) }}, Local, Local},
		"handed over again": {[]func(*Directory){
			report(OwnAddresses{}), func(d *Directory) { d.take(now, ip) }, func(d *Directory) { d.leaveUntil(until.Add(1), now, ip) },
		}, Local, Local},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDirectory(Config{NodeName: "a", Outer: kernel.IPv4})
			for _, e := range []Event{
				here, LeasesKnown{}, NodeSeen{Name: "b", Ready: true, InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.3")}},
				Announced{Node: "b", Statement: Statement{Addresses: map[netip.Addr]uint64{ip: 9}, Revision: 1}, Source: Announcement},
			} {
				d.Apply(e, now)
			}
			d.leaveUntil(until, now, ip)
			for i, do := range test.meanwhile {
				if do(d); d.Holder(ip, now).State != Local {
					t.Errorf("after step %d it does not count any more", i)
				}
			}
			if wake := d.Wake(now); name != "taken again" && (wake.IsZero() || wake.After(until.Add(1))) {
				t.Errorf("it wakes at %v, want %v", wake, until)
			}
			if h := d.Holder(ip, until); h.State != test.want {
				t.Errorf("got %+v, want it %s", h, test.want)
			}
			d.Apply(here, until)
			if h := d.Holder(ip, until); h.State != test.later {
				t.Errorf("later: got %+v, want it %s", h, test.later)
			}
		})
	}
}

// TestDirectory_EpochsOfThePool are remembered of what it is to hold, whoever has said them, and of nothing else.
func TestDirectory_EpochsOfThePool(t *testing.T) {
	ip, other, now := netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("203.0.113.11"), at(0)
	b := func(epoch, revision uint64) Announced {
		return Announced{Node: "b", Statement: Statement{Addresses: map[netip.Addr]uint64{ip: epoch}, Revision: revision}, Source: Announcement}
	}
	nobody := Announced{Node: "b", Statement: Statement{Revision: 9}, Source: Announcement}
	d := newDirectory()
	d.Apply(NodeSeen{Name: "b", Ready: true, InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.3")}}, now)
	d.Apply(b(3, 1), now)
	d.Want(map[netip.Addr]bool{ip: true})
	d.See(other, 5)
	if epoch, since, _ := d.Leased(ip, now); epoch != 3 || !since.Equal(now) || d.highest(ip) != 3 || d.highest(other) != 0 {
		t.Errorf("the epochs are %d and %d, and %d is announced by another one alone; want 3 and 0, and 3", d.highest(ip), d.highest(other), epoch)
	}
	d.Apply(b(4, 2), at(1))
	d.Apply(b(4, 2), at(2)) // again
	if epoch, since, heard := d.Leased(ip, at(2)); epoch != 4 || !since.Equal(at(1)) || !heard.Equal(at(2)) {
		t.Errorf("announced alone: epoch %d since %v, last heard at %v; want 4 since %v, at %v", epoch, since, heard, at(1), at(2))
	}
	d.See(ip, 5)
	d.Apply(b(5, 3), at(2))
	if epoch, _, _ := d.Leased(ip, at(2)); epoch != 0 {
		t.Errorf("a member had said it before: epoch %d, want none", epoch)
	}
	overtaken := b(7, 1)
	overtaken.Source = Lease
	if d.Apply(overtaken, at(2)); d.seen[ip].epoch != 7 {
		t.Errorf("of a statement that was overtaken %d is remembered, want 7", d.seen[ip].epoch)
	}
	d.Apply(b(8, 4), at(2))
	d.Apply(nobody, at(3))
	if epoch, _, _ := d.Leased(ip, at(3)); epoch != 0 {
		t.Errorf("nobody announces it: epoch %d, want none", epoch)
	}
	if epoch := d.Take(ip); epoch != 9 || d.Take(other) != 1 {
		t.Errorf("taken with epoch %d, want 9", epoch)
	}
	d.Release(ip)
	d.See(ip, 1<<60)
	if epoch := d.Take(ip); epoch != MaxEpoch {
		t.Errorf("taken with epoch %d, want the largest one", epoch)
	}
	d.Want(nil)
	if d.Release(ip); len(d.seen) > 0 || d.Load() != 1 {
		t.Errorf("epochs of %d addresses are remembered, and %d are held; want none, and one", len(d.seen), d.Load())
	}
}

// TestDirectory_FoundHasTheEpochOfItsLease, in whatever order they are told.
func TestDirectory_FoundHasTheEpochOfItsLease(t *testing.T) {
	ip, now := netip.MustParseAddr("203.0.113.10"), at(0)
	lease := Announced{Node: me, Statement: Statement{Addresses: map[netip.Addr]uint64{ip: 5}, Revision: 1}, Source: Lease}
	for _, foundFirst := range []bool{false, true} {
		d := newDirectory()
		if foundFirst {
			d.Find(ip)
		}
		if epoch, _ := d.Holds(ip); epoch != 0 {
			t.Errorf("before the Leases are known the epoch is %d", epoch)
		}
		for _, e := range []Event{lease, OwnAddresses{Addresses: []netip.Addr{ip}}, LeasesKnown{}} {
			d.Apply(e, now)
		}
		d.Find(ip)
		if epoch, holds := d.Holds(ip); epoch != 5 || !holds {
			t.Errorf("epoch %d, held: %v; want 5", epoch, holds)
		}
	}
}

// TestDirectory_LeftToALoadBalancer: an address that this node has removed, and a load balancer announces from here, is this node's.
func TestDirectory_LeftToALoadBalancer(t *testing.T) {
	ip, now := netip.MustParseAddr("203.0.113.9"), at(0)
	list := []netip.Addr{ip}
	d := newDirectory()
	d.Apply(LeasesKnown{}, now)
	d.Apply(OwnAddresses{Addresses: list}, now)
	d.leaveUntil(time.Time{}, now, ip)
	d.Apply(OwnAddresses{Addresses: list}, now) // read before it was removed
	if got := d.Holder(ip, now).State; got != Lost {
		t.Errorf("released: %q", got)
	}
	d.Apply(OwnAddresses{Addresses: list, Announced: list}, now)
	if got := d.Holder(ip, now); got.State != Local || got.Known != LoadBalancer || got.Epoch != 2 {
		t.Errorf("announced from here: %+v", got)
	}
}

// TestDirectory_TakenWhereOthersHaveIt: an address that other software has put here, or announces from here, while this node takes it,
// is answered for throughout, with an epoch, whether or not it can be taken.
func TestDirectory_TakenWhereOthersHaveIt(t *testing.T) {
	ip := netip.MustParseAddr("203.0.113.10")
	elsewhere, onInterface := OwnAddresses{}, OwnAddresses{Addresses: []netip.Addr{ip}}
	announced := OwnAddresses{Addresses: []netip.Addr{ip}, Announced: []netip.Addr{ip}}
	for name, test := range map[string]struct {
		before, meanwhile OwnAddresses
		arrives           bool
		after             OwnAddresses
	}{
		"put here meanwhile, and not taken":        {elsewhere, onInterface, false, onInterface},
		"here before, and not taken":               {onInterface, onInterface, false, onInterface},
		"announced before, and taken":              {announced, announced, true, announced},
		"announced before, and no more once taken": {announced, announced, true, elsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirectory()
			d.Apply(LeasesKnown{}, at(0))
			d.Apply(test.before, at(0))
			d.Want(map[netip.Addr]bool{ip: true})
			d.Take(ip)
			throughout := len(test.before.Addresses) > 0
			d.Apply(test.meanwhile, at(1))
			if h := d.Holder(ip, at(1)); throughout && h.State != Local {
				t.Errorf("on its way: %+v", h)
			}
			if test.arrives {
				d.Apply(Arrived{[]netip.Addr{ip}}, at(2))
			} else {
				d.Release(ip)
				if changed := d.Changed(); changed == throughout || d.Own()[ip] == 0 || d.Holder(ip, at(2)).State != Local {
					t.Errorf("at once: changed %v, %v is said, %+v", changed, d.Own(), d.Holder(ip, at(2)))
				}
			}
			d.Apply(test.after, at(3))
			if h := d.Holder(ip, at(4)); h.State != Local || h.Epoch == 0 || d.Own()[ip] == 0 {
				t.Errorf("afterwards: %+v, and %v is said", h, d.Own())
			}
		})
	}
}

// TestOwn_OnceEach: what is on an interface is not told twice, and does not yield.
func TestOwn_OnceEach(t *testing.T) {
	a, b, c := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("203.0.113.11")
	onInterfaces := []netip.Addr{a, b}
	event := Own(onInterfaces, []netip.Addr{b, c})
	if !slices.Equal(event.Addresses, []netip.Addr{a, b, c}) || !slices.Equal(event.Announced, []netip.Addr{c}) || len(onInterfaces) != 2 {
		t.Errorf("%+v", event)
	}
}
