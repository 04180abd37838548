package cni

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/socket"
)

const (
	// readTimeout is how long a request may take to arrive.
	readTimeout = 5 * time.Second
	// writeTimeout is how long a plugin may leave its answer unread.
	writeTimeout = 5 * time.Second
	// longestWait bounds how long a request waits for the kernel, whatever its deadline.
	longestWait = 2 * time.Minute
)

// Node decides. An error of its methods may be a [*Failure], which the plugin is told as it is. They are called by
// several goroutines, and may be called again for the same. Each returns when ctx ends.
type Node interface {
	// Attach takes an attachment, and returns what became of it when a sync that began later has written it in
	// the IP families of its addresses.
	Attach(ctx context.Context, a attachments.Attachment) (Decision, error)
	// TakeLocalPorts takes the setting of source ports in the network namespace of an attachment's pod, open for reading and writing. The
	// file is the Node's then, also after an error.
	TakeLocalPorts(containerID string, file *os.File) error
	// Detach returns when nothing in the kernel is for an attachment any more. One that is unknown is none.
	Detach(ctx context.Context, containerID string) error
	// Check returns what was decided for an attachment if the kernel holds it.
	Check(ctx context.Context, containerID string) (Decision, error)
	// Collect takes which sandboxes there are, as of a time.
	Collect(ctx context.Context, valid []string, at time.Time) error
	// Ready returns why it could not decide now about pods with addresses of all IP families that the cluster has, or nil.
	Ready() error
}

// Handler answers root from node. It refuses everybody else, without reading what they send.
func Handler(node Node) http.Handler {
	next := handler(node)
	return socket.WithFiles(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if uid, known := socket.Peer(r.Context()); !known || uid != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
			fail(w, &Failure{Reason: Forbidden, Message: "only root may ask"})
			return
		}
		next.ServeHTTP(w, r)
	}))
}

func handler(node Node) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+attachmentsPath, func(w http.ResponseWriter, r *http.Request) {
		var request Request
		if err := read(w, r, &request); err != nil {
			fail(w, err)
			return
		}
		if err := request.validate(); err != nil {
			fail(w, &Failure{Reason: Invalid, Message: err.Error()})
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), min(time.Duration(request.DeadlineMS)*time.Millisecond, longestWait))
		defer cancel()
		decision, err := node.Attach(ctx, request.attachment(time.Now()))
		answer(w, decision, err)
	})
	mux.HandleFunc("DELETE "+attachmentsPath+"/{id}", forContainer(func(w http.ResponseWriter, r *http.Request, id string) {
		if ifName := r.URL.Query().Get("ifName"); ifName != Interface {
			fail(w, &Failure{Reason: Invalid, Message: fmt.Sprintf("the interface is %q; expected %s", ifName, Interface)})
			return
		}
		answer(w, nil, node.Detach(r.Context(), id))
	}))
	mux.HandleFunc("GET "+attachmentsPath+"/{id}", forContainer(func(w http.ResponseWriter, r *http.Request, id string) {
		ctx := r.Context()
		if ms, err := strconv.ParseInt(r.URL.Query().Get("deadlineMS"), 10, 64); err == nil && ms > 0 { // older plugins give none
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
			defer cancel()
		}
		decision, err := node.Check(ctx, id)
		answer(w, decision, err)
	}))
	mux.HandleFunc("PUT "+attachmentsPath+"/{id}"+localPortsPath, forContainer(func(w http.ResponseWriter, r *http.Request, id string) {
		file := socket.TakeFile(r.Context())
		if err := validateLocalPorts(file); err != nil {
			fail(w, &Failure{Reason: Invalid, Message: err.Error()})
			return
		}
		answer(w, nil, node.TakeLocalPorts(id, file))
	}))
	mux.HandleFunc("POST "+gcPath, func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		var all sandboxes
		if err := read(w, r, &all); err != nil {
			fail(w, err)
			return
		}
		if all.Valid == nil {
			fail(w, &Failure{Reason: Invalid, Message: "valid is missing; expected the IDs of all sandboxes"})
			return
		}
		answer(w, nil, node.Collect(r.Context(), all.Valid, at))
	})
	mux.HandleFunc("GET "+readyPath, func(w http.ResponseWriter, _ *http.Request) { answer(w, struct{}{}, node.Ready()) })
	return mux
}

// forContainer calls next with the container ID of the path, if it is one. The request's context ends after longestWait.
func forContainer(next func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if err := attachments.ValidateID(id); err != nil {
			fail(w, &Failure{Reason: Invalid, Message: err.Error()})
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), longestWait)
		defer cancel()
		next(w, r.WithContext(ctx), id)
	}
}

// read decodes a request's body, of at most longestBody.
func read(w http.ResponseWriter, r *http.Request, document any) error {
	controller := http.NewResponseController(w)
	_ = controller.SetReadDeadline(time.Now().Add(readTimeout))
	defer func() { _ = controller.SetReadDeadline(time.Time{}) }() // later it would end the request's context
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestBody)).Decode(document); err != nil {
		return &Failure{Reason: Invalid, Message: "reading the request: " + err.Error()}
	}
	return nil
}

// answer writes a document, which is nil for none, or why there is none.
func answer(w http.ResponseWriter, document any, err error) {
	switch {
	case err != nil:
		fail(w, err)
	case document == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		_ = socket.Write(w, http.StatusOK, document, writeTimeout) // the plugin may have gone
	}
}

func fail(w http.ResponseWriter, err error) {
	var failure *Failure
	if !errors.As(err, &failure) {
		failure = &Failure{Reason: NotWritten, Message: err.Error()}
	}
	code := http.StatusServiceUnavailable
	switch failure.Reason {
	case Invalid:
		code = http.StatusBadRequest
	case Forbidden:
		code = http.StatusForbidden
	case NotAttached:
		code = http.StatusNotFound
	}
	_ = socket.Write(w, code, failure, writeTimeout)
}
