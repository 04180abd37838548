// Package holders knows which node has which egress IP on one of its interfaces: its holder. Steering
// sends the packets of bound pods there (package kernel, type Steering).
//
//	this node's interfaces ─► WatchAddresses ─► OwnAddresses ──┐
//	                                                           │        ┌─► Holder, Ways, Conflicts
//	Leases of all nodes ────► Leases.Watch ───► Announced, … ──┼─► Directory
//	                                                           │        └─► Own ─► Publisher ─► this node's Lease
//	Nodes ──────────────────► the caller ─────► NodeSeen, … ───┘
//
// # The Leases
//
// Each node that has an egress IP says so in a Lease of its name, in a namespace for these Leases:
//
//	metadata:
//	  annotations:
//	    network.openshift.io/egress-addresses: '{"203.0.113.10": {"epoch": 3}}'
//
// The epoch of an address grows each time a node gets it: it is higher by one than those that Leases have
// then, and than that of a holder that is lost. A process that starts keeps the epoch that its node's Lease
// has.
//
// # Who holds an address
//
//   - local: this node has the address, whatever others say;
//   - remote: other nodes announce it and are live. If there are several, the highest epoch counts, and
//     of equal ones the node whose name sorts last;
//   - lost: the nodes that announce it are not live, or the last of them has ceased to announce it within
//     the last 5 s;
//   - unclaimed: nobody announces it.
//
// What a node announces counts as long as its Lease lists the address and its Node object exists. So an
// address that leaves a Lease, a deleted Lease and a deleted Node are the same: 5 s later the address is
// unclaimed, if no other node has taken it. An address of a silent node stays lost until then.
//
// A node is live if it is not silent, and its Node has an InternalIP of the family that the nodes reach
// each other by. It is silent when there are two witnesses against it: its Lease was not seen to change for
// 40 s, by this node's clock, and its Node is not Ready. A process that is dead is no dead node, and
// neither is a node whose kubelet is stopped. Times when this node could not watch the Leases do not count.
//
// # What the package never does
//
// It changes no address and no rule, and it waits for nobody: without the API server, the right to its
// Leases or their namespace, nobody's addresses are known, which is logged, and tried again.
//
// The files directory.go, event.go and holding.go are pure: they import the standard library and package
// kernel, and time is passed in.
package holders
