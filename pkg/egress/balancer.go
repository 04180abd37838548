package egress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
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
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/metallb"
	"github.com/openshift/origin-node/pkg/egress/steerer"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/upstream"
	"github.com/openshift/origin-node/pkg/wake"
)

// balancer follows which egress IPs a load balancer announces, and tells the steerer and the pool. Its methods may be called by several
// goroutines; those of a nil one do nothing.
type balancer struct {
	config  Config
	state   *cluster.State
	barrier *extension.Barrier
	running *sync.WaitGroup
	ctx     context.Context
	logger  klog.Logger
	// announced is told what is announced from here, and what may be next.
	announced func(announced []netip.Addr, next map[netip.Addr]bool)
	// changed asks for a sync, allKnown is told when all objects of MetalLB are known, explain is that of [Clients].
	changed  func(changed bool, at time.Time)
	allKnown func(kind string)
	explain  func(error) error
	// wake has the goroutine tell what follows from the book.
	wake wake.Signal

	mu   sync.Mutex
	book *metallb.Book
	// unknown are the resources whose objects are not all known yet, unread those that cannot be read, and why.
	unknown map[schema.GroupVersionResource]bool
	unread  map[schema.GroupVersionResource]error
	// reading is what follows from the book, unless that has changed since.
	reading metallb.Reading
	stale   bool
}

// newBalancer returns one for an Extension; nil if nothing is steered, for each pod leaves from where it runs then, or if MetalLB is not to
// be followed.
func newBalancer(e *Extension) *balancer {
	if !e.config.followsMetalLB() {
		return nil
	}
	b := &balancer{
		config: e.config, state: e.state, barrier: e.barrier, running: &e.running, ctx: e.ctx, logger: e.logger,
		announced: func(now []netip.Addr, next map[netip.Addr]bool) { e.steerer.SetAnnounced(now, next) }, // Watch sets the steerer
		changed:   e.changed, allKnown: e.known, explain: func(err error) error { return e.explain(err) },
		wake: wake.New(), book: metallb.NewBook(),
		unknown: map[schema.GroupVersionResource]bool{}, unread: map[schema.GroupVersionResource]error{},
	}
	for resource := range resourcesOfMetalLB(e.config) {
		b.unknown[resource] = true
	}
	return b
}

// resourcesOfMetalLB are those that a node reads, with a selector of their labels: what it announces itself and may announce next, and what
// the pool is to leave alone.
func resourcesOfMetalLB(config Config) map[schema.GroupVersionResource]string {
	resources := map[schema.GroupVersionResource]string{metallb.Statuses: metallb.NodeLabel + "=" + config.NodeName, metallb.L2Advertisements: ""}
	if len(config.Pool.Networks) > 0 {
		resources[metallb.BGPAdvertisements] = ""
	}
	return resources
}

// unreadResources says what may come of it if a resource cannot be read.
var unreadResources = map[schema.GroupVersionResource]string{
	metallb.Statuses:          "it is not known which load-balancer IPs MetalLB announces from this node; pods that leave from them on other nodes get no answers",
	metallb.L2Advertisements:  "it is not known which load-balancer IPs MetalLB may announce from this node; connections from them may be reset when it does, and the pool may take them",
	metallb.BGPAdvertisements: "it is not known which load-balancer IPs MetalLB announces by BGP; the pool may take them",
}

// change changes the book, and has what follows from it told.
func (b *balancer) change(do func(*metallb.Book) (changed bool)) {
	b.mu.Lock()
	changed := do(b.book)
	b.stale = b.stale || changed
	b.mu.Unlock()
	if changed {
		b.wake.Send()
	}
}

// read returns what follows from the book now.
func (b *balancer) read() metallb.Reading {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stale {
		b.reading, b.stale = b.book.Read(b.config.NodeName), false
	}
	return b.reading
}

// setService takes the load-balancer IPs of a Service.
func (b *balancer) setService(object *v1.Service) {
	if b != nil {
		b.change(func(book *metallb.Book) bool {
			return book.SetService(cluster.NameOf(object), cluster.BalancedAddresses(object), object.Annotations)
		})
	}
}

// deleteService forgets a Service.
func (b *balancer) deleteService(object *v1.Service) {
	if b != nil {
		b.change(func(book *metallb.Book) bool { return book.SetService(cluster.NameOf(object), nil, nil) })
	}
}

