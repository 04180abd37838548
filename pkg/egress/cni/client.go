package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/openshift/origin-node/pkg/egress/socket"
)

// Client asks the node that listens on a socket. An error that is no [*Failure] means that no node answered; it is
// [ErrHangs] if time ended the request.
type Client struct {
	path string
	http http.Client
}

// answerTime is how long a node may take at least to say that it does not decide, unless that is more than half of the
// time that there is.
const answerTime = 500 * time.Millisecond

// ErrHangs means that the node did not answer in time.
var ErrHangs = errors.New("the node process hangs: it did not answer in time")

// NewClient returns a Client for the socket at path. It does not connect.
func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &Client{path, http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Attach says that a pod is about to run, and returns what was decided for it. The request's deadline is a little before
// that of ctx, so that the node says why it does not decide.
func (c *Client) Attach(ctx context.Context, request Request) (decision Decision, err error) {
	if ms := deadlineMS(ctx); ms > 0 {
		request.DeadlineMS = ms
	}
	err = c.ask(ctx, http.MethodPost, attachmentsPath, request, &decision)
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
	passing := NewClient(c.path)
	passing.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", c.path)
		if err != nil {
			return nil, err
		}
		return socket.Passing(conn.(*net.UnixConn), file), nil
	}
	return passing.ask(ctx, http.MethodPut, attachmentsPath+"/"+url.PathEscape(containerID)+localPortsPath, nil, nil)
}

// Detach says that a pod has given its addresses back.
func (c *Client) Detach(ctx context.Context, containerID, ifName string) error {
	return c.ask(ctx, http.MethodDelete, attachmentsPath+"/"+url.PathEscape(containerID)+"?ifName="+url.QueryEscape(ifName), nil, nil)
}

// Check returns what the kernel holds of a decision. The node has a little less time than ctx, as with Attach.
func (c *Client) Check(ctx context.Context, containerID string) (decision Decision, err error) {
	err = c.ask(ctx, http.MethodGet, fmt.Sprintf("%s/%s?deadlineMS=%d", attachmentsPath, url.PathEscape(containerID), deadlineMS(ctx)), nil, &decision)
	return decision, err
}

// Collect says which sandboxes there are.
func (c *Client) Collect(ctx context.Context, valid []string) error {
	return c.ask(ctx, http.MethodPost, gcPath, sandboxes{valid}, nil)
}

// Ready returns why the node could not decide now, or nil.
func (c *Client) Ready(ctx context.Context) error {
	return c.ask(ctx, http.MethodGet, readyPath, nil, nil)
}

// ask sends a document, nil for none, and decodes the answer into target, nil for none.
func (c *Client) ask(ctx context.Context, method, path string, document, target any) error {
	var body io.Reader
	if document != nil {
		encoded, err := json.Marshal(document)
		if err != nil {
			return err
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://node"+path, body)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrHangs, err)
	case err != nil:
		return err
	}
	defer response.Body.Close()
	limited := io.LimitReader(response.Body, 1<<20)
	if response.StatusCode/100 != 2 {
		failure := &Failure{}
		if err := json.NewDecoder(limited).Decode(failure); err != nil || failure.Reason == "" {
			return fmt.Errorf("the node answered %s", response.Status)
		}
		return failure
	}
	if target == nil {
		return nil
	}
	return json.NewDecoder(limited).Decode(target)
}
