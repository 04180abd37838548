package tell

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/extension"
)

// eventServer is an API server that has Events and nothing else.
type eventServer struct {
	client kubernetes.Interface

	mu sync.Mutex
	// requests are the methods of all requests.
	requests []string
	events   map[string]v1.Event
	// refused, if set, is the answer to all.
	refused *metav1.Status
}

func newEventServer(t *testing.T) *eventServer {
	t.Helper()
	s := &eventServer{events: map[string]v1.Event{}}
	server := httptest.NewServer(http.HandlerFunc(s.handle))
	t.Cleanup(server.Close)
	var err error
	s.client, err = kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *eventServer) handle(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method)
	w.Header().Set("Content-Type", "application/json")
	if s.refused != nil {
		w.WriteHeader(int(s.refused.Code))
		_ = json.NewEncoder(w).Encode(s.refused)
		return
	}
	event := s.events[path.Base(r.URL.Path)] // what a patch is of
	_ = json.NewDecoder(r.Body).Decode(&event)
	s.events[event.Name] = event
	_ = json.NewEncoder(w).Encode(event)
}

func (s *eventServer) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// told are the Events: about what, why, and how often.
func (s *eventServer) told() (told []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, event := range s.events {
		told = append(told, fmt.Sprintf("%s %s %d", event.InvolvedObject.Name, event.Reason, event.Count))
	}
	slices.Sort(told)
	return told
}

// stateWith knows Services "web" and "db" and so many nodes, "node-0" and so on.
func stateWith(nodes int) *cluster.State {
	s := cluster.New(cluster.Config{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("fd00:10::/32")}})
	for _, name := range []string{"web", "db"} {
		s.SetService(clustertest.NewService(name, func(svc *v1.Service) { svc.UID = types.UID("uid of " + name) }))
	}
	for i := range nodes {
		s.SetNode(&v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)},
			Status:     v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: fmt.Sprintf("192.0.2.%d", i)}}},
		})
	}
	return s
}

func newTestRecorder(node string, s *cluster.State) *EventRecorder {
	r := NewEventRecorder(klog.Background(), cluster.Config{NodeName: node}, s)
	r.limit = flowcontrol.NewFakeAlwaysRateLimiter()
	return r
}

func refusal(name string, reason plan.Reason, pod string) plan.Refusal {
	r := plan.Refusal{Service: plan.Service{Namespace: "ns", Name: name}, EgressIP: netip.MustParseAddr("203.0.113.1"), Reason: reason, Message: "for a reason"}
	if pod != "" {
		r.Pod = netip.MustParseAddr(pod)
	}
	return r
}

// say says that these refusals, and no others, hold.
func say(r *EventRecorder, refusals ...plan.Refusal) {
	said := map[plan.Service]cluster.Refused{}
	for service := range r.refusals {
		said[service] = cluster.Refused{}
	}
	for _, refusal := range refusals {
		said[refusal.Service] = cluster.Refused{Refusals: append(said[refusal.Service].Refusals, refusal)}
	}
	r.set(v1.IPv4Protocol, said)
}

// dueAt returns the warnings that a node writes at a time.
func dueAt(r *EventRecorder, now time.Time) (due []Warning) {
	for w, found := r.next(now); found; w, found = r.next(now) {
		due = append(due, w)
	}
	return due
}

// texts are what warnings are about, and why.
func texts(warnings []Warning) (texts []string) {
	for _, w := range warnings {
		texts = append(texts, strings.Join([]string{w.About.Kind, w.About.Name, string(w.Reason)}, " "))
	}
	slices.Sort(texts)
	return texts
}

func TestEventRecorder_OneEventForEachReason(t *testing.T) {
	r := newTestRecorder("node-0", stateWith(1))
	outside, another := refusal("web", plan.EndpointOutsideCluster, "192.0.2.1"), refusal("web", plan.EndpointOutsideCluster, "192.0.2.2")
	another.Message = "for another"
	say(r, refusal("web", plan.OwnedByOtherNamespace, ""), outside, another, refusal("db", plan.NotAllowed, ""))
	due := dueAt(r, time.Now())
	want := []string{"Service db NotAllowed", "Service web EndpointOutsideCluster", "Service web OwnedByOtherNamespace"}
	if diff := cmp.Diff(want, texts(due)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, w := range due {
		name := w.About.Name
		if want := (v1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "ns", Name: name, UID: types.UID("uid of " + name)}); w.About != want {
			t.Errorf("an Event is about %v, want %v", w.About, want)
		}
		if !strings.Contains(w.Note, "for a reason") {
			t.Errorf("an Event of %s says %q", w.Reason, w.Note)
		}
	}
}

