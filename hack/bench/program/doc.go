// Package program runs node programs, the built binary or kube-proxy, on nodes of package lab, and says what they use: the
// time until their rules are complete, CPU time and memory. It compares nothing.
package program
