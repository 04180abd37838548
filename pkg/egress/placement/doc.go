// Package placement says which part of the cluster-wide plan is one node's to do.
//
// A node needs the bindings of the pods whose packets leave through it: those that run on it, and those
// whose egress IP it holds, for other nodes steer their packets to it. In the pool it needs those of all the pool's egress IPs: it may
// get one at any moment, and the rules must be there by then.
//
// EndpointSlices and the Node's pod CIDRs tell which pods run here:
//
//   - an endpoint with this node's name, or with none, is here;
//   - an address in a pod CIDR of this Node is here, whatever an EndpointSlice says: the network
//     plugin gives such addresses to this node's pods only;
//   - with the scope [Cluster] every endpoint is here, for network plugins whose pods leave through
//     other nodes.
//
// Which pods are steered here follows from the egress IPs that this node holds or may get ([Placement].Held): all endpoints of the claims
// on them that do not refuse themselves (plan.Claim.Refused). Of a claim on several egress IPs, only the endpoints count for which their
// nodes have chosen one of these. The same pod may also be behind an older Service with an egress IP on another node. So this node looks at
// all claims on the pod's address, not only at the one whose egress IP it has, and decides as the pod's own node does: a packet that comes
// here by mistake does not leave as another Service. But only the pod's node knows which pod the CNI plugin reports at the address
// (plan.Attachment). So the nodes differ where an older claim's endpoint names another pod of its own namespace: the pod's node refuses
// that endpoint (AddressOfOtherPod), and this node binds the address by it, and refuses the pod's own claim (BoundByOlderService).
//
// The package selects endpoints before the plan is made, not bindings afterwards. So a node keeps no endpoints that it cannot need, and a
// change of a pod elsewhere is over before anything is planned. Who owns an address, and which claims are refused, does not depend on
// endpoints, so it is the same on every node. What is refused of a single pod is reported by the nodes that would bind it.
//
// An endpoint of a pod here counts by the node that it names, also where other endpoints have the same
// address: an address may be on two nodes for a while, of a pod that ends on one and of its successor on the
// other, and the successor must not leave as the predecessor. Of an address that is steered here, and in
// what 'openshift egress list --all' shows, the older Service wins.
//
// The package is pure. It imports the standard library and package plan.
package placement
