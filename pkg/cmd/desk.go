package cmd

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // a kubeconfig that kubectl accepts may name it
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/origin-node/pkg/egress/desk"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/kubeproxy"
	"github.com/openshift/origin-node/pkg/nodeconfig"
)

// Names of the program under which it is a plugin of kubectl. kubectl runs the second one for completions.
const (
	kubectlPlugin     = "kubectl-egress"
	kubectlCompletion = "kubectl_complete-egress"
)

// ExitIncomplete is the exit status of 'kubectl egress' when it has shown only what the user may read.
const ExitIncomplete = 2

const deskLong = `Shows egress SNAT of the whole cluster, with a kubeconfig and no access to a node: which pods
leave from which egress IPs, the refused claims and their reasons, and the nodes that have the
addresses.

The plan is made from the cluster's objects by the same code as on the nodes; the nodes with the
addresses are known from their Leases. What only nodes know is not shown: what their kernels hold,
and pods that are bound by their labels before an EndpointSlice names them. 'openshift egress' on a
node shows that.

The plan depends on the nodes' configuration, which nodes with egress IPs publish in their Leases.
If no node does, or the configuration is too long to publish, give one with --config=FILE.

If you may not list some kind of object, the commands show the rest. They say what is left out on standard
error and in the field leftOut of JSON and YAML, and exit with status 2. After an error they exit with
status 1. images/node/rbac-viewer.yaml has all rights that are needed.`

// deskHelp is what 'kubectl egress' says of a command.
type deskHelp struct{ long, example string }

var deskHelps = map[string]deskHelp{
	"list": {`Lists the pods with egress IPs: one row for each pod and the egress IP that a Service gives it,
sorted by address.

VIA is the node that the packets leave by: "here" if that is the pod's own node, which has the
address or uses it because no node has it; the name of another node, which has it; <dropped> if
that node is lost, or none has the address and steering is required; - if it is not known. NODE is
the pod's node. -o wide adds POD, FIELD and OWNER as 'openshift egress list' has them.

JSON and YAML are those of 'openshift egress list', without node, ready, here and since, and with
leftOut, what you may not read.`, `  # The pods with egress IPs in the namespace of the current context, then each change
  kubectl egress list -w

  # Those of all namespaces, with their names
  kubectl egress list -A -o wide`},
	"refused": {`Lists the refused claims of Services, sorted by Service, with the reasons that
'openshift egress refused --help' explains. NoProxier, AddressOfOtherPod and what a node's CNI plugin
predicts are missing: only nodes know them.`, `  # All refusals with their reasons
  kubectl egress refused -A`},
	"addresses": {`Lists the egress IPs that Services claim and may have in the whole cluster, sorted, and the nodes that announce
them in their Leases; with --namespace, those of one namespace. There are none where steering is off.

HOLDER, EPOCH and the marks (lost) and (conflict) are those of 'openshift egress addresses'. PODS
counts the pods of the whole cluster that leave from the address. A node that is not Ready is lost
when its Lease is 40 s old by the clock of this machine.`, `  # Which node has which egress IP
  kubectl egress addresses

  # All egress IPs, then each change of a holder
  kubectl egress addresses -w`},
	"pool": {`Lists the nodes that egress IPs are put on (proxyArguments.egress-snat-assign-cidrs and
egress-snat-assign-nodes), and below them the addresses that no live node announces.

STATE is live (its Lease is fresh); dead (its Lease is not, or it has no address and its Node is not
Ready); leaving (its label is gone, and it has addresses); or unknown (it has no address, so its
Lease says nothing). Only these nodes know drains, subnets and votes: run 'openshift egress pool' on one
of them.`, `  # The nodes of the pool and how many addresses each has
  kubectl egress pool`},
	"migrate": {egressMigrateLong, egressMigrateExample},
	"who": {`Shows which pod has a source port of an egress IP now (proxyArguments.egress-snat-port-blocks): its
namespace, name and UID, its Service and its node, according to the nodes' Leases. A port that pods share
does not identify a pod: then all pods that have it are listed as candidates. The exit status is 1 if nobody
has the port, or if that is not certain.

For the past, use the nodes' journals: 'openshift egress who --at' on the pod's node, or with --journal for
collected journals.`, `  # Which pod has this port
  kubectl egress who 203.0.113.10:40123

  # Its UID
  kubectl egress who 203.0.113.10:40123 -o json | jq -r '.assignments[].pod.uid'`},
	"explain": {`Explains the source address of the first packet of a pod's new connection, or the claim of a
Service, as 'openshift egress explain' does on a node, but for the rules, which only nodes know. A
Service without a namespace is one of the current namespace.`, `  # The source address of a pod's packets to the outside
  kubectl egress explain 10.128.0.11

  # Why the pods of a Service do not leave from its external IP
  kubectl egress explain web -n shop`},
}

