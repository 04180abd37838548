package iptables

import (
	"math/bits"
	"net/netip"
	"slices"
)

const (
	// leafRules is how many rules a chain holds before it is split: few enough to walk,
	// enough that even iptables-nft, whose cost grows with the square of the number of
	// chains, stays below a thousand chains for 50,000 bindings.
	leafRules = 64
	// levelBits is how many address bits each level of a tree decides: whole hexadecimal
	// digits, which destinationName relies on.
	levelBits = 4

	// iptables-nft takes at most 15 chains in a row (NFT_JUMP_STACK_SIZE in the kernel),
	// gotos included: RootChain, SourceChain and these. Ordinary addresses need three or
	// four, but somebody can choose IPv6 addresses that would need 18.
	sourceLevels      = 7
	destinationLevels = 6
)

// leaf is a rule for one address.
type leaf struct {
	addr netip.Addr
	rule string
}

// tree is a radix tree of chains, which leads a packet to the rules for its address.
type tree struct {
	// rules take the chains.
	rules Ruleset
	// option matches the address: -s or -d.
	option string
	// name returns the name of the chain for the leaves inside of a prefix.
	name func(netip.Prefix) string
	// levels is how many chains may follow each other. Beyond it a chain has more rules
	// instead: a packet is slower then, where the write would fail.
	levels int
	// tail ends every chain, for the packets that no leaf is for.
	tail []string
}

// chain returns the content of a chain for leaves, which are sorted by address, and adds
// the chains below it.
func (t tree) chain(leaves []leaf) []string {
	return append(t.subtree(leaves), t.tail...)
}

func (t tree) subtree(leaves []leaf) []string {
	if len(leaves) <= leafRules {
		return rulesOf(leaves)
	}
	// Where the level begins is decided by the addresses, rounded to whole levels, so
	// that a chain's prefix does not depend on what else is in the tree.
	common := commonPrefix(leaves).Bits()
	var rules []string
	for len(leaves) > 0 {
		first := leaves[0].addr
		prefix := netip.PrefixFrom(first, min(common+levelBits, first.BitLen())).Masked()
		n := slices.IndexFunc(leaves, func(l leaf) bool { return !prefix.Contains(l.addr) })
		if n < 0 {
			n = len(leaves)
		}
		rules = append(rules, t.branch(prefix, leaves[:n])...)
		leaves = leaves[n:]
	}
	return rules
}

// branch returns the rules that lead to leaves, all of which lie in prefix.
func (t tree) branch(prefix netip.Prefix, leaves []leaf) []string {
	switch {
	case prefix.IsSingleIP():
		return rulesOf(leaves)
	case len(leaves) > leafRules && t.levels == 1:
		return t.subtree(leaves)
	}
	if len(leaves) > leafRules {
		// Path compression: a chain that would hold a single branch is left out.
		prefix = commonPrefix(leaves)
	}
	name := t.name(prefix)
	t.levels--
	t.rules[name] = t.chain(leaves)
	return []string{match(t.option, prefix) + "-g " + name}
}

func rulesOf(leaves []leaf) []string {
	rules := make([]string, 0, len(leaves)+1)
	for _, l := range leaves {
		rules = append(rules, l.rule)
	}
	return rules
}

// commonPrefix returns the longest prefix of whole levels that all leaves lie in.
func commonPrefix(leaves []leaf) netip.Prefix {
	first, last := leaves[0].addr, leaves[len(leaves)-1].addr
	return netip.PrefixFrom(first, commonBits(first, last)/levelBits*levelBits).Masked()
}

// commonBits returns the length of the longest common prefix of a and b.
func commonBits(a, b netip.Addr) int {
	x, y := a.AsSlice(), b.AsSlice()
	for i := range x {
		if diff := x[i] ^ y[i]; diff != 0 {
			return i*8 + bits.LeadingZeros8(diff)
		}
	}
	return len(x) * 8
}
