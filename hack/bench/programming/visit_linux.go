package programming

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

// visit is an agent in a lab of its own. After an error its methods do nothing.
type visit struct {
	err     error
	lab     *lab.Lab
	dir     string
	process *exec.Cmd
	orders  io.WriteCloser
	answers *json.Decoder
	printed bytes.Buffer
}

// newVisit starts an agent.
func newVisit(ctx context.Context, m means, scope placement.Scope, size objects.Size) (v *visit, err error) {
	v = &visit{}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.close())
		}
	}()
	if v.lab, err = lab.New(ctx, lab.Config{Backend: m.iptables}); err != nil {
		return v, err
	}
	if v.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return v, err
	}
	if err := os.WriteFile(filepath.Join(v.dir, "nodes.yaml"), nodes(size, v.lab.Node().V4), 0o600); err != nil {
		return v, err
	}
	self, err := os.Executable()
	if err != nil {
		return v, err
	}
	argument, err := json.Marshal(spec{m.backend, scope, size, v.dir})
	if err != nil {
		return v, err
	}
	v.process = v.lab.Node().Command(ctx, self, agentCommand, string(argument))
	v.process.Stderr = &v.printed
	if v.orders, err = v.process.StdinPipe(); err != nil {
		return v, err
	}
	answers, err := v.process.StdoutPipe()
	if err != nil {
		return v, err
	}
	v.answers = json.NewDecoder(answers)
	return v, v.process.Start()
}

// nodes are the manifests of a cluster's nodes, of which the first has this address.
func nodes(size objects.Size, address netip.Addr) []byte {
	var text bytes.Buffer
	for i := range size.Nodes {
		fmt.Fprintf(&text, "---\nkind: Node\napiVersion: v1\nmetadata: {name: %s}\nstatus: {addresses: [{type: InternalIP, address: %s}]}\n",
			objects.Node(i), address)
		address = address.Next()
	}
	return text.Bytes()
}

// order has the agent do something so often, and returns what one time took.
func (v *visit) order(do string, count int) (took figure.Spent) {
	if v.err != nil {
		return took
	}
	if v.err = json.NewEncoder(v.orders).Encode(order{do, count}); v.err == nil {
		v.err = v.answers.Decode(&took)
	}
	if v.err != nil {
		v.err = fmt.Errorf("%s: %w, %w; the agent's log:\n%s", do, v.err, v.end(), strings.TrimSpace(v.printed.String()))
	}
	return took
}

// end ends the agent.
func (v *visit) end() error {
	if v.process == nil || v.process.Process == nil || v.process.ProcessState != nil {
		return nil
	}
	_ = v.orders.Close() // it may have ended
	return v.process.Wait()
}

func (v *visit) close() error {
	errs := []error{v.end()}
	if v.lab != nil {
		errs = append(errs, v.lab.Close())
	}
	if v.dir != "" {
		errs = append(errs, os.RemoveAll(v.dir))
	}
	return errors.Join(errs...)
}

// holds checks that the kernel has so many bindings.
func (v *visit) holds(ctx context.Context, want int) {
	if v.err == nil {
		v.err = holds(ctx, v.lab.Node(), want)
	}
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

// traced returns how many programs the agent and its children run for the last orders together, and how often they
// send to netlink. The first order must show.
func (v *visit) traced(ctx context.Context, shows string, do ...string) (ran, sent float64) {
	for _, orders := range [][]string{{shows}, do} {
		if v.err == nil {
			ran, sent, v.err = v.trace(ctx, orders)
		}
		if v.err == nil && orders[0] == shows && ran+sent == 0 {
			v.err = fmt.Errorf("strace saw nothing of %s, so it cannot be trusted", shows)
		}
	}
	return ran, sent
}

func (v *visit) trace(ctx context.Context, orders []string) (ran, sent float64, err error) {
	trace, err := v.lab.Node().Trace(ctx, v.process.Process.Pid, func() error {
		for _, do := range orders {
			v.order(do, 1)
		}
		return v.err
	})
	return float64(len(trace.Programs)), float64(len(trace.Messages)), err
}
