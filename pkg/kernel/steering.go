package kernel

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
)

// Steering says which way the packets of bound pods take out of the cluster, in one IP family. With
// the zero Steering all of them leave from this node, and nothing arrives from others.
type Steering struct {
	// Self is the address, of either IP family, under which the other nodes know this one. It is
	// invalid on a node that does not steer.
	Self netip.Addr
	// Ways has the egress IPs whose packets do not leave from this node. Packets of all others do.
	Ways map[netip.Addr]Way
	// Held are the egress IPs that this node has, or may get at any moment, and other nodes send packets here for. An address that
	// all nodes use where the pods run is not among them.
	Held map[netip.Addr]bool
	// Absent are those of Held that are not on this node, although packets leave from here: no node has them.
	Absent map[netip.Addr]bool
	// Claimed are the egress IPs that Services claim and may have, sorted. Only a node that has one may send from it.
	Claimed []netip.Addr
	// Nodes are the addresses under which the other nodes know each other, sorted. With a tunnel they are of the IP family of Self,
	// without one of that of the packets. This node takes packets as steered only from these.
	Nodes []netip.Addr
	// Senders are the hardware addresses of Nodes, as far as they are known. They count only without a tunnel: then this node takes
	// packets as steered only from these.
	Senders map[netip.Addr]HardwareAddr
	// Homes are the nodes on which bound pods run, by the nodes' addresses in Nodes or Self, as far as they are known. A packet that
	// begins a flow from such a pod to the outside is dropped unless that node has steered it here. A node that nothing is sent to
	// has no Homes.
	Homes map[netip.Addr]netip.Addr
	// Roaming: pods may leave through other nodes than their own by the network plugin's own devices, and these steer them. Homes drop nothing
	// then.
	Roaming bool
	// Blocks are the source ports of egress IPs that pods have for themselves, sorted by CompareBlocks. What such a pod sends leaves
	// from one of its ports, and what comes to one of them without a flow goes to the pod. A pod may have several.
	Blocks []Block
	// Shared has for each egress IP with blocks the source ports of the pods that have none.
	Shared map[netip.Addr]Ports
}

// HasWay tells whether the packets of an egress IP take a way, and do not leave from this node.
func (s Steering) HasWay(egressIP netip.Addr) bool {
	_, has := s.Ways[egressIP]
	return has
}

// Elsewhere tells whether a pod is known to run on another node.
func (s Steering) Elsewhere(pod netip.Addr) bool {
	home, known := s.Homes[pod]
	return known && home != s.Self
}

// Ports are source ports in a row, both ends included.
type Ports struct {
	First uint16 `json:"first"`
	Last  uint16 `json:"last"`
}

// Contains tells whether port is one of p.
func (p Ports) Contains(port uint16) bool { return p.First <= port && port <= p.Last }

// Size returns how many they are.
func (p Ports) Size() int { return int(p.Last) - int(p.First) + 1 }

// String is as nft writes it: 32000-32511.
func (p Ports) String() string { return fmt.Sprintf("%d-%d", p.First, p.Last) }

// Block is source ports that one pod alone has of an egress IP, inside and outside. Ports.First is a multiple of
// the number of ports, which is a power of two.
type Block struct {
	Pod, EgressIP netip.Addr
	Ports         Ports
	// Second: the pod has another block of the egress IP, its first, which was full towards some destination. What leaves from neither
	// block's ports gets one of the second.
	Second bool `json:"Second,omitempty"`
}

// CompareBlocks is the order of [Steering.Blocks].
func CompareBlocks(a, b Block) int {
	return cmp.Or(a.EgressIP.Compare(b.EgressIP), cmp.Compare(a.Ports.First, b.Ports.First), a.Pod.Compare(b.Pod))
}

// HardwareAddr is an Ethernet address.
type HardwareAddr [6]byte

// String is as nft prints it.
func (a HardwareAddr) String() string { return net.HardwareAddr(a[:]).String() }

// Way is the way that packets take whose egress IP is not on this node.
type Way struct {
	Kind WayKind
	// Node is the address of the node that holds the egress IP, as the other nodes know it; for
	// ToNode alone. It is one of [Steering.Nodes].
	Node netip.Addr
}

// WayKind is a kind of [Way].
type WayKind string

// The kinds of ways.
const (
	// ToNode: another node has the egress IP, and sends the packets on.
	ToNode WayKind = "to node"
	// Blackhole: the node that had the egress IP is lost, or the egress IP is new. Packets are dropped in silence, for a
	// moment: TCP repeats a SYN, and so waits for a node to take the address.
	Blackhole WayKind = "blackhole"
	// Prohibit: no node that packets can be sent to has the egress IP. The pod is told at once, by a reset of a TCP connection that
	// begins, else by ICMP.
	Prohibit WayKind = "prohibit"
)

// Equal tells whether s and o are the same ways, addresses and nodes.
func (s Steering) Equal(o Steering) bool {
	return s.Self == o.Self && maps.Equal(s.Ways, o.Ways) && maps.Equal(s.Held, o.Held) && maps.Equal(s.Absent, o.Absent) && slices.Equal(s.Claimed, o.Claimed) && slices.Equal(s.Nodes, o.Nodes) && maps.Equal(s.Senders, o.Senders) && maps.Equal(s.Homes, o.Homes) &&
		s.Roaming == o.Roaming && slices.Equal(s.Blocks, o.Blocks) && maps.Equal(s.Shared, o.Shared)
}
