package cluster

import (
	"context"
	"slices"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	configinformers "github.com/openshift/client-go/config/informers/externalversions/config/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	networkinginformers "k8s.io/client-go/informers/networking/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/wake"
)

// Watcher follows the objects that the proxier does not tell of, and tells the state.
type Watcher struct {
	// State takes the objects, Gate says which kinds are still waited for.
	State *State
	Gate  *extension.Gate
	// Explain adds to an error of the API server what an operator needs to act on it.
	Explain func(error) error
	// Known is told when all objects of a kind are known.
	Known func(kind string)
	// Changed, ServiceChanged and EndpointsChanged are told what the state says of a change.
	Changed          func(changed bool, at time.Time)
	ServiceChanged   func(changed bool)
	EndpointsChanged func(changed Effect, at time.Time)

	ctx    context.Context
	logger klog.Logger
}

// Run begins to watch until ctx ends. What Nodes registered with is loaded when it returns.
func (w *Watcher) Run(ctx context.Context, running *sync.WaitGroup, kube kubernetes.Interface, config configclient.Interface) {
	w.ctx, w.logger = ctx, klog.FromContext(ctx)
	for kind := range unservedSelectors {
		running.Go(func() { w.watchUnserved(kube, kind) })
	}
	running.Go(func() { w.watchHeadless(kube) })
	if w.State.Config.KeptNodes != "" {
		if err := w.State.loadRegistrations(); err != nil {
			w.logger.Error(err, "Cannot read a file that the last process kept")
		}
		running.Go(w.keepRegistrations)
	}
	running.Go(func() { w.watchServiceCIDRs(kube) })
	running.Go(func() { w.doWithoutServiceCIDRs(kube.Discovery()) })
	running.Go(func() { w.watchNetwork(config) })
}

// watchServiceCIDRs returns when the context ends. The proxier is told of them, too, but not
// when it has been told of all.
func (w *Watcher) watchServiceCIDRs(client kubernetes.Interface) {
	informer := networkinginformers.NewServiceCIDRInformer(client, 0, nil)
	set := func() {
		var cidrs []string
		for _, object := range informer.GetStore().List() {
			cidrs = append(cidrs, object.(*networkingv1.ServiceCIDR).Spec.CIDRs...)
		}
		w.Changed(w.State.SetServiceCIDRs(cidrs), time.Now())
	}
	w.watch(informer, serviceCIDRs, nil, extension.Handler(func(*networkingv1.ServiceCIDR) { set() }, func(cache.ObjectName) { set() }))
}

// doWithoutServiceCIDRs ends the wait for ServiceCIDRs if the API server does not have them, as before
// Kubernetes 1.33, or does not tell them although it answers.
func (w *Watcher) doWithoutServiceCIDRs(client discovery.DiscoveryInterface) {
	retry := askAfterError
	const patience = 70 * time.Second // a watch that failed is tried again within a minute
	var answers time.Time             // since when
	for w.Gate.WaitsFor(serviceCIDRs) {
		exists, err := HasResource(w.ctx, client, networkingv1.SchemeGroupVersion, "servicecidrs")
		switch {
		case err != nil:
			answers = time.Time{}
		case exists && answers.IsZero():
			answers = time.Now()
		case !exists || time.Since(answers) > patience:
			w.logger.Error(nil, "ServiceCIDRs are unavailable, so egress IPs that are Services' cluster IPs are not recognised. If the API server has ServiceCIDRs, give the node's user the right to list and watch servicecidrs of networking.k8s.io", "apiServerHasThem", exists)
			w.Known(serviceCIDRs)
			return
		}
		if !wake.Sleep(w.ctx.Done(), retry.Step()) {
			return
		}
	}
}

// watchNetwork watches OpenShift's Network, as soon as the API server has its kind. It
// returns when the context ends.
func (w *Watcher) watchNetwork(client configclient.Interface) {
	usable := func() (bool, error) {
		exists, err := hasNetworks(w.ctx, client.Discovery())
		if err == nil && !exists {
			w.Known(networks)
		}
		return exists, err
	}
	if Await(w.ctx, w.logger, w.Explain, usable, "Cannot tell whether the cluster has a policy on external IPs; will retry, the same failure is not logged again", networkSource) {
		w.watchExistingNetwork(client)
	}
}

// askAgain is how often the API server is asked for what it does not have, and askAfterError after errors: all nodes ask.
const askAgain = time.Minute

var askAfterError = wait.Backoff{Duration: 2 * time.Second, Factor: 2, Jitter: 0.25, Steps: 10, Cap: askAgain / 2}

