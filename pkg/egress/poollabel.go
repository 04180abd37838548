package egress

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// The labels of Nodes that egress IPs are put on, unless another selector is configured. The API server's admission plugin
// NodeRestriction lets no kubelet write the first one. The second one, of before, is still read.
const (
	PoolLabel       = "node-restriction.kubernetes.io/egress-assignable"
	FormerPoolLabel = "network.openshift.io/egress-assignable"
)

// poolLabelUnprotected is the reason of Events about Nodes that are in the pool by a label that their kubelets may write.
const poolLabelUnprotected plan.Reason = "EgressLabelUnprotected"

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

// selects tells whether a node with these labels is in the pool.
func (p Pool) selects(node labels.Set) bool { return p.Nodes.Matches(node) || p.selectsByFormer(node) }

// selectsByFormer tells whether it is by its former label alone.
func (p Pool) selectsByFormer(node labels.Set) bool {
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

// selectorMessage returns what is wrong with the configured selector; empty if nothing is.
func (p Pool) selectorMessage() string {
	if p.isProtected() {
		return ""
	}
	return fmt.Sprintf("Any kubelet can have egress IPs put on its own node, because it may write the labels of proxyArguments.egress-snat-assign-nodes (%q). Use a label that NodeRestriction protects, for example %s.",
		p.Nodes, PoolLabel)
}

// warnOfSelector logs that kubelets may have their own Nodes selected.
func (p *poolNode) warnOfSelector() {
	if message := p.extension.config.Pool.selectorMessage(); message != "" {
		p.logger.Error(nil, message)
	}
}

// labelMessages returns, by their names, what is wrong with the labels of Nodes that are in the pool by the former label alone, and
// of the first one if that is wrong with the selector of all.
func (p *poolNode) labelMessages() map[string]string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	messages := make(map[string]string, len(p.former))
	if message := p.extension.config.Pool.selectorMessage(); message != "" && len(p.nodes) > 0 {
		messages[slices.Min(slices.Collect(maps.Keys(p.nodes)))] = message
	}
	for name := range p.former {
		messages[name] = fmt.Sprintf("The node %s gets egress IPs by the label %s, which its kubelet may write. If that is meant, run 'kubectl label node %s %s= %s-'; if not, remove the label.",
			name, FormerPoolLabel, name, PoolLabel, FormerPoolLabel)
	}
	return messages
}

// labelTroubles are those of Nodes in the pool by a label that kubelets may write.
func (p *poolNode) labelTroubles() map[plan.Service]trouble {
	troubles := map[plan.Service]trouble{}
	for name, message := range p.labelMessages() {
		troubles[aboutNode(name)] = trouble{reason: poolLabelUnprotected, note: message}
	}
	return troubles
}

// labelWarnings are the same for 'openshift egress verify'.
func (p *poolNode) labelWarnings() (warnings []string) {
	messages := p.labelMessages()
	for _, name := range slices.Sorted(maps.Keys(messages)) {
		warnings = append(warnings, status.Warning+messages[name])
	}
	return warnings
}
