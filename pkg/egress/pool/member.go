package pool

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

const (
	// patience is how long a member that has just started waits for the others: what they have is not
	// free, and what nobody has is spread over all.
	patience = 3 * time.Second
	// courtesy is how long a claim to an address that is given away may be contested by others. Its holder serves it meanwhile.
	courtesy = 50 * time.Millisecond
	// askAgain is how long after an answer an address is asked for again, lookAgain how long after a look around
	// the next one begins where no majority is there: when a partition heals, both sides may have an address.
	askAgain  = 100 * time.Millisecond
	lookAgain = 20 * time.Millisecond
	// probesAtOnce is how many probes may be under way. There is more than one because that of an address that another host has is
	// repeated all the time.
	probesAtOnce = 3
	// inspection is how often a member asks whether another host has its addresses, too.
	inspection = 10 * time.Second
	// looks is how many times in a row nobody answers before a member is cut off.
	looks = 2
	// validity is how long an answer counts after the question, and a decision to take an address: a process that was
	// stopped meanwhile finds another world.
	validity = 250 * time.Millisecond
	// activity is how long a member may leave an address alone that is its own to take, or that it claims.
	activity = 2 * time.Second
	// contestAgain is how often another member is told, and the network, that it does not have an address of this one.
	contestAgain = 50 * time.Millisecond
	// failure is how long a member is passed over that could not take an address.
	failure = 10 * time.Second
	// freshness is how long before a member is found alive its state may have come, and how long it is waited
	// for afterwards.
	freshness = time.Second
	// Lifetime is how long the kernel keeps an address that nobody renews, and renewal how often a member
	// does.
	Lifetime = 30 * time.Second
	renewal  = 10 * time.Second
	// renewAgain is when that is tried again if it failed.
	renewAgain = time.Second
)

// Member decides what one node of the pool does. What it decides follows from the events alone, and from
// the times of them. It is for one goroutine at a time. Times must not go back.
type Member struct {
	name string
	run  uint64
	// began is the time of the first event. settled: all others have been heard of since, or long enough
	// has been waited.
	began   time.Time
	settled bool
	// wanted are the addresses that the pool is to hold; nil if that is not known.
	wanted   map[netip.Addr]bool
	siblings map[netip.Addr][]netip.Addr
	// pool has the names of its nodes; nil if they are not known.
	pool     map[string]bool
	zones    map[string]string
	peers    map[string]*peer
	draining bool
	// handover: it hands addresses over as [State] says.
	handover bool
	networks []Network
	// held are this member's addresses, with their epochs; 0 if one is not known.
	held map[netip.Addr]uint64
	// took is when this process took them.
	took map[netip.Addr]time.Time
	// own are the epochs that this member's addresses had before the process started.
	own    map[netip.Addr]uint64
	claims map[netip.Addr]*claim
	// probes numbers the probes, probing is how many are under way.
	probes, probing int
	// failed are the addresses that could not be taken, and until when that counts.
	failed map[netip.Addr]time.Time
	// epochs are the highest that were seen.
	epochs map[netip.Addr]uint64
	// elsewhere are those that other live nodes have, as their Leases and announcements say.
	elsewhere map[netip.Addr]uint64
	// leased are the addresses of which such a Lease has a higher epoch than anything that was seen before.
	leased map[netip.Addr]lease
	// vacant are the addresses that somebody has to take.
	vacant map[netip.Addr]*vacancy
	view   view
	// renewed is when the kernel was last told to keep the addresses.
	renewed   time.Time
	published State
	// wake is when something is due although nothing happens; zero for never.
	wake time.Time
}

// lease is the epoch of an address in another node's Lease, and since when. That node has just taken the address, and this member is
// about to hear of it, or to find out that it does not reach that node.
type lease struct {
	epoch uint64
	since time.Time
}

