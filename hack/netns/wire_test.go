package netns

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/cluster"
)

// TestWire_DuringRandomChanges: through five hundred changes of objects in each way, with E2E=all a thousand, with kills, the kernel
// holds the plan after each burst, and no packet at any time has a source address that is not its
// namespace's. Half of the changes are with the rules of this node's pods only.
func TestWire_DuringRandomChanges(t *testing.T) {
	for i, way := range ways {
		for _, scope := range []string{"node", "cluster"} {
			t.Run(way.name+"/"+scope, func(t *testing.T) {
				t.Parallel()
				n := newNode(t, lab.Config{IPv6: true, Pods: 4, Masquerade: true, Backend: way.iptables})
				n.Backend, n.Arguments = way.backend, way.arguments
				n.Configure(`{egress-snat-audit: ["true"], egress-snat-scope: [` + scope + `]}`)
				changeAtRandom(n, rand.New(rand.NewPCG(3, uint64(i))))
			})
		}
	}
}

func changeAtRandom(n *node, r *rand.Rand) {
	n.Helper()
	n.putNode(netip.PrefixFrom(n.Pod(4).V4, 32), netip.PrefixFrom(n.Pod(4).V6, 128)) // whatever slices say
	n.serve(n.Outside(), whoamiPort, "udp4", "udp6")
	n.start()
	n.Ready()
	w := &wire{node: n}
	w.note(func() {})
	w.settle()
	stop := w.sample()
	const events = 25
	bursts := 10
	if os.Getenv("E2E") == "all" {
		bursts = 20
	}
	for burst := range bursts {
		for range events {
			w.note(func() { w.randomEvent(r) })
		}
		if burst%10 == 9 {
			n.FollowedThePlan()
			n.Kill()
			w.note(func() { w.randomEvent(r) })
			n.restart()
		}
		w.settle()
		n.FollowedThePlan()
	}
	stop()
	n.Logf("%d answers, %d of them under an egress IP, %d in moments of calm", w.answers.Load(), w.bound.Load(), w.exact.Load())
	if w.bound.Load() == 0 || w.exact.Load() == 0 {
		n.Error("no answers under an egress IP, or none in moments of calm; the test shows nothing")
	}
}

// world is three namespaces, each with pods of its own, that fight over few addresses.
var world = map[string][]int{"a": {1, 2}, "b": {3}, "c": {4}}

// namespaceOf returns that of a pod's number.
func namespaceOf(pod int) string {
	for namespace, pods := range world {
		if slices.Contains(pods, pod) {
			return namespace
		}
	}
	return ""
}

// randomEvent changes, adds or removes a Service of one of the namespaces, or its endpoints.
func (w *wire) randomEvent(r *rand.Rand) {
	w.Helper()
	namespace, number := []string{"a", "b", "c"}[r.IntN(3)], r.IntN(2)
	name := fmt.Sprintf("s%d", number)
	host := 10*int(namespace[0]-'a') + number + 1
	svc := serviceIn(namespace, name,
		[]string{fmt.Sprintf("172.30.2.%d", host), fmt.Sprintf("fd00:172:30::2:%d", host)},
		[]string{fmt.Sprintf("203.0.113.%d", 1+r.IntN(3)), fmt.Sprintf("2001:db8:113::%d", 1+r.IntN(3))}, allProtocols[1])
	switch kind := r.IntN(10); {
	case kind < 4:
		var objects []runtime.Object
		pods := world[namespace]
		for range r.IntN(3) {
			pod := w.Pod(pods[r.IntN(len(pods))])
			for _, slice := range endpoints(svc, pod.V4, pod.V6) {
				slice.Name = fmt.Sprintf("%s-%d", slice.Name, len(objects))
				slice.Endpoints[0].NodeName = []*string{nil, ptr.To(w.Name), ptr.To(w.Name), ptr.To("node-2")}[r.IntN(4)]
				objects = append(objects, slice)
			}
		}
		if file := namespace + "-" + name + "-slices.yaml"; len(objects) > 0 {
			w.put(file, objects...)
		} else {
			_ = os.Remove(filepath.Join(w.manifests(), file)) // it may not be there
		}
	case kind < 6:
		_ = os.Remove(filepath.Join(w.manifests(), namespace+"-"+name+".yaml")) // it may not be there
	default:
		svc.CreationTimestamp.Time = time.Unix(int64(1000+r.IntN(4)), 0).UTC()
		if r.IntN(10) == 0 {
			svc.Annotations = map[string]string{cluster.Annotation: "false"}
		}
		w.put(namespace+"-"+name+".yaml", svc)
	}
}

// exactAnswers is how many answers each moment of calm has at least: some of each pod and family.
const exactAnswers = 50

// wire asks which addresses pods are seen as, and judges the answers by who owns these addresses.
type wire struct {
	*node
	answers, bound, exact atomic.Int64
	marks                 int
	sampling              bool

	mu     sync.Mutex
	states []state
}

// state is what holds after one event: from the event on, until the node says that it has
// a later state in the kernel, flows included.
type state struct {
	from, until time.Time
	services    []*v1.Service
	// calm is when the node had this state in the kernel and no other could follow; zero
	// for most states. as are the egress IPs by pod then.
	calm time.Time
	as   map[netip.Addr]netip.Addr
}

// note notes the state after a change.
func (w *wire) note(change func()) {
	w.Helper()
	w.mu.Lock() // until the state is there to judge by
	defer w.mu.Unlock()
	from := time.Now()
	if last := len(w.states) - 1; last >= 0 {
		w.states[last].calm = time.Time{}
	}
	change()
	w.mark()
	objects, err := w.objects()
	if err != nil {
		w.Fatal(err)
	}
	w.states = append(w.states, state{from: from, services: objects.Services})
}

