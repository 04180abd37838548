package steering

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Packet is the first packet of a flow as it comes to POSTROUTING: its destination is what the proxier has made of it.
type Packet struct {
	Source, Destination netip.Addr
	// Protocol is one of the plan's; All stands for any other, ICMP for example.
	Protocol kernel.Protocol
}

// Step is what of a rule decides about a packet's source, as nft prints it, and the element by which the rule gives the packet its egress
// IP, or lets it pass.
type Step struct{ Rule, Element string }

// Tracer follows packets through the table of the node from which they leave.
type Tracer struct {
	content *content
	sets    []nft.Set
	// excluded is what lets a flow keep its source to a destination that is never SNATed, give what gives it the egress IP of its pod.
	excluded, give func(selector) string
	// own is what lets a flow to the pod's own egress IP keep its source.
	own func(Tracer, selector, places) Step
}

// NewTracer returns the Tracer for the bindings and the blocks of source ports of d, in [Table].
func NewTracer(family kernel.Family, d kernel.Desired) Tracer {
	d.Steering.Blocks = slices.SortedFunc(slices.Values(d.Steering.Blocks), kernel.CompareBlocks)
	config := Config{Family: family, PortBlocks: true}
	excluded := func(selector) string { return toExcluded }
	own := func(t Tracer, _ selector, at places) Step { return t.step(toOwn(at.ownKey.Other), at.sources, at.key) }
	return Tracer{newContent(config, d, nil), setsOf(config), excluded, selector.giveBySource, own}
}

// NewLocalTracer returns the Tracer for the bindings of d, in [LocalTable].
func NewLocalTracer(family kernel.Family, d kernel.Desired) Tracer {
	excluded := func(selector) string { return toOutside }
	give := func(k selector) string { return k.giveLocally(family) }
	own := func(t Tracer, k selector, at places) Step {
		return t.step(k.notToOwnLocally(family), at.own, at.ownKey)
	}
	return Tracer{localContent(family, d), localSets(), excluded, give, own}
}

// Trace returns the rule that is for p, and the address that p then leaves from: invalid if it keeps its source. There is no rule for a
// packet whose source is not bound.
func (t Tracer) Trace(p Packet) (step Step, snat netip.Addr) {
	for _, way := range []struct {
		selector
		protocol kernel.Protocol
	}{{ofOneProtocol, p.Protocol}, {ofAllProtocols, kernel.All}} {
		at := placesOf(kernel.Binding{Pod: p.Source, Protocol: way.protocol, EgressIP: p.Destination})
		egressIP, bound := t.content.sets[at.sources][at.key]
		if !bound || way.protocol == kernel.All && way.selector == ofOneProtocol {
			continue
		}
		if exclusion, excluded := t.exclusion(p.Destination); excluded {
			return t.step(t.excluded(way.selector), exclusionsSet, exclusion), netip.Addr{}
		}
		if _, own := t.content.sets[at.own][at.ownKey]; own {
			return t.own(t, way.selector, at), netip.Addr{}
		}
		if ports, given := t.content.blocks.given[at.blocks][at.key]; given && p.Protocol != kernel.All {
			return t.step("snat IP to "+way.from+" map "+way.blocksMap, at.blocks, keyWith(at.key, ports.last())), egressIP
		}
		return t.step(t.give(way.selector), at.sources, at.key), egressIP
	}
	return Step{}, netip.Addr{}
}

func (t Tracer) step(rule, set string, key nft.Key) Step {
	family := "ip"
	if t.content.config.Family == kernel.IPv6 {
		family = "ip6"
	}
	of := t.sets[slices.IndexFunc(t.sets, func(s nft.Set) bool { return s.Name == set })]
	return Step{strings.ReplaceAll(rule, "IP", family), of.Text(key, t.content.sets[set][key])}
}

// exclusion returns the range of the exclusions that an address is in.
func (t Tracer) exclusion(ip netip.Addr) (key nft.Key, excluded bool) {
	for key := range t.content.sets[exclusionsSet] {
		if !ip.Less(key.Pod) && !key.Other.Less(ip) {
			return key, true
		}
	}
	return nft.Key{}, false
}
