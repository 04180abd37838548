package portblocks

import (
	"cmp"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

const (
	// Quiet is how long nobody gets a block after a pod has had it. When a pod ends, its node ends the pod's flows, and both sides of
	// TCP connections get a reset; holders end theirs when they learn of the end. What is left then has no partner, or was closed. By
	// default conntrack forgets it after 5 minutes at the latest: nf_conntrack_tcp_timeout_max_retrans and _unacknowledged are 300 s;
	// those of closing connections and of UDP are shorter. (The fast path raises _unacknowledged to 2 hours and 4 minutes, see
	// package fastpath.) The claims of a Node that was deleted are kept for as long.
	Quiet = 5 * time.Minute
	// Patience is how long a pod waits for a block that has to be claimed. Then it shares.
	Patience = 500 * time.Millisecond
	// keepSpare is how long a node keeps a spare block for egress IPs that its last pod left from.
	keepSpare = 10 * time.Minute
	// MostSpares is how many a node keeps at most for pods that leave from the same egress IPs. It keeps as many as have started within calm,
	// which may start again all at once, until none has started for so long; and one at least.
	MostSpares = 8
	calm       = time.Minute
	// rest is how long after a pod has asked for a block a node claims other spare ones, if more than a quarter are left: requests would keep
	// the pod from starting, and others may start with it.
	rest = 50 * time.Millisecond
	// keepIdle is how long a node keeps a block that it does not need any more: what it needs may change with each claim of another node.
	keepIdle = time.Minute
	// firstRetry is when a write is tried again that failed; twice as long each time, up to longestRetry.
	firstRetry, longestRetry = time.Second, 15 * time.Second
	// longestTurn bounds how long a node leaves something to others that all hear of at once.
	longestTurn = 2 * time.Second
)

// Claim says which node has a block of an egress IP. A node that is empty is not known: nobody gets the block.
type Claim struct {
	Node  string    `json:"node"`
	Since time.Time `json:"since"`
}

// Claims are those of an egress IP.
type Claims map[kernel.Ports]Claim

// Write is a version of the claims of an egress IP that is to come in the place of another one, and of no other.
type Write struct {
	EgressIP netip.Addr
	// Version is that of the one before; 0 if there is none.
	Version uint64
	Claims  Claims
}

// Outcome is what became of a [Write].
type Outcome int

// The outcomes.
const (
	// Done: it is in the API.
	Done Outcome = iota
	// Refused: it is not in the API, and never will be.
	Refused
	// Unknown: nobody knows. It may also come to be in the API later.
	Unknown
)

// Book knows which node has which blocks of which egress IPs, and which pods of this node have them. It decides which blocks this node
// claims and gives back. It is pure: what is to be written it says, and time is passed in. It is for one goroutine at a time.
type Book struct {
	node    string
	ledgers map[netip.Addr]*ledger
	tenants map[string]*tenant
	// running are those of the last Follow; nil: none yet.
	running map[string]*Had
	groups  map[string]*group
	// nodes are those that exist, nodesKnown: they are all. gone has since when the others are missed.
	nodes      map[string]bool
	nodesKnown bool
	gone       map[string]time.Time
	// goneBefore is how many of gone there were when they were pruned last.
	goneBefore int
	// reachable: the API server answers, as far as is known. listed: all claims that there were have been told.
	reachable, listed bool
	// changed: running pods may have others, or other nodes may, since TakeChanged was called.
	changed bool
	// pending are the egress IPs of which something was to be written at the last Next, or was being written.
	pending map[netip.Addr]bool
	// lost are blocks that running pods have lost, since Lost was called.
	lost []Lost
}

// Lost is a block of an egress IP that a running pod had and has not any more: another node has claimed it, after this node's Node was
// deleted, or somebody has changed the Lease.
type Lost struct {
	// ID is the pod's, or [Second] of it.
	ID       string
	EgressIP netip.Addr
	Ports    kernel.Ports
}

// ledger has the claims of an egress IP.
type ledger struct {
	// read: it is known what is claimed. unreadable: nobody can read that. version is that of the API; 0 if there is none, and then the
	// claims are the last that were.
	read, unreadable bool
	version          uint64
	claims           Claims
	// deleted is when the Lease was deleted; zero if it is there, or there never was one.
	deleted time.Time
	// own are the claims of this node of whose past this process knows: nobody has used them, or quiet has until when they are not used.
	// asked are those that it has asked for.
	own, asked map[kernel.Ports]bool
	quiet      map[kernel.Ports]time.Time
	// idle has since when blocks of this node are not needed.
	idle map[kernel.Ports]time.Time
	// releasing has the blocks that a write gives back of which it is not known whether it comes to be, with the version before it: as
	// long as this is the one, it may.
	releasing map[kernel.Ports]uint64
	// users has the pods that have blocks, or are to have them.
	users   map[kernel.Ports]string
	writing bool
	retryAt time.Time
	retry   time.Duration
}

// tenant is a pod of this node.
type tenant struct {
	id   string
	ips  []netip.Addr
	size int
	// ports are its block's; zero if it has none. near are those that it is to lie beside, if possible; zero for any.
	ports, near kernel.Ports
	// has are the egress IPs of which it has the block alone, asks those of which it is to get it.
	has, asks map[netip.Addr]bool
	decided   bool
	deadline  time.Time
}

// group is egress IPs that a pod here leaves from, together, and when one did last.
type group struct {
	ips  []netip.Addr
	size int
	used time.Time
	// starts are when pods have asked for a block, the last ones, and spares is how many spare blocks are for the next ones.
	starts []time.Time
	spares int
	// rests: spare blocks are missing, and are not claimed before restsUntil.
	rests bool
}

// start notes that a pod asks for a block.
func (g *group) start(now time.Time) {
	g.starts = slices.DeleteFunc(append(g.starts, now), func(at time.Time) bool { return now.Sub(at) >= calm })
	g.starts = g.starts[max(0, len(g.starts)-MostSpares):]
	g.spares = max(g.spares, len(g.starts))
}

// calmAt returns when the next pods are not expected all at once any more; zero if they are not.
func (g *group) calmAt() (at time.Time) {
	if g.spares > 1 {
		at = g.starts[len(g.starts)-1].Add(calm)
	}
	return at
}

// restsUntil returns until when no spare block is claimed as long as enough are left; zero if no pod has started.
func (g *group) restsUntil() (at time.Time) {
	if n := len(g.starts); n > 0 {
		at = g.starts[n-1].Add(rest)
	}
	return at
}

// wanted returns how many spare blocks there are to be.
func (g *group) wanted(now time.Time) int {
	if at := g.calmAt(); !at.IsZero() && !now.Before(at) {
		g.spares, g.starts = 1, nil
	}
	return max(g.spares, 1)
}

// NewBook returns the Book of a node, which knows nothing.
func NewBook(node string) *Book {
	return &Book{node: node, ledgers: map[netip.Addr]*ledger{}, tenants: map[string]*tenant{}, groups: map[string]*group{}, nodes: map[string]bool{}, gone: map[string]time.Time{}}
}

func (b *Book) ledger(ip netip.Addr) *ledger {
	l := b.ledgers[ip]
	if l == nil {
		l = &ledger{
			read: b.listed, claims: Claims{}, own: map[kernel.Ports]bool{}, asked: map[kernel.Ports]bool{}, quiet: map[kernel.Ports]time.Time{},
			idle: map[kernel.Ports]time.Time{}, releasing: map[kernel.Ports]uint64{}, users: map[kernel.Ports]string{},
		}
		b.ledgers[ip] = l
	}
	return l
}

// SetReachable says whether the API server answers. As long as it does not, pods get what this node has, or share.
func (b *Book) SetReachable(reachable bool) {
	b.changed = b.changed || b.reachable != reachable
	b.reachable = reachable
}

// SetNode says whether there is a Node of this name. It tells whether that is news: mostly something else of a Node has changed.
func (b *Book) SetNode(name string, exists bool, now time.Time) (changed bool) {
	if b.nodes[name] == exists {
		return false
	}
	if b.nodes[name] = exists; exists {
		delete(b.gone, name)
		return true
	}
	delete(b.nodes, name)
	for _, l := range b.ledgers {
		b.miss(l, now)
	}
	return true
}

// NodesKnown says that all Nodes that there are have been told. Before that none is missed.
func (b *Book) NodesKnown(now time.Time) {
	b.nodesKnown = true
	for _, l := range b.ledgers {
		b.miss(l, now)
	}
}

// miss notes the nodes of claims that do not exist.
func (b *Book) miss(l *ledger, now time.Time) {
	for _, claim := range l.claims {
		if _, missed := b.gone[claim.Node]; b.nodesKnown && !b.nodes[claim.Node] && !missed && claim.Node != b.node {
			b.gone[claim.Node] = now
		}
	}
}

// mostLedgers is how many egress IPs there may be before those are forgotten, too, whose Lease was deleted although nodes have blocks of them.
const mostLedgers = 10000

// prune forgets the nodes that no claim names any more, and egress IPs whose Lease was deleted some time ago, and of which no node that exists
// has anything: what the others have is written again. Anybody who may write Leases can have thousands of either.
func (b *Book) prune(now time.Time) {
	maps.DeleteFunc(b.ledgers, func(_ netip.Addr, l *ledger) bool {
		exists := func(claim Claim) bool { return b.nodes[claim.Node] && len(b.ledgers) < mostLedgers }
		return b.nodesKnown && !l.deleted.IsZero() && now.Sub(l.deleted) >= Quiet && len(l.own)+len(l.users) == 0 && !l.writing &&
			!slices.ContainsFunc(slices.Collect(maps.Values(l.claims)), exists)
	})
	if len(b.gone) <= 2*b.goneBefore+100 {
		return
	}
	named := map[string]bool{}
	for _, l := range b.ledgers {
		for _, claim := range l.claims {
			named[claim.Node] = true
		}
	}
	maps.DeleteFunc(b.gone, func(name string, _ time.Time) bool { return !named[name] })
	b.goneBefore = len(b.gone)
}

// takeable tells whether a claim is of a node that has been gone for long enough.
func (b *Book) takeable(claim Claim, now time.Time) bool {
	since, gone := b.gone[claim.Node]
	return gone && claim.Node != "" && now.Sub(since) >= Quiet
}

// Seen takes a version of the claims of an egress IP. One that is older than what is known counts for nothing, unless it is the newest
// for certain.
func (b *Book) Seen(ip netip.Addr, version uint64, claims Claims, newest bool, now time.Time) {
	l := b.ledger(ip)
	if l.read && version <= l.version && !newest {
		return
	}
	l.read, l.unreadable, l.version, l.claims, l.deleted, b.changed = true, false, version, claims, time.Time{}, true
	b.miss(l, now)
	b.prune(now)
	maps.DeleteFunc(l.releasing, func(_ kernel.Ports, at uint64) bool { return at != version })
	for ports, claim := range claims {
		if claim.Node != b.node || l.own[ports] {
			continue
		}
		l.own[ports] = true
		if !l.asked[ports] { // an earlier process has, and a pod of it may have used them a moment ago
			l.quiet[ports] = now.Add(Quiet)
		}
	}
	clear(l.asked)
	maps.DeleteFunc(l.own, func(ports kernel.Ports, _ bool) bool { return claims[ports].Node != b.node && l.users[ports] == "" })
	maps.DeleteFunc(l.quiet, func(ports kernel.Ports, _ time.Time) bool { return claims[ports].Node != b.node })
	maps.DeleteFunc(l.idle, func(ports kernel.Ports, _ time.Time) bool { return claims[ports].Node != b.node })
	b.settle(now)
}

// Deleted says that there are no claims of an egress IP in the API any more. Those that were are written again: whoever has deleted
// them has not ended the pods.
func (b *Book) Deleted(ip netip.Addr, now time.Time) {
	l := b.ledger(ip)
	l.read, l.unreadable, l.version, l.deleted = l.read || l.unreadable && b.listed, false, 0, now
	clear(l.releasing)
}

// Listed says that all claims that there are have been told.
func (b *Book) Listed(now time.Time) {
	b.reachable, b.listed = true, true
	for _, l := range b.ledgers {
		l.read = !l.unreadable
	}
	b.settle(now)
}

// Unreadable says that it is not known any more what is claimed of an egress IP. Pods keep what they have, and nothing is written.
func (b *Book) Unreadable(ip netip.Addr) {
	l := b.ledger(ip)
	l.read, l.unreadable = false, true
}

// Restore takes what a running pod had when an earlier process knew it. What else that process has claimed is quiet at first: pods may
// have had it that have ended since.
func (b *Book) Restore(id string, ips []netip.Addr, size int, given Given, now time.Time) {
	t := &tenant{id: id, ips: sorted(ips), size: size, ports: given.Ports, has: map[netip.Addr]bool{}, asks: map[netip.Addr]bool{}, decided: true}
	for _, ip := range given.Of {
		t.has[ip] = true
		l := b.ledger(ip)
		l.users[given.Ports], l.own[given.Ports] = id, true
	}
	b.tenants[id] = t
	b.use(t, now)
}

// Had is what a pod has by what was saved of it.
type Had struct {
	IPs []netip.Addr
	// Size is that of its block, in ports; 0: it was to have none.
	Size          int
	First, Second Given
}

// Follow says which pods run, all of them, and what those have that have ports; nil for the others. Those that are not among them have ended.
// What the book does not know is restored. It tells whether that changed anything.
func (b *Book) Follow(running map[string]*Had, now time.Time) (changed bool) {
	b.running = running
	for id := range b.tenants {
		if !has(running, First(id)) {
			b.Remove(id, now)
			changed = true
		}
	}
	for id, had := range running {
		if had == nil || b.tenants[id] != nil {
			continue
		}
		changed = true
		b.Restore(id, had.IPs, had.Size, had.First, now)
		if len(had.Second.Of) > 0 {
			b.Restore(Second(id), had.Second.Of, sizeOf(had.Second.Ports), had.Second, now)
		}
	}
	return changed
}

// Add gives a pod a block of this size that is the same for all of these egress IPs, at once if that is possible: see Of. The same
// again changes nothing. A pod that has ended gets nothing.
func (b *Book) Add(id string, ips []netip.Addr, size int, now time.Time) {
	if b.tenants[id] != nil {
		b.Change(id, ips, now)
		return
	}
	if b.running != nil && !has(b.running, id) {
		return
	}
	t := &tenant{id: id, ips: sorted(ips), size: size, has: map[netip.Addr]bool{}, asks: map[netip.Addr]bool{}, deadline: now.Add(Patience)}
	b.tenants[id] = t
	b.use(t, now)
	if g := b.groups[groupKey(t.ips, size)]; g != nil {
		g.start(now)
	}
	b.choose(t, now)
}

// use notes that a pod leaves from egress IPs.
func (b *Book) use(t *tenant, now time.Time) {
	if t.size == 0 || len(t.ips) == 0 {
		return
	}
	key := groupKey(t.ips, t.size)
	if b.groups[key] == nil {
		b.groups[key] = &group{ips: t.ips, size: t.size}
	}
	b.groups[key].used = now
	for _, ip := range t.ips {
		b.ledger(ip)
	}
}

func groupKey(ips []netip.Addr, size int) string {
	var key strings.Builder
	for _, ip := range ips {
		key.WriteString(ip.String() + " ")
	}
	key.WriteByte(byte(size / SmallestBlock))
	return key.String()
}

// choose chooses a pod's block.
func (b *Book) choose(t *tenant, now time.Time) {
	t.ports, t.has, t.asks = kernel.Ports{}, map[netip.Addr]bool{}, map[netip.Addr]bool{}
	of := spare
	if b.reachable {
		of = unclaimed
	}
	ports := b.beside(t, of, now)
	if isNone(ports) {
		ports, _ = b.best(t.ips, t.size, of, now)
	}
	if isNone(ports) {
		t.decided = true
		return
	}
	t.ports = ports
	for _, ip := range t.ips {
		switch l := b.ledger(ip); {
		case b.isSpare(l, ports, now):
			t.has[ip], l.users[ports] = true, t.id
		case b.reachable && b.isFree(l, ports):
			t.asks[ip], l.users[ports] = true, t.id
		}
	}
	t.decided = len(t.asks) == 0
}

// reach is how far this node goes for a block. Each includes those before it.
type reach int

const (
	// spare: it has the block already. unclaimed: nobody has. left: a node has that is gone; it can be claimed, and is quiet for a while.
	spare reach = iota
	unclaimed
	left
)

// best returns a block of a size for these egress IPs: one of as many of them as possible, then one of which this node has as many as
// possible. complete: it is one of all of them.
func (b *Book) best(ips []netip.Addr, size int, of reach, now time.Time) (best kernel.Ports, complete bool) {
	var most candidate
	for _, c := range b.candidates(ips, size, of, now) {
		if c.value > most.value {
			most = c
		}
	}
	return most.ports, most.value >= completeValue(ips)
}

// candidate is a block that a pod could get of some egress IPs. Its value is the higher the more of them these are, and then the more of
// those it is a spare block of.
type candidate struct {
	ports kernel.Ports
	value int
}

// completeValue is that of a block which is one of all of these egress IPs, at least, and spareValue that of a spare one of all.
func completeValue(ips []netip.Addr) int { return max(1, len(ips)*(len(ips)+1)) }

func spareValue(ips []netip.Addr) int { return max(1, len(ips)*(len(ips)+2)) }

// candidates returns the blocks of a size that there are for any of these egress IPs, in the order in which this node looks at them.
func (b *Book) candidates(ips []netip.Addr, size int, of reach, now time.Time) (all []candidate) {
	taken := make([]units, len(ips))
	for i, ip := range ips {
		b.taken(b.ledger(ip), &taken[i], of == left, now)
	}
	for _, ports := range b.inTurn(size) {
		value := 0
		for j, ip := range ips {
			switch l := b.ledgers[ip]; {
			case b.isSpare(l, ports, now):
				value += len(ips) + 2
			case of >= unclaimed && l.read && !taken[j].overlap(ports):
				value += len(ips) + 1
			}
		}
		if value > 0 {
			all = append(all, candidate{ports, value})
		}
	}
	return all
}

// usual is where the ports begin that Linux gives to connections: below are those of servers.
const usual = 32768

// inTurn returns all blocks of a size in the order in which this node looks at them: those that servers in pods may want come last, and
// behind every other one the neighbours, so that pods may get these as a second block.
func (b *Book) inTurn(size int) (all []kernel.Ports) {
	var parts [4][]kernel.Ports
	for ports := range blocksOf(size) {
		part := int(ports.First) / size % 2
		if ports.First < usual {
			part += 2
		}
		parts[part] = append(parts[part], ports)
	}
	for _, part := range parts {
		offset := b.offset(len(part))
		all = append(append(all, part[offset:]...), part[:offset]...)
	}
	return all
}

// offset is where this node begins to look for a block: nodes that look at the same time seldom choose the same.
func (b *Book) offset(candidates int) int {
	if candidates == 0 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(b.node)) // it never fails
	return int(h.Sum32() % uint32(candidates))
}

