// Package plan decides which pod address leaves from which egress IP.
//
// It owns the rules of that decision and nothing else: [Build] is a pure function of
// plain input, the same for the same input in any order, and a [Plan] can be compared
// with another. A [Planner] comes to the same plans by following changes: it judges only the addresses, claims and pods that a change is
// about, and says what came of it. Package cluster turns Kubernetes objects into an [Input]; the packages below pkg/kernel bring a plan
// into the kernel.
//
// The plan is the whole cluster's. Which part of it is one node's to write: package placement.
//
// The package imports the standard library and packages kernel and rendezvous only.
//
// The rest of this page is the rules in full. They hold for each IP family by itself.
//
// # Claims
//
// A Service claims its first external IP, in the order of spec.externalIPs: that is its egress IP. The
// first entry counts even if it is refused: no later one takes its place.
//
// A Service of type LoadBalancer without external IPs claims its first load-balancer IP of ipMode VIP, if
// proxyArguments.egress-snat-load-balancer-ips is true. In ipMode Proxy the address is the load
// balancer's own, so no pod leaves from it.
//
// The annotation network.openshift.io/egress-snat on the Service changes that. "true" is the default.
// "false": the Service claims nothing. Otherwise it names one of the Service's addresses of each IP
// family, separated by commas: the Service claims these. It claims nothing in a family that is not named.
//
// The annotation network.openshift.io/egress-ip on the Service names its egress IPs, separated by commas, whether
// or not the Service has them as external IPs or by a load balancer. It comes before all of the above, and before the addresses that
// egress-snat names; "false" in egress-snat still means that the Service claims nothing. It claims nothing in a family that is not named.
// It may name up to 16 of each IP family, or one where proxyArguments.egress-snat-steering is off.
//
// Some Services claim nothing and have no address: those of type ExternalName, headless ones without the annotation
// network.openshift.io/egress-ip, and those with the label service.kubernetes.io/service-proxy-name. The proxier does not serve them
// either. A headless Service with the annotation has the addresses that it names, and no others. The pods of one without ports are
// bound as if it had a port of each protocol.
//
// # Several egress IPs
//
// Each egress IP that a Service names is a claim of its own, granted or refused by itself. A pod of the Service leaves from one of those
// that are granted, of each IP family. Its node chooses it when it first sees the pod: first those whose holder's Node is in the same zone
// (label topology.kubernetes.io/zone) as the pod's, then those that any node holds; of these, the one with the highest score for the pod's
// UID (rendezvous hashing). If the node has already chosen one of them for the pod, for another Service, it is that one. If no node holds
// any of them, the node chooses again when all are held, or, if any is, ten seconds later. If it had to choose one that is held in another
// zone while others were not held, it chooses again as soon as, within ten seconds, one is held in the pod's zone.
//
// After that the pod keeps its egress IP as long as the Service names it and is granted it. So an address that is added gets new pods only,
// and when one is removed, only its own pods move to the others. A Service that had one egress IP and has several now: its pods keep that
// one.
//
// A node says what it has chosen in its Lease, and all nodes follow that. Until it has said so, no other node binds the pod
// (AddressNotChosen): a node that holds one of the addresses drops what it is sent for the pod. A node chooses for as many pods as its
// Lease has room for: about five hundred of a namespace. If the EndpointSlice names no node, nobody chooses: the score for the pod's address
// decides, of all that are granted.
//
// # Who owns an address
//
// An address belongs to one namespace at a time, for all ports and protocols: the namespace of the oldest
// Service that has it. Of two Services the one with the earlier creationTimestamp is older; of the same
// time, the first by namespace, then by name.
//
// A Service has all its external IPs, all IPs of ipMode VIP that a load balancer gave it, and those that the annotation egress-ip names,
// as far as it can be read, the first 16 of each IP family. It has them
// even if its pods leave from another address, if it claims nothing because of its annotation, or if its
// claim is refused for a fault of its own (InvalidAnnotation, InvalidProtocol). So a typing error gives
// no address away, unless the annotation names more than 16.
//
// When the owner's last Service with the address is gone, the address belongs to the namespace of the
// next oldest.
//
// A Service whose namespace may not have an address does not count: it neither leaves from the address
// nor owns it, however old it is.
//
// An address is an egress IP as soon as there is a claim on it that is refused for none of the reasons from InvalidAddress to
// OwnedByOtherNamespace below (InvalidAnnotation aside). Nodes announce it, and no pod may send from it. A claim that is refused for one of
// these reasons does not make the address an egress IP.
//
// # Nodes' addresses
//
// A kubelet writes its Node's addresses, and it may lie, so the plan believes little of them. In each IP family, a node's address is the
// first of the InternalIPs with which it registered that is not ignored, as long as the Node still has that address; otherwise it is the
// first of its present InternalIPs that is not ignored. An InternalIP is ignored, and reported by an Event about the Node
// (NodeAddressIgnored), if
//   - packets cannot come from it (see InvalidAddress below);
//   - it lies in a cluster CIDR, where pods are, or in a service CIDR;
//   - it lies where egress IPs are: in a network of proxyArguments.egress-snat-assign-cidrs, or in one that
//     proxyArguments.egress-snat-namespace-cidrs reserves for a namespace, but not for all others (*=CIDR). This does not hold with
//     proxyArguments.egress-snat-allow-node-ips, because egress IPs may be nodes' addresses then.
//
// ExternalIPs, host names and further InternalIPs do not count.
//
// The InternalIPs with which a Node registered are those that it had first, of both IP families. If it waited for its cloud provider then,
// the first others that it has within a minute after that wait come in their place, once. If the Node does not have its address of these
// any more, other nodes reach it by another one, but that one is neither excluded from SNAT nor kept from being an egress IP, and the Node
// is reported. A kubelet cannot delete its Node: if a node has truly got another address, an administrator must register it anew. Each node
// saves what it saw first, for its next process. A node without such a record, for example because it has just joined, takes what it sees
// now.
//
// If several Nodes have the same address, it counts as that of the oldest (creationTimestamp, then name) that registered with it, and the
// others are reported. None of them loses the address, or anything else by it: a liar can take nothing from another node.
//
// A kubelet can still do two things. By the first InternalIP with which it registers a new Node, it can exclude one address of each IP
// family from SNAT (proxyArguments.egress-snat-exclude-nodes) and, outside of the networks above, have it refused as an egress IP
// (NodeAddress); with a cloud provider another one after that. And it can keep pods of its own node from being bound.
//
// # Who may have an address
//
// Nobody may have an address that
//   - packets cannot come from: unspecified, loopback, link-local, multicast, of 0.0.0.0/8 or 240.0.0.0/4,
//     an IPv4 address in IPv6 form, or one with a zone (InvalidAddress);
//   - lies in a cluster CIDR or a service CIDR (AddressInCluster);
//   - is the address of a node, as above, unless proxyArguments.egress-snat-allow-node-ips is true (NodeAddress);
//   - is an endpoint of the Service default/kubernetes, so an API server's; where node addresses are
//     allowed, an API server on a node's address is no obstacle (APIServerAddress).
//
// Besides, every policy must allow the address (NotAllowed):
//   - proxyArguments.egress-snat-allowed-cidrs: the address lies in one of these networks, if there are any.
//   - spec.externalIP.policy of OpenShift's Network object: rejectedCIDRs win, then allowedCIDRs allow. An
//     empty policy forbids all, no policy allows all. It is on external IPs, and on what the annotation
//     egress-ip alone names: the IPs that load balancers gave are no concern of it.
//   - proxyArguments.egress-snat-namespace-cidrs: see the next section.
//
// An address that only the annotation egress-ip names has passed no admission: it is no external IP of the Service and, if
// proxyArguments.egress-snat-load-balancer-ips is true, none that a load balancer gave it. So it needs a permission as well (NotAllowed):
// it must lie in egress-snat-allowed-cidrs, or in a network that egress-snat-namespace-cidrs has for the namespace, or for all others
// (*=CIDR).
//
// # Pinned networks
//
// Entries of proxyArguments.egress-snat-namespace-cidrs pin a namespace to a network: NAMESPACE=CIDR.
//   - An address inside a pinned network is for the namespaces one of whose own networks contains it, and
//     for nobody else.
//   - A namespace that is pinned gets no address outside of its own networks. One that is pinned to networks
//     of one IP family only gets none of the other.
//   - A namespace may have several networks, and several namespaces may have the same. Networks may overlap:
//     an address that lies in networks of two namespaces is for both, and belongs to the older Service.
//     A smaller network takes nothing from a larger one around it.
//   - *=CIDR says where the egress IPs of all other namespaces may lie, those without an entry of their own.
//     What of it is pinned is not for them. Without such an entry they may have any address that is not
//     pinned. Namespaces with entries of their own do not profit from it.
//
// # Pods
//
// A claim that is granted binds the addresses in the Service's EndpointSlices, ready or not, serving or
// terminating: a pod may need its egress IP to become ready, and one that ends still sends. It binds them
// for the protocols of the Service's ports, TCP, UDP and SCTP, or for every IP protocol if
// proxyArguments.egress-snat-protocols is "all". Packets of other protocols leave as without egress SNAT:
// of a Service with TCP ports only, also DNS over UDP and ICMP.
//
// Not bound is an endpoint
//   - that names, as its targetRef, a pod of another namespace (PodOfOtherNamespace);
//   - that names no pod, if EndpointSlices of other namespaces name pods of their own at the address, and
//     none of this namespace does (PodOfOtherNamespace);
//   - that names another pod than the one attached at its address (AddressOfOtherPod), see below;
//   - whose address lies in no cluster CIDR, or is an InternalIP of the node that the EndpointSlice names for it, also an
//     ignored one (EndpointOutsideCluster). What other Nodes tell does not count.
//
// A node that a CNI plugin tells of its pods knows whose an address is before any EndpointSlice says it: it has
// attachments, each an address with its pod. A claim is predicted to get the attached pod as an endpoint if
//   - the pod is of the claim's namespace,
//   - the Service has a selector, and the pod's labels match it,
//   - the Service serves the IP family of the address (spec.ipFamilies), and
//   - the pod's phase is not terminal (Succeeded or Failed).
//
// A predicted endpoint counts as one of an EndpointSlice. Whether the pod is ready has no part in it. It
// lasts until the pod gives the address back, or one of these is true no longer. A Service without a selector is known
// by its EndpointSlices alone.
//
// An endpoint at an attached address that names no pod is of the attached pod. One that names another pod, by
// namespace and name, or by UID where both are known, is not bound (AddressOfOtherPod). After the pod has given the
// address back, an endpoint that still names that pod with its UID is not bound either; any other is.
//
// EndpointSlices with the label service.kubernetes.io/service-proxy-name bind nothing, whichever Service they are labelled with, and those
// with the label service.kubernetes.io/headless nothing but for a headless Service: the proxier does not serve them. But they name pods
// as others do.
//
// Where two Services of a namespace would give a pod different egress IPs for the same protocol, the older
// Service wins (BoundByOlderService). Two that give it the same egress IP agree, and the older is said to
// bind it. A pod is of one namespace: where Services of several namespaces would bind it, for whichever protocols, that of the oldest has it
// alone (BoundByOlderService), and where the pod runs is what EndpointSlices of this namespace say.
//
// # Reasons of refusals
//
// What is not granted is a [Refusal] with a reason, never left out silently. These refuse a claim as a
// whole. If several hold, the first of this list is told:
//   - InvalidAddress: the egress IP is not a unicast address that packets can come from.
//   - InvalidAnnotation, if the Service has no address of the family at all: it names one.
//   - AddressInCluster: the address lies in a cluster CIDR or a service CIDR.
//   - NodeAddress: the address is a node's.
//   - APIServerAddress: the address is an endpoint of the Service default/kubernetes.
//   - NotAllowed: a policy does not allow the address, or nothing does that the annotation egress-ip alone names. The
//     message names the policy.
//   - OwnedByOtherNamespace: an older Service of another namespace has the address.
//   - InvalidAnnotation: the annotation cannot be understood, or names an address that the Service does not
//     have.
//   - InvalidProtocol: a port of the Service is neither TCP, UDP nor SCTP.
//   - NoClusterCIDR: no cluster CIDR of the IP family is known, so nothing says which destinations are inside.
//   - NoProxier: no proxier of the IP family runs on this node, as on one without IPv6. A dry run does not
//     judge that.
//
// These refuse one endpoint, the first that holds:
//
//   - PodOfOtherNamespace: the address is a pod of another namespace, as EndpointSlices say.
//
//   - AddressOfOtherPod: the EndpointSlice names a pod that does not have the address on this node, or has given
//     it back.
//
//   - EndpointOutsideCluster: the address lies in no cluster CIDR, or is its node's. Mostly it is a pod on the
//     host's network.
//
//   - AddressNotChosen: the Service has several egress IPs, and the endpoint's node has not said which of them it chose.
//
// This refuses one pod and protocol:
//   - BoundByOlderService: an older Service gives the pod another egress IP for the protocol, or, of a Service with several, another
//     EndpointSlice that names another node. Or an older Service of another namespace binds the pod, for whichever protocol.
//
// # What is never SNATed
//
// Packets of a bound pod keep their source, whatever the plan binds it to, on their way to
//   - the cluster CIDRs;
//   - the networks of proxyArguments.egress-snat-exclude-cidrs;
//   - the addresses of the cluster's nodes, one of each, unless proxyArguments.egress-snat-exclude-nodes is false;
//   - the pod's own egress IP.
//
// So a pod reaches pods, Services by any of their addresses, its own external IP and its node exactly as without egress SNAT. For a packet
// to a Service's address, the endpoint that the proxier chooses decides.
package plan
