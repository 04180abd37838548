package pool

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// peer is another member.
type peer struct {
	name string
	// alive since a time.
	alive bool
	since time.Time
	// state is the newest, told at heard; zero if none was. It may be from before its death.
	state State
	heard time.Time
	// spoke is when anything was heard of it.
	spoke time.Time
	// claimed is since when it says that it is about to take an address.
	claimed map[netip.Addr]time.Time
	// left is when it was heard that it does not have an address any more.
	left map[netip.Addr]time.Time
	// former are the addresses that it had before its process was restarted: its kernel may have answered for them until now.
	former map[netip.Addr]uint64
	// rival: it has told addresses since contested, of which some may be this member's.
	rival     bool
	contested time.Time
	// member: it was in the pool at some time.
	member bool
}

// fresh tells whether what a live peer says now is known: it may have moved addresses while it was out of reach.
func (p *peer) fresh() bool { return !p.heard.IsZero() && !p.heard.Before(p.since.Add(-freshness)) }

func (m *Member) peer(name string) *peer {
	p := m.peers[name]
	if p == nil {
		p = &peer{name: name, member: m.pool[name]}
		m.peers[name] = p
	}
	return p
}

// live tells whether another member is alive, and what it says now is known.
func (m *Member) live(name string) bool {
	p := m.peers[name]
	return p != nil && p.alive && p.fresh()
}

// informed tells whether all members that are alive have told their states, or had their time for it.
func (m *Member) informed(now time.Time) bool {
	informed := true
	for name, p := range m.peers {
		if m.pool[name] && p.alive && !p.fresh() && !m.due(p.since.Add(freshness), now) {
			informed = false
		}
	}
	return informed
}

// Votes returns how many nodes of the pool are alive, this one included, and how many there are.
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
func (m *Member) Majority() bool { return m.majorityWithout(nil) }

// majorityWithout tells whether those that are alive may, without some of them.
func (m *Member) majorityWithout(nodes []string) bool {
	live, of := m.Votes()
	for _, name := range nodes {
		if p := m.peers[name]; m.pool[name] && p != nil && p.alive {
			live--
		}
	}
	return 2*live > of || 2*live == of && of > 0 && m.view.gateway
}

// tied tells whether exactly half of the pool is alive.
func (m *Member) tied() bool {
	live, of := m.Votes()
	return of > 0 && 2*live == of
}

// holder returns the other member that is alive and has an address, of several that with the highest epoch; empty
// if there is none.
func (m *Member) holder(ip netip.Addr) (name string) {
	return m.lastHolder(ip, func(p *peer) bool { return p.alive })
}

// lastHolder returns who of some members has an address, as far as it has told.
func (m *Member) lastHolder(ip netip.Addr, of func(*peer) bool) (name string) {
	for _, p := range m.having[ip] {
		if of(p) && (name == "" || m.compareHolders(ip, p.name, name) > 0) {
			name = p.name
		}
	}
	return name
}

// told tells whether a member has said that it has an address, with an epoch or a higher one, or, if it is live, that it does not know the
// epoch yet.
func (m *Member) told(ip netip.Addr, epoch uint64) bool {
	for _, p := range m.having[ip] {
		if said := p.state.Held[ip]; said >= epoch || said == 0 && m.live(p.name) {
			return true
		}
	}
	return false
}

// outranked tells whether another member's epoch of an address is higher than this one's.
func (m *Member) outranked(ip netip.Addr, rival string) bool {
	return m.compareHolders(ip, rival, m.name) > 0
}

// compareHolders compares what two members have an address with. A node of the pool comes before one that is not in it, and takes
// nothing but what a drained node gives away: all nodes of the cluster have the key. Then the higher epoch counts. There may be no higher
// one: then it is for a member that can hold the address, and so a drain ends; of two that can, or cannot, for the one whose name sorts last.
func (m *Member) compareHolders(ip netip.Addr, a, b string) int {
	if m.pool[a] != m.pool[b] {
		return map[bool]int{true: 1, false: -1}[m.pool[a]]
	}
	epoch := func(name string) uint64 {
		if name == m.name {
			epoch, _ := m.book.Holds(ip)
			return epoch
		}
		return m.peers[name].state.Held[ip]
	}
	if different := cmp.Compare(epoch(a), epoch(b)); different != 0 {
		return different
	}
	can := func(name string) int {
		objects := m.objects
		if name != m.name {
			objects = m.peers[name].state.objects
		}
		if objects(ip) == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(can(a), can(b)), cmp.Compare(a, b))
}

