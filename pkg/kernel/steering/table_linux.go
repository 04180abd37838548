package steering

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nftables/table"
)

// The base chains, and the one for marked packets. doc.go says why each is where it is.
const (
	tunnelInputChain  = "tunnel-input"
	portsInputChain   = "ports-input"
	portChains        = "port-" // begins the names of chains
	tunnelOutputChain = "tunnel-output"
	preroutingChain   = "prerouting"
	arrivalsChain     = "arrivals"
	answersChain      = "answers"
	beginsChain       = "begins"
	boundChain        = "bound-pod"
	wayChain          = "way"
	firstChain        = "first"
	postroutingChain  = "postrouting"
	guardChain        = "guard"
	markedChain       = "marked"
	steeredChain      = "steered"
	nostateChain      = "nostate"
	lateChain         = "late"
	rememberChain     = "remember"
	beforeChain       = "before" // no packet comes there
)

// Priorities: of ways behind everybody's DNAT, and around everybody's source NAT, which is at 100 for chains of other types.
// The first is the lowest that the kernel allows a chain of NAT.
var (
	waysPriority  = *nftables.ChainPriorityNATDest + 5
	firstPriority = *nftables.ChainPriorityConntrack + 1
	natPriority   = *nftables.ChainPriorityNATSource - 2
	guardPriority = *nftables.ChainPriorityNATSource + 1
)

// layout makes the rules of the table.
type layout struct {
	table.Family
	config Config
	// speakers has the rules of the nodes' chains, which are many and never change.
	speakers map[netip.Addr][]table.Rule
	// sources are the rules that give egress IPs. There may be a thousand, and few of them change.
	sources map[giver][]table.Rule
}

// giver is what the rules that give an egress IP depend on.
type giver struct {
	egressIP netip.Addr
	held     bool
}

func newLayout(c Config) layout {
	return layout{table.FamilyOf(c.Family), c, map[netip.Addr][]table.Rule{}, map[giver][]table.Rule{}}
}

// spec returns what never changes of the table.
func (l layout) spec() table.Spec {
	filter := func(name string, hook *nftables.ChainHook, priority nftables.ChainPriority) table.Chain {
		return table.Chain{Name: name, Type: nftables.ChainTypeFilter, Hook: hook, Priority: priority}
	}
	chains := []table.Chain{
		filter(preroutingChain, nftables.ChainHookPrerouting, waysPriority),
		{Name: firstChain, Type: nftables.ChainTypeNAT, Hook: nftables.ChainHookPostrouting, Priority: firstPriority},
		{Name: postroutingChain, Type: nftables.ChainTypeNAT, Hook: nftables.ChainHookPostrouting, Priority: natPriority},
		filter(guardChain, nftables.ChainHookPostrouting, guardPriority),
	}
	if len(l.config.ports()) > 0 {
		chains = append(chains,
			filter(tunnelInputChain, nftables.ChainHookPrerouting, *nftables.ChainPriorityRaw),
			filter(portsInputChain, nftables.ChainHookInput, *nftables.ChainPriorityRaw),
			filter(tunnelOutputChain, nftables.ChainHookOutput, *nftables.ChainPriorityRaw))
	}
	return table.Spec{Name: Table, Family: l.config.Family, Sets: sets, Counters: counters, Chains: chains}
}

// links are what the table depends on of interfaces.
type links struct {
	// uplink is the interface by which packets of other nodes come without a tunnel.
	uplink string
	// mss is the largest segment that fits the tunnel; 0 if there is none.
	mss uint16
}

