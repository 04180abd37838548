package status

import (
	"context"
	"net/netip"
	"time"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
)

// UsagePath is that of a [Usage], as a [Resource].
const UsagePath = "/v1/usage"

// Usage is what uses the egress IPs of the bindings that a node has written.
type Usage struct {
	Node string    `json:"node"`
	Time time.Time `json:"time"`
	// Seconds are those since the look before, of whoever asked for it. It is zero if there was none within a minute.
	Seconds float64 `json:"seconds,omitempty"`
	// FastPath is what took the fast path since the look before; nil if the node has none, or there was no look.
	FastPath *FastUsage `json:"fastPath,omitempty"`
	// Addresses are sorted.
	Addresses []AddressUsage `json:"addresses"`
}

// FastUsage is how much took the fast path.
type FastUsage struct {
	Packets uint64 `json:"packets"`
}

// AddressUsage is what uses an egress IP.
type AddressUsage struct {
	IP netip.Addr `json:"ip"`
	// Flows are the tracked flows that leave from the address on this node.
	Flows int `json:"flows"`
	// New is how many of Flows and Sent the look before did not see; 0 if there was none.
	New int `json:"new"`
	// Busiest is the destination to which the largest part of the ports is in use, by Protocol: Ports of PortSpace, which are all, or those that
	// pods without a block share.
	Busiest   netip.AddrPort `json:"busiest,omitzero"`
	Protocol  string         `json:"protocol,omitempty"`
	Ports     int            `json:"ports"`
	PortSpace int            `json:"portSpace"`
	// Sent are the flows of this node's pods that leave from another node with the address. Received is how many of Flows
	// are of pods on other nodes.
	Sent     int `json:"sent"`
	Received int `json:"received"`
	// Blocks is how many blocks of source ports this node's pods have of the address, Sharing how many of its pods have none and share ports.
	Blocks  int `json:"blocks,omitempty"`
	Sharing int `json:"sharing,omitempty"`
}

// CountPorts adds which source ports this node's pods have.
func (u *Usage) CountPorts(assignments []portblocks.Assignment) {
	for i := range u.Addresses {
		a := &u.Addresses[i]
		a.Blocks, a.Sharing = 0, 0
		for _, assigned := range assignments {
			switch {
			case assigned.EgressIP != a.IP:
			case assigned.Shared:
				a.Sharing++
			default:
				a.Blocks++
			}
		}
	}
}

// Usage returns what uses the egress IPs. It costs the node a dump of its conntrack table.
func (c *Client) Usage(ctx context.Context) (usage Usage, err error) {
	err = c.Get(ctx, UsagePath, &usage)
	return usage, err
}