func (e Liveness) apply(m *Member, now time.Time) []Action {
	p := m.peer(e.Name)
	came := e.Alive && !p.alive
	p.alive = e.Alive
	if !came {
		return nil
	}
	p.since = now
	return m.publish(true)
}

func (e Heard) apply(m *Member, now time.Time) []Action {
	p := m.peer(e.State.Name)
	known := !p.heard.IsZero()
	p.heard, p.spoke = now, now
	m.noteEpochs(e.State.Held)
	if known && !e.State.newer(p.state) {
		return nil
	}
	m.note(p, e.State, now)
	p.rival = true
	return nil
}

// What it says of all its addresses may be older than this, or come later.
func (e Reminded) apply(m *Member, now time.Time) []Action {
	p := m.peer(e.State.Name)
	p.spoke = now
	m.noteEpochs(e.State.Held)
	if e.State.Run == p.state.Run && e.State.Version < p.state.Version {
		return nil
	}
	held := maps.Clone(p.state.Held) // others may read it
	if held == nil {
		held = map[netip.Addr]uint64{}
	}
	maps.Copy(held, e.State.Held)
	if maps.Equal(held, p.state.Held) || len(held) > mostAddresses {
		return nil
	}
	m.says(p, held)
	p.rival = true
	return nil
}

// contest tells the others, and the network, which addresses of this member others have with a lower epoch, or had when their
// processes died: they have not heard of this one, and neither have hosts that they have told. It does so of each other one every so
// often at most, for one may say so thousands of times a second.
func (m *Member) contest(now time.Time) []Action {
	contested := map[netip.Addr]bool{}
	for name, p := range m.peers {
		if !p.rival || !m.due(p.contested.Add(contestAgain), now) {
			continue
		}
		p.rival = false
		for ip := range p.state.Held {
			if m.holds(ip) && !m.outranked(ip, name) && p.state.objects(ip) == "" {
				contested[ip], p.contested = true, now
			}
		}
		for ip := range p.former {
			if m.holds(ip) && !m.outranked(ip, name) {
				contested[ip], p.contested = true, now
			}
		}
		p.former = nil
	}
	if len(contested) == 0 {
		return nil
	}
	return append(m.publish(true), Advertise{sorted(contested)})
}

// noteEpochs notes epochs of addresses that the pool is to hold, also those of a state that has been overtaken: none is given twice. Of
// what nobody wants, which may be all of a network, the book notes nothing.
func (m *Member) noteEpochs(epochs map[netip.Addr]uint64) {
	for ip, epoch := range epochs {
		m.book.See(ip, epoch)
	}
}

// says notes which addresses another member says that it has.
func (m *Member) says(p *peer, held map[netip.Addr]uint64) {
	for ip := range p.state.Held {
		if _, still := held[ip]; still {
			continue
		}
		if m.having[ip] = slices.DeleteFunc(m.having[ip], func(other *peer) bool { return other == p }); len(m.having[ip]) == 0 {
			delete(m.having, ip)
		}
	}
	for ip := range held {
		if _, before := p.state.Held[ip]; !before {
			m.having[ip] = append(m.having[ip], p)
		}
	}
	p.state.Held = held
}

// note takes a new state. That a member does not have an address any more is kept of what concerns this one: it may be said of a whole
// network.
func (m *Member) note(p *peer, s State, now time.Time) {
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
		if _, has := s.Held[ip]; !has && (m.holds(ip) || m.wanted[ip]) {
			left[ip] = now
		}
	}
	if p.state.Run != s.Run {
		p.former = p.state.Held
	}
	m.says(p, s.Held)
	p.state, p.claimed, p.left = s, claimed, left
}
