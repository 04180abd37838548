package steering

import (
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// output picks out what a process of this node sends. What is forwarded never comes here, and what the kernel has wrapped is
// compared once.
func (l layout) output() []nft.Rule {
	return []nft.Rule{l.rule("by a process", byAProcess+" goto "+processChain)}
}

// byProcess keeps a process from the ports of other nodes that a Service leads to, for fromHere is in front of that Service, and
// from others' addresses.
func (l layout) byProcess(pods bool) (rules []nft.Rule) {
	if l.config.spoken() {
		for _, port := range l.config.ports() {
			rules = append(rules, l.rule(port.purpose+", by a Service", port.to()+" IP daddr @"+nodesSet+" "+port.unjudged()+drop(forgedCounter)))
		}
	}
	if l.config.Family == kernel.IPv6 {
		rules = append(rules, l.pretended(pods)...)
	}
	return rules
}

// pretended drops what a process in the node's own network sends as a bound pod, or from an egress IP that is on another node, also
// in a flow that the pod has begun. In IPv4 that takes a right; in IPv6 a process may send from any address (IPV6_FREEBIND). What
// conntrack calls invalid takes a right as well, and no egress IP is given to it: so this program nudges ends of connections.
func (l layout) pretended(pods bool) []nft.Rule {
	rules := []nft.Rule{
		l.rule("of no flow", "ct state invalid accept"),
		l.rule("to a destination that is never SNATed", toExcluded),
		l.rule("a process from an egress IP of another node", "IP saddr @"+claimedSet+" fib saddr type != local"+drop(forgedCounter)),
	}
	for _, k := range selectors(pods) {
		rules = append(rules, l.rule("a process as a bound pod", k.fromBound()+drop(forgedCounter)))
	}
	return rules
}
