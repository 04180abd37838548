package conntrack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// fewPods is for how many pods at most package conntrack has the kernel look one by one.
const fewPods = 6

// Figures returns conntrack.
func Figures() []figure.Figure { return []figure.Figure{{Name: "conntrack", Run: run}} }

func run(ctx context.Context, s figure.Settings) (results []figure.Result, err error) {
	pods, changed := 1_000, 100
	if s.Smoke {
		pods, changed = 50, 5
	}
	if limit := limit(); limit > 0 && pods*flowsPerPod > limit/2 {
		pods = limit / 2 / flowsPerPod
		changed = min(changed, pods)
		s.Log("%d entries only: nf_conntrack_max is %d", pods*flowsPerPod, limit)
	}
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
	right, dump, one, some, many, count, burst, tool := values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7]
	at := figure.Size(pods * flowsPerPod)
	return []figure.Result{
		{Name: "conntrack, a look for one changed pod", At: at, Measured: one.Scale(1e-3), Unit: "µs CPU each", Target: figure.AtMost(0.3)},
		{Name: "conntrack, a look at all flows, each of them right", At: at, Measured: right.Scale(1e-3), Unit: "µs CPU each"},
		{Name: "conntrack, that look ÷ the kernel's dump without it", At: at, Measured: figure.Ratio(right, dump)},
		{Name: fmt.Sprintf("conntrack, a look for %d changed pods ÷ one pass over all flows", few), At: at, Measured: figure.Ratio(some, right)},
		{Name: fmt.Sprintf("conntrack, a look for %d changed pods ÷ one pass over all flows", changed), At: at, Measured: figure.Ratio(many, right), Target: figure.AtMost(1.1)},
		{Name: "conntrack, counting the flows of an egress IP", At: at, Measured: count.Scale(1e-3), Unit: "µs CPU each"},
		{Name: fmt.Sprintf("conntrack, the tool for each of %d changed pods ÷ one look that deletes their flows", changed), At: at, Measured: figure.Ratio(tool, burst)},
	}, nil
}

// limit is how many entries a table may have; 0 if that is not known.
func limit() int {
	text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_max")
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
}

// spent is what a function took.
type spent struct{ cpu, wall time.Duration }

// on runs fn on the node.
func (t *table) on(fn func() error) (took spent, err error) {
	runtime.GC() // the garbage of what was before is not this one's
	err = t.lab.Node().Do(func() error {
		wall, cpu := time.Now(), processTime()
		err := fn()
		took = spent{processTime() - cpu, time.Since(wall)}
		return err
	})
	return took, err
}

func processTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Duration(t.Nano())
}

// perEntry is a case of CPU time for every entry.
func (t *table) perEntry(name string, fn func(ctx context.Context) error) figure.Case {
	entries := t.pods * flowsPerPod
	return figure.Case{
		Name: fmt.Sprintf("Conntrack/%s/entries=%d", name, entries), Unit: "ns/op", N: entries,
		Measure: func(ctx context.Context) (float64, error) {
			took, err := t.on(func() error { return fn(ctx) })
			return float64(took.cpu.Nanoseconds()) / float64(entries), err
		},
	}
}

// deletes is [conntrack.Delete], which must delete so many.
func deletes(ctx context.Context, after plan.Plan, scope conntrack.Scope, want int) error {
	deleted, err := conntrack.Delete(ctx, conntrack.IPv4, after, scope)
	if err == nil && deleted != want {
		err = fmt.Errorf("deleted %d flows, want %d", deleted, want)
	}
	return err
}

// right looks at all flows, as at the start.
func (t *table) right() figure.Case {
	p := t.planOf(0)
	return t.perEntry("all", func(ctx context.Context) error { return deletes(ctx, p, conntrack.Scope{All: true}, 0) })
}

// changed looks for the flows of so many pods, which turn out to be right.
func (t *table) changed(pods int) figure.Case {
	p, scope := t.planOf(0), conntrack.Scope{Pods: map[netip.Addr]bool{}}
	for i := range pods {
		scope.Pods[podAddr(i)] = true
	}
	return t.perEntry(fmt.Sprintf("changed=%d", pods), func(ctx context.Context) error { return deletes(ctx, p, scope, 0) })
}

func (t *table) count() figure.Case {
	return t.perEntry("count", func(ctx context.Context) error {
		usage, err := conntrack.Count(ctx, conntrack.IPv4, []netip.Addr{before})
		if want := t.pods * flowsPerPod; err == nil && usage[before].Flows != want {
			err = fmt.Errorf("counted %d flows, want %d", usage[before].Flows, want)
		}
		return err
	})
}

// dump has the kernel tell its entries, and does no more than count them.
func (t *table) dump() figure.Case {
	return t.perEntry("dump", func(context.Context) error {
		entries, err := dumped()
		if want := t.pods * flowsPerPod; err == nil && entries != want {
			err = fmt.Errorf("the kernel told %d entries, want %d", entries, want)
		}
		return err
	})
}

// burst is one look after so many pods got another egress IP, in ns.
func (t *table) burst(pods int) figure.Case {
	p, scope := t.planOf(pods), conntrack.Scope{Pods: map[netip.Addr]bool{}}
	for i := range pods {
		scope.Pods[podAddr(i)] = true
		scope.Removed = append(scope.Removed, plan.Binding{Pod: podAddr(i), Protocol: plan.TCP, EgressIP: before})
	}
	return t.inWallTime(fmt.Sprintf("burst/pods=%d", pods), pods, 1, func(ctx context.Context) error {
		return deletes(ctx, p, scope, pods*flowsPerPod)
	})
}

// tool has the tool do the same. Some of the pods are enough to know what all would take.
func (t *table) tool(pods int) figure.Case {
	called := min(5, pods)
	return t.inWallTime(fmt.Sprintf("tool/pods=%d", pods), called, pods/called, func(ctx context.Context) error {
		for i := range called {
			if _, err := t.lab.Node().Run(ctx, "conntrack", "-D", "-f", "ipv4", "--orig-src", podAddr(i).String()); err != nil {
				return err
			}
		}
		return nil
	})
}

// inWallTime is a case of what takes away the flows of the first pods. It is told as times
// what it took.
func (t *table) inWallTime(name string, pods, times int, fn func(context.Context) error) figure.Case {
	return figure.Case{
		Name: fmt.Sprintf("Conntrack/%s/entries=%d", name, t.pods*flowsPerPod), Unit: "ns/op", N: 1,
		Measure: func(ctx context.Context) (float64, error) {
			took, err := t.on(func() error { return fn(ctx) })
			if err != nil {
				return 0, err
			}
			return float64(took.wall.Nanoseconds()) * float64(times), t.refill(0, pods)
		},
	}
}
