package e2e

import (
	"context"
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
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/origin-node/hack/cluster"
	egresscluster "github.com/openshift/origin-node/pkg/egress/cluster"
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
	addressesMoved
	drains
	crashes
	kinds
)

func (k kind) String() string {
	return [...]string{"external IPs", "annotations", "Services made", "deleted", "pods started", "ended", "relabelled",
		"EndpointSlices made by hand", "deleted", "namespaces deleted and made again", "Nodes", "addresses on nodes",
		"nodes drained", "processes killed"}[k]
}

// changer changes what is in its namespace, one thing after another. The changers compete for few
// addresses.
type changer struct {
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

func newChanger(s *soak, name string, seed uint64) *changer {
	s.Helper()
	c := &changer{soak: s, name: name, r: rand.New(rand.NewPCG(seed, uint64(time.Now().UnixNano()))), todo: make(chan struct{}, 3)}
	c.empty()
	s.namespace(name)
	go func() {
		for range c.todo {
			func() {
				defer c.busy.Done() // also when the test ends here
				c.step()
			}()
		}
	}()
	s.Cleanup(func() {
		c.await()
		close(c.todo)
	})
	return c
}

func (c *changer) empty() {
	c.services, c.pods, c.slices = map[string]*v1.Service{}, map[string]string{}, map[string]netip.Addr{}
}

// ask asks for a change, and returns whether the changer will make it: one that is busy makes none.
func (c *changer) ask() bool {
	c.busy.Add(1)
	select {
	case c.todo <- struct{}{}:
		return true
	default:
		c.busy.Done()
		return false
	}
}

// await returns when all changes that were asked for are made.
func (c *changer) await() { c.busy.Wait() }

// step makes a change, of those that can be made.
func (c *changer) step() {
	weights := [kinds]int{
		externalIPs: 60, annotations: 30, servicesMade: 20, servicesDeleted: 8, podsStarted: 16, podsEnded: 14, labelsOfPods: 14,
		slicesMade: 10, slicesDeleted: 8, namespaces: 1, nodes: 10, addressesMoved: 10, drains: 1, crashes: 1,
	}
	makers := [kinds]func() (bool, error){
		c.changeExternalIPs, c.annotate, c.makeService, c.deleteService, c.startPod, c.endPod, c.relabel, c.makeSlice, c.deleteSlice, c.replaceNamespace, c.touchNode, c.moveAddress,
		c.drain, c.crash,
	}
	for {
		n := c.r.IntN(203)
		k := kind(0)
		for ; n >= weights[k]; k++ {
			n -= weights[k]
		}
		made, err := makers[k]()
		if err != nil {
			c.Errorf("%s, %s: %v", c.name, k, err)
			return
		}
		if made {
			c.changes[k].Add(1)
			return
		}
	}
}

// one returns an element of a map; ok is false if there is none.
func one[V any](c *changer, m map[string]V) (key string, ok bool) {
	if len(m) == 0 {
		return "", false
	}
	keys := slices.Sorted(maps.Keys(m)) // in an order that is not random by itself
	return keys[c.r.IntN(len(keys))], true
}

// addresses are some for a Service, of those that all fight over.
func (c *changer) addresses() (result []string) {
	for _, i := range c.r.Perm(contested)[:1+c.r.IntN(3)] {
		result = append(result, c.ips(1+i)...)
	}
	c.r.Shuffle(len(result), func(i, j int) { result[i], result[j] = result[j], result[i] })
	return result[:1+c.r.IntN(len(result))]
}

func (c *changer) changeExternalIPs() (bool, error) {
	name, ok := one(c, c.services)
	if !ok {
		return false, nil
	}
	return true, c.patch(name, func(s *v1.Service) { s.Spec.ExternalIPs = c.addresses() })
}

func (c *changer) annotate() (bool, error) {
	name, ok := one(c, c.services)
	if !ok {
		return false, nil
	}
	return true, c.patch(name, func(s *v1.Service) {
		ips := s.Spec.ExternalIPs
		s.Annotations = map[string]string{egresscluster.Annotation: []string{"true", "true", "false", ips[c.r.IntN(len(ips))], "nonsense"}[c.r.IntN(5)]}
	})
}

// patch changes a Service.
func (c *changer) patch(name string, change func(*v1.Service)) error {
	svc := c.services[name].DeepCopy()
	change(svc)
	c.noteService(svc)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": svc.Annotations}, "spec": map[string]any{"externalIPs": svc.Spec.ExternalIPs},
	})
	if err != nil {
		return err
	}
	svc, err = c.Client().CoreV1().Services(c.name).Patch(c.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil {
		c.services[name] = svc
	}
	return err
}

