package programming

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress"
)

// Figures are those of this package.
func Figures() []figure.Figure {
	return []figure.Figure{
		{Name: "programming/sync", Run: syncs, Lacks: func() error {
			_, err := exec.LookPath("strace")
			return err
		}},
		{Name: "programming/seed", Run: seeds},
	}
}

// means are those by which rules are written.
type means struct {
	// name is for benchstat and for people.
	name     string
	backend  reconcile.Backend
	iptables lab.Backend
	// changes is how many are measured in a visit: fewer where one takes long.
	changes int
}

var (
	table  = means{"nftables", reconcile.NFTables, lab.NFT, 200}
	nft    = means{"iptables-nft", reconcile.IPTables, lab.NFT, 20}
	legacy = means{"iptables-legacy", reconcile.IPTables, lab.Legacy, 10}
)

// variant is a number of bindings written by some means.
type variant struct {
	means
	size objects.Size
}

// What a visit measures.
const (
	installCPU = iota
	changeCPU  // of a pod of another node
	changeWall
	hereCPU // of a pod of this node
	writeCPU
	quantities
)

var benchmarks = [quantities]string{"Install", "Change", "Change", "ChangeHere", "Write"}
var units = [quantities]string{"cpu-ms/op", "cpu-ms/op", "ms/op", "cpu-ms/op", "cpu-ms/op"}

// ofSize is a cluster of so many bindings. The pods are on twenty nodes, the first ones of every
// other Service on this one, those of the others elsewhere.
func ofSize(bindings int) objects.Size {
	const endpoints = 10
	return objects.Size{Services: bindings / endpoints, Endpoints: endpoints, Every: 1, Nodes: 2 * endpoints}
}

// syncs measures what happens between events and the kernel.
func syncs(ctx context.Context, s figure.Settings) (results []figure.Result, err error) {
	const rounds = 3
	few, many := ofSize(100), ofSize(100_000)
	if s.Smoke {
		few, many = ofSize(20), ofSize(200)
	}
	var all []variant
	for _, m := range []means{table, nft, legacy} {
		if s.Smoke {
			m.changes = 2
		}
		all = append(all, variant{m, few}, variant{m, many})
	}
	values := make([][quantities]figure.Distribution, len(all))
	still := make([]counts, len(all))
	for round := range min(s.Rounds, rounds) {
		for _, i := range rand.Perm(len(all)) {
			seen, err := all[i].measure(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s, %d bindings: %w", all[i].name, all[i].size.Bindings(), err)
			}
			for q, value := range seen.values {
				values[i][q] = append(values[i][q], value)
				n := all[i].changes
				if q == installCPU || q == writeCPU {
					n = 1
				}
				s.Record(fmt.Sprintf("%s/means=%s/n=%d", benchmarks[q], all[i].name, all[i].size.Bindings()), n, value, units[q])
			}
			still[i].add(seen.still)
			s.Log("round %d: %s, %d bindings: %s", round+1, all[i].name, all[i].size.Bindings(), seen)
		}
	}
	return tell(all, values, still), nil
}

// counts are how many programs were run and how often something was sent to netlink, per round.
type counts struct{ execs, messages figure.Distribution }

func (c *counts) add(other counts) {
	c.execs = append(c.execs, other.execs...)
	c.messages = append(c.messages, other.messages...)
}

// seen is what a visit has measured: times, and what a sync without a change does.
type seen struct {
	values [quantities]float64
	still  counts
}

func (s seen) String() string {
	var texts []string
	for q, value := range s.values {
		texts = append(texts, fmt.Sprintf("%s %s %s", strings.ToLower(benchmarks[q]), figure.Number(value), units[q]))
	}
	return strings.Join(texts, ", ")
}

// measure visits the variant.
func (v variant) measure(ctx context.Context) (result seen, err error) {
	visit, err := newVisit(ctx, v.means, v.size)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, visit.close()) }()
	installed, err := visit.order(install, 1)
	if err != nil {
		return result, err
	}
	if _, err := visit.order(elsewhere, 2); err != nil { // the first ones are special
		return result, err
	}
	changed, err := visit.order(elsewhere, v.changes)
	if err != nil {
		return result, err
	}
	changedHere, err := visit.order(here, v.changes)
	if err != nil {
		return result, err
	}
	execs, messages, err := visit.traced(ctx, same)
	if err != nil {
		return result, err
	}
	result.still = counts{figure.Distribution{float64(execs)}, figure.Distribution{float64(messages)}}
	execs, messages, err = visit.traced(ctx, elsewhere)
	if err == nil && execs+messages == 0 {
		err = errors.New("strace has seen nothing of a change, so it cannot be believed that there is nothing without one")
	}
	if err != nil {
		return result, err
	}
	written, err := visit.order(write, 1)
	result.values = [quantities]float64{
		milliseconds(installed.CPU), milliseconds(changed.CPU), milliseconds(changed.Wall), milliseconds(changedHere.CPU), milliseconds(written.CPU),
	}
	return result, err
}

// tell makes the lines of the table. The variants are pairs of few and many bindings by the same means.
func tell(all []variant, values [][quantities]figure.Distribution, still []counts) (results []figure.Result) {
	for i := 0; i < len(all); i += 2 {
		few, many := values[i], values[i+1]
		name, at := all[i].name, figure.Size(all[i+1].size.Bindings())
		less := figure.Size(all[i].size.Bindings())
		cost, full, own := figure.None, figure.None, figure.None
		growth := figure.None
		switch name {
		case table.name:
			growth, full = figure.AtMost(1.1), figure.AtMost(0.5)
		case nft.name:
			cost = figure.AtMost(20)
		case legacy.name:
			own = figure.AtMost(0.5)
		}
		results = append(results,
			figure.Result{Name: "full install, " + name, At: at, Measured: many[installCPU].Scale(1e-3), Unit: "s CPU", Target: full},
			figure.Result{Name: "the full write alone, " + name, At: at, Measured: many[writeCPU].Scale(1e-3), Unit: "s CPU"},
			figure.Result{Name: "one change, event to kernel, " + name, At: less, Measured: few[changeCPU], Unit: "ms CPU"},
			figure.Result{Name: "one change, event to kernel, " + name, At: at, Measured: many[changeCPU], Unit: "ms CPU", Target: cost},
			figure.Result{Name: fmt.Sprintf("one change ÷ the same at %s, CPU, %s", less, name), At: at, Measured: figure.Ratio(many[changeCPU], few[changeCPU]), Target: growth},
			figure.Result{Name: "one change ÷ the full write alone, CPU, " + name, At: at, Measured: figure.Ratio(many[changeCPU], many[writeCPU]), Target: own},
			figure.Result{Name: "one change, from the event until the kernel has it, but for waits, " + name, At: at, Measured: many[changeWall], Unit: "ms"},
			figure.Result{Name: "one change of this node's pods, flows included, " + name, At: at, Measured: many[hereCPU], Unit: "ms CPU"},
		)
		for j := i; j < i+2; j++ {
			at := figure.Size(all[j].size.Bindings())
			results = append(results,
				figure.Result{Name: "sync without a change, programs run, " + name, At: at, Measured: still[j].execs, Unit: "execs", Target: figure.AtMost(0)},
				figure.Result{Name: "sync without a change, sent to netlink, " + name, At: at, Measured: still[j].messages, Unit: "messages", Target: figure.AtMost(0)},
			)
		}
	}
	return results
}
