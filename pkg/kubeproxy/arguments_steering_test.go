package kubeproxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

func TestParseMarkMask_Values(t *testing.T) {
	for text, want := range map[string]uint32{"0x7e": 0x7e, "0x3f0000": 0x3f0000, "63": 63, "0xfc000000": 0xfc000000} {
		if got, err := parseMarkMask(text); err != nil || got != want {
			t.Errorf("%s: got %#x, %v; want %#x", text, got, err, want)
		}
	}
	for text, words := range map[string]string{
		"":            "expected a mask",
		"mask":        "expected a mask",
		"0x100000000": "expected a mask",
		"0":           "at least 6 bits",
		"0x3e":        "at least 6 bits", // five
		"0x1f7":       "side by side",
		"0x7e00":      "kube-proxy's", // with 0x4000
	} {
		if _, err := parseMarkMask(text); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: got %v, want an error with %q", text, err, words)
		}
	}
}

func TestTakeSteering_Modes(t *testing.T) {
	const server = "masterKubeConfig: node.kubeconfig\n"
	for config, want := range map[string]holders.Mode{
		"":                                        holders.Auto,
		"egress-snat-steering: [required]":        holders.Required,
		"egress-snat-steering: [off]":             holders.Off, // false in YAML
		"egress-snat-steering: ['off']":           holders.Off,
		"egress-snat-steering: [auto, required]":  holders.Required,
		"egress-snat-lease-namespace: [net-node]": holders.Auto,
		"iptables-masquerade-bit: ['3'], egress-snat-steering: ['off']": holders.Off,
	} {
		p, err := takeSteeringOf(t, server+"proxyArguments: {"+config+"}", Overrides{})
		if err != nil || p.extension.Steering.Mode != want {
			t.Errorf("%s: got %q, %v; want %q", config, p.extension.Steering.Mode, err, want)
		}
	}
	for config, words := range map[string]string{
		"egress-snat-steering: [always]":             `proxyArguments.egress-snat-steering: invalid value "always"`,
		"egress-snat-fast-path: [most]":              `proxyArguments.egress-snat-fast-path: invalid value "most": expected "steered", "all" or "off"`,
		"egress-snat-steering-transport: [ipip]":     `proxyArguments.egress-snat-steering-transport: invalid value "ipip": expected "vxlan" or "direct"`,
		"egress-snat-steering-port: ['0']":           "proxyArguments.egress-snat-steering-port: invalid value 0",
		"egress-snat-announce-port: ['4799']":        "proxyArguments.egress-snat-announce-port: invalid value 4799: the tunnel has this port",
		"egress-snat-key-file: [egress.key]":         "proxyArguments.egress-snat-key-file: invalid value \"egress.key\": expected the absolute path",
		"egress-snat-key-file: [/nowhere/key]":       "proxyArguments.egress-snat-key-file: open /nowhere/key: no such file",
		"egress-snat-key-file: [/dev/null]":          "proxyArguments.egress-snat-key-file: /dev/null: the file has no key",
		"egress-snat-mark-mask: ['0x4000']":          "proxyArguments.egress-snat-mark-mask: invalid value",
		"iptables-masquerade-bit: ['3']":             `proxyArguments.egress-snat-mark-mask: invalid value "0x7e": kube-proxy masquerades packets with the mark 0x8`,
		"egress-snat-lease-namespace: [Not_a_one]":   "proxyArguments.egress-snat-lease-namespace: invalid value",
		"egress-snat-metallb-namespace: [Not_a_one]": "proxyArguments.egress-snat-metallb-namespace: invalid value",
	} {
		if _, err := takeSteeringOf(t, server+"proxyArguments: {"+config+"}", Overrides{}); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want an error with %q", config, err, words)
		}
	}
}

