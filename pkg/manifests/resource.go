package manifests

import (
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiObject is what all kinds are.
type apiObject interface {
	runtime.Object
	metav1.Object
}

// A resource is a kind that a file may hold, that the endpoint serves, or both.
type resource struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool
	verbs      metav1.Verbs               // none if it is not served
	empty      func() apiObject           // nil if no file may hold it
	of         func(*Objects) []apiObject // its objects among those of a folder
}

// What can be done with the objects of files, and with Events, which only become
// log lines.
var (
	fileVerbs  = metav1.Verbs{"get", "list", "watch"}
	eventVerbs = metav1.Verbs{"create", "patch"}
)

var resources = []*resource{
	{v1.SchemeGroupVersion.WithResource("services"), "Service", true, fileVerbs,
		func() apiObject { return &v1.Service{} }, func(o *Objects) []apiObject { return generic(o.Services) }},
	{v1.SchemeGroupVersion.WithResource("endpoints"), "Endpoints", true, nil,
		func() apiObject { return &v1.Endpoints{} }, noObjects},
	{discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), "EndpointSlice", true, fileVerbs,
		func() apiObject { return &discoveryv1.EndpointSlice{} }, func(o *Objects) []apiObject { return generic(o.EndpointSlices) }},
	{v1.SchemeGroupVersion.WithResource("nodes"), "Node", false, fileVerbs,
		func() apiObject { return &v1.Node{} }, func(o *Objects) []apiObject { return generic(o.Nodes) }},
	{v1.SchemeGroupVersion.WithResource("namespaces"), "Namespace", false, fileVerbs,
		func() apiObject { return &v1.Namespace{} }, func(o *Objects) []apiObject { return generic(o.Namespaces) }},
	{networkingv1.SchemeGroupVersion.WithResource("servicecidrs"), "ServiceCIDR", false, fileVerbs,
		func() apiObject { return &networkingv1.ServiceCIDR{} }, func(o *Objects) []apiObject { return generic(o.ServiceCIDRs) }},
	{configv1.SchemeGroupVersion.WithResource("networks"), "Network", false, fileVerbs,
		func() apiObject { return &configv1.Network{} }, func(o *Objects) []apiObject { return generic(o.Networks) }},
	{v1.SchemeGroupVersion.WithResource("events"), "Event", true, eventVerbs, nil, noObjects},
	{eventsv1.SchemeGroupVersion.WithResource("events"), "Event", true, eventVerbs, nil, noObjects},
}

// accepted is for messages.
const accepted = "v1 Service, Endpoints, Node, Namespace, discovery.k8s.io/v1 EndpointSlice, " +
	"networking.k8s.io/v1 ServiceCIDR, config.openshift.io/v1 Network, and lists of these"

// kindOf finds the kind of an object of a file, or nil; isList says that the name is that of its list.
func kindOf(apiVersion, name string) (r *resource, isList bool) {
	name, isList = strings.CutSuffix(name, "List")
	for _, r := range resources {
		if r.empty != nil && r.GroupVersion().String() == apiVersion && r.kind == name {
			return r, isList
		}
	}
	return nil, false
}

// resourceOf finds what is served, or nil.
func resourceOf(gvr schema.GroupVersionResource) *resource {
	for _, r := range resources {
		if r.verbs != nil && r.GroupVersionResource == gvr {
			return r
		}
	}
	return nil
}

// gvk is the kind of its objects.
func (r *resource) gvk() schema.GroupVersionKind { return r.GroupVersion().WithKind(r.kind) }

// selectable tells whether a field selector may name the field.
func (r *resource) selectable(name string) bool {
	return name == "metadata.name" || name == "metadata.namespace" && r.namespaced || name == "spec.clusterIP" && r.kind == "Service"
}

// attributes are what field selectors see of an object.
func (r *resource) attributes(o apiObject) fields.Set {
	set := fields.Set{"metadata.name": o.GetName()}
	if r.namespaced {
		set["metadata.namespace"] = o.GetNamespace()
	}
	if service, ok := o.(*v1.Service); ok {
		set["spec.clusterIP"] = service.Spec.ClusterIP
	}
	return set
}

// noObjects is of for Endpoints, which become EndpointSlices, and for what no file has.
func noObjects(*Objects) []apiObject { return nil }

func generic[T apiObject](list []T) []apiObject {
	all := make([]apiObject, len(list))
	for i, o := range list {
		all[i] = o
	}
	return all
}
