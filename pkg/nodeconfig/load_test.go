package nodeconfig

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	legacyconfigv1 "github.com/openshift/api/legacyconfig/v1"
)

var update = flag.Bool("update", false, "write the golden files")

// header makes the fields of a test complete; the test's own begin on line 3.
const header = "apiVersion: v1\nkind: NodeConfig\n"

func mustParse(t *testing.T, data string) *Config {
	t.Helper()
	c, err := Parse("/etc/origin/node/node-config.yaml", []byte(data))
	if err != nil {
		t.Fatalf("Parse(%q) failed: %v", data, err)
	}
	return c
}

// TestParse_Origin loads a file that "oc adm create-node-config" wrote.
func TestParse_Origin(t *testing.T) {
	data, err := os.ReadFile("testdata/node-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := mustParse(t, string(data))
	got, err := yaml.Marshal(c.NodeConfig)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/node-config.golden"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the loaded config differs from %s (-want +got):\n%s", golden, diff)
	}
}

func TestParse_Defaults(t *testing.T) {
	want := legacyconfigv1.NodeConfig{
		ServingInfo:        legacyconfigv1.ServingInfo{BindAddress: "0.0.0.0:10250", BindNetwork: "tcp4"},
		IPTablesSyncPeriod: "30s",
		NetworkConfig:      legacyconfigv1.NodeNetworkConfig{MTU: 1450},
		EnableUnidling:     new(true),
		MasterClientConnectionOverrides: &legacyconfigv1.ClientConnectionOverrides{
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
			ContentType:        "application/vnd.kubernetes.protobuf",
			QPS:                10,
			Burst:              20,
		},
	}
	want.Kind, want.APIVersion = "NodeConfig", "v1"
	for name, got := range map[string]*Config{"Parse": mustParse(t, header), "Default": Default()} {
		if diff := cmp.Diff(want, got.NodeConfig); diff != "" {
			t.Errorf("%s: defaults differ (-want +got):\n%s", name, diff)
		}
	}
}

