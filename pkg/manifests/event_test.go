package manifests

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

var aNode = &v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "n1"}

// TestServe_EventsOfKubeProxy are logged, each time in full. They come in protobuf.
func TestServe_EventsOfKubeProxy(t *testing.T) {
	w := newWorld(t, nil)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: w.client.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(w.ctx); err != nil {
		t.Fatal(err)
	}
	recorder := broadcaster.NewRecorder(scheme.Scheme, "kube-proxy")
	const line = `"msg"="Event" "type"="Normal" "reason"="Starting" "kind"="Node" "object"={"name"="n1"} "note"="here we go" "count"=`
	recorder.Eventf(aNode, nil, v1.EventTypeNormal, "Starting", "StartKubeProxy", "here we go")
	w.logged(line+"1", 1)
	recorder.Eventf(aNode, nil, v1.EventTypeNormal, "Starting", "StartKubeProxy", "here we go")
	w.logged(line+"2", 1) // the recorder tried a patch
}

// TestServe_EventsOfEgressSNAT are those of client-go's other recorder.
func TestServe_EventsOfEgressSNAT(t *testing.T) {
	w := newWorld(t, nil)
	broadcaster := record.NewBroadcaster(record.WithContext(w.ctx))
	broadcaster.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: w.client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: "tester"})
	service := &v1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"}
	const line = `"msg"="Event" "type"="Warning" "reason"="NotAllowed" "kind"="Service" "object"={"name"="web" "namespace"="shop"} "note"="no" "count"=`
	recorder.Event(service, v1.EventTypeWarning, "NotAllowed", "no")
	w.logged(line+"1", 1)
	recorder.Event(service, v1.EventTypeWarning, "NotAllowed", "no")
	w.logged(line+"2", 1)
}

// TestServe_EventsOnAQuietNode: Events are nothing for the log of a node at level 0.
func TestServe_EventsOnAQuietNode(t *testing.T) {
	l := &logs{}
	w := serveWorld(t, &world{T: t, dir: t.TempDir(), logs: l, ctx: l.context(t, 1)})
	code, text := w.request("POST", "/api/v1/namespaces/default/events", w.config.BearerToken, `{"metadata":{"name":"x"},"reason":"Tried"}`)
	if code != 201 || !strings.Contains(text, `"reason":"Tried"`) {
		t.Errorf("got %d %s", code, text)
	}
	w.logged(`"msg"="Event`, 0)
}

func TestServe_EventsRefused(t *testing.T) {
	w := newWorld(t, nil)
	const core, group = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
	for _, test := range []struct {
		name, method, path, body string
		code                     int
		part                     string
	}{
		{"not JSON", "POST", group, "{", 400, "decode Event"},
		{"another kind", "POST", group, `{"kind":"Service","apiVersion":"v1"}`, 400, "expected an Event, got *v1.Service"},
		{"nothing", "POST", core, "", 400, "the body is empty"},
		{"too much", "POST", core, strings.Repeat("x", maxEventSize+1), 413, "an Event may have 65536 bytes"},
		{"a patch, for none is kept", "PATCH", core + "/x", `{}`, 404, `events \"x\" not found`},
		{"a patch of the other group", "PATCH", group + "/x", `{}`, 404, `events.events.k8s.io \"x\" not found`},
		{"delete", "DELETE", group + "/x", "", 405, `"reason":"MethodNotAllowed"`},
		{"list", "GET", group, "", 405, `"reason":"MethodNotAllowed"`},
	} {
		code, text := w.request(test.method, test.path, w.config.BearerToken, test.body)
		if code != test.code || !strings.Contains(text, test.part) {
			t.Errorf("%s: got %d %s", test.name, code, text)
		}
	}
	w.logged(`"msg"="Event"`, 0)
}