// NewMember returns a Member that knows of nobody. Of two processes of one node the runs differ.
func NewMember(name string, run uint64) *Member {
	return &Member{
		name: name, run: run, peers: map[string]*peer{}, held: map[netip.Addr]uint64{}, took: map[netip.Addr]time.Time{}, claims: map[netip.Addr]*claim{},
		failed: map[netip.Addr]time.Time{}, epochs: map[netip.Addr]uint64{}, vacant: map[netip.Addr]*vacancy{}, leased: map[netip.Addr]lease{},
		own: map[netip.Addr]uint64{}, published: State{Name: name, Run: run},
	}
}

// Next takes note of an event, and returns what to do, in this order.
func (m *Member) Next(event Event, now time.Time) []Action {
	if m.began.IsZero() {
		m.began, m.renewed, m.view.inspected = now, now.Add(-renewal), now
	}
	return append(event.apply(m, now), m.settle(now)...)
}

// Wake returns when Next wants a [Tick] although nothing happens; zero for never.
func (m *Member) Wake() time.Time { return m.wake }

// State is what this member tells the others.
func (m *Member) State() State { return m.published }

// settle does what is due.
func (m *Member) settle(now time.Time) (actions []Action) {
	m.wake = time.Time{}
	m.expire(now)
	actions = append(actions, m.contest(now)...)
	actions = append(actions, m.giveWay(now)...)
	actions = append(actions, m.look(now)...)
	m.vacate(now)
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
	trust := freshness
	if m.tied() { // both halves may have a gateway, and then neither has a better right
		trust = Lifetime
	}
	for ip, l := range m.leased {
		if m.elsewhere[ip] < l.epoch || m.due(l.since.Add(trust), now) {
			delete(m.leased, ip)
		}
	}
	if !m.settled && m.pool != nil {
		missing := func(name string) bool { return name != m.name && !m.live(name) }
		m.settled = !slices.ContainsFunc(slices.Collect(maps.Keys(m.pool)), missing) || m.due(m.began.Add(patience), now)
	}
}

