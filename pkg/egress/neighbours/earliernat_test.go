package neighbours

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel/natorder"
)

// TestEarlierNAT_IsTold for as long as the chain is there.
func TestEarlierNAT_IsTold(t *testing.T) {
	w := New(klog.FromContext(t.Context()), Config{})
	chain := natorder.Chain{Family: "inet", Table: "kindnet", Name: "post", Priority: -199}
	if added, changed := w.earlier.set(v1.IPv4Protocol, []natorder.Chain{chain}); !changed || !slices.Equal(added, []natorder.Chain{chain}) {
		t.Errorf("a chain that is new: added %v, changed %v", added, changed)
	}
	if added, changed := w.earlier.set(v1.IPv4Protocol, []natorder.Chain{chain}); changed || len(added) > 0 {
		t.Errorf("the same chain again: added %v, changed %v", added, changed)
	}
	if told := w.Troubles(); len(told) != 1 || told[0].Reason != "EgressSNATNotFirst" || !strings.Contains(told[0].Note, "chain post of the nftables table inet kindnet, priority -199 gives IPv4 packets") {
		t.Errorf("told %+v, want one that names the chain", told)
	}
	many := slices.Repeat([]natorder.Chain{chain}, 300)
	many[4] = natorder.Chain{Family: "ip", Table: "nat", Name: "POSTROUTING", Priority: 100, Legacy: true}
	w.earlier.set(v1.IPv4Protocol, many)
	if troubles := w.Troubles(); len(troubles) != 6 || !strings.Contains(troubles[0].Note, "higher priority") ||
		!strings.Contains(troubles[4].Note, "chain POSTROUTING of the table nat of iptables-legacy, priority 100") || !strings.Contains(troubles[4].Note, "set egress-snat-backend to nftables") ||
		!strings.Contains(troubles[5].Note, "295 more chains give IPv4 packets") {
		t.Errorf("300 chains: %+v, want five of them named", troubles)
	}
	if _, changed := w.earlier.set(v1.IPv4Protocol, nil); !changed || len(w.Troubles()) > 0 {
		t.Errorf("a chain that has gone: changed %v, told %v", changed, w.Troubles())
	}
}
