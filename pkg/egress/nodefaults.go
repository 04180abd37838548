package egress

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// nodeAddressIgnored is the reason of Events about Nodes with addresses that they should not tell.
const nodeAddressIgnored plan.Reason = "NodeAddressIgnored"

// aboutNode names, among Services, the Node that troubles are about: a Service has a namespace.
func aboutNode(name string) plan.Service { return plan.Service{Name: name} }

// nodeTroubles returns what Nodes should not tell; nothing before there is a plan.
func (e *Extension) nodeTroubles() map[plan.Service][]trouble {
	troubles := map[plan.Service][]trouble{}
	for _, name := range cluster.Families {
		if !e.families[name].planned.Load() {
			continue
		}
		for _, fault := range e.state.NodeFaults(name) {
			about := aboutNode(fault.Node)
			troubles[about] = append(troubles[about], trouble{reason: nodeAddressIgnored, note: fault.Message})
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

// How many lines the log has on Nodes' addresses: so many at once, and one more each so often.
const (
	linesOfNodes  = 20
	nodeLineEvery = time.Minute
)

// nodeFaultLog logs what Nodes should not tell, when it is new. It is for one goroutine.
type nodeFaultLog struct {
	logger klog.Logger
	lines  flowcontrol.PassiveRateLimiter
	known  []plan.NodeFault
}

func newNodeFaultLog(logger klog.Logger, clock clock.PassiveClock) *nodeFaultLog {
	return &nodeFaultLog{logger: logger, lines: newLineLimit(linesOfNodes, nodeLineEvery, clock)}
}

// log takes all that Nodes should not tell now.
func (l *nodeFaultLog) log(faults []plan.NodeFault) {
	if slices.Equal(l.known, faults) {
		return
	}
	before := make(map[plan.NodeFault]bool, len(l.known))
	for _, fault := range l.known {
		before[fault] = true
	}
	for _, fault := range faults {
		if !before[fault] && l.lines.TryAccept() {
			l.logger.Error(nil, "A Node tells an address that is not its own, or that it should not have", "node", fault.Node, "address", fault.Address, "message", fault.Message)
		}
	}
	l.known = faults
}
