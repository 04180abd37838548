package flows

import (
	"fmt"
	"slices"

	"github.com/openshift/origin-node/hack/bench/figure"
)

// established is the load of established flows, beside those of new ones.
const established = "established"

// row compares two structures under a load.
type row struct {
	key
	reference string
	// The least ratio up to 1,000 bindings, and above; 0 if there is no target.
	small, large float64
}

var rows = []row{
	{key{"nftables", "one"}, "single", 0.97, 0.97},
	{key{"legacy", "one"}, "single", 0.95, 0.95},
	{key{"nft", "one"}, "single", 0.85, 0.85},
	{key{"none-legacy", "one"}, "single", 0, 0},
	{key{"single-again", "one"}, "single", 0, 0},
	{key{"map", "one"}, "single", 0, 0},

	{key{"nftables", "random"}, "single", 0.95, 0.80},
	{key{"legacy", "random"}, "single", 0.90, 0.65},
	{key{"nft", "random"}, "single", 0, 0},
	{key{"single-again", "random"}, "single", 0, 0},
	{key{"map", "random"}, "single", 0, 0},

	{key{"nftables", "unbound"}, "none-nftables", 0.95, 0.95},
	{key{"legacy", "unbound"}, "none-legacy", 0.95, 0.95},
	{key{"nft", "unbound"}, "none-nft", 0.95, 0.95},
	{key{"map", "unbound"}, "none-nftables", 0, 0},

	{key{"nftables", "unbound-random"}, "none-nftables", 0.95, 0.95},
	{key{"legacy", "unbound-random"}, "none-legacy", 0.95, 0.95},
	{key{"nft", "unbound-random"}, "none-nft", 0.95, 0.95},
	{key{"map", "unbound-random"}, "none-nftables", 0, 0},

	{key{"nftables", established}, "single", 0.98, 0.98},
	{key{"legacy", established}, "single", 0.98, 0.98},
	{key{"nft", established}, "single", 0.98, 0.98},
}

// needed tells whether a row needs a structure under a load.
func needed(k key) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.key == k || key{r.reference, r.load} == k })
}

func (r row) title() string {
	load := "packets of established flows"
	for _, l := range loads {
		if l.name == r.load {
			load = l.title
		}
	}
	return fmt.Sprintf("%s: %s ÷ %s", load, titleOf(r.structure), titleOf(r.reference))
}

// titleOf is the name of a structure for people.
func titleOf(name string) string {
	return structures[slices.IndexFunc(structures, func(s structure) bool { return s.name == name })].title
}

// results are the rows at this size: ratios of rates, so the cost of the reference ÷ that of the structure.
func (b *bed) results(values measured) []figure.Result {
	var all []figure.Result
	for _, r := range rows {
		result := figure.Result{
			Name: r.title(), At: figure.Size(b.bindings),
			Measured: figure.Ratio(values[key{r.reference, r.load}], values[r.key]),
		}
		least := r.small
		if b.bindings > 1_000 {
			least = r.large
		}
		if least > 0 {
			result.Target = figure.AtLeast(least)
		}
		if b.nodes != fewNodes {
			result.At += fmt.Sprintf(", %d nodes", b.nodes)
		}
		all = append(all, result)
	}
	return all
}
