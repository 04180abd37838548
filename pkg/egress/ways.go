package egress

import (
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

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