// taken marks the ports of an egress IP that cannot be claimed; those that are left by nodes that are gone can, if that counts.
func (b *Book) taken(l *ledger, u *units, countLeft bool, now time.Time) {
	for ports, claim := range l.claims {
		if !countLeft || !b.takeable(claim, now) {
			u.mark(ports)
		}
	}
	for ports := range l.users {
		u.mark(ports)
	}
}

// isFree tells whether nobody has claimed any of a block's ports.
func (b *Book) isFree(l *ledger, ports kernel.Ports) bool {
	var u units
	b.taken(l, &u, false, time.Time{})
	return l.read && !u.overlap(ports)
}

// isSpare tells whether this node has a block that no pod has or had a moment ago.
func (b *Book) isSpare(l *ledger, ports kernel.Ports, now time.Time) bool {
	_, releasing := l.releasing[ports]
	return l.claims[ports].Node == b.node && l.own[ports] && l.users[ports] == "" && !l.quiet[ports].After(now) && !releasing
}

// Change says that a pod leaves from these egress IPs now. Where it has a block it gets the same of new ones, when this node has claimed
// that. Of the others it keeps it until it ends: they may come back. It tells whether the pod has left from others before.
func (b *Book) Change(id string, ips []netip.Addr, now time.Time) (changed bool) {
	t := b.tenants[id]
	if ips = sorted(ips); t == nil || slices.Equal(t.ips, ips) {
		return false
	}
	before := t.ips
	for ip := range t.asks {
		if !slices.Contains(ips, ip) {
			delete(t.asks, ip)
			b.leave(t, ip)
		}
	}
	t.ips, b.changed = ips, true // what it has may be of use again, or not any more
	b.use(t, now)
	if isNone(t.ports) {
		return true
	}
	for _, ip := range ips {
		if l := b.ledger(ip); !slices.Contains(before, ip) && !t.has[ip] && (b.isSpare(l, t.ports, now) || b.isFree(l, t.ports)) {
			t.asks[ip], l.users[t.ports] = true, id
		}
	}
	b.settle(now)
	return true
}

