package plan

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// Protocol is a transport protocol as iptables and nft spell it.
type Protocol string

// The protocols that a Service port can have.
const (
	TCP  Protocol = "tcp"
	UDP  Protocol = "udp"
	SCTP Protocol = "sctp"
)

// Service names a Kubernetes Service.
type Service struct {
	Namespace, Name string
}

// String returns namespace/name.
func (s Service) String() string { return s.Namespace + "/" + s.Name }

func compareServices(a, b Service) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Claim is one Service's wish that its endpoints leave from its egress IP.
type Claim struct {
	Service Service
	// Created is the Service's creationTimestamp. Where two claims collide, the older
	// one wins; among equals the first by namespace, then by name.
	Created time.Time
	// EgressIP is the Service's first external IP of the plan's IP family.
	EgressIP netip.Addr
	// Protocols are those of the Service's ports, duplicates allowed.
	Protocols []Protocol
	// Endpoints are the addresses of the Service's EndpointSlices, ready or not, in any
	// order, duplicates allowed.
	Endpoints []netip.Addr
}

// Input is all that a Plan depends on, for one IP family.
type Input struct {
	// ClusterCIDRs are where pods live. Endpoints outside of them are never bound, and
	// destinations inside are never SNATed. Without any, nothing is bound at all.
	ClusterCIDRs []netip.Prefix
	// Exclusions are further destinations that are never SNATed.
	Exclusions []netip.Prefix
	// NoProxier: no proxier of the IP family runs on the node, for want of ip6tables for
	// example. Nothing is bound then.
	NoProxier bool
	Claims    []Claim
	// Refusals are claims that were refused before they could become a Claim, because
	// the object did not say what it wants in a way that can be understood.
	Refusals []Refusal
}

// Binding says that a pod's packets of one protocol leave from an egress IP.
type Binding struct {
	Pod      netip.Addr
	Protocol Protocol
	EgressIP netip.Addr
	Service  Service
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
	// InvalidAddress: the external IP is not one that packets can come from.
	InvalidAddress Reason = "InvalidAddress"
	// InvalidAnnotation: the Service's annotation has a value that means nothing.
	InvalidAnnotation Reason = "InvalidAnnotation"
	// InvalidProtocol: a port of the Service has a protocol that is none of ours.
	InvalidProtocol Reason = "InvalidProtocol"
	// EndpointOutsideCluster: the endpoint's address lies in no cluster CIDR. Pods on the
	// host network are the common case: their address is the node's.
	EndpointOutsideCluster Reason = "EndpointOutsideCluster"
	// BoundByOlderService: an older Service gives the same pod another egress IP for the
	// same protocol.
	BoundByOlderService Reason = "BoundByOlderService"
)

// Reasons are all of them.
var Reasons = []Reason{NoClusterCIDR, NoProxier, InvalidAddress, InvalidAnnotation, InvalidProtocol, EndpointOutsideCluster, BoundByOlderService}

// Refusal says that a claim, or one binding of it, is not given. Pod and Protocol are
// zero when the whole claim is refused.
type Refusal struct {
	Service  Service
	EgressIP netip.Addr
	Pod      netip.Addr
	Protocol Protocol
	Reason   Reason
	// Message says what is wrong and what to do, for people.
	Message string
}

// Plan is what the kernel should hold for one IP family. All slices are sorted and free
// of duplicates.
type Plan struct {
	// ClusterCIDRs and Exclusions are the destinations that are never SNATed.
	ClusterCIDRs, Exclusions []netip.Prefix
	Bindings                 []Binding
	Refusals                 []Refusal
}

// Equal tells whether p and q say the same.
func (p Plan) Equal(q Plan) bool {
	return slices.Equal(p.ClusterCIDRs, q.ClusterCIDRs) &&
		slices.Equal(p.Exclusions, q.Exclusions) &&
		slices.Equal(p.Bindings, q.Bindings) &&
		slices.Equal(p.Refusals, q.Refusals)
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

// Diff returns the bindings that only after has and those that only before has, each in
// the plans' order. A binding whose egress IP or Service changed is in both.
func Diff(before, after Plan) (added, removed []Binding) {
	a, b := before.Bindings, after.Bindings
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) == 0 || len(b) > 0 && compareBindings(a[0], b[0]) > 0:
			added, b = append(added, b[0]), b[1:]
		case len(b) == 0 || compareBindings(a[0], b[0]) < 0:
			removed, a = append(removed, a[0]), a[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return added, removed
}

func compareBindings(a, b Binding) int {
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
