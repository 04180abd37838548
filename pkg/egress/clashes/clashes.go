package clashes

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
	"github.com/openshift/origin-node/pkg/wake"
)

// looks are how long after egress IPs have come here their connections are looked at. The pods' own nodes nudge them as soon
// as they hear of the new holder; where that fails, a pod is heard when it sends by itself.
var looks = [...]time.Duration{
	500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute,
}

// Config is what an Ender has to know.
type Config struct {
	// EgressIPs are those of the cluster in an IP family, Here those on this node.
	EgressIPs func(v1.IPFamily) []netip.Addr
	Here      func() map[netip.Addr]bool
	// Blocks are the pods' source ports that are in the kernel.
	Blocks func(v1.IPFamily) []kernel.Block
}

// Ender ends the connections under egress IPs that have got the ports of others.
type Ender struct {
	config Config
	// arrived says that egress IPs have come.
	arrived wake.Signal

	mu sync.Mutex
	// came are the addresses whose looks are not over, and when each came; some may have gone again. since is when the last of them was told,
	// and looked is how many looks there have been since.
	came   map[netip.Addr]time.Time
	since  time.Time
	looked int
}

// New returns an Ender; Run has it work.
func New(config Config) *Ender {
	return &Ender{config: config, arrived: wake.New(), came: map[netip.Addr]time.Time{}}
}

// Expect takes note of addresses that have come, and when; zero if that is not known.
func (c *Ender) Expect(came map[netip.Addr]bool, at time.Time) {
	if len(came) == 0 {
		return
	}
	c.mu.Lock()
	c.since, c.looked = time.Now(), 0
	for ip := range came {
		c.came[ip] = at
	}
	c.mu.Unlock()
	c.arrived.Send()
}

// during calls look for what has come, each time that it is due, until ctx ends.
func (c *Ender) during(ctx context.Context, look func(context.Context, map[netip.Addr]time.Time)) {
	c.arrived.FollowAt(ctx, func() time.Time {
		if at := c.next(); !at.IsZero() && !time.Now().Before(at) {
			look(ctx, c.take())
		}
		return c.next()
	})
}

// next returns when the next look is due; zero if none is.
func (c *Ender) next() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.came) == 0 {
		return time.Time{}
	}
	return c.since.Add(looks[c.looked])
}

// take returns what to look for now.
func (c *Ender) take() map[netip.Addr]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	came := maps.Clone(c.came)
	if c.looked++; c.looked == len(looks) {
		clear(c.came)
		c.looked = 0
	}
	return came
}

// among returns which of a list have come and are here, and when each came.
func among(list []netip.Addr, came map[netip.Addr]time.Time, here map[netip.Addr]bool) map[netip.Addr]time.Time {
	result := map[netip.Addr]time.Time{}
	for _, ip := range list {
		if at, has := came[ip]; has && here[ip] {
			result[ip] = at
		}
	}
	return result
}

// EndFormer removes what an earlier process that was killed may have left in the kernel.
func EndFormer(ctx context.Context) {
	if err := conntrack.EndListening(ctx); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot remove the nftables table with which an earlier process listened for clashing ports; 'nft list tables' shows whether it is there")
	}
}

// Run ends such connections, until ctx ends, and logs with ctx's logger.
func (c *Ender) Run(ctx context.Context) {
	logger, tables, failed := klog.FromContext(ctx), map[v1.IPFamily]*conntrack.Table{}, map[v1.IPFamily]*failure.Streak{}
	for _, family := range cluster.Families {
		tables[family], failed[family] = conntrack.NewTable(kernel.Family(family)), &failure.Streak{}
		defer tables[family].Close()
	}
	c.during(ctx, func(ctx context.Context, came map[netip.Addr]time.Time) {
		here := c.config.Here()
		for _, family := range cluster.Families {
			egressIPs := among(c.config.EgressIPs(family), came, here)
			if len(egressIPs) == 0 {
				continue
			}
			deleted, err := tables[family].EndClashes(ctx, egressIPs, c.config.Blocks(family))
			tell.FlowDeletions.WithLabelValues(string(family)).Add(float64(deleted.Ended))
			tell.FlowsUnbarred.WithLabelValues(string(family)).Add(float64(deleted.Unbarred))
			if deleted.Ended > 0 {
				logger.Info("Reset connections whose ports could not be told apart after the failover", "ipFamily", family, "connections", deleted.Ended)
			}
			if failed[family].Turns(err) && err != nil && ctx.Err() == nil {
				logger.Error(err, "Cannot find or reset connections with clashing ports: since their egress IP came here, connections of two pods with the same port and destination may hang; further failures are not logged", "ipFamily", family)
			}
		}
	})
}
