package flows

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// The structures of port blocks: that of steering where all egress IPs are held, without and with blocks.
var (
	unblocked = structure{"unblocked", "without port blocks", lab.NFT, nftablesProxier, blocksFor(noBlocks), asPlanned, 1}
	blocked   = structure{"blocked", "with port blocks", lab.NFT, nftablesProxier, blocksFor(allBlocks), asPlanned, 1}
	sharing   = structure{"sharing", "with port blocks of others", lab.NFT, nftablesProxier, blocksFor(othersBlocks), asPlanned, 1}

	blockComparisons = []comparison{
		{blocked, unblocked, blockPods, false, 0.97, 0},
		{blocked, unblocked, blockPods, true, 0.97, 0},
		{sharing, unblocked, blockPods, false, 0, 0},
		{blocked, unblocked, unbound, false, 0.97, 0},
		{blocked, unblocked, unbound, true, 0.97, 0},
	}
)

// PortBlocks is the figure of what new flows cost that leave from ports of their pods.
func PortBlocks() figure.Figure {
	return figure.Figure{Name: "steering/port-blocks", Run: func(ctx context.Context, s figure.Settings) ([]figure.Result, error) {
		return runSteering(ctx, s, []structure{unblocked, blocked, sharing}, blockComparisons)
	}}
}

// blocksOf are the blocks for pods of a plan.
type blocksOf func(p kernel.Desired) []kernel.Block

func noBlocks(kernel.Desired) []kernel.Block { return nil }

func allBlocks(p kernel.Desired) (blocks []kernel.Block) {
	for i, b := range p.Bindings {
		blocks = append(blocks, kernel.Block{Pod: b.Pod, EgressIP: b.EgressIP, Ports: blockOf(i, len(p.Bindings))})
	}
	return blocks
}

// othersBlocks are those of pods that are not of this plan.
func othersBlocks(p kernel.Desired) []kernel.Block {
	blocks := allBlocks(p)
	for i := range blocks {
		blocks[i].Pod = boundPod(len(p.Bindings) + i)
	}
	return blocks
}

// blocksFor has a node hold all egress IPs, with blocks; all other pods share the last ports.
func blocksFor(of blocksOf) func(context.Context, *host, kernel.Desired) error {
	return func(ctx context.Context, h *host, p kernel.Desired) error {
		node := h.lab.Node()
		blocks := of(p)
		p.Steering = kernel.Steering{Self: node.V4, Nodes: holders[:1], Held: map[netip.Addr]bool{}, Homes: map[netip.Addr]netip.Addr{}}
		for _, b := range p.Bindings {
			p.Steering.Held[b.EgressIP], p.Steering.Homes[b.Pod] = true, node.V4
		}
		config := tables.SteeringConfig(node, steering.VXLAN)
		if config.PortBlocks = len(blocks) > 0; config.PortBlocks {
			slices.SortFunc(blocks, kernel.CompareBlocks)
			p.Steering.Blocks, p.Steering.Shared = blocks, map[netip.Addr]kernel.Ports{}
			for egressIP := range p.Steering.Held {
				p.Steering.Shared[egressIP] = kernel.Ports{First: 61440, Last: 65535}
			}
		}
		if err := node.Do(func() error { return tables.Steer(ctx, config, p) }); err != nil {
			return fmt.Errorf("%s: %w", node.Name, err)
		}
		return nil
	}
}
