package netns

import (
	"net/netip"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func typeMeta(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// allProtocols is one port of each protocol.
var allProtocols = []v1.ServicePort{
	{Name: "tcp", Port: 80, Protocol: v1.ProtocolTCP},
	{Name: "udp", Port: 80, Protocol: v1.ProtocolUDP},
	{Name: "sctp", Port: 80, Protocol: v1.ProtocolSCTP},
}

// service returns a dual-stack Service of namespace shop.
func service(name string, clusterIPs []string, externalIPs []string, ports ...v1.ServicePort) *v1.Service {
	return serviceIn("shop", name, clusterIPs, externalIPs, ports...)
}

func serviceIn(namespace, name string, clusterIPs []string, externalIPs []string, ports ...v1.ServicePort) *v1.Service {
	if len(ports) == 0 {
		ports = []v1.ServicePort{{Name: "tcp", Port: 80, Protocol: v1.ProtocolTCP}}
	}
	return &v1.Service{
		TypeMeta:   typeMeta("v1", "Service"),
		ObjectMeta: objectMeta(namespace, name),
		Spec:       v1.ServiceSpec{ClusterIP: clusterIPs[0], ClusterIPs: clusterIPs, ExternalIPs: externalIPs, Ports: ports},
	}
}

// endpoints returns an EndpointSlice of the Service for each IP family of the addresses;
// invalid ones, those that a node without IPv6 does not have, are left out.
// The pods listen on the Services' ports.
func endpoints(svc *v1.Service, addresses ...netip.Addr) []*discovery.EndpointSlice {
	var slices []*discovery.EndpointSlice
	for _, family := range []discovery.AddressType{discovery.AddressTypeIPv4, discovery.AddressTypeIPv6} {
		suffix := map[discovery.AddressType]string{discovery.AddressTypeIPv4: "-v4", discovery.AddressTypeIPv6: "-v6"}[family]
		slice := &discovery.EndpointSlice{
			TypeMeta:    typeMeta("discovery.k8s.io/v1", "EndpointSlice"),
			ObjectMeta:  objectMeta(svc.Namespace, svc.Name+suffix),
			AddressType: family,
		}
		slice.Labels = map[string]string{discovery.LabelServiceName: svc.Name}
		for _, port := range svc.Spec.Ports {
			slice.Ports = append(slice.Ports, discovery.EndpointPort{Name: &port.Name, Port: &port.Port, Protocol: &port.Protocol})
		}
		for _, address := range addresses {
			if address.IsValid() && address.Is4() == (family == discovery.AddressTypeIPv4) {
				slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{Addresses: []string{address.String()}})
			}
		}
		if len(slice.Endpoints) > 0 {
			slices = append(slices, slice)
		}
	}
	return slices
}
