package egress

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	configinformers "github.com/openshift/client-go/config/informers/externalversions/config/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	networkinginformers "k8s.io/client-go/informers/networking/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/upstream"
)

// Clients reach the API server.
type Clients struct {
	Kube   kubernetes.Interface
	Config configclient.Interface
	// Dynamic is for objects of kinds that a cluster need not have.
	Dynamic dynamic.Interface
	// Nodes is of [extension.NewNodes]; it runs after Watch.
	Nodes cache.SharedIndexInformer
	// Explain, if not nil, adds to an error of theirs what an operator needs to act on it.
	Explain func(error) error
	// Outer is the IP family in which the nodes reach each other.
	Outer v1.IPFamily
}

// Watch begins to watch what the proxier does not, and to write Events. Call it once,
// before the proxier's SyncLoop.
func (e *Extension) Watch(clients Clients) {
	if clients.Explain != nil {
		e.explain = clients.Explain
	}
	for kind := range unservedSelectors {
		e.running.Go(func() { e.watchUnserved(clients.Kube, kind) })
	}
	e.running.Go(func() { e.watchHeadless(clients.Kube) })
	e.preparePortSecurity() // what steer starts asks how it is
	e.steer(clients.Kube, clients.Outer)
	e.balancer.follow(clients.Dynamic, clients.Kube.Discovery())
	e.startPortSecurity()
	e.running.Go(e.followNeighbours)
	e.attach(clients.Kube)
	if e.config.KeptNodes != "" {
		if err := e.state.loadRegistrations(); err != nil {
			e.logger.Error(err, "Cannot read a file that the last process kept")
		}
		e.running.Go(e.keepRegistrations)
	}
	e.followNodes(clients.Nodes)
	e.running.Go(func() { e.watchServiceCIDRs(clients.Kube) })
	e.running.Go(func() { e.doWithoutServiceCIDRs(clients.Kube.Discovery()) })
	e.running.Go(func() { e.watchNetwork(clients.Config) })
	e.running.Go(func() { e.events.run(e.ctx, clients.Kube.CoreV1()) })
}

func (e *Extension) followNodes(informer cache.SharedIndexInformer) {
	extension.Follow(e.ctx, informer, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { e.setNode(o.(*v1.Node)) },
		UpdateFunc: func(_, o any) { e.setNode(o.(*v1.Node)) },
		DeleteFunc: func(o any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
				changed := e.state.deleteNode(name)
				e.steerer.deleteNode(name)
				e.changed(changed, time.Now())
				e.changed(e.pool.deleteNode(name), time.Now())
			}
		},
	}, func() { e.known(nodes) })
}

func (e *Extension) setNode(node *v1.Node) {
	changed := e.state.setNode(node)
	e.steerer.setNode(node)
	e.changed(changed, time.Now())
	e.changed(e.pool.setNode(node), time.Now())
}

// watchServiceCIDRs returns when the context ends. The proxier is told of them, too, but not
// when it has been told of all.
func (e *Extension) watchServiceCIDRs(client kubernetes.Interface) {
	informer := networkinginformers.NewServiceCIDRInformer(client, 0, nil)
	set := func() {
		var cidrs []string
		for _, object := range informer.GetStore().List() {
			cidrs = append(cidrs, object.(*networkingv1.ServiceCIDR).Spec.CIDRs...)
		}
		e.changed(e.state.setServiceCIDRs(cidrs), time.Now())
	}
	e.watch(informer, serviceCIDRs, nil, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { set() },
		UpdateFunc: func(any, any) { set() },
		DeleteFunc: func(any) { set() },
	})
}

// doWithoutServiceCIDRs ends the wait for ServiceCIDRs if the API server does not have them, as before
// Kubernetes 1.33, or does not tell them although it answers.
func (e *Extension) doWithoutServiceCIDRs(client discovery.DiscoveryInterface) {
	const askAgain = 2 * time.Second
	const patience = 70 * time.Second // a watch that failed is tried again within a minute
	var answers time.Time             // since when
	for e.barrier.WaitsFor(serviceCIDRs) {
		exists, err := HasResource(e.ctx, client, networkingv1.SchemeGroupVersion, "servicecidrs")
		switch {
		case err != nil:
			answers = time.Time{}
		case exists && answers.IsZero():
			answers = time.Now()
		case !exists || time.Since(answers) > patience:
			e.logger.Error(nil, "ServiceCIDRs are unavailable, so egress IPs that are Services' cluster IPs are not recognised. If the API server has ServiceCIDRs, give the node's user the right to list and watch servicecidrs of networking.k8s.io", "apiServerHasThem", exists)
			e.known(serviceCIDRs)
			return
		}
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(askAgain):
		}
	}
}

