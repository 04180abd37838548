package steering

import (
	"fmt"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// first marks the first packet of a flow that is to be SNATed on this node. The mark goes with what gives it its
// egress IP. Once that is decided, the kernel confirms the flow, and what follows has no mark.
func (l layout) first(pods bool) (rules []nft.Rule) {
	for _, k := range selectors(pods) {
		rules = append(rules, l.rule("a bound pod's flow begins",
			k.leaving()+" ct state new ct status & confirmed == 0 "+l.markedWith(0)+toOutside+l.setMark(numberLocal)))
	}
	return rules
}

// postrouting gives flows their egress IP that leave from this node. What has arrived and no binding takes keeps its source. A rule for blocks
// that nft has made of a listing takes the mark also where it finds nothing: then what no binding takes gets it back, for the guard to drop it.
func (l layout) postrouting(pods bool, b *blocks) []nft.Rule {
	rules := []nft.Rule{l.rule("does not leave from this node", l.notMarkedToLeave()+"goto "+onwardChain)}
	for _, k := range selectors(pods) {
		rules = append(rules, l.givePorts(k, b)...)
		rules = append(rules, l.rule("leaves from this node", k.giveBySource()))
	}
	rules = append(rules, l.rule("without a binding", l.markedWith(numberArrived)+"snat to IP saddr"))
	if l.config.PortBlocks {
		rules = append(rules, l.rule("without a binding and a mark", l.markedWith(0)+l.setMark(numberLocal)))
	}
	return rules
}

// onward has what is on its way to another node, or to a pod, keep its source: nobody masquerades it then.
func (l layout) onward() []nft.Rule {
	rules := []nft.Rule{l.rule("of no bound pod", l.markedWith(0)+"accept")}
	if l.config.PortBlocks {
		rules = append(rules, l.keepFarPort()...)
	}
	return append(rules, l.rule("to another node", "snat to IP saddr"))
}

// source returns the rules that give an egress IP. Arrivals, and this node's pods if it holds the address, keep their
// ports, so that TCP connections live on when another node takes the address. Others get them as from the rules of
// source NAT. The mark that is left for the guard to find is that of a flow that somebody else has given a source.
func (l layout) source(g giver) []nft.Rule {
	if g.shared != (kernel.Ports{}) {
		return l.giveShared(g.egressIP, g.shared)
	}
	give := l.setMark(0) + " snat to " + g.egressIP.String()
	if g.held {
		return []nft.Rule{l.rule("held here: ports stay", give)}
	}
	return []nft.Rule{
		l.rule("from another node: ports stay", l.markedWith(numberArrived)+give),
		l.rule("from this node", give+" fully-random"),
	}
}

// guard drops what a bound pod has sent and what does not leave from its egress IP. In front of the drops nobody
// asks for the packet's flow, but to let answers pass.
func (l layout) guard(pods bool) []nft.Rule {
	outside := " " + toOutside + drop(unsnattedCounter)
	rules := []nft.Rule{
		l.rule("marked by this table", l.isMarked()+"jump "+markedChain),
		l.rule("an answer", "ct direction reply accept"),
	}
	for _, k := range selectors(pods) {
		rules = append(rules, l.rule("a bound pod's packet that was not SNATed", k.leaving()+outside))
	}
	about := strings.NewReplacer("meta l4proto", "ct protocol").Replace(ofOneProtocol.leaving())
	return append(rules, l.rule("a bound pod's ICMP error that was not SNATed", "meta l4proto ICMP ct state related "+about+outside))
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
