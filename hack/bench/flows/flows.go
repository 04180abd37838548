package flows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// size is what is measured at.
type size struct{ bindings, nodes int }

// nodes is how many nodes are excluded where nothing else is said.
const nodes = 3

// largestSmoke is the largest size that is tried with -smoke.
const largestSmoke = 100

var sizes = []size{{100, nodes}, {1_000, nodes}, {10_000, nodes}, {100_000, nodes}, {10_000, 60}, {10_000, 500}}

// Figures returns one for each size: flows/100 and the like, and flows/10000-nodes=60 with more
// nodes than a few.
func Figures() []figure.Figure {
	var all []figure.Figure
	for _, size := range sizes {
		name := fmt.Sprintf("flows/%d", size.bindings)
		if size.nodes != nodes {
			name += fmt.Sprintf("-nodes=%d", size.nodes)
		}
		all = append(all, figure.Figure{Name: name, Run: func(ctx context.Context, s figure.Settings) ([]figure.Result, error) {
			if s.Smoke && size.bindings > largestSmoke {
				s.Log("left out: too large for -smoke")
				return nil, nil
			}
			return run(ctx, s, size)
		}})
	}
	return all
}

// bed is all hosts of a size, and what is sent to them.
type bed struct {
	figure.Settings
	size
	plan  plan.Plan
	hosts []*host
	// flows is how many are begun in a visit, kept how many are established.
	flows, kept int
	// wall: CPU time does not tell what packets cost here.
	wall bool
}

func run(ctx context.Context, s figure.Settings, size size) (results []figure.Result, err error) {
	b := &bed{Settings: s, size: size, plan: planOf(size.bindings, size.nodes), flows: 20_000, kept: 1_000}
	if s.Smoke {
		b.flows, b.kept = 1_000, 100
	}
	if err := b.fit(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, structure := range []structure{noneLegacy, noneNFT, noneNFTables, single, again, plain, linear, legacy, nft, nftablesMap} {
		h, err := newHost(ctx, structure, b.plan)
		if err != nil {
			return nil, err
		}
		b.hosts = append(b.hosts, h)
	}
	if err := b.checkAll(); err != nil {
		return nil, err
	}
	return b.measure(ctx)
}

func (b *bed) close() error {
	var errs []error
	for _, h := range b.hosts {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// fit makes do with what conntrack may hold: the limit is the machine's.
func (b *bed) fit() error {
	text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_max")
	if errors.Is(err, os.ErrNotExist) {
		return nil // it comes with the first rule, and its default is enough
	}
	if err != nil {
		return err
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	// Somebody else's flows do not count, but a table that is half full is slower.
	if limit > 0 && b.flows > limit/2 {
		b.Log("%d flows a visit instead of %d: nf_conntrack_max is %d", limit/2, b.flows, limit)
		b.flows = limit / 2
		b.kept = min(b.kept, b.flows)
	}
	return nil
}

// visits is how many flows a host begins in a visit.
func (b *bed) visits(h *host) int {
	if h.slow {
		return min(b.flows, max(200, b.flows*1000/b.bindings))
	}
	return b.flows
}

// checkAll proves that every host does what it should, and finds out how to measure.
func (b *bed) checkAll() error {
	b.wall = true
	for _, h := range b.hosts {
		for _, l := range loads {
			load := l.of(b.plan, min(sample, b.flows))
			if _, err := h.check(load); err != nil {
				return fmt.Errorf("%s, pods %s: %w", h.name, l.name, err)
			}
			took, err := h.begins(begin(load))
			if err != nil {
				return err
			}
			// Where interrupts are accounted for apart (CONFIG_IRQ_TIME_ACCOUNTING) the thread
			// has spent next to nothing. A thread that was interrupted once is no such case.
			b.wall = b.wall && took.cpu < took.wall/2
		}
	}
	if b.wall {
		b.Log("this kernel does not account packets to the thread that sends them: wall time is measured, which varies more")
	}
	return nil
}

// loads are who sends.
var loads = []struct {
	name string
	of   func(plan.Plan, int) []flow
}{{"one", oneOf}, {"random", randomOf}, {"unbound", oneUnboundOf}, {"unbound-random", unboundOf}}

// measured are the values by structure and load, and those of established flows.
type measured map[[2]string]figure.Distribution

func (b *bed) measure(ctx context.Context) ([]figure.Result, error) {
	values := measured{}
	for _, step := range []func() ([][2]string, []figure.Case, error){
		b.newFlows,
		func() ([][2]string, []figure.Case, error) { return b.established(ctx) },
	} {
		keys, cases, err := step()
		if err != nil {
			return nil, err
		}
		all, err := b.Measure(ctx, cases...)
		if err != nil {
			return nil, err
		}
		for i, key := range keys {
			values[key] = all[i]
		}
	}
	return b.results(values), nil
}

// newFlows are the cases of begun flows.
func (b *bed) newFlows() (keys [][2]string, cases []figure.Case, err error) {
	for _, l := range loads {
		frames := begin(l.of(b.plan, b.flows))
		for _, h := range b.hosts {
			if !asked(h.name, l.name) {
				continue
			}
			n := b.visits(h)
			keys = append(keys, [2]string{h.name, l.name})
			cases = append(cases, b.newCase(fmt.Sprintf("NewFlow/structure=%s/n=%d/nodes=%d/pods=%s", h.name, b.bindings, b.nodes, l.name), n,
				func() (elapsed, error) { return h.begins(frames[:n*frameSize]) }))
		}
	}
	return keys, cases, nil
}

// established are the cases of established flows, of random pods.
func (b *bed) established(ctx context.Context) (keys [][2]string, cases []figure.Case, err error) {
	load := randomOf(b.plan, b.kept)
	frames := carryOn(load, b.flows)
	for _, h := range b.hosts {
		if !asked(h.name, "established") {
			continue
		}
		if err := h.establish(ctx, load); err != nil {
			return nil, nil, err
		}
		keys = append(keys, [2]string{h.name, "established"})
		cases = append(cases, b.newCase(fmt.Sprintf("Established/structure=%s/n=%d/nodes=%d", h.name, b.bindings, b.nodes), b.flows,
			func() (elapsed, error) {
				took, err := h.timed(frames)
				if err == nil {
					err = h.tracks(len(load))
				}
				return took, err
			}))
	}
	return keys, cases, nil
}

func (b *bed) newCase(name string, n int, send func() (elapsed, error)) figure.Case {
	return figure.Case{Name: name, Unit: "ns/op", N: n, Measure: func(context.Context) (float64, error) {
		took, err := send()
		if b.wall {
			took.cpu = took.wall
		}
		return float64(took.cpu.Nanoseconds()) / float64(n), err
	}}
}
