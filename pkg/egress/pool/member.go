package pool

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/kernel"
)

const (
	// patience is how long a member that has just started waits for the others: what they have is not
	// free, and what nobody has is spread over all.
	patience = 3 * time.Second
	// courtesy is how long a claim to an address that is given away may be contested by others. Meanwhile its holder serves it, if it can.
	courtesy = 50 * time.Millisecond
	// askAgain is how long after an answer an address is asked for again, lookAgain how long after a look around
	// the next one begins where no majority is there.
	askAgain  = 100 * time.Millisecond
	lookAgain = 20 * time.Millisecond
	// askOwnAgain is how long after this member has asked for its own addresses the next look around does so: when a partition heals, both
	// sides may have an address, and not hear each other's messages yet.
	askOwnAgain = 400 * time.Millisecond
	// probesAtOnce is how many probes may be under way. There is more than one because that of an address that another host has is
	// repeated all the time.
	probesAtOnce = 3
	// Inspection is how often a member asks whether another host has its addresses, too.
	Inspection = 10 * time.Second
	// looks is how many times in a row nobody answers before a member is cut off.
	looks = 2
	// validity is how long an answer counts after the question, and a decision to take an address: a process that was
	// stopped meanwhile finds another world.
	validity = 250 * time.Millisecond
	// activity is how long a member may leave an address alone that is its own to take, or that it claims.
	activity = 2 * time.Second
	// leftToOthers is how long a member that is cut off leaves an address to others: until two of them that do nothing are passed over, and
	// the next one has taken it.
	leftToOthers = 3 * activity
	// contestAgain is how often another member is told, and the network, that it does not have an address of this one.
	contestAgain = 50 * time.Millisecond
	// passedOver is how long a member is not given an address that it could not take.
	passedOver = 10 * time.Second
	// freshness is how long before a member is found alive its state may have come, and how long it is waited
	// for afterwards.
	freshness = time.Second
	// Lifetime is how long the kernel keeps an address that nobody renews, and renewal how often a member
	// does.
	Lifetime = 30 * time.Second
	renewal  = 10 * time.Second
	// longestLeft is how long an address is left to a node of another half of the pool at most.
	longestLeft = 10 * time.Minute
	// renewAgain is when that is tried again if it failed.
	renewAgain = time.Second
)

// Member decides what one node of the pool does. What it decides follows from the events alone, from the times of them, and from the
// book of who has which address. It is for one goroutine at a time, and so is the book. Times must not go back.
type Member struct {
	name string
	run  uint64
	// book has this member's addresses and all epochs. What this member takes and releases it writes there.
	book *holders.Directory
	// began is the time of the first event. heardAll is since when all others have been heard of since then, or long enough has been
	// waited; zero before.
	began, heardAll time.Time
	// wanted are the addresses that the pool is to hold; nil if that is not known.
	wanted   map[netip.Addr]bool
	siblings map[netip.Addr][]netip.Addr
	// pool has the names of its nodes; nil if they are not known.
	pool  map[string]bool
	zones map[string]string
	peers map[string]*peer
	// having are those of them that say that they have an address.
	having   map[netip.Addr][]*peer
	draining bool
	// handover: it hands addresses over as [State] says.
	handover bool
	networks []Network
	// took is when this process took its addresses.
	took   map[netip.Addr]time.Time
	claims map[netip.Addr]*claim
	// probes numbers the probes, probing is how many are under way.
	probes, probing int
	// failed are the addresses that could not be taken, and until when that counts.
	failed map[netip.Addr]time.Time
	// vacant are the addresses that somebody has to take.
	vacant map[netip.Addr]*vacancy
	view   view
	// renewed is when the kernel was last told to keep the addresses.
	renewed   time.Time
	published State
	// wake is when something is due although nothing happens; zero for never.
	wake time.Time
}

// NewMember returns a Member that knows of nobody, and writes in its node's book. Of two processes of one node the runs differ.
// handover: it hands addresses over as [State] says.
func NewMember(book *holders.Directory, run uint64, handover bool) *Member {
	name := book.NodeName()
	return &Member{
		name: name, run: run, book: book, handover: handover, peers: map[string]*peer{}, having: map[netip.Addr][]*peer{}, took: map[netip.Addr]time.Time{},
		claims: map[netip.Addr]*claim{}, failed: map[netip.Addr]time.Time{}, vacant: map[netip.Addr]*vacancy{}, published: State{Name: name, Run: run},
	}
}

