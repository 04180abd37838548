package portblocks

import (
	"net/netip"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Pod is whose source ports they are.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// IP is its address, of the IP family of the egress IP.
	IP netip.Addr `json:"ip"`
}

// Assignment says that a pod has source ports of an egress IP from a time on.
type Assignment struct {
	Pod Pod `json:"pod"`
	// Service is the one that the egress IP is of, namespace/name.
	Service  string     `json:"service"`
	EgressIP netip.Addr `json:"egressIP"`
	// Ports are the pod's own block, or, if Shared, those that all pods without a block have in common.
	Ports  kernel.Ports `json:"ports"`
	Shared bool         `json:"shared,omitempty"`
	// Second: they are the pod's second block, which it got because its first was full towards some destination.
	Second bool `json:"second,omitempty"`
	// Node is the pod's.
	Node string `json:"node"`
	// Since is zero if it is not known.
	Since time.Time `json:"since,omitzero"`
}
