package iptables

import (
	"cmp"
	"math/bits"
	"net/netip"
	"slices"
	"sort"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
)

const (
	// leafRules is how many rules a chain of the source tree holds before it is split: few
	// enough to walk, enough that even iptables-nft, whose cost grows with the square of the
	// number of chains, stays below a thousand chains for 50,000 bindings. There are fewer
	// destinations, and every packet's is looked for.
	leafRules        = 64
	destinationRules = 16
	// levelBits is how many address bits each level of a tree decides: whole hexadecimal
	// digits, which destinationName relies on.
	levelBits = 4

	// iptables-nft takes at most 15 chains in a row (NFT_JUMP_STACK_SIZE in the kernel),
	// gotos included: RootChain, SourceChain and these. Ordinary addresses need three or
	// four, but somebody can choose IPv6 addresses that would need 18.
	sourceLevels      = 6
	destinationLevels = 7
)

// leaf is a rule for one address.
type leaf struct {
	addr netip.Addr
	// protocol orders the leaves of an address.
	protocol kernel.Protocol
	rule     string
}

func (l leaf) compare(o leaf) int {
	return cmp.Or(l.addr.Compare(o.addr), cmp.Compare(l.protocol, o.protocol))
}

// tree is a radix tree of chains, which leads a packet to the rules for its address.
type tree struct {
	// rules take the chains.
	rules Ruleset
	// option matches the address: -s or -d.
	option string
	// name returns the name of the chain for the leaves inside of a prefix.
	name func(netip.Prefix) string
	// prefixes are those of the chains, by name. Names are short, so those of two prefixes may be
	// the same, if somebody has looked long for such addresses: the second has no chain then.
	prefixes map[string]netip.Prefix
	// most is how many rules a chain holds before it is split.
	most int
	// levels is how many chains may follow each other. Beyond it a chain has more rules
	// instead: a packet is slower then, where the write would fail.
	levels int
	// tail ends every chain, for the packets that no leaf is for.
	tail []string
	// growth, if not nil, says what has happened to the leaves since the tree was made:
	// chains that none of it is about are left as they are, but for those in a part of the
	// tree that has moved: how deep a chain is decides about those below it, too.
	growth *growth
	moved  bool
}

// growth is how a tree becomes another.
type growth struct {
	// addrs are those whose leaves have changed, sorted.
	addrs []netip.Addr
	// made are the chains that were made anew.
	made map[string]bool
	// dropped are chains that one which led to them does not lead to any more.
	dropped []string
}

// root returns the rules that lead to a whole tree: one, if all of its leaves have a prefix in
// common, so that the packets outside of it meet no more.
func (t tree) root(leaves []leaf) []string {
	if common := commonPrefix(leaves); common.Bits() > 0 {
		return append(t.branch(common, leaves, nil), t.tail...)
	}
	return t.chain(leaves, nil)
}

// chain returns the content of a chain for leaves, which are sorted by address, and adds
// the chains below it. Before is what the chain held.
func (t tree) chain(leaves []leaf, before []string) []string {
	rules := append(t.subtree(leaves, before), t.tail...)
	if t.growth != nil {
		now := links(rules)
		t.growth.dropped = append(t.growth.dropped, slices.DeleteFunc(links(before), func(name string) bool { return slices.Contains(now, name) })...)
	}
	return rules
}

func (t tree) subtree(leaves []leaf, before []string) []string {
	if len(leaves) <= t.most {
		return rulesOf(leaves)
	}
	// Where the level begins is decided by the addresses, rounded to whole levels, so
	// that a chain's prefix does not depend on what else is in the tree.
	common := commonPrefix(leaves).Bits()
	var rules []string
	for len(leaves) > 0 {
		first := leaves[0].addr
		prefix := netip.PrefixFrom(first, min(common+levelBits, first.BitLen())).Masked()
		n := sort.Search(len(leaves), func(i int) bool { return !prefix.Contains(leaves[i].addr) })
		rules = append(rules, t.branch(prefix, leaves[:n], before)...)
		leaves = leaves[n:]
	}
	return rules
}

// branch returns the rules that lead to leaves, all of which lie in prefix.
func (t tree) branch(prefix netip.Prefix, leaves []leaf, before []string) []string {
	switch {
	case prefix.IsSingleIP():
		return rulesOf(leaves)
	case len(leaves) > t.most && t.levels == 1:
		return t.subtree(leaves, before)
	}
	inside := prefix
	if len(leaves) > t.most {
		// Path compression: a chain that would hold a single branch is left out.
		prefix = commonPrefix(leaves)
	}
	name := t.name(prefix)
	if other, taken := t.prefixes[name]; taken && other != prefix {
		return t.subtree(leaves, before)
	}
	t.prefixes[name] = prefix
	rule := match(t.option, prefix) + "-g " + name
	if t.growth != nil {
		t.moved = t.moved || !slices.Contains(before, rule)
		if !t.moved && !t.growth.touches(inside) {
			return []string{rule}
		}
		t.growth.made[name] = true
	}
	t.levels--
	t.rules[name] = t.chain(leaves, t.rules[name])
	return []string{rule}
}

// touches tells whether leaves in a prefix have changed.
func (g *growth) touches(prefix netip.Prefix) bool {
	i, _ := slices.BinarySearchFunc(g.addrs, prefix.Addr(), netip.Addr.Compare)
	return i < len(g.addrs) && prefix.Contains(g.addrs[i])
}

// links returns the chains of a tree that these rules lead to.
func links(rules []string) []string {
	var names []string
	for _, rule := range rules {
		if i := strings.LastIndex(rule, "-g "); i >= 0 && rule[i+3:] != SourceChain {
			names = append(names, rule[i+3:])
		}
	}
	return names
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
