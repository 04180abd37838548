package programming

import (
	"os/exec"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// Figures are those of this package.
func Figures() []figure.Figure {
	needsStrace := func() error {
		_, err := exec.LookPath("strace")
		return err
	}
	return []figure.Figure{
		{Name: "programming/typical", Run: typical, Lacks: needsStrace},
		{Name: "programming/structures", Run: structures, Lacks: needsStrace},
		{Name: "programming/seed", Run: seeds},
	}
}

// means is a way to write rules.
type means struct {
	name     string
	backend  reconcile.Backend
	iptables lab.Backend
	// changes is how many are measured in a visit: fewer where one takes long.
	changes int
	// The targets at 100,000 bindings: of the full install, of a change, of a change against the same at 100
	// bindings, and against the full write.
	full, change, growth, share figure.Target
}

var allMeans = []means{
	{name: "nftables", backend: reconcile.NFTables, iptables: lab.NFT, changes: 200, full: figure.AtMost(0.5), growth: figure.AtMost(1.1)},
	{name: "iptables-nft", backend: reconcile.IPTables, iptables: lab.NFT, changes: 20, change: figure.AtMost(20)},
	{name: "iptables-legacy", backend: reconcile.IPTables, iptables: lab.Legacy, changes: 10, share: figure.AtMost(0.5)},
}
