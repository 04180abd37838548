package conntrack

import (
	"cmp"
	"net/netip"
)

// PortSpace is how many ports there are to leave from (1024–65535) for one egress IP,
// destination address and port, and IP protocol. From about 95 % on the kernel drops the
// first packets of new flows without a word.
const PortSpace = 64512

// Usage is what wears one egress IP.
type Usage struct {
	// Flows is how many tracked flows wear it, whoever their source is, but for those that
	// have the address of their own.
	Flows int
	// Busiest is the destination, after DNAT, that most of them go to, and Protocol the IP
	// protocol number that they have; the zero AddrPort if there are none.
	Busiest  netip.AddrPort
	Protocol uint8
	// Ports is how many of the [PortSpace] ports are in use there, one per flow. For
	// protocols without ports all flows to an address count together.
	Ports int
}

// counter counts flows by who they seem to be and where they go.
type counter map[netip.Addr]map[destination]int

type destination struct {
	protocol uint8
	to       netip.AddrPort
}

func newCounter(egressIPs []netip.Addr) counter {
	c := make(counter, len(egressIPs))
	for _, ip := range egressIPs {
		c[ip] = map[destination]int{}
	}
	return c
}

func (c counter) add(f Flow) {
	if destinations := c[f.Wears]; destinations != nil && f.Zone == 0 && f.Source != f.Wears {
		destinations[destination{f.Protocol, f.Destination}]++
	}
}

// usage has every egress IP. Among equally busy destinations the first by protocol and
// address is named, so that a metric does not jump.
func (c counter) usage() map[netip.Addr]Usage {
	result := make(map[netip.Addr]Usage, len(c))
	for egressIP, destinations := range c {
		var u Usage
		for d, n := range destinations {
			u.Flows += n
			if n > u.Ports || n == u.Ports && d.compare(destination{u.Protocol, u.Busiest}) < 0 {
				u.Busiest, u.Protocol, u.Ports = d.to, d.protocol, n
			}
		}
		result[egressIP] = u
	}
	return result
}

func (d destination) compare(o destination) int {
	return cmp.Or(cmp.Compare(d.protocol, o.protocol), d.to.Compare(o.to))
}
