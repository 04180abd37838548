package poolnode

import (
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/egress/tell"
)

func selector(t *testing.T, text string) labels.Selector {
	t.Helper()
	s, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPart_FormerLabel: who is in the pool by its former label is told of, until it has the other one.
func TestPart_FormerLabel(t *testing.T) {
	pool := newPoolTest(t)
	pool.state.Config.Pool.Nodes, pool.state.Config.Pool.Former = selector(t, cluster.PoolLabel), cluster.FormerPoolLabel
	labelled := func(keys ...string) *v1.Node {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-c", Labels: map[string]string{}}}
		for _, key := range keys {
			n.Labels[key] = ""
		}
		return n
	}
	if !pool.SetNode(labelled(cluster.FormerPoolLabel)) || !pool.nodes["node-c"] {
		t.Error("a node with the former label is not in the pool")
	}
	warnings := pool.LabelWarnings()
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], status.Warning) || !strings.Contains(warnings[0], "kubectl label node node-c "+cluster.PoolLabel+"= "+cluster.FormerPoolLabel+"-") {
		t.Errorf("told: %q", warnings)
	}
	if troubles := slices.Collect(maps.Keys(pool.LabelTroubles())); len(troubles) != 1 || troubles[0] != tell.AboutNode("node-c") {
		t.Errorf("troubles of %v, want of node-c", troubles)
	}
	if !pool.SetNode(labelled()) || pool.nodes["node-c"] || len(pool.LabelWarnings()) > 0 {
		t.Error("a node without the label is in the pool, or told of")
	}
}

// TestPart_UnprotectedSelector: a configured selector by a label that kubelets may write is told of as long as it selects Nodes, once
// and not for each of them; one by a label that they may not write is not.
func TestPart_UnprotectedSelector(t *testing.T) {
	p := newPoolTest(t)
	expect := func(want ...string) {
		t.Helper()
		warnings, troubles := p.LabelWarnings(), p.LabelTroubles()
		if len(warnings) != len(want) || len(troubles) != len(want) {
			t.Errorf("told: %q, Events %v; want of %q", warnings, troubles, want)
			return
		}
		for i, name := range want {
			trouble := troubles[tell.AboutNode(name)]
			for _, text := range []string{warnings[i], trouble.Note} {
				if trouble.Reason != poolLabelUnprotected || !strings.Contains(text, "egress-snat-assign-nodes (\"pool=yes\")") || !strings.Contains(text, cluster.PoolLabel) {
					t.Errorf("%s: told %q with reason %s", name, text, trouble.Reason)
				}
			}
		}
	}
	expect()
	p.label("node-c", true)
	expect("node-c")
	p.label("node-b", true)
	expect("node-b")
	p.state.Config.Pool.Nodes = selector(t, cluster.PoolLabel)
	expect()
}
