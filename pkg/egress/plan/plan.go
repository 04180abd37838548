package plan

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Protocol is a transport protocol as iptables and nft spell it.
type Protocol = kernel.Protocol

// The protocols that a Service port can have, and all IP protocols together.
const (
	TCP  = kernel.TCP
	UDP  = kernel.UDP
	SCTP = kernel.SCTP
	All  = kernel.All
)

// Service names a Kubernetes Service.
type Service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns namespace/name.
func (s Service) String() string { return s.Namespace + "/" + s.Name }

func compareServices(a, b Service) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Pod names a Kubernetes Pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns namespace/name, or nothing for no pod.
func (p Pod) String() string {
	if p == (Pod{}) {
		return ""
	}
	return p.Namespace + "/" + p.Name
}

// Endpoint is an address in an EndpointSlice of a Service.
type Endpoint struct {
	Addr netip.Addr `json:"addr"`
	// Pod is the pod that the slice names for the address (targetRef); zero if none.
	Pod Pod `json:"pod,omitzero"`
	// UID is that pod's, as the slice gives it; empty if it gives none.
	UID string `json:"uid,omitempty"`
	// Node is the name of the node that the slice gives; empty if it gives none. It decides
	// nothing here: see package placement.
	Node string `json:"node,omitempty"`
}

// Compare orders endpoints by address first.
func (e Endpoint) Compare(o Endpoint) int {
	if c := e.Addr.Compare(o.Addr); c != 0 { // as it is mostly: names cost more
		return c
	}
	return cmp.Or(
		cmp.Compare(e.Pod.Namespace, o.Pod.Namespace),
		cmp.Compare(e.Pod.Name, o.Pod.Name),
		cmp.Compare(e.UID, o.UID),
		cmp.Compare(e.Node, o.Node),
	)
}

// Claim is one Service's wish that its endpoints leave from its egress IP.
type Claim struct {
	Service Service `json:"service"`
	// Created is the Service's creationTimestamp. Where two claims collide, the older
	// one wins; among equals the first by namespace, then by name.
	Created time.Time `json:"created"`
	// EgressIP is the Service's egress IP of the plan's IP family. It is invalid if the
	// object's text cannot be read; Refused is set then.
	EgressIP netip.Addr `json:"egressIP"`
	// Others are further ones: each endpoint leaves from one of them all (see Choices). They differ from EgressIP and from each other.
	Others []Address `json:"others,omitempty"`
	// Field is where in the object the egress IP comes from, for example
	// spec.externalIPs[0].
	Field string `json:"field"`
	// LoadBalancer: the egress IP was given by a load balancer, not by the Service's
	// author, so policies on external IPs do not speak of it.
	LoadBalancer bool `json:"loadBalancer,omitempty"`
	// Annotated: the Service's author has named the egress IP in an annotation, and the Service has it by nothing else.
	Annotated bool `json:"annotated,omitempty"`
	// Protocols are those of the Service's ports, or All; duplicates allowed.
	Protocols []Protocol `json:"protocols"`
	// Refused is why nothing is bound, if the object does not say what it wants in a way
	// that can be understood; RefusedBecause says it for people. Such a claim still makes
	// its namespace the address's owner.
	Refused        Reason `json:"refused,omitempty"`
	RefusedBecause string `json:"refusedBecause,omitempty"`
	// Selector chooses the pods that are predicted to become endpoints, by their labels. It is
	// empty, and chooses none, if the Service has none or does not serve the IP family.
	Selector map[string]string `json:"selector,omitempty"`
	// Endpoints are the addresses of the Service's EndpointSlices, ready or not, in any
	// order, duplicates allowed.
	Endpoints []Endpoint `json:"endpoints"`
}

// Holding is a Service with the addresses that the outside knows it by. They belong to its
// namespace, if no older Service's does, whether or not the Service's pods leave from them.
type Holding struct {
	Service   Service   `json:"service"`
	Created   time.Time `json:"created"`
	Addresses []Address `json:"addresses"`
}

// Address is an external IP of a Service, an IP that a load balancer gave it, or one that its annotation names.
type Address struct {
	IP           netip.Addr `json:"ip"`
	LoadBalancer bool       `json:"loadBalancer,omitempty"`
	// Annotated: nobody but the annotation says so. The proxier serves nothing there, and the configuration has to allow it.
	Annotated bool `json:"annotated,omitempty"`
}

// Addresses returns a claim's egress IPs, in the order of the Service.
func (c *Claim) Addresses() []Address {
	return append([]Address{{c.EgressIP, c.LoadBalancer, c.Annotated}}, c.Others...)
}

// EgressIPs returns those of a claim, in the order of the Service.
func (c *Claim) EgressIPs() []netip.Addr {
	ips := []netip.Addr{c.EgressIP}
	for _, address := range c.Others {
		ips = append(ips, address.IP)
	}
	return ips
}

// Claims tells whether a claim has an egress IP of which is says so.
func (c *Claim) Claims(is func(netip.Addr) bool) bool {
	return is(c.EgressIP) || slices.ContainsFunc(c.Others, func(a Address) bool { return is(a.IP) })
}

