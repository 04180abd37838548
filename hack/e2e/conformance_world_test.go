package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/balancer"
	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/e2e/specs"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/machine"
)

// conformanceWorld is a cluster for upstream's end-to-end tests: nodes with kubelets, in three zones, DNS, and a load balancer.
type conformanceWorld struct {
	*realWorld
	conformance
	// egressIPs are those of the Service shop/web, whose pods run beside the specs.
	egressIPs []string
}

// zones is how many zones the nodes are in.
const zones = 3

// atATime is how many specs are run at a time. Most of the time they wait, but on a slow machine.
func atATime() int {
	if lab.Slow() {
		return 1
	}
	return 12
}

// coreDNS is the name of its image in hack/conformance/coredns.yaml.
const coreDNS = "localhost/coredns:test"

// programs are what runs in the images that specs ask for, by the last parts of their names.
var programs = map[string]machine.Program{
	"agnhost":                {Entrypoint: []string{"/agnhost"}, Arguments: []string{"pause"}},
	"busybox":                {Arguments: []string{"sh"}},
	"distroless-iptables":    {Arguments: []string{"sh"}},
	"glibc-dns-testing":      {Arguments: []string{"sh"}},
	"pause":                  {Entrypoint: []string{"/agnhost", "pause"}},
	"regression-issue-74839": {Entrypoint: []string{"/regression-issue-74839"}},
}

func newConformanceWorld(t *testing.T, c conformance) *conformanceWorld {
	t.Helper()
	machine.RequireKubelet(t)
	s := settings{nodes: c.nodes, onLAN: true, kubelets: true, nftables: c.mode == "nftables", arguments: c.arguments()}
	w := &conformanceWorld{realWorld: &realWorld{world: newIdleWorld(t, s)}, conformance: c}
	w.letKubelets()
	w.egressIPs = w.ips(10)
	if c.features {
		w.prepareFeatures()
	}
	w.startProxies()
	pod, others := machine.MakeImage(t), w.images()
	for _, m := range w.members {
		w.startNode(m, pod, others)
	}
	w.ready()
	for i, m := range w.members {
		// The EndpointSlice controller looks at what nodes can allocate when their zones change, and kubelets tell it first.
		w.label(m, v1.LabelTopologyZone, fmt.Sprintf("zone-%d", i%zones+1))
	}
	w.must(w.Apply(t.Context(), "../conformance/coredns.yaml"))
	w.rolledOut(metav1.NamespaceSystem, "coredns")
	w.balance()
	if !c.stock {
		w.claim("shop", w.egressIPs...)
		w.claim("bank")
		w.deploy("shop", int32(c.nodes))
		w.deploy("bank", int32(c.nodes))
		w.rollsOut("shop", "bank")
	}
	return w
}

// nodePortAddresses are kube-proxy's own default in each mode, which other tests change.
func (c conformance) nodePortAddresses() []string {
	if c.mode == "nftables" {
		return []string{"primary"}
	}
	return []string{"0.0.0.0/0", "::/0"}
}

// arguments are the product's.
func (c conformance) arguments() string {
	arguments := fmt.Sprintf(`nodeport-addresses: ["%s"]`, strings.Join(c.nodePortAddresses(), `", "`))
	if c.features {
		arguments += poolArguments + `egress-snat-watch-pods: ["true"]`
	}
	return arguments
}

