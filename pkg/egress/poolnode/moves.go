package poolnode

import (
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/pool"
	"github.com/openshift/origin-node/pkg/egress/tell"
)

// moved tells the directory, the log and the users of moves. What belongs to connections of a node that hands an address over goes
// to that one before anybody sends it here. Where it cannot, the rules of both nodes change at once, and are waited for.
func (p *Part) moved(moves []pool.Move) {
	var arrived, handedOver, released, abrupt []netip.Addr
	former, neighbour := map[netip.Addr]netip.Addr{}, p.neighbours()
	for _, m := range moves {
		node, passes := netip.Addr{}, false
		if m.PassOn || m.GoOn {
			node, passes = neighbour(m)
		}
		switch {
		case m.Taken:
			if arrived = append(arrived, m.Address); passes {
				former[m.Address] = node
			}
		case passes:
			handedOver = append(handedOver, m.Address)
		default:
			released = append(released, m.Address)
		}
		if !passes && m.Why.Served() {
			abrupt = append(abrupt, m.Address)
		}
	}
	p.passOn(former)
	if len(arrived) > 0 {
		p.steerer.Apply(holders.Arrived{Addresses: arrived})
	}
	if len(handedOver) > 0 {
		p.handOver(handedOver)
	}
	if len(released) > 0 {
		p.config.Running.Go(func() { p.leaveTo(released) }) // a node that was drained until now may be passed packets all the same
		p.steerer.Apply(holders.Left{Addresses: released})
	}
	p.awaitRules(abrupt, ruleTime)
	p.account(moves)
}

// account counts moves and tells people of them: the log of each, and one Event of all that were taken from the same node for the same
// reason.
func (p *Part) account(moves []pool.Move) {
	type origin struct {
		from string
		why  pool.Reason
	}
	taken := map[origin][]netip.Addr{}
	p.mu.Lock()
	for _, m := range moves {
		p.moves[m.Why]++
	}
	p.mu.Unlock()
	for _, m := range moves {
		if !m.Taken {
			p.logger.Info("Released an egress IP", "address", m.Address, "to", m.Other, "because", m.Why.Because())
			continue
		}
		takeTime.WithLabelValues().Observe(m.At.Sub(m.Since).Seconds())
		p.logger.Info("Took an egress IP", "address", m.Address, "from", m.Other, "because", m.Why.Because(), "epoch", m.Epoch, "after", m.At.Sub(m.Since).Round(time.Millisecond))
		taken[origin{m.Other, m.Why}] = append(taken[origin{m.Other, m.Why}], m.Address)
	}
	for o, addresses := range taken {
		from := ""
		if o.from != "" {
			from = " from " + o.from
		}
		p.config.Event("EgressIPMoved", fmt.Sprintf("This node has taken egress IPs%s, because %s: %s", from, o.why.Because(), tell.Listed(addresses)))
	}
}

// moveCounts returns how many addresses this node took or released, by why.
func (p *Part) moveCounts() map[pool.Reason]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.moves)
}
