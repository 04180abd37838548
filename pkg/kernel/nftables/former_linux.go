package nftables

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
	return found.Find(ctx, func(c *nft.Conn) (bool, error) {
		tables, err := c.ListTablesOfFamily(nft.FamilyOf(family).Table)
		if err != nil {
			return false, fmt.Errorf("list the nftables tables: %w", err)
		}
		return slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == ProxierTable }), nil
	})
}
