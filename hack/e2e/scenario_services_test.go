package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/origin-node/hack/lab"
)

// TestService_SessionAffinityAndLocalTraffic: what kube-proxy can do with a Service goes on as ever, and the pods' identity does not depend on it.
func TestService_SessionAffinityAndLocalTraffic(t *testing.T) {
	belongsTo(t, usual)
	w := newWorld(t, settings{})
	pods := w.shop(w.ips(10)...)
	var i identities
	i.expect(w.ips(10), pods...)
	traffic := w.ask(&i, pods...)
	w.scenario("a client with session affinity stays with its pod, until that is gone", w.sessionAffinity)
	w.scenario("with externalTrafficPolicy Local pods see the client, and only their nodes answer", w.localTraffic)
	w.undisturbed(traffic)
}

// countedPort is the port at which pods count their clients' questions.
const countedPort = 9090

// counted is a pod that counts.
type counted struct {
	*lab.Host
	servers []*lab.Server
}

// count lets a pod count the questions that it gets at countedPort, over TCP.
func (w *world) count(pod *lab.Host) counted {
	w.Helper()
	c := counted{Host: pod}
	for _, to := range at(pod, countedPort) {
		server, err := pod.ServeWhoami(network("tcp", to), countedPort)
		w.must(err)
		c.servers = append(c.servers, server)
	}
	return c
}

// asked is how often somebody has asked the pod.
func (c counted) asked() (times int) {
	for _, server := range c.servers {
		times += len(server.Seen())
	}
	return times
}

func (w *world) sessionAffinity() {
	w.namespace("sticky")
	svc := w.service("sticky", "web", w.ips(20), nil, toCounted())
	var pods []counted
	for i, m := range w.members {
		pods = append(pods, w.count(w.runPod("sticky", fmt.Sprintf("web-%d", i+1), m, web)))
	}
	w.bound("sticky", "web", len(pods))
	for _, to := range addrPorts(svc.Spec.ExternalIPs, 80) {
		w.asks("tcp", w.Outside(), to) // so that it serves
		if served := w.serving(pods, w.Outside(), to); len(served) < 2 {
			w.Errorf("without session affinity %d pods have served 20 connections to %s", len(served), to)
		}
	}
	w.editService("sticky", "web", func(svc *v1.Service) { svc.Spec.SessionAffinity = v1.ServiceAffinityClientIP })
	sticks := func(client *lab.Host, to netip.AddrPort) {
		w.Helper()
		w.eventually(func() error {
			if served := w.serving(pods, client, to); len(served) != 1 {
				return fmt.Errorf("%d pods have served 20 connections of %s to %s, want 1", len(served), client.Name, to)
			}
			return nil
		})
	}
	for _, to := range addrPorts(svc.Spec.ExternalIPs, 80) {
		sticks(w.Outside(), to)
	}
	for _, to := range addrPorts(svc.Spec.ClusterIPs, 80) {
		sticks(w.members[1].Host, to)
		sticks(w.members[2].Host, to)
	}
	for _, pod := range pods {
		w.leaves("tcp", pod.Host, w.ips(20)...)
	}

	to := addrPorts(svc.Spec.ExternalIPs, 80)[0]
	gone := w.serving(pods, w.Outside(), to)[0]
	w.must(w.DeletePod(w.Context(), "sticky", fmt.Sprintf("web-%d", gone+1)))
	pods = slices.Delete(pods, gone, gone+1)
	w.bound("sticky", "web", len(pods))
	w.asks("tcp", w.Outside(), to)
	if served := w.serving(pods, w.Outside(), to); len(served) != 1 {
		w.Errorf("%d pods have served the client whose pod is gone, want 1", len(served))
	}
	for _, pod := range pods {
		w.leaves("tcp", pod.Host, w.ips(20)...)
	}
}

func toCounted() v1.ServicePort {
	return v1.ServicePort{Name: "tcp", Port: 80, TargetPort: intstr.FromInt32(countedPort), Protocol: v1.ProtocolTCP}
}

// serving returns which pods have served a client that asked 20 times.
func (w *world) serving(pods []counted, client *lab.Host, to netip.AddrPort) (which []int) {
	w.Helper()
	var before []int
	for _, pod := range pods {
		before = append(before, pod.asked())
	}
	for range 20 {
		w.asks("tcp", client, to)
	}
	for i, pod := range pods {
		if pod.asked() > before[i] {
			which = append(which, i)
		}
	}
	return which
}

func (w *world) localTraffic() {
	w.namespace("local")
	svc := w.service("local", "web", w.ips(30), func(svc *v1.Service) {
		svc.Spec.Type = v1.ServiceTypeNodePort
		svc.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyLocal
	}, tcp80, udp80)
	without, with, also := w.members[0], w.members[1], w.members[2]
	pods := []*lab.Host{w.runPod("local", "web-2", with, web), w.runPod("local", "web-3", also, web)}
	w.bound("local", "web", len(pods))

	addresses := func(m *member, protocol int) []netip.AddrPort { // by which the outside reaches the Service on a node
		for _, ip := range w.ips(30) {
			w.route(ip, m)
		}
		return append(addrPorts(svc.Spec.ExternalIPs, 80), at(m.Host, uint16(svc.Spec.Ports[protocol].NodePort))...)
	}
	answers := func(m *member) {
		w.Helper()
		for i, protocol := range []string{"tcp", "udp"} {
			for _, to := range addresses(m, i) {
				w.seen(protocol, w.Outside(), to, like(to.Addr(), w.Outside()))
			}
		}
	}
	silent := func(m *member) {
		w.Helper()
		w.eventually(func() error {
			var asking []chan error
			for i, protocol := range []string{"tcp", "udp"} {
				for _, to := range addresses(m, i) {
					asked := make(chan error, 1)
					go func() { asked <- w.unanswered(protocol, w.Outside(), to) }()
					asking = append(asking, asked)
				}
			}
			var errs []error
			for _, asked := range asking {
				errs = append(errs, <-asked)
			}
			return errors.Join(errs...)
		})
	}
	leave := func(pods ...*lab.Host) {
		w.Helper()
		for _, pod := range pods {
			w.leaves("tcp", pod, w.ips(30)...)
			w.leaves("udp", pod, w.ips(30)...)
		}
	}
	answers(with)
	answers(also)
	silent(without)
	leave(pods...)
	// Inside the cluster every node reaches all of them.
	for _, to := range addrPorts(svc.Spec.ClusterIPs, 80) {
		w.asks("tcp", without.Host, to)
	}
	w.must(w.DeletePod(w.Context(), "local", "web-2"))
	w.bound("local", "web", 1)
	silent(with)
	answers(also)
	leave(pods[1])
}

// unanswered returns an error if a new flow is answered within a second.
func (w *world) unanswered(protocol string, from *lab.Host, to netip.AddrPort) error {
	if seen, err := w.askWithin(time.Second, protocol, from, to); err == nil {
		return fmt.Errorf("%s is answered at %s (%s), and seen as %s", from.Name, to, protocol, seen)
	}
	return nil
}
