package usage

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
)

const (
	// leastBetweenLooks is for how long a look is good: more readers cost no more looks.
	leastBetweenLooks = 500 * time.Millisecond
	// patience is how long a look may take.
	patience = time.Minute
	// looksKept is for how long the flows of a look are kept, for the next one to tell which are new.
	looksKept = time.Minute
)

// Config is what a Counter has to know.
type Config struct {
	// NodeName is this node's.
	NodeName string
	// Steered: packets may be sent to other nodes.
	Steered bool
	// Written is what is in the kernel of an IP family.
	Written func(v1.IPFamily) kernel.Desired
	// Ports are which pods have which source ports, Fast is what has taken the fast path; nil if there is none.
	Ports func() []portblocks.Assignment
	Fast  func() (*status.FastUsage, error)
}

// Counter counts what uses the egress IPs of the bindings that this node has written.
type Counter struct {
	config Config
	tables map[v1.IPFamily]*conntrack.Table
	// looking and counting have whoever asks meanwhile wait for the same answer.
	looking, counting singleflight.Group

	mu     sync.Mutex // protects the following fields
	last   look
	counts counts
	// forget forgets the flows of the last look.
	forget *time.Timer
}

// look is one at the flows of egress IPs, for 'openshift egress top'. It costs a dump of the conntrack table.
type look struct {
	usage status.Usage
	seen  map[v1.IPFamily]conntrack.Seen
	// fast is what had taken the fast path.
	fast *status.FastUsage
}

// New returns a Counter.
func New(config Config) *Counter {
	c := &Counter{config: config, tables: map[v1.IPFamily]*conntrack.Table{}}
	for _, family := range cluster.Families {
		c.tables[family] = conntrack.NewTable(kernel.Family(family))
	}
	return c
}

// Count returns what uses the egress IPs, and which flows are new since it was called before.
func (c *Counter) Count(ctx context.Context) (status.Usage, error) {
	looked, err, _ := c.looking.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience) // others wait for it, too
		defer cancel()
		return c.look(ctx)
	})
	if err != nil {
		return status.Usage{}, err
	}
	return looked.(status.Usage), nil
}

func (c *Counter) look(ctx context.Context) (result status.Usage, err error) {
	c.mu.Lock()
	before := c.last
	c.mu.Unlock()
	now := time.Now()
	if now.Sub(before.usage.Time) < leastBetweenLooks {
		return before.usage, nil
	}
	result, seen := status.Usage{Node: c.config.NodeName, Time: now, Addresses: []status.AddressUsage{}}, map[v1.IPFamily]conntrack.Seen{}
	fast, err := c.config.Fast()
	if err != nil {
		return result, err
	}
	if before.seen != nil {
		result.Seconds = now.Sub(before.usage.Time).Seconds()
		result.FastPath = since(before.fast, fast)
	}
	for _, name := range cluster.Families {
		usage, flows, err := c.tables[name].CountNew(ctx, c.config.Written(name), before.seen[name])
		if err != nil {
			return result, err
		}
		seen[name] = flows
		for ip, u := range usage {
			result.Addresses = append(result.Addresses, addressUsage(ip, u))
		}
	}
	result.CountPorts(c.config.Ports())
	slices.SortFunc(result.Addresses, func(a, b status.AddressUsage) int { return a.IP.Compare(b.IP) })
	c.keep(look{result, seen, fast})
	return result, nil
}

// keep keeps a look for the next one, but not for long: it may be large.
func (c *Counter) keep(l look) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = l
	if c.forget != nil {
		c.forget.Stop()
	}
	c.forget = time.AfterFunc(looksKept, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.last.usage.Time.Equal(l.usage.Time) {
			c.last.seen = nil
		}
	})
}

// since returns what has come between two looks; nil if there was nothing to see.
func since(before, now *status.FastUsage) *status.FastUsage {
	if before == nil || now == nil {
		return nil
	}
	return &status.FastUsage{Packets: now.Packets - before.Packets}
}

func addressUsage(ip netip.Addr, u conntrack.Usage) status.AddressUsage {
	result := status.AddressUsage{
		IP: ip, Flows: u.Flows, New: u.New, Ports: u.Ports, PortSpace: u.PortSpace, Sent: u.Sent, Received: u.Received,
	}
	if u.Busiest.IsValid() {
		result.Busiest, result.Protocol = u.Busiest, protocolName(u.Protocol)
	}
	return result
}

// protocolName returns the name of an IP protocol that Services have, or its number.
func protocolName(number uint8) string {
	switch number {
	case 6:
		return string(kernel.TCP)
	case 17:
		return string(kernel.UDP)
	case 132:
		return string(kernel.SCTP)
	}
	return strconv.Itoa(int(number))
}
