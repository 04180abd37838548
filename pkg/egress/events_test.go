package egress

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/manifests"
)

// apiServer serves an empty folder, and keeps Events.
func newAPIServer(t *testing.T) kubernetes.Interface {
	t.Helper()
	source, err := manifests.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, remove, err := source.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 1000, 1000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// newTestRecorder runs the recorder of a node until the test or stop ends it.
func newTestRecorder(t *testing.T, client kubernetes.Interface, node string) (r *eventRecorder, stop func()) {
	t.Helper()
	r = newEventRecorder(klog.Background(), node, stateWith("web", "db"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		r.run(ctx, client.EventsV1())
		close(done)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return r, stop
}

// stateWith knows these Services.
func stateWith(names ...string) *state {
	s := newState(testConfig)
	for _, name := range names {
		s.setService(newService(name, func(svc *v1.Service) { svc.UID = types.UID("uid of " + name) }))
	}
	return s
}

func refusal(name string, reason plan.Reason, pod string) plan.Refusal {
	r := plan.Refusal{Service: plan.Service{Namespace: "ns", Name: name}, EgressIP: netip.MustParseAddr("203.0.113.1"), Reason: reason, Message: "for a reason"}
	if pod != "" {
		r.Pod = netip.MustParseAddr(pod)
	}
	return r
}

func events(t *testing.T, client kubernetes.Interface) []eventsv1.Event {
	t.Helper()
	list, err := client.EventsV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// haveEvents waits until there are Events for these Services and reasons, and no others.
func haveEvents(t *testing.T, client kubernetes.Interface, want ...string) {
	t.Helper()
	slices.Sort(want)
	eventually(t, fmt.Sprintf("Events %q", want), func() bool {
		var got []string
		for _, event := range events(t, client) {
			got = append(got, event.Regarding.Name+" "+event.Reason)
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}

// say says that these refusals, and no others, hold.
func say(r *eventRecorder, refusals []plan.Refusal) {
	said := map[plan.Service][]plan.Refusal{}
	for service := range r.refusals {
		said[service] = nil
	}
	for _, refusal := range refusals {
		said[refusal.Service] = append(said[refusal.Service], refusal)
	}
	r.set(map[v1.IPFamily]map[plan.Service][]plan.Refusal{v1.IPv4Protocol: said})
}

func wantedFor(r *eventRecorder, refusals []plan.Refusal) map[types.NamespacedName]*eventsv1.Event {
	say(r, refusals)
	<-r.wake // nobody else hears it
	return r.wanted
}

func TestEvents(t *testing.T) {
	client := newAPIServer(t)
	first, stop := newTestRecorder(t, client, "node-1")
	second, _ := newTestRecorder(t, client, "node-2")
	both := func(refusals ...plan.Refusal) {
		say(first, refusals)
		say(second, refusals)
	}
	stolen, outside := refusal("web", plan.OwnedByOtherNamespace, ""), refusal("web", plan.EndpointOutsideCluster, "192.0.2.1")
	another := outside
	another.Pod, another.Message = netip.MustParseAddr("192.0.2.2"), "for another"

	both(stolen, outside, another)
	haveEvents(t, client, "web OwnedByOtherNamespace", "web EndpointOutsideCluster") // one for each reason, not for each node or endpoint
	for _, event := range events(t, client) {
		if event.Regarding.Kind != "Service" || event.Regarding.UID != "uid of web" || event.Namespace != "ns" || event.Type != "Warning" || !strings.Contains(event.Note, "for a reason") {
			t.Errorf("Event %+v", event)
		}
	}
	both(stolen)
	haveEvents(t, client, "web OwnedByOtherNamespace")
	both()
	haveEvents(t, client)

	// What holds on some nodes is told once, and taken back by who told it.
	local := []plan.Refusal{refusal("web", plan.NoProxier, "")}
	say(first, local)
	haveEvents(t, client, "web NoProxier")
	say(second, local)
	say(second, nil)
	say(second, []plan.Refusal{refusal("db", plan.NotAllowed, "")})
	haveEvents(t, client, "web NoProxier", "db NotAllowed")
	say(first, nil)
	say(second, nil)
	haveEvents(t, client)

	// A node that starts again finds what it, or another, has told before.
	say(first, []plan.Refusal{stolen, refusal("db", plan.NotAllowed, "")})
	haveEvents(t, client, "web OwnedByOtherNamespace", "db NotAllowed")
	stop()
	again, _ := newTestRecorder(t, client, "node-1")
	say(again, []plan.Refusal{stolen})
	haveEvents(t, client, "web OwnedByOtherNamespace")
}

// TestEventsLiveOn: an Event that the API server would forget, or has forgotten, is
// asserted again.
func TestEventsLiveOn(t *testing.T) {
	client := newAPIServer(t)
	r := newEventRecorder(klog.Background(), "node-1", stateWith("web"))
	wanted := wantedFor(r, []plan.Refusal{refusal("web", plan.NotAllowed, "")})
	grow := func() {
		for _, known := range r.records {
			known.due = time.Now()
		}
	}
	for count, want := range []int32{0, 2, 3} { // the first has no series
		r.sync(t.Context(), client.EventsV1(), wanted)
		r.sync(t.Context(), client.EventsV1(), wanted) // which is young and left alone
		got := events(t, client)
		if len(got) != 1 || got[0].Series == nil && want > 0 || got[0].Series != nil && got[0].Series.Count != want {
			t.Fatalf("round %d: %+v", count, got)
		}
		grow()
	}
	if err := client.EventsV1().Events("ns").Delete(t.Context(), events(t, client)[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.sync(t.Context(), client.EventsV1(), wanted)
	if got := events(t, client); len(got) != 1 {
		t.Errorf("%d Events after one was forgotten, want 1", len(got))
	}
}

// TestEventsAreLimited: many refusals at once do not flood the API server.
func TestEventsAreLimited(t *testing.T) {
	client := newAPIServer(t)
	r, _ := newTestRecorder(t, client, "node-1")
	var refusals []plan.Refusal
	for i := range 500 {
		refusals = append(refusals, refusal(fmt.Sprintf("s%d", i), plan.NotAllowed, ""))
	}
	began := time.Now()
	say(r, refusals)
	eventually(t, "more Events than the burst", func() bool { return len(events(t, client)) > eventBurst })
	got := len(events(t, client))
	if most := eventBurst + 2 + int(time.Since(began).Seconds()*eventRate); got > most {
		t.Errorf("%d Events within %s, want %d at most", got, time.Since(began), most)
	}
}

// TestFewNodesWrite: of many nodes few ever write an Event, one of them at once; every one
// is asked for some.
func TestFewNodesWrite(t *testing.T) {
	s := stateWith()
	const nodes = 100
	for i := range nodes {
		s.setNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}, Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: fmt.Sprintf("192.0.2.%d", i)}}}})
	}
	asked := map[string]bool{}
	for _, reason := range []plan.Reason{plan.NotAllowed, plan.NoProxier} {
		for i := range 50 {
			turns := map[time.Duration]int{}
			for node := range nodes {
				r := newEventRecorder(klog.Background(), fmt.Sprintf("node-%d", node), s)
				event := r.event(refusal(fmt.Sprintf("s%d", i), reason, ""))
				turn := r.turn(types.NamespacedName{Namespace: event.Namespace, Name: event.Name}, event)
				turns[turn]++
				if turn == 0 {
					asked[r.nodeName] = true
				}
			}
			if turns[0] != 1 {
				t.Errorf("%d nodes write %s of s%d at once, want one", turns[0], reason, i)
			}
			if writers := nodes - turns[math.MaxInt64]; reason == plan.NotAllowed && writers != eventWriters || reason == plan.NoProxier && writers != nodes {
				t.Errorf("%d nodes may write %s", writers, reason)
			}
		}
	}
	if len(asked) < nodes/3 {
		t.Errorf("only %d nodes are ever the first", len(asked))
	}
}

// TestEventsForbidden: a node that may not write Events does not ask again and again.
func TestEventsForbidden(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(apierrors.NewForbidden(eventsv1.Resource("events"), "", nil).ErrStatus)
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	r := newEventRecorder(klog.Background(), "node-1", stateWith("web"))
	for range 5 {
		if !r.adopt(t.Context(), client.EventsV1()) {
			t.Error("the list is asked for again")
		}
		r.sync(t.Context(), client.EventsV1(), wantedFor(r, []plan.Refusal{refusal("web", plan.NotAllowed, "")}))
	}
	if got := asked.Load(); got != 5+1 {
		t.Errorf("%d requests, want one to create", got-5)
	}
}

// TestLongNotes: the API refuses notes above its limit, and text that is not UTF-8.
func TestLongNotes(t *testing.T) {
	client := newAPIServer(t)
	r := newEventRecorder(klog.Background(), "node-1", stateWith("web"))
	long := refusal(strings.Repeat("s", 63), plan.InvalidAnnotation, "")
	long.Message = strings.Repeat("ß", maxNote)
	r.sync(t.Context(), client.EventsV1(), wantedFor(r, []plan.Refusal{long}))
	haveEvents(t, client, long.Service.Name+" InvalidAnnotation")
}
