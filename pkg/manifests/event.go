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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
)

const (
	// maxEventSize is many times what an event may say, and little enough to
	// keep maxEvents of them.
	maxEventSize = 64 << 10
	// bodyTimeout is how long a client may take to send one.
	bodyTimeout = 10 * time.Second
)

// serveEvent takes what a client says about events. Those of events.k8s.io are
// kept for a while. Those of core become log lines and no more.
func (h *handler) serveEvent(w http.ResponseWriter, r *http.Request, t target, res *resource) {
	body, err := readBody(w, r)
	if err != nil {
		writeError(w, err)
		return
	}
	if r.URL.Query().Has("dryRun") {
		writeError(w, apierrors.NewBadRequest("dryRun is not supported"))
		return
	}
	logger := klog.FromContext(r.Context()).V(2)
	var it *item
	code := http.StatusOK
	switch {
	case res != keptEvents:
		serveLogged(w, logger, t, r.Method, body)
		return
	case r.Method == http.MethodDelete:
		h.deleteEvent(w, logger, t, body)
		return
	case r.Method == http.MethodPatch:
		it, err = h.store.updateEvent(t.namespace, t.name, func(old *item) (apiObject, error) {
			return patchEvent(old.raw, r.Header.Get("Content-Type"), body)
		})
	default:
		code = http.StatusCreated
		it, err = h.createEvent(t, body)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	logEvent(logger, it.object.(*eventsv1.Event))
	writeRaw(w, code, it.raw)
}

func (h *handler) createEvent(t target, body []byte) (*item, error) {
	event, err := decodeBody[*eventsv1.Event](body, keptEvents.gvk())
	if err == nil {
		err = prepareEvent(event, t.namespace)
	}
	if err != nil {
		return nil, err
	}
	return h.store.createEvent(event)
}

func (h *handler) deleteEvent(w http.ResponseWriter, logger klog.Logger, t target, body []byte) {
	options := &metav1.DeleteOptions{}
	var err error
	if len(body) > 0 {
		options, err = decodeBody[*metav1.DeleteOptions](body, v1.SchemeGroupVersion.WithKind("DeleteOptions"))
	}
	if err == nil && len(options.DryRun) > 0 {
		err = apierrors.NewBadRequest("dryRun is not supported")
	}
	if err != nil {
		writeError(w, err)
		return
	}
	it, err := h.store.removeEvent(t.namespace, t.name, func(it *item) error {
		return checkPreconditions(it, options.Preconditions)
	})
	if err != nil {
		writeError(w, err)
		return
	}
	event := it.object.(*eventsv1.Event)
	logger.Info("Event deleted", "event", klog.KObj(event), "reason", event.Reason, "kind", event.Regarding.Kind,
		"object", klog.KRef(event.Regarding.Namespace, event.Regarding.Name))
	writeJSON(w, http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		// The API server, too, calls the resource the kind here.
		Details: &metav1.StatusDetails{Name: event.Name, Group: t.Group, Kind: t.Resource, UID: event.UID},
	})
}

// serveLogged takes an event of core. A patch has an event's fields.
func serveLogged(w http.ResponseWriter, logger klog.Logger, t target, method string, body []byte) {
	kind := v1.SchemeGroupVersion.WithKind("Event")
	event, err := decodeBody[*v1.Event](body, kind)
	if err != nil {
		writeError(w, err)
		return
	}
	if event.Namespace == "" {
		event.Namespace = t.namespace
	}
	if event.Name == "" {
		event.Name = t.name
	}
	event.SetGroupVersionKind(kind)
	logger.Info("Event", "type", event.Type, "reason", event.Reason, "kind", event.InvolvedObject.Kind,
		"object", klog.KRef(event.InvolvedObject.Namespace, event.InvolvedObject.Name), "note", event.Message)
	code := http.StatusOK
	if method == http.MethodPost {
		code = http.StatusCreated
	}
	writeJSON(w, code, event)
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEventSize))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, errTooMuch()
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("read body: %v", err))
	}
	return body, nil
}

func errTooMuch() error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("an event may have %d bytes", maxEventSize))
}

// decodeBody decodes a body, whatever its encoding: client-go's codecs tell
// protobuf, CBOR and JSON by their first bytes. kind is what it is if it does
// not say so itself.
func decodeBody[T runtime.Object](body []byte, kind schema.GroupVersionKind) (T, error) {
	var none T
	if len(body) == 0 {
		return none, apierrors.NewBadRequest("the body is empty")
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, &kind, nil)
	if err != nil {
		return none, apierrors.NewBadRequest(fmt.Sprintf("decode %s: %v", kind.Kind, err))
	}
	object, ok := decoded.(T)
	if !ok {
		return none, apierrors.NewBadRequest(fmt.Sprintf("a %s of %s is wanted, not a %T", kind.Kind, kind.GroupVersion(), decoded))
	}
	return object, nil
}

func logEvent(logger klog.Logger, event *eventsv1.Event) {
	logger.Info("Event", "type", event.Type, "reason", event.Reason, "kind", event.Regarding.Kind,
		"object", klog.KRef(event.Regarding.Namespace, event.Regarding.Name), "note", event.Note, "count", seriesCount(event))
}

// seriesCount is how often the event has happened.
func seriesCount(event *eventsv1.Event) int32 {
	if event.Series == nil {
		return 1
	}
	return event.Series.Count
}
