package conntrack

import (
	"cmp"
	"net/netip"

	"github.com/openshift/origin-node/pkg/kernel"
)

// PortSpace is how many ports there are to leave from (1024–65535) for one egress IP,
// destination address and port, and IP protocol. From about 95 % on the kernel drops the
// first packets of new flows without a word.
const PortSpace = 64512

// Usage is how much one egress IP is used.
type Usage struct {
	// Flows is how many tracked flows use it, from whatever source, but for those that
	// have the address of their own.
	Flows int
	// Busiest is the destination, after DNAT, that most of them go to, and Protocol the IP
	// protocol number that they have; the zero AddrPort if there are none, or tens of thousands of which none stands out.
	Busiest  netip.AddrPort
	Protocol uint8
	// Ports is how many of the [PortSpace] ports are in use there, one per flow, or some fewer: see mostDestinations. For
	// protocols without ports all flows to an address count together.
	Ports int
	// Sent is how many tracked flows of bound pods leave with it from another node. Here they have the pods'
	// own address. Received is how many of Flows are of bound pods that are known to run on another node.
	Sent, Received int
	// New is how many of Flows and Sent the last [Look] has not seen; 0 if there was none.
	New int
}

// mostDestinations is for how many destinations of one egress IP flows are counted at once: a pod that sends to everywhere makes
// as many as the kernel tracks flows. If there are more, a destination's number may be too low, at most by the 16,384th part of all
// flows of the egress IP: 61 if there are a million.
const mostDestinations = 1 << 14

// Seen are the flows that a [Look] saw, by a number that the kernel gives each of them. It is a hash: two of a hundred thousand
// may have the same.
type Seen map[uint32]struct{}

// counter counts flows by who they seem to be and where they go.
type counter struct {
	plan *Selector
	of   map[netip.Addr]*count
	// before are the flows of the last look, seen those of this one; nil if nobody asks.
	before, seen Seen
}

// count is what uses one egress IP.
type count struct {
	flows          int
	destinations   map[destination]int
	sent, received int
	fresh          int
}

type destination struct {
	protocol uint8
	to       netip.AddrPort
}

// newCounter returns one for the egress IPs of written. local are the node's own addresses.
func newCounter(written kernel.Desired, local kernel.CIDRSet) *counter {
	c := &counter{plan: NewSelector(written, Scope{All: true}, local), of: map[netip.Addr]*count{}}
	for _, b := range written.Bindings {
		c.of[b.EgressIP] = nil
	}
	c.reset()
	return c
}

// reset forgets what was counted.
func (c *counter) reset() {
	for ip := range c.of {
		c.of[ip] = &count{destinations: map[destination]int{}}
	}
	clear(c.seen)
}

// add counts a flow, and returns the count that it belongs to; nil if it uses no egress IP.
func (c *counter) add(f Flow) (uses *count) {
	if f.Zone != 0 {
		return nil
	}
	if f.Source == f.Wears {
		ip, sent := c.plan.sendsOn(f)
		if !sent {
			return nil
		}
		c.of[ip].sent++
		return c.of[ip]
	}
	if uses = c.of[f.Wears]; uses == nil {
		return nil
	}
	uses.flows++
	uses.note(destination{f.Protocol, f.Destination})
	if ip, bound := find(c.plan.bound, f); bound && ip == f.Wears && c.plan.elsewhere(f.Source) {
		uses.received++
	}
	return uses
}

// note counts a flow to a destination. One that is too much is set off against one flow of each other (Misra and Gries, "Finding
// repeated elements", 1982): what remains are the busiest.
func (c *count) note(d destination) {
	if _, known := c.destinations[d]; known || len(c.destinations) < mostDestinations {
		c.destinations[d]++
		return
	}
	for other, flows := range c.destinations {
		if flows == 1 {
			delete(c.destinations, other)
			continue
		}
		c.destinations[other] = flows - 1
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
		var to destination
		to, u.Ports = uses.busiest()
		u.Busiest, u.Protocol = to.to, to.protocol
		result[egressIP] = u
	}
	return result
}

// busiest returns the destination that most flows go to, and how many.
func (c *count) busiest() (to destination, flows int) {
	for d, n := range c.destinations {
		if n > flows || n == flows && d.compare(to) < 0 {
			to, flows = d, n
		}
	}
	return to, flows
}

func (d destination) compare(o destination) int {
	return cmp.Or(cmp.Compare(d.protocol, o.protocol), d.to.Compare(o.to))
}
