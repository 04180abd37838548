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
	"github.com/openshift/origin-node/pkg/nodeconfig"
)

const egressLong = `Shows egress SNAT on this node: the pods and their egress IPs, the nodes that have these
addresses, the refused claims and their reasons, the source address of a single packet, and
whether the rules in the kernel are those of the plan.

The commands ask the running node on a local socket, which only root may use. --socket has
to be the same as proxyArguments.egress-snat-socket in the node's configuration; --config
reads it from there.

'kubectl egress' (this program under the name kubectl-egress) shows the whole cluster, and has
the command migrate.`

// egressOptions are the flags that several egress commands share.
type egressOptions struct {
	socket string
	// journal is proxyArguments.egress-snat-journal of the configuration.
	journal   string
	config    string
	output    string
	namespace string
	watch     bool
	noHeaders bool
	all       bool

	// desk is set for 'kubectl egress', which asks the API server and no node.
	desk *deskOptions
}

func newEgressCommand() *cobra.Command {
	o := &egressOptions{}
	c := group("egress", "Show egress SNAT on this node",
		newEgressListCommand(o), newEgressAddressesCommand(o), newEgressRefusedCommand(o), newEgressExplainCommand(o), newEgressVerifyCommand(o),
		newEgressPoolCommand(o), newEgressDrainCommand(o), newEgressUndrainCommand(o), newEgressTopCommand(o), newEgressWhoCommand(o), newEgressCollectCommand(o), newEgressPolicyCommand(o))
	c.Long = egressLong
	c.PersistentFlags().StringVar(&o.socket, "socket", status.DefaultSocket, "The socket of the running node.")
	c.PersistentFlags().StringVar(&o.config, "config", "", "The node's configuration, which names the socket in place of --socket.")
	c.MarkFlagsMutuallyExclusive("socket", "config")
	c.PersistentPreRunE = func(*cobra.Command, []string) error { return o.readConfig() }
	return c
}

// readConfig takes the socket of a node's configuration, if one is given.
func (o *egressOptions) readConfig() error {
	if o.config == "" {
		return nil
	}
	config, err := nodeconfig.Load(o.config)
	if err != nil {
		return err
	}
	o.socket = config.Last("egress-snat-socket", status.DefaultSocket)
	o.journal = config.Last("egress-snat-journal", o.journal)
	return nil
}

// The values of --output.
const (
	asTable = "table"
	asWide  = "wide"
	asJSON  = "json"
	asYAML  = "yaml"
)

var outputs = []string{asTable, asWide, asJSON, asYAML}

// addOutput adds the flag --output.
func (o *egressOptions) addOutput(c *cobra.Command) {
	c.Flags().StringVarP(&o.output, "output", "o", asTable, "Format of the output: "+strings.Join(outputs, ", ")+".")
	complete(c, "output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
}

// addListing adds the flags of the commands that print a listing.
func (o *egressOptions) addListing(c *cobra.Command) {
	o.addOutput(c)
	if o.desk == nil {
		c.Flags().StringVarP(&o.namespace, "namespace", "n", "", "Show only Services of this namespace.")
		complete(c, "namespace", o.completeNamespaces)
	}
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print the table, then each change, until interrupted.")
	c.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Do not print the headers of a table.")
}

// addAll adds the flag --all of the listings of a plan.
func (o *egressOptions) addAll(c *cobra.Command) {
	if o.desk != nil {
		return // it knows no node
	}
	c.Flags().BoolVar(&o.all, "all", false, "List those of the whole cluster, not only those of this node.")
}

// complete sets the completion of a flag that c has.
func complete(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag does not exist: a bug that any test finds
	}
}

func (o *egressOptions) checkOutput() error {
	if !slices.Contains(outputs, o.output) {
		return fmt.Errorf("--output: invalid value %q: expected %s or %s", o.output, strings.Join(outputs[:len(outputs)-1], ", "), outputs[len(outputs)-1])
	}
	return nil
}

func (o *egressOptions) client() *status.Client { return status.NewClient(o.socket) }

// source is who knows how egress SNAT stands: a node, or with 'kubectl egress' the API server.
type source interface {
	Snapshot(ctx context.Context) (status.Snapshot, error)
	Watch(ctx context.Context, see func(status.Snapshot) error) error
	Pool(ctx context.Context) (status.Pool, error)
}

func (o *egressOptions) source() (source, error) {
	if o.desk != nil {
		return o.desk.source()
	}
	return o.client(), nil
}

