package pool

import (
	"cmp"
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
	// inspection is how often a member asks whether another host has its addresses, too.
	inspection = 10 * time.Second
	// looks is how many times in a row nobody answers before a member is cut off.
	looks = 2
	// validity is how long an answer counts after the question, and a decision to take an address: a process that was
	// stopped meanwhile finds another world.
	validity = 250 * time.Millisecond
	// activity is how long a member may leave an address alone that is its own to take, or that it claims.
	activity = 2 * time.Second
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
	wanted map[netip.Addr]bool
	// pool has the names of its nodes; nil if they are not known.
	pool     map[string]bool
	peers    map[string]*peer
	draining bool
	networks []Network
	// held are this member's addresses, with their epochs; 0 if one is not known.
	held map[netip.Addr]uint64
	// own are the epochs that this member's addresses had before the process started.
	own    map[netip.Addr]uint64
	claims map[netip.Addr]*claim
	// probes numbers the probes.
	probes int
	// failed are the addresses that could not be taken, and until when that counts.
	failed map[netip.Addr]time.Time
	// epochs are the highest that were seen.
	epochs map[netip.Addr]uint64
	// vacant are the addresses that somebody has to take.
	vacant map[netip.Addr]*vacancy
	view   view
	// renewed is when the kernel was last told to keep the addresses.
	renewed   time.Time
	published State
	// wake is when something is due although nothing happens; zero for never.
	wake time.Time
}

// peer is another member.
type peer struct {
	// alive since a time.
	alive bool
	since time.Time
	// state is the newest, told at heard; zero if none was. It may be from before its death.
	state State
	heard time.Time
	// claimed is since when it says that it is about to take an address.
	claimed map[netip.Addr]time.Time
	// left is when it was heard that it does not have an address any more.
	left map[netip.Addr]time.Time
}

// fresh tells whether what a live peer says now is known: it may have moved addresses while it was out of reach.
func (p *peer) fresh() bool { return !p.heard.IsZero() && !p.heard.Before(p.since.Add(-freshness)) }

// claim is an address that this member is about to take.
type claim struct {
	since time.Time
	// asking: a probe is under way, that of this number. silent is when one was asked that nobody answered; zero if
	// there was none. inUse is the MAC of the host that did.
	asking bool
	probe  int
	silent time.Time
	inUse  string
	// again is when to ask again.
	again time.Time
}

// vacancy is an address that somebody has to take.
type vacancy struct {
	since time.Time
	from  string
	why   Reason
	// assigned is who has to take it, since when; passed are those who did not.
	assigned string
	at       time.Time
	passed   map[string]bool
}

// view is what a member sees on its network.
type view struct {
	// looking: an answer is due. again is when to look next, inspected when this member looked last.
	looking   bool
	again     time.Time
	inspected time.Time
	// gateway: the default gateway answered the last time.
	gateway bool
	// alone is how many times in a row nobody answered.
	alone int
	// returned: this node has just come back to the network, and another one may have taken over. announce:
	// a look is under way that will tell.
	returned, announce bool
}

