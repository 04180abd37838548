package cni

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/openshift/origin-node/pkg/egress/socket"
)

// Client asks the node that listens on a socket. An error that is no [*Failure] means that no node answered; it is
// [ErrHangs] if time ended the request.
type Client struct{ path string }

// answerTime is how long a node may take at least to say that it does not decide, unless that is more than half of the
// time that there is.
const answerTime = 500 * time.Millisecond

// ErrHangs means that the node did not answer in time.
var ErrHangs = errors.New("the node process hangs: it did not answer in time")

// NewClient returns a Client for the socket at path. It does not connect.
func NewClient(path string) *Client { return &Client{path} }

// Attach says that a pod is about to run, and returns what was decided for it. The request's deadline is a little before
// that of ctx, so that the node says why it does not decide.
func (c *Client) Attach(ctx context.Context, request Request) (decision Decision, err error) {
	if ms := deadlineMS(ctx); ms > 0 {
		request.DeadlineMS = ms
	}
	err = c.ask(ctx, socket.Request{Method: http.MethodPost, Path: attachmentsPath, Body: request}, &decision)
	return decision, err
}

// deadlineMS is how long the node may take, in milliseconds, so that it can say why it does not decide before ctx ends; 0 if ctx does not end.
func deadlineMS(ctx context.Context) int64 {
	deadline, is := ctx.Deadline()
	if !is {
		return 0
	}
	left := time.Until(deadline)
	return max((left - max(left/10, min(answerTime, left/2))).Milliseconds(), 1)
}

// PassLocalPorts passes the node the setting of source ports in a pod's network namespace, open for reading and writing, so that it can
// give the pod more of them later. The file stays the caller's. A node that does not know the request answers with an error.
func (c *Client) PassLocalPorts(ctx context.Context, containerID string, file *os.File) error {
	return c.ask(ctx, socket.Request{Method: http.MethodPut, Path: attachmentsPath + "/" + url.PathEscape(containerID) + localPortsPath, File: file}, nil)
}

// Detach says that a pod has given its addresses back.
func (c *Client) Detach(ctx context.Context, containerID, ifName string) error {
	path := attachmentsPath + "/" + url.PathEscape(containerID) + "?ifName=" + url.QueryEscape(ifName)
	return c.ask(ctx, socket.Request{Method: http.MethodDelete, Path: path}, nil)
}

// Check returns what the kernel holds of a decision. The node has a little less time than ctx, as with Attach.
func (c *Client) Check(ctx context.Context, containerID string) (decision Decision, err error) {
	path := fmt.Sprintf("%s/%s?deadlineMS=%d", attachmentsPath, url.PathEscape(containerID), deadlineMS(ctx))
	err = c.ask(ctx, socket.Request{Method: http.MethodGet, Path: path}, &decision)
	return decision, err
}

// Collect says which sandboxes there are.
func (c *Client) Collect(ctx context.Context, valid []string) error {
	return c.ask(ctx, socket.Request{Method: http.MethodPost, Path: gcPath, Body: sandboxes{valid}}, nil)
}

// Ready returns why the node could not decide now, or nil.
func (c *Client) Ready(ctx context.Context) error {
	return c.ask(ctx, socket.Request{Method: http.MethodGet, Path: readyPath}, nil)
}

// ask makes a request, and decodes the answer into target, nil for none.
func (c *Client) ask(ctx context.Context, request socket.Request, target any) error {
	no := &Failure{}
	answer, err := socket.Ask(ctx, c.path, request, no)
	switch {
	case err != nil && ctx.Err() != nil && !errors.As(err, &no):
		return fmt.Errorf("%w: %w", ErrHangs, err)
	case err != nil:
		return err
	}
	defer answer.Close()
	if target == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(answer, 1<<20)).Decode(target)
}