// vacate takes a pod's block of an egress IP from it. It is quiet then.
func (b *Book) vacate(t *tenant, ip netip.Addr, now time.Time) {
	delete(t.has, ip)
	l := b.ledger(ip)
	if until := now.Add(Quiet); until.After(l.quiet[t.ports]) {
		l.quiet[t.ports] = until
	}
	b.leave(t, ip)
}

// leave has a pod use its ports of an egress IP no longer.
func (b *Book) leave(t *tenant, ip netip.Addr) {
	if l := b.ledger(ip); l.users[t.ports] == t.id {
		delete(l.users, t.ports)
	}
}

// Remove says that a pod has ended, at a time.
func (b *Book) Remove(id string, at time.Time) {
	t := b.tenants[id]
	if t == nil {
		return
	}
	for ip := range t.has {
		b.vacate(t, ip, at)
	}
	for ip := range t.asks {
		b.leave(t, ip)
	}
	if g := b.groups[groupKey(t.ips, t.size)]; g != nil && g.used.Before(at) {
		g.used = at
	}
	delete(b.tenants, id)
}

// Given is what a pod has.
type Given struct {
	// Ports are those of its block, of the egress IPs in Of; zero, and none, if it shares.
	Ports kernel.Ports
	Of    []netip.Addr
}

