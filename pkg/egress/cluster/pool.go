package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// The labels of Nodes that egress IPs are put on, unless another selector is configured. The API server's admission plugin
// NodeRestriction lets no kubelet write the first one. The second one, of before, is still read.
const (
	PoolLabel       = "node-restriction.kubernetes.io/egress-assignable"
	FormerPoolLabel = "network.openshift.io/egress-assignable"
)

// Pool is where this program puts egress IPs by itself.
type Pool struct {
	// Networks are those of the egress IPs that it puts on nodes; none if it puts none.
	Networks []netip.Prefix
	// Nodes selects the nodes that it puts them on.
	Nodes labels.Selector
	// Former is a label of Nodes that are selected as well; empty for none.
	Former string
}

// LabelKeys are those of Nodes that select the pool's; none if there is no pool.
func (p Pool) LabelKeys() (keys []string) {
	if len(p.Networks) == 0 {
		return nil
	}
	requirements, _ := p.Nodes.Requirements()
	for _, r := range requirements {
		keys = append(keys, r.Key())
	}
	if p.Former != "" {
		keys = append(keys, p.Former)
	}
	return keys
}

// Selects tells whether a node with these labels is in the pool.
func (p Pool) Selects(node labels.Set) bool { return p.Nodes.Matches(node) || p.SelectsByFormer(node) }

// SelectsByFormer tells whether it is by its former label alone.
func (p Pool) SelectsByFormer(node labels.Set) bool {
	return p.Former != "" && node.Has(p.Former) && !p.Nodes.Matches(node)
}

// isProtected tells whether no kubelet can have its Node selected, if the API server has NodeRestriction: one of the labels that
// the selector asks for is of Kubernetes, and none of those that kubelets write.
func (p Pool) isProtected() bool {
	requirements, _ := p.Nodes.Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		switch r.Operator() {
		case selection.NotIn, selection.NotEquals, selection.DoesNotExist:
			return false
		}
		domain, _, named := strings.Cut(r.Key(), "/")
		of := func(suffix string) bool { return domain == suffix || strings.HasSuffix(domain, "."+suffix) }
		return named && (of("kubernetes.io") || of("k8s.io")) && !kubeletapis.IsKubeletLabel(r.Key())
	})
}

// SelectorMessage returns what is wrong with the configured selector; empty if nothing is.
func (p Pool) SelectorMessage() string {
	if p.isProtected() {
		return ""
	}
	return fmt.Sprintf("Any kubelet can have egress IPs put on its own node, because it may write the labels of proxyArguments.egress-snat-assign-nodes (%q). Use a label that NodeRestriction protects, for example %s.",
		p.Nodes, PoolLabel)
}

// Has tells whether the pool puts an address on nodes, if it is an egress IP.
func (p Pool) Has(ip netip.Addr) bool {
	return slices.ContainsFunc(p.Networks, func(n netip.Prefix) bool { return n.Contains(ip) })
}
