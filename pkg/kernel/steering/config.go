package steering

import (
	"net/netip"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Transport is how packets get to the node that holds their egress IP.
type Transport string

// The transports.
const (
	// VXLAN: through a tunnel, whatever network there is between the nodes.
	VXLAN Transport = "vxlan"
	// Direct: the other node is the next hop, for nodes on one L2 network of which none routes for other nodes' pods.
	Direct Transport = "direct"
)

// Config says how packets of one IP family are steered.
type Config struct {
	Family kernel.Family
	// NodeIP is the address of this node under which the others know it, of either family.
	NodeIP    netip.Addr
	Transport Transport
	// Port is the UDP port of the tunnel.
	Port uint16
	// MarkMask has the bits of a packet's mark that are ours: at least six, in a row.
	MarkMask uint32
}

// hasTunnel tells whether packets of the tunnel itself are of this family.
func (c Config) hasTunnel() bool {
	return c.Transport == VXLAN && c.NodeIP.Is4() == (c.Family == kernel.IPv4)
}
