package steering

import (
	"context"
	"errors"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Halt has the tables of both IP families steer nothing any more, and drop what would begin a flow of a bound pod, whoever
// wrote them. What other nodes have translated is dropped, too, and can be ended then: without the table it would go on
// under the pods' own addresses.
func Halt(ctx context.Context) error {
	var errs []error
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		w := nft.NewWriter(nft.Spec{Name: Table, Family: family, Sets: setsOf(Config{PortBlocks: true})})
		err := w.Empty(ctx, waysMap, podWaysMap, sourcesMap, podSourcesMap, blocksMap, podBlocksMap, fullBlocksMap, podFullBlocksMap)
		w.Close()
		if !errors.Is(err, nft.ErrNone) { // a kernel without nftables holds nothing
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Stands returns what the table of an IP family has, whoever wrote it; nothing if there is no table. Connections of its bindings may have
// left by another node.
func Stands(ctx context.Context, family kernel.Family) (Standing, error) {
	w := nft.NewWriter(nft.Spec{Name: Table, Family: family, Sets: sets})
	defer w.Close()
	held, fault, err := w.Look(ctx)
	if errors.Is(err, nft.ErrNone) {
		return Standing{}, nil // a kernel without nftables holds nothing
	}
	if err != nil {
		return Standing{}, err
	}
	for _, set := range []string{ownSet, ownPodsSet, sourcesMap, podSourcesMap, exclusionsSet} {
		if _, listed := held.Sets[set]; held.Sets != nil && !listed {
			return Standing{}, errors.New(fault)
		}
	}
	return standingOf(held.Sets), nil
}
