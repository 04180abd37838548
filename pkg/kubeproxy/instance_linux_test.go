package kubeproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
)

// squat is the environment variable by which this program holds something as a process of its
// own: "listen", "bind", or the name of a file to lock.
const squat = "TEST_SQUAT"

func TestMain(m *testing.M) {
	if how := os.Getenv(squat); how != "" {
		_, _ = fmt.Fprintln(os.Stdout, hold(how))
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
		return
	}
	os.Exit(m.Run())
}

// hold holds something until the process ends.
func hold(how string) error {
	switch how {
	case "listen":
		listener, err := net.Listen("unix", instanceSocket)
		if err == nil {
			go hangUp(listener)
		}
		return err
	case "bind":
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrUnix{Name: instanceSocket})
	}
	fd, err := unix.Open(how, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
}

// instance is what tests of one network namespace share.
type instance struct {
	*testing.T
	host   *lab.Host
	folder string
	log    []string
}

func newInstance(t *testing.T) *instance {
	return &instance{T: t, host: lab.ForTest(t, lab.Config{}).Node(), folder: filepath.Join(t.TempDir(), "run")}
}

// claim claims the instance until the test ends.
func (i *instance) claim() (release func(), err error) {
	ctx := klog.NewContext(context.Background(), funcr.New(func(_, args string) { i.log = append(i.log, args) }, funcr.Options{}))
	err = i.host.Do(func() error {
		release, err = claimInstance(ctx, i.folder)
		return err
	})
	if err == nil {
		i.Cleanup(release)
	}
	return release, err
}

// squatter starts a process of a user that holds something until the test ends, and returns
// what that said. The program is this one, under a name of its own if one is given.
func (i *instance) squatter(uid int, program, how string) (*exec.Cmd, string) {
	i.Helper()
	self := "/proc/self/exe"
	if program != "" {
		own, err := os.Executable()
		self = filepath.Join(i.TempDir(), program)
		if err = errors.Join(err, os.Link(own, self)); err != nil {
			i.Fatal(err)
		}
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), squat+"="+how)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}, Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		i.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		i.Fatal(err)
	}
	if err := i.host.Do(cmd.Start); err != nil {
		i.Fatal(err)
	}
	i.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	said, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		i.Fatal(err)
	}
	return cmd, strings.TrimSpace(said)
}

// TestClaimInstance_SocketHeld: only what may be a node keeps a node away, and the message
// names the process.
func TestClaimInstance_SocketHeld(t *testing.T) {
	for _, test := range []struct {
		name    string
		uid     int
		program string
		how     string
		refused bool
	}{
		{"a node", 0, "", "listen", true},
		{"a node that does not answer", 0, "", "bind", true},
		{"a node of another build", 0, "openshift-1.36", "listen", true},
		{"root's other program", 0, "squatter", "listen", false},
		{"root's other program that does not answer", 0, "squatter", "bind", false},
		{"another user's process", 1000, "", "listen", false},
		{"another user's process that does not answer", 1000, "", "bind", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := newInstance(t)
			process, said := i.squatter(test.uid, test.program, test.how)
			if said != "<nil>" {
				t.Fatal(said)
			}
			_, err := i.claim()
			if (err != nil) != test.refused {
				t.Errorf("got %v, want an error: %v", err, test.refused)
			}
			program, readErr := os.Readlink(fmt.Sprintf("/proc/%d/exe", process.Process.Pid))
			if readErr != nil {
				t.Fatal(readErr)
			}
			message := fmt.Sprint(err, i.log)
			for _, want := range []string{fmt.Sprintf("process %d ", process.Process.Pid), program, fmt.Sprintf("of user %d", test.uid)} {
				if !strings.Contains(message, want) {
					t.Errorf("got %q, want %q in it", message, want)
				}
			}
		})
	}
}

func TestClaimInstance_Free(t *testing.T) {
	i := newInstance(t)
	release, err := i.claim()
	if err != nil || len(i.log) > 0 {
		t.Fatalf("the first: %v, %q", err, i.log)
	}
	if _, err := i.claim(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d ", os.Getpid())) {
		t.Errorf("the second: got %v, want this process in it", err)
	}
	release()
	if left, err := os.ReadDir(i.folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := i.claim(); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}

// TestClaimInstance_SquatterBesideANode: the lock file tells the node from the process that has
// taken the socket.
func TestClaimInstance_SquatterBesideANode(t *testing.T) {
	i := newInstance(t)
	if _, said := i.squatter(1000, "", "listen"); said != "<nil>" {
		t.Fatal(said)
	}
	release, err := i.claim()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.claim(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d ", os.Getpid())) {
		t.Errorf("the second: got %v, want this process in it", err)
	}
	release()
	if _, err := i.claim(); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}

func TestClaimInstance_LockFileOfAnotherUser(t *testing.T) {
	i := newInstance(t)
	if _, err := i.claim(); err != nil {
		t.Fatal(err)
	}
	for dir := i.folder; dir != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(i.folder + "/*")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if _, said := i.squatter(1000, "", files[0]); !strings.Contains(said, "permission") {
		t.Errorf("another user opens the lock file: %s", said)
	}
}

// TestClaimInstance_NoLockFolder: a folder that others can write to holds no lock that counts.
func TestClaimInstance_NoLockFolder(t *testing.T) {
	for name, spoil := range map[string]func(folder string) error{
		"writable for others": func(folder string) error { return errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, 0o777)) },
		"another user's":      func(folder string) error { return errors.Join(os.Mkdir(folder, 0o700), os.Chown(folder, 1000, 0)) },
		"a link":              func(folder string) error { return os.Symlink(filepath.Dir(folder), folder) },
		"no parent":           func(folder string) error { return os.Remove(filepath.Dir(folder)) },
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstance(t)
			if err := spoil(i.folder); err != nil {
				t.Fatal(err)
			}
			if _, err := i.claim(); err != nil || !strings.Contains(strings.Join(i.log, "\n"), "without the lock file") {
				t.Errorf("got %v, and the log %q", err, i.log)
			}
		})
	}
}

func TestClaimInstance_TwoNamespaces(t *testing.T) {
	l := lab.ForTest(t, lab.Config{Nodes: 2})
	folder := t.TempDir()
	for _, host := range l.Nodes() {
		i := &instance{T: t, host: host, folder: folder}
		if _, err := i.claim(); err != nil || len(i.log) > 0 {
			t.Errorf("%v, %q", err, i.log)
		}
	}
}
