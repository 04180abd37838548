package report

import (
	"context"
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

var _ status.Source = &Reporter{}

// Snapshot returns the status. The caller must not change it. Each call makes it of all objects, at a
// cost that grows with the cluster; syncs do not.
func (r *Reporter) Snapshot() status.Snapshot {
	summary, families := r.Summary(), r.familyStatus()
	return status.Snapshot{
		Node:      r.config.NodeName,
		Version:   r.config.Version,
		Time:      time.Now(),
		Ready:     summary.Ready,
		Missing:   summary.Missing,
		Families:  families,
		Steering:  r.config.Transport,
		Addresses: r.addresses(families),
		FastPath:  r.fastStatus(),

		PortBlocks: r.parts().SourcePorts.Assignments(),
		PortMap:    r.parts().SourcePorts.PortMap(),

		SteeringProblems: r.steeringProblems(faultKinds...),
		Undelivered:      r.steeringProblems(unavailable, incomplete, unheard, unfollowed, marked),
		PluginProblems:   summary.Problems,
	}
}

// Usage returns a [status.Usage].
func (r *Reporter) Usage(ctx context.Context) (any, error) { return r.parts().Usage.Count(ctx) }

// steeringProblems are the faults of steering of these kinds, for people.
func (r *Reporter) steeringProblems(kinds ...faultKind) (problems []string) {
	for _, f := range r.steeringFaults() {
		if slices.Contains(kinds, f.kind) {
			problems = append(problems, f.message)
		}
	}
	return problems
}

// familyStatus returns what the status says of each IP family: nothing before the first plan.
func (r *Reporter) familyStatus() (result []status.Family) {
	for _, name := range cluster.Families {
		f := r.config.Families[name]
		if !f.Planned() {
			return nil
		}
		in, place := r.config.State.Input(name)
		p, s := plan.Build(place.Of(in)), f.Reconciler.Status()
		told := status.Family{Family: string(name), Input: in, Plan: p, Scope: string(place.Scope), LastSync: s.LastSuccess, NFTable: f.Reconciler.NFTable()}
		desired := p.Desired()
		desired.Steering = r.parts().Steerer.Steering(name)
		told.Since, told.Written = f.Reconciler.Since(desired)
		if s.Failure != nil {
			told.Error = s.Failure.Error()
		}
		result = append(result, told)
	}
	return result
}

// addresses returns where the claimed egress IPs are; nothing if nothing is steered.
func (r *Reporter) addresses(families []status.Family) (result []status.Address) {
	if r.parts().Steerer == nil {
		return nil
	}
	inPool := r.parts().Pool.Standing()
	for _, f := range families {
		explainer := plan.NewExplainer(f.Input, f.Plan)
		pods := r.podsHere(explainer, f.Plan)
		for _, a := range r.parts().Steerer.Addresses(v1.IPFamily(f.Family)) {
			a.Owner, a.Pods = explainer.Owner(a.IP), len(pods[a.IP])
			a.Pool = inPool(a.IP)
			result = append(result, a)
		}
	}
	return result
}

// podsHere returns this node's pods that leave from each egress IP.
func (r *Reporter) podsHere(explainer *plan.Explainer, p plan.Plan) map[netip.Addr]map[netip.Addr]bool {
	pods := map[netip.Addr]map[netip.Addr]bool{}
	for _, b := range p.Bindings {
		if endpoint, _ := explainer.Endpoint(b.Service, b.Pod); endpoint.Node != "" && endpoint.Node != r.config.NodeName {
			continue
		}
		kernel.Put(pods, b.EgressIP, b.Pod, true)
	}
	return pods
}
