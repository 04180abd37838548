package holders

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

const (
	// silence is how long a Lease does not change whose node is silent: four renewals did not come. A
	// direct announcement that was not repeated for so long does not count any more.
	silence = 40 * time.Second
	// lostTime is how long another node may take to get an address that no node has any more. So long
	// packets are dropped in silence, and TCP repeats them.
	lostTime = 5 * time.Second
	// MaxEpoch is the largest epoch that is read, and issued. An address that moved every millisecond would not get there in thirty
	// years, so a node that announces a higher one is dishonest or broken. MaxEpoch itself does not bind an address to a node for
	// ever: the next holder gets the same epoch. Of several nodes with it, those that give signs of life count first, and of these
	// the one that has announced the address last.
	MaxEpoch = 1 << 40
	// maxRevision is the largest revision that is read: after one near 2^64 no other could follow. Revisions are milliseconds, see
	// [portblocks.NextRevision].
	maxRevision = 1 << 42
	// doubtful is the first revision of a Lease that says nothing of what is later: no honest node gets there, and whoever may
	// write Leases can write it. It is so far below maxRevision that no process gets from here to there.
	doubtful = maxRevision / 2
)

// Config is what a [Directory] does not learn from events.
type Config struct {
	// NodeName is the name of this node.
	NodeName string
	// Outer is the IP family of the addresses by which the nodes reach each other.
	Outer kernel.Family
}

// Directory knows who holds which address. What the package's comment says follows from the events and from what the pool's part of this
// node decides ([Directory.Take], Release, Find, Want and See), and from the times of them. A question lets time pass, and changes nothing
// else. It is for one goroutine at a time.
//
// Times must not go back; a time before the last one counts as that.
type Directory struct {
	config Config
	// now is the time of the last event or question.
	now time.Time
	// own are the addresses that this node has, takes or removes. Of these held are the pool's, and handing those that another node
	// has taken over. seen are the addresses that the pool is to hold.
	own, held, handing map[netip.Addr]*own
	seen               map[netip.Addr]seenEpoch
	// elsewhere are those that another host answers for.
	elsewhere map[netip.Addr]bool
	// ownKnown and leasesKnown: they have been told. started: both were when an epoch was given.
	ownKnown, leasesKnown, started bool
	// claimed are the addresses that Services claim; nil if that is not known. Of others nothing is kept but the statements.
	claimed map[netip.Addr]bool
	// deaf: changes of Leases are not heard of.
	deaf  bool
	nodes map[string]*node
	// speakers are those of them that have a statement with addresses, or a direct one: a few of thousands, of whose Nodes each is reported
	// every so often. What else is in a Lease does not count here.
	speakers  map[string]*node
	addresses map[netip.Addr]*address
	// lost are those of them that are.
	lost map[netip.Addr]*address
	// leaving has the addresses that nobody announces any more, with the time when they become
	// unclaimed.
	leaving map[netip.Addr]time.Time
	// turnAt is when a node becomes silent, or an address unclaimed, if nothing else happens; zero
	// for never.
	turnAt time.Time
	// changed: an answer has changed since Apply has last said so.
	changed bool
}

// node is what is known of a node, this one included.
type node struct {
	// exists: there is a Node object, which is Ready or not, and has an address or not.
	exists, ready bool
	address       netip.Addr
	// lease is what its Lease says, direct what it has announced directly; nil for nothing.
	lease, direct *Statement
	// counts is the one of them that counts. It is empty if there is neither.
	counts Statement
	// renewed is the time in the Lease.
	renewed time.Time
	// heard is when the node last gave a sign of life: its Lease was seen to change, or it announced
	// something. heardDirectly is when it last announced something. Both are when changes of Leases were
	// first heard of again, if that was later.
	heard, heardDirectly time.Time
	// spoke is when it last gave a sign of life itself. After that, spoke moves once, if changes of Leases are heard of again: it may have
	// given one meanwhile. excused: it has moved.
	spoke   time.Time
	excused bool
	silent  bool
	// moving: it gave a sign of life within silence. A Lease that was there when this process started is none.
	moving bool
	// atBound: it announces an address with the largest epoch.
	atBound bool
}

// choose finds out which statement counts: the later one of its node. What it says directly is not hidden by a Lease with a
// revision that it cannot exceed.
func (n *node) choose() {
	switch {
	case n.direct != nil && (n.lease == nil || n.direct.Revision >= n.lease.Revision || n.lease.Revision >= doubtful):
		n.counts = *n.direct
	case n.lease != nil:
		n.counts = *n.lease
	default:
		n.counts = Statement{}
	}
	n.atBound = false
	for _, epoch := range n.counts.Addresses {
		n.atBound = n.atBound || epoch == MaxEpoch
	}
}

