package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// Two Deployments, of two namespaces, restart at the same time, so that an address of one's pod is the other's a
// moment later. What README.md's Limits allow is checked, and no more: until its node has its
// binding, a pod is seen as its node, or as the pod that had its address before; from then on only as its Service's
// external IP.

// TestRollout_RollingRestartKeepsTheEgressIP although the pods of two Deployments take each other's addresses.
func TestRollout_RollingRestartKeepsTheEgressIP(t *testing.T) {
	const replicas = 6
	w := newWorld(t, settings{arguments: `v: ["4"]`}) // logs each binding
	pods := w.follow(map[string][]string{"shop": w.ips(10), "bank": w.ips(20)})
	for namespace := range pods.identities {
		pods.deploy(namespace, replicas)
	}
	for round := 1; round <= 3 || pods.moved() == 0; round++ {
		if round > 10 {
			t.Fatal("in ten restarts no address went from one Service's pod to another's")
		}
		for namespace := range pods.identities {
			w.must(w.RestartDeployment(t.Context(), namespace, "web"))
		}
		pods.until(w.rolledOut("shop", "bank"))
	}
	for namespace := range pods.identities {
		w.bound(namespace, "web", replicas)
	}
	pods.until(nil)
	pods.end(2 * replicas)
}

// rolledOut returns a channel that has an error, or nil, when the Deployments web of these namespaces are rolled out.
func (w *world) rolledOut(namespaces ...string) <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(w.Context(), 2*soon)
		defer cancel()
		var errs []error
		for _, namespace := range namespaces {
			errs = append(errs, w.RolledOut(ctx, namespace, "web"))
		}
		done <- errors.Join(errs...)
	}()
	return done
}

// successivePods are all pods there are and were, whose addresses go from one to the other.
type successivePods struct {
	*world
	*lab.Traffic
	identities map[string][]string // by namespace

	mu       sync.Mutex
	all      map[*lab.Host]*successivePod
	last     map[netip.Addr]*successivePod // by the pod's first address
	known    map[plan.Endpoint]time.Time   // when a node was first seen to know of a pod
	before   int                           // answers in which a pod was seen as its node or as a predecessor
	inherits int                           // of them, those as a predecessor
	moves    int                           // pods whose predecessor was another namespace's
}

// successivePod is a pod that has, or had, an address.
type successivePod struct {
	name     plan.Pod
	uid      string
	nodeName string
	own      []string
	former   []string // identities of the pods that had its address before
	gone     bool
	bound    time.Time // since when nothing but own is right; zero until its node has its bindings
}

// follow begins the traffic of all pods that the kubelet will run. Their identities are given by namespace.
func (w *world) follow(identities map[string][]string) *successivePods {
	t := &successivePods{world: w, identities: identities, all: map[*lab.Host]*successivePod{}, last: map[netip.Addr]*successivePod{}, known: map[plan.Endpoint]time.Time{}}
	t.Traffic = lab.StartTraffic(lab.TrafficConfig{To: w.outside(), Rate: 200, Timeout: 10 * time.Second, Check: t.check})
	w.Cleanup(func() { t.Traffic.Stop() })
	w.kubeletsPods.Started, w.kubeletsPods.Stopping = t.podStarted, t.podEnding
	return t
}

// podStarted is told of each pod that has started, of which the API server does not know the address yet.
func (t *successivePods) podStarted(pod *v1.Pod, host *lab.Host) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &successivePod{name: plan.Pod{Namespace: pod.Namespace, Name: pod.Name}, uid: string(pod.UID), nodeName: pod.Spec.NodeName, own: t.identities[pod.Namespace]}
	address := at(host, 0)[0].Addr()
	if before := t.last[address]; before != nil {
		p.former = append(slices.Clone(before.former), before.own...)
		if before.name.Namespace != p.name.Namespace {
			t.moves++
		}
	}
	t.all[host], t.last[address] = p, p
	t.Add(host)
}

// podEnding is told of each pod that is about to end.
func (t *successivePods) podEnding(_ *v1.Pod, host *lab.Host) {
	t.mu.Lock()
	t.all[host].gone = true
	t.mu.Unlock()
	t.Remove(host)
}

