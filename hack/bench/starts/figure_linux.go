package starts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/containernetworking/cni/libcni"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/lab"
)

// Figures returns cni/iptables-legacy, cni/iptables-nft and cni/nftables.
func Figures() (all []figure.Figure) {
	for _, by := range []way{{"iptables-legacy", "iptables", lab.Legacy}, {"iptables-nft", "iptables", lab.NFT}, {"nftables", "nftables", lab.NFT}} {
		all = append(all, figure.Figure{Name: "cni/" + by.name, Lacks: lacks, Run: func(ctx context.Context, s figure.Settings) ([]figure.Result, error) {
			return run(ctx, s, by)
		}})
	}
	return all
}

// way is how rules are written.
type way struct {
	name, mode string
	iptables   lab.Backend
}

// pluginFolder has Debian's package containernetworking-plugins.
const pluginFolder = "/usr/lib/cni"

func lacks() error {
	if os.Getenv("OPENSHIFT") == "" {
		return errors.New("the environment variable OPENSHIFT does not name the binary, which make builds")
	}
	_, err := os.Stat(filepath.Join(pluginFolder, "bridge"))
	return err
}

// What a visit measures.
const (
	add = iota
	del
	cpu
	quantities
)

// The cases.
const (
	bridge = iota // alone
	unbound
	bound
)

// cases have the namespaces of their pods. Only shop has a Service with an egress IP.
var cases = []struct {
	name, namespace string
	plugin          bool
}{bridge: {"bridge", "shop", false}, unbound: {"unbound", "bank", true}, bound: {"bound", "shop", true}}

func run(ctx context.Context, s figure.Settings, by way) (results []figure.Result, err error) {
	pods, together := 20, 100
	if s.Smoke {
		pods, together = 2, 4
	}
	w, err := newWorld(ctx, by)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	var measured []figure.Case
	for _, c := range cases {
		measured = append(measured, figure.Case{
			Name: fmt.Sprintf("rules=%s/pods=%s", by.name, c.name),
			Quantities: []figure.Quantity{
				add: {Name: "CNIAdd", Unit: "ms/op", N: pods}, del: {Name: "CNIDel", Unit: "ms/op", N: pods}, cpu: {Name: "CNI", Unit: "cpu-ms/op", N: pods},
			},
			Measure: func(ctx context.Context) ([]float64, error) {
				return w.oneByOne(ctx, w.list(c.plugin), c.namespace, pods)
			},
		})
	}
	for _, c := range cases {
		measured = append(measured, figure.One(fmt.Sprintf("rules=%s/pods=%s/together=%d", by.name, c.name, together),
			figure.Quantity{Name: "CNIAddTogether", Unit: "p99-ms/op", N: together},
			func(ctx context.Context) (float64, error) {
				return w.atOnce(ctx, w.list(c.plugin), c.namespace, together)
			}))
	}
	values, err := s.AtMost(5).Measure(ctx, measured...)
	if err != nil {
		return nil, err
	}
	row := func(name string, values figure.Distribution, target figure.Target) {
		results = append(results, figure.Result{Name: name + ", " + by.name, At: fmt.Sprintf("%d pods", pods), Measured: values, Unit: "ms", Target: target})
	}
	row("ADD of bridge alone, p50", values[bridge][add], figure.None)
	row("ADD of bridge alone and DEL, CPU", values[bridge][cpu], figure.None)
	for i, target := range []figure.Target{unbound: figure.AtMost(15), bound: figure.AtMost(50)} {
		if i == bridge {
			continue
		}
		added := func(q int) figure.Distribution { return figure.Difference(values[i][q], values[bridge][q]) }
		row("the CNI plugin adds to ADD of a pod that is "+cases[i].name+", p50", added(add), target)
		row("the CNI plugin adds to DEL of a pod that is "+cases[i].name+", p50", added(del), figure.None)
		row("the CNI plugin adds to ADD and DEL of a pod that is "+cases[i].name+", CPU", added(cpu), figure.None)
		results = append(results, figure.Result{
			Name: "the CNI plugin adds to ADD of pods that are " + cases[i].name + " and start together, p99, " + by.name, At: fmt.Sprintf("%d pods", together),
			Measured: figure.Difference(values[len(cases)+i][0], values[len(cases)+bridge][0]), Unit: "ms", Target: figure.AtMost(1000),
		})
	}
	return results, nil
}

// oneByOne begins and ends pods, one after the other.
func (w *world) oneByOne(ctx context.Context, list *libcni.NetworkConfigList, namespace string, n int) ([]float64, error) {
	var adds, dels []time.Duration
	spent, err := figure.Time(w.cpu, func() error {
		for range n {
			pod, err := w.newPod(namespace)
			if err != nil {
				return err
			}
			begun, err := w.begin(ctx, list, pod)
			if err != nil {
				return err
			}
			ended, err := w.end(ctx, list, pod)
			if err != nil {
				return err
			}
			adds, dels = append(adds, begun), append(dels, ended)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []float64{add: quantile(adds, 0.5), del: quantile(dels, 0.5), cpu: figure.Milliseconds(spent.CPU) / float64(n)}, nil
}

// atOnce begins pods together, and returns the 99th percentile of ADD's time in milliseconds.
func (w *world) atOnce(ctx context.Context, list *libcni.NetworkConfigList, namespace string, n int) (float64, error) {
	pods := make([]pod, n)
	for i := range pods {
		var err error
		if pods[i], err = w.newPod(namespace); err != nil {
			return 0, err
		}
	}
	took, errs := make([]time.Duration, n), make([]error, n)
	var adding sync.WaitGroup
	for i, pod := range pods {
		adding.Go(func() {
			took[i], errs[i] = w.begin(ctx, list, pod)
		})
	}
	adding.Wait()
	for _, pod := range pods {
		_, err := w.end(ctx, list, pod)
		errs = append(errs, err)
	}
	return quantile(took, 0.99), errors.Join(errs...)
}

// begin gives a pod its network.
func (w *world) begin(ctx context.Context, list *libcni.NetworkConfigList, p pod) (time.Duration, error) {
	return w.timed(func() error {
		_, err := w.cni.AddNetworkList(ctx, list, p.conf)
		return err
	})
}

// end takes a pod's network, and then removes the pod.
func (w *world) end(ctx context.Context, list *libcni.NetworkConfigList, p pod) (time.Duration, error) {
	took, err := w.timed(func() error { return w.cni.DelNetworkList(ctx, list, p.conf) })
	return took, errors.Join(err, w.lab.RemovePod(p.host))
}

// timed does something on the node.
func (w *world) timed(do func() error) (took time.Duration, err error) {
	err = w.lab.Node().Do(func() error {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		return do()
	})
	return took, err
}

// quantile returns it in milliseconds.
func quantile(times []time.Duration, q float64) float64 {
	slices.Sort(times)
	return figure.Milliseconds(times[int(q*float64(len(times)-1)+0.5)])
}

// cpu is the time of the node's process, and of the programs that this process has run.
func (w *world) cpu() (time.Duration, error) {
	var children unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &children); err != nil {
		return 0, err
	}
	node, err := figure.CPUOf(w.node.Process.Pid)
	return node + time.Duration(children.Utime.Nano()+children.Stime.Nano()), err
}
