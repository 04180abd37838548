package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/oracle"
	"github.com/openshift/origin-node/pkg/egress/placement"
)

const (
	// changesPerSecond is what a burst of the soak aims at: busy changers get no more to do. A soak
	// makes leastPerSecond for each second of its duration, on a slow machine in more time than that.
	changesPerSecond, leastPerSecond = 50, 40
	// burst is how long there is no quiet moment.
	burst = 4 * time.Second
	// contested is how many addresses of each family Services fight over.
	contested = 8
	// mostPods is how many pods come and go at a time.
	mostPods = 24
	// warmUp is how many quiet moments come before those by which memory is judged, enough how
	// many those have to be.
	warmUp, enough = 2, 9
)

// soakTime is how long the soak takes with each scope.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	return lasts(t, 25*time.Second, 25*time.Second, 5*time.Minute)
}

// lasts returns how long something is done in each share, unless the environment variable DURATION says so.
func lasts(t *testing.T, ci, usually, all time.Duration) time.Duration {
	t.Helper()
	text, given := os.LookupEnv("DURATION")
	if !given || text == "" {
		return by(t, ci, usually, all)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("DURATION=%q: want a duration like 5m", text)
	}
	return d
}

// TestSoak_NothingGoesWrong: objects of all kinds change all the time, 50 times a second, and egress IPs move between nodes. Pods use only
// addresses that they may have. With the scope cluster, nodes of a pool hold the addresses of the pods that never change, and
// are drained, or their processes killed: no answer is lost. Every few seconds there is a quiet moment, in which each node
// holds its part of the plan, all of it with the scope cluster, and every pod leaves from the address that the plan gives it. The
// plan that follows changes is always the one for all objects. At the end the nodes need no more memory than at
// the beginning.
func TestSoak_NothingGoesWrong(t *testing.T) {
	belongsTo(t, usual)
	for _, scope := range soakScopes(t) {
		t.Run(string(scope), func(t *testing.T) { newSoak(t, scope).run(soakTime(t)) })
	}
}

// soakScopes are those that the environment variable SCOPE names: all if none.
func soakScopes(t *testing.T) []placement.Scope {
	t.Helper()
	all := []placement.Scope{placement.Node, placement.Cluster}
	switch scope := placement.Scope(os.Getenv("SCOPE")); {
	case scope == "":
		return all
	case slices.Contains(all, scope):
		return []placement.Scope{scope}
	default:
		t.Fatalf("SCOPE=%q: want node, cluster, or nothing for both", scope)
		return nil
	}
}

// run changes objects for a time, with quiet moments.
func (s *soak) run(duration time.Duration) {
	s.Helper()
	began := time.Now()
	s.quiet()
	least := int64(leastPerSecond * duration.Seconds())
	for time.Since(began) < duration || s.made() < least && time.Since(began) < 4*duration+soon {
		d := burst
		if left := duration - time.Since(began); left > 0 {
			d = min(d, max(time.Second, left))
		}
		s.change(d)
		s.quiet()
	}
	s.report(time.Since(began), least)
}

// soak is a world in which everything changes.
type soak struct {
	*world
	changers []*changer
	// residents never change, and neither do the addresses that they use.
	residents, others *lab.Traffic
	history           history
	rules             oracle.Arguments // of all nodes

	// pool is the same world with addresses that the nodes themselves put on one of them; nil with the scope node. failing: a
	// node is drained, or its process was killed.
	pool    *poolWorld
	failing atomic.Bool

	// holder is the node that has an address that Services fight over; nil if none has.
	holding sync.Mutex
	holder  [contested]*member

	pods atomic.Int32
	// mayDelete: no namespace has been deleted in this burst. deleting: one is being deleted.
	mayDelete, deleting atomic.Bool
	changes             [kinds]atomic.Int64
	// changing is how long changes were made for, latencies how long the nodes took each time
	// to be up to date after the last one.
	changing  time.Duration
	latencies []time.Duration
	samples   map[string][]sampled // by node
}

