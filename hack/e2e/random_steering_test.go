package e2e

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/cluster"
)

// TestSteering_RandomEvents: Services, EndpointSlices, pods, holders of addresses, Leases and processes change at random,
// and the API server is away for moments. At no time does a packet of a bound pod leave a node under the address of
// a pod or a node. Every few events there is a quiet moment, in which the nodes hold what is right. SEED=N makes the same
// choices again; how they meet is up to the machine.
func TestSteering_RandomEvents(t *testing.T) {
	belongsTo(t, usual)
	w := newRandomWorld(t)
	events := by(t, 120, 120, 1000)
	began := time.Now()
	for made := 0; made < events; {
		for range 8 + w.r.IntN(8) {
			w.event()
			made++
			time.Sleep(time.Duration(w.r.Int64N(int64(200 * time.Millisecond)))) // the moment of the next
			w.judge()
		}
		w.quiet()
	}
	w.end(slices.Collect(maps.Keys(w.sessions))...)
	w.ending.Wait()
	w.must(w.wire.Close())
	kinds := map[string]int{}
	for _, line := range w.done {
		kinds[strings.Fields(line)[1]]++
	}
	t.Logf("%d events in %s, the longest wait for a quiet moment %s: %v", events, since(began), w.slowest.Round(10*time.Millisecond), kinds)
	t.Logf("%d packets of bound pods as egress IPs, 0 others; dropped: %s", w.right, dropsTold(w.allDrops()))
	if w.right < 20*events {
		t.Errorf("only %d packets were looked at, want %d", w.right, 20*events)
	}
}

// event makes an event, of those that can be made.
func (w *randomWorld) event() {
	w.Helper()
	kinds := []struct {
		weight int
		make   func() bool
	}{
		{30, w.moveHolder}, {4, w.takeAddress}, {4, w.dropAddress}, {4, w.secondHolder}, {12, w.changeClaim}, {6, w.switchEgress},
		{6, w.makeService}, {3, w.deleteService}, {9, w.startPod}, {7, w.endPod}, {5, w.relabel}, {5, w.makeSlice}, {4, w.deleteSlice},
		{5, w.killProcess}, {4, w.stopProcess}, {3, w.startProcess}, {6, w.changeLease}, {5, w.cutAPI}, {5, w.healAPI},
	}
	total := 0
	for _, kind := range kinds {
		total += kind.weight
	}
	for {
		n := w.r.IntN(total)
		for _, kind := range kinds {
			if n -= kind.weight; n < 0 {
				if kind.make() {
					return
				}
				break
			}
		}
	}
}

// anyOf returns a random element; ok is false if there is none.
func anyOf[T any](w *randomWorld, all []T) (one T, ok bool) {
	if len(all) == 0 {
		return one, false
	}
	return all[w.r.IntN(len(all))], true
}

func (w *randomWorld) anyMember() *member { return w.members[w.r.IntN(len(w.members))] }

// numbers are those of addresses that so many nodes have.
func (w *randomWorld) numbers(holders int) (numbers []int) {
	for number := range w.held {
		if len(w.held[number]) == holders {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// others are the nodes without an address.
func (w *randomWorld) others(number int) []*member {
	return slices.DeleteFunc(slices.Clone(w.members), func(m *member) bool { return slices.Contains(w.held[number], m) })
}

func (w *randomWorld) moveHolder() bool {
	number, ok := anyOf(w, w.numbers(1))
	if !ok {
		return false
	}
	from := w.held[number][0]
	to, _ := anyOf(w, w.others(number))
	w.note("move %d from %s to %s", number, from.Name, to.Name)
	w.drop(number, from)
	w.take(number, to)
	return true
}

func (w *randomWorld) takeAddress() bool {
	number, ok := anyOf(w, w.numbers(0))
	if !ok {
		return false
	}
	to := w.anyMember()
	w.note("take %d by %s", number, to.Name)
	w.take(number, to)
	return true
}

// dropAddress takes an address from a node: one of two that have it, or the only one.
func (w *randomWorld) dropAddress() bool {
	number, ok := anyOf(w, append(w.numbers(2), w.numbers(1)...))
	if !ok {
		return false
	}
	from, _ := anyOf(w, w.held[number])
	w.note("drop %d by %s, of %d", number, from.Name, len(w.held[number]))
	w.drop(number, from)
	return true
}

func (w *randomWorld) secondHolder() bool {
	number, ok := anyOf(w, w.numbers(1))
	if !ok {
		return false
	}
	to, _ := anyOf(w, w.others(number))
	w.note("second holder of %d: %s", number, to.Name)
	w.take(number, to)
	return true
}

func (w *randomWorld) changeClaim() bool {
	name, _ := anyOf(w, slices.Sorted(maps.Keys(w.services)))
	number := w.r.IntN(poolSize)
	w.note("claim %d by %s", number, name)
	w.services[name] = number
	w.must(w.patch(w.Context(), randomly, name, map[string]any{"spec": map[string]any{"externalIPs": w.lanIPs(firstOfPool + number)}}))
	return true
}

// unsteady are the Services but the one whose pods are always bound.
func (w *randomWorld) unsteady() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.services)), func(name string) bool { return name == steady })
}