// snapshot asks once.
func (o *egressOptions) snapshot(ctx context.Context) (status.Snapshot, error) {
	source, err := o.source()
	if err != nil {
		return status.Snapshot{}, err
	}
	return source.Snapshot(ctx)
}

// standing has the fields that every JSON and YAML document of the egress commands has. These
// documents are an interface of the project: fields may be added, but not changed or removed.
type standing struct {
	// Node is the node's name; empty if no node was asked.
	Node string `json:"node,omitempty"`
	// Ready: the node has written all of its rules since it started. It is nil if no node was asked.
	Ready *bool `json:"ready,omitempty"`
	// Problems are the reasons for which the kernel may not have the planned rules.
	Problems []string `json:"problems"`
	// Steering is how packets get to the nodes that have their egress IPs: off, vxlan or direct. It is
	// empty if the node's version does not know of steering.
	Steering string `json:"steering,omitempty"`
	// LeftOut is what the user may not read, and what that means.
	LeftOut []string `json:"leftOut,omitempty"`

	// fast is which flows take the fast path of the node; nil if it has none.
	fast *status.FastPath
	// inVain: Services claim egress IPs, but none of them is listed. holdersUnread and partly are as in a Snapshot.
	inVain, holdersUnread, partly bool
	// faults are those of Problems that are between nodes, undelivered those of them that keep packets from getting to other nodes.
	faults, undelivered []string
}

func standingOf(s status.Snapshot) standing {
	now := standing{Node: s.Node, Problems: append([]string{}, s.Problems()...), Steering: s.Steering, LeftOut: s.LeftOut, fast: s.FastPath, faults: s.SteeringProblems, undelivered: s.Undelivered}
	if !s.FromAPI {
		now.Ready = &s.Ready
	}
	claims := func(f status.Family) bool { return len(f.Input.Claims) > 0 }
	now.inVain = len(s.Addresses) == 0 && slices.ContainsFunc(s.Families, claims)
	now.holdersUnread, now.partly = s.HoldersUnread, s.Partly
	return now
}

// faultsOf returns those of some faults of steering that are about an IP family.
func faultsOf(faults []string, family string) []string {
	other := map[string]string{"IPv4": "IPv6: ", "IPv6": "IPv4: "}[family]
	return slices.DeleteFunc(slices.Clone(faults), func(fault string) bool { return strings.HasPrefix(fault, other) })
}

// printLines prints lines in which others may have their say, each behind the prefix.
func printLines(w io.Writer, prefix string, lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, kernel.Printable(prefix+line)); err != nil {
			return err
		}
	}
	return nil
}

// warn prints problems as warnings.
func warn(w io.Writer, problems []string) error { return printLines(w, status.Warning, problems) }

// errIncomplete ends a command that has shown what the user may read, and has said what is left out. Another error comes first.
var errIncomplete = errors.New("the user may not read everything")

// tellLeftOut prints what is left out.
func tellLeftOut(w io.Writer, leftOut []string) error { return printLines(w, "left out: ", leftOut) }

// asFarAsRead returns text, which says that something is not there, for a user who may not read everything if something is left out.
func asFarAsRead(text string, leftOut []string) string {
	if len(leftOut) > 0 {
		return "as far as could be read, " + text
	}
	return text
}

// incomplete returns errIncomplete if anything is left out.
func incomplete(leftOut []string) error {
	if len(leftOut) > 0 {
		return errIncomplete
	}
	return nil
}

// ofCluster returns s with the plans of the whole cluster.
func ofCluster(s status.Snapshot) status.Snapshot {
	if s.FromAPI {
		return s
	}
	s.Families = slices.Clone(s.Families)
	for i, f := range s.Families {
		s.Families[i] = f.OfCluster()
	}
	return s
}

// explainers returns an Explainer for each IP family of a snapshot, in the same order.
func explainers(s status.Snapshot) []*plan.Explainer {
	var result []*plan.Explainer
	for _, f := range s.Families {
		result = append(result, plan.NewExplainer(f.Input, f.Plan))
	}
	return result
}

func (o *egressOptions) completeNamespaces(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return o.complete(c.Context(), namespacesOf)
}

// complete asks the node for completions. If the node does not answer there are none: an error
// would garble the command line that the user is typing.
func (o *egressOptions) complete(ctx context.Context, offers func(status.Snapshot) []cobra.Completion) ([]cobra.Completion, cobra.ShellCompDirective) {
	if ctx == nil { // in tests completion runs without Main's context
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	snapshot, err := o.snapshot(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offers(snapshot), cobra.ShellCompDirectiveNoFileComp
}
