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
// Packets that no program takes use the slow path. A packet on the nodes' network looks the same whether a program or the kernel has
// wrapped it, so each node decides for itself. A network plugin may wrap answers, too: these take the fast path only to its device, and
// only if [Load] was called with all; the pod's node sees them when the plugin has unwrapped them.
//
// Flows of unbound pods take the fast path, too, because steering makes their packets more expensive: those that are masqueraded to an
// address of this node that is no egress IP, and that leave by the interface with that address. Their answers take it if they come by the
// uplink, or by an interface that has an egress IP. If [Load] was called with all, so do flows of bound pods that leave from the pods'
// own node, and their answers.
//
// Routes alone decide where packets go; marks that rules set are not seen. An answer takes the fast path if the route to the far side
// leads out by the interface that it came by, as with a strict rp_filter; on the pod's node, if it came by the uplink.
//
// # Conntrack decides
//
// The programs keep no state of flows. They look up each packet in conntrack (bpf_skb_ct_lookup) and take it if
//
//   - its flow is confirmed, has seen an answer, is assured, and is not about to be forgotten;
//   - it is of the direction that began the flow, or an answer;
//   - the flow has no translated destination, no translated sequence numbers and no helper;
//   - on the pod's node the source is not translated, and on the holder it is translated to an egress IP that the holder gives to
//     arrivals; an answer is to such an address, or to a pod of this node that is bound to an egress IP elsewhere;
//   - a TCP connection is established, neither beginning nor ending. If it was picked up in the middle, conntrack must have seen what the
//     far side acknowledges: until then it may have another connection's port, which package conntrack finds out from its packets.
//
// So the first packets of a flow pass all rules of others, the guard of package steering and the check of their source. When the flow is
// removed from conntrack, as it is when its binding goes, its next packet passes them again. That is why the fast path needs no rules of
// its own: it only continues what they have let pass.
//
// Besides, a program takes only what is plain: IPv4 without options, IPv6 without extension headers, no fragments, an ACK without SYN, FIN
// or RST, no VLAN tag, a packet (or each segment of one) that fits, and a TTL that lasts. Of a pod it takes what comes by the interface
// that package portsecurity knows it to be behind. Packets that it sends to another node, and packets of unbound pods, must not be for an
// excluded destination, an egress IP or an address of this node. For other packets that leave here, conntrack has decided that. From other
// nodes it takes what package steering would take from them, by the same addresses and by the interface that leads to them. It does not
// check checksums of TCP and UDP.
//
// # What conntrack does not see
//
// The programs renew the timeout of a TCP connection. A UDP flow has one packet on the slow path before half of its timeout is over, and
// on the pod's node once a minute, which renews what package steering remembers of the flow (its set flows). The time of that packet is
// in a map that the kernel may forget at any time.
//
// Conntrack does not see which sequence numbers have passed on the fast path. It would call answers to them invalid, and the node would
// reset the connection. The kernel can exempt a single flow from that check only for its own flow tables, or over netlink, one flow at a
// time, which would mean following each flow that begins. So package steering sets nf_conntrack_tcp_be_liberal for the whole node. The
// price is that a packet far outside of a connection's window is forwarded as part of it, and the receiving host has to drop it. An RST
// whose number conntrack does not know does not end the connection at once, but leaves it ten seconds, which a program then does not
// renew.
//
// Conntrack also counts data as unacknowledged if it has not seen the acknowledgement, and would forget the connection after five minutes
// of silence. So nf_conntrack_tcp_timeout_unacknowledged is at least 2 hours and 4 minutes (RFC 5382, REQ-5). Both settings are on
// record, and are restored when the fast path is switched off, and by --cleanup. Connections that go on are then exempted from the check
// one by one (conntrack.MakeLiberal), because conntrack does not know where they are.
//
// # Order of changes
//
// The maps follow a change in two steps. [Path.Limit] comes before the rest of the kernel changes, and removes what will no longer hold.
// [Path.Extend] comes when everything is written. In between, packets take the slow path.
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
// The following packets cannot take it either:
//
//   - at the holder's uplink, aggregates (GRO) and packets with checksums that the network interface has yet to make, from a node that is
//     another namespace of the same kernel. Only the kernel can tell an interface that a packet is no longer wrapped. So the kernel's
//     tunnel unwraps these, and from_tunnel goes on;
//   - aggregates that would be wrapped between IPv6 addresses, where each segment needs its own checksum of the tunnel, and datagrams
//     without a checksum there;
//   - all protocols but TCP and UDP.
//
// # Compiling
//
// bpf/fastpath.c is compiled by hack/build-fastpath.sh, and what comes of it is committed beside this file: nobody needs clang to build a
// node. `make verify-fastpath` compares. The programs need Linux 6.6 (TCX), with the kernel's types (BTF) and conntrack's functions
// for BPF, and CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN. Where conntrack is a module its types are told with CAP_SYS_ADMIN alone.
package fastpath
