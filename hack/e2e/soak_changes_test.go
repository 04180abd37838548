package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/pkg/egress"
)

// kind is what a change of the soak is about.
type kind int

const (
	externalIPs kind = iota
	annotations
	servicesMade
	servicesDeleted
	podsStarted
	podsEnded
	labelsOfPods
	slicesMade
	slicesDeleted
	namespaces
	nodes
	kinds
)

func (k kind) String() string {
	return [...]string{"external IPs", "annotations", "Services made", "deleted", "pods started", "ended", "relabelled",
		"EndpointSlices made by hand", "deleted", "namespaces deleted and made again", "Nodes"}[k]
}

// quarter is a namespace and who changes what is in it, one thing after another. The quarters fight
// over few addresses.
type quarter struct {
	*soak
	name string
	r    *rand.Rand
	todo chan struct{}
	busy sync.WaitGroup
	// What there is.
	services map[string]*v1.Service
	pods     map[string]string     // the label app, by name
	slices   map[string]netip.Addr // the endpoint, by name
	count    int
}

func newQuarter(s *soak, name string, seed uint64) *quarter {
	s.Helper()
	q := &quarter{soak: s, name: name, r: rand.New(rand.NewPCG(seed, uint64(time.Now().UnixNano()))), todo: make(chan struct{}, 3)}
	q.empty()
	s.namespace(name)
	go func() {
		for range q.todo {
			q.step()
			q.busy.Done()
		}
	}()
	s.Cleanup(func() {
		q.await()
		close(q.todo)
	})
	return q
}

func (q *quarter) empty() {
	q.services, q.pods, q.slices = map[string]*v1.Service{}, map[string]string{}, map[string]netip.Addr{}
}

// ask asks for a change. It tells whether there will be one: who has enough to do makes none.
func (q *quarter) ask() bool {
	q.busy.Add(1)
	select {
	case q.todo <- struct{}{}:
		return true
	default:
		q.busy.Done()
		return false
	}
}

// await returns when all changes that were asked for are made.
func (q *quarter) await() { q.busy.Wait() }

// step makes a change, of those that can be made.
func (q *quarter) step() {
	weights := [kinds]int{
		externalIPs: 60, annotations: 30, servicesMade: 20, servicesDeleted: 8, podsStarted: 16, podsEnded: 14, labelsOfPods: 14,
		slicesMade: 10, slicesDeleted: 8, namespaces: 1, nodes: 10,
	}
	makers := [kinds]func() (bool, error){
		q.changeExternalIPs, q.annotate, q.makeService, q.deleteService, q.startPod, q.endPod, q.relabel, q.makeSlice, q.deleteSlice, q.moveAway, q.touchNode,
	}
	for {
		n := q.r.IntN(191)
		k := kind(0)
		for ; n >= weights[k]; k++ {
			n -= weights[k]
		}
		made, err := makers[k]()
		if err != nil {
			q.Errorf("%s, %s: %v", q.name, k, err)
			return
		}
		if made {
			q.changes[k].Add(1)
			return
		}
	}
}

// one returns an element of a map; ok is false if there is none.
func one[V any](q *quarter, m map[string]V) (key string, ok bool) {
	if len(m) == 0 {
		return "", false
	}
	keys := slices.Sorted(maps.Keys(m)) // in an order that is not random by itself
	return keys[q.r.IntN(len(keys))], true
}

// addresses are some for a Service, of those that all fight over.
func (q *quarter) addresses() (result []string) {
	for _, i := range q.r.Perm(8)[:1+q.r.IntN(3)] {
		result = append(result, q.ips(1+i)...)
	}
	q.r.Shuffle(len(result), func(i, j int) { result[i], result[j] = result[j], result[i] })
	return result[:1+q.r.IntN(len(result))]
}

func (q *quarter) changeExternalIPs() (bool, error) {
	name, ok := one(q, q.services)
	if !ok {
		return false, nil
	}
	return true, q.patch(name, func(s *v1.Service) { s.Spec.ExternalIPs = q.addresses() })
}

func (q *quarter) annotate() (bool, error) {
	name, ok := one(q, q.services)
	if !ok {
		return false, nil
	}
	return true, q.patch(name, func(s *v1.Service) {
		ips := s.Spec.ExternalIPs
		s.Annotations = map[string]string{egress.Annotation: []string{"true", "true", "false", ips[q.r.IntN(len(ips))], "nonsense"}[q.r.IntN(5)]}
	})
}

// patch changes a Service.
func (q *quarter) patch(name string, change func(*v1.Service)) error {
	svc := q.services[name].DeepCopy()
	change(svc)
	q.noteService(svc)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": svc.Annotations}, "spec": map[string]any{"externalIPs": svc.Spec.ExternalIPs},
	})
	if err != nil {
		return err
	}
	svc, err = q.Client().CoreV1().Services(q.name).Patch(q.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil {
		q.services[name] = svc
	}
	return err
}

// noteService notes what a Service is about to be.
func (q *quarter) noteService(svc *v1.Service) {
	claim := claimOf(svc, q.config)
	q.history.note(fact{claim: &claim})
}

// labelApp is the one by which Services select pods, app the value of number n.
func labelApp(n int) map[string]string { return app(fmt.Sprintf("app-%d", n)) }

const apps = 4

