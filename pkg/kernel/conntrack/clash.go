package conntrack

import (
	"slices"
	"time"
)

// A connection that this kernel has picked up in the middle may be the wrong one for the far side: of two pods with the
// same port and the same far side, one had another port outside, which nobody but the former holder knew. If that one is
// heard first here, it gets the port of the other, and to the far side its packets belong to the other's connection. TCP does
// not end that by itself: each side takes the other's packets for old ones.

// Flags of a side of a TCP connection (linux/netfilter/nf_conntrack_tcp.h): it was picked up, and it has sent a packet within the
// window of the other side.
const (
	flagLiberal      = 0x08 // IP_CT_TCP_FLAG_BE_LIBERAL
	flagAcknowledges = 0x20 // IP_CT_TCP_FLAG_MAXACK_SET

	statusReplied = 1 << 1 // IPS_SEEN_REPLY
)

// mayClash tells that a TCP connection was picked up, and that nothing shows yet that its far side means the same one: it has
// answered, but never within the window of what the source has sent. That is so of some that are right, too, since the kernel
// does not know by how much their windows are scaled.
func (t *tracked) mayClash() bool {
	return t.Zone == 0 && t.connected() && t.replied && t.flags[0]&flagLiberal != 0 && t.flags[1]&flagAcknowledges == 0
}

// owned tells whether a connection's port outside is one that its source has for itself, and the one that it has inside. Source NAT has
// chosen any other one, of those of the source: another of its connections may have had that at the former holder.
func (t *tracked) owned(by owners) bool {
	outside := t.replying.destination.Port()
	return t.original.source.Port() == outside && by.have(t.Source, t.SeenAs, outside)
}

// segment is where a side of a TCP connection is: the number of the next byte that it sends, and of the next one that it
// expects.
type segment struct{ sends, expects uint32 }

// nearby is how many bytes the two sides of one connection may be apart: those under way, and those sent between two looks at
// them. Those of two connections are that close in both directions in one of 256 cases, but then nothing moves. If nothing has
// moved between the sides of one connection for the time stillness, those under way are all that they are apart.
const (
	nearby, nearbyStill = 128 << 20, 16 << 20
	stillness           = 3 * time.Second
)

// sides are those of a connection that may clash, when they were heard.
type sides struct {
	near, far segment
	// still is since when neither has got anything that it takes.
	still time.Time
}

// after returns the sides as they are, given how they were before.
func (s sides) after(before sides) sides {
	if before.near.expects == s.near.expects && before.far.expects == s.far.expects {
		s.still = before.still
	}
	return s
}

// most is how many bytes they may be apart.
func (s sides) most(now time.Time) uint32 {
	if now.Sub(s.still) >= stillness {
		return nearbyStill
	}
	return nearby
}

// differ tells whether the sides speak of other bytes, if both packets are theirs.
func (s sides) differ(now time.Time) bool { return apart(s.near, s.far, s.most(now)) }

// apart tells whether two sides speak of bytes that are more than so many apart.
func apart(near, far segment, most uint32) bool {
	return !within(near.sends, far.expects, most) || !within(far.sends, near.expects, most)
}

func within(a, b, most uint32) bool { return a-b <= most || b-a <= most }

// Anybody may send a packet under the address of a far side, so one says nothing. A hearing after the first one notes all that it
// can tell apart: each packet's numbers without their last 16 bits.
const noted = 16

// finding is what several hearings say of a connection.
type finding int

const (
	// undecided: too little was heard of the sides, or what does not fit together.
	undecided finding = iota
	// oneConnection: the sides speak of the same bytes.
	oneConnection
	// twoConnections: they do not.
	twoConnections
)

// conclude returns what some hearings say, given what was heard of each side in each of them. Sides of which any two packets fit
// together have one connection, whatever else came: of numbers that a stranger makes up one in 16,384 does. They have two if each has said
// twice, in different hearings, the same of where it is: neither gets anything that it takes. Between sides with one
// connection something moves, if they are so far apart. What a stranger makes up does not repeat.
func conclude(near, far [][]segment) finding {
	for _, a := range slices.Concat(near...) {
		for _, b := range slices.Concat(far...) {
			if !apart(a, b, nearbyStill) {
				return oneConnection
			}
		}
	}
	if repeats(near) && repeats(far) {
		return twoConnections
	}
	return undecided
}

// repeats tells whether a side expects the same byte in two hearings, and sends about the same.
func repeats(hearings [][]segment) bool {
	const coarse = 24 // bits of the numbers sent: 16 MiB
	type place struct{ sends, expects uint32 }
	before := map[place]bool{}
	for _, segments := range hearings {
		for _, s := range segments {
			for _, sends := range [...]uint32{s.sends - 1<<coarse, s.sends, s.sends + 1<<coarse} {
				if before[place{sends >> coarse, s.expects >> noted}] {
					return true
				}
			}
		}
		for _, s := range segments {
			before[place{s.sends >> coarse, s.expects >> noted}] = true
		}
	}
	return false
}
