// Package node decides for one node which egress IPs it has, who else has the others, and what other nodes are told of that.
//
//	interfaces, Leases, announcements, Nodes ─► Next ─► holders.Directory: the book ─► Ways, Holder, Say
//	                                             │               ▲ asks, writes
//	the pool's members, ARP, the API ─────────► Next ─► pool.Member ─► pool.Actions ─► effects ─► Arrived, Left ─► Next
//
// There is one book of who has which address: the directory. The pool's member keeps none: it asks the book what it has and which epochs
// were seen, and writes there what it takes and releases. Effects follow a decision, and their results the effects, so an address goes
// through these stages:
//
//	taken      the member has it, and says so to the pool; packets go where they went before
//	arrived    it is on an interface, and what belongs to the former holder's connections is passed on: packets leave from here, and all
//	           nodes are told
//	released   the member has it no more; packets still leave from here
//	left       packets go to the next holder, from now on or when a handover is over, and all nodes are told
//
// A [Node] is pure: it has no lock, starts nothing, waits for nobody, and time is passed in. Whoever has one calls it from one goroutine at
// a time, does what the actions say in the order in which they were returned, and tells the results. Package egress does so, and so does
// the simulation here: nodes with their kernels, a network between them and an API server, in a time of their own.
package node
