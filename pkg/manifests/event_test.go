package manifests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
)

// newEvent is valid in the namespace "default". Its times are ones that JSON
// does not round.
func newEvent(name string, change func(*eventsv1.Event)) *eventsv1.Event {
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: name},
		EventTime:           metav1.MicroTime{Time: time.Date(2024, 1, 2, 3, 4, 5, 6000, time.UTC)},
		ReportingController: "example.com/tester",
		ReportingInstance:   "n1",
		Action:              "Try",
		Reason:              "Tried",
		Type:                v1.EventTypeNormal,
		Note:                "note",
		Regarding:           v1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "web", UID: "u1"},
	}
	if change != nil {
		change(event)
	}
	return event
}

func (w *world) createEvent(name string, change func(*eventsv1.Event)) *eventsv1.Event {
	w.Helper()
	event := newEvent(name, change)
	namespace := event.Namespace
	if namespace == "" {
		namespace = "default"
	}
	created, err := w.client.EventsV1().Events(namespace).Create(w.ctx, event, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return created
}

func (w *world) listEvents(namespace, fields string) string {
	list, err := w.client.EventsV1().Events(namespace).List(w.ctx, metav1.ListOptions{FieldSelector: fields})
	if err != nil {
		return string(apierrors.ReasonForError(err))
	}
	names := []string{}
	for _, event := range list.Items {
		names = append(names, event.Name)
	}
	return strings.Join(names, " ")
}

// TestRecorder has events recorded as kube-proxy does, in protobuf.
func TestRecorder(t *testing.T) {
	w := newWorld(t, nil)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: w.client.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(w.ctx); err != nil {
		t.Fatal(err)
	}
	recorder := broadcaster.NewRecorder(scheme.Scheme, "kube-proxy")
	node := &v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "n1"}
	var event eventsv1.Event
	record := func(count int32) {
		t.Helper()
		recorder.Eventf(node, nil, v1.EventTypeNormal, "Starting", "StartKubeProxy", "here we go")
		eventually(t, func() string {
			list, err := w.client.EventsV1().Events("").List(w.ctx, metav1.ListOptions{FieldSelector: "reportingController=kube-proxy"})
			if err != nil || len(list.Items) != 1 {
				return fmt.Sprintf("got %v, %v", list, err)
			}
			event = list.Items[0]
			if got := seriesCount(&event); got != count {
				return fmt.Sprintf("count %d, want %d", got, count)
			}
			return ""
		})
	}
	record(1)
	if event.Namespace != "default" || event.Note != "here we go" || event.Regarding.Kind != "Node" {
		t.Errorf("got %v", event)
	}
	first := event.UID
	record(2) // a patch
	if event.UID != first {
		t.Error("the event was replaced")
	}
	lines := w.logged(`"msg"="Event" "type"="Normal" "reason"="Starting"`, 2)
	if !strings.Contains(lines[0], `"note"="here we go" "count"=1`) || !strings.Contains(lines[1], `"count"=2`) {
		t.Errorf("got %q", lines)
	}

	// An event that is gone is created again by what should have patched it.
	recorder.Eventf(node, nil, v1.EventTypeNormal, "Again", "StartKubeProxy", "again")
	eventually(t, func() string {
		if got := w.listEvents("default", "reason=Again"); got == "" {
			return "no event"
		}
		return ""
	})
	name := w.listEvents("default", "reason=Again")
	if err := w.client.EventsV1().Events("default").Delete(w.ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	recorder.Eventf(node, nil, v1.EventTypeNormal, "Again", "StartKubeProxy", "again")
	eventually(t, func() string {
		got, err := w.client.EventsV1().Events("default").Get(w.ctx, name, metav1.GetOptions{})
		if err != nil || seriesCount(got) != 2 {
			return fmt.Sprintf("got %v, %v", got, err)
		}
		return ""
	})
}

func TestCoreEvents(t *testing.T) {
	w := newWorld(t, nil)
	event, err := w.client.CoreV1().Events("default").Create(w.ctx, &v1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e"}, Reason: "Old", Message: "m",
		InvolvedObject: v1.ObjectReference{Kind: "Service", Namespace: "default", Name: "a"},
	}, metav1.CreateOptions{})
	if err != nil || event.Name != "e" || event.Reason != "Old" {
		t.Errorf("got %v, %v", event, err)
	}
	event, err = w.client.CoreV1().Events("default").Patch(w.ctx, "e2", types.StrategicMergePatchType, []byte(`{"count":5}`), metav1.PatchOptions{})
	if err != nil || event.Name != "e2" || event.Namespace != "default" || event.Count != 5 {
		t.Errorf("got %v, %v", event, err)
	}
	w.logged(`"msg"="Event"`, 2)
	if got := w.listEvents("", ""); got != "" {
		t.Errorf("events of core are kept: %s", got)
	}
}

