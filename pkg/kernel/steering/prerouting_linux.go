package steering

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// prerouting marks what arrives and what is to be steered. A packet without a flow (INVALID) is not met by
// what asks for its flow, so it goes the same way as others. Most packets are of nobody who is bound and of a flow that has
// begun: they get to the end of this chain, with a single look; with none where all egress IPs leave from this node.
//
// What pods send to the nodes' ports would be masqueraded, and look like their node's own. Answers are no exception: another
// node may have masqueraded its pod with such a port, one time in 64,000, and forgets that sooner than this one.
func (l layout) prerouting(pods, steers bool, at links) []nft.Rule {
	var rules []nft.Rule
	if l.config.spoken() {
		for _, port := range l.config.ports() {
			rules = append(rules, l.rule(port.purpose+", forged", to(port), l.Destination(l.First), in(nodesSet), drop(forgedCounter)))
		}
	}
	arrival := interfaceIs(expr.MetaKeyIIFNAME, Device)
	if l.config.Transport == Direct {
		arrival = slices.Concat(interfaceIs(expr.MetaKeyIIFNAME, at.uplink), l.Source(l.First), in(clusterSet),
			l.Destination(l.First), notIn(exclusionsSet), destinationIs(expr.CmpOpNeq, unix.RTN_LOCAL))
	}
	rules = append(rules, l.rule("from another node", arrival, goToChain(arrivalsChain)))
	unusual := l.rule("begins a flow, or is of none", begins(), jump(beginsChain))
	if !steers {
		return append(rules, unusual)
	}
	answer := verdict(expr.VerdictAccept)
	if at.mss > 0 {
		answer = goToChain(answersChain)
	}
	rules = append(rules, l.rule("an answer", reply(), answer), unusual,
		l.rule("of a bound pod", l.Source(l.First), l.protocol(), in(boundSet), goToChain(boundChain)))
	if pods {
		rules = append(rules, l.rule("of a bound pod", l.Source(l.First), in(boundPodsSet), goToChain(boundChain)))
	}
	return rules
}

// answers makes room for the tunnel's headers in what the far side sends: its SYN and ACK tell the pod how large a segment
// may be, and not every pod hears an ICMP message that says so.
func (l layout) answers(pods bool, mss uint16) []nft.Rule {
	answer := slices.Concat(tcpFlags(flagSYN|flagACK, expr.CmpOpEq, flagSYN|flagACK), notSNATed())
	outside := slices.Concat(l.Source(l.First), notIn(exclusionsSet), setMSS(mss))
	rules := []nft.Rule{
		l.rule("the answer to a steered connection fits the tunnel", answer, l.Destination(l.First), l.protocol(), in(boundSet), outside),
	}
	if pods {
		rules = append(rules, l.rule("the answer to a steered connection fits the tunnel", answer, l.Destination(l.First), in(boundPodsSet), outside))
	}
	return rules
}

// begins drops what may not begin a flow. What comes late for a forgotten flow would make one in the other direction, whose
// answers nobody steers.
func (l layout) begins(pods, steers bool) []nft.Rule {
	late := slices.Concat(newFlow(), notDNATed(), tcpFlags(flagSYN|flagRST|flagACK, expr.CmpOpNeq, flagSYN))
	outside := slices.Concat(l.Source(l.First), notIn(exclusionsSet), drop(flippedCounter))
	perhaps := slices.Concat(newFlow(), notDNATed(), compareProtocol(expr.CmpOpNeq, unix.IPPROTO_TCP))
	rules := []nft.Rule{
		l.rule("begins a connection", beginsConnection(), verdict(expr.VerdictReturn)),
		l.rule("an answer to a forgotten flow", late, l.Destination(l.First), l.protocol(), in(boundSet), outside),
		l.rule("perhaps an answer to a forgotten flow", perhaps, l.Destination(l.First), l.protocol(), in(boundSet), jump(lateChain)),
	}
	if pods {
		rules = append(rules,
			l.rule("an answer to a forgotten flow", late, l.Destination(l.First), in(boundPodsSet), outside),
			l.rule("perhaps an answer to a forgotten flow", perhaps, l.Destination(l.First), in(boundPodsSet), jump(lateChain)))
	}
	rules = append(rules, l.rule("of a connection that another node knew", unknown(), tcpFlags(flagSYN|flagRST|flagACK, expr.CmpOpNeq, flagSYN),
		l.Destination(l.First), in(heldSet), jump(nostateChain)))
	if !steers {
		return slices.Concat(l.bindingsBegin(pods), rules)
	}
	return append(rules,
		l.rule("a bound pod's ICMP error about a flow", related(), notSNATed(), l.Destination(l.First), notIn(exclusionsSet),
			l.Source(l.First), l.flowProtocol(), l.takeWayIn(waysMap)))
}

