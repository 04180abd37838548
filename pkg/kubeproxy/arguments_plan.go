package kubeproxy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/pflag"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/nodeconfig"
)

// planArguments are those that the plan of the whole cluster depends on, or where its egress IPs are. None is a secret, or
// names a file of a node.
var planArguments = []string{
	clusterCIDRKey, enabledKey, protocolsKey, excludeCIDRsKey, excludeNodesKey, allowedCIDRsKey, namespaceCIDRsKey, allowNodeIPsKey,
	loadBalancersKey, steeringKey, transportKey, leaseNamespaceKey, assignCIDRsKey, assignNodesKey,
}

// mostPublished bounds what a node publishes, in bytes: every node reads all Leases, each time that they are renewed.
const mostPublished = 1 << 10

// published returns those of planArguments that were given, and the cluster CIDRs, for the node's Lease; nothing if they
// are too many to publish.
func published(own *pflag.FlagSet, clusterCIDRs []netip.Prefix) string {
	given := map[string][]string{}
	for _, cidr := range clusterCIDRs {
		given[clusterCIDRKey] = append(given[clusterCIDRKey], cidr.String())
	}
	own.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || !slices.Contains(planArguments, f.Name) {
			return
		}
		given[f.Name] = []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			if given[f.Name] = list.GetSlice(); len(given[f.Name]) == 0 {
				given[f.Name] = []string{""} // set to nothing, which differs from not set
			}
		}
	})
	text, err := json.Marshal(given)
	if err != nil || len(text) > mostPublished {
		return ""
	}
	return string(text)
}

// PlanConfig returns what the plan of the whole cluster depends on in a node's configuration. It takes no other argument, and
// no file that the configuration names has to be there.
func PlanConfig(config *nodeconfig.Config) (egress.Config, error) {
	trimmed := *config
	trimmed.NodeConfig.ProxyArguments = map[string][]string{}
	normalize := newArguments().normalize
	for key, values := range config.NodeConfig.ProxyArguments {
		if slices.Contains(planArguments, normalize(key)) {
			trimmed.NodeConfig.ProxyArguments[key] = values
		}
	}
	args, err := setArguments(&trimmed)
	if err != nil {
		return egress.Config{}, err
	}
	p := &Proxy{options: args.options, config: &trimmed, flags: args.egress, extension: args.extension()}
	if err := p.takeEgressFlags(); err != nil {
		return egress.Config{}, err
	}
	if !p.flags.enabled {
		return egress.Config{}, config.Errorf("proxyArguments."+enabledKey, "egress SNAT is off on the nodes")
	}
	return p.extension, nil
}

// PublishedConfig is PlanConfig of what a node has published. The source says where it is, for messages.
func PublishedConfig(source, text string) (egress.Config, error) {
	document, err := json.Marshal(map[string]any{"kind": "NodeConfig", "apiVersion": "v1", "proxyArguments": json.RawMessage(text)})
	if err != nil {
		return egress.Config{}, fmt.Errorf("%s is not JSON: %w", source, err)
	}
	config, err := nodeconfig.Parse(source, document)
	if err != nil {
		return egress.Config{}, err
	}
	return PlanConfig(config)
}