// boundBy are the pods that a Service may bind.
func (w *randomWorld) boundBy(service string) (names []string) {
	for name, of := range w.pods {
		if of == service {
			names = append(names, name)
		}
	}
	for _, slice := range w.slices {
		if slice.service == service {
			names = append(names, w.at(slice.addr)...)
		}
	}
	return names
}

// at are the pods in sessions at an address, but those that are always bound.
func (w *randomWorld) at(addr netip.Addr) (names []string) {
	for name, s := range w.sessions {
		if w.pods[name] != steady && (s.pod.V4 == addr || s.pod.V6 == addr) {
			names = append(names, name)
		}
	}
	return names
}

func (w *randomWorld) switchEgress() bool {
	name, ok := anyOf(w, w.unsteady())
	if !ok {
		return false
	}
	on := w.r.IntN(3) > 0
	w.note("switch %s, on: %v", name, on)
	if !on {
		w.end(w.boundBy(name)...)
	}
	w.must(w.patch(w.Context(), randomly, name, map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{"network.openshift.io/egress-snat": fmt.Sprint(on)},
	}}))
	return true
}

var randomServices = []string{"svc-0", "svc-1", "svc-2"}

func (w *randomWorld) makeService() bool {
	name, _ := anyOf(w, randomServices)
	if _, is := w.services[name]; is {
		return false
	}
	number := w.r.IntN(poolSize)
	w.note("service %s with %d", name, number)
	w.service(randomly, name, w.lanIPs(firstOfPool+number), nil, tcp80, udp80)
	w.services[name] = number
	return true
}

func (w *randomWorld) deleteService() bool {
	name, ok := anyOf(w, w.unsteady())
	if !ok {
		return false
	}
	w.note("no-service %s", name)
	w.end(w.boundBy(name)...)
	w.world.deleteService(randomly, name)
	delete(w.services, name)
	return true
}

// passing are the pods that come and go.
func (w *randomWorld) passing() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.pods)), func(name string) bool { return w.pods[name] == steady })
}

func (w *randomWorld) startPod() bool {
	if len(w.passing()) == mostRandomPods {
		return false
	}
	w.count++
	name, on := fmt.Sprintf("pod-%d", w.count), w.anyMember()
	service, _ := anyOf(w, randomServices)
	w.note("pod %s of %s on %s", name, service, on.Name)
	_, err := w.Client().CoreV1().Pods(randomly).Create(w.Context(), cluster.NewPod(randomly, name, on.Name, app(service)), metav1.CreateOptions{})
	w.must(err)
	w.pods[name] = service
	return true
}

func (w *randomWorld) endPod() bool {
	name, ok := anyOf(w, w.passing())
	if !ok {
		return false
	}
	w.note("no-pod %s", name)
	w.end(name)
	w.must(w.Client().CoreV1().Pods(randomly).Delete(w.Context(), name, metav1.DeleteOptions{}))
	delete(w.pods, name)
	return true
}

func (w *randomWorld) relabel() bool {
	name, ok := anyOf(w, w.passing())
	if !ok {
		return false
	}
	service, _ := anyOf(w, randomServices)
	w.note("relabel %s to %s", name, service)
	w.end(name)
	patch := fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, service)
	_, err := w.Client().CoreV1().Pods(randomly).Patch(w.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err)
	w.pods[name] = service
	return true
}

