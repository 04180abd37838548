package netns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/iptables"
	"github.com/openshift/origin-node/pkg/kubeproxy"
	"github.com/openshift/origin-node/pkg/manifests"
)

const (
	// syncPeriod is the nodes' iptablesSyncPeriod: what somebody else has broken is
	// repaired within it.
	syncPeriod = 5 * time.Second
	// soon bounds everything that takes a fraction of a second on an idle machine.
	soon = 20 * time.Second
)

var (
	clusterV4 = netip.MustParsePrefix("10.128.0.0/14")
	clusterV6 = netip.MustParsePrefix("fd00:10:128::/48")
)

// node is a node of a lab with the folder of its configuration and manifests. Its process
// may be started and ended several times.
type node struct {
	*testing.T
	*lab.Lab
	dir     string
	process *exec.Cmd
	ended   chan struct{} // closed when process has ended
	log     *logBuffer
	// binDir, in front of the PATH of the node's process, is for tests that put
	// something in iptables' place.
	binDir string
	env    []string
}

// onBackends runs test on a node of each iptables back end, dual stack, with two pods and
// a network plugin's masquerade rule.
func onBackends(t *testing.T, test func(n *node)) {
	t.Helper()
	for _, backend := range lab.Backends() {
		t.Run(string(backend), func(t *testing.T) {
			t.Parallel()
			test(newNode(t, lab.Config{IPv6: true, Pods: 2, Masquerade: true, Backend: backend}))
		})
	}
}

// newNode makes a node with a configuration whose proxyArguments are extra over what all
// tests need. Nothing runs yet.
func newNode(t *testing.T, config lab.Config) *node {
	t.Helper()
	n := &node{T: t, Lab: lab.ForTest(t, config), dir: t.TempDir(), binDir: t.TempDir(), log: &logBuffer{}}
	for _, dir := range []string{n.manifests(), n.path("empty")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.configure("")
	n.put("node.yaml", &v1.Node{
		TypeMeta: typeMeta("v1", "Node"), ObjectMeta: objectMeta("", "node-1"),
		Status: v1.NodeStatus{Addresses: []v1.NodeAddress{
			{Type: v1.NodeInternalIP, Address: n.Node().V4.String()}, {Type: v1.NodeInternalIP, Address: "2001:db8:0:2::2"},
		}},
	})
	t.Cleanup(func() {
		n.kill()
		if t.Failed() {
			t.Logf("the node's log:\n%s", n.log)
		}
	})
	return n
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }
func (n *node) manifests() string       { return n.path("manifests") }
func (n *node) config() string          { return n.path("node-config.yaml") }
func (n *node) socket() string          { return n.path("egress.sock") }

// configure writes the configuration. arguments is YAML for proxyArguments, of which those
// given override the tests' own.
func (n *node) configure(arguments string) {
	n.Helper()
	own := map[string]any{
		"cluster-cidr":           []string{clusterV4.String(), clusterV6.String()},
		"nodeport-addresses":     []string{"primary"},
		"conntrack-max-per-core": []string{"0"}, // the limit is the machine's, not the namespace's
		"egress-snat-socket":     []string{n.socket()},
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(arguments), &given); err != nil {
		n.Fatal(err)
	}
	for key, value := range given {
		own[key] = value
	}
	n.writeConfig(map[string]any{
		"kind": "NodeConfig", "apiVersion": "v1", "nodeName": "node-1",
		"iptablesSyncPeriod": syncPeriod.String(), "proxyArguments": own,
	})
}

func (n *node) writeConfig(config map[string]any) {
	n.Helper()
	text, err := yaml.Marshal(config)
	if err != nil {
		n.Fatal(err)
	}
	n.write(n.config(), text)
}

// write replaces a file as editors do, in one step.
func (n *node) write(file string, content []byte) {
	n.Helper()
	if err := os.WriteFile(file+"~", content, 0o600); err != nil {
		n.Fatal(err)
	}
	if err := os.Rename(file+"~", file); err != nil {
		n.Fatal(err)
	}
}

// put writes objects into a manifest.
func (n *node) put(name string, objects ...runtime.Object) {
	n.Helper()
	var documents [][]byte
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			n.Fatal(err)
		}
		documents = append(documents, text)
	}
	n.write(filepath.Join(n.manifests(), name), bytes.Join(documents, []byte("---\n")))
}

