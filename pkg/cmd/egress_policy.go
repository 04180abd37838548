package cmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/kubeproxy"
	"github.com/openshift/origin-node/pkg/nodeconfig"
)

const egressPolicyLong = `Prints a ValidatingAdmissionPolicy by which the API server refuses, when somebody applies it, a Service
that claims an egress IP which the nodes would refuse it. It is made from a node's configuration; no node
has to run. Make and apply it anew when these proxyArguments change: cluster-cidr,
egress-snat-allowed-cidrs, egress-snat-namespace-cidrs, egress-snat-load-balancer-ips, egress-snat-protocols.

It decides what the Service alone decides: InvalidAddress, AddressInCluster by cluster-cidr, NotAllowed by
the arguments above, InvalidAnnotation and InvalidProtocol ('openshift egress refused --help' explains
them). What depends on other objects, such as an older Service with the same address, nodes refuse later, by
an Event of the Service.

A Service that was there before is judged when its spec, its annotations of egress SNAT or its label for
another proxy change. External IPs have to be written as the API server prints them: without leading zeros,
and IPv4 not in IPv6 form. If the API server cannot evaluate the policy, it lets the Service pass.`

const egressPolicyExample = `  openshift egress policy --config=/etc/origin/node/node-config.yaml | kubectl apply -f -`

func newEgressPolicyCommand(common *egressOptions) *cobra.Command {
	return &cobra.Command{
		Use:               "policy",
		Short:             "Print a policy by which the API server refuses claims at apply",
		Long:              egressPolicyLong,
		Example:           egressPolicyExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil }, // no node is asked
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := nodeconfig.Load(cmp.Or(common.config, defaultConfig))
			if err != nil {
				return err
			}
			plan, err := kubeproxy.PlanConfig(config)
			if err != nil {
				return err
			}
			return printPolicy(c.OutOrStdout(), plan.Config)
		},
	}
}

func printPolicy(out io.Writer, config cluster.Config) error {
	policy, binding := cluster.AdmissionPolicy(config)
	for _, object := range []any{policy, binding} {
		text, err := manifestOf(object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// manifestOf returns an object without what only the API server writes.
func manifestOf(object any) ([]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	delete(fields, "status")
	return yaml.Marshal(fields)
}
