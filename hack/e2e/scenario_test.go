package e2e

import (
	"net/netip"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

var web = map[string]string{"app": "web"}

// What a Service offers at port 80 of what its pods serve.
var (
	tcp80 = v1.ServicePort{Name: "tcp", Port: 80, TargetPort: intstr.FromInt32(port), Protocol: v1.ProtocolTCP}
	udp80 = v1.ServicePort{Name: "udp", Port: 80, TargetPort: intstr.FromInt32(port), Protocol: v1.ProtocolUDP}
)

// shop makes a namespace with a Service web with these external IPs and a pod web-N on each node,
// bound for TCP and UDP.
func (w *world) shop(externalIPs ...string) []*lab.Host {
	w.Helper()
	_, err := w.CreateNamespace(w.Context(), "shop")
	w.must(err)
	_, err = w.CreateService(w.Context(), cluster.NewService("shop", "web", web, externalIPs, tcp80, udp80))
	w.must(err)
	var pods []*lab.Host
	for i, m := range w.members {
		pods = append(pods, w.runPod("shop", "web-"+string(rune('1'+i)), m, web))
	}
	w.bound("shop", "web", len(pods))
	return pods
}

func TestPodsOnAllNodesLeaveFromTheFirstExternalIP(t *testing.T) {
	w := newWorld(t, settings{})
	pods := w.shop("203.0.113.10", "203.0.113.11", "2001:db8:113::10")
	egressIPs := []netip.Addr{netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("2001:db8:113::10")}
	stranger := w.runPod("shop", "stranger", w.members[1], nil)
	for i, to := range w.outside() {
		network := []string{"tcp4", "tcp6"}[i]
		for _, pod := range pods {
			w.members[0].Sees(network, pod, to, egressIPs[i])
		}
		w.members[0].Sees(network, stranger, to, []netip.Addr{w.Nodes()[1].V4, w.Nodes()[1].V6}[i])
		for _, other := range pods[1:] { // inside the cluster everybody is who he is
			self := []netip.Addr{pods[0].V4, pods[0].V6}[i]
			w.members[0].Sees(network, pods[0], netip.AddrPortFrom([]netip.Addr{other.V4, other.V6}[i], port), self)
		}
	}
}
