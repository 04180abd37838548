package programming

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

// seeds compares the first install with the method that this project began with: for each endpoint, ask iptables
// whether a rule is there, and insert it if not.
func seeds(ctx context.Context, s figure.Settings) (results []figure.Result, err error) {
	count := 1_000
	if s.Smoke {
		count = 20
	}
	desired := desiredOf(ofSize(count))
	var labs []*lab.Lab
	defer func() {
		for _, l := range labs {
			err = errors.Join(err, l.Close())
		}
	}()
	var cases []figure.Case
	add := func(name string, write func(context.Context, kernel.Desired) error) {
		l := labs[len(labs)-1]
		cases = append(cases, figure.One(fmt.Sprintf("method=%s/n=%d", name, count), figure.Quantity{Name: "FirstInstall", Unit: "ms/op", N: 1},
			func(ctx context.Context) (float64, error) { return timed(ctx, l, desired, write) }))
	}
	for _, backend := range lab.Backends() {
		l, err := lab.New(ctx, lab.Config{Backend: backend})
		if err != nil {
			return nil, err
		}
		labs = append(labs, l)
		add("seed-"+string(backend), seed)
		add("iptables-"+string(backend), func(ctx context.Context, d kernel.Desired) error { return tables.Rules().Write(ctx, d) })
	}
	add("nftables", func(ctx context.Context, d kernel.Desired) error { return tables.Table().Write(ctx, d) })
	values, err := s.AtMost(5).Measure(ctx, cases...)
	if err != nil {
		return nil, err
	}
	row := func(name string, dividend, divisor int) figure.Result {
		return figure.Result{
			Name: "first install, the seed's method ÷ " + name, At: figure.Size(count),
			Measured: figure.Ratio(values[dividend][0], values[divisor][0]), Target: figure.AtLeast(500),
		}
	}
	return []figure.Result{
		row("the tree, both by iptables-legacy", 0, 1),
		row("the tree, both by iptables-nft", 2, 3),
		row("nftables, the seed's by iptables-nft", 2, 4),
	}, nil
}

// desiredOf binds all pods of a cluster's Services with external IPs.
func desiredOf(size objects.Size) kernel.Desired {
	desired := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{lab.ClusterV4}}}
	for i := 0; i < size.Services; i += size.Every {
		egressIP := netip.MustParseAddr(size.Service(i).Spec.ExternalIPs[0])
		for _, endpoint := range size.Slice(i).Endpoints {
			desired.Bindings = append(desired.Bindings, kernel.Binding{Pod: netip.MustParseAddr(endpoint.Addresses[0]), Protocol: kernel.TCP, EgressIP: egressIP})
		}
	}
	return desired
}

// timed returns the milliseconds in which the node of a lab gets all bindings, without any rule before.
func timed(ctx context.Context, l *lab.Lab, desired kernel.Desired, write func(context.Context, kernel.Desired) error) (float64, error) {
	if err := tables.Empty(ctx, l.Node()); err != nil {
		return 0, err
	}
	runtime.GC() // garbage from before does not count
	var took figure.Spent
	err := tables.As(l, func() (err error) {
		took, err = figure.Time(figure.ThreadCPU, func() error { return write(ctx, desired) })
		return err
	})
	if err != nil {
		return 0, err
	}
	return figure.Milliseconds(took.Wall), holds(ctx, l.Node(), len(desired.Bindings))
}

// seed does what the seed did, with the -w that is needed beside a kube-proxy.
func seed(ctx context.Context, desired kernel.Desired) error {
	for _, b := range desired.Bindings {
		rule := []string{
			"POSTROUTING", "-t", "nat", "-m", string(b.Protocol), "-p", string(b.Protocol), "-s", b.Pod.String() + "/32",
			"!", "-d", desired.ClusterCIDRs[0].String(), "-j", "SNAT", "--to-source", b.EgressIP.String(),
		}
		var missing *exec.ExitError
		err := exec.CommandContext(ctx, "iptables", append([]string{"-w", "-C"}, rule...)...).Run()
		switch {
		case err == nil:
			continue
		case !errors.As(err, &missing):
			return err
		}
		if output, err := exec.CommandContext(ctx, "iptables", append([]string{"-w", "-I"}, rule...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("iptables -I: %w: %s", err, output)
		}
	}
	return nil
}

// holds returns an error unless a node's kernel has so many bindings, as rules or as elements of a map.
func holds(ctx context.Context, node *lab.Host, want int) error {
	rules, err := node.Run(ctx, "iptables-save", "-t", "nat")
	if err != nil {
		return err
	}
	have := 0
	for line := range strings.Lines(rules) {
		if strings.Contains(line, " --to-source ") && !strings.HasPrefix(line, "-A "+iptables.RemovedChain+" ") {
			have++
		}
	}
	if have == 0 {
		table, err := node.Run(ctx, "nft", "list", "ruleset")
		if err != nil {
			return err
		}
		have = strings.Count(table, " : 198.18.") + strings.Count(table, " : 198.19.")
	}
	if have != want {
		return fmt.Errorf("the kernel has %d bindings, want %d", have, want)
	}
	return nil
}
