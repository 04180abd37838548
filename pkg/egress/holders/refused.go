package holders

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

const (
	// refusedTime is how long nothing but what is not authentic must come from a node until it is told, and how long after the last
	// such datagram that is over.
	refusedTime = time.Minute
	// judgeAgain is how often it is looked at meanwhile.
	judgeAgain = refusedTime / 6
)

// refuse notes that a datagram which came from an address is not authentic.
func (x *exchange) refuse(from netip.Addr, now time.Time) {
	p := x.peers[x.at[from]]
	if p == nil {
		return
	}
	if p.refusedAt = now; p.refusedSince.IsZero() {
		p.refusedSince = now
	}
	if x.judgeAt.IsZero() {
		x.judgeAt = now.Add(refusedTime)
	}
}

// accept notes that a datagram of a node was accepted.
func (x *exchange) accept(name string, now time.Time) {
	p := x.peers[name]
	if p.acceptedAt = now; !p.refusedSince.IsZero() {
		p.refusedSince, x.judgeAt = time.Time{}, now
	}
}

// judge returns why most nodes that say anything are not believed; nil if they are. A single node with other keys says it of all
// others, and these do not say it of that one. Of two halves both say it.
func (x *exchange) judge(now time.Time) error {
	if x.judgeAt.IsZero() || now.Before(x.judgeAt) {
		return x.refused
	}
	x.refused, x.judgeAt = nil, time.Time{}
	var refused []string
	accepted := 0
	for name, p := range x.peers {
		if now.Sub(p.refusedAt) > refusedTime {
			p.refusedSince = time.Time{} // it has ceased
		}
		switch {
		case p.refusedSince.IsZero() && now.Sub(p.acceptedAt) <= refusedTime:
			accepted++
		case p.refusedSince.IsZero():
			continue
		case now.Sub(p.refusedSince) >= refusedTime:
			refused = append(refused, name)
			fallthrough
		default:
			x.judgeAt = now.Add(judgeAgain)
		}
	}
	if len(refused) > 0 && len(refused) >= accepted {
		if !slices.Contains(refused, x.example) { // another text is another Event
			x.example = slices.Min(refused)
		}
		example := x.example
		x.refused = fmt.Errorf("for a minute, half of the other nodes that are heard, or more (for example %s at %s), have sent nothing that is signed with a key of this node: "+
			"either these nodes run an older version, or the keys differ: give all nodes the same egress-snat-key-file, or remove it from all so that they share the keys of the Secret",
			example, x.peers[example].address)
	}
	return x.refused
}

// forgive forgets what was not authentic: there are other keys now.
func (x *exchange) forgive() {
	for _, p := range x.peers {
		p.refusedSince = time.Time{}
	}
	x.refused, x.judgeAt = nil, time.Time{}
}
