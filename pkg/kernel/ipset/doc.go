// Package ipset keeps the kernel's IP sets, which rules of iptables match by name, in the network namespace of the
// thread. It runs no program.
//
// A set changes one element at a time. Several sets, and sets and the rules that name them, are no transaction: the
// caller chooses an order in which every moment is right.
package ipset
