// Package metallb knows which load-balancer IPs MetalLB announces: in layer 2 mode the speaker of one node answers ARP and neighbour
// discovery for such an address, which is on no interface. So answers to packets from it come to that node, and pods must leave from
// there.
//
//	ServiceL2Statuses, L2Advertisements, BGPAdvertisements ─► Set, Delete, Replace ─┐
//	                                                                                ├─► Book ─► Read
//	Services ───────────────────────────────────────────────► SetService ───────────┘
//
// Objects count in MetalLB's own namespace alone, as MetalLB reads them: who may write them elsewhere, as the tenants of a namespace may
// where an operator has given them the right, could have packets sent to another node.
//
// # What follows
//
//   - Here: addresses that this node announces. It holds them, as those on its interfaces, but yields to another node that has got one
//     later (package holders).
//   - Layer2: addresses that any node may announce next, so each is prepared for it.
//   - Reserved: these, and those that MetalLB has to announce by BGP, whether it does now or not. This program's pool leaves them alone.
//
// # Statuses
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
// same time. Each of them counts the addresses as its own.
//
// # Advertisements
//
// MetalLB's controller says in the annotation metallb.io/ip-allocated-from-pool from which IPAddressPool a Service has its addresses, and
// writes it together with them; before MetalLB 0.14.9 in metallb.universe.tf/ip-allocated-from-pool. They are announced, by ARP or by
// BGP, if an L2Advertisement or a BGPAdvertisement is for that pool. One that chooses pools by their labels counts as one for all; which
// nodes, interfaces and Services it chooses does not matter.
//
// In BGP mode there is no one node to which answers come, and nothing is followed.
package metallb
