// Package flows measures what rules cost packets: the rate at which a node can begin new
// flows, and that at which it forwards established ones, with each structure of rules
// against a single SNAT rule.
//
//	pod          gen0 02:…:01
//	              |   raw frames, AF_PACKET past the qdisc, 64 a call
//	node         from0 02:…:02
//	              |   forwards; KUBE-POSTROUTING as upstream's proxier writes it, and the
//	              |   structure that is measured
//	             to0  02:…:03
//	              |   to the permanent neighbour 02:…:05
//	outside      sink0 02:…:04, so nobody answers
//
// Each structure has a pod, a node and an outside host of its own, connected by these
// links and nothing else. One thread, which stays on one CPU, sends prepared TCP SYNs of as
// many flows as there are frames, with valid checksums, for conntrack verifies them.
// The kernel does everything that becomes of a frame in the course of the call that
// sends it, so the thread's CPU time per frame is the price of a new flow. It varies by some
// percent where wall time varies by ten.
//
// The conntrack tables are empty at the beginning of a visit and emptied at its end: a visit is
// 20,000 flows, to fit in what nf_conntrack_max allows, which is not changed. Destinations
// are many, so that ports are not scarce.
//
// The pods of a load are "one", that in the middle of the bindings; "random", any bound one for
// each flow, which finds nothing in the CPU's caches; and "unbound" and "unbound-random", the
// same of pods whose addresses are in between. Structures:
//
//	none         KUBE-POSTROUTING only, of the same kind as beside the structure
//	single       one SNAT rule for the cluster CIDR, with random ports as we have them: what
//	             netfilter can do at best
//	single-again the same on another node: how far two equal nodes are apart
//	plain        the same without random ports
//	linear       a rule for each binding, in one chain
//	legacy, nft  package iptables' rules, by either back end
//	nftables     package nftables' table, beside the nftables proxier's
//
// Before it is measured, each is held against what the far side must see: every flow of a
// sample from the right address.
package flows
