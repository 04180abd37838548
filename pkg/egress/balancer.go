package egress

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/origin-node/pkg/egress/metallb"
	"github.com/openshift/origin-node/pkg/extension"
)

// balancer follows which egress IPs a load balancer announces, and tells the steerer and the pool. Its methods may be called by several
// goroutines; those of a nil one do nothing.
type balancer struct {
	extension *Extension
	// wake has the goroutine read the book again.
	wake chan struct{}

	mu   sync.Mutex
	book *metallb.Book
	// unknown are the resources whose objects are not all known yet. there: the API server has MetalLB's statuses. unread is why
	// some resource cannot be read.
	unknown map[schema.GroupVersionResource]bool
	there   bool
	unread  map[schema.GroupVersionResource]error
	// reading is the last one.
	reading metallb.Reading
}

// newBalancer returns one for an Extension; nil if nothing is steered: each pod leaves from where it runs then.
func newBalancer(e *Extension) *balancer {
	if e.config.Steering.off() {
		return nil
	}
	b := &balancer{
		extension: e, wake: make(chan struct{}, 1), book: metallb.NewBook(),
		unknown: map[schema.GroupVersionResource]bool{}, unread: map[schema.GroupVersionResource]error{},
	}
	for resource := range resourcesOfMetalLB(e.config) {
		b.unknown[resource] = true
	}
	return b
}

// resourcesOfMetalLB are those that a node reads, with a selector of their labels: what it announces itself, and what the pool is to leave
// alone.
func resourcesOfMetalLB(config Config) map[schema.GroupVersionResource]string {
	resources := map[schema.GroupVersionResource]string{metallb.Statuses: metallb.NodeLabel + "=" + config.NodeName}
	if len(config.Pool.Networks) > 0 {
		resources[metallb.L2Advertisements], resources[metallb.BGPAdvertisements] = "", ""
	}
	return resources
}

// change changes the book, and has it read again if that says so.
func (b *balancer) change(do func(*metallb.Book) (changed bool)) {
	b.mu.Lock()
	changed := do(b.book)
	b.mu.Unlock()
	if !changed {
		return
	}
	select {
	case b.wake <- struct{}{}:
	default: // it will
	}
}

// setService takes the load-balancer IPs of a Service.
func (b *balancer) setService(object *v1.Service) {
	if b != nil {
		b.change(func(book *metallb.Book) bool {
			return book.SetService(nameOf(object), balancedAddresses(object), object.Annotations)
		})
	}
}

// deleteService forgets a Service.
func (b *balancer) deleteService(object *v1.Service) {
	if b != nil {
		b.change(func(book *metallb.Book) bool { return book.SetService(nameOf(object), nil, nil) })
	}
}

// servicesKnown tells that all Services are known.
func (b *balancer) servicesKnown() {
	if b != nil {
		b.change(func(*metallb.Book) bool { return true })
	}
}

// known tells that all objects of a resource are known, if the API server has it, or why they cannot be read.
func (b *balancer) known(resource schema.GroupVersionResource, there bool, unread error) {
	b.mu.Lock()
	news := unread != nil && b.unread[resource] == nil
	b.unread[resource] = unread
	delete(b.unknown, resource)
	if resource == metallb.Statuses {
		b.there = there
	}
	b.mu.Unlock()
	if news {
		b.extension.logger.Error(unread, "It is not known which load-balancer IPs MetalLB announces, and from which node. If one of them is an egress IP, pods on other nodes get no answers")
	}
	b.change(func(*metallb.Book) bool { return true })
}

// run tells what follows from the book until the context ends, from when all objects are known.
func (b *balancer) run() {
	e := b.extension
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-b.wake:
		}
		b.mu.Lock()
		waits := len(b.unknown) > 0
		b.mu.Unlock()
		if waits || e.barrier.WaitsFor(services) {
			continue // it is woken then
		}
		b.tell()
		if e.barrier.WaitsFor(balancers) {
			e.known(balancers)
		}
	}
}

// tell tells what follows now.
func (b *balancer) tell() {
	b.mu.Lock()
	before, next := b.reading.Reserved, map[netip.Addr]bool(nil)
	b.reading = b.book.Read(b.extension.config.NodeName)
	now := b.reading
	if b.there { // other load balancers do not announce from nodes
		next = now.Balanced
	}
	b.mu.Unlock()
	b.extension.steerer.setAnnounced(now.Here, next)
	b.extension.changed(!maps.Equal(before, now.Reserved), time.Now())
}