func (n *node) remove(name string) {
	n.Helper()
	if err := os.Remove(filepath.Join(n.manifests(), name)); err != nil {
		n.Fatal(err)
	}
}

// command returns the binary with arguments, on the node.
func (n *node) command(ctx context.Context, args ...string) *exec.Cmd {
	n.Helper()
	binary := os.Getenv("OPENSHIFT")
	if binary == "" {
		n.Fatal("the environment variable OPENSHIFT does not name the binary; run 'make test'")
	}
	cmd := n.Node().Command(ctx, binary, args...)
	cmd.Env = append(n.Env(),
		"PATH="+n.binDir+":"+n.Path(),
		// Labs share /run: without a lock of its own one would wait for another.
		"XTABLES_LOCKFILE="+n.path("xtables.lock"))
	cmd.Env = append(cmd.Env, n.env...)
	return cmd
}

// openshift runs the binary to its end and returns its output and exit status.
func (n *node) openshift(args ...string) (stdout, stderr string, status int) {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), soon)
	defer cancel()
	cmd := n.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		n.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// start starts the node's process on its manifests.
func (n *node) start() {
	n.Helper()
	n.startWith("--manifests=" + n.manifests())
}

// startWith starts the node's process.
func (n *node) startWith(args ...string) {
	n.Helper()
	n.process = n.command(context.WithoutCancel(n.Context()), append([]string{"start", "node", "--config=" + n.config(), "--loglevel=2"}, args...)...)
	n.process.Stdout, n.process.Stderr = n.log, n.log
	if err := n.process.Start(); err != nil {
		n.Fatal(err)
	}
	ended := make(chan struct{})
	n.ended = ended
	go func(process *exec.Cmd) {
		_ = process.Wait() // the status is in its ProcessState
		close(ended)
	}(n.process)
}

// exit waits for the process to end and returns its status.
func (n *node) exit() int {
	n.Helper()
	select {
	case <-n.ended:
	case <-time.After(soon):
		n.Fatal("the node does not end")
	}
	return n.process.ProcessState.ExitCode()
}

// stop ends the node as its service manager does.
func (n *node) stop() {
	n.Helper()
	n.end(syscall.SIGTERM)
}

// end sends a signal after which the node must end with status 0, promptly: well before a
// service manager would lose patience.
func (n *node) end(signal syscall.Signal) {
	n.Helper()
	if err := n.process.Process.Signal(signal); err != nil {
		n.Fatal(err)
	}
	select {
	case <-n.ended:
	case <-time.After(5 * time.Second):
		n.Fatalf("the node does not end promptly on %s", signal)
	}
	if status := n.process.ProcessState.ExitCode(); status != 0 {
		n.Fatalf("the node ended with status %d on %s, want 0", status, signal)
	}
}

// kill ends the node as nobody should.
func (n *node) kill() {
	if n.process != nil {
		_ = n.process.Process.Kill() // it may have ended
		<-n.ended
	}
}

