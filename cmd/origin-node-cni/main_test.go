package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/socket"
)

// TestMain is the plugins, too, as the runtime of a test calls them: by the name of the program.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "origin-node-cni":
		main()
	case "network":
		nothing := func(*skel.CmdArgs) error { return nil }
		skel.PluginMainFuncs(skel.CNIFuncs{Add: giveAddress, Del: nothing, Check: nothing, GC: nothing, Status: nothing}, version.All, "")
	case asker:
		askKernel(os.Args[1:])
	default:
		toolsPath = os.Getenv("PATH")
		_ = os.Setenv("PATH", "/nonexistent") // this machine's own tools are none of a test's, unless it says so
		os.Exit(m.Run())
	}
}

// toolsPath is the PATH that leads to this machine's own tools.
var toolsPath string

// giveAddress is a network plugin that says what its configuration tells it to.
func giveAddress(args *skel.CmdArgs) error {
	var c struct {
		types.PluginConf
		Result *current.Result `json:"result"`
	}
	if err := json.Unmarshal(args.StdinData, &c); err != nil {
		return err
	}
	return types.PrintResult(c.Result, c.CNIVersion)
}

// node is a stand-in of the node's process.
type node struct {
	mu       sync.Mutex
	attach   func(n int) (cni.Decision, error) // the nth call, from 0 on
	attached []attachments.Attachment
	detached []string
	valid    []string
	settings map[string]*os.File
	err      error // of everything else
	late     bool  // the second CHECK succeeds
	checks   int
}

func (n *node) TakeLocalPorts(id string, file *os.File) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.settings == nil {
		n.settings = map[string]*os.File{}
	}
	n.settings[id] = file
	return n.err
}

func (n *node) Attach(_ context.Context, a attachments.Attachment) (cni.Decision, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attached = append(n.attached, a)
	if n.attach == nil {
		return cni.Decide(nil), nil
	}
	return n.attach(len(n.attached) - 1)
}

func (n *node) Detach(_ context.Context, id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.detached = append(n.detached, id)
	return n.err
}

func (n *node) Check(ctx context.Context, _ string) (cni.Decision, error) {
	n.mu.Lock()
	err := n.err
	n.checks++
	if n.late {
		n.err = nil
	}
	n.mu.Unlock()
	if no := (*cni.Failure)(nil); errors.As(err, &no) && no.Reason == cni.NotWritten {
		<-ctx.Done() // it waits for a sync that succeeds
	}
	return cni.Decide(nil), err
}

func (n *node) Ready() error { return n.err }

func (n *node) Collect(_ context.Context, valid []string, _ time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.valid = valid
	return n.err
}

// runtime calls the plugins as containerd and CRI-O do.
type runtime struct {
	*testing.T
	run    string // the node's folder
	claims string
	cni    *libcni.CNIConfig
	list   *libcni.NetworkConfigList
	pod    *libcni.RuntimeConf
}

const result = `{"interfaces": [{"name": "veth1"}, {"name": "eth0", "sandbox": "/run/netns/c1"}],
	"ips": [{"address": "10.128.0.5/24", "interface": 1}, {"address": "fd00::5/64"}, {"address": "10.128.0.1/24", "interface": 0}]}`

// newRuntime returns a runtime whose list of plugins ends with ours, of a version and with these further options.
func newRuntime(t *testing.T, cniVersion, options string) *runtime {
	t.Helper()
	bin, dir := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"network", "origin-node-cni"} {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	r := &runtime{T: t, run: filepath.Join(dir, "run"), claims: filepath.Join(dir, "run", "claims")}
	if err := os.MkdirAll(r.run, 0o700); err != nil {
		t.Fatal(err)
	}
	r.list, err = libcni.NetworkConfFromBytes(fmt.Appendf(nil, `{"cniVersion": %q, "name": "cluster", "plugins": [
		{"type": "network", "result": %s}, {"type": "origin-node-cni", "socket": %q, "waitSeconds": 1 %s}]}`,
		cniVersion, result, r.socket(), options))
	if err != nil {
		t.Fatal(err)
	}
	r.cni = libcni.NewCNIConfigWithCacheDir([]string{bin}, filepath.Join(dir, "cache"), nil)
	r.pod = &libcni.RuntimeConf{ContainerID: "c1", NetNS: "/run/netns/c1", IfName: "eth0", Args: [][2]string{
		{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "shop"}, {"K8S_POD_NAME", "web-0"}, {"K8S_POD_INFRA_CONTAINER_ID", "c1"}, {"K8S_POD_UID", "u1"},
	}}
	return r
}

