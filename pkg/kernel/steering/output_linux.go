package steering

import (
	"slices"

	"github.com/google/nftables/expr"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// output picks out what a process of this node sends. What is forwarded never comes here, and what the kernel has wrapped is
// compared once.
func (l layout) output() []nft.Rule {
	return []nft.Rule{l.rule("by a process", ofProcess(), goToChain(processChain))}
}

// byProcess keeps a process from the ports of other nodes that a Service leads to, for fromHere is in front of that Service, and
// from others' addresses.
func (l layout) byProcess(pods bool) (rules []nft.Rule) {
	if l.config.spoken() {
		for _, port := range l.config.ports() {
			ofAnotherNode := slices.Concat(to(port), l.Destination(l.First), in(nodesSet))
			rules = append(rules, l.rule(port.purpose+", by a Service", ofAnotherNode, port.unjudged(), drop(forgedCounter)))
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
		l.rule("of no flow", invalid(), verdict(expr.VerdictAccept)),
		l.rule("to a destination that is never SNATed", l.Destination(l.First), in(exclusionsSet), verdict(expr.VerdictAccept)),
		l.rule("a process as a bound pod", l.Source(l.First), l.protocol(), in(boundSet), drop(forgedCounter)),
		l.rule("a process from an egress IP of another node", l.Source(l.First), in(egressIPsSet), sourceIsElsewhere(),
			drop(forgedCounter)),
	}
	if pods {
		rules = append(rules, l.rule("a process as a bound pod", l.Source(l.First), in(boundPodsSet), drop(forgedCounter)))
	}
	return rules
}
