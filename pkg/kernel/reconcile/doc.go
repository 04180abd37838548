// Package reconcile makes one IP family of the kernel hold what somebody wants of it, and is the one
// owner of what the kernel holds.
//
//	Began, Looked, … ─► State.Next ─► steps ─► Reconciler: look, write, prune, delete flows
//	        ▲           pure, the time is passed in              │
//	        └────────────────────────────────────────────────────┘
//
// A [State] decides: when to look at the kernel, what to write, when to try again. It is a plain
// value, and Next is a pure function of it, of what has happened, and of the time. A [Reconciler]
// acts, and tells the State what came of it.
//
// # Order
//
// [Order] has the steps of a sync in their order. Rules come first, so that no packet leaves under
// another address while the rest is done. Then what earlier runs have left in other back ends goes,
// whose rules could still decide about new flows. The flows that are wrong by then are ended last:
// a flow that is ended begins anew with its next packet, by the rules that are there.
//
// # Steering
//
// Where packets are steered to the nodes that hold their egress IPs, the table of the steering has the bindings:
//
//	back end    steering, and the node's address is known    else
//	nftables    the table of the steering                    its smaller table (steering.LocalTable)
//	iptables    the table of the steering, then the rules    the rules
//
// In the nftables back end the one table is written before the other one is removed, in two transactions. So nothing leaves under another
// address in between, and a process that dies there leaves the next one to do the rest.
//
// As soon as the steering is written, bound pods leave under their egress IPs or not at all, so the rules of iptables may be written
// later. If they cannot even be read, each try writes the steering all the same, unless what an earlier process has left of it is unread,
// too. When a binding is removed, the first write already stops it from giving new flows an egress IP. It leaves the steering only after
// its old flows have been judged. Otherwise an old steered flow could go on under the pod's own address. Both have a record of removed
// bindings. The record of the steering goes when these flows have been judged: what is neither in its table nor on its record was not
// steered. The record of the rules stays until the next write.
//
// A fault that keeps packets from being carried to other nodes is no failure of the sync: bindings of this node's addresses do not depend
// on it, and the table, which is written in any case, drops the packets that do. A fault has a backoff of its own. When it is over all
// flows are judged. In the nftables back end a table that cannot be written is a failure.
//
// # Looks
//
// Others may change the kernel at any time. A look reads all, by iptables-save or over netlink. It
// happens at the start, after each full sync of the proxier, after a failed write, and twice in a
// sync period; but a regular look is a glance at first, which does not list all tables, and is over if it
// shows that nothing a look is about can have changed:
//
//	fingerprint of all tables      the same as at the last look?             a millisecond
//	our rules, and the proxier's   as they were seen or written last?        what these rules cost
//	full look                                                                what all rules cost
//
// In a busy cluster the proxier changes the tables all the time, so the first stage is for quiet ones.
// Glances take no more than one part in sixty of the time: after a long one the next is put off, to at
// most three quarters of a sync period. Every ten minutes the look is a full one all the same.
package reconcile
