package cluster

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
)

// TestPool_Selects: by default nodes with the new label, and with the former one; a configured selector is used as it is.
func TestPool_Selects(t *testing.T) {
	byDefault := Pool{Nodes: parsed(t, PoolLabel), Former: FormerPoolLabel}
	configured := Pool{Nodes: parsed(t, PoolLabel)}
	tests := map[string]struct {
		pool             Pool
		labels           labels.Set
		in, byFormerOnly bool
	}{
		"neither":                          {byDefault, labels.Set{"role": "edge"}, false, false},
		"the label":                        {byDefault, labels.Set{PoolLabel: ""}, true, false},
		"the former label":                 {byDefault, labels.Set{FormerPoolLabel: ""}, true, true},
		"both":                             {byDefault, labels.Set{PoolLabel: "", FormerPoolLabel: "x"}, true, false},
		"the former label, not configured": {configured, labels.Set{FormerPoolLabel: ""}, false, false},
	}
	for name, test := range tests {
		if in, former := test.pool.Selects(test.labels), test.pool.SelectsByFormer(test.labels); in != test.in || former != test.byFormerOnly {
			t.Errorf("%s: in the pool %v, by the former label alone %v; want %v, %v", name, in, former, test.in, test.byFormerOnly)
		}
	}
}

// TestPool_IsProtected: which selectors no kubelet can have its own Node match, by the rules of NodeRestriction.
func TestPool_IsProtected(t *testing.T) {
	for text, want := range map[string]bool{
		PoolLabel: true, FormerPoolLabel: false, "node-role.kubernetes.io/infra=": true, "role=edge": false, "role=edge," + PoolLabel: true,
		"node.kubernetes.io/role": false, "kubernetes.io/hostname in (a)": false, "edge.node-restriction.kubernetes.io/x=y": true,
		"!" + PoolLabel: false, PoolLabel + " notin (a)": false, "notkubernetes.io/x": false, "kubernetes.io": false,
	} {
		if got := (Pool{Nodes: parsed(t, text)}).isProtected(); got != want {
			t.Errorf("%q is protected: %v, want %v", text, got, want)
		}
	}
}

func parsed(t *testing.T, selector string) labels.Selector {
	t.Helper()
	s, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestState_PoolInsideTheCluster(t *testing.T) {
	s := New(Config{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}})
	s.SetServiceCIDRs([]string{"172.30.0.0/16"})
	pools := []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28"), netip.MustParsePrefix("172.30.1.0/28")}
	if diff := cmp.Diff([]string{"172.30.1.0/28 overlaps 172.30.0.0/16"}, s.Inside(pools)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
