package programming

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// seeds measures the first install against the method that this project began with: a loop over
// the endpoints that asks iptables whether a rule is there, and has it put in front if not.
func seeds(ctx context.Context, s figure.Settings) (results []figure.Result, err error) {
	const rounds = 5
	s.Rounds = min(s.Rounds, rounds)
	count := 1_000
	if s.Smoke {
		count = 20
	}
	p := planOf(ofSize(count))
	var cases []figure.Case
	labs := map[lab.Backend]*lab.Lab{}
	defer func() {
		for _, l := range labs {
			err = errors.Join(err, l.Close())
		}
	}()
	add := func(name string, backend lab.Backend, write func(context.Context) error) {
		cases = append(cases, figure.Case{
			Name: fmt.Sprintf("FirstInstall/method=%s/n=%d", name, count), Unit: "ms/op", N: 1,
			Measure: func(ctx context.Context) (float64, error) { return timed(ctx, labs[backend], p, write) },
		})
	}
	for _, backend := range []lab.Backend{lab.Legacy, lab.NFT} {
		l, err := lab.New(ctx, lab.Config{Backend: backend})
		if err != nil {
			return nil, err
		}
		labs[backend] = l
		add("seed-"+string(backend), backend, func(ctx context.Context) error { return seed(ctx, p) })
		add("iptables-"+string(backend), backend, func(ctx context.Context) error { return writeRules(ctx, p) })
	}
	add("nftables", lab.NFT, func(ctx context.Context) error { return writeTable(ctx, p) })
	values, err := s.Measure(ctx, cases...)
	if err != nil {
		return nil, err
	}
	at := figure.Size(count)
	line := func(name string, dividend, divisor int) figure.Result {
		return figure.Result{
			Name: "first install, the seed's method ÷ " + name, At: at,
			Measured: figure.Ratio(values[dividend], values[divisor]), Target: figure.AtLeast(500),
		}
	}
	return []figure.Result{
		line("the tree, both by iptables-legacy", 0, 1),
		line("the tree, both by iptables-nft", 2, 3),
		line("nftables, the seed's by iptables-nft", 2, 4),
	}, nil
}

// planOf binds all pods of a cluster.
func planOf(size objects.Size) plan.Plan {
	p := plan.Plan{ClusterCIDRs: []netip.Prefix{lab.ClusterV4}}
	for i := range size.Services {
		egressIP := netip.MustParseAddr(size.Service(i).Spec.ExternalIPs[0])
		for _, endpoint := range size.Slice(i).Endpoints {
			p.Bindings = append(p.Bindings, plan.Binding{
				Pod: netip.MustParseAddr(endpoint.Addresses[0]), Protocol: plan.TCP, EgressIP: egressIP,
			})
		}
	}
	return p
}

// timed returns the milliseconds in which a lab's node without rules gets those of the plan.
func timed(ctx context.Context, l *lab.Lab, p plan.Plan, write func(context.Context) error) (float64, error) {
	node := l.Node()
	empty := node.Command(ctx, "iptables-restore", "-w")
	empty.Stdin = strings.NewReader("*nat\nCOMMIT\n")
	if output, err := empty.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("iptables-restore: %w: %s", err, output)
	}
	if _, err := node.Run(ctx, "nft", "flush", "ruleset"); err != nil {
		return 0, err
	}
	runtime.GC() // the garbage of what was before is not this one's
	var took time.Duration
	err := as(node, l, func() error {
		start := time.Now()
		err := write(ctx)
		took = time.Since(start)
		return err
	})
	if err != nil {
		return 0, err
	}
	return milliseconds(took), holds(ctx, node, p)
}

// as runs fn as if it were a process of the node, whose iptables is on PATH. Nothing else runs meanwhile.
func as(node *lab.Host, l *lab.Lab, fn func() error) error {
	for name, value := range map[string]string{"PATH": l.Path(), "XTABLES_LOCKFILE": node.XtablesLock()} {
		before, set := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			return err
		}
		if set {
			defer os.Setenv(name, before) //nolint:errcheck // it was so before
		} else {
			defer os.Unsetenv(name) //nolint:errcheck // as above
		}
	}
	return node.Do(fn)
}

// seed does what the seed did, with the -w that is needed beside a kube-proxy.
func seed(ctx context.Context, p plan.Plan) error {
	for _, b := range p.Bindings {
		rule := []string{
			"POSTROUTING", "-t", "nat", "-m", string(b.Protocol), "-p", string(b.Protocol), "-s", b.Pod.String() + "/32",
			"!", "-d", p.ClusterCIDRs[0].String(), "-j", "SNAT", "--to-source", b.EgressIP.String(),
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

// holds returns an error unless the node has an SNAT rule, or an element, for each binding.
func holds(ctx context.Context, node *lab.Host, p plan.Plan) error {
	rules, err := node.Run(ctx, "iptables-save", "-t", "nat")
	if err != nil {
		return err
	}
	found := strings.Count(rules, " --to-source ")
	if found == 0 {
		table, err := node.Run(ctx, "nft", "list", "ruleset")
		if err != nil {
			return err
		}
		for _, b := range p.Bindings {
			if strings.Contains(table, b.Pod.String()+" : ") || strings.Contains(table, b.Pod.String()+" . ") || strings.Contains(table, " . "+b.Pod.String()) {
				found++
			}
		}
	}
	if found != len(p.Bindings) {
		return fmt.Errorf("%d bindings are in the kernel, want %d", found, len(p.Bindings))
	}
	return nil
}