// Of returns what a pod has, if that is decided.
func (b *Book) Of(id string) (given Given, decided bool) {
	t := b.tenants[id]
	if t == nil || !t.decided {
		return Given{}, false
	}
	given = Given{Ports: t.ports}
	for _, ip := range t.ips {
		if t.has[ip] {
			given.Of = append(given.Of, ip)
		}
	}
	if len(given.Of) == 0 {
		return Given{}, true
	}
	return given, true
}

// settle decides what has become of blocks that pods are to get, and of those that they have.
func (b *Book) settle(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(b.tenants)) {
		t := b.tenants[id]
		b.checkHas(t)
		again := false
		for ip := range t.asks {
			l := b.ledger(ip)
			switch {
			case l.claims[t.ports].Node == b.node && l.own[t.ports] && !l.quiet[t.ports].After(now) && !has(l.releasing, t.ports):
				t.has[ip], b.changed = true, true
				delete(t.asks, ip)
			case b.claimedByOther(l, t.ports):
				delete(t.asks, ip)
				b.leave(t, ip)
				again = true
			}
		}
		switch {
		case t.decided:
		case again && now.Before(t.deadline):
			b.drop(t)
			b.choose(t, now)
		case len(t.asks) == 0 || !now.Before(t.deadline):
			b.decide(t)
		}
	}
}

