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
// programming/typical is the typical node: few of the cluster's pods are here.
package programming
