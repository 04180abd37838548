package scale

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/bench/objects"
)

// assignable is the label of nodes of the pool.
const assignable = "node-restriction.kubernetes.io/egress-assignable"

// images are how many a Node tells of.
const images = 30

// nodeObject is a Node as a kubelet reports it.
func nodeObject(i int, address netip.Addr, member bool, now time.Time) *v1.Node {
	name := objects.Node(i)
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			v1.LabelHostname: name, v1.LabelArchStable: "amd64", v1.LabelOSStable: "linux", v1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3),
		}},
		Spec: v1.NodeSpec{PodCIDR: podCIDR(i).String(), PodCIDRs: []string{podCIDR(i).String()}},
		Status: v1.NodeStatus{
			Addresses:   []v1.NodeAddress{{Type: v1.NodeHostName, Address: name}, {Type: v1.NodeInternalIP, Address: address.String()}},
			Capacity:    v1.ResourceList{v1.ResourceCPU: resource.MustParse("16"), v1.ResourceMemory: resource.MustParse("64Gi"), v1.ResourcePods: resource.MustParse("250")},
			Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("15"), v1.ResourceMemory: resource.MustParse("60Gi"), v1.ResourcePods: resource.MustParse("250")},
			NodeInfo:    v1.NodeSystemInfo{KernelVersion: "6.12.0", OSImage: "Linux", ContainerRuntimeVersion: "containerd://2.1.0", KubeletVersion: "v1.37.1", OperatingSystem: "linux", Architecture: "amd64"},
			Conditions:  conditions(now),
		},
	}
	if member {
		node.Labels[assignable] = ""
	}
	for image := range images {
		repository := fmt.Sprintf("registry.example.com/a-project/an-image-of-usual-length-%02d", image)
		digest := sha256.Sum256([]byte(repository)) // the API server compresses what it sends, but not this
		node.Status.Images = append(node.Status.Images, v1.ContainerImage{
			Names: []string{fmt.Sprintf("%s@sha256:%x", repository, digest), repository + ":v1.2.3"}, SizeBytes: 100 << 20,
		})
	}
	return node
}

// conditions are those of a healthy node, heard of at a time.
func conditions(now time.Time) (all []v1.NodeCondition) {
	for _, c := range []v1.NodeCondition{
		{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: v1.NodeDiskPressure, Status: v1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: v1.NodePIDPressure, Status: v1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	} {
		c.LastHeartbeatTime = metav1.NewTime(now)
		all = append(all, c)
	}
	return all
}

// podCIDR is that of a node: there are 8,192 of them in lab.ClusterV4.
func podCIDR(i int) netip.Prefix {
	const size, bits = 32, 27
	return netip.PrefixFrom(above(netip.MustParseAddr("10.128.0.0"), i*size), bits)
}

// standInAddress is the address of a Node without a process. What is sent there is dropped.
func standInAddress(i int) netip.Addr { return above(standInNetwork.Addr().Next(), i) }

var standInNetwork = netip.MustParsePrefix("100.64.0.0/16")

// above counts IPv4 addresses up.
func above(first netip.Addr, i int) netip.Addr {
	b := first.As4()
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	n += uint32(i)
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// probe is a Service with an egress IP and one pod on each node that has a process. Whether a kernel follows is seen by the
// way of its own pod's packets.
type probe struct {
	name     string
	egressIP netip.Addr
	pods     netip.Addr // the first of them; later ones follow in networks of 256
}

// moved is of the egress IP that moves, changed of one that stays with a node without a process while its pods change.
var (
	moved   = probe{"moved", netip.MustParseAddr("192.0.2.200"), netip.MustParseAddr("10.131.0.0")}
	changed = probe{"changed", netip.MustParseAddr("192.0.2.201"), netip.MustParseAddr("10.131.128.0")}
)

// pod is the one on a node after so many changes.
func (p probe) pod(node, changes int) netip.Addr { return above(p.pods, changes<<8+node) }

func (p probe) service() *v1.Service {
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: p.name},
		Spec: v1.ServiceSpec{
			Ports: []v1.ServicePort{{Name: "http", Protocol: v1.ProtocolTCP, Port: 80}}, ExternalIPs: []string{p.egressIP.String()},
		},
	}
}

func (p probe) slice(nodes, changes int) *discovery.EndpointSlice {
	slice := &discovery.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: p.name + "-1",
			Labels: map[string]string{discovery.LabelServiceName: p.name, discovery.LabelManagedBy: "bench"},
		},
		AddressType: discovery.AddressTypeIPv4,
		Ports:       []discovery.EndpointPort{{Name: ptr.To("http"), Protocol: ptr.To(v1.ProtocolTCP), Port: ptr.To[int32](8080)}},
	}
	for node := range nodes {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{
			Addresses:  []string{p.pod(node, changes).String()},
			Conditions: discovery.EndpointConditions{Ready: ptr.To(true)},
			NodeName:   ptr.To(objects.Node(node)),
			TargetRef:  &v1.ObjectReference{Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s-%d-%d", p.name, node, changes)},
		})
	}
	return slice
}
