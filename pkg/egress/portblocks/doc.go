// Package portblocks gives pods blocks of source ports of their egress IPs. A pod's source ports inside are those that it has outside,
// so an address and a port name the pod, two pods never have one port, and a node that takes an egress IP knows from the port whose
// packet it is (RFC 7422, RFC 6888).
//
// # Ports
//
//	0–1023        nobody's
//	1024–61439    blocks, each aligned to its size: 118 of 512 ports, for example
//	61440–65535   shared by the pods that have no block
//
// A pod has one block, which is the same ports of all of its egress IPs, of both IP families, because it has one
// net.ipv4.ip_local_port_range. Where that cannot be had it shares, for its life: the ports of a running pod do not change.
//
// A pod with nearly all of its block in use towards one destination gets a second block of the same size, once (RFC 6888 allows it). The
// book has that as another pod's, under the ID [Second]. It lies behind the first or in front of it, if possible: then both are one range,
// and the pod's ports inside are those outside. If not, it is any free one: the pod's range grows beside its first block ([Widened]), and
// source NAT translates what is outside of both blocks into the second. Inside, other pods' numbers do not matter.
//
// # Who gives blocks
//
// Nodes claim blocks in the API, in one Lease for each egress IP:
//
//	metadata:
//	  name: egress-ports-203-0-113-10
//	  annotations:
//	    network.openshift.io/egress-port-blocks: '{"1024-1535": {"node": "node-1", "since": "2026-11-27T08:00:00Z"}}'
//
// A write names the version that it changes, so no two nodes have the same block, whatever is cut off from whom. A node keeps a spare
// block for the egress IPs that its pods leave from: 2 to 8 where pods have started within a minute, as many as they were. So a pod that
// starts waits for nobody mostly, and the API server may be away. When half of the spare blocks are left the node claims the others, in
// one write for several pods, when those that start have started. If there is no spare block a pod waits for [Patience] at most, and then
// shares. A node claims several only where half of the blocks are free, and one where a quarter is. Where fewer than a quarter are free it
// keeps one, and where fewer than an eighth are, none. The Keeper's client has a limit of requests that no others use up.
//
//	pod starts ──► Keeper.Assign ──► Book ──► spare block ──────────────────────────► pod runs
//	                                  │  └──► no spare: Write ─► Lease ─► Wrote ────► pod runs
//	Leases of egress IPs ─► Seen ─────┤
//	Nodes ──────────────────────────► └──► Write: spare blocks, and what is not needed any more
//
// What a write that nobody has answered gives back is not used again until the Lease has another version: the write may come late.
//
// When a pod ends its block is quiet ([Quiet]), and is given back then. Its node alone knows that, so no time is written, and no clocks are
// compared. A process that starts knows its pods' blocks from their attachments (package attachments). All else that its node has claimed
// is quiet at first. What a node that is gone has claimed (its Node was deleted) is taken over when no other block is free, after the
// same time, and is quiet once more: so a node that comes back with its pods learns that they have lost their blocks before others use
// them.
//
// If somebody deletes the Lease, the next node that writes it writes again all that it knew. Only nodes that started in between can claim
// what others have. If the Lease cannot be read, nobody claims anything, and pods keep what they have. No node deletes a Lease.
//
// # What the package never does
//
// It does not say which pod has which block to other nodes (package holders does), nor to the kernel. It does not keep what pods have
// (package attachments does), nor write down who had it: a [Recorder] does.
package portblocks
