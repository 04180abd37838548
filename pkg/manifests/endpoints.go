package manifests

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	utilnet "k8s.io/utils/net"
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
	for _, group := range repack(endpoints.Subsets) {
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			found := group.endpoints(family)
			for part := 0; len(found) > 0; part++ {
				n := min(len(found), maxEndpoints)
				slice := newSlice(endpoints, group.key, family, part)
				slice.Ports, slice.Endpoints = slicePorts(group.ports), found[:n:n]
				all, found = append(all, slice), found[n:]
			}
		}
	}
	return all
}

// A group is a set of ports with all addresses that have exactly these ports.
type group struct {
	key       string // of the ports
	ports     []v1.EndpointPort
	addresses []readyAddress
}

type readyAddress struct {
	key   addressKey
	ready bool
	v1.EndpointAddress
}

// addressKey tells addresses apart. Two pods may have one address.
type addressKey struct{ ip, uid string }

// repack does what upstream's RepackSubsets does (pkg/api/v1/endpoints): an
// address that several subsets name gets all of their ports, and one that is
// anywhere not ready for a port is not ready for it.
func repack(subsets []v1.EndpointSubset) []group {
	seen := map[addressKey]*v1.EndpointAddress{}
	byPort := map[string]map[addressKey]bool{} // port key → address → ready
	ports := map[string]v1.EndpointPort{}
	for i := range subsets {
		subset := &subsets[i]
		list := subset.Ports
		if len(list) == 0 {
			list = []v1.EndpointPort{{Port: -1}} // so that the addresses are not lost
		}
		for _, port := range list {
			key := portKey(port)
			if byPort[key] == nil {
				byPort[key] = map[addressKey]bool{}
			}
			ports[key] = port
			addAddresses(seen, byPort[key], subset.Addresses, true)
			addAddresses(seen, byPort[key], subset.NotReadyAddresses, false)
		}
	}
	return groupPorts(seen, byPort, ports)
}

func addAddresses(seen map[addressKey]*v1.EndpointAddress, port map[addressKey]bool, addresses []v1.EndpointAddress, ready bool) {
	for i := range addresses {
		key := addressKey{ip: canonicalIP(addresses[i].IP)}
		if ref := addresses[i].TargetRef; ref != nil {
			key.uid = string(ref.UID)
		}
		if seen[key] == nil {
			seen[key] = &addresses[i]
		}
		if wasReady, found := port[key]; !found || wasReady {
			port[key] = ready
		}
	}
}

// groupPorts joins the ports that have the same addresses.
func groupPorts(seen map[addressKey]*v1.EndpointAddress, byPort map[string]map[addressKey]bool, ports map[string]v1.EndpointPort) []group {
	groups := map[string]*group{}
	for _, key := range slices.Sorted(maps.Keys(byPort)) {
		addresses := sortedAddresses(seen, byPort[key])
		var id strings.Builder
		for _, a := range addresses {
			fmt.Fprintf(&id, "%q %q %t\n", a.key.ip, a.key.uid, a.ready)
		}
		g := groups[id.String()]
		if g == nil {
			g = &group{addresses: addresses}
			groups[id.String()] = g
		}
		if port := ports[key]; port.Port > 0 {
			g.key += key + "\n"
			g.ports = append(g.ports, port)
		}
	}
	all := make([]group, 0, len(groups))
	for _, g := range groups {
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b group) int { return cmp.Compare(a.key, b.key) })
	return all
}

func sortedAddresses(seen map[addressKey]*v1.EndpointAddress, ready map[addressKey]bool) []readyAddress {
	list := make([]readyAddress, 0, len(ready))
	for key, isReady := range ready {
		list = append(list, readyAddress{key: key, ready: isReady, EndpointAddress: *seen[key]})
	}
	slices.SortFunc(list, func(a, b readyAddress) int {
		return cmp.Or(cmp.Compare(a.key.ip, b.key.ip), cmp.Compare(a.key.uid, b.key.uid))
	})
	return list
}

// portKey orders ports by name and tells different ones apart.
func portKey(port v1.EndpointPort) string {
	appProtocol := ""
	if port.AppProtocol != nil {
		appProtocol = *port.AppProtocol
	}
	return fmt.Sprintf("%q %q %d %q", port.Name, port.Protocol, port.Port, appProtocol)
}

// canonicalIP rewrites an address such as 010.0.0.1, as the controller does.
func canonicalIP(ip string) string {
	if parsed := utilnet.ParseIPSloppy(ip); parsed != nil {
		return parsed.String()
	}
	return ip // validation has refused it
}

func (g *group) endpoints(family discoveryv1.AddressType) []discoveryv1.Endpoint {
	var list []discoveryv1.Endpoint
	for _, a := range g.addresses {
		if utilnet.IsIPv6String(a.key.ip) != (family == discoveryv1.AddressTypeIPv6) {
			continue
		}
		endpoint := discoveryv1.Endpoint{
			Addresses:  []string{a.key.ip},
			Conditions: discoveryv1.EndpointConditions{Ready: new(a.ready)},
			TargetRef:  a.TargetRef,
			NodeName:   a.NodeName,
		}
		if a.Hostname != "" {
			endpoint.Hostname = new(a.Hostname)
		}
		list = append(list, endpoint)
	}
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

func newSlice(endpoints *v1.Endpoints, ports string, family discoveryv1.AddressType, part int) *discoveryv1.EndpointSlice {
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
func sliceName(endpoints *v1.Endpoints, ports string, family discoveryv1.AddressType, part int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s", endpoints.Name, family, part, ports))
	return endpoints.Name + "-" + hex.EncodeToString(sum[:5])
}
