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
	// known: all statuses are known. there: the API server has them. unread is why they cannot be read.
	known, there bool
	unread       error
	// reading is the last one.
	reading metallb.Reading
}

// newBalancer returns one for an Extension; nil if nothing is steered: each pod leaves from where it runs then.
func newBalancer(e *Extension) *balancer {
	if e.config.Steering.off() {
		return nil
	}
	return &balancer{extension: e, wake: make(chan struct{}, 1), book: metallb.NewBook()}
}

// change changes the book, and has it read again.
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
		b.change(func(book *metallb.Book) bool { return book.SetService(nameOf(object), balancedAddresses(object)) })
	}
}

// deleteService forgets a Service.
func (b *balancer) deleteService(object *v1.Service) {
	if b != nil {
		b.change(func(book *metallb.Book) bool { return book.SetService(nameOf(object), nil) })
	}
}

// setStatus takes a ServiceL2Status.
func (b *balancer) setStatus(object metav1.Object) {
	b.change(func(book *metallb.Book) bool {
		book.SetStatus(nameOf(object), object.GetLabels())
		return true
	})
}

// deleteStatus forgets a ServiceL2Status.
func (b *balancer) deleteStatus(name types.NamespacedName) {
	b.change(func(book *metallb.Book) bool {
		book.DeleteStatus(name)
		return true
	})
}

// servicesKnown tells that all Services are known.
func (b *balancer) servicesKnown() {
	if b != nil {
		b.change(func(*metallb.Book) bool { return true })
	}
}

// statusesKnown tells that all statuses are known, if the API server has any, or that they cannot be read.
func (b *balancer) statusesKnown(there bool, unread error) {
	b.mu.Lock()
	news := unread != nil && b.unread == nil
	b.known, b.there, b.unread = true, there, unread
	b.mu.Unlock()
	if news {
		b.extension.logger.Error(unread, "It is not known which load-balancer IPs MetalLB announces from which node. If one of them is an egress IP, pods on other nodes get no answers")
	}
	b.change(func(*metallb.Book) bool { return true })
}

// run tells what follows from the book until the context ends, from when all Services and statuses are known.
func (b *balancer) run() {
	e := b.extension
	var due <-chan time.Time
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-b.wake:
		case <-due:
		}
		b.mu.Lock()
		known := b.known
		b.mu.Unlock()
		if !known || e.barrier.WaitsFor(services) {
			continue // it is woken then
		}
		due = nil
		if at := b.tell(); !at.IsZero() {
			due = time.After(time.Until(at))
		}
		if e.barrier.WaitsFor(balancers) {
			e.known(balancers)
		}
	}
}

// tell tells what follows now, and returns when that changes by itself.
func (b *balancer) tell() (wake time.Time) {
	b.mu.Lock()
	before, next := b.reading.Reserved, map[netip.Addr]bool(nil)
	b.reading = b.book.Read(b.extension.config.NodeName, time.Now())
	now := b.reading
	if b.there { // other load balancers do not announce from nodes
		next = now.Balanced
	}
	b.mu.Unlock()
	b.extension.steerer.setAnnounced(now.Here, next)
	b.extension.changed(!maps.Equal(before, now.Reserved), time.Now())
	return now.Wake
}

// fault returns why it is not known which egress IPs are announced from which node; nil if that is of no matter, or known.
func (b *balancer) fault() error {
	b.mu.Lock()
	unread, balanced := b.unread, b.reading.Balanced
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

// reserved are the addresses that the pool leaves alone.
func (b *balancer) reserved() map[netip.Addr]bool {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reading.Reserved
}

// follow begins to follow the statuses.
func (b *balancer) follow(client dynamic.Interface, api discovery.DiscoveryInterface) {
	if b == nil {
		return
	}
	e, selector := b.extension, statusesFor(b.extension.config)
	e.running.Go(b.run)
	e.running.Go(func() {
		usable := func() (bool, error) { return b.usable(client, api, selector) }
		if e.await(usable, "Cannot tell whether MetalLB announces load-balancer IPs; will retry, further failures are not logged", metallb.Statuses.GroupResource().String()) {
			b.watch(client, selector)
		}
	})
}

// statusesFor selects the statuses that a node needs: its own, and all if it has to keep the pool off the addresses in them.
func statusesFor(config Config) (selector string) {
	if len(config.Pool.Networks) > 0 {
		return metallb.NodeLabel
	}
	return metallb.NodeLabel + "=" + config.NodeName
}

// usable tells whether the API server has the statuses, and this node may read them. What keeps it from reading them keeps nothing else
// waiting for long.
func (b *balancer) usable(client dynamic.Interface, api discovery.DiscoveryInterface, selector string) (bool, error) {
	const patience = 10 * time.Second
	there, err := HasResource(b.extension.ctx, api, metallb.Statuses.GroupVersion(), metallb.Statuses.Resource)
	if err != nil || !there {
		if err == nil {
			b.statusesKnown(false, nil)
		}
		return false, err
	}
	_, err = client.Resource(metallb.Statuses).List(b.extension.ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsForbidden(err):
		b.statusesKnown(true, fmt.Errorf("%w; apply rbac-metallb.yaml", b.extension.explain(err)))
		return false, nil
	case time.Since(started) > patience:
		b.statusesKnown(true, b.extension.explain(err))
	}
	return false, fmt.Errorf("list %s: %w", metallb.Statuses.GroupResource(), err)
}

// watch watches the statuses until the context ends.
func (b *balancer) watch(client dynamic.Interface, selector string) {
	informer := dynamicinformer.NewFilteredDynamicInformer(client, metallb.Statuses, metav1.NamespaceAll, 0, nil,
		func(options *metav1.ListOptions) { options.LabelSelector = selector }).Informer()
	extension.Explain(informer, b.extension.explain)
	extension.Follow(b.extension.ctx, informer, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { b.setStatus(o.(metav1.Object)) },
		UpdateFunc: func(_, o any) { b.setStatus(o.(metav1.Object)) },
		DeleteFunc: func(o any) {
			if name, err := cache.DeletionHandlingObjectToName(o); err == nil {
				b.deleteStatus(types.NamespacedName{Namespace: name.Namespace, Name: name.Name})
			}
		},
	}, func() { b.statusesKnown(true, nil) })
	informer.RunWithContext(b.extension.ctx)
}

// AddBalanced adds to objects, which has the Services and what is on this node's interfaces, which addresses a load balancer announces from
// this node, or may announce from it next.
func (objects *Objects) AddBalanced(ctx context.Context, client dynamic.Interface, api discovery.DiscoveryInterface, config Config) error {
	there, err := HasResource(ctx, api, metallb.Statuses.GroupVersion(), metallb.Statuses.Resource)
	if err != nil || !there {
		return err
	}
	statuses, err := client.Resource(metallb.Statuses).List(ctx, metav1.ListOptions{LabelSelector: statusesFor(config)})
	if err != nil {
		return fmt.Errorf("list %s: %w", metallb.Statuses.GroupResource(), err)
	}
	book := metallb.NewBook()
	for _, service := range objects.Services {
		book.SetService(nameOf(service), balancedAddresses(service))
	}
	for i := range statuses.Items {
		book.SetStatus(nameOf(&statuses.Items[i]), statuses.Items[i].GetLabels())
	}
	reading := book.Read(config.NodeName, time.Now())
	own := ownAddresses{onInterfaces: slices.Collect(maps.Keys(objects.Held)), announced: reading.Here}
	objects.Announced, objects.Balanced = own.event().Announced, reading.Balanced
	for _, ip := range objects.Announced {
		objects.Held[ip] = true
	}
	return nil
}