// eventually fails the test unless check returns nil within the time.
func (n *node) eventually(within time.Duration, check func() error) {
	n.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			n.Fatalf("not within %s: %v", within, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// logs waits until the log has text.
func (n *node) logs(text string) {
	n.Helper()
	n.eventually(soon, func() error {
		if !strings.Contains(n.log.String(), text) {
			return fmt.Errorf("the log does not say %q", text)
		}
		return nil
	})
}

// ready waits for the first complete sync.
func (n *node) ready() {
	n.Helper()
	n.logs("Egress SNAT rules are in place")
}

// sees waits until from, with a new flow to the address, is seen as want.
func (n *node) sees(network string, from *lab.Host, to netip.AddrPort, want netip.Addr) {
	n.Helper()
	n.eventually(soon, func() error {
		seen, err := n.ask(network, from, to)
		if err == nil && seen != want {
			err = fmt.Errorf("%s to %s (%s) is seen as %s, want %s", from.Name, to, network, seen, want)
		}
		return err
	})
}

// ask makes a new flow, and gives up on it soon: one that began before the rules were
// there never gets an answer.
func (n *node) ask(network string, from *lab.Host, to netip.AddrPort) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(n.Context(), 300*time.Millisecond)
	defer cancel()
	return from.Ask(ctx, network, to, 0)
}

// serve lets host tell its clients who they are seen as.
func (n *node) serve(host *lab.Host, port int, networks ...string) {
	n.Helper()
	for _, network := range networks {
		if _, err := host.ServeWhoami(network, port); err != nil {
			n.Fatal(err)
		}
	}
}

// save returns what iptables-save prints of the family.
func (n *node) save(family v1.IPFamily, args ...string) string {
	n.Helper()
	name := "iptables-save"
	if family == v1.IPv6Protocol {
		name = "ip6tables-save"
	}
	out, err := n.Node().Run(n.Context(), name, args...)
	if err != nil {
		n.Fatal(err)
	}
	return out
}

// iptables runs iptables as somebody else on the node would.
func (n *node) iptables(args ...string) {
	n.Helper()
	n.asSomebodyElse("", "iptables", append([]string{"-w"}, args...)...)
}

// reload empties tables, chains included, in one step.
func (n *node) reload(tables ...string) {
	n.Helper()
	n.asSomebodyElse("*"+strings.Join(tables, "\nCOMMIT\n*")+"\nCOMMIT\n", "iptables-restore", "-w")
}

func (n *node) asSomebodyElse(stdin, name string, args ...string) {
	n.Helper()
	cmd := n.Node().Command(n.Context(), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(cmd.Env, "XTABLES_LOCKFILE="+n.path("xtables.lock"))
	if out, err := cmd.CombinedOutput(); err != nil {
		n.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// holdsPlan waits until the kernel holds the plan for the manifests and nothing else of
// ours, in both IP families, with the jump in front.
func (n *node) holdsPlan(within time.Duration) {
	n.Helper()
	n.eventually(within, n.checkPlan)
}

func (n *node) checkPlan() error {
	objects, err := n.objects()
	if err != nil {
		return err
	}
	config := egress.Config{ClusterCIDRs: []netip.Prefix{clusterV4, clusterV6}, ExcludeNodes: true}
	for _, text := range kubeproxy.DefaultExclusions {
		config.Exclusions = append(config.Exclusions, netip.MustParsePrefix(text))
	}
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		plan, err := egress.PlanFor(family, config, objects)
		if err != nil {
			return err
		}
		kernel, err := iptables.ParseSave(n.save(family))
		if err != nil {
			return err
		}
		if differences := iptables.Differences(iptables.Render(plan), kernel); len(differences) > 0 {
			return fmt.Errorf("%s: the kernel does not hold the plan:\n%s", family, strings.Join(differences, "\n"))
		}
	}
	return nil
}

// objects are those in the manifests.
func (n *node) objects() (egress.Objects, error) {
	loaded, err := manifests.Load(n.manifests())
	if err != nil {
		return egress.Objects{}, err
	}
	objects := egress.Objects{Services: loaded.Services, EndpointSlices: loaded.EndpointSlices, Nodes: loaded.Nodes}
	for _, cidr := range loaded.ServiceCIDRs {
		objects.ServiceCIDRs = append(objects.ServiceCIDRs, cidr.Spec.CIDRs...)
	}
	if len(loaded.Networks) > 0 {
		objects.Network = loaded.Networks[0]
	}
	return objects, nil
}

// logBuffer is a process's output that may be read while it grows.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