// servicesKnown tells that all Services are known.
func (b *balancer) servicesKnown() {
	if b != nil {
		b.wake.Send()
	}
}

// replace takes all objects of a resource.
func (b *balancer) replace(resource schema.GroupVersionResource, objects []any) {
	b.change(func(book *metallb.Book) bool {
		all := make([]*unstructured.Unstructured, len(objects))
		for i, o := range objects {
			all[i] = o.(*unstructured.Unstructured)
		}
		book.Replace(resource, all)
		return true
	})
}

// known tells that all objects of a resource are known, if there are any, or why they cannot be read.
func (b *balancer) known(resource schema.GroupVersionResource, unread error) {
	b.mu.Lock()
	before := b.unread[resource]
	b.unread[resource] = unread
	delete(b.unknown, resource)
	b.mu.Unlock()
	if unread != nil && before == nil {
		b.logger.Error(unread, "Cannot read objects of MetalLB: "+unreadResources[resource])
	}
	b.wake.Send()
}

// run tells what follows from the book until the context ends, from when all objects are known.
func (b *balancer) run() {
	reserved := map[netip.Addr]bool(nil)
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.wake:
		}
		b.mu.Lock()
		waits := len(b.unknown) > 0
		b.mu.Unlock()
		if waits || b.barrier.WaitsFor(cluster.Services) {
			continue // it is woken then
		}
		now := b.read()
		b.announced(now.Here, now.Layer2)
		b.changed(!maps.Equal(reserved, now.Reserved), time.Now())
		reserved = now.Reserved
		if b.barrier.WaitsFor(cluster.Balancers) {
			b.allKnown(cluster.Balancers)
		}
	}
}

// reserved are the addresses that the pool leaves alone.
func (b *balancer) reserved() map[netip.Addr]bool {
	if b == nil {
		return nil
	}
	return b.read().Reserved
}

// fault returns what is not known of egress IPs because objects of MetalLB cannot be read; nil if that is of no matter.
func (b *balancer) fault() error {
	if b == nil {
		return nil
	}
	var reasons []string
	b.mu.Lock()
	for resource, err := range b.unread {
		if err != nil {
			reasons = append(reasons, unreadResources[resource]+": "+err.Error())
		}
	}
	b.mu.Unlock()
	balanced := b.read().Balanced
	for _, family := range cluster.Families {
		if len(reasons) > 0 && slices.ContainsFunc(b.state.EgressIPs(family), func(ip netip.Addr) bool { return balanced[ip] }) {
			slices.Sort(reasons)
			return errors.New(strings.Join(reasons, "; "))
		}
	}
	return nil
}

// follow begins to follow MetalLB's objects, as soon as the API server has its kinds.
func (b *balancer) follow(client dynamic.Interface, api discovery.DiscoveryInterface) {
	if b == nil {
		return
	}
	resources := resourcesOfMetalLB(b.config)
	installed := func() (bool, error) { // one question for all of them
		_, err := upstream.ServerResources(b.ctx, api, metallb.Statuses.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			for resource := range resources {
				b.known(resource, nil)
			}
			return false, nil
		}
		return err == nil, err
	}
	b.running.Go(b.run)
	b.running.Go(func() {
		if !cluster.Await(b.ctx, b.logger, b.explain, installed, "Cannot tell whether there is MetalLB; will retry, further failures are not logged", metallb.Statuses.Group) {
			return
		}
		for resource, selector := range resources {
			b.running.Go(func() { b.followResource(client, api, resource, selector) })
		}
	})
}

// followResource follows the objects of a resource until the context ends.
func (b *balancer) followResource(client dynamic.Interface, api discovery.DiscoveryInterface, resource schema.GroupVersionResource, selector string) {
	const rest = 2 * time.Second // whatever ends a watch, the API server is not asked all the time
	for b.ctx.Err() == nil {
		var since time.Time
		usable := func() (bool, error) { return b.usable(client, api, resource, selector, &since) }
		if !cluster.Await(b.ctx, b.logger, b.explain, usable, "Cannot read objects of MetalLB; will retry, further failures are not logged", resource.GroupResource().String()) {
			return
		}
		b.watch(client, resource, selector)
		select {
		case <-b.ctx.Done():
		case <-time.After(rest):
		}
	}
}

