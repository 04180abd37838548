// Package process compares the whole process of a node with stock kube-proxy: the built binary
// (the environment variable OPENSHIFT names it) with one that this package builds from the same
// release of Kubernetes, unpatched. Both run in turn as the same node of package lab, against the
// same API server (CONTROLPLANE names the directory of its binaries) with the same objects, on an
// empty kernel, with the defaults of kube-proxy.
//
// A visit of a program is:
//
//	start ──► rules are complete ──► quiet ──► nothing happens ──► EndpointSlices change ──► end
//	     time to that                          CPU time while idle  CPU time above idle,
//	                                                                resident memory, live heap
//
// CPU time is that of the process and of the children that it has waited for, as the kernel
// counts it. Both programs look at the kernel from time to time whether something changes or not, which
// is why the idle time is measured on its own and taken off what changes cost.
//
// In the iptables modes the rules are written by iptables-legacy: with iptables-nft, which takes a time
// that grows with the square of the number of chains, a single sync of a hundred thousand endpoints
// takes minutes, whichever program asks for it.
package process