func newSoak(t *testing.T, scope placement.Scope) *soak {
	t.Helper()
	mode := os.Getenv("MODE")
	if mode != "" && mode != "iptables" && mode != "nftables" {
		t.Fatalf("MODE=%q: want iptables or nftables", mode)
	}
	config := settings{nftables: mode == "nftables", arguments: fmt.Sprintf("\nprofiling: [\"true\"]\negress-snat-audit: [\"true\"]\negress-snat-scope: [%s]", scope)}
	if scope == placement.Cluster {
		config.onLAN = true
		config.arguments += poolArguments
	}
	s := &soak{world: newIdleWorld(t, config), samples: map[string][]sampled{}}
	own := s.ips(99)
	if scope == placement.Cluster {
		own = s.lanIPs(100)
		s.pool, s.assignable = &poolWorld{&steeredWorld{world: s.world}}, addrs(own)
		s.joinPool()
	}
	s.rules = s.members[0].RuleArguments()
	s.kubeletsPods.Started, s.kubeletsPods.Stopping = s.podStarted, s.podEnding
	for _, m := range s.members {
		m.Start()
	}
	for _, m := range s.members {
		m.Ready()
	}
	residents := s.shop(own...)
	if s.pool != nil {
		for _, ip := range own {
			s.pool.holderOf(ip, nil)
		}
	}
	var known identities
	known.expect(own, residents...)
	for i, m := range s.members {
		plain := s.runPod("shop", fmt.Sprintf("plain-%d", i+1), m, nil)
		known.expect([]string{m.Host.V4.String(), m.Host.V6.String()}, plain)
		residents = append(residents, plain)
	}
	s.history.begin()
	s.residents = lab.StartTraffic(lab.TrafficConfig{To: s.outside(), Rate: 40, Timeout: answered, Check: known.check}, residents...)
	s.others = lab.StartTraffic(lab.TrafficConfig{To: s.outside(), Rate: 120, Timeout: 5 * time.Second, Check: s.history.check})
	t.Cleanup(func() {
		s.residents.Stop()
		s.others.Stop()
	})
	for i := range 8 { // several, so that one that waits for a busy API server does not delay the others
		s.changers = append(s.changers, newChanger(s, fmt.Sprintf("soak-%d", i), uint64(i)))
	}
	return s
}

// podStarted and podEnding are told of each pod.
func (s *soak) podStarted(pod *v1.Pod, host *lab.Host) {
	if pod.Namespace == "shop" {
		return
	}
	for _, addr := range []netip.Addr{host.V4, host.V6} {
		s.history.note(fact{endpoint: &possibleEndpoint{addr: addr, namespace: pod.Namespace, app: pod.Labels["app"]}})
	}
	s.others.Add(host)
}

func (s *soak) podEnding(pod *v1.Pod, host *lab.Host) {
	if pod.Namespace != "shop" {
		s.others.Remove(host)
	}
}

// change makes changes for a time.
func (s *soak) change(d time.Duration) {
	s.Helper()
	began := time.Now()
	tick := time.NewTicker(time.Second / changesPerSecond)
	defer tick.Stop()
	r := rand.New(rand.NewPCG(uint64(began.UnixNano()), 1))
	// A namespace takes seconds to go. At most one goes at a time, and the others do not wait for it.
	s.mayDelete.Store(true)
	for asked := 0; time.Since(began) < d || s.deleting.Load(); {
		<-tick.C
		// What this loop, or all of them, had no time for is made up for.
		for due := int(time.Since(began).Seconds() * changesPerSecond); asked < due && s.ask(r); {
			asked++
		}
	}
	s.mayDelete.Store(false)
	for _, q := range s.changers {
		q.await()
	}
	s.changing += time.Since(began)
	if s.Failed() {
		s.FailNow()
	}
}

// made is how many changes were made so far.
func (s *soak) made() (total int64) {
	for kind := range s.changes {
		total += s.changes[kind].Load()
	}
	return total
}

// ask asks any changer that is not busy for a change, and returns whether there is one.
func (s *soak) ask(r *rand.Rand) bool {
	for _, i := range r.Perm(len(s.changers)) {
		if s.changers[i].ask() {
			return true
		}
	}
	return false
}

