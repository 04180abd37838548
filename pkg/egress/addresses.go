package egress

import (
	"net/netip"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// addresses returns where the claimed egress IPs are; nothing if nothing is steered.
func (e *Extension) addresses(families []status.Family) (result []status.Address) {
	if e.steerer == nil {
		return nil
	}
	inPool := e.pool.Standing()
	for _, f := range families {
		explainer := plan.NewExplainer(f.Input, f.Plan)
		pods := e.podsHere(explainer, f.Plan)
		for _, a := range e.steerer.Addresses(v1.IPFamily(f.Family)) {
			a.Owner, a.Pods = explainer.Owner(a.IP), len(pods[a.IP])
			a.Pool = inPool(a.IP)
			result = append(result, a)
		}
	}
	return result
}

// podsHere returns this node's pods that leave from each egress IP.
func (e *Extension) podsHere(explainer *plan.Explainer, p plan.Plan) map[netip.Addr]map[netip.Addr]bool {
	pods := map[netip.Addr]map[netip.Addr]bool{}
	for _, b := range p.Bindings {
		if endpoint, _ := explainer.Endpoint(b.Service, b.Pod); endpoint.Node != "" && endpoint.Node != e.config.NodeName {
			continue
		}
		if pods[b.EgressIP] == nil {
			pods[b.EgressIP] = map[netip.Addr]bool{}
		}
		pods[b.EgressIP][b.Pod] = true
	}
	return pods
}
