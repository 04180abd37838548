// Package handover keeps connections that begin or go on while an egress IP goes from one live node to another. It never
// decides who has an address.
//
// The new holder tells the network and the nodes of the pods at the same time. They need some milliseconds each, on a busy
// node more. Meanwhile packets leave by the former holder, and the answers come to the new one, which does not track the
// connection. It passes them on:
//
//	pod ──► former holder ──► far side
//	              ▲               │
//	              └── new holder ◄┘
//
// Each node of the pool does both, by an nftables table of its own:
//
//	table ip openshift-egress-handover {
//	    map former { type ipv4_addr : ipv4_addr; timeout 2s; }     egress IP that came here : the node that had it
//	    set passed { type ipv4_addr; timeout 2s; }                 those of former that are not in left
//	    set left   { type ipv4_addr; timeout 3s; }                 egress IPs that another node has now
//	    chain keep {
//	        type nat hook prerouting priority dstnat + 1; policy accept;
//	        tcp flags syn / syn,rst,ack                            accept
//	        meta l4proto tcp ip daddr @passed                      dnat to ip daddr
//	    }
//	    chain prerouting {
//	        type filter hook prerouting priority dstnat + 2; policy accept;
//	        ct state invalid,new tcp flags != syn / syn,rst,ack    goto strays
//	        ct state invalid,new meta l4proto udp                  goto strays
//	    }
//	    chain strays {
//	        ip daddr @left                                         drop
//	        ip ttl > 1                                             dup to ip daddr map @former drop
//	    }
//	}
//
// A packet to an egress IP that is a stray behind destination NAT belongs to no connection of this node, and is for no Service. The chain
// keep has the kernel give none of TCP to a pod because of its port (package steering, port blocks): the former holder still has the
// connection. A datagram goes to the pod: if it runs here, this node has ended its flow.
//
// # No packet goes in circles
//
// A node to which an address was passed tracks the packet, or drops it as one of an address in left: it neither forwards it as a
// router does, nor passes it on. That also holds if it takes the address again within that time. So the new holder must
// only pass packets to a node that has this table, and must be its neighbour: a router would send them back. Beyond that, each
// node takes one off the TTL. The kernel's dup does not look whether any is left, so the rule does.
//
// # Limits
//
// What is passed on comes to the former holder by the interface of its node address, from hosts outside. If that is not the one
// with the egress IPs, and takes only packets of sources that it would send to (rp_filter 1), the kernel drops them, as in IPv4
// with the tunnel. Connections that begin in that second begin late then.
//
// The table of the other family is "ip6 openshift-egress-handover". The kernel forgets an element by itself. The table is there
// as long as it has one: without it, packets pay nothing.
package handover