func TestParse_Values(t *testing.T) {
	for _, tc := range []struct {
		name string
		data string
		want func(*legacyconfigv1.NodeConfig)
	}{{
		name: "unquoted arguments are literal",
		data: "proxyArguments:\n  v: [4, 0x10, 1_000, 1e3, true, Yes, 2001-01-01, 10.0, '5', <<, 1:30]\n",
		want: func(n *legacyconfigv1.NodeConfig) {
			n.ProxyArguments = legacyconfigv1.ExtendedArguments{
				"v": {"4", "0x10", "1_000", "1e3", "true", "Yes", "2001-01-01", "10.0", "5", "<<", "1:30"},
			}
		},
	}, {
		name: "null is absent, a null argument has no values",
		data: "nodeName: null\nservingInfo:\npodManifestConfig: ~\nenableUnidling: null\ndnsNameservers: []\n" +
			"kubeletArguments: {}\nproxyArguments: {config: null, kubeconfig: []}\n",
		want: func(n *legacyconfigv1.NodeConfig) {
			n.ProxyArguments = legacyconfigv1.ExtendedArguments{"config": nil, "kubeconfig": nil}
		},
	}, {
		name: "numbers and booleans",
		data: "networkConfig: {mtu: 0x5dc}\nenableUnidling: no\nimageConfig: {latest: Yes}\nallowDisabledDocker: TRUE\n" +
			"masterClientConnectionOverrides: {qps: -1.5}\nvolumeConfig: {localQuota: {perFSGroup: 1024}}\n",
		want: func(n *legacyconfigv1.NodeConfig) {
			n.NetworkConfig.MTU = 1500
			n.EnableUnidling = new(false)
			n.ImageConfig.Latest = true
			n.AllowDisabledDocker = true
			n.MasterClientConnectionOverrides.QPS = -1.5
			n.VolumeConfig.LocalQuota.PerFSGroup = quantity("1Ki")
		},
	}, {
		name: "aliases",
		data: "proxyArguments:\n  cluster-cidr: &cidrs [&one 10.0.0.0/8]\n  nodeport-addresses: *cidrs\n  other: [*one]\n",
		want: func(n *legacyconfigv1.NodeConfig) {
			n.ProxyArguments = legacyconfigv1.ExtendedArguments{
				"cluster-cidr":       {"10.0.0.0/8"},
				"nodeport-addresses": {"10.0.0.0/8"},
				"other":              {"10.0.0.0/8"},
			}
		},
	}, {
		name: "file names",
		data: "masterKubeConfig: ../node.kubeconfig\nvolumeDirectory: /volumes\nservingInfo: {clientCA: ca.crt}\n" +
			"proxyArguments: {config: [proxy.yaml], kubeconfig: ['', kube/config], mode: [iptables]}\n" +
			"kubeletArguments: {cert-dir: [certs], tls-cert-file: [crt], v: ['2']}\n",
		want: func(n *legacyconfigv1.NodeConfig) {
			n.MasterKubeConfig = "/etc/origin/node.kubeconfig"
			n.VolumeDirectory = "/volumes"
			n.ServingInfo.ClientCA = "/etc/origin/node/ca.crt"
			n.ProxyArguments = legacyconfigv1.ExtendedArguments{
				"config":     {"/etc/origin/node/proxy.yaml"},
				"kubeconfig": {"", "/etc/origin/node/kube/config"},
				"mode":       {"iptables"},
			}
			n.KubeletArguments = legacyconfigv1.ExtendedArguments{
				"cert-dir":      {"/etc/origin/node/certs"},
				"tls-cert-file": {"/etc/origin/node/crt"},
				"v":             {"2"},
			}
		},
	}, {
		name: "deprecated networkPluginName",
		data: "networkPluginName: cni\n",
		want: func(n *legacyconfigv1.NodeConfig) {
			n.DeprecatedNetworkPluginName = "cni"
			n.NetworkConfig.NetworkPluginName = "cni"
		},
	}, {
		name: "addresses",
		data: "nodeIP: 2001:db8::1\ndnsIP: 0.0.0.0\ndnsBindAddress: ':53'\ndnsNameservers: [192.0.2.1, '192.0.2.1:53', '[2001:db8::1]:53']\n" +
			"servingInfo: {bindAddress: '[::]:10250', bindNetwork: tcp6}\n",
		want: func(n *legacyconfigv1.NodeConfig) {
			n.NodeIP, n.DNSIP, n.DNSBindAddress = "2001:db8::1", "0.0.0.0", ":53"
			n.DNSNameservers = []string{"192.0.2.1", "192.0.2.1:53", "[2001:db8::1]:53"}
			n.ServingInfo.BindAddress, n.ServingInfo.BindNetwork = "[::]:10250", "tcp6"
		},
	}} {
		t.Run(tc.name, func(t *testing.T) {
			want := mustParse(t, header).NodeConfig
			tc.want(&want)
			got := mustParse(t, header+tc.data).NodeConfig
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Parse(%q) differs (-want +got):\n%s", tc.data, diff)
			}
		})
	}
}

func TestParse_JSON(t *testing.T) {
	c := mustParse(t, `{"kind":"NodeConfig","apiVersion":"v1","nodeName":"a\u002fb","proxyArguments":{"v":["4"]}}`)
	if got := c.NodeConfig.NodeName; got != "a/b" {
		t.Errorf("nodeName is %q", got)
	}
}

