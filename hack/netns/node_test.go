package netns

import (
	"bytes"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/openshift/origin-node/hack/lab"
	process "github.com/openshift/origin-node/hack/node"
	"github.com/openshift/origin-node/hack/oracle"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/manifests"
)

// soon bounds everything that takes a fraction of a second on an idle machine.
var soon = process.Soon

// running is a node's process.
type running = process.Node

// node is a node of a lab that is given manifests.
type node struct {
	*testing.T
	*lab.Lab
	*running
}

// way is one in which rules are written.
type way struct {
	name      string
	iptables  lab.Backend
	backend   reconcile.Backend
	arguments map[string]any
}

// ways are all: by each iptables back end, in the nftables mode, and beside iptables mode.
var ways = []way{
	{"legacy", lab.Legacy, reconcile.IPTables, nil},
	{"nft", lab.NFT, reconcile.IPTables, nil},
	{"nftables", lab.NFT, reconcile.NFTables, map[string]any{"proxy-mode": []string{"nftables"}}},
	{"beside", lab.NFT, reconcile.NFTables, map[string]any{"egress-snat-backend": []string{"nftables"}}},
}

// everyWay runs test once in each way, on a node, dual stack, with two pods and a network
// plugin's masquerade rule.
func everyWay(t *testing.T, test func(n *node)) {
	t.Helper()
	inWays(t, ways, test)
}

// onBackends is everyWay for what is about iptables.
func onBackends(t *testing.T, test func(n *node)) {
	t.Helper()
	inWays(t, ways[:2], test)
}

func inWays(t *testing.T, ways []way, test func(n *node)) {
	t.Helper()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			if way.arguments["proxy-mode"] != nil {
				needsNewNFT(t)
			}
			n := newNode(t, lab.Config{IPv6: true, Pods: 2, Masquerade: true, Backend: way.iptables})
			n.Backend, n.Arguments = way.backend, way.arguments
			n.Configure("")
			test(n)
		})
	}
}

// tooOld are the versions of nft with which kube-proxy refuses the nftables mode.
var tooOld = regexp.MustCompile(`^nftables v(0\.|1\.0\.0 )`)

// needsNewNFT skips the test where kube-proxy refuses the nftables mode; TestMode_OfAnOldNFT shows how.
func needsNewNFT(t *testing.T) {
	t.Helper()
	if version := nftVersion(t); tooOld.MatchString(version) {
		t.Skipf("kube-proxy's nftables mode needs nft 1.0.1: this is %s", version)
	}
}

func nftVersion(t *testing.T) string {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "nft", "--version").Output()
	if err != nil {
		lab.Lacks(t, "nft --version: %v", err)
	}
	return strings.TrimSpace(string(version))
}

// newNode makes a node with a configuration that has what all tests need. Nothing runs yet.
func newNode(t *testing.T, config lab.Config) *node {
	t.Helper()
	l := lab.ForTest(t, config)
	n := &node{T: t, Lab: l, running: process.New(t, "node-1", l.Node())}
	for _, dir := range []string{n.manifests(), n.File("empty")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.putNode()
	return n
}

// putNode puts the Node, with these networks for its pods.
func (n *node) putNode(podCIDRs ...netip.Prefix) {
	n.Helper()
	object := &v1.Node{
		TypeMeta: typeMeta("v1", "Node"), ObjectMeta: objectMeta("", n.Name),
		Status: v1.NodeStatus{Addresses: []v1.NodeAddress{
			{Type: v1.NodeInternalIP, Address: n.Node().V4.String()}, {Type: v1.NodeInternalIP, Address: "2001:db8:0:2::2"},
		}},
	}
	for _, cidr := range podCIDRs {
		object.Spec.PodCIDRs = append(object.Spec.PodCIDRs, cidr.String())
	}
	n.put("node.yaml", object)
}

var kubernetes = regexp.MustCompile(`(?m)^kubernetes v1\.(\d+)\.`)

// minor is 37 of a binary that was built from Kubernetes 1.37. Tests need it where upstream's
// behaviour, not ours, depends on the branch.
func (n *node) minor() int {
	n.Helper()
	version, stderr, _ := n.Openshift("version")
	match := kubernetes.FindStringSubmatch(version)
	if match == nil {
		n.Fatalf("openshift version names no Kubernetes: %s%s", version, stderr)
	}
	minor, _ := strconv.Atoi(match[1]) // digits, as the expression says
	return minor
}

// withoutExternalIPs is the setting by which kube-proxy serves no external IPs; nothing before 1.36,
// which cannot do without.
func (n *node) withoutExternalIPs() string {
	n.Helper()
	if n.minor() < 36 {
		return ""
	}
	return `, feature-gates: ["AllowServiceExternalIPs=false"]`
}

func (n *node) manifests() string { return n.File("manifests") }

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
	n.Write(filepath.Join(n.manifests(), name), bytes.Join(documents, []byte("---\n")))
}

func (n *node) remove(name string) {
	n.Helper()
	if err := os.Remove(filepath.Join(n.manifests(), name)); err != nil {
		n.Fatal(err)
	}
}

// start starts the node's process on its manifests.
func (n *node) start() {
	n.Helper()
	n.Start("--manifests=" + n.manifests())
}

// ask makes a new flow, and gives up on it soon.
func (n *node) ask(network string, from *lab.Host, to netip.AddrPort) (netip.Addr, error) {
	return process.Ask(n.Context(), network, from, to)
}

// serve starts servers on host that answer each client with the address that they see it from.
func (n *node) serve(host *lab.Host, port int, networks ...string) {
	n.Helper()
	for _, network := range networks {
		if _, err := host.ServeWhoami(network, port); err != nil {
			n.Fatal(err)
		}
	}
}

// holdsPlan waits until the kernel holds the plan for the manifests and nothing else of
// ours, in both IP families, with the jump in front.
func (n *node) holdsPlan(within time.Duration) {
	n.Helper()
	n.Eventually(within, n.checkPlan)
}

func (n *node) checkPlan() error {
	objects, err := n.objects()
	if err != nil {
		return err
	}
	return n.CheckPlan(objects, v1.IPv4Protocol, v1.IPv6Protocol)
}

// objects are those in the manifests, with the arguments of the node's configuration.
func (n *node) objects() (oracle.Cluster, error) {
	loaded, err := manifests.Load(n.manifests())
	if err != nil {
		return oracle.Cluster{}, err
	}
	objects := oracle.Cluster{
		Services: loaded.Services, EndpointSlices: loaded.EndpointSlices, Nodes: loaded.Nodes, ServiceCIDRs: loaded.ServiceCIDRs,
		Arguments: n.RuleArguments(),
	}
	if len(loaded.Networks) > 0 {
		objects.Network = loaded.Networks[0]
	}
	return objects, nil
}
