// Package metallb knows which load-balancer IPs MetalLB's speakers announce in layer 2 mode, and from which nodes. Such an address
// is on no interface: the speaker of one node answers ARP and neighbour discovery for it, so answers to packets from this address
// come to that node, and its pods must leave from there.
//
//	ServiceL2Statuses ─► SetStatus  ─┐
//	                                 ├─► Book ─► Read: here, reserved, balanced
//	Services ──────────► SetService ─┘
//
// # What MetalLB tells
//
// A speaker that begins to announce a Service makes a ServiceL2Status (metallb.io/v1beta1) in MetalLB's namespace, 8 to 27 ms after its
// gratuitous ARP, and deletes those of other nodes for the same Service, or, before MetalLB 0.16, takes one of these over. The labels
// say which Service, and which node:
//
//	metallb.io/node, metallb.io/service-name, metallb.io/service-namespace
//
// They count, and nothing else: status.node comes later, and before MetalLB 0.16 names the first node for good. All addresses of a Service
// are announced by one node, which MetalLB elects by the first of them; they are those in status.loadBalancer.
//
// A speaker that is killed leaves its status until the next one deletes it, or its Pod is deleted. So two nodes may have one at the
// same time. Each of them counts the addresses as its own, and that one holds them which has got them last (package holders).
//
// # What follows from it
//
//   - Here: addresses that this node announces. It holds them, as those on its interfaces, but yields to another node that has got one
//     later.
//   - Balanced: the load-balancer IPs of all Services. Any node may announce them next, so each is prepared for it.
//   - Reserved: addresses that a node announces, or did within the last 30 s. The pool leaves them alone: a speaker that is
//     gone has a successor within 10 s.
//
// In BGP mode there is no one node to which answers come, and nothing is followed (ServiceBGPStatuses).
package metallb
