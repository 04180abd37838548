package kubeproxy

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
)

// TestArgumentsHelp_OwnFirst: each of the project's arguments stands before all of kube-proxy's,
// with its default and what an administrator has to know of it.
func TestArgumentsHelp_OwnFirst(t *testing.T) {
	own, _, found := strings.Cut(ArgumentsHelp(), kubeProxyHeading)
	if !found {
		t.Fatal("kube-proxy's arguments have no heading")
	}
	own = strings.Join(strings.Fields(own), " ")
	for _, want := range []string{
		"egress-snat bool (default true) Pods behind a Service with external IPs", "'false' switches that off and removes its rules when the node starts",
		"egress-snat-protocols string (default service)", "'service': those of the protocols of the Service's ports", "'all': those of every IP protocol, ICMP included",
		"egress-snat-exclude-cidrs strings (default 169.254.0.0/16,224.0.0.0/4,fe80::/10,ff00::/8) Destinations that are never SNATed, besides the cluster CIDRs", "A list replaces the default",
		"egress-snat-exclude-nodes bool (default true)", "addresses of the cluster's nodes",
		"egress-snat-allowed-cidrs strings The networks in which egress IPs may lie", "If it is not set they may lie anywhere",
		"egress-snat-namespace-cidrs strings NAMESPACE=CIDR", "Several values for a namespace add up",
		"egress-snat-allow-node-ips bool (default false)", "a node's primary address",
		"egress-snat-load-balancer-ips bool (default false)", "of type LoadBalancer without external IPs is its first load-balancer IP", "ipMode VIP",
		"egress-snat-min-sync-period duration (default 100ms) The least time between two writes of egress SNAT rules", "At most half of the proxy's sync period",
		"egress-snat-backend string", "'iptables': chains in the nat table", "'nftables': a table of their own", "'auto': nftables if the kernel has it", "The default is the back end of the proxy mode",
		"egress-snat-socket string (default /run/origin-node/egress.sock)", "empty for no socket",
		"egress-snat-cni-socket string (default /run/origin-node/cni.sock)", "egress-snat-kubelet-socket string (default /var/lib/kubelet/pods-api/pods-api.sock)",
		"egress-snat-watch-pods bool (default false) The node watches its pods", "egress-snat-cni-conf-dir string (default /etc/cni/net.d)", "egress-snat-cni-install string The folder with the plugin",
		"Give all nodes the same egress-snat arguments",
	} {
		if !strings.Contains(own, want) {
			t.Errorf("%q is missing in\n%s", want, own)
		}
	}
}

func TestArgumentsHelp_Complete(t *testing.T) {
	own, others, _ := strings.Cut(ArgumentsHelp(), kubeProxyHeading)
	app.NewProxyCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, "test.") {
			return // the testing package's
		}
		if n := strings.Count(others, "\n  "+f.Name+" "); n != 1 {
			t.Errorf("kube-proxy's %s has %d entries, want 1", f.Name, n)
		}
	})
	newArguments().flags.VisitAll(func(f *pflag.Flag) {
		if n := strings.Count(own+others, "\n  "+f.Name+" "); n != 1 {
			t.Errorf("%s has %d entries, want 1", f.Name, n)
		}
	})
}

// TestArgumentsHelp_NodeDefaults: the defaults are those of a node, not kube-proxy's.
func TestArgumentsHelp_NodeDefaults(t *testing.T) {
	_, others, _ := strings.Cut(ArgumentsHelp(), kubeProxyHeading)
	others = strings.Join(strings.Fields(others), " ")
	for _, want := range []string{
		"proxy-mode ProxyMode (default iptables)", "oom-score-adj int32 (default 0)", "kube-api-qps float32 (default 10)", "kube-api-burst int32 (default 20)",
		"The field masterClientConnectionOverrides.qps sets it as well", "The field iptablesSyncPeriod sets it as well",
		"cluster-cidr string The networks of the cluster's pods, as many as there are", "and masterKubeConfig if it names a kubeconfig",
		"cleanup bool (default false) Refused, because it would end the node: use 'openshift start node --cleanup'.",
	} {
		if !strings.Contains(others, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