func has[K comparable, V any](m map[K]V, key K) bool { _, is := m[key]; return is }

// drop gives back what a pod that does not run yet was to get.
func (b *Book) drop(t *tenant) {
	for _, ips := range []map[netip.Addr]bool{t.has, t.asks} {
		for ip := range ips {
			b.leave(t, ip)
		}
	}
}

// decide ends a pod's waiting.
func (b *Book) decide(t *tenant) {
	for ip := range t.asks {
		b.leave(t, ip)
	}
	clear(t.asks)
	t.decided = true
	if len(t.has) == 0 {
		t.ports = kernel.Ports{}
	}
}

// checkHas takes from a pod what this node has not claimed any more: another node has taken it over, and may have given it back. Where
// there is no Lease, this node writes what was in it.
func (b *Book) checkHas(t *tenant) {
	for ip := range t.has {
		l := b.ledger(ip)
		if !l.read || l.claims[t.ports].Node == b.node || l.version == 0 && !b.claimedByOther(l, t.ports) {
			continue
		}
		delete(t.has, ip)
		b.leave(t, ip)
		if t.decided {
			b.lost = append(b.lost, Lost{t.id, ip, t.ports})
		}
	}
}

// claimedByOther tells whether another node has claimed some of these ports.
func (b *Book) claimedByOther(l *ledger, ports kernel.Ports) bool {
	if claim, is := l.claims[ports]; is && claim.Node == b.node {
		return false
	}
	for other, claim := range l.claims {
		if overlaps(other, ports) && claim.Node != b.node {
			return true
		}
	}
	return false
}

