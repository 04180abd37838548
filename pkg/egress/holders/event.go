package holders

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Event is something that a [Directory] has to know: one of the types below.
type Event interface{ apply(d *Directory) }

// OwnAddresses says which addresses this node has, all of them.
type OwnAddresses struct {
	Addresses []netip.Addr
	// Announced are those of them that are on no interface of this node: other software receives their packets here. This node yields
	// to another live one that has got such an address later.
	Announced []netip.Addr
}

// Own returns an OwnAddresses of the addresses on a node's interfaces, and of those that a load balancer announces from there.
func Own(onInterfaces, announced []netip.Addr) OwnAddresses {
	event := OwnAddresses{Addresses: slices.Clone(onInterfaces)}
	for _, ip := range announced {
		if !slices.Contains(onInterfaces, ip) {
			event.Announced = append(event.Announced, ip)
		}
	}
	event.Addresses = append(event.Addresses, event.Announced...)
	return event
}

// Elsewhere says which of this node's addresses another host on the network answers for, too, all of them. This node yields to another
// live one that has got such an address later: other software may have left it here.
type Elsewhere struct{ Addresses []netip.Addr }

// Statement is what a node announces: which addresses it has, with their epochs, all of them.
type Statement struct {
	Addresses map[netip.Addr]uint64
	// Revision grows each time a node says something else, also over restarts of its process. So it
	// tells which of two statements of a node is the later one.
	Revision uint64
}

// equal tells whether s and o say the same.
func (s Statement) equal(o Statement) bool {
	return s.Revision == o.Revision && maps.Equal(s.Addresses, o.Addresses)
}

// Announced says what a node announces, in its Lease or directly. Direct announcements are told each time
// that they are heard.
type Announced struct {
	Node string
	Statement
	Source Source
	// Renewed is the time that the Lease has, by its node's clock. It is compared for equality
	// only: a Lease that is seen again is no sign of life.
	Renewed time.Time
}

// LeaseDeleted says that a node has no Lease any more.
type LeaseDeleted struct{ Node string }

// Chosen says which egress IPs a node has chosen for its pods whose Services have several: by Service (namespace/name), and the pod's
// address. It is told when that changes. A Directory has no use for it.
type Chosen struct {
	Node    string
	Choices map[string]map[netip.Addr]netip.Addr
}

// Assigned says which source ports a node's pods have of egress IPs, all of them, in its Lease or directly. Direct announcements are told
// each time that they are heard; the list is the same one then. It must not be changed. A Directory has no use for it.
type Assigned struct {
	Node     string
	Blocks   []kernel.Block
	Revision uint64
	Source   Source
}

// LeasesKnown says that the Leases that there were at the start have been told. Before that this node's
// addresses have no epochs.
type LeasesKnown struct{}

// Claimed says which egress IPs Services claim and may have, all of them; nodes may announce others, which count for nothing as long as no
// such Service claims them. Before it is told, all count. The map must not be changed any more.
type Claimed struct{ Addresses map[netip.Addr]bool }

// Hearing says whether changes of Leases are heard of. As long as they are not, no node is found silent.
type Hearing struct{ Now bool }

// NodeSeen says that there is a Node object, and what it says.
type NodeSeen struct {
	Name string
	// Ready: its condition of that name is True.
	Ready bool
	// InternalIPs are its addresses of that type, in its order. The first of each IP family counts.
	InternalIPs []netip.Addr
}

// NodeDeleted says that there is no Node object of this name.
type NodeDeleted struct{ Name string }

func (e Elsewhere) apply(d *Directory) {
	before := d.elsewhere
	d.elsewhere = kernel.SetOf(e.Addresses)
	for ip := range d.own {
		if before[ip] != d.elsewhere[ip] {
			d.refresh(ip)
		}
	}
}

func (e Announced) apply(d *Directory) {
	n := d.node(e.Node)
	said := &n.lease
	if e.Source == Announcement {
		said = &n.direct
	}
	same := *said != nil && (*said).equal(e.Statement)
	if e.Source == Announcement {
		n.heardDirectly = d.now
	} else if same && n.renewed.Equal(e.Renewed) {
		return
	} else {
		n.renewed = e.Renewed
	}
	before := *n
	n.spoke, n.excused = d.now, false
	n.heard, n.silent, n.moving = d.now, false, n.moving || d.leasesKnown || e.Source == Announcement
	if !same || before.silent || before.moving != n.moving {
		d.state(e.Node, func(*node) { *said = &Statement{maps.Clone(e.Addresses), e.Revision} })
	}
	d.insist(e.Node, e.Source)
}

func (e LeaseDeleted) apply(d *Directory) {
	d.state(e.Node, func(n *node) { n.lease, n.renewed = nil, time.Time{} })
}

func (Chosen) apply(*Directory) {}

func (Assigned) apply(*Directory) {}

func (LeasesKnown) apply(d *Directory) {
	d.leasesKnown = true
	d.giveEpochs()
}

func (e Claimed) apply(d *Directory) {
	before := map[string]map[netip.Addr]bool{}
	for name, n := range d.speakers {
		before[name] = d.listed(n)
	}
	d.claimed = e.Addresses
	concerned := map[netip.Addr]bool{}
	for name, n := range d.speakers {
		after := d.listed(n)
		for ip := range before[name] {
			if !after[ip] {
				delete(d.addresses[ip].announcers, name)
				concerned[ip] = true
			}
		}
		for ip := range after {
			if !before[name][ip] {
				d.address(ip).announcers[name] = d.now
				concerned[ip] = true
			}
		}
	}
	for ip := range concerned {
		d.refresh(ip)
	}
}

func (e Hearing) apply(d *Directory) {
	if e.Now && d.deaf {
		for _, n := range d.nodes {
			n.heard, n.heardDirectly = d.now, d.now // of no meaning for one that is silent, or was not heard
			if !n.excused {
				n.spoke, n.excused = d.now, true
			}
		}
	}
	d.deaf = !e.Now
}

func (e NodeSeen) apply(d *Directory) {
	n := d.node(e.Name)
	n.silent = n.silent && !e.Ready
	n.exists, n.ready, n.address = true, e.Ready, netip.Addr{}
	for _, ip := range e.InternalIPs {
		if ip.Is4() == (d.config.Outer == kernel.IPv4) {
			n.address = ip
			break
		}
	}
	if at := d.silentAt(n); !at.IsZero() && !at.After(d.now) {
		n.silent = true
	}
	d.refreshAll(n)
}

func (e NodeDeleted) apply(d *Directory) {
	n := d.node(e.Name)
	n.exists, n.ready, n.silent, n.address = false, false, false, netip.Addr{}
	d.refreshAll(n)
	d.forget(e.Name)
}