// makeSlice adds a pod that runs to another Service than selects it.
func (w *randomWorld) makeSlice() bool {
	service, ok := anyOf(w, w.unsteady())
	name, _ := anyOf(w, slices.Sorted(maps.Keys(w.pods)))
	host := w.kubeletsPods.Host(randomly, name)
	if !ok || host == nil || len(w.slices) == 3 {
		return false
	}
	w.count++
	addr := []netip.Addr{host.V4, host.V6}[w.r.IntN(2)]
	slice := newEndpointSlice(randomly, fmt.Sprintf("by-hand-%d", w.count), service, addr.String())
	slice.Labels["endpointslice.kubernetes.io/managed-by"] = "nobody"
	w.note("slice %s has %s in %s", slice.Name, name, service)
	_, err := w.Client().DiscoveryV1().EndpointSlices(randomly).Create(w.Context(), slice, metav1.CreateOptions{})
	w.must(err)
	w.slices[slice.Name] = handMadeSlice{service, addr}
	return true
}

func (w *randomWorld) deleteSlice() bool {
	name, ok := anyOf(w, slices.Sorted(maps.Keys(w.slices)))
	if !ok {
		return false
	}
	w.note("no-slice %s", name)
	w.end(w.at(w.slices[name].addr)...)
	err := w.Client().DiscoveryV1().EndpointSlices(randomly).Delete(w.Context(), name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) { // it went with its Service
		w.must(err)
	}
	delete(w.slices, name)
	return true
}

func (w *randomWorld) killProcess() bool {
	m := w.anyMember()
	w.note("kill %s", m.Name)
	w.restart(m)
	return true
}

// stopProcess leaves a node without its process for some events.
func (w *randomWorld) stopProcess() bool {
	m := w.anyMember()
	if w.down[m] || !strings.Contains(m.Printed.String(), inPlace) {
		return false
	}
	w.note("stop %s", m.Name)
	m.Stop()
	w.down[m] = true
	return true
}

func (w *randomWorld) startProcess() bool {
	for _, m := range w.members {
		if w.down[m] {
			w.note("start %s", m.Name)
			w.restart(m)
			return true
		}
	}
	return false
}

func (w *randomWorld) restart(m *member) {
	w.Helper()
	m.Kill()
	m.Anew()
	delete(w.down, m)
}

// changeLease does to a Lease what only its node should do.
func (w *randomWorld) changeLease() bool {
	m, leases := w.anyMember(), w.Client().CoordinationV1().Leases("origin-node")
	entries := `{}`
	for _, ip := range w.lanIPs(firstOfPool + w.r.IntN(poolSize)) {
		entries = strings.TrimSuffix(entries, "}") + fmt.Sprintf(`,%q:{"epoch":%d}}`, ip, 1+w.r.IntN(50))
	}
	text, _ := anyOf(w, []string{"", "nonsense", "{}", strings.Replace(entries, ",", "", 1)})
	w.note("lease of %s: %q", m.Name, text)
	var err error
	if text == "" {
		err = leases.Delete(w.Context(), m.Name, metav1.DeleteOptions{})
	} else {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, egressAddresses, text)
		_, err = leases.Patch(w.Context(), m.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	if !apierrors.IsNotFound(err) {
		w.must(err)
	}
	return true
}

// cutAPI takes the API server away from all nodes, or one of them, until heal.
func (w *randomWorld) cutAPI() bool {
	if w.away {
		return false
	}
	members := w.members
	if w.r.IntN(2) == 0 {
		members = []*member{w.anyMember()}
	}
	w.note("cut %d nodes off from the API server", len(members))
	for _, m := range members {
		m.link.Refuse()
		m.link.Reset()
	}
	w.away = true
	return true
}

func (w *randomWorld) healAPI() bool {
	if !w.away {
		return false
	}
	w.note("heal")
	w.heal()
	return true
}

func (w *randomWorld) heal() {
	w.Helper()
	for _, m := range w.members {
		w.must(m.link.Heal())
	}
	w.away = false
}
