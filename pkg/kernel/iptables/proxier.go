package iptables

import (
	"slices"
	"strings"
)

// rulesOfProxier are the jumps of the vendored iptables proxier (iptablesJumpChains in
// pkg/proxy/iptables/proxier.go). Its own monitor notices a flush of all tables only.
var rulesOfProxier = []struct{ table, chain, target string }{
	{"filter", "INPUT", "KUBE-EXTERNAL-SERVICES"},
	{"filter", "FORWARD", "KUBE-EXTERNAL-SERVICES"},
	{"filter", "INPUT", "KUBE-NODEPORTS"},
	{"filter", "FORWARD", "KUBE-SERVICES"},
	{"filter", "OUTPUT", "KUBE-SERVICES"},
	{"filter", "FORWARD", "KUBE-FORWARD"},
	{"filter", "INPUT", "KUBE-PROXY-FIREWALL"},
	{"filter", "OUTPUT", "KUBE-PROXY-FIREWALL"},
	{"filter", "FORWARD", "KUBE-PROXY-FIREWALL"},
	{"nat", "OUTPUT", "KUBE-SERVICES"},
	{"nat", "PREROUTING", "KUBE-SERVICES"},
	{"nat", postrouting, proxierPostrouting},
}

// proxierPostrouting is the proxier's chain for packets that leave, and proxierJump the rule that
// leads there.
const (
	proxierPostrouting = "KUBE-POSTROUTING"
	proxierJump        = `-m comment --comment "kubernetes postrouting rules" -j ` + proxierPostrouting
)

// chainsOfProxier are chains of the proxier that are never empty. They are, with the jumps
// in place, when somebody flushed a table and the proxier's answer failed half way.
var chainsOfProxier = []struct{ table, chain string }{
	{"nat", "KUBE-SERVICES"},
	{"nat", proxierPostrouting},
	{"filter", "KUBE-FORWARD"},
}

// ofInterest tells whether a chain may be owned, by whichever [Owner], or is of chainsOfProxier.
func ofInterest(chain string) bool {
	for _, c := range chainsOfProxier {
		if chain == c.chain {
			return true
		}
	}
	return strings.HasPrefix(chain, "OPENSHIFT-")
}

// MissingFromProxier returns what the proxier has written and iptables-save does not show
// any more, in words for a log; nothing if all is there. Of a table that iptables cannot
// show it tells nothing: that is no fault of the proxier's, which can still write there.
func MissingFromProxier(save string) ([]string, error) {
	p := newProxierParser()
	err := parse(strings.Lines(save), p)
	return p.missing(), err
}

// proxierParser takes note of the rules that the proxier needs.
type proxierParser struct {
	// jumps are what the chains of these tables lead to, by table, chain and target, and filled
	// the chains that have rules, by table and chain.
	jumps      map[[3]string]bool
	filled     map[[2]string]bool
	unreadable map[string]bool
}

func newProxierParser() *proxierParser {
	p := &proxierParser{jumps: map[[3]string]bool{}, filled: map[[2]string]bool{}, unreadable: map[string]bool{}}
	for _, r := range rulesOfProxier {
		p.jumps[[3]string{r.table, r.chain, r.target}] = false
	}
	for _, c := range chainsOfProxier {
		p.filled[[2]string{c.table, c.chain}] = false
	}
	return p
}

func (p *proxierParser) incompatible(table string) { p.unreadable[table] = true }

func (p *proxierParser) line(table, text string) {
	chain, rule, ok := cutRule(text)
	if !ok {
		return
	}
	if _, needed := p.filled[[2]string{table, chain}]; needed {
		p.filled[[2]string{table, chain}] = true
	}
	if slices.Contains(hookChains[:], chain) {
		key := [3]string{table, chain, target(rule)}
		if _, needed := p.jumps[key]; needed {
			p.jumps[key] = true
		}
	}
}

func (p *proxierParser) missing() []string {
	var missing []string
	for _, table := range []string{"nat", "filter"} {
		if p.unreadable[table] {
			continue
		}
		for _, r := range rulesOfProxier {
			if r.table == table && !p.jumps[[3]string{table, r.chain, r.target}] {
				missing = append(missing, table+": jump from "+r.chain+" to "+r.target)
			}
		}
		for _, c := range chainsOfProxier {
			if c.table == table && !p.filled[[2]string{table, c.chain}] {
				missing = append(missing, table+": rules of "+c.chain)
			}
		}
	}
	return missing
}
