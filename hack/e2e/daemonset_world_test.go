package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/machine"
)

// daemonSetWorld is a cluster of two nodes with real kubelets, to which images/node/daemonset.yaml is applied. The Service
// shop/web has egress IPs, which the first node has, and a pod on each node.
type daemonSetWorld struct {
	*realWorld
	egressIPs []string
	// manifest is daemonset.yaml with this cluster's values, as an administrator edits it.
	manifest string
	// kubeconfig is the administrator's.
	kubeconfig string
}

// imageVariable is the environment variable that names the archive of hack/build-image.sh.
const imageVariable = "IMAGE"

func newDaemonSetWorld(t *testing.T, s settings) *daemonSetWorld {
	t.Helper()
	machine.RequireKubelet(t)
	image := os.Getenv(imageVariable)
	if image == "" {
		lab.Lacks(t, "the environment variable %s does not name the node's image; run 'make test-daemonset'", imageVariable)
	}
	s.nodes, s.onLAN, s.kubelets = 2, true, true
	w := &daemonSetWorld{realWorld: &realWorld{world: newIdleWorld(t, s), images: []string{image}}}
	w.letKubelets()
	pods := machine.MakeImage(t)
	for _, m := range w.members {
		w.startMachine(m, pods, "")
	}
	w.ready()
	w.egressIPs = w.lanIPs(100)
	w.give(w.egressIPs, w.members[0].Host)
	w.claim("shop", w.egressIPs...)
	w.deploy("shop", 2)
	w.rollsOut("shop")

	w.kubeconfig = w.members[0].File("admin.kubeconfig")
	w.must(w.WriteKubeconfig(w.Context(), w.kubeconfig, cluster.Kubeconfig{User: "admin", Groups: []string{"system:masters"}}))
	w.manifest = w.members[0].File("daemonset.yaml")
	shipped, err := os.ReadFile(w.file("daemonset.yaml"))
	w.must(err)
	w.must(os.WriteFile(w.manifest, shipped, 0o600))
	w.edit("https://192.0.2.1:6443", w.URL())
	w.edit("[10.128.0.0/14]", fmt.Sprintf("[%s, %s]", lab.ClusterV4, lab.ClusterV6))
	w.edit("proxyArguments:", `proxyArguments:
      conntrack-max-per-core: ["0"] # the limit is the machine's, not the network namespace's`)
	if s.nftables {
		w.edit("[iptables]", "[nftables]")
	}
	return w
}

// file is one of those that are shipped.
func (w *daemonSetWorld) file(name string) string {
	w.Helper()
	path, err := filepath.Abs(filepath.Join("../../images/node", name))
	w.must(err)
	return path
}

// edit replaces the first text in the manifest that is like that.
func (w *daemonSetWorld) edit(text, by string) {
	w.Helper()
	content, err := os.ReadFile(w.manifest)
	w.must(err)
	if !strings.Contains(string(content), text) {
		w.Fatalf("daemonset.yaml does not have %q", text)
	}
	w.must(os.WriteFile(w.manifest, []byte(strings.Replace(string(content), text, by, 1)), 0o600))
}

// apply does what README.md says.
func (w *daemonSetWorld) apply() {
	w.Helper()
	w.kubectl("apply", "-f", w.file("rbac.yaml"), "-f", w.manifest)
}

// patch does so, too, with one of the shipped patches, in which texts are others here: each is followed by that in its place.
func (w *daemonSetWorld) patch(name string, texts ...string) {
	w.Helper()
	content, err := os.ReadFile(w.file(name))
	w.must(err)
	file := w.members[0].File(name)
	w.must(os.WriteFile(file, []byte(strings.NewReplacer(texts...).Replace(string(content))), 0o600))
	w.kubectl("patch", "daemonset", "origin-node", "--patch-file="+file)
}

// kubectl runs the real one in the DaemonSet's namespace, and returns what it prints.
func (w *daemonSetWorld) kubectl(args ...string) string {
	w.Helper()
	out, err := w.tryKubectl(args...)
	w.must(err)
	return out
}

func (w *daemonSetWorld) tryKubectl(args ...string) (string, error) {
	own := []string{"--kubeconfig=" + w.kubeconfig, "--cache-dir=" + w.kubeconfig + ".cache", "--namespace=origin-node"}
	return w.Control().Run(w.Context(), filepath.Join(os.Getenv(cluster.BinariesVariable), "kubectl"), append(own, args...)...)
}