// noteService notes what a Service is about to be.
func (c *changer) noteService(svc *v1.Service) {
	claim := claimOf(svc, c.rules)
	c.history.note(fact{claim: &claim})
}

// labelApp is the one by which Services select pods, app the value of number n.
func labelApp(n int) map[string]string { return app(fmt.Sprintf("app-%d", n)) }

const apps = 4

func (c *changer) makeService() (bool, error) {
	n := c.r.IntN(apps)
	name := fmt.Sprintf("svc-%d", n)
	if c.services[name] != nil {
		return false, nil
	}
	svc := cluster.NewService(c.name, name, labelApp(n), c.addresses(), tcp80, udp80)
	expected := svc.DeepCopy()
	expected.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second)) // or later
	expected.Spec.ClusterIP = cluster.ServiceCIDRV4.Addr().String()               // or another: without one it claims nothing
	c.noteService(expected)
	svc, err := c.CreateService(c.Context(), svc)
	if err == nil {
		c.services[name] = svc
	}
	return true, err
}

func (c *changer) deleteService() (bool, error) {
	name, ok := one(c, c.services)
	if !ok {
		return false, nil
	}
	c.history.note(fact{claim: &claim{namespace: c.name, name: name}})
	delete(c.services, name)
	return true, c.Client().CoreV1().Services(c.name).Delete(c.Context(), name, metav1.DeleteOptions{})
}

func (c *changer) startPod() (bool, error) {
	if c.soak.pods.Add(1) > mostPods {
		c.soak.pods.Add(-1)
		return false, nil
	}
	c.count++
	name := fmt.Sprintf("pod-%d", c.count)
	labels := labelApp(c.r.IntN(apps + 1)) // no Service selects the last one
	c.pods[name] = labels["app"]
	pod := cluster.NewPod(c.name, name, c.members[c.r.IntN(len(c.members))].Name, labels)
	_, err := c.Client().CoreV1().Pods(c.name).Create(c.Context(), pod, metav1.CreateOptions{})
	return true, err
}

func (c *changer) endPod() (bool, error) {
	name, ok := one(c, c.pods)
	if !ok {
		return false, nil
	}
	// A pod that does not run yet is no endpoint. It is noted when it starts.
	if host := c.kubeletsPods.Host(c.name, name); host != nil {
		c.history.leave(host.V4, host.V6)
	}
	delete(c.pods, name)
	c.soak.pods.Add(-1)
	return true, c.Client().CoreV1().Pods(c.name).Delete(c.Context(), name, metav1.DeleteOptions{})
}

func (c *changer) relabel() (bool, error) {
	name, ok := one(c, c.pods)
	host := c.kubeletsPods.Host(c.name, name)
	if !ok || host == nil {
		return false, nil
	}
	labels := labelApp(c.r.IntN(apps + 1))
	for _, addr := range []netip.Addr{host.V4, host.V6} {
		c.history.note(fact{endpoint: &possibleEndpoint{addr: addr, namespace: c.name, app: labels["app"]}})
	}
	c.pods[name] = labels["app"]
	patch := fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, labels["app"])
	_, err := c.Client().CoreV1().Pods(c.name).Patch(c.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return true, err
}

