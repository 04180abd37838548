package egress

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// formerModeWarnings returns what a verification says of rules that kube-proxy, or this program, has left in another mode. Nobody keeps
// them up to date.
func (e *Extension) formerModeWarnings(ctx context.Context, name v1.IPFamily) ([]string, error) {
	left := ""
	if e.config.Proxier == reconcile.NFTables {
		chains, err := iptables.ProxierChains(ctx, kernel.Family(name))
		if err != nil {
			return nil, fmt.Errorf("look for the rules of another proxy mode: %w", err)
		}
		if len(chains) > 0 {
			left = fmt.Sprintf("%d chains in the nat table of iptables, the first is %s", len(chains), chains[0])
		}
	} else {
		there, err := reconcile.HasProxierTable(ctx, kernel.Family(name))
		if err != nil {
			return nil, fmt.Errorf("look for the rules of another proxy mode: %w", err)
		}
		if there {
			left = "the nftables table " + reconcile.ProxierTable
		}
	}
	if left == "" {
		return nil, nil
	}
	return []string{status.Warning + fmt.Sprintf("rules of another proxy mode are there: %s. They send packets to endpoints that may be gone. "+
		"If other software refers to them, change that: the node removes what it could not remove at its start once in a sync period. Otherwise restart the node", left)}, nil
}