// stateOf returns what the table should hold for a content, whose ways it points to nodes by these numbers.
func (l layout) stateOf(c *content, n numbers, at links) table.State {
	c.point(table.NewEdit(c.sets), n)
	chains := map[string][]table.Rule{
		preroutingChain:  l.prerouting(c.pods > 0, c.steers(), at),
		arrivalsChain:    l.arrivals(c.pods > 0),
		beginsChain:      l.begins(c.pods > 0, c.steers()),
		firstChain:       l.first(c.pods > 0),
		postroutingChain: l.postrouting(c.pods > 0),
		guardChain:       l.guard(c.pods > 0),
		markedChain:      l.marked(),
		steeredChain:     l.steered(),
		nostateChain:     l.nostate(),
		lateChain:        l.late(),
		rememberChain:    l.remember(),
	}
	if c.steers() {
		chains[boundChain], chains[wayChain] = l.bound(c.pods > 0), l.way(n, c.holders())
	}
	if c.steers() && at.mss > 0 {
		chains[answersChain] = l.answers(c.pods > 0, at.mss)
	}
	if len(l.config.ports()) > 0 {
		chains[tunnelInputChain], chains[portsInputChain], chains[tunnelOutputChain] = l.tunnelInput(), l.portsInput(), l.tunnelOutput()
	}
	for _, port := range l.config.ports() {
		chains[portChain(port)] = l.toPort(port)
	}
	for speaker := range c.sets[speakersMap] {
		chains[table.ChainOf(nodeChains, speaker.Pod)] = l.speaker(speaker.Pod)
	}
	if len(c.before) > 0 {
		chains[beforeChain] = l.before(c.before)
	}
	for egressIP := range c.uses {
		g := giver{egressIP, c.held[egressIP]}
		if l.sources[g] == nil {
			l.sources[g] = l.source(g)
		}
		chains[table.ChainOf(sourceChains, egressIP)] = l.sources[g]
	}
	maps.DeleteFunc(l.sources, func(g giver, _ []table.Rule) bool { return c.uses[g.egressIP] == 0 })
	return table.State{Sets: c.sets, Chains: chains}
}

// source returns the rules that give an egress IP. Arrivals, and this node's pods if it holds the address, keep their
// ports, so that TCP connections live on when another node takes the address. Others get them as from the rules of
// source NAT. The mark that is left for the guard to find is that of a flow that somebody else has given a source.
func (l layout) source(g giver) []table.Rule {
	give := func(random bool) []expr.Any {
		return append(l.setMark(0),
			&expr.Immediate{Register: l.First, Data: g.egressIP.AsSlice()},
			&expr.NAT{Type: expr.NATTypeSourceNAT, Family: l.NAT, RegAddrMin: l.First, FullyRandom: random})
	}
	if g.held {
		return []table.Rule{l.rule("held here: ports stay", give(false))}
	}
	return []table.Rule{
		l.rule("from another node: ports stay", l.markedWith(numberArrived), give(false)),
		l.rule("from this node", give(true)),
	}
}

// way sends packets where their priority says, which takeWayIn has given them. The rules stay as they are while egress IPs
// move among the same nodes. What is for this node itself gets there all the same.
func (l layout) way(n numbers, holders []netip.Addr) (rules []table.Rule) {
	for _, node := range holders {
		if number := n[node]; number > 0 {
			rules = append(rules, l.rule(fmt.Sprintf("to %s, number %d", node, number), prioritized(number), l.setMark(number), verdict(expr.VerdictAccept)))
		}
	}
	leaves := destinationIs(expr.CmpOpNeq, unix.RTN_LOCAL)
	return append(rules,
		l.rule("dropped in silence: the node that had it is lost", prioritized(numberBlackhole), leaves, verdict(expr.VerdictDrop)),
		l.rule("rejected: no node that packets can be sent to has it", prioritized(numberProhibit), leaves, l.reject()),
		l.rule("for this node", setPriority(0), destinationIs(expr.CmpOpEq, unix.RTN_LOCAL), verdict(expr.VerdictAccept)),
		l.rule("to a node whose rule comes with this transaction", drop(unsnattedCounter)))
}

// tunnelInput picks out packets to the nodes' ports: all others that this node gets pass here, too.
func (l layout) tunnelInput() (rules []table.Rule) {
	for _, port := range l.config.ports() {
		rules = append(rules, l.rule(port.purpose, to(port), goToChain(portChain(port))))
	}
	return rules
}

