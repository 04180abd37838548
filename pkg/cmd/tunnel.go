package cmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/tunnel"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

const tunnelLong = `Shows which connections of this node go to the tunnel server: those to some ports of nodes
that have the tunnel's agent, or are not Ready.

The commands ask the running node on a local socket, which only root may use. --socket has
to be the same as proxyArguments.egress-snat-socket in the node's configuration.`

// tunnelOptions are the flags of the tunnel commands.
type tunnelOptions struct{ socket, output string }

func newTunnelCommand() *cobra.Command {
	o := &tunnelOptions{}
	list := plain("list", "List the nodes, whether connections to them are redirected, and the ports", "", "", o.list)
	list.Flags().StringVarP(&o.output, "output", "o", asTable, "Format of the output: "+asTable+" or "+asJSON+".")
	explain := &cobra.Command{
		Use: "explain NODE[:PORT]", Short: "Explain whether a connection to a node is redirected, and why",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("got %d arguments: expected a node's name or address, for example edge-7:10250", len(args))
			}
			return nil
		},
		Example: "  openshift tunnel explain edge-7:10250\n  openshift tunnel explain 192.0.2.50:9100",
		RunE:    func(c *cobra.Command, args []string) error { return o.explain(c, args[0]) },
	}
	verify := plain("verify", "Compare the rules in the kernel with the plan; exits with status 1 if they differ", "", "", o.verify)
	c := group("tunnel", "Show which connections of this node go to the tunnel server", list, explain, verify)
	c.Long = tunnelLong
	c.PersistentFlags().StringVar(&o.socket, "socket", status.DefaultSocket, "The socket of the running node.")
	return c
}

func (o *tunnelOptions) snapshot(ctx context.Context) (s tunnel.Snapshot, err error) {
	return s, o.get(ctx, tunnel.SnapshotPath, &s)
}

func (o *tunnelOptions) get(ctx context.Context, path string, target any) error {
	if err := status.NewClient(o.socket).Get(ctx, path, target); err != nil {
		return fmt.Errorf("the tunnel's ports: %w", err)
	}
	return nil
}

// tunnelProblems are what an operator should know, for people.
func tunnelProblems(s tunnel.Snapshot) []string {
	problems := notInForce(s)
	for _, p := range s.Problems {
		problems = append(problems, p.String())
	}
	return problems
}

// notInForce says why the kernel may not have what a snapshot says.
func notInForce(s tunnel.Snapshot) (problems []string) {
	if len(s.Missing) > 0 {
		problems = append(problems, "the node has no plan yet, it waits for "+strings.Join(s.Missing, ", "))
	}
	for _, f := range s.Families {
		if f.Error != "" {
			problems = append(problems, fmt.Sprintf("%s: the last sync failed: %s", f.Family, f.Error))
		}
	}
	return problems
}

func (o *tunnelOptions) list(c *cobra.Command) error {
	if o.output != asTable && o.output != asJSON {
		return fmt.Errorf("--output: invalid value %q: expected %s or %s", o.output, asTable, asJSON)
	}
	s, err := o.snapshot(c.Context())
	if err != nil {
		return err
	}
	if o.output == asJSON {
		return printDocument(c.OutOrStdout(), s, o.output, false, true)
	}
	nodes := [][]string{{"NODE", "ADDRESSES", "WAY", "REASON"}}
	for _, n := range s.Nodes {
		nodes = append(nodes, []string{n.Name, orNone(kernel.Join(n.Addresses, ",")), string(n.Way), n.Why})
	}
	ports := [][]string{{"PORTS", "GO TO"}}
	for _, f := range s.Families {
		for _, t := range f.Redirects.Targets() {
			ports = append(ports, []string{kernel.Join(t.Ports, ","), t.To.String()})
		}
	}
	err = (&table{out: c.OutOrStdout()}).write(nodes...)
	if len(ports) > 1 {
		_, spaceErr := fmt.Fprintln(c.OutOrStdout())
		err = errors.Join(err, spaceErr, (&table{out: c.OutOrStdout()}).write(ports...))
	}
	return errors.Join(err, warn(c.ErrOrStderr(), tunnelProblems(s)))
}

