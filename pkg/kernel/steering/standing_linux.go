package steering

import (
	"cmp"
	"context"
	"errors"
	"net/netip"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Halt makes the tables of both IP families, whoever wrote them, steer nothing any more, and drop packets that would begin a flow of a
// bound pod. Packets of flows that other nodes have translated are dropped, too, so that these flows can be ended: without the table they
// would go on under the pods' own addresses.
func Halt(ctx context.Context) error {
	return everywhere(func(family kernel.Family) error {
		w := nft.NewWriter(nft.Spec{Name: Table, Family: family, Sets: setsOf(Config{PortBlocks: true})})
		defer w.Close()
		return w.Empty(ctx, waysMap, podWaysMap, sourcesMap, podSourcesMap, blocksMap, podBlocksMap, fullBlocksMap, podFullBlocksMap)
	})
}

// Stands returns what the table of an IP family has, whoever wrote it; nothing if there is no table. Connections of its bindings may have
// left by another node.
func Stands(ctx context.Context, family kernel.Family) (Standing, error) {
	w := nft.NewWriter(nft.Spec{Name: Table, Family: family, Sets: setsOf(Config{PortBlocks: true})})
	defer w.Close()
	held, fault, err := w.Inspect(ctx)
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
	return standingLeft(family, held.Sets), nil
}

// standingLeft returns what sets have that another process has written.
func standingLeft(family kernel.Family, sets nft.Content) Standing {
	holders, err := holdersLeft(family)
	if err != nil {
		holders = nil // what the bindings are is enough to go on
	}
	return standingOf(sets, holders)
}

// holdersLeft returns the nodes to which whoever wrote the table sends packets, by their numbers.
func holdersLeft(family kernel.Family) (map[int]netip.Addr, error) {
	s, err := changes.Outlast(func() (*pathState, error) {
		s := &pathState{config: Config{Family: family}}
		return s, cmp.Or(s.readDevice(), s.readEntries(), s.readRoutes())
	})
	if err != nil {
		return nil, err
	}
	remotes, holders := map[kernel.HardwareAddr]netip.Addr{}, map[int]netip.Addr{}
	for _, p := range s.remotes {
		remotes[p.(remote).hardwareAddr] = p.(remote).node
	}
	for _, p := range s.held {
		switch p := p.(type) {
		case neighbour:
			holders[numberOf(p)] = remotes[p.hardwareAddr]
		case route:
			if innerNumber(family, p.via) == 0 && p.via.IsValid() { // with the transport Direct
				holders[numberOf(p)] = p.via
			}
		}
	}
	return holders, nil
}
