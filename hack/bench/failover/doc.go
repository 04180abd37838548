// Package failover measures how fast nodes of a pool move an egress IP (pkg/egress/pool), and what being in a pool costs a node
// that has nothing to do.
//
// Three nodes are network namespaces on one switch. Each runs the pool's part of the program alone, without an API server. The
// time is that from the fault until the kernel of another node has the address. Clients are gone for as long, and until the
// next packet after that.
package failover
