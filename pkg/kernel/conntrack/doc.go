// Package conntrack ends the tracked flows that wear a wrong identity, and counts those
// that wear an egress IP, for one IP family at a time.
//
// The kernel decides once per flow which source address it leaves with: packets of an
// established flow never meet the nat table again. So after a change a flow would keep
// the address that it has, and a UDP flow that never pauses would keep it for ever. What
// is deleted here is decided anew with its next packet.
//
//	                          original tuple           reply tuple
//	pod asks                  src 10.128.0.5           src 198.51.100.9   the destination, after DNAT
//	                          dst 198.51.100.9         dst 203.0.113.1    what the far side sees: Wears
//
// Which flows are wrong is a pure function of the plan and of what was changed: [Scope]
// and [Selector]. What it does not call wrong is never touched: flows of unbound pods,
// flows inside the cluster, to the node itself or from outside to a pod, flows that
// already wear what they should, and other conntrack zones, which are somebody else's.
//
// [Delete] and [Count] go through the table once, in the network namespace of the calling
// thread, and keep nothing of it but what they delete. A look at all flows costs little more
// than the kernel's telling them (message.go decodes without allocating). The flows of a
// few IPv4 pods the kernel selects itself, which costs a seventh of that for each; of IPv6
// pods where the kernel can, see sources in conntrack_linux.go. Nothing here adds
// or changes an entry, and nothing is remembered between calls.
package conntrack
