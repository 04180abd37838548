package clustertest

import (
	"strings"

	"github.com/openshift/origin-node/pkg/egress/plan"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NewService is ns/NAME with the external IP 203.0.113.1, for TCP, changed by change, which may be nil.
func NewService(name string, change func(*v1.Service)) *v1.Service {
	s := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.Unix(1000, 0)},
		Spec: v1.ServiceSpec{
			Type:        v1.ServiceTypeClusterIP,
			ClusterIP:   "172.30.0.1",
			ExternalIPs: []string{"203.0.113.1"},
			Ports:       []v1.ServicePort{{Port: 80, Protocol: v1.ProtocolTCP}},
		},
	}
	if change != nil {
		change(s)
	}
	return s
}

// NewSlice is an EndpointSlice of a Service of the namespace ns.
func NewSlice(name, service string, addresses ...string) *discovery.EndpointSlice {
	slice := &discovery.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{discovery.LabelServiceName: service}},
		AddressType: discovery.AddressTypeIPv4,
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{Addresses: []string{address}})
	}
	return slice
}

// Placed is NewSlice for endpoints that are told with their nodes, as "address@node", and name their pods.
func Placed(name, service string, endpoints ...string) *discovery.EndpointSlice {
	var addresses []string
	for _, endpoint := range endpoints {
		address, _, _ := strings.Cut(endpoint, "@")
		addresses = append(addresses, address)
	}
	slice := NewSlice(name, service, addresses...)
	for i, endpoint := range endpoints {
		slice.Endpoints[i].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: slice.Namespace, Name: "pod-" + addresses[i]}
		if _, node, named := strings.Cut(endpoint, "@"); named {
			slice.Endpoints[i].NodeName = &node
		}
	}
	return slice
}

// NewNode returns a Node that is Ready or not, with an InternalIP.
func NewNode(name, ip string, ready v1.ConditionStatus) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: ip}}
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: ready}}
	return n
}

// BoundPods lists them.
func BoundPods(p plan.Plan) string {
	var pods []string
	for _, b := range p.Bindings {
		pods = append(pods, b.Pod.String())
	}
	return strings.Join(pods, " ")
}
