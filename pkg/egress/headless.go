package egress

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// kube-proxy does not tell the proxier of headless Services. Nodes watch them themselves, and keep those whose annotation names their
// egress IPs. The endpoints of the others bind nothing.

// watchHeadless watches the headless Services. It returns when the context ends.
func (e *Extension) watchHeadless(client kubernetes.Interface) {
	informer := coreinformers.NewFilteredServiceInformer(client, metav1.NamespaceAll, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.clusterIP", v1.ClusterIPNone).String()
	})
	set := func(object any) { e.serviceChanged(e.state.setService(object.(*v1.Service))) }
	e.watch(informer, headlessServices, stripHeadless, cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, object any) { set(object) },
		DeleteFunc: func(object any) {
			if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
				service := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Spec: v1.ServiceSpec{ClusterIP: v1.ClusterIPNone}}
				e.serviceChanged(e.state.deleteService(service))
			}
		},
	})
}

// stripHeadless leaves of a headless Service that names no egress IP what says that it is one: there may be many.
func stripHeadless(object any) (any, error) {
	service, ok := object.(*v1.Service)
	if !ok {
		return object, nil
	}
	if _, named := service.Annotations[EgressIPAnnotation]; named {
		service.ManagedFields = nil
		return service, nil
	}
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name, UID: service.UID, ResourceVersion: service.ResourceVersion, CreationTimestamp: service.CreationTimestamp},
		Spec:       v1.ServiceSpec{ClusterIP: v1.ClusterIPNone},
	}, nil
}