// bound routes a bound pod's packets to the node that holds its egress IP.
func (l layout) bound(pods bool) []nft.Rule {
	rules := []nft.Rule{
		l.rule("of a flow that leaves from this node until it ends", snatted(), verdict(expr.VerdictAccept)),
		l.rule("to a destination that is never SNATed", l.Destination(l.First), in(exclusionsSet), verdict(expr.VerdictAccept)),
		l.rule("to the pod's own egress IP", l.Source(l.First), l.protocol(), l.Destination(l.Third), in(ownSet), verdict(expr.VerdictAccept)),
	}
	if pods {
		rules = append(rules, l.rule("to the pod's own egress IP", l.Source(l.First), l.Destination(l.Second), in(ownPodsSet), verdict(expr.VerdictAccept)))
	}
	rules = append(rules,
		l.rule("begins a flow", newFlow(), jump(astrayChain)),
		l.rule("of a bound pod", l.Source(l.First), l.protocol(), l.takeWayIn(waysMap)))
	if pods {
		rules = append(rules,
			l.rule("of a bound pod", l.Source(l.First), l.takeWayIn(podWaysMap)))
	}
	return rules
}

// bindingsBegin picks out what begins a flow of a bound pod. Where packets are steered, bound does so.
func (l layout) bindingsBegin(pods bool) []nft.Rule {
	rules := []nft.Rule{l.rule("begins a flow of a bound pod", newFlow(), l.Source(l.First), l.protocol(), in(boundSet), jump(astrayChain))}
	if pods {
		rules = append(rules, l.rule("begins a flow of a bound pod", newFlow(), l.Source(l.First), in(boundPodsSet), jump(astrayChain)))
	}
	return rules
}

// astray drops what begins a flow of a bound pod and was not sent by that: what came by another interface than the one by which
// the pod is reached is another pod's, here or on another node. That of a pod of another node comes by arrivals alone: all else was
// sent by somebody into the network plugin's tunnel, or on the nodes' network. What is for this node itself leaves from no egress IP.
func (l layout) astray() []nft.Rule {
	outside := slices.Concat(l.Destination(l.First), notIn(exclusionsSet), destinationIs(expr.CmpOpNeq, unix.RTN_LOCAL))
	return []nft.Rule{
		l.rule("from where the pod is not", cameWhereRouted(false), outside, drop(forgedCounter)),
		l.rule("of a pod of another node", l.Source(l.First), in(awaySet), outside, drop(forgedCounter)),
	}
}

// takeWayIn goes to the chain of ways with what a map has for the key, if anything. The packet's priority carries it there: a
// mark has no room for it beside the bits of others.
func (l layout) takeWayIn(set string) []expr.Any {
	return []expr.Any{
		&expr.Lookup{SourceRegister: l.First, DestRegister: l.First, IsDestRegSet: true, SetName: set},
		&expr.Meta{Key: expr.MetaKeyPRIORITY, Register: l.First, SourceRegister: true},
		&expr.Verdict{Kind: expr.VerdictGoto, Chain: wayChain},
	}
}

// way sends packets where their priority says, which takeWayIn has given them. The rules stay as they are while egress IPs
// move among the same nodes. What is for this node itself gets there all the same.
func (l layout) way(n numbers, holders []netip.Addr) (rules []nft.Rule) {
	for _, node := range holders {
		if number := n[node]; number > 0 {
			rules = append(rules, l.rule(fmt.Sprintf("to %s, number %d", node, number), prioritized(number), l.setMark(number), verdict(expr.VerdictAccept)))
		}
	}
	leaves := destinationIs(expr.CmpOpNeq, unix.RTN_LOCAL)
	return append(rules,
		l.rule("dropped in silence: a node may take it at any moment", prioritized(numberBlackhole), leaves, verdict(expr.VerdictDrop)),
		l.rule("a connection, refused: no node that packets can be sent to has it", beginsConnection(), prioritized(numberProhibit), leaves, reset()),
		l.rule("rejected: no node that packets can be sent to has it", prioritized(numberProhibit), leaves, l.reject()),
		l.rule("for this node", setPriority(0), destinationIs(expr.CmpOpEq, unix.RTN_LOCAL), verdict(expr.VerdictAccept)),
		l.rule("to a node whose rule comes with this transaction", drop(unsnattedCounter)))
}

// arrivals marks what another node has sent here. Without a tunnel, a pod that is not bound here may have sent the answer to
// a client that this node has let in, or a packet to a Service that leads out of the cluster; and what has a bound pod's
// address and comes from no node is another host's, which must not leave from the egress IP.
func (l layout) arrivals(pods bool) []nft.Rule {
	home := l.rule("from another node than the pod's", l.notFromHome())
	arrived := slices.Concat(l.setMark(numberArrived), verdict(expr.VerdictAccept))
	if l.config.Transport == VXLAN {
		return []nft.Rule{home, l.rule("steered", arrived)}
	}
	unbound := l.unbound(pods)
	rules := []nft.Rule{
		l.rule("an answer by a Service", reply(), dnatted(), verdict(expr.VerdictAccept)),
		l.rule("an answer", reply(), unbound, verdict(expr.VerdictAccept)),
		l.rule("to a Service", dnatted(), unbound, verdict(expr.VerdictAccept)),
		home,
		l.rule("steered", hardwareSource(unix.NFT_REG_1), in(sendersSet), arrived),
		l.rule("from no node", l.Source(l.First), l.protocol(), in(boundSet), drop(foreignCounter)),
	}
	if pods {
		rules = append(rules, l.rule("from no node", l.Source(l.First), in(boundPodsSet), drop(foreignCounter)))
	}
	return rules
}

