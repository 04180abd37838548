package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

// Figures are those of this package.
func Figures() []figure.Figure {
	return []figure.Figure{{Name: "process", Run: run, Lacks: lacks}}
}

// variant is one program in one mode.
type variant struct {
	// name is for benchstat, mode and backend as in proxyArguments.
	name, mode, backend string
	// against is the variant of stock kube-proxy that it is compared with; nil for those.
	against *variant
}

// String is the mode, for people.
func (v *variant) String() string {
	switch {
	case v.against == nil:
		return v.mode + ", stock kube-proxy"
	case v.backend != v.mode:
		return v.mode + ", egress in " + v.backend
	}
	return v.mode
}

// variants are all, each stock one in front of those that are compared with it.
func variants() []*variant {
	iptables := &variant{name: "stock/mode=iptables", mode: "iptables"}
	nftables := &variant{name: "stock/mode=nftables", mode: "nftables"}
	return []*variant{
		iptables,
		{name: "ours/mode=iptables", mode: "iptables", backend: "iptables", against: iptables},
		{name: "ours/mode=iptables,egress=nftables", mode: "iptables", backend: "nftables", against: iptables},
		nftables,
		{name: "ours/mode=nftables", mode: "nftables", backend: "nftables", against: nftables},
	}
}

// What a visit measures.
const (
	toComplete = iota // seconds from the start to complete rules
	idle              // milliseconds of CPU time in a second in which nothing happens
	perChange         // milliseconds of CPU time for a change, without what idleness costs
	resident          // MiB
	heap              // MiB
	quantities
)

var units = [quantities]string{"s/op", "cpu-ms/s", "cpu-ms/op", "MiB", "MiB"}
var benchmarks = [quantities]string{"Start", "Idle", "Change", "Resident", "Heap"}

// pace says how long things go on.
type pace struct {
	rounds int
	// window is how long the CPU time is counted without changes. Both programs look at the
	// kernel every so often; it is a multiple of that.
	window  time.Duration
	changes int
	// pause is between two changes.
	pause time.Duration
	// look is how often to look whether a program has become quiet.
	look time.Duration
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

func run(ctx context.Context, s figure.Settings) ([]figure.Result, error) {
	size := objects.Size{Services: 10_000, Endpoints: 10, Every: 10, Nodes: 1000}
	p := pace{rounds: 3, window: 15 * time.Second, changes: 200, pause: 50 * time.Millisecond, look: time.Second}
	if s.Smoke {
		size.Services = 50
		p = pace{rounds: 1, window: time.Second, changes: 10, pause: 50 * time.Millisecond, look: 100 * time.Millisecond}
	}
	openshift := os.Getenv(binaryVariable)
	kubeProxy, err := stock(ctx, s)
	if err != nil {
		return nil, err
	}
	s.Log("making %d Services with %d endpoints", size.Services, size.Services*size.Endpoints)
	w, err := newWorld(ctx, size)
	if err != nil {
		return nil, err
	}
	results, err := w.measure(ctx, s, p, openshift, kubeProxy)
	return results, errors.Join(err, w.close())
}

// measure visits all variants in every round, in an order of chance.
func (w *world) measure(ctx context.Context, s figure.Settings, p pace, openshift, kubeProxy string) ([]figure.Result, error) {
	all := variants()
	values := map[*variant]*[quantities]figure.Distribution{}
	for _, v := range all {
		values[v] = &[quantities]figure.Distribution{}
	}
	for round := range min(s.Rounds, p.rounds) {
		for _, i := range rand.Perm(len(all)) {
			v := all[i]
			command, err := w.command(ctx, v, openshift, kubeProxy)
			if err != nil {
				return nil, err
			}
			seen, err := w.visit(ctx, p, v, values[v][idle], command)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", v.name, err)
			}
			s.Log("round %d: %s: %s", round+1, v.name, seen)
			for q, value := range seen {
				if q == idle && round > 0 {
					continue // that of the first round
				}
				values[v][q] = append(values[v][q], value)
				s.Record(benchmarks[q]+"/program="+v.name, p.operations(q), value, units[q])
			}
		}
	}
	var results []figure.Result
	at := figure.Size(w.size.Services * w.size.Endpoints)
	for _, v := range all {
		if v.against != nil {
			results = append(results, compare(v, at, values[v], values[v.against])...)
		}
	}
	for _, v := range all {
		results = append(results, figure.Result{
			Name: "CPU while idle, " + v.String(), At: at, Measured: values[v][idle], Unit: "ms/s",
		})
	}
	return results, nil
}

func (p pace) operations(quantity int) int {
	if quantity == perChange {
		return p.changes
	}
	return 1
}

// compare makes the lines of the table for a variant.
func compare(v *variant, at string, ours, stock *[quantities]figure.Distribution) []figure.Result {
	lines := []struct {
		quantity int
		name     string
		target   figure.Target
	}{
		{perChange, "CPU per change", figure.AtMost(1.05)},
		{resident, "resident memory", figure.AtMost(1.10)},
		{toComplete, "start to complete rules", figure.AtMost(1.05)},
		{heap, "live heap", figure.None},
	}
	var results []figure.Result
	for _, line := range lines {
		results = append(results, figure.Result{
			Name: fmt.Sprintf("%s ÷ stock kube-proxy, %s", line.name, v), At: at,
			Measured: figure.Ratio(ours[line.quantity], stock[line.quantity]), Target: line.target,
		})
	}
	return results
}

// seen is what a visit has measured.
type seen [quantities]float64

