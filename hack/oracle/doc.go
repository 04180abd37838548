// Package oracle is the documented rules of identity in code (pkg/egress/plan/doc.go,
// pkg/egress/placement/doc.go, and the help of the arguments): given the objects of a cluster and the
// nodes' arguments, it says from which address a pod's packet leaves.
//
// Tests compare the program with it. So it shares nothing with the program: it imports no package
// of pkg. It has a function for each rule, which is quoted above it in short, and it is slow: what
// counts is that a reader can compare it with the rules.
package oracle
