// Package redirect writes [kernel.Redirects] of one IP family into the kernel: into an nftables
// table of its own, whatever the proxy mode; into chains of iptables' nat table where the kernel's nftables cannot do that. Then it ends the
// connections that go the wrong way.
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
// Where [Available] says no, the nodes are a tree of chains (see package iptables), and up to 15 ports are one rule:
//
//	OUTPUT                       -p tcp -j OPENSHIFT-TUNNEL-NODES                 at the very front
//	PREROUTING                   -p tcp -j OPENSHIFT-TUNNEL-PODS                  at the very front
//	OPENSHIFT-TUNNEL-PODS        -s 10.128.0.0/14 -g OPENSHIFT-TUNNEL-NODES       one per network of pods
//	OPENSHIFT-TUNNEL-NODES       -m addrtype --dst-type LOCAL -j RETURN
//	                             -d 192.0.2.0/24 -g OPENSHIFT-TUNNEL-D-C00002
//	OPENSHIFT-TUNNEL-D-C00002    -d 192.0.2.1/32 -g OPENSHIFT-TUNNEL-TO
//	OPENSHIFT-TUNNEL-TO          -p tcp -m multiport --dports 9443,10250 -j DNAT --to-destination 192.0.2.10:10263
//
// A change is one iptables-restore transaction. In the mode iptables, former versions always wrote chains, and the rules named IP sets. Both
// are read, for the sake of the connections that they have redirected, and removed (former_linux.go).
//
// # Record
//
// Before a write removes something, it records it: as text in a chain that no rule jumps to (OPENSHIFT-TUNNEL-RECORD, or record in the
// nftables table). The record stays until all connections have been checked against it. If the process dies in between, the next one finds
// it there. What else an earlier process has left is found by the names in the kernel, never by memory.
package redirect
