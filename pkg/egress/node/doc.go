// Package node decides for one node which egress IPs it has, who else has the others, and what other nodes are told of that.
//
//	interfaces, Leases, announcements, Nodes ─► Next ─► holders.Directory: the book ─► Ways, Holder, Say
//	                                             │               ▲ asks, writes
//	the pool's members, ARP, the API ─────────► Next ─► pool.Member ─► pool.Actions ─► effects ─► Arrived, Left ─► Next
//
// There is one book of who has which address: the directory. The pool's member keeps none: it asks the book what it has and which epochs
// were seen, and writes there what it takes and releases. Effects follow a decision, and their results the effects, so an address goes
// through these stages, with their constants in package holders:
//
//	taken      the member has it, and says so to the pool; packets go where they went before (reported, with own.taking)
//	arrived    it is on an interface, and what belongs to the former holder's connections is passed on: packets leave from here, and all
//	           nodes are told (arrived)
//	released   the member has it no more; packets still leave from here (reported)
//	left       packets go to the next holder, from now on (removed) or when a handover is over (handing), and all nodes are told
//
// # A failover
//
// The link of the node C is cut, which has an egress IP. N is the node that takes it, P one with pods that leave from it.
//
//	 1 N   pool       memberlist finds C dead after 240 ms: the queue gets Alive{Now: false}     delegate.NotifyLeave, Runner.Tell
//	 2 N   pool       the address is vacant, N's turn (Assign), and a claim is published          Member.vacate, claim, probe
//	 3 N   pool       nobody answers for the address by ARP within 80 ms                          Runner.probe, neighbor.Ask
//	 4 N   node       a majority is there: it is taken, with the next epoch                       Probed.apply, Member.take, Directory.Take
//	 5 N   pool       it is put on an interface, and the network is told                          Runner.takeAddresses
//	 6 N   egress     the book has it here: Arrived. All nodes are told, also by the Lease    poolNode.moved, steerer.apply, tell
//	 7 N   reconcile  the rules of all pods that may leave from here were in the kernel before    steerer.heldNow, steeringAt (Held)
//	 8 P   holders    an announcement comes: the book has the address at N                        Announcer.hear, Announced.apply
//	 9 P   egress     a sync writes the new way                                                   Loop.Run, steerer.sync, reconcile.Reconciler.Sync
//	10 P   conntrack  each connection is nudged, so that N takes it up with its port              Table.Delete, deleter.nudge
//	11 N   conntrack  connections that no two ports tell apart are reset                          clashes.expect, Table.EndClashes
//	12 C   pool       nobody answers it, twice: it releases the address                           Member.look, Looked.apply, Directory.Release
//	13 C   egress     packets leave from here no more: Left. The address is removed               poolNode.moved, Runner.release
//
// A drain begins at 2: C is alive and says that it gives the address away, so nobody asks by ARP; N passes on what it does not track
// (package handover) until C's pods leave by N, too.
//
// A [Node] is pure: it has no lock, starts nothing, waits for nobody, and time is passed in. Whoever has one calls it from one goroutine at
// a time, does what the actions say in the order in which they were returned, and tells the results. Package egress does so, and so does
// the simulation here: nodes with their kernels, a network between them and an API server, in a time of their own.
package node