// Next takes note of an event, and returns what to do.
func (m *Member) Next(event Event, now time.Time) []Action {
	if m.began.IsZero() {
		m.began, m.renewed, m.view.inspected = now, now.Add(-renewal), now
	}
	news := m.isNews(event)
	actions := event.apply(m, now)
	if !news && (m.wake.IsZero() || now.Before(m.wake)) {
		return actions
	}
	return append(actions, m.act(now)...)
}

// BookChanged has this member look at the book with the next event, whatever that is, or with a [Tick].
func (m *Member) BookChanged(now time.Time) { m.wake = now }

// isNews tells whether anything may follow from an event. Each state comes several times: by a datagram, by a connection, and with each exchange.
// From a copy nothing follows if its member is live.
func (m *Member) isNews(event Event) bool {
	heard, is := event.(Heard)
	return !is || !m.live(heard.State.Name) || !heard.State.same(m.peers[heard.State.Name].state)
}

// Wake returns when Next wants a [Tick] although nothing happens; zero for never.
func (m *Member) Wake() time.Time { return m.wake }

// AllWanted are the addresses that this member may take at any moment: those that the pool is to hold, if it is in the pool. The map must not
// be changed.
func (m *Member) AllWanted() map[netip.Addr]bool {
	if !m.pool[m.name] {
		return nil
	}
	return m.wanted
}

// Wants tells whether an address is one of these.
func (m *Member) Wants(ip netip.Addr) bool { return m.AllWanted()[ip] }

// State is what this member tells the others.
func (m *Member) State() State { return m.published }

// act does what is due.
func (m *Member) act(now time.Time) (actions []Action) {
	m.wake = time.Time{}
	m.expire(now)
	actions = append(actions, m.contest(now)...)
	actions = append(actions, m.giveWay(now)...)
	actions = append(actions, m.look(now)...)
	m.noteVacancies(now)
	m.claim(now)
	actions = append(actions, m.take(now)...)
	actions = append(actions, m.probe(now)...)
	actions = append(actions, m.renew(now)...)
	return append(actions, m.publish(false)...)
}

// due tells whether a time has come. If it has not, Wake says so.
func (m *Member) due(at, now time.Time) bool {
	if !at.After(now) {
		return true
	}
	if m.wake.IsZero() || at.Before(m.wake) {
		m.wake = at
	}
	return false
}

// expire forgets what does not count any more.
func (m *Member) expire(now time.Time) {
	for ip, until := range m.failed {
		if m.due(until, now) {
			delete(m.failed, ip)
		}
	}
	if m.heardAll.IsZero() && m.pool != nil {
		missing := func(name string) bool { return name != m.name && !m.live(name) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(m.pool)), missing) || m.due(m.began.Add(patience), now) {
			m.heardAll = now
		}
	}
}

// giveWay releases what is not wanted any more, and what another member has with a higher epoch: also one that this node, which
// has just come back to the network, does not find alive yet. A majority that this member does not reach takes its addresses
// without a word to it, and this member may find out late that it reaches none: so it goes by the Leases as well. What it gives
// away itself it serves until the next holder says that it has it, which a Lease does not say; but one that it does not reach says nothing.
// The next holder may have come into the pool while this node does not reach the API server, so that it is outside of it here.
func (m *Member) giveWay(now time.Time) (actions []Action) {
	speaks := func(p *peer) bool { return p.alive || now.Sub(p.spoke) <= validity }
	cutOff := m.pool != nil && !m.Majority()
	held := m.book.Held()
	for _, ip := range sorted(held) {
		rival := m.lastHolder(ip, speaks)
		switch {
		case m.wanted != nil && !m.wanted[ip]:
			actions = append(actions, m.release(ip, Unwanted, ""))
		case rival != "" && (m.outranked(ip, rival) || m.draining && m.peers[rival].state.Held[ip] > held[ip]):
			actions = append(actions, m.giveTo(ip, rival))
		case held[ip] > 0 && m.book.Overtaken(ip, held[ip], now) && (cutOff || m.objection(m.name, ip) == "" || m.takenOutOfReach(ip, now)):
			actions = append(actions, m.release(ip, TakenOver, ""))
		}
	}
	return actions
}

// giveTo releases an address that another member has now: this one has given it away and served it until then, or was out of reach.
func (m *Member) giveTo(ip netip.Addr, rival string) Release {
	why := m.objection(m.name, ip)
	if why == "" {
		return m.release(ip, TakenOver, rival)
	}
	release := m.release(ip, HandedOver, rival)
	release.GoOn = m.goesOn(m.name, ip, why) && m.handover && m.live(rival) && m.peers[rival].state.Handover
	return release
}

func (m *Member) release(ip netip.Addr, why Reason, to string) Release {
	m.drop(ip)
	return Release{Address: ip, Why: why, To: to}
}

