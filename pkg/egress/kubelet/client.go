package kubelet

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/upstream"
)

// DefaultSocket is the kubelet's unless it has another --root-dir.
const DefaultSocket = "/var/lib/kubelet/pods-api/pods-api.sock"

// Client asks the kubelet that listens on a socket. Its methods may be called by several goroutines.
type Client struct {
	path string
	conn *grpc.ClientConn
}

const (
	// largestAnswer is that to List, in bytes: a kubelet has some hundred pods, and an object at most 1.5 MiB.
	largestAnswer = 256 << 20
	// redialAfter bounds how long to wait after a failed connection: a kubelet restarts in seconds.
	redialAfter = time.Second
)

// New returns a Client for the socket at path. It connects when it is asked something.
func New(path string) (*Client, error) {
	redial := backoff.DefaultConfig
	redial.BaseDelay, redial.MaxDelay = redialAfter/10, redialAfter
	conn, err := grpc.NewClient("unix:"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: redial, MinConnectTimeout: redialAfter}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestAnswer)))
	if err != nil {
		return nil, fmt.Errorf("asking the kubelet at %s: %w", path, err)
	}
	return &Client{path, conn}, nil
}

// Close ends what is asked.
func (c *Client) Close() error { return c.conn.Close() }

// Exists tells whether there is a socket. A kubelet before 1.37 has none.
func (c *Client) Exists() bool {
	_, err := os.Stat(c.path)
	return err == nil
}

// Get returns the pod with a UID as the kubelet knows it now, or nil if the kubelet knows none.
func (c *Client) Get(ctx context.Context, uid string) (*v1.Pod, error) {
	encoded, err := upstream.GetPod(ctx, c.conn, uid)
	switch {
	case status.Code(err) == codes.NotFound:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("asking the kubelet at %s: %w", c.path, err)
	}
	return c.decode(encoded)
}

// List returns all pods of the kubelet, without the mirrors of static ones.
func (c *Client) List(ctx context.Context) ([]*v1.Pod, error) {
	answer, err := upstream.ListPods(ctx, c.conn)
	if err != nil {
		return nil, fmt.Errorf("asking the kubelet at %s: %w", c.path, err)
	}
	var all []*v1.Pod
	for _, encoded := range answer {
		pod, err := c.decode(encoded)
		if err != nil {
			return nil, err
		}
		all = append(all, pod)
	}
	return all, nil
}

func (c *Client) decode(encoded []byte) (*v1.Pod, error) {
	pod := &v1.Pod{}
	if err := pod.Unmarshal(encoded); err != nil {
		return nil, fmt.Errorf("reading a pod of the kubelet at %s: %w", c.path, err)
	}
	return pod, nil
}
