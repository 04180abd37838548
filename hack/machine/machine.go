//go:build linux

package machine

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

//go:embed machine.sh
var script []byte

// Machine is one that runs.
type Machine struct {
	t       testing.TB
	dir     string
	log     string
	command *exec.Cmd
	pipe    io.Closer
}

// require skips the test where one of these tools is missing, given with their Debian packages, but fails it when the
// environment has CI=true.
func require(t testing.TB, tools map[string]string) {
	t.Helper()
	var missing []string
	for tool, debian := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, debian)
		}
	}
	if len(missing) > 0 {
		lab.Lacks(t, "tools are missing: apt-get install %s", strings.Join(missing, " "))
	}
}

// start runs a script with arguments on a machine of its own, whose folder /mnt is dir. It ends, and what it has made is gone,
// at the end of the test at the latest, and when its process ends.
func start(t testing.TB, host *lab.Host, name, dir string, command []byte, args ...string) *Machine {
	t.Helper()
	outer, inner := filepath.Join(dir, "machine.sh"), filepath.Join(dir, "command.sh")
	for file, content := range map[string][]byte{outer: script, inner: command} {
		if err := os.WriteFile(file, content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m := &Machine{t: t, dir: dir, log: lab.LogFile(t, name+"-machine")}
	log, err := os.Create(m.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the processes have their own
	m.command = exec.Command(outer, append([]string{"/run/netns/" + host.Name, dir, "origin-node-" + host.Name, inner}, args...)...)
	m.command.Env = host.Command(t.Context(), inner).Env
	m.command.Stdout, m.command.Stderr = log, log
	// In a group of its own: ^C at the terminal is for the test, which ends it in turn.
	m.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if m.pipe, err = m.command.StdinPipe(); err == nil {
		err = m.command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// File returns the path of what is name below /mnt on the machine, for everybody else.
func (m *Machine) File(name string) string { return filepath.Join(m.dir, name) }

// Kill kills the first of its processes that has a name.
func (m *Machine) Kill(name string) error {
	pid := descendant(m.command.Process.Pid, name)
	if pid == 0 {
		return fmt.Errorf("no process of the machine is %s", name)
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// Close ends the machine as the end of the test's process does, and fails the test if anything is left. Calling it again does
// nothing.
func (m *Machine) Close() {
	m.t.Helper()
	if m.command.ProcessState != nil {
		return
	}
	_ = m.pipe.Close()
	hung := time.AfterFunc(time.Minute, func() { _ = m.command.Process.Kill() })
	defer hung.Stop()
	if err := m.command.Wait(); err != nil {
		m.t.Errorf("a machine has ended with %v; its log is %s", err, m.log)
	}
}
