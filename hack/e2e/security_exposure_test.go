package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// nobody is a user and a group without rights.
const nobody = 65534

// TestSocket_AnswersOnlyRoot: a real process of another user is refused by the folder that
// the node has made, by the socket's mode when somebody has opened the folder, and by the node when
// he has opened both.
func TestSocket_AnswersOnlyRoot(t *testing.T) {
	belongsTo(t, usual)
	w := newIdleWorld(t, settings{nodes: 1})
	m := w.members[0]
	open, err := os.MkdirTemp("", "e2e-socket-") //nolint:usetesting // a test's own directories are closed to others
	w.must(err)
	w.Cleanup(func() { _ = os.RemoveAll(open) })
	w.must(os.Chmod(open, 0o755))
	folder := filepath.Join(open, "run")
	socket := filepath.Join(folder, "egress.sock")
	m.Configure("egress-snat-socket: [" + socket + "]")
	m.Start()
	m.Ready()
	commands := [][]string{{"list"}, {"refused"}, {"verify"}, {"explain", "10.128.0.11"}, {"list", "--watch"}}
	refused := func(says string, as ...string) {
		w.Helper()
		for _, command := range commands {
			args := slices.Concat([]string{"egress"}, command, []string{"--socket=" + socket})
			out, errs, status := w.runAs(m, as, args...)
			if status != 1 || out != "" || !strings.Contains(errs, says) {
				w.Errorf("%v %v: status %d, prints %q, %q; want 1, nothing, and %q", as, args, status, out, errs, says)
			}
		}
	}
	somebody := []string{"setpriv", fmt.Sprintf("--reuid=%d", nobody), fmt.Sprintf("--regid=%d", nobody), "--clear-groups"}
	inRootsGroup := []string{"setpriv", fmt.Sprintf("--reuid=%d", nobody), "--regid=0", "--clear-groups"}
	inAContainer := slices.Concat(somebody, []string{"unshare", "--user", "--map-root-user"})
	const byMode, byNode = "only root may ask the node at", "only root, and the user that the node runs as, may ask it"

	w.scenario("the folder is closed", func() {
		refused(byMode, somebody...)
		refused(byMode, inRootsGroup...)
	})
	w.scenario("the folder is open", func() {
		w.must(os.Chmod(folder, 0o755))
		refused(byMode, somebody...)
		refused(byMode, inRootsGroup...)
	})
	w.scenario("folder and socket are open", func() {
		w.must(os.Chmod(socket, 0o666))
		refused(byNode, somebody...)
		refused(byNode, inRootsGroup...)
	})
	w.scenario("somebody is root in a container", func() {
		if out, errs, status := w.runAs(m, inAContainer, "version"); status != 0 {
			w.Skipf("this machine has no user namespaces for everybody: %s%s", out, errs)
		}
		refused(byNode, inAContainer...)
	})
	w.scenario("root is answered", func() {
		if out, errs, status := m.Openshift("egress", "verify", "--socket="+socket); status != 0 {
			w.Errorf("status %d: %s%s", status, out, errs)
		}
	})
}

// runAs runs the binary on the node behind a program that changes its user. The file is passed
// to it open, for its folder may be closed.
func (w *world) runAs(m *member, as []string, args ...string) (stdout, stderr string, status int) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), soon)
	defer cancel()
	binary, err := os.Open(os.Getenv("OPENSHIFT"))
	w.must(err)
	defer binary.Close()
	args = slices.Concat(as[1:], []string{"/proc/self/fd/3"}, args)
	cmd := m.Host.Command(ctx, as[0], args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &out, &errs, []*os.File{binary}
	if err := cmd.Run(); cmd.ProcessState == nil {
		w.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

const (
	metricsPort = 10249
	healthPort  = 10256
)

// metricsAt is where a node's process serves metrics, to its own node.
var metricsAt = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), metricsPort)