// Several tells whether a claim has several egress IPs, among which its endpoints' nodes choose.
func (c *Claim) Several() bool { return len(c.Others) > 0 }

// names returns the egress IPs for people.
func (c *Claim) names() string {
	var names []string
	for _, ip := range c.EgressIPs() {
		names = append(names, ip.String())
	}
	return strings.Join(names, ", ")
}

// alone returns a claim on one of c's egress IPs.
func (c Claim) alone(address Address) Claim {
	c.EgressIP, c.LoadBalancer, c.Annotated, c.Others = address.IP, address.LoadBalancer, address.Annotated, nil
	return c
}

// Policy says which addresses may be egress IPs: those in Allowed that are not in
// Rejected.
type Policy struct {
	// Source is where the policy comes from, for people.
	Source   string         `json:"source"`
	Allowed  []netip.Prefix `json:"allowed"`
	Rejected []netip.Prefix `json:"rejected,omitempty"`
	// ExternalIPsOnly: it does not speak of addresses that load balancers gave, and permits none that an annotation alone names.
	ExternalIPsOnly bool `json:"externalIPsOnly,omitempty"`
}

// Input is all that a Plan depends on, for one IP family.
type Input struct {
	// ClusterCIDRs are where pods live. Endpoints outside of them are never bound, and
	// destinations inside are never SNATed. Without any, nothing is bound at all.
	ClusterCIDRs []netip.Prefix `json:"clusterCIDRs"`
	// ServiceCIDRs are where Services have their cluster IPs.
	ServiceCIDRs []netip.Prefix `json:"serviceCIDRs"`
	// Exclusions are further destinations that are never SNATed.
	Exclusions []netip.Prefix `json:"exclusions"`
	Nodes      []Node         `json:"nodes"`
	// AssignCIDRs are the networks of the egress IPs that this program puts on nodes.
	AssignCIDRs []netip.Prefix `json:"assignCIDRs,omitempty"`
	// APIServers are the addresses of the cluster's API servers.
	APIServers []netip.Addr `json:"apiServers"`
	// ExcludeNodes: the nodes' primary addresses are excluded, too.
	ExcludeNodes bool `json:"excludeNodes"`
	// AllowNodeIPs: a node's primary address may be an egress IP.
	AllowNodeIPs bool `json:"allowNodeIPs"`
	// Policies must all allow an egress IP.
	Policies []Policy `json:"policies"`
	// NamespaceCIDRs are the networks that namespaces are pinned to, by name: an address inside
	// is for the namespaces that have such a network around it and for nobody else, and these
	// get no address outside of their networks. EveryOther has those of all namespaces that are
	// not named.
	NamespaceCIDRs map[string][]netip.Prefix `json:"namespaceCIDRs,omitempty"`
	// NoProxier: no proxier of the IP family runs on the node, for want of ip6tables for
	// example. Nothing is bound then.
	NoProxier bool `json:"noProxier,omitempty"`
	// Attachments are those of this node's pods, at most one of an address.
	Attachments []Attachment `json:"attachments,omitempty"`
	// Choices are what the nodes have chosen for their pods.
	Choices Choices `json:"choices,omitempty"`
	// Holdings decide, with the claims, whose an address is.
	Holdings []Holding `json:"holdings"`
	Claims   []Claim   `json:"claims"`
}

// Binding says that a pod's packets of one protocol leave from an egress IP.
type Binding struct {
	Pod      netip.Addr `json:"pod"`
	Protocol Protocol   `json:"protocol"`
	EgressIP netip.Addr `json:"egressIP"`
	Service  Service    `json:"service"`
}

// InKernel returns the binding as the kernel knows it: the Service that gives it has no part in
// any rule.
func (b Binding) InKernel() kernel.Binding {
	return kernel.Binding{Pod: b.Pod, Protocol: b.Protocol, EgressIP: b.EgressIP}
}

// Reason tells why a claim or a binding was refused. It is part of the project's
// interface: metrics and logs carry it.
type Reason string