func (r *runtime) socket() string { return filepath.Join(r.run, "cni.sock") }

// answeredBy lets a node process answer until the test ends, or end is called.
func (r *runtime) answeredBy(n *node) (end func()) {
	r.Helper()
	if os.Geteuid() != 0 {
		lab.Lacks(r, "only root may ask a node")
	}
	ctx, cancel := context.WithCancel(r.Context())
	l, err := socket.Listen(r.socket())
	if err != nil {
		r.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Serve(ctx, cni.Handler(n), log.New(io.Discard, "", 0)) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.Error(err)
		}
	})
	r.Cleanup(end)
	return end
}

// add starts the pod, and returns the code of the error; 0 if it starts.
func (r *runtime) add() uint {
	r.Helper()
	got, err := r.cni.AddNetworkList(r.Context(), r.list, r.pod)
	if err != nil {
		r.Log(err)
		return codeOf(r.T, err)
	}
	passed, err := current.NewResultFromResult(got)
	if err != nil || len(passed.IPs) != 3 || len(passed.Interfaces) != 2 {
		r.Errorf("result %v, err %v; expected that of the network plugin", got, err)
	}
	return 0
}

func codeOf(t *testing.T, err error) uint {
	t.Helper()
	if err == nil {
		return 0
	}
	var said *types.Error
	if !errors.As(err, &said) {
		t.Fatalf("%v is no error of a plugin", err)
	}
	return said.Code
}

func (r *runtime) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func attachment(id, ip string) attachments.Attachment {
	return attachments.Attachment{ContainerID: id, IfName: "eth0", Pod: attachments.Pod{Namespace: "bank", Name: "old", UID: "u0"}, IPs: []netip.Addr{netip.MustParseAddr(ip)}}
}

func cleared(a attachments.Attachment) attachments.Attachment {
	a.Released, a.Cleared = time.Now(), true
	return a
}

// TestPlugin_Life of a pod: the node is told of its beginning and its end, and nobody else's result changes.
func TestPlugin_Life(t *testing.T) {
	for _, cniVersion := range cni.Versions {
		t.Run(cniVersion, func(t *testing.T) {
			r, n := newRuntime(t, cniVersion, ""), &node{}
			r.answeredBy(n)
			if code := r.add(); code != 0 {
				t.Errorf("code %d", code)
			}
			if !strings.HasPrefix(cniVersion, "0.3.") { // which has no CHECK
				r.must(r.cni.CheckNetworkList(t.Context(), r.list, r.pod))
			}
			if cniVersion == "1.1.0" {
				r.must(r.cni.GetStatusNetworkList(t.Context(), r.list))
				r.must(r.cni.GCNetworkList(t.Context(), r.list, &libcni.GCArgs{ValidAttachments: []types.GCAttachment{{ContainerID: "c1", IfName: "eth0"}, {ContainerID: "c2", IfName: "net1"}}}))
				if diff := cmp.Diff([]string{"c1"}, n.valid); diff != "" {
					t.Errorf("valid (-want +got):\n%s", diff)
				}
			}
			for range 2 {
				r.must(r.cni.DelNetworkList(t.Context(), r.list, r.pod))
			}
			if len(n.attached) != 1 || len(n.detached) < 2 {
				t.Fatalf("attached %v, detached %v", n.attached, n.detached)
			}
			a := n.attached[0]
			if got, want := fmt.Sprint(a.ContainerID, a.IfName, a.Netns, a.Pod, a.Pod.UID, a.IPs), "c1eth0/run/netns/c1shop/web-0u1[10.128.0.5 fd00::5]"; strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
				t.Errorf("the node was told of %s, expected %s", got, want)
			}
		})
	}
}

