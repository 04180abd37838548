package programming

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/proxy"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nftables"
	"github.com/openshift/origin-node/pkg/manifests"
)

// agentCommand makes this program an agent, if it is the first argument.
const agentCommand = "programming-agent"

// patience is how long a single sync may take.
const patience = 2 * time.Minute

// IsAgent tells that this process was started to be an agent.
func IsAgent() bool { return len(os.Args) > 1 && os.Args[1] == agentCommand }

// Agent is what such a process does until its standard input ends.
func Agent() {
	if err := agent(os.Args[2:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "agent: %v\n", err)
		os.Exit(1)
	}
}

// order is what an agent is told to do, and answer what it has measured: of one operation, if there
// are several.
type order struct {
	Do    string
	Count int
}

type answer struct {
	CPU, Wall time.Duration
}

// What there is to do.
const (
	// install tells the extension of all objects.
	install = "install"
	// elsewhere replaces a pod of another node in each of Count EndpointSlices, one after the other.
	elsewhere = "elsewhere"
	// here does so with pods of this node, whose flows are looked at, too.
	here = "here"
	// write writes a plan of as many bindings into an empty kernel: the last part of install alone. The
	// extension is of no use afterwards.
	write = "write"
	// same makes Count syncs for which nothing has changed.
	same = "same"
)

// agentArguments are those for an agent.
func agentArguments(backend reconcile.Backend, size objects.Size, manifests string) []string {
	text, err := json.Marshal(size)
	if err != nil {
		panic(err) // of four numbers
	}
	return []string{agentCommand, "-backend=" + string(backend), "-size=" + string(text), "-manifests=" + manifests}
}

func agent(arguments []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet(agentCommand, flag.ContinueOnError)
	backend := flags.String("backend", "", "")
	dir := flags.String("manifests", "", "")
	text := flags.String("size", "", "")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	n := &node{backend: reconcile.Backend(*backend), changed: map[int]*discovery.EndpointSlice{}}
	if err := json.Unmarshal([]byte(*text), &n.size); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := n.start(ctx, *dir); err != nil {
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
		told, err := n.obey(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Do, err)
		}
		if err := answers.Encode(told); err != nil {
			return err
		}
	}
}

// node is the extension with objects.
type node struct {
	backend   reconcile.Backend
	size      objects.Size
	extension *egress.Extension
	told      proxy.Provider
	// changed are the EndpointSlices that are not as at the beginning, and changes how many
	// changes there were.
	changed map[int]*discovery.EndpointSlice
	changes int
}

// start makes the extension and returns when it knows all but Services and EndpointSlices.
func (n *node) start(ctx context.Context, dir string) error {
	clients, err := serve(ctx, dir)
	if err != nil {
		return err
	}
	n.extension = egress.New(ctx, egress.Config{
		NodeName: objects.Node(0), Backend: n.backend, Proxier: n.backend,
		ClusterCIDRs: []netip.Prefix{lab.ClusterV4}, ExcludeNodes: true,
		// No time is spent on waiting, and none on looks that no change asks for.
		MinSyncPeriod: time.Millisecond, SyncPeriod: time.Hour,
	})
	n.told = n.extension.Wrap(nobody{}, v1.IPv4Protocol)
	n.extension.Watch(clients)
	n.told.SyncLoop()
	return within(patience, func() bool { return len(n.extension.Summary().Missing) <= 2 })
}

// serve returns clients of an API server for the folder.
func serve(ctx context.Context, dir string) (clients egress.Clients, err error) {
	source, err := manifests.Open(ctx, dir)
	if err != nil {
		return clients, err
	}
	kubeconfig, remove, err := source.Serve(ctx)
	if err != nil {
		return clients, err
	}
	defer remove()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return clients, err
	}
	if clients.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return clients, err
	}
	clients.Config, err = configclient.NewForConfig(config)
	return clients, err
}

func within(patience time.Duration, done func() bool) error {
	for deadline := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s", patience)
		}
	}
	return nil
}

func (n *node) obey(ctx context.Context, o order) (answer, error) {
	switch o.Do {
	case install:
		return n.install(ctx)
	case elsewhere:
		return n.change(ctx, 1, o.Count)
	case here:
		return n.change(ctx, 0, o.Count)
	case write:
		return n.write(ctx)
	case same:
		return n.same(ctx, o.Count)
	}
	return answer{}, errors.New("nobody knows how")
}

func (n *node) install(ctx context.Context) (answer, error) {
	services, endpoints := make([]*v1.Service, n.size.Services), make([]*discovery.EndpointSlice, n.size.Services)
	for i := range services {
		services[i], endpoints[i] = n.service(i), n.size.Slice(i)
	}
	n.extension.AfterSync(v1.IPv4Protocol, true)
	return n.measure(install, 1, func(int) error {
		for i := range services {
			n.told.OnServiceAdd(services[i])
			n.told.OnEndpointSliceAdd(endpoints[i])
		}
		n.told.OnServiceSynced()
		n.told.OnEndpointSlicesSynced()
		return n.settled(ctx)
	})
}

func (n *node) write(ctx context.Context) (answer, error) {
	p := planOf(n.size)
	into := writeRules
	if n.backend == reconcile.NFTables {
		into = writeTable
	}
	if err := into(ctx, plan.Plan{}); err != nil {
		return answer{}, err
	}
	return n.measure(write, 1, func(int) error { return into(ctx, p) })
}

// writeRules and writeTable write a plan as a process does that knows nothing yet.
func writeRules(ctx context.Context, p plan.Plan) error {
	_, err := iptables.NewWriter(iptables.IPv4).Write(ctx, iptables.Render(p))
	return err
}