// Await asks until something of the API server is usable, and tells whether it is, or the context has ended. It logs a complaint, with
// the object that it is about, of each error that is not the one before.
func Await(ctx context.Context, logger klog.Logger, explain func(error) error, usable func() (bool, error), complaint, object string) bool {
	var failed failure.Streak
	retry := askAfterError
	for {
		is, err := usable()
		pause := wait.Jitter(askAgain, retry.Jitter)
		switch {
		case err != nil:
			pause = retry.Step()
			if failed.Changes(err) {
				logger.Error(explain(err), complaint, "object", object)
			}
		case is:
			return true
		default:
			retry = askAfterError
		}
		if !wake.Sleep(ctx.Done(), pause) {
			return false
		}
	}
}

func (w *Watcher) watchExistingNetwork(client configclient.Interface) {
	informer := configinformers.NewFilteredNetworkInformer(client, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, networkName).String()
	})
	w.watch(informer, networks, nil, extension.Handler(w.setNetwork, func(cache.ObjectName) { w.setNetwork(nil) }))
}

func (w *Watcher) setNetwork(object *configv1.Network) {
	before := w.State.networkCIDRs()
	changed, err := w.State.setNetwork(object)
	if err != nil {
		w.logger.Error(err, "The cluster's network configuration has invalid entries. A list with such an entry allows nothing")
	}
	if cidrs := w.State.networkCIDRs(); len(w.State.Config.ClusterCIDRs) == 0 && !slices.Equal(before, cidrs) {
		w.logger.Info("Using the cluster CIDRs of the cluster's network configuration because proxyArguments.cluster-cidr is not set",
			"object", networkSource, "clusterCIDRs", cidrs)
	}
	w.Changed(changed, time.Now())
}

// watch runs an informer until the context ends, and notes when all objects are known.
func (w *Watcher) watch(informer cache.SharedIndexInformer, kind string, strip cache.TransformFunc, handler cache.ResourceEventHandler) {
	_ = informer.SetTransform(strip) // fails for a running informer only
	extension.Explain(informer, w.Explain)
	extension.Follow(w.ctx, informer, handler, func() { w.Known(kind) })
	informer.RunWithContext(w.ctx)
}

// watchHeadless watches the headless Services. It returns when the context ends.
func (w *Watcher) watchHeadless(client kubernetes.Interface) {
	informer := coreinformers.NewFilteredServiceInformer(client, metav1.NamespaceAll, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.clusterIP", v1.ClusterIPNone).String()
	})
	set := func(service *v1.Service) { w.ServiceChanged(w.State.SetService(service)) }
	w.watch(informer, headlessServices, stripHeadless, extension.Handler(set, func(name cache.ObjectName) {
		service := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Spec: v1.ServiceSpec{ClusterIP: v1.ClusterIPNone}}
		w.ServiceChanged(w.State.DeleteService(service))
	}))
}

// watchUnserved watches the EndpointSlices of a kind of unservedSelectors. It returns when the context
// ends.
func (w *Watcher) watchUnserved(client kubernetes.Interface, kind string) {
	informer := discoveryinformers.NewFilteredEndpointSliceInformer(client, metav1.NamespaceAll, 0, nil, func(options *metav1.ListOptions) {
		options.LabelSelector = unservedSelectors[kind]
	})
	set := func(name types.NamespacedName, endpoints unservedEndpoints) {
		w.EndpointsChanged(w.State.setUnserved(kind, name, endpoints), time.Now())
	}
	w.watch(informer, kind, stripSlice, extension.Handler(
		func(slice *unservedSlice) { set(NameOf(slice), slice.unservedEndpoints) },
		func(name cache.ObjectName) { set(types.NamespacedName(name), unservedEndpoints{}) }))
}

// keepRegistrations keeps what Nodes registered with, until the context ends. Of errors that last it tells the first.
func (w *Watcher) keepRegistrations() {
	const period = 5 * time.Second
	var failed failure.Streak
	for w.ctx.Err() == nil {
		wake.Sleep(w.ctx.Done(), period)
		if w.Gate.WaitsFor(Nodes) {
			continue // those that nobody has seen may still come
		}
		if err := w.State.saveRegistrations(); failed.Changes(err) && err != nil {
			w.logger.Error(err, "Cannot save the addresses that Nodes registered with, so the next process will trust the addresses that Nodes report when it starts; will retry, the same failure is not logged again", "file", w.State.Config.KeptNodes)
		}
	}
}
