// Package egress lets the pods behind a Service leave the cluster from the Service's first
// external IP, or from one that its annotation names. It is an extension of kube-proxy's proxier (package extension).
//
// # The packet
//
//	pod ──► PREROUTING nat (KUBE-SERVICES may DNAT) ──► route ──► FORWARD ──► POSTROUTING nat
//	                                                             1. ours: bound source, destination
//	                                                                outside ──► SNAT to the egress IP
//	                                                             2. KUBE-POSTROUTING: marked ──► MASQUERADE
//	                                                             3. the network plugin's own masquerade
//
// Step 1 is the chain OPENSHIFT-EGRESS-SNAT, or a table in front of all nat tables (Back ends, below). It must come before 2 and 3
// because the first NAT decision about a flow is the only one.
// Packets of established flows, and replies, never come here again.
//
// # The parts
//
//	CNI plugin, kubelet's Pods ─► attach.Attacher ──┐
//	Services, EndpointSlices ─► extension.Host ─────┤
//	Nodes ─► an informer ───────────────────────────┤
//	ServiceCIDRs, Network, headless Services ───────┴─► cluster.State ─► placement ─► plan.Planner
//	                                                                                        │ plan.Change
//	                                 Events, metrics, log (package tell) ◄──────────────────┤
//	                                                                                        ▼ kernel.Change
//	                                          one loop and one reconcile.Reconciler for each IP family
//	                                                                                        │
//	                                  iptables rules or an nftables table, tracked flows ◄──┤
//	          the kernel's interfaces, the CNI plugin ─► portguard.Guard, for both families ◄──┘
//
//	what MetalLB announces ─► balancer.Balancer ─┐
//	interfaces, Leases, other nodes ─────────────┴─► steerer.Steerer ─► node.Node ─► which node has which egress IP, for each sync
//	Nodes with a label, grants, keys ─► poolnode.Part ─► pool.Runner ─► node.Node ─► which of them are put on this node
//	pods that start, Leases of claims, other nodes ─► sourceports.Allocator ─► which pod has which source ports, for each sync
//	tracked flows ─► sourceports.Allocator, every 5 s if there are enough ─► a second block, and the pod's ip_local_port_range
//
//	cluster.State ─► plan.Build ─► report.Reporter ─► status, for 'openshift egress'
//
// No part knows this package; what they have to tell or to ask, they are given as functions (wiring.go). An [Extension] wires them, starts
// them (watch.go), and here is the way of a sync (syncs.go). What people see of all parts together is in package report. Packages clashes,
// neighbours and usage each do one thing beside it: they end connections that have got the ports of others, look for rules of other
// software, and count flows.
//
// Nothing is written until all kinds of objects
// are known (extension.Gate): a plan made before could drop what is right, or grant what is to be
// refused. Then each IP family has a loop (extension.Loop) that makes a plan and brings it into the
// kernel. The families never wait for each other's programs.
//
// The cost of a change depends on the change, not on the size of the cluster. Endpoints of pods on other nodes are left out before
// anything is planned, unless this node holds their egress IP, or may get it at any moment, as each node of the pool may get the pool's
// (package placement). So a change of a pod elsewhere causes no sync. If anything casts doubt on what the kernel holds (the start, an
// error, a look that finds other rules), the whole plan is written.
//
// No lock of these packages is held while anybody logs, runs a program or speaks netlink. The Steerer's lock guards the node.Node. While
// that lock or the poolnode's is held, no other lock is taken, so decisions about addresses never wait for a plan that is being made; what
// follows from them is done after the lock is released. Statements, this node's addresses, snapshots of the objects and lists of
// attachments have numbers, so that an older one never replaces a newer one. No lock is held while another one is taken: the
// sourceports.Allocator asks the cluster.State and the portblocks.Keeper first, and then keeps what follows, or has it looked at again if
// something has changed meanwhile.
//
// Questions of people and metrics change nothing that packets depend on, except that a verification has the differences repaired that it
// finds. The proxier reports its syncs with its own lock held, so that report only sets an atomic and wakes the loop.
//
// # Behaviour
//
//   - Start: the first look shows what the kernel holds. Correct rules of an earlier process stay. The loop looks again until it has seen
//     the proxier's jump, or the end of the proxier's first sync: after that the proxier does not write in front of our jump.
//   - Stop: all rules stay in the kernel. New and established flows go on.
//   - Flush or restore by somebody else: a look finds it after half a sync period at the latest (three quarters where looks take long),
//     and the rules are repaired. The proxier is asked to write its own rules as well, because its monitor misses the flush of a single
//     table. Flows that began under other rules meanwhile are ended.
//   - Regular looks do not list all tables if the fingerprint of the kernel's tables is that of the last look, or if our rules and the
//     proxier's are unchanged (package reconcile). Every ten minutes they read everything anyway. For a legacy nat table larger than 8
//     MiB, and for other legacy tables, the fingerprint has numbers and sizes only: a rule that was replaced by one of the same size, or
//     moved, is found by that full look, or by 'openshift egress verify'.
//   - Failure: a write is one transaction, all or nothing. The old rules stay, and it is tried again
//     after 0.5 s, then twice as long each time, up to the sync period. A failure never keeps the
//     proxier from programming Services.
//   - Flows: after a change, tracked flows that have the wrong source address are ended, in one pass
//     for all changed pods. Both sides of a TCP connection get a reset (package conntrack). Flows that are right are never touched, also not by a restart. The
//     bindings that a write removes are recorded in the kernel by the same transaction, so the next
//     start ends what a killed process has not.
//
// # Back ends
//
//	proxy mode   rules                                        egress-snat-backend: nftables
//	iptables     a tree of chains in the nat table, before    a table of their own, as below, beside
//	             KUBE-POSTROUTING, by iptables-legacy or      the proxier's iptables rules
//	             iptables-nft, whichever is on PATH
//	nftables     one table, before others' source NAT: with   the default
//	             steering ip and ip6 openshift-egress-steering,
//	             without it, or as long as the node's address
//	             is not known, ip and ip6 openshift-egress
//
// In a table, the cost of a packet does not depend on the number of bound pods, nor does the cost of
// a change. With steering, the iptables back end has the table of the steering beside its chains.
// The plan is the same either way. Changing the mode or the back end restarts the node: what the former one wrote is removed when the new rules are in place, and no bound pod leaves under
// another address in between.
package egress
