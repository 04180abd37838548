//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netns"
)

const port = 8080

var (
	egressV4 = netip.MustParseAddr("203.0.113.5")
	egressV6 = netip.MustParseAddr("2001:db8:113::5")
)

// networks are what a whoami server serves, by the protocol as iptables calls it.
var networks = []struct{ name, protocol string }{
	{"tcp4", "tcp"}, {"tcp6", "tcp"},
	{"udp4", "udp"}, {"udp6", "udp"},
	{"sctp4", "sctp"}, {"sctp6", "sctp"},
}

func isV6(network string) bool { return strings.HasSuffix(network, "6") }

func (h *Host) address(network string) netip.Addr {
	if isV6(network) {
		return h.V6
	}
	return h.V4
}

// serveAll starts every kind of server on one port.
func serveAll(t *testing.T, h *Host) map[string]*Server {
	t.Helper()
	servers := map[string]*Server{}
	for _, n := range networks {
		s, err := h.ServeWhoami(n.name, port)
		if err != nil {
			t.Fatal(err)
		}
		servers[n.name] = s
	}
	return servers
}

func ask(t *testing.T, from *Host, network string, to netip.Addr) netip.Addr {
	t.Helper()
	seen, err := from.Ask(t.Context(), network, netip.AddrPortFrom(to, port), 0)
	if err != nil {
		t.Error(err)
	}
	return seen
}

// rule appends or inserts a rule with the backend's own iptables on a node.
func rule(t *testing.T, node *Host, network string, args ...string) {
	t.Helper()
	tool := "iptables"
	if isV6(network) {
		tool = "ip6tables"
	}
	if out, err := node.Run(t.Context(), tool, append([]string{"-w", "-t", "nat"}, args...)...); err != nil {
		t.Fatal(out, err)
	}
}

func forBackends(t *testing.T, test func(*testing.T, Backend)) {
	for _, b := range Backends() {
		t.Run(string(b), func(t *testing.T) { test(t, b) })
	}
}

func TestBackend_IsOnPath(t *testing.T) {
	forBackends(t, func(t *testing.T, b Backend) {
		l := ForTest(t, Config{Backend: b})
		want := map[Backend]string{Legacy: "(legacy)", NFT: "(nf_tables)"}[b]
		for _, tool := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
			out, err := l.Node().Run(t.Context(), tool, "--version")
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%s --version: got %q, %v, want %s", tool, out, err, want)
			}
		}
	})
}

// TestLab_PointToPoint: pods without a bridge reach those beside them, those of other nodes and the host outside; so does one
// that comes in the place of another.
func TestLab_PointToPoint(t *testing.T) {
	if missing := MissingPlugins(); missing != "" {
		Lacks(t, "%s", missing)
	}
	l := ForTest(t, Config{Nodes: 2, Pods: 3, IPv6: true, PointToPoint: true})
	serveAll(t, l.Outside())
	for i := 1; i <= 3; i++ {
		serveAll(t, l.Pod(i))
	}
	reaches := func(pod *Host) {
		t.Helper()
		for _, n := range networks {
			for _, to := range []*Host{l.Pod(2), l.Pod(3), l.Outside()} {
				if got, want := ask(t, pod, n.name, to.address(n.name)), pod.address(n.name); got != want {
					t.Errorf("%s to %s: seen as %s, want %s", n.name, to.Name, got, want)
				}
			}
		}
	}
	reaches(l.Pod(1))
	if out, err := l.Node().Run(t.Context(), "ip", "link", "show", "type", "bridge"); err != nil || out != "" {
		t.Errorf("the node has a bridge: %s, %v", out, err)
	}
	if err := l.SetLink(l.Pod(1), false); err == nil {
		t.Error("a pod can be cut off, and its node loses the routes to it")
	}
	before := l.Pod(1).V4
	if err := l.RemovePod(l.Pod(1)); err != nil {
		t.Fatal(err)
	}
	pod, err := l.AddPod()
	if err != nil {
		t.Fatal(err)
	}
	if pod.V4 != before {
		t.Errorf("the next pod has %s, want %s", pod.V4, before)
	}
	reaches(pod)
}

