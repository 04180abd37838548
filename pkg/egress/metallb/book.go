package metallb

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Statuses is the resource of ServiceL2Statuses.
var Statuses = schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: "servicel2statuses"}

// The labels of a ServiceL2Status.
const (
	NodeLabel      = "metallb.io/node"
	ServiceLabel   = "metallb.io/service-name"
	NamespaceLabel = "metallb.io/service-namespace"
)

// reservation is how long an address stays reserved that nobody announces any more.
const reservation = 30 * time.Second

// Book has what MetalLB and the Services say. It is for one goroutine at a time.
type Book struct {
	// statuses are by the names of their objects, services the load-balancer IPs of those that have any.
	statuses map[types.NamespacedName]status
	services map[types.NamespacedName][]netip.Addr
	// announced are those of the last reading, leaving those that were, until when they are reserved.
	announced map[netip.Addr]bool
	leaving   map[netip.Addr]time.Time
}

// status is what a ServiceL2Status says.
type status struct {
	node    string
	service types.NamespacedName
}

// Reading is what follows at a time. Its maps may be changed.
type Reading struct {
	// Here are the addresses that this node announces, sorted.
	Here []netip.Addr
	// Balanced are the load-balancer IPs of all Services, Reserved those of them that are not for the pool.
	Balanced, Reserved map[netip.Addr]bool
	// Wake is when Reserved changes although nothing happens; zero for never.
	Wake time.Time
}

// NewBook returns a Book that knows of nothing.
func NewBook() *Book {
	return &Book{statuses: map[types.NamespacedName]status{}, services: map[types.NamespacedName][]netip.Addr{}, leaving: map[netip.Addr]time.Time{}}
}

// SetStatus takes the labels of a ServiceL2Status. One that names no node, or no Service, counts for nothing.
func (b *Book) SetStatus(name types.NamespacedName, labels map[string]string) {
	s := status{labels[NodeLabel], types.NamespacedName{Namespace: labels[NamespaceLabel], Name: labels[ServiceLabel]}}
	if s.node == "" || s.service.Name == "" || s.service.Namespace == "" {
		b.DeleteStatus(name)
		return
	}
	b.statuses[name] = s
}

// DeleteStatus forgets a ServiceL2Status.
func (b *Book) DeleteStatus(name types.NamespacedName) { delete(b.statuses, name) }

// SetService takes the load-balancer IPs of a Service, and tells whether they are others than before. A Service that is gone has none.
func (b *Book) SetService(name types.NamespacedName, addresses []netip.Addr) (changed bool) {
	if slices.Equal(b.services[name], addresses) {
		return false
	}
	if len(addresses) == 0 {
		delete(b.services, name)
	} else {
		b.services[name] = slices.Clone(addresses)
	}
	return true
}

// Read returns what follows for a node. Times must not go back.
func (b *Book) Read(node string, now time.Time) Reading {
	r := Reading{Balanced: map[netip.Addr]bool{}, Reserved: map[netip.Addr]bool{}}
	for _, addresses := range b.services {
		for _, ip := range addresses {
			r.Balanced[ip] = true
		}
	}
	for _, s := range b.statuses {
		for _, ip := range b.services[s.service] {
			r.Reserved[ip] = true
			if s.node == node {
				r.Here = append(r.Here, ip)
			}
		}
	}
	slices.SortFunc(r.Here, netip.Addr.Compare)
	r.Here = slices.Compact(r.Here)
	b.leave(maps.Clone(r.Reserved), now)
	for ip, until := range b.leaving {
		r.Reserved[ip] = true
		if r.Wake.IsZero() || until.Before(r.Wake) {
			r.Wake = until
		}
	}
	return r
}

// leave notes which addresses are announced now, and which are leaving because they were.
func (b *Book) leave(announced map[netip.Addr]bool, now time.Time) {
	for ip := range b.announced {
		if !announced[ip] {
			b.leaving[ip] = now.Add(reservation)
		}
	}
	maps.DeleteFunc(b.leaving, func(ip netip.Addr, until time.Time) bool { return announced[ip] || !until.After(now) })
	b.announced = announced
}
