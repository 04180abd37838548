package manifests

import (
	"sync"

	"github.com/google/uuid"
	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	internalv1 "k8s.io/kubernetes/pkg/apis/core/v1"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/discovery"
	discoveryv1 "k8s.io/kubernetes/pkg/apis/discovery/v1"
	discoveryvalidation "k8s.io/kubernetes/pkg/apis/discovery/validation"
)

// uidSpace is the name space of derived UIDs. It must never change: a UID is
// part of what a client takes an object's identity from.
var uidSpace = uuid.MustParse("9d3c1b52-40a7-5c0e-8f6b-6b4c6e3c5a11")

// internalScheme has the defaulting and conversion of the kinds. It is made at its first use: a node with an API server
// does without it, and it takes megabytes.
var internalScheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, internalv1.AddToScheme, discovery.AddToScheme, discoveryv1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	return s
})

// prepare does to a decoded object what the API server does when one is
// created, in its order: defaults, then validation. It is idempotent.
func prepare(k *resource, obj apiObject) field.ErrorList {
	// The items of a typed list come without it.
	obj.GetObjectKind().SetGroupVersionKind(k.gvk())
	if k.namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	if obj.GetUID() == "" {
		obj.SetUID(derivedUID(k.kind, obj.GetNamespace(), obj.GetName()))
	}
	// The store assigns it.
	obj.SetResourceVersion("")
	internalScheme().Default(obj)
	switch obj := obj.(type) {
	case *v1.Service:
		return prepareService(obj)
	case *networkingv1.ServiceCIDR:
		return validateServiceCIDR(obj)
	case *configv1.Network:
		return validateNetwork(obj)
	}
	return validate(obj)
}

// derivedUID is the same for the same kind, namespace and name, so a restart of
// the node does not make every object a new one.
func derivedUID(kind, namespace, name string) types.UID {
	return types.UID(uuid.NewSHA1(uidSpace, []byte(kind+"/"+namespace+"/"+name)).String())
}

// validate applies upstream's validation for a create.
func validate(obj runtime.Object) field.ErrorList {
	internal, err := internalScheme().UnsafeConvertToVersion(obj, runtime.InternalGroupVersioner)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	switch obj := internal.(type) {
	case *core.Service:
		errs := corevalidation.ValidateServiceCreate(obj)
		// The API server checks this when a status is updated; here spec
		// and status come in one piece.
		return append(errs, corevalidation.ValidateLoadBalancerStatus(
			&obj.Status.LoadBalancer, nil, field.NewPath("status", "loadBalancer"), &obj.Spec)...)
	case *core.Endpoints:
		return corevalidation.ValidateEndpointsCreate(obj)
	case *core.Node:
		return corevalidation.ValidateNode(obj)
	case *core.Namespace:
		return corevalidation.ValidateNamespace(obj)
	case *discovery.EndpointSlice:
		return discoveryvalidation.ValidateEndpointSliceCreate(obj)
	}
	return nil
}