// TestCheck_NodeDoesNotConfirm: a pod that ADD has let start stays, unless the node knows something against it. CRI-O stops the others.
func TestCheck_NodeDoesNotConfirm(t *testing.T) {
	const refuse, start = `, "unanswered": "refuse"`, `, "unanswered": "start"`
	no := func(reason cni.Reason) error { return &cni.Failure{Reason: reason} }
	for name, test := range map[string]struct {
		options string
		answer  error
		claims  []string
		code    uint
		anew    cni.Reason // why the node does not attach it anew
	}{
		"no process, no claims":             {"", nil, []string{"bank"}, 0, ""},
		"no process":                        {"", nil, []string{"shop"}, 0, ""},
		"no process, refuse":                {refuse, nil, []string{"bank"}, types.ErrTryAgainLater, ""},
		"waits for objects":                 {"", no(cni.WaitingFor), []string{"shop"}, 0, ""},
		"waits for objects, refuse":         {refuse, no(cni.WaitingFor), []string{"shop"}, types.ErrTryAgainLater, ""},
		"late":                              {"", no(cni.Late), []string{"shop"}, 0, ""},
		"cannot write":                      {"", no(cni.NotWritten), []string{"shop"}, types.ErrTryAgainLater, ""},
		"cannot write, no claims":           {"", no(cni.NotWritten), []string{"bank"}, 0, ""},
		"cannot write, nor the claims":      {"", no(cni.NotWritten), nil, types.ErrTryAgainLater, ""},
		"not known":                         {"", no(cni.NotAttached), []string{"shop"}, types.ErrUnknownContainer, cni.PodUnknown},
		"not known, start":                  {start, no(cni.NotAttached), []string{"shop"}, 0, cni.PodUnknown},
		"not known, no claims":              {"", no(cni.NotAttached), []string{"bank"}, 0, cni.PodUnknown},
		"not known, no process has written": {"", no(cni.NotAttached), nil, 0, cni.PodUnknown},
		"not known, for it has ended":       {"", no(cni.NotAttached), []string{"shop"}, types.ErrUnknownContainer, cni.Invalid},
		"not known, and attached anew":      {"", no(cni.NotAttached), []string{"shop"}, 0, ""},
		"something is wrong":                {start, no(cni.Invalid), []string{"bank"}, types.ErrTryAgainLater, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, n := newRuntime(t, "1.0.0", test.options), &node{}
			end := r.answeredBy(n)
			if code := r.add(); code != 0 {
				t.Fatalf("ADD: code %d", code)
			}
			if test.claims != nil {
				r.must(attachments.WriteClaims(r.claims, test.claims))
			}
			if test.answer == nil {
				end()
			}
			n.mu.Lock()
			if n.err = test.answer; test.anew != "" {
				n.attach = func(int) (cni.Decision, error) { return cni.Decision{}, no(test.anew) }
			}
			n.mu.Unlock()
			if code := codeOf(t, r.cni.CheckNetworkList(t.Context(), r.list, r.pod)); code != test.code {
				t.Errorf("code %d, expected %d", code, test.code)
			}
		})
	}
	r := newRuntime(t, "1.0.0", "")
	r.must(attachments.WriteClaims(r.claims, []string{"bank"}))
	if code := r.add(); code != 0 {
		t.Fatalf("ADD without a process: code %d", code)
	}
	r.must(r.cni.CheckNetworkList(t.Context(), r.list, r.pod))
}

