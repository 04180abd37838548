package nftables

import (
	"net/netip"
	"strings"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// Packet is the first packet of a flow as it comes to POSTROUTING: its destination is what the
// proxier has made of it.
type Packet struct {
	Source, Destination netip.Addr
	// Protocol is one of the plan's; All stands for any other, ICMP for example.
	Protocol plan.Protocol
}

// Step is a rule that decides about a packet, as nft prints it, and the element that it finds.
type Step struct{ Rule, Element string }

// Trace returns the rule that decides about p, and the address that p then leaves from:
// invalid if it is not SNATed here. About a packet that none finds no rule decides.
func (c Content) Trace(p Packet) (step Step, snat netip.Addr) {
	family := "ip"
	if p.Source.Is6() {
		family = "ip6"
	}
	found := func(rule, set string, key Key) Step {
		return Step{strings.ReplaceAll(rule, "IP", family), text(set, key, c[set][key])}
	}
	for key := range c[exclusionsSet] {
		if !p.Destination.Less(key.Pod) && !key.Other.Less(p.Destination) {
			return found(excludedRule, exclusionsSet, key), netip.Addr{}
		}
	}
	for _, way := range []struct {
		ownRule, ownSet, rule, bindings string
		protocol                        plan.Protocol
	}{{ownRule, ownSet, bindingRule, bindingsMap, p.Protocol}, {ownPodsRule, ownPodsSet, podRule, podsMap, ""}} {
		own, binding := Key{Pod: p.Source, Protocol: way.protocol, Other: p.Destination}, Key{Pod: p.Source, Protocol: way.protocol}
		if _, held := c[way.ownSet][own]; held {
			return found(way.ownRule, way.ownSet, own), netip.Addr{}
		}
		if egressIP, held := c[way.bindings][binding]; held {
			return found(way.rule, way.bindings, binding), egressIP
		}
	}
	return Step{}, netip.Addr{}
}
