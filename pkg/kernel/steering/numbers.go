package steering

import (
	"fmt"
	"net/netip"

	"github.com/openshift/origin-node/pkg/kernel"
)

// numberDropped is in the mark of a bound pod's packet that has no egress IP here and is for the guard to drop, whatever address others give
// it. So one number less is left for holders.
const numberDropped = maxNumber

// The numbers of ways that lead nowhere. No packet is marked with them.
const numberBlackhole, numberProhibit = numberArrived + 1, lastNumber

// numbers are those of the nodes that hold egress IPs: local to this node, and the same as long as
// packets are steered there.
type numbers map[netip.Addr]int

// assign gives nodes that have none the lowest free number. It leaves out those for which none is left.
func (n numbers) assign(nodes []netip.Addr) (assigned numbers, left []netip.Addr) {
	taken := n.holders()
	assigned = numbers{}
	for _, node := range nodes {
		number, known := n[node]
		for number = max(number, 1); !known && taken[number].IsValid(); {
			number++
		}
		if number >= numberDropped {
			left = append(left, node)
			continue
		}
		assigned[node], taken[number] = number, node
	}
	return assigned, left
}

// of returns the number that a way has: 0 for what leaves from this node, and that of what is rejected for a node without one.
func (n numbers) of(way kernel.Way) int {
	switch way.Kind {
	case kernel.ToNode:
		if number := n[way.Node]; number > 0 {
			return number
		}
		return numberProhibit
	case kernel.Blackhole:
		return numberBlackhole
	case kernel.Prohibit:
		return numberProhibit
	}
	return 0
}

// holders returns the nodes by their numbers.
func (n numbers) holders() map[int]netip.Addr {
	holders := make(map[int]netip.Addr, len(n))
	for node, number := range n {
		holders[number] = node
	}
	return holders
}

// tooManyError names the nodes that have no number. What their egress IPs are for is rejected.
type tooManyError []netip.Addr

func (e tooManyError) Error() string {
	return fmt.Sprintf("more than %d other nodes hold egress IPs; packets for those on %s are rejected: bring these egress IPs to fewer nodes",
		numberDropped-1, kernel.Join(e, ", "))
}
