package netns

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/origin-node/hack/lab"
	process "github.com/openshift/origin-node/hack/node"
	"github.com/openshift/origin-node/pkg/manifests"
)

// get asks an HTTP server on the node's loopback.
func (n *node) get(url string) (body string, err error) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: n.Node().DialContext}}
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, text)
	}
	return string(text), err
}

// simpleNode is a node for what does not depend on the back end.
func simpleNode(t *testing.T) *node {
	t.Helper()
	t.Parallel()
	return newNode(t, lab.Config{Pods: 1, Masquerade: true})
}

func TestNode_EndsOnSignals(t *testing.T) {
	n := simpleNode(t)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		n.restart()
		n.End(signal)
	}
}

// TestNode_EndsWhileTheLockIsHeld: a node that has not got to run ends as well.
func TestNode_EndsWhileTheLockIsHeld(t *testing.T) {
	t.Parallel()
	n := newNode(t, lab.Config{Pods: 1, Backend: lab.Legacy})
	manager := n.Manage()
	defer n.holdLock()()
	n.start()
	n.Says("Egress SNAT is on")
	n.Stop()
	n.told(manager, "STOPPING=1")
}

// TestNode_EndsBeforeTheAPIServerAnswers: a node that waits for its API server ends as well.
func TestNode_EndsBeforeTheAPIServerAnswers(t *testing.T) {
	n := simpleNode(t)
	n.useKubeconfig("http://127.0.0.1:1")
	n.Start()
	n.Says("Waiting for caches to sync")
	n.Stop()
}

// useKubeconfig lets the configuration name a kubeconfig for server.
func (n *node) useKubeconfig(server string) {
	n.Helper()
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x,
contexts: [{name: x, context: {cluster: x, user: x}}],
clusters: [{name: x, cluster: {server: %q}}], users: [{name: x, user: {}}]}`, server)
	n.Write(n.File("node.kubeconfig"), []byte(kubeconfig))
	n.WriteConfig(map[string]any{
		"kind": "NodeConfig", "apiVersion": "v1", "nodeName": "node-1",
		"masterKubeConfig": "node.kubeconfig", // relative to the configuration
		"proxyArguments":   map[string]any{"cluster-cidr": []string{lab.ClusterV4.String()}, "conntrack-max-per-core": []string{"0"}},
	})
}

// TestNode_ObjectsFromAnAPIServer: the objects come over HTTP from what the kubeconfig names.
func TestNode_ObjectsFromAnAPIServer(t *testing.T) {
	n := simpleNode(t)
	n.serve(n.Outside(), whoamiPort, "tcp4")
	n.putWeb([]string{egressV4.String()})
	source, err := manifests.Open(t.Context(), n.manifests())
	if err != nil {
		t.Fatal(err)
	}
	var kubeconfig string
	var remove func()
	if err := n.Node().Do(func() (err error) { kubeconfig, remove, err = source.Serve(t.Context()); return err }); err != nil {
		t.Fatal(err)
	}
	defer remove()
	n.useKubeconfig("")
	n.WriteConfig(map[string]any{
		"kind": "NodeConfig", "apiVersion": "v1", "nodeName": "node-1", "masterKubeConfig": kubeconfig,
		"proxyArguments": map[string]any{"cluster-cidr": []string{lab.ClusterV4.String()}, "conntrack-max-per-core": []string{"0"}},
	})
	n.Start()
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)

	stdout, stderr, status := n.Openshift("start", "node", "--config="+n.Config(), "--dry-run")
	if status != 0 || !strings.Contains(stdout, "--to-source "+egressV4.String()) {
		t.Errorf("--dry-run: got status %d, %q, %q", status, stdout, stderr)
	}
}

func TestCleanup_LeavesTheKernelAsBefore(t *testing.T) {
	everyWay(t, func(n *node) {
		families := []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
		n.Iptables("-t", "nat", "-N", "SOMEBODY") // and so all tables that there will be
		n.Iptables("-t", "filter", "-N", "SOMEBODY")
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		before := map[v1.IPFamily]string{}
		for _, family := range families {
			before[family] = chainsAndRules(n.Save(family))
		}
		n.start()
		n.holdsPlan(soon)
		n.Stop()
		if stdout, stderr, status := n.Openshift("start", "node", "--config="+n.Config(), "--cleanup"); status != 0 {
			n.Fatalf("--cleanup: status %d, %s%s", status, stdout, stderr)
		}
		for _, family := range families {
			if diff := cmp.Diff(before[family], chainsAndRules(n.Save(family))); diff != "" {
				n.Errorf("%s: not as before (-want +got):\n%s", family, diff)
			}
		}
	})
}

// useOtherBackend puts the tools of the back end that is not the lab's in front of the
// node's PATH, and returns its name. Removing binDir takes them away again.
func (n *node) useOtherBackend(backend lab.Backend) (other string) {
	n.Helper()
	other = map[lab.Backend]string{lab.Legacy: "nft", lab.NFT: "legacy"}[backend]
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			if err := os.Symlink("/usr/sbin/"+name+"-"+other+suffix, filepath.Join(n.BinDir, name+suffix)); err != nil {
				n.Fatal(err)
			}
		}
	}
	return other
}

// TestCleanup_OfTheOtherBackend: the node ran with the other iptables once, and the
// configuration has another mode by now. Somebody takes the lock of iptables-legacy for longer than programs wait for it.
func TestCleanup_OfTheOtherBackend(t *testing.T) {
	t.Parallel()
	for _, backend := range lab.Backends() {
		t.Run(string(backend), func(t *testing.T) {
			t.Parallel()
			n := newNode(t, lab.Config{IPv6: true, Pods: 1, Backend: backend})
			other := n.useOtherBackend(backend)
			n.putWeb([]string{egressV4.String(), egressV6.String()})
			n.start()
			n.Ready()
			n.Stop()
			saveOther := func() string {
				text, err := n.Node().Run(t.Context(), "sh", "-c", "iptables-"+other+"-save; ip6tables-"+other+"-save")
				if err != nil {
					t.Fatal(err)
				}
				return chainsAndRules(text)
			}
			if text := saveOther(); !strings.Contains(text, "OPENSHIFT-EGRESS-SNAT") || !strings.Contains(text, "KUBE-SERVICES") {
				t.Fatalf("the node did not use the other back end:\n%s", text)
			}
			if err := errors.Join(os.RemoveAll(n.BinDir), os.Mkdir(n.BinDir, 0o755)); err != nil {
				t.Fatal(err)
			}
			if backend == lab.NFT { // when egress SNAT's rules are gone, and the proxier's are next
				n.replaceProgram("iptables-legacy-save", `saved=$(/usr/sbin/iptables-legacy-save "$@")
