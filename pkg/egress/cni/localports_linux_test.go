package cni

import (
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/socket"
)

// onItsThread runs do on a thread that ends with it.
func onItsThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and not unlocked, which ends the thread, if it is not the process's first one
		if unix.Gettid() == unix.Getpid() {
			onItsThread(do) // on another one, as this one is locked
			runtime.UnlockOSThread()
			return
		}
		do()
	}()
	<-done
}

// inNamespace returns the setting of source ports in a network namespace of its own, which ends with end.
func inNamespace(t *testing.T) (setting *os.File, end func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		lab.Lacks(t, "only root may make a network namespace")
	}
	opened, ending, ended := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		onItsThread(func() {
			err := unix.Unshare(unix.CLONE_NEWNET) // which ends with the thread
			if err == nil {
				setting, err = os.OpenFile(LocalPortsFile, os.O_RDWR, 0)
			}
			opened <- err
			<-ending
		})
	}()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = setting.Close() })
	return setting, func() {
		close(ending)
		<-ended
	}
}

// TestClient_PassesLocalPorts: the node can write the setting that the client has opened, also after the client has closed it. It does not
// keep the network namespace: when that has ended, writes fail.
func TestClient_PassesLocalPorts(t *testing.T) {
	node := &standIn{}
	client := NewClient(serve(t, node))
	setting, end := inNamespace(t)
	if err := client.PassLocalPorts(t.Context(), "c1", setting); err != nil || len(node.taken) != 1 {
		t.Fatalf("%v, taken %v", err, node.taken)
	}
	taken := node.taken[0]
	defer taken.Close()
	if _, err := taken.WriteAt([]byte("2048 3071"), 0); err != nil {
		t.Error(err)
	}
	text := make([]byte, 40)
	if n, _ := setting.ReadAt(text, 0); strings.Join(strings.Fields(string(text[:n])), " ") != "2048 3071" {
		t.Errorf("the setting is %q", text[:n])
	}
	if err := setting.Close(); err != nil {
		t.Error(err)
	}
	end()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := taken.WriteAt([]byte("2048 4095"), 0); err != nil {
			t.Log("after the end:", err)
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the file keeps the network namespace")
		}
	}
}

// TestClient_PassesAnotherFile: a node takes no other file than the setting, open for reading and writing, and needs one.
func TestClient_PassesAnotherFile(t *testing.T) {
	node := &standIn{}
	path := serve(t, node)
	for name, open := range map[string]func() (*os.File, error){
		"another file": func() (*os.File, error) {
			return os.OpenFile(filepath.Join(t.TempDir(), "ip_local_port_range"), os.O_RDWR|os.O_CREATE, 0o600)
		},
		"another setting": func() (*os.File, error) { return os.OpenFile("/proc/sys/net/ipv4/ip_forward", os.O_RDWR, 0) },
		"read-only":       func() (*os.File, error) { return os.Open(LocalPortsFile) },
	} {
		file, err := open()
		if err != nil {
			t.Fatal(err)
		}
		if err := NewClient(path).PassLocalPorts(t.Context(), "c1", file); err == nil || !strings.Contains(err.Error(), "Invalid") {
			t.Errorf("%s: %v", name, err)
		}
		_ = file.Close()
	}
	if err := NewClient(path).PassLocalPorts(t.Context(), "c1", nil); err == nil || !strings.Contains(err.Error(), "no file was passed") {
		t.Errorf("no file: %v", err)
	}
	if err := NewClient(path).Ready(t.Context()); err != nil || len(node.taken) != 0 {
		t.Errorf("%v, taken %v", err, node.taken)
	}
}

// TestClient_OlderNode: one that knows no such request, nor takes files, says so, and the file is nobody's.
func TestClient_OlderNode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cni.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NewServeMux(), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	setting, _ := inNamespace(t)
	if err := NewClient(path).PassLocalPorts(t.Context(), "c1", setting); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v", err)
	}
}

// BenchmarkPassLocalPorts is what passing the setting adds to ADD.
func BenchmarkPassLocalPorts(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("only root may ask")
	}
	path, ctx := filepath.Join(b.TempDir(), "cni.sock"), b.Context()
	l, err := socket.Listen(path)
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = l.Serve(ctx, Handler(closing{}), log.New(io.Discard, "", 0)) }()
	setting, err := os.OpenFile(LocalPortsFile, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer setting.Close()
	for b.Loop() {
		if err := NewClient(path).PassLocalPorts(ctx, "c1", setting); err != nil {
			b.Fatal(err)
		}
	}
}

// closing is a Node that keeps nothing.
type closing struct{ Node }

func (closing) TakeLocalPorts(_ string, file *os.File) error { return file.Close() }
