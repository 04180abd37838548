package egress

import (
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/origin-node/pkg/egress/status"
)

func selector(t *testing.T, text string) labels.Selector {
	t.Helper()
	s, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPool_Selects: by default nodes with the new label, and with the former one; a configured selector is used as it is.
func TestPool_Selects(t *testing.T) {
	byDefault := Pool{Nodes: selector(t, PoolLabel), Former: FormerPoolLabel}
	configured := Pool{Nodes: selector(t, PoolLabel)}
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
		if in, former := test.pool.selects(test.labels), test.pool.selectsByFormer(test.labels); in != test.in || former != test.byFormerOnly {
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
		if got := (Pool{Nodes: selector(t, text)}).isProtected(); got != want {
			t.Errorf("%q is protected: %v, want %v", text, got, want)
		}
	}
}

// TestPoolNode_FormerLabel: who is in the pool by its former label is told of, until it has the other one.
func TestPoolNode_FormerLabel(t *testing.T) {
	pool := newPoolTest(t).poolNode
	pool.extension.config.Pool.Nodes, pool.extension.config.Pool.Former = selector(t, PoolLabel), FormerPoolLabel
	labelled := func(keys ...string) *v1.Node {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-c", Labels: map[string]string{}}}
		for _, key := range keys {
			n.Labels[key] = ""
		}
		return n
	}
	if !pool.setNode(labelled(FormerPoolLabel)) || !pool.nodes["node-c"] {
		t.Error("a node with the former label is not in the pool")
	}
	warnings := pool.labelWarnings()
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], status.Warning) || !strings.Contains(warnings[0], "kubectl label node node-c "+PoolLabel+"= "+FormerPoolLabel+"-") {
		t.Errorf("told: %q", warnings)
	}
	if troubles := slices.Collect(maps.Keys(pool.labelTroubles())); len(troubles) != 1 || troubles[0] != aboutNode("node-c") {
		t.Errorf("troubles of %v, want of node-c", troubles)
	}
	if !pool.setNode(labelled()) || pool.nodes["node-c"] || len(pool.labelWarnings()) > 0 {
		t.Error("a node without the label is in the pool, or told of")
	}
}

// TestPoolNode_UnprotectedSelector: a configured selector by a label that kubelets may write is told of as long as it selects Nodes, once
// and not for each of them; one by a label that they may not write is not.
func TestPoolNode_UnprotectedSelector(t *testing.T) {
	p := newPoolTest(t)
	expect := func(want ...string) {
		t.Helper()
		warnings, troubles := p.labelWarnings(), p.labelTroubles()
		if len(warnings) != len(want) || len(troubles) != len(want) {
			t.Errorf("told: %q, Events %v; want of %q", warnings, troubles, want)
			return
		}
		for i, name := range want {
			trouble := troubles[aboutNode(name)]
			for _, text := range []string{warnings[i], trouble.note} {
				if trouble.reason != poolLabelUnprotected || !strings.Contains(text, "egress-snat-assign-nodes (\"pool=yes\")") || !strings.Contains(text, PoolLabel) {
					t.Errorf("%s: told %q with reason %s", name, text, trouble.reason)
				}
			}
		}
	}
	expect()
	p.label("node-c", true)
	expect("node-c")
	p.label("node-b", true)
	expect("node-b")
	p.poolNode.extension.config.Pool.Nodes = selector(t, PoolLabel)
	expect()
}