// NewMember returns a Member that knows of nobody. Of two processes of one node the runs differ.
func NewMember(name string, run uint64) *Member {
	return &Member{
		name: name, run: run, peers: map[string]*peer{}, held: map[netip.Addr]uint64{}, claims: map[netip.Addr]*claim{},
		failed: map[netip.Addr]time.Time{}, epochs: map[netip.Addr]uint64{}, vacant: map[netip.Addr]*vacancy{},
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
	actions = append(actions, m.giveWay()...)
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
	if !m.settled && m.pool != nil {
		missing := func(name string) bool { return name != m.name && !m.live(name) }
		m.settled = !slices.ContainsFunc(slices.Collect(maps.Keys(m.pool)), missing) || m.due(m.began.Add(patience), now)
	}
}

// live tells whether another member is live and has told its state.
func (m *Member) live(name string) bool {
	p := m.peers[name]
	return p != nil && p.alive && p.fresh()
}

// informed tells whether all live members have told their states, or had their time for it.
func (m *Member) informed(now time.Time) bool {
	informed := true
	for name, p := range m.peers {
		if m.pool[name] && p.alive && !p.fresh() && !m.due(p.since.Add(freshness), now) {
			informed = false
		}
	}
	return informed
}

// giveWay releases what is not wanted any more, and what another live member has with a higher epoch.
func (m *Member) giveWay() (actions []Action) {
	for _, ip := range sorted(m.held) {
		rival := m.holder(ip)
		switch {
		case m.wanted != nil && !m.wanted[ip]:
			actions = append(actions, m.release(ip, Unwanted, ""))
		case rival != "" && m.outranked(ip, rival):
			actions = append(actions, m.release(ip, HandedOver, rival))
		}
	}
	return actions
}

// outranked tells whether another member's epoch of an address is higher than this one's.
func (m *Member) outranked(ip netip.Addr, rival string) bool {
	return cmp.Or(cmp.Compare(m.peers[rival].state.Held[ip], m.held[ip]), cmp.Compare(rival, m.name)) > 0
}

func (m *Member) release(ip netip.Addr, why Reason, to string) Release {
	delete(m.held, ip)
	return Release{Address: ip, Why: why, To: to}
}

// holder returns the other live member that has an address, of several that with the highest epoch; empty
// if there is none.
func (m *Member) holder(ip netip.Addr) (name string) {
	return m.lastHolder(ip, func(p *peer) bool { return p.alive })
}

// lastHolder returns who of some members has an address, as far as it has told.
func (m *Member) lastHolder(ip netip.Addr, of func(*peer) bool) (name string) {
	var highest uint64
	for other, p := range m.peers {
		epoch, has := p.state.Held[ip]
		if has && of(p) && (name == "" || epoch > highest || epoch == highest && other > name) {
			name, highest = other, epoch
		}
	}
	return name
}

// Votes returns how many nodes of the pool are live, this one included, and how many there are.
func (m *Member) Votes() (live, of int) {
	for name := range m.pool {
		if p := m.peers[name]; name == m.name || p != nil && p.alive {
			live++
		}
	}
	return live, len(m.pool)
}

// Majority tells whether the members that this one reaches may act for the pool. In a pool of an even
// number the default gateway has a vote where both halves are of the same size.
func (m *Member) Majority() bool {
	live, of := m.Votes()
	return 2*live > of || m.tied() && m.view.gateway
}

// tied tells whether exactly half of the pool is live.
func (m *Member) tied() bool {
	live, of := m.Votes()
	return of > 0 && 2*live == of
}

// look looks around if a majority is missing, a carrier came back, or the last time is long ago; and releases everything if nobody has
// answered: then the others can take it, and this node must not have it when its link comes back.
func (m *Member) look(now time.Time) (actions []Action) {
	if len(m.held) == 0 {
		m.view.returned = false // there is nothing that another one may have taken over
	}
	if m.Majority() && !m.tied() || m.pool == nil {
		m.view.alone, m.view.gateway = 0, false
		if inspects := len(m.held) > 0 && m.due(m.view.inspected.Add(inspection), now); !m.view.returned && !inspects {
			return nil
		}
	} else if !m.settled {
		return nil
	}
	if m.view.alone >= looks {
		for _, ip := range sorted(m.held) {
			actions = append(actions, m.release(ip, CutOff, ""))
		}
	}
	needed := len(m.held) > 0 || m.tied()
	if needed && !m.view.looking && m.due(m.view.again, now) {
		m.view.looking, m.view.returned, m.view.announce, m.view.inspected = true, false, m.view.returned, now
		actions = append(actions, LookAround{sorted(m.held)})
	}
	return actions
}

// vacate finds the addresses that somebody has to take.
func (m *Member) vacate(now time.Time) {
	for ip := range m.vacant {
		if !m.wanted[ip] {
			delete(m.vacant, ip)
		}
	}
	for ip := range m.wanted {
		from, why := m.isVacant(ip)
		switch v := m.vacant[ip]; {
		case why == "":
			delete(m.vacant, ip)
		case v == nil:
			m.vacant[ip] = &vacancy{since: now, from: from, why: why}
		default:
			v.from, v.why = from, why
		}
	}
}

// isVacant tells why somebody has to take an address, and who had it last; nothing if nobody has to.
func (m *Member) isVacant(ip netip.Addr) (from string, why Reason) {
	if _, here := m.held[ip]; here {
		return "", "" // if this node is drained, that is for the others
	}
	if holder := m.holder(ip); holder != "" {
		if !m.live(holder) {
			return holder, Dead // what it says now is not known; it answers if it still has it
		}
		switch m.objection(holder, ip) {
		case "":
			return "", ""
		case Draining, NotInPool:
			return holder, Drained
		default:
			return holder, Detached
		}
	}
	if last := m.lastHolder(ip, func(*peer) bool { return true }); last != "" {
		return last, Dead
	}
	return "", Unheld
}

// objection says why a member cannot hold an address.
func (m *Member) objection(name string, ip netip.Addr) Objection {
	switch {
	case !m.pool[name]:
		return NotInPool
	case name == m.name:
		return State{Draining: m.draining, Networks: m.networks, Failed: sorted(m.failed)}.objects(ip)
	case !m.live(name):
		return NotLive
	}
	return m.peers[name].state.objects(ip)
}

// Objections says of each node of the pool why it cannot hold an address; empty if it can.
func (m *Member) Objections(ip netip.Addr) Objections {
	objections := Objections{}
	for name := range m.pool {
		objections[name] = m.objection(name, ip)
	}
	return objections
}

// claim claims what this member has to take, and drops the claims that others have a better right to.
func (m *Member) claim(now time.Time) {
	live, of := m.Votes()
	if 2*live < of || m.wanted == nil || !m.settled || !m.informed(now) {
		clear(m.claims)
		return
	}
	for ip := range m.claims {
		if m.vacant[ip] == nil || m.objection(m.name, ip) != "" || m.claimedBetter(ip, now) {
			delete(m.claims, ip)
		}
	}
	var open []netip.Addr
	for ip := range m.vacant {
		if m.claims[ip] == nil && !m.claimed(ip, now) {
			open = append(open, ip)
		}
	}
	for ip, name := range Assign(open, m.candidates()) {
		if name == m.name {
			m.claims[ip] = &claim{since: now}
		}
		m.watch(ip, name, now)
	}
}

// claimed tells whether another live member is about to take an address.
func (m *Member) claimed(ip netip.Addr, now time.Time) bool {
	return m.claimant(ip, now, func(string) bool { return true })
}

// claimedBetter tells whether one that has a higher score is.
func (m *Member) claimedBetter(ip netip.Addr, now time.Time) bool {
	return m.claimant(ip, now, func(name string) bool { return compareScores(ip, name, m.name) > 0 })
}

// claimant tells whether one of those that count claims an address. A claim that comes to nothing ends by itself: its
// member hangs, unless a host has the address.
func (m *Member) claimant(ip netip.Addr, now time.Time, counts func(name string) bool) bool {
	for name, p := range m.peers {
		mac, claims := p.state.Claims[ip]
		if claims && m.live(name) && m.pool[name] && counts(name) && (mac != "" || !m.due(p.claimed[ip].Add(activity), now)) {
			return true
		}
	}
	return false
}

// candidates are the live members of the pool.
func (m *Member) candidates() (list []Candidate) {
	for name := range m.pool {
		c := Candidate{Name: name, Objects: func(ip netip.Addr) Objection {
			if v := m.vacant[ip]; v.passed[name] {
				return Inactive
			}
			return m.objection(name, ip)
		}}
		switch {
		case name == m.name:
			c.Load = len(m.held) + len(m.claims)
		case m.live(name):
			c.Load = m.peers[name].state.load()
		default:
			continue
		}
		list = append(list, c)
	}
	return list
}

// watch notes who has to take an address. One that does not claim it is passed over, until all have been.
func (m *Member) watch(ip netip.Addr, assigned string, now time.Time) {
	v := m.vacant[ip]
	if v.assigned != assigned {
		v.assigned, v.at = assigned, now
	}
	if assigned == m.name || !m.due(v.at.Add(activity), now) {
		return
	}
	if v.passed == nil || len(v.passed) >= len(m.pool)-1 {
		v.passed = map[string]bool{}
	}
	v.passed[assigned] = true
	m.due(now.Add(askAgain), now)
}

// take takes the claimed addresses that no host has, and those whose live holder gives them away.
func (m *Member) take(now time.Time) (actions []Action) {
	if !m.Majority() {
		return nil
	}
	for _, ip := range sorted(m.claims) {
		v, c := m.vacant[ip], m.claims[ip]
		until := c.silent.Add(validity)
		if given := v.why == Drained || v.why == Detached; given && m.due(c.since.Add(courtesy), now) {
			until = now.Add(validity)
		}
		if now.After(until) {
			continue
		}
		delete(m.claims, ip)
		delete(m.vacant, ip)
		m.epochs[ip]++
		m.held[ip] = m.epochs[ip]
		actions = append(actions, Take{Address: ip, Epoch: m.held[ip], From: v.from, Why: v.why, Since: v.since, Until: until})
	}
	return actions
}

// probe asks whether any host has the claimed addresses.
func (m *Member) probe(now time.Time) []Action {
	var ask []netip.Addr
	for _, ip := range sorted(m.claims) {
		if v := m.vacant[ip]; v.why == Drained || v.why == Detached {
			continue // its holder would answer
		}
		if c := m.claims[ip]; !c.asking && m.due(c.again, now) {
			c.asking, c.probe, c.silent = true, m.probes+1, time.Time{}
			ask = append(ask, ip)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	m.probes++
	return []Action{Probe{m.probes, ask}}
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
	s := State{Name: m.name, Run: m.run, Version: m.published.Version, Draining: m.draining, Networks: m.networks, Held: m.held, Claims: map[netip.Addr]string{}}
	for ip, c := range m.claims {
		s.Claims[ip] = c.inUse
	}
	s.Failed = sorted(m.failed)
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
	m.wanted = setOf(e.Addresses)
	unwanted := func(ip netip.Addr, _ uint64) bool { return !m.wanted[ip] }
	maps.DeleteFunc(m.epochs, unwanted)
	maps.DeleteFunc(m.own, unwanted)
	return nil
}

func (e Pool) apply(m *Member, _ time.Time) []Action {
	m.pool = setOf(e.Nodes)
	for name, p := range m.peers {
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

func (e TakeFailed) apply(m *Member, now time.Time) []Action {
	for _, ip := range e.Addresses {
		delete(m.held, ip)
		m.failed[ip] = now.Add(failure)
	}
	return nil
}

func (RenewFailed) apply(m *Member, now time.Time) []Action {
	m.renewed = now.Add(renewAgain - renewal)
	return nil
}

func (e Epochs) apply(m *Member, _ time.Time) []Action {
	for ip, epoch := range e.Highest {
		m.epochs[ip] = max(m.epochs[ip], epoch)
	}
	for ip, epoch := range e.Own {
		m.own[ip] = epoch
		if own, held := m.held[ip]; held && own < epoch {
			m.held[ip] = epoch
		}
		m.epochs[ip] = max(m.epochs[ip], epoch)
	}
	return nil
}

func (e Alive) apply(m *Member, now time.Time) []Action {
	p := m.peer(e.Name)
	came := e.Now && !p.alive
	p.alive = e.Now
	if !came {
		return nil
	}
	p.since = now
	return m.publish(true)
}

func (m *Member) peer(name string) *peer {
	p := m.peers[name]
	if p == nil {
		p = &peer{}
		m.peers[name] = p
	}
	return p
}

// A member that has an address of this one with a lower epoch has not heard of it, and neither have hosts
// that it has told.
func (e Heard) apply(m *Member, now time.Time) []Action {
	p := m.peer(e.State.Name)
	known := !p.heard.IsZero()
	p.heard = now
	if known && !e.State.newer(p.state) {
		return nil
	}
	p.note(e.State, now)
	var contested []netip.Addr
	for ip, epoch := range e.State.Held {
		m.epochs[ip] = max(m.epochs[ip], epoch)
		if _, here := m.held[ip]; here && !m.outranked(ip, e.State.Name) && e.State.objects(ip) == "" {
			contested = append(contested, ip)
		}
	}
	if len(contested) == 0 {
		return nil
	}
	slices.SortFunc(contested, netip.Addr.Compare)
	return append(m.publish(true), Announce{contested})
}

// note takes a new state.
func (p *peer) note(s State, now time.Time) {
	claimed := make(map[netip.Addr]time.Time, len(s.Claims))
	for ip := range s.Claims {
		claimed[ip] = now
		if since, before := p.claimed[ip]; before && p.state.Run == s.Run {
			claimed[ip] = since
		}
	}
	left := map[netip.Addr]time.Time{}
	for ip, at := range p.left {
		if now.Sub(at) <= validity {
			left[ip] = at
		}
	}
	for ip := range p.state.Held {
		if _, has := s.Held[ip]; !has {
			left[ip] = now
		}
	}
	p.state, p.claimed, p.left = s, claimed, left
}

func (e Probed) apply(m *Member, now time.Time) []Action {
	for _, ip := range slices.Concat(e.Addresses, e.Failed) {
		c := m.claims[ip]
		if c == nil || !c.asking || c.probe != e.Number {
			continue // that was another claim
		}
		c.asking = false
		switch old := now.Sub(e.At) > validity; {
		case slices.Contains(e.Failed, ip):
			m.failed[ip] = now.Add(failure)
		case old:
			c.again = now
		case slices.Contains(e.Cut, ip):
			c.inUse, c.again = "", now.Add(askAgain)
		default:
			c.inUse, c.again = e.Answers[ip], now.Add(askAgain)
			if c.inUse == "" {
				c.silent = e.At
			}
		}
	}
	return nil
}

func (e Looked) apply(m *Member, now time.Time) (actions []Action) {
	m.view.looking, m.view.again = false, now.Add(lookAgain)
	if now.Sub(e.At) > validity {
		m.view.again, m.view.returned, m.view.announce = now, m.view.returned || m.view.announce, false
		return nil
	}
	m.view.gateway = e.Gateway
	if m.view.alone++; e.Peers || e.Gateway {
		m.view.alone = 0
	}
	for _, ip := range sorted(e.Own) {
		if _, held := m.held[ip]; !held {
			continue
		}
		if m.yields(ip, e.At) {
			m.view.returned = true // to see that it does
			continue
		}
		actions = append(actions, m.release(ip, Answered, ""))
	}
	if m.view.announce && len(m.held) > 0 {
		actions = append(actions, Announce{sorted(m.held)})
	}
	m.view.announce = false
	return actions
}

// yields tells whether a former holder of an address may have answered for it after a time, which gives way to this member as
// soon as it hears of it, or has done so. Without a majority, a node that is not live may have taken it again meanwhile.
func (m *Member) yields(ip netip.Addr, since time.Time) bool {
	for name, p := range m.peers {
		if at, left := p.left[ip]; left && !at.Before(since) {
			return true
		}
		if _, has := p.state.Held[ip]; has && !m.outranked(ip, name) && (p.alive || m.Majority()) {
			return true
		}
	}
	return false
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