// toPort lets packets to a port of this node in that come from where another node is, and tracks none of them but those of
// ports that have flows.
func (l layout) toPort(port nodesPort) []table.Rule {
	toUs := destinationIs(expr.CmpOpEq, unix.RTN_LOCAL)
	fromNode := slices.Concat(in(nodesSet), notrack(), verdict(expr.VerdictAccept))
	if port.tunnel {
		fromNode = goToChainIn(speakersMap)
	} else if port.tracked {
		fromNode = slices.Concat(in(nodesSet), verdict(expr.VerdictAccept))
	}
	return []table.Rule{
		l.rule(port.purpose+", from another node", toUs, cameWhereRouted(), l.Source(l.First), fromNode),
		l.rule(port.purpose+", as if from another node", toUs, l.Source(l.First), in(nodesSet), drop(foreignCounter)),
	}
}

func portChain(port nodesPort) string {
	protocol := "udp"
	if port.protocol == unix.IPPROTO_TCP {
		protocol = "tcp"
	}
	return fmt.Sprintf("%s%s-%d", portChains, protocol, port.number)
}

// portsInput keeps everybody else from the nodes' ports. It is behind conntrack: an answer to a pod that has been masqueraded
// with such a port is not for this node.
func (l layout) portsInput() (rules []table.Rule) {
	for _, port := range l.config.ports() {
		rules = append(rules, l.rule(port.purpose+", from anybody else", to(port), l.Source(l.First), notIn(nodesSet), drop(foreignCounter)))
	}
	return rules
}

// speaker lets packets of a node into the tunnel that have its hardware address inside: by that they are told from other nodes'
// behind the tunnel.
func (l layout) speaker(node netip.Addr) []table.Rule {
	if l.speakers[node] == nil {
		l.speakers[node] = []table.Rule{
			l.rule("as itself", innerHardwareSourceIs(hardwareAddrOf(node)), notrack(), verdict(expr.VerdictAccept)),
			l.rule("as another node", drop(forgedCounter)),
		}
	}
	return l.speakers[node]
}

// tunnelOutput tracks none of the packets that this node sends to the nodes' ports.
func (l layout) tunnelOutput() (rules []table.Rule) {
	for _, port := range l.config.ports() {
		if !port.tracked {
			rules = append(rules, l.rule(port.purpose+", to another node", to(port), l.Destination(l.First), in(nodesSet), notrack()))
		}
	}
	return rules
}