// rolledOut waits until each node has a ready pod of the manifest.
func (w *daemonSetWorld) rolledOut() {
	w.Helper()
	if err := w.tryRolledOut(); err != nil {
		out, _ := w.tryKubectl("describe", "pods")
		w.Fatalf("%v\n%s", err, out)
	}
}

func (w *daemonSetWorld) tryRolledOut() error {
	_, err := w.tryKubectl("rollout", "status", "daemonset/origin-node", "--timeout="+soon.String())
	return err
}

// podOf is the name of a node's pod.
func (w *daemonSetWorld) podOf(m *member) string {
	w.Helper()
	return strings.TrimSpace(w.kubectl("get", "pods", "--field-selector=spec.nodeName="+m.Name, "--output=name"))
}

// inPod runs a command in a node's pod, and returns what it prints.
func (w *daemonSetWorld) inPod(m *member, command ...string) string {
	w.Helper()
	return w.kubectl(append([]string{"exec", w.podOf(m), "--container=node", "--"}, command...)...)
}

// restarts is how often the node in a pod has been started again, and the exit status before the last time.
func (w *daemonSetWorld) restarts(m *member) string {
	w.Helper()
	return w.kubectl("get", w.podOf(m), "--output=jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].lastState.terminated.exitCode}")
}

// rules are what the nodes hold for the pods, without counters and whatever changes by itself.
func (w *daemonSetWorld) rules() (all []string) {
	w.Helper()
	for _, m := range w.members {
		for _, command := range []string{"iptables-save -t nat", "ip6tables-save -t nat", "nft -s list tables", "ip rule", "ip route show table all"} {
			words := strings.Fields(command)
			out, err := m.Host.Run(w.Context(), words[0], words[1:]...)
			w.must(err)
			for line := range strings.Lines(out) {
				// Neither times and counters, nor the records of rules that have gone, which the next process removes.
				if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ":") && !strings.Contains(line, "OPENSHIFT-EGRESS-REMOVED") {
					all = append(all, m.Name+": "+line)
				}
			}
		}
	}
	slices.Sort(all) // a new process may write chains in another order
	return all
}

// keepConnection opens a connection from outside to a pod, through the external IP. What it returns asks in it once more.
func (w *daemonSetWorld) keepConnection() (ask func() error) {
	w.Helper()
	to := addrs(w.egressIPs)[0].String() + ":80"
	c, err := w.Outside().DialContext(w.Context(), "tcp", to)
	w.must(err)
	w.Cleanup(func() { _ = c.Close() })
	lines := bufio.NewReader(c)
	return func() error {
		err := c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, failed := io.WriteString(c, "\n"); failed != nil {
			err = failed
		}
		if _, failed := lines.ReadString('\n'); failed != nil {
			err = failed
		}
		if err != nil {
			err = fmt.Errorf("a connection to %s has ended: %w", to, err)
		}
		return err
	}
}

// runKubeProxy runs the one of the vendored release on each node until it serves the external IPs, and ends it.
func (w *daemonSetWorld) runKubeProxy() {
	w.Helper()
	kubeconfig := w.members[0].File("kube-proxy.kubeconfig")
	w.must(w.WriteKubeconfig(w.Context(), kubeconfig, cluster.Kubeconfig{User: "system:kube-proxy"}))
	mode := "iptables"
	if w.members[0].Arguments["proxy-mode"] != nil {
		mode = "nftables"
	}
	var proxies []*neighbour
	for _, m := range w.members {
		proxies = append(proxies, w.runNeighbour(m.Name+"-kube-proxy", m.Host, nil, filepath.Join(os.Getenv(cluster.BinariesVariable), "kube-proxy"), "--kubeconfig="+kubeconfig,
			"--hostname-override="+m.Name, "--proxy-mode="+mode, "--cluster-cidr="+lab.ClusterV4.String()+","+lab.ClusterV6.String(),
			"--conntrack-max-per-core=0", "--v=2"))
	}
	w.answers(w.egressIPs)
	for _, proxy := range proxies {
		select {
		case <-proxy.ended:
			w.Errorf("%q has ended by itself", proxy.cmd.Args)
		default:
		}
		proxy.end(syscall.SIGTERM)
	}
}
