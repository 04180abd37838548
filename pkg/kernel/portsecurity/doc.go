// Package portsecurity keeps other pods from using a bound pod's address, and all from using an egress IP. A packet that has the address of a
// bound pod as its source passes only by the network interface behind which that pod is. It writes one nftables table of the family netdev, for both IP
// families, with a chain at the ingress of each interface that leads to a pod.
//
//	pod ─► eth0 ═ veth ─► INGRESS -500  its own address ─► bridge, PREROUTING, …
//	                                    the address of a bound pod that is elsewhere, or an egress IP ─► dropped, counted
//
// # Table
//
//	table netdev openshift-egress-port-security {
//	    counter spoofed-ipv4, spoofed-ipv6
//	    set bound-ipv4  { type ipv4_addr; }                 bound pods, and egress IPs that Services claim and may have
//	    set placed-ipv4 { type ipv4_addr; }                 the same, but bound pods only behind a known interface; both for IPv6, too
//
//	    chain pod-12-veth1234 {
//	        type filter hook ingress device "veth1234" priority -500;
//	        ip saddr 10.128.0.11                             accept
//	        ip6 saddr fd00:10:128::11                        accept
//	                                                         goto told, or goto untold
//	    }
//	    chain told {
//	        meta protocol 8021q, or 8021ad                   goto tagged-told
//	        ip saddr @bound-ipv4                             counter spoofed-ipv4 drop
//	        ip6 saddr @bound-ipv6                            counter spoofed-ipv6 drop
//	        meta protocol ip6 @nh,96,128 @bound-ipv6         counter spoofed-ipv6 drop
//	    }
//	    chain tagged-told {
//	        @nh,16,16 8021q, or 8021ad (a third tag)         counter spoofed-ipv4 drop
//	        @nh,16,16 ip @nh,128,32 @bound-ipv4              counter spoofed-ipv4 drop
//	        @nh,16,16 ip6 @nh,96,128 @bound-ipv6             counter spoofed-ipv6 drop
//	    }
//	    chain untold, and chain tagged-untold { the same with @placed-… }
//	}
//
// A packet with the pod's own address passes one comparison, whoever is bound. Until a pod is bound there is no table; after that it stays.
// The sets hold the addresses of all pods that are bound on this node: its own, and those of other nodes whose egress IP is here. Packets
// with one of the latter are not checked at an interface of which nothing is known: package steering drops them unless they come from the
// pod's node.
//
// The kernel has taken a frame's first VLAN tag off before this hook, and may take off the second one behind it: a bridge with VLANs does,
// for example. So the chains tagged-… look behind the second tag. Linux 7.1 and newer look behind most second tags themselves, but not
// into every IPv6 packet there: the last rule of told is for the others. Frames with three tags are dropped. nft lists these rules, but
// it does not read them again: it does not take the set of addresses for bytes of a packet.
//
// # Interfaces
//
// Chains are at these interfaces:
//
//   - veth and netkit whose other end is in another network namespace: told, as soon as it is known which address is there;
//   - tap devices, behind which may be a virtual machine: untold, unless the CNI plugin has told of them.
//
// There is no chain at an interface that leads to other nodes, or that is part of one that does. An interface leads to other nodes if it
// has this node's address, a default route with a gateway, or a route through a router that is no pod. Parts of it are the ports of such
// a bridge, except those with a pod's address behind them, and the lower devices of such an interface. Routes from router advertisements
// do not count, because pods can send these. Pods behind ipvlan, macvlan or SR-IOV send nothing through the host's interfaces that could
// be checked.
//
// A tc filter at the ingress of an interface comes before this hook. Packets that it redirects are not checked, and neither are packets
// that come back from an ifb device, which the CNI plugin bandwidth uses for what a pod sends: the kernel takes them past this hook. Such
// interfaces are reported, unless a BPF filter redirects, because nothing can be seen of that.
//
// # Who is behind an interface
//
// What the CNI plugin says counts first, and completely: a pod may have several addresses of an IP family. For a family of which it has
// said nothing the kernel is asked, never a packet: RTM_GETADDR with IFA_TARGET_NETNSID lists the addresses in the other end's network
// namespace. That takes CAP_NET_ADMIN, but neither a mount nor the right to enter the namespace. A process in a pod may have this
// capability, too, and change addresses there. So
//
//   - an interface has one address of each IP family in the cluster CIDRs, as a pod has: the first that is seen, for as long as the
//     interface exists;
//   - an address belongs to one interface: the one that got it first, or of two that are new the older one.
//
// The addresses granted to an interface are in its chain, so a new process goes on with them. As long as no pod has been bound on this node
// there is no table, and a new process takes each interface's first address anew. A refused address of a bound pod is reported.
//
// A new interface has its chain some milliseconds after the kernel tells of it, and if the CNI plugin tells of the pod, before the pod
// starts. A process that begins finds the interfaces that were made while there was none.
//
// # What it costs
//
// About 115 ns for each packet of a pod, bound or not, of the 3 to 5 µs that a node takes to pass one on: the hook itself is 30 ns, its first
// rule 45, the comparison of the address 40. `make bench RUN='^steering/port-security$'` has the ratios to what there is without it. Between
// sockets, where a packet takes 3 to 5 µs, the rate is 0.95 to 1.01. Without any socket, where a packet is forwarded in 2 µs, it is 0.94 to 1.00
// of established flows and 0.96 to 1.01 of new ones. What takes the fast path does not come to this hook, and costs what
// it cost before: 0.98 to 1.01. In nftables there is no cheaper way: a packet of a bridge's port has lost its
// interface when it comes to the hooks that steering and the source NAT have anyway.
//
// # What it is not
//
// It decides nothing about packets whose source is neither the address of a bound pod nor an egress IP. It does not look at ARP or neighbour discovery. A pod
// can lie there and receive another pod's packets, but it cannot answer from that pod's address.
package portsecurity
