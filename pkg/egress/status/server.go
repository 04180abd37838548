package status

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/openshift/origin-node/pkg/egress/socket"
)

const (
	// patience is how long a reader may leave one document unread.
	patience = 10 * time.Second
	// verifyTimeout is how long a comparison with the kernel may take.
	verifyTimeout = time.Minute
	// watchPeriod is the least time between two documents of a watch.
	watchPeriod = 300 * time.Millisecond
)

// Resource is a document that another extension tells on the socket.
type Resource struct {
	// Path is that of the request.
	Path string
	// Get returns the document. It is called by several goroutines.
	Get func(ctx context.Context) (any, error)
	// Ask is called in place of Get with the request's query, if it is not nil.
	Ask func(ctx context.Context, query url.Values) (any, error)
}

// Handler answers from source, which is nil if egress SNAT is off, and others. Only root and the user that the process runs as get answers.
func Handler(source Source, others ...Resource) http.Handler {
	return newServer(source, others).handler()
}

func newServer(source Source, others []Resource) *server {
	return &server{
		source:    source,
		others:    others,
		uids:      map[uint32]bool{0: true, uint32(os.Geteuid()): true},
		patience:  patience,
		verifying: make(chan struct{}, 1),
	}
}

type server struct {
	source   Source
	others   []Resource
	uids     map[uint32]bool
	patience time.Duration
	// verifying has one element while the kernel is looked at: that costs something.
	verifying chan struct{}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	if s.source != nil {
		mux.HandleFunc("GET "+snapshotPath, s.snapshot)
		mux.HandleFunc("GET "+verifyPath, s.verify)
		s.addPool(mux)
	}
	for _, resource := range s.others {
		mux.HandleFunc("GET "+resource.Path, func(w http.ResponseWriter, r *http.Request) { s.other(w, r, resource) })
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		mux.HandleFunc(method+" /", func(w http.ResponseWriter, _ *http.Request) {
			s.answer(w, http.StatusNotFound, failure{"what was asked for is switched off in the node's configuration, or the node's version does not have it"})
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uid, known := socket.Peer(r.Context())
		switch {
		case !known || !s.uids[uid]:
			// Read no body, and wait for none.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
			s.answer(w, http.StatusForbidden, failure{"only root, and the user that the node runs as, may ask it"})
		case r.ContentLength != 0:
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
			s.answer(w, http.StatusBadRequest, failure{"the request has a body; none takes one"})
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

func (s *server) snapshot(w http.ResponseWriter, r *http.Request) {
	switch watch := r.URL.Query().Get(watchQuery); watch {
	case "", "false":
		s.answer(w, http.StatusOK, s.source.Snapshot())
	case "true":
		s.watch(w, r)
	default:
		s.answer(w, http.StatusBadRequest, failure{fmt.Sprintf("%s=%q; use true or false", watchQuery, watch)})
	}
}

// watch writes snapshots until the reader leaves, or does not read, or the server ends.
func (s *server) watch(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	pace := time.NewTicker(watchPeriod)
	defer pace.Stop()
	for {
		changed := s.source.Changed() // first, so that no change falls in between
		if socket.Write(w, http.StatusOK, s.source.Snapshot(), s.patience) != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
	}
}

// other answers with what another extension tells. A comparison with the kernel may take long.
func (s *server) other(w http.ResponseWriter, r *http.Request, resource Resource) {
	ctx, cancel := context.WithTimeout(r.Context(), verifyTimeout)
	defer cancel()
	get := resource.Get
	if resource.Ask != nil {
		get = func(ctx context.Context) (any, error) { return resource.Ask(ctx, r.URL.Query()) }
	}
	document, err := get(ctx)
	s.tell(w, document, err, http.StatusInternalServerError)
}

func (s *server) verify(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), verifyTimeout)
	defer cancel()
	select {
	case s.verifying <- struct{}{}:
		defer func() { <-s.verifying }()
	case <-ctx.Done():
		s.answer(w, http.StatusServiceUnavailable, failure{"another comparison of plan and kernel is under way"})
		return
	}
	differences, err := s.source.Verify(ctx)
	s.tell(w, verification{differences}, err, http.StatusInternalServerError)
}

// tell answers with a document; if there is an error instead, with that and a code.
func (s *server) tell(w http.ResponseWriter, document any, err error, otherwise int) {
	if err != nil {
		s.answer(w, otherwise, failure{err.Error()})
		return
	}
	s.answer(w, http.StatusOK, document)
}

// answer answers a reader that may have gone.
func (s *server) answer(w http.ResponseWriter, code int, document any) {
	_ = socket.Write(w, code, document, s.patience)
}