func TestListEvents(t *testing.T) {
	w := newWorld(t, nil)
	w.createEvent("a", nil)
	w.createEvent("b", func(e *eventsv1.Event) { e.ReportingController, e.Reason = "other", "Failed" })
	w.createEvent("c", func(e *eventsv1.Event) {
		e.Namespace, e.Regarding.Namespace, e.Regarding.Name = "shop", "shop", "db"
		e.Labels, e.Type = map[string]string{"app": "c"}, v1.EventTypeWarning
	})
	w.createEvent("d", func(e *eventsv1.Event) {
		e.Regarding = v1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web", ResourceVersion: "5", FieldPath: "spec"}
	})
	for _, test := range []struct{ namespace, fields, want string }{
		{"", "", "a b d c"}, // by namespace
		{"shop", "", "c"},
		{"none", "", ""},
		{"", "reportingController=example.com/tester", "a d c"},
		{"default", "reportingController!=example.com/tester", "b"},
		{"", "metadata.name=c", "c"},
		{"", "metadata.namespace=shop", "c"},
		{"", "reason=Failed", "b"},
		{"", "type=Warning", "c"},
		{"", "regarding.kind=Deployment", "d"},
		{"", "regarding.namespace=shop", "c"},
		{"", "regarding.name=web,regarding.kind=Service", "a b"},
		{"", "regarding.uid=u1,regarding.namespace=default", "a b"},
		{"", "regarding.apiVersion=apps/v1", "d"},
		{"", "regarding.resourceVersion=5", "d"},
		{"", "regarding.fieldPath=spec", "d"},
		{"", "involvedObject.kind=Service", "BadRequest"}, // core's name
		{"", "source=x", "BadRequest"},
		{"", "note=x", "BadRequest"},
	} {
		if got := w.listEvents(test.namespace, test.fields); got != test.want {
			t.Errorf("%q %q: got %q, want %q", test.namespace, test.fields, got, test.want)
		}
	}
	if list, err := w.client.EventsV1().Events("").List(w.ctx, metav1.ListOptions{LabelSelector: "app"}); err != nil || len(list.Items) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestCreateEvent(t *testing.T) {
	w := newWorld(t, nil)
	before := time.Now().Add(-2 * time.Second) // it is told in seconds
	created := w.createEvent("a", func(e *eventsv1.Event) { e.UID = "of the client" })
	if created.UID == "" || created.UID == "of the client" || created.ResourceVersion == "" || created.Namespace != "default" ||
		created.CreationTimestamp.Time.Before(before) {
		t.Errorf("got %v", created)
	}
	got, err := w.client.EventsV1().Events("default").Get(w.ctx, "a", metav1.GetOptions{})
	if diff := cmp.Diff(created, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	want := newEvent("a", nil)
	want.TypeMeta, want.ObjectMeta = got.TypeMeta, got.ObjectMeta
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// Another namespace is another event; a generated name is a new one.
	w.createEvent("a", func(e *eventsv1.Event) { e.Namespace, e.Regarding.Namespace = "shop", "shop" })
	generate := func(e *eventsv1.Event) { e.GenerateName = "web-" }
	one, two := w.createEvent("", generate), w.createEvent("", generate)
	if !strings.HasPrefix(one.Name, "web-") || len(one.Name) != len("web-")+5 || one.Name == two.Name {
		t.Errorf("names %q, %q", one.Name, two.Name)
	}
	w.logged(`"msg"="Event" "type"="Normal" "reason"="Tried" "kind"="Service"`, 4)

	for _, test := range []struct {
		name   string
		change func(*eventsv1.Event)
		reason metav1.StatusReason
		part   string
	}{
		{"exists", func(*eventsv1.Event) {}, "AlreadyExists", `events.events.k8s.io "a" already exists`},
		{"other namespace", func(e *eventsv1.Event) { e.Namespace = "shop" }, "BadRequest", "does not match the namespace"},
		{"resource version", func(e *eventsv1.Event) { e.ResourceVersion = "5" }, "BadRequest", "resourceVersion should not be set"},
		{"no name", func(e *eventsv1.Event) { e.Name = "" }, "Invalid", "metadata.name: Required"},
		{"no time", func(e *eventsv1.Event) { e.EventTime = metav1.MicroTime{} }, "Invalid", "eventTime: Required"},
		{"no action", func(e *eventsv1.Event) { e.Action = "" }, "Invalid", "action: Required"},
		{"no controller", func(e *eventsv1.Event) { e.ReportingController = "" }, "Invalid", "reportingController: Required"},
		{"long note", func(e *eventsv1.Event) { e.Note = strings.Repeat("x", 1025) }, "Invalid", "can have at most 1024 characters"},
		{"series of one", func(e *eventsv1.Event) {
			e.Series = &eventsv1.EventSeries{Count: 1, LastObservedTime: e.EventTime}
		}, "Invalid", "series.count"},
		{"core's field", func(e *eventsv1.Event) { e.DeprecatedCount = 1 }, "Invalid", "count"},
		{"large", func(e *eventsv1.Event) {
			e.Annotations = map[string]string{"a": strings.Repeat("x", maxEventSize)}
		}, "RequestEntityTooLarge", "an event may have 65536 bytes"},
	} {
		_, err := w.client.EventsV1().Events("default").Create(w.ctx, newEvent("a", test.change), metav1.CreateOptions{})
		if apierrors.ReasonForError(err) != test.reason || !strings.Contains(fmt.Sprint(err), test.part) {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := w.client.EventsV1().Events("default").Create(w.ctx, newEvent("dry", nil), dry); !apierrors.IsBadRequest(err) {
		t.Errorf("got %v", err)
	}
	if code, text := w.request("POST", "/apis/events.k8s.io/v1/namespaces/default/events", w.config.BearerToken,
		`{"kind":"Event","apiVersion":"v1","metadata":{"name":"x"}}`); code != 400 || !strings.Contains(text, "a Event of events.k8s.io/v1 is wanted") {
		t.Errorf("got %d %s", code, text)
	}
}

func TestPatchEvent(t *testing.T) {
	w := newWorld(t, nil)
	w.createEvent("a", nil)
	const seen = `"lastObservedTime":"2024-01-02T03:04:05.000007Z"`
	patch := func(name string, kind types.PatchType, text string) (*eventsv1.Event, error) {
		return w.client.EventsV1().Events("default").Patch(w.ctx, name, kind, []byte(text), metav1.PatchOptions{})
	}
	for _, test := range []struct {
		name  string
		event string // a if empty
		kind  types.PatchType
		text  string
		want  string // count and labels, or the reason of the error
	}{
		{"a series begins", "", types.StrategicMergePatchType, `{"series":{"count":2,` + seen + `}}`, "2 map[]"},
		{"a series goes on", "", types.StrategicMergePatchType, `{"series":{"count":3}}`, "3 map[]"},
		{"labels", "", types.MergePatchType, `{"metadata":{"labels":{"x":"y","z":null}}}`, "3 map[x:y]"},
		{"nothing", "", types.MergePatchType, `{}`, "3 map[x:y]"},
		{"a label goes", "", types.MergePatchType, `{"metadata":{"labels":{"x":null}},"series":{"count":4}}`, "4 map[]"},
		{"a series ends", "", types.MergePatchType, `{"series":null}`, "1 map[]"},
		{"no version", "", types.MergePatchType, `{"metadata":{"resourceVersion":null},"series":{"count":5,` + seen + `}}`, "5 map[]"},
		{"other version", "", types.MergePatchType, `{"metadata":{"resourceVersion":"1"}}`, "Conflict"},
		{"gone", "b", types.StrategicMergePatchType, `{"series":{"count":9}}`, "NotFound"},
		{"reason", "", types.StrategicMergePatchType, `{"reason":"Other"}`, "Invalid"},
		{"name", "", types.StrategicMergePatchType, `{"metadata":{"name":"b"}}`, "Invalid"},
		{"namespace", "", types.MergePatchType, `{"metadata":{"namespace":"b"}}`, "Invalid"},
		{"series of one", "", types.StrategicMergePatchType, `{"series":{"count":1}}`, "Invalid"},
		{"wrong type", "", types.MergePatchType, `{"series":{"count":"x"}}`, "BadRequest"},
		{"no object", "", types.MergePatchType, `[]`, "BadRequest"},
		{"no JSON", "", types.StrategicMergePatchType, `{`, "BadRequest"},
		{"a patch at which the merge panics", "", types.StrategicMergePatchType, `{"$retainKeys":[{}]}`, "BadRequest"},
		{"JSON patch", "", types.JSONPatchType, `[]`, "UnsupportedMediaType"},
		{"apply", "", types.ApplyYAMLPatchType, `{}`, "UnsupportedMediaType"},
		{"large", "", types.MergePatchType, `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", maxEventSize-100) + `"}}}`, "RequestEntityTooLarge"},
	} {
		name := test.event
		if name == "" {
			name = "a"
		}
		event, err := patch(name, test.kind, test.text)
		got := string(apierrors.ReasonForError(err))
		if err == nil {
			got = fmt.Sprint(seriesCount(event), " ", event.Labels)
		}
		if got != test.want {
			t.Errorf("%s: got %s, %v; want %s", test.name, got, err, test.want)
		}
	}
	event, err := w.client.EventsV1().Events("default").Get(w.ctx, "a", metav1.GetOptions{})
	if err != nil || seriesCount(event) != 5 || event.Note != "note" || event.Reason != "Tried" {
		t.Errorf("got %v, %v", event, err)
	}
	w.logged(`"msg"="Event" "type"="Normal"`, 8)
}

func TestDeleteEvent(t *testing.T) {
	w := newWorld(t, nil)
	a := w.createEvent("a", nil)
	remove := func(name string, options metav1.DeleteOptions) metav1.StatusReason {
		return apierrors.ReasonForError(w.client.EventsV1().Events("default").Delete(w.ctx, name, options))
	}
	other := "1"
	for _, test := range []struct {
		name    string
		options metav1.DeleteOptions
		want    metav1.StatusReason
	}{
		{"b", metav1.DeleteOptions{}, metav1.StatusReasonNotFound},
		{"a", *metav1.NewPreconditionDeleteOptions("other"), metav1.StatusReasonConflict},
		{"a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &other}}, metav1.StatusReasonConflict},
		{"a", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.StatusReasonBadRequest},
		{"a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.UID, ResourceVersion: &a.ResourceVersion}}, ""},
		{"a", metav1.DeleteOptions{}, metav1.StatusReasonNotFound},
	} {
		if got := remove(test.name, test.options); got != test.want {
			t.Errorf("%s %v: got %q, want %q", test.name, test.options, got, test.want)
		}
	}
	if got := w.listEvents("", ""); got != "" {
		t.Errorf("left: %s", got)
	}
	if line := w.logged("Event deleted", 1)[0]; !strings.Contains(line, `"reason"="Tried" "kind"="Service"`) {
		t.Error(line)
	}
	// The name is free, and no body is as good as an empty one.
	w.createEvent("a", nil)
	code, text := w.request("DELETE", "/apis/events.k8s.io/v1/namespaces/default/events/a", w.config.BearerToken, "")
	if code != 200 || !strings.Contains(text, `"status":"Success"`) {
		t.Errorf("got %d %s", code, text)
	}
}

// TestEventLogs: events are nothing for the log of a quiet node.
func TestEventLogs(t *testing.T) {
	l := &logs{}
	w := serveWorld(t, &world{T: t, dir: t.TempDir(), logs: l, ctx: l.context(t, 1)})
	w.createEvent("a", nil)
	if err := w.client.EventsV1().Events("default").Delete(w.ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.logged(`"msg"="Event`, 0)
}

func TestWatchEvents(t *testing.T) {
	w := newWorld(t, map[string]string{"a.yaml": service("a", "10.0.0.1", "")})
	w.createEvent("old", nil)
	watcher, err := w.client.EventsV1().Events("").Watch(w.ctx, metav1.ListOptions{FieldSelector: "reason=Tried"})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	w.createEvent("other", func(e *eventsv1.Event) { e.Reason = "Other" })
	w.createEvent("new", nil)
	if _, err := w.client.EventsV1().Events("default").Patch(w.ctx, "old", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// A folder that is read anew leaves the events alone.
	w.put("a.yaml", service("b", "10.0.0.1", ""))
	w.serves("b")
	if err := w.client.EventsV1().Events("default").Delete(w.ctx, "old", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ADDED old", "ADDED new", "MODIFIED old", "DELETED old"} {
		event := next(t, watcher)
		if got := string(event.Type) + " " + event.Object.(*eventsv1.Event).Name; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := w.listEvents("", ""); got != "new other" {
		t.Errorf("left: %s", got)
	}
}

// keptNames are the names of all events, in the order in which they were
// written.
func keptNames(s *store) []string {
	items, _ := s.list(keptEvents, func(*item) bool { return true })
	slices.SortFunc(items, byVersion)
	var names []string
	for _, it := range items {
		names = append(names, it.object.GetName())
	}
	return names
}

// fill creates events 0, 1, …
func fill(t *testing.T, s *store, n int) {
	t.Helper()
	for i := range n {
		if _, err := s.createEvent(newEvent(fmt.Sprint(i), nil)); err != nil {
			t.Fatal(err)
		}
	}
}

func same(it *item) (apiObject, error) { return it.object, nil }

func TestEventsBounded(t *testing.T) {
	s := newStore(2)
	fill(t, s, maxEvents)
	// What was written again is not the oldest.
	if _, err := s.updateEvent("", "0", same); err != nil {
		t.Fatal(err)
	}
	// A name that exists makes nothing go.
	if _, err := s.createEvent(newEvent("0", nil)); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got %v", err)
	}
	before := s.current()
	for _, name := range []string{"x", "y"} {
		if _, err := s.createEvent(newEvent(name, nil)); err != nil {
			t.Fatal(err)
		}
	}
	names := keptNames(s)
	if len(names) != maxEvents || names[0] != "3" || !slices.Equal(names[maxEvents-3:], []string{"0", "x", "y"}) {
		t.Errorf("%d events: %v", len(names), names)
	}
	if got := s.current() - before; got != 4 {
		t.Errorf("%d changes, want two events created and two deleted", got)
	}
}

func TestEventsExpire(t *testing.T) {
	s := newStore(2)
	fill(t, s, 3)
	version := s.current()
	age := func(name string, by time.Duration) {
		s.collections[keptEvents].items["/"+name].written = time.Now().Add(-by)
	}
	age("0", eventTTL)
	age("1", eventTTL-time.Minute)
	age("2", eventTTL+time.Hour)
	if err := s.expireEvents(time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := keptNames(s); !slices.Equal(got, []string{"1"}) || s.current() != version+2 {
		t.Errorf("left: %v, version %d", got, s.current())
	}
	// Writing makes it young again; and a look at it changes nothing.
	if _, err := s.updateEvent("", "1", same); err != nil {
		t.Fatal(err)
	}
	version = s.current()
	if err := s.expireEvents(time.Now().Add(eventTTL - time.Minute)); err != nil || s.current() != version || len(keptNames(s)) != 1 {
		t.Errorf("left: %v, version %d, %v", keptNames(s), s.current(), err)
	}
}

// TestEventsExpireByThemselves lets an hour pass.
func TestEventsExpireByThemselves(t *testing.T) {
	w := newWorld(t, nil)
	w.createEvent("a", nil)
	w.createEvent("b", nil)
	s := w.source.store
	s.mu.Lock()
	s.collections[keptEvents].items["default/a"].written = time.Now().Add(-eventTTL)
	s.mu.Unlock()
	eventually(t, func() string {
		if got := w.listEvents("", ""); got != "b" {
			return "there are " + got
		}
		return ""
	})
}

// FuzzPatchEvent: whatever a patch is, it gives an event that is valid, of the
// same identity and without a version, or a status.
func FuzzPatchEvent(f *testing.F) {
	for _, text := range []string{
		`{"series":{"count":2,"lastObservedTime":"2024-01-02T03:04:05.000000Z"}}`, `{"series":null}`, `null`, `{}`, `[]`,
		`{"metadata":{"labels":{"a":"b"},"$patch":"replace"}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"ownerReferences":[{"uid":"a","$patch":"delete"}]}}`,
		`{"metadata":{"name":"b","resourceVersion":null}}`, `{"regarding":{"kind":"Pod"},"related":null}`,
		`{"$retainKeys":[{}]}`,
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	event := newEvent("a", nil)
	if err := prepareEvent(event, "default"); err != nil {
		f.Fatal(err)
	}
	raw, err := encode(event, 7)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, patch []byte, strategic bool) {
		kind := types.MergePatchType
		if strategic {
			kind = types.StrategicMergePatchType
		}
		patched, err := patchEvent(raw, string(kind), patch)
		if err != nil {
			if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
				t.Errorf("no status: %v", err)
			}
			return
		}
		if patched.Name != "a" || patched.Namespace != "default" || patched.UID != event.UID || patched.ResourceVersion != "" || patched.Kind != "Event" {
			t.Errorf("got %v", patched.ObjectMeta)
		}
		if _, err := json.Marshal(patched); err != nil {
			t.Error(err)
		}
	})
}
