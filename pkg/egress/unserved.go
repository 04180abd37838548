package egress

import (
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/proxy/apis"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// The proxier does not serve the EndpointSlices of headless Services, nor those that are for another
// proxy. They bind no pod. But they name pods: the address of a StatefulSet's pod may be in no other
// slice, and a slice of another namespace that lists it without a targetRef must not bind it.
//
// kube-proxy leaves the former out of what it tells the proxier, on some branches also the latter.
// Nodes watch both themselves, and keep of each slice only which pods it names.

// unservedSelectors are those of the slices that the proxier does not serve, by kind. No slice is of
// two kinds.
var unservedSelectors = map[string]string{
	headlessSlices:   v1.IsHeadlessService,
	otherProxySlices: apis.LabelServiceProxyName + ",!" + v1.IsHeadlessService,
}

// unserved tells whether the proxier does not serve an EndpointSlice.
func unserved(object *discovery.EndpointSlice) bool {
	_, headless := object.Labels[v1.IsHeadlessService]
	_, others := object.Labels[apis.LabelServiceProxyName]
	return headless || others
}

// unservedSlice is an EndpointSlice of which nothing is left but the pods that it names.
type unservedSlice struct {
	metav1.ObjectMeta
	pods []plan.Endpoint
}

// stripSlice makes an unservedSlice of an EndpointSlice: in a large cluster there are many.
func stripSlice(object any) (any, error) {
	slice, ok := object.(*discovery.EndpointSlice)
	if !ok {
		return object, nil
	}
	return &unservedSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: slice.Namespace, Name: slice.Name, ResourceVersion: slice.ResourceVersion},
		pods:       namedPods(slice),
	}, nil
}

// namedPods returns those endpoints of an EndpointSlice that name a pod of its own namespace.
func namedPods(object *discovery.EndpointSlice) []plan.Endpoint {
	endpoints, _ := convertSlice(object) // nobody asks for what is no address
	var named []plan.Endpoint
	for _, e := range endpoints {
		if e.Pod.Namespace == object.Namespace {
			named = append(named, plan.Endpoint{Addr: e.Addr, Pod: plan.Pod{Namespace: object.Namespace, Name: e.Pod.Name}})
		}
	}
	return named
}

// watchUnserved watches the EndpointSlices of a kind of unservedSelectors. It returns when the context
// ends.
func (e *Extension) watchUnserved(client kubernetes.Interface, kind string) {
	informer := discoveryinformers.NewFilteredEndpointSliceInformer(client, metav1.NamespaceAll, 0, nil, func(options *metav1.ListOptions) {
		options.LabelSelector = unservedSelectors[kind]
	})
	set := func(object any) {
		slice := object.(*unservedSlice)
		e.changed(e.state.setUnserved(kind, nameOf(slice), slice.pods), time.Now())
	}
	e.watch(informer, kind, stripSlice, cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, object any) { set(object) },
		DeleteFunc: func(object any) {
			if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
				e.changed(e.state.setUnserved(kind, types.NamespacedName(name), nil), time.Now())
			}
		},
	})
}

// unservedName is the name of an EndpointSlice, and the informer that told of it: two informers do not
// tell of a slice in the order in which its labels changed.
type unservedName struct {
	toldBy string
	slice  types.NamespacedName
}

// setUnserved takes which pods an EndpointSlice names that the proxier does not serve, none if there is
// no such slice, and tells whether plans may change.
func (s *state) setUnserved(toldBy string, slice types.NamespacedName, pods []plan.Endpoint) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replaceUnserved(toldBy, slice, pods) != nothing
}

// replaceUnserved is setUnserved with the lock held.
func (s *state) replaceUnserved(toldBy string, slice types.NamespacedName, pods []plan.Endpoint) (changed effect) {
	name := unservedName{toldBy, slice}
	before := s.unserved[name]
	if s.unserved[name] = pods; len(pods) == 0 {
		delete(s.unserved, name)
	}
	return s.renamePods(slice.Namespace, before, pods)
}

// renamePods takes note that an EndpointSlice of a namespace has other endpoints, and returns what the
// pods that they name may mean. The lock must be held.
func (s *state) renamePods(namespace string, before, after []plan.Endpoint) (changed effect) {
	if s.pods == nil {
		return nothing // nobody has asked
	}
	s.pods.count(namespace, before, -1)
	s.pods.count(namespace, after, 1)
	for _, endpoints := range [][]plan.Endpoint{before, after} {
		for _, e := range endpoints {
			if s.planners[familyOf(e.Addr)].Renamed(e.Addr) {
				changed = here
			}
		}
	}
	return changed
}