// highest returns the highest epoch that an address has in either statement.
func (n *node) highest(ip netip.Addr) (epoch uint64) {
	for _, s := range []*Statement{n.lease, n.direct} {
		if s != nil {
			epoch = max(epoch, s.Addresses[ip])
		}
	}
	return epoch
}

// counts tells whether what nodes announce of an address counts.
func (d *Directory) counts(ip netip.Addr) bool { return d.claimed == nil || d.claimed[ip] }

// listed are the addresses in either statement of a node, those that count.
func (d *Directory) listed(n *node) map[netip.Addr]bool {
	set := map[netip.Addr]bool{}
	for _, s := range []*Statement{n.lease, n.direct} {
		if s == nil {
			continue
		}
		for ip := range s.Addresses {
			if d.counts(ip) {
				set[ip] = true
			}
		}
	}
	return set
}

// source says from where it is known that the node has an address, with the epoch that counts.
func (n *node) source(ip netip.Addr) Source {
	says := func(s *Statement) bool { return s != nil && s.Addresses[ip] == n.counts.Addresses[ip] }
	switch {
	case !says(n.direct):
		return Lease
	case !says(n.lease):
		return Announcement
	}
	return LeaseAndAnnouncement
}

// address is one that somebody has, announces, or had until a moment ago.
type address struct {
	// announcers are the names of the nodes that announce it, in a statement that counts or does not, and since when with the same
	// epoch.
	announcers map[string]time.Time
	holding    Holding
	// rivals are the live nodes that have it, if there are several; the first is the holder. Of the others, dissents has what they have said
	// since it is the holder.
	rivals   []string
	dissents map[string]dissent
}

// dissent is that a node says that it has an address of another holder: directly, or by its Lease. The first change of that, which was at
// renewed, and what comes with it count for nothing: it may be news of before that comes late. since is zero if it has said so not yet.
type dissent struct {
	renewed, since time.Time
}

// NewDirectory returns a Directory that knows of nobody.
func NewDirectory(config Config) *Directory {
	return &Directory{
		config: config, own: map[netip.Addr]*own{}, held: map[netip.Addr]*own{}, handing: map[netip.Addr]*own{}, seen: map[netip.Addr]seenEpoch{},
		nodes: map[string]*node{}, speakers: map[string]*node{},
		addresses: map[netip.Addr]*address{}, lost: map[netip.Addr]*address{}, leaving: map[netip.Addr]time.Time{},
	}
}

// NodeName is the name of this node.
func (d *Directory) NodeName() string { return d.config.NodeName }

// Apply takes note of an event. It tells whether any answer has changed, as Changed does.
func (d *Directory) Apply(event Event, now time.Time) (changed bool) {
	d.advance(now)
	event.apply(d)
	return d.Changed()
}

// Changed tells whether any answer has changed since the last call: that of Holder but for Since, that of Own, that of Leased but for its
// third result, or which live nodes have an address. Ask it also after the pool's part of this node has decided something.
func (d *Directory) Changed() (changed bool) {
	d.turnAt = d.nextTurn()
	changed, d.changed = d.changed, false
	return changed
}

// Holder says who holds an address.
func (d *Directory) Holder(ip netip.Addr, now time.Time) Holding {
	d.advance(now)
	if a := d.addresses[ip]; a != nil {
		return a.holding
	}
	return Holding{State: Unclaimed}
}

// EpochElsewhere returns the highest epoch with which another live node has an address; 0 if none has it.
func (d *Directory) EpochElsewhere(ip netip.Addr, now time.Time) (epoch uint64) {
	for h := range d.remote(ip, now) {
		epoch = max(epoch, h.Epoch)
	}
	return epoch
}

// Overtaken tells whether another live node has an address with a higher epoch than this one, or with the same one and a name that sorts
// later. Of two with [MaxEpoch] it tells nothing: which of them has got it later, this node may not know yet.
func (d *Directory) Overtaken(ip netip.Addr, epoch uint64, now time.Time) bool {
	for h := range d.remote(ip, now) {
		if h.Epoch > epoch || h.Epoch == epoch && epoch < MaxEpoch && h.Node > d.config.NodeName {
			return true
		}
	}
	return false
}

// remote are the other live nodes that have an address.
func (d *Directory) remote(ip netip.Addr, now time.Time) iter.Seq[Holding] {
	d.advance(now)
	return func(yield func(Holding) bool) {
		a := d.addresses[ip]
		if a == nil {
			return
		}
		for name := range a.announcers {
			if h, counts := d.announced(ip, name); counts && h.State == Remote && !yield(h) {
				return
			}
		}
	}
}

