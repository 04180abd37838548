package status

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/socket"
)

// source is a Source whose snapshot the test sets.
type source struct {
	mu       sync.Mutex
	snapshot Snapshot
	changed  chan struct{}
	verify   func(context.Context) (map[string][]string, error)
}

func newSource(snapshot Snapshot) *source {
	return &source{snapshot: snapshot, changed: make(chan struct{})}
}

func (s *source) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot
}

func (s *source) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *source) Verify(ctx context.Context) (map[string][]string, error) { return s.verify(ctx) }

func (s *source) set(snapshot Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot = snapshot
	close(s.changed)
	s.changed = make(chan struct{})
}

// sample has n bindings of Services with 20 pods each.
func sample(n int) Snapshot {
	in := plan.Input{
		ClusterCIDRs:   []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")},
		Exclusions:     []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")},
		Nodes:          []plan.Node{{Name: "node-1", InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.2")}}},
		NamespaceCIDRs: map[string][]netip.Prefix{"ns": {netip.MustParsePrefix("203.0.0.0/8")}},
	}
	for i := range n {
		if i%20 == 0 {
			ip := netip.AddrFrom4([4]byte{203, 0, byte(i / 20 >> 8), byte(i / 20)})
			in.Claims = append(in.Claims, plan.Claim{
				Service: plan.Service{Namespace: "ns", Name: fmt.Sprintf("service-%d", i/20)}, Created: time.Unix(int64(i), 0).UTC(),
				EgressIP: ip, Field: "spec.externalIPs[0]", Protocols: []plan.Protocol{plan.TCP},
			})
		}
		claim := &in.Claims[i/20]
		claim.Endpoints = append(claim.Endpoints, plan.Endpoint{
			Addr: netip.AddrFrom4([4]byte{10, 128, byte(i >> 8), byte(i)}), Pod: plan.Pod{Namespace: "ns", Name: fmt.Sprintf("pod-%d", i)}, Node: "node-1",
		})
	}
	unreadable := plan.Claim{Service: plan.Service{Namespace: "ns", Name: "unreadable"}, Refused: plan.InvalidAddress, RefusedBecause: `"x" is not an IP address`}
	in.Claims = append(in.Claims, unreadable)
	f := Family{Family: "IPv4", Input: in, Plan: plan.Build(in), Written: true, LastSync: time.Unix(1700000001, 0).UTC()}
	for range f.Plan.Bindings {
		f.Since = append(f.Since, time.Unix(1700000000, 0).UTC())
	}
	return Snapshot{Node: "node-1", Version: "v1", Time: time.Unix(1700000002, 0).UTC(), Ready: true, Families: []Family{f, {Family: "IPv6", Error: "no ip6tables"}}}
}

var compare = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

// serve serves s until the test's end, or until end is called, and returns the socket.
func serve(t testing.TB, s Source) (path string, end func() error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "run", "egress.sock")
	return path, serveAt(t, path, s)
}

func serveAt(t testing.TB, path string, s Source, change ...func(*server)) (end func() error) {
	t.Helper()
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	answering := newServer(s, nil)
	for _, f := range change {
		f(answering)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- l.Serve(ctx, answering.handler(), nil) }()
	end = sync.OnceValue(func() error { cancel(); return <-served })
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return end
}

func TestSnapshot(t *testing.T) {
	want := sample(45)
	path, _ := serve(t, newSource(want))
	got, err := NewClient(path).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Families[0].Plan.Bindings) != 45 || len(got.Families[0].Plan.Refusals) != 1 {
		t.Errorf("the sample is not what it should be: %+v", got.Families[0].Plan)
	}
}

