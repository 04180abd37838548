// Package kernel says in plain values what one IP family of a node's kernel should hold: [Desired] and [Change] for egress SNAT,
// [Redirects] for connections that are sent elsewhere. It is pure and imports the standard library only. It also has helpers for lists and
// maps, for those who compare such values (lists.go).
//
// The folders below read and change the kernel:
//
//	iptables             source NAT rules, by iptables-restore
//	nft                  what keeps an nftables table, whatever is in it
//	steering             the table that gives flows their egress IPs, the way of packets to the node that
//	                     holds them, and the guard; a smaller table where nothing is steered
//	fastpath             a shorter way for established flows to that node
//	handover             connections that begin while an egress IP goes from one live node to another
//	portsecurity         other pods are kept from using a bound pod's address
//	conntrack            tracked flows that have the wrong source address
//	reconcile            the one owner of what the kernel holds; it decides when to look, what
//	                     to write, in which order, and when to try again
//	redirect             Redirects, by nftables or iptables
//	natorder, tcfilter   source NAT and tc filters of other software
//	changes, portowner   changes of interfaces and addresses; the program that has a port
package kernel
