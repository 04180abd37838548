package egress

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// TestExtension_KnowsWhereItsSourceNATIs: in front of others, but for the rules in iptables' own chain.
func TestExtension_KnowsWhereItsSourceNATIs(t *testing.T) {
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
