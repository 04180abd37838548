// Package egress lets the pods behind a Service leave the cluster from the Service's first
// external IP. It is an extension of kube-proxy's proxier, kept beside it.
//
// # The packet
//
//	pod ──► PREROUTING nat (KUBE-SERVICES may DNAT) ──► route ──► FORWARD ──► POSTROUTING nat
//	                                                             1. OPENSHIFT-EGRESS-SNAT: bound source,
//	                                                                destination outside ──► SNAT to the egress IP
//	                                                             2. KUBE-POSTROUTING: marked ──► MASQUERADE
//	                                                             3. the CNI's own masquerade
//
// Ours must come before 2 and 3, for the first NAT decision about a flow is the only one.
// Packets of established flows, and replies, never come here again.
//
// # The parts
//
// An [Extension] wraps the proxier ([Extension.Wrap]): it sees every Service, EndpointSlice
// and ServiceCIDR, and passes them on; Nodes and OpenShift's Network it watches itself
// ([Extension.Watch]). Of all these it keeps what a plan needs. The proxier tells it of
// its syncs ([Extension.AfterSync]), most of all of full ones, in which the order of
// POSTROUTING may change. One goroutine, started by the proxier's SyncLoop,
// turns all that into writes:
//
//	object ─► objects.go ─► state ─► plan.Planner ─► plan.Change ─► writer: iptables rules or an nftables table, with what they take away recorded
//	                          │                          │     └──► conntrack: flows that wear a wrong identity are deleted
//	                          │                          └────────► Events, metrics, log
//	                          └────► plan.Build ─► status, for 'openshift egress'; and a check of the Planner after full syncs
//
// A change costs what it is about, on all of this way, not how much else there is. Whatever
// throws doubt on what the kernel holds (the start, an error, a look that finds it altered) has
// the whole plan written, as if nothing had been.
//
// Nothing is written until all kinds of objects are known: a plan made before could drop
// what is right, or grant what is to be refused.
//
// The loop looks at the kernel when it starts, until it has seen the proxier's jump or the end of
// the proxier's first sync, after each later full sync, after a failed write, and twice in each sync
// period, and repairs what differs; it also tells the proxier to repair its own rules, whose
// monitor misses the flush of a single table.
// Otherwise it writes what changed in the plan, and nothing if nothing did.
//
// A fault of this package never stops Service programming: it acts after the proxier's
// transaction, never inside of it, and holds no lock of the proxier's.
package egress
