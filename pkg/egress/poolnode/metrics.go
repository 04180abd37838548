package poolnode

import (
	"slices"

	"k8s.io/component-base/metrics"

	"github.com/openshift/origin-node/pkg/egress/pool"
	"github.com/openshift/origin-node/pkg/egress/tell"
)

// Descs are those of the metrics that [Part.Collect] tells.
var Descs = []*metrics.Desc{poolMembersDesc, poolMajorityDesc, poolUnheldDesc, poolMovesDesc}

var (
	poolMembersDesc = tell.Metrics.GaugeDesc("pool_members",
		"Nodes of the pool that egress IPs are put on, by whether they are live as far as this node knows: live or dead. Only nodes of the pool, and nodes that have left it and still have egress IPs of it, have the series; if it has none, all nodes do.", "state")
	poolMajorityDesc = tell.Metrics.GaugeDesc("pool_majority",
		"1 if this node sees a majority of the pool, so that it may take egress IPs, else 0. Only nodes of the pool, and nodes that have left it and still have egress IPs of it, have the series; if it has none, no node does.")
	poolUnheldDesc = tell.Metrics.GaugeDesc("pool_unheld_addresses",
		"Egress IPs that the pool is to hold and that no live node has, as far as this node knows.")
	poolMovesDesc = tell.Metrics.CounterDesc("pool_moves_total",
		"Egress IPs that this node took or released, by reason.", "reason")
	takeTime = tell.Metrics.Histogram("pool_take_duration_seconds",
		"Time from when this node knew that an egress IP has to move until it was on an interface, and advertised unless its former node still served it.", []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60})
)

// ZeroMetrics has the series whose first increase counts.
func ZeroMetrics() { takeTime.WithLabelValues() }

// Collect tells how the pool stands.
func (p *Part) Collect(gauge, counter func(desc *metrics.Desc, value float64, labels ...string)) {
	if wanted := p.empty(); wanted != nil {
		gauge(poolMembersDesc, 0, "live")
		gauge(poolMembersDesc, 0, "dead")
		gauge(poolUnheldDesc, float64(len(wanted)))
		return
	}
	status, known := p.status()
	if !known {
		return
	}
	for reason, n := range p.moveCounts() {
		counter(poolMovesDesc, float64(n), string(reason))
	}
	p.collectView(status, gauge)
}

// collectView tells how this node sees the pool, if it is in it, or still has addresses of it.
func (p *Part) collectView(status pool.Status, gauge func(desc *metrics.Desc, value float64, labels ...string)) {
	holds := len(status.Members) > 0 && len(status.Members[0].Held) > 0
	if !holds && !slices.Contains(status.Pool, p.state.Config.NodeName) {
		return
	}
	gauge(poolMembersDesc, float64(status.Votes), "live")
	gauge(poolMembersDesc, float64(status.Of-status.Votes), "dead")
	majority := 0.0
	if status.Majority {
		majority = 1
	}
	gauge(poolMajorityDesc, majority)
	gauge(poolUnheldDesc, float64(len(status.Unheld)))
}