// usable tells whether the API server has a resource, and this node may read it. What keeps it from reading it keeps nothing else
// waiting for long: an API server that has just started refuses what it allows a moment later. Since is when the resource was found.
func (b *balancer) usable(client dynamic.Interface, api discovery.DiscoveryInterface, resource schema.GroupVersionResource, selector string, since *time.Time) (bool, error) {
	const patience = 10 * time.Second
	there, err := cluster.HasResource(b.ctx, api, resource.GroupVersion(), resource.Resource)
	if err != nil {
		return false, err
	}
	if !there {
		b.replace(resource, nil)
		b.known(resource, nil)
		return false, nil
	}
	if since.IsZero() {
		*since = time.Now()
	}
	_, err = client.Resource(resource).Namespace(b.config.Ways.MetalLBNamespace).List(b.ctx,
		metav1.ListOptions{LabelSelector: selector, Limit: 1, ResourceVersion: "0"})
	if err == nil {
		return true, nil
	}
	explained := explainMetalLB(resource, err)
	if time.Since(*since) < patience {
		return false, explained
	}
	b.known(resource, explained)
	if apierrors.IsForbidden(err) {
		return false, nil // somebody has to do something first
	}
	return false, explained
}

// explainMetalLB says what an operator has to do about an error. The rights are not in rbac.yaml, to which other errors lead.
func explainMetalLB(resource schema.GroupVersionResource, err error) error {
	if apierrors.IsForbidden(err) {
		return errors.New(err.Error() + "; apply images/node/rbac-metallb.yaml, with MetalLB's namespace if that is another one than " + metallb.DefaultNamespace)
	}
	return fmt.Errorf("list %s: %w", resource.GroupResource(), err)
}

// watch watches the objects of a resource until the context ends, or they cannot be read any more because the kind or the right is gone.
func (b *balancer) watch(client dynamic.Interface, resource schema.GroupVersionResource, selector string) {
	ctx, end := context.WithCancel(b.ctx)
	defer end()
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, b.config.Ways.MetalLBNamespace, 0, nil,
		func(options *metav1.ListOptions) { options.LabelSelector = selector }).Informer()
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) { // fails for a running informer only
		cache.DefaultWatchErrorHandler(ctx, r, explainMetalLB(resource, err))
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			end()
		}
	})
	set := func(o any) {
		b.change(func(book *metallb.Book) bool {
			book.Set(resource, o.(*unstructured.Unstructured))
			return true
		})
	}
	extension.Follow(ctx, informer, cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, o any) { set(o) },
		DeleteFunc: func(o any) {
			name, err := cache.DeletionHandlingObjectToName(o)
			b.change(func(book *metallb.Book) bool {
				book.Delete(resource, types.NamespacedName{Namespace: name.Namespace, Name: name.Name})
				return err == nil
			})
		},
	}, func() {
		b.replace(resource, informer.GetStore().List()) // some may have gone since they were read the last time
		b.known(resource, nil)
	})
	informer.RunWithContext(ctx)
}

// AddBalanced adds to objects, which has the Services and what is on this node's interfaces, which addresses a load balancer announces from
// this node, or may announce from it next. What cannot be read is in the error.
func AddBalanced(ctx context.Context, objects *cluster.Objects, client dynamic.Interface, api discovery.DiscoveryInterface, config Config) error {
	if !config.followsMetalLB() {
		return nil
	}
	book := metallb.NewBook()
	for _, service := range objects.Services {
		book.SetService(cluster.NameOf(service), cluster.BalancedAddresses(service), service.Annotations)
	}
	var errs []error
	for _, resource := range []schema.GroupVersionResource{metallb.Statuses, metallb.L2Advertisements} {
		there, err := cluster.HasResource(ctx, api, resource.GroupVersion(), resource.Resource)
		if err != nil || !there {
			errs = append(errs, err)
			continue
		}
		list, err := client.Resource(resource).Namespace(config.Ways.MetalLBNamespace).List(ctx, metav1.ListOptions{LabelSelector: resourcesOfMetalLB(config)[resource]})
		if err != nil {
			errs = append(errs, explainMetalLB(resource, err))
			continue
		}
		for i := range list.Items {
			book.Set(resource, &list.Items[i])
		}
	}
	reading := book.Read(config.NodeName)
	own := steerer.OwnAddresses(slices.Collect(maps.Keys(objects.Held)), reading.Here)
	objects.Announced, objects.Balanced = own.Announced, reading.Layer2
	for _, ip := range objects.Announced {
		objects.Held[ip] = true
	}
	return errors.Join(errs...)
}
