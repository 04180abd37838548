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
// A pod has one block: the same ports of all of its egress IPs, of both IP families, because it has one net.ipv4.ip_local_port_range. If
// no block is to be had, the pod shares ports for its whole life: the ports of a running pod do not change.
//
// A pod that uses nearly all of its block towards one destination gets a second block of the same size, once (RFC 6888 allows it). The
// book keeps it like a block of another pod, under the ID [Second]. It lies directly behind or in front of the first, if possible: then
// both are one range, and the pod uses the same ports inside and outside. If not, it is any free block: then the pod's range inside grows
// beside its first block ([Widened]), and source NAT translates the ports outside of both blocks into the second. Inside, it does not
// matter whether other pods have these numbers.
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
// A write names the version that it replaces, so no two nodes have the same block, whichever nodes are cut off from each other. A node
// keeps spare blocks for the egress IPs that its pods leave from: one, or as many as pods have started within a minute, 8 at most. So a
// pod that starts rarely waits, and the API server may be away. When half of the spare blocks are left, the node claims new ones, with
// one write for several pods, once the pods that are starting have started. In the first minutes of a process it claims none before a pod
// starts: those of the process before are quiet. If there is no spare block, a pod waits for one for
// [Patience] at most, and then shares.
//
// A node claims several blocks only where at least half of all blocks are free, and one where at least a quarter is. Where fewer than a
// quarter are free it keeps one spare block, and where fewer than an eighth are, none. The Keeper's client has its own limit of requests.
//
//	pod starts ──► Keeper.Assign ──► Book ──► spare block ──────────────────────────► pod runs
//	                                  │  └──► no spare: Write ─► Lease ─► Wrote ────► pod runs
//	Leases of egress IPs ─► Seen ─────┤
//	Nodes ──────────────────────────► └──► Write: spare blocks, and what is not needed any more
//
// If a write that gives blocks back is not answered, these are not used again until the Lease has another version: the write may come late.
//
// When a pod ends, nobody gets its block for a while ([Quiet]); then it is given back. A node that steers no more gives all of its own
// back at once ([Withdraw]). Only the pod's node knows when a pod ends, so no time is
// written, and no clocks are compared. A process that starts knows its pods' blocks from their attachments (package attachments). All
// other blocks that its node has claimed are quiet at first. The claims of a node that is gone (its Node was deleted) can be taken over
// after the same time, if no other block is free. Such a block is quiet once more, so that a node that comes back with its pods learns
// that they have lost their blocks before others use them.
//
// If somebody deletes the Lease, the nodes that have blocks write it again within two seconds, one after the other, with all that they
// knew. Only nodes that started in between can then claim what others have. If the Lease cannot be read, nobody claims anything, and pods keep what they have. No node deletes a Lease.
//
// # What the package never does
//
// It does not say which pod has which block to other nodes (package holders does), nor to the kernel. It does not keep what pods have
// (package attachments does), nor write down who had it: a [Recorder] does.
package portblocks
