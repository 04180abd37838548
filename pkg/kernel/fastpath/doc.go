// Package fastpath takes packets of established flows from one node to another past most of the kernel's networking: past the
// hooks of netfilter, the bridge and the tunnel's device. Small programs of BPF do that, at tc's ingress (TCX).
//
//	pod ─► from_pod, at the pod's interface   wraps the packet, or not if nodes are next hops ─► the uplink
//
//	other node: the uplink ─► from_node       unwraps it, gives it its egress IP ─► the interface that leads to the far side
//	            steer0 ─► from_tunnel         the same for what from_node leaves to the kernel's tunnel
//	            the uplink ─► from_neighbour  the same without a tunnel
//
//	an answer ─► from_outside, or what is at  gives it the pod's address ─► the interface that leads to the pod's node
//	             the uplink
//
//	pod's node: the uplink ─► from_node, or   ─► the interface that leads to the pod
//	            from_neighbour
//
// Everything that a program does not take takes the slow path. A packet on the nodes' network looks the same whoever has
// wrapped it, so each node decides for itself. A network plugin may wrap answers, too: these take the fast path to its device alone, and
// only where all is taken ([Load]); the pod's node sees them when the plugin has unwrapped them.
//
// Flows of unbound pods are taken, too, because steering makes their packets dearer: those that masquerading gives an address of this node that
// is no egress IP, and that leave by its interface. Their answers are taken if they come by the uplink, or by an interface that has an egress
// IP. Where all is taken, so are bound pods' flows that leave from the pods' own node, and their answers.
//
// Routes alone decide where packets go; marks that rules set are not seen. An answer is taken if the far side's route leads to where it comes
// from, as a strict rp_filter has it; on the pod's node, if it comes by the uplink.
//
// # Conntrack decides
//
// The programs have no state of flows. They ask conntrack of each packet (bpf_skb_ct_lookup) and take it if conntrack
//
//   - has confirmed its flow, has seen an answer, is assured of it, and does not forget it at the moment;
//   - says that the packet is of the direction that began the flow, or an answer;
//   - translates no destination and no sequence numbers, and runs no helper;
//   - on the pod's node translates no source, and on the holder translates it to an egress IP that the holder gives to arrivals; an answer
//     is one to such an address, or to a pod of this node that is bound to an egress IP elsewhere;
//   - for TCP, says that the connection is established, neither beginning nor ending, and, if it was taken up in its middle, has seen what
//     the far side acknowledges: until then it may have another connection's port, which package conntrack finds out by its packets.
//
// So the first packets of a flow pass everybody's rules, the guard of package steering and the check of its source, and when the flow is
// taken from conntrack, as it is when its binding goes, its next packet does so again. That is why this needs no rules of
// its own: it goes on with what they have let pass.
//
// Besides, a program takes only what is plain: IPv4 without options, IPv6 without extension headers, no fragments, an ACK without SYN, FIN
// or RST, no VLAN tag, a packet (or each segment of one) that fits, and a TTL that lasts. Of a pod it takes what comes by the interface that
// package portsecurity knows it to be behind. What it sends to another node, and what an unbound one sends, is for no
// excluded destination, no egress IP and none of this node's own addresses; of what else leaves here conntrack has decided that. From other nodes it takes what package steering would take from
// them, by the same addresses and by the interface that leads to them. It does not check checksums of TCP and UDP.
//
// # What conntrack does not see
//
// The timeout of a TCP connection is renewed by the programs. A flow of UDP has a packet on the slow path before half of its timeout is
// over, and on the pod's node once a minute, which renews what package steering remembers of it (its set flows). When that was stands in a
// map that the kernel may forget at any time.
//
// Conntrack does not see which sequence numbers have passed. Answers to those would be invalid, and the node would reset the connection.
// The kernel lets nobody but its own flow tables say that for a single flow, except one by one over netlink, which would have to
// follow each flow that begins. So package steering sets nf_conntrack_tcp_be_liberal, for the whole node. What that gives up: a packet far
// outside of a connection's window is forwarded as one of it, and left to the host that gets it, which drops it. An RST whose number
// conntrack does not know ends no connection at once, but leaves it ten seconds; a program does not renew it then. Conntrack also takes what it has not seen acknowledged for unacknowledged, and would forget a connection after five minutes of
// silence: nf_conntrack_tcp_timeout_unacknowledged is at least 2 hours and 4 minutes (RFC 5382, REQ-5). Both are on record, and
// come back when the fast path is switched off, and with --cleanup; connections that go on are exempted from the check one by one then
// (conntrack.MakeLiberal), for conntrack knows nothing of where they are.
//
// # Order of changes
//
// What is in the maps follows a change in two steps. [Path.Limit] comes before the rest of the kernel follows: it takes away what will not be
// so. [Path.Extend] comes when all is written. In between, packets take the slow path.
//
// # A process that dies
//
// The kernel has the programs as long as this process has their links, which are pinned nowhere. When it dies all packets take the slow
// path, until the next process has begun. So nothing is left that could be wrong or would have to be cleaned up, and an upgrade
// has no two versions at one hook. It costs more CPU for a moment; no packet is lost by it.
//
// # What others have at tc
//
// The programs are attached behind all others of TCX. Filters of tc itself come behind those, and would not see a redirected packet: where
// there is one, whoever's it is (the CNI plugin bandwidth has such), no program is attached, and packets by that interface take the slow path.
//
// # What cannot take it
//
// A node with policies of IPsec has no fast path at all: a redirected packet does not meet them, and would leave in clear.
//
// Packets in aggregates (GRO) at the holder's uplink, or with checksums that the network interface has yet to make, which come from a node that
// is another namespace of the same kernel: the kernel alone can tell an interface that a packet is not wrapped any more, so its tunnel unwraps
// these, and from_tunnel goes on. Aggregates that would be wrapped between IPv6 addresses, where each segment wants its own checksum of the
// tunnel, and datagrams without a checksum there. All protocols but TCP and UDP.
//
// # Compiling
//
// bpf/fastpath.c is compiled by hack/build-fastpath.sh, and what comes of it is committed beside this file: nobody needs clang to build a
// node. `make verify-fastpath` compares. The programs need Linux 6.6 (TCX), with the kernel's types (BTF) and conntrack's functions
// for BPF, and CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN. Where conntrack is a module its types are told with CAP_SYS_ADMIN alone.
package fastpath
