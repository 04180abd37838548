package oracle

import (
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// endpoint is an address in an EndpointSlice.
type endpoint struct {
	namespace, service string
	addr               netip.Addr
	// headless: the EndpointSlice is of a headless Service. others: it is for another proxy.
	headless, others bool
	// podNamespace is that of the pod that the EndpointSlice names; empty for none.
	podNamespace string
	// podName and podUID are those of any pod that it names.
	podName, podUID string
	node            string
}

// "All addresses in its EndpointSlices count, ready or not."
func (c Cluster) endpoints() (all []endpoint) {
	for _, slice := range c.EndpointSlices {
		all = append(all, endpointsIn(slice)...)
	}
	return all
}

func endpointsIn(slice *discovery.EndpointSlice) (all []endpoint) {
	service := slice.Labels[discovery.LabelServiceName]
	_, headless := slice.Labels[v1.IsHeadlessService]
	_, others := slice.Labels["service.kubernetes.io/service-proxy-name"]
	if service == "" || slice.AddressType == discovery.AddressTypeFQDN {
		return nil
	}
	for _, object := range slice.Endpoints {
		e := endpoint{namespace: slice.Namespace, service: service, headless: headless, others: others, node: ptr.Deref(object.NodeName, "")}
		if ref := object.TargetRef; ref != nil && ref.Kind == "Pod" {
			e.podNamespace, e.podName, e.podUID = ref.Namespace, ref.Name, string(ref.UID)
		}
		for _, text := range object.Addresses {
			if e.addr = parseIP(text); e.addr.IsValid() {
				all = append(all, e)
			}
		}
	}
	return all
}

// "EndpointSlices with the label service.kubernetes.io/headless bind nothing but for a headless Service, and those with the label
// service.kubernetes.io/service-proxy-name bind nothing."
func (e endpoint) isOf(svc *v1.Service) bool {
	return (!e.headless || isHeadless(svc)) && !e.others && e.namespace == svc.Namespace && e.service == svc.Name
}

// "names, as its targetRef, a pod of another namespace", or "names no pod, if EndpointSlices of other namespaces
// name pods of their own at the address, and none of this namespace does"
func (e endpoint) isOfAnotherNamespace(named map[netip.Addr][]string) bool {
	if e.podNamespace != "" {
		return e.podNamespace != e.namespace
	}
	return len(named[e.addr]) > 0 && !slices.Contains(named[e.addr], e.namespace)
}

// podNamespaces returns the namespaces whose own EndpointSlices name a pod at an address.
func podNamespaces(endpoints []endpoint) map[netip.Addr][]string {
	namespaces := map[netip.Addr][]string{}
	for _, e := range endpoints {
		if e.podNamespace == e.namespace {
			namespaces[e.addr] = append(namespaces[e.addr], e.namespace)
		}
	}
	return namespaces
}

// "whose address lies in no cluster CIDR, or is an InternalIP of the node that the EndpointSlice names for it, also an
// ignored one"
func (c Cluster) isPod(e endpoint) bool {
	for _, node := range c.Nodes {
		if node.Name == e.node && slices.Contains(internalIPs(node), e.addr) {
			return false
		}
	}
	return contain(c.clusterCIDRs(), e.addr)
}
