package steering

import (
	"maps"
	"net/netip"
	"strings"
	"time"

	"github.com/google/nftables"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// inwardChain is the base chain that leads to blockChain. portsChain gives pods ports of their own.
const inwardChain, blockChain, portsChain = "inward", "block", "pod-ports"

// inwardPriority is behind kube-proxy's DNAT, for what is for a Service is no pod's, and behind that of package handover.
var inwardPriority = *nftables.ChainPriorityNATDest + 2

// numberInward is in the mark of a first packet that goes to the pod whose port it is for, until it leaves this node. No packet has this
// number otherwise.
const numberInward = numberBlackhole

// transports are the protocols whose ports, or echo identifiers, source NAT gives. Bindings are of the first three, or of all.
var transports = []string{"tcp", "udp", "sctp", "ICMP"}

// inward leads first packets to held egress IPs to the pods whose ports they are for. Most flows begin with a SYN, and are done with then.
func (l layout) inward() []nft.Rule {
	return []nft.Rule{
		l.rule("begins a connection", isSYN+" accept"),
		l.rule("to an egress IP of this node", "IP daddr @"+heldSet+" goto "+blockChain),
	}
}

// block gives what this node knows no flow of to the pod whose port it is for. A connection that a process of this node has from
// that address is its own; a socket that listens at all addresses has no part in a connection that another node knew.
func (l layout) block() []nft.Rule {
	toPod := l.setMark(numberInward) + " dnat to IP daddr . th dport map @" + inwardMap
	return []nft.Rule{
		l.rule("from a cluster CIDR or an exclusion", "IP saddr @"+exclusionsSet+" return"),
		l.rule("for a socket of this node", "socket wildcard 0 return"),
		l.rule("of a connection that another node knew, to the pod", "meta l4proto tcp"+toPod),
		l.rule("of a flow that another node knew, to the pod", "meta l4proto udp IP daddr @"+freshSet+toPod),
		l.rule("the port is no pod's", l.setMark(0)),
	}
}

// keepFarPort has what goes to the pod whose port it is for keep its source, so that nobody masquerades it, and its port: where the pod's
// node still has the flow as one that another node translates, the kernel would choose a port that the pod has no connection with. It
// drops the packet instead. The far side sends it again, when package conntrack has ended that flow.
func (l layout) keepFarPort() (rules []nft.Rule) {
	for _, protocol := range []string{"tcp", "udp"} {
		rules = append(rules, l.rule("to the pod whose port it is for", l.markedWith(numberInward)+"meta l4proto "+protocol+" snat to IP saddr : th sport"))
	}
	return rules
}

// givePorts gives a pod's first packet a port of its block. Of two blocks it gives the second, because the first is full towards some
// destination, but to what has a port of the first. Echo identifiers get the second, too. Protocols without ports get the address by other
// rules, as all do where no pod has a block, and those for which a pod has another egress IP than for all, without a block.
func (l layout) givePorts(b *blocks) (rules []nft.Rule) {
	for _, k := range selectors(true) {
		if len(b.given[strings.TrimPrefix(k.blocksMap, "@")]) == 0 {
			continue
		}
		protocols := transports[:3]
		if k.blocksMap == ofAllProtocols.blocksMap {
			protocols = transports
			rules = append(rules, l.rule("of a binding of this protocol", ofOneProtocol.fromBound()+" return"))
		}
		for _, protocol := range protocols {
			give := "meta l4proto " + protocol + l.setMark(0) + " snat IP to " + k.from
			if b.full > 0 && protocol != "ICMP" {
				rules = append(rules, l.rule("from the pod's first ports", give+" . th sport map "+k.fullBlocksMap))
			}
			rules = append(rules, l.rule("from the pod's ports", give+" map "+k.blocksMap))
		}
	}
	return append(rules, l.rule("of no block", "return"))
}

// giveShared has what gives an egress IP give a port that pods without a block share.
func (l layout) giveShared(give string, shared kernel.Ports) (rules []nft.Rule) {
	for _, protocol := range transports {
		rules = append(rules, l.rule("from the shared ports", "meta l4proto "+protocol+give+" : "+shared.String()))
	}
	return append(rules, l.rule("without ports", give))
}

// markFresh takes note of the egress IPs that have come here: they are here now, and were not before.
func (w *Writer) markFresh(now time.Time) {
	if !w.config.PortBlocks {
		return
	}
	before := w.here
	if before == nil {
		before = w.hereBefore()
	}
	here, fresh := w.content.here(), maps.Clone(w.fresh)
	if fresh == nil {
		fresh = map[nft.Key]nft.Passing{}
	}
	maps.DeleteFunc(fresh, func(key nft.Key, _ nft.Passing) bool { return !here[key.Pod] })
	for egressIP := range here {
		if !before[egressIP] {
			fresh[nft.Key{Pod: egressIP}] = nft.Passing{Until: now.Add(freshTime)}
		}
	}
	w.here, w.fresh, w.content.blocks.fresh = here, fresh, fresh
}

// hereBefore returns the egress IPs that were here by the table of an earlier process: those held whose packets take no other way. The
// table does not tell which of them no node had.
func (w *Writer) hereBefore() map[netip.Addr]bool {
	sets, here := w.table.Held().Sets, map[netip.Addr]bool{}
	for key := range sets[heldSet] {
		here[key.Pod] = true
	}
	for ways, sources := range sourcesByWays {
		for key := range sets[ways] {
			delete(here, sets[sources][key])
		}
	}
	return here
}