// TestAdd_WaitsForTheNode: a no is asked again until waitSeconds. Then a pod starts that could without a node process, if
// the node knows nothing against it.
func TestAdd_WaitsForTheNode(t *testing.T) {
	const again, always = types.ErrTryAgainLater, 1000
	for _, test := range []struct {
		name   string
		noes   int
		reason cni.Reason
		claims []string
		code   uint
	}{
		{"two noes", 2, cni.WaitingFor, []string{"shop"}, 0},
		{"the namespace has claims", always, cni.WaitingFor, []string{"shop"}, again},
		{"another namespace has", always, cni.WaitingFor, []string{"bank"}, 0},
		{"nothing can be written", always, cni.NotWritten, []string{"bank"}, 0},
		{"no namespaces were written", always, cni.NotWritten, nil, again},
		{"nor can they be", always, cni.NotNoted, []string{"bank"}, again},
		{"the pod is unknown", always, cni.PodUnknown, []string{"bank"}, again},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRuntime(t, "1.0.0", "")
			if test.claims != nil {
				r.must(attachments.WriteClaims(r.claims, test.claims))
			}
			r.answeredBy(&node{attach: func(i int) (cni.Decision, error) {
				if i < test.noes {
					return cni.Decision{}, &cni.Failure{Reason: test.reason}
				}
				return cni.Decide(nil), nil
			}})
			if code := r.add(); code != test.code {
				t.Errorf("code %d, expected %d", code, test.code)
			}
		})
	}
}

// TestAdd_NodeHangs: a process that takes requests and does not answer is none.
func TestAdd_NodeHangs(t *testing.T) {
	r := newRuntime(t, "1.0.0", "")
	r.must(attachments.WriteClaims(r.claims, []string{"shop"}))
	listener, err := net.Listen("unix", r.socket())
	r.must(err)
	t.Cleanup(func() { _ = listener.Close() })
	_, err = r.cni.AddNetworkList(t.Context(), r.list, r.pod)
	if codeOf(t, err) != types.ErrTryAgainLater || !strings.Contains(err.Error(), "hangs") {
		t.Errorf("error %v", err)
	}
}

// TestCheck_NodeHangs: CHECK takes all its time only if the pod is stopped without an answer.
func TestCheck_NodeHangs(t *testing.T) {
	r := newRuntime(t, "1.0.0", `, "waitSeconds": 60`)
	if code := r.add(); code != 0 {
		t.Fatalf("ADD: code %d", code)
	}
	listener, err := net.Listen("unix", r.socket())
	r.must(err)
	t.Cleanup(func() { _ = listener.Close() })
	began := time.Now()
	r.must(r.cni.CheckNetworkList(t.Context(), r.list, r.pod))
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("CHECK took %s", took)
	}
}

// TestCheck_WritesLate: a pod that CRI-O would stop gets all the time that there is.
func TestCheck_WritesLate(t *testing.T) {
	r, n := newRuntime(t, "1.0.0", `, "waitSeconds": 60`), &node{}
	r.answeredBy(n)
	if code := r.add(); code != 0 {
		t.Fatalf("ADD: code %d", code)
	}
	r.must(attachments.WriteClaims(r.claims, []string{"shop"}))
	n.mu.Lock()
	n.err, n.late = &cni.Failure{Reason: cni.NotWritten}, true
	n.mu.Unlock()
	r.must(r.cni.CheckNetworkList(t.Context(), r.list, r.pod))
}

