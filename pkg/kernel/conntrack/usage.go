package conntrack

import (
	"cmp"
	"net/netip"

	"github.com/openshift/origin-node/pkg/kernel"
)

// allPorts are the ports that there are to leave from for one egress IP, destination address and port, and IP protocol. From about 95 % on
// the kernel drops the first packets of new flows without a word. So it does with those that pods without a block share, where pods have blocks.
var allPorts = kernel.Ports{First: 1024, Last: 65535}

// Usage is how much one egress IP is used.
type Usage struct {
	// Flows is how many tracked flows use it, from whatever source, but for those that
	// have the address of their own.
	Flows int
	// Busiest is the destination, after DNAT, to which the largest part of the ports is in use, and Protocol the IP
	// protocol number that they have; the zero AddrPort if there are none, or tens of thousands of which none stands out.
	Busiest  netip.AddrPort
	Protocol uint8
	// Ports is how many of PortSpace ports are in use there, one per flow, or some fewer: see mostDestinations. For
	// protocols without ports all flows to an address count together. The ports are all, or those that pods without a block share if a
	// larger part of these is in use.
	Ports, PortSpace int
	// Sent is how many tracked flows of bound pods leave with it from another node. Here they have the pods'
	// own address. Received is how many of Flows are of bound pods that are known to run on another node.
	Sent, Received int
	// New is how many of Flows and Sent the last [Table.CountNew] has not seen; 0 if there was none.
	New int
}

// mostDestinations is for how many destinations of one egress IP flows are counted at once: a pod that sends to everywhere makes
// as many as the kernel tracks flows. If there are more, a destination's number may be too low, at most by the 16,384th part of all
// flows of the egress IP: 61 if there are a million.
const mostDestinations = 1 << 14

// Seen are the flows that a [Table.CountNew] saw, by a number that the kernel gives each of them. It is a hash: two of a hundred thousand
// may have the same.
type Seen map[uint32]struct{}

// counter counts flows by who they seem to be and where they go.
type counter struct {
	plan *Selector
	of   map[netip.Addr]*count
	// shared are the ports that pods without a block share, by egress IP.
	shared map[netip.Addr]kernel.Ports
	// before are the flows of the last look, seen those of this one; nil if nobody asks.
	before, seen Seen
}

// count is what uses one egress IP.
type count struct {
	flows int
	// toAll are the destinations of all flows, toShared those of flows that have one of the shared ports.
	toAll, toShared destinations
	sent, received  int
	fresh           int
}

// destinations are how many flows each has.
type destinations map[destination]int

type destination struct {
	protocol uint8
	to       netip.AddrPort
}

// newCounter returns one for the egress IPs of written. local are the node's own addresses.
func newCounter(written kernel.Desired, local kernel.CIDRSet) *counter {
	c := &counter{plan: NewSelector(written, Scope{All: true}, local), of: map[netip.Addr]*count{}, shared: written.Steering.Shared}
	for _, b := range written.Bindings {
		c.of[b.EgressIP] = nil
	}
	c.reset()
	return c
}

// reset forgets what was counted.
func (c *counter) reset() {
	for ip := range c.of {
		c.of[ip] = &count{toAll: destinations{}, toShared: destinations{}}
	}
	clear(c.seen)
}

// addTracked is add, and also tells which flows have one of the shared ports.
func (c *counter) addTracked(t *tracked) (uses *count) {
	uses = c.add(t.Flow)
	if uses == nil {
		return nil
	}
	if shared, is := c.shared[t.SeenAs]; is && shared.Contains(t.replying.destination.Port()) {
		uses.toShared.note(destination{t.Protocol, t.Destination})
	}
	return uses
}

// add counts a flow, and returns the count that it belongs to; nil if it uses no egress IP.
func (c *counter) add(f Flow) (uses *count) {
	if f.Zone != 0 {
		return nil
	}
	if f.Source == f.SeenAs {
		ip, sent := c.plan.sendsOn(f)
		if !sent {
			return nil
		}
		c.of[ip].sent++
		return c.of[ip]
	}
	if uses = c.of[f.SeenAs]; uses == nil {
		return nil
	}
	uses.flows++
	uses.toAll.note(destination{f.Protocol, f.Destination})
	if ip, bound := find(c.plan.bound, f); bound && ip == f.SeenAs && c.plan.steering.Elsewhere(f.Source) {
		uses.received++
	}
	return uses
}

// note counts a flow to a destination. One that is too much is set off against one flow of each other (Misra and Gries, "Finding
// repeated elements", 1982): what remains are the busiest.
func (ds destinations) note(d destination) {
	if _, known := ds[d]; known || len(ds) < mostDestinations {
		ds[d]++
		return
	}
	for other, flows := range ds {
		if flows == 1 {
			delete(ds, other)
			continue
		}
		ds[other] = flows - 1
	}
}

// see notes a flow that was counted, and whether it is new. Without an earlier look none is.
func (c *counter) see(uses *count, number uint32) {
	c.seen[number] = struct{}{}
	if _, known := c.before[number]; !known && c.before != nil {
		uses.fresh++
	}
}

// usage has every egress IP. Among equally busy destinations the first by protocol and
// address is named, so that a metric does not jump.
func (c *counter) usage() map[netip.Addr]Usage {
	result := make(map[netip.Addr]Usage, len(c.of))
	for egressIP, uses := range c.of {
		u := Usage{Flows: uses.flows, Sent: uses.sent, Received: uses.received, New: uses.fresh}
		to, ports := uses.toAll.busiest()
		u.Busiest, u.Protocol, u.Ports, u.PortSpace = to.to, to.protocol, ports, allPorts.Size()
		if to, ports := uses.toShared.busiest(); ports*allPorts.Size() > u.Ports*c.shared[egressIP].Size() {
			u.Busiest, u.Protocol, u.Ports, u.PortSpace = to.to, to.protocol, ports, c.shared[egressIP].Size()
		}
		result[egressIP] = u
	}
	return result
}

// busiest returns the destination that most flows go to, and how many.
func (ds destinations) busiest() (to destination, flows int) {
	for d, n := range ds {
		if n > flows || n == flows && d.compare(to) < 0 {
			to, flows = d, n
		}
	}
	return to, flows
}

func (d destination) compare(o destination) int {
	return cmp.Or(cmp.Compare(d.protocol, o.protocol), d.to.Compare(o.to))
}
