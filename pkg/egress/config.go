package egress

import (
	"time"

	"github.com/openshift/origin-node/pkg/egress/attach"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/poolnode"
	"github.com/openshift/origin-node/pkg/egress/sourceports"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// PortSecurity is whether other pods are kept from using the addresses of bound pods.
type PortSecurity struct {
	Enabled bool
	// Unavailable is why this kernel cannot; nil if it can.
	Unavailable error
}

// Config is what an Extension has to know beside the objects.
type Config struct {
	// Config is what plans follow from.
	cluster.Config
	// Version is the program's; for people.
	Version string
	// Backend is how rules are written, Proxier how the proxier writes its own; iptables if
	// empty.
	Backend, Proxier reconcile.Backend
	// Ways is how packets get to the nodes that hold their egress IPs.
	Ways Ways
	// Membership is how this node takes part in the pool.
	Membership poolnode.Membership
	// Attaching is how the CNI plugin is answered.
	Attaching attach.Config
	// PortBlocks is the number of ports in the blocks of source ports that pods get of their egress IPs; 0 for none.
	PortBlocks int
	// PortSecurity is whether other pods are kept from using the addresses of bound pods.
	PortSecurity PortSecurity
	// Journal is where it is written down which pod has which source ports, if they get blocks.
	Journal sourceports.Journal
	// MinSyncPeriod is the least time between two syncs.
	MinSyncPeriod time.Duration
	// SyncPeriod is the time within which rules that somebody else has removed are back.
	// Twice in it the kernel is looked at.
	SyncPeriod time.Duration
	// Published is what the node's Lease tells of this configuration, as [holders.ConfigurationAnnotation] has it.
	Published string
	// Audit: twice in a sync period the plan is also made of all objects at once, and a
	// difference is logged. For debugging: it costs as much as the cluster is large.
	Audit bool
}

// Ways is how packets get to the nodes that hold their egress IPs.
type Ways struct {
	// LeaseNamespace is where each node tells in a Lease which egress IPs it holds.
	LeaseNamespace string
	// MetalLBNamespace is MetalLB's own; nothing of MetalLB is followed if it is empty.
	MetalLBNamespace string
	// Keys are those of a key file. If there are none, the nodes share some by a Secret in the namespace of the Leases, and KeptKeys
	// is the file in which this node keeps them.
	Keys     holders.Keys
	KeptKeys string
	// Kernel configures the tunnel, the marks and the ports. The IP family and the node's address in it do not
	// count.
	Kernel steering.Config
}

// kernelSteering returns what the kernel's side needs; nil if nothing is steered.
func (c Config) kernelSteering() *steering.Config {
	if c.Steering.Off() {
		return nil
	}
	return &c.Ways.Kernel
}

// Transport says for people how packets get to other nodes.
func (c Config) Transport() string {
	if c.Steering.Off() {
		return string(holders.Off)
	}
	return string(c.Ways.Kernel.Transport)
}

// FollowsMetalLB tells whether what MetalLB announces counts.
func (c Config) FollowsMetalLB() bool { return !c.Steering.Off() && c.Ways.MetalLBNamespace != "" }