// makeSlice adds an address of some pod to a Service, by hand: of its own, or, which is refused, of another
// namespace. Both may go and their address be another pod's while the slice is there.
func (c *changer) makeSlice() (bool, error) {
	if len(c.slices) == 3 {
		return false, nil
	}
	of := c
	if c.r.IntN(3) == 0 {
		of = c.changers[c.r.IntN(len(c.changers))]
	}
	hosts := c.kubeletsPods.In(of.name)
	name, ok := one(c, hosts)
	if !ok {
		return false, nil
	}
	addr := []netip.Addr{hosts[name].V4, hosts[name].V6}[c.r.IntN(2)]
	c.count++
	service := fmt.Sprintf("svc-%d", c.r.IntN(apps))
	slice := newEndpointSlice(c.name, fmt.Sprintf("by-hand-%d", c.count), service, addr.String())
	slice.Labels[discovery.LabelManagedBy] = "nobody"
	if of != c || c.r.IntN(2) == 0 {
		slice.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: of.name, Name: name}
	}
	if of == c {
		c.history.note(fact{endpoint: &possibleEndpoint{addr: addr, namespace: c.name, service: service}})
	}
	c.slices[slice.Name] = addr
	_, err := c.Client().DiscoveryV1().EndpointSlices(c.name).Create(c.Context(), slice, metav1.CreateOptions{})
	return true, err
}

func (c *changer) deleteSlice() (bool, error) {
	name, ok := one(c, c.slices)
	if !ok {
		return false, nil
	}
	c.history.leave(c.slices[name])
	delete(c.slices, name)
	return true, c.Client().DiscoveryV1().EndpointSlices(c.name).Delete(c.Context(), name, metav1.DeleteOptions{})
}

// replaceNamespace deletes the namespace, with all that is in it, and makes it again.
func (c *changer) replaceNamespace() (bool, error) {
	if !c.mayDelete.CompareAndSwap(true, false) {
		return false, nil
	}
	c.deleting.Store(true)
	defer c.deleting.Store(false)
	for name := range c.services {
		c.history.note(fact{claim: &claim{namespace: c.name, name: name}})
	}
	for _, host := range c.kubeletsPods.In(c.name) {
		c.history.leave(host.V4, host.V6)
	}
	for _, addr := range c.slices {
		c.history.leave(addr)
	}
	c.soak.pods.Add(-int32(len(c.pods)))
	c.empty()
	if err := c.DeleteNamespace(c.Context(), c.name); err != nil {
		return true, err
	}
	_, err := c.CreateNamespace(c.Context(), c.name)
	return true, err
}

// touchNode changes an annotation of a Node, which means nothing.
func (c *changer) touchNode() (bool, error) {
	c.count++
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/%s":"%d"}}}`, c.name, c.count)
	_, err := c.Client().CoreV1().Nodes().Patch(c.Context(), c.members[c.r.IntN(len(c.members))].Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return true, err
}

// moveAddress has a node take one of the addresses that all fight over, from the node that has it, or drops it. Whoever
// has it, it is no other identity.
func (c *changer) moveAddress() (bool, error) {
	number := c.r.IntN(contested)
	c.holding.Lock()
	defer c.holding.Unlock()
	from, to := c.holder[number], c.members[c.r.IntN(len(c.members))]
	if from == to {
		to = nil
	}
	c.holder[number] = to
	for _, addr := range addrs(c.ips(1 + number)) {
		var err error
		if from != nil {
			err = from.Host.DropAddr(addr)
		}
		if to != nil && err == nil {
			err = to.Host.TakeAddr(addr)
		}
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// drain has a node hand its addresses to others, for a moment.
func (c *changer) drain() (bool, error) {
	return c.fail(c.members, func(m *member) error {
		for _, command := range []string{"drain", "undrain"} {
			if _, errs, status := m.Openshift("egress", command, "--socket="+m.Socket()); status != 0 {
				return fmt.Errorf("%s of %s: status %d, %s", command, m.Name, status, errs)
			}
		}
		return nil
	})
}

// crash kills a node's process and starts it again. That of the first node lives on, and is the one whose memory is judged.
func (c *changer) crash() (bool, error) {
	return c.fail(c.members[1:], func(m *member) error {
		if err := c.worked(m); err != nil {
			return err
		}
		m.Kill()
		m.Start()
		return wait.PollUntilContextTimeout(c.Context(), 50*time.Millisecond, soon, true, func(context.Context) (bool, error) {
			_, _, status := m.Openshift("egress", "pool", "--socket="+m.Socket())
			return status == 0, nil
		})
	})
}

// fail does something to one of these nodes of the pool, unless that is being done.
func (c *changer) fail(members []*member, do func(*member) error) (bool, error) {
	if c.pool == nil || !c.failing.CompareAndSwap(false, true) {
		return false, nil
	}
	defer c.failing.Store(false)
	return true, do(members[c.r.IntN(len(members))])
}
