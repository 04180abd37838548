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
	// AnnouncePort is the UDP port by which nodes tell each other which egress IPs they hold; 0 if they do
	// not. Packets to it are let through as those of the tunnel are.
	AnnouncePort uint16
	// MarkMask has the bits of a packet's mark that are ours: at least six, in a row.
	MarkMask uint32
}

// ports are those UDP ports to which only nodes may speak, in the family of the packets to them.
func (c Config) ports() (ports []uint16) {
	if c.hasTunnel() {
		ports = append(ports, c.Port)
	}
	if c.AnnouncePort != 0 && c.NodeIP.Is4() == (c.Family == kernel.IPv4) {
		ports = append(ports, c.AnnouncePort)
	}
	return ports
}

// hasTunnel tells whether packets of the tunnel itself are of this family.
func (c Config) hasTunnel() bool {
	return c.Transport == VXLAN && c.NodeIP.Is4() == (c.Family == kernel.IPv4)
}
