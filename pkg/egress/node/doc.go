// Package node decides for one node which egress IPs it has, who else has the others, and what other nodes are told of that.
//
//	interfaces, Leases, announcements, Nodes ─► Next ─► holders.Directory: the book ─► Ways, Holder, Say
//	                                             │               ▲ asks, writes
//	the pool's members, ARP, the API ─────────► Next ─► pool.Member ─► pool.Actions ─► effects ─► Arrived, Left ─► Next
//
// There is one book of who has which address: the directory. The pool's member asks it what this node has and which epochs were seen, and
// writes there what it takes and releases. Of other members it keeps what they said last: by that the pool decides who takes what, and by
// the book where packets go. Effects follow a decision, and their results the effects, so an address goes through these stages, which are
// constants in package holders:
//
//	reported   it is here if the kernel says so. That the member has decided to have it (own.taking), or has it no more, changes nothing of
//	           where packets go
//	arrived    it is on an interface, and what belongs to the former holder's connections is passed on: packets leave from here, and all
//	           nodes are told, then the pool. It is reported again when the kernel has said so, too
//	handing    another node has it, and packets leave from here as before until the handover is over
//	removed    packets go to the next holder, and all nodes are told; the kernel may still have it
//
// # A failover
//
// Node OLD has an egress IP, and all its links are cut. Node NEW takes the egress IP. Node POD has pods that leave from it.
//
//	step, node, what                                                                      functions
//	 1 NEW  memberlist finds OLD dead 240 ms after the first probe that fails: Liveness   pool: delegate.NotifyLeave, Runner.Tell
//	 2 NEW  the address is vacant, it is NEW's turn, and a claim is published             pool: Member.noteVacancies, Assign, claim, Runner.probe
//	 3 NEW  nobody answers for the address by ARP within 80 ms                            pool: neighbor.Ask, Probed.apply
//	 4 NEW  a majority is there: the book has it here, with the next epoch                pool: Member.take; holders: Directory.Take
//	 5 NEW  it is put on an interface, and the network is told                            pool: Runner.takeAddresses
//	 6 NEW  packets leave from here: Arrived. All nodes are told, also by the Lease       poolnode: Part.moved; steerer: Steerer.Apply, follow, tell
//	 7 NEW  the rules of other nodes' pods that may leave from here are in the kernel     steerer: Steerer.heldNow, steeringAt (Held)
//	        since before; for its own pods, NEW does 9 and 10, too
//	 8 POD  an announcement comes: the book has the address at NEW                        holders: Announcer.hear; steerer: Steerer.Apply
//	 9 POD  after 10 ms in which more may come, a sync writes the new way                 extension: Loop.Run; egress: Extension.sync, ipFamily.inKernel; steerer: Steerer.Sync;
//	        (after the last one, 100 ms or as long as it took, up to 1 s)                 reconcile: Reconciler.Sync, run.writeChange, steeredDriver.update; steering: Writer.Update
//	10 POD  each TCP connection is nudged, so that NEW takes it up with its port;         reconcile: run.deleteFlows; conntrack: Selector.Judge, Table.Delete, deleter.nudge
//	        all others go on with the pod's next packet
//	11 NEW  it knows from its interface that the address is here: connections of          holders: WatchAddresses; steerer: Steerer.follow (Came);
//	        two pods whose ports no longer tell them apart are reset                      clashes: Ender.Expect; conntrack: Table.EndClashes
//	        Meanwhile POD sends to OLD: it hears of nothing before 8
//	12 OLD  at the time of 1 to 5: that its links are down is no reason to release        pool: links.serves, Member.look, Looked.apply; holders: Directory.Release
//	        anything. But the others are dead for it, and nobody answers, twice: it
//	        releases the address (cut_off)
//	13 OLD  packets leave from here no more: Left. The address is removed                 poolnode: Part.moved; pool: Runner.release
//	14 OLD  what its pods begin is dropped for 5 s. Then OLD sends it (auto), which gets  holders: Directory.judge, Ways; conntrack: Selector.waits
//	        nowhere, or refuses it (required). Their TCP connections stay as they are
//	15 OLD  its link is back: each side finds the other alive, NEW keeps the address,     pool: members.remind, heard, join, delegate.NotifyJoin;
//	        and OLD asks NEW at once what it has                                          steerer: memberInBook.Next; holders: Announcer.Ask
//	16 OLD  as 8 to 10: its pods' packets go to NEW
//
// If only the link of the egress IP's subnet is cut, OLD still speaks with the others, and says so in its state ([pool.Networks],
// Member.publish). At 2 the reason is detached: NEW waits for 50 ms, asks nobody by ARP, and goes on with 4. OLD releases the address when it
// hears that NEW has it (handed_over; Member.giveWay), so 13 follows, and then 8 to 10 in the place of 14: its pods leave from NEW at once.
//
// If the kernel of OLD still has the address in 15, because its process was dead, the process that starts asks by ARP before it announces
// the address, and NEW reminds OLD every 50 ms: OLD gives way ([pool.Reminded]).
//
// A drain begins at step 2: OLD is alive and says that it gives the address away, so nobody asks by ARP. NEW passes packets that it does not
// track on to OLD (package handover) until OLD's pods leave by NEW, too.
//
// A [Node] is pure: it has no lock, starts nothing, waits for nobody, and time is passed in. Its user calls it from one goroutine at a
// time, does what the actions say, and reports the results. [pool.Runner] does so through steerer.memberInBook, which has the lock: first
// it releases addresses, then it takes others, and last it tells the members, unless an address could not be taken. The simulation here
// does the same: nodes with their kernels, a network between them and an API server, in a time of their own.
//
// A Node does not make the plan: finding out which pods are bound may take seconds, and no failover waits for that. Instead package
// placement makes sure that the rules of all pods whose egress IP may come here are in the kernel before.
package node
