package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/oracle"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// SyncPeriod is the nodes' iptablesSyncPeriod: what somebody else has broken is repaired within it. A node reads the kernel twice in it: every
// 2.5 seconds that would take half of an emulated machine's time.
var SyncPeriod = lab.Stretch(5 * time.Second)

// Soon bounds everything that takes a fraction of a second on an idle machine.
var Soon = lab.Stretch(time.Minute)

// Node is a host with the folder of its configuration. Its process may be started and
// ended several times.
type Node struct {
	// Name is the configuration's nodeName.
	Name string
	Host *lab.Host
	// Printed is what the processes print, on both streams.
	Printed *Output
	// BinDir, in front of the PATH of the process, is for tests that put something in
	// iptables' place.
	BinDir string
	// Variables are added to the environment of the process.
	Variables []string
	// Fields are added to the configuration, masterKubeConfig for example, and Arguments to
	// its proxyArguments.
	Fields, Arguments map[string]any
	// Backend is what Arguments say of how the rules are written.
	Backend reconcile.Backend

	t       testing.TB
	dir     string
	process *exec.Cmd
	ended   <-chan struct{} // closed when process has ended
}

// New makes a node with a configuration that has what all tests need. Nothing runs yet. At
// the test's end, or that of the test's process, its own is killed; if the test failed its output is
// logged, from the last Reset on, and all of it is kept, see [lab.LogFile], with what the node and its kernel have at the end. Its
// files are the lab's.
func New(t testing.TB, name string, host *lab.Host) *Node {
	t.Helper()
	dir, err := host.MkdirTemp(name + "-")
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{Name: name, Host: host, BinDir: filepath.Join(dir, "bin"), t: t, dir: filepath.Join(dir, "etc")}
	for _, dir := range []string{n.BinDir, n.dir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	n.Printed = newOutput(t, lab.LogFile(t, name))
	n.Configure("")
	t.Cleanup(func() {
		n.Kill()
		n.removeLock()
		if t.Failed() {
			t.Logf("the log of %s:\n%s", name, n.Printed)
		}
	})
	return n
}

// collect keeps the archive for a bug report and the conntrack table in a folder beside the logs.
func (n *Node) collect() {
	dir := lab.LogFile(n.t, n.Name+"-state")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(n.t.Context()), 5*Soon) // a process that hangs takes 20 s for each part
	defer cancel()
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		var flows string
		flows, err = n.Host.Run(ctx, "conntrack", "-L", "-o", "extended")
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "conntrack"), []byte(flows), 0o600))
	}
	if out, archive := n.Command(ctx, "egress", "collect", "--config="+n.Config(), "--directory="+dir).CombinedOutput(); archive != nil {
		err = errors.Join(err, fmt.Errorf("%w: %s", archive, out))
	}
	if err != nil {
		n.t.Logf("the state of %s is not kept, or not all of it: %v", n.Name, err)
	}
}

// removeLock removes the lock file that a killed process leaves in the machine's /run.
func (n *Node) removeLock() {
	namespace, err := os.Stat(filepath.Join("/run/netns", n.Host.Name))
	if err != nil {
		return // it is gone, and nothing runs in it
	}
	_ = os.Remove(fmt.Sprintf("/run/origin-node/netns-%d.lock", namespace.Sys().(*syscall.Stat_t).Ino))
}

// File returns the path of a file in the node's folder.
func (n *Node) File(name string) string { return filepath.Join(n.dir, name) }

// Config is the path of node-config.yaml.
func (n *Node) Config() string { return n.File("node-config.yaml") }

// Socket is the path of the process's status socket.
func (n *Node) Socket() string { return n.File("egress.sock") }

// Configure writes the configuration. arguments is YAML for proxyArguments, of which those
// given override the tests' own, and null takes one away.
func (n *Node) Configure(arguments string) {
	n.t.Helper()
	own := map[string]any{
		"cluster-cidr":           []string{lab.ClusterV4.String(), lab.ClusterV6.String()},
		"nodeport-addresses":     []string{"primary"},
		"conntrack-max-per-core": []string{"0"}, // the limit is the machine's, not the namespace's
		"egress-snat-socket":     []string{n.Socket()},
		"egress-snat-cni-socket": []string{n.File("cni.sock")},
		// Not this machine's:
		"egress-snat-kubelet-socket": []string{n.File("pods.sock")},
		"egress-snat-cni-conf-dir":   []string{n.File("net.d")},
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(arguments), &given); err != nil {
		n.t.Fatal(err)
	}
	maps.Copy(own, n.Arguments)
	maps.Copy(own, given)
	maps.DeleteFunc(own, func(_ string, value any) bool { return value == nil })
	config := map[string]any{
		"kind": "NodeConfig", "apiVersion": "v1", "nodeName": n.Name,
		"iptablesSyncPeriod": SyncPeriod.String(), "proxyArguments": own,
	}
	for key, value := range n.Fields {
		config[key] = value
	}
	n.WriteConfig(config)
}

