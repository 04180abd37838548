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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
)

const (
	// maxEventSize is the API server's limit of a request.
	maxEventSize = 3 << 20
	// bodyTimeout is how long a client may take to send one.
	bodyTimeout = 10 * time.Second
)

// eventKinds are the forms in which events come. There is nobody to read them
// later, so they become log lines.
var eventKinds = map[schema.GroupVersionResource]schema.GroupVersionKind{
	v1.SchemeGroupVersion.WithResource("events"):       v1.SchemeGroupVersion.WithKind("Event"),
	eventsv1.SchemeGroupVersion.WithResource("events"): eventsv1.SchemeGroupVersion.WithKind("Event"),
}

// serveEvent takes the creation of an event, and the patch that says that it
// happened again.
func serveEvent(w http.ResponseWriter, r *http.Request, t target, kind schema.GroupVersionKind) {
	creates := r.Method == http.MethodPost && t.namespace != "" && t.name == ""
	patches := r.Method == http.MethodPatch && t.name != ""
	if !creates && !patches {
		writeError(w, errMethod(r.Method))
		return
	}
	event, err := readEvent(w, r, kind)
	if err != nil {
		writeError(w, err)
		return
	}
	if event.GetNamespace() == "" {
		event.SetNamespace(t.namespace)
	}
	if event.GetName() == "" {
		event.SetName(t.name)
	}
	event.GetObjectKind().SetGroupVersionKind(kind)
	logEvent(r, event)
	code := http.StatusOK
	if creates {
		code = http.StatusCreated
	}
	writeJSON(w, code, event)
}

// readEvent decodes the body, whatever its encoding: client-go's codecs tell
// protobuf, CBOR and JSON by their first bytes. A patch has an event's fields.
func readEvent(w http.ResponseWriter, r *http.Request, kind schema.GroupVersionKind) (apiObject, error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEventSize))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("an event may have %d bytes", tooLarge.Limit))
	}
	if err != nil || len(body) == 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("read body of %d bytes: %v", len(body), err))
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, &kind, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode event: %v", err))
	}
	switch event := decoded.(type) {
	case *v1.Event:
		return event, nil
	case *eventsv1.Event:
		return event, nil
	}
	return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not an event", decoded))
}

func logEvent(r *http.Request, event apiObject) {
	logger := klog.FromContext(r.Context()).V(2)
	switch event := event.(type) {
	case *v1.Event:
		logger.Info("Event", "type", event.Type, "reason", event.Reason, "kind", event.InvolvedObject.Kind,
			"object", klog.KRef(event.InvolvedObject.Namespace, event.InvolvedObject.Name), "note", event.Message)
	case *eventsv1.Event:
		logger.Info("Event", "type", event.Type, "reason", event.Reason, "kind", event.Regarding.Kind,
			"object", klog.KRef(event.Regarding.Namespace, event.Regarding.Name), "note", event.Note)
	}
}
