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
//	taken      the member has decided to have it; packets go where they went before (reported, with own.taking)
//	arrived    it is on an interface, and what belongs to the former holder's connections is passed on: packets leave from here, and all
//	           nodes are told, then the pool (arrived)
//	released   the member has it no more; packets still leave from here (reported)
//	left       packets go to the next holder, from now on (removed) or when a handover is over (handing), and all nodes are told
//
// # A failover
//
// The link of the node C is cut, which has an egress IP. N is the node that takes it, P one with pods that leave from it.
//
//	step, node, what                                                                  functions
//	 1 N  memberlist finds C dead 240 ms after the first probe that fails: Alive       pool: delegate.NotifyLeave, Runner.Tell
//	 2 N  the address is vacant, it is N's turn, and a claim is published              pool: Member.vacate, Assign, claim, Runner.probe
//	 3 N  nobody answers for the address by ARP within 80 ms                           pool: neighbor.Ask, Probed.apply
//	 4 N  a majority is there: the book has it here, with the next epoch               pool: Member.take; holders: Directory.Take
//	 5 N  it is put on an interface, and the network is told                           pool: Runner.takeAddresses
//	 6 N  packets leave from here: Arrived. All nodes are told, also by the Lease      poolnode: Part.moved; steerer: Steerer.Apply, follow, tell
//	 7 N  the rules of all pods that may leave from here were in the kernel before     steerer: Steerer.heldNow, steeringAt (Held)
//	 8 P  an announcement comes: the book has the address at N                         holders: Announcer.hear; steerer: Steerer.Apply
//	 9 P  after 10 ms in which more may come, a sync writes the new way                extension: Loop.Run; steerer: Steerer.Sync;
//	      (or 100 ms after the last one: egress-snat-min-sync-period)                  reconcile: Reconciler.Sync, run.writeChange; steering: Writer.Update
//	10 P  each connection is nudged, so that N takes it up with its port               reconcile: run.deleteFlows; conntrack: Selector.Judge, Table.Delete, deleter.nudge
//	11 N  connections that no two ports tell apart are reset                           clashes: Ender.Expect; conntrack: Table.EndClashes
//	12 C  the others are dead for it, and nobody answers, twice: it releases           pool: Member.look, Looked.apply; holders: Directory.Release
//	13 C  packets leave from here no more: Left. The address is removed                poolnode: Part.moved; pool: Runner.release
//	14 C  its pods' packets are dropped for 5 s. Then they leave from C (auto), or     holders: Directory.judge, Ways
//	      are refused (required), until C hears of N
//
// A drain begins at 2: C is alive and says that it gives the address away, so nobody asks by ARP; N passes on what it does not track
// (package handover) until C's pods leave by N, too.
//
// A [Node] is pure: it has no lock, starts nothing, waits for nobody, and time is passed in. Whoever has one calls it from one goroutine at
// a time, does what the actions say, and tells the results. [pool.Runner] does so (by steerer.memberInBook, which has the lock): it releases addresses, then takes others, and tells the
// members last, or not at all if one could not be taken. So does the simulation here: nodes with their kernels, a network between
// them and an API server, in a time of their own.
//
// The plan is not in it: to find out which pods are bound may take seconds, and no failover waits for that. Package placement has the
// rules of all pods whose egress IP may come here be in the kernel before.
package node
