package usage

import (
	"context"
	"maps"
	"net/netip"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
)

var (
	flowsDesc = tell.Metrics.GaugeDesc("tracked_flows",
		"Tracked flows on this node that use an egress IP as source address. Only egress IPs of bindings that this node has written have series.", "egress_ip")
	steeredDesc = tell.Metrics.GaugeDesc("steered_flows",
		"Tracked flows of bound pods that leave from another node than their pod's, by direction: sent by this node, on which the pod runs, or received by it, which has the egress IP. Only egress IPs of bindings that this node has written have series, and none where nothing is steered.", "direction", "egress_ip")
	portsDesc = tell.Metrics.GaugeDesc("port_usage_ratio",
		"Share of the 64512 ports of an egress IP that are in use towards its busiest destination (address, port and protocol) on this node, or, with egress-snat-port-blocks, of the 4096 ports that pods without a block share, whichever is larger. New flows there become slow from 0.75 and are dropped from 0.95.", "egress_ip")
)

// Descs describe the metrics.
var Descs = []*metrics.Desc{flowsDesc, portsDesc, steeredDesc}

// countedFor is how long a count is good at least: more scrapers cost no more dumps. One that takes long is good for mostOfTime times as long as
// it took: counting is no larger part of what a node does.
const countedFor, mostOfTime = 10 * time.Second, 20

// counts are those of the flows of each egress IP, made when somebody asks for the metrics, for they cost a dump of the conntrack table.
type counts struct {
	at    time.Time
	took  time.Duration
	usage map[netip.Addr]conntrack.Usage
}

// Collect gives the values of the metrics to gauge. Series that cannot be computed are omitted.
func (c *Counter) Collect(ctx context.Context, gauge func(desc *metrics.Desc, value float64, labels ...string)) {
	for ip, usage := range c.count(ctx) {
		gauge(flowsDesc, float64(usage.Flows), ip.String())
		gauge(portsDesc, float64(usage.Ports)/float64(usage.PortSpace), ip.String())
		if c.config.Steered {
			gauge(steeredDesc, float64(usage.Sent), "sent", ip.String())
			gauge(steeredDesc, float64(usage.Received), "received", ip.String())
		}
	}
}

// count returns the usage of each egress IP.
func (c *Counter) count(ctx context.Context) map[netip.Addr]conntrack.Usage {
	usage, _, _ := c.counting.Do("", func() (any, error) {
		c.mu.Lock()
		last := c.counts
		c.mu.Unlock()
		if time.Since(last.at) < max(countedFor, mostOfTime*last.took) {
			return last.usage, nil
		}
		began := time.Now()
		usage := c.countNow(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.counts = counts{time.Now(), time.Since(began), usage}
		return usage, nil
	})
	return usage.(map[netip.Addr]conntrack.Usage)
}

func (c *Counter) countNow(ctx context.Context) map[netip.Addr]conntrack.Usage {
	counted := map[netip.Addr]conntrack.Usage{}
	for _, family := range cluster.Families {
		usage, err := c.tables[family].Count(ctx, c.config.Written(family))
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot count the flows of egress IPs")
			continue
		}
		maps.Copy(counted, usage)
	}
	return counted
}
