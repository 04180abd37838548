package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

const egressLong = `Shows egress SNAT on this node: which pod leaves from which Service's egress IP, what
is refused and why, what becomes of a packet, and whether the kernel agrees.

The running node answers, on a local socket that only root may use. The node's
configuration names the socket in proxyArguments.egress-snat-socket; --socket does
so here.`

// egressOptions are the flags that several of the egress commands have.
type egressOptions struct {
	socket    string
	output    string
	namespace string
	watch     bool
	noHeaders bool
	all       bool
}

func newEgressCommand() *cobra.Command {
	o := &egressOptions{}
	c := group("egress", "Show egress SNAT on this node",
		newEgressListCommand(o), newEgressRefusedCommand(o), newEgressExplainCommand(o), newEgressVerifyCommand(o))
	c.Long = egressLong
	c.PersistentFlags().StringVar(&o.socket, "socket", status.DefaultSocket, "The socket at which the node is asked.")
	return c
}

// Forms of output.
const (
	asTable = "table"
	asWide  = "wide"
	asJSON  = "json"
	asYAML  = "yaml"
)

var outputs = []string{asTable, asWide, asJSON, asYAML}

// addOutput adds the flag that selects the form of output.
func (o *egressOptions) addOutput(c *cobra.Command) {
	c.Flags().StringVarP(&o.output, "output", "o", asTable, "The form of the output: "+strings.Join(outputs, ", ")+".")
	complete(c, "output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
}

// addListing adds the flags of the commands that print one row for each of many things.
func (o *egressOptions) addListing(c *cobra.Command) {
	o.addOutput(c)
	c.Flags().StringVarP(&o.namespace, "namespace", "n", "", "Only Services of this namespace.")
	complete(c, "namespace", func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return o.complete(c.Context(), namespacesOf)
	})
	c.Flags().BoolVar(&o.all, "all", false, "Those of the whole cluster, not only of this node.")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "After that, print what changes, until interrupted.")
	c.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Print no line of headers above a table.")
}

// complete sets the completion of a flag that c has.
func complete(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag does not exist: a mistake in this program, found by any test
	}
}

func (o *egressOptions) checkOutput() error {
	if !slices.Contains(outputs, o.output) {
		return fmt.Errorf("--output=%q: use %s", o.output, strings.Join(outputs, ", "))
	}
	return nil
}

func (o *egressOptions) client() *status.Client { return status.NewClient(o.socket) }

// standing is what every JSON and YAML document of the egress commands begins with. Like
// the rest of those documents it is an interface of the project: fields may be added.
type standing struct {
	// Node is the node's name.
	Node string `json:"node"`
	// Ready: the node has written its rules once since it started.
	Ready bool `json:"ready"`
	// Problems keep the kernel from holding the plan; none if all is well.
	Problems []string `json:"problems"`
}

func standingOf(s status.Snapshot) standing {
	return standing{Node: s.Node, Ready: s.Ready, Problems: append([]string{}, s.Problems()...)}
}

// warn prints what is wrong.
func warn(w io.Writer, problems []string) error {
	var errs []error
	for _, problem := range problems {
		_, err := fmt.Fprintln(w, kernel.Printable("warning: "+problem))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ofCluster returns s with the plans of the whole cluster.
func ofCluster(s status.Snapshot) status.Snapshot {
	s.Families = slices.Clone(s.Families)
	for i, f := range s.Families {
		s.Families[i] = f.OfCluster()
	}
	return s
}

// explainers returns one for each IP family of a snapshot, in the same order.
func explainers(s status.Snapshot) []*plan.Explainer {
	var result []*plan.Explainer
	for _, f := range s.Families {
		result = append(result, plan.NewExplainer(f.Input, f.Plan))
	}
	return result
}

// complete asks the node for what may be typed. Without an answer there is nothing to
// offer; an error would garble the line that is being typed.
func (o *egressOptions) complete(ctx context.Context, offers func(status.Snapshot) []cobra.Completion) ([]cobra.Completion, cobra.ShellCompDirective) {
	if ctx == nil { // completion runs without Main's in tests
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	snapshot, err := o.client().Snapshot(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offers(snapshot), cobra.ShellCompDirectiveNoFileComp
}