// prerouting marks what arrives and what is to be steered. A packet without a flow (INVALID) is not met by
// what asks for its flow, so it goes the same way as others. Most packets are of nobody who is bound and of a flow that has
// begun: they get to the end of this chain, with a single look; with none where all egress IPs leave from this node.
//
// What pods send to the nodes' ports would be masqueraded, and look like their node's own. An answer may go there: another
// node may have masqueraded its pod with such a port. Where that node tracks packets to the port, the answer gets to the pod;
// where it does not, it would get to what listens.
func (l layout) prerouting(pods, steers bool, at links) []table.Rule {
	var rules []table.Rule
	for _, port := range l.config.ports() {
		forged := slices.Concat(to(port), l.Destination(l.First), in(nodesSet))
		if port.tracked {
			forged = append(forged, original()...)
		}
		rules = append(rules, l.rule(port.purpose+", forged", forged, drop(forgedCounter)))
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
func (l layout) answers(pods bool, mss uint16) []table.Rule {
	answer := slices.Concat(tcpFlags(flagSYN|flagACK, expr.CmpOpEq, flagSYN|flagACK), notSNATed())
	outside := slices.Concat(l.Source(l.First), notIn(exclusionsSet), setMSS(mss))
	rules := []table.Rule{
		l.rule("the answer to a steered connection fits the tunnel", answer, l.Destination(l.First), l.protocol(), in(boundSet), outside),
	}
	if pods {
		rules = append(rules, l.rule("the answer to a steered connection fits the tunnel", answer, l.Destination(l.First), in(boundPodsSet), outside))
	}
	return rules
}

// begins drops what may not begin a flow. What comes late for a forgotten flow would make one in the other direction, whose
// answers nobody steers.
func (l layout) begins(pods, steers bool) []table.Rule {
	late := slices.Concat(newFlow(), notDNATed(), tcpFlags(flagSYN|flagRST|flagACK, expr.CmpOpNeq, flagSYN))
	outside := slices.Concat(l.Source(l.First), notIn(exclusionsSet), drop(flippedCounter))
	perhaps := slices.Concat(newFlow(), notDNATed(), compareProtocol(expr.CmpOpNeq, unix.IPPROTO_TCP))
	rules := []table.Rule{
		l.rule("begins a connection", tcpFlags(flagSYN|flagRST|flagACK, expr.CmpOpEq, flagSYN), verdict(expr.VerdictReturn)),
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
		return rules
	}
	return append(rules,
		l.rule("a bound pod's ICMP error about a flow", related(), notSNATed(), l.Destination(l.First), notIn(exclusionsSet),
			l.Source(l.First), l.flowProtocol(), l.takeWayIn(waysMap)))
}

// bound sends what a bound pod sends by the way of its egress IP.
func (l layout) bound(pods bool) []table.Rule {
	rules := []table.Rule{
		l.rule("of a flow that leaves from this node until it ends", snatted(), verdict(expr.VerdictAccept)),
		l.rule("to a destination that is never SNATed", l.Destination(l.First), in(exclusionsSet), verdict(expr.VerdictAccept)),
		l.rule("to the pod's own egress IP", l.Source(l.First), l.protocol(), l.Destination(l.Third), in(ownSet), verdict(expr.VerdictAccept)),
		l.rule("of a bound pod", l.Source(l.First), l.protocol(), l.takeWayIn(waysMap)),
	}
	if pods {
		rules = append(rules,
			l.rule("to the pod's own egress IP", l.Source(l.First), l.Destination(l.Second), in(ownPodsSet), verdict(expr.VerdictAccept)),
			l.rule("of a bound pod", l.Source(l.First), l.takeWayIn(podWaysMap)))
	}
	return rules
}

// arrivals marks what another node has sent here. Without a tunnel, a pod that is not bound here may have sent the answer to
// a client that this node has let in, or a packet to a Service that leads out of the cluster; and what has a bound pod's
// address and comes from no node is another host's, which must not leave from the egress IP.
func (l layout) arrivals(pods bool) []table.Rule {
	home := l.rule("from another node than the pod's", l.notFromHome())
	arrived := slices.Concat(l.setMark(numberArrived), verdict(expr.VerdictAccept))
	if l.config.Transport == VXLAN {
		return []table.Rule{home, l.rule("steered", arrived)}
	}
	unbound := l.unbound(pods)
	rules := []table.Rule{
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
func (l layout) nostate() []table.Rule {
	own := func(transparent byte) []expr.Any {
		return []expr.Any{
			&expr.Socket{Key: expr.SocketKeyTransparent, Register: unix.NFT_REG_1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: []byte{transparent}},
			&expr.Verdict{Kind: expr.VerdictReturn},
		}
	}
	return []table.Rule{
		l.rule("for a socket of this node", own(0)),
		l.rule("for a transparent socket of this node", own(1)),
		l.rule("of a connection that another node knew", drop(nostateCounter)),
	}
}

// late drops answers to steered flows of protocols that do not say who begins one. In remember are those of pods that were
// steered; what else comes from outside begins a flow.
func (l layout) late() []table.Rule {
	hosts := slices.Concat(l.Source(l.First), l.protocol(), l.Destination(l.Third))
	ports := slices.Concat(l.port(0, l.Fourth), l.port(2, l.Fifth))
	var rules []table.Rule
	for _, protocol := range withPorts {
		rules = append(rules, l.rule("an answer to a forgotten flow", protocolIs(protocol), hosts, ports, in(flowsSet), drop(flippedCounter)))
	}
	return append(rules, l.rule("an answer to a forgotten flow without ports", hosts, in(hostsSet), drop(flippedCounter)))
}

// remember keeps in mind what was steered, as an answer would have it. Each packet counts: conntrack may forget a flow
// at any time. ICMP needs none of that: an answer begins no flow.
func (l layout) remember() []table.Rule {
	hosts := slices.Concat(l.Destination(l.First), l.protocol(), l.Source(l.Third))
	ports := slices.Concat(l.port(2, l.Fourth), l.port(0, l.Fifth))
	var rules []table.Rule
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

// reject drops a packet and tells who sent it, as a route of the type prohibit does.
func (l layout) reject() []expr.Any {
	const filtered, adminProhibited = 13, 1 // RFC 1812, section 5.2.7.1; RFC 4443, section 3.1
	code := byte(filtered)
	if l.config.Family == kernel.IPv6 {
		code = adminProhibited
	}
	return []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: code}}
}

func (l layout) icmp() byte {
	if l.config.Family == kernel.IPv6 {
		return unix.IPPROTO_ICMPV6
	}
	return unix.IPPROTO_ICMP
}

// first marks the first packet of a flow that is to be SNATed on this node. The mark goes with what gives it its
// egress IP. Once that is decided, the kernel confirms the flow, and what follows has no mark.
func (l layout) first(pods bool) []table.Rule {
	first := slices.Concat(newFlow(), unconfirmed(), l.unmarked())
	outside := slices.Concat(l.Destination(l.First), notIn(exclusionsSet), l.setMark(numberLocal))
	rules := []table.Rule{l.rule("a bound pod's flow begins", l.boundPod(l.protocol()), first, outside)}
	if pods {
		rules = append(rules, l.rule("a bound pod's flow begins", l.boundPodOfAll(), first, outside))
	}
	return rules
}

// postrouting gives flows their egress IP that leave from this node. What is on its way to another node, and what
// has arrived and no binding takes, keeps its source: nobody masquerades it then.
func (l layout) postrouting(pods bool) []table.Rule {
	leaves := l.markedToLeave()
	rules := []table.Rule{l.rule("leaves from this node", leaves, l.Source(l.First), l.protocol(), goToChainIn(sourcesMap))}
	if pods {
		rules = append(rules, l.rule("leaves from this node", leaves, l.Source(l.First), goToChainIn(podSourcesMap)))
	}
	return append(rules, l.rule("to another node, or without a binding", l.isMarked(), l.notMarkedWith(numberLocal), l.Source(l.First), l.snat()))
}

// guard drops what a bound pod has sent and what does not leave from its egress IP. In front of the drops nobody
// asks for the packet's flow, but to let answers pass.
func (l layout) guard(pods bool) []table.Rule {
	outside := slices.Concat(l.Destination(l.First), notIn(exclusionsSet), drop(unsnattedCounter))
	rules := []table.Rule{
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
func (l layout) marked() []table.Rule {
	leaves := interfaceIs(expr.MetaKeyOIFNAME, Device)
	if l.config.Transport == Direct {
		leaves = slices.Concat(l.nextHop(l.First), in(nodesSet))
	}
	return []table.Rule{
		l.rule("from another node", l.markedWith(numberArrived), confirmed(), snatted(), l.Source(l.First), in(egressIPsSet), l.pass()),
		l.rule("to another node", l.markedForHolder(), leaves, goToChain(steeredChain)),
		l.rule("a report of this node", destinationIs(expr.CmpOpEq, unix.RTN_MULTICAST), verdict(expr.VerdictReturn)),
		l.rule("from another node, without a binding", l.markedWith(numberArrived), drop(staleCounter)),
		l.rule("nobody or somebody else has SNATed it, or it is on its way to elsewhere", drop(unsnattedCounter)),
	}
}

// steered lets pass what is on its way to another node.
func (l layout) steered() []table.Rule {
	return []table.Rule{
		l.rule("somebody has SNATed what is to be steered", snatted(), drop(unsnattedCounter)),
		l.rule("not of TCP", compareProtocol(expr.CmpOpNeq, unix.IPPROTO_TCP), jump(rememberChain)),
		l.rule("to another node", l.pass()),
	}
}

// pass lets a packet go without our mark.
func (l layout) pass() []expr.Any { return slices.Concat(l.setMark(0), verdict(expr.VerdictAccept)) }

// unbound lets packets pass that are of no bound pod.
func (l layout) unbound(pods bool) []expr.Any {
	unbound := slices.Concat(l.Source(l.First), l.protocol(), notIn(boundSet))
	if pods {
		unbound = append(unbound, slices.Concat(l.Source(l.First), notIn(boundPodsSet))...)
	}
	return unbound
}

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

// protocol loads the packet's protocol behind an address, flowProtocol that of its flow: an ICMP error
// is about a flow of another protocol.
func (l layout) protocol() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: l.Second}}
}

func (l layout) flowProtocol() []expr.Any {
	return []expr.Any{&expr.Ct{Key: expr.CtKeyPROTOCOL, Register: l.Second}}
}

// nextHop loads the address that the packet is sent to next.
func (l layout) nextHop(register uint32) []expr.Any {
	key := expr.RtNexthop4
	if l.config.Family == kernel.IPv6 {
		key = expr.RtNexthop6
	}
	return []expr.Any{&expr.Rt{Key: key, Register: register}}
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

// snat gives the packet the address that was loaded, and leaves the port if it can.
func (l layout) snat() []expr.Any {
	return []expr.Any{&expr.NAT{Type: expr.NATTypeSourceNAT, Family: l.NAT, RegAddrMin: l.First}}
}

// setMark puts a number into our bits of the mark, and leaves the others.
func (l layout) setMark(number int) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG_1},
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 4, Mask: native(^l.config.MarkMask), Xor: native(l.mark(number))},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG_1, SourceRegister: true},
	}
}