// TestExposure_NoSecretsAndNoNames: a client elsewhere sees kube-proxy's health and no more. A client on the node
// sees no secret, and the metrics have no names of Services or pods.
func TestExposure_NoSecretsAndNoNames(t *testing.T) {
	belongsTo(t, usual)
	w := newIdleWorld(t, settings{nodes: 2})
	m, neighbour := w.members[0], w.members[1]
	w.must(w.WriteKubeconfig(w.Context(), m.File("token.kubeconfig"), cluster.Kubeconfig{ServiceAccount: "node", Server: m.link.URL()}))
	m.Start("--loglevel=9") // what a client sends and gets, too
	neighbour.Start()
	m.Ready()
	neighbour.Ready()
	pods := w.shop(w.ips(10)...)
	w.leaves("tcp", pods[0], w.ips(10)...)
	strangers := []*lab.Host{w.Outside(), pods[0], pods[1], neighbour.Host}
	var addrs []netip.Addr
	for _, cidr := range m.Host.PodCIDRs() {
		addrs = append(addrs, cidr.Addr().Next()) // its own in the pods' network
	}
	addrs = append(addrs, m.Host.V4, m.Host.V6)

	w.scenario("it listens where it says", func() {
		want := []string{fmt.Sprintf("tcp *:%d", healthPort), fmt.Sprintf("tcp 127.0.0.1:%d", metricsPort), fmt.Sprintf("udp 0.0.0.0:%d", lab.TunnelPort), fmt.Sprintf("udp %s:%d", m.Host.V4, lab.AnnouncePort)}
		if diff := cmp.Diff(want, w.listeners(m)); diff != "" {
			w.Errorf("(-want +got):\n%s", diff)
		}
	})
	w.scenario("metrics are for the node alone", func() {
		for _, from := range strangers {
			for _, addr := range addrs {
				_, err := w.get(from, netip.AddrPortFrom(addr, metricsPort), "/metrics")
				if !errors.Is(err, syscall.ECONNREFUSED) {
					w.Errorf("%s asks %s for metrics: %v; want it refused", from.Name, addr, err)
				}
			}
		}
	})
	w.scenario("its health is for everybody, and kube-proxy's", func() {
		for _, from := range strangers {
			for _, addr := range addrs {
				w.healthOnly(from, netip.AddrPortFrom(addr, healthPort))
			}
		}
	})
	w.scenario("no profiles unless somebody asks for them", func() { w.profiles(m, metricsAt, http.StatusNotFound) })
	w.scenario("metrics have no names", func() { w.documentedMetrics(m, metricsAt, pods) })
	w.scenario("no secrets, of a certificate", func() { w.noSecrets(m, metricsAt, m.File("node.kubeconfig")) })
	w.scenario("no secrets, of a token", func() {
		m.Fields["masterKubeConfig"] = "token.kubeconfig"
		w.restartWith(m, `profiling: ["true"]`, "--loglevel=9")
		w.noSecrets(m, metricsAt, m.File("token.kubeconfig"))
	})
	w.scenario("profiles are for the node alone, too", func() {
		w.profiles(m, metricsAt, http.StatusOK)
		if diff := cmp.Diff([]string{fmt.Sprintf("tcp *:%d", healthPort), fmt.Sprintf("tcp 127.0.0.1:%d", metricsPort), fmt.Sprintf("udp 0.0.0.0:%d", lab.TunnelPort), fmt.Sprintf("udp %s:%d", m.Host.V4, lab.AnnouncePort)}, w.listeners(m)); diff != "" {
			w.Errorf("(-want +got):\n%s", diff)
		}
	})
	w.scenario("a neighbour does not reach loopback addresses", func() {
		// As kube-proxy has it by default, with node ports at 127.0.0.1 too: it lets the kernel
		// route such packets (CVE-2020-8558).
		w.restartWith(m, "nodeport-addresses: null")
		if out, err := m.Host.Run(w.Context(), "cat", "/proc/sys/net/ipv4/conf/all/route_localnet"); err != nil || strings.TrimSpace(out) != "1" {
			w.Fatalf("route_localnet is %s, %v; the test shows nothing", out, err)
		}
		for _, command := range []string{
			"ip addr del 127.0.0.1/8 dev lo", "sysctl -q -w net.ipv4.conf.all.route_localnet=1",
			"ip route add 127.0.0.1/32 via " + m.Host.V4.String(),
		} {
			args := strings.Fields(command)
			_, err := w.Outside().Run(w.Context(), args[0], args[1:]...)
			w.must(err)
		}
		if got, err := w.get(w.Outside(), metricsAt, "/metrics"); err == nil {
			w.Errorf("it is answered with %d", got.status)
		}
		// All but kube-proxy's rule would let him.
		m.Iptables("-I", "INPUT", "-j", "ACCEPT")
		if _, err := w.get(w.Outside(), metricsAt, "/metrics"); err != nil {
			w.Errorf("no packet comes to the node: %v; the test shows nothing", err)
		}
	})
}

// restartWith gives a node other arguments, and starts it anew.
func (w *world) restartWith(m *member, arguments string, flags ...string) {
	w.Helper()
	m.Configure(arguments)
	m.Ends(75)
	m.AnewReady(flags...)
}

