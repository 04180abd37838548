package iptables

import (
	"net/netip"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Packet is the first packet of a flow as it comes to POSTROUTING: its destination is what
// the proxier has made of it.
type Packet struct {
	Source, Destination netip.Addr
	// Protocol is one of the plan's; All stands for any other, ICMP for example.
	Protocol kernel.Protocol
}

// Step is a rule that a packet matches.
type Step struct {
	Chain string
	// Rule is as iptables-save prints it after "-A CHAIN ".
	Rule string
}

// Trace returns the rules that p matches on its way from RootChain on. The last one is
// the verdict, if there is one, and snat the address that p then leaves from: invalid if it
// is not SNATed here but goes on in POSTROUTING. Rules that [Render] does not make, as
// somebody else may have put into the kernel, are passed over.
func (r Ruleset) Trace(p Packet) (steps []Step, snat netip.Addr) {
	seen := map[string]bool{}
	for chain := RootChain; chain != "" && !seen[chain]; {
		// Netfilter has no circles; a ruleset may come from anywhere.
		seen[chain] = true
		text, matched, ok := firstMatch(r[chain], p)
		if !ok {
			break
		}
		steps = append(steps, Step{chain, text})
		chain, snat = matched.chain, matched.egressIP
	}
	return steps, snat
}

// firstMatch returns the rule that decides on p, and its text.
func firstMatch(rules []string, p Packet) (text string, matched rule, ok bool) {
	for _, text := range rules {
		if r, known := parseRule(text); known && r.matches(p) {
			return text, r, true
		}
	}
	return "", rule{}, false
}
