package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/machine"
)

// shopPods is how many pods speak.
const shopPods = 6

// TestRealNode_NoPacketLeavesAsAnybodyElse: pods of kubelets on three nodes speak all the time to the outside, while their Deployment is
// updated, a node is emptied, and the node is lost that has the egress IPs, which the nodes put on each other. Every packet
// that leaves a node has the egress IP.
func TestRealNode_NoPacketLeavesAsAnybodyElse(t *testing.T) {
	belongsTo(t, long)
	w := newRealWorld(t, settings{nodes: 3, backend: lab.NFT, arguments: poolArguments})
	wire, err := w.Watch()
	w.must(err)
	pool := &poolWorld{&steeredWorld{world: w.world, wire: wire, egressIPs: w.lanIPs(100)}}
	for _, m := range w.members {
		w.patchNode(m, `{"metadata":{"labels":{"node-restriction.kubernetes.io/egress-assignable":""}}}`)
	}
	w.claim("shop", pool.egressIPs...)
	w.deploy("shop", shopPods)
	w.rollsOut("shop")
	for _, ip := range pool.egressIPs {
		pool.holderOf(ip, nil)
	}
	stop := w.keepAsking("shop")
	w.scenario("rolling updates", func() {
		for range 2 {
			w.must(w.RestartDeployment(w.Context(), "shop", "web"))
			w.rollsOut("shop")
		}
		w.eventuallySeenAs(w.pods("shop"), pool.egressIPs)
	})
	w.scenario("pods leave a node", func() { w.leave(w.members[0], pool.egressIPs) })
	w.scenario("the holder is lost", func() { w.lose(pool) })
	stop()
	pool.clean(100)
}

// patchNode changes a Node.
func (w *realWorld) patchNode(m *member, patch string) {
	w.Helper()
	_, err := w.Client().CoreV1().Nodes().Patch(w.Context(), m.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err)
}

// keepAsking has all pods of a Deployment ask the hosts outside again and again, until stop is called.
func (w *realWorld) keepAsking(namespace string) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	var speaking sync.WaitGroup
	speaking.Go(func() {
		for ctx.Err() == nil {
			var round sync.WaitGroup
			pods, _ := w.running(ctx, namespace) // the next round asks again
			for _, pod := range pods {
				for _, to := range w.outside() {
					round.Go(func() { _, _ = machine.Ask(ctx, pod.on.Host, pod.ip, to) }) // pods come and go; packets are what counts
				}
			}
			round.Wait()
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		speaking.Wait()
	})
	w.Cleanup(stop)
	return stop
}

// leave empties a node of pods, which start on the others, and lets them on it again.
func (w *realWorld) leave(m *member, egressIPs []string) {
	w.Helper()
	w.patchNode(m, `{"spec":{"unschedulable":true}}`)
	for _, pod := range w.pods("shop") {
		if pod.on == m {
			w.must(w.Client().CoreV1().Pods("shop").Delete(w.Context(), strings.TrimPrefix(pod.name, "shop/"), metav1.DeleteOptions{}))
		}
	}
	w.eventually(func() error { // the Deployment's status may still be that from before
		pods := w.pods("shop")
		if len(pods) != shopPods || slices.ContainsFunc(pods, func(pod realPod) bool { return pod.on == m }) {
			return fmt.Errorf("want %d pods on other nodes than %s: %v", shopPods, m.Name, pods)
		}
		return nil
	})
	w.eventuallySeenAs(w.pods("shop"), egressIPs)
	w.patchNode(m, `{"spec":{"unschedulable":false}}`)
}

// lose cuts off the node that has an egress IP, until the pods on the others leave from it by another one.
func (w *realWorld) lose(pool *poolWorld) {
	w.Helper()
	lost := pool.holderOf(pool.egressIPs[0], nil)
	w.must(w.SetLink(lost.Host, false))
	defer func() { w.must(w.SetLink(lost.Host, true)) }()
	for _, ip := range pool.egressIPs {
		pool.anotherHas(ip, lost)
	}
	var others []realPod
	for _, pod := range w.pods("shop") {
		if pod.on != lost {
			others = append(others, pod)
		}
	}
	w.eventuallySeenAs(others, pool.egressIPs)
}

// eventuallySeenAs waits until new flows of all pods are seen as the egress IPs.
func (w *realWorld) eventuallySeenAs(pods []realPod, egressIPs []string) {
	w.Helper()
	for _, pod := range pods {
		for _, to := range w.outside() {
			w.eventually(func() error { return w.askedAs(pod, to, identity(pod.on.Host, to, egressIPs)) })
		}
	}
}

func (w *realWorld) askedAs(pod realPod, to netip.AddrPort, want netip.Addr) error {
	answer, err := machine.Ask(w.Context(), pod.on.Host, pod.ip, to)
	if err == nil && answer.Seen != want {
		err = fmt.Errorf("%s on %s is seen by %s as %v, want %s", pod.name, pod.on.Name, to, answer.Seen, want)
	}
	return err
}
