package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/oracle"
)

// randomWorld is a cluster in which everything about steering changes. Pods in a session are bound all the time, and each
// packet that they send outside is looked at where it leaves a node.
type randomWorld struct {
	*world
	r    *rand.Rand
	wire *lab.Wire
	// done are the events, for a failure's message.
	done []string

	// held has the nodes that have an address of the pool, by its number.
	held [poolSize][]*member
	// services have the number of the address that they claim, pods the Service that selects them, slices made by hand
	// their Service and their endpoint.
	services map[string]int
	pods     map[string]string
	slices   map[string]handMadeSlice
	count    int
	down     map[*member]bool
	away     bool

	sessions map[string]*session // by the pod's name
	ports    int
	ending   sync.WaitGroup
	judged   map[lab.Sighting]int
	right    int
	slowest  time.Duration // of all quiet moments
}

type handMadeSlice struct {
	service string
	addr    netip.Addr // of a pod; perhaps of another one by now
}

const (
	// poolSize is how many egress IPs of each family Services claim, each of the nodes' network.
	poolSize, firstOfPool = 5, 100
	// the namespace, and the Service whose pods are always bound.
	randomly, steady = "random", "steady"
	// firstSessionPort is the port of the first session; each has its own, by which packets tell whose they are.
	firstSessionPort = 20000
	mostRandomPods   = 7
)

// session is a time in which a pod is bound, and asks a host outside that nobody else asks at this port.
type session struct {
	pod     *lab.Host
	port    uint16
	traffic *lab.Traffic
	servers []*lab.Server
	over    atomic.Bool
}

func newRandomWorld(t *testing.T) *randomWorld {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SEED=%q: %v", text, err)
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	s := settings{onLAN: true, nftables: r.IntN(2) == 0}
	t.Logf("SEED=%d; mode nftables: %v", seed, s.nftables)
	w := &randomWorld{
		world: newWorld(t, s), r: r, services: map[string]int{}, pods: map[string]string{}, slices: map[string]handMadeSlice{},
		down: map[*member]bool{}, sessions: map[string]*session{}, judged: map[lab.Sighting]int{},
	}
	wire, err := w.Watch()
	w.must(err)
	w.wire = wire
	t.Cleanup(func() {
		w.end(slices.Collect(maps.Keys(w.sessions))...)
		w.ending.Wait()
		_ = wire.Close() // it may be closed
	})
	w.namespace(randomly)
	for number := range poolSize {
		w.take(number, w.members[number%len(w.members)])
	}
	w.service(randomly, steady, w.lanIPs(firstOfPool), nil, tcp80, udp80)
	w.services[steady] = 0
	for i, m := range w.members {
		name := fmt.Sprintf("%s-%d", steady, i+1)
		w.runPod(randomly, name, m, app(steady))
		w.pods[name] = steady
	}
	w.bound(randomly, steady, len(w.members))
	w.quiet()
	return w
}

// pool are all egress IPs.
func (w *randomWorld) pool() (all []netip.Addr) {
	for number := range poolSize {
		all = append(all, addrs(w.lanIPs(firstOfPool+number))...)
	}
	return all
}

func (w *randomWorld) take(number int, m *member) {
	w.Helper()
	w.give(w.lanIPs(firstOfPool+number), m.Host)
	w.held[number] = append(w.held[number], m)
}

func (w *randomWorld) drop(number int, m *member) {
	w.Helper()
	for _, addr := range addrs(w.lanIPs(firstOfPool + number)) {
		w.must(m.Host.DropAddr(addr))
	}
	w.held[number] = slices.DeleteFunc(w.held[number], func(other *member) bool { return other == m })
}

// begin begins the session of a pod that is bound.
func (w *randomWorld) begin(name string, pod *lab.Host) {
	w.Helper()
	s := &session{pod: pod, port: uint16(firstSessionPort + w.ports)}
	w.ports++
	host := []*lab.Host{w.Outside(), w.Far()}[w.ports%2]
	for _, protocol := range []string{"tcp4", "tcp6", "udp4", "udp6"} {
		server, err := host.ServeWhoami(protocol, int(s.port))
		w.must(err)
		s.servers = append(s.servers, server)
	}
	pool := w.pool()
	s.traffic = lab.StartTraffic(lab.TrafficConfig{To: at(host, s.port), Rate: 25, Timeout: time.Second, Check: func(q lab.Question) error {
		if q.Err == nil && !s.over.Load() && !slices.Contains(pool, q.Seen) {
			return fmt.Errorf("%s is bound", s.pod.Name)
		}
		return nil
	}}, pod)
	w.sessions[name] = s
}

// end ends the sessions of pods, before they may lose their binding. Those that are always bound go on.
func (w *randomWorld) end(names ...string) {
	w.Helper()
	w.judge()
	for _, name := range names {
		s := w.sessions[name]
		if s == nil {
			continue
		}
		s.over.Store(true)
		delete(w.sessions, name)
		w.ending.Go(func() {
			if sum := s.traffic.Stop(); sum.Wrong > 0 {
				w.Errorf("%s: %s\n%s", name, sum, w.story())
			}
			for _, server := range s.servers {
				_ = server.Close()
			}
		})
	}
}

