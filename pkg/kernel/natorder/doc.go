// Package natorder finds source NAT of other software that comes before egress SNAT.
//
// A packet passes all base chains of the type nat at the hook postrouting, in the order of their priorities, until one of them gives it a
// source address. Later chains are not asked. Chains with the same priority are passed in the reverse order of their creation, so
// either may be the first. The chains of iptables have the priority 100, those of iptables-nft and of iptables-legacy alike.
//
// If another chain decides first, a bound pod does not leave from its egress IP: package steering drops what comes from another node, or is
// for one, and all else leaves from another address. What is found here is told, and never changed.
package natorder
