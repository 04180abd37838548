// Package neighbor asks the hosts of a network segment which of them has an address, and tells them that this
// one has it: ARP for IPv4 (RFC 826, RFC 5227), neighbour discovery for IPv6 (RFC 4861, RFC 4862).
//
// Questions and their answers change nothing of what other hosts know of an address. The kernel of a host answers,
// whatever its processes do.
//
// It changes no address of this host, and keeps no socket open between two calls: what arrived before a
// question is no answer to it.
package neighbor
