// Package redirect writes [kernel.Redirects] of one IP family into the kernel: into an nftables
// table of its own, or into chains of iptables' nat table. Then it ends the connections that go the wrong way.
//
// # Order
//
// The rules come before everybody's at the usual priority, dstnat (-100): before KUBE-SERVICES, so that no
// Service can take the connections, whatever external IPs it has. The first that gives a
// connection a destination decides. A connection to a Service that has endpoints on a redirected node is
// the proxier's, and not redirected: the kernel translates a destination once.
//
// # nftables
//
//	table ip openshift-tunnel {
//	    set nodes          { type ipv4_addr; }
//	    set secure-ports   { type inet_service; }
//	    set insecure-ports { type inet_service; }
//	    set sources        { type ipv4_addr; flags interval; }          networks of pods
//	    chain output {
//	        type nat hook output priority -101; policy accept;
//	        meta l4proto tcp ip daddr @nodes fib daddr type != local goto to-tunnel
//	    }
//	    chain prerouting {
//	        type nat hook prerouting priority dstnat - 1; policy accept;
//	        ip saddr @sources meta l4proto tcp ip daddr @nodes fib daddr type != local goto to-tunnel
//	    }
//	    chain to-tunnel {
//	        tcp dport @secure-ports dnat to 192.0.2.10:10263
//	        tcp dport @insecure-ports dnat to 192.0.2.10:10264
//	    }
//	}
//
// A change is one transaction.
//
// # iptables
//
//	OUTPUT                  -p tcp -j OPENSHIFT-TUNNEL-NODES                 at the very front
//	PREROUTING              -p tcp -j OPENSHIFT-TUNNEL-PODS                  at the very front
//	OPENSHIFT-TUNNEL-PODS   -s 10.128.0.0/14 -g OPENSHIFT-TUNNEL-NODES       one per network of pods
//	OPENSHIFT-TUNNEL-NODES  -m set --match-set openshift-tunnel-4a-nodes dst -m addrtype ! --dst-type LOCAL -g OPENSHIFT-TUNNEL-TO
//	OPENSHIFT-TUNNEL-TO     -p tcp -m set --match-set openshift-tunnel-4a-secure dst -j DNAT --to-destination 192.0.2.10:10263
//	                        -p tcp -m set --match-set openshift-tunnel-4a-insecure dst -j DNAT --to-destination 192.0.2.10:10264
//
// The rules are one iptables-restore transaction. The sets are the kernel's IP sets, which are no part of it. As long
// as the rules stay the same, the sets change one element at a time, in an order in which each destination goes from its old
// way to its new one at once:
//
//  1. Nodes that are not redirected any more leave their set.
//  2. Ports come: one that moves to the insecure address is in both sets now, and the secure rule is first.
//  3. Ports go.
//  4. Nodes that are redirected now come.
//
// Another address of the tunnel server, other networks of pods, the first or the last port of an address, or a redirect of all but these
// nodes ([kernel.Redirects].Others, where nodes come in step 1 and leave in step 4) needs other rules. Then the second generation of sets
// (openshift-tunnel-4b-nodes) is filled, which no packet meets yet; one transaction leads to it; and the first one goes.
//
// Where the kernel has no IP sets, or iptables does not know of them, the nodes are a tree of chains
// (see package iptables), and up to 15 ports are one rule:
//
//	OPENSHIFT-TUNNEL-NODES       -m addrtype --dst-type LOCAL -j RETURN
//	                             -d 192.0.2.0/24 -g OPENSHIFT-TUNNEL-D-C00002
//	OPENSHIFT-TUNNEL-D-C00002    -d 192.0.2.1/32 -g OPENSHIFT-TUNNEL-TO
//	OPENSHIFT-TUNNEL-TO          -p tcp -m multiport --dports 9443,10250 -j DNAT --to-destination 192.0.2.10:10263
//
// # Record
//
// Before a write removes something, it records it: as text in a chain that no rule jumps to (OPENSHIFT-TUNNEL-RECORD, or record in the
// nftables table). The record stays until all connections have been checked against it. If the process dies in between, the next one finds
// it there. What else an earlier process has left is found by the names in the kernel, never by memory.
package redirect