// Own returns this node's addresses with their epochs, for others to know. It is nil as long as this
// node's addresses or the Leases are not known.
func (d *Directory) Own() map[netip.Addr]uint64 {
	if !d.started {
		return nil
	}
	here := make(map[netip.Addr]uint64, len(d.own))
	for ip, o := range d.own {
		if o.here() {
			here[ip] = o.epoch
		}
	}
	return here
}

// Announces are those of them that Services claim; nil as long as these are not known either.
func (d *Directory) Announces() map[netip.Addr]uint64 {
	own := d.Own()
	if d.claimed == nil {
		return nil
	}
	maps.DeleteFunc(own, func(ip netip.Addr, _ uint64) bool { return !d.claimed[ip] })
	return own
}

// HandingOver are the addresses that another node has taken over, and whose packets still leave from here.
func (d *Directory) HandingOver(now time.Time) iter.Seq[netip.Addr] {
	d.advance(now)
	return maps.Keys(d.handing)
}

// NextRevision returns the revision of what this node says next, after that of what its process has said last; 0 if it has said
// nothing. All nodes read it, and follow it rather than this node's present Lease, whoever has written that. They also follow it rather
// than what an earlier process announced directly, even if that process was killed before its Lease had it, unless the clock was set back.
func (d *Directory) NextRevision(said uint64) uint64 {
	if n := d.nodes[d.config.NodeName]; n != nil && n.lease != nil {
		return nextRevision(said, n.lease.Revision, d.now)
	}
	return nextRevision(said, 0, d.now)
}

// nextRevision returns the one after that of what a process has said last, and of its node's Lease unless that is doubtful. So it
// is at most doubtful, and as many more as the process says something else.
func nextRevision(said, lease uint64, now time.Time) uint64 {
	if lease >= doubtful {
		return portblocks.NextRevision(said, now)
	}
	return portblocks.NextRevision(max(said, lease), now)
}

// Ways returns the ways of packets that have these egress IPs and do not leave from this node.
func (d *Directory) Ways(egressIPs []netip.Addr, mode Mode, now time.Time) map[netip.Addr]kernel.Way {
	ways := map[netip.Addr]kernel.Way{}
	for _, ip := range egressIPs {
		holding := d.Holder(ip, now)
		switch {
		case holding.State == Remote:
			ways[ip] = kernel.Way{Kind: kernel.ToNode, Node: holding.Address}
		case holding.State == Lost && d.now.Before(holding.Since.Add(lostTime)):
			ways[ip] = kernel.Way{Kind: kernel.Blackhole}
		case holding.State == Lost, holding.State == Unclaimed && mode == Required:
			ways[ip] = kernel.Way{Kind: kernel.Prohibit}
		}
	}
	return ways
}

// Conflicts returns the addresses that several live nodes have, sorted. A node is left out that may not have said so since the holder has the
// address: that may have moved because the node has failed.
func (d *Directory) Conflicts(now time.Time) (conflicts []Conflict) {
	d.advance(now)
	for ip, a := range d.addresses {
		c := Conflict{Address: ip}
		for i, name := range a.rivals {
			since := a.dissents[name].since
			if i > 0 && since.IsZero() {
				continue
			}
			c.Nodes, c.Since = append(c.Nodes, name), Earlier(c.Since, since)
		}
		if len(c.Nodes) > 1 {
			conflicts = append(conflicts, c)
		}
	}
	slices.SortFunc(conflicts, func(a, b Conflict) int { return a.Address.Compare(b.Address) })
	return conflicts
}

// Wake returns when an answer may change although nothing happens; zero for never. It is after now.
func (d *Directory) Wake(now time.Time) time.Time {
	d.advance(now)
	wake := d.turnAt
	for _, a := range d.lost {
		if at := a.holding.Since.Add(lostTime); at.After(d.now) {
			wake = Earlier(wake, at)
		}
	}
	return wake
}

// Earlier returns the earlier of two times, of which zero is never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// advance lets time pass. What it changes has the time when it came about, whenever somebody asks.
func (d *Directory) advance(now time.Time) {
	for !d.turnAt.IsZero() && !d.turnAt.After(now) {
		d.now = d.turnAt
		d.turn()
		d.turnAt = d.nextTurn()
	}
	if now.After(d.now) {
		d.now = now
	}
}