// The ports of an SCTP packet are inside its checksum: a packet whose port NAT
// changed arrives only if netfilter summed it anew.
func TestSCTP_PortIsTranslated(t *testing.T) {
	forBackends(t, func(t *testing.T, b Backend) {
		l := ForTest(t, Config{Pods: 1, IPv6: true, Backend: b})
		servers := serveAll(t, l.Outside())
		for _, network := range []string{"sctp4", "sctp6"} {
			rule(t, l.Node(), network, "-A", "POSTROUTING", "-p", "sctp", "-j", "MASQUERADE", "--to-ports", "4000")
			ask(t, l.Pod(1), network, l.Outside().address(network))
			want := netip.AddrPortFrom(l.Node().address(network), 4000)
			if got := servers[network].Seen(); len(got) == 0 || got[0] != want {
				t.Errorf("%s: seen as %s, want %s", network, got, want)
			}
		}
	})
}

func TestFlow_SurvivesANewRule(t *testing.T) {
	forBackends(t, func(t *testing.T, b Backend) {
		l := ForTest(t, Config{Pods: 1, IPv6: true, Backend: b, Masquerade: true})
		serveAll(t, l.Outside())
		for _, network := range []string{"tcp4", "tcp6"} {
			outside := netip.AddrPortFrom(l.Outside().address(network), port)
			flow, err := l.Pod(1).Dial(t.Context(), network, outside, 40000)
			if err != nil {
				t.Fatal(err)
			}
			if want := netip.AddrPortFrom(l.Pod(1).address(network), 40000); flow.Local() != want {
				t.Errorf("%s flow is local to %s, want %s", network, flow.Local(), want)
			}
			egress := egressV4
			if isV6(network) {
				egress = egressV6
			}
			rule(t, l.Node(), network, "-I", "POSTROUTING", "-o", "eth0", "-j", "SNAT", "--to-source", egress.String())
			if got, err := flow.Ask(t.Context()); err != nil || got != l.Node().address(network) {
				t.Errorf("%s flow kept: seen as %s, %v, want the node", network, got, err)
			}
			if got := ask(t, l.Pod(1), network, outside.Addr()); got != egress {
				t.Errorf("%s flow made later: seen as %s, want %s", network, got, egress)
			}
			if err := flow.Close(); err != nil {
				t.Error(err)
			}
			got, err := l.Pod(1).Ask(t.Context(), network, outside, 40000)
			if err != nil || got != egress {
				t.Errorf("%s from the port of the closed flow: seen as %s, %v, want %s", network, got, err, egress)
			}
		}
	})
}

func TestAsk_EndsWithoutAnAnswer(t *testing.T) {
	l := ForTest(t, Config{Pods: 1})
	serveAll4 := []string{"tcp4", "udp4", "sctp4"}
	for _, network := range serveAll4 {
		if _, err := l.Outside().ServeWhoami(network, port); err != nil {
			t.Fatal(err)
		}
	}
	rule := []string{"-A", "FORWARD", "-j", "DROP"}
	if _, err := l.Node().Run(t.Context(), "iptables", rule...); err != nil {
		t.Fatal(err)
	}
	for _, network := range serveAll4 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := l.Pod(1).Ask(ctx, network, netip.AddrPortFrom(l.Outside().V4, port), 0)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%s through a node that drops: got %v, want a timeout", network, err)
		}
	}
}

