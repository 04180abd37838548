package e2e

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// TestPortBlocks_EachPodItsOwn: pods on three nodes that start with the CNI plugin have source ports that no other pod of their egress IPs
// has, and keep them whatever restarts or is away.
func TestPortBlocks_EachPodItsOwn(t *testing.T) {
	belongsTo(t, usual)
	w := newBlocksWorld(t, blocksOf512)
	w.scenario("starts", func() {
		for _, r := range w.runtimes {
			for _, s := range w.runs(r, "first", by(t, 3, 6, 10)) { // an eighth of the blocks stays free, or there are no spare ones
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
	w.scenario("without the plugin", w.withoutPlugin)
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
	for _, m := range w.members {
		w.hasSpare(m, addrs(w.egressIPs))
	}
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
	w.eventually(func() error { return w.hasEvent("EgressPortsShared", "") })
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

// withoutPlugin: a pod that starts without the plugin shares, and its node tells of that as long as the pod is bound.
func (w *blocksWorld) withoutPlugin() {
	r := w.runtimes[1]
	before := w.sharing(r)
	list := r.listWithout(241, 250)
	s := r.start(list, r.create("shop", "without", web))
	r.sliced(s)
	for i, ip := range s.ips {
		w.eventually(func() error {
			rows, errs, _ := r.on.Openshift("egress", "list", "--socket="+r.on.Socket(), "--no-headers", "-o", "wide")
			for line := range strings.Lines(rows) {
				if strings.HasPrefix(line, ip.String()+" ") && strings.HasSuffix(strings.TrimSpace(line), " shared") {
					return nil
				}
			}
			return fmt.Errorf("%s does not share, says the list:\n%s%s", ip, rows, errs)
		})
		port := netip.AddrPortFrom(addrs(w.egressIPs)[i], portblocks.Shared.First)
		w.says(r, s.pod.Name, port.String())
	}
	more := map[string]float64{}
	for ip, pods := range before {
		more[ip] = pods + 1
	}
	awaitSharing := func(want map[string]float64) {
		w.eventually(func() error {
			if got := w.sharing(r); !maps.Equal(got, want) {
				return fmt.Errorf("the metric has %v pods that share, want %v", got, want)
			}
			return nil
		})
	}
	awaitSharing(more)
	r.end(list, s)
	r.delete(s.pod)
	awaitSharing(before)
}

// sharing returns how many pods share according to a node's metric, by egress IP.
func (w *blocksWorld) sharing(r *cniRuntime) map[string]float64 {
	w.Helper()
	metrics, pods := w.metrics(r.on), map[string]float64{}
	for _, ip := range w.egressIPs {
		pods[ip] = metric(w.T, metrics, fmt.Sprintf("egress_snat_port_sharing_pods{egress_ip=%q}", ip))
	}
	return pods
}
