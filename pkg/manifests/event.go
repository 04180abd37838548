package manifests

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
)

const (
	// maxEventSize is many times what an Event may say.
	maxEventSize = 64 << 10
	// bodyTimeout is how long a client may take to send one.
	bodyTimeout = 10 * time.Second
)

// serveEvent logs an Event that a client creates. Events are not kept, so there is none to patch:
// client-go's recorders answer that by creating the whole Event again, which is what the log needs.
func (h *handler) serveEvent(w http.ResponseWriter, r *http.Request, t target, res *resource) {
	if r.Method == http.MethodPatch {
		writeError(w, apierrors.NewNotFound(t.GroupResource(), t.name))
		return
	}
	body, err := readBody(w, r)
	if err != nil {
		writeError(w, err)
		return
	}
	// The codecs tell protobuf, CBOR and JSON by their first bytes.
	kind := res.gvk()
	event, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, &kind, nil)
	if err != nil {
		writeError(w, apierrors.NewBadRequest(fmt.Sprintf("decode Event: %v", err)))
		return
	}
	logger := klog.FromContext(r.Context()).V(2)
	switch event := event.(type) {
	case *v1.Event:
		logEvent(logger, event.Type, event.Reason, event.InvolvedObject, event.Message, event.Count)
	case *eventsv1.Event:
		logEvent(logger, event.Type, event.Reason, event.Regarding, event.Note, seriesCount(event))
	default:
		writeError(w, apierrors.NewBadRequest(fmt.Sprintf("expected an Event, got %T", event)))
		return
	}
	event.GetObjectKind().SetGroupVersionKind(kind)
	writeJSON(w, http.StatusCreated, event)
}

func logEvent(logger klog.Logger, kind, reason string, about v1.ObjectReference, note string, count int32) {
	logger.Info("Event", "type", kind, "reason", reason, "kind", about.Kind,
		"object", klog.KRef(about.Namespace, about.Name), "note", note, "count", count)
}

// seriesCount is how often the Event has happened.
func seriesCount(event *eventsv1.Event) int32 {
	if event.Series == nil {
		return 1
	}
	return event.Series.Count
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEventSize))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("an Event may have %d bytes", maxEventSize))
	case err != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("read body: %v", err))
	case len(body) == 0:
		return nil, apierrors.NewBadRequest("the body is empty")
	}
	return body, nil
}