// nextTurn returns the next time at which turn changes anything; zero for never.
func (d *Directory) nextTurn() (at time.Time) {
	for _, n := range d.speakers {
		at = Earlier(Earlier(Earlier(at, d.silentAt(n)), d.forgottenAt(n)), d.stillAt(n))
	}
	for _, until := range d.leaving {
		at = Earlier(at, until)
	}
	for _, o := range d.handing {
		at = Earlier(at, o.until)
	}
	return at
}

// turn does what is due now. Answers are refreshed when all of it is done: what comes about in between counts for nothing.
func (d *Directory) turn() {
	due := func(at time.Time) bool { return !at.IsZero() && !at.After(d.now) }
	concerned := map[netip.Addr]bool{}
	for name, n := range d.speakers {
		if due(d.silentAt(n)) {
			n.silent = true
			maps.Copy(concerned, d.listed(n))
		}
		if due(d.stillAt(n)) {
			n.moving = false
			maps.Copy(concerned, d.listed(n))
		}
		if due(d.forgottenAt(n)) {
			maps.Copy(concerned, d.restate(name, func(n *node) { n.direct = nil }))
		}
	}
	for ip := range d.leaving {
		concerned[ip] = true
	}
	for ip, o := range d.handing {
		if due(o.until) {
			d.leave(ip)
			concerned[ip] = true
		}
	}
	for ip := range concerned {
		d.refresh(ip)
	}
}

// silentAt returns when a node becomes silent, or has to be found silent, if nothing else happens; zero
// for never, and if it is.
func (d *Directory) silentAt(n *node) time.Time {
	if d.deaf || n.silent || !n.exists || n.ready || n.lease == nil && n.direct == nil {
		return time.Time{}
	}
	return n.heard.Add(silence)
}

// stillAt returns when a node has given no sign of life for too long, whether or not it is Ready, if nothing else happens; zero for
// never, and where that is of no matter.
func (d *Directory) stillAt(n *node) time.Time {
	if d.deaf || !n.moving || !n.atBound {
		return time.Time{}
	}
	return n.heard.Add(silence)
}

// forgottenAt returns when a node's direct announcement ceases to count, if it is not repeated; zero for
// never. As long as changes of Leases are not heard of, it is all that can be known.
func (d *Directory) forgottenAt(n *node) time.Time {
	if d.deaf || n.direct == nil {
		return time.Time{}
	}
	return n.heardDirectly.Add(silence)
}

// node returns the node of a name, which is made if need be.
func (d *Directory) node(name string) *node {
	n := d.nodes[name]
	if n == nil {
		n = &node{}
		d.nodes[name] = n
	}
	return n
}

// forget removes a node of which nothing is known any more.
func (d *Directory) forget(name string) {
	if n := d.nodes[name]; !n.exists && n.lease == nil && n.direct == nil {
		delete(d.nodes, name)
	}
}

// state has a node make other statements.
func (d *Directory) state(name string, change func(*node)) {
	for ip := range d.restate(name, change) {
		d.refresh(ip)
	}
}

// restate is state, but the addresses that it returns are still to be refreshed.
func (d *Directory) restate(name string, change func(*node)) (concerned map[netip.Addr]bool) {
	n := d.node(name)
	concerned = d.listed(n)
	before := n.counts.Addresses
	change(n)
	n.choose()
	if n.direct != nil || n.lease != nil && len(n.lease.Addresses) > 0 {
		d.speakers[name] = n
	} else {
		delete(d.speakers, name)
	}
	after := d.listed(n)
	for ip := range concerned {
		if !after[ip] {
			delete(d.addresses[ip].announcers, name)
		}
	}
	for ip := range after {
		if a := d.address(ip); !concerned[ip] || n.counts.Addresses[ip] != before[ip] {
			a.announcers[name] = d.now
		}
		concerned[ip] = true
	}
	d.forget(name)
	return concerned
}

// address returns what is known of an address, which is made if need be.
func (d *Directory) address(ip netip.Addr) *address {
	a := d.addresses[ip]
	if a == nil {
		a = &address{announcers: map[string]time.Time{}, holding: Holding{State: Unclaimed}}
		d.addresses[ip] = a
	}
	return a
}

// giveEpochs gives this node's addresses that have none an epoch, once it can be told.
func (d *Directory) giveEpochs() {
	if !d.ownKnown || !d.leasesKnown {
		return
	}
	for ip, o := range d.own {
		d.giveEpoch(ip, o)
	}
	d.changed = d.changed || !d.started // Own has an answer
	d.started = true
}

func (d *Directory) giveEpoch(ip netip.Addr, o *own) {
	if o.epoch == 0 && o.here() {
		o.epoch = d.newEpoch(ip)
		d.refresh(ip)
	}
}

