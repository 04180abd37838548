package kubeproxy

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/origin-node/pkg/egress/cluster"
)

// takePoolOf takes the arguments of a configuration that have to do with the pool.
func takePoolOf(t *testing.T, arguments string, overrides Overrides) (*Proxy, error) {
	t.Helper()
	p, err := takeSteeringOf(t, "proxyArguments: {cluster-cidr: [10.128.0.0/14], "+arguments+"}", overrides)
	p.extension.ClusterCIDRs = []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}
	return p, errors.Join(err, p.takePool())
}

func TestTakePool_Values(t *testing.T) {
	p, err := takePoolOf(t, "egress-snat-assign-cidrs: [203.0.113.0/28, '2001:db8::/120'], egress-snat-assign-nodes: ['role in (edge)'], egress-snat-socket: [/run/a.sock]", Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	pool, membership := p.extension.Pool, p.extension.Membership
	if want := []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28"), netip.MustParsePrefix("2001:db8::/120")}; !slices.Equal(pool.Networks, want) {
		t.Errorf("the networks are %v, want %v", pool.Networks, want)
	}
	if !pool.Nodes.Matches(labels.Set{"role": "edge"}) || pool.Nodes.Matches(labels.Set{"role": "worker"}) || membership.Port != 7947 || membership.DrainFile != "/run/a.sock.drained" {
		t.Errorf("got %+v, %+v", pool, membership)
	}
}

func TestTakePool_DefaultIsNoPool(t *testing.T) {
	for _, arguments := range []string{"", "egress-snat-announce-port: ['7947']", "egress-snat-steering-port: ['7947']"} {
		p, err := takePoolOf(t, arguments, Overrides{Manifests: t.TempDir()})
		if err != nil || len(p.extension.Pool.Networks) != 0 {
			t.Errorf("%s: got %v, %v; want no networks", arguments, p.extension.Pool.Networks, err)
		}
	}
}

func TestTakePool_Errors(t *testing.T) {
	const cidrs = "egress-snat-assign-cidrs: [203.0.113.0/28]"
	for arguments, words := range map[string]string{
		"egress-snat-assign-cidrs: [203.0.113.1]":                    `"203.0.113.1" is not a CIDR`,
		"egress-snat-assign-cidrs: [10.128.7.0/24]":                  "10.128.7.0/24 overlaps 10.128.0.0/14, a network of the cluster's pods, in which no egress IP may lie; remove it",
		"egress-snat-assign-cidrs: [10.0.0.0/8]":                     "10.0.0.0/8 overlaps 10.128.0.0/14, a network of the cluster's pods, in which no egress IP may lie; remove it",
		"egress-snat-assign-cidrs: [203.0.113.0/28, 203.0.113.0/30]": "203.0.113.0/30 overlaps 203.0.113.0/28; keep one of them",
		cidrs + ", egress-snat-assign-nodes: ['a b']":                "expected a label selector",
		cidrs + ", egress-snat-assign-nodes: ['']":                   "the selector is empty",
		cidrs + ", egress-snat-assign-port: ['0']":                   "invalid value 0: expected a port",
		cidrs + ", egress-snat-assign-port: ['4799']":                "invalid value 4799: expected a port",
		cidrs + ", egress-snat-steering: ['off']":                    "cannot be put on nodes without steering",
		cidrs + ", egress-snat: ['false']":                           "egress SNAT, which is off",
		cidrs + ", egress-snat-socket: ['']":                         "needs egress-snat-socket",
	} {
		if _, err := takePoolOf(t, arguments, Overrides{}); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want an error with %q", arguments, err, words)
		}
	}
}

// TestTakePool_Label: the label of before counts unless a selector is configured, be it the default.
func TestTakePool_Label(t *testing.T) {
	for arguments, want := range map[string]string{"": cluster.FormerPoolLabel, ", egress-snat-assign-nodes: [" + cluster.PoolLabel + "]": ""} {
		p, err := takePoolOf(t, "egress-snat-assign-cidrs: [203.0.113.0/28]"+arguments, Overrides{})
		if pool := p.extension.Pool; err != nil || pool.Former != want || !pool.Nodes.Matches(labels.Set{cluster.PoolLabel: ""}) {
			t.Errorf("%q: the selector %s, the former label %q, %v; want %q", arguments, pool.Nodes, pool.Former, err, want)
		}
	}
}

func TestTakePool_OutsideAllowed(t *testing.T) {
	p, err := takePoolOf(t, "egress-snat-assign-cidrs: [203.0.113.0/28]", Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	for allowed, want := range map[string]string{"203.0.113.8/29": "", "198.51.100.0/24": "203.0.113.0/28 is outside of egress-snat-allowed-cidrs"} {
		p.extension.AllowedCIDRs = []netip.Prefix{netip.MustParsePrefix(allowed)}
		if err := p.takePool(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("allowed: %s; got %v, want an error with %q", allowed, err, want)
		}
	}
}
