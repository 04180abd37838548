package sourceports

import (
	"net/netip"
	"slices"

	"k8s.io/component-base/metrics"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/tell"
)

var (
	portBlocksDesc = tell.Metrics.GaugeDesc("port_blocks",
		"Blocks of source ports of the egress IP, by egress IP and state: used (pods of this node have them), spare (this node keeps them for pods to come), quiet (pods of this node had them, and nobody gets them for 5 minutes), others (other nodes have claimed them) or free (those of the configured size). Only of egress IPs of which this node has blocks, or pods that share ports. No series where egress-snat-port-blocks is off.", "egress_ip", "state")
	portSharingDesc = tell.Metrics.GaugeDesc("port_sharing_pods",
		"Pods of this node that share source ports of the egress IP with others, although they were to have a block: there was none when they started, or they started without the CNI plugin. No series where egress-snat-port-blocks is off.", "egress_ip")
	portBlockUsageDesc = tell.Metrics.GaugeDesc("port_block_usage_ratio",
		"Share of its own source ports of the egress IP that the fullest pod of this node has in use towards its busiest destination (address and TCP port). At 0.75 it gets a second block, if there is one; at 1 it cannot connect there any more. 0 as long as this node tracks fewer flows than three quarters of a block. No series where egress-snat-port-blocks is off.", "egress_ip")
	secondBlocksDesc = tell.Metrics.GaugeDesc("port_second_blocks",
		"Pods of this node that have a second block of source ports of the egress IP. No series where egress-snat-port-blocks is off.", "egress_ip")
	portClashes = tell.Metrics.Gauge("port_block_clashes",
		"Pairs of pods that nodes say to have the same source port of an egress IP. Always 0 unless this program has a fault, or somebody has changed a Lease. By IP family.", "ip_family")
	unrecordedPorts = tell.Metrics.Counter("port_records_failed_total",
		"How often it was not written down which source ports a pod has, or has no more.")
)

// Descs are those of what Collect tells.
var Descs = []*metrics.Desc{portBlocksDesc, portSharingDesc, portBlockUsageDesc, secondBlocksDesc}

// Collect tells how many blocks there are, when somebody asks for the metrics; nothing if none are given.
func (al *Allocator) Collect(gauge func(desc *metrics.Desc, value float64, labels ...string)) {
	if al == nil || al.config.BlockSize == 0 {
		return
	}
	sharing, usage, seconds := al.sharing(), al.lastUsage(), al.secondBlocks()
	for ip, n := range al.keeper.Numbers(al.config.BlockSize) {
		if n.Own+sharing[ip] == 0 {
			continue // there may be thousands of nodes, and of egress IPs
		}
		for state, count := range map[string]int{"used": n.Own - n.Spare - n.Quiet, "spare": n.Spare, "quiet": n.Quiet, "others": n.Claimed - n.Own, "free": n.Free} {
			gauge(portBlocksDesc, float64(count), ip.String(), state)
		}
		sharing[ip] += 0 // 0 has a series, too
		gauge(portBlockUsageDesc, usage[ip], ip.String())
		gauge(secondBlocksDesc, float64(seconds[ip]), ip.String())
	}
	for ip, pods := range sharing { // also those that no node has claimed blocks of: perhaps no pod starts with the plugin
		gauge(portSharingDesc, float64(pods), ip.String())
	}
}

// sharing counts this node's pods that share ports although they were to have a block, by egress IP.
func (al *Allocator) sharing() map[netip.Addr]int {
	share := func(a attachments.Attachment, p attachments.Ports) bool { return p.Shared && a.BlockSize > 0 }
	return countPods(slices.Concat(al.attached(), al.unattached()), share)
}

// secondBlocks counts this node's pods that have a second block, by egress IP.
func (al *Allocator) secondBlocks() map[netip.Addr]int {
	return countPods(al.attached(), func(_ attachments.Attachment, p attachments.Ports) bool { return p.Second })
}

// countPods counts pods that have such ports, by egress IP.
func countPods(pods []attachments.Attachment, have func(attachments.Attachment, attachments.Ports) bool) map[netip.Addr]int {
	counts := map[netip.Addr]int{}
	for _, a := range pods {
		for _, p := range a.Ports {
			if have(a, p) {
				counts[p.EgressIP]++
			}
		}
	}
	return counts
}
