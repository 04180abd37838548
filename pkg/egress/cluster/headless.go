package cluster

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kube-proxy does not tell the proxier of headless Services. Nodes watch them themselves, and keep those whose annotation names their
// egress IPs. The endpoints of the others bind nothing.

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
