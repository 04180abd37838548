package cni

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/socket"
)

var compareAddrs = cmpopts.EquateComparable(netip.Addr{})

// standIn is a Node that notes what it is asked, and answers what it is told to.
type standIn struct {
	attach   func(ctx context.Context, a attachments.Attachment) (Decision, error)
	err      error
	detached []string
	valid    []string
	taken    []*os.File
}

func (n *standIn) TakeLocalPorts(_ string, file *os.File) error {
	n.taken = append(n.taken, file)
	return n.err
}

func (n *standIn) Attach(ctx context.Context, a attachments.Attachment) (Decision, error) {
	return n.attach(ctx, a)
}
func (n *standIn) Detach(_ context.Context, id string) error {
	n.detached = append(n.detached, id)
	return n.err
}
func (n *standIn) Check(_ context.Context, id string) (Decision, error) {
	return Decision{}, &Failure{Reason: NotAttached, Message: id}
}
func (n *standIn) Collect(_ context.Context, valid []string, _ time.Time) error {
	n.valid = valid
	return n.err
}
func (n *standIn) Ready() error { return n.err }

// serve answers from node until the test ends, and returns the socket's path.
func serve(t *testing.T, node Node) string {
	t.Helper()
	if os.Geteuid() != 0 {
		lab.Lacks(t, "only root may ask")
	}
	path := filepath.Join(t.TempDir(), "cni.sock")
	ctx, cancel := context.WithCancel(t.Context())
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Serve(ctx, Handler(node), log.New(io.Discard, "", 0)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	return path
}

func request() Request {
	return Request{
		ContainerID: "c1", IfName: "eth0", Netns: "/run/netns/x", Pod: attachments.Pod{Namespace: "shop", Name: "web-0", UID: "u"},
		IPs: []netip.Addr{netip.MustParseAddr("10.128.0.11")}, DeadlineMS: 9000,
	}
}

func TestClient_IsAnswered(t *testing.T) {
	bound := Decide([]Binding{{IP: netip.MustParseAddr("10.128.0.11"), Protocol: "tcp", EgressIP: netip.MustParseAddr("203.0.113.10"), Service: "shop/web"}})
	var told attachments.Attachment
	node := &standIn{attach: func(_ context.Context, a attachments.Attachment) (Decision, error) {
		told = a
		return bound, nil
	}}
	client := NewClient(serve(t, node))
	got, err := client.Attach(t.Context(), request())
	if diff := cmp.Diff(bound, got, compareAddrs); err != nil || diff != "" {
		t.Errorf("err %v, decision (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(request().attachment(told.Since), told, compareAddrs); diff != "" || told.Since.IsZero() {
		t.Errorf("the node was told (-want +got):\n%s", diff)
	}
	if err := client.Detach(t.Context(), "c1", "eth0"); err != nil {
		t.Error(err)
	}
	if err := client.Collect(t.Context(), []string{"c1", "c2"}); err != nil {
		t.Error(err)
	}
	if err := client.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([][]string{{"c1"}, {"c1", "c2"}}, [][]string{node.detached, node.valid}); diff != "" {
		t.Errorf("detached and valid (-want +got):\n%s", diff)
	}
}

// TestClient_TellsFailuresFromSilence: a node that says no is not a node that does not answer.
func TestClient_TellsFailuresFromSilence(t *testing.T) {
	waiting := &Failure{Reason: WaitingFor, Missing: []string{"Services"}}
	node := &standIn{err: waiting, attach: func(context.Context, attachments.Attachment) (Decision, error) {
		return Decision{}, errors.New("nft said no")
	}}
	client := NewClient(serve(t, node))
	for _, tt := range []struct {
		name string
		err  error
		want *Failure
	}{
		{"ready", client.Ready(t.Context()), waiting},
		{"detach", client.Detach(t.Context(), "c1", "eth0"), waiting},
		{"check", second(client.Check(t.Context(), "c1")), &Failure{Reason: NotAttached, Message: "c1"}},
		{"attach", second(client.Attach(t.Context(), request())), &Failure{Reason: NotWritten, Message: "nft said no"}},
	} {
		var failure *Failure
		if !errors.As(tt.err, &failure) || cmp.Diff(tt.want, failure) != "" {
			t.Errorf("%s: %v, expected %v", tt.name, tt.err, tt.want)
		}
	}
	var failure *Failure
	if err := NewClient(filepath.Join(t.TempDir(), "none")).Ready(t.Context()); err == nil || errors.As(err, &failure) {
		t.Errorf("no node: %v", err)
	}
}

func second(_ Decision, err error) error { return err }

// TestServe_WaitsUntilTheDeadline that the plugin tells.
func TestServe_WaitsUntilTheDeadline(t *testing.T) {
	node := &standIn{attach: func(ctx context.Context, _ attachments.Attachment) (Decision, error) {
		<-ctx.Done()
		return Decision{}, &Failure{Reason: NotWritten, Message: ctx.Err().Error()}
	}}
	client := NewClient(serve(t, node))
	short := request()
	short.DeadlineMS = 50
	began := time.Now()
	_, err := client.Attach(t.Context(), short)
	var failure *Failure
	if !errors.As(err, &failure) || failure.Message != context.DeadlineExceeded.Error() || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

// TestClient_LeavesTheNodeTime: of a short wait the node gets half.
func TestClient_LeavesTheNodeTime(t *testing.T) {
	const wait = 500 * time.Millisecond
	node := &standIn{attach: func(ctx context.Context, _ attachments.Attachment) (Decision, error) {
		deadline, _ := ctx.Deadline()
		return Decision{}, &Failure{Reason: NotWritten, Message: time.Until(deadline).String()}
	}}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	_, err := NewClient(serve(t, node)).Attach(ctx, request())
	var failure *Failure
	if !errors.As(err, &failure) {
		t.Fatal(err)
	}
	if left, err := time.ParseDuration(failure.Message); err != nil || left < wait/10 || left > wait/2 {
		t.Errorf("the node has %s of %s, err %v", left, wait, err)
	}
}

func TestServe_RefusesWhatIsInvalid(t *testing.T) {
	node := &standIn{attach: func(context.Context, attachments.Attachment) (Decision, error) {
		t.Error("the node was asked")
		return Decision{}, nil
	}}
	client := NewClient(serve(t, node))
	for name, change := range map[string]func(*Request){
		"interface": func(r *Request) { r.IfName = "net1" },
		"deadline":  func(r *Request) { r.DeadlineMS = 0 },
		"container": func(r *Request) { r.ContainerID = "../x" },
		"pod":       func(r *Request) { r.Pod = attachments.Pod{} },
		"address":   func(r *Request) { r.IPs = nil },
		"body":      func(r *Request) { r.Netns = strings.Repeat("x", longestBody) },
	} {
		r := request()
		change(&r)
		_, err := client.Attach(t.Context(), r)
		var failure *Failure
		if !errors.As(err, &failure) || failure.Reason != Invalid {
			t.Errorf("%s: %v, expected %s", name, err, Invalid)
		}
	}
	if err := client.Detach(t.Context(), "c1", "net1"); err == nil {
		t.Error("the end of net1 is that of eth0")
	}
	if err := client.Collect(t.Context(), nil); err == nil || node.valid != nil {
		t.Errorf("a list of sandboxes that is missing: %v", err)
	}
}

// TestServe_RootAlone: everybody else is refused before anything of the request is read.
func TestServe_RootAlone(t *testing.T) {
	for name, known := range map[string]bool{"another user": true, "nobody knows": false} {
		ctx := t.Context()
		if known {
			ctx = socket.WithPeer(ctx, 1000)
		}
		server, client := net.Pipe()
		go func() {
			s := &http.Server{Handler: Handler(&standIn{}), BaseContext: func(net.Listener) context.Context { return ctx }}
			_ = s.Serve(&once{conn: server})
		}()
		asked := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return client, nil }}}
		response, err := asked.Get("http://node" + readyPath)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", name, response.Status)
		}
	}
}

// once is a listener with one connection.
type once struct{ conn net.Conn }

func (o *once) Accept() (conn net.Conn, err error) {
	if conn, o.conn = o.conn, nil; conn == nil {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (o *once) Close() error   { return nil }
func (o *once) Addr() net.Addr { return &net.UnixAddr{} }
