package failover

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/lab"
)

const (
	nodes = 3
	// patience bounds what takes less than a second on an idle machine.
	patience = time.Minute
	// pause is between two looks.
	pause = time.Millisecond
)

// Figure is that of this package.
func Figure() figure.Figure { return figure.Figure{Name: "pool/failover", Run: run} }

func run(ctx context.Context, s figure.Settings) (results []figure.Result, err error) {
	l, err := lab.New(ctx, lab.Config{Nodes: nodes})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	p, err := newPool(ctx, l)
	if err != nil {
		return nil, err
	}
	idle := 5 * time.Second
	if s.Smoke {
		idle = 100 * time.Millisecond
	}
	values, err := s.Measure(ctx,
		figure.One("fault=link-cut", figure.Quantity{Name: "PoolMove", Unit: "ms/op", N: 1}, func(ctx context.Context) (float64, error) {
			return p.moves(ctx, func(n *node) error { return l.SetLink(n.Host, false) }, func(n *node) error { return l.SetLink(n.Host, true) })
		}),
		figure.One("fault=drain", figure.Quantity{Name: "PoolMove", Unit: "ms/op", N: 1}, func(ctx context.Context) (float64, error) {
			order := func(text string) func(n *node) error {
				return func(n *node) error { _, err := n.order(text); return err }
			}
			return p.moves(ctx, order(drain), order(undrain))
		}),
		figure.One("idle", figure.Quantity{Name: "PoolCPU", Unit: "%", N: 1}, func(ctx context.Context) (float64, error) {
			n := p.nodes[0]
			spent, err := figure.Time(func() (time.Duration, error) { return figure.CPUOf(n.cmd.Process.Pid) }, func() error { return figure.Sleep(ctx, idle) })
			return 100 * spent.CPU.Seconds() / spent.Wall.Seconds(), err
		}),
	)
	if err != nil {
		return nil, err
	}
	at := fmt.Sprintf("%d nodes", nodes)
	return []figure.Result{
		{Name: "a node's link is cut, until another node has its egress IP", At: at, Measured: values[0][0], Unit: "ms", Target: figure.AtMost(450)},
		{Name: "a node is drained, until another node has its egress IP", At: at, Measured: values[1][0], Unit: "ms", Target: figure.AtMost(100)},
		{Name: "CPU time of an idle node of the pool", At: at, Measured: values[2][0], Unit: "%"},
	}, nil
}

// cluster has the nodes.
type cluster struct{ nodes []*node }

// node is one of them, with its process.
type node struct {
	*lab.Host
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func newPool(ctx context.Context, l *lab.Lab) (*cluster, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := spec{Nodes: map[string]netip.Addr{}}
	for _, host := range l.Nodes() {
		s.Nodes[host.Name] = host.V4
	}
	p := &cluster{}
	for _, host := range l.Nodes() {
		s.Name = host.Name
		text, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		n := &node{Host: host, cmd: host.Command(ctx, binary, agentCommand, string(text))}
		in, inErr := n.cmd.StdinPipe()
		out, outErr := n.cmd.StdoutPipe()
		if err := errors.Join(inErr, outErr); err != nil {
			return nil, err
		}
		n.in, n.out = in, bufio.NewReader(out)
		if _, err := lab.Start(n.cmd); err != nil {
			return nil, err
		}
		p.nodes = append(p.nodes, n)
	}
	return p, nil
}

// order gives an order, and returns how many nodes are found alive.
func (n *node) order(text string) (alive int, err error) {
	if _, err := fmt.Fprintln(n.in, text); err != nil {
		return 0, err
	}
	answer, err := n.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(answer))
}

// moves has the holder lose the address, and returns how long it takes until another node has it, in milliseconds.
func (p *cluster) moves(ctx context.Context, lose, restore func(*node) error) (float64, error) {
	holder, err := p.settled(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := lose(holder); err != nil {
		return 0, err
	}
	err = await(ctx, func() (bool, error) {
		on, err := p.on()
		return slices.ContainsFunc(on, func(n *node) bool { return n != holder }), err
	})
	took := time.Since(began)
	return figure.Milliseconds(took), errors.Join(err, restore(holder))
}

// settled waits until all nodes find each other alive and one has the address, and returns that.
func (p *cluster) settled(ctx context.Context) (holder *node, err error) {
	return holder, await(ctx, func() (bool, error) {
		for _, n := range p.nodes {
			if alive, err := n.order(look); err != nil || alive < nodes {
				return false, err
			}
		}
		on, err := p.on()
		if len(on) != 1 {
			return false, err
		}
		holder = on[0]
		return true, err
	})
}

// on are the nodes that have the address.
func (p *cluster) on() (list []*node, err error) {
	for _, n := range p.nodes {
		held, err := n.Held()
		if err != nil {
			return nil, err
		}
		if slices.Contains(held, egressIP) {
			list = append(list, n)
		}
	}
	return list, nil
}

// await waits until something is so.
func await(ctx context.Context, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if so, err := is(); so || err != nil {
			return err
		}
		if err := figure.Sleep(ctx, pause); err != nil {
			return fmt.Errorf("the pool does not settle: %w", err)
		}
	}
}
