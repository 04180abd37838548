package programming

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// agentCommand as the first argument makes this program an agent.
const agentCommand = "programming-agent"

// IsAgent tells whether this process was started to be an agent.
func IsAgent() bool { return len(os.Args) == 3 && os.Args[1] == agentCommand }

// Agent obeys orders until standard input ends.
func Agent() {
	if err := agent(os.Args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "agent: %v\n", err)
		os.Exit(1)
	}
}

// spec is what an agent is.
type spec struct {
	Backend reconcile.Backend
	// Scope is the argument egress-snat-scope.
	Scope placement.Scope
	Size  objects.Size
	// Manifests is the folder with all other objects.
	Manifests string
}

// order is what an agent is told to do so many times, and the answer is what one time took.
type order struct {
	Do    string
	Count int
}

// The orders.
const (
	// install tells the extension of all objects.
	install = "install"
	// elsewhere replaces a pod on another node, of a Service with an external IP, by a new one there; moved replaces
	// it by a new one on this node.
	elsewhere = "elsewhere"
	moved     = "moved"
	// same is a sync without a change for the kernel.
	same = "same"
)

func agent(argument string, in io.Reader, out io.Writer) error {
	var s spec
	if err := json.Unmarshal([]byte(argument), &s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n, err := newNode(ctx, s)
	if err != nil {
		return err
	}
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		took, err := n.obey(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Do, err)
		}
		if err := answers.Encode(took); err != nil {
			return err
		}
	}
}

func (n *node) obey(ctx context.Context, o order) (figure.Spent, error) {
	do, err := n.prepare(ctx, o)
	if err != nil {
		return figure.Spent{}, err
	}
	end, err := n.profile(o.Do)
	if err != nil {
		return figure.Spent{}, err
	}
	took, err := measure(o.Count, do)
	return took, errors.Join(err, end())
}

// measure returns what one of several runs takes. It rests after each as long as the extension does. Garbage from
// before does not count; a share of the next collection does, by the garbage that the runs leave.
func measure(count int, do func(k int) error) (mean figure.Spent, err error) {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	start, err := used()
	if err != nil {
		return mean, err
	}
	var wall time.Duration
	for k := range count {
		began := time.Now()
		if err := do(k); err != nil {
			return mean, err
		}
		took := time.Since(began)
		wall += took
		if count > 1 && took > time.Millisecond { // it was synced
			time.Sleep(min(took, time.Second))
		}
	}
	end, err := used()
	if err != nil {
		return mean, err
	}
	cpu := end - start
	if count > 1 {
		collection, err := uncollected(before)
		if err != nil {
			return mean, err
		}
		cpu += collection
	}
	return figure.Spent{CPU: cpu / time.Duration(count), Wall: wall / time.Duration(count)}, nil
}

// uncollected is the CPU time that it takes to collect what was allocated since before and has not been collected. The
// collector runs when as much was allocated as lives, which few runs do in a large heap.
func uncollected(before runtime.MemStats) (time.Duration, error) {
	const smallest = 4 << 20 // the collector lets every heap grow to that
	var now, clean runtime.MemStats
	runtime.ReadMemStats(&now)
	once, err := figure.Time(used, func() error { runtime.GC(); return nil })
	runtime.ReadMemStats(&clean)
	due := float64(now.TotalAlloc-before.TotalAlloc) / float64(max(clean.HeapAlloc, smallest))
	return time.Duration((due - float64(now.NumGC-before.NumGC)) * float64(once.CPU)), err
}

// used is the CPU time of this process and of its children that have ended.
func used() (sum time.Duration, err error) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			return 0, err
		}
		sum += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return sum, nil
}

// profile begins a CPU profile if the environment variable PROFILE names a directory for it.
func (n *node) profile(what string) (end func() error, err error) {
	dir := os.Getenv("PROFILE")
	if dir == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%s-%d-%s.pprof", n.Backend, n.Scope, n.Size.Bindings(), what)))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
