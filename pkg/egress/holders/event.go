package holders

import (
	"maps"
	"net/netip"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Event is something that a [Directory] has to know: one of the types below.
type Event interface{ apply(d *Directory) }

// OwnAddresses says which addresses this node has, all of them.
type OwnAddresses struct{ Addresses []netip.Addr }

// Announced says which addresses a node announces, with their epochs: all of them. What came last counts,
// from whichever source.
type Announced struct {
	Node      string
	Addresses map[netip.Addr]uint64
	Source    Source
	// Renewed is the time that the announcement has, by its node's clock. It is compared for equality
	// only: an announcement that is seen again is no sign of life.
	Renewed time.Time
}

// LeaseDeleted says that a node announces nothing any more.
type LeaseDeleted struct{ Node string }

// LeasesKnown says that the Leases that there were at the start have been told. Before that this node's
// addresses have no epochs.
type LeasesKnown struct{}

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

func (e OwnAddresses) apply(d *Directory) {
	before := d.own
	d.own = make(map[netip.Addr]uint64, len(e.Addresses))
	for _, ip := range e.Addresses {
		d.own[ip] = before[ip] // 0 for a new one
	}
	d.ownKnown = true
	d.giveEpochs()
	for ip := range before {
		d.settle(ip)
	}
	for ip := range d.own {
		d.settle(ip)
	}
}

func (e Announced) apply(d *Directory) {
	n := d.node(e.Node)
	same := n.source == e.Source && maps.Equal(n.announced, e.Addresses)
	if same && n.renewed.Equal(e.Renewed) {
		return
	}
	wasSilent := n.silent
	n.renewed, n.heard, n.silent = e.Renewed, d.now, false
	if !same || wasSilent {
		d.announce(e.Node, e.Addresses, e.Source)
	}
}

func (e LeaseDeleted) apply(d *Directory) {
	d.node(e.Node).renewed = time.Time{}
	d.announce(e.Node, nil, "")
}

func (LeasesKnown) apply(d *Directory) {
	d.leasesKnown = true
	d.giveEpochs()
}

func (e Hearing) apply(d *Directory) {
	if e.Now && d.deaf {
		for _, n := range d.nodes {
			n.heard = d.now // of no meaning for one that is silent
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
	d.settleAll(n)
}

func (e NodeDeleted) apply(d *Directory) {
	n := d.node(e.Name)
	n.exists, n.ready, n.silent, n.address = false, false, false, netip.Addr{}
	d.settleAll(n)
	d.forget(e.Name)
}
