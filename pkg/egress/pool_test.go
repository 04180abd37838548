package egress

import (
	"net/netip"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// poolTest is a node that has a configured pool, and no part in it.
type poolTest struct {
	*steered
	*poolNode
}

func newPoolTest(t *testing.T) poolTest {
	t.Helper()
	s := newSteered(t, holders.Auto)
	config := s.state.config
	config.Pool = Pool{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28")}, Nodes: labels.SelectorFromSet(labels.Set{"pool": "yes"})}
	e := &Extension{config: config, state: s.state, steerer: s.steerer, families: map[v1.IPFamily]*family{}, logger: s.logger}
	e.events = newEventRecorder(s.logger, config, s.state)
	p := newPoolNode(t.Context(), e)
	s.pool, e.pool = p, p
	return poolTest{s, p}
}

// label has a node be in the pool, or not.
func (p poolTest) label(name string, in bool) {
	n := node(name, "", v1.ConditionTrue)
	if in {
		n.Labels = map[string]string{"pool": "yes"}
	}
	p.poolNode.setNode(n)
}

func TestPoolNode_EmptyPoolIsTold(t *testing.T) {
	p := newPoolTest(t)
	web := plan.Service{Namespace: "shop", Name: "web"}
	series := func() map[string]float64 {
		all := map[string]float64{}
		add := func(desc *metrics.Desc, value float64, labels ...string) {
			all[strings.Join(append([]string{desc.String()}, labels...), " ")] = value
		}
		p.collect(add, add)
		return all
	}
	p.wanted[v1.IPv4Protocol] = []netip.Addr{egressIP}
	if got := p.steerer.troubles(); len(got) > 0 || len(series()) > 0 {
		t.Errorf("before all objects are known: troubles %v, series %v; want none", got, series())
	}
	p.wanted[v1.IPv6Protocol] = nil
	got := p.steerer.troubles()[web]
	if len(got) != 1 || got[0].reason != addressUnplaced || got[0].own || !strings.Contains(got[0].note, `no Node matches "pool=yes"`) {
		t.Errorf("no node is in the pool: %v", got)
	}
	if n := len(series()); n != 3 {
		t.Errorf("no node is in the pool: series %v, want members live and dead, and unheld addresses", series())
	}
	p.label("node-b", true)
	if got := p.steerer.troubles(); len(got) > 0 || len(series()) > 0 {
		t.Errorf("another node is in the pool: troubles %v, series %v; want none", got, series())
	}
}
