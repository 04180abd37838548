package egress

import (
	"k8s.io/component-base/metrics"

	"github.com/openshift/origin-node/pkg/egress/tell"
)

var (
	portBlocksDesc = tell.Metrics.GaugeDesc("port_blocks",
		"Blocks of source ports of the egress IP, by egress IP and state: used (pods of this node have them), spare (this node keeps them for pods to come), quiet (pods of this node had them, and nobody gets them for 5 minutes), others (other nodes have claimed them) or free (those of the configured size). No series where egress-snat-port-blocks is off.", "egress_ip", "state")
	portSharingDesc = tell.Metrics.GaugeDesc("port_sharing_pods",
		"Pods of this node that share source ports of the egress IP with others, because no block was to be had when they started, or their Service wants none. No series where egress-snat-port-blocks is off.", "egress_ip")
	portClashes = tell.Metrics.Gauge("port_block_clashes",
		"Pairs of pods that nodes say to have the same source port of an egress IP. Always 0 unless this program has a fault, or somebody has changed a Lease. By IP family.", "ip_family")
	unrecordedPorts = tell.Metrics.Counter("port_records_failed_total",
		"How often it was not written down which source ports a pod has, or has no more.")
)

// collect tells how many blocks there are, when somebody asks for the metrics.
func (s *sourcePorts) collect(gauge func(desc *metrics.Desc, value float64, labels ...string)) {
	if s == nil || s.size == 0 {
		return
	}
	sharing := map[string]int{}
	for _, a := range s.assignments() {
		if a.Shared {
			sharing[a.EgressIP.String()]++
		}
	}
	for ip, n := range s.keeper.Numbers(s.size) {
		for state, count := range map[string]int{"used": n.Own - n.Spare - n.Quiet, "spare": n.Spare, "quiet": n.Quiet, "others": n.Claimed - n.Own, "free": n.Free} {
			gauge(portBlocksDesc, float64(count), ip.String(), state)
		}
		gauge(portSharingDesc, float64(sharing[ip.String()]), ip.String())
	}
}