func TestWhoami_AnswersFromTheAddressAsked(t *testing.T) {
	l := ForTest(t, Config{Pods: 1, IPv6: true})
	serveAll(t, l.Outside())
	second := map[bool]netip.Addr{
		false: netip.MustParseAddr("203.0.113.99"),
		true:  netip.MustParseAddr("2001:db8:113::99"),
	}
	for _, addr := range second {
		if err := l.AddAddr(l.Outside(), addr); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range networks {
		if got, want := ask(t, l.Pod(1), n.name, second[isV6(n.name)]), l.Pod(1).address(n.name); got != want {
			t.Errorf("%s: seen as %s, want %s", n.name, got, want)
		}
	}
}

// An external IP that the node holds is not what the node or its masquerade leave from.
func TestAddAddr_IsNoSource(t *testing.T) {
	l := ForTest(t, Config{Pods: 1, IPv6: true, Masquerade: true})
	serveAll(t, l.Outside())
	for _, addr := range []netip.Addr{egressV4, egressV6, netip.MustParseAddr("2001:db8:113::2")} {
		if err := l.AddAddr(l.Node(), addr); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.AddAddr(l.Outside(), netip.MustParseAddr("2001:db8:113::99")); err != nil {
		t.Fatal(err)
	}
	for _, to := range []netip.Addr{l.Outside().V4, l.Outside().V6, netip.MustParseAddr("2001:db8:113::99")} {
		network, want := "udp4", l.Node().V4
		if to.Is6() {
			network, want = "udp6", l.Node().V6
		}
		for _, from := range []*Host{l.Node(), l.Pod(1)} {
			if got := ask(t, from, network, to); got != want {
				t.Errorf("%s to %s: seen as %s, want %s", from.Name, to, got, want)
			}
		}
	}
	serveAll(t, l.Node())
	for _, n := range networks {
		egress := egressV4
		if isV6(n.name) {
			egress = egressV6
		}
		if got, want := ask(t, l.Outside(), n.name, egress), l.Outside().address(n.name); got != want {
			t.Errorf("%s to the node's external IP: seen as %s, want %s", n.name, got, want)
		}
	}
}

func TestDo_RunsInTheNamespace(t *testing.T) {
	l := ForTest(t, Config{})
	home := currentNamespace(t)
	var inside string
	broken := errors.New("broken")
	err := l.Node().Do(func() error { inside = currentNamespace(t); return broken })
	if !errors.Is(err, broken) {
		t.Errorf("got error %v, want that of the function", err)
	}
	if inside == home {
		t.Error("the function did not run in another namespace")
	}
	if currentNamespace(t) != home {
		t.Error("the caller is in another namespace now")
	}
	err = l.Node().Do(func() error { runtime.Goexit(); return nil })
	if err == nil {
		t.Error("no error for a function that ended its goroutine")
	}
}

func currentNamespace(t *testing.T) string {
	ns, err := netns.Get()
	if err != nil {
		t.Error(err)
	}
	defer func() { _ = ns.Close() }()
	return ns.UniqueId()
}

// startInside starts a shell script and returns when it runs in the namespace.
func startInside(t *testing.T, h *Host, script string) *exec.Cmd {
	t.Helper()
	cmd := h.Command(t.Context(), "sh", "-c", "echo; exec >&-; "+script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(out); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// traces is what a lab could leave on the machine.
type traces struct{ Namespaces, Links, Files string }

var othersLab = regexp.MustCompile(`^lab-([0-9]+)-`)

func lookAround(t *testing.T) traces {
	t.Helper()
	// On standard error ip complains of namespaces that others are just making.
	names := func(name string, args ...string) string {
		out, err := exec.CommandContext(t.Context(), name, args...).Output()
		if err != nil {
			t.Fatal(name, err)
		}
		return string(out)
	}
	var namespaces []string
	for name := range strings.Lines(names("ip", "netns", "list")) {
		// Tests of other packages, in processes of their own, make labs at the same time.
		if pid, ours := othersLab.FindStringSubmatch(name), fmt.Sprint(os.Getpid()); pid == nil || pid[1] == ours {
			namespaces = append(namespaces, name)
		}
	}
	return traces{
		Namespaces: strings.Join(namespaces, ""),
		Links:      names("ip", "-brief", "link"),
		Files:      names("ls", os.TempDir()),
	}
}

func TestClose_LeavesNothing(t *testing.T) {
	ForTest(t, Config{}) // skips where nothing can be built
	t.Setenv("TMPDIR", t.TempDir())
	before := lookAround(t)
	l, err := New(t.Context(), Config{Nodes: 2, Pods: 2, Control: true, IPv6: true, Masquerade: true})
	if err != nil {
		t.Fatal(err)
	}
	serveAll(t, l.Outside())
	if _, err := l.Pod(1).Dial(t.Context(), "tcp4", netip.AddrPortFrom(l.Outside().V4, port), 0); err != nil {
		t.Fatal(err)
	}
	parent := startInside(t, l.Node(), "sleep 1000 & sleep 1000")
	onItsWay := l.Node().Command(t.Context(), "sleep", "1000")
	if err := onItsWay.Start(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, cmd := range []*exec.Cmd{parent, onItsWay} {
		if err := cmd.Wait(); err == nil {
			t.Errorf("%s ended well, want it killed", cmd)
		}
	}
	if diff := cmp.Diff(before, lookAround(t)); diff != "" {
		t.Errorf("traces (-before +after):\n%s", diff)
	}
}

func TestNew_CleansUpAfterAnError(t *testing.T) {
	ForTest(t, Config{})
	t.Setenv("TMPDIR", t.TempDir())
	before := lookAround(t)
	for name, cfg := range map[string]Config{
		"too many pods":   {Pods: lastPod + 1},
		"too many nodes":  {Nodes: lastNode + 1},
		"unknown backend": {Pods: 1, Backend: "pf"}, // found out when the hosts are there
		"bad prefix":      {Prefix: "a/b"},
	} {
		if l, err := New(t.Context(), cfg); err == nil {
			t.Errorf("%s: no error", name)
			_ = l.Close()
		}
	}
	if diff := cmp.Diff(before, lookAround(t)); diff != "" {
		t.Errorf("traces (-before +after):\n%s", diff)
	}
}

func TestPrefix_IsOfOneLab(t *testing.T) {
	l := ForTest(t, Config{Prefix: "labtest"})
	if l.Node().Name != "labtest-node" || l.Outside().Name != "labtest-outside" {
		t.Errorf("got names %s and %s", l.Node().Name, l.Outside().Name)
	}
	if second, err := New(t.Context(), Config{Prefix: "labtest"}); err == nil {
		t.Error("two labs with one prefix")
		_ = second.Close()
	}
	if _, err := l.Node().Run(t.Context(), "true"); err != nil {
		t.Errorf("the first lab suffered: %v", err)
	}
}

func TestNew_RemovesLeftovers(t *testing.T) {
	crashed := ForTest(t, Config{Prefix: "labcrash", Nodes: 2, Pods: 2, Control: true})
	survivor := startInside(t, crashed.Node(), "exec sleep 1000")
	// What a run leaves that is killed while it makes a namespace.
	half := filepath.Join(netnsDir, "labcrash-pod-9")
	if err := os.WriteFile(half, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	// A crash gives back the prefix and nothing else.
	if err := crashed.lock.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := New(t.Context(), Config{Prefix: "labcrash"})
	if err != nil {
		t.Fatal(err)
	}
	if err := survivor.Wait(); err == nil {
		t.Error("the process of the crashed lab ended well, want it killed")
	}
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", half, err)
	}
	names := strings.Fields(lookAround(t).Namespaces)
	for _, h := range crashed.hosts() {
		again := h == crashed.Node() || h == crashed.Outside()
		if there := slices.Contains(names, h.Name); there != again {
			t.Errorf("namespace %s of the crashed lab is there: %t, want %t", h.Name, there, again)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	crashed.lock, err = net.Listen("unix", "@origin-node-lab-labcrash")
	if err != nil {
		t.Error(err)
	}
}

// ofAKilledProcess names a prefix: this process is to make labs and be killed.
const ofAKilledProcess = "LAB_OF_A_KILLED_PROCESS"

// killed is what such a process tells of its labs: one without a prefix, and one with.
type killed struct {
	Prefix, Dir   string
	Stays, Leaves int // processes in the first: one that Start has started leaves
	Kept          string
}

// TestNew_RemovesWhatAKilledProcessLeft: namespaces, links, processes and files of a lab that nobody
// wants. A lab with a prefix is somebody's.
func TestNew_RemovesWhatAKilledProcessLeft(t *testing.T) {
	if prefix := os.Getenv(ofAKilledProcess); prefix != "" {
		beKilled(t, prefix)
	}
	ForTest(t, Config{})
	t.Setenv("TMPDIR", t.TempDir())
	before := lookAround(t)
	got, kill := ownerToBeKilled(t)
	of := func(pid int) string { return fmt.Sprintf("/proc/%d/ns/net", pid) } // not of one that nobody has waited for
	stays, leaves := of(got.Stays), of(got.Leaves)
	if names := namesOf(t, got.Prefix, got.Kept); len(names) != 2*4 || !exists(t, got.Dir) || !exists(t, stays) || !exists(t, leaves) {
		t.Fatalf("there is not all that there should be, but the namespaces %v", names)
	}
	kill()
	// The kernel ends what was started with Start, whether anybody makes a lab again or not.
	if err := poll(t.Context(), func() (bool, error) { return !exists(t, leaves), nil }); err != nil {
		t.Errorf("a process that Start started is left: %v", err)
	}
	if err := poll(t.Context(), func() (bool, error) {
		l, err := New(t.Context(), Config{})
		if err != nil {
			return false, err
		}
		// Tests of other packages make labs, too: one of them may be removing it just now.
		return len(namesOf(t, got.Prefix)) == 0 && !exists(t, got.Dir) && !exists(t, stays), l.Close()
	}); err != nil {
		t.Errorf("%v; there are still %v, the directory: %t, the process: %t", err, namesOf(t, got.Prefix), exists(t, got.Dir), exists(t, stays))
	}
	if kept := namesOf(t, got.Kept); len(kept) != 4 {
		t.Errorf("of the lab that has a prefix there are %v", kept)
	}
	if err := Remove(t.Context(), got.Kept); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, lookAround(t)); diff != "" {
		t.Errorf("traces (-before +after):\n%s", diff)
	}
}

// ownerToBeKilled has a process make labs. kill kills it.
func ownerToBeKilled(t *testing.T) (got killed, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), ofAKilledProcess+"=labkilled")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	if err := json.NewDecoder(out).Decode(&got); err != nil {
		t.Fatalf("the process that should make labs does not print them: %v", err)
	}
	return got, kill
}

// beKilled makes labs, tells of them, and waits for its end.
func beKilled(t *testing.T, prefix string) {
	l, err := New(t.Context(), Config{Pods: 1, Control: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Config{Prefix: prefix, Pods: 1, Control: true}); err != nil {
		t.Fatal(err)
	}
	stays, leaves := l.Node().Command(t.Context(), "sleep", "1000"), l.Pod(1).Command(t.Context(), "sleep", "1000")
	if err := stays.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(leaves); err != nil {
		t.Fatal(err)
	}
	inIt := func() (bool, error) {
		pids, err := processesIn(l.Node().Name)
		return slices.Contains(pids, stays.Process.Pid), err
	}
	if err := poll(t.Context(), inIt); err != nil {
		t.Fatal(err)
	}
	err = json.NewEncoder(os.Stdout).Encode(killed{l.cfg.Prefix, l.dir, stays.Process.Pid, leaves.Process.Pid, prefix})
	if err != nil {
		t.Fatal(err)
	}
	select {}
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// namesOf are the namespaces of labs with these prefixes.
func namesOf(t *testing.T, prefixes ...string) []string {
	t.Helper()
	names, err := matching(netnsDir, regexp.MustCompile("^("+strings.Join(prefixes, "|")+")-"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestLogFile_StaysIfTheTestFails: it goes with a test that passes, and only with that.
func TestLogFile_StaysIfTheTestFails(t *testing.T) {
	var file, second string
	t.Run("passes", func(t *testing.T) {
		file, second = LogFile(t, "node"), LogFile(t, "node")
		if want := "_output/e2e/TestLogFile_StaysIfTheTestFails/passes/node.log"; !strings.HasSuffix(file, want) || file == second {
			t.Errorf("got %s and %s, want .../%s and another", file, second, want)
		}
		for _, name := range []string{file, second} {
			if err := os.WriteFile(name, []byte("log"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	if exists(t, filepath.Dir(file)) {
		t.Errorf("%s is left although the test has passed", filepath.Dir(file))
	}
	failing := &failing{TB: t}
	file = LogFile(failing, "node")
	if err := os.WriteFile(file, []byte("log"), 0o600); err != nil {
		t.Fatal(err)
	}
	failing.cleanup()
	if !exists(t, file) || !strings.Contains(failing.said, file) {
		t.Errorf("the test has failed; %s exists: %t; it says %q", file, exists(t, file), failing.said)
	}
	if err := takeLog(file); err != nil {
		t.Error(err)
	}
}

// failing is a test that has failed.
type failing struct {
	testing.TB
	cleanup func()
	said    string
}

func (f *failing) Failed() bool                    { return true }
func (f *failing) Cleanup(do func())               { f.cleanup = do }
func (f *failing) Logf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }
