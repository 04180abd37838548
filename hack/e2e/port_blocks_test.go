package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// TestPortBlocks_EachPodItsOwn: pods on three nodes that start with the CNI plugin have source ports that no other pod of their egress IPs
// has, and keep them whatever restarts or is away.
func TestPortBlocks_EachPodItsOwn(t *testing.T) {
	belongsTo(t, usual)
	w := newBlocksWorld(t)
	w.scenario("starts", func() {
		for _, r := range w.runtimes {
			for _, s := range w.runs(r, "first", by(t, 3, 6, 20)) {
				w.block(s)
			}
		}
		w.agree()
	})
	w.scenario("connections", func() {
		for _, r := range w.runtimes {
			for _, s := range r.runs {
				w.usesBlock(s, 3)
			}
		}
	})
	w.scenario("processes are killed", w.blocksSurviveKills)
	w.scenario("quiet", w.quietBlocks)
	w.scenario("the API server is away", w.blocksWithoutAPIServer)
	w.scenario("annotations", w.annotatedBlocks)
}

// blocksSurviveKills: a process that starts knows its pods' blocks, and no other pod gets one of them.
func (w *blocksWorld) blocksSurviveKills() {
	before := w.blocks()
	for _, r := range w.runtimes {
		r.on.Kill()
		r.startWith(blocksOf512)
	}
	w.agree()
	w.same("after a kill", before)
	for _, r := range w.runtimes {
		w.runs(r, "next", 2)
	}
	w.agree()
	if now := w.blocks(); len(now) != len(before)+2*len(w.runtimes) {
		w.Errorf("%d pods have blocks, want %d", len(now), len(before)+2*len(w.runtimes))
	}
}

// quietBlocks: the block of a pod that has ended is not given again at once, by no node.
func (w *blocksWorld) quietBlocks() {
	r := w.runtimes[1]
	list := r.list(20, 240)
	ended := w.runs(r, "ends", 3)
	var had []kernel.Ports
	for _, s := range ended {
		had = append(had, w.block(s))
		r.end(list, s)
		r.delete(s.pod)
	}
	w.agree()
	for _, r := range w.runtimes {
		for _, s := range w.runs(r, "after", 3) {
			if ports := w.block(s); slices.Contains(had, ports) {
				w.Errorf("%s has the block %s of a pod that has just ended", s.pod.Name, ports)
			}
		}
	}
	w.agree()
}

// longestShared is how long a pod waits at most until it shares, with what bridge and a slow machine add.
const longestShared = portblocks.Patience + 3*time.Second

// blocksWithoutAPIServer: pods get the spare blocks, and then they share; none waits for long.
func (w *blocksWorld) blocksWithoutAPIServer() {
	w.haveSpares()
	before := w.blocks()
	starting := map[*cniRuntime][]*v1.Pod{}
	for _, r := range w.runtimes {
		for i := range portblocks.MostSpares + 1 {
			starting[r] = append(starting[r], r.create("shop", fmt.Sprintf("away-%d-%s", i, r.on.Name), web))
		}
	}
	w.must(w.APIServer.Stop(w.Context()))
	var sharing []*sandbox
	for r, pods := range starting {
		s, left := w.untilOneShares(r, pods)
		sharing, starting[r] = append(sharing, s), left
	}
	w.must(w.APIServer.Start())
	w.must(w.APIServer.Ready(w.Context()))
	for _, r := range w.runtimes {
		for _, s := range r.runs {
			if strings.HasPrefix(s.pod.Name, "away-") {
				r.sliced(s)
			}
		}
		for _, pod := range starting[r] {
			r.delete(pod)
		}
	}
	w.agree()
	for name, ports := range before {
		if now := w.blocks()[name]; now != ports {
			w.Errorf("%s has %s, and had %s", name, now, ports)
		}
	}
	// client-go does not try again an Event that an API server refuses which has just started.
	w.eventually(func() error {
		events, err := w.Client().CoreV1().Events("shop").List(w.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,reason=EgressPortsShared"})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("there is no Event about a pod that shares")
		}
		return err
	})
	for _, s := range sharing {
		w.shares(s) // for its life
	}
}

// untilOneShares starts pods until one shares, which is not the first, and returns it and those that have not been started.
func (w *blocksWorld) untilOneShares(r *cniRuntime, pods []*v1.Pod) (sharing *sandbox, left []*v1.Pod) {
	w.Helper()
	list := r.list(20, 240)
	for i, pod := range pods {
		began := time.Now()
		s := r.start(list, pod)
		took := time.Since(began)
		w.Logf("%s started within %s without an API server", pod.Name, took.Round(time.Millisecond))
		if took > longestShared {
			w.Errorf("%s took %s to start, want %s at most", pod.Name, took, longestShared)
		}
		if i > 0 && w.localPorts(s) == portblocks.Shared {
			return s, pods[i+1:]
		}
		w.block(s)
	}
	w.Fatalf("%d pods have blocks on %s without an API server", len(pods), r.on.Name)
	return nil, nil
}

// annotatedBlocks: a Service's annotation says how many ports its pods have; none are its pods', and share in silence.
func (w *blocksWorld) annotatedBlocks() {
	r := w.runtimes[2]
	for name, size := range map[string]int{"small": 64, "none": 0} {
		svc := cluster.NewService("shop", name, app(name), w.lanIPs(101), tcp80)
		metav1.SetMetaDataAnnotation(&svc.ObjectMeta, "network.openshift.io/egress-port-block", fmt.Sprint(size))
		_, err := w.CreateService(w.Context(), svc)
		w.must(err)
	}
	w.settled()
	for name, size := range map[string]int{"small": 64, "none": 0} {
		s := r.start(r.list(20, 240), r.create("shop", "annotated-"+name, app(name)))
		if ports := w.localPorts(s); size > 0 && int(ports.Last-ports.First)+1 != size {
			w.Errorf("%s has %s, want %d ports", s.pod.Name, ports, size)
		} else if size == 0 {
			w.shares(s)
		}
	}
}

// TestPortBlocks_CostOfADD: what a block adds to the node's answer.
func TestPortBlocks_CostOfADD(t *testing.T) {
	belongsTo(t, usual)
	w := newBlocksWorld(t)
	r, rounds := w.runtimes[1], by(t, 0, 60, 300)
	with := w.answers(r, rounds, true)
	r.on.Stop()
	r.startWith("")
	without := w.answers(r, rounds, false)
	at := func(list []time.Duration, share float64) time.Duration { return list[int(share*float64(len(list)-1))] }
	added := at(with, 0.99) - at(without, 0.99)
	t.Logf("%d ADDs: p50 %s with blocks, %s without; p99 %s with, %s without: %s more", rounds, at(with, 0.5), at(without, 0.5), at(with, 0.99), at(without, 0.99), added)
}

// answers has a node answer about pods, one after the other, and returns how long that took, sorted. A tenth of a second lies between two, as
// container runtimes take longer.
func (w *blocksWorld) answers(r *cniRuntime, n int, blocks bool) (took []time.Duration) {
	w.Helper()
	client := cni.NewClient(r.socket())
	for i := range n {
		pod := r.create("shop", fmt.Sprintf("answers-%d", i), web)
		var request cni.Request
		for _, cidr := range r.on.Host.PodCIDRs() {
			ip := cidr.Addr()
			for range 2 + i%200 {
				ip = ip.Next()
			}
			request.IPs = append(request.IPs, ip)
		}
		request.ContainerID, request.IfName, request.Netns = fmt.Sprintf("%s-%d", pod.UID, i), cni.Interface, "/run/netns/none"
		request.Pod = attachments.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}
		ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
		began := time.Now()
		decision, err := client.Attach(ctx, request)
		took = append(took, time.Since(began))
		w.must(err)
		if decision.Decision != cni.Bound || (decision.LocalPorts() != nil) != blocks {
			w.Fatalf("the node says %+v; source ports of its own: want %t", decision, blocks)
		}
		w.must(client.Detach(ctx, request.ContainerID, cni.Interface))
		cancel()
		r.delete(pod)
		time.Sleep(100 * time.Millisecond)
	}
	slices.Sort(took)
	return took
}