// prioritized lets packets pass that takeWayIn has given a number, and takes it away again: they came with none.
func prioritized(number int) []expr.Any {
	return append([]expr.Any{
		&expr.Meta{Key: expr.MetaKeyPRIORITY, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: table.ClassID(uint8(number)).AsSlice()},
	}, setPriority(0)...)
}

func setPriority(priority uint32) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: unix.NFT_REG_1, Data: native(priority)},
		&expr.Meta{Key: expr.MetaKeyPRIORITY, Register: unix.NFT_REG_1, SourceRegister: true},
	}
}

func (l layout) mark(number int) uint32 {
	return uint32(number) << bits.TrailingZeros32(l.config.MarkMask)
}

func (l layout) markedWith(number int) []expr.Any    { return l.compareMark(expr.CmpOpEq, number) }
func (l layout) notMarkedWith(number int) []expr.Any { return l.compareMark(expr.CmpOpNeq, number) }

// markedForHolder lets packets pass that have the number of a holder: the others are the four that have these bits.
func (l layout) markedForHolder() []expr.Any {
	others := l.mark(numberLocal)
	return masked(&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG_1}, others, expr.CmpOpNeq, others)
}

// markedToLeave lets packets pass that leave from this node: pods' and arrivals, whose numbers differ in the lowest bit.
func (l layout) markedToLeave() []expr.Any {
	mask := l.config.MarkMask &^ (l.config.MarkMask & -l.config.MarkMask)
	return masked(&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG_1}, mask, expr.CmpOpEq, l.mark(numberLocal&numberArrived))
}

