package holders

import (
	"net/netip"
	"time"
)

// State is what is known of an address's holder.
type State string

// The states of an address, see the package's comment.
const (
	Local     State = "local"
	Remote    State = "remote"
	Lost      State = "lost"
	Unclaimed State = "unclaimed"
)

// Source is how a holder is known.
type Source string

// The sources.
const (
	OwnAddress Source = "own address"
	// LoadBalancer: this node has it, for a load balancer announces it from here.
	LoadBalancer Source = "load balancer"
	Lease        Source = "lease"
	// Announcement is what a node tells the others directly.
	Announcement Source = "announcement"
	// LeaseAndAnnouncement: both say the same.
	LeaseAndAnnouncement Source = "both"
)

// Reason is why an address is lost.
type Reason string

// The reasons.
const (
	// Silent: its node gives no sign of life.
	Silent Reason = "node is silent"
	// Unreachable: its Node has no InternalIP of the family that nodes reach each other by.
	Unreachable Reason = "node has no usable InternalIP"
	// Withdrawn: it was removed from its node, or the Lease or the Node was deleted.
	Withdrawn Reason = "withdrawn"
)

// Holding says who holds an address.
type Holding struct {
	State State
	// Node is the holder's name, of a lost address the last one's; empty if unclaimed.
	Node string
	// Address is that of the other node, if the state is Remote.
	Address netip.Addr
	// Epoch is that of the holder; 0 if unclaimed, and of an own address as long as the Leases are
	// not known.
	Epoch uint64
	// Since is when the address came into this state, with this node; of a lost address, when it was
	// lost. It is zero if unclaimed.
	Since time.Time
	// Known is how the holder is, or was, known.
	Known Source
	// Why an address is lost; empty otherwise.
	Why Reason
}

// Conflict is an address that several nodes have, and say so.
type Conflict struct {
	Address netip.Addr
	// Nodes are their names. The first is the one that counts here.
	Nodes []string
	// Since is when another one said so. While an address moves, both nodes have it for a moment.
	Since time.Time
}

// Mode says what becomes of packets whose egress IP is unclaimed.
type Mode string

// The modes.
const (
	// Auto: they leave from their own node, as without steering.
	Auto Mode = "auto"
	// Required: they do not leave.
	Required Mode = "required"
	// Off: nobody asks.
	Off Mode = "off"
)