// drop has an address be no longer this member's.
func (m *Member) drop(ip netip.Addr) {
	m.book.Release(ip)
	delete(m.took, ip)
}

// holds tells whether an address is this member's.
func (m *Member) holds(ip netip.Addr) bool {
	_, holds := m.book.Holds(ip)
	return holds
}

func (m *Member) renew(now time.Time) []Action {
	if m.book.Load() == 0 || !m.due(m.renewed.Add(renewal), now) {
		return nil
	}
	m.renewed = now
	m.due(now.Add(renewal), now)
	return []Action{Renew{sorted(m.book.Held())}}
}

// itself is this member's state without addresses.
func (m *Member) itself() State {
	return State{Name: m.name, Run: m.run, Version: m.published.Version, Draining: m.draining, Handover: m.handover, Networks: m.networks}
}

// draft is this member's state as it is now.
func (m *Member) draft() State {
	s := m.itself()
	s.Held, s.Claims = m.book.Held(), map[netip.Addr]string{}
	for ip, c := range m.claims {
		s.Claims[ip] = c.inUse
	}
	s.Failed = sorted(m.failed)
	s.Failed = s.Failed[:min(len(s.Failed), max(mostAddresses-s.load(), 0))]
	s.Networks = s.Networks[:min(len(s.Networks), mostNetworks)]
	return s
}

// publish tells the others this member's state if it has changed, or again.
func (m *Member) publish(again bool) []Action {
	s := m.draft()
	if !again && s.equal(m.published) {
		return nil
	}
	s.Version++
	s.Networks = slices.Clone(s.Networks)
	m.published = s
	return []Action{Publish{s}}
}

func sorted[V any](addresses map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(addresses), netip.Addr.Compare)
}

func (Tick) apply(*Member, time.Time) []Action { return nil }

func (e Wanted) apply(m *Member, _ time.Time) []Action {
	m.wanted, m.siblings = kernel.SetOf(e.Addresses), e.Siblings
	m.book.Want(m.wanted)
	for _, p := range m.peers {
		m.noteEpochs(p.state.Held)
	}
	return nil
}

func (e Pool) apply(m *Member, _ time.Time) []Action {
	m.pool, m.zones = kernel.SetOf(e.Nodes), e.Zones
	for name, p := range m.peers {
		p.member = p.member || m.pool[name]
		if !p.alive && !m.pool[name] {
			m.says(p, nil)
			delete(m.peers, name)
		}
	}
	return nil
}

// A carrier of addresses that comes back was gone long enough for others to take over. They are asked first: an
// advertisement would take the traffic away from them.
func (e Networks) apply(m *Member, _ time.Time) []Action {
	for ip := range m.book.Held() {
		carrier, found := SubnetOf(e.Networks, ip)
		m.view.returned = m.view.returned || found && carrier.Up && !slices.Contains(m.networks, carrier)
	}
	m.networks = slices.Clone(e.Networks)
	return nil
}

func (e Found) apply(m *Member, _ time.Time) []Action {
	for _, ip := range e.Addresses {
		m.book.Find(ip)
	}
	m.view.returned = true
	return nil
}

func (e Removed) apply(m *Member, _ time.Time) (actions []Action) {
	for _, ip := range e.Addresses {
		if m.holds(ip) {
			actions = append(actions, m.release(ip, Gone, ""))
		}
	}
	return actions
}

func (RenewFailed) apply(m *Member, now time.Time) []Action {
	m.renewed = now.Add(renewAgain - renewal)
	return nil
}

func (e Drain) apply(m *Member, _ time.Time) []Action {
	m.draining = e.Now
	return nil
}

// Status says how this member sees the pool.
func (m *Member) Status() Status {
	s := Status{Majority: m.Majority(), Alive: map[string]bool{m.name: true}, Members: []State{m.published}, Pool: slices.Sorted(maps.Keys(m.pool)), Wanted: m.wanted}
	s.Votes, s.Of = m.Votes()
	for _, name := range slices.Sorted(maps.Keys(m.peers)) {
		if p := m.peers[name]; !p.heard.IsZero() {
			s.Members = append(s.Members, p.state)
			if p.alive {
				s.Alive[name] = true
			}
		}
	}
	s.Unheld, s.Lost = map[netip.Addr]time.Time{}, map[netip.Addr]string{}
	for ip, v := range m.vacant {
		if v.why != Unheld && v.why != Dead {
			continue
		}
		s.Unheld[ip] = v.since
		if v.why == Dead {
			s.Lost[ip] = v.from
		}
	}
	s.Tells = !slices.ContainsFunc(s.Pool, func(name string) bool { return name < m.name && m.live(name) })
	return s
}
