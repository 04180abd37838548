package egress

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
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
	r = newEventRecorder(klog.Background(), node, func(s plan.Service) types.UID { return types.UID("uid of " + s.String()) })
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

func TestEvents(t *testing.T) {
	client := newAPIServer(t)
	first, stop := newTestRecorder(t, client, "node-1")
	second, _ := newTestRecorder(t, client, "node-2")
	both := func(refusals ...plan.Refusal) {
		first.set(refusals)
		second.set(refusals)
	}
	stolen, outside := refusal("web", plan.OwnedByOtherNamespace, ""), refusal("web", plan.EndpointOutsideCluster, "192.0.2.1")
	another := outside
	another.Pod, another.Message = netip.MustParseAddr("192.0.2.2"), "for another"

	both(stolen, outside, another)
	haveEvents(t, client, "web OwnedByOtherNamespace", "web EndpointOutsideCluster") // one for each reason, not for each node or endpoint
	for _, event := range events(t, client) {
		if event.Regarding.Kind != "Service" || event.Regarding.UID != "uid of ns/web" || event.Namespace != "ns" || event.Type != "Warning" || !strings.Contains(event.Note, "for a reason") {
			t.Errorf("Event %+v", event)
		}
	}
	both(stolen)
	haveEvents(t, client, "web OwnedByOtherNamespace")
	both()
	haveEvents(t, client)

	// What holds on one node is told by each, and taken back by it alone.
	both(refusal("web", plan.NoProxier, ""))
	haveEvents(t, client, "web NoProxier", "web NoProxier")
	first.set(nil)
	haveEvents(t, client, "web NoProxier")
	if left := events(t, client)[0]; left.ReportingInstance != "node-2" {
		t.Errorf("%s's Event is left, want node-2's", left.ReportingInstance)
	}
	second.set(nil)
	haveEvents(t, client)

	// A node that starts again finds what it, or another, has told before.
	first.set([]plan.Refusal{stolen, refusal("db", plan.NotAllowed, "")})
	haveEvents(t, client, "web OwnedByOtherNamespace", "db NotAllowed")
	stop()
	again, _ := newTestRecorder(t, client, "node-1")
	again.set([]plan.Refusal{stolen})
	haveEvents(t, client, "web OwnedByOtherNamespace")
}

// TestEventsLiveOn: an Event that the API server would forget, or has forgotten, is
// asserted again.
func TestEventsLiveOn(t *testing.T) {
	client := newAPIServer(t)
	r := newEventRecorder(klog.Background(), "node-1", func(plan.Service) types.UID { return "uid" })
	wanted := r.eventsFor([]plan.Refusal{refusal("web", plan.NotAllowed, "")})
	grow := func() {
		for name, a := range r.asserted {
			a.at = a.at.Add(-2 * eventLife)
			r.asserted[name] = a
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
	r.set(refusals)
	eventually(t, "more Events than the burst", func() bool { return len(events(t, client)) > eventBurst })
	if most := eventBurst + 2 + int(time.Since(began).Seconds()*eventRate); len(events(t, client)) > most {
		t.Errorf("%d Events within %s, want %d at most", len(events(t, client)), time.Since(began), most)
	}
}

// TestLongNotes: the API refuses notes above its limit, and text that is not UTF-8.
func TestLongNotes(t *testing.T) {
	client := newAPIServer(t)
	r := newEventRecorder(klog.Background(), "node-1", func(plan.Service) types.UID { return "uid" })
	long := refusal(strings.Repeat("s", 63), plan.InvalidAnnotation, "")
	long.Message = strings.Repeat("ß", maxNote)
	r.sync(t.Context(), client.EventsV1(), r.eventsFor([]plan.Refusal{long}))
	haveEvents(t, client, long.Service.Name+" InvalidAnnotation")
}
