package tell

import (
	"slices"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel"
)

// How many lines the log has on Nodes' addresses: so many at once, and one more each so often.
const (
	linesOfNodes  = 20
	nodeLineEvery = time.Minute
)

// NodeFaultLog logs what Nodes should not tell, when it is new. It is for one goroutine.
type NodeFaultLog struct {
	logger klog.Logger
	lines  flowcontrol.PassiveRateLimiter
	known  []plan.NodeFault
}

// NewNodeFaultLog returns one that has logged nothing.
func NewNodeFaultLog(logger klog.Logger, clock clock.PassiveClock) *NodeFaultLog {
	return &NodeFaultLog{logger: logger, lines: newLineLimit(linesOfNodes, nodeLineEvery, clock)}
}

// Log takes all that Nodes should not tell now.
func (l *NodeFaultLog) Log(faults []plan.NodeFault) {
	if slices.Equal(l.known, faults) {
		return
	}
	for _, fault := range kernel.Without(faults, l.known) {
		if l.lines.TryAccept() {
			l.logger.Error(nil, "A Node object reports an address that is not its own, or that it should not have", "node", fault.Node, "address", fault.Address, "message", fault.Message)
		}
	}
	l.known = faults
}
