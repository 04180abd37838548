package metallb

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The resources of MetalLB that are read.
var (
	group             = schema.GroupVersion{Group: "metallb.io", Version: "v1beta1"}
	Statuses          = group.WithResource("servicel2statuses")
	L2Advertisements  = group.WithResource("l2advertisements")
	BGPAdvertisements = group.WithResource("bgpadvertisements")
)

// The labels of a ServiceL2Status.
const (
	NodeLabel      = "metallb.io/node"
	ServiceLabel   = "metallb.io/service-name"
	NamespaceLabel = "metallb.io/service-namespace"
)

// DefaultNamespace is MetalLB's own, as its manifests and OpenShift have it.
const DefaultNamespace = "metallb-system"

// What MetalLB's controller puts on a Service: the name of the IPAddressPool that its addresses are from. The former one is of
// versions before 0.14.9.
const (
	PoolAnnotation       = "metallb.io/ip-allocated-from-pool"
	FormerPoolAnnotation = "metallb.universe.tf/ip-allocated-from-pool"
)

// Book has what MetalLB, by the objects in its own namespace, and the Services say. It is for one goroutine at a time.
type Book struct {
	// statuses are by the names of their objects, services those that have load-balancer IPs.
	statuses map[types.NamespacedName]status
	services map[types.NamespacedName]service
	// advertisements are the pools that each is for; nil for all.
	advertisements map[object][]string
}

// status is what a ServiceL2Status says.
type status struct {
	node    string
	service types.NamespacedName
}

// service is what a Service has got.
type service struct {
	addresses []netip.Addr
	pool      string // empty if they are not MetalLB's
}

// object is an object of a resource.
type object struct {
	resource schema.GroupVersionResource
	name     types.NamespacedName
}

// Reading is what follows. It must not be changed.
type Reading struct {
	// Here are the addresses that this node announces, sorted.
	Here []netip.Addr
	// Balanced are the load-balancer IPs of all Services; Reserved those of them that MetalLB has to announce, and Layer2 those of
	// these that it has to announce from a node.
	Balanced, Reserved, Layer2 map[netip.Addr]bool
}

// NewBook returns a Book that knows of nothing.
func NewBook() *Book {
	return &Book{statuses: map[types.NamespacedName]status{}, services: map[types.NamespacedName]service{}, advertisements: map[object][]string{}}
}

// Set takes an object of one of the resources.
func (b *Book) Set(resource schema.GroupVersionResource, o *unstructured.Unstructured) {
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	if resource == Statuses {
		b.setStatus(name, o.GetLabels())
		return
	}
	b.advertisements[object{resource, name}] = poolsOf(o)
}

// Delete forgets an object of one of the resources.
func (b *Book) Delete(resource schema.GroupVersionResource, name types.NamespacedName) {
	if resource == Statuses {
		delete(b.statuses, name)
		return
	}
	delete(b.advertisements, object{resource, name})
}

// Replace takes all objects of one of the resources.
func (b *Book) Replace(resource schema.GroupVersionResource, objects []*unstructured.Unstructured) {
	if resource == Statuses {
		clear(b.statuses)
	}
	maps.DeleteFunc(b.advertisements, func(o object, _ []string) bool { return o.resource == resource })
	for _, o := range objects {
		b.Set(resource, o)
	}
}

// setStatus takes the labels of a ServiceL2Status. One that names no node, or no Service, counts for nothing.
func (b *Book) setStatus(name types.NamespacedName, labels map[string]string) {
	s := status{labels[NodeLabel], types.NamespacedName{Namespace: labels[NamespaceLabel], Name: labels[ServiceLabel]}}
	if s.node == "" || s.service.Name == "" || s.service.Namespace == "" {
		delete(b.statuses, name)
		return
	}
	b.statuses[name] = s
}

// poolsOf returns the names of the pools that an advertisement is for; nil for all.
func poolsOf(o *unstructured.Unstructured) []string {
	pools, _, err := unstructured.NestedStringSlice(o.Object, "spec", "ipAddressPools")
	if selectors, _, _ := unstructured.NestedSlice(o.Object, "spec", "ipAddressPoolSelectors"); err != nil || len(selectors) > 0 || len(pools) == 0 {
		return nil
	}
	return pools
}

// SetService takes the load-balancer IPs of a Service and its annotations, and tells whether they say something else than before. A
// Service that is gone has no addresses.
func (b *Book) SetService(name types.NamespacedName, addresses []netip.Addr, annotations map[string]string) (changed bool) {
	before, now := b.services[name], service{slices.Clone(addresses), cmp.Or(annotations[PoolAnnotation], annotations[FormerPoolAnnotation])}
	if len(addresses) == 0 {
		delete(b.services, name)
		return len(before.addresses) > 0
	}
	b.services[name] = now
	return before.pool != now.pool || !slices.Equal(before.addresses, now.addresses)
}

// Read returns what follows for a node.
func (b *Book) Read(node string) Reading {
	r := Reading{Balanced: map[netip.Addr]bool{}, Reserved: map[netip.Addr]bool{}, Layer2: map[netip.Addr]bool{}}
	layer2, bgp := b.advertised(L2Advertisements), b.advertised(BGPAdvertisements)
	for _, s := range b.services {
		for _, ip := range s.addresses {
			r.Balanced[ip] = true
			if layer2(s.pool) {
				r.Layer2[ip] = true
			}
			if layer2(s.pool) || bgp(s.pool) {
				r.Reserved[ip] = true
			}
		}
	}
	here := map[netip.Addr]bool{}
	for _, s := range b.statuses {
		if s.node != node {
			continue
		}
		for _, ip := range b.services[s.service].addresses {
			here[ip] = true
		}
	}
	r.Here = slices.SortedFunc(maps.Keys(here), netip.Addr.Compare)
	return r
}

// advertised returns what tells whether MetalLB announces the addresses of a pool by advertisements of a resource.
func (b *Book) advertised(resource schema.GroupVersionResource) func(pool string) bool {
	pools, all := map[string]bool{}, false
	for o, names := range b.advertisements {
		if o.resource != resource {
			continue
		}
		all = all || names == nil
		for _, name := range names {
			pools[name] = true
		}
	}
	return func(pool string) bool { return pool != "" && (all || pools[pool]) }
}
