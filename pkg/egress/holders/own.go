package holders

import (
	"maps"
	"net/netip"
	"time"
)

// own is an address that this node has, takes or removes. All of them are written in this file, and nowhere else.
type own struct {
	// epoch is 0 as long as it has none.
	epoch uint64
	// present: OwnAddresses had it last. yielding: it is on no interface, and other software receives its packets here.
	present, yielding bool
	// held: it is the pool's, which has decided that it is to be here.
	held bool
	// taking is the epoch that it gets when it has arrived; 0 if it is not on its way. before: then it was here when that was decided.
	taking uint64
	before bool
	stage  stage
	// until is when a handover of it ends.
	until time.Time
}

// stage is how far an address has come.
type stage int

const (
	// reported: it is here if OwnAddresses has it.
	reported stage = iota
	// arrived: it is here, and OwnAddresses need not have it yet.
	arrived
	// handing: another node has it, and packets of this one leave from here as before.
	handing
	// removed: it is not here, and OwnAddresses may have it for a while.
	removed
)

// here tells whether packets leave from here.
func (o *own) here() bool {
	switch o.stage {
	case arrived, handing:
		return true
	case removed:
		return false
	}
	return o.present && (o.taking == 0 || o.before)
}

// gone tells whether nothing is known of it any more.
func (o *own) gone() bool {
	return !o.held && !o.present && (o.stage == reported || o.stage == removed)
}

// seenEpoch is the highest epoch that was seen of an address of the pool.
type seenEpoch struct {
	epoch uint64
	// leased is when a live node announced it, in a Lease or directly, before anybody else was known to have it; zero otherwise.
	leased time.Time
}

// Arrived says that packets of addresses that [Directory.Take] has given to this node are to leave from here: they are on an interface,
// and what comes here for connections of their former holders is passed on. OwnAddresses need not have them yet.
type Arrived struct{ Addresses []netip.Addr }

// Left says that this node removes addresses that [Directory.Release] has taken from it. Their packets leave from here until a time, if
// it is not zero. OwnAddresses may have them for longer.
type Left struct {
	Addresses []netip.Addr
	Until     time.Time
}

// Want says which addresses the pool is to hold, all of them. Of each the highest epoch is remembered that was ever seen, and of no
// other one.
func (d *Directory) Want(addresses map[netip.Addr]bool) {
	maps.DeleteFunc(d.seen, func(ip netip.Addr, _ seenEpoch) bool { return !addresses[ip] })
	for ip := range addresses {
		if _, known := d.seen[ip]; !known {
			s := seenEpoch{epoch: d.highest(ip)}
			if s.epoch > 0 && d.EpochElsewhere(ip, d.now) == s.epoch {
				s.leased = d.now
			}
			d.seen[ip] = s
		}
	}
}

// See notes an epoch that a member of the pool says that an address has.
func (d *Directory) See(ip netip.Addr, epoch uint64) { d.see(ip, epoch, time.Time{}) }

func (d *Directory) see(ip netip.Addr, epoch uint64, leased time.Time) {
	if s, wanted := d.seen[ip]; wanted && min(epoch, MaxEpoch) > s.epoch {
		d.seen[ip] = seenEpoch{min(epoch, MaxEpoch), leased}
		d.changed = d.changed || !leased.IsZero()
	}
}

// Leased returns the epoch with which another live node announces an address, if that announcement was the first sign of this epoch, and
// higher than all epochs seen before. Since is when it was first seen. Heard is when such a node last gave a sign of life, or may have
// given one that was not heard. The epoch is zero if it was seen elsewhere first, or if no live node announces it any more.
func (d *Directory) Leased(ip netip.Addr, now time.Time) (epoch uint64, since, heard time.Time) {
	s := d.seen[ip]
	if s.leased.IsZero() {
		return 0, time.Time{}, time.Time{}
	}
	for h := range d.remote(ip, now) {
		if at := d.nodes[h.Node].spoke; h.Epoch >= s.epoch && !at.Before(heard) {
			epoch, since, heard = s.epoch, s.leased, at
		}
	}
	return epoch, since, heard
}

