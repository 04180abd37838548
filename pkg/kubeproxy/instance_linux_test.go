package kubeproxy

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
)

// TestClaimInstance: one node in a network namespace, whoever else has the name.
func TestClaimInstance(t *testing.T) {
	self := fmt.Sprintf("process %d", os.Getpid())
	for _, test := range []struct {
		name string
		hold func(t *testing.T)
		want string // of the error
		said string // in the log
	}{
		{"nobody", func(*testing.T) {}, "", ""},
		{"a node", func(t *testing.T) { claim(t) }, self, ""},
		{"a node that has ended", func(t *testing.T) { claim(t)() }, "", ""},
		{"somebody else's process", listenAsSomebodyElse, "", "of user 1000"},
		{"somebody who does not answer", bindOnly, "", "nobody answers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := lab.ForTest(t, lab.Config{}).Node()
			var log []string
			ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{}))
			err := node.Do(func() error {
				test.hold(t)
				release, err := claimInstance(ctx)
				if err == nil {
					defer release()
					if _, again := claimInstance(ctx); test.said == "" && (again == nil || !strings.Contains(again.Error(), self)) {
						t.Errorf("claimed twice: got %v, want %q in it", again, self)
					}
				}
				return err
			})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
			if said := strings.Join(log, "\n"); (said == "") != (test.said == "") || !strings.Contains(said, test.said) {
				t.Errorf("the log says %q, want %q in it", said, test.said)
			}
		})
	}
}

// TestInstancesOfTwoNamespaces do not know each other.
func TestInstancesOfTwoNamespaces(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Nodes: 2})
	for _, node := range l.Nodes() {
		if err := node.Do(func() error { claim(t); return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

func claim(t *testing.T) (release func()) {
	release, err := claimInstance(context.Background())
	if err != nil {
		t.Error(err)
		return func() {}
	}
	t.Cleanup(release)
	return release
}

// listenAsSomebodyElse listens on a thread that has another user, and ends with it.
func listenAsSomebodyElse(t *testing.T) {
	namespace, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Error(err)
		return
	}
	defer namespace.Close()
	listening := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			listening <- err
			return
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 1000, 1000, 1000); errno != 0 {
			listening <- errno
			return
		}
		listener, err := net.Listen("unix", instanceSocket)
		if err == nil {
			t.Cleanup(func() { _ = listener.Close() })
		}
		listening <- err
	}()
	if err := <-listening; err != nil {
		t.Error(err)
	}
}

func bindOnly(t *testing.T) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: instanceSocket}); err != nil {
		t.Error(err)
	}
}
