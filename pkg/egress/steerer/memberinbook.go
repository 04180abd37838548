package steerer

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/pool"
)

// memberInBook is this node's part in the pool, which decides with the steerer's book and lock.
type memberInBook struct{ *Steerer }

// Join has the node take part in the pool, and returns what decides that part. handover: it hands addresses over.
func (s *Steerer) Join(handover bool) pool.Decider {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.Join(pool.NewRun(), handover)
	return memberInBook{s}
}

// Next takes note of an event of the pool.
func (p memberInBook) Next(event pool.Event, now time.Time) []pool.Action {
	p.mu.Lock()
	if later := time.Now(); later.After(now) { // it may have waited for the lock
		now = later
	}
	actions, changed := p.node.Next(event, now)
	var said holders.Statement
	if changed {
		said = p.node.Say()
	}
	p.mu.Unlock()
	if changed {
		p.tell(said)
		p.config.RequestSync()
	}
	switch event := event.(type) {
	case pool.Wanted, pool.Pool:
		p.config.Running.Go(p.PlanAgain) // other addresses may come; what is decided does not wait for that
	case pool.Liveness:
		if event.Alive && p.announcer != nil {
			p.announcer.Ask(event.Name) // addresses may have moved while one of the two was cut off
		}
	}
	return actions
}

func (p memberInBook) Wake() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.node.Member().Wake()
}

func (p memberInBook) State() pool.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.node.Member().State()
}

func (p memberInBook) Status() pool.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.node.Member().Status()
}

// PlanAgain asks for a sync if this node has, or may get, other addresses than before.
func (s *Steerer) PlanAgain() {
	if s.setHeld() {
		s.config.RequestSync()
	}
}

// assign has these addresses be those that the pool may put here. Nobody does what follows: it is for who asks once.
func (s *Steerer) assign(addresses map[netip.Addr]bool, now time.Time) {
	s.node.Join(0, false)
	s.node.Next(pool.Pool{Nodes: []string{s.node.NodeName()}}, now)
	s.node.Next(pool.Wanted{Addresses: slices.Collect(maps.Keys(addresses))}, now)
}
