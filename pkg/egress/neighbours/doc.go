// Package neighbours looks for rules of other software on this node that do not go together with egress SNAT's: source NAT that comes
// first, and bits of the mark of steered packets. It tells people of them; it changes nothing.
package neighbours
