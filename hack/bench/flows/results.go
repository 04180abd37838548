package flows

import (
	"fmt"
	"slices"

	"github.com/openshift/origin-node/hack/bench/figure"
)

// row is a line of the table: two structures under a load.
type row struct {
	name                 string
	structure, reference string
	load                 string
	small, large         figure.Target // up to 1,000 bindings, and above
}

const (
	one       = "new flows of one pod"
	random    = "new flows of random pods"
	unbound   = "new flows of one unbound pod"
	unbounds  = "new flows of random unbound pods"
	following = "packets of established flows"
)

var rows = []row{
	{one + ": nftables ÷ single rule", "nftables", "single", "one", figure.AtLeast(0.97), figure.AtLeast(0.97)},
	{one + ": legacy tree ÷ single rule", "legacy", "single", "one", figure.AtLeast(0.95), figure.AtLeast(0.95)},
	{one + ": iptables-nft tree ÷ single rule", "nft", "single", "one", figure.AtLeast(0.85), figure.AtLeast(0.85)},
	{one + ": linear chain ÷ single rule", "linear", "single", "one", figure.None, figure.None},
	{one + ": no SNAT at all ÷ single rule", "none-legacy", "single", "one", figure.None, figure.None},
	{one + ": single rule on another node ÷ single rule", "single-again", "single", "one", figure.None, figure.None},
	{one + ": single rule without random ports ÷ with", "plain", "single", "one", figure.None, figure.None},

	{random + ": nftables ÷ single rule", "nftables", "single", "random", figure.AtLeast(0.95), figure.AtLeast(0.80)},
	{random + ": legacy tree ÷ single rule", "legacy", "single", "random", figure.AtLeast(0.90), figure.AtLeast(0.65)},
	{random + ": iptables-nft tree ÷ single rule", "nft", "single", "random", figure.None, figure.None},
	{random + ": single rule on another node ÷ single rule", "single-again", "single", "random", figure.None, figure.None},
	{random + ": linear chain ÷ single rule", "linear", "single", "random", figure.None, figure.None},

	{unbound + ": nftables ÷ node without us", "nftables", "none-nftables", "unbound", figure.AtLeast(0.95), figure.AtLeast(0.95)},
	{unbound + ": legacy tree ÷ node without us", "legacy", "none-legacy", "unbound", figure.AtLeast(0.95), figure.AtLeast(0.95)},
	{unbound + ": iptables-nft tree ÷ node without us", "nft", "none-nft", "unbound", figure.AtLeast(0.95), figure.AtLeast(0.95)},
	{unbound + ": linear chain ÷ node without us", "linear", "none-legacy", "unbound", figure.None, figure.None},

	{unbounds + ": nftables ÷ node without us", "nftables", "none-nftables", "unbound-random", figure.AtLeast(0.95), figure.AtLeast(0.95)},
	{unbounds + ": legacy tree ÷ node without us", "legacy", "none-legacy", "unbound-random", figure.AtLeast(0.95), figure.AtLeast(0.95)},
	{unbounds + ": iptables-nft tree ÷ node without us", "nft", "none-nft", "unbound-random", figure.AtLeast(0.95), figure.AtLeast(0.95)},
	{unbounds + ": linear chain ÷ node without us", "linear", "none-legacy", "unbound-random", figure.None, figure.None},

	{following + ": nftables ÷ single rule", "nftables", "single", "established", figure.AtLeast(0.98), figure.AtLeast(0.98)},
	{following + ": legacy tree ÷ single rule", "legacy", "single", "established", figure.AtLeast(0.98), figure.AtLeast(0.98)},
	{following + ": iptables-nft tree ÷ single rule", "nft", "single", "established", figure.AtLeast(0.98), figure.AtLeast(0.98)},
}

// asked tells whether a row needs a structure under a load.
func asked(structure, load string) bool {
	return slices.ContainsFunc(rows, func(r row) bool {
		return r.load == load && (r.structure == structure || r.reference == structure)
	})
}

// results are the rows at this size: rates, so what the reference takes ÷ what the structure does.
func (b *bed) results(values measured) []figure.Result {
	var all []figure.Result
	for _, r := range rows {
		result := figure.Result{
			Name: r.name, At: figure.Size(b.bindings), Target: r.small,
			Measured: figure.Ratio(values[[2]string{r.reference, r.load}], values[[2]string{r.structure, r.load}]),
		}
		if b.bindings > 1_000 {
			result.Target = r.large
		}
		if b.nodes != nodes {
			result.At += fmt.Sprintf(", %d nodes", b.nodes)
		}
		all = append(all, result)
	}
	return all
}