// TestEventRecorder_AddressOfOtherPod: it is told if it lasts. It holds after the end of every pod until the EndpointSlice
// follows.
func TestEventRecorder_AddressOfOtherPod(t *testing.T) {
	r := newTestRecorder("node-0", stateWith(1))
	late := refusal("web", plan.AddressOfOtherPod, "10.128.0.5")
	now := time.Now()
	expect := func(what string, after time.Duration, want int) {
		t.Helper()
		if got := texts(dueAt(r, now.Add(after))); len(got) != want {
			t.Errorf("%s: Events %q, want %d", what, got, want)
		}
	}
	say(r, late)
	expect("the EndpointSlice may be late", settledWithin/2, 0)
	say(r)
	expect("it was", 2*settledWithin, 0)
	say(r, late)
	say(r, late, refusal("web", plan.NotAllowed, ""))
	expect("another refusal is told at once", settledWithin/2, 1)
	expect("it lasts", settledWithin+time.Second, 1)
}

// TestEventRecorder_OlderDescription: what was found out of the object before, and is told after what is said of the one that there is now, drops
// nothing of that.
func TestEventRecorder_OlderDescription(t *testing.T) {
	state := stateWith(1)
	r := newTestRecorder("node-0", state)
	web := plan.Service{Namespace: "ns", Name: "web"}
	of := func(reason plan.Reason) map[plan.Service]cluster.Refused {
		return map[plan.Service]cluster.Refused{web: {Refusals: []plan.Refusal{refusal("web", reason, "")}}}
	}
	r.set(v1.IPv4Protocol, of(plan.NotAllowed))
	older := r.describe(v1.IPv4Protocol, of(plan.NotAllowed))
	state.SetService(clustertest.NewService("web", func(svc *v1.Service) { svc.UID = "second" }))
	r.set(v1.IPv6Protocol, of(plan.NodeAddress))
	r.take(v1.IPv4Protocol, older)
	if got := r.Standing(web); len(got) != 1 || got[0].Reason != plan.NodeAddress || got[0].About.UID != "second" {
		t.Errorf("told are %+v, want what is said of the second object", got)
	}
	r.set(v1.IPv4Protocol, of(plan.NotAllowed))
	if got := r.Standing(web); len(got) != 2 {
		t.Errorf("told are %+v, want what is said by both families", got)
	}
}

// TestEventRecorder_MadeAnew: Events are about the object that there is now: also if no more is refused, and whichever IP family comes first.
func TestEventRecorder_MadeAnew(t *testing.T) {
	state := stateWith(1)
	r := newTestRecorder("node-0", state)
	web := plan.Service{Namespace: "ns", Name: "web"}
	again := func(uid types.UID) {
		state.SetService(clustertest.NewService("web", func(svc *v1.Service) { svc.UID = uid }))
	}
	about := func(what string, want types.UID) {
		t.Helper()
		for _, w := range r.Standing(web) {
			if w.About.UID != want {
				t.Errorf("%s: %s is about %q, want %q", what, w.Reason, w.About.UID, want)
			}
		}
		if len(r.Standing(web)) == 0 {
			t.Errorf("%s: nothing is told", what)
		}
	}
	trouble := map[plan.Service][]Trouble{web: {{Reason: "EgressIPLost", Note: "nobody has it"}}}
	refused := cluster.Refused{Refusals: []plan.Refusal{refusal("web", plan.NotAllowed, "")}}
	of := func(family v1.IPFamily, refused cluster.Refused) {
		r.set(family, map[plan.Service]cluster.Refused{web: refused})
	}
	of(v1.IPv4Protocol, refused)
	of(v1.IPv6Protocol, refused)
	r.SetTroubles(1, trouble)
	about("refused, and in trouble", "uid of web")
	again("second")
	of(v1.IPv6Protocol, refused)
	about("made anew, told by the second family", "second")
	again("third")
	of(v1.IPv4Protocol, cluster.Refused{})
	if standing := r.Standing(web); len(standing) > 0 {
		t.Errorf("what was said of the one before is said of the new one: %v", standing)
	}
	r.SetTroubles(2, trouble)
	about("made anew without a refusal", "third")
	again("fourth")
	r.SetTroubles(3, trouble)
	about("made anew with the same trouble", "fourth")
	of(v1.IPv4Protocol, refused)
	told := dueAt(r, time.Now())
	state.DeleteService(clustertest.NewService("web", nil))
	of(v1.IPv4Protocol, cluster.Refused{})
	about("gone, but for its trouble", "fourth")
	if again := dueAt(r, time.Now()); len(told) != 2 || len(again) > 0 {
		t.Errorf("told %v; when it has gone %v again", texts(told), texts(again))
	}
	r.SetTroubles(4, nil)
	r.SetTroubles(3, trouble) // which was overtaken
	if len(r.Standing(web)) > 0 || len(r.uids) > 0 {
		t.Errorf("at the end %v is told, and %v known", r.Standing(web), r.uids)
	}
}

