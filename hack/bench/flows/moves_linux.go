package flows

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

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
	sizes, moves := []int{10, 1_000}, 200
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
		cases = append(cases, figure.Case{
			Name:       fmt.Sprintf("addresses=%d", egressIPs),
			Quantities: []figure.Quantity{{Name: "MoveKernel", Unit: "ms", N: moves}, {Name: "Move", Unit: "ms", N: moves}},
			Measure: func(ctx context.Context) ([]float64, error) {
				kernel, all, err := m.move(ctx, moves)
				return []float64{figure.Milliseconds(kernel), figure.Milliseconds(all)}, err
			},
		})
	}
	values, err := s.Measure(ctx, cases...)
	if err != nil {
		return nil, err
	}
	for i, egressIPs := range sizes {
		at := figure.Size(egressIPs) + " addresses"
		results = append(results,
			figure.Result{Name: "an egress IP with ten pods moves, CPU of a node in the kernel", At: at, Measured: values[i][0], Unit: "ms", Target: figure.AtMost(1)},
			figure.Result{Name: "an egress IP with ten pods moves, until a node has written it", At: at, Measured: values[i][1], Unit: "ms"})
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
		_, err := m.writer.Write(ctx, m.desired, nil)
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

// move moves an egress IP so often, to and fro, and returns what a move takes: of this thread's CPU in the kernel, and in
// all, the median.
func (m *mover) move(ctx context.Context, times int) (inKernel, all time.Duration, err error) {
	err = m.lab.Node().Do(func() error {
		var before, after unix.Rusage
		var each []time.Duration
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &before); err != nil {
			return err
		}
		for i := range times {
			m.desired.Steering.Ways = maps.Clone(m.desired.Steering.Ways)
			m.desired.Steering.Ways[egressIP(7)] = kernel.Way{Kind: kernel.ToNode, Node: holders[i%len(holders)]}
			began := time.Now()
			if _, err := m.writer.Update(ctx, kernel.Change{Steering: m.desired.Steering, SteeringChanged: true}, nil); err != nil {
				return err
			}
			each = append(each, time.Since(began))
		}
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &after); err != nil {
			return err
		}
		slices.Sort(each)
		inKernel, all = time.Duration((after.Stime.Nano()-before.Stime.Nano())/int64(times)), each[times/2]
		return nil
	})
	return inKernel, all, err
}
