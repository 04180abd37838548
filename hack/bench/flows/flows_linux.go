package flows

import (
	"context"
	"errors"
	"fmt"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/pkg/kernel"
)

// size is how many pods of this node are bound, and how many nodes are excluded as destinations.
type size struct{ bindings, nodes int }

// fewNodes is the number of nodes where it does not matter, and is not mentioned.
const fewNodes = 3

// sizes begin with the typical node, in its cluster of 400, which -smoke measures alone.
var sizes = []size{{250, 400}, {250, fewNodes}, {1_000, fewNodes}, {10_000, fewNodes}, {100_000, fewNodes}}

// Figures returns one for each size: flows/250-nodes=400, flows/250 and so on.
func Figures() []figure.Figure {
	var all []figure.Figure
	for i, size := range sizes {
		name := fmt.Sprintf("flows/%d", size.bindings)
		if size.nodes != fewNodes {
			name += fmt.Sprintf("-nodes=%d", size.nodes)
		}
		all = append(all, figure.Figure{Name: name, Run: func(ctx context.Context, s figure.Settings) ([]figure.Result, error) {
			if s.Smoke && i > 0 {
				s.Log("left out of -smoke")
				return nil, nil
			}
			return run(ctx, s, size)
		}})
	}
	return all
}

// bed is all hosts of a size.
type bed struct {
	figure.Settings
	size
	plan  kernel.Desired
	hosts []*host
	// flows is how many begin in a visit, kept how many are established.
	flows, kept int
	// wall: the CPU time of the sending thread does not include what packets cost on this kernel.
	wall bool
}

func run(ctx context.Context, s figure.Settings, size size) (results []figure.Result, err error) {
	b := &bed{Settings: s, size: size, plan: planOf(size.bindings, size.nodes), flows: 20_000, kept: 1_000}
	if s.Smoke {
		b.flows, b.kept = 1_000, 100
	}
	if b.flows, err = tables.Fit(b.flows, s.Log); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.build(ctx, structures); err != nil {
		return nil, err
	}
	if err := b.checkAll(); err != nil {
		return nil, err
	}
	values := measured{}
	if err := b.measure(ctx, values, b.newFlows()); err != nil {
		return nil, err
	}
	established, err := b.established(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.measure(ctx, values, established); err != nil {
		return nil, err
	}
	return b.results(values), nil
}

// build makes a host for each structure.
func (b *bed) build(ctx context.Context, structures []structure) error {
	for _, structure := range structures {
		h, err := newHost(ctx, structure, b.plan)
		if err != nil {
			return err
		}
		b.hosts = append(b.hosts, h)
	}
	return nil
}

func (b *bed) close() error {
	var errs []error
	for _, h := range b.hosts {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// checkAll checks that every host does what it should, and finds out how to measure.
func (b *bed) checkAll() error {
	b.wall = true
	for _, h := range b.hosts {
		for _, l := range loads {
			if err := b.check(h, l); err != nil {
				return err
			}
		}
	}
	b.tellClock()
	return nil
}

// check checks that a host does what it should with a load. b.wall stays if the sending thread spent next to nothing, as
// it does each time with CONFIG_IRQ_TIME_ACCOUNTING.
func (b *bed) check(h *host, l load) error {
	load := l.of(b.plan, min(sample, b.flows))
	if _, err := h.check(load); err != nil {
		return fmt.Errorf("%s, %s: %w", h.name, l.title, err)
	}
	took, err := h.begins(begin(load))
	b.wall = b.wall && took.CPU < took.Wall/2
	return err
}

func (b *bed) tellClock() {
	if b.wall {
		b.Log("this kernel does not charge packets to the thread that sends them: measuring wall time, which varies more")
	}
}

// key is what a case measures.
type key struct{ structure, load string }

// measured has the values of all cases.
type measured map[key]figure.Distribution

// cases are figure's by what they measure.
type cases map[key]figure.Case

// measure adds the values of cases.
func (b *bed) measure(ctx context.Context, values measured, of cases) error {
	var keys []key
	var all []figure.Case
	for k, c := range of {
		keys, all = append(keys, k), append(all, c)
	}
	measured, err := b.Measure(ctx, all...)
	for i := range measured {
		values[keys[i]] = measured[i][0]
	}
	return err
}

// newFlows are the cases of new flows.
func (b *bed) newFlows() cases {
	all := cases{}
	for _, l := range loads {
		frames := begin(l.of(b.plan, b.flows))
		for _, h := range b.hosts {
			if k := (key{h.name, l.name}); needed(k) {
				all[k] = b.newFlow(h, k, frames)
			}
		}
	}
	return all
}

// established are the cases of established flows, of random pods.
func (b *bed) established(ctx context.Context) (cases, error) {
	load := randomPods.of(b.plan, b.kept)
	all := cases{}
	for _, h := range b.hosts {
		if k := (key{h.name, established}); needed(k) {
			if err := h.establish(ctx, load); err != nil {
				return nil, err
			}
			all[k] = b.carriesOn(h, k, load)
		}
	}
	return all, nil
}

// newFlow is the case of new flows of one host.
func (b *bed) newFlow(h *host, k key, frames []byte) figure.Case {
	return b.newCase("NewFlow", k, b.flows, func() (figure.Spent, error) { return h.begins(frames) })
}

// carriesOn is the case of established flows of one host.
func (b *bed) carriesOn(h *host, k key, load []flow) figure.Case {
	frames := carryOn(load, b.flows)
	return b.newCase("Established", k, b.flows, func() (figure.Spent, error) {
		took, err := h.timed(frames)
		if err == nil {
			err = h.tracks(len(load))
		}
		return took, err
	})
}

func (b *bed) newCase(quantity string, k key, n int, send func() (figure.Spent, error)) figure.Case {
	name := fmt.Sprintf("structure=%s/n=%d/nodes=%d/load=%s", k.structure, b.bindings, b.nodes, k.load)
	return figure.One(name, figure.Quantity{Name: quantity, Unit: "ns/op", N: n}, func(context.Context) (float64, error) {
		took, err := send()
		if b.wall {
			took.CPU = took.Wall
		}
		return float64(took.CPU.Nanoseconds()) / float64(n), err
	})
}