// reserved are the addresses that the pool leaves alone.
func (b *balancer) reserved() map[netip.Addr]bool {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reading.Reserved
}

// fault returns why it is not known which egress IPs are announced, and from which node; nil if that is of no matter, or known.
func (b *balancer) fault() error {
	b.mu.Lock()
	balanced := b.reading.Balanced
	var unread error
	for _, err := range b.unread {
		if err != nil && (unread == nil || err.Error() < unread.Error()) { // the same each time
			unread = err
		}
	}
	b.mu.Unlock()
	if unread == nil {
		return nil
	}
	for _, family := range families {
		if slices.ContainsFunc(b.extension.state.egressIPs(family), func(ip netip.Addr) bool { return balanced[ip] }) {
			return unread
		}
	}
	return nil
}

// follow begins to follow MetalLB's objects.
func (b *balancer) follow(client dynamic.Interface, api discovery.DiscoveryInterface) {
	if b == nil {
		return
	}
	e := b.extension
	e.running.Go(b.run)
	for resource, selector := range resourcesOfMetalLB(e.config) {
		e.running.Go(func() {
			usable := func() (bool, error) { return b.usable(client, api, resource, selector) }
			if e.await(usable, "Cannot tell what MetalLB announces; will retry, further failures are not logged", resource.GroupResource().String()) {
				b.watch(client, resource, selector)
			}
		})
	}
}

// usable tells whether the API server has a resource, and this node may read it. What keeps it from reading it keeps nothing else
// waiting for long.
func (b *balancer) usable(client dynamic.Interface, api discovery.DiscoveryInterface, resource schema.GroupVersionResource, selector string) (bool, error) {
	const patience = 10 * time.Second
	there, err := HasResource(b.extension.ctx, api, resource.GroupVersion(), resource.Resource)
	if err != nil || !there {
		if err == nil {
			b.known(resource, false, nil)
		}
		return false, err
	}
	_, err = client.Resource(resource).List(b.extension.ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsForbidden(err):
		b.known(resource, true, fmt.Errorf("%w; apply rbac-metallb.yaml", b.extension.explain(err)))
		return false, nil
	case time.Since(started) > patience:
		b.known(resource, true, b.extension.explain(err))
	}
	return false, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
}

// watch watches the objects of a resource until the context ends.
func (b *balancer) watch(client dynamic.Interface, resource schema.GroupVersionResource, selector string) {
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, metav1.NamespaceAll, 0, nil,
		func(options *metav1.ListOptions) { options.LabelSelector = selector }).Informer()
	extension.Explain(informer, b.extension.explain)
	set := func(o any) {
		b.change(func(book *metallb.Book) bool {
			book.Set(resource, o.(*unstructured.Unstructured))
			return true
		})
	}
	extension.Follow(b.extension.ctx, informer, cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, o any) { set(o) },
		DeleteFunc: func(o any) {
			name, err := cache.DeletionHandlingObjectToName(o)
			b.change(func(book *metallb.Book) bool {
				book.Delete(resource, types.NamespacedName{Namespace: name.Namespace, Name: name.Name})
				return err == nil
			})
		},
	}, func() { b.known(resource, true, nil) })
	informer.RunWithContext(b.extension.ctx)
}

// AddBalanced adds to objects, which has the Services and what is on this node's interfaces, which addresses a load balancer announces from
// this node, or may announce from it next.
func (objects *Objects) AddBalanced(ctx context.Context, client dynamic.Interface, api discovery.DiscoveryInterface, config Config) error {
	there, err := HasResource(ctx, api, metallb.Statuses.GroupVersion(), metallb.Statuses.Resource)
	if err != nil || !there {
		return err
	}
	statuses, err := client.Resource(metallb.Statuses).List(ctx, metav1.ListOptions{LabelSelector: resourcesOfMetalLB(config)[metallb.Statuses]})
	if err != nil {
		return fmt.Errorf("list %s: %w", metallb.Statuses.GroupResource(), err)
	}
	book := metallb.NewBook()
	for _, service := range objects.Services {
		book.SetService(nameOf(service), balancedAddresses(service), service.Annotations)
	}
	for i := range statuses.Items {
		book.Set(metallb.Statuses, &statuses.Items[i])
	}
	reading := book.Read(config.NodeName)
	own := ownAddresses{onInterfaces: slices.Collect(maps.Keys(objects.Held)), announced: reading.Here}
	objects.Announced, objects.Balanced = own.event().Announced, reading.Balanced
	for _, ip := range objects.Announced {
		objects.Held[ip] = true
	}
	return nil
}