// The reasons for a refusal.
const (
	// NoClusterCIDR: without a cluster CIDR nothing says which destinations are inside,
	// so in-cluster traffic would be SNATed too.
	NoClusterCIDR Reason = "NoClusterCIDR"
	// NoProxier: the node's proxier does not serve the IP family.
	NoProxier Reason = "NoProxier"
	// InvalidAddress: the egress IP is not one that packets can come from.
	InvalidAddress Reason = "InvalidAddress"
	// AddressInCluster: the egress IP lies in a cluster CIDR or a service CIDR, so it is
	// the address of a pod or of a Service, or may become one.
	AddressInCluster Reason = "AddressInCluster"
	// NodeAddress: the egress IP is a node's primary address.
	NodeAddress Reason = "NodeAddress"
	// APIServerAddress: the egress IP is an API server's.
	APIServerAddress Reason = "APIServerAddress"
	// NotAllowed: a policy does not allow the egress IP.
	NotAllowed Reason = "NotAllowed"
	// OwnedByOtherNamespace: an older Service of another namespace has the egress IP.
	OwnedByOtherNamespace Reason = "OwnedByOtherNamespace"
	// InvalidAnnotation: the Service's annotation has a value that means nothing.
	InvalidAnnotation Reason = "InvalidAnnotation"
	// InvalidProtocol: a port of the Service has a protocol that is none of ours.
	InvalidProtocol Reason = "InvalidProtocol"
	// EndpointOutsideCluster: the endpoint's address lies in no cluster CIDR, or is a
	// node's. Pods on the host network are the common case: their address is the node's.
	EndpointOutsideCluster Reason = "EndpointOutsideCluster"
	// PodOfOtherNamespace: the EndpointSlice names a pod of another namespace than its own.
	PodOfOtherNamespace Reason = "PodOfOtherNamespace"
	// AddressOfOtherPod: the EndpointSlice names another pod than the one that has the address on this
	// node, or one that has given it back.
	AddressOfOtherPod Reason = "AddressOfOtherPod"
	// AddressNotChosen: the Service has several egress IPs, and the endpoint's node has not said yet which of them it chooses.
	AddressNotChosen Reason = "AddressNotChosen"
	// BoundByOlderService: an older Service gives the same pod another egress IP for the
	// same protocol, or one of another namespace gives it one.
	BoundByOlderService Reason = "BoundByOlderService"
)

// Reasons are all of them.
var Reasons = []Reason{
	NoClusterCIDR, NoProxier, InvalidAddress, AddressInCluster, NodeAddress, APIServerAddress, NotAllowed, OwnedByOtherNamespace,
	InvalidAnnotation, InvalidProtocol, EndpointOutsideCluster, PodOfOtherNamespace,
	AddressOfOtherPod, AddressNotChosen, BoundByOlderService,
}

// Refusal says that a claim, or one binding of it, is not given. Pod and Protocol are
// zero when the whole claim is refused.
type Refusal struct {
	Service  Service    `json:"service"`
	EgressIP netip.Addr `json:"egressIP,omitzero"`
	Pod      netip.Addr `json:"pod,omitzero"`
	Protocol Protocol   `json:"protocol,omitempty"`
	Reason   Reason     `json:"reason"`
	// Message says what is wrong and what to do, for people.
	Message string `json:"message"`
}

// Plan is what was decided for one IP family. All slices are sorted and free of duplicates.
type Plan struct {
	// Networks, the nodes' addresses among them, are the destinations that are never SNATed.
	// Neither is a pod's own egress IP: a pod that dials it means the Service, and what the
	// proxier does not serve there goes the way that it went before.
	kernel.Networks
	Bindings []Binding `json:"bindings"`
	Refusals []Refusal `json:"refusals"`
}

// Equal tells whether p and q say the same.
func (p Plan) Equal(q Plan) bool {
	return p.Networks.Equal(q.Networks) && slices.Equal(p.Bindings, q.Bindings) && slices.Equal(p.Refusals, q.Refusals)
}

// Desired is the plan as the kernel knows it: without Services and refusals.
func (p Plan) Desired() kernel.Desired {
	return kernel.Desired{Networks: p.Networks, Bindings: InKernel(p.Bindings)}
}

// InKernel returns bindings as the kernel knows them, in the same order.
func InKernel(bindings []Binding) []kernel.Binding {
	result := make([]kernel.Binding, len(bindings))
	for i, b := range bindings {
		result[i] = b.InKernel()
	}
	return result
}

// EgressIPs returns the addresses that p's bindings use, sorted.
func (p Plan) EgressIPs() []netip.Addr {
	ips := make([]netip.Addr, 0, len(p.Bindings))
	for _, b := range p.Bindings {
		ips = append(ips, b.EgressIP)
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return slices.Compact(ips)
}

// diff appends to added what only after has, and to removed what only before has. The latter
// two are sorted.
func diff[T any](added, removed, before, after []T, compare func(a, b T) int) (more, fewer []T) {
	for len(before) > 0 && len(after) > 0 {
		switch c := compare(before[0], after[0]); {
		case c > 0:
			added, after = append(added, after[0]), after[1:]
		case c < 0:
			removed, before = append(removed, before[0]), before[1:]
		default:
			before, after = before[1:], after[1:]
		}
	}
	return append(added, after...), append(removed, before...)
}

// CompareBindings is the order of a Plan's Bindings.
func CompareBindings(a, b Binding) int {
	return cmp.Or(
		a.Pod.Compare(b.Pod),
		cmp.Compare(a.Protocol, b.Protocol),
		a.EgressIP.Compare(b.EgressIP),
		compareServices(a.Service, b.Service),
	)
}

// CompareRefusals is the order of a Plan's Refusals.
func CompareRefusals(a, b Refusal) int {
	return cmp.Or(
		compareServices(a.Service, b.Service),
		a.Pod.Compare(b.Pod),
		cmp.Compare(a.Protocol, b.Protocol),
		cmp.Compare(a.Reason, b.Reason),
		a.EgressIP.Compare(b.EgressIP),
		cmp.Compare(a.Message, b.Message),
	)
}
