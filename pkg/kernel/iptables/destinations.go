package iptables

import "net/netip"

// Destinations returns rules of an owner that lead packets to these addresses, which are sorted and free of
// duplicates, to a verdict ("-g CHAIN" or "-j TARGET"), and all others to tail, which may be none. They
// begin in the chain root, and many addresses make a tree; see the package's documentation.
func (o Owner) Destinations(root string, addrs []netip.Addr, verdict string, tail []string) Ruleset {
	rules := Ruleset{root: tail}
	if len(addrs) == 0 {
		return rules
	}
	leaves := make([]leaf, 0, len(addrs))
	for _, addr := range addrs {
		leaves = append(leaves, leaf{addr: addr, rule: match("-d", host(addr)) + verdict})
	}
	t := tree{
		rules: rules, option: "-d", name: o.destinationName, prefixes: map[string]netip.Prefix{},
		most: destinationRules, levels: destinationLevels, tail: tail,
	}
	rules[root] = t.root(leaves)
	return rules
}
