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
// A packet to an egress IP that comes to strays, which is after destination NAT, belongs to no connection of this node and is for no
// Service. The chain keep prevents the kernel from giving TCP packets to a pod because of their port (package steering, port blocks): the
// former holder still has the connection. A datagram does go to the pod: if the pod runs here, this node has ended its flow.
//
// # No packet goes in circles
//
// A former holder to which a packet is passed tracks it, or drops it because the address is in its set left: it neither routes it nor
// passes it on, even if it takes the address again within that time. So the new holder must only pass packets to a node that has this
// table and is its neighbour: a router would send them back. In addition, each node takes one off the TTL. The kernel's dup does not
// check whether any is left, so the rule does.
//
// # Limits
//
// Packets that are passed on come to the former holder by the interface of its node address, from hosts outside. If the egress IPs are on
// another interface, and that one takes only packets of sources that it would send to (rp_filter 1), the kernel drops them, as in IPv4
// with the tunnel. Connections that begin in that second then begin late.
//
// The table of the other family is "ip6 openshift-egress-handover". The kernel forgets an element by itself. The table exists only as
// long as it has elements: without it, packets pay nothing.
package handover
