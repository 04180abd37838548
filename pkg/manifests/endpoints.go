package manifests

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	packing "k8s.io/kubernetes/pkg/api/v1/endpoints"
	utilnet "k8s.io/utils/net"
	"k8s.io/utils/ptr"
)

const (
	// mirroredBy is the label that upstream's mirroring controller gives its
	// slices (pkg/controller/endpointslicemirroring).
	mirroredBy = "endpointslicemirroring-controller.k8s.io"

	// maxEndpoints is what validation allows in one EndpointSlice. Upstream
	// drops what exceeds it; here it goes into a further slice.
	maxEndpoints = 1000
)

// mirrorObject returns the EndpointSlices of o. Some Endpoints are valid where
// their slices are not (two ports of one name); the first of these is reported.
func mirrorObject(o *object, endpoints *v1.Endpoints) ([]*object, []*Error) {
	k, _ := kindOf("discovery.k8s.io/v1", "EndpointSlice")
	var all []*object
	for _, slice := range mirror(endpoints) {
		if errs := prepare(k, slice); len(errs) > 0 {
			return nil, []*Error{o.errorf("subsets", "its EndpointSlice would be invalid: %w", errs[0])}
		}
		all = append(all, &object{resource: k, apiObject: slice, doc: o.doc, path: o.path})
	}
	return all, nil
}

// mirror returns the EndpointSlices that say what an Endpoints object says, as
// upstream's mirroring controller makes them: one for each set of ports and
// address family. Their names depend on the object and on the ports only, so
// that a changed address changes a slice instead of replacing it.
func mirror(endpoints *v1.Endpoints) []*discoveryv1.EndpointSlice {
	if _, ok := endpoints.Annotations[resourcelock.LeaderElectionRecordAnnotationKey]; ok {
		return nil // a lock, not endpoints
	}
	var all []*discoveryv1.EndpointSlice
	for _, subset := range repack(endpoints) {
		slices.SortFunc(subset.Ports, func(a, b v1.EndpointPort) int { return cmp.Compare(portKey(a), portKey(b)) })
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			found := endpointsOf(subset, family)
			for part := 0; len(found) > 0; part++ {
				n := min(len(found), maxEndpoints)
				slice := newSlice(endpoints, subset.Ports, family, part)
				slice.Ports, slice.Endpoints = slicePorts(subset.Ports), found[:n:n]
				all, found = append(all, slice), found[n:]
			}
		}
	}
	return all
}

// repack returns the subsets with canonical addresses as upstream's RepackSubsets packs them: an address that several
// subsets name gets all of their ports, and one that is anywhere not ready for a port is not ready for it.
func repack(endpoints *v1.Endpoints) []v1.EndpointSubset {
	subsets := endpoints.DeepCopy().Subsets
	protocols := map[string]*string{}
	for _, subset := range subsets {
		for _, addresses := range [][]v1.EndpointAddress{subset.Addresses, subset.NotReadyAddresses} {
			for i := range addresses {
				addresses[i].IP = canonicalIP(addresses[i].IP)
			}
		}
		for i := range subset.Ports {
			if p := &subset.Ports[i]; p.AppProtocol != nil { // it compares the pointers
				p.AppProtocol = cmp.Or(protocols[*p.AppProtocol], p.AppProtocol)
				protocols[*p.AppProtocol] = p.AppProtocol
			}
		}
	}
	return packing.RepackSubsets(subsets)
}

// portKey orders ports by name and tells different ones apart.
func portKey(port v1.EndpointPort) string {
	return fmt.Sprintf("%q %q %d %q", port.Name, port.Protocol, port.Port, ptr.Deref(port.AppProtocol, ""))
}

// canonicalIP rewrites an address such as 010.0.0.1, as the controller does.
func canonicalIP(ip string) string {
	if parsed := utilnet.ParseIPSloppy(ip); parsed != nil {
		return parsed.String()
	}
	return ip // validation has refused it
}

// endpointsOf returns those of a family, sorted by their addresses.
func endpointsOf(subset v1.EndpointSubset, family discoveryv1.AddressType) []discoveryv1.Endpoint {
	var list []discoveryv1.Endpoint
	for i, a := range slices.Concat(subset.Addresses, subset.NotReadyAddresses) {
		if utilnet.IsIPv6String(a.IP) != (family == discoveryv1.AddressTypeIPv6) {
			continue
		}
		endpoint := discoveryv1.Endpoint{
			Addresses:  []string{a.IP},
			Conditions: discoveryv1.EndpointConditions{Ready: new(i < len(subset.Addresses))},
			TargetRef:  a.TargetRef,
			NodeName:   a.NodeName,
		}
		if a.Hostname != "" {
			endpoint.Hostname = new(a.Hostname)
		}
		list = append(list, endpoint)
	}
	slices.SortStableFunc(list, func(a, b discoveryv1.Endpoint) int { return cmp.Compare(a.Addresses[0], b.Addresses[0]) })
	return list
}

// slicePorts is never nil: to a reader of a slice, no ports at all and a port
// list that is not there are different things.
func slicePorts(ports []v1.EndpointPort) []discoveryv1.EndpointPort {
	list := []discoveryv1.EndpointPort{}
	for _, p := range ports {
		list = append(list, discoveryv1.EndpointPort{
			Name: new(p.Name), Port: new(p.Port), Protocol: new(p.Protocol), AppProtocol: p.AppProtocol,
		})
	}
	return list
}

func newSlice(endpoints *v1.Endpoints, ports []v1.EndpointPort, family discoveryv1.AddressType, part int) *discoveryv1.EndpointSlice {
	labels := maps.Clone(endpoints.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[discoveryv1.LabelServiceName] = endpoints.Name
	labels[discoveryv1.LabelManagedBy] = mirroredBy
	annotations := maps.Clone(endpoints.Annotations)
	delete(annotations, v1.EndpointsLastChangeTriggerTime)
	delete(annotations, v1.LastAppliedConfigAnnotation)
	owner := metav1.NewControllerRef(endpoints, v1.SchemeGroupVersion.WithKind("Endpoints"))
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         endpoints.Namespace,
			Name:              sliceName(endpoints, ports, family, part),
			Labels:            labels,
			Annotations:       annotations,
			CreationTimestamp: endpoints.CreationTimestamp,
			OwnerReferences:   []metav1.OwnerReference{*owner},
		},
		AddressType: family,
	}
}

// sliceName looks like one of the controller's generated names. It is not too
// long: an Endpoints object whose name is, is one that no label can name.
func sliceName(endpoints *v1.Endpoints, ports []v1.EndpointPort, family discoveryv1.AddressType, part int) string {
	text := fmt.Appendf(nil, "%s\n%s\n%d\n", endpoints.Name, family, part)
	for _, port := range ports {
		text = fmt.Appendln(text, portKey(port))
	}
	sum := sha256.Sum256(text)
	return endpoints.Name + "-" + hex.EncodeToString(sum[:5])
}