// TestParse_Errors compares whole messages: a user has nothing else to find the error by.
func TestParse_Errors(t *testing.T) {
	for _, tc := range []struct {
		name string
		data string
		want []string // without "node-config.yaml"
	}{{
		name: "empty",
		data: " \n",
		want: []string{`: the file is empty; expected a NodeConfig`},
	}, {
		name: "comments only",
		data: "# nothing\n",
		want: []string{`:1: the file has no content; expected a NodeConfig`},
	}, {
		name: "null document",
		data: "---\n~\n",
		want: []string{`:1: the file has no content; expected a NodeConfig`},
	}, {
		name: "root is a list",
		data: "\n- a\n",
		want: []string{`:2: found a list; expected the fields of a NodeConfig`},
	}, {
		name: "root is a string",
		data: "#!/bin/sh",
		want: []string{`:1: the file has no content; expected a NodeConfig`},
	}, {
		name: "two documents",
		data: header + "---\n" + header,
		want: []string{`:3: found a second YAML document; expected one NodeConfig`},
	}, {
		name: "missing kind and apiVersion",
		data: "# a comment\nnodeName: a\n",
		want: []string{
			`:2: apiVersion: missing; expected "v1"`,
			`:2: kind: missing; expected "NodeConfig"`,
		},
	}, {
		name: "another kind",
		data: "apiVersion: v1\nkind: MasterConfig\noauthConfig: {}\n",
		want: []string{`:2: kind: found "MasterConfig"; expected "NodeConfig"`},
	}, {
		name: "another kind, twice",
		data: "apiVersion: v1\nkind: MasterConfig\nkind: NodeConfig\n",
		want: []string{`:2: kind: found "MasterConfig"; expected "NodeConfig"`},
	}, {
		name: "another version",
		data: "apiVersion: v2\nkind: NodeConfig\nnodeNam: a\n",
		want: []string{
			`:1: apiVersion: found "v2"; expected "v1"`,
			`:3: nodeNam: unknown field; did you mean "nodeName"?`,
		},
	}, {
		name: "kind is a list",
		data: "apiVersion: v1\nkind: [NodeConfig]\n",
		want: []string{`:2: kind: found a list; expected a string`},
	}, {
		name: "unknown fields",
		data: header + "NodeName: a\nmasterKubeconfg: b\nfoo: c\nservingInfo:\n  certfile: d\nnetworkConfig: {mut: 1}\n",
		want: []string{
			`:3: NodeName: unknown field; did you mean "nodeName"?`,
			`:4: masterKubeconfg: unknown field; did you mean "masterKubeConfig"?`,
			`:5: foo: unknown field; remove it or correct its name`,
			`:7: servingInfo.certfile: unknown field; did you mean "certFile"?`,
			`:8: networkConfig.mut: unknown field; did you mean "mtu"?`,
		},
	}, {
		name: "duplicates",
		data: header + "nodeName: a\nnodeName: 5\nproxyArguments:\n  v: [a]\n  v: [b]\nservingInfo: {keyFile: a, keyFile: a}\nfoo: 1\nfoo: 2\n",
		want: []string{
			`:4: nodeName: duplicate field; the first is on line 3`,
			`:7: proxyArguments.v: duplicate field; the first is on line 6`,
			`:8: servingInfo.keyFile: duplicate field; the first is on line 8`,
			`:9: foo: unknown field; remove it or correct its name`,
			`:10: foo: duplicate field; the first is on line 9`,
		},
	}, {
		name: "field names",
		data: header + "? [a]\n: b\n'': c\n5: d\n",
		want: []string{
			`:3: found a list in place of a field's name`,
			`:5: found a field without a name; remove it or name it`,
			`:6: 5: unknown field; remove it or correct its name`,
		},
	}, {
		name: "wrong types",
		data: header + "nodeName: 5\nnodeIP: true\nmasterKubeConfig: {a: b}\nservingInfo: a\nenableUnidling: 'true'\nallowDisabledDocker: 1\n" +
			"dnsNameservers: a\nkubeletArguments: [a]\nvolumeConfig: {localQuota: {perFSGroup: lots}}\nimageConfig: {latest: [true]}\n",
		want: []string{
			`:3: nodeName: found the integer 5; expected a string, as in "5"`,
			`:4: nodeIP: found the boolean true; expected a string, as in "true"`,
			`:5: masterKubeConfig: found a mapping; expected a string`,
			`:6: servingInfo: found the string "a"; expected a mapping of fields`,
			`:7: enableUnidling: found the string "true"; expected true or false`,
			`:8: allowDisabledDocker: found the integer 1; expected true or false`,
			`:9: dnsNameservers: found the string "a"; expected a list of strings`,
			`:10: kubeletArguments: found a list; expected a mapping of arguments to lists of strings`,
			`:11: volumeConfig.localQuota.perFSGroup: found the string "lots"; expected a quantity such as "512Mi"`,
			`:12: imageConfig.latest: found a list; expected true or false`,
		},
	}, {
		name: "numbers",
		data: header + "networkConfig: {mtu: -1}\nauthConfig:\n  authenticationCacheSize: -1\n  authorizationCacheSize: 1.5\n" +
			"podManifestConfig: {fileCheckIntervalSeconds: -2}\nmasterClientConnectionOverrides:\n  burst: -3\n  qps: .nan\n" +
			"volumeConfig: {localQuota: {perFSGroup: -5Mi}}\n",
		want: []string{
			`:3: networkConfig.mtu: found the integer -1; expected an integer from 0 to 4294967295`,
			`:5: authConfig.authenticationCacheSize: -1 is negative; expected zero or more`,
			`:6: authConfig.authorizationCacheSize: found the number 1.5; expected an integer`,
			`:7: podManifestConfig.fileCheckIntervalSeconds: -2 is negative; expected zero or more`,
			`:9: masterClientConnectionOverrides.burst: -3 is negative; expected zero or more`,
			`:10: masterClientConnectionOverrides.qps: found the number .nan; expected a finite number`,
			`:11: volumeConfig.localQuota.perFSGroup: -5Mi is negative; expected zero or more`,
		},
	}, {
		name: "out of range",
		data: header + "masterClientConnectionOverrides: {burst: 3000000000, qps: 1e39}\nvolumeConfig: {localQuota: {perFSGroup: 1e-2147483647}}\n",
		want: []string{
			`:3: masterClientConnectionOverrides.burst: found the integer 3000000000; expected an integer from -2147483648 to 2147483647`,
			`:3: masterClientConnectionOverrides.qps: found the number 1e39; expected a finite number`,
			`:4: volumeConfig.localQuota.perFSGroup: found the number 1e-2147483647; expected a quantity such as "512Mi"`,
		},
	}, {
		name: "arguments",
		data: header + "proxyArguments:\n  cluster-cidr: 10.0.0.0/8\n  v: 4\n  mode: {a: b}\n  x:\n  - [a]\n  - ~\n  -\n  - !secret a\n" +
			"  '': [a]\n  " + strings.Repeat("y", 129) + ": [a]\n",
		want: []string{
			`:4: proxyArguments.cluster-cidr: found the string "10.0.0.0/8"; expected a list of strings, as in ["10.0.0.0/8"]`,
			`:5: proxyArguments.v: found the integer 4; expected a list of strings, as in ["4"]`,
			`:6: proxyArguments.mode: found a mapping; expected a list of strings`,
			`:8: proxyArguments.x[0]: found a list; expected a string`,
			`:9: proxyArguments.x[1]: found null; expected a string`,
			`:10: proxyArguments.x[2]: found null; expected a string`,
			`:11: proxyArguments.x[3]: found a value with the tag "!secret"; expected a string`,
			`:12: proxyArguments: found a field without a name; remove it or name it`,
			`:13: proxyArguments.` + strings.Repeat("y", 64) + `…: the argument's name has 129 bytes; expected at most 128`,
		},
	}, {
		name: "elements of lists",
		data: header + "dnsNameservers: [1, ~]\nservingInfo:\n  namedCertificates:\n  - certFile: a\n    keyfile: b\n  - a\n  - ~\n",
		want: []string{
			`:3: dnsNameservers[0]: found the integer 1; expected a string, as in "1"`,
			`:3: dnsNameservers[1]: found null; remove it from the list`,
			`:7: servingInfo.namedCertificates[0].keyfile: unknown field; did you mean "keyFile"?`,
			`:8: servingInfo.namedCertificates[1]: found the string "a"; expected a mapping of fields`,
			`:9: servingInfo.namedCertificates[2]: found null; remove it from the list`,
		},
	}, {
		name: "durations",
		data: header + "iptablesSyncPeriod: 0s\nauthConfig:\n  authenticationCacheTTL: 5\n  authorizationCacheTTL: -1s\n",
		want: []string{
			`:3: iptablesSyncPeriod: "0s" is not a duration above zero; expected one such as "30s" or "1m30s"`,
			`:5: authConfig.authenticationCacheTTL: found the integer 5; expected a string, as in "5"`,
			`:6: authConfig.authorizationCacheTTL: "-1s" is not a duration of zero or more; expected one such as "5m", or "0s" for no cache`,
		},
	}, {
		name: "addresses",
		data: header + "nodeIP: '10.1'\ndnsIP: fe80::1%eth0\ndnsNameservers:\n- 192.0.2.1\n- ns.example.com:53\ndnsBindAddress: 127.0.0.1\n" +
			"servingInfo:\n  bindAddress: localhost:10250\n  bindNetwork: udp\n",
		want: []string{
			`:3: nodeIP: "10.1" is not an IP address; expected one such as "10.0.0.1" or "2001:db8::1"`,
			`:4: dnsIP: "fe80::1%eth0" is not an IP address; expected one such as "10.0.0.1" or "2001:db8::1"`,
			`:7: dnsNameservers[1]: "ns.example.com:53" is not an IP address with or without a port; expected one such as "10.0.0.1:53" or "10.0.0.1"`,
			`:8: dnsBindAddress: "127.0.0.1" is not a host and a port; expected them as in "127.0.0.1:53"`,
			`:10: servingInfo.bindAddress: "localhost:10250" is not an IP address and a port; expected them as in "0.0.0.0:10250" or "[::]:10250"`,
			`:11: servingInfo.bindNetwork: "udp" is not a network; expected "tcp", "tcp4" or "tcp6"`,
		},
	}, {
		name: "ports",
		data: header + "dnsBindAddress: a:0\nservingInfo: {bindAddress: '0.0.0.0:65536'}\n",
		want: []string{
			`:3: dnsBindAddress: "a:0" is not a host and a port; expected them as in "127.0.0.1:53"`,
			`:4: servingInfo.bindAddress: "0.0.0.0:65536" is not an IP address and a port; expected them as in "0.0.0.0:10250" or "[::]:10250"`,
		},
	}, {
		name: "contradicting network plugins",
		data: header + "networkPluginName: a\nnetworkConfig:\n  networkPluginName: b\n",
		want: []string{`:3: networkPluginName: "a" contradicts networkConfig.networkPluginName, which is "b"; remove networkPluginName, it is deprecated`},
	}, {
		name: "characters that do not print",
		data: header + "nodeName: \"a\\0\"\nproxyArguments:\n  v: [\"a\u00a0b\"]\n  \"x\\u200b\": [a]\n",
		want: []string{
			`:3: nodeName: found the character U+0000 in "a\x00"; expected printable characters only`,
			`:5: proxyArguments.v[0]: found the character U+00A0 in "a\u00a0b"; expected printable characters only`,
			`:6: "proxyArguments.x\u200b": found the character U+200B in "x\u200b"; expected printable characters only`,
		},
	}, {
		name: "long values are shortened",
		data: header + "nodeIP: " + strings.Repeat("1", 100) + ".0\n",
		want: []string{`:3: nodeIP: found the number ` + strings.Repeat("1", 64) + `…; expected a string, as in "` + strings.Repeat("1", 64) + `…"`},
	}, {
		name: "merge keys",
		data: header + "kubeletArguments: &a {v: ['1']}\nproxyArguments:\n  <<: *a\n<<: {}\n",
		want: []string{
			`:5: proxyArguments.<<: merge keys are not supported; write the fields out`,
			`:6: <<: merge keys are not supported; write the fields out`,
		},
	}, {
		name: "alias of the wrong type",
		data: header + "nodeName: &a 5\nmasterKubeConfig: *a\nservingInfo: &b {namedCertificates: [*b]}\n",
		want: []string{
			`:3: nodeName: found the integer 5; expected a string, as in "5"`,
			`:4: masterKubeConfig: found the integer 5; expected a string, as in "5"`,
			`:5: servingInfo.namedCertificates[0].namedCertificates: unknown field; remove it or correct its name`,
		},
	}, {
		name: "unknown anchor",
		data: "# a\n" + header + "nodeName: *a\n",
		want: []string{`:4: not valid YAML: unknown anchor 'a' referenced`},
	}, {
		name: "bad indentation",
		data: header + "servingInfo:\n  certFile: a\n  keyFile: b\n clientCA: c\nnodeName: d\n",
		want: []string{`:6: not valid YAML: did not find expected key`},
	}, {
		name: "tab",
		data: header + "servingInfo:\n\tcertFile: a\n",
		want: []string{`:4: not valid YAML: found character that cannot start any token`},
	}, {
		name: "control character",
		data: header + "nodeName: \x01\n",
		want: []string{`:3: not valid YAML: control characters are not allowed`},
	}, {
		name: "not UTF-8",
		data: header + "nodeName: \xff\n",
		want: []string{`:3: the byte 0xff is not UTF-8 text; is it a node config?`},
	}, {
		name: "syntax error in a second document",
		data: header + "---\na: [\n",
		want: []string{`:4: not valid YAML: did not find expected node content`},
	}} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("node-config.yaml", []byte(tc.data))
			if err == nil {
				t.Fatalf("Parse(%q) succeeded", tc.data)
			}
			want := ""
			for i, line := range tc.want {
				if i > 0 {
					want += "\n"
				}
				want += "node-config.yaml" + line
			}
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("Parse(%q) fails differently (-want +got):\n%s", tc.data, diff)
			}
			if !errors.As(err, new(*Error)) {
				t.Errorf("%T does not hold an *Error", err)
			}
		})
	}
}

