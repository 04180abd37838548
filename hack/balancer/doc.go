// Package balancer is a load balancer for clusters of package cluster, as a cloud or MetalLB with BGP is one: it gives Services
// of type LoadBalancer addresses, and has a router send to nodes what is for them.
//
//	 client      198.18.0.2                   Service: status.loadBalancer, finalizer
//	    |                                          ^
//	    |                                          | writes
//	PREFIX-router --- routes, written by ----- Run ------ asks each node's health check port
//	    |       |      198.19.0.1/32 via node, node-2        (externalTrafficPolicy: Local)
//	    |       |      198.19.0.0/24 blackhole
//	  node    node-2   kube-proxy translates 198.19.0.1 to pods
//
// Addresses are of ipMode VIP. A Service is sent to all nodes that are ready, or with externalTrafficPolicy: Local to those that
// answer at its health check port that they have endpoints. A connection's addresses and ports choose the node. A Service with
// session affinity has one node as long as that is healthy: each node keeps its own table of clients.
//
// Packets to an address of no Service, or of a Service without nodes, are dropped without a reply. An address that a Service gave back
// is given again only after all others of its range. Services with a class are left to others.
//
// It writes nothing but these two fields of Services, and routes and the choice between several of them in the router's namespace.
package balancer
