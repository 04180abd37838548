package iptables

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

const (
	// leafRules is how many bindings a chain holds before it is split: few enough to
	// walk, enough that even iptables-nft, whose cost grows with the square of the number
	// of chains, stays below a thousand chains for 50,000 bindings.
	leafRules = 64
	// levelBits is how many address bits each level of the tree decides.
	levelBits = 4
)

// Ruleset is the content of the owned chains: rules by chain name, each rule as
// iptables-save prints it after "-A CHAIN ". A ruleset that is not empty has RootChain.
type Ruleset map[string][]string

// Render returns the ruleset for p: empty if p binds nothing.
func Render(p plan.Plan) Ruleset {
	rules := Ruleset{}
	if len(p.Bindings) == 0 {
		return rules
	}
	var root []string
	for _, cidr := range slices.Concat(p.ClusterCIDRs, p.Exclusions) {
		// For a bound pod's packets that stay inside: to pods, or to Services, which the
		// proxier has turned into a pod's address by now; and for those to what the
		// configuration excludes.
		root = append(root, "-d "+cidr.String()+" -j RETURN")
	}
	bits := p.Bindings[0].Pod.BitLen()
	rules[RootChain] = append(root, rules.subtree(p.Bindings, bits)...)
	return rules
}

// subtree returns the rules for bindings, which are sorted by pod, and adds the chains
// that these rules go to. bits is the length of an address.
func (r Ruleset) subtree(bindings []plan.Binding, bits int) []string {
	if len(bindings) <= leafRules {
		return snatRules(bindings)
	}
	// Where the level begins is decided by the addresses, rounded to whole levels, so
	// that a chain's prefix does not depend on what else is in the tree.
	common := commonBits(bindings[0].Pod, bindings[len(bindings)-1].Pod) / levelBits * levelBits
	var rules []string
	for len(bindings) > 0 {
		prefix := netip.PrefixFrom(bindings[0].Pod, min(common+levelBits, bits)).Masked()
		n := slices.IndexFunc(bindings, func(b plan.Binding) bool { return !prefix.Contains(b.Pod) })
		if n < 0 {
			n = len(bindings)
		}
		rules = append(rules, r.branch(prefix, bindings[:n], bits)...)
		bindings = bindings[n:]
	}
	return rules
}

// branch returns the rules that lead to bindings, all of which lie in prefix.
func (r Ruleset) branch(prefix netip.Prefix, bindings []plan.Binding, bits int) []string {
	if prefix.Bits() == bits {
		return snatRules(bindings)
	}
	if len(bindings) > leafRules {
		// Path compression: a chain that would hold a single branch is left out.
		common := commonBits(bindings[0].Pod, bindings[len(bindings)-1].Pod) / levelBits * levelBits
		prefix = netip.PrefixFrom(bindings[0].Pod, common).Masked()
	}
	name := chainName(prefix)
	r[name] = r.subtree(bindings, bits)
	return []string{"-s " + prefix.String() + " -g " + name}
}

// snatRules returns one rule per binding.
func snatRules(bindings []plan.Binding) []string {
	rules := make([]string, 0, len(bindings))
	for _, b := range bindings {
		rules = append(rules, snatRule(b))
	}
	return rules
}

// snatRule returns the rule for a bound pod's packets that leave. Random ports: an egress
// IP is shared by many pods, and with ports chosen in order new flows are dropped long
// before the ports run out.
func snatRule(b plan.Binding) string {
	return "-s " + b.Pod.String() + "/" + strconv.Itoa(b.Pod.BitLen()) + " -p " + string(b.Protocol) +
		" -j SNAT --to-source " + b.EgressIP.String() + " --random-fully"
}

// commonBits returns the length of the longest common prefix of a and b.
func commonBits(a, b netip.Addr) int {
	x, y := a.AsSlice(), b.AsSlice()
	for i := range x {
		if diff := x[i] ^ y[i]; diff != 0 {
			n := i * 8
			for diff&0x80 == 0 {
				diff <<= 1
				n++
			}
			return n
		}
	}
	return len(x) * 8
}
