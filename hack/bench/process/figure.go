package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/bench/program"
	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

// way is how the proxier writes rules.
type way struct {
	name, mode string
	iptables   lab.Backend
	services   int
}

var ways = []way{
	{"iptables-legacy", "iptables", lab.Legacy, 10_000},
	{"iptables-nft", "iptables", lab.NFT, 1_000},
	{"nftables", "nftables", lab.NFT, 10_000},
}

// Figures returns process/iptables-legacy, process/iptables-nft and process/nftables.
func Figures() []figure.Figure {
	var all []figure.Figure
	for _, way := range ways {
		all = append(all, figure.Figure{Name: "process/" + way.name, Lacks: lacks, Run: func(ctx context.Context, s figure.Settings) ([]figure.Result, error) {
			return run(ctx, s, way)
		}})
	}
	return all
}

// binaryVariable names the built binary.
const binaryVariable = "OPENSHIFT"

func lacks() error {
	if os.Getenv(binaryVariable) == "" {
		return fmt.Errorf("the environment variable %s does not name the binary, which make builds", binaryVariable)
	}
	if os.Getenv(cluster.BinariesVariable) == "" {
		return fmt.Errorf("the environment variable %s does not name the directory of the control plane's binaries, which hack/build-controlplane.sh prints", cluster.BinariesVariable)
	}
	return nil
}

// What a visit measures.
const (
	toComplete = iota // from the start to complete rules
	outside           // of that, without the kernel's time for the programs that were run
	idle              // CPU time while nothing happens
	perChange         // CPU time for a change, without what idleness costs
	resident          // memory
	anonymous         // what of that is in no file
	heap              // live, after a collection
	quantities
)

// pace says how long things go on.
type pace struct {
	// window is how long the CPU time is counted without changes: a multiple of the time between two looks at the
	// kernel.
	window  time.Duration
	changes int
	// pause is between two changes.
	pause time.Duration
	// look is between two looks whether a program has become quiet.
	look time.Duration
}

func run(ctx context.Context, s figure.Settings, by way) (results []figure.Result, err error) {
	size := objects.Typical(by.services)
	// The proxier writes about once a second: one time more or less is two percent of what so many changes cost.
	p := pace{window: 15 * time.Second, changes: 900, pause: 50 * time.Millisecond, look: time.Second}
	if s.Smoke {
		size = objects.Typical(100)
		p = pace{window: time.Second, changes: 10, pause: 50 * time.Millisecond, look: 100 * time.Millisecond}
		s = s.AtMost(1)
	}
	kubeProxy, err := stock(ctx, s)
	if err != nil {
		return nil, err
	}
	s.Log("creating %d Services with %d endpoints", size.Services, size.All())
	w, err := newWorld(ctx, by, size)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	start := map[string]func(context.Context) (*program.Program, error){
		"stock": func(ctx context.Context) (*program.Program, error) { return w.startStock(ctx, kubeProxy) },
		"ours": func(ctx context.Context) (*program.Program, error) {
			return w.startOurs(ctx, os.Getenv(binaryVariable))
		},
	}
	var cases []figure.Case
	for _, name := range []string{"stock", "ours"} {
		cases = append(cases, figure.Case{
			Name: fmt.Sprintf("program=%s/rules=%s/endpoints=%d", name, by.name, size.All()),
			Quantities: []figure.Quantity{
				toComplete: {Name: "Start", Unit: "s/op", N: 1}, outside: {Name: "Outside", Unit: "s/op", N: 1}, idle: {Name: "Idle", Unit: "cpu-ms/s", N: 1},
				perChange: {Name: "Change", Unit: "cpu-ms/op", N: p.changes}, resident: {Name: "Resident", Unit: "MiB", N: 1},
				anonymous: {Name: "Anonymous", Unit: "MiB", N: 1}, heap: {Name: "Heap", Unit: "MiB", N: 1},
			},
			Measure: func(ctx context.Context) ([]float64, error) { return w.visit(ctx, p, name, start[name]) },
		})
	}
	values, err := s.AtMost(3).Measure(ctx, cases...)
	if err != nil {
		return nil, err
	}
	return by.rows(figure.Size(size.All()), values[0], values[1]), nil
}

func (by way) rows(at string, stock, ours []figure.Distribution) (results []figure.Result) {
	row := func(name string, measured figure.Distribution, unit string, target figure.Target) {
		results = append(results, figure.Result{Name: name + ", " + by.name, At: at, Measured: measured, Unit: unit, Target: target})
	}
	ratio := func(q int) figure.Distribution { return figure.Ratio(ours[q], stock[q]) }
	row("CPU per change ÷ stock kube-proxy", ratio(perChange), "", figure.AtMost(1.03))
	row("resident memory ÷ stock kube-proxy", ratio(resident), "", figure.AtMost(1.05))
	row("anonymous memory ÷ stock kube-proxy", ratio(anonymous), "", figure.None)
	row("live heap ÷ stock kube-proxy", ratio(heap), "", figure.None)
	row("start to complete rules ÷ stock kube-proxy", ratio(toComplete), "", figure.AtMost(1.02))
	row("start without the kernel's time for programs ÷ stock kube-proxy", ratio(outside), "", figure.AtMost(1.02))
	row("CPU while idle, above stock kube-proxy", figure.Difference(ours[idle], stock[idle]), "ms/s", figure.AtMost(2))
	row("CPU while idle of stock kube-proxy", stock[idle], "ms/s", figure.None)
	return results
}

