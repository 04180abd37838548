package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
)

// Dedicated nodes forward what clients outside send to a Service's external IPs, to pods that run on others:
//
//	          client
//	       .10 |  | .11        the external IPs, each routed to its own forwarding node
//	      node-1  node-2       forward, and have no pods
//	           |  |
//	      node-3  node-4       have the pods, which leave from .10, the first
//
// Beside it, the same pods are behind a Service of type NodePort.

const (
	externalPort = 8088
	besidePort   = 8089
)

// TestService_OnDedicatedForwardingNodes: clients come in through other nodes than the pods', beside a NodePort and cluster IPs, and pods
// leave from the first external IP.
func TestService_OnDedicatedForwardingNodes(t *testing.T) {
	w := newWorld(t, settings{nodes: 4})
	f := w.forwarding()
	w.scenario("clients reach the pods by each external IP, and the answers come from it", f.checkExternalIPs)
	w.scenario("the pods leave from the first external IP", f.checkIdentity)
	w.scenario("the NodePort Service beside it serves on every node", f.checkNodePort)
	w.scenario("cluster IPs serve pods and nodes", f.checkClusterIPs)
	w.undisturbed(f.coming) // the client's flows do not survive what follows
	w.scenario("another forwarding node takes over an external IP", f.failover)
	w.undisturbed(f.leaving)
	w.scenario("forwarding nodes' own addresses as external IPs serve, and are no egress IPs unless that is allowed", f.nodeAddresses)
}

// forwarding is that cluster, with the traffic of the pods to the outside, and of the client to the external IPs.
type forwarding struct {
	*world
	service, beside *v1.Service
	pods            []*lab.Host
	leaving, coming *lab.Traffic
}

func (w *world) forwarding() *forwarding {
	w.Helper()
	f := &forwarding{world: w}
	for i, m := range w.members[:2] {
		for _, ip := range w.ips(10 + i) {
			w.must(w.AddAddr(m.Host, netip.MustParseAddr(ip)))
			w.route(ip, m)
		}
	}
	w.namespace("demo")
	f.service = w.service("demo", "web", append(w.ips(10), w.ips(11)...), nil, withPort(tcp80, externalPort), withPort(udp80, externalPort))
	f.beside = w.service("demo", "beside", nil, func(svc *v1.Service) {
		svc.Spec.Type = v1.ServiceTypeNodePort
		svc.Spec.Selector = web
	}, withPort(tcp80, besidePort), withPort(udp80, besidePort))
	for _, m := range w.members[2:] {
		f.pods = append(f.pods, w.runPod("demo", "web-of-"+m.Name, m, web))
	}
	w.bound("demo", "web", len(f.pods))
	var egress identities
	egress.expect(w.ips(10), f.pods...)
	f.leaving = w.ask(&egress, f.pods...)
	f.checkExternalIPs() // so that they serve
	f.coming = lab.StartTraffic(lab.TrafficConfig{To: f.external(), Rate: 50, Timeout: 15 * time.Second, Check: f.checkClient}, w.Outside())
	w.Cleanup(func() { f.coming.Stop() })
	return f
}

// route has the network bring an address to a node.
func (w *world) route(ip string, to *member) {
	w.Helper()
	addr := netip.MustParseAddr(ip)
	w.must(w.RouteVia(netip.PrefixFrom(addr, addr.BitLen()), to.Host))
}

func withPort(p v1.ServicePort, port int32) v1.ServicePort {
	p.Port = port
	return p
}

// external are the Service's external IPs.
func (f *forwarding) external() []netip.AddrPort {
	return addrPorts(f.service.Spec.ExternalIPs, externalPort)
}

// forwarder is the node that an external IP is routed to.
func (f *forwarding) forwarder(ip netip.Addr) *lab.Host {
	if slices.Contains(f.ips(10), ip.String()) {
		return f.members[0].Host
	}
	return f.members[1].Host
}

// checkClient is for lab.TrafficConfig: the pods see the node that forwarded the client, which masquerades.
func (f *forwarding) checkClient(q lab.Question) error {
	if want := like(q.To.Addr(), f.forwarder(q.To.Addr())); q.Err == nil && q.Seen != want {
		return fmt.Errorf("want %s", want)
	}
	return nil
}

func (f *forwarding) checkExternalIPs() {
	f.Helper()
	for _, to := range f.external() {
		for _, protocol := range []string{"tcp", "udp"} {
			f.seen(protocol, f.Outside(), to, like(to.Addr(), f.forwarder(to.Addr())))
		}
	}
}

func (f *forwarding) checkIdentity() {
	f.Helper()
	for _, pod := range f.pods {
		f.leaves("tcp", pod, f.ips(10)...)
		f.leaves("udp", pod, f.ips(10)...)
	}
}

func (f *forwarding) checkNodePort() {
	f.Helper()
	for i, p := range f.beside.Spec.Ports {
		protocol := []string{"tcp", "udp"}[i]
		for _, m := range f.members {
			for _, to := range at(m.Host, uint16(p.NodePort)) {
				f.masqueraded(m.Host, f.asks(protocol, f.Outside(), to), to)
			}
		}
	}
}

func (f *forwarding) checkClusterIPs() {
	f.Helper()
	clients := []*lab.Host{}
	for _, m := range f.members {
		clients = append(clients, m.Host)
	}
	stranger := f.runPod("demo", "stranger", f.members[3], nil)
	for _, client := range append(clients, stranger) {
		for _, to := range append(addrPorts(f.service.Spec.ClusterIPs, externalPort), addrPorts(f.beside.Spec.ClusterIPs, besidePort)...) {
			f.asks("tcp", client, to)
			f.asks("udp", client, to)
		}
	}
	for _, to := range addrPorts(f.service.Spec.ClusterIPs, externalPort) {
		f.seen("tcp", stranger, to, like(to.Addr(), stranger))
	}
}

// failover moves an external IP to the other forwarding node, as VRRP or BGP do.
func (f *forwarding) failover() {
	for _, ip := range f.ips(10) {
		f.route(ip, f.members[1])
	}
	for _, to := range addrPorts(f.ips(10), externalPort) {
		f.seen("tcp", f.Outside(), to, like(to.Addr(), f.members[1].Host))
	}
	f.checkIdentity()
}

// nodeAddresses has the external IPs be the forwarding nodes' own addresses: clients are served, and the pods leave as
// their nodes, or from the first forwarding node's address where that is allowed.
func (f *forwarding) nodeAddresses() {
	one, two := f.members[0].Host, f.members[1].Host
	f.editService("demo", "web", func(svc *v1.Service) {
		svc.Spec.ExternalIPs = nil
		for _, a := range append(at(one, 0), at(two, 0)...) {
			svc.Spec.ExternalIPs = append(svc.Spec.ExternalIPs, a.Addr().String())
		}
	})
	served := func() {
		f.Helper()
		for _, node := range []*lab.Host{one, two} {
			for _, to := range at(node, externalPort) {
				f.seen("tcp", f.Outside(), to, like(to.Addr(), node))
			}
		}
	}
	f.refused("demo/web", "NodeAddress")
	event := f.warned("demo", "web", "NodeAddress")
	f.bound("demo", "web", 0)
	served()
	for _, pod := range f.pods {
		f.leaves("tcp", pod)
	}
	f.reconfigure(`egress-snat-allow-node-ips: ["true"]`)
	f.refused("demo/web", "")
	f.bound("demo", "web", len(f.pods))
	served()
	for _, pod := range f.pods {
		f.leaves("tcp", pod, one.V4.String(), one.V6.String())
	}
	f.saidOnce(event)
}