func (q *quarter) makeService() (bool, error) {
	n := q.r.IntN(apps)
	name := fmt.Sprintf("svc-%d", n)
	if q.services[name] != nil {
		return false, nil
	}
	svc := cluster.NewService(q.name, name, labelApp(n), q.addresses(), tcp80, udp80)
	expected := svc.DeepCopy()
	expected.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second)) // or later
	expected.Spec.ClusterIP = cluster.ServiceCIDRV4.Addr().String()               // or another: without one it claims nothing
	q.noteService(expected)
	svc, err := q.CreateService(q.Context(), svc)
	if err == nil {
		q.services[name] = svc
	}
	return true, err
}

func (q *quarter) deleteService() (bool, error) {
	name, ok := one(q, q.services)
	if !ok {
		return false, nil
	}
	q.history.note(fact{claim: &claim{namespace: q.name, name: name}})
	delete(q.services, name)
	return true, q.Client().CoreV1().Services(q.name).Delete(q.Context(), name, metav1.DeleteOptions{})
}

func (q *quarter) startPod() (bool, error) {
	if q.soak.pods.Add(1) > mostPods {
		q.soak.pods.Add(-1)
		return false, nil
	}
	q.count++
	name := fmt.Sprintf("pod-%d", q.count)
	labels := labelApp(q.r.IntN(apps + 1)) // of which the last is nobody's
	q.pods[name] = labels["app"]
	pod := cluster.NewPod(q.name, name, q.members[q.r.IntN(len(q.members))].Name, labels)
	_, err := q.Client().CoreV1().Pods(q.name).Create(q.Context(), pod, metav1.CreateOptions{})
	return true, err
}

func (q *quarter) endPod() (bool, error) {
	name, ok := one(q, q.pods)
	if !ok {
		return false, nil
	}
	// One that does not run yet is nobody's endpoint, and is noted if it comes to that.
	if host := q.kubeletsPods.Host(q.name, name); host != nil {
		q.history.leave(host.V4, host.V6)
	}
	delete(q.pods, name)
	q.soak.pods.Add(-1)
	return true, q.Client().CoreV1().Pods(q.name).Delete(q.Context(), name, metav1.DeleteOptions{})
}

func (q *quarter) relabel() (bool, error) {
	name, ok := one(q, q.pods)
	host := q.kubeletsPods.Host(q.name, name)
	if !ok || host == nil {
		return false, nil
	}
	labels := labelApp(q.r.IntN(apps + 1))
	for _, addr := range []netip.Addr{host.V4, host.V6} {
		q.history.note(fact{lodger: &lodger{addr: addr, namespace: q.name, app: labels["app"]}})
	}
	q.pods[name] = labels["app"]
	patch := fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, labels["app"])
	_, err := q.Client().CoreV1().Pods(q.name).Patch(q.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return true, err
}

// makeSlice adds an address of some pod to a Service, by hand: of its own, or, which is refused, of another
// namespace. Both may go and their address be another pod's while the slice is there.
func (q *quarter) makeSlice() (bool, error) {
	if len(q.slices) == 3 {
		return false, nil
	}
	of := q
	if q.r.IntN(3) == 0 {
		of = q.quarters[q.r.IntN(len(q.quarters))]
	}
	hosts := q.kubeletsPods.In(of.name)
	name, ok := one(q, hosts)
	if !ok {
		return false, nil
	}
	addr := []netip.Addr{hosts[name].V4, hosts[name].V6}[q.r.IntN(2)]
	q.count++
	service := fmt.Sprintf("svc-%d", q.r.IntN(apps))
	slice := newEndpointSlice(q.name, fmt.Sprintf("by-hand-%d", q.count), service, addr.String())
	slice.Labels[discovery.LabelManagedBy] = "nobody"
	if of != q || q.r.IntN(2) == 0 {
		slice.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: of.name, Name: name}
	}
	if of == q {
		q.history.note(fact{lodger: &lodger{addr: addr, namespace: q.name, service: service}})
	}
	q.slices[slice.Name] = addr
	_, err := q.Client().DiscoveryV1().EndpointSlices(q.name).Create(q.Context(), slice, metav1.CreateOptions{})
	return true, err
}

func (q *quarter) deleteSlice() (bool, error) {
	name, ok := one(q, q.slices)
	if !ok {
		return false, nil
	}
	q.history.leave(q.slices[name])
	delete(q.slices, name)
	return true, q.Client().DiscoveryV1().EndpointSlices(q.name).Delete(q.Context(), name, metav1.DeleteOptions{})
}

// moveAway deletes the namespace, with all that is in it, and makes it again.
func (q *quarter) moveAway() (bool, error) {
	if !q.mayMove.CompareAndSwap(true, false) {
		return false, nil
	}
	q.moving.Store(true)
	defer q.moving.Store(false)
	for name := range q.services {
		q.history.note(fact{claim: &claim{namespace: q.name, name: name}})
	}
	for _, host := range q.kubeletsPods.In(q.name) {
		q.history.leave(host.V4, host.V6)
	}
	for _, addr := range q.slices {
		q.history.leave(addr)
	}
	q.soak.pods.Add(-int32(len(q.pods)))
	q.empty()
	if err := q.DeleteNamespace(q.Context(), q.name); err != nil {
		return true, err
	}
	_, err := q.CreateNamespace(q.Context(), q.name)
	return true, err
}

// touchNode changes of a Node what nobody cares about.
func (q *quarter) touchNode() (bool, error) {
	q.count++
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/%s":"%d"}}}`, q.name, q.count)
	_, err := q.Client().CoreV1().Nodes().Patch(q.Context(), q.members[q.r.IntN(len(q.members))].Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return true, err
}
