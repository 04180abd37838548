package flows

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// Moves is the figure of how long a node takes to send an egress IP's packets to another node.
func Moves() figure.Figure { return figure.Figure{Name: "steering/moves", Run: runMoves} }

// runMoves has one egress IP of several move between two other nodes, each egress IP with ten pods.
func runMoves(ctx context.Context, s figure.Settings) (results []figure.Result, err error) {
	sizes, moves := []int{10, 1_000}, 50
	if s.Smoke {
		sizes, moves = sizes[:1], 2
	}
	var cases []figure.Case
	for _, egressIPs := range sizes {
		m, err := newMover(ctx, egressIPs)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, m.close()) }()
		cases = append(cases, figure.One(fmt.Sprintf("addresses=%d", egressIPs), figure.Quantity{Name: "Move", Unit: "ms", N: moves}, func(ctx context.Context) (float64, error) {
			var all figure.Distribution
			for range moves {
				took, err := m.move(ctx)
				if err != nil {
					return 0, err
				}
				all = append(all, figure.Milliseconds(took.Wall))
			}
			return all.Median(), nil
		}))
	}
	values, err := s.Measure(ctx, cases...)
	if err != nil {
		return nil, err
	}
	for i, egressIPs := range sizes {
		results = append(results, figure.Result{
			Name: "an egress IP moves, time in the kernel of a node with ten pods for each", At: figure.Size(egressIPs) + " addresses",
			Measured: values[i][0], Unit: "ms", Target: figure.AtMost(1),
		})
	}
	return results, nil
}

// mover is a node whose writer has all egress IPs leave by two other nodes.
type mover struct {
	lab     *lab.Lab
	writer  *steering.Writer
	desired kernel.Desired
}

// holders are addresses that need not answer.
var holders = []netip.Addr{netip.MustParseAddr("192.0.2.3"), netip.MustParseAddr("192.0.2.4")}

func newMover(ctx context.Context, egressIPs int) (m *mover, err error) {
	m = &mover{desired: planOf(0, fewNodes)}
	if m.lab, err = lab.New(ctx, lab.Config{}); err != nil {
		return nil, err
	}
	node := m.lab.Node()
	m.desired.Steering = kernel.Steering{Self: node.V4, Nodes: holders, Ways: map[netip.Addr]kernel.Way{}}
	for i := range 10 * egressIPs {
		ip := egressIP(i % egressIPs)
		m.desired.Bindings = append(m.desired.Bindings, kernel.Binding{Pod: podAddr(i), Protocol: kernel.TCP, EgressIP: ip})
		m.desired.Steering.Ways[ip] = kernel.Way{Kind: kernel.ToNode, Node: holders[i%egressIPs%len(holders)]}
	}
	m.writer = steering.NewWriter(tables.SteeringConfig(node, steering.VXLAN))
	err = node.Do(func() error {
		_, err := m.writer.Write(ctx, m.desired)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *mover) close() error {
	m.writer.Close()
	return m.lab.Close()
}

// move moves an egress IP to the other node.
func (m *mover) move(ctx context.Context) (took figure.Spent, err error) {
	ip, to := egressIP(7), holders[0]
	if m.desired.Steering.Ways[ip].Node == to {
		to = holders[1]
	}
	m.desired.Steering.Ways = maps.Clone(m.desired.Steering.Ways)
	m.desired.Steering.Ways[ip] = kernel.Way{Kind: kernel.ToNode, Node: to}
	err = m.lab.Node().Do(func() error {
		took, err = figure.Time(figure.ThreadCPU, func() error {
			_, err := m.writer.Update(ctx, kernel.Change{Steering: m.desired.Steering, SteeringChanged: true})
			return err
		})
		return err
	})
	return took, err
}
