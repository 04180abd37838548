//go:build linux

package machine

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// DebianVariable is the environment variable that names the folder of hack/build-debian.sh.
const DebianVariable = "DEBIAN"

// patience bounds a boot, and a command.
const patience = time.Minute

//go:embed debian.sh
var debianScript []byte

// Debian is a machine that systemd runs.
type Debian struct {
	*Machine
	leader int // the PID of its systemd
	// journal is the folder of its journal's files.
	journal string
}

// Layout says which cgroups a Debian has.
type Layout string

const (
	// AsHere are those of this machine.
	AsHere Layout = "as here"
	// Unified are cgroups of version 2 alone, without controllers where this machine has them in version 1.
	Unified Layout = "unified"
)

// Entry is one of the journal.
type Entry struct {
	Message  string `json:"MESSAGE"`
	Priority string `json:"PRIORITY"` // a digit, see syslog(3)
	// Process is the PID of the process that printed it, Unit the one that it belongs to.
	Process string `json:"_PID"`
	Unit    string `json:"_SYSTEMD_UNIT"`
}

// RequireDebian skips the test where DEBIAN is not set or a tool is missing, but fails it when the environment has CI=true. It
// returns the folder.
func RequireDebian(t testing.TB) string {
	t.Helper()
	require(t, map[string]string{"systemd-nspawn": "systemd-container", "journalctl": "systemd", "unshare": "util-linux"})
	dir := os.Getenv(DebianVariable)
	if dir == "" {
		lab.Lacks(t, "the environment variable %s does not name the folder of a Debian; run 'make test-systemd'", DebianVariable)
	}
	return dir
}

// Boot boots a Debian with the product as 'make install' leaves it, and returns when its services have been started, of which the
// node's is none. config is the folder that is its /etc/origin/node.
func Boot(t testing.TB, name string, host *lab.Host, config string, layout Layout) *Debian {
	t.Helper()
	dir, binary := folder(t, name, host), os.Getenv("OPENSHIFT")
	install := exec.CommandContext(t.Context(), "make", "-C", "../..", "install", "install-cni", "DESTDIR="+filepath.Join(dir, "upper"), "BINARY="+binary,
		"CNI_PLUGIN="+filepath.Join(filepath.Dir(binary), "origin-node-cni"))
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", install, err, out)
	}
	return boot(t, name, host, dir, layout, "--bind="+config+":/etc/origin/node")
}

// BootFresh is Boot without the product. The folder files is its /mnt.
func BootFresh(t testing.TB, name string, host *lab.Host, files string) *Debian {
	t.Helper()
	return boot(t, name, host, folder(t, name, host), AsHere, "--bind-ro="+files+":/mnt")
}

// folder makes the machine's folder. What is in its folder upper, a Debian has besides its own files.
func folder(t testing.TB, name string, host *lab.Host) string {
	t.Helper()
	dir, err := host.MkdirTemp(name + "-debian-")
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "upper"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// boot boots a Debian with options of systemd-nspawn(1).
func boot(t testing.TB, name string, host *lab.Host, dir string, layout Layout, options ...string) *Debian {
	t.Helper()
	debian := RequireDebian(t)
	d := &Debian{journal: filepath.Join(dir, "upper", "var/log/journal")}
	if err := os.MkdirAll(d.journal, 0o755); err != nil { // so that journald writes there
		t.Fatal(err)
	}
	d.Machine = start(t, host, name, dir, debianScript, append([]string{debian, host.Name, string(layout)}, options...)...)
	t.Cleanup(d.tell)
	deadline := time.Now().Add(patience)
	for {
		err := d.runs()
		if err == nil {
			return d
		}
		if time.Now().After(deadline) {
			t.Fatalf("the machine does not boot: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// tell logs the journal if the test has failed.
func (d *Debian) tell() {
	if d.t.Failed() {
		out, err := d.journalctl("--output=short-precise")
		d.t.Logf("the journal, %v:\n%s", err, out)
	}
}

// Journal is what a unit has printed, and what systemd says of it. It can be read after the machine's end as well.
func (d *Debian) Journal(unit string) ([]Entry, error) {
	out, err := d.journalctl("--output=json", "--all", "--unit="+unit)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var e Entry
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return entries, nil
		} else if err != nil {
			return nil, fmt.Errorf("the journal of %s: %w", unit, err)
		}
		entries = append(entries, e)
	}
}

func (d *Debian) journalctl(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.t.Context()), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "journalctl", append([]string{"--no-pager", "--quiet", "--directory=" + d.journal}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w", cmd, err)
	}
	return out, err
}

// File is the path by which this process reaches a file of the machine as long as it runs.
func (d *Debian) File(name string) string { return fmt.Sprintf("/proc/%d/root%s", d.leader, name) }

// runs returns an error until all services have been started.
func (d *Debian) runs() error {
	if d.leader == 0 {
		if d.leader = descendant(d.command.Process.Pid, "systemd"); d.leader == 0 {
			return errors.New("there is no systemd")
		}
	}
	state, err := d.Run("systemctl", "is-system-running")
	if state = strings.TrimSpace(state); state == "running" || state == "degraded" {
		return nil // a container may lack what some service of Debian needs
	}
	return errors.Join(err, fmt.Errorf("its state is %q", state))
}

// descendant is the first process of that name below another; 0 if there is none.
func descendant(pid int, name string) int {
	comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // it may have ended
	if strings.TrimSpace(string(comm)) == name {
		return pid
	}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pid))
	for _, field := range strings.Fields(string(children)) {
		var child int
		if _, err := fmt.Sscan(field, &child); err != nil {
			continue
		}
		if found := descendant(child, name); found != 0 {
			return found
		}
	}
	return 0
}

// Off says whether the machine has been shut down.
func (d *Debian) Off() bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", d.leader))
	return err != nil
}

// Run runs a command in the machine to its end, and returns what it prints.
func (d *Debian) Run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.t.Context()), patience)
	defer cancel()
	inside := append([]string{fmt.Sprintf("--target=%d", d.leader), "--mount", "--uts", "--ipc", "--net", "--pid", name}, args...)
	cmd := exec.CommandContext(ctx, "nsenter", inside...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return string(out), err
}
