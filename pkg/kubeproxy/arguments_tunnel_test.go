package kubeproxy

import (
	"strings"
	"testing"
)

func TestTakeTunnel_Values(t *testing.T) {
	p, err := takeTunnelOf(t, "")
	if c := p.tunnel; err != nil || p.tunnelFlags.enabled || len(c.Labels) != 2 || c.ConfigMap.String() != "kube-system/yurt-tunnel-server-cfg" {
		t.Errorf("the defaults: got %+v, %v", c, err)
	}
	p, err = takeTunnelOf(t, "proxyArguments: {tunnel-ports: ['true'], tunnel-secure-address: ['192.0.2.10:10263', '[2001:db8::10]:10263'], "+
		"tunnel-insecure-address: ['127.0.0.1:10264'], tunnel-node-labels: [edge=yes], tunnel-ports-configmap: [''], tunnel-any-destination: ['true']}")
	c := p.tunnel
	if err != nil || len(c.Secure) != 2 || len(c.Insecure) != 1 || len(c.Labels) != 1 || c.ConfigMap.Name != "" || !c.AnyDestination {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestTakeTunnel_Errors(t *testing.T) {
	const on = "tunnel-ports: ['true'], tunnel-secure-address: ['192.0.2.10:10263'], "
	for config, words := range map[string]string{
		"tunnel-ports: ['true']":                           "tunnel-secure-address: missing",
		"tunnel-secure-address: ['192.0.2.10']":            `tunnel-secure-address: invalid value "192.0.2.10"`,
		"tunnel-secure-address: ['192.0.2.10:0']":          "invalid value",
		"tunnel-secure-address: ['tunnel.example:10263']":  "invalid value",
		"tunnel-secure-address: ['0.0.0.0:10263']":         "invalid value",
		"tunnel-insecure-address: ['1.2.3.4:1,1.2.3.5:1']": "same IP family",
		"tunnel-node-labels: [edge]":                       "tunnel-node-labels: invalid value",
		"tunnel-node-labels: ['-=x']":                      "tunnel-node-labels: invalid value",
		"tunnel-ports-configmap: [one]":                    "tunnel-ports-configmap: invalid value",
		"tunnel-ports-configmap: [a/B]":                    "tunnel-ports-configmap: invalid value",
		on + "tunnel-from-pods: ['true']":                  "it needs proxyArguments.cluster-cidr",
		on + "tunnel-from-pods: ['true'], tunnel-any-destination: ['true'], cluster-cidr: [10.128.0.0/14]":             "it does not go together with tunnel-any-destination",
		on + "proxy-mode: [ipvs], egress-snat: ['false']":                                                              `the proxy mode "ipvs" is not supported`,
		on + "tunnel-insecure-address: ['127.0.0.1:10264'], tunnel-from-pods: ['true'], cluster-cidr: [10.128.0.0/14]": "connections of pods cannot be sent to 127.0.0.1:10264",
	} {
		if _, err := takeTunnelOf(t, "proxyArguments: {"+config+"}"); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want an error with %q", config, err, words)
		}
	}
}

// takeTunnelOf takes the arguments of a configuration.
func takeTunnelOf(t *testing.T, text string) (*Proxy, error) {
	t.Helper()
	config := parse(t, text)
	args, err := setArguments(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := args.options.Complete(args.flags); err != nil {
		t.Fatal(err)
	}
	p := &Proxy{options: args.options, config: config, flags: args.egress, tunnelFlags: args.tunnel}
	p.extension.ClusterCIDRs = args.clusterCIDRs
	if err := p.takeBackend(); err != nil {
		t.Fatal(err)
	}
	return p, p.takeTunnel()
}