// visit runs a program on an empty kernel and measures it.
func (w *world) visit(ctx context.Context, p pace, name string, start func(context.Context) (*program.Program, error)) (values []float64, err error) {
	if err := tables.Empty(ctx, w.Node()); err != nil {
		return nil, err
	}
	running, err := start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	values = make([]float64, quantities)
	complete, err := running.Complete(ctx)
	if err != nil {
		return nil, err
	}
	_, kernels, err := running.ChildrenCPU()
	if err != nil {
		return nil, err
	}
	values[toComplete], values[outside] = complete.Seconds(), (complete - kernels).Seconds()
	if err := errors.Join(w.check(ctx), running.Quiet(ctx, p.look)); err != nil {
		return nil, err
	}
	if err := figure.Sleep(ctx, p.window); err != nil { // the first look after the start reads all that was written
		return nil, err
	}
	unused, err := figure.Time(running.CPU, func() error { return figure.Sleep(ctx, p.window) })
	if err != nil {
		return nil, err
	}
	values[idle] = figure.Milliseconds(unused.CPU) / unused.Wall.Seconds()
	used, err := figure.Time(running.CPU, func() error {
		defer running.Profile(ctx, name+"-"+w.by.name, fmt.Sprintf("profile?seconds=%.0f", p.window.Seconds()))()
		if err := w.change(ctx, p.changes, p.pause); err != nil {
			return err
		}
		return running.Quiet(ctx, p.look)
	})
	if err != nil {
		return nil, err
	}
	values[perChange] = max(figure.Milliseconds(used.CPU)-values[idle]*used.Wall.Seconds(), 0.01) / float64(p.changes)
	if values[resident], values[anonymous], err = running.Memory(); err != nil {
		return nil, err
	}
	running.Profile(ctx, name+"-"+w.by.name, "heap?gc=1")()
	values[heap], err = running.Heap(ctx)
	for _, memory := range []int{resident, anonymous, heap} {
		values[memory] /= 1 << 20
	}
	return values, err
}

// arguments are those that both programs get.
func (w *world) arguments() [][2]string {
	return [][2]string{
		{"proxy-mode", w.by.mode},
		{"cluster-cidr", lab.ClusterV4.String()},
		{"nodeport-addresses", "primary"},
		{"conntrack-max-per-core", "0"}, // the limit is the machine's, not the namespace's
		{"oom-score-adj", "0"},
		{"profiling", "true"}, // for the heap; it costs nothing unless somebody asks
	}
}

func (w *world) startStock(ctx context.Context, kubeProxy string) (*program.Program, error) {
	command := w.Node().Command(ctx, kubeProxy, "--kubeconfig="+w.file("kubeconfig"), "--hostname-override="+nodeName)
	for _, a := range w.arguments() {
		command.Args = append(command.Args, "--"+a[0]+"="+a[1])
	}
	return program.Start(w.Node(), command, kubeProxy, "")
}

func (w *world) startOurs(ctx context.Context, openshift string) (*program.Program, error) {
	var config strings.Builder
	fmt.Fprintf(&config, "kind: NodeConfig\napiVersion: v1\nnodeName: %s\nmasterKubeConfig: %s\nproxyArguments:\n", nodeName, filepath.Base(w.file("kubeconfig")))
	for _, a := range append(w.arguments(), [2]string{"egress-snat-socket", w.file("sock")}, [2]string{"egress-snat-cni-socket", w.file("cni")}) {
		fmt.Fprintf(&config, "  %s: [%q]\n", a[0], a[1])
	}
	if err := os.WriteFile(w.file("node-config.yaml"), []byte(config.String()), 0o600); err != nil {
		return nil, err
	}
	command := w.Node().Command(ctx, openshift, "start", "node", "--config="+w.file("node-config.yaml"))
	return program.Start(w.Node(), command, openshift, program.InPlace)
}

// check returns an error unless the kernel has rules for all Services.
func (w *world) check(ctx context.Context) error {
	command, mark := []string{"iptables-save", "-t", "nat"}, "\n:KUBE-SVC-"
	if w.by.mode == "nftables" {
		command, mark = []string{"nft", "list", "map", "ip", "kube-proxy", "service-ips"}, "-default/service-"
	}
	rules, err := w.Node().Run(ctx, command[0], command[1:]...)
	if err != nil {
		return err
	}
	if found := strings.Count(rules, mark); found < w.size.Services {
		return fmt.Errorf("rules for %d of %d Services although they should be complete", found, w.size.Services)
	}
	return nil
}