func (l layout) isMarked() []expr.Any { return l.compareMark(expr.CmpOpNeq, 0) }
func (l layout) unmarked() []expr.Any { return l.compareMark(expr.CmpOpEq, 0) }

func (l layout) compareMark(op expr.CmpOp, number int) []expr.Any {
	return masked(&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG_1}, l.config.MarkMask, op, l.mark(number))
}

// rule is one with these expressions. nft prints what it is for as its comment. The hash of the expressions
// is part of it, so that a rule that was changed is another one.
func (l layout) rule(purpose string, parts ...[]expr.Any) table.Rule {
	exprs := slices.Concat(parts...)
	hash := fnv.New32a()
	for _, e := range exprs {
		bytes, err := expr.Marshal(byte(l.Table), e)
		if err != nil {
			bytes = []byte(err.Error()) // writing it fails for the same reason
		}
		_, _ = hash.Write(bytes) // it never fails
	}
	comment := fmt.Sprintf("%s (%08x)", purpose, hash.Sum32())
	return table.Rule{Mark: string(userdata.AppendString(nil, userdata.TypeComment, comment)), Exprs: exprs}
}

// Bits of a flow's status in the kernel (enum ip_conntrack_status), and flags of TCP.
const (
	statusConfirmed           = 1 << 3
	statusSNAT, statusDNAT    = 1 << 4, 1 << 5
	flagSYN, flagRST, flagACK = 0x02, 0x04, 0x10
)

