// Package conntrack ends the tracked flows that use the wrong source address, and counts those
// that use an egress IP, for one IP family at a time.
//
// The kernel decides once per flow which source address it leaves with: packets of an
// established flow never meet the nat table again. So after a change a flow would keep
// the address that it has, and a UDP flow that never pauses would keep it for ever. What
// is deleted here is decided anew with its next packet.
//
//	                          original tuple           reply tuple
//	pod asks                  src 10.128.0.5           src 198.51.100.9   the destination, after DNAT
//	                          dst 198.51.100.9         dst 203.0.113.1    what the far side sees: SeenAs
//
// Which flows are wrong is a pure function of the plan and of what was changed: [Scope] and [Selector]. What it does not call wrong is
// never touched: flows of unbound pods, flows inside the cluster, to the node itself or from outside to a pod (but for those of inward.go),
// flows that already have the source address that they should, and other conntrack zones, which are somebody else's.
//
// # Steering
//
// Where another node holds the egress IP, that node translates the source. A right flow is tracked twice:
//
//	                          original tuple           reply tuple
//	on the pod's node         src 10.128.0.5           src 198.51.100.9
//	                          dst 198.51.100.9         dst 10.128.0.5      it uses its own source
//	on the holder             src 10.128.0.5           src 198.51.100.9
//	                          dst 198.51.100.9         dst 203.0.113.1     it uses the egress IP
//
// If an egress IP moves between nodes, nothing changes for the far side, if the port stays the same, too. Holders
// keep the ports of what is steered to them, so these connections go on. Whichever node has the address tracks
// them anew with the pod's next packet (net.netfilter.nf_conntrack_tcp_loose):
//
//	the address goes               on the pod's node           on the holder of before
//	from another node to a third   nothing; the pod is nudged  the entry is deleted
//	from another node to this one  the entry is deleted, and   the entry is deleted
//	                               the pod is nudged
//	from this node to another      as above, if the port was kept; else both sides are reset
//
// If no node that can be reached has the address, the TCP entries of this node's own pods stay until one has it: then they are right, or
// deleted as above. Until then their packets go on under the egress IP, and nobody answers. Without an entry, none could be nudged then, and
// a pod that only receives would wait for ever. Other entries stay only for the moment that a node may take to get the address.
//
// A nudge (see below) makes the pod's kernel send a packet, so that a pod that only receives goes on as well. If the address comes here
// and the rules here choose another port, the far side answers that packet by a reset. Only the pod's own node nudges it, because a pod
// answers only once in half a second. The first nudge may get no answer: a stranger's packet under the far side's address may have had it
// just before the move, and older kernels let all pods together give only 500 answers in a second. So each pod is nudged again after 0.6
// s; on such a kernel it is 250 pods every 1.1 s, for a minute. Strangers cannot prevent these answers: until the new holder has heard
// the pod, the only packets that it passes to the pod make the entry themselves (package steering, port blocks), and so does whatever the
// pod answers to others.
//
// If the binding is removed, the holder resets the far side, and the pod's node resets the pod. The pod's node sends nothing to the far
// side, which has never seen the pod's own address: what still comes from there is dropped. Both do the same if the destination is
// excluded from now on: the pod's packets are sent to no other node any more, and nobody would translate them.
//
// # Two connections with one port
//
// If two pods have the same port and the same far side, one of them gets another port outside, and only the holder knows it. If that node
// dies, the next one gives the port to the pod that it hears first. If this is the right pod, the far side resets the connection of the
// other one, which comes from a port that it does not know. If it is the wrong pod, the far side resets the right one, and TCP would
// never end the rest: each side takes the other's packets for old ones, and a side that only waits hears nothing at all.
//
// [Table.EndClashes] finds these. It looks at the connections that the kernel has picked up and whose far side it has not yet seen send
// within the window. It nudges both sides of each, notes in an nftables table where in their streams they say they are, and ends those
// whose sides do not mean the same bytes. The far side of the other port hears nothing more: nobody has that port here.
//
// The kernel does not reveal which sequence numbers it knows of a connection, and anybody who can send under the far side's address may
// send a packet with any number. So the first packet of each side makes a connection doubtful at most. Doubtful ones are listened to
// again, and now all packets are noted. They are one connection if any two packets of the two sides fit together, and two if each side
// repeats itself in different hearings. So packets of strangers with random numbers end nothing, however often they come. A stranger who
// repeats himself ends nothing either, as long as the far side answers. There remains a stranger who repeats himself under the address of
// a far side that is silent all the time.
//
// A pod that has ports of its egress IP for itself shares them with nobody, so connections from these ports are not checked. What the far
// side makes known on a new holder is an entry of its own kind, see inward.go.
//
// # The table
//
// [Delete], [Table.Count] and [Table.Busiest] go through the table once, in the network namespace of the calling thread, and keep nothing
// of it but what they delete. A look at all flows costs little more than the kernel needs to list them (message.go decodes without
// allocating). The kernel can also select the flows of single pods itself: for IPv4 always, for IPv6 only some kernels, see sources in
// conntrack_linux.go. That costs a seventh of a look at all flows for each pod. But each such look goes through all buckets of the kernel's
// hash table: 10 ms for the 262,144 of a large machine. So where there are few flows (below 8,000 on such a machine, for two pods), one
// look at all of them is cheaper than one for each pod. Nothing here adds an entry, and only [MakeLiberal] changes any.
//
// # The barrier
//
// Deletion alone does not end a flow. Where the far side sees the pod's own address, its next packet
// makes a new entry, from the far side to the pod (net.netfilter.nf_conntrack_tcp_loose). From then on
// the pod's packets are answers, which no SNAT rule ever meets: a download runs on under the wrong
// address. So before its entry is deleted, a flow is put behind a barrier: an nftables table of this
// package, beside whichever back end writes the SNAT rules.
//
//	table ip openshift-egress-ended {
//	    set flows      { type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service; size 65536; timeout 20m; }
//	    set unanswered { type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service; size 16384; timeout 20m; }
//	    set unseen     { type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service; size 81920; timeout 20m; }
//	    set hosts      { type ipv4_addr . ipv4_addr . inet_proto; size 8192; timeout 20m; }   protocols without ports
//	    chain prerouting {
//	        type nat hook prerouting priority dstnat - 1; policy accept;
//	        ip saddr . ip daddr . meta l4proto . th sport . th dport @flows goto ended
//	        the same                                           @unanswered goto ended
//	        meta l4proto != tcp meta l4proto != udp ip saddr . ip daddr . meta l4proto @hosts drop
//	    }
//	    chain ended {
//	        tcp flags syn goto anew                       a new connection between the same ports
//	        ip saddr . ip daddr . meta l4proto . th sport . th dport @unseen drop
//	        meta l4proto tcp reject with tcp reset        either side goes on with the old one
//	        reject                                        the far side goes on; the pod begins anew
//	    }
//	    chain anew {
//	        ip saddr . ip daddr . meta l4proto . th sport . th dport @flows update @flows { the same timeout 1s }
//	        the same                                   @unanswered update @unanswered { the same timeout 1s }
//	        accept
//	    }
//	    chain invalid {
//	        type filter hook prerouting priority dstnat - 1; policy accept;
//	        ct state invalid meta iiftype != loopback ip saddr . ip daddr . meta l4proto . th sport . th dport @flows drop
//	        the same                                                                                 @unanswered drop
//	    }
//	}
//
// The table of the other family is "ip6 openshift-egress-ended". The sets hold the tuples of packets as
// they arrive, before any NAT. Of TCP they hold both directions. Of other protocols they hold the far
// side's alone, for three minutes, because the pod's next packet begins a right flow; and without ports
// only if the far side sees the pod's own address. In unseen are those tuples of far sides that saw another
// address, given by another node: a reset from here would show them the pod's own one. Without ports nothing is answered, for the same reason.
//
// # Room in the barrier
//
// The sets have a size, so that nobody fills the kernel's memory by a Service that he toggles, or by packets to everywhere: all of both
// families take 56 MiB at most. What ends while they are full is deleted all the same, but not barred and not nudged; it
// is counted ([Deleted]) and logged once for each pass. Such a flow may go on where the far side sees the pod's own
// address; all others are decided anew with the next packet of either side.
//
// Flows that were never answered cost nothing to make, so they take no room in flows. Most are not barred at all: an answer that
// comes later is for an address of the node, which has no flow for it any more. But where the far side sees
// the pod's own address, a late answer to a UDP packet would make an entry from the far side to the pod, and all that follows would
// leave under that address. So these have a smaller set of their own, for the 30 seconds for which the kernel waits for an answer. Of
// TCP a late SYN+ACK is dropped, and the pod's next SYN makes a right flow. A TCP connection that was picked up in the middle and not
// answered since may be real: it is barred like others, but in that set, for anybody can make such entries with a raw socket. TCP connections
// that both sides have closed, which a busy pod has by the ten thousands, are there as well, if the far side sees the pod's own address: a late
// ACK is all that can come.
//
// A connection that begins between the same ports takes its first side out of the sets, within a second: else the barrier would end it when its
// entry is deleted for a move. Its far side stays there, because the tuple after NAT is not known yet.
//
// A table whose sets have another size, as those of versions without sizes do, is replaced in one transaction, with what it remembers.
//
// Only the first packet of a flow comes to the chain prerouting: established flows pay nothing, and a new one pays a lookup. Packets that
// conntrack calls invalid never come there, such as the FIN or RST of a pod that closes at this moment. They would leave under the pod's
// own address where the proxier does not drop them (nftables), so the chain invalid drops them.
//
// Where kernels do not pick TCP connections up in the middle (nf_conntrack_tcp_loose is 0), no connection outlives a move of its egress IP,
// also if it moves while the pod's node has no process. The pod's node resets the pod, and a former holder that is alive resets both sides.
// If the process ends between the change of the way and the reset, the connection stays, and hangs. A node that has just got the address
// resets what far sides still send there. It does so for a few seconds only, because conntrack also calls packets invalid that are outside
// the window of a connection that it knows. The chain invalid begins with these rules then:
//
//	set fresh { type ipv4_addr; timeout 15s; }                                            egress IPs that have come here
//	ct state invalid meta iiftype != loopback tcp flags & (syn | rst | ack) == ack ip daddr @fresh reject with tcp reset
//	the same       ip saddr . ip daddr . meta l4proto . th sport . th dport @flows        goto ended
//
// The table comes with the first deletion and goes with [Cleanup]. The kernel forgets an element by itself.
// Somebody who flushes the ruleset removes the table until the next deletion.
//
// A side that only waits would wait for ever. So each side of a deleted TCP connection is nudged
// (nudge_linux.go): its kernel answers, the answer meets the barrier, and the reset that comes back has
// the right sequence number. On the wire outside there are a SYN+ACK and a RST under the former address,
// and nothing else.
//
// A process that is killed between barrier and deletion leaves the entry, which the next start judges.
// Where the kernel cannot reject in prerouting (before Linux 5.9, or without nftables), flows are deleted
// without a barrier, and the log says so.
package conntrack
