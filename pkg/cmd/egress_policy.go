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

const egressPolicyLong = `Prints a ValidatingAdmissionPolicy. With it, the API server refuses a Service at apply if the nodes would
refuse the egress IP that the Service claims. The policy is made from a node's configuration; no node has to
run. Print and apply it again when one of these proxyArguments changes: cluster-cidr,
egress-snat-allowed-cidrs, egress-snat-namespace-cidrs, egress-snat-load-balancer-ips,
egress-snat-protocols, egress-snat-steering.

It checks what can be decided from the Service itself: InvalidAddress, AddressInCluster by cluster-cidr,
NotAllowed by the arguments above, InvalidAnnotation, InvalidProtocol ('openshift egress refused --help'
explains them), and the annotation network.openshift.io/egress-port-block. Claims that depend on other
objects, such as an older Service with the same address, are refused later by the nodes, with an Event about
the Service.

An existing Service is checked when its spec, its annotations for egress SNAT or its label for another proxy
change. External IPs have to be written as the API server prints them: without leading zeros,
and IPv4 not in IPv6 form. If the API server cannot evaluate the policy, it lets the Service pass.`

const egressPolicyExample = `  openshift egress policy --config=/etc/origin/node/node-config.yaml | kubectl apply -f -`

func newEgressPolicyCommand(common *egressOptions) *cobra.Command {
	c := plain("policy", "Print a policy by which the API server refuses claims at apply", egressPolicyLong, egressPolicyExample, func(c *cobra.Command) error {
		config, err := nodeconfig.Load(cmp.Or(common.config, defaultConfig))
		if err != nil {
			return err
		}
		plan, err := kubeproxy.PlanConfig(config)
		if err != nil {
			return err
		}
		return printPolicy(c.OutOrStdout(), plan.Config)
	})
	c.PersistentPreRunE = func(*cobra.Command, []string) error { return nil } // no node is asked
	return c
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