func writeTable(ctx context.Context, p plan.Plan) error {
	_, err := nftables.NewWriter(nftables.IPv4).Write(ctx, p, nil)
	return err
}

// service is one that has what an API server gives it, as far as it matters here.
func (n *node) service(i int) *v1.Service {
	service := n.size.Service(i)
	service.Spec.ClusterIP = "172.30.0.1"
	return service
}

// change replaces the first pods of Services whose numbers are odd, or even: see ofSize.
func (n *node) change(ctx context.Context, odd, count int) (answer, error) {
	type update struct{ from, to *discovery.EndpointSlice }
	updates := make([]update, count)
	for k := range updates {
		i := odd + n.changes*7919%(n.size.Services/2)*2 // all in turn, but not side by side
		from := n.changed[i]
		if from == nil {
			from = n.size.Slice(i)
		}
		updates[k] = update{from, n.size.Replace(from, n.changes)}
		n.changed[i] = updates[k].to
		n.changes++
	}
	return n.measure([]string{here, elsewhere}[odd], count, func(k int) error {
		n.told.OnEndpointSliceUpdate(updates[k].from, updates[k].to)
		return n.settled(ctx)
	})
}

// same tells of changes that no plan depends on, and of what is known already, which always makes a sync.
func (n *node) same(ctx context.Context, count int) (answer, error) {
	i := n.size.Services - 1
	if n.changed[i] == nil {
		n.changed[i] = n.size.Slice(i)
	}
	return n.measure(same, count, func(int) error {
		unready := n.changed[i].DeepCopy()
		conditions := &unready.Endpoints[0].Conditions
		conditions.Ready = ptr.To(!*conditions.Ready)
		n.told.OnEndpointSliceUpdate(n.changed[i], unready)
		n.changed[i] = unready
		n.told.OnServiceUpdate(n.service(i), n.service(i))
		synced := n.extension.Changed()
		n.told.OnEndpointSlicesSynced()
		select {
		case <-synced:
		case <-time.After(patience):
			return fmt.Errorf("no sync within %s", patience)
		}
		return n.settled(ctx)
	})
}

// settled returns when the kernel has all that the extension was told.
func (n *node) settled(ctx context.Context) error {
	late := time.After(patience)
	for {
		changed := n.extension.Changed()
		summary := n.extension.Summary()
		if summary.Ready && summary.DueSince.IsZero() {
			if summary.Bindings != n.size.Bindings() {
				return fmt.Errorf("%d bindings, want %d", summary.Bindings, n.size.Bindings())
			}
			return nil
		}
		select {
		case <-changed:
		case <-late:
			return fmt.Errorf("the rules are not in place within %s: %+v", patience, summary)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// measure returns what one of so many runs takes, without the rest that the extension takes after each. The
// garbage of what was before is none of theirs; their own costs what collecting it will.
func (n *node) measure(what string, count int, do func(k int) error) (a answer, err error) {
	runtime.GC()
	profiled, err := n.profile(what)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, profiled()) }()
	garbage := beginGarbage()
	before := used()
	for k := range count {
		began := time.Now()
		if err := do(k); err != nil {
			return a, err
		}
		took := time.Since(began)
		a.Wall += took
		if count > 1 {
			time.Sleep(min(took, time.Second))
		}
	}
	a.CPU = used() - before
	if count > 1 {
		a.CPU += garbage.uncollected()
	}
	return answer{CPU: a.CPU / time.Duration(count), Wall: a.Wall / time.Duration(count)}, nil
}

// garbage is how things stood with the heap at some time.
type garbage struct{ before runtime.MemStats }

func beginGarbage() *garbage {
	g := &garbage{}
	runtime.ReadMemStats(&g.before)
	return g
}

// uncollected is the CPU time that it takes to collect what was allocated since, but for what
// has been: the collector runs when as much was allocated as lives, which few runs do in a large heap.
func (g *garbage) uncollected() time.Duration {
	const smallest = 4 << 20 // heaps are let grow to that
	var now, clean runtime.MemStats
	runtime.ReadMemStats(&now)
	before := used()
	runtime.GC()
	once := used() - before
	runtime.ReadMemStats(&clean)
	due := float64(now.TotalAlloc-g.before.TotalAlloc) / float64(max(clean.HeapAlloc, smallest))
	return time.Duration((due - float64(now.NumGC-g.before.NumGC)) * float64(once))
}

// profile begins a CPU profile if the environment variable PROFILE names a directory for it, and returns what ends it.
func (n *node) profile(what string) (end func() error, err error) {
	dir := os.Getenv("PROFILE")
	if dir == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.pprof", n.backend, n.size.Bindings(), what)))
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

// used is the CPU time of this process and of its children that have ended.
func used() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			panic(err) // for no such constant
		}
		sum += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return sum
}

// nobody is a proxier that does nothing.
type nobody struct{}

func (nobody) OnServiceAdd(*v1.Service)                            {}
func (nobody) OnServiceUpdate(_, _ *v1.Service)                    {}
func (nobody) OnServiceDelete(*v1.Service)                         {}
func (nobody) OnServiceSynced()                                    {}
func (nobody) OnEndpointSliceAdd(*discovery.EndpointSlice)         {}
func (nobody) OnEndpointSliceUpdate(_, _ *discovery.EndpointSlice) {}
func (nobody) OnEndpointSliceDelete(*discovery.EndpointSlice)      {}
func (nobody) OnEndpointSlicesSynced()                             {}
func (nobody) OnTopologyChange(map[string]string)                  {}
func (nobody) OnServiceCIDRsChanged([]string)                      {}
func (nobody) Sync()                                               {}
func (nobody) SyncLoop()                                           {}