// notFromHome drops what begins a flow and comes from another node than the one on which the pod runs, where that is known.
// For the pod's own node it is one lookup.
func (l layout) notFromHome() []expr.Any {
	return slices.Concat(newFlow(), hardwareSource(l.Second), l.Source(l.First), notIn(homesSet), l.Source(l.First), in(homedSet), drop(forgedCounter))
}

// nostate drops what comes for an egress IP, before the pod's next packet makes the connection known here: this node's
// own TCP would answer with a reset. What this node itself listens for, or has a connection for, passes.
func (l layout) nostate() []nft.Rule {
	own := func(transparent byte) []expr.Any {
		return []expr.Any{
			&expr.Socket{Key: expr.SocketKeyTransparent, Register: unix.NFT_REG_1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: []byte{transparent}},
			&expr.Verdict{Kind: expr.VerdictReturn},
		}
	}
	return []nft.Rule{
		l.rule("for a socket of this node", own(0)),
		l.rule("for a transparent socket of this node", own(1)),
		l.rule("of a connection that another node knew", drop(nostateCounter)),
	}
}

// late drops answers to steered flows of protocols that do not say who begins one. In remember are those of pods that were
// steered; what else comes from outside begins a flow.
func (l layout) late() []nft.Rule {
	hosts := slices.Concat(l.Source(l.First), l.protocol(), l.Destination(l.Third))
	ports := slices.Concat(l.port(0, l.Fourth), l.port(2, l.Fifth))
	var rules []nft.Rule
	for _, protocol := range withPorts {
		rules = append(rules, l.rule("an answer to a forgotten flow", protocolIs(protocol), hosts, ports, in(flowsSet), drop(flippedCounter)))
	}
	return append(rules, l.rule("an answer to a forgotten flow without ports", hosts, in(hostsSet), drop(flippedCounter)))
}

// remember keeps in mind what was steered, as an answer would have it. Each packet counts: conntrack may forget a flow
// at any time. ICMP needs none of that: an answer begins no flow.
func (l layout) remember() []nft.Rule {
	hosts := slices.Concat(l.Destination(l.First), l.protocol(), l.Source(l.Third))
	ports := slices.Concat(l.port(2, l.Fourth), l.port(0, l.Fifth))
	var rules []nft.Rule
	for _, protocol := range withPorts {
		rules = append(rules, l.rule("a steered flow", protocolIs(protocol), hosts, ports, update(flowsSet), verdict(expr.VerdictReturn)))
	}
	return append(rules, l.rule("a steered flow without ports", compareProtocol(expr.CmpOpNeq, l.icmp()), hosts, update(hostsSet)))
}

// withPorts are the protocols, beside TCP, whose flows are told apart by their ports.
var withPorts = []byte{unix.IPPROTO_UDP, unix.IPPROTO_SCTP}

// port loads one of a packet's ports.
func (l layout) port(offset, register uint32) []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: 2}}
}

// reset refuses a connection that a pod begins. An ICMP error is no use there: TCP goes by it only when it has sent its SYN
// again, a second later, because the error comes while connect(2) still has the socket; and the kernel sends a pod few of
// them. A connection that is established is not reset: it goes on when another node has the address.
func reset() []expr.Any {
	return []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}
}

// reject drops a packet and tells who sent it, as a route of the type prohibit does.
func (l layout) reject() []expr.Any {
	const filtered, adminProhibited = 13, 1 // RFC 1812, section 5.2.7.1; RFC 4443, section 3.1
	code := byte(filtered)
	if l.config.Family == kernel.IPv6 {
		code = adminProhibited
	}
	return []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: code}}
}

// unbound lets packets pass that are of no bound pod.
func (l layout) unbound(pods bool) []expr.Any {
	unbound := slices.Concat(l.Source(l.First), l.protocol(), notIn(boundSet))
	if pods {
		unbound = append(unbound, slices.Concat(l.Source(l.First), notIn(boundPodsSet))...)
	}
	return unbound
}

// largestSegment is that of TCP in packets that fit an MTU.
func largestSegment(family kernel.Family, mtu int) uint16 {
	headers := 40
	if family == kernel.IPv6 {
		headers = 60
	}
	return uint16(min(max(mtu-headers, 0), 0xffff))
}
