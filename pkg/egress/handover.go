package egress

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/handover"
)

// goesOn is how long a node that has handed an egress IP over sends its own pods' packets from it. When it ends that, it forgets
// the connections of other nodes' pods, too: those nodes send to the new holder by then.
const goesOn = handover.Time / 2

// handovers keep connections while egress IPs go from one live node to another, in both IP families.
type handovers map[v1.IPFamily]handoverWriter

// handoverWriter is a [handover.Writer].
type handoverWriter interface {
	Pass(former map[netip.Addr]netip.Addr) error
	Leave(addresses []netip.Addr) error
}

// startHandovers begins to write what handovers take; an error says why this kernel cannot.
func (e *Extension) startHandovers(ctx context.Context) (handovers, error) {
	h := handovers{}
	for _, family := range families {
		if err := handover.Available(kernel.Family(family)); err != nil {
			return nil, err
		}
	}
	for _, family := range families {
		w := handover.NewWriter(kernel.Family(family))
		e.running.Go(func() { w.Run(ctx) })
		h[family] = w
	}
	return h, nil
}

// passOn has this node pass on what belongs to connections of the nodes that had these egress IPs.
func (p *poolNode) passOn(former map[netip.Addr]string) {
	nodes := map[v1.IPFamily]map[netip.Addr]netip.Addr{}
	for ip, name := range former {
		family := familyOf(ip)
		addresses := p.extension.state.primaries(family)
		self, node := addresses[p.extension.config.NodeName], addresses[name]
		if !self.IsValid() || !node.IsValid() || p.extension.steerer.adjacent(self, node) != nil {
			continue // a router would send it back
		}
		if nodes[family] == nil {
			nodes[family] = map[netip.Addr]netip.Addr{}
		}
		nodes[family][ip] = node
	}
	for family, of := range nodes {
		if w := p.handovers[family]; w != nil {
			p.complain(w.Pass(of), slices.Collect(maps.Keys(of)))
		}
	}
}

// leaveTo has this node drop what it does not track of egress IPs that it removes: another node may pass it on.
func (p *poolNode) leaveTo(addresses []netip.Addr) {
	of := map[v1.IPFamily][]netip.Addr{}
	for _, ip := range addresses {
		of[familyOf(ip)] = append(of[familyOf(ip)], ip)
	}
	for family, list := range of {
		if w := p.handovers[family]; w != nil {
			p.complain(w.Leave(list), list)
		}
	}
}

func (p *poolNode) complain(err error, addresses []netip.Addr) {
	if err != nil {
		slices.SortFunc(addresses, netip.Addr.Compare)
		p.logger.Info("Connections that begin while egress IPs are handed over may take a second", "addresses", addresses, "reason", err.Error())
	}
}

// handOver goes on with the connections of egress IPs that another node has now, until all nodes send to that one.
func (p *poolNode) handOver(addresses []netip.Addr) {
	p.leaveTo(addresses)
	p.extension.steerer.apply(holders.HandingOver{Addresses: addresses})
	time.AfterFunc(goesOn, func() { p.extension.steerer.apply(holders.HandedOver{Addresses: addresses}) })
}
