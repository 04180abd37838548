package conntrack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
)

// fewPods is up to how many pods package conntrack has the kernel select the flows.
const fewPods = 6

// Figures returns conntrack.
func Figures() []figure.Figure { return []figure.Figure{{Name: "conntrack", Run: run}} }

func run(ctx context.Context, s figure.Settings) (results []figure.Result, err error) {
	pods, changed := 1_000, 100
	if s.Smoke {
		pods, changed = 50, 5
	}
	flows, err := tables.Fit(pods*flowsPerPod, s.Log)
	if err != nil {
		return nil, err
	}
	pods = flows / flowsPerPod
	changed = min(changed, pods)
	t, err := newTable(ctx, pods)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	few := min(fewPods, changed)
	values, err := s.Measure(ctx, t.right(), t.dump(), t.changed(1), t.changed(few), t.changed(changed), t.count(), t.burst(changed), t.tool(changed))
	if err != nil {
		return nil, err
	}
	right, dump, one, some, many, count, burst, tool := values[0][0], values[1][0], values[2][0], values[3][0], values[4][0], values[5][0], values[6][0], values[7][0]
	row := func(name string, measured figure.Distribution, unit string, target figure.Target) {
		results = append(results, figure.Result{Name: "conntrack, " + name, At: figure.Size(pods * flowsPerPod), Measured: measured, Unit: unit, Target: target})
	}
	const perFlow = "µs CPU per flow"
	row("checking the flows of one changed pod", one.Scale(1e-3), perFlow, figure.AtMost(0.3))
	row("checking all flows", right.Scale(1e-3), perFlow, figure.None)
	row("checking all flows ÷ the kernel's dump alone", figure.Ratio(right, dump), "", figure.None)
	row(fmt.Sprintf("checking the flows of %d changed pods ÷ all flows", few), figure.Ratio(some, right), "", figure.None)
	row(fmt.Sprintf("checking the flows of %d changed pods ÷ all flows", changed), figure.Ratio(many, right), "", figure.AtMost(1.1))
	row("counting the flows of an egress IP", count.Scale(1e-3), perFlow, figure.None)
	row(fmt.Sprintf("the conntrack tool for each of %d changed pods ÷ one pass that deletes their flows", changed), figure.Ratio(tool, burst), "", figure.None)
	return results, nil
}

// on runs fn on the node.
func (t *table) on(fn func() error) (took figure.Spent, err error) {
	runtime.GC() // the garbage of earlier cases is not this one's
	err = t.lab.Node().Do(func() error {
		took, err = figure.Time(func() (time.Duration, error) { return figure.CPUOf(0) }, fn)
		return err
	})
	return took, err
}

// perFlow is a case of CPU time per tracked flow.
func (t *table) perFlow(name string, fn func(ctx context.Context) error) figure.Case {
	flows := t.pods * flowsPerPod
	return figure.One(fmt.Sprintf("%s/flows=%d", name, flows), figure.Quantity{Name: "Conntrack", Unit: "ns/op", N: flows}, func(ctx context.Context) (float64, error) {
		took, err := t.on(func() error { return fn(ctx) })
		return float64(took.CPU.Nanoseconds()) / float64(flows), err
	})
}

// deletes is [conntrack.Delete], which must delete so many.
func deletes(ctx context.Context, after kernel.Desired, scope conntrack.Scope, want int) error {
	deleted, err := conntrack.Delete(ctx, kernel.IPv4, after, scope)
	if err == nil && deleted != want {
		err = fmt.Errorf("deleted %d flows, want %d", deleted, want)
	}
	return err
}

// right checks all flows, as at the start; all have the right source address.
func (t *table) right() figure.Case {
	p := t.planOf(0)
	return t.perFlow("all", func(ctx context.Context) error { return deletes(ctx, p, conntrack.Scope{All: true}, 0) })
}

// changed checks the flows of so many pods; they have the right source address.
func (t *table) changed(pods int) figure.Case {
	p, scope := t.planOf(0), conntrack.Scope{Pods: map[netip.Addr]bool{}}
	for i := range pods {
		scope.Pods[podAddr(i)] = true
	}
	return t.perFlow(fmt.Sprintf("changed=%d", pods), func(ctx context.Context) error { return deletes(ctx, p, scope, 0) })
}

func (t *table) count() figure.Case {
	return t.perFlow("count", func(ctx context.Context) error {
		usage, err := conntrack.Count(ctx, kernel.IPv4, []netip.Addr{before})
		if want := t.pods * flowsPerPod; err == nil && usage[before].Flows != want {
			err = fmt.Errorf("counted %d flows, want %d", usage[before].Flows, want)
		}
		return err
	})
}

// dump only counts what the kernel dumps.
func (t *table) dump() figure.Case {
	return t.perFlow("dump", func(context.Context) error {
		flows, err := dumped()
		if want := t.pods * flowsPerPod; err == nil && flows != want {
			err = fmt.Errorf("the kernel dumped %d flows, want %d", flows, want)
		}
		return err
	})
}

// burst is one pass after so many pods got another egress IP.
func (t *table) burst(pods int) figure.Case {
	p, scope := t.planOf(pods), conntrack.Scope{Pods: map[netip.Addr]bool{}}
	for i := range pods {
		scope.Pods[podAddr(i)] = true
		scope.Removed = append(scope.Removed, kernel.Binding{Pod: podAddr(i), Protocol: kernel.TCP, EgressIP: before})
	}
	return t.deletion("burst", pods, pods, func(ctx context.Context) error {
		return deletes(ctx, p, scope, pods*flowsPerPod)
	})
}

// tool does the same with the conntrack tool, for some of the pods.
func (t *table) tool(pods int) figure.Case {
	called := min(5, pods)
	return t.deletion("tool", pods, called, func(ctx context.Context) error {
		for i := range called {
			if _, err := t.lab.Node().Run(ctx, "conntrack", "-D", "-f", "ipv4", "--orig-src", podAddr(i).String()); err != nil {
				return err
			}
		}
		return nil
	})
}

// deletion is a case of wall time for deleting the flows of so many pods, of which fn does the first ones.
func (t *table) deletion(name string, pods, first int, fn func(context.Context) error) figure.Case {
	q := figure.Quantity{Name: "Conntrack", Unit: "ns/op", N: 1}
	return figure.One(fmt.Sprintf("%s/pods=%d/flows=%d", name, pods, t.pods*flowsPerPod), q, func(ctx context.Context) (float64, error) {
		took, err := t.on(func() error { return fn(ctx) })
		if err != nil {
			return 0, err
		}
		return float64(took.Wall.Nanoseconds()) * float64(pods) / float64(first), t.refill(0, first)
	})
}