// Held are the addresses of the pool that this node has, or is taking, with their epochs; 0 as long as one is not known.
func (d *Directory) Held() map[netip.Addr]uint64 {
	held := make(map[netip.Addr]uint64, len(d.held))
	for ip, o := range d.held {
		held[ip] = max(o.epoch, o.taking)
	}
	return held
}

// Holds tells whether an address is one of these, and its epoch.
func (d *Directory) Holds(ip netip.Addr) (epoch uint64, holds bool) {
	if o := d.held[ip]; o != nil {
		return max(o.epoch, o.taking), true
	}
	return 0, false
}

// Load is how many these are.
func (d *Directory) Load() int { return len(d.held) }

// Find notes that the kernel has an address of the pool that an earlier process of this node took.
func (d *Directory) Find(ip netip.Addr) { d.hold(ip) }

// Take decides that this node gets an address, and returns the epoch: it is higher than any that was seen. The address is here when it
// has [Arrived].
func (d *Directory) Take(ip netip.Addr) (epoch uint64) {
	epoch = min(d.highest(ip)+1, MaxEpoch)
	o := d.hold(ip)
	o.before, o.taking = o.here(), epoch
	d.see(ip, epoch, time.Time{})
	return epoch
}

// hold has an address be one of the pool's here.
func (d *Directory) hold(ip netip.Addr) *own {
	o := d.owned(ip)
	o.held, d.held[ip] = true, o
	return o
}

// Release decides that an address is not to be here, also one that could not be taken. Until it has [Left], packets leave from here as
// before: also if it is here because other software has it here.
func (d *Directory) Release(ip netip.Addr) {
	o := d.held[ip]
	if o == nil {
		return
	}
	d.see(ip, o.epoch, time.Time{})
	delete(d.held, ip)
	o.held, o.taking = false, 0
	d.tidy(ip)
	if d.started {
		d.giveEpoch(ip, o)
	}
	d.refresh(ip)
}

// owned returns an address of this node, which is made if need be.
func (d *Directory) owned(ip netip.Addr) *own {
	o := d.own[ip]
	if o == nil {
		o = &own{}
		d.own[ip] = o
	}
	return o
}

// tidy forgets an address of this node that is gone, and what it was before.
func (d *Directory) tidy(ip netip.Addr) {
	if o := d.own[ip]; o != nil && o.gone() {
		delete(d.own, ip)
	}
}

func (e Arrived) apply(d *Directory) {
	for _, ip := range e.Addresses {
		o := d.held[ip]
		if o == nil {
			continue // it has been released since
		}
		o.epoch, o.taking = max(o.epoch, o.taking), 0
		if o.stage != reported || !o.present || o.yielding {
			o.stage = arrived
		}
		delete(d.handing, ip)
		d.refresh(ip)
	}
}

func (e Left) apply(d *Directory) {
	for _, ip := range e.Addresses {
		switch o := d.own[ip]; {
		case o == nil || o.held: // it has been taken again since
		case e.Until.After(d.now) && o.here():
			o.stage, o.until, d.handing[ip] = handing, e.Until, o
		default:
			d.leave(ip)
			d.refresh(ip)
		}
	}
}

// leave has an address not be here any more, whatever OwnAddresses says until it is removed.
func (d *Directory) leave(ip netip.Addr) {
	o := d.own[ip]
	unreported := o.stage == arrived // a report from before is still to come
	o.stage, o.epoch = removed, 0
	delete(d.handing, ip)
	if !unreported {
		d.tidy(ip)
	}
}

func (e OwnAddresses) apply(d *Directory) {
	for _, o := range d.own {
		o.present, o.yielding = false, false
	}
	for _, ip := range e.Addresses {
		d.owned(ip).present = true
	}
	for _, ip := range e.Announced {
		if o := d.own[ip]; o != nil {
			o.yielding = o.present
		}
	}
	d.ownKnown = true
	concerned := make([]netip.Addr, 0, len(d.own))
	for ip, o := range d.own {
		concerned = append(concerned, ip)
		if o.present && !o.yielding && o.stage == arrived || o.yielding && o.stage == removed { // what is on no interface any more has been removed
			o.stage = reported
		}
		d.tidy(ip)
	}
	d.giveEpochs()
	for _, ip := range concerned {
		d.refresh(ip)
	}
}
