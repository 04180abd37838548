package steering

import (
	"fmt"
	"net/netip"

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
			rules = append(rules, l.rule(port.purpose+", forged", port.to()+" IP daddr @"+nodesSet+drop(forgedCounter)))
		}
	}
	arrival := `meta iifname "` + Device + `"`
	if l.config.Transport == Direct {
		arrival = fmt.Sprintf(`meta iifname "%s" IP saddr @%s %s %s`, at.uplink, clusterSet, toOutside, notToHere)
	}
	if l.config.Transport != Direct || at.uplink != "" { // without an uplink nothing comes from another node
		rules = append(rules, l.rule("from another node", arrival+" goto "+arrivalsChain))
	}
	unusual := l.rule("begins a flow, or is of none", "ct state invalid,new,related jump "+beginsChain)
	if !steers {
		return append(rules, unusual)
	}
	answer := "ct direction reply accept"
	if at.mss > 0 {
		answer = "ct direction reply goto " + answersChain
	}
	rules = append(rules, l.rule("an answer", answer), unusual)
	for _, k := range selectors(pods) {
		rules = append(rules, l.rule("of a bound pod", k.fromBound()+" goto "+boundChain))
	}
	return rules
}

// answers makes room for the tunnel's headers in what the far side sends: its SYN and ACK tell the pod how large a segment
// may be, and not every pod hears an ICMP message that says so.
func (l layout) answers(pods bool, mss uint16) (rules []nft.Rule) {
	for _, k := range selectors(pods) {
		rules = append(rules, l.rule("the answer to a steered connection fits the tunnel", fmt.Sprintf(
			"tcp flags & (syn | ack) == (syn | ack) ct status & snat == 0 %s %s tcp option maxseg size set %d", k.toBound(), fromOutside, mss)))
	}
	return rules
}

// begins drops what may not begin a flow. What comes late for a forgotten flow would make one in the other direction, whose
// answers nobody steers.
func (l layout) begins(pods, steers bool) []nft.Rule {
	rules := []nft.Rule{l.rule("begins a connection", isSYN+" return")}
	if l.config.Family == kernel.IPv6 {
		rules = append(rules, l.rule("behind a header that hides the protocol", hidden+" "+toOutside+drop(unsnattedCounter)),
			l.rule("of no flow, behind a header that hides the protocol", "meta l4proto ah ct state invalid IP saddr @"+clusterSet+" "+toOutside+drop(unsnattedCounter)))
	}
	for _, k := range selectors(pods) {
		rules = append(rules,
			l.rule("an answer to a forgotten flow", "ct state new ct status & dnat == 0 "+notSYN+" "+k.toBound()+" "+fromOutside+drop(flippedCounter)),
			l.rule("perhaps an answer to a forgotten flow", "ct state new ct status & dnat == 0 meta l4proto != tcp "+k.toBound()+" jump "+lateChain))
	}
	rules = append(rules, l.rule("of a connection that another node knew", "ct state invalid,new "+notSYN+" IP daddr @"+heldSet+" jump "+nostateChain))
	if !steers {
		return append(l.bindingsBegin(pods), rules...)
	}
	return append(rules, l.rule("a bound pod's ICMP error about a flow", "ct state related ct status & snat == 0 "+toOutside+
		" meta priority set IP saddr . ct protocol map @"+waysMap+" goto "+wayChain))
}

// bound routes a bound pod's packets to the node that holds its egress IP.
func (l layout) bound(pods bool) []nft.Rule {
	rules := []nft.Rule{
		l.rule("of a flow that leaves from this node until it ends", "ct status snat accept"),
		l.rule("to a destination that is never SNATed", toExcluded),
	}
	for _, k := range selectors(pods) {
		rules = append(rules, l.rule("to the pod's own egress IP", k.own+" "+k.ownSet+" accept"))
	}
	rules = append(rules, l.rule("begins a flow", "ct state new jump "+astrayChain))
	for _, k := range selectors(pods) {
		rules = append(rules, l.rule("of a bound pod", k.takeWay()))
	}
	return rules
}

// bindingsBegin picks out what begins a flow of a bound pod. Where packets are steered, bound does so.
func (l layout) bindingsBegin(pods bool) (rules []nft.Rule) {
	for _, k := range selectors(pods) {
		rules = append(rules, l.rule("begins a flow of a bound pod", "ct state new "+k.fromBound()+" jump "+astrayChain))
	}
	return rules
}

// astray drops what begins a flow of a bound pod and was not sent by that: what came by another interface than the one by which
// the pod is reached is another pod's, here or on another node. That of a pod of another node comes by arrivals alone: all else was
// sent by somebody into the network plugin's tunnel, or on the nodes' network. What is for this node itself leaves from no egress IP.
func (l layout) astray() []nft.Rule {
	return []nft.Rule{
		l.rule("from where the pod is not", "fib saddr . iif oif missing "+toOutside+" "+notToHere+drop(forgedCounter)),
		l.rule("of a pod of another node", "IP saddr @"+awaySet+" "+toOutside+" "+notToHere+drop(forgedCounter)),
	}
}

