package oracle

import (
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Attachment is an address with its pod.
type Attachment struct {
	Addr                 netip.Addr
	Namespace, Name, UID string
	Labels               map[string]string
	Phase                v1.PodPhase
	// Released: the pod has given the address back.
	Released bool
}

// endpointsOn returns the endpoints that a node knows: those of EndpointSlices, and those that it predicts.
func (c Cluster) endpointsOn(node string) []endpoint {
	known := c.endpoints()
	for i, e := range known {
		known[i] = c.withPod(node, e)
	}
	for _, svc := range c.Services {
		for _, a := range c.Attached[node] {
			if predicts(svc, a) {
				known = append(known, endpoint{
					namespace: svc.Namespace, service: svc.Name, addr: a.Addr, headless: isHeadless(svc), node: node,
					podNamespace: a.Namespace, podName: a.Name, podUID: a.UID,
				})
			}
		}
	}
	return known
}

// "An endpoint at an attached address that names no pod is of the attached pod."
func (c Cluster) withPod(node string, e endpoint) endpoint {
	for _, a := range c.Attached[node] {
		if a.Addr == e.addr && !a.Released && e.podNamespace == "" {
			e.podNamespace, e.podName, e.podUID = a.Namespace, a.Name, a.UID
		}
	}
	return e
}

// "the pod is of the claim's namespace; the Service has a selector, and the pod's labels match it; the Service serves
// the IP family of the address; the pod's phase is not terminal". "It lasts until the pod gives the address back."
func predicts(svc *v1.Service, a Attachment) bool {
	family := v1.IPv4Protocol
	if a.Addr.Is6() {
		family = v1.IPv6Protocol
	}
	return a.Namespace == svc.Namespace &&
		len(svc.Spec.Selector) > 0 && labels.SelectorFromSet(svc.Spec.Selector).Matches(labels.Set(a.Labels)) &&
		slices.Contains(svc.Spec.IPFamilies, family) &&
		a.Phase != v1.PodSucceeded && a.Phase != v1.PodFailed && !a.Released
}

// "One that names another pod, by namespace and name, or by UID where both are known, is not bound. After the pod
// has given the address back, an endpoint that still names that pod with its UID is not bound either; any other is."
func (c Cluster) hasAnotherPod(node string, e endpoint) bool {
	for _, a := range c.Attached[node] {
		if a.Addr != e.addr || e.podNamespace == "" {
			continue
		}
		sameName := e.podNamespace == a.Namespace && e.podName == a.Name
		bothUIDs := e.podUID != "" && a.UID != ""
		if a.Released && sameName && bothUIDs && e.podUID == a.UID ||
			!a.Released && (!sameName || bothUIDs && e.podUID != a.UID) {
			return true
		}
	}
	return false
}
