package steerer

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/pool"
)

// TestMemberInBook_GivesWayToALease: what other nodes announce is in the book, and has the pool's member look at it, with whatever event comes next.
func TestMemberInBook_GivesWayToALease(t *testing.T) {
	s := newSteered(t, holders.Auto)
	s.Apply(holders.OwnAddresses{Addresses: []netip.Addr{egressIP}})
	m, now := s.Join(false), time.Now()
	heard := pool.Heard{State: pool.State{Name: "node-b", Run: 1, Version: 1}}
	for _, event := range []pool.Event{
		pool.Networks{Networks: []pool.Network{{Prefix: netip.MustParsePrefix("203.0.113.0/24"), Up: true}}},
		pool.Pool{Nodes: []string{"node-a"}}, pool.Wanted{Addresses: []netip.Addr{egressIP}}, pool.Found{Addresses: []netip.Addr{egressIP}},
		pool.Liveness{Name: "node-b", Alive: true}, heard,
	} {
		m.Next(event, now)
	}
	if epoch := m.State().Held[egressIP]; epoch == 0 || !s.plansFor()[egressIP] {
		t.Errorf("it has the address with epoch %d, and plans for %v", epoch, s.plansFor())
	}
	s.Apply(s.announce("node-b", 7))
	if len(s.memberWake) == 0 {
		t.Error("the member does not look")
	}
	var released []netip.Addr
	for _, action := range m.Next(heard, now) {
		if release, is := action.(pool.Release); is && release.Why == pool.TakenOver {
			released = append(released, release.Address)
		}
	}
	if !slices.Equal(released, []netip.Addr{egressIP}) {
		t.Errorf("released %v, want %v", released, egressIP)
	}
}