// check is for lab.TrafficConfig.
func (t *successivePods) check(q lab.Question) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	pod := t.all[q.From]
	bound := !pod.bound.IsZero() && q.Start.After(pod.bound)
	want := identity(q.From, q.To, pod.own)
	switch {
	case q.Err != nil && bound && q.Opened.After(pod.bound):
		return fmt.Errorf("it was bound at %s, before the flow began", pod.bound.Format("15:04:05.000"))
	case q.Err != nil || q.Seen == want:
		return nil
	case bound:
		return fmt.Errorf("want %s, since %s", want, pod.bound.Format("15:04:05.000"))
	case q.Seen == like(q.Seen, q.From.Node):
		t.before++
		return nil
	case slices.Contains(pod.former, q.Seen.String()):
		t.before++
		t.inherits++
		return nil
	}
	return fmt.Errorf("want %s, or %s", want, pod.nodeName)
}

// look takes down which pods are bound by now: those that their node says it is done with. That their address is
// bound is not enough, for it may be so on behalf of the pod that had it before. What a node knows is newer than its rules:
// it may be writing at this moment that the address is nobody's. So a sync has to end behind the moment at which the node
// was seen to know of the pod.
func (t *successivePods) look() (unbound []string) {
	t.Helper()
	done := map[plan.Endpoint]int{} // by what is known of a pod, for how many protocols
	for _, m := range t.members {
		snapshot, err := status.NewClient(m.Socket()).Snapshot(t.Context())
		t.must(err)
		for _, f := range snapshot.Families {
			for i, b := range f.Plan.Bindings {
				// The flows of before are deleted between the write of a binding and the end of the sync.
				if since := f.SinceOf(i); !f.Written || f.Error != "" || since.IsZero() || !f.LastSync.After(since) {
					continue
				}
				for _, claim := range f.Input.Claims {
					for _, e := range claim.Endpoints {
						if e.Addr != b.Pod || claim.Service != b.Service || e.Node != m.Name {
							continue
						}
						switch since, known := t.known[e]; {
						case !known:
							t.known[e] = snapshot.Time
						case f.LastSync.After(since):
							done[e]++
						}
					}
				}
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for host, pod := range t.all {
		missing := false
		for _, addr := range at(host, 0) {
			missing = missing || done[plan.Endpoint{Addr: addr.Addr(), Pod: pod.name, UID: pod.uid, Node: pod.nodeName}] < 2
		}
		switch {
		case pod.gone || !pod.bound.IsZero():
		case missing:
			unbound = append(unbound, host.Name)
		default:
			pod.bound = time.Now()
		}
	}
	return unbound
}

// until looks again and again until there is news on the channel, which must be nil; without one, until all are bound.
func (t *successivePods) until(done <-chan error) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(3 * soon); time.Now().Before(deadline); <-ticker.C {
		unbound := t.look()
		select {
		case err := <-done:
			t.must(err)
			return
		default:
			if done == nil && len(unbound) == 0 {
				return
			}
		}
	}
	t.Fatal("the pods are not bound in time")
}

// moved is how many pods have got an address that another namespace's pod had just before.
func (t *successivePods) moved() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.moves
}

// round waits until every pod that runs has been answered, in a new flow and in its kept one.
func (t *successivePods) round() {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	t.must(t.Round(ctx))
}

// end ends the traffic, and fails unless this many pods are left and no pod was ever seen with a wrong identity.
func (t *successivePods) end(pods int) {
	t.Helper()
	t.round()
	sum := t.Traffic.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	alive := 0
	for _, pod := range t.all {
		if !pod.gone {
			alive++
		}
	}
	if alive != pods {
		t.Errorf("%d pods are left, want %d", alive, pods)
	}
	// Flows that began before their pod was bound end with it, so some are unanswered or break.
	if sum.Wrong > 0 {
		t.Errorf("pods were seen with wrong identities: %s", sum)
	}
	line, _, _ := strings.Cut(sum.String(), "\n")
	t.Logf("%d pods, %d with an address that another namespace's pod had just before; before their bindings %d answers, %d under the address's former identity; %s",
		len(t.all), t.moves, t.before, t.inherits, line)
}