func TestEventRecorder_OneEventForBothFamilies(t *testing.T) {
	r := newTestRecorder("node-0", stateWith(1))
	of := map[plan.Service]cluster.Refused{{Namespace: "ns", Name: "web"}: {Refusals: []plan.Refusal{refusal("web", plan.NotAllowed, "")}}}
	r.set(v1.IPv4Protocol, of)
	r.set(v1.IPv6Protocol, of)
	if got := texts(dueAt(r, time.Now())); len(got) != 1 {
		t.Errorf("Events %q, want one", got)
	}
}

// TestEventRecorder_NotAllEgressIPs: a Service that has others of the IP family is told that it lacks one.
func TestEventRecorder_NotAllEgressIPs(t *testing.T) {
	r := newTestRecorder("node-0", stateWith(1))
	of := refusal("web", plan.NotAllowed, "")
	of.EgressIP = netip.MustParseAddr("203.0.113.10")
	for others, says := range map[bool]string{false: "No egress IP: ", true: "Not all egress IPs: "} {
		r.set(v1.IPv4Protocol, map[plan.Service]cluster.Refused{of.Service: {Refusals: []plan.Refusal{of}, Others: others}})
		if got := dueAt(r, time.Now()); len(got) != 1 || !strings.HasPrefix(got[0].Note, says) {
			t.Errorf("Events %+v, want one with %q", got, says)
		}
	}
}

// TestEventRecorder_FamiliesAreIndependent: each family's plan follows the objects in its own time.
func TestEventRecorder_FamiliesAreIndependent(t *testing.T) {
	r := newTestRecorder("node-0", stateWith(1))
	web := plan.Service{Namespace: "ns", Name: "web"}
	six := refusal("web", plan.NotAllowed, "")
	six.Message = "for another"
	for _, change := range []struct {
		family   v1.IPFamily
		refusals []plan.Refusal
		events   int
	}{
		{v1.IPv6Protocol, []plan.Refusal{six}, 1},
		{v1.IPv4Protocol, []plan.Refusal{refusal("web", plan.NotAllowed, "")}, 1},
		{v1.IPv4Protocol, nil, 0},
		{v1.IPv6Protocol, nil, 0},
	} {
		r.set(change.family, map[plan.Service]cluster.Refused{web: {Refusals: change.refusals}})
		if got := texts(dueAt(r, time.Now())); len(got) != change.events {
			t.Errorf("%s, %d refusals: Events %q, want %d", change.family, len(change.refusals), got, change.events)
		}
	}
}

// TestEventRecorder_FewNodesWrite, also when all nodes start again: none knows what was written before.
func TestEventRecorder_FewNodesWrite(t *testing.T) {
	const nodes, services = 100, 10
	s := stateWith(nodes)
	for range 2 { // starts
		written, writers := map[string]int{}, map[string]bool{}
		for node := range nodes {
			r := newTestRecorder(fmt.Sprintf("node-%d", node), s)
			var refusals []plan.Refusal
			for i := range services {
				refusals = append(refusals, refusal(fmt.Sprintf("s%d", i), plan.NotAllowed, ""))
			}
			say(r, refusals...)
			for _, text := range texts(dueAt(r, time.Now())) {
				written[text]++
				writers[r.nodeName] = true
			}
		}
		if len(written) != services {
			t.Errorf("Events about %d Services are written, want %d", len(written), services)
		}
		for text, n := range written {
			if n != eventWriters {
				t.Errorf("%d nodes write %q, want %d", n, text, eventWriters)
			}
		}
		if len(writers) < services { // each would be alone with probability 0.7
			t.Errorf("%d nodes write all Events", len(writers))
		}
	}
}

