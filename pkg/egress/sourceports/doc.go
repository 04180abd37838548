// Package sourceports gives this node's pods source ports of their egress IPs, and says to all who have to know which pod has which.
//
//	pods that start ─► Assign ─┐                            ┌─► attachments, Events, metrics
//	Leases of claims ──────────┼─► Allocator ─► reconcile ──┼─► the journal (package journal)
//	syncs, other nodes ────────┤       │                    └─► a sync
//	tracked flows, every 5 s ──┘       ├─► AddPorts: what the kernel is to hold of this node's pods and others'
//	                                   └─► Stated: what other nodes are told
//
// An [Allocator] has a portblocks.Keeper, which claims blocks in Leases, and decides which pod gets which. What it adds is the pods of this
// node: those that the CNI plugin has told of (giving.go), and those that started without it (unattached.go), which share ports. What nodes
// say of their pods' blocks counts if they have claimed them (stated.go). A pod whose block is nearly full gets a second one, and uses it
// inside as well (full.go). What pods have is written down before they run, as long as the disk answers (journal.go).
//
// Where no blocks are given an Allocator follows those of other nodes all the same: this node may have their egress IPs.
//
// What it needs of the node beside the cluster.State is a [Config] of functions and plain values. Package egress makes one Allocator. Under
// its lock nobody logs, sets metrics, writes files, or asks the State or the Keeper.
package sourceports
