package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"syscall"
	"time"

	"github.com/openshift/origin-node/pkg/egress/socket"
)

// clientTimeout is how long a Client waits for a snapshot.
const clientTimeout = 30 * time.Second

// Client asks the node that listens on a socket.
type Client struct{ path string }

// NewClient returns a Client for the socket at path. It does not connect.
func NewClient(path string) *Client { return &Client{path} }

// Snapshot returns the current state.
func (c *Client) Snapshot(ctx context.Context) (snapshot Snapshot, err error) {
	err = c.document(ctx, clientTimeout, http.MethodGet, snapshotPath, &snapshot)
	return snapshot, err
}

// Watch calls see with the current state, at once and after each change, until see returns
// an error, which it returns, or ctx ends, when it returns nil, or the node ends or drops
// the connection, which is an error. Changes that come fast are taken together.
func (c *Client) Watch(ctx context.Context, see func(Snapshot) error) error {
	err := c.request(ctx, http.MethodGet, snapshotPath+"?"+watchQuery+"=true", func(body io.Reader) error {
		documents := json.NewDecoder(body)
		for {
			var snapshot Snapshot
			if err := documents.Decode(&snapshot); err != nil {
				return fmt.Errorf("the node at %s has ended, or has dropped a watch that did not read: %w", c.path, err)
			}
			if err := see(snapshot); err != nil {
				return err
			}
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Verify returns what of the kernel differs from the plan, by IP family. A family that was
// compared and agrees is there with nothing.
func (c *Client) Verify(ctx context.Context) (map[string][]string, error) {
	var result verification
	err := c.Get(ctx, verifyPath, &result)
	return result.Differences, err
}

// Get asks for a [Resource], and decodes its document into target.
func (c *Client) Get(ctx context.Context, path string, target any) error {
	return c.document(ctx, verifyTimeout+clientTimeout, http.MethodGet, path, target)
}

// document makes one request within that time, and decodes the document of the answer into target.
func (c *Client) document(ctx context.Context, within time.Duration, method, resource string, target any) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return c.request(ctx, method, resource, func(body io.Reader) error {
		if err := json.NewDecoder(body).Decode(target); err != nil {
			return fmt.Errorf("reading the node's answer: %w", err)
		}
		return nil
	})
}

// request makes one request and lets use read the answer.
func (c *Client) request(ctx context.Context, method, resource string, use func(io.Reader) error) error {
	answer, err := socket.Ask(ctx, c.path, socket.Request{Method: method, Path: resource}, &failure{})
	if err != nil {
		return c.explain(err)
	}
	defer answer.Close()
	return use(answer)
}

// explain says what a failure to ask means.
func (c *Client) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens on %s: no node runs here, or it has another proxyArguments.egress-snat-socket: name that with --socket=PATH (%w)", c.path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("only root may ask the node at %s: use sudo (%w)", c.path, err)
	}
	return fmt.Errorf("asking the node at %s: %w", c.path, err)
}
