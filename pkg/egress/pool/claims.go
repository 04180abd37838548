package pool

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

// claim is an address that this member is about to take.
type claim struct {
	since time.Time
	// asking: a probe is under way, that of this number. silent is when one was asked that nobody answered; zero if
	// there was none; silentNodes did not answer for themselves either. inUse is the MAC of the host that did.
	asking      bool
	probe       int
	silent      time.Time
	silentNodes []string
	inUse       string
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

// noteVacancies finds the addresses that somebody has to take.
func (m *Member) noteVacancies(now time.Time) {
	for ip := range m.vacant {
		if !m.wanted[ip] {
			delete(m.vacant, ip)
		}
	}
	for ip := range m.wanted {
		from, why := m.whyToTake(ip, now)
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

// whyToTake tells why somebody has to take an address, and who had it last; nothing if nobody has to.
func (m *Member) whyToTake(ip netip.Addr, now time.Time) (from string, why Reason) {
	if m.holds(ip) {
		return "", "" // if this node is drained, that is for the others
	}
	if m.leftToTaker(ip, now) {
		return "", ""
	}
	last := func() string { return m.lastHolder(ip, func(*peer) bool { return true }) }
	if holder := m.holder(ip); holder != "" {
		if !m.live(holder) {
			return holder, Dead // what it says now is not known; it answers if it still has it
		}
		switch why := m.objection(holder, ip); {
		case why == "":
			return "", ""
		case why == NotInPool && !m.peers[holder].member && m.pool[last()]:
			return last(), Dead // nobody has given it the address; the member that had it answers if it still has it
		case m.goesOn(holder, ip, why):
			return holder, Drained
		default:
			return holder, Detached
		}
	}
	if last := last(); last != "" {
		return last, Dead
	}
	return "", Unheld
}

// leftToTaker tells whether an address is left to another live node that announces it with an epoch that no member has told: it has just taken
// it, and this member is about to hear of it, or to find out that it does not reach that node. Where both halves of the pool may have a
// gateway, neither has a better right, so the node keeps the address as long as it gives signs of life; but not for ever: it may reach
// nobody outside any more.
func (m *Member) leftToTaker(ip netip.Addr, now time.Time) bool {
	epoch, since, heard := m.book.Leased(ip, now)
	if epoch == 0 || m.heardAll.IsZero() || since.Before(m.heardAll) {
		return false
	}
	until := since.Add(freshness)
	if m.tied() {
		until = heard.Add(Lifetime)
		if m.Majority() {
			until = holders.Earlier(until, since.Add(longestLeft))
		}
	}
	return !m.due(until, now) && !m.told(ip, epoch)
}

// takenOutOfReach tells whether another live node has taken an address, and has had its time to say so to this member.
func (m *Member) takenOutOfReach(ip netip.Addr, now time.Time) bool {
	epoch, since, _ := m.book.Leased(ip, now)
	return epoch > 0 && !m.told(ip, epoch) && m.due(since.Add(freshness), now)
}

// goesOn tells whether a member serves an address until another one has it: it could hold it, but is not to.
func (m *Member) goesOn(name string, ip netip.Addr, why Objection) bool {
	networks := m.networks
	if name != m.name {
		networks = m.peers[name].state.Networks
	}
	subnet, has := SubnetOf(networks, ip)
	return (why == Draining || why == NotInPool) && has && subnet.Up
}

// objection says why a member cannot hold an address.
func (m *Member) objection(name string, ip netip.Addr) Objection {
	switch {
	case !m.pool[name]:
		return NotInPool
	case name == m.name:
		return m.objects(ip)
	case !m.live(name):
		return NotLive
	}
	return m.peers[name].state.objects(ip)
}

// objects says why this member cannot hold an address.
func (m *Member) objects(ip netip.Addr) Objection {
	if why := m.itself().objects(ip); why != "" {
		return why
	}
	if _, failed := m.failed[ip]; failed {
		return Failed
	}
	if !m.holds(ip) && m.claims[ip] == nil && m.book.Load()+len(m.claims) >= mostAddresses {
		return Full
	}
	return ""
}

// othersCan tells whether another member can hold an address that is claimed, and has not been passed over.
func (m *Member) othersCan(ip netip.Addr) bool {
	for name := range m.pool {
		if name != m.name && !m.vacant[ip].passed[name] && m.objection(name, ip) == "" {
			return true
		}
	}
	return false
}

// claim claims what this member has to take, and drops the claims that others have a better right to.
func (m *Member) claim(now time.Time) {
	live, of := m.Votes()
	if 2*live < of || m.wanted == nil || m.heardAll.IsZero() || !m.informed(now) {
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
	for ip, name := range Assign(open, m.siblings, m.candidates()) {
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
		if len(p.state.Claims) == 0 {
			continue // as mostly
		}
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
		c := Candidate{Name: name, Zone: m.zones[name], Objects: func(ip netip.Addr) Objection {
			if v := m.vacant[ip]; v.passed[name] {
				return Inactive
			}
			return m.objection(name, ip)
		}}
		switch {
		case name == m.name:
			c.Load = m.book.Load() + len(m.claims)
			c.Has = func(ip netip.Addr) bool { return m.holds(ip) || m.claims[ip] != nil }
		case m.live(name):
			c.Load, c.Has = m.peers[name].state.load(), m.peers[name].state.has
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

// probe asks whether any host has the claimed addresses.
// Each probe reads what the kernel has and opens sockets, so one that is due waits for others: those of a thousand new addresses,
// one after another, would otherwise slow each other down until all answers are too old.
func (m *Member) probe(now time.Time) []Action {
	if m.probing == probesAtOnce {
		return nil
	}
	var ask []netip.Addr
	for _, ip := range sorted(m.claims) {
		if m.vacant[ip].why.GivenAway() {
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
	m.probing++
	return []Action{Probe{m.probes, ask}}
}

func (e Probed) apply(m *Member, now time.Time) []Action {
	m.probing--
	for ip, answer := range e.Answers {
		c := m.claims[ip]
		if c == nil || !c.asking || c.probe != e.Number {
			continue // that was another claim
		}
		c.asking = false
		switch old := now.Sub(e.At) > validity; {
		case answer.Failed:
			m.failed[ip] = now.Add(passedOver)
		case old:
			c.again = now
		case answer.Cut:
			c.inUse, c.again = "", now.Add(askAgain)
			if m.othersCan(ip) {
				m.failed[ip] = now.Add(leftToOthers)
			}
		default:
			c.inUse, c.again = answer.By, now.Add(askAgain)
			if c.inUse == "" {
				c.silent, c.silentNodes = e.At, e.Silent
			}
		}
	}
	return nil
}

// take takes the claimed addresses that no host has, and those whose live holder gives them away.
func (m *Member) take(now time.Time) (actions []Action) {
	if !m.Majority() {
		return nil
	}
	for _, ip := range sorted(m.claims) {
		v, c := m.vacant[ip], m.claims[ip]
		until := c.silent.Add(validity)
		if !m.majorityWithout(c.silentNodes) {
			until = time.Time{} // they may be as dead as the one that had it
		}
		if v.why.GivenAway() && m.due(c.since.Add(m.courtesyTo(v.from)), now) {
			until = now.Add(validity)
		}
		if now.After(until) {
			continue
		}
		delete(m.claims, ip)
		delete(m.vacant, ip)
		m.took[ip] = now
		passOn := v.why.Served() && m.peers[v.from].state.Handover
		actions = append(actions, Take{Address: ip, Epoch: m.book.Take(ip), From: v.from, Why: v.why, PassOn: passOn, Since: v.since, Until: until})
	}
	return actions
}

// courtesyTo returns how long a claim to an address waits that a live holder gives away. The process of one that is not in the pool any more
// may have ended with its Node a moment ago, and its kernel still has the address. By then it is found dead.
func (m *Member) courtesyTo(holder string) time.Duration {
	if p := m.peers[holder]; p != nil && !m.pool[holder] && !p.state.Draining {
		return timeToFindDead(len(m.peers) + 1)
	}
	return courtesy
}

// timeToFindDead is longer than so many members need at most to find that one is dead: the wait for a probe, the probe, the suspicion, which
// in memberlist grows with the logarithm of their number, and passing it on. It is 0.5 s for up to ten, and 0.9 s for a thousand.
func timeToFindDead(members int) time.Duration {
	return 320*time.Millisecond + time.Duration(suspicion*float64(probeInterval)*math.Log10(max(10, float64(members))))
}

func (e TakeFailed) apply(m *Member, now time.Time) []Action {
	for _, ip := range slices.Concat(e.Addresses, e.Late) {
		m.drop(ip)
	}
	for _, ip := range e.Addresses {
		m.failed[ip] = now.Add(passedOver)
	}
	return nil
}
