package cmd

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/origin-node/pkg/nodeconfig"
)

// planted are secrets that no archive may have.
var planted = map[string]string{
	"key":      "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00",
	"token":    "planted-bearer-token",
	"password": "planted-password",
	"keyData":  "cGxhbnRlZC1wcml2YXRlLWtleQ==",
	"variable": "planted-variable",
	"argument": "planted-argument",
	"comment":  "PlantedPlantedPlantedPlantedPlanted1",
}

// plantNode writes the files of a node's configuration with secrets in them, and returns the configuration's name.
func plantNode(t *testing.T, socket string) string {
	t.Helper()
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := file("key", planted["key"]+"\n")
	token := file("token", planted["token"]+"-of-a-file\n")
	file("node.kubeconfig", fmt.Sprintf(`{kind: Config, apiVersion: v1, current-context: c, clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: %s, tokenFile: %s, username: me, password: %s, client-key-data: %s}}]}`,
		planted["token"], token, planted["password"], planted["keyData"]))
	t.Setenv("NODE_SECRET", planted["variable"])
	return file("node-config.yaml", fmt.Sprintf(`# %s
kind: NodeConfig
apiVersion: v1
nodeName: node-1
masterKubeConfig: node.kubeconfig
proxyArguments:
  cluster-cidr: [10.128.0.0/14]
  egress-snat-key-file: [%s]
  egress-snat-socket: [%s]
  metrics-bind-address: ["127.0.0.1:1"]
`, planted["comment"], key, socket))
}

// collect runs 'openshift egress collect' and returns the archive's files.
func collect(t *testing.T, args ...string) (files map[string]string, stderr string) {
	t.Helper()
	folder := t.TempDir()
	stdout, stderr, err := openshift(t, append([]string{"egress", "collect", "--directory=" + folder}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(stdout)
	found, _ := filepath.Glob(filepath.Join(folder, "*"))
	if len(found) != 1 || found[0] != path || !regexp.MustCompile(`/origin-node-node-1-\d{8}T\d{6}Z\.tar\.gz$`).MatchString(path) {
		t.Fatalf("writes %v, says %q; want one archive of node-1", found, path)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v: mode %v, want 0600", err, info.Mode())
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for archive := tar.NewReader(unpacked); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, stderr
		}
		content, readErr := io.ReadAll(archive)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(header.Name)] = string(content)
	}
}

func TestCollect_HasNoSecrets(t *testing.T) {
	s := wholeCluster()
	s.SteeringProblems = []string{"the key is " + planted["key"] + ", the token " + planted["token"] + "-of-a-file, --token " + planted["argument"]}
	config := plantNode(t, serveNode(t, &fakeNode{snapshot: s, differences: map[string][]string{"IPv4": nil}}))
	files, stderr := collect(t, "--config="+config)
	for name, content := range files {
		for what, secret := range planted {
			if strings.Contains(content, secret) {
				t.Errorf("%s has the %s", name, what)
			}
		}
	}
	for what, secret := range planted {
		if strings.Contains(stderr, secret) {
			t.Errorf("standard error has the %s", what)
		}
	}
	for name, want := range map[string]string{
		"status.json": "the key is (removed), the token (removed), --token (removed)", "list.txt": "10.128.0.11", "refused.txt": "OwnedByOtherNamespace",
		"verify.txt": "IPv4: in agreement", "node-config.yaml": "cluster-cidr: [10.128.0.0/14]", "kubeconfig.yaml": "https://127.0.0.1:1",
		"environment.txt": "NODE_SECRET=(removed)", "versions.txt": "kubernetes ", "conntrack.txt": "/proc/net/stat/nf_conntrack",
		// Neither an API server nor metrics are there, and this node does not tell of flows.
		"errors.txt": "leases.json: ",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s is %q, want %q in it", name, files[name], want)
		}
	}
	for _, name := range []string{"leases.json", "metrics.txt", "usage.txt"} {
		if !strings.Contains(files["errors.txt"], "\n"+name+": ") && !strings.HasPrefix(files["errors.txt"], name+": ") || !strings.Contains(stderr, "not collected, or not all of it: "+name+": ") {
			t.Errorf("the failure of %s is not told; errors.txt:\n%s\nstandard error:\n%s", name, files["errors.txt"], stderr)
		}
	}
}

// TestCollect_MetricsAddress is where kube-proxy serves metrics with the same arguments.
func TestCollect_MetricsAddress(t *testing.T) {
	for arguments, want := range map[string]string{
		``:                                  "127.0.0.1:10249",
		`metrics-bind-address: ["0.0.0.0"]`: "0.0.0.0:10249",
		`metrics-bind-address: ["::"]`:      "[::]:10249",
		`metrics-bind-address: ["192.0.2.1"], metrics-port: ["999"]`:     "192.0.2.1:999",
		`metrics-bind-address: ["192.0.2.1:1"], metrics_port: ["0x3e7"]`: "192.0.2.1:1",
		`metrics-port: ["999"]`:                                  "127.0.0.1:10249",
		`metrics-bind-address: ["0.0.0.0"], metrics-port: ["0"]`: "",
		`metrics-bind-address: [""]`:                             "127.0.0.1:10249",
	} {
		config, err := nodeconfig.Parse("node-config.yaml", []byte("{kind: NodeConfig, apiVersion: v1, proxyArguments: {"+arguments+"}}"))
		if err != nil {
			t.Fatal(err)
		}
		o := collectOptions{node: config}
		if got, err := o.metricsAddress(); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", arguments, got, err, want)
		}
	}
}

// TestCollect_KernelBeforeItIsRepaired: 'verify' has the node repair what it finds, so the kernel is read before.
func TestCollect_KernelBeforeItIsRepaired(t *testing.T) {
	var names []string
	for _, part := range (&collectOptions{egressOptions: &egressOptions{}}).parts(false) {
		names = append(names, part.Name)
	}
	verified := slices.Index(names, "verify.txt")
	for _, name := range []string{"iptables.txt", "nftables.txt", "routes.txt"} {
		if i := slices.Index(names, name); i < 0 || i > verified {
			t.Errorf("%s comes after verify.txt: %q", name, names)
		}
	}
}

// TestCollect_WithoutNode: a node that does not run, and a configuration that is not valid, are reasons to collect.
func TestCollect_WithoutNode(t *testing.T) {
	config := plantNode(t, "/absent.sock")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := collect(t, "--config="+config)
	if !strings.Contains(files["errors.txt"], "status.json: nothing listens on /absent.sock") {
		t.Errorf("errors.txt is %q", files["errors.txt"])
	}
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(string(text), "nodeName", "nodename")), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := openshift(t, "egress", "collect", "--directory="+t.TempDir(), "--config="+config)
	if err != nil || stdout == "" || !strings.Contains(stderr, "node-config.yaml: ") || !strings.Contains(stderr, "nodename") {
		t.Errorf("%v: prints %q, %q", err, stdout, stderr)
	}
}