func TestServeMakesAndRemovesTheSocket(t *testing.T) {
	path, end := serve(t, newSource(sample(1)))
	for name, want := range map[string]fs.FileMode{path: fs.ModeSocket | 0o600, filepath.Dir(path): fs.ModeDir | 0o700} {
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has the mode %v; want %v", name, info.Mode(), want)
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "egress.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fmt.Sprintf("%s.%d", path, os.Getpid()), nil, 0o600); err != nil { // half way made, by an earlier process of this id
		t.Fatal(err)
	}
	serveAt(t, path, newSource(sample(1)))
	if _, err := NewClient(path).Snapshot(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSocketOfALivingProcessIsAnError(t *testing.T) {
	path, _ := serve(t, newSource(sample(1)))
	want := "socket " + path + ": another process listens there; end it, or choose another path"
	if _, err := socket.Listen(path); err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
	if _, err := NewClient(path).Snapshot(t.Context()); err != nil {
		t.Errorf("the first one does not answer any more: %v", err)
	}
}

func TestUnusablePaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file:                            "something that is no socket is there",
		dir:                             "something that is no socket is there",
		filepath.Join(file, "in", "it"): "making its folder",
		filepath.Join(dir, strings.Repeat("x", 200)): "the path is too long",
	} {
		if _, err := socket.Listen(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v; want %q", path, err, want)
		}
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "precious" {
		t.Errorf("the file has become %q, %v", content, err)
	}
}

// TestSocketOfASuccessorStays: who ends removes nothing that another process has put there.
func TestSocketOfASuccessorStays(t *testing.T) {
	path, end := serve(t, newSource(sample(1)))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second := sample(1)
	second.Node = "second"
	serveAt(t, path, newSource(second))
	if err := end(); err != nil {
		t.Fatal(err)
	}
	got, err := NewClient(path).Snapshot(t.Context())
	if err != nil || got.Node != "second" {
		t.Errorf("got %q, %v; want the second", got.Node, err)
	}
}

func TestWatch(t *testing.T) {
	s := newSource(sample(1))
	path, _ := serve(t, s)
	enough := errors.New("enough")
	var nodes []string
	err := NewClient(path).Watch(t.Context(), func(snapshot Snapshot) error {
		nodes = append(nodes, snapshot.Node)
		if len(nodes) == 3 {
			return enough
		}
		next := snapshot
		next.Node += "+"
		s.set(next)
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("got %v; want what the function returned", err)
	}
	if diff := cmp.Diff([]string{"node-1", "node-1+", "node-1++"}, nodes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWatchTakesChangesTogether: a burst is not sent one by one, and its last state is seen.
func TestWatchTakesChangesTogether(t *testing.T) {
	s := newSource(sample(1))
	path, _ := serve(t, s)
	const burst = 500
	seen, last := 0, fmt.Sprint(burst-1)
	done := errors.New("done")
	err := NewClient(path).Watch(t.Context(), func(snapshot Snapshot) error {
		if seen++; seen == 1 {
			for i := range burst {
				next := snapshot
				next.Node = fmt.Sprint(i)
				s.set(next)
			}
		}
		if snapshot.Node == last {
			return done
		}
		return nil
	})
	if !errors.Is(err, done) {
		t.Error(err)
	}
	if seen > burst/10 {
		t.Errorf("saw %d documents for a burst of %d changes", seen, burst)
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	path, _ := serve(t, newSource(sample(1)))
	ctx, cancel := context.WithCancel(t.Context())
	if err := NewClient(path).Watch(ctx, func(Snapshot) error { cancel(); return nil }); err != nil {
		t.Errorf("got %v; want nil", err)
	}
}

func TestWatchSaysThatTheNodeHasEnded(t *testing.T) {
	path, end := serve(t, newSource(sample(1)))
	err := NewClient(path).Watch(t.Context(), func(Snapshot) error {
		go func() { _ = end() }()
		return nil
	})
	if err == nil || !strings.HasPrefix(err.Error(), "the node at "+path+" has ended") {
		t.Errorf("got %v", err)
	}
}

func TestVerify(t *testing.T) {
	s := newSource(sample(1))
	path, _ := serve(t, s)
	want := map[string][]string{"IPv4": {"missing: x", "too many: y"}, "IPv6": nil}
	s.verify = func(context.Context) (map[string][]string, error) { return want, nil }
	got, err := NewClient(path).Verify(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	s.verify = func(context.Context) (map[string][]string, error) {
		return nil, errors.New("iptables-save: exit status 4")
	}
	if _, err := NewClient(path).Verify(t.Context()); err == nil || err.Error() != "asking the node at "+path+": iptables-save: exit status 4" {
		t.Errorf("got %v", err)
	}
}

// TestVerifyOneAtATime: a comparison costs something, and many may ask.
func TestVerifyOneAtATime(t *testing.T) {
	s := newSource(sample(1))
	path, _ := serve(t, s)
	var running atomic.Int32
	s.verify = func(context.Context) (map[string][]string, error) {
		defer running.Add(-1)
		if running.Add(1) > 1 {
			t.Error("two at a time")
		}
		time.Sleep(time.Millisecond) // stands for the work
		return map[string][]string{}, nil
	}
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			if _, err := NewClient(path).Verify(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
}

func TestOddRequests(t *testing.T) {
	path, _ := serve(t, newSource(sample(1)))
	for _, test := range []struct{ request, status, message string }{
		{"GET /v1/snapshot?watch=maybe HTTP/1.1\r\nHost: node\r\n\r\n", "400 Bad Request", `watch="maybe"; use true or false`},
		{"GET /v1/snapshot HTTP/1.1\r\nHost: node\r\nContent-Length: 10\r\n\r\n", "400 Bad Request", "the request has a body; none takes one"},
		{"GET /v1/snapshot HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: chunked\r\n\r\n", "400 Bad Request", "the request has a body; none takes one"},
		{"DELETE /v1/snapshot HTTP/1.1\r\nHost: node\r\n\r\n", "405 Method Not Allowed", ""},
		{"POST /v2 HTTP/1.1\r\nHost: node\r\n\r\n", "404 Not Found", "what was asked for is switched off in the node's configuration, or the node's version does not have it"},
		{"GET /" + strings.Repeat("x", 20<<10) + " HTTP/1.1\r\nHost: node\r\n\r\n", "431 Request Header Fields Too Large", ""},
	} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		status, f := talk(t, conn, test.request)
		if status != test.status || f.Text != test.message {
			t.Errorf("%.50q: got %s, %q; want %s, %q", test.request, status, f.Text, test.status, test.message)
		}
	}
}

// talk sends a request and reads all of the answer.
func talk(t *testing.T, conn net.Conn, request string) (status string, f failure) {
	t.Helper()
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, request) }() // may not be read in full
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(body, &f)
	return response.Status, f
}

func TestNothingListens(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for path, cause := range map[string]string{
		filepath.Join(dir, "none.sock"): "connect: no such file or directory", dead: "connect: connection refused",
	} {
		want := "nothing listens on " + path + ": no node runs here, or it has another proxyArguments.egress-snat-socket: name that with --socket=PATH (dial unix " + path + ": " + cause + ")"
		if _, err := NewClient(path).Snapshot(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// asNobody runs f on a thread that belongs to an unprivileged user, in a goroutine whose
// thread ends with it.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		lab.Lacks(t, "becoming another user needs root")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread is of no use any more
		const nobody = 65534
		// The raw call changes this thread only; syscall.Setresuid would change all.
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			done <- errno
			return
		}
		f()
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestOnlyRootMayConnect(t *testing.T) {
	path, _ := serve(t, newSource(sample(1)))
	asNobody(t, func() {
		want := "only root may ask the node at " + path + ": use sudo (dial unix " + path + ": connect: permission denied)"
		if _, err := NewClient(path).Snapshot(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

// TestOnlyRootGetsAnswers: also where the socket's mode lets others connect.
func TestOnlyRootGetsAnswers(t *testing.T) {
	path, _ := serve(t, newSource(sample(1)))
	for name, mode := range map[string]fs.FileMode{path: 0o666, filepath.Dir(path): 0o755, filepath.Dir(filepath.Dir(path)): 0o755, filepath.Dir(filepath.Dir(filepath.Dir(path))): 0o755} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	asNobody(t, func() {
		_, err := NewClient(path).Snapshot(t.Context())
		if want := "asking the node at " + path + ": only root, and the user that the node runs as, may ask it"; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

// TestReaderThatDoesNotRead is dropped, so that it holds nothing for ever.
func TestReaderThatDoesNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "egress.sock")
	end := serveAt(t, path, newSource(sample(20000)), func(s *server) { s.patience = 100 * time.Millisecond })
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /v1/snapshot?watch=true HTTP/1.1\r\nHost: node\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	// The server closes its side, which poll shows here without reading: HUP.
	if err := waitForHangup(conn.(*net.UnixConn), 20*time.Second); err != nil {
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestProblems(t *testing.T) {
	s := sample(1)
	if diff := cmp.Diff([]string{"IPv6: the last sync failed, none has succeeded yet: no ip6tables"}, s.Problems()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Ready = false
	s.Families[0].Error, s.Families[1].Error = "exit status 4", ""
	if diff := cmp.Diff([]string{
		"the node has not written all of its rules since it started",
		"IPv4: the last sync failed, the kernel last matched the plan at 2023-11-14T22:13:21Z: exit status 4",
	}, s.Problems()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// BenchmarkSnapshot is a snapshot's way from a Source to a Client's caller.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{100, 20000} {
		path, _ := serve(b, newSource(sample(n)))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := NewClient(path).Snapshot(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
