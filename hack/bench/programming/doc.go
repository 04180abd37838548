// Package programming measures what it costs to bring egress SNAT into the kernel.
//
// The code between an event and the kernel runs in an agent: this program once more, as a process in a node's
// network namespace, in which package egress runs as in the node's process, beside a proxier that does nothing. The
// agent calls the proxier's handlers as informers do, one event after the other. After each it waits until the sync
// that follows is over. It returns the CPU time that it and its children took:
//
//	bench ──► agent ──► extension.Host ──► state, plan, sync ──► iptables or netlink
//
// Each visit of an agent has a lab of its own, so a kernel without rules. strace counts, from outside, the programs
// that are run and the netlink messages that are sent. A change that must show proves each time that it counts.
//
// There are three figures. programming/typical is the typical node: few of the cluster's pods are here.
// programming/structures is 100,000 bindings on one node, by egress-snat-scope=cluster: what the structures in the
// kernel can do. programming/seed compares the first rules with two runs of iptables per endpoint, the method that
// this project began with.
package programming
