package pool

import (
	"net/netip"
	"time"
)

// view is what a member sees on its network.
type view struct {
	// looking: an answer is due. again is when to look next, inspected when this member looked last.
	looking   bool
	again     time.Time
	inspected time.Time
	// asked is when this member asked for its own addresses last; it had these votes then.
	asked time.Time
	votes int
	// gateway: the default gateway answered the last time.
	gateway bool
	// alone is how many times in a row nobody answered.
	alone int
	// returned: this node has just come back to the network, and another one may have taken over. advertise:
	// a look is under way that will tell.
	returned, advertise bool
}

// look looks around if a majority is missing, a carrier came back, or the last time is long ago; and releases everything if
// nobody has answered: then the others can take it, and this node must not have it when its link comes back.
func (m *Member) look(now time.Time) (actions []Action) {
	holds := m.book.Load() > 0
	if !holds {
		m.view.returned = false // there is nothing that another one may have taken over
	}
	if m.Majority() && !m.tied() || m.pool == nil {
		m.view.alone, m.view.gateway = 0, false
		if inspects := holds && m.due(m.view.inspected.Add(Inspection), now); !m.view.returned && !inspects {
			return nil
		}
	} else if m.heardAll.IsZero() {
		return nil
	}
	if m.view.alone >= looks {
		for _, ip := range sorted(m.book.Held()) {
			actions = append(actions, m.release(ip, CutOff, ""))
		}
	}
	needed := m.book.Load() > 0 || m.tied()
	if needed && !m.view.looking && m.due(m.view.again, now) {
		actions = append(actions, LookAround{m.ownToAsk(now)})
		m.view.looking, m.view.returned, m.view.advertise, m.view.inspected = true, false, m.view.returned, now
	}
	return actions
}

// ownToAsk returns this member's addresses if it is time to ask for them. The others and the gateway are asked all the time while a majority is
// missing, and hosts for each address less often: that are broadcasts.
func (m *Member) ownToAsk(now time.Time) []netip.Addr {
	votes, _ := m.Votes()
	if !m.view.returned && votes == m.view.votes && now.Before(m.view.asked.Add(askOwnAgain)) {
		return nil
	}
	m.view.asked, m.view.votes = now, votes
	return sorted(m.book.Held())
}

func (e Looked) apply(m *Member, now time.Time) (actions []Action) {
	m.view.looking, m.view.again = false, now.Add(lookAgain)
	if now.Sub(e.At) > validity {
		m.view.again, m.view.returned, m.view.advertise, m.view.asked = now, m.view.returned || m.view.advertise, false, time.Time{}
		return nil
	}
	m.view.gateway = e.Gateway
	if m.view.alone++; e.Peers || e.Gateway {
		m.view.alone = 0
	}
	if m.view.advertise && m.book.Load() > 0 {
		actions = append(actions, Advertise{sorted(m.book.Held())})
	}
	m.view.advertise = false
	return actions
}

// Answers that are too old leave the addresses to the next look, as a [Looked] does.
func (e Answered) apply(m *Member, now time.Time) (actions []Action) {
	if now.Sub(e.At) > validity {
		return nil
	}
	for _, ip := range e.Addresses {
		if !m.holds(ip) {
			continue
		}
		if m.yields(ip, e.At, now) {
			m.view.returned = true // to see that it does
			continue
		}
		actions = append(actions, m.release(ip, AnsweredFor, ""))
	}
	return actions
}

// yields tells whether a former holder of an address may have answered for it after a time, which gives way to this member as
// soon as it hears of it, or has done so. Without a majority, a node that is not live may have taken it again meanwhile; but
// not in the first moments, in which this member cannot have been found dead.
func (m *Member) yields(ip netip.Addr, since, now time.Time) bool {
	if now.Sub(m.took[ip]) <= validity {
		return true
	}
	for name, p := range m.peers {
		if at, left := p.left[ip]; left && !at.Before(since) {
			return true
		}
		mayHave := p.alive || m.Majority() && now.Sub(m.took[ip]) <= Lifetime // the kernel of a dead process lets go then
		if _, has := p.state.Held[ip]; has && !m.outranked(ip, name) && mayHave {
			return true
		}
	}
	return false
}
