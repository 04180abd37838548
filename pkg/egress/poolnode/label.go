package poolnode

import (
	"fmt"
	"maps"
	"slices"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/egress/tell"
)

// poolLabelUnprotected is the reason of Events about Nodes that are in the pool by a label that their kubelets may write.
const poolLabelUnprotected plan.Reason = "EgressLabelUnprotected"

// warnOfSelector logs that kubelets may have their own Nodes selected.
func (p *Part) warnOfSelector() {
	if message := p.state.Config.Pool.SelectorMessage(); message != "" {
		p.logger.Error(nil, message)
	}
}

// labelMessages returns, by their names, what is wrong with the labels of Nodes that are in the pool by the former label alone, and
// of the first one if that is wrong with the selector of all.
func (p *Part) labelMessages() map[string]string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	messages := make(map[string]string, len(p.former))
	if message := p.state.Config.Pool.SelectorMessage(); message != "" && len(p.nodes) > 0 {
		messages[slices.Min(slices.Collect(maps.Keys(p.nodes)))] = message
	}
	for name := range p.former {
		messages[name] = fmt.Sprintf("The node %s gets egress IPs by the label %s, which its kubelet may write. If that is meant, run 'kubectl label node %s %s= %s-'; if not, remove the label.",
			name, cluster.FormerPoolLabel, name, cluster.PoolLabel, cluster.FormerPoolLabel)
	}
	return messages
}

// LabelTroubles are those of Nodes in the pool by a label that kubelets may write.
func (p *Part) LabelTroubles() map[plan.Service]tell.Trouble {
	troubles := map[plan.Service]tell.Trouble{}
	for name, message := range p.labelMessages() {
		troubles[tell.AboutNode(name)] = tell.Trouble{Reason: poolLabelUnprotected, Note: message}
	}
	return troubles
}

// LabelWarnings are the same for 'openshift egress verify'.
func (p *Part) LabelWarnings() (warnings []string) {
	messages := p.labelMessages()
	for _, name := range slices.Sorted(maps.Keys(messages)) {
		warnings = append(warnings, status.Warning+messages[name])
	}
	return warnings
}
