//go:build linux

package balancer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/wake"
)

const (
	// period is the time between two looks at the health of nodes.
	period = time.Second
	// patience bounds the wait for a node that is asked for its health.
	patience = 2 * time.Second
)

// ranges are what addresses are given from, in networks that package lab does not use.
var ranges = []netip.Prefix{netip.MustParsePrefix("198.19.0.0/24"), netip.MustParsePrefix("2001:db8:0:4::/120")}

// balancer is one that runs.
type balancer struct {
	client    kubernetes.Interface
	services  corelisters.ServiceLister
	nodes     corelisters.NodeLister
	probe     *http.Client
	router    *router
	addresses *addresses
	// serving are the names of the nodes that take what is for a Service.
	serving map[types.UID][]string
}

// Run gives Services addresses until ctx ends. The router is the host that clients reach the nodes through; its routes stay.
func Run(ctx context.Context, client kubernetes.Interface, router *lab.Host) error {
	r, err := newRouter(router, ranges)
	if err != nil {
		return err
	}
	defer r.close()
	factory := informers.NewSharedInformerFactory(client, 0)
	b := &balancer{
		client: client, services: factory.Core().V1().Services().Lister(), nodes: factory.Core().V1().Nodes().Lister(),
		probe:  &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: router.DialContext, DisableKeepAlives: true}},
		router: r, addresses: newAddresses(ranges), serving: map[types.UID][]string{},
	}
	changed := wake.New()
	notify := func(any) { changed.Send() }
	handler := cache.ResourceEventHandlerFuncs{AddFunc: notify, DeleteFunc: notify, UpdateFunc: func(_, object any) { notify(object) }}
	if _, err := factory.Core().V1().Services().Informer().AddEventHandler(handler); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())
	return b.loop(ctx, changed)
}

// loop looks after every change, and once in a period.
func (b *balancer) loop(ctx context.Context, changed <-chan struct{}) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := b.sync(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot balance all Services, will retry")
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-tick.C:
		}
	}
	return ctx.Err()
}

// sync brings routes and Services a step ahead. An address has its routes before a Service tells of it.
func (b *balancer) sync(ctx context.Context) error {
	services, err := b.services.List(labels.Everything())
	if err != nil {
		return err
	}
	nodes, err := b.readyNodes()
	if err != nil {
		return err
	}
	balances, err := b.give(services)
	errs := []error{err}
	b.choose(ctx, balances, nodes)
	wanted := map[netip.Addr][]netip.Addr{}
	for _, one := range balances {
		maps.Copy(wanted, routes(one, nodes))
	}
	errs = append(errs, b.router.hold(wanted))
	for _, svc := range services {
		errs = append(errs, b.write(ctx, nextWrite(svc, b.addresses.given[svc.UID])))
	}
	return errors.Join(errs...)
}

// readyNodes are the addresses of the nodes that are ready, by name.
func (b *balancer) readyNodes() (map[string][]netip.Addr, error) {
	nodes, err := b.nodes.List(labels.Everything())
	ready := map[string][]netip.Addr{}
	for _, node := range nodes {
		if addrs := nodeAddrs(node); len(addrs) > 0 {
			ready[node.Name] = addrs
		}
	}
	return ready, err
}

// give gives addresses to the Services that are to have some, and takes back those of others.
func (b *balancer) give(services []*v1.Service) (balances []*balance, err error) {
	services = slices.DeleteFunc(slices.Clone(services), func(svc *v1.Service) bool { return !balanced(svc) })
	b.addresses.keep(services)
	var errs []error
	for _, svc := range services {
		addrs, err := b.addresses.give(svc)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", klog.KObj(svc), err))
			continue
		}
		balances = append(balances, &balance{svc: svc, addrs: addrs})
	}
	return balances, errors.Join(errs...)
}

// choose chooses the nodes for each Service. All are asked at the same time: a node that hangs holds up the others' no longer than
// its own.
func (b *balancer) choose(ctx context.Context, balances []*balance, nodes map[string][]netip.Addr) {
	var asking sync.WaitGroup
	for _, one := range balances {
		asking.Go(func() { one.nodes = chooseNodes(one.svc, b.healthy(ctx, one.svc, nodes), b.serving[one.svc.UID]) })
	}
	asking.Wait()
	b.serving = map[types.UID][]string{}
	for _, one := range balances {
		b.serving[one.svc.UID] = one.nodes
	}
}

// healthy returns the nodes that may take what is for a Service, sorted. A node is asked at its address of the Service's first
// IP family: kube-proxy answers at no other.
func (b *balancer) healthy(ctx context.Context, svc *v1.Service, nodes map[string][]netip.Addr) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		i := slices.IndexFunc(nodes[name], func(addr netip.Addr) bool { return familyOf(addr) == svc.Spec.IPFamilies[0] })
		if i < 0 {
			continue
		}
		if !local(svc) || b.hasEndpoints(ctx, netip.AddrPortFrom(nodes[name][i], uint16(svc.Spec.HealthCheckNodePort))) {
			names = append(names, name)
		}
	}
	return names
}

// hasEndpoints asks a node at a Service's health check port.
func (b *balancer) hasEndpoints(ctx context.Context, at netip.AddrPort) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+"/healthz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := b.probe.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// write does a write, if there is one. A Service that somebody else has changed or deleted meanwhile is looked at again soon.
func (b *balancer) write(ctx context.Context, next *write) error {
	if next == nil {
		return nil
	}
	services := b.client.CoreV1().Services(next.object.Namespace)
	do := services.Update
	if next.status {
		do = services.UpdateStatus
	}
	if _, err := do(ctx, next.object, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write to the Service %s: %w", klog.KObj(next.object), err)
	}
	return nil
}
