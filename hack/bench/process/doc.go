// Package process compares the whole process of a typical node with stock kube-proxy: the built binary (the
// environment variable OPENSHIFT names it) with one that this package builds from the same release of Kubernetes,
// unpatched. Both run in turn as the same node of package lab, against the same API server (CONTROLPLANE names the
// directory of its binaries) with the same objects, on an empty kernel, with the defaults of kube-proxy.
//
// A visit of a program is:
//
//	start ──► rules are complete ──► quiet ──► nothing happens ──► EndpointSlices change ──► end
//	     time to that                          CPU time while idle  CPU time above idle,
//	                                                                resident memory, live heap
//
// The time to complete rules is given without the kernel's time for the programs that were run as well: by nftables nearly
// all of it is the first nft -f, a transaction with an anonymous map for each Service. The kernel walks the whole
// transaction for each of them, and the same file, alone in an empty namespace, takes 11 to 28 s.
//
// CPU time is that of the process and of the children that it has waited for. Both programs look at the kernel
// regularly whether something changes or not, which is why the idle time is subtracted from what changes cost.
//
// Resident memory includes the pages of the program's file that are mapped, which the kernel takes away when it needs
// memory. They are fewer in a smaller program. Anonymous memory is without them.
//
// The cluster has 10,000 Services, 1,000 of them with external IPs, and 100,000 endpoints, 250 of them on this node. With
// iptables-nft it is a tenth of that: one iptables-nft-restore of a hundred thousand endpoints takes minutes, and so
// does iptables-nft-save, whichever program calls them.
package process
