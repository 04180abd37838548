package iptables

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Rendering is a ruleset that follows plans: after any sequence of changes it is what Render makes
// of the plan that they lead to, but only the chains are made anew that a change is about.
type Rendering struct {
	rules Ruleset
	// source is the tree of bindings, with leaves, sorted.
	source tree
	leaves []leaf
	// returns and sources are the content of the root chain: what stays inside, then the top
	// of the source tree. Where there are many single destinations these have a tree, in
	// which the root chain has its content, and sources are that of SourceChain.
	returns, sources []string
	manyDestinations bool
}

// NewRendering returns the rendering of p.
func NewRendering(p kernel.Desired) *Rendering { return newRendering(p, sourceName) }

// newRendering is NewRendering with other names for the chains of the source tree.
func newRendering(p kernel.Desired, name func(netip.Prefix) string) *Rendering {
	r := &Rendering{rules: Ruleset{}, leaves: snatLeaves(sayable(p.Bindings))}
	r.source = tree{rules: r.rules, option: "-s", name: name, prefixes: map[string]netip.Prefix{}, most: leafRules, levels: sourceLevels}
	if len(r.leaves) == 0 {
		return r
	}
	r.sources = r.source.chain(r.leaves, nil)
	r.setDestinations(p.Networks)
	r.setSources()
	return r
}

// Ruleset returns what the rendering is now. Follow changes it.
func (r *Rendering) Ruleset() Ruleset { return r.rules }

// setDestinations makes the rules for what n excludes.
func (r *Rendering) setDestinations(n kernel.Networks) {
	networks, hosts := exclusions(n)
	if r.manyDestinations = len(hosts) > destinationRules; !r.manyDestinations {
		r.returns = slices.Concat(returnRules(n.ClusterCIDRs), returnRules(n.Exclusions))
		return
	}
	destinations := tree{
		rules: r.rules, option: "-d", name: Egress.destinationName, prefixes: map[string]netip.Prefix{},
		most: destinationRules, levels: destinationLevels, tail: []string{"-g " + SourceChain},
	}
	r.rules[RootChain] = append(returnRules(networks), destinations.root(hosts)...)
}

// setSources puts the top of the source tree in its place.
func (r *Rendering) setSources() {
	if r.manyDestinations {
		r.rules[SourceChain] = r.sources
		return
	}
	r.rules[RootChain] = slices.Concat(r.returns, r.sources)
}

// Follow makes r the rendering of what c leads to, with the journal of removed bindings. It returns
// the names of the chains that may have changed.
func (r *Rendering) Follow(c kernel.Change, removed []kernel.Binding) (touched []string) {
	names := map[string]bool{RootChain: true, SourceChain: true, RemovedChain: true}
	before := len(r.leaves)
	addrs := r.edit(snatLeaves(sayable(c.Removed)), snatLeaves(sayable(c.Added)))
	switch {
	case before == 0 || len(r.leaves) == 0:
		// There were no bindings before, or there are none now.
		old := r.rules
		*r = *newRendering(kernel.Desired{Networks: c.Networks, Bindings: c.Added}, r.source.name)
		for name := range old {
			names[name] = true
		}
		for name := range r.rules {
			names[name] = true
		}
	default:
		for name := range r.grow(addrs) {
			names[name] = true
		}
		if c.NetworksChanged {
			r.replaceDestinations(c.Networks, names)
		}
		r.setSources()
	}
	delete(r.rules, RemovedChain)
	r.rules.Record(removed)
	return slices.Collect(maps.Keys(names))
}

// replaceDestinations makes the rules for what n excludes anew, and adds their chains, those of
// before included, to names.
func (r *Rendering) replaceDestinations(n kernel.Networks, names map[string]bool) {
	isDestination := func(name string, _ []string) bool { return strings.HasPrefix(name, destinationPrefix) }
	note := func() {
		for name := range r.rules {
			if isDestination(name, nil) {
				names[name] = true
			}
		}
	}
	note()
	maps.DeleteFunc(r.rules, isDestination)
	delete(r.rules, RootChain)
	delete(r.rules, SourceChain)
	r.setDestinations(n)
	note()
}

// grow brings the source tree up to its leaves, of which those of addrs have changed, and returns
// the names of the chains that were made anew, or are gone.
func (r *Rendering) grow(addrs []netip.Addr) map[string]bool {
	g := &growth{addrs: addrs, made: map[string]bool{}}
	grown := r.source
	grown.growth = g
	r.sources = grown.chain(r.leaves, r.sources)
	names := maps.Clone(g.made)
	for len(g.dropped) > 0 {
		name := g.dropped[0]
		g.dropped = g.dropped[1:]
		if g.made[name] || names[name] {
			continue // another chain leads to it
		}
		names[name] = true
		g.dropped = append(g.dropped, links(r.rules[name])...)
		delete(r.rules, name)
		delete(r.source.prefixes, name)
	}
	return names
}

// edit takes leaves away and adds others, and returns the addresses that it is about. All are sorted.
func (r *Rendering) edit(removed, added []leaf) (addrs []netip.Addr) {
	kept, from := r.leaves[:0], 0
	for _, l := range removed {
		if i, there := slices.BinarySearchFunc(r.leaves[from:], l, leaf.compare); there {
			kept = append(kept, r.leaves[from:from+i]...)
			from += i + 1
		}
		addrs = append(addrs, l.addr)
	}
	kept = append(kept, r.leaves[from:]...)
	clear(r.leaves[len(kept):])
	end := len(kept)
	r.leaves = slices.Grow(kept, len(added))[:len(kept)+len(added)]
	for i, l := range slices.Backward(added) {
		at, _ := slices.BinarySearchFunc(r.leaves[:end], l, leaf.compare)
		copy(r.leaves[at+i+1:], r.leaves[at:end])
		r.leaves[at+i] = l
		end = at
		addrs = append(addrs, l.addr)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return addrs
}