// TestEventRecorder_WriterIsGone: another node takes its place when the Event is due again.
func TestEventRecorder_WriterIsGone(t *testing.T) {
	const nodes = 10
	s := stateWith(nodes)
	now := time.Now()
	recorders := map[string]*EventRecorder{}
	for i := range nodes {
		r := newTestRecorder(fmt.Sprintf("node-%d", i), s)
		say(r, refusal("web", plan.NotAllowed, ""))
		recorders[r.nodeName] = r
	}
	writers := func() (names []string) {
		for name, r := range recorders {
			if len(dueAt(r, now)) > 0 {
				names = append(names, name)
			}
		}
		return names
	}
	before := writers()
	gone := before[0]
	delete(recorders, gone)
	s.DeleteNode(gone)
	now = now.Add(2 * eventRepeat)
	after := writers()
	kept := slices.DeleteFunc(slices.Clone(after), func(name string) bool { return !slices.Contains(before, name) })
	if len(after) != eventWriters || len(kept) != eventWriters-1 {
		t.Errorf("writers %q before %s was gone, %q after", before, gone, after)
	}
}

func TestEventRecorder_NodesOwnReasonIsAboutTheNodeToo(t *testing.T) {
	const nodes = 20
	s := stateWith(nodes)
	written := map[string]int{}
	for node := range nodes {
		r := newTestRecorder(fmt.Sprintf("node-%d", node), s)
		say(r, refusal("web", plan.NoProxier, ""), refusal("db", plan.NoProxier, ""))
		for _, w := range dueAt(r, time.Now()) {
			written[texts([]Warning{w})[0]]++
			if !strings.Contains(w.Note, r.nodeName) && w.About.Kind == "Service" || w.About.Kind == "Node" && !strings.Contains(w.Note, "ns/db") {
				t.Errorf("Event of %s says %q", r.nodeName, w.Note)
			}
		}
	}
	want := map[string]int{"Service web NoProxier": eventWriters, "Service db NoProxier": eventWriters}
	for node := range nodes { // each about itself, however many Services it is about
		want[fmt.Sprintf("Node node-%d NoProxier", node)] = 1
	}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEventRecorder_RepeatsWhatStillHolds(t *testing.T) {
	r := newTestRecorder("node-0", stateWith(1))
	now := time.Now()
	say(r, refusal("web", plan.NotAllowed, ""), refusal("db", plan.NotAllowed, ""))
	if got := texts(dueAt(r, now)); len(got) != 2 {
		t.Fatalf("at first Events %q, want two", got)
	}
	say(r, refusal("web", plan.NotAllowed, ""), refusal("db", plan.NotAllowed, "")) // as a change of something else of theirs does
	if got := texts(dueAt(r, now.Add(eventRepeat-time.Second))); len(got) != 0 {
		t.Errorf("within %s Events %q", eventRepeat, got)
	}
	say(r, refusal("web", plan.NotAllowed, "")) // db's is lifted
	if diff := cmp.Diff([]string{"Service web NotAllowed"}, texts(dueAt(r, now.Add(3*eventRepeat/2)))); diff != "" {
		t.Errorf("after half an hour, -want +got:\n%s", diff)
	}
	say(r)
	if got := texts(dueAt(r, now.Add(24*time.Hour))); len(got) != 0 {
		t.Errorf("nothing is refused, Events %q", got)
	}
}

// TestEventRecorder_ServiceIsAnother: an Event about a Service of the same name that is gone is not
// found by 'kubectl describe'.
func TestEventRecorder_ServiceIsAnother(t *testing.T) {
	s := stateWith(1)
	r := newTestRecorder("node-0", s)
	say(r, refusal("web", plan.NotAllowed, ""))
	dueAt(r, time.Now())
	s.SetService(clustertest.NewService("web", func(svc *v1.Service) { svc.UID = "another" }))
	say(r, refusal("web", plan.NotAllowed, ""))
	due := dueAt(r, time.Now())
	if len(due) != 1 || due[0].About.UID != "another" {
		t.Errorf("Events %+v, want one about the new Service", due)
	}
}

// TestEventRecorder_LongNoteIsCut: a message may be as long as an annotation.
func TestEventRecorder_LongNoteIsCut(t *testing.T) {
	r := newTestRecorder("node-0", stateWith(1))
	long := refusal("web", plan.InvalidAnnotation, "")
	long.Message = strings.Repeat("ß", extension.MostNote)
	say(r, long)
	due := dueAt(r, time.Now())
	if len(due) != 1 || len(due[0].Note) > extension.MostNote || !utf8.ValidString(due[0].Note) {
		t.Errorf("%+v", due)
	}
}

// TestEventRecorder_ManyRefusalsAreLimited: they do not flood the API server.
func TestEventRecorder_ManyRefusalsAreLimited(t *testing.T) {
	r := NewEventRecorder(klog.Background(), cluster.Config{NodeName: "node-0"}, stateWith(1))
	recorder := record.NewFakeRecorder(1000)
	began := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go r.record(ctx, recorder)
	var refusals []plan.Refusal
	for i := range 500 {
		refusals = append(refusals, refusal(fmt.Sprintf("s%d", i), plan.NotAllowed, ""))
	}
	say(r, refusals...)
	clustertest.Eventually(t, "more Events than the burst", func() bool { return len(recorder.Events) > eventBurst })
	got := len(recorder.Events)
	if most := eventBurst + 1 + int(time.Since(began).Seconds()*eventRate); got > most {
		t.Errorf("%d Events within %s, want %d at most", got, time.Since(began), most)
	}
}

// TestEventRecorder_PodsHereGoFirst: a node tells of the pods that it has, whatever others it knows of.
func TestEventRecorder_PodsHereGoFirst(t *testing.T) {
	elsewhere, here := refusal("web", plan.EndpointOutsideCluster, "192.0.2.1"), refusal("web", plan.EndpointOutsideCluster, "192.0.2.2")
	first := oneForEachReason([]plan.Refusal{elsewhere, here, elsewhere}, map[netip.Addr]bool{here.Pod: true})
	if want := []plan.Refusal{here}; !slices.Equal(first, want) {
		t.Errorf("%v, want %v", first, want)
	}
}

// TestEventRecorder_NewsGoFirst: what is told once does not wait for warnings, of which any number may be due.
func TestEventRecorder_NewsGoFirst(t *testing.T) {
	r := newTestRecorder("node-0", stateWith(1))
	say(r, refusal("web", plan.NotAllowed, ""), refusal("db", plan.NotAllowed, ""))
	reasons := []string{}
	for w, found := r.nextEvent(); found; w, found = r.nextEvent() {
		if len(reasons) == 0 {
			r.Tell("EgressIPMoved", "here")
		}
		reasons = append(reasons, w.kind+" "+string(w.Reason))
	}
	if want := []string{"Warning NotAllowed", "Normal EgressIPMoved", "Warning NotAllowed"}; !slices.Equal(reasons, want) {
		t.Errorf("%q, want %q", reasons, want)
	}
}

// TestEventRecorder_Types: what is wrong is a Warning, also if it is told once.
func TestEventRecorder_Types(t *testing.T) {
	r := NewEventRecorder(klog.Background(), cluster.Config{NodeName: "node-0"}, stateWith(1))
	recorder := record.NewFakeRecorder(10)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r.Tell("EgressIPMoved", "here")
	r.Warn("PortJournalFailing", "the disk is full")
	r.WarnPod("shop", "web", "uid", "EgressPortsShared", "all are taken")
	r.SetTroubles(1, map[plan.Service][]Trouble{{}: {{Reason: "EgressIPUnreachable", Note: "the port is taken"}}})
	go r.record(ctx, recorder)
	for _, want := range []string{"Normal EgressIPMoved here", "Warning PortJournalFailing the disk is full", "Warning EgressPortsShared all are taken", "Warning EgressIPUnreachable the port is taken"} {
		if got := <-recorder.Events; got != want {
			t.Errorf("Event %q, want %q", got, want)
		}
	}
}

// TestEventRecorder_OnlyCreatesAndPatches: nothing is asked of it but to take Events, whoever has written some there
// under our name.
func TestEventRecorder_OnlyCreatesAndPatches(t *testing.T) {
	server := newEventServer(t)
	forged := v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "forged"}, InvolvedObject: v1.ObjectReference{Name: "forged"}, Reason: "NotAllowed",
		ReportingController: eventSource, ReportingInstance: "node-0", Source: v1.EventSource{Component: eventSource, Host: "node-0"}, Count: 7}
	server.events["forged"] = forged
	r := newTestRecorder("node-0", stateWith(1))
	go r.Run(t.Context(), server.client.CoreV1())
	has := func(want ...string) {
		t.Helper()
		clustertest.Eventually(t, fmt.Sprintf("Events %q", want), func() bool { return slices.Equal(server.told(), want) })
	}
	say(r, refusal("web", plan.NotAllowed, ""))
	has("forged NotAllowed 7", "web NotAllowed 1")

	r.mu.Lock()
	r.warnings[plan.Service{Namespace: "ns", Name: "web"}][0].due = time.Time{}
	r.mu.Unlock()
	say(r, refusal("web", plan.NotAllowed, ""))
	has("forged NotAllowed 7", "web NotAllowed 2") // the same Event

	say(r, refusal("db", plan.NotAllowed, ""))
	has("db NotAllowed 1", "forged NotAllowed 7", "web NotAllowed 2")
	if diff := cmp.Diff([]string{http.MethodPost, http.MethodPatch, http.MethodPost}, server.asked()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	for _, event := range server.events {
		if event.Source != (v1.EventSource{Component: eventSource, Host: "node-0"}) || event.ReportingController != eventSource || event.Type != v1.EventTypeWarning && event.Name != "forged" {
			t.Errorf("Event %+v", event)
		}
	}
}

