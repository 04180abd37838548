package cluster

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/proxy/apis"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// The proxier does not serve the EndpointSlices of headless Services, nor those that are for another
// proxy. The latter bind no pod, and neither do the former unless their Service's annotation names its egress IPs. But both name
// pods: the address of a StatefulSet's pod may be in no other slice, and a slice of another namespace that lists it without a
// targetRef must not bind it.
//
// kube-proxy leaves the former out of what it tells the proxier, on some branches also the latter.
// Nodes watch both themselves, and keep of each slice only its endpoints.

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

// unservedSlice is an EndpointSlice of which nothing is left but its endpoints.
type unservedSlice struct {
	metav1.ObjectMeta
	unservedEndpoints
}

// unservedEndpoints are those of an EndpointSlice that the proxier does not serve.
type unservedEndpoints struct {
	// headless is the name of the headless Service whose they are; empty if they are of none.
	headless  string
	endpoints []plan.Endpoint
}

func (u unservedEndpoints) equal(o unservedEndpoints) bool {
	return u.headless == o.headless && slices.Equal(u.endpoints, o.endpoints)
}

// stripSlice makes an unservedSlice of an EndpointSlice: in a large cluster there are many.
func stripSlice(object any) (any, error) {
	slice, ok := object.(*discovery.EndpointSlice)
	if !ok {
		return object, nil
	}
	return &unservedSlice{
		ObjectMeta:        metav1.ObjectMeta{Namespace: slice.Namespace, Name: slice.Name, ResourceVersion: slice.ResourceVersion},
		unservedEndpoints: convertUnserved(slice),
	}, nil
}

// unservedName is the name of an EndpointSlice, and the informer that told of it: two informers do not
// tell of a slice in the order in which its labels changed.
type unservedName struct {
	toldBy string
	slice  types.NamespacedName
}

// setUnserved takes the endpoints of an EndpointSlice that the proxier does not serve, none if there is
// no such slice, and tells what that may mean.
func (s *State) setUnserved(toldBy string, slice types.NamespacedName, now unservedEndpoints) (changed Effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replaceUnserved(toldBy, slice, now)
}

// replaceUnserved is setUnserved with the lock held.
func (s *State) replaceUnserved(toldBy string, slice types.NamespacedName, now unservedEndpoints) (changed Effect) {
	name := unservedName{toldBy, slice}
	before := s.unserved[name]
	if before.equal(now) {
		return nothing
	}
	s.unserved[name] = now
	if len(now.endpoints) == 0 {
		delete(s.unserved, name)
	}
	if before.headless == now.headless {
		return s.replaceHeadless(name, now.headless, before.endpoints, now.endpoints)
	}
	return max(s.replaceHeadless(name, before.headless, before.endpoints, nil), s.replaceHeadless(name, now.headless, nil, now.endpoints))
}

// replaceHeadless tells what became of an EndpointSlice that the proxier does not serve, of a headless Service unless its name is empty.
func (s *State) replaceHeadless(name unservedName, service string, before, after []plan.Endpoint) (changed Effect) {
	owner := types.NamespacedName{Namespace: name.slice.Namespace, Name: service}
	if service != "" {
		s.headless[owner] = slices.DeleteFunc(s.headless[owner], func(other unservedName) bool { return other == name })
		if len(after) > 0 {
			s.headless[owner] = append(s.headless[owner], name)
		}
		if len(s.headless[owner]) == 0 {
			delete(s.headless, owner)
		}
	}
	if service == "" || !s.services[owner].headless {
		return s.renamePods(owner.Namespace, before, after)
	}
	return s.tellEndpoints(owner, slices.Clone(before), slices.Clone(after))
}

// renamePods takes note that an EndpointSlice of a namespace has other endpoints, and returns what the
// pods that they name may mean. The lock must be held.
func (s *State) renamePods(namespace string, before, after []plan.Endpoint) (changed Effect) {
	if s.pods == nil {
		return nothing // nobody has asked
	}
	s.pods.count(namespace, before, -1)
	s.pods.count(namespace, after, 1)
	for _, endpoints := range [][]plan.Endpoint{before, after} {
		for _, e := range endpoints {
			if s.planners[FamilyOf(e.Addr)].Renamed(e.Addr) {
				changed = Here
			}
		}
	}
	return changed
}
