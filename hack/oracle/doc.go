// Package oracle is README.md's "Who may wear an address" and "Never SNATed" in code: given the
// objects of a cluster and the nodes' arguments, it says from which address a pod's packet leaves.
//
// Tests compare the program with it. So it shares nothing with the program: it imports no package
// of pkg. It has a function for each sentence of README.md, quoted above it, and it is slow: what
// counts is that a reader can compare it with the sentences.
package oracle