printf %s "$saved"
case $saved in
*OPENSHIFT-EGRESS*) ;;
*KUBE-SERVICES*) if mkdir "`+n.File("held")+`" 2>/dev/null; then exec 9>"$XTABLES_LOCKFILE"; flock 9; sleep 10 >/dev/null 2>&1 & fi ;;
esac`)
			}
			n.Configure(`proxy-mode: ["nftables"]`)
			if stdout, stderr, status := n.Openshift("start", "node", "--config="+n.Config(), "--cleanup"); status != 0 {
				t.Fatalf("--cleanup: status %d, %s%s", status, stdout, stderr)
			}
			if text := saveOther(); text != "" {
				t.Errorf("left:\n%s", text)
			}
			if _, err := os.Stat(n.File("held")); backend == lab.NFT && err != nil {
				t.Errorf("nobody took the lock: %v", err)
			}
		})
	}
}

// chainsAndRules drops what is not somebody's doing: comments, counters, built-in chains
// and the tables around them.
func chainsAndRules(save string) string {
	var lines []string
	for line := range strings.Lines(rulesOnly(save)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "-A") || strings.HasPrefix(line, ":") && fields[1] == "-" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestDryRun_PrintsRulesAndChangesNothing(t *testing.T) {
	onBackends(t, func(n *node) {
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		before := n.Save(v1.IPv4Protocol) + n.Save(v1.IPv6Protocol)
		stdout, stderr, status := n.Openshift("start", "node", "--config="+n.Config(), "--manifests="+n.manifests(), "--dry-run")
		if status != 0 || stderr != "" {
			n.Errorf("status %d, %s", status, stderr)
		}
		for _, line := range []string{
			"# pod 10.128.0.11 leaves from 203.0.113.10 for tcp: Service shop/web",
			"-A OPENSHIFT-EGRESS-SNAT -s 10.128.0.11/32 ! -d 203.0.113.10/32 -p tcp -j SNAT --to-source 203.0.113.10 --random-fully",
			"# pod fd00:10:128::11 leaves from 2001:db8:113::10 for tcp: Service shop/web",
		} {
			if !strings.Contains(stdout, line+"\n") {
				n.Errorf("the output lacks %q:\n%s", line, stdout)
			}
		}
		if after := n.Save(v1.IPv4Protocol) + n.Save(v1.IPv6Protocol); rulesOnly(after) != rulesOnly(before) {
			n.Errorf("the kernel changed:\n%s", after)
		}
	})
}

func TestKubeProxy_ServesItsEndpoints(t *testing.T) {
	n := simpleNode(t)
	n.start()
	n.Ready()
	for url, text := range map[string]string{
		"http://127.0.0.1:10256/healthz":   `"lastUpdated"`,
		"http://127.0.0.1:10256/livez":     `"lastUpdated"`,
		"http://127.0.0.1:10249/proxyMode": "iptables",
		metricsURL:                         "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
		"http://127.0.0.1:10249/configz":   "kubeproxy.config.k8s.io",
	} {
		n.shows(url, text)
	}
	n.metric(`egress_snat_bindings{ip_family="IPv4"} 0`)
}

// TestKubeProxy_SettingsTakeEffect: conntrack sysctls, node IP and feature gates are kube-proxy's own.
// Egress SNAT does not depend on the gate by which Services lose their external IPs.
func TestKubeProxy_SettingsTakeEffect(t *testing.T) {
	n := simpleNode(t)
	n.Configure(`{conntrack-tcp-timeout-established: ["1234s"]` + n.withoutExternalIPs() + `}`)
	n.serve(n.Outside(), whoamiPort, "tcp4")
	n.serve(n.Pod(1), 80, "tcp4")
	n.putWeb([]string{egressV4.String()})
	n.start()
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
	timeout, err := n.Node().Run(t.Context(), "sysctl", "-n", "net.netfilter.nf_conntrack_tcp_timeout_established")
	if err != nil || strings.TrimSpace(timeout) != "1234" {
		t.Errorf("the conntrack timeout is %q, %v; want 1234", timeout, err)
	}
	n.Says(`NodeIPs=["192.0.2.2"`)
	n.Ready()
	n.Eventually(soon, func() error { // the proxier's rules are there
		_, err := n.ask("tcp4", n.Node(), netip.AddrPortFrom(netip.MustParseAddr(webIPs[0]), 80))
		return err
	})
	if _, err := n.ask("tcp4", n.Outside(), netip.AddrPortFrom(egressV4, 80)); err == nil && n.minor() >= 36 { // there is no gate before
		t.Error("the Service is served on its external IP although the gate is off")
	}
}

// TestKubeProxy_ConfigFile: proxyArguments.config names a file that is noticed as well.
func TestKubeProxy_ConfigFile(t *testing.T) {
	n := simpleNode(t)
	file := n.File("kube-proxy.yaml")
	text := "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\nclusterCIDR: 10.128.0.0/14\nconntrack: {maxPerCore: 0}\n"
	n.Write(file, []byte(text))
	n.Configure(`{config: ["kube-proxy.yaml"]}`) // relative to the configuration
	n.serve(n.Outside(), whoamiPort, "tcp4")
	n.putWeb([]string{egressV4.String()})
	n.start()
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
	n.Write(file, []byte(strings.Replace(text, "mode: iptables", "mode: ipvs", 1)))
	n.Says("The configuration has changed but is not valid")
	n.Write(file, []byte(text+"configSyncPeriod: 10m0s\n"))
	n.Ends(75)
}

func TestConfiguration_ChangeEndsTheNode(t *testing.T) {
	n := simpleNode(t)
	n.putWeb([]string{egressV4.String()})
	n.start()
	n.Ready()
	good, err := os.ReadFile(n.Config())
	if err != nil {
		t.Fatal(err)
	}
	before := rulesOnly(n.Save(v1.IPv4Protocol))

	n.Write(n.Config(), append(good, "noSuchField: 1\n"...))
	n.Says("The configuration has changed but is not valid")
	n.Says("noSuchField")
	// What it runs with is no change: it goes on, which takes a moment to see.
	n.Write(n.Config(), good)
	select {
	case <-n.Ended():
		t.Fatalf("the node ended with status %d, although its configuration is as before", n.Exit())
	case <-time.After(2 * time.Second):
	}

	n.Configure(`v: ["3"]`)
	n.Ends(75)
	n.Says("The configuration has changed and is valid")
	if got := strings.Count(n.Printed.String(), "The configuration has changed and is valid"); got != 1 {
		t.Errorf("the log says %d times why the node ended, want once", got)
	}
	if after := rulesOnly(n.Save(v1.IPv4Protocol)); after != before {
		t.Errorf("the rules did not stay; before:\n%s\nafter:\n%s", before, after)
	}
}

// TestConfiguration_ChangeBehindALink: the configuration is a link, and what is behind it is edited.
func TestConfiguration_ChangeBehindALink(t *testing.T) {
	n := simpleNode(t)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.yaml")
	text, err := os.ReadFile(n.Config())
	if err != nil {
		t.Fatal(err)
	}
	n.Write(elsewhere, text)
	if err := errors.Join(os.Remove(n.Config()), os.Symlink(elsewhere, n.Config())); err != nil {
		t.Fatal(err)
	}
	n.start()
	n.Ready()
	n.Write(elsewhere, append(text, "nodeIP: 192.0.2.2\n"...))
	n.Ends(75)
}

func TestConfiguration_ChangeOfTheKubeconfig(t *testing.T) {
	n := simpleNode(t)
	n.useKubeconfig("http://127.0.0.1:1")
	n.Start()
	n.Says("Waiting for caches to sync")
	n.Write(n.File("node.kubeconfig"), []byte("nonsense"))
	n.Says("The configuration has changed but is not valid")
	n.useKubeconfig("http://127.0.0.1:2")
	n.Ends(75)
}

// TestConfiguration_ChangeOfTheKubeconfigOfKubeProxysFile: it is named by a file that the configuration names.
func TestConfiguration_ChangeOfTheKubeconfigOfKubeProxysFile(t *testing.T) {
	n := simpleNode(t)
	n.useKubeconfig("http://127.0.0.1:1")
	n.Write(n.File("kube-proxy.yaml"), []byte("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\nconntrack: {maxPerCore: 0}\nclientConnection: {kubeconfig: "+n.File("node.kubeconfig")+"}\n"))
	n.Configure(`{config: ["kube-proxy.yaml"]}`)
	n.Start()
	n.Says("Waiting for caches to sync")
	n.Write(n.File("node.kubeconfig"), []byte("nonsense"))
	n.Says("The configuration has changed but is not valid")
	n.Stop()
}

func TestManifests_BrokenOneKeepsTheLastState(t *testing.T) {
	n := simpleNode(t)
	n.serve(n.Outside(), whoamiPort, "tcp4")
	n.putWeb([]string{egressV4.String()})
	n.start()
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
	n.Write(filepath.Join(n.manifests(), "broken.yaml"), []byte("apiVersion: v1\nkind: Service\nmetadata:\n  name: x\n  nmespace: y\n"))
	n.Says("broken.yaml:5")
	n.putWeb([]string{anotherV4.String()}) // not before the folder is good again
	n.Write(filepath.Join(n.manifests(), "worse.yaml"), []byte("nonsense"))
	n.Says("worse.yaml") // so the folder was read with the change in it
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), egressV4)
	n.remove("broken.yaml")
	n.remove("worse.yaml")
	n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), anotherV4)
}

func TestMode_WithoutEgressSNAT(t *testing.T) {
	n := simpleNode(t)
	n.Configure(`{proxy-mode: ["nftables"], egress-snat: ["false"]}`)
	n.start()
	n.shows("http://127.0.0.1:10249/proxyMode", "nftables")
	n.Says("Egress SNAT is off")
	n.Eventually(soon, func() error {
		if tables, err := n.Node().Run(n.Context(), "nft", "list", "tables"); err != nil || !strings.Contains(tables, "ip kube-proxy") {
			return errors.Join(fmt.Errorf("the nftables proxier has no table: %s", tables), err)
		}
		return nil
	})
	n.Stop()
}

// TestMode_OfAnOldNFT: the node ends, and says which nft the mode needs. The rules of the mode before it stay.
func TestMode_OfAnOldNFT(t *testing.T) {
	n := simpleNode(t)
	n.restart()
	n.Stop()
	if !tooOld.MatchString(nftVersion(t)) { // hack/kernels has one that is
		n.replaceProgram("nft", "[ \"$1\" != --version ] && exec /usr/sbin/nft \"$@\"; echo 'nftables v1.0.0 (Fearless Fosdick #2)'")
	}
	n.Configure(`proxy-mode: ["nftables"]`)
	n.start()
	n.Ends(1)
	n.Says("nft version must be v1.0.1 or later")
	n.proxierServes()
}

// TestMode_ChangeWithoutAnAPIServer: the rules of the mode before it stay until the new one can write its own.
func TestMode_ChangeWithoutAnAPIServer(t *testing.T) {
	n := simpleNode(t)
	n.restart()
	n.Stop()
	n.useKubeconfig("http://127.0.0.1:1")
	n.Fields = map[string]any{"masterKubeConfig": "node.kubeconfig"}
	n.Configure(`proxy-mode: ["nftables"]`)
	n.Start()
	n.Says("Waiting for the API server; the rules in the kernel stay as they are")
	n.proxierServes()
	n.Stop()
}

// replaceProgram puts a shell script in the place of a program that the node runs.
func (n *node) replaceProgram(name, script string) {
	n.Helper()
	if err := os.WriteFile(filepath.Join(n.BinDir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		n.Fatal(err)
	}
}

// proxierServes fails the test unless the proxier's rules of the mode iptables are there.
func (n *node) proxierServes() {
	n.Helper()
	if save := n.Save(v1.IPv4Protocol); !strings.Contains(save, "-j KUBE-SERVICES\n") {
		n.Errorf("the proxier's rules are gone:\n%s", save)
	}
}

// TestMode_IPVS: the kernel has the module, as those of hack/kernels do, or the node says that it lacks it.
func TestMode_IPVS(t *testing.T) {
	t.Parallel()
	n := newNode(t, lab.Config{Pods: 2, IPv6: true, Masquerade: true})
	n.Configure(`{proxy-mode: ["ipvs"], egress-snat: ["false"]}`)
	if _, err := os.Stat("/proc/net/ip_vs"); err != nil {
		n.start()
		if status := n.Exit(); status != 1 || !strings.Contains(n.Printed.String(), "can't use the IPVS proxier") {
			t.Errorf("ipvs without its kernel module: status %d, want 1 and upstream's reason", status)
		}
		return
	}
	n.serve(n.Outside(), whoamiPort, networks...)
	n.serve(n.Pod(1), 80, networks...)
	n.putWeb([]string{egressV4.String(), egressV6.String()}, allProtocols...)
	n.start()
	n.Says("Egress SNAT is off")
	for _, network := range networks {
		clusterIP := netip.AddrPortFrom(of(network, netip.MustParseAddr(webIPs[0]), netip.MustParseAddr(webIPs[1])), 80)
		n.Sees(network, n.Pod(2), clusterIP, of(network, n.Pod(2).V4, n.Pod(2).V6))
		n.Sees(network, n.Pod(1), n.outside(network), n.nodeIP(network)) // it is bound to nothing
	}
	n.Stop()
}

// TestMode_LeftoversOfAnother: what cannot be removed at the start, for other software uses a chain, is told by verify, and removed when
// it can be, also if somebody holds iptables' lock for long. Virtual servers of ipvs, which may be those of other software, are removed at the
// start alone.
func TestMode_LeftoversOfAnother(t *testing.T) {
	t.Parallel()
	for _, backend := range lab.Backends() {
		t.Run(string(backend), func(t *testing.T) {
			t.Parallel()
			n := newNode(t, lab.Config{IPv6: true, Pods: 1, Backend: backend})
			n.putWeb([]string{egressV4.String(), egressV6.String()})
			run := func(command string) string {
				t.Helper()
				out, err := n.Node().Run(t.Context(), "sh", "-ec", command)
				if err != nil {
					t.Fatalf("%s: %v", command, err)
				}
				return out
			}
			verify := func() (warning bool) {
				t.Helper()
				out, stderr, status := n.Openshift("egress", "verify", "--socket="+n.Socket())
				if status != 0 {
					t.Fatalf("verify: status %d, %s%s", status, out, stderr)
				}
				return strings.Contains(out, "IPv4: warning: rules of another proxy mode are there: ")
			}
			n.start()
			n.Ready()
			if verify() {
				t.Error("there are leftovers before anything was changed")
			}
			n.Stop()
			n.replaceProgram("modprobe", "echo \"$@\" >>"+n.File("modules")+"; exit 1") // upstream's clean-up of ipvs begins with it
			run("iptables -w -t nat -N OTHER; iptables -w -t nat -A OTHER -j KUBE-SERVICES")
			n.Configure(`proxy-mode: ["nftables"]`)
			n.restart()
			if !verify() {
				t.Error("verify does not tell of the chain that is left")
			}
			n.Says("except for those of ipvs")
			if backend == lab.Legacy {
				release := n.holdLock()
				n.Says("Another process holds the iptables lock")
				release()
			}
			run("iptables -w -t nat -F OTHER")
			n.Eventually(soon, func() error {
				if out := run("iptables-save -t nat"); strings.Contains(out, ":KUBE-SERVICES") {
					return fmt.Errorf("left:\n%s", out)
				}
				return nil
			})
			n.Says(`"Removed the rules of another proxy mode" mode="iptables"`)
			if verify() {
				t.Error("verify tells of leftovers that are gone")
			}
			if modules, err := os.ReadFile(n.File("modules")); err != nil || strings.Count(string(modules), "ip_vs") != 1 {
				t.Errorf("the clean-up of ipvs asked for its module: %q, %v; want once", modules, err)
			}

			n.Stop()
			n.Configure("")
			n.restart()
			if out := run("nft list tables"); strings.Contains(out, "kube-proxy") || verify() {
				t.Errorf("back in the mode iptables there is:\n%s", out)
			}
		})
	}
}

// TestStart_ErrorsSayWhatToDo: what a user can do wrong is one message that says where and what to do, and
// status 1, before any server is contacted.
func TestStart_ErrorsSayWhatToDo(t *testing.T) {
	n := simpleNode(t)
	for _, test := range []struct {
		name, arguments string
		args            []string
		want            []string
	}{
		{"ipvs mode with egress SNAT", `proxy-mode: ["ipvs"]`, nil, []string{"proxyArguments.proxy-mode", "egress-snat"}},
		{"userspace mode", `proxy-mode: ["userspace"]`, nil, []string{"removed in Kubernetes 1.26", "iptables"}},
		{"unknown mode", `proxy-mode: ["ebpf"]`, nil, []string{`unknown mode "ebpf"`}},
		{"unknown argument", `cluster-cidrs: ["10.128.0.0/14"]`, nil, []string{"proxyArguments.cluster-cidrs", `did you mean "cluster-cidr"?`}},
		{"no CIDR", `cluster-cidr: ["10.128.0.0"]`, nil, []string{"proxyArguments.cluster-cidr[0]", "expected", "10.128.0.0/14"}},
		{"everything is inside", `cluster-cidr: ["0.0.0.0/0"]`, nil, []string{"proxyArguments.cluster-cidr[0]", "covers every address"}},
		{"no duration", `iptables-min-sync-period: ["soon"]`, nil, []string{"proxyArguments.iptables-min-sync-period[0]", "duration"}},
		{"negative period", `egress-snat-min-sync-period: ["-1s"]`, nil, []string{"proxyArguments.egress-snat-min-sync-period", "from 0s to 2.5s"}},
		{"period longer than looks allow", `egress-snat-min-sync-period: ["10m"]`, nil, []string{"proxyArguments.egress-snat-min-sync-period", "from 0s to 2.5s"}},
		{"kube-proxy refuses", `iptables-masquerade-bit: ["99"]`, nil, []string{"proxyArguments", "kube-proxy refuses", "MasqueradeBit"}},
		{"unknown feature gate", `feature_gates: ["NoSuchGate=true"]`, nil, []string{"proxyArguments.feature-gates: unrecognized feature gate: NoSuchGate"}},
		{"no configuration", "", []string{"--config="}, []string{"--config=FILE is required"}},
		{"missing configuration", "", []string{"--config=/nowhere.yaml"}, []string{"/nowhere.yaml"}},
		{"kubelet asked for", "", []string{"--enable=kubelet"}, []string{"kubelet", "only the proxy"}},
		{"proxy disabled", "", []string{"--disable=proxy"}, []string{"--disable=proxy", "nothing is left"}},
		{"unknown component", "", []string{"--enable=sdn"}, []string{"unknown component", "dns, kubelet, plugins, proxy"}},
		{"missing manifests", "", []string{"--manifests=/nowhere"}, []string{"/nowhere"}},
		{"no objects from anywhere", "", []string{"--manifests="}, []string{"masterKubeConfig", "--manifests=DIR"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n.Configure(test.arguments)
			args := append([]string{"start", "node", "--config=" + n.Config(), "--manifests=" + n.manifests()}, test.args...)
			_, stderr, status := n.Openshift(args...)
			if status != 1 {
				t.Errorf("status %d, want 1", status)
			}
			for _, want := range test.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("the message lacks %q:\n%s", want, stderr)
				}
			}
			if _, message, _ := strings.Cut(stderr, "error: "); strings.Count(message, "\n") != 1 {
				t.Errorf("want one message, at the end:\n%s", stderr)
			}
			if test.arguments != "" && !strings.Contains(stderr, n.Config()+":") {
				t.Errorf("the message does not name file and line:\n%s", stderr)
			}
		})
	}
}

func TestStart_RefusesManifestsWithAKubeconfig(t *testing.T) {
	n := simpleNode(t)
	n.useKubeconfig("http://127.0.0.1:1")
	_, stderr, status := n.Openshift("start", "node", "--config="+n.Config(), "--manifests="+n.manifests())
	if status != 1 || !strings.Contains(stderr, "masterKubeConfig") {
		t.Errorf("got status %d, %q", status, stderr)
	}
}

func TestValidate_NodeConfig(t *testing.T) {
	n := simpleNode(t)
	if stdout, stderr, status := n.Openshift("ex", "validate", "node-config", "--manifests="+n.manifests(), n.Config()); status != 0 || !strings.Contains(stdout, "is valid") {
		t.Errorf("got status %d, %q, %q", status, stdout, stderr)
	}
	n.Write(n.Config(), []byte("kind: NodeConfig\napiVersion: v1\nnodeNam: x\n"))
	_, stderr, status := n.Openshift("ex", "validate", "node-config", n.Config())
	if status != 1 || !strings.Contains(stderr, n.Config()+":3: nodeNam") {
		t.Errorf("got status %d, %q", status, stderr)
	}
}

// told waits until the service manager has been told a text.
func (n *node) told(manager *process.Manager, text string) {
	n.Helper()
	n.Eventually(soon, func() error { return manager.Told(text) })
}

// readyAt waits for the first complete sync and returns when the log says that it was.
func (n *node) readyAt() time.Time {
	n.Helper()
	n.Ready()
	line := regexp.MustCompile(`(?m)^I(\d{4} \S+) .*"Egress SNAT rules are in place"`).FindStringSubmatch(n.Printed.String())
	if line == nil {
		n.Fatal("the log line has no time")
	}
	at, err := time.ParseInLocation("2006 0102 15:04:05.000000", fmt.Sprint(time.Now().Year())+" "+line[1], time.Local)
	if err != nil {
		n.Fatal(err)
	}
	return at
}

func TestServiceManager_IsToldTheStatus(t *testing.T) {
	n := simpleNode(t)
	manager := n.Manage()
	n.Variables = append(n.Variables, "WATCHDOG_USEC=600000")
	// The node has no IPv6, so that claim is refused, which keeps nothing else from going on.
	n.putWeb([]string{egressV4.String(), egressV6.String()})
	n.start()
	n.told(manager, "READY=1")
	// Log and socket come by different ways, either of which may be slow.
	if came, synced := manager.All("READY=1")[0].At, n.readyAt(); came.Before(synced) {
		t.Errorf("READY=1 came at %s, before the first complete sync at %s", came, synced)
	}
	refused := 1
	if n.minor() < 36 {
		refused = 0 // kube-proxy runs an IPv6 proxier all the same, and no pod has an IPv6 address
	}
	n.told(manager, fmt.Sprintf("STATUS=iptables proxy synced; egress SNAT: 1 bindings to 1 egress IPs, %d refused", refused))
	n.told(manager, "WATCHDOG=1")
	if refused > 0 {
		n.Says(`reason="NoProxier"`)
	}
	n.Stop()
	n.told(manager, "STOPPING=1")
	if len(manager.All("READY=1")) != 1 {
		t.Errorf("told READY=1 %d times, want once", len(manager.All("READY=1")))
	}
}

// TestWatchdog_StopsWithoutWrites: without successful syncs there are no signs of life.
func TestWatchdog_StopsWithoutWrites(t *testing.T) {
	n := simpleNode(t)
	manager := n.Manage()
	n.Variables = append(n.Variables, "WATCHDOG_USEC=600000")
	n.putWeb([]string{egressV4.String()})
	n.start()
	n.told(manager, "WATCHDOG=1")
	n.told(manager, "READY=1")
	n.breakRestore()
	n.putWeb([]string{anotherV4.String()})
	// Due for longer than twice the sync period.
	n.Eventually(2*process.SyncPeriod+soon, func() error { return manager.Told("have been due for") })
	signs := len(manager.All("WATCHDOG=1"))
	n.Eventually(soon, func() error { // three messages of a second apart
		if len(manager.All("have been due for")) < 3 {
			return errors.New("the status does not change")
		}
		return nil
	})
	if got := len(manager.All("WATCHDOG=1")); got != signs {
		t.Errorf("%d signs of life while nothing was written", got-signs)
	}
	n.mendRestore()
	n.Eventually(soon, func() error {
		if len(manager.All("WATCHDOG=1")) == signs {
			return errors.New("no sign of life after the recovery")
		}
		return nil
	})
}

// TestShippedPermissions_AreValid: what is shipped is what an API server takes.
func TestShippedPermissions_AreValid(t *testing.T) {
	text, err := os.ReadFile("../../images/node/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	if len(documents) != 6 {
		t.Fatalf("there are %d objects, want 6", len(documents))
	}
	var clusterRole rbacv1.ClusterRole
	var clusterBinding rbacv1.ClusterRoleBinding
	var namespace v1.Namespace
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	var secret v1.Secret
	for i, object := range []any{&clusterRole, &clusterBinding, &namespace, &role, &binding, &secret} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), object); err != nil {
			t.Fatal(err)
		}
	}
	subjects := []rbacv1.Subject{ // a node's user, and the DaemonSet
		{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "origin-node"},
		{Kind: rbacv1.ServiceAccountKind, Namespace: namespace.Name, Name: "origin-node"},
	}
	for _, ref := range []struct {
		to       rbacv1.RoleRef
		name     string
		kind     string
		subjects []rbacv1.Subject
	}{
		{clusterBinding.RoleRef, clusterRole.Name, clusterRole.Kind, clusterBinding.Subjects},
		{binding.RoleRef, role.Name, role.Kind, binding.Subjects},
	} {
		if ref.to.Name != ref.name || ref.to.Kind != ref.kind {
			t.Errorf("the binding is of %+v, want %s %s", ref.to, ref.kind, ref.name)
		}
		if diff := cmp.Diff(subjects, ref.subjects); diff != "" {
			t.Errorf("the binding is to (-want +got):\n%s", diff)
		}
	}
	if role.Namespace != namespace.Name || binding.Namespace != namespace.Name {
		t.Errorf("the Role is in %q and its binding in %q, want %q", role.Namespace, binding.Namespace, namespace.Name)
	}
	if secret.Namespace != namespace.Name || len(secret.Data)+len(secret.StringData) > 0 {
		t.Errorf("the Secret is in %q, want %q, with %d entries, want none: applying it again would remove the keys", secret.Namespace, namespace.Name, len(secret.Data))
	}
	if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Equal(r.ResourceNames, []string{secret.Name}) }) {
		t.Errorf("no rule is for the Secret %q alone", secret.Name)
	}
	for _, rule := range slices.Concat(clusterRole.Rules, role.Rules) {
		if len(rule.APIGroups) == 0 || len(rule.Resources) == 0 || len(rule.Verbs) == 0 {
			t.Errorf("a rule that allows nothing: %+v", rule)
		}
	}
}

func TestVersion_NamesCommitAndPatches(t *testing.T) {
	n := simpleNode(t)
	stdout, _, status := n.Openshift("version")
	for _, want := range []string{"openshift ", "commit ", "\nkubernetes v1.", "\n  0001 UPSTREAM: <carry>: proxy:", "\n  0002 UPSTREAM: <carry>: kube-proxy:",
		"\ngithub.com/google/nftables v0.", "\n  0001 UPSTREAM: <carry>: expr:", "\n  0002 UPSTREAM: <carry>: set:"} {
		if status != 0 || !strings.Contains(stdout, want) {
			t.Errorf("status %d, want %q in:\n%s", status, want, stdout)
		}
	}
}
