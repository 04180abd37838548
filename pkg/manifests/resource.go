package manifests

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A resource is a collection that the endpoint serves.
type resource struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool

	// fields are the selectable fields besides the metadata, with what they
	// are of an object. They are upstream's.
	fields map[string]func(apiObject) string
}

// resources are what kube-proxy watches. There are never any ServiceCIDRs, but
// its informer has to sync all the same.
var resources = []*resource{
	{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, kind: "Service", namespaced: true,
		fields: map[string]func(apiObject) string{
			"spec.clusterIP": func(o apiObject) string { return o.(*v1.Service).Spec.ClusterIP },
			"spec.type":      func(o apiObject) string { return string(o.(*v1.Service).Spec.Type) },
		},
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
		kind:                 "EndpointSlice", namespaced: true,
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, kind: "Node",
		fields: map[string]func(apiObject) string{
			"spec.unschedulable": func(o apiObject) string { return strconv.FormatBool(o.(*v1.Node).Spec.Unschedulable) },
		},
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, kind: "Namespace",
		fields: map[string]func(apiObject) string{
			"status.phase": func(o apiObject) string { return string(o.(*v1.Namespace).Status.Phase) },
		},
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "servicecidrs"},
		kind:                 "ServiceCIDR",
	},
}

func resourceOf(gvr schema.GroupVersionResource) *resource {
	i := slices.IndexFunc(resources, func(r *resource) bool { return r.GroupVersionResource == gvr })
	if i < 0 {
		return nil
	}
	return resources[i]
}

// selectable says whether a field selector may name the field.
func (r *resource) selectable(name string) bool {
	return name == "metadata.name" || name == "metadata.namespace" && r.namespaced || r.fields[name] != nil
}

// attributes are what field selectors see of an object.
func (r *resource) attributes(o apiObject) fields.Set {
	set := fields.Set{"metadata.name": o.GetName()}
	if r.namespaced {
		set["metadata.namespace"] = o.GetNamespace()
	}
	for name, get := range r.fields {
		set[name] = get(o)
	}
	return set
}

// of returns the resource's objects among those of a folder.
func (r *resource) of(objects *Objects) []apiObject {
	switch r.Resource {
	case "services":
		return generic(objects.Services)
	case "endpointslices":
		return generic(objects.EndpointSlices)
	case "nodes":
		return generic(objects.Nodes)
	case "namespaces":
		return generic(objects.Namespaces)
	}
	return nil
}

func generic[T apiObject](list []T) []apiObject {
	all := make([]apiObject, len(list))
	for i, o := range list {
		all[i] = o
	}
	return all
}
