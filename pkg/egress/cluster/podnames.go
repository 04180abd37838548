package cluster

import (
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// podNames has the pods at addresses, as EndpointSlices of the pods' own namespaces have them.
type podNames map[netip.Addr][]namings

// namings is how many endpoints name a pod.
type namings struct {
	pod  plan.Pod
	many int
}

// at returns the pod at an address; zero if there is none. Of several it is one of the namespace that asks, if
// there is one: what others say takes no pod away from it. Then the first by name counts.
func (n podNames) at(namespace string, addr netip.Addr) plan.Pod {
	var found plan.Pod
	for _, naming := range n[addr] {
		own, foundOwn := naming.pod.Namespace == namespace, found.Namespace == namespace
		if found == (plan.Pod{}) || own && !foundOwn || own == foundOwn && naming.pod.String() < found.String() {
			found = naming.pod
		}
	}
	return found
}

// count takes note when endpoints of a namespace come (by is 1) or go (-1).
func (n podNames) count(namespace string, endpoints []plan.Endpoint, by int) {
	for _, e := range endpoints {
		if e.Pod.Namespace != namespace || namespace == "" {
			continue
		}
		list := n[e.Addr]
		i := slices.IndexFunc(list, func(naming namings) bool { return naming.pod == e.Pod })
		if i < 0 {
			i, list = len(list), append(list, namings{pod: e.Pod})
		}
		if list[i].many += by; list[i].many == 0 {
			list = slices.Delete(list, i, i+1)
		}
		if n[e.Addr] = list; len(list) == 0 {
			delete(n, e.Addr)
		}
	}
}

// podAt returns the pod at an address for an endpoint of a namespace that does not name it. The first
// time that somebody asks, the pods that all EndpointSlices name are counted.
func (s *State) podAt(namespace string, addr netip.Addr) plan.Pod {
	if s.pods == nil {
		s.pods = s.countPods()
	}
	return s.pods.at(namespace, addr)
}

// countPods returns the pods that all EndpointSlices name.
func (s *State) countPods() podNames {
	pods := podNames{}
	for owner := range s.slices {
		for endpoints := range s.endpointsOfKind(owner, false) {
			pods.count(owner.Namespace, endpoints, 1)
		}
	}
	for name, unserved := range s.unserved {
		pods.count(name.slice.Namespace, unserved.endpoints, 1)
	}
	return pods
}
