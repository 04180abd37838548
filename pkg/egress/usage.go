package egress

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
)

var (
	flowsDesc = tell.Metrics.GaugeDesc("tracked_flows",
		"Tracked flows on this node that use an egress IP as source address. Only egress IPs of bindings that this node has written have series.", "egress_ip")
	steeredDesc = tell.Metrics.GaugeDesc("steered_flows",
		"Tracked flows of bound pods that leave from another node than their pod's, by direction: sent by this node, on which the pod runs, or received by it, which has the egress IP. Only egress IPs of bindings that this node has written have series, and none where nothing is steered.", "direction", "egress_ip")
	portsDesc = tell.Metrics.GaugeDesc("port_usage_ratio",
		"Share of the 64512 ports of an egress IP that are in use towards its busiest destination (address, port and protocol) on this node. New flows there become slow from 0.75 and are dropped from 0.95.", "egress_ip")
)

// usageCollector counts the flows of each egress IP when somebody asks for the metrics, for
// it costs a dump of the conntrack table.
type usageCollector struct {
	metrics.BaseStableCollector

	mu sync.Mutex
	// counting: somebody counts at this moment.
	counting bool
	counted  time.Time
	usage    map[netip.Addr]conntrack.Usage
}

// countedFor is how long a count is good: more scrapers cost no more dumps.
const countedFor = 10 * time.Second

func (*usageCollector) DescribeWithStability(descs chan<- *metrics.Desc) {
	descs <- flowsDesc
	descs <- portsDesc
	descs <- steeredDesc
}

func (c *usageCollector) CollectWithStability(collected chan<- metrics.Metric) {
	e := current.Load()
	gauge := func(desc *metrics.Desc, value float64, labels ...string) {
		collected <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, value, labels...)
	}
	for ip, usage := range c.count(e) {
		gauge(flowsDesc, float64(usage.Flows), ip.String())
		gauge(portsDesc, float64(usage.Ports)/conntrack.PortSpace, ip.String())
		if e.steerer != nil {
			gauge(steeredDesc, float64(usage.Sent), "sent", ip.String())
			gauge(steeredDesc, float64(usage.Received), "received", ip.String())
		}
	}
}

// count returns the usage of each egress IP. While one caller counts, others get the last count.
func (c *usageCollector) count(e *Extension) map[netip.Addr]conntrack.Usage {
	c.mu.Lock()
	last, fresh := c.usage, c.counting || time.Since(c.counted) < countedFor
	c.counting = c.counting || !fresh
	c.mu.Unlock()
	if fresh {
		return last
	}
	usage := e.countUsage()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted, c.usage, c.counting = time.Now(), usage, false
	return usage
}

func (e *Extension) countUsage() map[netip.Addr]conntrack.Usage {
	counted := map[netip.Addr]conntrack.Usage{}
	for family, f := range e.families {
		usage, err := conntrack.Count(e.ctx, kernel.Family(family), f.reconciler.Written())
		if err != nil {
			// Series that cannot be computed are omitted.
			e.logger.Error(err, "Cannot count the flows of egress IPs")
			continue
		}
		maps.Copy(counted, usage)
	}
	return counted
}
