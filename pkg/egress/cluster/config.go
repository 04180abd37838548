package cluster

import (
	"net/netip"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/placement"
)

// Config is what plans follow from beside the objects. Networks are of both IP families.
type Config struct {
	// NodeName is the name of this node's Node object.
	NodeName string
	// Scope says whose pods rules are written for; those of this node if empty.
	Scope placement.Scope
	// ClusterCIDRs are the networks of the cluster's pods. If there are none, OpenShift's
	// Network object tells them. In a family without one nothing is written.
	ClusterCIDRs []netip.Prefix
	// Exclusions are further destinations that are never SNATed.
	Exclusions []netip.Prefix
	// ExcludeNodes: neither are the addresses of the cluster's nodes.
	ExcludeNodes bool
	// AllowNodeIPs: an external IP may be a node's primary address.
	AllowNodeIPs bool
	// AllowedCIDRs are where egress IPs may lie; nil for anywhere.
	AllowedCIDRs []netip.Prefix
	// NamespaceCIDRs are the networks that namespaces are pinned to, as in [plan.Input].
	NamespaceCIDRs map[string][]netip.Prefix
	// AllProtocols: a pod is bound for every IP protocol, not only for those of the ports
	// of its Service.
	AllProtocols bool
	// LoadBalancerIPs: a Service without external IPs has those that its load balancer
	// gave it.
	LoadBalancerIPs bool
	// Steering is whether packets are sent to the nodes that hold their egress IPs.
	Steering Steering
	// Pool is where this program puts egress IPs by itself.
	Pool Pool
	// KeptNodes is the file in which this node keeps what Nodes registered with; nothing is kept if it is empty.
	KeptNodes string
}

// Steering is whether packets are sent to the nodes that hold their egress IPs.
type Steering struct {
	// Mode says what becomes of packets whose egress IP no node holds. Nothing is steered if it is
	// [holders.Off] or empty.
	Mode holders.Mode
	// Unavailable is why this node steers nothing although it was asked to; nil otherwise.
	Unavailable error
}

// Off tells whether nothing is steered.
func (s Steering) Off() bool { return s.Mode == "" || s.Mode == holders.Off }
