// Package lab builds a small cluster network out of network namespaces, for
// tests that prove behaviour with real packets and for demonstrations: nodes on
// one underlay, pods behind them and one host outside.
//
//	 PREFIX-outside   forwards nothing; routes the external IPs and the
//	      |           cluster CIDRs via the first node, so that every answer
//	      |           comes back and an un-SNATed pod address is seen when it
//	      |           leaks
//	     lan0         192.0.2.1/24      2001:db8:0:2::1/64
//	      |
//	     eth0         192.0.2.2/24      2001:db8:0:2::2/64
//	 PREFIX-node      forwards, rp_filter off, default route via outside;
//	      |           its iptables is of the backend asked for
//	     cni0         10.128.0.1/24     fd00:10:128::1/64    (hairpin on)
//	    /    \
//	 eth0    eth0     10.128.0.11/24    fd00:10:128::11/64   (pod-1)
//	  |       |       10.128.0.12/24    fd00:10:128::12/64   (pod-2)
//	PREFIX-  PREFIX-
//	pod-1    pod-2    default route via the node's cni0
//
// lan0 is a bridge, and the underlay whatever is plugged into it: more nodes, and
// a host for a control plane.
//
//	                        lan0 of PREFIX-outside
//	   _______________________|______________________________
//	   |               |                |                   |
//	  eth0            eth0             eth0                eth0
//	  .2  ::2         .3  ::3          .4  ::4             .254  ::254
//	PREFIX-node   PREFIX-node-2    PREFIX-node-3      PREFIX-control
//	   |               |                |
//	  cni0            cni0             cni0
//	10.128.0.1/24    10.128.1.1/24    10.128.2.1/24
//	fd00:10:128::1   fd00:10:128:1::1 fd00:10:128:2::1   /64
//	   |               |                |
//	 pods            pods             pods
//
// All of them route each pod network via its node, so pods reach each other and
// are seen as themselves. With several nodes the outside host answers like a
// router with reply-to: conntrack remembers by which node a flow came (the nft
// table reply-to marks it), and its answers go back there, whatever source address
// and port it sees. What begins outside goes where [Lab.RouteVia] says. With
// Config.AnswersByARP that is not so for addresses of lan0's own subnets: whoever
// has one on its interface gets what is for it, see [Lab.MoveAddr].
//
// With Config.Far there is a host behind a router, too:
//
//	lan0 --- .253 ::253  PREFIX-router  198.18.0.1  2001:db8:0:3::1 --- .2 ::2  PREFIX-far
//
// With Config.PointToPoint there is no cni0. Each pod has an interface of its own on its node, with the gateway's addresses, and the
// node has a route to each pod:
//
//	vethXXXX   10.128.0.1/32, fd00:10:128::1/128   10.128.0.11/32 and fd00:10:128::11/128 are routed to it
//	   |
//	 eth0      10.128.0.11/24, fd00:10:128::11/64  (pod-1)
//
// The cluster CIDRs are [ClusterV4] and [ClusterV6]; the external IPs live in
// 203.0.113.0/24, 198.51.100.0/24 and 2001:db8:113::/48 and belong to nobody
// until [Lab.AddAddr] or a proxy on a node gives them a meaning.
//
// The question that the lab answers is "who am I seen as": a [Server] tells each
// client the address that it saw, and [Host.Ask] returns what the server said,
// for TCP, UDP, SCTP and ICMP. [Traffic] asks it of many hosts, again and again while
// something else happens, and has every answer checked. What has no answer is
// seen, too: [Lab.Watch] counts the packets that leave the nodes.
//
// The package never changes anything outside the namespaces that it made: no
// sysctl, no rule, no link of the machine. It needs root and the tools that
// [Missing] looks for. It does not need SCTP in the kernel.
package lab