// way sends packets where their priority says, which takeWay has given them. The rules stay as they are while egress IPs
// move among the same nodes. What is for this node itself gets there all the same.
//
// A connection that a pod begins is refused by a reset. An ICMP error is no use there: TCP goes by it only when it has sent its SYN
// again, a second later, because the error comes while connect(2) still has the socket; and the kernel sends a pod few of
// them. A connection that is established is not reset: it goes on when another node has the address. Other packets are rejected as by a
// route of the type prohibit.
func (l layout) way(n numbers, holders []netip.Addr) (rules []nft.Rule) {
	for _, node := range holders {
		if number := n[node]; number > 0 {
			rules = append(rules, l.rule(fmt.Sprintf("to %s, number %d", node, number), prioritized(number)+l.setMark(number)+" accept"))
		}
	}
	nobody := prioritized(numberProhibit) + notToHere
	return append(rules,
		l.rule("dropped in silence: a node may take it at any moment", prioritized(numberBlackhole)+notToHere+" drop"),
		l.rule("a connection, refused: no node that packets can be sent to has it", isSYN+" "+nobody+" reject with tcp reset"),
		l.rule("rejected: no node that packets can be sent to has it", nobody+" reject with ICMP type admin-prohibited"),
		l.rule("for this node", noPriority+"fib daddr type local accept"),
		l.rule("to a node whose rule comes with this transaction", drop(unsnattedCounter)))
}

// arrivals marks what another node has sent here, but what a Service at an address of this node leads to where nothing is SNATed: that is the
// proxier's to masquerade, or not, as it does with what another pod sends to such a Service. Without a tunnel, a pod that is not bound here
// may have sent the answer to a client that this node has let in, or a packet to a Service that leads out of the cluster; and what has a bound
// pod's address and comes from no node is another host's, which must not leave from the egress IP.
func (l layout) arrivals(pods bool) []nft.Rule {
	home := l.rule("from another node than the pod's", l.notFromHome())
	arrived := l.setMark(numberArrived) + " accept"
	if l.config.Transport == VXLAN {
		return []nft.Rule{home, l.rule("a Service leads it back", "ct status dnat "+toExcluded), l.rule("steered", arrived)}
	}
	unbound := ""
	for _, k := range selectors(pods) {
		unbound += " " + k.from + " != " + k.bound
	}
	rules := []nft.Rule{
		l.rule("an answer by a Service", "ct direction reply ct status dnat accept"),
		l.rule("an answer", "ct direction reply"+unbound+" accept"),
		l.rule("to a Service", "ct status dnat"+unbound+" accept"),
		home,
		l.rule("steered", "ether saddr @"+sendersSet+arrived),
	}
	for _, k := range selectors(pods) {
		rules = append(rules, l.rule("from no node", k.fromBound()+drop(foreignCounter)))
	}
	return rules
}

// notFromHome drops what begins a flow and comes from another node than the one on which the pod runs, where that is known.
// For the pod's own node it is one lookup.
func (l layout) notFromHome() string {
	return "ct state new IP saddr . ether saddr != @" + homesSet + " IP saddr @" + homedSet + drop(forgedCounter)
}

// nostate drops what comes for an egress IP, before the pod's next packet makes the connection known here: this node's
// own TCP would answer with a reset, its UDP with an ICMP error, and the pod's port would be that of a flow to this node, so the pod would
// get another one. What this node itself listens for, or has a connection for, passes.
func (l layout) nostate() []nft.Rule {
	return []nft.Rule{
		l.rule("for a socket of this node", "socket transparent 0 return"),
		l.rule("for a transparent socket of this node", "socket transparent 1 return"),
		l.rule("of a connection that another node knew", drop(nostateCounter)),
	}
}

// input picks out datagrams that may be of a flow that another node knew. It is behind the proxier, which rejects those to a Service without
// endpoints, and in front of conntrack, which makes a flow of what is delivered.
func (l layout) input() []nft.Rule {
	return []nft.Rule{l.rule("perhaps of a flow that another node knew", strayDatagram+" jump "+nostateChain)}
}

// forward is input for an egress IP that is on no interface, as MetalLB has it: this node would send the datagram away again.
func (l layout) forward() []nft.Rule {
	return []nft.Rule{l.rule("perhaps of a flow that another node knew", strayDatagram+" "+fromOutside+drop(nostateCounter))}
}

const strayDatagram = "ct state new meta l4proto udp IP daddr @" + heldSet

// late drops answers to steered flows of protocols that do not say who begins one. In remember are those of pods that were
// steered; what else comes from outside begins a flow.
func (l layout) late() (rules []nft.Rule) {
	for _, protocol := range withPorts {
		rules = append(rules, l.rule("an answer to a forgotten flow", "meta l4proto "+protocol+" "+answerHosts+answerPorts+" @"+flowsSet+drop(flippedCounter)))
	}
	if l.config.PortBlocks {
		rules = append(rules, l.rule("to a pod's own port, and the pod has begun no such flow",
			"meta l4proto udp "+fromOutside+" IP daddr . th dport @"+ownPortsSet+drop(flippedCounter)))
	}
	return append(rules, l.rule("an answer to a forgotten flow without ports", answerHosts+" @"+hostsSet+drop(flippedCounter)))
}

// remember keeps in mind what was steered, as an answer would have it. Each packet counts: conntrack may forget a flow
// at any time. ICMP needs none of that: an answer begins no flow.
func (l layout) remember() (rules []nft.Rule) {
	for _, protocol := range withPorts {
		rules = append(rules, l.rule("a steered flow", "meta l4proto "+protocol+" update @"+flowsSet+" { "+steerHosts+steerPorts+" } return"))
	}
	return append(rules, l.rule("a steered flow without ports", "meta l4proto != udp meta l4proto != sctp meta l4proto != ICMP update @"+hostsSet+" { "+steerHosts+" }"))
}

// withPorts are the protocols, beside TCP, whose flows are told apart by their ports.
var withPorts = []string{"udp", "sctp"}

// largestSegment is that of TCP in packets that fit an MTU.
func largestSegment(family kernel.Family, mtu int) uint16 {
	headers := 40
	if family == kernel.IPv6 {
		headers = 60
	}
	return uint16(min(max(mtu-headers, 0), 0xffff))
}
