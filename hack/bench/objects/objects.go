package objects

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Size is that of a cluster.
type Size struct {
	// Services is how many there are, with one EndpointSlice each.
	Services int
	// Endpoints is how many each of them has.
	Endpoints int
	// Every so many Services, the first being one, have an external IP each.
	Every int
	// Nodes is how many the endpoints are spread over.
	Nodes int
}

// Typical is a cluster of so many Services, a tenth of them with external IPs, with 10 endpoints each. On each node
// are 250 endpoints, a tenth of them bound.
func Typical(services int) Size {
	const endpoints, onNode = 10, 250
	return Size{Services: services, Endpoints: endpoints, Every: 10, Nodes: max(2, services*endpoints/onNode)}
}

// All is how many endpoints there are.
func (s Size) All() int { return s.Services * s.Endpoints }

// Bindings is how many endpoints belong to Services with external IPs.
func (s Size) Bindings() int { return s.External() * s.Endpoints }

// External is how many Services have an external IP.
func (s Size) External() int { return (s.Services + s.Every - 1) / s.Every }

// Node is the name of a node, from 0.
func Node(i int) string { return fmt.Sprintf("node-%d", i) }

func name(i int) string { return fmt.Sprintf("service-%05d", i) }

// The first addresses: in lab.ClusterV4, and of the benchmarking range of RFC 2544.
const firstPod, firstExternal = "10.128.16.0", "198.18.0.1"

// above counts addresses up.
func above(first string, i int) netip.Addr {
	bytes := netip.MustParseAddr(first).As4()
	binary.BigEndian.PutUint32(bytes[:], binary.BigEndian.Uint32(bytes[:])+uint32(i))
	return netip.AddrFrom4(bytes)
}

// Service is the one of a number. It has no cluster IP yet.
func (s Size) Service(i int) *v1.Service {
	service := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name(i)},
		Spec: v1.ServiceSpec{
			Type:  v1.ServiceTypeClusterIP,
			Ports: []v1.ServicePort{{Name: "http", Protocol: v1.ProtocolTCP, Port: 80}},
		},
	}
	if i%s.Every == 0 {
		service.Spec.ExternalIPs = []string{above(firstExternal, i).String()}
	}
	return service
}

// Slice has the endpoints of a Service.
func (s Size) Slice(i int) *discovery.EndpointSlice {
	slice := &discovery.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: name(i) + "-1",
			Labels: map[string]string{discovery.LabelServiceName: name(i), discovery.LabelManagedBy: "bench"},
		},
		AddressType: discovery.AddressTypeIPv4,
		Ports:       []discovery.EndpointPort{{Name: ptr.To("http"), Protocol: ptr.To(v1.ProtocolTCP), Port: ptr.To[int32](8080)}},
	}
	for j := range s.Endpoints {
		slice.Endpoints = append(slice.Endpoints, s.endpoint(i*s.Endpoints+j))
	}
	return slice
}

// endpoint is a pod, by its number in the whole cluster. Of as many pods in a row as there are nodes each is on
// another one, in another order than those before, so that the pods of a node belong to all kinds of Services.
func (s Size) endpoint(pod int) discovery.Endpoint {
	return discovery.Endpoint{
		Addresses:  []string{above(firstPod, pod).String()},
		Conditions: discovery.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
		NodeName:   ptr.To(Node((pod + pod/s.Nodes) % s.Nodes)),
		TargetRef:  &v1.ObjectReference{Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("pod-%06d", pod)},
	}
}

// Replace returns the slice with a new pod in the place of its first one, on a node, as a rolling restart does it.
// change counts the replacements in the whole cluster from 0: each pod is another. There are addresses for more than
// a hundred thousand in the largest cluster.
func (s Size) Replace(slice *discovery.EndpointSlice, change int, node string) *discovery.EndpointSlice {
	slice = slice.DeepCopy()
	slice.Endpoints[0] = s.endpoint(s.All() + change)
	slice.Endpoints[0].NodeName = &node
	return slice
}