// listeners are the sockets that wait for somebody on a node, sorted.
func (w *world) listeners(m *member) (found []string) {
	w.Helper()
	out, err := m.Host.Run(w.Context(), "ss", "--listening", "--tcp", "--udp", "--numeric", "--no-header")
	w.must(err)
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		found = append(found, fields[0]+" "+fields[4])
	}
	slices.Sort(found)
	return found
}

type answer struct {
	status int
	body   string
}

// get asks a server on behalf of a host.
func (w *world) get(from *lab.Host, to netip.AddrPort, path string) (answer, error) {
	ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: from.DialContext, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+to.String()+path, nil)
	if err != nil {
		return answer{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(body)}, err
}

// healthOnly fails unless a host gets kube-proxy's health, and nothing else.
func (w *world) healthOnly(from *lab.Host, to netip.AddrPort) {
	w.Helper()
	for _, path := range []string{"/healthz", "/livez"} {
		got, err := w.get(from, to, path)
		w.must(err)
		var told any
		w.must(json.Unmarshal([]byte(got.body), &told))
		if got.status != http.StatusOK || !onlyHealth(told) {
			w.Errorf("%s gets %d for %s of %s: %s", from.Name, got.status, path, to, got.body)
		}
	}
	for _, path := range []string{"/", "/metrics", "/configz", "/flagz", "/statusz", "/proxyMode", "/debug/pprof/", "/debug/flags/v", "/v1/snapshot"} {
		if got, err := w.get(from, to, path); err != nil || got.status != http.StatusNotFound {
			w.Errorf("%s gets %d for %s of %s, %v; want %d", from.Name, got.status, path, to, err, http.StatusNotFound)
		}
	}
}

// onlyHealth tells whether JSON says when and whether all was well, of which IP family, and no more.
func onlyHealth(told any) bool {
	switch value := told.(type) {
	case bool:
		return true
	case string:
		_, err := time.Parse(time.RFC3339Nano, value)
		return err == nil
	case map[string]any:
		known := []string{"currentTime", "lastUpdated", "healthy", "nodeEligible", "status", "IPv4", "IPv6"}
		for key, inner := range value {
			if !slices.Contains(known, key) || !onlyHealth(inner) {
				return false
			}
		}
		return true
	}
	return false
}

// profiles fails unless the node's answers about profiles have this status.
func (w *world) profiles(m *member, at netip.AddrPort, status int) {
	w.Helper()
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine?debug=2"} {
		if got, err := w.get(m.Host, at, path); err != nil || got.status != status {
			w.Errorf("GET %s: %d, %v; want %d", path, got.status, err, status)
		}
	}
}

