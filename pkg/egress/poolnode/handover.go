package poolnode

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/pool"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/handover"
	"github.com/openshift/origin-node/pkg/wake"
)

// goesOn is how long a node that has handed an egress IP over sends its own pods' packets from it. When it ends that, it forgets
// the connections of other nodes' pods, too: those nodes send to the new holder by then.
const goesOn = handover.Time / 2

// handovers keep connections while egress IPs go from one live node to another, in the IP families of the pool.
type handovers map[v1.IPFamily]handoverWriter

// handoverWriter is a [handover.Writer].
type handoverWriter interface {
	Pass(former map[netip.Addr]netip.Addr) error
	Leave(addresses []netip.Addr) error
}

// startHandovers begins to write what handovers take; an error says why this kernel cannot.
func (p *Part) startHandovers() (handovers, error) {
	h := handovers{}
	for _, network := range p.state.Config.Pool.Networks {
		family := cluster.FamilyOf(network.Addr())
		if err := handover.Available(kernel.Family(family)); err != nil {
			return nil, err
		}
		h[family] = nil
	}
	for family := range h {
		w := handover.NewWriter(kernel.Family(family))
		p.config.Running.Go(func() { w.Run(p.ctx) })
		h[family] = w
	}
	return h, nil
}

// neighbours returns what tells at which address the other node of a move has packets passed to it, and not if there is a router
// between. Each node is looked at once.
func (p *Part) neighbours() func(pool.Move) (node netip.Addr, ok bool) {
	type of struct {
		family v1.IPFamily
		name   string
	}
	known := map[of]netip.Addr{}
	return func(m pool.Move) (netip.Addr, bool) {
		key := of{cluster.FamilyOf(m.Address), m.Other}
		node, looked := known[key]
		if !looked {
			var err error
			if node, err = p.neighbour(key.family, key.name); err != nil {
				p.logger.Info("Connections that begin while egress IPs are handed over may take a second, because packets cannot be passed on", "node", key.name, "ipFamily", key.family, "reason", err.Error())
			}
			known[key] = node
		}
		return node, node.IsValid()
	}
}

func (p *Part) neighbour(family v1.IPFamily, name string) (netip.Addr, error) {
	addresses := p.steerer.Primaries(family)
	self, node := addresses[p.state.Config.NodeName], addresses[name]
	if !self.IsValid() || !node.IsValid() {
		return netip.Addr{}, fmt.Errorf("this node, or that one, has no InternalIP that counts for %s", family)
	}
	if err := p.adjacent(self, node); err != nil {
		return netip.Addr{}, err
	}
	return node, nil
}

// passOn has this node pass on what belongs to connections of the nodes that had these egress IPs, to the addresses of those.
func (p *Part) passOn(former map[netip.Addr]netip.Addr) {
	of := map[v1.IPFamily]map[netip.Addr]netip.Addr{}
	for ip, node := range former {
		kernel.Put(of, cluster.FamilyOf(ip), ip, node)
	}
	for family, nodes := range of {
		if w := p.handovers[family]; w != nil {
			p.complain(w.Pass(nodes), slices.Collect(maps.Keys(nodes)))
		}
	}
}

// leaveTo has this node drop what it does not track of egress IPs that it removes: another node may pass it on.
func (p *Part) leaveTo(addresses []netip.Addr) {
	of := map[v1.IPFamily][]netip.Addr{}
	for _, ip := range addresses {
		of[cluster.FamilyOf(ip)] = append(of[cluster.FamilyOf(ip)], ip)
	}
	for family, list := range of {
		if w := p.handovers[family]; w != nil {
			p.complain(w.Leave(list), list)
		}
	}
}

func (p *Part) complain(err error, addresses []netip.Addr) {
	if err != nil {
		slices.SortFunc(addresses, netip.Addr.Compare)
		p.logger.Info("Connections that begin while egress IPs are handed over may take a second", "addresses", addresses, "reason", err.Error())
	}
}

// handOver goes on with the connections of egress IPs that another node has now, until all nodes send to that one. Until its rules
// say so, this node counts as one that has them.
func (p *Part) handOver(addresses []netip.Addr) {
	p.leaveTo(addresses)
	number := p.begin(addresses)
	p.steerer.Apply(holders.Left{Addresses: addresses, Until: time.Now().Add(goesOn)})
	p.config.Running.Go(func() {
		wake.Sleep(p.ctx.Done(), goesOn)
		p.steerer.PlanAgain()
		p.awaitRules(addresses, mostRuleTime)
		p.end(number)
	})
}

// begin notes a handover, and returns its number; end says that it is over.
func (p *Part) begin(addresses []netip.Addr) (number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	p.handing[p.begun] = addresses
	return p.begun
}

func (p *Part) end(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.handing, number)
}

// handingOver are the egress IPs whose handover is not over.
func (p *Part) handingOver() []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Values(p.handing))...)
}

const (
	// ruleTime is how long a move waits at most for this node's rules where nothing is passed on: on the former holder before the
	// address is removed, on the next one before it is advertised on the network.
	ruleTime = 50 * time.Millisecond
	// mostRuleTime is how long a drain does at its end.
	mostRuleTime = 5 * time.Second
)

// awaitRules returns when this node's rules for these egress IPs follow from what was told before, or after a time.
func (p *Part) awaitRules(addresses []netip.Addr, most time.Duration) {
	ctx, stop := context.WithTimeout(p.ctx, most)
	defer stop()
	for _, name := range cluster.Families {
		if slices.ContainsFunc(addresses, func(ip netip.Addr) bool { return cluster.FamilyOf(ip) == name }) {
			p.config.Await(ctx, name) // what is late is no reason to wait any longer
		}
	}
}
