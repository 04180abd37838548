package manifests

import (
	"bytes"
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/version"
)

// writeTimeout is how long a client may read nothing before it is dropped.
const writeTimeout = 30 * time.Second

// A handler is the API endpoint. Its token is the only way in.
type handler struct {
	store *store
	token string
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.authorized(r) {
		writeError(w, apierrors.NewUnauthorized("a valid bearer token is needed"))
		return
	}
	switch r.URL.Path {
	case "/healthz", "/livez", "/readyz":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok"))
	case "/version":
		writeJSON(w, http.StatusOK, version.Get())
	default:
		if document := discover(r.URL.Path); document != nil {
			serveDocument(w, r, document)
			return
		}
		h.serveResource(w, r)
	}
}

func (h *handler) authorized(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(h.token)) == 1
}

// A target is what the path of a request names.
type target struct {
	schema.GroupVersionResource
	namespace string
	name      string
}

// parseTarget reads /api/v1/… and /apis/GROUP/VERSION/… paths.
func parseTarget(path string) (target, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var t target
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return target{}, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.Resource = parts[0]
	switch len(parts) {
	case 1:
		return t, true
	case 2:
		t.name = parts[1]
		return t, t.name != ""
	}
	return target{}, false
}

func (h *handler) serveResource(w http.ResponseWriter, r *http.Request) {
	t, ok := parseTarget(r.URL.Path)
	if !ok {
		writeError(w, errNotFound())
		return
	}
	res := resourceOf(t.GroupVersionResource)
	switch {
	case res == nil, t.namespace != "" && !res.namespaced, t.name != "" && t.namespace == "" && res.namespaced:
		writeError(w, errNotFound())
	case !slices.Contains(res.verbs, t.verb(r.Method)):
		writeError(w, errMethod(r.Method))
	case r.Method == http.MethodGet:
		h.serveGet(w, r, t, res)
	default:
		h.serveEvent(w, r, t, res)
	}
}

// verb is the API's word for a request, "get" for all that only reads. It is
// empty for what no resource here can do.
func (t target) verb(method string) string {
	one, many := t.name != "", t.name == "" && t.namespace != ""
	switch {
	case method == http.MethodGet:
		return "get"
	case method == http.MethodPost && many:
		return "create"
	case method == http.MethodPatch && one:
		return "patch"
	}
	return ""
}

func (h *handler) serveGet(w http.ResponseWriter, r *http.Request, t target, res *resource) {
	q, err := newQuery(res, t.namespace, t.name, r.URL.Query())
	switch {
	case err != nil:
		writeError(w, err)
	case q.watch:
		h.serveWatch(w, r, q)
	case t.name != "":
		h.serveObject(w, t, res)
	default:
		h.serveList(w, q)
	}
}

func (h *handler) serveObject(w http.ResponseWriter, t target, res *resource) {
	it := h.store.get(res, t.namespace, t.name)
	if it == nil {
		writeError(w, apierrors.NewNotFound(t.GroupResource(), t.name))
		return
	}
	writeRaw(w, http.StatusOK, it.raw)
}

func (h *handler) serveList(w http.ResponseWriter, q *query) {
	items, now := h.store.list(q.resource, q.matches)
	if err := q.check(now); err != nil {
		writeError(w, err)
		return
	}
	if q.exact && q.version != now {
		writeError(w, errExpired(q.version, now))
		return
	}
	raws := make([][]byte, len(items))
	for i, it := range items {
		raws[i] = it.raw
	}
	writeRaw(w, http.StatusOK, fmt.Appendf(nil, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[%s]}`,
		q.resource.kind, q.resource.GroupVersion().String(), now, bytes.Join(raws, []byte(","))))
}

func writeRaw(w http.ResponseWriter, code int, raw []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(raw)
}

// check refuses a version that has not been given out yet, with the status that
// tells client-go to list anew.
func (q *query) check(now uint64) error {
	if q.version <= now {
		return nil
	}
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", q.version, now), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

func errExpired(version, now uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, now))
}

// serveWatch streams changes until the client, the timeout or the server ends
// it, or the client falls too far behind.
func (h *handler) serveWatch(w http.ResponseWriter, r *http.Request, q *query) {
	if err := q.check(h.store.current()); err != nil {
		writeError(w, err)
		return
	}
	s := &stream{store: h.store, query: q, w: w, control: http.NewResponseController(w)}
	begin, err := s.begin()
	if err != nil {
		writeError(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), q.timeout)
	defer cancel()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	s.run(ctx, begin)
}

// bookmark is an object of the query's kind that carries nothing but a version.
func (q *query) bookmark(version uint64, end bool) []byte {
	annotations := ""
	if end {
		annotations = `,"annotations":{` + strconv.Quote(metav1.InitialEventsAnnotationKey) + `:"true"}`
	}
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"%s}}`,
		q.resource.kind, q.resource.GroupVersion().String(), version, annotations)
}
