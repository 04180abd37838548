package egress

import (
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/egress/tell"
)

// nodeAddressIgnored is the reason of Events about Nodes with addresses that they should not tell.
const nodeAddressIgnored plan.Reason = "NodeAddressIgnored"

// nodeTroubles returns what Nodes should not tell; nothing before there is a plan.
func (e *Extension) nodeTroubles() map[plan.Service][]tell.Trouble {
	troubles := map[plan.Service][]tell.Trouble{}
	for _, name := range cluster.Families {
		if !e.families[name].planned.Load() {
			continue
		}
		for _, fault := range e.state.NodeFaults(name) {
			about := tell.AboutNode(fault.Node)
			troubles[about] = append(troubles[about], tell.Trouble{Reason: nodeAddressIgnored, Note: fault.Message})
		}
	}
	return troubles
}

// nodeWarnings returns what Nodes should not tell, for 'openshift egress verify'.
func (e *Extension) nodeWarnings(family v1.IPFamily) (warnings []string) {
	for _, fault := range e.state.NodeFaults(family) {
		warnings = append(warnings, status.Warning+fault.Message)
	}
	return warnings
}
