package kubeproxy

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/nodeconfig"
)

// planOf returns what of a configuration plans depend on.
func planOf(c egress.Config) []any {
	selector := ""
	if len(c.Pool.Networks) > 0 {
		selector = c.Pool.Nodes.String()
	}
	return []any{c.ClusterCIDRs, c.Exclusions, c.ExcludeNodes, c.AllowNodeIPs, c.AllowedCIDRs, c.AllowedCIDRs == nil, c.NamespaceCIDRs, c.AllProtocols, c.LoadBalancerIPs,
		c.Steering.Mode, c.Ways.Kernel.Transport, c.Pool.Networks, selector}
}

// TestPublished_IsWhatPlansDependOn: what a node publishes, and its configuration where its files are not, give the plan that
// the node has.
func TestPublished_IsWhatPlansDependOn(t *testing.T) {
	compare := cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}
	for _, arguments := range []string{
		"",
		`cluster-cidr: ["10.128.0.0/14,fd01::/48", "10.0.0.0/9"]`,
		`egress-snat-protocols: [all]
  egress-snat-exclude-cidrs: [192.0.2.0/24, 198.51.100.0/24]
  egress-snat-exclude-nodes: ["false"]
  egress-snat-allow-node-ips: ["true"]
  egress-snat-load-balancer-ips: ["true"]
  egress-snat-steering: [off]`,
		`egress-snat-exclude-cidrs: [""]
  egress-snat-allowed-cidrs: [""]`,
		`egress_snat_allowed_cidrs: ["203.0.113.0/24,2001:db8::/32"]
  egress-snat-namespace-cidrs: ["shop=203.0.113.0/28", "*=203.0.113.128/25"]
  egress-snat-steering: [required]
  egress-snat-steering-transport: [direct]
  egress-snat-assign-cidrs: [203.0.113.0/28]
  egress-snat-assign-nodes: ["zone in (a, b),!old"]`,
	} {
		config, folder := nodeConfig(t, "  "+arguments)
		proxy, err := New(config, Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := PublishedConfig("Lease a/b", proxy.extension.Published)
		if diff := cmp.Diff(planOf(proxy.extension), planOf(got), compare); diff != "" || err != nil {
			t.Errorf("%s: %v; published as %s (-node +published):\n%s", arguments, err, proxy.extension.Published, diff)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		got, err = PlanConfig(config)
		if diff := cmp.Diff(planOf(proxy.extension), planOf(got), compare); diff != "" || err != nil {
			t.Errorf("%s: %v; from the file (-node +file):\n%s", arguments, err, diff)
		}
	}
}

func TestPublished_NeitherSecretsNorTooMuch(t *testing.T) {
	config, _ := nodeConfig(t, "  cluster-cidr: [10.128.0.0/14]\n  egress-snat-socket: [/run/a.sock]\n  egress-snat-key-file: [KEY]")
	proxy, err := New(config, Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"cluster-cidr":["10.128.0.0/14"]}`; proxy.extension.Published != want {
		t.Errorf("publishes %s, want %s", proxy.extension.Published, want)
	}
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, "  - namespace-%d=10.%d.%d.0/28\n", i, i/256, i%256)
	}
	config, _ = nodeConfig(t, "  egress-snat-namespace-cidrs:\n"+many.String())
	if proxy, err = New(config, Overrides{}); err != nil || proxy.extension.Published != "" {
		t.Errorf("%v: publishes %d bytes, want none of so many", err, len(proxy.extension.Published))
	}
}

func TestPublishedConfig_SaysWhatIsWrong(t *testing.T) {
	for published, says := range map[string]string{
		"{":                                  "Lease a/b is not JSON",
		`{"cluster-cidr":["x"]}`:             `Lease a/b:1: proxyArguments.cluster-cidr[0]: "x" is not a CIDR`,
		`{"egress-snat":["false"]}`:          "egress SNAT is off on the nodes",
		`{"egress-snat-steering":["maybe"]}`: "egress-snat-steering",
	} {
		if _, err := PublishedConfig("Lease a/b", published); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", published, err, says)
		}
	}
}

// nodeConfig loads a configuration with these proxyArguments, in a folder with a kubeconfig and a key, whose name replaces KEY.
func nodeConfig(t *testing.T, arguments string) (config *nodeconfig.Config, folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range map[string]string{
		"key":              "0123456789abcdef0123",
		"node.kubeconfig":  `{kind: Config, apiVersion: v1, current-context: c, clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}]}`,
		"node-config.yaml": "kind: NodeConfig\napiVersion: v1\nmasterKubeConfig: node.kubeconfig\nproxyArguments:\n" + strings.ReplaceAll(arguments, "KEY", filepath.Join(folder, "key")) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config, err := nodeconfig.Load(filepath.Join(folder, "node-config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return config, folder
}
