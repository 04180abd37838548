// Package kernel says in plain values what one IP family of a node's kernel should hold, whoever
// wants it: [Desired], and [Change] from one to the next. It is pure and imports the standard
// library only.
//
// The folders below act on such values:
//
//	iptables             source NAT rules, by iptables-restore
//	nft                  what keeps an nftables table, whatever is in it
//	steering             the table that gives flows their egress IPs, the way of packets to the node that
//	                     holds them, and the guard; a smaller table where nothing is steered
//	fastpath             a shorter way for established flows to that node
//	conntrack            tracked flows that have the wrong source address
//	reconcile            the one owner of what the kernel holds; it decides when to look, what
//	                     to write, in which order, and when to try again
package kernel
