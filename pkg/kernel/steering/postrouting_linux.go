package steering

import (
	"fmt"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// postrouting picks out what gets an egress IP here. Nobody else's packets are asked for more.
func (l layout) postrouting(pods bool) []nft.Rule {
	rules := []nft.Rule{l.rule("of another node, or for one", l.isMarked()+"goto "+onwardChain)}
	for _, k := range selectors(pods) {
		rules = append(rules, l.rule("a bound pod's flow begins", k.fromBound()+" goto "+leavesChain))
	}
	return rules
}

// leaves gives flows that leave from this node their egress IP. What has come from another node and no binding takes keeps its source. A flow
// of this node that gets none, because its binding is on its way out or [Halt] has taken the sources, gets a mark that nothing takes away: the
// guard drops it, also if other software has masqueraded it.
func (l layout) leaves(pods bool) (rules []nft.Rule) {
	for _, k := range selectors(pods) {
		rules = append(rules, l.rule("leaves from this node", k.giveBySource()))
	}
	rules = append(rules, l.rule("from another node, without a binding", l.markedWith(numberArrived)+"snat to IP saddr"))
	for _, k := range selectors(pods) {
		rules = append(rules, l.rule("without an egress IP", k.leaving()+" "+toOutside+l.setMark(numberDropped)))
	}
	return rules
}

// onward has what is on its way to another node, or to a pod, keep its source: nobody masquerades it then.
func (l layout) onward() []nft.Rule {
	rules := []nft.Rule{l.rule("from another node", l.markedWith(numberArrived)+"goto "+leavesChain)}
	if l.config.PortBlocks {
		rules = append(rules, l.keepFarPort()...)
	}
	return append(rules, l.rule("to another node", "snat to IP saddr"))
}

// source returns the rules that give an egress IP. Arrivals, and this node's pods if it holds the address, keep their
// ports, so that TCP connections live on when another node takes it. Others get them as from the rules of
// source NAT. What has arrived was judged by its own node, and loses its mark with its source: one that still has the mark behind source NAT
// got another source from somebody else.
func (l layout) source(g giver) []nft.Rule {
	rules := []nft.Rule{
		l.rule("to the pod's own egress IP", toOwn(g.egressIP)),
		l.rule("to a destination that is never SNATed", l.markedWith(0)+toExcluded),
	}
	if l.config.PortBlocks {
		rules = append(rules, l.rule("from ports of the pod's own", "jump "+portsChain))
	}
	give := l.setMark(0) + " snat to " + g.egressIP.String()
	switch {
	case g.shared != (kernel.Ports{}):
		return append(rules, l.giveShared(give, g.shared)...)
	case g.held:
		return append(rules, l.rule("held here: ports stay", give))
	}
	return append(rules,
		l.rule("from another node: ports stay", l.markedWith(numberArrived)+give),
		l.rule("from this node", give+" fully-random"))
}

// guard drops what a bound pod has sent and what does not leave from its egress IP. In front of the drops nobody
// asks for the packet's flow, but to let answers pass; nor for its protocol, where bindings are of all: a packet whose IPv6 headers end too
// early has none.
func (l layout) guard(pods bool) []nft.Rule {
	outside := " " + toOutside + drop(unsnattedCounter)
	rules := []nft.Rule{
		l.rule("marked by this table", l.isMarked()+"jump "+markedChain),
		l.rule("an answer", "ct direction reply accept"),
	}
	rules = append(rules, l.rule("a bound pod's packet that was not SNATed", ofOneProtocol.leaving()+outside))
	if k := ofAllProtocols; pods {
		rules = append(rules, l.rule("a bound pod's packet that was not SNATed", k.fromBound()+" "+k.own+" != "+k.ownSet+" "+toOutside+" jump "+unsnattedChain))
	}
	if l.config.Family == kernel.IPv6 {
		rules = append(rules, l.rule("a bound pod's packet behind a header that hides the protocol", hidden+outside))
	}
	return append(rules, l.rule("a bound pod's ICMP error that was not SNATed", "meta l4proto ICMP ct state related "+byFlow(ofOneProtocol.leaving())+outside))
}

// unsnatted drops what a pod that is bound for all protocols has sent, unless it is for an egress IP that the pod has for one.
func (l layout) unsnatted() []nft.Rule {
	return []nft.Rule{
		l.rule("to an egress IP of the pod's own", ofOneProtocol.own+" "+ofOneProtocol.ownSet+" accept"),
		l.rule("not SNATed", drop(unsnattedCounter)),
	}
}

// marked lets pass what leaves as it should: arrivals of flows whose first packet has passed, from an egress IP, and
// packets to other nodes by the way to them. The marks end here: packets that wrap these would have them too.
// A first packet that still has its mark got its source from somebody else, or from nobody. The kernel's own IGMP and MLD
// reports have some mark: it keeps another number there while it makes them (reserved_tailroom of struct sk_buff).
func (l layout) marked() []nft.Rule {
	leaves := fmt.Sprintf("meta oifname %q", Device)
	if l.config.Transport == Direct {
		leaves = "rt IP nexthop @" + nodesSet
	}
	return append(l.markedInward(), []nft.Rule{
		l.rule("from another node", l.markedWith(numberArrived)+"ct status confirmed ct status snat IP saddr @"+egressIPsSet+l.pass()),
		l.rule("to another node", l.markedForHolder()+leaves+" goto "+steeredChain),
		l.rule("a report of this node", "fib daddr type multicast return"),
		l.rule("from another node, without a binding", l.markedWith(numberArrived)+drop(staleCounter)),
		l.rule("not SNATed, or SNATed by other software, or on a wrong way", drop(unsnattedCounter)),
	}...)
}

// markedInward lets pass what goes to the pod whose port it is for, and what such a pod on another node has sent to it as an answer: its source
// is the egress IP then.
func (l layout) markedInward() []nft.Rule {
	if !l.config.PortBlocks {
		return nil
	}
	return []nft.Rule{
		l.rule("to the pod whose port it is for", l.markedWith(numberInward)+l.pass()),
		l.rule("from another node, of a flow that the far side has made known", l.markedWith(numberArrived)+
			"ct direction reply ct status dnat IP saddr @"+egressIPsSet+l.pass()),
	}
}

// steered lets pass what is on its way to another node.
func (l layout) steered() []nft.Rule {
	return []nft.Rule{
		l.rule("for another node, but SNATed by other software", "ct status snat"+drop(unsnattedCounter)),
		l.rule("not of TCP", "meta l4proto != tcp jump "+rememberChain),
		l.rule("to another node", l.pass()),
	}
}
