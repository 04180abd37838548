package egress

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
)

const (
	// leastBetweenLooks is for how long a look is good: more readers cost no more looks.
	leastBetweenLooks = 500 * time.Millisecond
	// looksKept is for how long the flows of a look are kept, for the next one to tell which are new.
	looksKept = time.Minute
)

// looks are those at the flows of egress IPs, for 'openshift egress top'. They cost a dump of the conntrack table each.
type looks struct {
	mu   sync.Mutex
	last status.Usage
	seen map[v1.IPFamily]conntrack.Seen
	// fast is what had taken the fast path.
	fast *status.FastUsage
	// forget forgets seen.
	forget *time.Timer
}

// Usage returns a [status.Usage]: what uses the egress IPs of the bindings that this node has written, and which flows are
// new since it was called before.
func (e *Extension) Usage(ctx context.Context) (any, error) {
	ports, l := e.sourcePorts.Assignments(), &e.looks
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.last.Time) < leastBetweenLooks {
		return l.last, nil
	}
	result, seen := status.Usage{Node: e.config.NodeName, Time: now, Addresses: []status.AddressUsage{}}, map[v1.IPFamily]conntrack.Seen{}
	fast, err := e.fastUsage()
	if err != nil {
		return nil, err
	}
	if l.seen != nil {
		result.Seconds = now.Sub(l.last.Time).Seconds()
		result.FastPath = since(l.fast, fast)
	}
	for name, f := range e.families {
		usage, flows, err := conntrack.Look(ctx, kernel.Family(name), f.reconciler.Written(), l.seen[name])
		if err != nil {
			return nil, err
		}
		seen[name] = flows
		for ip, u := range usage {
			result.Addresses = append(result.Addresses, addressUsage(ip, u))
		}
	}
	result.CountPorts(ports)
	slices.SortFunc(result.Addresses, func(a, b status.AddressUsage) int { return a.IP.Compare(b.IP) })
	l.keep(result, seen, fast)
	return result, nil
}

// keep keeps a look for the next one, but not for long: it may be large. The lock must be held.
func (l *looks) keep(result status.Usage, seen map[v1.IPFamily]conntrack.Seen, fast *status.FastUsage) {
	l.last, l.seen, l.fast = result, seen, fast
	if l.forget != nil {
		l.forget.Stop()
	}
	l.forget = time.AfterFunc(looksKept, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.last.Time.Equal(result.Time) {
			l.seen = nil
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
		IP: ip, Flows: u.Flows, New: u.New, Ports: u.Ports, PortSpace: conntrack.PortSpace, Sent: u.Sent, Received: u.Received,
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
