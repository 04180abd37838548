// Package nftables writes a plan into a table of its own, over netlink, for one IP family. It is for nodes that do not steer packets, and
// for those whose address is not known yet: with steering, the table of package steering has the bindings, and this one is removed.
//
// # Table
//
//	table ip openshift-egress {
//	    set exclusions { type ipv4_addr; flags interval; }                  cluster CIDRs and exclusions
//	    set egress-ips { type ipv4_addr; }                                  all egress IPs
//	    set own        { type ipv4_addr . inet_proto . ipv4_addr; }         pod . protocol . its egress IP
//	    set own-pods   { type ipv4_addr . ipv4_addr; }                      pod . its egress IP, all protocols
//	    map bindings   { type ipv4_addr . inet_proto : ipv4_addr; }         pod . protocol : egress IP
//	    map pods       { type ipv4_addr : ipv4_addr; }                      pod : egress IP, all protocols
//	    set removed    { type ipv4_addr . inet_proto . ipv4_addr; }         the journal
//	    chain postrouting {
//	        type nat hook postrouting priority -197; policy accept;
//	        ip daddr != @exclusions ip daddr != @egress-ips
//	            snat to ip saddr . meta l4proto map @bindings fully-random
//	        ip daddr @egress-ips ip daddr != @exclusions ip saddr . meta l4proto . ip daddr != @own     not to its own egress IP
//	            snat to ip saddr . meta l4proto map @bindings fully-random
//	        the same two with @own-pods and @pods
//	    }
//	}
//
// The table of the other family is "ip6 openshift-egress". A packet costs the same however
// many bindings there are. The chain comes before everybody else's source NAT: iptables of both
// back ends, kube-proxy's own table, network plugins, which are at srcnat (100) or a little lower. The first
// that gives a flow a source address decides, and a later masquerade changes nothing.
// At the same priority the order would be that of loading. The two rules of a map
// stand there only if there is something in it. As they are written, though not as nft prints
// them, the first begins with the map: most packets of pods that are not bound end there.
//
// # Writing
//
// [Render] says what the sets should hold; the [Writer] sends what differs from what they
// do hold ([Writer.Write]), or what a plan's change makes of them ([Writer.Update]), in one
// transaction, all of it or nothing: a pod that gets another egress IP has one or the
// other at any time. It remembers what it wrote, and the generation of
// the kernel's ruleset with it, so that a plan that did not change costs nothing, and a
// look at a kernel that nobody has changed one message. If the chain or a rule is not as
// it was written, the whole table is written anew, in one transaction too.
//
// # The journal
//
// The transaction that removes bindings can keep them on record ([Content.Record]) in the
// set removed, which no rule looks at, so that a process that dies before it has seen to
// their flows leaves the next one to know of them ([Content.Bindings]).
package nftables