// watchNetwork watches OpenShift's Network, as soon as the API server has its kind. It
// returns when the context ends.
func (e *Extension) watchNetwork(client configclient.Interface) {
	usable := func() (bool, error) {
		exists, err := hasNetworks(e.ctx, client.Discovery())
		if err == nil && !exists {
			e.known(networks)
		}
		return exists, err
	}
	if e.await(usable, "Cannot tell whether the cluster has a policy on external IPs; will retry, further failures are not logged", networkSource) {
		e.watchExistingNetwork(client)
	}
}

// await asks until something of the API server is usable, and tells whether it is, or the context has ended. It logs a complaint, with
// the object that it is about, of each error that is not the one before.
func (e *Extension) await(usable func() (bool, error), complaint, object string) bool {
	const askAgain, askAfterError = time.Minute, 2 * time.Second
	complained := ""
	for {
		is, err := usable()
		wait := askAgain
		switch {
		case err != nil:
			wait = askAfterError
			if err.Error() != complained {
				complained = err.Error()
				e.logger.Error(e.explain(err), complaint, "object", object)
			}
		case is:
			return true
		}
		select {
		case <-e.ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// hasNetworks tells whether the API server has the kind Network of config.openshift.io. It
// does not on other clusters than OpenShift's.
func hasNetworks(ctx context.Context, client discovery.DiscoveryInterface) (bool, error) {
	return HasResource(ctx, client, configv1.GroupVersion, "networks")
}

// HasResource tells whether the API server has a resource, whether or not the user may use it.
func HasResource(ctx context.Context, client discovery.DiscoveryInterface, group schema.GroupVersion, name string) (bool, error) {
	resources, err := upstream.ServerResources(ctx, client, group.String())
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking for the kinds of %s: %w", group, err)
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == name }), nil
}

// ClusterNetwork returns OpenShift's Network, or nil if the cluster has none.
func ClusterNetwork(ctx context.Context, client configclient.Interface) (*configv1.Network, error) {
	if exists, err := hasNetworks(ctx, client.Discovery()); !exists {
		return nil, err
	}
	object, err := client.ConfigV1().Networks().Get(ctx, networkName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("getting %s: %w", networkSource, err)
	}
	return object, nil
}

func (e *Extension) watchExistingNetwork(client configclient.Interface) {
	informer := configinformers.NewFilteredNetworkInformer(client, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, networkName).String()
	})
	e.watch(informer, networks, nil, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { e.setNetwork(o.(*configv1.Network)) },
		UpdateFunc: func(_, o any) { e.setNetwork(o.(*configv1.Network)) },
		DeleteFunc: func(any) { e.setNetwork(nil) },
	})
}

func (e *Extension) setNetwork(object *configv1.Network) {
	before := e.state.networkCIDRs()
	changed, err := e.state.setNetwork(object)
	if err != nil {
		e.logger.Error(err, "The cluster's network configuration has invalid entries. A list with such an entry allows nothing")
	}
	if cidrs := e.state.networkCIDRs(); len(e.config.ClusterCIDRs) == 0 && !slices.Equal(before, cidrs) {
		e.logger.Info("Using the cluster CIDRs of the cluster's network configuration because proxyArguments.cluster-cidr is not set",
			"object", networkSource, "clusterCIDRs", cidrs)
	}
	e.changed(changed, time.Now())
}

// watch runs an informer until the context ends, and notes when all objects are known.
func (e *Extension) watch(informer cache.SharedIndexInformer, kind string, strip cache.TransformFunc, handler cache.ResourceEventHandler) {
	_ = informer.SetTransform(strip) // fails for a running informer only
	extension.Explain(informer, e.explain)
	extension.Follow(e.ctx, informer, handler, func() { e.known(kind) })
	informer.RunWithContext(e.ctx)
}
