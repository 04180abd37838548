package flows

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// The structures of steering: the table of a node that steers nothing; in its place that of one that steers, which lets
// all packets leave there, or only those of unbound pods; and on two nodes, of which the other has all egress IPs.
var (
	unsteered = structure{"unsteered", "without steering", lab.NFT, nftablesProxier, written(tables.Table), asPlanned, 1}
	local     = structure{"local", "local", lab.NFT, nftablesProxier, steeredBy(steering.VXLAN), asPlanned, 1}
	away      = structure{"away", "on a node that steers", lab.NFT, nftablesProxier, steersAway, asPlanned, 1}
	vxlan     = structure{"vxlan", "steered by vxlan", lab.NFT, nftablesProxier, steeredBy(steering.VXLAN), asPlanned, 2}
	direct    = structure{"direct", "steered by direct", lab.NFT, nftablesProxier, steeredBy(steering.Direct), asPlanned, 2}

	fastVXLAN  = structure{"fast-vxlan", "steered by vxlan, fast path", lab.NFT, nftablesProxier, fastBy(steering.VXLAN, false), asPlanned, 2}
	fastLocal  = structure{"fast-local", "local, fast path for all", lab.NFT, nftablesProxier, fastBy(steering.VXLAN, true), asPlanned, 1}
	fastDirect = structure{"fast-direct", "steered by direct, fast path", lab.NFT, nftablesProxier, fastBy(steering.Direct, false), asPlanned, 2}

	// Where unbound pods share their node's address.
	masqueraded = structure{"masqueraded", "without steering", lab.NFT, masquerading, written(tables.Table), asShared, 1}
	fastUnbound = structure{"fast-unbound", "on a node that steers, fast path", lab.NFT, masquerading, fastBy(steering.VXLAN, false), asShared, 1}
)

var steeringComparisons = []comparison{
	{vxlan, local, randomPods, false, 0, 2.3},
	{vxlan, local, randomPods, true, 0, 2.3},
	{direct, local, randomPods, false, 0, 1.7},
	{direct, local, randomPods, true, 0, 1.7},
	{local, unsteered, unbound, false, 0.98, 0},
	{local, unsteered, unbound, true, 0.98, 0},
	{away, unsteered, unbound, false, 0.98, 0},
	{away, unsteered, unbound, true, 0.98, 0},
	{local, unsteered, randomPods, false, 0, 0},
	{local, unsteered, randomPods, true, 0, 0},
}

var fastComparisons = []comparison{
	{fastVXLAN, local, randomPods, true, 0, 1.25},
	{fastDirect, local, randomPods, true, 0, 1.2},
	{fastLocal, local, randomPods, true, 0, 0.7},
	{fastVXLAN, vxlan, randomPods, false, 0.97, 0},
	{fastLocal, local, randomPods, false, 0.97, 0},
	{fastUnbound, masqueraded, unbound, true, 0.97, 0},
	{fastUnbound, masqueraded, unbound, false, 0, 0},
}

// Steering is the figure of what packets cost that leave by another node.
func Steering() figure.Figure {
	return figure.Figure{Name: "steering/packets", Run: func(ctx context.Context, s figure.Settings) ([]figure.Result, error) {
		return runSteering(ctx, s, []structure{unsteered, local, away, vxlan, direct}, steeringComparisons)
	}}
}

// FastPath is the figure of what they cost with the fast path. More hosts at once have more neighbours than the kernel keeps.
func FastPath() figure.Figure {
	return figure.Figure{Name: "steering/fast-path", Run: func(ctx context.Context, s figure.Settings) ([]figure.Result, error) {
		return runSteering(ctx, s, []structure{local, vxlan, masqueraded, fastLocal, fastVXLAN, fastDirect, fastUnbound}, fastComparisons)
	}}
}

// runSteering measures comparisons on a node of a small cluster.
func runSteering(ctx context.Context, s figure.Settings, structures []structure, comparisons []comparison) ([]figure.Result, error) {
	size := sizes[1]
	values, err := run(ctx, s.AtMost(9), size, structures, comparisons)
	return results(figure.Size(size.bindings), comparisons, values, comparison.titleOfKind), err
}

