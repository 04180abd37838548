package manifests

import (
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiObject is what all accepted kinds are.
type apiObject interface {
	runtime.Object
	metav1.Object
}

// A kind is one that a file may hold.
type kind struct {
	apiVersion string
	name       string
	namespaced bool
	empty      func() apiObject
}

func (k kind) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(k.apiVersion, k.name)
}

var kinds = []kind{
	{"v1", "Service", true, func() apiObject { return &v1.Service{} }},
	{"v1", "Endpoints", true, func() apiObject { return &v1.Endpoints{} }},
	{"discovery.k8s.io/v1", "EndpointSlice", true, func() apiObject { return &discoveryv1.EndpointSlice{} }},
	{"v1", "Node", false, func() apiObject { return &v1.Node{} }},
	{"v1", "Namespace", false, func() apiObject { return &v1.Namespace{} }},
	{"networking.k8s.io/v1", "ServiceCIDR", false, func() apiObject { return &networkingv1.ServiceCIDR{} }},
	{"config.openshift.io/v1", "Network", false, func() apiObject { return &configv1.Network{} }},
}

// accepted is for messages.
const accepted = "v1 Service, Endpoints, Node, Namespace, discovery.k8s.io/v1 EndpointSlice, " +
	"networking.k8s.io/v1 ServiceCIDR, config.openshift.io/v1 Network, and lists of these"

// kindOf finds a kind; isList says that the name is that of its list.
func kindOf(apiVersion, name string) (k kind, isList, ok bool) {
	for _, k := range kinds {
		if k.apiVersion != apiVersion {
			continue
		}
		if k.name == name {
			return k, false, true
		}
		if item, isList := strings.CutSuffix(name, "List"); isList && k.name == item {
			return k, true, true
		}
	}
	return kind{}, false, false
}
