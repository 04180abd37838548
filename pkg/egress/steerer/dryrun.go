package steerer

import (
	"errors"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/sourceports"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// For returns which ways this node's packets take for these objects, in an IP family; zero if nothing is steered. The nodes reach each other by
// the IP family of this node's first address. portBlocks is the number of ports in the blocks of source ports that pods get; 0 for none.
// What of the Leases cannot be read is in err; the ways are complete without it.
func For(family v1.IPFamily, config cluster.Config, kernelConfig steering.Config, portBlocks int, objects cluster.Objects) (result kernel.Steering, err error) {
	if config.Steering.Off() {
		return kernel.Steering{}, nil
	}
	state, comes, err := cluster.StateFor(config, objects)
	outer, ports, now := cluster.OuterOf(config.NodeName, objects.Nodes), sourceports.New(state, sourceports.Config{BlockSize: portBlocks}), time.Now()
	s := newSteerer(state, Config{Kernel: kernelConfig, Outer: outer, Ports: ports})
	s.hardware = objects.Hardware
	state.Update(family)
	s.assign(comes, now)
	for _, node := range objects.Nodes {
		s.node.Next(state.NodeSeen(node, outer), now)
	}
	for _, lease := range objects.Leases {
		announced, leaseErr := holders.Announcing(lease)
		assigned, revision, assignedErr := holders.Assigning(lease)
		err = errors.Join(err, leaseErr, assignedErr)
		s.node.Next(announced, now)
		ports.TakeLease(lease.Name, revision, assigned, now)
	}
	s.node.Next(holders.OwnAddresses{Addresses: slices.Collect(maps.Keys(objects.Held)), Announced: objects.Announced}, now)
	s.node.Next(holders.LeasesKnown{}, now)
	return s.Steering(family), err
}
