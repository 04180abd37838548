package tables

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// Empty removes all rules and tracked flows from a host. nft goes first: it removes in one step what
// iptables-nft removes slowly.
func Empty(ctx context.Context, host *lab.Host) error {
	const tables = "*nat\nCOMMIT\n*filter\nCOMMIT\n*mangle\nCOMMIT\n"
	_, err := host.Run(ctx, "nft", "flush", "ruleset")
	for _, tool := range []string{"iptables-restore", "ip6tables-restore"} {
		if err == nil {
			err = host.Feed(ctx, tables, tool, "-w")
		}
	}
	if err == nil {
		_, err = host.Run(ctx, "conntrack", "-F")
	}
	return err
}

// As runs fn as if it were a process of the lab's node, whose iptables tools are on PATH. Nothing else may
// run meanwhile: the environment is the whole process's.
func As(l *lab.Lab, fn func() error) (err error) {
	for name, value := range map[string]string{"PATH": l.Path(), "XTABLES_LOCKFILE": l.Node().XtablesLock()} {
		before, set := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			return err
		}
		restore := func() error { return os.Unsetenv(name) }
		if set {
			restore = func() error { return os.Setenv(name, before) }
		}
		defer func() { err = errors.Join(err, restore()) }()
	}
	return l.Node().Do(fn)
}

// Write writes all, as a process of the product does that has just started.
type Write func(ctx context.Context, desired kernel.Desired) error

// Rules writes iptables rules.
func Rules(ctx context.Context, desired kernel.Desired) error {
	_, err := iptables.NewWriter(kernel.IPv4).Write(ctx, iptables.NewRendering(desired).Ruleset())
	return err
}

// Table writes the nftables table of a node that does not steer.
func Table(ctx context.Context, desired kernel.Desired) error {
	_, err := steering.NewLocalWriter(kernel.IPv4).Write(ctx, desired, nil)
	return err
}

// Fit returns how many flows to track at a time, given how many are wanted: at most half of
// nf_conntrack_max, the machine's limit, because a fuller table is slower.
func Fit(flows int, log func(format string, args ...any)) (int, error) {
	text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_max")
	if errors.Is(err, os.ErrNotExist) {
		return flows, nil // it comes with the first rule, and its default is enough
	}
	if err != nil {
		return 0, err
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || limit == 0 || flows <= limit/2 {
		return flows, err
	}
	log("%d flows instead of %d: nf_conntrack_max is %d", limit/2, flows, limit)
	return limit / 2, nil
}

// Flows returns how many flows a host tracks.
func Flows(host *lab.Host) (count int, err error) {
	err = host.Do(func() error {
		text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_count")
		if err != nil {
			return err
		}
		count, err = strconv.Atoi(string(bytes.TrimSpace(text)))
		return err
	})
	return count, err
}

// Steer writes the table of steering of a node, in whose namespace it has to be called.
func Steer(ctx context.Context, config steering.Config, desired kernel.Desired) error {
	w := steering.NewWriter(config)
	defer w.Close()
	_, err := w.Write(ctx, desired, nil)
	return err
}

// SteeringConfig is how a node of a lab steers IPv4 packets, with the product's default arguments.
func SteeringConfig(node *lab.Host, transport steering.Transport) steering.Config {
	return steering.Config{Family: kernel.IPv4, NodeIP: node.V4, Transport: transport, Port: lab.TunnelPort, MarkMask: 0x7e}
}