// TestCheck_AttachesAnew in the short time, if the pod stays anyway; and nobody asks twice whether the node knows it.
func TestCheck_AttachesAnew(t *testing.T) {
	for claims, hangs := range map[string]bool{"bank": true, "shop": false} {
		r, n := newRuntime(t, "1.0.0", `, "waitSeconds": 60`), &node{}
		r.answeredBy(n)
		if code := r.add(); code != 0 {
			t.Fatalf("ADD: code %d", code)
		}
		r.must(attachments.WriteClaims(r.claims, []string{claims}))
		n.mu.Lock()
		n.err = &cni.Failure{Reason: cni.NotAttached}
		if hangs {
			n.attach = func(int) (cni.Decision, error) { <-t.Context().Done(); return cni.Decision{}, n.err }
		}
		n.mu.Unlock()
		began := time.Now()
		r.must(r.cni.CheckNetworkList(t.Context(), r.list, r.pod))
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("CHECK took %s", took)
		}
		if hangs {
			continue
		}
		n.mu.Lock()
		if n.checks != 1 || len(n.attached) != 2 {
			t.Errorf("the node was asked %d times, and %d times to attach the pod; want 1 and 2", n.checks, len(n.attached))
		}
		n.mu.Unlock()
	}
}

// TestAdd_Unanswered: the table of doc.go.
func TestAdd_Unanswered(t *testing.T) {
	const again = types.ErrTryAgainLater
	claims := func(namespaces ...string) func(*runtime) {
		return func(r *runtime) { r.must(attachments.WriteClaims(r.claims, namespaces)) }
	}
	also := func(steps ...func(*runtime)) func(*runtime) {
		return func(r *runtime) {
			for _, step := range steps {
				step(r)
			}
		}
	}
	released := func(a attachments.Attachment) func(*runtime) {
		return func(r *runtime) { r.must(attachments.Leave(filepath.Join(r.run, "released"), a)) }
	}
	attached := func(a attachments.Attachment) func(*runtime) {
		return func(r *runtime) {
			store, err := attachments.Open(filepath.Join(r.run, "attachments"))
			r.must(err)
			r.must(store.Put(t.Context(), a))
		}
	}
	has := func(tool, script string) func(*runtime) {
		return func(r *runtime) { hasTools(r.T, map[string]string{tool: script}) }
	}
	prints := func(tool, text string) func(*runtime) { return has(tool, "/bin/cat <<'EOF'\n"+text+"\nEOF") }
	for _, test := range []struct {
		name, unanswered string
		before           func(*runtime)
		code             uint
	}{
		{"no node has ever run", "claimed", also(), 0},
		{"its namespace has claims", "claimed", claims("shop"), again},
		{"another namespace has", "claimed", claims("bank"), 0},
		{"claims cannot be read", "claimed", func(r *runtime) { r.must(os.Mkdir(r.claims, 0o700)) }, again},
		{"the address was released", "claimed", also(claims("bank"), released(attachment("c0", "10.128.0.5"))), again},
		{"it was a pod's of a namespace without claims", "claimed", also(claims("atm"), released(attachment("c0", "10.128.0.5"))), 0},
		{"nothing in the kernel is for it any more", "claimed", also(claims("bank"), attached(cleared(attachment("c0", "10.128.0.5")))), 0},
		{"a file about another pod cannot be read", "claimed", also(claims("bank"), func(r *runtime) {
			r.must(os.MkdirAll(filepath.Join(r.run, "released"), 0o700))
			r.must(os.WriteFile(filepath.Join(r.run, "released", "c0.json"), nil, 0o600))
		}), 0},
		{"the second address was", "claimed", also(claims("bank"), released(attachment("c0", "fd00::5"))), again},
		{"another address was", "claimed", also(claims("bank"), released(attachment("c0", "10.128.0.6"))), 0},
		{"the address is another pod's", "claimed", also(claims("bank"), attached(attachment("c0", "10.128.0.5"))), again},
		{"the address is its own", "claimed", also(claims("bank"), attached(attachment("c1", "10.128.0.5"))), 0},
		{"the kernel has a rule for it", "claimed", also(claims("bank"), prints("iptables-nft-save", "-A OPENSHIFT-EGRESS-SNAT -s 10.128.0.5/32 -p tcp -j SNAT --to-source 203.0.113.1")), again},
		{"the kernel has rules for others", "claimed", also(claims("bank"), prints("iptables-nft-save",
			"-A OPENSHIFT-EGRESS-SNAT -s 10.128.0.50/32 -j SNAT\n-A OPENSHIFT-EGRESS-SNAT -s 10.128.0.0/24 -g OPENSHIFT-EGRESS-0A800000-24\n-A OPENSHIFT-EGRESS-REMOVED -s 10.128.0.5/32 -j SNAT\n-A CNI -s 10.128.0.5/32 -j MASQUERADE")), 0},
		{"the kernel has an element for the second one", "claimed", also(claims("bank"), prints("nft", "elements = { fd00::4 . tcp : 2001:db8::1,\n fd00::5 . udp : 2001:db8::1 }")), again},
		{"the kernel has elements for others", "claimed", also(claims("bank"), prints("nft", "elements = { fd00::4 . tcp : fd00::5 }")), 0},
		{"the rules cannot be listed in time", "claimed", also(claims("bank"), has("iptables-nft-save", "exec /bin/sleep 60")), again},
		{"the rules cannot be listed", "claimed", also(claims("bank"), has("ip6tables-nft-save", "exit 4")), again},
		{"the elements cannot be listed", "claimed", also(claims("bank"), has("nft", "echo 'Error: Operation not permitted' >&2; exit 1")), again},
		{"the kernel has no map", "claimed", also(claims("bank"), has("nft", "echo 'Error: No such file or directory' >&2; exit 1")), 0},
		{"refuse", "refuse", claims("bank"), again},
		{"start", "start", claims("shop"), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRuntime(t, "1.0.0", fmt.Sprintf(`, "unanswered": %q`, test.unanswered))
			test.before(r)
			if code := r.add(); code != test.code {
				t.Errorf("code %d, expected %d", code, test.code)
			}
		})
	}
}