// label gives a Node a label.
func (w *world) label(m *member, key, value string) {
	w.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
	_, err := w.Client().CoreV1().Nodes().Patch(w.Context(), m.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	w.must(err)
}

// prepareFeatures makes what the pool and the CNI plugin need.
func (w *conformanceWorld) prepareFeatures() {
	w.Helper()
	w.egressIPs = w.lanIPs(100)
	w.must(w.Apply(w.Context(), "../../images/node/rbac-cni.yaml"))
	for _, m := range w.members {
		w.label(m, "node-restriction.kubernetes.io/egress-assignable", "")
	}
}

// startProxies starts what is judged.
func (w *conformanceWorld) startProxies() {
	w.Helper()
	if !w.stock {
		w.start()
		return
	}
	for _, m := range w.members {
		w.startStock(m)
	}
}

// startStock starts stock kube-proxy on a node, until the test ends.
func (w *conformanceWorld) startStock(m *member) {
	w.Helper()
	kubeconfig := m.File("kube-proxy.kubeconfig")
	w.must(w.WriteKubeconfig(w.Context(), kubeconfig, cluster.Kubeconfig{User: "system:kube-proxy"}))
	w.runNeighbour(m.Name+"-kube-proxy", m.Host, nil, w.program("kube-proxy"),
		"--kubeconfig="+kubeconfig, "--hostname-override="+m.Name, "--proxy-mode="+w.mode, "--conntrack-max-per-core=0", "--v=2",
		fmt.Sprintf("--cluster-cidr=%s,%s", lab.ClusterV4, lab.ClusterV6), "--nodeport-addresses="+strings.Join(w.nodePortAddresses(), ","))
}

// images makes the images that specs ask for, and CoreDNS's. Their names have the versions of the release.
func (w *conformanceWorld) images() string {
	w.Helper()
	names, err := os.ReadFile(filepath.Join(w.dir, "images"))
	w.must(err)
	all := map[string]machine.Program{coreDNS: {Entrypoint: []string{"/coredns"}}}
	for name := range strings.Lines(string(names)) {
		name = strings.TrimSpace(name)
		repository, _, _ := strings.Cut(name, ":")
		if program, ok := programs[path.Base(repository)]; ok && strings.HasPrefix(name, "localhost/") { // see registries.yaml
			all[name] = program
		}
	}
	return machine.MakeImages(w.T, filepath.Join(w.dir, "root"), all)
}

// startNode starts a node's kubelet and container runtime. Pods are routed to, not bridged: a bridge passes packets by
// netfilter only with a module of the kernel that the machine may lack, and then a pod would not reach itself or its
// neighbours through a Service.
func (w *conformanceWorld) startNode(m *member, pod, others string) {
	w.Helper()
	kubeconfig := m.File("kubelet.kubeconfig")
	w.must(w.WriteKubeconfig(w.Context(), kubeconfig, cluster.Kubeconfig{User: "system:node:" + m.Name, Groups: []string{kubelets}}))
	kubelet := machine.Kubelet{
		Name: m.Name, Host: m.Host, Program: filepath.Join(cluster.RequireBinaries(w.T), "kubelet"), Kubeconfig: kubeconfig,
		Image: pod, Images: []string{others},
	}
	further := ""
	if w.features {
		further = withPlugin(m)
		kubelet.Plugins = []string{filepath.Join(filepath.Dir(os.Getenv("OPENSHIFT")), "origin-node-cni")}
	}
	kubelet.Network = fmt.Appendf(nil, `{"cniVersion": "1.0.0", "name": "cluster", "plugins": [
		{"type": "ptp", "ipam": %s}, {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true} %s]}`,
		hostLocal(m, "/mnt/ipam", 10, 250), further)
	w.machines = append(w.machines, kubelet.Start(w.T))
}

// rolledOut waits until a Deployment is rolled out.
func (w *conformanceWorld) rolledOut(namespace, name string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), soon)
	defer cancel()
	w.must(w.RolledOut(ctx, namespace, name))
}

// balance gives addresses to Services of type LoadBalancer, until the test ends.
func (w *conformanceWorld) balance() {
	w.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	ended := make(chan error, 1)
	go func() { ended <- balancer.Run(ctx, w.Client(), w.Router()) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			w.Errorf("the load balancer: %v", err)
		}
	})
}

// runSpecs runs the specs behind the router: to the cluster, load balancers included, they are a client from another network.
func (w *conformanceWorld) runSpecs() []specs.Result {
	w.Helper()
	dir, err := w.Far().MkdirTemp("ginkgo-")
	w.must(err)
	kubeconfig := filepath.Join(dir, "admin.kubeconfig")
	w.must(w.WriteKubeconfig(w.Context(), kubeconfig, cluster.Kubeconfig{User: "admin", Groups: []string{"system:masters"}}))
	arguments := []string{
		"run", fmt.Sprintf("--procs=%d", atATime()), "--no-color", "--silence-skips", "--timeout=2h", "--json-report=report.json", "--output-dir=" + dir,
		"--focus=" + w.focus.String(),
	}
	if leftOut := w.environment.LeftOut(); leftOut != "" {
		arguments = append(arguments, "--skip="+leftOut)
	}
	arguments = append(arguments, w.program("e2e.test"), "--", "--kubeconfig="+kubeconfig, "--provider=skeleton", "--node-os-distro=debian",
		fmt.Sprintf("--num-nodes=%d", len(w.members)), "--kubectl-path="+filepath.Join(cluster.RequireBinaries(w.T), "kubectl"), "--disable-log-dump")
	cmd := w.Far().Command(w.Context(), w.program("ginkgo"), arguments...)
	registries, err := filepath.Abs("../conformance/registries.yaml")
	w.must(err)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "HOME="+dir, "KUBE_TEST_REPO_LIST="+registries)
	w.followed(cmd)
	report, err := os.Open(filepath.Join(dir, "report.json"))
	w.must(err)
	defer report.Close()
	results, err := specs.Read(report)
	w.must(err)
	return results
}

// followed runs ginkgo to its end, and logs its summary. It ends with an error if a spec has failed, which its report says as well.
func (w *conformanceWorld) followed(cmd *exec.Cmd) {
	w.Helper()
	ginkgo := w.runCommand("ginkgo", cmd)
	<-ginkgo.ended
	written, err := os.Open(ginkgo.log)
	w.must(err)
	defer written.Close()
	lines := bufio.NewScanner(written)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, "Ran ") || strings.HasPrefix(line, "Ginkgo ran ") {
			w.Log(line)
		}
	}
	w.must(lines.Err())
}
