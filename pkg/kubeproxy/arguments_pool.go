package kubeproxy

import (
	"errors"
	"net/netip"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/poolnode"
)

// poolFlags are the values of the arguments that say which egress IPs are put on which nodes.
type poolFlags struct {
	cidrs []string
	nodes string
	port  uint16
	// nodesGiven: the configuration has the selector.
	nodesGiven bool
}

// The names of these arguments.
const (
	assignCIDRsKey = "egress-snat-assign-cidrs"
	assignNodesKey = "egress-snat-assign-nodes"
	assignPortKey  = "egress-snat-assign-port"
)

func (f *poolFlags) add(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.cidrs, assignCIDRsKey, nil, "Networks whose egress IPs this program puts on nodes, and moves when a node fails. It does so for all egress IPs in them that Services have been granted. "+
		"Each of these nodes needs an interface with a subnet that contains the addresses. "+
		"The networks must not contain nodes' addresses, which are ignored there. Without this argument, other software places the addresses, for example keepalived.")
	fs.StringVar(&f.nodes, assignNodesKey, cluster.PoolLabel, "A label selector: the nodes that these egress IPs are put on. A pool of three or more nodes survives the loss of one; "+
		"in a pool of two, the remaining node needs a default gateway that answers. Use a label that no kubelet can give its own Node, such as one of node-restriction.kubernetes.io. "+
		"If this is not set, nodes with the former label "+cluster.FormerPoolLabel+" get them, too, with a warning: set it when all nodes have the new label.")
	fs.Uint16Var(&f.port, assignPortKey, 7947, "The port, UDP and TCP, by which these nodes find out whether the others are alive. It must be open between them. "+
		"Their messages are encrypted with the keys of egress-snat-key-file, or with the keys that the nodes share. Messages of a node without a key are ignored.")
}

// takePool parses these arguments. Steering must have been taken.
func (p *Proxy) takePool() error {
	f := p.flags.pool
	var errs []error
	complain := func(key, format string, args ...any) {
		errs = append(errs, p.config.Errorf("proxyArguments."+key, format, args...))
	}
	networks, err := p.parseCIDRs(assignCIDRsKey, f.cidrs, parseCIDR, "a network of egress IPs, for example 203.0.113.0/28")
	errs = append(errs, err)
	selector, err := labels.Parse(f.nodes)
	if err != nil {
		complain(assignNodesKey, "invalid value %q: expected a label selector: %w", f.nodes, err)
	} else if len(networks) > 0 && selector.Empty() {
		complain(assignNodesKey, "the selector is empty: name a label of the nodes that egress IPs are put on")
	}
	if steering := p.flags.steering; f.port == 0 || len(networks) > 0 && (f.port == steering.port || f.port == steering.announcePort) {
		complain(assignPortKey, "invalid value %d: expected a port from 1 to 65535 that is not the tunnel's or that of announcements", f.port)
	}
	if len(networks) > 0 && !p.flags.enabled {
		complain(assignCIDRsKey, "egress IPs are put on nodes for egress SNAT, which is off: remove this argument, or set proxyArguments.egress-snat to \"true\"")
	}
	if len(networks) > 0 && p.extension.Steering.Mode == holders.Off {
		complain(assignCIDRsKey, "egress IPs cannot be put on nodes without steering, or without an API server: remove this argument, or change %s", steeringKey)
	}
	if len(networks) > 0 && p.flags.socket == "" {
		complain(assignCIDRsKey, "a node of the pool must be drained before it is shut down, by 'openshift egress drain', which needs %s", socketKey)
	}
	for i, network := range networks {
		for _, inside := range overlapping(network, p.extension.ClusterCIDRs) {
			complain(assignCIDRsKey, "%s overlaps %s, a network of the cluster's pods, in which no egress IP may lie; remove it, or name a smaller network", network, inside)
		}
		if allowed := p.extension.AllowedCIDRs; allowed != nil && len(overlapping(network, allowed)) == 0 {
			complain(assignCIDRsKey, "%s is outside of %s, so no egress IP may lie in it; correct one of them", network, allowedCIDRsKey)
		}
		for _, other := range overlapping(network, networks[:i]) {
			complain(assignCIDRsKey, "%s overlaps %s; keep one of them", network, other)
		}
	}
	former := cluster.FormerPoolLabel
	if f.nodesGiven {
		former = ""
	}
	p.extension.Pool = cluster.Pool{Networks: networks, Nodes: selector, Former: former}
	p.extension.Membership = poolnode.Membership{Port: f.port, DrainFile: drainNote(p.flags.socket)}
	if len(networks) > 0 {
		p.extension.Ways.Kernel.AssignPort = f.port
	}
	return errors.Join(errs...)
}

// overlapping returns those of a list that overlap a network.
func overlapping(network netip.Prefix, list []netip.Prefix) (result []netip.Prefix) {
	for _, other := range list {
		if network.Overlaps(other) {
			result = append(result, other)
		}
	}
	return result
}