// mark makes the state another than all before, also where a change has taken back the last: a node
// that is late would seem to know of both.
func (w *wire) mark() {
	w.marks++
	high, low := w.marks>>8, w.marks&0xff
	w.put("marker.yaml", serviceIn("z", "marker", []string{"172.30.3.1", "fd00:172:30::3:1"},
		[]string{fmt.Sprintf("198.18.%d.%d", high, low), fmt.Sprintf("2001:db8:18::%x", w.marks)}))
}

// mayOwn returns whether an address could belong to a namespace while these states held. What
// changed among them comes to the node in any order, for several changes of files are one
// for it; so it may, if a Service of the namespace claims the address in one of the states,
// and no older one of another namespace does in all of them.
func mayOwn(namespace string, ip netip.Addr, states []state) bool {
	for _, s := range states {
		for _, claim := range s.services {
			if claim.Namespace != namespace || !has(claim, ip) {
				continue
			}
			blocked := slices.ContainsFunc(states[0].services, func(other *v1.Service) bool {
				return other.Namespace != namespace && !slices.ContainsFunc(states, func(s state) bool {
					return !slices.ContainsFunc(s.services, func(same *v1.Service) bool {
						return same.Namespace == other.Namespace && same.Name == other.Name && has(same, ip) && older(same, claim)
					})
				})
			})
			if !blocked {
				return true
			}
		}
	}
	return false
}

// has tells whether an external IP is a Service's, whether or not its pods leave from it.
func has(svc *v1.Service, ip netip.Addr) bool {
	return slices.Contains(svc.Spec.ExternalIPs, ip.String())
}

func older(a, b *v1.Service) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name
}

// settle waits until the kernel holds the last state, as far as one can see and as the
// node says; all states before are over then. It leaves a moment of calm.
func (w *wire) settle() {
	w.Helper()
	w.holdsPlan(soon)
	objects, err := w.objects()
	if err != nil {
		w.Fatal(err)
	}
	w.Eventually(soon, func() error { return w.Knows(objects, v1.IPv4Protocol, v1.IPv6Protocol) })
	as := map[netip.Addr]netip.Addr{}
	for _, b := range objects.BindingsOn(w.Name) { // all are for UDP
		as[b.Pod] = b.EgressIP
	}
	w.mu.Lock()
	now, last, observed := time.Now(), len(w.states)-1, w.exact.Load()
	for i := range w.states[:last] {
		if w.states[i].until.IsZero() {
			w.states[i].until = now
		}
	}
	w.states[last].calm, w.states[last].as = now, as
	w.mu.Unlock()
	w.Eventually(soon, func() error { // no change follows until some answers have been judged exactly
		if seen := w.exact.Load() - observed; w.sampling && seen < exactAnswers {
			return fmt.Errorf("%d answers in this moment of calm, want %d", seen, exactAnswers)
		}
		return nil
	})
}

// sample lets every pod ask the outside host all the time which address it is seen from: from ports that it
// used before, whose flows the kernel remembers, and from new ones.
func (w *wire) sample() (stop func()) {
	w.sampling = true
	ctx, cancel := context.WithCancel(w.Context())
	var wg sync.WaitGroup
	for i := 1; i <= 4; i++ {
		for _, network := range []string{"udp4", "udp6"} {
			wg.Go(func() { w.sampleFrom(ctx, namespaceOf(i), w.Pod(i), network) })
		}
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

func (w *wire) sampleFrom(ctx context.Context, namespace string, pod *lab.Host, network string) {
	ports := []uint16{5000, 5001, 0}
	asked := map[uint16]time.Time{}
	for i := 0; ctx.Err() == nil; i++ {
		port, now := ports[i%len(ports)], time.Now()
		// What comes may be a late answer to the last question from this port, or to one
		// before that went without.
		from, before := asked[port]
		if !before || port == 0 {
			from = now
		}
		asked[port] = from
		if seen, err := w.askFrom(port, network, pod); err == nil {
			asked[port] = now
			w.judge(namespace, of(network, pod.V4, pod.V6), w.nodeIP(network), seen, from, time.Now())
		}
		time.Sleep(2 * time.Millisecond) // eight pods must not starve the node
	}
}

// askFrom asks once from a port, 0 for a new one.
func (w *wire) askFrom(port uint16, network string, pod *lab.Host) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(w.Context(), 300*time.Millisecond)
	defer cancel()
	return pod.Ask(ctx, network, w.outside(network), port)
}

// judge complains if a pod was seen under an address that cannot have been its namespace's
// then, or, in a moment of calm, as anything but what the plan says.
func (w *wire) judge(namespace string, pod, node, seen netip.Addr, from, until time.Time) {
	w.answers.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.states[len(w.states)-1]; !last.calm.IsZero() && from.After(last.calm) {
		w.exact.Add(1)
		want, isBound := last.as[pod]
		if !isBound {
			want = node
		}
		if seen != want {
			w.Errorf("%s is seen as %s in a moment of calm, want %s", pod, seen, want)
		}
	}
	if seen == node {
		return
	}
	w.bound.Add(1)
	var possible []state
	for i, s := range w.states {
		if over := !s.until.IsZero() && s.until.Before(from); !over && (i == 0 || s.from.Before(until)) {
			possible = append(possible, s)
		}
	}
	if !mayOwn(namespace, seen, possible) {
		w.Errorf("%s of the namespace %s is seen as %s between %s and %s, when that was not its own", pod, namespace, seen, from.Format(time.StampMilli), until.Format(time.StampMilli))
	}
}