// TestEventRecorder_ForbiddenIsNotRetried: a node that may not write Events does not ask again at every change.
func TestEventRecorder_ForbiddenIsNotRetried(t *testing.T) {
	server := newEventServer(t)
	refused := apierrors.NewForbidden(v1.Resource("events"), "", nil).ErrStatus
	refused.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	server.refused = &refused
	r := newTestRecorder("node-0", stateWith(1))
	go r.Run(t.Context(), server.client.CoreV1())
	web, db := refusal("web", plan.NotAllowed, ""), refusal("db", plan.NotAllowed, "")
	say(r, web)
	clustertest.Eventually(t, "the first Event", func() bool { return len(server.asked()) > 0 })
	for range 100 {
		say(r, web)
	}
	say(r, web, db)
	clustertest.Eventually(t, "the second Event", func() bool { return len(server.asked()) > 1 })
	if got := server.asked(); len(got) != 2 {
		t.Errorf("requests %q, want two", got)
	}
}

// TestEventRecorder_AboutALyingNode: few of the nodes that know tell about a Node with addresses that are not its own, and nobody
// does when it is over.
func TestEventRecorder_AboutALyingNode(t *testing.T) {
	s := stateWith(20)
	s.Config.ClusterCIDRs = []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}
	const ignored plan.Reason = "NodeAddressIgnored"
	liar := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-3"}}
	liar.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.128.0.5"}}
	s.SetNode(liar)
	faults := s.NodeFaults(v1.IPv4Protocol)
	if len(faults) != 1 || faults[0].Node != "node-3" || s.Primary("node-3", v1.IPv4Protocol).IsValid() {
		t.Fatalf("faults %+v, primary address %s; want the pod's address ignored", faults, s.Primary("node-3", v1.IPv4Protocol))
	}
	writers := 0
	for i := range 20 {
		r := newTestRecorder(fmt.Sprintf("node-%d", i), s)
		r.SetTroubles(1, map[plan.Service][]Trouble{AboutNode("node-3"): {{Reason: ignored, Note: faults[0].Message}}})
		due := dueAt(r, time.Now())
		for _, w := range due {
			if w.About != extension.NodeReference("node-3") || w.Reason != ignored || !strings.Contains(w.Note, "10.128.0.5") {
				t.Errorf("told: %+v", w)
			}
		}
		writers += len(due)
		r.SetTroubles(2, nil)
		if due := dueAt(r, time.Now().Add(time.Hour)); len(due) > 0 {
			t.Errorf("told when it is over: %+v", due)
		}
	}
	if writers != eventWriters {
		t.Errorf("%d nodes tell, want %d", writers, eventWriters)
	}
}
