package egress

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
)

// TestExtension_TellsOfEarlierNAT in an Event about the Node, for as long as the chain is there.
func TestExtension_TellsOfEarlierNAT(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		nft := func(script string) {
			t.Helper()
			if out, err := exec.CommandContext(t.Context(), "nft", script).CombinedOutput(); err != nil {
				t.Fatalf("nft %s: %v: %s", script, err, out)
			}
		}
		e := New(t.Context(), Config{Config: cluster.Config{NodeName: "node-a", Steering: cluster.Steering{Mode: holders.Auto}}, SyncPeriod: time.Second})
		nft("table ip kindnet { chain post { type nat hook postrouting priority -199; oifname eth0 masquerade; }; }")
		ctx, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer end()
		running.Go(func() { e.neighbours.Run(ctx) })
		told := func() bool {
			events := e.events.Standing(plan.Service{})
			return len(events) == 1 && events[0].About.Kind == "Node" && events[0].Reason == "EgressSNATNotFirst" && strings.Contains(events[0].Note, "chain post of the nftables table ip kindnet")
		}
		clustertest.Eventually(t, "an Event names the chain", told)
		nft("delete table ip kindnet")
		clustertest.Eventually(t, "the Event is over", func() bool { return len(e.events.Standing(plan.Service{})) == 0 })
	})
}

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
