package manifests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// bookmarkInterval is how often a quiet watch learns the current version, so
// that it does not come back with one whose changes are no longer kept.
const bookmarkInterval = time.Minute

// flushSize is how much of a long stream is written at once.
const flushSize = 256 << 10

// A stream answers one watch.
type stream struct {
	store   *store
	query   *query
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  bytes.Buffer
	version uint64 // the client knows all changes up to and with this one
}

// begin returns the objects that the watch begins with, or the status with which
// to answer instead.
func (s *stream) begin() ([]*item, error) {
	q := s.query
	if q.initial {
		items, now := s.store.list(q.resource, q.matches)
		s.version = now
		return items, nil
	}
	s.version = q.version
	if s.version == 0 {
		s.version = s.store.current() // from now on
	}
	if _, now, _, ok := s.store.since(q.resource, s.version); !ok {
		return nil, errExpired(s.version, now)
	}
	return nil, nil
}

func (s *stream) run(ctx context.Context, begin []*item) {
	for _, it := range begin {
		if !s.write(watch.Added, it.raw) {
			return
		}
	}
	if s.query.marksEnd {
		s.frame(watch.Bookmark, s.query.bookmark(s.version, true))
	}
	if !s.flush() {
		return
	}
	tick := time.NewTicker(bookmarkInterval)
	defer tick.Stop()
	for {
		next, ok := s.advance()
		if !ok {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
		case <-tick.C:
			if s.query.bookmarks {
				s.frame(watch.Bookmark, s.query.bookmark(s.version, false))
				if !s.flush() {
					return
				}
			}
		}
	}
}

// advance sends the changes that there are and returns a channel that is closed
// when there are more. It is not ok if the stream has to end.
func (s *stream) advance() (next <-chan struct{}, ok bool) {
	changes, now, next, ok := s.store.since(s.query.resource, s.version)
	if !ok {
		// The client was too slow to read.
		raw, err := json.Marshal(responsewriters.ErrorToAPIStatus(errExpired(s.version, now)))
		if err == nil && s.write(watch.Error, raw) {
			s.flush()
		}
		return nil, false
	}
	for _, c := range changes {
		event, raw := s.query.see(c)
		if event != "" && !s.write(event, raw) {
			return nil, false
		}
	}
	s.version = now
	return next, s.flush()
}

// see returns what a change means to a watch with a selector: an object that
// stops matching is deleted, one that starts to match is added.
func (q *query) see(c change) (watch.EventType, []byte) {
	before := c.old != nil && q.matches(c.old)
	after := c.new != nil && q.matches(c.new)
	switch {
	case before && after:
		return watch.Modified, c.new.raw
	case after:
		return watch.Added, c.new.raw
	case before:
		return watch.Deleted, c.gone
	}
	return "", nil
}

func (s *stream) frame(event watch.EventType, raw []byte) {
	fmt.Fprintf(&s.buffer, `{"type":%q,"object":`, event)
	s.buffer.Write(raw)
	s.buffer.WriteString("}\n")
}

// write adds an event. It reports false if the client is gone.
func (s *stream) write(event watch.EventType, raw []byte) bool {
	s.frame(event, raw)
	return s.buffer.Len() < flushSize || s.flush()
}

// flush sends what is buffered, within writeTimeout. It reports false if the
// client is gone.
func (s *stream) flush() bool {
	// The deadline is for this write only: on HTTP/2 one that passes while
	// nothing is written would end the stream.
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.w.Write(s.buffer.Bytes()); err != nil {
		return false
	}
	s.buffer.Reset()
	if err := s.control.Flush(); err != nil {
		return false
	}
	_ = s.control.SetWriteDeadline(time.Time{})
	return true
}
