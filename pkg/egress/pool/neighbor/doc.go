// Package neighbor asks the hosts of a network segment which of them has an address, and tells them that this
// one has it: ARP for IPv4 (RFC 826, RFC 5227), neighbour discovery for IPv6 (RFC 4861, RFC 4862).
//
// Questions carry no address of the sender, so they change no neighbour's tables. The kernel of a host answers
// them, whatever its processes do.
//
// It changes no address of this host, and keeps no socket open between two calls: what arrived before a
// question is no answer to it.
package neighbor