func TestTakeSteering_PortBlocks(t *testing.T) {
	const server = "masterKubeConfig: node.kubeconfig\n"
	for config, want := range map[string]int{
		"": 0, "egress-snat-port-blocks: ['0']": 0, "egress-snat-port-blocks: ['512']": 512, "egress-snat-port-blocks: ['0'], egress-snat-steering: ['off']": 0,
	} {
		if p, err := takeSteeringOf(t, server+"proxyArguments: {"+config+"}", Overrides{}); err != nil || p.extension.PortBlocks != want {
			t.Errorf("%s: got %d, %v; want %d", config, p.extension.PortBlocks, err, want)
		}
	}
	for config, words := range map[string]string{
		"egress-snat-port-blocks: ['500']":                                "proxyArguments.egress-snat-port-blocks: \"500\" is no number of ports of a block: expected a power of two from 64 to 8192, or 0",
		"egress-snat-port-blocks: ['32']":                                 `"32" is no number`,
		"egress-snat-port-blocks: [many]":                                 `"many" is no number`,
		"egress-snat-port-blocks: ['512'], egress-snat-steering: ['off']": `proxyArguments.egress-snat-port-blocks: port blocks work only with an API server and with steering: set egress-snat-port-blocks to 0`,
	} {
		if _, err := takeSteeringOf(t, server+"proxyArguments: {"+config+"}", Overrides{}); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want an error with %q", config, err, words)
		}
	}
	if _, err := takeSteeringOf(t, "proxyArguments: {egress-snat-port-blocks: ['512']}", Overrides{Manifests: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "only with an API server") {
		t.Errorf("without an API server: %v", err)
	}
}

func TestTakeSteering_Announcements(t *testing.T) {
	file := filepath.Join(t.TempDir(), "egress.key")
	if err := os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for config, want := range map[string]egress.Ways{
		"":                                     {KeptKeys: "/var/lib/origin-node/keys", Kernel: steering.Config{AnnouncePort: 4798}},
		"egress-snat-socket: [/run/a/b.sock]":  {KeptKeys: "/run/a/b.sock.keys", Kernel: steering.Config{AnnouncePort: 4798}},
		"egress-snat-announce-port: ['0']":     {KeptKeys: "/var/lib/origin-node/keys"},
		"egress-snat-key-file: [" + file + "]": {Keys: holders.Keys{[]byte("0123456789abcdef")}, KeptKeys: "/var/lib/origin-node/keys", Kernel: steering.Config{AnnouncePort: 4798}},
	} {
		p, err := takeSteeringOf(t, "masterKubeConfig: node.kubeconfig\nproxyArguments: {"+config+"}", Overrides{})
		got := p.extension.Ways
		if err != nil || got.Kernel.AnnouncePort != want.Kernel.AnnouncePort || !got.Keys.Equal(want.Keys) || got.KeptKeys != want.KeptKeys {
			t.Errorf("%s: got port %d and keys %q in %s, %v; want %+v", config, got.Kernel.AnnouncePort, got.Keys, got.KeptKeys, err, want)
		}
	}
}

func TestTakeSteering_Transports(t *testing.T) {
	const server = "masterKubeConfig: node.kubeconfig\n"
	for config, want := range map[string]steering.Transport{
		"": steering.VXLAN,
		"egress-snat-steering-transport: [vxlan]":  steering.VXLAN,
		"egress-snat-steering-transport: [direct]": steering.Direct,
	} {
		p, err := takeSteeringOf(t, server+"proxyArguments: {"+config+"}", Overrides{})
		if err != nil || p.extension.Ways.Kernel.Transport != want {
			t.Errorf("%s: got %q, %v; want %q", config, p.extension.Ways.Kernel.Transport, err, want)
		}
	}
}

func TestTakeSteering_NeedsAnAPIServer(t *testing.T) {
	folder := Overrides{Manifests: t.TempDir()}
	if p, err := takeSteeringOf(t, "", folder); err != nil || p.extension.Steering.Mode != holders.Off {
		t.Errorf("got %q, %v; want it off", p.extension.Steering.Mode, err)
	}
	if _, err := takeSteeringOf(t, "proxyArguments: {egress-snat-steering: [required]}", folder); err == nil || !strings.Contains(err.Error(), "needs an API server") {
		t.Errorf("required: got %v", err)
	}
}

// takeSteeringOf takes the arguments of a configuration.
func takeSteeringOf(t *testing.T, text string, overrides Overrides) (*Proxy, error) {
	t.Helper()
	config := parse(t, text)
	args, err := setArguments(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{options: args.options, config: config, overrides: overrides, flags: args.egress}
	return p, p.takeSteering()
}