// WriteConfig writes a configuration with these fields and no others.
func (n *Node) WriteConfig(fields map[string]any) {
	n.t.Helper()
	text, err := yaml.Marshal(fields)
	if err != nil {
		n.t.Fatal(err)
	}
	n.Write(n.Config(), text)
}

// RuleArguments are those of the configuration that decide which rules the kernel should hold.
func (n *Node) RuleArguments() oracle.Arguments {
	n.t.Helper()
	text, err := os.ReadFile(n.Config())
	if err != nil {
		n.t.Fatal(err)
	}
	var config struct {
		ProxyArguments map[string][]string `json:"proxyArguments"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		n.t.Fatal(err)
	}
	arguments, err := oracle.ParseArguments(config.ProxyArguments)
	if err != nil {
		n.t.Fatal(err)
	}
	return arguments
}

// Write replaces a file as editors do, in one step.
func (n *Node) Write(file string, content []byte) {
	n.t.Helper()
	if err := os.WriteFile(file+"~", content, 0o600); err != nil {
		n.t.Fatal(err)
	}
	if err := os.Rename(file+"~", file); err != nil {
		n.t.Fatal(err)
	}
}

// Command returns the binary with arguments, on the node.
func (n *Node) Command(ctx context.Context, args ...string) *exec.Cmd {
	n.t.Helper()
	binary := os.Getenv("OPENSHIFT")
	if binary == "" {
		n.t.Fatal("the environment variable OPENSHIFT does not name the binary; run 'make test'")
	}
	cmd := n.Host.Command(ctx, binary, args...)
	for i, variable := range cmd.Env {
		if path, ok := strings.CutPrefix(variable, "PATH="); ok {
			cmd.Env[i] = "PATH=" + n.BinDir + ":" + path
		}
	}
	// The machine's own systemd-logind is no business of a node in a namespace.
	cmd.Env = append(cmd.Env, "DBUS_SYSTEM_BUS_ADDRESS=unix:path="+n.File("no-bus"))
	cmd.Env = append(cmd.Env, n.Variables...)
	return cmd
}

// Openshift runs the binary to its end and returns its output and exit status.
func (n *Node) Openshift(args ...string) (stdout, stderr string, status int) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), Soon)
	defer cancel()
	cmd := n.Command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		n.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Start starts the process with arguments behind those that it always has. Its output goes
// to Printed.
func (n *Node) Start(args ...string) {
	n.t.Helper()
	if n.process == nil { // all nodes' states are kept before any of them is killed
		n.t.Cleanup(func() {
			if n.t.Failed() {
				n.collect()
			}
		})
	}
	n.process = n.Command(context.WithoutCancel(n.t.Context()), append([]string{"start", "node", "--config=" + n.Config(), "--loglevel=2"}, args...)...)
	n.process.Stdout, n.process.Stderr = n.Printed, n.Printed
	ended, err := lab.Start(n.process)
	if err != nil {
		n.process = nil
		n.t.Fatal(err)
	}
	n.ended = ended
}

// Anew is Start with a log that begins with it.
func (n *Node) Anew(args ...string) {
	n.t.Helper()
	n.Printed.Reset()
	n.Start(args...)
}

// AnewReady is Anew, and waits for the first complete sync.
func (n *Node) AnewReady(args ...string) {
	n.t.Helper()
	n.Anew(args...)
	n.Ready()
}

// Ended is closed when the process has ended.
func (n *Node) Ended() <-chan struct{} { return n.ended }

// PID is the process's.
func (n *Node) PID() int { return n.process.Process.Pid }

// Traced returns what the process does to the kernel during do.
func (n *Node) Traced(do func()) lab.Trace {
	n.t.Helper()
	trace, err := n.Host.Trace(n.t.Context(), n.PID(), func() error {
		do()
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return trace
}

// Exit waits for the process to end and returns its status.
func (n *Node) Exit() int {
	n.t.Helper()
	select {
	case <-n.ended:
	case <-time.After(Soon):
		n.t.Fatalf("%s does not end", n.Name)
	}
	return n.process.ProcessState.ExitCode()
}

// Ends waits for the process to end by itself, with a status.
func (n *Node) Ends(want int) {
	n.t.Helper()
	if status := n.Exit(); status != want {
		n.t.Fatalf("%s ended with status %d, want %d", n.Name, status, want)
	}
}

// Signal sends the process a signal.
func (n *Node) Signal(signal os.Signal) {
	n.t.Helper()
	if err := n.process.Process.Signal(signal); err != nil {
		n.t.Fatal(err)
	}
}

// Stop ends the process as its service manager does.
func (n *Node) Stop() {
	n.t.Helper()
	n.End(syscall.SIGTERM)
}

// End sends a signal after which the process must end with status 0, promptly: well before
// a service manager would lose patience.
func (n *Node) End(signal syscall.Signal) {
	n.t.Helper()
	n.Signal(signal)
	select {
	case <-n.ended:
	case <-time.After(lab.Stretch(15 * time.Second)):
		n.Signal(syscall.SIGQUIT) // its log says then what each goroutine waits for
		n.Exit()
		n.t.Fatalf("%s does not end promptly on %s", n.Name, signal)
	}
	if status := n.process.ProcessState.ExitCode(); status != 0 {
		n.t.Fatalf("%s ended with status %d on %s, want 0", n.Name, status, signal)
	}
}

// Kill ends the process at once, by SIGKILL.
func (n *Node) Kill() {
	if n.process != nil {
		_ = n.process.Process.Kill() // it may have ended
		<-n.ended
	}
}

// Eventually fails the test unless check returns nil within the time.
func (n *Node) Eventually(within time.Duration, check func() error) {
	n.t.Helper()
	Eventually(n.t, within, check)
}

// Eventually fails the test unless check returns nil within the time.
func Eventually(t testing.TB, within time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", within, err)
		}
		time.Sleep(lab.Stretch(20 * time.Millisecond)) // to ask costs the machine something, too
	}
}

// Says waits until the output has text.
func (n *Node) Says(text string) {
	n.t.Helper()
	n.Eventually(Soon, func() error {
		if !strings.Contains(n.Printed.String(), text) {
			return fmt.Errorf("the log of %s does not say %q", n.Name, text)
		}
		return nil
	})
}

// Ready waits for the first complete sync.
func (n *Node) Ready() {
	n.t.Helper()
	n.Says("Egress SNAT rules are in place")
}

// FollowedThePlan fails if a process with egress-snat-audit has found, since the last Reset of its output, that
// the plan which follows changes is not the one that is made of all objects.
func (n *Node) FollowedThePlan() {
	n.t.Helper()
	if strings.Contains(n.Printed.String(), "The plan that was updated change by change") {
		n.t.Errorf("%s: the plan that follows changes is not the one that is made of all objects", n.Name)
	}
}

// Sees waits until from, with a new flow to the address, is seen as want.
func (n *Node) Sees(network string, from *lab.Host, to netip.AddrPort, want netip.Addr) {
	n.t.Helper()
	n.Eventually(Soon, func() error {
		seen, err := Ask(n.t.Context(), network, from, to)
		if err == nil && seen != want {
			err = fmt.Errorf("%s to %s (%s) is seen as %s, want %s", from.Name, to, network, seen, want)
		}
		return err
	})
}

// Ask makes a new flow, and gives up on it soon: one that began before the rules were
// there never gets an answer.
func Ask(ctx context.Context, network string, from *lab.Host, to netip.AddrPort) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	return from.Ask(ctx, network, to, 0)
}

// Output is a process's output that may be read while it grows. All of it goes to a file, too.
type Output struct {
	mu   sync.Mutex
	buf  bytes.Buffer // since the last Reset
	file *os.File
}

func newOutput(t testing.TB, file string) *Output {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &Output{file: f}
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(p)
	return o.file.Write(p)
}

// String is what was printed since the last Reset.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Reset has String begin anew. The file keeps what was printed so far.
func (o *Output) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Reset()
}
