package iptables

// rulesOfProxier are the jumps without which the vendored iptables proxier does not work,
// of those that its iptablesJumpChains lists (pkg/proxy/iptables/proxier.go). Its own
// monitor notices a flush of all tables only.
var rulesOfProxier = []struct{ table, chain, target string }{
	{"nat", "PREROUTING", "KUBE-SERVICES"},
	{"nat", "OUTPUT", "KUBE-SERVICES"},
	{"nat", "POSTROUTING", "KUBE-POSTROUTING"},
	{"filter", "INPUT", "KUBE-EXTERNAL-SERVICES"},
	{"filter", "FORWARD", "KUBE-FORWARD"},
	{"filter", "FORWARD", "KUBE-SERVICES"},
	{"filter", "OUTPUT", "KUBE-SERVICES"},
}

// chainsOfProxier are chains of the proxier that are never empty. They are, with the jumps
// in place, when somebody flushed a table and the proxier's answer failed half way.
var chainsOfProxier = []struct{ table, chain string }{
	{"nat", "KUBE-SERVICES"},
	{"nat", "KUBE-POSTROUTING"},
	{"filter", "KUBE-FORWARD"},
}

// MissingFromProxier returns what the proxier has written and iptables-save does not show
// any more, in words for a log; nothing if all is there.
func MissingFromProxier(save string) ([]string, error) {
	jumps, filled := map[[3]string]bool{}, map[[2]string]bool{}
	for _, table := range []string{"nat", "filter"} {
		for line, err := range tableLines(save, table) {
			if err != nil {
				return nil, err
			}
			chain, rule, ok := cutRule(line)
			if !ok {
				continue
			}
			filled[[2]string{table, chain}] = true
			switch chain {
			case "PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING":
				jumps[[3]string{table, chain, target(rule)}] = true
			}
		}
	}
	var missing []string
	for _, r := range rulesOfProxier {
		if !jumps[[3]string{r.table, r.chain, r.target}] {
			missing = append(missing, r.table+": jump from "+r.chain+" to "+r.target)
		}
	}
	for _, c := range chainsOfProxier {
		if !filled[[2]string{c.table, c.chain}] {
			missing = append(missing, c.table+": rules of "+c.chain)
		}
	}
	return missing, nil
}