// quiet waits until all nodes know all objects, compares their kernels, and lets every pod ask once.
func (s *soak) quiet() {
	s.Helper()
	began := time.Now()
	var objects oracle.Cluster
	s.eventually(func() (err error) {
		if err := s.controllersAreDone(); err != nil {
			return err
		}
		if objects, err = s.objects(); err != nil {
			return err
		}
		for _, m := range s.members {
			if err := m.Knows(objects, s.families...); err != nil {
				return err
			}
		}
		return nil
	})
	s.latencies = append(s.latencies, time.Since(began))
	s.history.calm(s.world, objects)
	s.settled()
	for _, m := range s.members {
		if out, errs, status := m.Openshift("egress", "verify", "--socket="+m.Socket()); status != 0 {
			s.Errorf("%s: egress verify ended with status %d:\n%s%s", m.Name, status, out, errs)
		}
	}
	ctx, cancel := context.WithTimeout(s.Context(), soon)
	defer cancel()
	s.must(s.residents.Round(ctx))
	s.must(s.others.Round(ctx))
	for _, m := range s.members {
		s.measure(m)
	}
}

// sampled is what a node needs in a quiet moment.
type sampled struct {
	heap, resident, goroutines, files float64
}

// measure notes what a node needs, when it has collected its garbage.
func (s *soak) measure(m *member) {
	s.Helper()
	_, err := s.get(m.Host, metricsAt, "/debug/pprof/heap?gc=1")
	s.must(err)
	s.must(s.worked(m))
	metrics := s.metrics(m)
	s.samples[m.Name] = append(s.samples[m.Name], sampled{
		heap: metric(s.T, metrics, "go_memstats_heap_alloc_bytes"), resident: metric(s.T, metrics, "process_resident_memory_bytes"),
		goroutines: metric(s.T, metrics, "go_goroutines"), files: metric(s.T, metrics, "process_open_fds"),
	})
	if log := m.Printed.String(); strings.Contains(log, "panic") || strings.Contains(log, "Somebody else has changed") {
		s.Errorf("%s: the log has a panic, or says that somebody else has changed the rules", m.Name)
	}
	m.FollowedThePlan()
	if !s.Failed() {
		m.Printed.Reset()
	}
}

// worked returns an error if a sync of a node's process has failed.
func (s *soak) worked(m *member) error {
	got, err := s.get(m.Host, metricsAt, "/metrics")
	if err != nil {
		return err
	}
	if failures := metric(s.T, got.body, "egress_snat_sync_failures_total"); failures > 0 {
		return fmt.Errorf("%s: %g syncs have failed", m.Name, failures)
	}
	return nil
}