func (v seen) String() string {
	var texts []string
	for q, value := range v {
		texts = append(texts, fmt.Sprintf("%s %s %s", strings.ToLower(benchmarks[q]), figure.Number(value), units[q]))
	}
	return strings.Join(texts, ", ")
}

// visit runs a program on an empty kernel and measures it, but for what is known of it when it is
// idle, which hardly differs from one time to another.
func (w *world) visit(ctx context.Context, p pace, v *variant, known figure.Distribution, command *exec.Cmd) (values seen, err error) {
	awaited := ""
	if v.against != nil {
		awaited = inPlace
	}
	if err := w.forget(ctx); err != nil {
		return values, err
	}
	program, err := start(w.lab.Node(), command, awaited)
	if err != nil {
		return values, err
	}
	defer func() { err = errors.Join(err, program.stop()) }()
	start, err := program.complete(ctx)
	if err != nil {
		return values, err
	}
	values[toComplete] = start.Seconds()
	if err := w.check(ctx, v); err != nil {
		return values, err
	}
	if err := program.quiet(ctx, p.look); err != nil {
		return values, err
	}
	if len(known) > 0 {
		values[idle] = known.Median()
	} else {
		unused, took, err := program.during(func() error { return sleep(ctx, p.window) })
		if err != nil {
			return values, err
		}
		values[idle] = milliseconds(unused) / took.Seconds()
	}
	used, took, err := program.during(func() error {
		defer program.profile(ctx, v.name, fmt.Sprintf("profile?seconds=%.0f", p.window.Seconds()))()
		if err := w.change(ctx, p.changes, p.pause); err != nil {
			return err
		}
		return program.quiet(ctx, p.look)
	})
	if err != nil {
		return values, err
	}
	// Less than a tick cannot be told.
	values[perChange] = max(milliseconds(used)-values[idle]*took.Seconds(), milliseconds(tick)) / float64(p.changes)
	if values[resident], err = program.resident(); err != nil {
		return values, err
	}
	program.profile(ctx, v.name, "heap?gc=1")()
	values[heap], err = program.heap(ctx)
	values[resident] /= 1 << 20
	values[heap] /= 1 << 20
	return values, err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// during returns the CPU time that the program uses while something is done, and how long that
// takes.
func (p *program) during(do func() error) (used, took time.Duration, err error) {
	before, err := p.cpu()
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := do(); err != nil {
		return 0, 0, err
	}
	took = time.Since(start)
	after, err := p.cpu()
	return after - before, took, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// command is that of a variant.
func (w *world) command(ctx context.Context, v *variant, openshift, kubeProxy string) (*exec.Cmd, error) {
	arguments := [][2]string{
		{"proxy-mode", v.mode},
		{"cluster-cidr", lab.ClusterV4.String()},
		{"nodeport-addresses", "primary"},
		{"conntrack-max-per-core", "0"}, // the limit is the machine's, not the namespace's
		{"oom-score-adj", "0"},
		{"profiling", "true"}, // for the heap; it costs nothing unless somebody asks
	}
	if v.against == nil {
		command := w.lab.Node().Command(ctx, kubeProxy, "--kubeconfig="+w.file("kubeconfig"), "--hostname-override="+nodeName)
		for _, a := range arguments {
			command.Args = append(command.Args, "--"+a[0]+"="+a[1])
		}
		return command, nil
	}
	arguments = append(arguments, [2]string{"egress-snat-backend", v.backend}, [2]string{"egress-snat-socket", w.file("sock")})
	var config strings.Builder
	fmt.Fprintf(&config, "kind: NodeConfig\napiVersion: v1\nnodeName: %s\nmasterKubeConfig: %s\nproxyArguments:\n", nodeName, filepath.Base(w.file("kubeconfig")))
	for _, a := range arguments {
		fmt.Fprintf(&config, "  %s: [%q]\n", a[0], a[1])
	}
	if err := os.WriteFile(w.file("node-config.yaml"), []byte(config.String()), 0o600); err != nil {
		return nil, err
	}
	return w.lab.Node().Command(ctx, openshift, "start", "node", "--config="+w.file("node-config.yaml")), nil
}

// forget empties the node's kernel.
func (w *world) forget(ctx context.Context) error {
	node := w.lab.Node()
	var tables strings.Builder
	for _, table := range []string{"nat", "filter", "mangle"} {
		fmt.Fprintf(&tables, "*%s\nCOMMIT\n", table)
	}
	for _, tool := range []string{"iptables-restore", "ip6tables-restore"} {
		command := node.Command(ctx, tool, "-w")
		command.Stdin = strings.NewReader(tables.String())
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", tool, err, output)
		}
	}
	if _, err := node.Run(ctx, "nft", "flush", "ruleset"); err != nil {
		return err
	}
	_, err := node.Run(ctx, "conntrack", "-F")
	return err
}

// check returns an error unless the kernel has rules for all Services.
func (w *world) check(ctx context.Context, v *variant) error {
	command, mark := []string{"iptables-save", "-t", "nat"}, "\n:KUBE-SVC-"
	if v.mode == "nftables" {
		command, mark = []string{"nft", "list", "map", "ip", "kube-proxy", "service-ips"}, "-default/service-"
	}
	rules, err := w.lab.Node().Run(ctx, command[0], command[1:]...)
	if err != nil {
		return err
	}
	if found := strings.Count(rules, mark); found < w.size.Services {
		return fmt.Errorf("rules for %d of %d Services although they should be complete", found, w.size.Services)
	}
	return nil
}
