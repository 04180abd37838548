// Package flows measures what rules cost packets: how fast a node begins new flows, and forwards packets of
// established ones, with each structure of rules against a single SNAT rule.
//
//	pod          gen0 02:…:01
//	              |   raw frames, AF_PACKET past the qdisc, 64 per call
//	node         from0 02:…:02
//	              |   forwards; KUBE-POSTROUTING as upstream's proxier writes it, and the measured structure
//	             to0  02:…:03
//	              |   to the permanent neighbour 02:…:05
//	outside      sink0 02:…:04, so nobody answers
//
// Each structure has a pod, a node and an outside host of its own, connected by these links alone. One thread,
// pinned to one CPU, sends prepared TCP SYNs, each of another flow, with valid checksums because conntrack
// verifies them. The kernel forwards a frame within the call that sends it, so the thread's CPU time per frame is
// the cost of a new flow. It varies by one or two percent; wall time varies by ten.
//
// The conntrack tables are empty at the beginning of a visit and emptied at its end. A visit is 20,000 flows, which
// fit into the machine's nf_conntrack_max. The flows have many destinations, so that ports are not scarce.
//
// The loads are flows of one pod, in the middle of the bindings; of a random bound pod each, which misses the CPU's
// caches; and the same two of unbound pods, whose addresses are in between. The structures:
//
//	none-*       KUBE-POSTROUTING alone, of the same kind as beside the structure
//	single       one SNAT rule for the cluster CIDR, with random ports as in our rules: the least that netfilter does
//	single-again the same on another node: the difference between two equal nodes
//	legacy, nft  the rules of package iptables, written by either back end
//	nftables     the table of a node that steers nothing, beside the nftables proxier's
//	map          in its place one rule that looks a pod's egress IP up in a map: the least for any number of pods in nftables
//
// Before a structure is measured under a load, the far side must see a sample of it from the right addresses.
//
// # Steering
//
// A steered packet is forwarded by two nodes, within the same call. The second one is plugged into the bridge of the
// lab, the nodes' network, and has to0; the table of steering is on both.
//
//	pod          gen0
//	node         from0     marks the packet for the other node
//	              |        eth0: steer0 (vxlan), or the other node is the next hop (direct)
//	node-2       to0       gives it its egress IP
//
// So CPU time is what both nodes spend together on a packet, from the pod's link to the wire: the least that it can be.
// No socket is part of it, neither of the pod nor of anybody who receives; with these, which other
// rows are about, all ratios are nearer to 1. The structures:
//
//	unsteered    the table of a node that steers nothing, as above
//	local        in its place that of one that steers, with all egress IPs on this node
//	away         the same with all of them on another node, for unbound pods: routes are chosen by rules
//	unblocked, blocked   local, where the node holds the egress IPs; and each pod has ports of its egress IP for itself
//	sharing      pods of other nodes have such ports, and those of this one share what is left
//	secured-…    local, and the table of package portsecurity, with one pod behind the link, bound or not
//	vxlan        on two nodes, with all egress IPs on the second one
//	direct       the same without the tunnel
//	fast-…       these with the fast path (package fastpath), fast-local with that for all; fast-unbound for unbound pods that share an
//	             address of their node, beside masqueraded, the same without steering
//
// What is between sockets goes through the lab's own links, and the host outside is part of it. Packets get their checksums as they leave a
// node: the links would leave that to whoever receives, which no network between machines does.
package flows