// deskOptions are the flags by which 'kubectl egress' finds the cluster.
type deskOptions struct {
	rules          *clientcmd.ClientConfigLoadingRules
	overrides      clientcmd.ConfigOverrides
	allNamespaces  bool
	leaseNamespace string
	config         string

	// namespace is that of the kubeconfig or of --namespace, which is given if named.
	namespace string
	named     bool
}

// newDeskCommand returns the command line of 'kubectl egress'.
func newDeskCommand() *cobra.Command {
	o := &egressOptions{desk: &deskOptions{rules: clientcmd.NewDefaultClientConfigLoadingRules()}}
	c := group(kubectlPlugin, "Show egress SNAT of a cluster",
		newEgressListCommand(o), newEgressAddressesCommand(o), newEgressRefusedCommand(o), newEgressExplainCommand(o), newEgressPoolCommand(o), newEgressMigrateCommand(o), newEgressWhoCommand(o))
	for _, command := range c.Commands() {
		help := deskHelps[command.Name()]
		command.Long, command.Example = help.long, help.example
		command.PreRunE = func(*cobra.Command, []string) error { return o.desk.findNamespace() }
	}
	c.AddCommand(newVersionCommand())
	c.Long = deskLong
	c.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl egress"}
	c.SilenceErrors, c.SilenceUsage = true, true
	o.desk.add(c.PersistentFlags())
	complete(c, clientcmd.FlagNamespace, o.completeNamespaces)
	return c
}

func (d *deskOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&d.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "The kubeconfig file, in place of those in $KUBECONFIG, or else ~/.kube/config.")
	clientcmd.BindOverrideFlags(&d.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	flags.BoolVarP(&d.allNamespaces, "all-namespaces", "A", false, "Show all namespaces, not only that of --namespace or of the context.")
	flags.StringVar(&d.leaseNamespace, "lease-namespace", "", "The namespace of the nodes' Leases: proxyArguments.egress-snat-lease-namespace of the nodes. The default is that of --config, or origin-node.")
	flags.StringVar(&d.config, "config", "", "The configuration of a node, node-config.yaml, in place of what the nodes publish. Only the proxyArguments that the plan depends on are read.")
}

func (d *deskOptions) clientConfig() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(d.rules, &d.overrides)
}

// findNamespace finds the namespace to show.
func (d *deskOptions) findNamespace() (err error) {
	d.named = d.overrides.Context.Namespace != ""
	d.namespace, _, err = d.clientConfig().Namespace()
	if err != nil {
		return fmt.Errorf("the kubeconfig: %w", err)
	}
	return nil
}

// namespaceOf returns the namespace whose rows are shown; empty for all.
func (d *deskOptions) namespaceOf(clusterWide bool) string {
	if d.allNamespaces || clusterWide && !d.named {
		return metav1.NamespaceAll
	}
	return d.namespace
}

// qualify adds the namespace to the name of a Service that has none.
func (d *deskOptions) qualify(argument string) string {
	if _, err := netip.ParseAddr(argument); err == nil || strings.Contains(argument, "/") {
		return argument
	}
	return d.namespace + "/" + argument
}

// source returns what reads the cluster's API.
func (d *deskOptions) source() (source, error) { return d.reader() }

func (d *deskOptions) reader() (*desk.Desk, error) {
	if err := d.findNamespace(); err != nil { // a completion has not done so yet
		return nil, err
	}
	client, err := d.clientConfig().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig: %w", err)
	}
	client.QPS, client.Burst = 50, 300 // kubectl's
	client.UserAgent = rest.DefaultKubernetesUserAgent()
	result := &desk.Desk{Client: client, Namespace: d.namespace, LeaseNamespace: d.leaseNamespace, Parse: kubeproxy.PublishedConfig}
	if d.config != "" {
		config, err := nodeconfig.Load(d.config)
		if err != nil {
			return nil, err
		}
		plan, err := kubeproxy.PlanConfig(config)
		if err != nil {
			return nil, err
		}
		result.Plan = &plan
		if result.LeaseNamespace == "" {
			result.LeaseNamespace = plan.Ways.LeaseNamespace
		}
	}
	if result.LeaseNamespace == "" {
		result.LeaseNamespace = holders.DefaultNamespace
	}
	return result, nil
}
