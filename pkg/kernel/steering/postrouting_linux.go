package steering

import (
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// first marks the first packet of a flow that is to be SNATed on this node. The mark goes with what gives it its
// egress IP. Once that is decided, the kernel confirms the flow, and what follows has no mark.
func (l layout) first(pods bool) []nft.Rule {
	first := slices.Concat(newFlow(), unconfirmed(), l.unmarked())
	outside := slices.Concat(l.Destination(l.First), notIn(exclusionsSet), l.setMark(numberLocal))
	rules := []nft.Rule{l.rule("a bound pod's flow begins", l.boundPod(l.protocol()), first, outside)}
	if pods {
		rules = append(rules, l.rule("a bound pod's flow begins", l.boundPodOfAll(), first, outside))
	}
	return rules
}

// postrouting gives flows their egress IP that leave from this node. What is on its way to another node, and what
// has arrived and no binding takes, keeps its source: nobody masquerades it then.
func (l layout) postrouting(pods bool) []nft.Rule {
	leaves := l.markedToLeave()
	rules := []nft.Rule{l.rule("leaves from this node", leaves, l.Source(l.First), l.protocol(), goToChainIn(sourcesMap))}
	if pods {
		rules = append(rules, l.rule("leaves from this node", leaves, l.Source(l.First), goToChainIn(podSourcesMap)))
	}
	return append(rules, l.rule("to another node, or without a binding", l.isMarked(), l.notMarkedWith(numberLocal), l.Source(l.First), l.snat()))
}

// source returns the rules that give an egress IP. Arrivals, and this node's pods if it holds the address, keep their
// ports, so that TCP connections live on when another node takes the address. Others get them as from the rules of
// source NAT. The mark that is left for the guard to find is that of a flow that somebody else has given a source.
func (l layout) source(g giver) []nft.Rule {
	give := func(random bool) []expr.Any {
		return append(l.setMark(0),
			&expr.Immediate{Register: l.First, Data: g.egressIP.AsSlice()},
			&expr.NAT{Type: expr.NATTypeSourceNAT, Family: l.NAT, RegAddrMin: l.First, FullyRandom: random})
	}
	if g.held {
		return []nft.Rule{l.rule("held here: ports stay", give(false))}
	}
	return []nft.Rule{
		l.rule("from another node: ports stay", l.markedWith(numberArrived), give(false)),
		l.rule("from this node", give(true)),
	}
}

// guard drops what a bound pod has sent and what does not leave from its egress IP. In front of the drops nobody
// asks for the packet's flow, but to let answers pass.
func (l layout) guard(pods bool) []nft.Rule {
	outside := slices.Concat(l.Destination(l.First), notIn(exclusionsSet), drop(unsnattedCounter))
	rules := []nft.Rule{
		l.rule("marked by this table", l.isMarked(), jump(markedChain)),
		l.rule("an answer", reply(), verdict(expr.VerdictAccept)),
		l.rule("a bound pod's packet that was not SNATed", l.boundPod(l.protocol()), outside),
		l.rule("a bound pod's ICMP error that was not SNATed", protocolIs(l.icmp()), related(), l.boundPod(l.flowProtocol()), outside),
	}
	if pods {
		rules = append(rules, l.rule("a bound pod's packet that was not SNATed", l.boundPodOfAll(), outside))
	}
	return rules
}

// marked lets pass what leaves as it should: arrivals of flows whose first packet has passed, from an egress IP, and
// packets to other nodes by the way to them. The marks end here: packets that wrap these would have them too.
// A first packet that still has its mark got its source from somebody else, or from nobody. The kernel's own IGMP and MLD
// reports have some mark: it keeps another number there while it makes them (reserved_tailroom of struct sk_buff).
func (l layout) marked() []nft.Rule {
	leaves := interfaceIs(expr.MetaKeyOIFNAME, Device)
	if l.config.Transport == Direct {
		leaves = slices.Concat(l.nextHop(l.First), in(nodesSet))
	}
	return []nft.Rule{
		l.rule("from another node", l.markedWith(numberArrived), confirmed(), snatted(), l.Source(l.First), in(egressIPsSet), l.pass()),
		l.rule("to another node", l.markedForHolder(), leaves, goToChain(steeredChain)),
		l.rule("a report of this node", destinationIs(expr.CmpOpEq, unix.RTN_MULTICAST), verdict(expr.VerdictReturn)),
		l.rule("from another node, without a binding", l.markedWith(numberArrived), drop(staleCounter)),
		l.rule("nobody or somebody else has SNATed it, or it is on its way to elsewhere", drop(unsnattedCounter)),
	}
}

// steered lets pass what is on its way to another node.
func (l layout) steered() []nft.Rule {
	return []nft.Rule{
		l.rule("somebody has SNATed what is to be steered", snatted(), drop(unsnattedCounter)),
		l.rule("not of TCP", compareProtocol(expr.CmpOpNeq, unix.IPPROTO_TCP), jump(rememberChain)),
		l.rule("to another node", l.pass()),
	}
}

// pass lets a packet go without our mark.
func (l layout) pass() []expr.Any { return slices.Concat(l.setMark(0), verdict(expr.VerdictAccept)) }

// boundPod lets packets pass that are a bound pod's and not for its own egress IP. protocol loads
// that of the binding.
func (l layout) boundPod(protocol []expr.Any) []expr.Any {
	key := slices.Concat(l.Source(l.First), protocol)
	return slices.Concat(key, in(boundSet), key, l.Destination(l.Third), notIn(ownSet))
}

// boundPodOfAll is boundPod for bindings of all protocols. That of a single protocol goes before.
func (l layout) boundPodOfAll() []expr.Any {
	return slices.Concat(l.Source(l.First), in(boundPodsSet), l.Source(l.First), l.Destination(l.Second), notIn(ownPodsSet),
		l.Source(l.First), l.protocol(), notIn(boundSet))
}

// nextHop loads the address that the packet is sent to next.
func (l layout) nextHop(register uint32) []expr.Any {
	key := expr.RtNexthop4
	if l.config.Family == kernel.IPv6 {
		key = expr.RtNexthop6
	}
	return []expr.Any{&expr.Rt{Key: key, Register: register}}
}

// snat gives the packet the address that was loaded, and leaves the port if it can.
func (l layout) snat() []expr.Any {
	return []expr.Any{&expr.NAT{Type: expr.NATTypeSourceNAT, Family: l.NAT, RegAddrMin: l.First}}
}