// hasTools makes these shell scripts the only programs on PATH, and returns their folder.
func hasTools(t *testing.T, scripts map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder)
	return folder
}

// TestAdd_LooksOnce at the kernel while the node says no: a node may have very many rules.
func TestAdd_LooksOnce(t *testing.T) {
	r := newRuntime(t, "1.0.0", "")
	looks := filepath.Join(hasTools(t, map[string]string{"iptables-nft-save": "echo look >>${0%/*}/looks"}), "looks")
	r.must(attachments.WriteClaims(r.claims, []string{"bank"}))
	r.answeredBy(&node{attach: func(int) (cni.Decision, error) { return cni.Decision{}, &cni.Failure{Reason: cni.WaitingFor} }})
	if code := r.add(); code != 0 {
		t.Errorf("code %d", code)
	}
	if got, err := os.ReadFile(looks); string(got) != "look\n" {
		t.Errorf("looked %q, err %v; expected one look", got, err)
	}
}

// TestSaves_LegacyOnlyWhereItsTableIs: the program would make the table.
func TestSaves_LegacyOnlyWhereItsTableIs(t *testing.T) {
	const ofNFT, ofLegacy = "echo 'iptables-save v1.8.9 (nf_tables)'", "echo 'iptables-save v1.8.9 (legacy)'"
	for _, test := range []struct {
		name  string
		tools map[string]string
		table bool
		want  []string
	}{
		{"both kinds", map[string]string{"iptables-save": ofNFT, "iptables-nft-save": "", "iptables-legacy-save": ""}, true, []string{"iptables-nft-save", "iptables-legacy-save"}},
		{"both kinds, no legacy table", map[string]string{"iptables-save": ofLegacy, "iptables-nft-save": "", "iptables-legacy-save": ""}, false, []string{"iptables-nft-save"}},
		{"nftables alone", map[string]string{"iptables-save": ofNFT}, false, []string{"iptables-save"}},
		{"legacy alone", map[string]string{"iptables-save": ofLegacy}, true, []string{"iptables-save"}},
		{"legacy alone, no legacy table", map[string]string{"iptables-save": ofLegacy}, false, nil},
		{"an old one", map[string]string{"iptables-save": "exit 1"}, false, nil},
		{"none", nil, true, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			hasTools(t, test.tools)
			if diff := cmp.Diff(test.want, saves(t.Context(), "iptables", true, test.table)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAdd_PassesThrough what is no concern of the node's.
func TestAdd_PassesThrough(t *testing.T) {
	for name, change := range map[string]func(*runtime){
		"another interface": func(r *runtime) { r.pod.IfName = "net1" },
		"no pod":            func(r *runtime) { r.pod.Args = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t, "1.0.0", `, "unanswered": "refuse"`)
			change(r)
			r.must(os.Mkdir(r.claims, 0o700)) // which cannot be read
			if code := r.add(); code != 0 {
				t.Errorf("code %d", code)
			}
			r.must(r.cni.DelNetworkList(t.Context(), r.list, r.pod))
			if left, err := attachments.Peek(filepath.Join(r.run, "released")); len(left) != 0 || err != nil {
				t.Errorf("left %v, err %v", left, err)
			}
		})
	}
}

// TestAdd_NeedsAnUID where a pod may be bound: one of the same name is another one.
func TestAdd_NeedsAnUID(t *testing.T) {
	for namespace, want := range map[string]uint{"shop": types.ErrInvalidEnvironmentVariables, "bank": 0} {
		r := newRuntime(t, "1.0.0", "")
		r.must(attachments.WriteClaims(r.claims, []string{namespace}))
		r.pod.Args = r.pod.Args[:len(r.pod.Args)-1]
		if code := r.add(); code != want {
			t.Errorf("%s has claims: code %d, expected %d", namespace, code, want)
		}
		if want == 0 { // it stays when its namespace gets claims
			r.must(attachments.WriteClaims(r.claims, []string{"shop"}))
			r.must(r.cni.CheckNetworkList(t.Context(), r.list, r.pod))
		}
		r.must(r.cni.DelNetworkList(t.Context(), r.list, r.pod))
	}
	r := newRuntime(t, "1.0.0", "")
	r.must(os.Mkdir(r.claims, 0o700)) // which cannot be read
	r.pod.Args = r.pod.Args[:len(r.pod.Args)-1]
	if code := r.add(); code != types.ErrInvalidEnvironmentVariables {
		t.Errorf("claims that cannot be read: code %d", code)
	}
}

// TestDel_OfAWrongConfiguration tells the node all the same.
func TestDel_OfAWrongConfiguration(t *testing.T) {
	r, n := newRuntime(t, "1.0.0", `, "unanswered": "maybe"`), &node{}
	r.answeredBy(n)
	r.must(r.cni.DelNetworkList(t.Context(), r.list, r.pod))
	if diff := cmp.Diff([]string{"c1"}, n.detached); diff != "" {
		t.Errorf("detached (-want +got):\n%s", diff)
	}
}

// TestCollect_NeedsTheSandboxes: a list that is missing is not one without sandboxes.
func TestCollect_NeedsTheSandboxes(t *testing.T) {
	r, n := newRuntime(t, "1.1.0", ""), &node{}
	r.answeredBy(n)
	err := collect(&skel.CmdArgs{StdinData: fmt.Appendf(nil, `{"cniVersion": "1.1.0", "socket": %q}`, r.socket())})
	if codeOf(t, err) != types.ErrInvalidNetworkConfig || n.valid != nil {
		t.Errorf("error %v, valid %v", err, n.valid)
	}
	err = r.cni.GCNetworkList(t.Context(), r.list, &libcni.GCArgs{}) // as CRI-O does, which then gives null
	if err != nil || n.valid != nil {
		t.Errorf("null: error %v, valid %v; expected that the node is told nothing", err, n.valid)
	}
}

// TestAdd_WithoutAnAddress: a pod that may be bound does not start.
func TestAdd_WithoutAnAddress(t *testing.T) {
	for namespace, code := range map[string]uint{"shop": types.ErrTryAgainLater, "bank": 0} {
		r := newRuntime(t, "1.0.0", "")
		r.must(attachments.WriteClaims(r.claims, []string{"shop"}))
		err := add(&skel.CmdArgs{ContainerID: "c1", IfName: "eth0", Args: "K8S_POD_NAMESPACE=" + namespace + ";K8S_POD_NAME=web-0;K8S_POD_UID=u1",
			StdinData: fmt.Appendf(nil, `{"cniVersion": "1.0.0", "socket": %q, "prevResult": {"cniVersion": "1.0.0"}}`, r.socket())})
		if got := codeOf(t, err); got != code {
			t.Errorf("%s: code %d, want %d", namespace, got, code)
		}
	}
}

func TestAdd_NeedsAPreviousResult(t *testing.T) {
	r := newRuntime(t, "1.0.0", "")
	r.list.Plugins = r.list.Plugins[1:]
	if code := r.add(); code != types.ErrInvalidNetworkConfig {
		t.Errorf("code %d, expected %d", code, types.ErrInvalidNetworkConfig)
	}
}

func TestParse_RefusesInvalidOptions(t *testing.T) {
	for _, options := range []string{`"socket": "cni.sock"`, `"waitSeconds": 0`, `"waitSeconds": 101`, `"unanswered": "maybe"`} {
		if _, err := parse([]byte(`{"cniVersion": "1.0.0", ` + options + `}`)); codeOf(t, err) != types.ErrInvalidNetworkConfig {
			t.Errorf("%s: %v", options, err)
		}
	}
	c, err := parse([]byte(`{"cniVersion": "1.0.0"}`))
	if err != nil || c.Socket != "/run/origin-node/cni.sock" || c.wait() != 10*time.Second || c.Unanswered != claimed {
		t.Errorf("defaults %+v, err %v", c, err)
	}
}

// TestDel_LeavesANote for the node's next process, and never fails.
func TestDel_LeavesANote(t *testing.T) {
	started := func(r *runtime) { // with a result, which libcni keeps
		if code := r.add(); code != 0 {
			r.Errorf("code %d", code)
		}
	}
	claims := func(r *runtime, namespaces string) {
		r.must(os.WriteFile(filepath.Join(r.run, "claims"), []byte(namespaces), 0o600))
	}
	for name, prepare := range map[string]func(*runtime){
		"with a result":                   func(r *runtime) { started(r); claims(r, "shop\n") },
		"nothing, without claims":         func(r *runtime) { started(r); claims(r, "other\n") },
		"nothing, where no node ever ran": started,
		"by what the node noted": func(r *runtime) {
			store, err := attachments.Open(filepath.Join(r.run, "attachments"))
			r.must(err)
			r.must(store.Put(t.Context(), attachment("c1", "10.128.0.5")))
		},
		"the node says no": func(r *runtime) {
			r.answeredBy(&node{err: errors.New("nft said no")})
			r.add()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t, "1.0.0", "")
			prepare(r)
			r.must(r.cni.DelNetworkList(t.Context(), r.list, r.pod))
			left, err := attachments.Peek(filepath.Join(r.run, "released"))
			if strings.HasPrefix(name, "nothing") {
				if err != nil || len(left) > 0 {
					t.Errorf("left %v, err %v", left, err)
				}
				return
			}
			if err != nil || len(left) != 1 || left[0].ContainerID != "c1" || left[0].IPs[0] != netip.MustParseAddr("10.128.0.5") || left[0].Released.IsZero() {
				t.Errorf("left %v, err %v", left, err)
			}
		})
	}
}

func TestStatus_FailsWithRefuseOnly(t *testing.T) {
	for unanswered, want := range map[string]uint{"claimed": 0, "start": 0, "refuse": types.ErrPluginNotAvailable} {
		r := newRuntime(t, "1.1.0", fmt.Sprintf(`, "unanswered": %q`, unanswered))
		if code := codeOf(t, r.cni.GetStatusNetworkList(t.Context(), r.list)); code != want {
			t.Errorf("%s: code %d, expected %d", unanswered, code, want)
		}
	}
}
