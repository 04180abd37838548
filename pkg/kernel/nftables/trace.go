package nftables

import (
	"net/netip"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Packet is the first packet of a flow as it comes to POSTROUTING: its destination is what the
// proxier has made of it.
type Packet struct {
	Source, Destination netip.Addr
	// Protocol is one of the plan's; All stands for any other, ICMP for example.
	Protocol kernel.Protocol
}

// Step is the rule that is for a packet, as nft prints it, and the element by which that SNATs
// it, or lets it pass.
type Step struct{ Rule, Element string }

// Trace returns the rule that is for p, and the address that p then leaves from: invalid
// if it is not SNATed here. There is no rule for a packet whose source is not bound.
func (c Content) Trace(p Packet) (step Step, snat netip.Addr) {
	for _, way := range []struct {
		rule, amongRule, ownSet, bindings string
		protocol                          kernel.Protocol
	}{{bindingRule, bindingAmongRule, ownSet, bindingsMap, p.Protocol}, {podRule, podAmongRule, ownPodsSet, podsMap, ""}} {
		own, binding := Key{Pod: p.Source, Protocol: way.protocol, Other: p.Destination}, Key{Pod: p.Source, Protocol: way.protocol}
		egressIP, bound := c[way.bindings][binding]
		if !bound {
			continue
		}
		rule := way.rule
		if _, among := c[egressIPsSet][Key{Pod: p.Destination}]; among {
			rule = way.amongRule
		}
		if exclusion, excluded := c.exclusion(p.Destination); excluded {
			return c.step(p, rule, exclusionsSet, exclusion), netip.Addr{}
		}
		if _, held := c[way.ownSet][own]; held {
			return c.step(p, rule, way.ownSet, own), netip.Addr{}
		}
		return c.step(p, rule, way.bindings, binding), egressIP
	}
	return Step{}, netip.Addr{}
}

func (c Content) step(p Packet, rule, set string, key Key) Step {
	family := "ip"
	if p.Source.Is6() {
		family = "ip6"
	}
	return Step{strings.ReplaceAll(rule, "IP", family), text(set, key, c[set][key])}
}

// exclusion returns the range of the exclusions that an address is in.
func (c Content) exclusion(ip netip.Addr) (key Key, excluded bool) {
	for key := range c[exclusionsSet] {
		if !ip.Less(key.Pod) && !key.Other.Less(ip) {
			return key, true
		}
	}
	return Key{}, false
}
