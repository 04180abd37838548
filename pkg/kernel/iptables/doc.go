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
//	OPENSHIFT-EGRESS-SNAT            -d 10.128.0.0/14 -j RETURN           one per cluster CIDR and exclusion
//	                                 -s 10.128.0.0/20 -g OPENSHIFT-EGRESS-0A800000-20
//	                                 -s 10.128.16.0/20 -g OPENSHIFT-EGRESS-0A801000-20
//	OPENSHIFT-EGRESS-0A800000-20     -s 10.128.0.5/32 ! -d 203.0.113.1/32 -p tcp -j SNAT --to-source 203.0.113.1 --random-fully
//
// What matches no rule, or RETURN, is not SNATed: since no chain calls another but all go
// to it, the packet is back in POSTROUTING. So is a pod's packet to its own egress IP. A
// binding for all protocols is a rule without -p.
//
// Up to [leafRules] bindings stand in the first chain itself. Beyond that the addresses
// are split by four bits a level, levels that would not split anything are left out, and
// each subtree is a chain, so a packet meets at most some 16 rules a level and [leafRules]
// at the end, however many bindings there are. A chain's name and content depend on the
// bindings inside of its prefix alone: a change rewrites the chain that it is in, and a
// neighbour only when a subtree starts or ceases to be one.
//
// Exclusions of single addresses are nodes, of which there may be thousands. Above
// [destinationRules] of them they make a tree of the same kind, by destination, in front of the
// bindings', which moves into a chain of its own:
//
//	OPENSHIFT-EGRESS-SNAT            -d 10.128.0.0/14 -j RETURN           one per network
//	                                 -d 192.0.2.0/24 -g OPENSHIFT-EGRESS-D-C00002
//	                                 -g OPENSHIFT-EGRESS-SOURCE           to none of the nodes
//	OPENSHIFT-EGRESS-D-C00002        -d 192.0.2.0/28 -g OPENSHIFT-EGRESS-D-C000020
//	                                 -d 192.0.2.16/28 -g OPENSHIFT-EGRESS-D-C000021
//	                                 -g OPENSHIFT-EGRESS-SOURCE           to a node's neighbour
//	OPENSHIFT-EGRESS-D-C000020       -d 192.0.2.1/32 -j RETURN
//	                                 -g OPENSHIFT-EGRESS-SOURCE           to a node's neighbour
//	OPENSHIFT-EGRESS-SOURCE          -s 10.128.0.0/20 -g OPENSHIFT-EGRESS-0A800000-20
//
// iptables-nft takes 15 chains in a row at most, so neither tree grows deeper than its share
// of them: where addresses are so uneven that one would, its last chains have more rules
// instead.
//
// [Ruleset.Trace] says which of these rules a packet matches.
//
// # Writing
//
// [Render] says what the kernel should hold, [ParseSave] what it holds; what differs is
// one iptables-restore --noflush transaction, all of it or nothing. A [Rendering] follows a
// plan's changes and makes the chains anew that these are about. The [Writer] remembers
// what it wrote, so a plan that did not change costs no exec; Read makes it look again.
// [Look] only looks, and [Differences] says what is wrong. What to remove is found by the
// names of chains in the kernel, never by memory, so a process that died leaves nothing
// behind for ever.
//
// # Glances
//
// iptables-save prints all tables, and a proxier with a hundred thousand endpoints has hundreds of thousands
// of rules there, which change all the time. So [Writer.Untouched] reads, without a program, only what a look
// is about: the owned chains and POSTROUTING, of which it compares a hash with that of before, and whether the
// proxier's jumps and base chains are there. With iptables-nft it asks the kernel for these chains one by one,
// by their names. The kernel hands out legacy tables only as a whole: 190 MB for a hundred thousand endpoints,
// in 0.4 s.
//
// The Writer takes the hashes in front of each Read, which then proves that what it has seen was right. Of
// the chains that it has written since it takes them at the next glance, in front of 'iptables -S', which
// proves the same of one chain.
//
// # The mark
//
// A write of a few chains does not look at the others, so it could hide what somebody else did to
// them. To prevent that, each transaction leaves an empty chain, OPENSHIFT-EGRESS-AT- and a number,
// and deletes the one that the transaction before it left. If somebody has restored an old state of
// the table, that chain is not there, and the transaction fails.
//
// # The journal
//
// A process that removes a binding also has to end the flows that still use its address, and may
// die before. So the transaction that removes the rules of bindings can keep them on record
// ([Ruleset.Record]) in OPENSHIFT-EGRESS-REMOVED, a chain that nothing leads to. The next
// start reads there what went ([Kernel.Bindings]); the next write deletes it.
package iptables