func native(n uint32) []byte { return binaryutil.NativeEndian.PutUint32(n) }

// masked compares some bits of what load loads into the first register.
func masked(load expr.Any, mask uint32, op expr.CmpOp, value uint32) []expr.Any {
	return []expr.Any{
		load,
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 4, Mask: native(mask), Xor: native(0)},
		&expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: native(value)},
	}
}

func flow(key expr.CtKey) expr.Any { return &expr.Ct{Key: key, Register: unix.NFT_REG_1} }

func newFlow() []expr.Any {
	return masked(flow(expr.CtKeySTATE), expr.CtStateBitNEW, expr.CmpOpNeq, 0)
}

// unknown lets packets pass of which conntrack knows no flow yet, or never will.
func unknown() []expr.Any {
	return masked(flow(expr.CtKeySTATE), expr.CtStateBitNEW|expr.CtStateBitINVALID, expr.CmpOpNeq, 0)
}

// begins lets packets pass that are of no flow that has begun, or about one.
func begins() []expr.Any {
	return masked(flow(expr.CtKeySTATE), expr.CtStateBitNEW|expr.CtStateBitINVALID|expr.CtStateBitRELATED, expr.CmpOpNeq, 0)
}

func related() []expr.Any {
	return masked(flow(expr.CtKeySTATE), expr.CtStateBitRELATED, expr.CmpOpNeq, 0)
}

// confirmed lets packets pass whose flow is in the table: packets of it have left before.
func confirmed() []expr.Any {
	return masked(flow(expr.CtKeySTATUS), statusConfirmed, expr.CmpOpNeq, 0)
}

func unconfirmed() []expr.Any {
	return masked(flow(expr.CtKeySTATUS), statusConfirmed, expr.CmpOpEq, 0)
}

func snatted() []expr.Any {
	return masked(flow(expr.CtKeySTATUS), statusSNAT, expr.CmpOpNeq, 0)
}

func notSNATed() []expr.Any {
	return masked(flow(expr.CtKeySTATUS), statusSNAT, expr.CmpOpEq, 0)
}

func dnatted() []expr.Any {
	return masked(flow(expr.CtKeySTATUS), statusDNAT, expr.CmpOpNeq, 0)
}

func notDNATed() []expr.Any {
	return masked(flow(expr.CtKeySTATUS), statusDNAT, expr.CmpOpEq, 0)
}

// reply lets packets pass that go against the direction in which their flow began.
func reply() []expr.Any {
	return []expr.Any{flow(expr.CtKeyDIRECTION), &expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: []byte{1}}}
}