// steeredBy has the last node of a host have all egress IPs.
func steeredBy(transport steering.Transport) func(context.Context, *host, kernel.Desired) error {
	return func(ctx context.Context, h *host, p kernel.Desired) error {
		return steerTo(ctx, h.lab.Nodes(), h.exit(), transport, nil, p)
	}
}

// fastBy is steeredBy with a fast path on each node, which goes with the host. All pods are behind the pod's link.
func fastBy(transport steering.Transport, all bool) func(context.Context, *host, kernel.Desired) error {
	return func(ctx context.Context, h *host, p kernel.Desired) (err error) {
		if h.fast, err = fastPaths(h.lab.Nodes(), all); err != nil {
			return err
		}
		err = h.lab.Node().Do(func() error {
			link, err := net.InterfaceByName("from0")
			if err != nil {
				return err
			}
			places := map[netip.Addr]int{}
			for _, b := range p.Bindings {
				places[b.Pod] = link.Index
			}
			for i := range len(p.Bindings)/4 + 1 {
				places[unboundPod(i)] = link.Index
			}
			h.fast[0].Place(places)
			return nil
		})
		return errors.Join(err, steerTo(ctx, h.lab.Nodes(), h.exit(), transport, h.fast, p))
	}
}

// fastPaths loads a fast path on each node; all: for bound pods' packets that leave from their own node, too.
func fastPaths(nodes []*lab.Host, all bool) (paths []*fastpath.Path, err error) {
	for _, node := range nodes {
		err = errors.Join(err, node.Do(func() error {
			path, err := fastpath.Load(klog.Background(), all)
			paths = append(paths, path)
			return err
		}))
	}
	return paths, err
}

// holders are addresses that need not answer.
var holders = []netip.Addr{netip.MustParseAddr("192.0.2.3"), netip.MustParseAddr("192.0.2.4")}

// steersAway has another node have all egress IPs, which is not there: no bound pod's packet gets anywhere.
func steersAway(ctx context.Context, h *host, p kernel.Desired) error {
	node := h.lab.Node()
	p.Steering = kernel.Steering{Self: node.V4, Nodes: holders[:1], Ways: map[netip.Addr]kernel.Way{}}
	for _, b := range p.Bindings {
		p.Steering.Ways[b.EgressIP] = kernel.Way{Kind: kernel.ToNode, Node: holders[0]}
	}
	return node.Do(func() error { return tables.Steer(ctx, tables.SteeringConfig(node, steering.VXLAN), p) })
}

// steerTo writes, on each node, the product's tables of source NAT and of steering. The holder has all egress IPs, and pods run
// on the first node. fast are the fast paths of the nodes, if they have any.
func steerTo(ctx context.Context, nodes []*lab.Host, holder *lab.Host, transport steering.Transport, fast []*fastpath.Path, p kernel.Desired) error {
	homes := map[netip.Addr]netip.Addr{}
	for _, b := range p.Bindings {
		homes[b.Pod] = nodes[0].V4
	}
	for i, node := range nodes {
		d := p
		d.Steering = kernel.Steering{Self: node.V4, Ways: map[netip.Addr]kernel.Way{}, Senders: map[netip.Addr]kernel.HardwareAddr{}, Homes: homes}
		for j, other := range nodes {
			if j == i {
				continue
			}
			uplink, err := uplinkOf(other)
			if err != nil {
				return err
			}
			d.Steering.Nodes, d.Steering.Senders[other.V4] = append(d.Steering.Nodes, other.V4), uplink
		}
		if node != holder {
			for _, b := range p.Bindings {
				d.Steering.Ways[b.EgressIP] = kernel.Way{Kind: kernel.ToNode, Node: holder.V4}
			}
		}
		config := tables.SteeringConfig(node, transport)
		if fast != nil {
			config.Fast = fast[i]
		}
		if err := node.Do(func() error { return tables.Steer(ctx, config, d) }); err != nil {
			return fmt.Errorf("%s: %w", node.Name, err)
		}
	}
	return nil
}

func uplinkOf(node *lab.Host) (addr kernel.HardwareAddr, err error) {
	err = node.Do(func() error {
		uplink, err := net.InterfaceByName("eth0")
		if err == nil {
			addr = kernel.HardwareAddr(uplink.HardwareAddr)
		}
		return err
	})
	return addr, err
}
