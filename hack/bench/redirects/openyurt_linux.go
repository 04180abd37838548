package redirects

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"

	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/hack/lab"
)

// prepareOpenYurt makes the rules that OpenYurt's manager has after its first period, at once.
func prepareOpenYurt(ctx context.Context, l *lab.Lab, n size) (changer, error) {
	direct, ports := nodeAddresses(n.nodes), slices.Concat(redirects(n).Secure.Ports, redirects(n).Insecure.Ports)
	text := "*nat\n:TUNNEL-PORT - [0:0]\n-A OUTPUT -p tcp -m comment --comment \"yurttunnel server port\" -j TUNNEL-PORT\n"
	for _, port := range ports {
		text += fmt.Sprintf(":TUNNEL-PORT-%[1]d - [0:0]\n-A TUNNEL-PORT -p tcp -m comment --comment \"jump to port %[1]d\" -m tcp --dport %[1]d -j TUNNEL-PORT-%[1]d\n", port)
		for _, addr := range direct {
			text += fmt.Sprintf("-A TUNNEL-PORT-%[1]d -d %[2]s/32 -p tcp -m comment --comment \"return request to access node directly\" -m tcp --dport %[1]d -j RETURN\n", port, addr)
		}
		text += fmt.Sprintf("-A TUNNEL-PORT-%[1]d -p tcp -m comment --comment \"dnat to tunnel for access node\" -m tcp --dport %[1]d -j DNAT --to-destination 192.0.2.2:10264\n", port)
	}
	if err := tables.Feed(ctx, l.Node(), text+"COMMIT\n", "iptables-restore", "-w", "--noflush"); err != nil {
		return nil, err
	}
	count := 0
	return func(ctx context.Context) (int, error) {
		count++
		return len(ports), tables.As(l, func() error { return period(ctx, direct[:len(direct)-count%2], ports[0]) })
	}, nil
}

// period is the share of a port in a period of it, after a change of the last node.
func period(ctx context.Context, direct []netip.Addr, port uint16) error {
	number := strconv.Itoa(int(port))
	chain := "TUNNEL-PORT-" + number
	errs := []error{
		ensure(ctx, "-I", "OUTPUT", "-p", "tcp", "-m", "comment", "--comment", "yurttunnel server port", "-j", "TUNNEL-PORT"),
		ensure(ctx, "-A", "TUNNEL-PORT", "-p", "tcp", "-m", "comment", "--comment", "jump to port "+number, "--dport", number, "-j", chain),
	}
	for _, addr := range direct {
		errs = append(errs, ensure(ctx, "-I", chain, "-d", addr.String()+"/32", "-p", "tcp", "-m", "comment", "--comment", "return request to access node directly", "--dport", number, "-j", "RETURN"))
	}
	errs = append(errs, ensure(ctx, "-A", chain, "-p", "tcp", "-m", "comment", "--comment", "dnat to tunnel for access node", "--dport", number, "-j", "DNAT", "--to-destination", "192.0.2.2:10264"))
	// Its status only says whether there was an entry.
	_ = exec.CommandContext(ctx, "conntrack", "-D", "--orig-dst", direct[len(direct)-1].String(), "-p", "tcp", "--dport", number).Run()
	return errors.Join(errs...)
}

// ensure is EnsureRule of k8s.io/kubernetes/pkg/util/iptables: a check, and the rule if it is missing.
func ensure(ctx context.Context, how, chain string, rule ...string) error {
	run := func(do string) error {
		return exec.CommandContext(ctx, "iptables", append([]string{"-w", "5", "-t", "nat", do, chain}, rule...)...).Run()
	}
	if run("-C") == nil {
		return nil
	}
	if err := run(how); err != nil {
		return fmt.Errorf("iptables %s %s %q: %w", how, chain, rule, err)
	}
	return nil
}
