// Package programming measures what it costs to bring egress SNAT into the kernel: the first rules,
// all of many, one change, and nothing new.
//
// What happens between an event and the kernel is measured in an agent: this program once more, as
// a process in a node's network namespace, in which package egress runs as in the node's process, but for
// the proxier, in whose place nobody is. The agent calls the proxier's handlers as informers do, one
// event after the other, waits until the sync that follows is over, and tells the CPU time that it and its
// children took, which is nearly all that happened:
//
//	bench ──► agent N ──► Extension.Wrap(nobody) ──► state, plan, sync ──► iptables or netlink
//
// Each visit of an agent has a lab of its own, so a kernel without any rule.
//
// Programs that are run and netlink messages that are sent are counted by strace, from outside. That it
// counts is proven each time by a change, which has to show.
//
// The seed's method, two runs of iptables for each endpoint, is measured beside what replaces it,
// in seed_linux.go.
package programming
