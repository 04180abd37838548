// Package scale measures what a cluster of thousands of nodes costs: the API server, and each node.
//
//	                   etcd, kube-apiserver
//	    ┌──────────────────┬───┴──────────────┬────────────────────┐
//	node-0 … node-2    node-3 …           last node            stand-ins
//	hold the egress    hold none          holds none, and      a watch of Leases for each
//	IPs, as a pool                        hears Leases alone   other Node, on its own connection
//
// The API server with all objects is real, and so are as many processes of the built binary as fit, each in a network
// namespace with a user of its own. All other Nodes are objects only. A stand-in does for such a Node what matters when an
// address moves: it watches the Leases as a node does, and notes when it was told.
//
// The cluster has 10,000 Services with 100,000 endpoints, 20 on each node, and is measured in several sizes: with the same
// addresses on more nodes, and with fewer addresses on the same nodes. In each of them, all processes begin anew:
//
//	all start            the time until all rules are there, requests, bytes
//	nothing changes      requests, bytes from the API server, CPU time
//	kubelets report      the same
//	pods change          the same, for each changed EndpointSlice
//	an address moves     the time until all kernels follow, without stand-ins and with them
//
// Requests are those in the API server's audit log, by user. Bytes are those of the packets that the API server sends to a
// node, counted by nftables.
//
// Kubelets report: each Node's status is written every five minutes, as a kubelet does where nothing changes, and a Node
// has 8 kB, with 30 images, which the API server compresses to less than half. The reports of all Nodes reach every node.
//
// An address moves: it is gone from one node's interface and on another's. A kernel follows when its steering table leads
// the packets of its own pod to the new holder.
//
// A calculated value is for the whole cluster: the value of one node times the number of nodes.
//
// It is an error if a node does not follow, writes its Lease more often than it should, or asks for kinds of objects that it
// has no business with.
package scale