func TestParse_Limits(t *testing.T) {
	list := strings.Repeat("a,", 1000)
	uses := strings.Repeat("  use%d: *a\n", 1000)
	names := make([]any, 1000)
	for i := range names {
		names[i] = i
	}
	for _, tc := range []struct {
		name string
		data string
		want string
	}{{
		name: "bytes",
		data: header + strings.Repeat("# comment\n", maxBytes/10),
		want: `node-config.yaml:104857: the file is larger than 1048576 bytes; is it a node config?`,
	}, {
		name: "aliases",
		data: header + "kubeletArguments:\n  v: &a [" + list + "]\nproxyArguments:\n" + fmt.Sprintf(uses, names...),
		want: `node-config.yaml:4: proxyArguments.use98[896]: the file holds more than 100000 values (those of an alias count at each use); is it a node config?`,
	}, {
		name: "depth",
		data: strings.Repeat("[", maxBytes),
		want: `node-config.yaml:1: not valid YAML: exceeded max depth of 10000`,
	}} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("node-config.yaml", []byte(tc.data))
			if diff := cmp.Diff(tc.want, fmt.Sprint(err)); diff != "" {
				t.Errorf("Parse fails differently (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoad_Link(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	file := filepath.Join(other, "real.yaml")
	if err := os.WriteFile(file, []byte(header+"masterKubeConfig: node.kubeconfig\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "node-config.yaml")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	c, err := Load("node-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// The folder of the name as given, not of what the link points to.
	want := []string{filepath.Join(folder, "node-config.yaml"), filepath.Join(folder, "node.kubeconfig")}
	if diff := cmp.Diff(want, c.Files()); diff != "" {
		t.Errorf("Files differ (-want +got):\n%s", diff)
	}
	if c.File != "node-config.yaml" {
		t.Errorf("File is %q", c.File)
	}
}

func TestLoad_Errors(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := Load("absent.yaml")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent file gives %v", err)
	}
	const want = "absent.yaml: cannot read the file: no such file or directory"
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("message differs (-want +got):\n%s", diff)
	}
	if _, err := Load("."); !errors.As(err, new(*Error)) {
		t.Errorf("a folder gives %v", err)
	}
}

func TestConfig_Last(t *testing.T) {
	c := &Config{}
	c.NodeConfig.ProxyArguments = map[string][]string{"a": {"1", "2"}, "b": {}}
	for argument, want := range map[string]string{"a": "2", "b": "other", "c": "other"} {
		if got := c.Last(argument, "other"); got != want {
			t.Errorf("%s: %q", argument, got)
		}
	}
}