// original lets packets pass that go in the direction in which their flow began.
func original() []expr.Any {
	return []expr.Any{flow(expr.CtKeyDIRECTION), &expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: []byte{0}}}
}

// hardwareSource loads the hardware address of who has sent the packet. nft takes a packet for one of Ethernet where a
// rule asks for that.
func hardwareSource(register uint32) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFTYPE, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: binaryutil.NativeEndian.PutUint16(unix.ARPHRD_ETHER)},
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseLLHeader, Offset: 6, Len: 6},
	}
}

// innerHardwareSourceIs compares the hardware address of who has sent what is in a packet of the tunnel.
func innerHardwareSourceIs(addr hardwareAddr) []expr.Any {
	const offset = 8 + 8 + 6 // the headers of UDP and VXLAN (RFC 7348), and the inner destination
	return []expr.Any{
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: 6},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: addr[:]},
	}
}

func protocolIs(number byte) []expr.Any { return compareProtocol(expr.CmpOpEq, number) }

func compareProtocol(op expr.CmpOp, number byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: []byte{number}},
	}
}

// to lets packets pass to a port of the nodes.
func to(port nodesPort) []expr.Any {
	return append(protocolIs(port.protocol),
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: binary.BigEndian.AppendUint16(nil, port.number)})
}

func tcpFlags(mask byte, op expr.CmpOp, flags byte) []expr.Any {
	return append(protocolIs(unix.IPPROTO_TCP),
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 1, Mask: []byte{mask}, Xor: []byte{0}},
		&expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: []byte{flags}})
}

// setMSS lowers the maximum segment size that a SYN announces.
func setMSS(mss uint16) []expr.Any {
	const kind, offset = 2, 2 // RFC 9293, section 3.2
	return []expr.Any{
		&expr.Immediate{Register: unix.NFT_REG_1, Data: binary.BigEndian.AppendUint16(nil, mss)},
		&expr.Exthdr{SourceRegister: unix.NFT_REG_1, Type: kind, Offset: offset, Len: 2, Op: expr.ExthdrOpTcpopt},
	}
}

// destinationIs compares the type of a packet's destination, as rtnetlink(7) has them.
func destinationIs(op expr.CmpOp, kind uint32) []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: unix.NFT_REG_1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: native(kind)},
	}
}

// cameWhereRouted lets packets pass that came in by the interface by which this node reaches their source.
func cameWhereRouted() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: unix.NFT_REG_1, FlagSADDR: true, FlagIIF: true, FlagPRESENT: true, ResultOIF: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: native(1)},
	}
}

func interfaceIs(key expr.MetaKey, name string) []expr.Any {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return []expr.Any{&expr.Meta{Key: key, Register: unix.NFT_REG_1}, &expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: padded}}
}

func in(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: set}}
}

func notIn(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: set, Invert: true}}
}

// goToChainIn goes to the chain that a map has for the key, if any; goToChain to this one.
func goToChainIn(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true, SetName: set}}
}

func goToChain(chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: expr.VerdictGoto, Chain: chain}}
}

func jump(chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: chain}}
}

// update adds the key to a set, or has the kernel remember it for longer.
func update(set string) []expr.Any {
	return []expr.Any{&expr.Dynset{SrcRegKey: unix.NFT_REG_1, SetName: set, Operation: unix.NFT_DYNSET_OP_UPDATE}}
}

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }

func notrack() []expr.Any { return []expr.Any{&expr.Notrack{}} }

// drop counts a packet and drops it.
func drop(counter string) []expr.Any {
	return []expr.Any{&expr.Objref{Type: unix.NFT_OBJECT_COUNTER, Name: counter}, &expr.Verdict{Kind: expr.VerdictDrop}}
}

// largestSegment is that of TCP in packets that fit an MTU.
func largestSegment(family kernel.Family, mtu int) uint16 {
	headers := 40
	if family == kernel.IPv6 {
		headers = 60
	}
	return uint16(min(max(mtu-headers, 0), 0xffff))
}
