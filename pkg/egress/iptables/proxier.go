package iptables

import "errors"

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
	{"nat", "POSTROUTING", "KUBE-POSTROUTING"},
}

// chainsOfProxier are chains of the proxier that are never empty. They are, with the jumps
// in place, when somebody flushed a table and the proxier's answer failed half way.
var chainsOfProxier = []struct{ table, chain string }{
	{"nat", "KUBE-SERVICES"},
	{"nat", "KUBE-POSTROUTING"},
	{"filter", "KUBE-FORWARD"},
}

// MissingFromProxier returns what the proxier has written and iptables-save does not show
// any more, in words for a log; nothing if all is there. Of a table that iptables cannot
// show it tells nothing: that is no fault of the proxier's, which can still write there.
func MissingFromProxier(save string) ([]string, error) {
	var missing []string
	for _, table := range []string{"nat", "filter"} {
		jumps, filled, err := readTable(save, table)
		if errors.Is(err, ErrIncompatible) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, r := range rulesOfProxier {
			if r.table == table && !jumps[[2]string{r.chain, r.target}] {
				missing = append(missing, table+": jump from "+r.chain+" to "+r.target)
			}
		}
		for _, c := range chainsOfProxier {
			if c.table == table && !filled[c.chain] {
				missing = append(missing, table+": rules of "+c.chain)
			}
		}
	}
	return missing, nil
}

// readTable returns which of the built-in chains lead where, and which chains have rules.
func readTable(save, table string) (jumps map[[2]string]bool, filled map[string]bool, err error) {
	jumps, filled = map[[2]string]bool{}, map[string]bool{}
	for line, err := range tableLines(save, table) {
		if err != nil {
			return nil, nil, err
		}
		chain, rule, ok := cutRule(line)
		if !ok {
			continue
		}
		filled[chain] = true
		switch chain {
		case "PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING":
			jumps[[2]string{chain, target(rule)}] = true
		}
	}
	return jumps, filled, nil
}