func (o *tunnelOptions) explain(c *cobra.Command, argument string) error {
	s, err := o.snapshot(c.Context())
	if err != nil {
		return err
	}
	if err := warn(c.ErrOrStderr(), notInForce(s)); err != nil {
		return err
	}
	node, addrs, port, err := findNode(s, argument)
	if err != nil {
		return err
	}
	var text strings.Builder
	if node.Name == "" {
		fmt.Fprintf(&text, "%s is not an address of a node\n", addrs[0])
	} else {
		fmt.Fprintf(&text, "Node %s: %s\n  %s: %s\n", node.Name, orNone(kernel.Join(node.Addresses, ",")), node.Way, node.Why)
	}
	for _, addr := range addrs {
		for _, p := range portsToExplain(s, port) {
			fmt.Fprintf(&text, "  %s goes %s\n", netip.AddrPortFrom(addr, p), wayOf(s, netip.AddrPortFrom(addr, p)))
		}
	}
	for _, p := range s.Problems {
		if p.Node != "" && p.Node == node.Name {
			fmt.Fprintf(&text, "  %s: %s\n", p.Reason, p.Message)
		}
	}
	return printLines(c.OutOrStdout(), "", strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n"))
}

// findNode returns the node that an argument names, by its name or an address, and the addresses and the port that it is
// about; the port is 0 if it names none.
func findNode(s tunnel.Snapshot, argument string) (node tunnel.NodeStatus, addrs []netip.Addr, port uint16, err error) {
	name := argument
	if addr, parseErr := netip.ParseAddr(argument); parseErr == nil {
		addrs = []netip.Addr{addr}
	} else if both, parseErr := netip.ParseAddrPort(argument); parseErr == nil {
		addrs, port = []netip.Addr{both.Addr()}, both.Port()
	} else if before, after, found := strings.Cut(argument, ":"); found {
		number, parseErr := strconv.ParseUint(after, 10, 16)
		if parseErr != nil || number == 0 {
			return node, nil, 0, fmt.Errorf("invalid port in %q: expected NODE or NODE:PORT, with a port from 1 to 65535", argument)
		}
		name, port = before, uint16(number)
	}
	i := slices.IndexFunc(s.Nodes, func(n tunnel.NodeStatus) bool {
		return n.Name == name || len(addrs) > 0 && slices.Contains(n.Addresses, addrs[0])
	})
	switch {
	case i >= 0 && len(addrs) == 0:
		return s.Nodes[i], s.Nodes[i].Addresses, port, nil
	case i >= 0:
		return s.Nodes[i], addrs, port, nil
	case len(addrs) > 0:
		return node, addrs, port, nil
	}
	return node, nil, 0, fmt.Errorf("there is no Node %q; 'openshift tunnel list' lists all", name)
}

// portsToExplain returns the port that was asked for, or all that are redirected.
func portsToExplain(s tunnel.Snapshot, port uint16) []uint16 {
	if port != 0 {
		return []uint16{port}
	}
	all := map[uint16]bool{}
	for _, f := range s.Families {
		for _, t := range f.Redirects.Targets() {
			for _, p := range t.Ports {
				all[p] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// wayOf says how a connection goes, by the rules of its family.
func wayOf(s tunnel.Snapshot, to netip.AddrPort) string {
	own := slices.ContainsFunc(s.Nodes, func(n tunnel.NodeStatus) bool { return n.Name == s.Node && slices.Contains(n.Addresses, to.Addr()) })
	for _, f := range s.Families {
		if (f.Family == kernel.IPv4) != to.Addr().Is4() || own {
			continue
		}
		if target, redirected := f.Redirects.To(to); redirected {
			return "to the tunnel server, " + target.String()
		}
	}
	return string(plan.Direct) + "ly"
}

func (o *tunnelOptions) verify(c *cobra.Command) error {
	var byFamily map[string][]string
	if err := o.get(c.Context(), tunnel.VerifyPath, &byFamily); err != nil {
		return err
	}
	return printDifferences(c, byFamily)
}
