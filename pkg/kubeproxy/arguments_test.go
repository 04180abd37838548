package kubeproxy

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"

	"github.com/openshift/origin-node/pkg/egress/attach"
	"github.com/openshift/origin-node/pkg/nodeconfig"
)

func parse(t *testing.T, text string) *nodeconfig.Config {
	t.Helper()
	config, err := nodeconfig.Parse(filepath.Join(t.TempDir(), "node-config.yaml"), []byte("kind: NodeConfig\napiVersion: v1\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func set(t *testing.T, text string) *arguments {
	t.Helper()
	a, err := setArguments(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestSetArguments_Order: defaults of a node, then the fields of the NodeConfig, then
// proxyArguments.
func TestSetArguments_Order(t *testing.T) {
	for _, test := range []struct{ name, config, flag, want string }{
		{"default mode", "", "proxy-mode", "iptables"},
		{"default OOM score", "", "oom-score-adj", "0"},
		{"default sync period", "", "iptables-sync-period", "30s"},
		{"default host", "", "bind-address", "0.0.0.0"},
		{"default rate", "", "kube-api-qps", "10"},
		{"default burst", "", "kube-api-burst", "20"},
		{"kube-proxy's own default", "", "iptables-masquerade-bit", "14"},
		{"field: node name", "nodeName: n1", "hostname-override", "n1"},
		{"field: sync period", "iptablesSyncPeriod: 7s", "iptables-sync-period", "7s"},
		{"field: host", "servingInfo: {bindAddress: '192.0.2.1:10250'}", "bind-address", "192.0.2.1"},
		{"field: IPv6 host", "servingInfo: {bindAddress: '[2001:db8::1]:10250'}", "bind-address", "2001:db8::1"},
		{"field: rate", "masterClientConnectionOverrides: {qps: 2.5}", "kube-api-qps", "2.5"},
		{"argument over default", "proxyArguments: {proxy-mode: [nftables]}", "proxy-mode", "nftables"},
		{"argument over field", "nodeName: n1\nproxyArguments: {hostname-override: [n2]}", "hostname-override", "n2"},
		{"argument over field, with an underscore", "nodeName: n1\nproxyArguments: {hostname_override: [n2]}", "hostname-override", "n2"},
		{"the last of several values", "proxyArguments: {iptables-sync-period: [1s, 2s]}", "iptables-sync-period", "2s"},
		{"list", "proxyArguments: {nodeport-addresses: ['192.0.2.0/24', primary]}", "nodeport-addresses", "[192.0.2.0/24,primary]"},
		{"list in one value", "proxyArguments: {nodeport-addresses: ['192.0.2.0/24,primary']}", "nodeport-addresses", "[192.0.2.0/24,primary]"},
		{"map", "proxyArguments: {feature-gates: [AllowServiceExternalIPs=false, KubeProxyNFTablesLocalhostNodePorts=true]}", "feature-gates",
			"AllowServiceExternalIPs=false,KubeProxyNFTablesLocalhostNodePorts=true"},
		{"the first cluster CIDR of a family", "proxyArguments: {cluster-cidr: ['fd01::/48', '10.128.0.0/14,10.200.0.0/16', 'fd02::/48']}", "cluster-cidr", "fd01::/48,10.128.0.0/14"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := set(t, test.config).flags.Lookup(test.flag).Value.String(); got != test.want {
				t.Errorf("--%s is %q, want %q", test.flag, got, test.want)
			}
		})
	}
}

func TestSetArguments_KubeconfigIsRelativeToTheConfiguration(t *testing.T) {
	config := parse(t, "masterKubeConfig: node.kubeconfig")
	a, err := setArguments(config)
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(filepath.Dir(config.File), "node.kubeconfig")
	if got := a.options.Config().ClientConnection.Kubeconfig; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSetArguments_ClusterCIDRs(t *testing.T) {
	a := set(t, "proxyArguments: {cluster-cidr: ['10.128.0.0/14', '10.200.0.1/16,fd01::/48']}")
	want := []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("10.200.0.0/16"), netip.MustParsePrefix("fd01::/48")}
	if diff := cmp.Diff(want, a.clusterCIDRs, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSetArguments_Egress(t *testing.T) {
	unexported := cmp.AllowUnexported(egressFlags{}, steeringFlags{}, poolFlags{}, journalFlags{})
	if diff := cmp.Diff(egressFlags{
		enabled: true, minSyncPeriod: 100 * time.Millisecond, excludeCIDRs: DefaultExclusions, excludeNodes: true,
		protocols: "service", scope: "node", socket: "/run/origin-node/egress.sock", portSecurity: true,
		attaching: attach.Config{Socket: "/run/origin-node/cni.sock", Kubelet: "/var/lib/kubelet/pods-api/pods-api.sock", Lists: "/etc/cni/net.d"},
		steering:  steeringFlags{mode: "auto", transport: "vxlan", fastPath: "steered", markMask: "0x7e", leaseNamespace: "origin-node", metalLBNamespace: "metallb-system", portBlocks: "0", port: 4799, announcePort: 4798},
		pool:      poolFlags{nodes: "node-restriction.kubernetes.io/egress-assignable", port: 7947},
		journal:   journalFlags{size: "64Mi"},
	}, set(t, "").egress, unexported); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	got := set(t, "proxyArguments: {egress-snat: ['false'], egress-snat-min-sync-period: [1s], egress-snat-exclude-cidrs: ['192.0.2.0/24', '2001:db8::/32,10.0.0.0/8'], "+
		"egress-snat-exclude-nodes: ['false'], egress-snat-allowed-cidrs: ['0.0.0.0/0'], egress-snat-namespace-cidrs: ['a=192.0.2.0/24,b=::/0'], "+
		"egress-snat-allow-node-ips: ['true'], egress-snat-protocols: [all], egress-snat-load-balancer-ips: ['true'], egress-snat-port-security: ['false'], egress-snat-scope: [cluster], egress-snat-audit: ['true'], egress-snat-socket: [''], egress-snat-cni-socket: [''], egress-snat-watch-pods: ['true'], egress-snat-kubelet-socket: [/a], egress-snat-cni-conf-dir: [''], egress-snat-cni-install: [/b], "+
		"egress-snat-steering: [required], egress-snat-steering-transport: [direct], egress-snat-fast-path: [all], egress-snat-steering-port: ['4800'], egress-snat-mark-mask: ['0x3f0000'], egress-snat-lease-namespace: [net], egress-snat-announce-port: ['0'], egress-snat-metallb-namespace: [lb], egress-snat-port-blocks: ['512'], egress-snat-key-file: [/etc/key], egress-snat-journal: [/srv/journal], egress-snat-journal-size: [1Gi]}").egress
	if diff := cmp.Diff(egressFlags{
		minSyncPeriod: time.Second, excludeCIDRs: []string{"192.0.2.0/24", "2001:db8::/32", "10.0.0.0/8"}, allowedCIDRs: []string{"0.0.0.0/0"},
		namespaceCIDRs: []string{"a=192.0.2.0/24", "b=::/0"}, allowNodeIPs: true, protocols: "all", loadBalancerIPs: true, scope: "cluster", audit: true,
		attaching: attach.Config{Kubelet: "/a", WatchPods: true, Install: "/b"},
		steering:  steeringFlags{mode: "required", transport: "direct", fastPath: "all", markMask: "0x3f0000", leaseNamespace: "net", metalLBNamespace: "lb", portBlocks: "512", port: 4800, keyFile: "/etc/key"},
		pool:      poolFlags{nodes: "node-restriction.kubernetes.io/egress-assignable", port: 7947},
		journal:   journalFlags{folder: "/srv/journal", size: "1Gi"},
	}, got, unexported); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSetArguments_EveryFlagOfKubeProxy: each is an argument, and accepts its own default.
func TestSetArguments_EveryFlagOfKubeProxy(t *testing.T) {
	app.NewProxyCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, "test.") {
			return // the testing package's
		}
		value := strings.Trim(f.DefValue, "[]")
		if f.Name == "cluster-cidr" {
			value = "10.128.0.0/14"
		}
		config := parse(t, "proxyArguments:\n  "+f.Name+":\n  - '"+value+"'\n")
		if _, err := setArguments(config); err != nil {
			t.Errorf("--%s: %v", f.Name, err)
		}
	})
}

func TestSetArguments_Errors(t *testing.T) {
	for _, test := range []struct{ name, config, want string }{
		{"unknown", "proxyArguments:\n  proxy-mod: [iptables]", `:4: proxyArguments.proxy-mod: "proxy-mod" is not a valid flag; did you mean "proxy-mode"?`},
		{"unknown and like nothing", "proxyArguments:\n  xyzzy: [a]", `:4: proxyArguments.xyzzy: "xyzzy" is not a valid flag; see 'openshift help proxy-arguments'`},
		{"twice", "proxyArguments:\n  proxy-mode: [iptables]\n  proxy_mode: [iptables]", `:5: proxyArguments.proxy_mode: the same argument as "proxy-mode"`},
		{"bad value, second in the list", "proxyArguments:\n  iptables-sync-period:\n  - 1s\n  - soon", `:6: proxyArguments.iptables-sync-period[1]: `},
		{"bad CIDR", "proxyArguments:\n  cluster-cidr:\n  - 10.128.0.0/33", `:5: proxyArguments.cluster-cidr[0]: "10.128.0.0/33" is not a CIDR; expected`},
		{"IPv4 in IPv6", "proxyArguments:\n  cluster-cidr: ['::ffff:10.0.0.0/104']", `is not a CIDR`},
		{"everything", "proxyArguments:\n  cluster-cidr: ['::/0']", `covers every address`},
		{"no value", "proxyArguments:\n  egress-snat-allowed-cidrs: []", ":4: proxyArguments.egress-snat-allowed-cidrs: it has no value: remove the argument, or give it one; [''] is an empty text"},
		{"null", "proxyArguments:\n  hostname-override:", "proxyArguments.hostname-override: it has no value"},
		{"an end: cleanup", "proxyArguments:\n  cleanup: ['true']", ":4: proxyArguments.cleanup: it would end the node: remove the argument, and use 'openshift start node --cleanup'"},
		{"an end: init-only", "proxyArguments:\n  init_only: ['1']", ":4: proxyArguments.init_only: it would end the node: remove the argument, and use 'openshift start node --init-only'"},
		{"an end: version", "proxyArguments:\n  version: [raw]", ":4: proxyArguments.version: it would end the node: remove the argument, and use 'openshift version'"},
		{"an end: write-config-to", "proxyArguments:\n  write-config-to: [/tmp/x]", ":4: proxyArguments.write-config-to: it would end the node: remove the argument, and use kube-proxy itself"},
		{"several at once", "proxyArguments:\n  aaa: [b]\n  proxy-mod: [c]", "proxyArguments.aaa"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := setArguments(parse(t, test.config))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestNew_JSONLogging(t *testing.T) {
	if _, err := New(parse(t, "proxyArguments: {logging-format: [json]}"), Overrides{Manifests: t.TempDir()}); err != nil {
		t.Error(err)
	}
}

func TestNew_EgressArgumentErrors(t *testing.T) {
	for _, test := range []struct{ argument, value, want string }{
		{"exclude-cidrs", "192.0.2.1", `"192.0.2.1" is not a CIDR; expected`},
		{"exclude-cidrs", "0.0.0.0/0", "covers every address"},
		{"allowed-cidrs", "203.0.113.10", `"203.0.113.10" is not a CIDR; expected`},
		{"namespace-cidrs", "203.0.113.0/24", `invalid value "203.0.113.0/24": expected NAMESPACE=CIDR, or *=CIDR`},
		{"namespace-cidrs", "no_name=203.0.113.0/24", `invalid value "no_name=203.0.113.0/24": expected NAMESPACE=CIDR`},
		{"namespace-cidrs", "shop*=203.0.113.0/24", `invalid value "shop*=203.0.113.0/24": expected NAMESPACE=CIDR`},
		{"namespace-cidrs", "shop=203.0.113.10", `invalid value "shop=203.0.113.10": "203.0.113.10" is not a CIDR; expected`},
		{"namespace-cidrs", "*=", `invalid value "*=": "" is not a CIDR; expected`},
		{"scope", "rack", `invalid value "rack": expected "node" or "cluster"`},
		{"protocols", "icmp", `invalid value "icmp": expected "service" or "all"`},
		{"socket", "egress.sock", "expected the absolute path"},
		{"socket", "/" + strings.Repeat("s", 95), "at most 95 bytes"},
	} {
		_, err := New(parse(t, "proxyArguments:\n  egress-snat-"+test.argument+": ['"+test.value+"']\n"), Overrides{Manifests: t.TempDir()})
		if where := ":4: proxyArguments.egress-snat-" + test.argument + ": "; err == nil || !strings.Contains(err.Error(), where) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s=%s: got %v, want %q and %q in it", test.argument, test.value, err, where, test.want)
		}
	}
}

// TestNew_ErrorsNameTheField: those of kube-proxy do not.
func TestNew_ErrorsNameTheField(t *testing.T) {
	for arguments, want := range map[string]string{
		"config: [/nowhere]":           ":4: proxyArguments.config: open /nowhere",
		"master: ['http://192.0.2.1']": ":4: proxyArguments.master: --manifests=",
		"feature-gates: [ContextualLogging=true]\n  hostname-override: [' ']": ":5: proxyArguments.hostname-override: empty",
	} {
		if _, err := New(parse(t, "proxyArguments:\n  "+arguments), Overrides{Manifests: t.TempDir()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", arguments, err, want)
		}
	}
	_, kubeconfig := proxyFor(t, "https://192.0.2.254", "{}")
	_, err := New(parse(t, "masterKubeConfig: "+kubeconfig+"\nproxyArguments: {master: ['http://[::1']}"), Overrides{})
	if want := ":4: proxyArguments.master: "; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "masterKubeConfig") {
		t.Errorf("got %v, want %q in it", err, want)
	}
}

// TestNew_PathErrors: the same configuration always has the same message, by which a node knows that it was told.
func TestNew_PathErrors(t *testing.T) {
	keys := []string{socketKey, cniSocketKey, kubeletSocketKey, cniConfDirKey, cniInstallKey, journalKey}
	for range 20 { // a random order may be the right one
		_, err := New(parse(t, "proxyArguments: {"+strings.Join(keys, ": [a], ")+": [a]}"), Overrides{Manifests: t.TempDir()})
		var named []string
		for line := range strings.Lines(fmt.Sprint(err)) {
			_, rest, _ := strings.Cut(line, "proxyArguments.")
			key, _, _ := strings.Cut(rest, ": ")
			named = append(named, key)
		}
		if diff := cmp.Diff(keys, named); diff != "" {
			t.Fatalf("fields of errors (-want +got):\n%s", diff)
		}
	}
}

// TestNew_PeriodErrors: the field is one that is in the file.
func TestNew_PeriodErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kube-proxy.yaml")
	text := "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\niptables: {minSyncPeriod: 2m, syncPeriod: 1m}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ config, want string }{
		{"iptablesSyncPeriod: 3h\nproxyArguments: {iptables-min-sync-period: [2h]}", ":4: proxyArguments.iptables-min-sync-period: with a sync period of 3h0m0s, iptables-min-sync-period can be at most 1h0m0s, but it is 2h0m0s"},
		{"iptablesSyncPeriod: 3h\nproxyArguments: {iptables-min-sync-period: [1h]}", ""},
		{"iptablesSyncPeriod: 100ms", ":3: iptablesSyncPeriod: with a sync period of 100ms, iptables-min-sync-period can be at most 100ms, but it is 1s"},
		{"proxyArguments: {iptables-sync-period: [100ms]}", ":3: proxyArguments.iptables-sync-period: with"},
		{"proxyArguments: {proxy-mode: [ipvs], egress-snat: ['false'], ipvs-sync-period: [100ms]}", ":3: proxyArguments.ipvs-sync-period: with a sync period of 100ms, ipvs-min-sync-period"},
		{"iptablesSyncPeriod: 3h\nproxyArguments: {proxy-mode: [ipvs], egress-snat: ['false'], ipvs-sync-period: [3h], ipvs-min-sync-period: [2h]}", ""},
		{"proxyArguments: {iptables-sync-period: [0s]}", "KubeProxyConfiguration.SyncPeriod: Invalid value: \"0s\": must be greater than 0"},
		{"proxyArguments: {config: ['" + file + "']}", ":3: proxyArguments.config: with a sync period of 1m0s"},
		{"iptablesSyncPeriod: 100ms\nproxyArguments: {iptables-min-sync-period: [0s]}", ""},
		{"iptablesSyncPeriod: 100ms\nproxyArguments: {iptables-min-sync-period: [0s], egress-snat-min-sync-period: [100ms]}", ":4: proxyArguments.egress-snat-min-sync-period: invalid value \"100ms\": expected a duration from 0s to 50ms"},
	} {
		p, err := New(parse(t, test.config), Overrides{Manifests: t.TempDir()})
		switch {
		case (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: got %v, want %q alone", test.config, err, test.want)
		case err == nil && p.extension.MinSyncPeriod > p.extension.SyncPeriod/2:
			t.Errorf("%s: two writes are %s apart, more than half of the sync period", test.config, p.extension.MinSyncPeriod)
		}
	}
}

// TestNew_AllErrors: an error of periods hides no other one.
func TestNew_AllErrors(t *testing.T) {
	for _, arguments := range []string{"iptables-min-sync-period: [2h]", "egress-snat-min-sync-period: [2h]"} {
		_, err := New(parse(t, "proxyArguments: {iptables-masquerade-bit: ['99'], kube-api-burst: ['0'], "+arguments+"}"), Overrides{Manifests: t.TempDir()})
		key, _, _ := strings.Cut(arguments, ":")
		for _, want := range []string{"proxyArguments." + key + ": ", "MasqueradeBit: Invalid value: 99", "proxyArguments.kube-api-burst: invalid value \"0\""} {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "MinSyncPeriod") {
				t.Errorf("%s: got %v, want %q in it, and kube-proxy's words about it not", arguments, err, want)
			}
		}
	}
}

// TestNew_InstallNeedsLabels: with the plugin pods of unknown labels do not start.
func TestNew_InstallNeedsLabels(t *testing.T) {
	const install = "egress-snat-cni-install: [/opt/cni/bin], egress-snat-kubelet-socket: ['']"
	for arguments, want := range map[string]string{
		install: "needs egress-snat-kubelet-socket or egress-snat-watch-pods",
		install + ", egress-snat-watch-pods: ['true']": "",
	} {
		_, err := New(parse(t, "proxyArguments: {"+arguments+"}"), Overrides{Manifests: t.TempDir()})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arguments, err, want)
		}
	}
}

func TestNew_PolicyArguments(t *testing.T) {
	p, err := New(parse(t, "proxyArguments: {egress-snat-allowed-cidrs: ['0.0.0.0/0'], egress-snat-namespace-cidrs: ['a=192.0.2.0/24', 'a=2001:db8::/32', 'b=198.51.100.0/24,*=203.0.113.0/24']}"), Overrides{Manifests: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.extension.AllowedCIDRs, p.extension.NamespaceCIDRs); got != "[0.0.0.0/0] map[*:[203.0.113.0/24] a:[192.0.2.0/24 2001:db8::/32] b:[198.51.100.0/24]]" {
		t.Errorf("got %s", got)
	}
	if p, err = New(parse(t, ""), Overrides{Manifests: t.TempDir()}); err != nil || p.extension.AllowedCIDRs != nil {
		t.Errorf("without arguments %v is allowed, %v; want nil, which is any", p.extension.AllowedCIDRs, err)
	}
}

func TestNew_ModeFromKubeProxysOwnFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kube-proxy.yaml")
	text := "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\nclusterCIDR: 10.128.0.0/14\nclientConnection: {kubeconfig: ''}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := New(parse(t, "proxyArguments: {config: ["+file+"]}"), Overrides{Manifests: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if p.options.Config().Mode != proxyconfig.ProxyModeIPTables || len(p.extension.ClusterCIDRs) != 1 {
		t.Errorf("got mode %s, cluster CIDRs %v", p.options.Config().Mode, p.extension.ClusterCIDRs)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, "10.128.0.0/14", "0.0.0.0/0", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = New(parse(t, "proxyArguments: {config: ["+file+"]}"), Overrides{Manifests: t.TempDir()})
	if want := `proxyArguments.config.clusterCIDR: "0.0.0.0/0" covers every address`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("all addresses: %v, want %s", err, want)
	}
}
