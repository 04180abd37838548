package egress

import (
	"slices"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/poolnode"
	"github.com/openshift/origin-node/pkg/egress/portguard"
	"github.com/openshift/origin-node/pkg/egress/sourceports"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/egress/usage"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

var (
	addressesDesc = tell.Metrics.GaugeDesc("addresses",
		"Egress IPs that Services claim in the whole cluster, by IP family and by where they are as far as this node knows: local, remote, lost or unclaimed.", "ip_family", "state")
	lostDesc = tell.Metrics.GaugeDesc("lost_address_timestamp_seconds",
		"Unix time since which the node that had the egress IP is lost. Only lost egress IPs have series.", "egress_ip", "holder")
	conflictDesc = tell.Metrics.GaugeDesc("address_holders",
		"Nodes that have the egress IP at the same time. Only egress IPs on more than one node have series.", "egress_ip")
	faultDesc = tell.Metrics.GaugeDesc("steering_fault",
		"1 if something keeps packets from being sent to the nodes that have their egress IPs, or nodes from telling each other where these are, else 0, by reason. No series where steering was switched off.", "reason")
	dropsDesc = tell.Metrics.CounterDesc("dropped_packets_total",
		"Packets that were dropped on this node because they would have left a bound pod under another address than its egress IP, or were forged, by IP family and reason.", "ip_family", "reason")
	announcementsDesc = tell.Metrics.CounterDesc("announcements_total",
		"Datagrams by which nodes tell each other directly which egress IPs they hold, by result: sent, failed to be sent, or received and accepted, outdated, foreign (not from the address of the Node that it names), unauthenticated (not signed with a key that we have) or unreadable.", "result")
)

// usageCollector counts the flows of each egress IP, when somebody asks for the metrics.
type usageCollector struct{ metrics.BaseStableCollector }

func (*usageCollector) DescribeWithStability(descs chan<- *metrics.Desc) {
	for _, desc := range usage.Descs {
		descs <- desc
	}
}

func (*usageCollector) CollectWithStability(collected chan<- metrics.Metric) {
	e := current.Load()
	e.usage.Collect(klog.NewContext(e.ctx, e.logger), func(desc *metrics.Desc, value float64, labels ...string) {
		collected <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, value, labels...)
	})
}

// portCollector tells how the check of sources stands, when somebody asks for the metrics.
type portCollector struct{ metrics.BaseStableCollector }

func (*portCollector) DescribeWithStability(descs chan<- *metrics.Desc) {
	for _, desc := range portguard.Descs {
		descs <- desc
	}
}

func (*portCollector) CollectWithStability(collected chan<- metrics.Metric) {
	e := current.Load()
	e.ports.Collect(e.ctx, func(desc *metrics.Desc, value float64, labels ...string) {
		collected <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, value, labels...)
	})
	if !e.config.PortSecurity.Enabled {
		return
	}
	drops, err := portsecurity.Drops(e.ctx)
	if err != nil {
		// Series that cannot be computed are omitted.
		e.logger.V(2).Info("Cannot read the counters of packets with the address of another pod", "err", err)
	}
	for family, packets := range drops {
		collected <- metrics.NewLazyConstMetric(dropsDesc, metrics.CounterValue, float64(packets), string(family), "spoofed")
	}
}

// steeringCollector tells where the egress IPs are, and what was dropped, when somebody asks for the metrics.
type steeringCollector struct {
	metrics.BaseStableCollector
}

func (*steeringCollector) DescribeWithStability(descs chan<- *metrics.Desc) {
	for _, desc := range slices.Concat(poolnode.Descs, []*metrics.Desc{addressesDesc, lostDesc, conflictDesc, faultDesc, dropsDesc, announcementsDesc}, sourceports.Descs) {
		descs <- desc
	}
}

func (*steeringCollector) CollectWithStability(collected chan<- metrics.Metric) {
	e := current.Load()
	gauge := func(desc *metrics.Desc, value float64, labels ...string) {
		collected <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, value, labels...)
	}
	if e.steerer == nil && e.config.Steering.Unavailable == nil {
		return
	}
	faults := e.steeringFaults()
	for _, kind := range faultKinds {
		stands := slices.ContainsFunc(faults, func(f fault) bool { return f.kind == kind })
		gauge(faultDesc, map[bool]float64{true: 1}[stands], string(kind))
	}
	if e.steerer == nil {
		return
	}
	for result, datagrams := range e.steerer.Announcements() {
		collected <- metrics.NewLazyConstMetric(announcementsDesc, metrics.CounterValue, float64(datagrams), result)
	}
	e.sourcePorts.Collect(gauge)
	e.pool.Collect(gauge, func(desc *metrics.Desc, value float64, labels ...string) {
		collected <- metrics.NewLazyConstMetric(desc, metrics.CounterValue, value, labels...)
	})
	for _, family := range cluster.Families {
		counts := map[string]int{}
		for _, a := range e.steerer.Addresses(family) {
			counts[a.State]++
			if a.State == string(holders.Lost) {
				gauge(lostDesc, float64(a.Since.UnixNano())/float64(time.Second), a.IP.String(), a.Holder)
			}
			if len(a.Conflict) > 0 {
				gauge(conflictDesc, float64(1+len(a.Conflict)), a.IP.String())
			}
		}
		for _, state := range []holders.State{holders.Local, holders.Remote, holders.Lost, holders.Unclaimed} {
			gauge(addressesDesc, float64(counts[string(state)]), string(family), string(state))
		}
		drops, err := steering.Drops(e.ctx, kernel.Family(family))
		if err != nil {
			// Series that cannot be computed are omitted.
			e.logger.V(2).Info("Cannot read the counters of dropped packets", "ipFamily", family, "err", err)
		}
		for reason, packets := range drops {
			collected <- metrics.NewLazyConstMetric(dropsDesc, metrics.CounterValue, float64(packets), string(family), reason)
		}
	}
}
