package e2e

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
)

// TestScale_FromZeroToFiftyAndBack: a Deployment's pods are bound and unbound as they come and go.
func TestScale_FromZeroToFiftyAndBack(t *testing.T) {
	belongsTo(t, usual)
	const most = 50
	w := newWorld(t, settings{})
	pods := w.follow(map[string][]string{"shop": w.ips(10), "bank": w.ips(20)})
	pods.deploy("bank", 3)
	pods.deploy("shop", 0)
	w.holdsNo(w.ips(10)...)

	began := time.Now()
	w.must(w.ScaleDeployment(t.Context(), "shop", "web", most))
	pods.until(w.rolledOut("shop"))
	running := time.Since(began)
	pods.until(nil)
	bound := time.Since(began)
	w.bound("shop", "web", most)
	pods.round()

	w.must(w.ScaleDeployment(t.Context(), "shop", "web", 0))
	pods.until(w.gone("shop"))
	w.bound("shop", "web", 0)
	w.holdsNo(w.ips(10)...)
	t.Logf("%d pods ran after %s, all were bound after %s", most, running.Round(time.Millisecond), bound.Round(time.Millisecond))
	pods.end(3)
}

// TestNamespace_DeletedLeavesItsAddressesToOthers, and nobody sends from them before.
func TestNamespace_DeletedLeavesItsAddressesToOthers(t *testing.T) {
	belongsTo(t, usual)
	w := newWorld(t, settings{})
	pods := w.follow(map[string][]string{"shop": w.ips(10), "bank": w.ips(20)})
	pods.deploy("bank", 3)
	pods.deploy("shop", 9)
	w.editService("shop", "web", func(svc *v1.Service) { svc.Spec.ExternalIPs = append(svc.Spec.ExternalIPs, w.ips(11)...) })
	// Events in it are no reason for a namespace to stay.
	w.service("shop", "odd", []string{cluster.ServiceCIDRV4.Addr().Next().String()}, nil)
	w.warned("shop", "odd", "AddressInCluster")

	w.namespace("heir")
	w.younger(w.getService("shop", "web"))
	w.service("heir", "web", w.ips(10), nil, tcp80, udp80)
	_, heir := w.podByHand("heir", "web", w.members[0], nil)
	w.endpoint("heir", "web", heir, ready)
	w.refused("heir/web", "OwnedByOtherNamespace")
	event := w.warned("heir", "web", "OwnedByOtherNamespace")
	w.settled()
	w.leaves("tcp", heir)
	flows := w.flows(heir, "tcp", "udp")
	pods.until(nil)
	pods.round()

	w.must(w.DeleteNamespace(t.Context(), "shop"))
	w.bound("shop", "web", 0)
	w.bound("heir", "web", 1)
	w.holdsNo(w.ips(11)...)
	w.atRest()
	w.leaves("tcp", heir, w.ips(10)...)
	w.leaves("udp", heir, w.ips(10)...)
	w.ended(flows, w.ips(10)...)
	w.refused("heir/web", "")
	w.saidOnce(event)

	w.namespace("late")
	w.service("late", "web", w.ips(11), nil)
	_, late := w.podByHand("late", "web", w.members[1], nil)
	w.bound("late", "web", 1)
	w.leaves("tcp", late, w.ips(11)...)
	pods.end(3)
}

// deploy makes a namespace with a Service and a Deployment behind it, and waits until its pods are bound.
func (t *successivePods) deploy(namespace string, replicas int32) {
	t.Helper()
	t.namespace(namespace)
	t.service(namespace, "web", t.identities[namespace], nil, tcp80, udp80)
	_, err := t.Client().AppsV1().Deployments(namespace).Create(t.Context(), cluster.NewDeployment(namespace, "web", replicas, web), metav1.CreateOptions{})
	t.must(err)
	t.until(t.rolledOut(namespace))
	t.until(nil)
}

// holdsNo fails if a node SNATs to one of these addresses. What its last change took away may be on record.
func (w *world) holdsNo(addresses ...string) {
	w.Helper()
	w.settled()
	for _, m := range w.members {
		for _, family := range w.families {
			for line := range strings.Lines(m.Save(family, "-t", "nat")) {
				for _, address := range addresses {
					if strings.Contains(line, "--to-source "+address+" ") && !strings.Contains(line, "OPENSHIFT-EGRESS-REMOVED") {
						w.Errorf("%s has a rule about %s: %s", m.Name, address, line)
					}
				}
			}
		}
	}
}

// gone returns a channel that has nil when the namespace has no pods any more.
func (w *world) gone(namespace string) <-chan error {
	done := make(chan error, 1)
	go func() {
		for {
			pods, err := w.Client().CoreV1().Pods(namespace).List(w.Context(), metav1.ListOptions{})
			if err != nil || len(pods.Items) == 0 {
				done <- err
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return done
}

func (w *world) getService(namespace, name string) *v1.Service {
	w.Helper()
	svc, err := w.Client().CoreV1().Services(namespace).Get(w.Context(), name, metav1.GetOptions{})
	w.must(err)
	return svc
}
