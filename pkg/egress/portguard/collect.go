package portguard

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/tell"
)

var (
	faultDesc = tell.Metrics.GaugeDesc("port_security_fault",
		"1 if other pods may use the address of a bound pod, or try to, else 0, by reason. No series where port security was switched off.", "reason")
	uncheckedDesc = tell.Metrics.GaugeDesc("port_security_unchecked_pods",
		"Addresses of bound pods on this node of which it is not known behind which interface they are, by IP family.", "ip_family")
)

// Descs describe the metrics.
var Descs = []*metrics.Desc{faultDesc, uncheckedDesc}

// Collect gives the values of the metrics to gauge.
func (g *Guard) Collect(ctx context.Context, gauge func(desc *metrics.Desc, value float64, labels ...string)) {
	if !g.config.Enabled {
		return
	}
	faults, _ := g.now()
	for _, f := range []fault{unavailable, unwritten, claimed, redirected} {
		gauge(faultDesc, map[bool]float64{true: 1}[slices.Contains(faults, f)], string(f))
	}
	unchecked := map[v1.IPFamily]int{}
	for _, address := range g.uncheckedPods(ctx) {
		unchecked[cluster.FamilyOf(address)]++
	}
	for _, name := range cluster.Families {
		gauge(uncheckedDesc, float64(unchecked[name]), string(name))
	}
}
