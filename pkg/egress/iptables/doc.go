// Package iptables writes a plan into the nat table through iptables-restore, for one IP
// family, with either back end (iptables-legacy or iptables-nft).
//
// # Rules
//
// One jump at the very front of POSTROUTING leads into a tree of chains that this package
// owns; every name of them begins with [ChainPrefix]. It writes into no chain of anyone
// else's but that one jump.
//
//	POSTROUTING                      -j OPENSHIFT-EGRESS-SNAT
//	OPENSHIFT-EGRESS-SNAT            -d CLUSTER-CIDR -j RETURN          one per cluster CIDR and exclusion
//	                                 -s 10.128.0.0/20 -g OPENSHIFT-EGRESS-0A800000-20
//	                                 -s 10.128.16.0/20 -g OPENSHIFT-EGRESS-0A801000-20
//	OPENSHIFT-EGRESS-0A800000-20     -s 10.128.0.5/32 -p tcp -j SNAT --to-source 203.0.113.1 --random-fully
//
// Up to [leafRules] bindings stand in the first chain itself. Beyond that the addresses
// are split by four bits a level, levels that would not split anything are left out, and
// each subtree is a chain, so a packet meets at most some 16 rules a level and [leafRules]
// at the end, however many bindings there are. A chain's name and content depend on the
// bindings inside of its prefix alone: a change rewrites the chain that it is in, and a
// neighbour only when a subtree starts or ceases to be one.
//
// # Writing
//
// [Render] says what the kernel should hold, [ParseSave] what it holds; what differs is
// one iptables-restore --noflush transaction, all of it or nothing. The [Writer] remembers
// what it wrote, so a plan that did not change costs no exec; Read makes it look again.
// What to remove is found by the names of chains in the kernel, never by memory, so a
// process that died leaves nothing behind for ever.
package iptables
