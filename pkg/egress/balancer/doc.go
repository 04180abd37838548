// Package balancer follows which egress IPs MetalLB announces, and from which node: the kinds of its objects, as soon as the API server has
// them, and the Services' load-balancer IPs. Package metallb has the rules.
//
//	Services ───────────────────────────────┐                               ┌─► Announced: what this node has, and may have next
//	discovery ─► a watch for each resource ─┴─► Balancer ─► metallb.Book ───┼─► Reserved: what the pool leaves alone has changed
//	                                                                        └─► Known: all objects are known, or nobody may read them
//
// Objects that cannot be read delay nothing for more than ten seconds. They are a fault only if one of the cluster's egress IPs is a load
// balancer's.
package balancer