// judge looks at the packets that were sent since the last time: those of sessions must have an egress IP.
func (w *randomWorld) judge() {
	w.Helper()
	seen, pool := w.wire.Seen(), w.pool()
	ports, own := map[uint16]string{}, map[netip.Addr]string{}
	for name, s := range w.sessions {
		ports[s.port], own[s.pod.V4], own[s.pod.V6] = name, name, name
	}
	for sighting, packets := range seen {
		name, inSession := ports[sighting.To.Port()]
		packets -= w.judged[sighting]
		if !inSession { // such as an ICMP error
			name, inSession = own[sighting.Source]
		}
		switch {
		case !inSession || packets == 0 || !slices.Contains([]netip.Addr{w.Outside().V4, w.Outside().V6, w.Far().V4, w.Far().V6}, sighting.To.Addr()):
		case slices.Contains(pool, sighting.Source):
			w.right += packets
		default:
			w.Fatalf("%d packets of %s (%s), which is bound: %s from %s to %s, by %s; the first of all such began with %s\n%s", packets, name, w.sessions[name].pod.Name,
				sighting.Protocol, sighting.Source, sighting.To, sighting.Node.Name, w.wire.First(sighting), w.story())
		}
	}
	w.judged = seen
}

// story are the last events.
func (w *randomWorld) story() string {
	return "the last events:\n" + strings.Join(w.done[max(0, len(w.done)-25):], "\n")
}

// quiet ends all faults, waits until the nodes hold what hack/oracle asks of them and every bound pod is answered as its
// egress IP if there is one node that has this, and begins a session for each bound pod.
func (w *randomWorld) quiet() {
	w.Helper()
	began := time.Now()
	w.heal()
	for m := range w.down {
		w.restart(m)
	}
	for _, m := range w.members {
		m.Ready()
	}
	w.podsAreEndpoints()
	w.settled()
	objects, err := w.objects()
	w.must(err)
	bound := map[netip.Addr]oracle.Binding{}
	for _, b := range objects.Bindings() {
		if b.Protocol == "udp" {
			bound[b.Pod] = b
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		pod := w.pod(randomly, name)
		four, is := bound[pod.V4]
		six, too := bound[pod.V6]
		if !is || !too {
			continue
		}
		if w.sessions[name] == nil {
			w.begin(name, pod)
		}
		for _, to := range w.outside() {
			w.answeredAs(pod, to, map[bool]netip.Addr{true: four.EgressIP, false: six.EgressIP}[to.Addr().Is4()])
		}
	}
	w.judge()
	w.slowest = max(w.slowest, time.Since(began))
	w.note("quiet, after %s", since(began))
}

// answeredAs waits until a pod is answered as an egress IP, if exactly one node has that.
func (w *randomWorld) answeredAs(pod *lab.Host, to netip.AddrPort, want netip.Addr) {
	w.Helper()
	index := slices.Index(w.pool(), want)
	if index < 0 {
		w.Errorf("%s is bound to %s, which is none of the egress IPs", pod.Name, want)
		return
	}
	number := index / len(w.families)
	if len(w.held[number]) != 1 {
		return
	}
	w.eventually(func() error {
		seen, err := w.askWithin(time.Second, "udp", pod, to)
		if err == nil && seen != want {
			err = fmt.Errorf("%s is seen as %s, want %s, which %s has", pod.Name, seen, want, w.held[number][0].Name)
		}
		return err
	})
}

// podsAreEndpoints waits until the Services that there are have their pods, and no others.
func (w *randomWorld) podsAreEndpoints() {
	w.Helper()
	w.eventually(func() error {
		objects, err := w.objects()
		if err != nil {
			return err
		}
		for name := range w.services {
			var want, got []netip.Addr
			for pod, service := range w.pods {
				host := w.kubeletsPods.Host(randomly, pod)
				if host == nil {
					return fmt.Errorf("pod %s does not run yet", pod)
				}
				if service == name {
					want = append(want, host.V4, host.V6)
				}
			}
			for _, slice := range objects.EndpointSlices {
				if slice.Labels[serviceLabel] == name && w.slices[slice.Name] == (handMadeSlice{}) {
					for _, e := range slice.Endpoints {
						got = append(got, addrs(e.Addresses)...)
					}
				}
			}
			slices.SortFunc(want, netip.Addr.Compare)
			slices.SortFunc(got, netip.Addr.Compare)
			if !slices.Equal(want, got) {
				return fmt.Errorf("the endpoints of %s are %v, want %v", name, got, want)
			}
		}
		return nil
	})
}

const serviceLabel = "kubernetes.io/service-name"

func (w *randomWorld) note(format string, args ...any) {
	w.done = append(w.done, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}
