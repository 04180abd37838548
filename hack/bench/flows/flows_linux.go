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
			structures := []structure{noneLegacy, noneNFT, noneNFTables, single, singleAgain, legacyTree, nftTree, nftablesMap, singleMap}
			at := figure.Size(size.bindings)
			if size.nodes != fewNodes {
				at += fmt.Sprintf(", %d nodes", size.nodes)
			}
			comparisons := comparisonsAt(size.bindings)
			values, err := run(ctx, s, size, structures, comparisons)
			return results(at, comparisons, values, comparison.title), err
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

// run measures what comparisons of structures need.
func run(ctx context.Context, s figure.Settings, size size, structures []structure, comparisons []comparison) (values measured, err error) {
	b := &bed{Settings: s, size: size, plan: planOf(size.bindings, size.nodes), flows: 20_000, kept: 1_000, wall: true}
	if s.Smoke {
		b.flows, b.kept = 1_000, 100
	}
	tracking := 1 // nodes, of each flow
	for _, structure := range structures {
		tracking = max(tracking, structure.nodes)
	}
	if b.flows, err = tables.Fit(tracking*b.flows, s.Log); err != nil {
		return nil, err
	}
	b.flows /= tracking
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.build(ctx, structures); err != nil {
		return nil, err
	}
	values = measured{}
	for _, established := range []bool{false, true} {
		for _, l := range loads {
			cases, err := b.prepare(ctx, comparisons, l, established)
			if err != nil {
				return nil, err
			}
			if err := b.measure(ctx, values, cases); err != nil {
				return nil, err
			}
		}
	}
	if b.wall {
		b.Log("this kernel does not charge packets to the thread that sends them: measuring wall time, which varies more")
	}
	return values, nil
}

// comparison is a row: the ratio of two structures under a load, of costs if most is given, of rates if least is.
type comparison struct {
	structure, reference structure
	load                 load
	established          bool
	least, most          float64
}

// title is the name of one among rows that are all of rates.
func (c comparison) title() string { return c.titleWith("") }

// titleOfKind is its name where others are of another kind.
func (c comparison) titleOfKind() string {
	if c.most > 0 {
		return c.titleWith(", CPU")
	}
	return c.titleWith(", rate")
}

func (c comparison) titleWith(kind string) string {
	what := c.load.title
	if c.established {
		what = map[bool]string{false: "packets of established flows", true: "packets of established flows of unbound pods"}[c.load.unbound]
	}
	return fmt.Sprintf("%s%s: %s ÷ %s", what, kind, c.structure.title, c.reference.title)
}

func (c comparison) keyOf(s structure) key {
	if c.established {
		return key{s.name, "established-" + c.load.name}
	}
	return key{s.name, c.load.name}
}

// results are the rows of comparisons under these names, unless nothing was measured.
func results(at string, comparisons []comparison, values measured, name func(comparison) string) (all []figure.Result) {
	if values == nil {
		return nil
	}
	for _, c := range comparisons {
		this, reference := values[c.keyOf(c.structure)], values[c.keyOf(c.reference)]
		result := figure.Result{Name: name(c), At: at, Measured: figure.Ratio(reference, this)}
		switch {
		case c.most > 0:
			result.Measured, result.Target = figure.Ratio(this, reference), figure.AtMost(c.most)
		case c.least > 0:
			result.Target = figure.AtLeast(c.least)
		}
		all = append(all, result)
	}
	return all
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

// prepare returns the cases of a load, which all hosts that need it have been prepared for and checked with.
func (b *bed) prepare(ctx context.Context, comparisons []comparison, l load, established bool) (cases, error) {
	all := cases{}
	for _, h := range b.hosts {
		for _, c := range comparisons {
			if c.load.name != l.name || c.established != established || h.name != c.structure.name && h.name != c.reference.name {
				continue
			}
			k := c.keyOf(h.structure)
			if _, has := all[k]; has {
				continue
			}
			if err := b.check(h, l); err != nil {
				return nil, err
			}
			if !established {
				all[k] = b.newFlow(h, k, begin(l.of(b.plan, b.flows)))
				continue
			}
			load := l.of(b.plan, b.kept)
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
