package report

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/poolnode"
	"github.com/openshift/origin-node/pkg/egress/portguard"
	"github.com/openshift/origin-node/pkg/egress/sourceports"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/egress/usage"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// current is the Reporter that is asked at a scrape.
var current atomic.Pointer[Reporter]

// Collect has the metrics of a Reporter be those that are told at a scrape. There is one in a process; where tests make more, the last one
// counts.
func Collect(r *Reporter) {
	current.Store(r)
	registerCollectors()
}

var registerCollectors = sync.OnceFunc(func() {
	legacyregistry.CustomMustRegister(
		&collector{descs: usage.Descs, collect: (*Reporter).collectUsage},
		&collector{
			descs:   slices.Concat(poolnode.Descs, []*metrics.Desc{addressesDesc, lostDesc, conflictDesc, faultDesc, dropsDesc, announcementsDesc}, sourceports.Descs),
			collect: (*Reporter).collectSteering,
		},
		&collector{descs: portguard.Descs, collect: (*Reporter).collectPorts},
		&collector{descs: []*metrics.Desc{fastPodsDesc, fastPacketsDesc, fastBytesDesc}, collect: (*Reporter).collectFast},
	)
})

// tells tells a value of a metric.
type tells = func(desc *metrics.Desc, value float64, labels ...string)

// collector tells of some metrics when somebody asks for them.
type collector struct {
	metrics.BaseStableCollector
	descs   []*metrics.Desc
	collect func(r *Reporter, gauge, counter tells)
}

func (c *collector) DescribeWithStability(descs chan<- *metrics.Desc) {
	for _, desc := range c.descs {
		descs <- desc
	}
}

func (c *collector) CollectWithStability(collected chan<- metrics.Metric) {
	values := func(of metrics.ValueType) tells {
		return func(desc *metrics.Desc, value float64, labels ...string) {
			collected <- metrics.NewLazyConstMetric(desc, of, value, labels...)
		}
	}
	c.collect(current.Load(), values(metrics.GaugeValue), values(metrics.CounterValue))
}

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

// collectUsage counts the flows of each egress IP.
func (r *Reporter) collectUsage(gauge, _ tells) {
	r.parts().Usage.Collect(klog.NewContext(r.ctx, r.logger), gauge)
}

// collectPorts tells how the check of sources stands.
func (r *Reporter) collectPorts(gauge, counter tells) {
	r.parts().Ports.Collect(r.ctx, gauge)
	if !r.config.PortSecurity {
		return
	}
	drops, err := portsecurity.Drops(r.ctx)
	if err != nil {
		// Series that cannot be computed are omitted.
		r.logger.V(2).Info("Cannot read the counters of packets with the address of another pod", "err", err)
	}
	for family, packets := range drops {
		counter(dropsDesc, float64(packets), string(family), "spoofed")
	}
}

// collectSteering tells where the egress IPs are, and what was dropped.
func (r *Reporter) collectSteering(gauge, counter tells) {
	if r.parts().Steerer == nil && r.config.Steering.Unavailable == nil {
		return
	}
	faults := r.steeringFaults()
	for _, kind := range faultKinds {
		stands := slices.ContainsFunc(faults, func(f fault) bool { return f.kind == kind })
		gauge(faultDesc, map[bool]float64{true: 1}[stands], string(kind))
	}
	if r.parts().Steerer == nil {
		return
	}
	for result, datagrams := range r.parts().Steerer.Announcements() {
		counter(announcementsDesc, float64(datagrams), result)
	}
	r.parts().SourcePorts.Collect(gauge)
	r.parts().Pool.Collect(gauge, counter)
	for _, family := range cluster.Families {
		counts := map[string]int{}
		for _, a := range r.parts().Steerer.Addresses(family) {
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
		drops, err := steering.Drops(r.ctx, kernel.Family(family))
		if err != nil {
			// Series that cannot be computed are omitted.
			r.logger.V(2).Info("Cannot read the counters of dropped packets", "ipFamily", family, "err", err)
		}
		for reason, packets := range drops {
			counter(dropsDesc, float64(packets), string(family), reason)
		}
	}
}

var (
	fastPodsDesc = tell.Metrics.GaugeDesc("fast_path_pods",
		"Addresses of pods on this node, bound or not, whose established flows take the fast path, by IP family. No series where there is no fast path.", "ip_family")
	fastPacketsDesc = tell.Metrics.CounterDesc("fast_path_packets_total",
		"Packets that took the fast path, by IP family and direction: sent to other nodes, left from here after other nodes had sent them, own, which pods of this node sent and which left from here, or answers to pods, counted where they come in and on the pod's node.", "ip_family", "direction")
	fastBytesDesc = tell.Metrics.CounterDesc("fast_path_bytes_total",
		"Bytes of the packets that took the fast path, by IP family and direction.", "ip_family", "direction")
)

// collectFast tells what took the fast path.
func (r *Reporter) collectFast(gauge, counter tells) {
	if r.config.FastPath == nil {
		return
	}
	counts, err := r.config.FastPath.Counts()
	if err != nil {
		// Series that cannot be computed are omitted.
		r.logger.V(2).Info("Cannot read the counters of the fast path", "err", err)
		return
	}
	now := r.config.FastPath.Status()
	for _, name := range cluster.Families {
		count := counts[kernel.Family(name)]
		gauge(fastPodsDesc, float64(now.Pods[kernel.Family(name)]), string(name))
		for direction, traffic := range map[string]fastpath.Traffic{"sent": count.Sent, "left": count.Left, "own": count.Own, "answers": count.Answers} {
			counter(fastPacketsDesc, float64(traffic.Packets), string(name), direction)
			counter(fastBytesDesc, float64(traffic.Bytes), string(name), direction)
		}
	}
}
