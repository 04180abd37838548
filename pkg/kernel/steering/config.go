package steering

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
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
	// AssignPort is the port, UDP and TCP, by which the nodes of the pool speak to each other; 0 if there is none.
	// Only nodes may speak to it.
	AssignPort uint16
	// MarkMask has the bits of a packet's mark that are ours: at least six, in a row.
	MarkMask uint32
	// PortBlocks: pods may have ports of egress IPs for themselves ([kernel.Steering].Blocks). Without it the table has nothing of that.
	PortBlocks bool
	// Fast is the fast path of established flows; nil for none.
	Fast *fastpath.Path
}

// nodesPort is a port to which only nodes may speak.
type nodesPort struct {
	number   uint16
	protocol byte
	purpose  string
	// tunnel: each node speaks to it under its own hardware address. tracked: it has flows, as other ports do.
	tunnel, tracked bool
}

// ports are those to which only nodes may speak.
func (c Config) ports() (ports []nodesPort) {
	if c.Transport == VXLAN {
		ports = append(ports, nodesPort{number: c.Port, protocol: unix.IPPROTO_UDP, purpose: "the tunnel", tunnel: true})
	}
	if c.AnnouncePort != 0 {
		ports = append(ports, nodesPort{number: c.AnnouncePort, protocol: unix.IPPROTO_UDP, purpose: "direct announcements"})
	}
	if c.AssignPort != 0 {
		ports = append(ports,
			nodesPort{number: c.AssignPort, protocol: unix.IPPROTO_UDP, purpose: "the pool", tracked: true},
			nodesPort{number: c.AssignPort, protocol: unix.IPPROTO_TCP, purpose: "the pool", tracked: true})
	}
	return ports
}

// spoken tells whether nodes speak to each other in this family.
func (c Config) spoken() bool {
	return c.NodeIP.IsValid() && c.NodeIP.Is4() == (c.Family == kernel.IPv4)
}

// judgesProcesses tells whether there is anything that a process of this node must not send in this family: to ports of other
// nodes, or from others' addresses, which IPv6 alone lets it try.
func (c Config) judgesProcesses() bool {
	return c.Family == kernel.IPv6 || c.spoken() && len(c.ports()) > 0
}

// hasTunnel tells whether packets of the tunnel itself are of this family.
func (c Config) hasTunnel() bool { return c.Transport == VXLAN && c.spoken() }
