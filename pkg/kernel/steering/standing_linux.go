package steering

import (
	"context"
	"errors"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nftables/table"
)

// Standing returns the bindings that the table of an IP family has, whoever wrote it, and all networks that are never
// SNATed, as exclusions; nothing if there is no table. Connections of these bindings may have left by another node.
func Standing(ctx context.Context, family kernel.Family) (d kernel.Desired, err error) {
	w := table.NewWriter(table.Spec{Name: Table, Family: family, Sets: sets})
	defer w.Close()
	held, _, err := w.Look(ctx)
	if errors.Is(err, table.ErrNone) {
		return d, nil // a kernel without nftables holds nothing
	}
	if err != nil {
		return d, err
	}
	for key := range held.Sets[ownSet] {
		d.Bindings = append(d.Bindings, kernel.Binding{Pod: key.Pod, Protocol: key.Protocol, EgressIP: key.Other})
	}
	for key := range held.Sets[ownPodsSet] {
		d.Bindings = append(d.Bindings, kernel.Binding{Pod: key.Pod, Protocol: kernel.All, EgressIP: key.Other})
	}
	d.Bindings, d.Exclusions = kernel.Sorted(d.Bindings), table.Prefixes(held.Sets[exclusionsSet])
	return d, nil
}
