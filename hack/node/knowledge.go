package node

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/oracle"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// Knows returns an error unless the process knows all of these objects, not only others that have the
// same plan, has written that plan, and has ended the flows that contradict it. Whether the plan is
// right is for [Node.CheckPlan].
func (n *Node) Knows(given oracle.Cluster, families ...v1.IPFamily) error {
	snapshot, err := status.NewClient(n.Socket()).Snapshot(n.t.Context())
	if err != nil {
		return err
	}
	if problems := snapshot.Problems(); len(problems) > 0 {
		return fmt.Errorf("%s: %s", n.Name, strings.Join(problems, "; "))
	}
	if len(snapshot.Families) != len(families) {
		return fmt.Errorf("%s serves %d IP families, want %d", n.Name, len(snapshot.Families), len(families))
	}
	state, _, err := cluster.StateFor(claimConfig(given.Arguments), planObjects(given))
	if err != nil {
		return err
	}
	for _, f := range snapshot.Families {
		want, _ := state.Input(v1.IPFamily(f.Family))
		if got, want := knowledge(f.Input), knowledge(want); !f.Written || !slices.Equal(got, want) {
			return fmt.Errorf("%s, %s: written: %v; the node knows of\n%s\nwant\n%s", n.Name, f.Family, f.Written, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	return nil
}

// claimConfig has the arguments that decide what a Service claims.
func claimConfig(a oracle.Arguments) cluster.Config {
	mode := holders.Auto
	if a.SteeringOff {
		mode = holders.Off
	}
	return cluster.Config{Steering: cluster.Steering{Mode: mode}, AllProtocols: a.AllProtocols, LoadBalancerIPs: a.LoadBalancerIPs}
}

func planObjects(given oracle.Cluster) cluster.Objects {
	return cluster.Objects{Services: given.Services, EndpointSlices: given.EndpointSlices}
}

// knowledge has a line for each Service with its addresses and each claim with its endpoints.
func knowledge(in plan.Input) []string {
	var lines []string
	for _, h := range in.Holdings {
		lines = append(lines, fmt.Sprint(h.Service, h.Created.Unix(), h.Addresses))
	}
	for _, c := range in.Claims {
		var endpoints []string
		for _, e := range c.Endpoints {
			endpoints = append(endpoints, fmt.Sprint(e.Addr, e.Pod))
		}
		slices.Sort(endpoints)
		lines = append(lines, fmt.Sprint(c.Service, c.Created.Unix(), c.Addresses(), c.Refused, slices.Compact(endpoints)))
	}
	slices.Sort(lines)
	return lines
}
