package steering

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Words of rules that are in more than one. In all rules IP stands for ip or ip6.
const (
	// A SYN begins a connection.
	isSYN  = "tcp flags & (syn | rst | ack) == syn"
	notSYN = "tcp flags & (syn | rst | ack) != syn"

	toOutside   = "IP daddr != @" + exclusionsSet
	fromOutside = "IP saddr != @" + exclusionsSet
	toExcluded  = "IP daddr @" + exclusionsSet + " accept"
	notToHere   = "fib daddr type != local"
	fromNode    = "IP saddr @" + nodesSet
	// nft takes an Authentication Header for the last one, and conntrack goes on to the ports behind it.
	hidden = "meta l4proto ah IP saddr . ct protocol @" + boundSet
	// Their socket is open as a file, which has an owner. No user has the number -1. Others' and the kernel's own packets have no such socket.
	byAProcess = "meta skuid != 4294967295"

	// What was steered, as an answer has it, and as the pod's packet has it.
	answerHosts, answerPorts = "IP saddr . meta l4proto . IP daddr", " . th sport . th dport"
	steerHosts, steerPorts   = "IP daddr . meta l4proto . IP saddr", " . th dport . th sport"
)

// toOwn lets what is for a pod's own egress IP keep its source.
func toOwn(egressIP netip.Addr) string { return "IP daddr " + egressIP.String() + " accept" }

// drop counts a packet and drops it.
func drop(counter string) string { return " counter name " + counter + " drop" }

// selector is how rules ask for bindings: for those of one protocol, or for those of all.
type selector struct {
	// from is the key of the pod that has sent a packet, to that of the one that it is for, own that of a pod and its egress IP.
	from, to, own                      string
	bound, ownSet, waysMap, sourcesMap string
	blocksMap, fullBlocksMap           string
	// other excludes what the bindings that go before exclude.
	other string
}

var (
	ofOneProtocol = selector{
		"IP saddr . meta l4proto", "IP daddr . meta l4proto", "IP saddr . meta l4proto . IP daddr",
		"@" + boundSet, "@" + ownSet, "@" + waysMap, "@" + sourcesMap, "@" + blocksMap, "@" + fullBlocksMap, "",
	}
	ofAllProtocols = selector{
		"IP saddr", "IP daddr", "IP saddr . IP daddr",
		"@" + boundPodsSet, "@" + ownPodsSet, "@" + podWaysMap, "@" + podSourcesMap, "@" + podBlocksMap, "@" + podFullBlocksMap, " IP saddr . meta l4proto . IP daddr != @" + ownSet,
	}
)

// selectors are those for the bindings that there are. pods: there are some of all protocols.
func selectors(pods bool) []selector {
	if pods {
		return []selector{ofOneProtocol, ofAllProtocols}
	}
	return []selector{ofOneProtocol}
}

// fromBound lets a bound pod's packets pass, toBound those for one.
func (k selector) fromBound() string { return k.from + " " + k.bound }
func (k selector) toBound() string   { return k.to + " " + k.bound }

// leaving lets packets pass that are a bound pod's and not for its own egress IP.
func (k selector) leaving() string  { return k.fromBound() + " " + k.notToOwn() }
func (k selector) notToOwn() string { return k.own + " != " + k.ownSet + k.other }

// takeWay goes to the chain of ways with what the map has for the key, if anything. The packet's priority carries it there: a
// mark has no room for it beside the bits of others.
func (k selector) takeWay() string {
	return "meta priority set " + k.from + " map " + k.waysMap + " goto " + wayChain
}

// giveBySource goes to the chain that gives a bound pod's flow its egress IP.
func (k selector) giveBySource() string { return k.from + " vmap " + k.sourcesMap }

// notToOwnLocally and giveLocally are in the rules of a node that steers nothing: the map says who is bound, and any port will do.
func (k selector) notToOwnLocally(family kernel.Family) string {
	return locally(family, k.notToOwn())
}
func (k selector) giveLocally(family kernel.Family) string {
	return locally(family, "snat to "+k.from+" map "+k.sourcesMap+" fully-random")
}

// locally has a rule of IPv6 go by the flow, because an Authentication Header hides the packet's own protocol.
func locally(family kernel.Family, text string) string {
	if family == kernel.IPv6 {
		return byFlow(text)
	}
	return text
}

// byFlow has a rule go by the protocol of the packet's flow, and not by the packet's own. That costs more.
func byFlow(text string) string { return strings.ReplaceAll(text, "meta l4proto", "ct protocol") }

// setMark puts a number into our bits of the mark, and leaves the others.
func (l layout) setMark(number int) string {
	set := fmt.Sprintf(" meta mark set meta mark & %#x", ^l.config.MarkMask)
	if number > 0 {
		set += fmt.Sprintf(" | %#x", l.mark(number))
	}
	return set
}

// pass lets a packet go without our mark.
func (l layout) pass() string { return l.setMark(0) + " accept" }

// prioritized lets packets pass that takeWay has given a number, and takes it away again: they came with none.
func prioritized(number int) string {
	return fmt.Sprintf("meta priority %x:%x00 ", number, number) + noPriority
}

const noPriority = "meta priority set 0:0 "

func (l layout) mark(number int) uint32 { return markFor(l.config.MarkMask, number) }

func (l layout) markedWith(number int) string    { return l.compareMark("==", number) }
func (l layout) notMarkedWith(number int) string { return l.compareMark("!=", number) }

func (l layout) compareMark(op string, number int) string {
	return fmt.Sprintf("meta mark & %#x %s %#x ", l.config.MarkMask, op, l.mark(number))
}

// isMarked lets packets pass that have a mark of ours.
func (l layout) isMarked() string { return l.notMarkedWith(0) }

// markedForHolder lets packets pass that have the number of a holder: the others are the four that have these bits.
func (l layout) markedForHolder() string {
	others := l.mark(numberDropped)
	return fmt.Sprintf("meta mark & %#x != %#x ", others, others)
}
