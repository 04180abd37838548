//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Lacks skips the test for want of something, and says what to do. It fails the test when the environment has CI=true.
func Lacks(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// ForTest is New for a test, which fails if the lab cannot be built and closes
// the lab at its end. Without root or the tools the test is skipped, but fails
// when the environment has CI=true. KEEP=1 keeps the namespaces and the temporary
// files to look into, under a prefix that no other lab removes.
func ForTest(t testing.TB, cfg Config) *Lab {
	t.Helper()
	if reason := unusable(); reason != "" {
		Lacks(t, "%s", reason)
	}
	keep := os.Getenv("KEEP") == "1"
	if keep && cfg.Prefix == "" {
		cfg.Prefix = ownPrefix("keep")
	}
	l, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if keep {
			t.Logf("KEEP=1: look into it with: PATH=%s ip netns exec %s bash; its files are in %s", l.Path(), l.Node().Name, l.dir)
			return
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// logs are the files that LogFile has given and not taken back.
var logs struct {
	sync.Mutex
	given map[string]bool
}

// LogFile returns the path of a file for a log, which exists if the test fails, and even if its
// process is killed: _output/e2e/TEST/NAME.log below the top of the repository. It is
// gone when the test has passed. A name may be used again in the same test.
func LogFile(t testing.TB, name string) string {
	t.Helper()
	file, err := giveLog(t.Name(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of %s is kept: %s", name, file)
		} else if err := takeLog(file); err != nil {
			t.Error(err)
		}
	})
	return file
}

func giveLog(test, name string) (file string, err error) {
	top, err := os.Getwd() // of the package that is tested
	for err == nil {
		if _, err := os.Stat(filepath.Join(top, "go.mod")); err == nil {
			break
		}
		if top == filepath.Dir(top) {
			return "", errors.New("lab: a log file has its place in a Go module, and this is none")
		}
		top = filepath.Dir(top)
	}
	if err != nil {
		return "", err
	}
	logs.Lock()
	defer logs.Unlock()
	if logs.given == nil {
		logs.given = map[string]bool{}
	}
	dir := filepath.Join(top, "_output", "e2e", filepath.FromSlash(test))
	file = filepath.Join(dir, name+".log")
	for i := 2; logs.given[file]; i++ {
		file = filepath.Join(dir, fmt.Sprintf("%s-%d.log", name, i))
	}
	logs.given[file] = true
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return file, os.RemoveAll(file) // of an earlier run
}

// takeLog removes a file, and the folders that are empty without it.
func takeLog(file string) error {
	logs.Lock()
	defer logs.Unlock()
	delete(logs.given, file)
	if err := os.RemoveAll(file); err != nil {
		return err
	}
	for dir := filepath.Dir(file); filepath.Base(dir) != "e2e" && os.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
	return nil
}

// unusable says why no lab can be built here; empty when one can.
func unusable() string {
	if os.Geteuid() != 0 {
		return "network namespaces need root"
	}
	if missing := Missing(); len(missing) > 0 {
		return fmt.Sprintf("tools are missing: apt-get install %s", strings.Join(missing, " "))
	}
	return ""
}

// InNamespace runs a test in a network namespace of its own: whatever stands in iptables' place,
// nftables' tables and tracked flows are those of the namespace. The test runs in a process of its own,
// for a namespace is a thread's.
func InNamespace(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	const variable = "TEST_IN_NAMESPACE"
	if os.Getenv(variable) == t.Name() {
		test(t)
		return
	}
	if os.Geteuid() != 0 {
		Lacks(t, "network namespaces need root")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
