package balancer

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
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/metallb"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/upstream"
	"github.com/openshift/origin-node/pkg/wake"
)

// Config is what a Balancer has to know.
type Config struct {
	// NodeName is this node's, Namespace MetalLB's own.
	NodeName, Namespace string
	// Pool: this node takes part in a pool, which leaves alone what MetalLB has to announce.
	Pool bool
	// State has the egress IPs of this cluster.
	State *cluster.State
	// WaitsFor tells whether objects of a kind are not all known yet.
	WaitsFor func(kind string) bool
	// Announced is told what is announced from here, and what may be next.
	Announced func(announced []netip.Addr, next map[netip.Addr]bool)
	// Reserved is told that other addresses are reserved than before, Known that all objects of MetalLB are known.
	Reserved func()
	Known    func()
	// Explain adds to an error of the API server what an operator needs to act on it.
	Explain func(error) error
}

// Balancer follows which egress IPs a load balancer announces, and tells others. Its methods may be called by several goroutines; those of
// a nil one do nothing.
type Balancer struct {
	config Config
	logger klog.Logger
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

// New returns one that logs with the logger.
func New(logger klog.Logger, config Config) *Balancer {
	b := &Balancer{
		config: config, logger: logger, wake: wake.New(), book: metallb.NewBook(),
		unknown: map[schema.GroupVersionResource]bool{}, unread: map[schema.GroupVersionResource]error{},
	}
	for resource := range b.resources() {
		b.unknown[resource] = true
	}
	return b
}

// resources are those that a node reads, with a selector of their labels: what it announces itself and may announce next, and what the pool
// is to leave alone.
func (b *Balancer) resources() map[schema.GroupVersionResource]string {
	resources := own(b.config.NodeName)
	if b.config.Pool {
		resources[metallb.BGPAdvertisements] = ""
	}
	return resources
}

// own are the resources that tell what a node announces, and may announce next.
func own(nodeName string) map[schema.GroupVersionResource]string {
	return map[schema.GroupVersionResource]string{metallb.Statuses: metallb.NodeLabel + "=" + nodeName, metallb.L2Advertisements: ""}
}

// unreadResources says what may come of it if a resource cannot be read.
var unreadResources = map[schema.GroupVersionResource]string{
	metallb.Statuses:          "it is not known which load-balancer IPs MetalLB announces from this node; pods that leave from them on other nodes get no answers",
	metallb.L2Advertisements:  "it is not known which load-balancer IPs MetalLB may announce from this node; connections from them may be reset when it does, and the pool may take them",
	metallb.BGPAdvertisements: "it is not known which load-balancer IPs MetalLB announces by BGP; the pool may take them",
}

// change changes the book, and has what follows from it told.
func (b *Balancer) change(do func(*metallb.Book) (changed bool)) {
	b.mu.Lock()
	changed := do(b.book)
	b.stale = b.stale || changed
	b.mu.Unlock()
	if changed {
		b.wake.Send()
	}
}

// read returns what follows from the book now.
func (b *Balancer) read() metallb.Reading {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stale {
		b.reading, b.stale = b.book.Read(b.config.NodeName), false
	}
	return b.reading
}

// SetService takes the load-balancer IPs of a Service.
func (b *Balancer) SetService(object *v1.Service) {
	if b != nil {
		b.change(func(book *metallb.Book) bool {
			return book.SetService(cluster.NameOf(object), cluster.BalancedAddresses(object), object.Annotations)
		})
	}
}

// DeleteService forgets a Service.
func (b *Balancer) DeleteService(object *v1.Service) {
	if b != nil {
		b.change(func(book *metallb.Book) bool { return book.SetService(cluster.NameOf(object), nil, nil) })
	}
}

// ServicesKnown tells that all Services are known.
func (b *Balancer) ServicesKnown() {
	if b != nil {
		b.wake.Send()
	}
}

// replace takes all objects of a resource.
func (b *Balancer) replace(resource schema.GroupVersionResource, objects func() []any) {
	b.change(func(book *metallb.Book) bool {
		var all []*unstructured.Unstructured
		for _, o := range objects() {
			all = append(all, o.(*unstructured.Unstructured))
		}
		book.Replace(resource, all)
		return true
	})
}

// known tells that all objects of a resource are known, if there are any, or why they cannot be read.
func (b *Balancer) known(resource schema.GroupVersionResource, unread error) {
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
func (b *Balancer) run(ctx context.Context) {
	reserved := map[netip.Addr]bool(nil)
	b.wake.Follow(ctx, func() {
		b.mu.Lock()
		waits := len(b.unknown) > 0
		b.mu.Unlock()
		if waits || b.config.WaitsFor(cluster.Services) {
			return // it is woken then
		}
		now := b.read()
		b.config.Announced(now.Here, now.Layer2)
		if !maps.Equal(reserved, now.Reserved) {
			b.config.Reserved()
		}
		reserved = now.Reserved
		if b.config.WaitsFor(cluster.Balancers) {
			b.config.Known()
		}
	})
}

// Reserved are the addresses that the pool leaves alone.
func (b *Balancer) Reserved() map[netip.Addr]bool {
	if b == nil {
		return nil
	}
	return b.read().Reserved
}

// Fault returns what is not known of egress IPs because objects of MetalLB cannot be read; nil if that is of no matter.
func (b *Balancer) Fault() error {
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
		if len(reasons) > 0 && slices.ContainsFunc(b.config.State.EgressIPs(family), func(ip netip.Addr) bool { return balanced[ip] }) {
			slices.Sort(reasons)
			return errors.New(strings.Join(reasons, "; "))
		}
	}
	return nil
}

// Follow begins to follow MetalLB's objects, as soon as the API server has its kinds.
func (b *Balancer) Follow(ctx context.Context, running *sync.WaitGroup, client dynamic.Interface, api discovery.DiscoveryInterface) {
	if b == nil {
		return
	}
	resources := b.resources()
	installed := func() (bool, error) { // one question for all of them
		_, err := upstream.ServerResources(ctx, api, metallb.Statuses.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			for resource := range resources {
				b.known(resource, nil)
			}
			return false, nil
		}
		return err == nil, err
	}
	running.Go(func() { b.run(ctx) })
	running.Go(func() {
		if !cluster.Await(ctx, b.logger, b.config.Explain, installed, "Cannot tell whether there is MetalLB; will retry, the same failure is not logged again", metallb.Statuses.Group) {
			return
		}
		for resource, selector := range resources {
			running.Go(func() { b.followResource(ctx, client, api, resource, selector) })
		}
	})
}

// followResource follows the objects of a resource until the context ends.
func (b *Balancer) followResource(ctx context.Context, client dynamic.Interface, api discovery.DiscoveryInterface, resource schema.GroupVersionResource, selector string) {
	const rest = 2 * time.Second // whatever ends a watch, the API server is not asked all the time
	for ctx.Err() == nil {
		var since time.Time
		usable := func() (bool, error) { return b.usable(ctx, client, api, resource, selector, &since) }
		if !cluster.Await(ctx, b.logger, b.config.Explain, usable, "Cannot read objects of MetalLB; will retry, the same failure is not logged again", resource.GroupResource().String()) {
			return
		}
		b.watch(ctx, client, resource, selector)
		wake.Sleep(ctx.Done(), rest)
	}
}

// usable tells whether the API server has a resource, and this node may read it. What keeps it from reading it keeps nothing else
// waiting for long: an API server that has just started refuses what it allows a moment later. Since is when the resource was found.
func (b *Balancer) usable(ctx context.Context, client dynamic.Interface, api discovery.DiscoveryInterface, resource schema.GroupVersionResource, selector string, since *time.Time) (bool, error) {
	const patience = 10 * time.Second
	there, err := cluster.HasResource(ctx, api, resource.GroupVersion(), resource.Resource)
	if err != nil {
		return false, err
	}
	if !there {
		b.replace(resource, func() []any { return nil })
		b.known(resource, nil)
		return false, nil
	}
	if since.IsZero() {
		*since = time.Now()
	}
	_, err = client.Resource(resource).Namespace(b.config.Namespace).List(ctx,
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
func (b *Balancer) watch(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, selector string) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, b.config.Namespace, 0, nil,
		func(options *metav1.ListOptions) { options.LabelSelector = selector }).Informer()
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) { // fails for a running informer only
		cache.DefaultWatchErrorHandler(ctx, r, explainMetalLB(resource, err))
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			end()
		}
	})
	extension.Follow(ctx, informer, extension.Handler(func(o *unstructured.Unstructured) {
		b.change(func(book *metallb.Book) bool {
			book.Set(resource, o)
			return true
		})
	}, func(name cache.ObjectName) {
		b.change(func(book *metallb.Book) bool {
			book.Delete(resource, types.NamespacedName(name))
			return true
		})
	}), func() {
		b.replace(resource, informer.GetStore().List) // some may have gone since they were read the last time
		b.known(resource, nil)
	})
	informer.RunWithContext(ctx)
}

// Add adds to objects, which has the Services and what is on this node's interfaces, which addresses a load balancer announces from this
// node, or may announce from it next. Namespace is MetalLB's own. What cannot be read is in the error.
func Add(ctx context.Context, objects *cluster.Objects, client dynamic.Interface, api discovery.DiscoveryInterface, nodeName, namespace string) error {
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
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: own(nodeName)[resource]})
		if err != nil {
			errs = append(errs, explainMetalLB(resource, err))
			continue
		}
		for i := range list.Items {
			book.Set(resource, &list.Items[i])
		}
	}
	reading := book.Read(nodeName)
	own := holders.Own(slices.Collect(maps.Keys(objects.Held)), reading.Here)
	objects.Announced, objects.Balanced = own.Announced, reading.Layer2
	for _, ip := range objects.Announced {
		objects.Held[ip] = true
	}
	return errors.Join(errs...)
}
