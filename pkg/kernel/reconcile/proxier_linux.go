package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/nftables"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// HasProxierTable tells whether kube-proxy has its table in the kernel, for an IP family.
func HasProxierTable(ctx context.Context, family kernel.Family) (bool, error) {
	var found nft.Found[bool]
	defer found.Close()
	return found.Find(ctx, func(c *nft.Conn) (bool, error) {
		tables, err := c.ListTablesOfFamily(nft.FamilyOf(family).Table)
		if err != nil {
			return false, fmt.Errorf("list the nftables tables: %w", err)
		}
		return slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == ProxierTable }), nil
	})
}

// MissingFromProxier returns what kube-proxy's nftables proxier has written and is not there any
// more, in words for a log; nothing if all is there. The proxier itself does not look.
func MissingFromProxier(ctx context.Context, family kernel.Family) ([]string, error) {
	reader, err := nft.OpenReader(ctx, family)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	var missing []string
	for _, name := range proxierChains {
		// A chain that is not there has no rules. There may be a hundred thousand others.
		has, err := reader.HasRules(ProxierTable, name)
		if err != nil {
			return nil, err
		}
		if !has {
			missing = append(missing, "table "+ProxierTable+": rules of "+name)
		}
	}
	return missing, nil
}

// ProxierTable and proxierChains are what the vendored nftables proxier always has (kubeProxyTable and nftablesBaseChains in
// pkg/proxy/nftables/proxier.go).
const ProxierTable = "kube-proxy"

var proxierChains = []string{"nat-prerouting", "nat-output", "nat-postrouting", "filter-forward", "filter-output", "services"}