// metric is the sum over all labels of a metric.
func metric(t *testing.T, text, name string) (sum float64) {
	t.Helper()
	lines := regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (\S+)$`).FindAllStringSubmatch(text, -1)
	if len(lines) == 0 {
		t.Fatalf("there is no metric %s", name)
	}
	for _, line := range lines {
		value, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += value
	}
	return sum
}

// report logs what was done and the results, and fails if any of them is wrong.
func (s *soak) report(took time.Duration, least int64) {
	s.Helper()
	residents, others := s.residents.Stop(), s.others.Stop()
	if residents.Wrong+residents.Unanswered+residents.Broken > 0 {
		s.Errorf("the traffic of pods that never change was disturbed: %s", residents)
	}
	if others.Wrong > 0 || others.Answered == 0 {
		s.Errorf("pods that change were seen from wrong addresses, or got no answer: %s", others)
	}
	var made []string
	for kind := range kinds {
		made = append(made, fmt.Sprintf("%d %s", s.changes[kind].Load(), kind))
	}
	latencies := slices.Sorted(slices.Values(s.latencies[1:]))
	s.Logf("%s, of which changes were made in %s", took.Round(time.Second), s.changing.Round(time.Second))
	total := s.made()
	s.Logf("changes  %d, %.0f a second: %s", total, float64(total)/s.changing.Seconds(), strings.Join(made, ", "))
	if total < least {
		s.Errorf("only %d changes were made in %s, want %d", total, took.Round(time.Second), least)
	}
	s.Logf("answers  %d, and %d from those who never change; wrong %d; of those who change %d flows were reset, %d questions not answered otherwise", others.Answered, residents.Answered,
		others.Wrong+residents.Wrong, others.Broken, others.Unanswered-others.Broken)
	s.Logf("nodes up to date after %d bursts: median %s, longest %s, controllers included", len(latencies), latencies[len(latencies)/2].Round(time.Millisecond), latencies[len(latencies)-1].Round(time.Millisecond))
	for _, m := range s.members {
		metrics := s.metrics(m)
		s.Logf("%s  %.0f syncs of egress SNAT, a change in the kernel after %.0f ms on average, from its controller on; %.0f syncs of kube-proxy", m.Name,
			metric(s.T, metrics, "egress_snat_sync_duration_seconds_count"),
			1000*metric(s.T, metrics, "egress_snat_network_programming_duration_seconds_sum")/metric(s.T, metrics, "egress_snat_network_programming_duration_seconds_count"),
			metric(s.T, metrics, "kubeproxy_sync_proxy_rules_duration_seconds_count"))
		if s.pool == nil || m == s.members[0] { // the others of a pool have been killed now and then
			s.flat(m.Name)
		}
	}
}

// flat fails unless what a node needs is the same in the last third of the quiet moments as in the first:
// by their medians, for how many objects there are is random. The first moments, in which there was
// nothing yet, do not count.
func (s *soak) flat(name string) {
	s.Helper()
	samples := s.samples[name]
	if len(samples) < warmUp+enough {
		s.Logf("%s  its memory is not judged: there were %d quiet moments, this takes %d; give a longer DURATION", name, len(samples), warmUp+enough)
		return
	}
	samples = samples[warmUp:]
	third := len(samples) / 3
	for _, what := range []struct {
		name      string
		of        func(sampled) float64
		unit      float64
		tolerance float64
	}{
		{"live heap, MB", func(x sampled) float64 { return x.heap }, 1e6, 3},
		{"resident, MB", func(x sampled) float64 { return x.resident }, 1e6, 15},
		{"goroutines", func(x sampled) float64 { return x.goroutines }, 1, 10},
		{"open files", func(x sampled) float64 { return x.files }, 1, 5},
	} {
		median := func(samples []sampled) float64 {
			var values []float64
			for _, x := range samples {
				values = append(values, what.of(x)/what.unit)
			}
			sort.Float64s(values)
			return values[len(values)/2]
		}
		before, after := median(samples[:third]), median(samples[len(samples)-third:])
		first, last := what.of(samples[0])/what.unit, what.of(samples[len(samples)-1])/what.unit
		s.Logf("%s  %-13s %6.1f after the first bursts, %6.1f in the first third, %6.1f in the last, %6.1f at last", name, what.name, first, before, after, last)
		if after > 1.1*before+what.tolerance {
			s.Errorf("%s: %s grow from %.1f to %.1f", name, what.name, before, after)
		}
	}
}

// controllersAreDone returns an error unless all pods run or are gone, and the EndpointSlices that
// controllers write have just those that their Services select.
func (s *soak) controllersAreDone() error {
	pods, err := s.Client().CoreV1().Pods("").List(s.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil || pod.Status.Phase != v1.PodRunning {
			return fmt.Errorf("pod %s/%s is %s, deleted at %v", pod.Namespace, pod.Name, pod.Status.Phase, pod.DeletionTimestamp)
		}
	}
	objects, err := s.objects()
	if err != nil {
		return err
	}
	got, want := map[string][]string{}, map[string][]string{}
	for _, slice := range objects.EndpointSlices {
		if slice.Labels[discovery.LabelManagedBy] != "endpointslice-controller.k8s.io" {
			continue
		}
		service := slice.Namespace + "/" + slice.Labels[discovery.LabelServiceName]
		for _, endpoint := range slice.Endpoints {
			got[service] = append(got[service], endpoint.Addresses...)
		}
	}
	for _, svc := range objects.Services {
		for _, pod := range pods.Items {
			if len(svc.Spec.Selector) == 0 || svc.Namespace != pod.Namespace || !labels.SelectorFromSet(svc.Spec.Selector).Matches(labels.Set(pod.Labels)) {
				continue
			}
			service := svc.Namespace + "/" + svc.Name
			for _, ip := range pod.Status.PodIPs {
				want[service] = append(want[service], ip.IP)
			}
		}
	}
	for _, addresses := range []map[string][]string{got, want} {
		for service := range addresses {
			slices.Sort(addresses[service])
		}
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		return fmt.Errorf("the EndpointSlices have %v, want %v", got, want)
	}
	return nil
}
