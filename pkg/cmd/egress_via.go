package cmd

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

// The ways, besides those of package kernel, and states in [status.Address].
const (
	wayHere        = "here"
	stateLost      = "lost"
	stateUnclaimed = "unclaimed"
)

// via says what this node does with packets that need an egress IP. The zero via stands for packets
// about which another node decides.
type via struct {
	// Way is one of those in [status.Address].
	Way string `json:"way"`
	// Node is the node that the packets are sent to; empty with other ways.
	Node string `json:"node,omitempty"`
}

// String returns the cell of a table.
func (v via) String() string {
	switch v.Way {
	case "":
		return "-"
	case wayHere:
		return v.Way
	case string(kernel.ToNode):
		return v.Node
	}
	return "<dropped>"
}

func viaOf(a status.Address) via {
	if a.Way == string(kernel.ToNode) {
		return via{a.Way, a.Holder}
	}
	return via{Way: a.Way}
}

// addresses are the egress IPs of which it is known where they are: none without steering.
type addresses struct {
	of map[netip.Addr]*status.Address
	// fromAPI: they are known by no node. unknown: nothing is known although packets are steered.
	fromAPI, unknown bool
}

func knownBy(s status.Snapshot) addresses {
	result := addresses{of: make(map[netip.Addr]*status.Address, len(s.Addresses)), fromAPI: s.FromAPI}
	for i, a := range s.Addresses {
		result.of[a.IP] = &s.Addresses[i]
	}
	result.unknown = s.FromAPI && s.Steering != string(holders.Off) && len(s.Addresses) == 0
	return result
}

// via says what is done with packets of a pod that need ip: by the node that was asked, or else by the pod's. A node
// uses an address that it knows nothing of.
func (known addresses) via(ip netip.Addr, podNode string) via {
	switch a := known.of[ip]; {
	case known.unknown:
		return via{}
	case a == nil, known.fromAPI && a.Way == string(kernel.ToNode) && a.Holder == podNode:
		return via{Way: wayHere}
	default:
		return viaOf(*a)
	}
}

// describeAddress says where an egress IP is.
func describeAddress(a status.Address, now standing) string {
	text := "on " + nodeName(a.Holder, now)
	switch {
	case a.State == stateUnclaimed && a.Way == wayHere:
		text = fmt.Sprintf("no node has %s on an interface, so it is used where its pods run", a.IP)
	case a.State == stateUnclaimed:
		text = fmt.Sprintf("no node has %s on an interface", a.IP)
	case a.State == stateLost:
		text = "lost with " + a.Holder
	}
	var details []string
	if a.Epoch > 0 {
		details = append(details, fmt.Sprintf("epoch %d", a.Epoch))
	}
	if a.Known != "" {
		details = append(details, "known by "+a.Known)
	}
	if len(details) > 0 {
		text += " (" + strings.Join(details, ", ") + ")"
	}
	if len(a.Conflict) > 0 {
		text += "; conflict: it is also on " + strings.Join(a.Conflict, ", ") + ", so answers may go there; remove it from all nodes but one"
	}
	return text
}

// nodeName returns what to call a node.
func nodeName(name string, now standing) string {
	switch name {
	case "":
		return "its node"
	case now.Node:
		return "this node"
	}
	return name
}

// whyDropped says why no packet leaves from an address.
func whyDropped(a status.Address) string {
	if a.State == stateUnclaimed {
		return fmt.Sprintf("no node has %s and egress-snat-steering is required. Put the address on an interface of a node", a.IP)
	}
	text := fmt.Sprintf("%s, which %s had, has been lost", a.IP, a.Holder)
	if !a.Since.IsZero() {
		text += " since " + a.Since.Format(time.RFC3339)
	}
	if a.Why != "" {
		text += " (" + a.Why + ")"
	}
	return text + ". Bring that node back, or put the address on another one"
}
