package manifests

import (
	"cmp"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	utilnet "k8s.io/utils/net"
)

// assemble puts the objects of all files together and finds the conflicts
// between files.
func assemble(objects []*object) (*Objects, []*Error) {
	objects = append(slices.Clip(objects), mirrored(objects)...)
	errs := conflicts(objects)
	slices.SortStableFunc(objects, func(a, b *object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	result := &Objects{}
	for _, o := range objects {
		switch obj := o.apiObject.(type) {
		case *v1.Service:
			result.Services = append(result.Services, obj)
		case *discoveryv1.EndpointSlice:
			result.EndpointSlices = append(result.EndpointSlices, obj)
		case *v1.Node:
			result.Nodes = append(result.Nodes, obj)
		case *v1.Namespace:
			result.Namespaces = append(result.Namespaces, obj)
		case *networkingv1.ServiceCIDR:
			result.ServiceCIDRs = append(result.ServiceCIDRs, obj)
		case *configv1.Network:
			result.Networks = append(result.Networks, obj)
		}
	}
	return result, errs
}

// mirrored returns the EndpointSlices of all Endpoints.
//
// No Endpoints of a Service with a selector are mirrored by an API server, nor
// those labelled skip-mirror, such as its own: slices of the same endpoints exist
// beside them. So it is here where the folder has slices for the Service. Where
// it has none (somebody saved only Services and Endpoints) that would silently
// leave the Service without endpoints.
func mirrored(objects []*object) []*object {
	sliced, selecting := map[string]bool{}, map[string]bool{}
	for _, o := range objects {
		switch obj := o.apiObject.(type) {
		case *discoveryv1.EndpointSlice:
			sliced[obj.Namespace+"/"+obj.Labels[discoveryv1.LabelServiceName]] = true
		case *v1.Service:
			selecting[obj.Namespace+"/"+obj.Name] = len(obj.Spec.Selector) > 0
		}
	}
	var all []*object
	done := map[string]bool{} // the same Endpoints twice are one error, not more
	for _, o := range objects {
		key := o.GetNamespace() + "/" + o.GetName()
		copied := sliced[key] && (selecting[key] || o.GetLabels()[discoveryv1.LabelSkipMirror] == "true")
		if len(o.mirrored) > 0 && !copied && !done[key] {
			done[key] = true
			all = append(all, o.mirrored...)
		}
	}
	return all
}

// conflicts finds objects that cannot both exist: the API server would refuse
// the second one, by its name or in the allocators of cluster IPs and node
// ports.
func conflicts(objects []*object) []*Error {
	taken := map[string]*object{}
	var errs []*Error
	claim := func(o *object, path, what, message string) bool {
		first := taken[what]
		if first == nil {
			taken[what] = o
			return true
		}
		errs = append(errs, o.errorf(path, "%s %s at %s", message, first.title(), first.where("")))
		return false
	}
	for _, o := range objects {
		if !claim(o, "", "object "+o.title(), "the same object is written twice, first as") {
			continue
		}
		service, ok := o.apiObject.(*v1.Service)
		if !ok {
			continue
		}
		for _, c := range allocations(service) {
			claim(o, c.path, c.what, "the "+c.what+" belongs already to")
		}
	}
	return errs
}

// An allocation is something that only one Service can have.
type allocation struct{ path, what string }

func allocations(service *v1.Service) []allocation {
	var list []allocation
	for i, ip := range service.Spec.ClusterIPs {
		path := "spec.clusterIP"
		if i > 0 {
			path = fmt.Sprintf("spec.clusterIPs[%d]", i)
		}
		if parsed := utilnet.ParseIPSloppy(ip); parsed != nil { // nil is "None"
			list = append(list, allocation{path, "cluster IP " + parsed.String()})
		}
	}
	for i, port := range service.Spec.Ports {
		if port.NodePort != 0 {
			list = append(list, allocation{fmt.Sprintf("spec.ports[%d].nodePort", i), fmt.Sprintf("node port %s %d", port.Protocol, port.NodePort)})
		}
	}
	if port := service.Spec.HealthCheckNodePort; port != 0 {
		list = append(list, allocation{"spec.healthCheckNodePort", fmt.Sprintf("node port TCP %d", port)})
	}
	return list
}