var (
	documentedMetric = regexp.MustCompile("(?m)^\\| `(egress_snat_[a-z_]+)` \\| ([a-z_, ]*)\\|")
	sample           = regexp.MustCompile(`(?m)^(egress_snat_[a-z_]+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)
	label            = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// ofPortBlocks are the metrics that a node has only if its pods have ports of their own.
var ofPortBlocks = map[string]bool{
	"egress_snat_port_blocks": true, "egress_snat_port_block_usage_ratio": true, "egress_snat_port_second_blocks": true,
	"egress_snat_port_sharing_pods": true, "egress_snat_port_records_failed_total": true,
}

// documentedMetrics fails unless the metrics of egress SNAT have the labels that images/node/README.md says, and no
// metric has the name of a Service or pod, or a pod's address.
func (w *world) documentedMetrics(m *member, at netip.AddrPort, pods []*lab.Host) {
	w.Helper()
	readme, err := os.ReadFile("../../images/node/README.md")
	w.must(err)
	documented := map[string][]string{}
	for _, match := range documentedMetric.FindAllStringSubmatch(string(readme), -1) {
		documented[match[1]] = slices.Sorted(slices.Values(strings.FieldsFunc(match[2], func(r rune) bool { return r == ',' || r == ' ' })))
	}
	for name := range documented {
		if strings.HasPrefix(name, "egress_snat_pool_") && !strings.HasSuffix(name, "_seconds") {
			delete(documented, name) // the node is in no pool
		}
		if strings.HasPrefix(name, "egress_snat_journal_") || ofPortBlocks[name] {
			delete(documented, name) // its pods have no ports of their own
		}
	}
	for _, without := range []string{"egress_snat_lost_address_timestamp_seconds", "egress_snat_address_holders", "egress_snat_cni_duration_seconds", "egress_snat_cni_waiting"} {
		delete(documented, without) // there is no trouble, and no CNI plugin
	}
	got, err := w.get(m.Host, at, "/metrics")
	w.must(err)
	values := map[string][]string{"ip_family": {"IPv4", "IPv6"}, "egress_ip": w.ips(10), "reason": {"unsnatted", "stale", "flipped", "nostate", "foreign", "forged", "unavailable", "path", "leases_unread", "lease_unwritten", "key_missing", "keys", "announcements", "load_balancer", "marks", "pool", "port_blocks", "spoofed", "unwritten", "claimed_twice", "redirected", "unlisted", "unanswered", "unlabelled", "misplaced"}, "result": {"success", "error", "sent", "failed", "accepted", "outdated", "foreign", "unauthenticated", "unreadable"},
		"state": {"local", "remote", "lost", "unclaimed"}, "direction": {"sent", "received", "left", "own", "answers"},
		"kind": {"Leases", "Services", "headless Services", "EndpointSlices", "EndpointSlices of headless Services", "EndpointSlices for other proxies", "ServiceCIDRs", "Nodes", "objects of MetalLB", "Network.config.openshift.io/cluster"}}
	for _, reason := range plan.Reasons {
		values["reason"] = append(values["reason"], string(reason))
	}
	seen := map[string]bool{}
	for _, match := range sample.FindAllStringSubmatch(got.body, -1) {
		seen[match[1]] = true
		var labels []string
		for _, pair := range label.FindAllStringSubmatch(match[2], -1) {
			if pair[1] == "le" {
				continue // of a histogram
			}
			labels = append(labels, pair[1])
			if !slices.Contains(values[pair[1]], pair[2]) {
				w.Errorf("the label %s of %s is %q, want one of %q", pair[1], match[1], pair[2], values[pair[1]])
			}
		}
		slices.Sort(labels)
		if diff := cmp.Diff(documented[match[1]], labels); diff != "" && len(documented[match[1]])+len(labels) > 0 {
			w.Errorf("labels of %s (-want +got):\n%s", match[1], diff)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(seen))); diff != "" {
		w.Errorf("metrics that images/node/README.md has, and that there are (-want +got):\n%s", diff)
	}
	names := []string{"shop", "web-1", pods[0].V4.String(), pods[0].V6.String(), pods[1].V4.String()}
	for line := range strings.Lines(got.body) {
		for _, name := range names {
			if strings.Contains(line, `"`+name) {
				w.Errorf("a metric has %q: %s", name, line)
			}
		}
	}
}

// credentialsIn are the parts of the credentials in a kubeconfig, of which there are some.
func (w *world) credentialsIn(kubeconfig string) (secrets []string) {
	w.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	w.must(err)
	for _, user := range config.AuthInfos {
		for line := range strings.Lines(string(user.ClientKeyData)) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
				secrets = append(secrets, line)
			}
		}
		if user.Token != "" {
			secrets = append(secrets, user.Token, user.Token[strings.LastIndex(user.Token, ".")+1:]) // all of it, and its signature
		}
	}
	if len(secrets) == 0 {
		w.Fatal("there are no secrets to look for")
	}
	return secrets
}

// noSecrets fails if what the node serves or prints contains a part of its credentials.
func (w *world) noSecrets(m *member, at netip.AddrPort, kubeconfig string) {
	w.Helper()
	key := strings.TrimSpace(w.keys())
	if key == "" {
		w.Fatal("nodes share no key")
	}
	secrets := append(w.credentialsIn(kubeconfig), key)
	told := map[string]string{"the log": m.Printed.String()}
	for _, path := range []string{"/", "/metrics", "/configz", "/flagz", "/statusz", "/healthz", "/proxyMode", "/debug/pprof/cmdline"} {
		got, err := w.get(m.Host, at, path)
		w.must(err)
		told[path] = got.body
	}
	for _, command := range []string{"list", "refused", "explain"} {
		args := []string{"egress", command, "-o", "json", "--socket=" + m.Socket()}
		if command == "explain" {
			args = append(args, "shop/web")
		}
		out, errs, _ := m.Openshift(args...)
		told["egress "+command] = out + errs
	}
	if !strings.Contains(told["/configz"], "KubeProxyConfiguration") && !strings.Contains(told["/configz"], "clientConnection") {
		w.Errorf("/configz has no configuration: %s", told["/configz"])
	}
	for where, text := range told {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				w.Errorf("%s has a secret", where)
			}
		}
	}
	w.Logf("%d secrets in none of %d places, of which the log has %d bytes", len(secrets), len(told), len(told["the log"]))
}
