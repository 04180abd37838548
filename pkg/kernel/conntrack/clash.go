package conntrack

import "time"

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

// differ tells whether the sides speak of other bytes.
func (s sides) differ(now time.Time) bool {
	most := uint32(nearby)
	if now.Sub(s.still) >= stillness {
		most = nearbyStill
	}
	apart := func(a, b uint32) bool { return a-b > most && b-a > most }
	return apart(s.near.sends, s.far.expects) || apart(s.far.sends, s.near.expects)
}
