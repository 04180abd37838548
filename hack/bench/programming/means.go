package programming

import (
	"os/exec"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// Figure is programming/typical.
func Figure() figure.Figure {
	return figure.Figure{Name: "programming/typical", Run: typical, Lacks: func() error {
		_, err := exec.LookPath("strace")
		return err
	}}
}

// means is a way to write rules.
type means struct {
	name     string
	backend  reconcile.Backend
	iptables lab.Backend
	// changes is how many are measured in a visit: fewer where one takes long.
	changes int
}

var allMeans = []means{
	{name: "nftables", backend: reconcile.NFTables, iptables: lab.NFT, changes: 200},
	{name: "iptables-nft", backend: reconcile.IPTables, iptables: lab.NFT, changes: 20},
	{name: "iptables-legacy", backend: reconcile.IPTables, iptables: lab.Legacy, changes: 10},
}
