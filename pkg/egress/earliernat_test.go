package egress

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel/natorder"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// TestEarlierNAT_IsAnEvent about the Node, for as long as the chain is there.
func TestEarlierNAT_IsAnEvent(t *testing.T) {
	e := New(t.Context(), Config{Config: cluster.Config{NodeName: "node-a"}})
	chain := natorder.Chain{Family: "inet", Table: "kindnet", Name: "post", Priority: -199}
	if added, changed := e.earlier.set(v1.IPv4Protocol, []natorder.Chain{chain}); !changed || !slices.Equal(added, []natorder.Chain{chain}) {
		t.Errorf("a chain that is new: added %v, changed %v", added, changed)
	}
	if added, changed := e.earlier.set(v1.IPv4Protocol, []natorder.Chain{chain}); changed || len(added) > 0 {
		t.Errorf("the same chain again: added %v, changed %v", added, changed)
	}
	e.events.SetTroubles(e.troubles())
	events := e.events.Standing(plan.Service{})
	if len(events) != 1 || events[0].About.Kind != "Node" || events[0].Reason != "EgressSNATNotFirst" || !strings.Contains(events[0].Note, "chain post of the nftables table inet kindnet, priority -199 gives IPv4 packets") {
		t.Errorf("Events %+v, want one about the Node that names the chain", events)
	}
	many := slices.Repeat([]natorder.Chain{chain}, 300)
	many[4] = natorder.Chain{Family: "ip", Table: "nat", Name: "POSTROUTING", Priority: 100, Legacy: true}
	e.earlier.set(v1.IPv4Protocol, many)
	if troubles := e.earlier.troubles(); len(troubles) != 6 || !strings.Contains(troubles[0].Note, "higher priority") ||
		!strings.Contains(troubles[4].Note, "chain POSTROUTING of the table nat of iptables-legacy, priority 100") || !strings.Contains(troubles[4].Note, "set egress-snat-backend to nftables") ||
		!strings.Contains(troubles[5].Note, "295 more chains give IPv4 packets") {
		t.Errorf("300 chains: %+v, want five of them named", troubles)
	}
	if _, changed := e.earlier.set(v1.IPv4Protocol, nil); !changed || len(e.earlier.troubles()) > 0 {
		t.Errorf("a chain that has gone: changed %v, told %v", changed, e.earlier.troubles())
	}
}

// TestNATFinder_KnowsWhereOursIs: in front of others, but for the rules in iptables' own chain.
func TestNATFinder_KnowsWhereOursIs(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		want   int32
	}{
		"steering":                 {Config{Config: cluster.Config{Steering: cluster.Steering{Mode: holders.Auto}}}, -199},
		"nftables without":         {Config{Config: cluster.Config{Steering: cluster.Steering{Mode: holders.Off}}, Backend: reconcile.NFTables}, -197},
		"iptables without":         {Config{Config: cluster.Config{Steering: cluster.Steering{Mode: holders.Off}}, Backend: reconcile.IPTables}, 100},
		"steering beside iptables": {Config{Config: cluster.Config{Steering: cluster.Steering{Mode: holders.Required}}, Backend: reconcile.IPTables}, -199},
	} {
		e := New(t.Context(), test.config)
		if got := e.families[v1.IPv4Protocol].reconciler.SourceNATPriority(); got != test.want {
			t.Errorf("%s: priority %d, want %d", name, got, test.want)
		}
	}
}