// giveWay releases what is not wanted any more, and what another member has with a higher epoch: also one that this node, which
// has just come back to the network, does not find alive yet. A majority that this member does not reach takes its addresses
// without a word to it, and this member may find out late that it reaches none: so it goes by the Leases as well. What it gives
// away itself it serves until the next holder says that it has it, and a Lease does not say that.
func (m *Member) giveWay(now time.Time) (actions []Action) {
	speaks := func(p *peer) bool { return p.alive || now.Sub(p.spoke) <= validity }
	cutOff := m.pool != nil && !m.Majority()
	for _, ip := range sorted(m.held) {
		rival := m.lastHolder(ip, speaks)
		switch {
		case m.wanted != nil && !m.wanted[ip]:
			actions = append(actions, m.release(ip, Unwanted, ""))
		case rival != "" && m.outranked(ip, rival):
			actions = append(actions, m.giveTo(ip, rival))
		case m.held[ip] > 0 && m.elsewhere[ip] > m.held[ip] && (cutOff || m.objection(m.name, ip) == ""):
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
	release.GoOn = why.drained() && m.handover && m.live(rival) && m.peers[rival].state.Handover
	return release
}

func (m *Member) release(ip netip.Addr, why Reason, to string) Release {
	delete(m.held, ip)
	delete(m.took, ip)
	return Release{Address: ip, Why: why, To: to}
}

func (m *Member) renew(now time.Time) []Action {
	if len(m.held) == 0 || !m.due(m.renewed.Add(renewal), now) {
		return nil
	}
	m.renewed = now
	m.due(now.Add(renewal), now)
	return []Action{Renew{sorted(m.held)}}
}

// draft is this member's state as it is now.
func (m *Member) draft() State {
	s := State{Name: m.name, Run: m.run, Version: m.published.Version, Draining: m.draining, Handover: m.handover, Networks: m.networks, Held: m.held, Claims: map[netip.Addr]string{}}
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
	s.Held, s.Networks = maps.Clone(s.Held), slices.Clone(s.Networks)
	m.published = s
	return []Action{Publish{s}}
}

func sorted[V any](addresses map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(addresses), netip.Addr.Compare)
}

func (Tick) apply(*Member, time.Time) []Action { return nil }

func (e Wanted) apply(m *Member, _ time.Time) []Action {
	m.wanted, m.siblings = setOf(e.Addresses), e.Siblings
	unwanted := func(ip netip.Addr, _ uint64) bool { return !m.wanted[ip] }
	maps.DeleteFunc(m.epochs, unwanted)
	for _, p := range m.peers {
		m.noteEpochs(p.state.Held)
	}
	maps.DeleteFunc(m.own, unwanted)
	return nil
}

func (e Pool) apply(m *Member, _ time.Time) []Action {
	m.pool, m.zones = setOf(e.Nodes), e.Zones
	for name, p := range m.peers {
		p.member = p.member || m.pool[name]
		if !p.alive && !m.pool[name] {
			delete(m.peers, name)
		}
	}
	return nil
}

// A carrier that comes back was gone long enough for others to take over. They are asked first: an
// announcement would take the traffic away from them.
func (e Networks) apply(m *Member, _ time.Time) []Action {
	for _, n := range e.Networks {
		m.view.returned = m.view.returned || n.Up && !slices.Contains(m.networks, n)
	}
	m.networks = slices.Clone(e.Networks)
	return nil
}

func (e Found) apply(m *Member, _ time.Time) []Action {
	for _, ip := range e.Addresses {
		m.held[ip] = m.own[ip]
	}
	m.view.returned = true
	return nil
}

func (e Removed) apply(m *Member, _ time.Time) (actions []Action) {
	for _, ip := range e.Addresses {
		if _, held := m.held[ip]; held {
			actions = append(actions, m.release(ip, Gone, ""))
		}
	}
	return actions
}

func (RenewFailed) apply(m *Member, now time.Time) []Action {
	m.renewed = now.Add(renewAgain - renewal)
	return nil
}

func (e Epochs) apply(m *Member, now time.Time) []Action {
	m.elsewhere = make(map[netip.Addr]uint64, len(e.Others))
	for ip, epoch := range e.Others {
		epoch = min(epoch, maxEpoch)
		if m.settled && epoch > m.epochs[ip] {
			m.leased[ip] = lease{epoch, now}
		}
		m.elsewhere[ip] = epoch
		m.epochs[ip] = max(m.epochs[ip], epoch)
	}
	for ip, epoch := range e.Highest {
		m.epochs[ip] = max(m.epochs[ip], min(epoch, maxEpoch))
	}
	for ip, epoch := range e.Own {
		epoch = min(epoch, maxEpoch)
		m.own[ip] = epoch
		if own, held := m.held[ip]; held && own < epoch {
			m.held[ip] = epoch
		}
		m.epochs[ip] = max(m.epochs[ip], epoch)
	}
	return nil
}

func (e Drain) apply(m *Member, _ time.Time) []Action {
	m.draining = e.Now
	return nil
}

func setOf[T comparable](list []T) map[T]bool {
	set := make(map[T]bool, len(list))
	for _, one := range list {
		set[one] = true
	}
	return set
}

// status says how this member sees the pool.
func (m *Member) status() Status {
	s := Status{Majority: m.Majority(), Alive: map[string]bool{m.name: true}, Members: []State{m.published}, Pool: slices.Sorted(maps.Keys(m.pool))}
	s.Votes, s.Of = m.Votes()
	for _, name := range slices.Sorted(maps.Keys(m.peers)) {
		if p := m.peers[name]; !p.heard.IsZero() {
			s.Members = append(s.Members, p.state)
			s.Alive[name] = p.alive
		}
	}
	s.Objections, s.Unheld, s.Lost = map[netip.Addr]Objections{}, map[netip.Addr]time.Time{}, map[netip.Addr]string{}
	for ip, v := range m.vacant {
		if v.why != Unheld && v.why != Dead {
			continue
		}
		s.Unheld[ip], s.Objections[ip] = v.since, m.Objections(ip)
		if v.why == Dead {
			s.Lost[ip] = v.from
		}
	}
	s.Tells = !slices.ContainsFunc(s.Pool, func(name string) bool { return name < m.name && m.live(name) })
	return s
}