// Lost returns the blocks that running pods have lost since the last call.
func (b *Book) Lost() (lost []Lost) {
	lost, b.lost = b.lost, nil
	return lost
}

// TakeChanged tells whether running pods may have other blocks, or other nodes may, since the last call.
func (b *Book) TakeChanged() (changed bool) {
	changed, b.changed = b.changed, false
	return changed
}

// Next returns what is to be written now, and when to call it again if nothing else happens; zero for never. What becomes of each write
// is to be told by Wrote.
func (b *Book) Next(now time.Time) (writes []Write, wake time.Time) {
	b.settle(now)
	b.pending = map[netip.Addr]bool{}
	earlier := func(at time.Time) {
		if at.After(now) && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	for _, t := range b.tenants {
		if !t.decided {
			earlier(t.deadline)
		}
	}
	for _, since := range b.gone { // whose claims can be taken over then
		earlier(since.Add(Quiet))
	}
	spares := b.spares(now)
	for _, g := range b.groups {
		earlier(g.used.Add(keepSpare))
		earlier(g.calmAt())
		if g.rests {
			earlier(g.restsUntil())
		}
	}
	for _, ip := range slices.SortedFunc(maps.Keys(b.ledgers), netip.Addr.Compare) {
		l := b.ledgers[ip]
		for _, until := range l.quiet {
			earlier(until)
		}
		claim, release := b.differences(l, spares[ip], now)
		for _, since := range l.idle {
			earlier(since.Add(keepIdle))
		}
		again := !l.deleted.IsZero() && b.claims(l)
		due := len(claim)+len(release) > 0 || again
		if l.writing || l.read && due {
			b.pending[ip] = true
		}
		switch {
		case !due || l.writing || !l.read:
		case now.Before(l.retryAt):
			earlier(l.retryAt)
		case again && len(claim)+len(release) == 0 && now.Before(l.deleted.Add(b.turn())):
			earlier(l.deleted.Add(b.turn()))
		default:
			writes = append(writes, b.write(ip, l, claim, release, now))
		}
	}
	return writes, wake
}

// turn is how long this node leaves it to others to write a deleted Lease again, which all that have blocks hear of at once.
func (b *Book) turn() time.Duration {
	return time.Duration(b.offset(int(longestTurn/time.Millisecond))) * time.Millisecond
}

// claims tells whether this node has claimed a block.
func (b *Book) claims(l *ledger) bool {
	for _, claim := range l.claims {
		if claim.Node == b.node {
			return true
		}
	}
	return false
}

// spares returns the blocks that this node keeps, or claims, for pods to come, by egress IP.
func (b *Book) spares(now time.Time) map[netip.Addr]map[kernel.Ports]bool {
	busy := map[string]bool{}
	for _, t := range b.tenants {
		busy[groupKey(t.ips, t.size)] = true
	}
	spares := map[netip.Addr]map[kernel.Ports]bool{}
	for key, g := range b.groups {
		if busy[key] {
			g.used = now
		}
		if now.Sub(g.used) >= keepSpare {
			delete(b.groups, key)
			continue
		}
		for _, ports := range b.sparesFor(g, now) {
			for _, ip := range g.ips {
				kernel.Put(spares, ip, ports, true)
			}
		}
	}
	return spares
}

// sparesFor returns the blocks that a node keeps, or claims, for the next pods of a group. New ones it claims several at once, when half of
// those that are wanted are left: that is a write for some pods, and not one for each. It does so when pods that start have started, or if
// only a quarter are left.
func (b *Book) sparesFor(g *group, now time.Time) (spares []kernel.Ports) {
	all := b.candidates(g.ips, g.size, unclaimed, now)
	all = slices.DeleteFunc(all, func(c candidate) bool { return c.value < completeValue(g.ips) })
	slices.SortStableFunc(all, func(x, y candidate) int { return cmp.Compare(y.value, x.value) })
	whole, begun := 0, 0 // of all of the egress IPs, and also of some: these are claimed, which makes free ones fewer
	for _, c := range all {
		spares = append(spares, c.ports)
		if c.value == spareValue(g.ips) {
			whole++
		}
		if c.value > completeValue(g.ips) {
			begun++
		}
	}
	wanted := g.wanted(now)
	keeps := min(begun, wanted, b.mayHave(g, 8, now))
	missing := whole <= wanted/2 && keeps < wanted
	if missing && len(g.starts) == 0 && b.quietFor(g, now) >= wanted {
		return spares[:keeps] // no pod is in a hurry: a process that begins needs no more than the one before had
	}
	if g.rests = missing && whole > wanted/4 && now.Before(g.restsUntil()); g.rests || !missing {
		return spares[:keeps]
	}
	if claims := min(len(all), wanted, b.mayHave(g, 4, now)); claims > 0 || keeps > 0 {
		return spares[:max(claims, keeps)]
	}
	return b.leftFor(g, now)
}

// mayHave returns how many spare blocks a group may have: none where fewer than one in so many blocks are free, and one where fewer than
// twice as many are.
func (b *Book) mayHave(g *group, least int, now time.Time) int {
	switch {
	case b.isScarce(g, least, now):
		return 0
	case b.isScarce(g, least/2, now):
		return 1
	}
	return MostSpares
}

// leftFor returns the block that a node takes over for the next pod of a group, from a node that is gone: if there is no other one, nor soon.
func (b *Book) leftFor(g *group, now time.Time) []kernel.Ports {
	if b.isScarce(g, 4, now) {
		return nil
	}
	if b.quietFor(g, now) > 0 {
		return nil // it is one soon
	}
	if ports, found := b.best(g.ips, g.size, left, now); found {
		return []kernel.Ports{ports}
	}
	return nil
}

// quietFor counts the blocks of this node, of all egress IPs of a group, that are quiet.
func (b *Book) quietFor(g *group, now time.Time) (count int) {
	for ports := range blocksOf(g.size) {
		if !slices.ContainsFunc(g.ips, func(ip netip.Addr) bool { return !b.ledger(ip).quiet[ports].After(now) }) {
			count++
		}
	}
	return count
}

// isScarce tells whether fewer than one in so many blocks are free: then they are for pods that are there. A node with a spare would
// keep it from them.
func (b *Book) isScarce(g *group, least int, now time.Time) bool {
	for _, ip := range g.ips {
		if free, all := b.free(ip, g.size, now); free*least < all {
			return true
		}
	}
	return false
}

// free counts the blocks of a size of an egress IP that nobody has who exists, and all.
func (b *Book) free(ip netip.Addr, size int, now time.Time) (free, all int) {
	var u units
	b.taken(b.ledger(ip), &u, true, now)
	for ports := range blocksOf(size) {
		all++
		if !u.overlap(ports) {
			free++
		}
	}
	return free, all
}

// differences returns the blocks of an egress IP that this node needs and has not, and those that it has and needs not.
func (b *Book) differences(l *ledger, spares map[kernel.Ports]bool, now time.Time) (claim, release []kernel.Ports) {
	need := maps.Clone(spares)
	if need == nil {
		need = map[kernel.Ports]bool{}
	}
	for ports := range l.users {
		need[ports] = true
	}
	for ports := range need {
		if l.claims[ports].Node != b.node && (spares[ports] || !b.claimedByOther(l, ports)) {
			claim = append(claim, ports)
		}
	}
	for ports, c := range l.claims {
		if c.Node != b.node || need[ports] || l.quiet[ports].After(now) {
			delete(l.idle, ports)
			continue
		}
		if l.idle[ports].IsZero() {
			l.idle[ports] = now
		}
		if now.Sub(l.idle[ports]) >= keepIdle {
			release = append(release, ports)
		}
	}
	return claim, release
}

// write returns what brings these differences into the API.
func (b *Book) write(ip netip.Addr, l *ledger, claim, release []kernel.Ports, now time.Time) Write {
	l.writing = true
	claims := maps.Clone(l.claims)
	for _, ports := range release {
		delete(claims, ports)
		l.releasing[ports] = l.version
	}
	slices.SortFunc(claim, func(p, q kernel.Ports) int { return cmp.Compare(p.First, q.First) })
	for _, ports := range claim {
		if slices.ContainsFunc(slices.Collect(maps.Keys(claims)), func(other kernel.Ports) bool {
			return overlaps(other, ports) && claims[other].Node == b.node
		}) {
			continue // of another size, which goes first
		}
		maps.DeleteFunc(claims, func(other kernel.Ports, _ Claim) bool { return overlaps(other, ports) }) // of a node that is gone
		claims[ports] = Claim{b.node, now.UTC().Truncate(time.Second)}
		// If it was another node's, which is gone, and that comes back, it learns that these ports are not its own any more within the time that
		// they are quiet here.
		if !b.claimedByOther(l, ports) {
			l.asked[ports] = true
		}
	}
	return Write{ip, l.version, claims}
}

// Wrote says what became of a write; a version of that it has now if it is done.
func (b *Book) Wrote(w Write, outcome Outcome, version uint64, now time.Time) {
	l := b.ledger(w.EgressIP)
	l.writing = false
	switch outcome {
	case Done:
		l.retry, l.retryAt = 0, time.Time{}
		b.Seen(w.EgressIP, version, w.Claims, false, now)
		return
	case Refused:
		maps.DeleteFunc(l.releasing, func(ports kernel.Ports, at uint64) bool { return at == w.Version && !has(w.Claims, ports) })
	case Unknown:
	}
	l.retry = min(max(2*l.retry, firstRetry), longestRetry)
	l.retryAt = now.Add(l.retry)
}

// Conflict is Wrote for a write that came too late: somebody else has written these claims.
func (b *Book) Conflict(w Write, version uint64, claims Claims, now time.Time) {
	l := b.ledger(w.EgressIP)
	l.writing = false
	b.Seen(w.EgressIP, version, claims, l.version == w.Version, now) // unless a newer one was seen meanwhile
}

func sorted(ips []netip.Addr) []netip.Addr {
	list := slices.SortedFunc(slices.Values(ips), netip.Addr.Compare)
	return slices.Compact(list)
}

// Believes tells whether a node may say that it has a block: it has claimed that, or it is not known now who has.
func (b *Book) Believes(node string, egressIP netip.Addr, ports kernel.Ports) bool {
	l := b.ledgers[egressIP]
	switch {
	case l == nil:
		return !b.listed || !b.reachable
	case !l.read || !b.reachable:
		return true
	}
	return l.claims[ports].Node == node
}

// Numbers counts the blocks of an egress IP.
type Numbers struct {
	// Claimed are all that nodes have, Own those of this node; of them, Quiet are those that nobody gets now, and Spare those that pods
	// get that start.
	Claimed, Own, Quiet, Spare int
	// Free are those of the usual size that a node can claim.
	Free int
}

// Numbers counts blocks by egress IP, the free ones of this size.
func (b *Book) Numbers(size int, now time.Time) map[netip.Addr]Numbers {
	result := map[netip.Addr]Numbers{}
	for ip, l := range b.ledgers {
		n := Numbers{Claimed: len(l.claims)}
		n.Free, _ = b.free(ip, size, now)
		for ports, claim := range l.claims {
			if claim.Node != b.node {
				continue
			}
			n.Own++
			switch {
			case l.users[ports] != "":
			case l.quiet[ports].After(now):
				n.Quiet++
			default:
				n.Spare++
			}
		}
		result[ip] = n
	}
	return result
}