// newEpoch returns the epoch of an address that this node has got. If it had the address already when
// the process started, that is the one in its Lease.
func (d *Directory) newEpoch(ip netip.Addr) uint64 {
	if own := d.speakers[d.config.NodeName]; own != nil && own.highest(ip) > 0 && !d.started {
		return own.highest(ip)
	}
	return min(d.highest(ip)+1, MaxEpoch)
}

// highest returns the highest epoch of an address that is known: of what nodes announce, of a holder that is lost, and of what the pool
// has seen.
func (d *Directory) highest(ip netip.Addr) (epoch uint64) {
	epoch = d.seen[ip].epoch
	if a := d.addresses[ip]; a != nil {
		epoch = max(epoch, a.holding.Epoch)
	}
	for _, n := range d.speakers { // also of what no Service claims yet
		epoch = max(epoch, n.highest(ip))
	}
	return epoch
}

// refreshAll refreshes the answers about all addresses that a node announces.
func (d *Directory) refreshAll(n *node) {
	for ip := range n.counts.Addresses {
		if d.counts(ip) {
			d.refresh(ip)
		}
	}
}

// refresh brings what is answered about an address up to date.
func (d *Directory) refresh(ip netip.Addr) {
	a := d.address(ip)
	candidates := d.candidates(ip, a)
	d.seeAll(ip, a, candidates)
	holding := d.judge(ip, a.holding, candidates)
	switch {
	case holding.State == Unclaimed:
		holding.Since = time.Time{}
	case holding.State == a.holding.State && (holding.State == Lost || holding.Node == a.holding.Node):
		holding.Since = a.holding.Since
	default:
		holding.Since = d.now
	}
	rivals := rivals(candidates)
	d.changed = d.changed || holding != a.holding || !slices.Equal(rivals, a.rivals)
	if holding.Node != a.holding.Node || !holding.Since.Equal(a.holding.Since) {
		a.dissents = nil
	}
	a.holding, a.rivals = holding, rivals
	maps.DeleteFunc(a.dissents, func(name string, _ dissent) bool { return slices.Index(rivals, name) < 1 })
	if slices.Index(rivals, d.config.NodeName) > 0 {
		d.dissent(a, d.config.NodeName, Announcement)
	}
	if holding.State == Lost {
		d.lost[ip] = a
	} else {
		delete(d.lost, ip)
	}
	if holding.State == Unclaimed && len(a.announcers) == 0 {
		delete(d.addresses, ip)
	}
}

// insist notes that a live node has said, in this way, that it has what it announces.
func (d *Directory) insist(name string, by Source) {
	for ip := range d.nodes[name].counts.Addresses {
		if a := d.addresses[ip]; a != nil && slices.Index(a.rivals, name) > 0 {
			d.dissent(a, name, by)
		}
	}
}

// dissent notes that a node which is not the holder has an address.
func (d *Directory) dissent(a *address, name string, by Source) {
	if a.dissents == nil {
		a.dissents = map[string]dissent{}
	}
	known := a.dissents[name]
	switch {
	case !known.since.IsZero():
	case by == Announcement, !known.renewed.IsZero() && d.now.Sub(known.renewed) >= renewal/2:
		known.since = d.now
	case known.renewed.IsZero():
		known.renewed = d.now
	}
	a.dissents[name] = known
}

// seeAll notes the epochs of an address, also those of statements that have been overtaken. What a live node announces may be the first
// that is heard of it.
func (d *Directory) seeAll(ip netip.Addr, a *address, candidates []Holding) {
	if _, wanted := d.seen[ip]; !wanted {
		return
	}
	for _, c := range candidates {
		if c.State == Remote {
			d.see(ip, c.Epoch, d.now)
		}
	}
	for _, c := range candidates {
		d.see(ip, c.Epoch, time.Time{})
	}
	for name := range a.announcers {
		d.see(ip, d.nodes[name].highest(ip), time.Time{})
	}
}

// judge returns who holds an address, but for since when.
func (d *Directory) judge(ip netip.Addr, before Holding, candidates []Holding) Holding {
	until, leaving := d.leaving[ip]
	switch {
	case len(candidates) > 0:
		delete(d.leaving, ip)
		return candidates[0]
	case before.State == Unclaimed:
		return before
	case !leaving:
		d.leaving[ip] = d.now.Add(lostTime)
		before.State, before.Why, before.Address = Lost, Withdrawn, netip.Addr{}
		return before
	case until.After(d.now):
		return before
	default:
		delete(d.leaving, ip)
		return Holding{State: Unclaimed}
	}
}
