package manifests

import (
	"slices"
	"strconv"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A resource is a collection that the endpoint serves.
type resource struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool
	verbs      metav1.Verbs

	// of returns the resource's objects among those of a folder.
	of func(*Objects) []apiObject

	// fields has a function for each selectable field besides the metadata that
	// returns an object's value. The fields are upstream's.
	fields map[string]func(apiObject) string
}

// What can be done with the objects of files, and with Events, which only become
// log lines.
var (
	fileVerbs  = metav1.Verbs{"get", "list", "watch"}
	eventVerbs = metav1.Verbs{"create", "patch"}
)

// resources are all that is served.
var resources = []*resource{
	{
		GroupVersionResource: v1.SchemeGroupVersion.WithResource("services"),
		kind:                 "Service", namespaced: true, verbs: fileVerbs,
		of: func(o *Objects) []apiObject { return generic(o.Services) },
		fields: map[string]func(apiObject) string{
			"spec.clusterIP": func(o apiObject) string { return o.(*v1.Service).Spec.ClusterIP },
			"spec.type":      func(o apiObject) string { return string(o.(*v1.Service).Spec.Type) },
		},
	},
	{
		GroupVersionResource: discoveryv1.SchemeGroupVersion.WithResource("endpointslices"),
		kind:                 "EndpointSlice", namespaced: true, verbs: fileVerbs,
		of: func(o *Objects) []apiObject { return generic(o.EndpointSlices) },
	},
	{
		GroupVersionResource: v1.SchemeGroupVersion.WithResource("nodes"),
		kind:                 "Node", verbs: fileVerbs,
		of: func(o *Objects) []apiObject { return generic(o.Nodes) },
		fields: map[string]func(apiObject) string{
			"spec.unschedulable": func(o apiObject) string { return strconv.FormatBool(o.(*v1.Node).Spec.Unschedulable) },
		},
	},
	{
		GroupVersionResource: v1.SchemeGroupVersion.WithResource("namespaces"),
		kind:                 "Namespace", verbs: fileVerbs,
		of: func(o *Objects) []apiObject { return generic(o.Namespaces) },
		fields: map[string]func(apiObject) string{
			"status.phase": func(o apiObject) string { return string(o.(*v1.Namespace).Status.Phase) },
		},
	},
	{
		GroupVersionResource: networkingv1.SchemeGroupVersion.WithResource("servicecidrs"),
		kind:                 "ServiceCIDR", verbs: fileVerbs,
		of: func(o *Objects) []apiObject { return generic(o.ServiceCIDRs) },
	},
	{
		GroupVersionResource: configv1.SchemeGroupVersion.WithResource("networks"),
		kind:                 "Network", verbs: fileVerbs,
		of: func(o *Objects) []apiObject { return generic(o.Networks) },
	},
	{
		GroupVersionResource: v1.SchemeGroupVersion.WithResource("events"),
		kind:                 "Event", namespaced: true, verbs: eventVerbs, of: noObjects,
	},
	{
		GroupVersionResource: eventsv1.SchemeGroupVersion.WithResource("events"),
		kind:                 "Event", namespaced: true, verbs: eventVerbs, of: noObjects,
	},
}

func resourceOf(gvr schema.GroupVersionResource) *resource {
	i := slices.IndexFunc(resources, func(r *resource) bool { return r.GroupVersionResource == gvr })
	if i < 0 {
		return nil
	}
	return resources[i]
}

// gvk is the kind of its objects.
func (r *resource) gvk() schema.GroupVersionKind { return r.GroupVersion().WithKind(r.kind) }

// selectable tells whether a field selector may name the field.
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

// noObjects is of for what no file has.
func noObjects(*Objects) []apiObject { return nil }

func generic[T apiObject](list []T) []apiObject {
	all := make([]apiObject, len(list))
	for i, o := range list {
		all[i] = o
	}
	return all
}
