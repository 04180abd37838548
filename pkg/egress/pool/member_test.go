package pool

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

var (
	ip1, ip2 = netip.MustParseAddr("192.0.2.101"), netip.MustParseAddr("192.0.2.102")
	subnet   = Network{Prefix: netip.MustParsePrefix("192.0.2.0/24"), Up: true}
	compare  = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmpopts.EquateEmpty()}
)

// addresses are as many in a row.
func addresses(n int) (list []netip.Addr) {
	for ip := netip.MustParseAddr("10.0.0.1"); len(list) < n; ip = ip.Next() {
		list = append(list, ip)
	}
	return list
}

func moment(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }

// newMember is a member with a book of its own, and no API server.
func newMember(name string) *Member {
	return NewMember(holders.NewDirectory(holders.Config{NodeName: name, Outer: "IPv4"}), 1, false)
}

// announced has the book know what a node announces in its Lease.
func (m *Member) announced(name string, epochs map[netip.Addr]uint64) {
	m.book.Apply(holders.NodeSeen{Name: name, Ready: true, InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.9")}}, moment(0))
	m.book.Apply(holders.Announced{Node: name, Statement: holders.Statement{Addresses: epochs, Revision: 1}, Source: holders.Lease}, moment(0))
}

// had has the book know that this member's node has addresses, which it had in its Lease when its process started.
func (m *Member) had(epochs map[netip.Addr]uint64) {
	m.announced(m.name, epochs)
	m.book.Apply(holders.OwnAddresses{Addresses: slices.Collect(maps.Keys(epochs))}, moment(0))
	m.book.Apply(holders.LeasesKnown{}, moment(0))
}

// newTestMember is member a of a pool with b and c, which are live and have nothing. It wants these addresses.
func newTestMember(t *testing.T, wanted ...netip.Addr) *Member {
	t.Helper()
	m := newMember("a")
	for _, e := range []Event{
		Networks{[]Network{subnet}}, Pool{Nodes: []string{"a", "b", "c"}},
		Liveness{"b", true}, Liveness{"c", true}, Heard{peerState("b", 1, nil)}, Heard{peerState("c", 1, nil)}, Wanted{Addresses: wanted},
	} {
		m.Next(e, moment(0))
	}
	return m
}

func peerState(name string, version uint64, held map[netip.Addr]uint64) State {
	return State{Name: name, Run: 1, Version: version, Networks: []Network{subnet}, Held: held}
}

// moves returns the actions but those that are about no move.
func moves(actions []Action) (rest []Action) {
	for _, a := range actions {
		switch a.(type) {
		case Publish, Renew:
		default:
			rest = append(rest, a)
		}
	}
	return rest
}

func acts(t *testing.T, got []Action, want ...Action) {
	t.Helper()
	if diff := cmp.Diff(want, moves(got), compare, cmpopts.IgnoreFields(Take{}, "Since", "Until"), cmpopts.IgnoreFields(Probe{}, "Number")); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// probed is the result of the member's last probe.
func (m *Member) probed(at time.Time, answers map[netip.Addr]string, ips ...netip.Addr) Probed {
	result := Probed{Number: m.probes, Answers: map[netip.Addr]Answer{}, At: at}
	for _, ip := range ips {
		result.Answers[ip] = Answer{By: answers[ip]}
	}
	return result
}

// mine is an address that member a gets in a pool of three, if nobody has one.
func mine(t *testing.T) netip.Addr {
	t.Helper()
	for ip := ip1; ; ip = ip.Next() {
		if compareScores(ip, "a", "b") > 0 && compareScores(ip, "a", "c") > 0 {
			return ip
		}
	}
}

func TestMember_TakesWhatNobodyAnswersFor(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t)
	acts(t, m.Next(Wanted{Addresses: []netip.Addr{ip}}, moment(0)), Probe{Addresses: []netip.Addr{ip}})
	acts(t, m.Next(m.probed(moment(80*time.Millisecond), map[netip.Addr]string{ip: "02:00"}, ip), moment(80*time.Millisecond)))
	if mac := m.State().Claims[ip]; mac != "02:00" {
		t.Errorf("the claim says %q, want the MAC of the host that answered", mac)
	}
	if want := moment(180 * time.Millisecond); m.Wake() != want {
		t.Errorf("wakes at %v, want %v", m.Wake(), want)
	}
	acts(t, m.Next(Tick{}, m.Wake()), Probe{Addresses: []netip.Addr{ip}})
	acts(t, m.Next(m.probed(moment(260*time.Millisecond), nil, ip), moment(260*time.Millisecond)), Take{Address: ip, Epoch: 1, Why: Unheld})
}

// checkHaving fails unless it is known exactly of each address who says that it has it.
func (m *Member) checkHaving(t *testing.T) {
	t.Helper()
	want := map[netip.Addr][]string{}
	for _, name := range slices.Sorted(maps.Keys(m.peers)) {
		for ip := range m.peers[name].state.Held {
			want[ip] = append(want[ip], name)
		}
	}
	got := map[netip.Addr][]string{}
	for ip, peers := range m.having {
		for _, p := range peers {
			got[ip] = append(got[ip], p.name)
		}
		slices.Sort(got[ip])
	}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("who has the addresses (-want +got):\n%s", diff)
	}
}

// TestMember_KnowsWhoHasAnAddress, also if one says less than before, or is started anew.
func TestMember_KnowsWhoHasAnAddress(t *testing.T) {
	m, both, one := newTestMember(t, ip1, ip2), map[netip.Addr]uint64{ip1: 1, ip2: 2}, map[netip.Addr]uint64{ip2: 3}
	anew := peerState("b", 1, one)
	anew.Run = 2
	for _, e := range []Event{
		Heard{peerState("b", 2, both)}, Heard{peerState("c", 2, one)}, Heard{peerState("c", 2, one)}, Heard{peerState("c", 1, nil)},
		Reminded{peerState("c", 3, both)}, Heard{peerState("b", 3, one)}, Heard{anew}, Heard{peerState("c", 4, nil)},
	} {
		m.Next(e, moment(0))
		m.checkHaving(t)
	}
}

// TestMember_CopiesOfAState are no news, unless something is due, or has changed in the book.
func TestMember_CopiesOfAState(t *testing.T) {
	anew := peerState("b", 1, nil)
	anew.Run = 2
	for name, test := range map[string]struct {
		happens func(m *Member)
		heard   State
		at      time.Duration
		want    bool
	}{
		"a copy":               {nil, peerState("b", 1, nil), 0, false},
		"a newer state":        {nil, peerState("b", 2, nil), 0, true},
		"of a new process":     {nil, anew, 0, true},
		"of a dead member":     {func(m *Member) { m.Next(Liveness{"b", false}, moment(0)) }, peerState("b", 1, nil), 0, true},
		"something is due":     {func(m *Member) { m.wake = moment(time.Second) }, peerState("b", 1, nil), time.Second, true},
		"the book has changed": {func(m *Member) { m.BookChanged(moment(0)) }, peerState("b", 1, nil), 0, true},
	} {
		m := newTestMember(t)
		m.wake = time.Time{}
		if test.happens != nil {
			test.happens(m)
		}
		m.failed[ip1] = moment(-1) // which is forgotten when it acts
		m.Next(Heard{test.heard}, moment(test.at))
		if acted := len(m.failed) == 0; acted != test.want {
			t.Errorf("%s: it has acted: %v", name, acted)
		}
	}
}

// TestMember_OldAnswersDoNotCount: of a probe that was asked long ago, or for a claim that was dropped since.
func TestMember_OldAnswersDoNotCount(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t, ip)
	acts(t, m.Next(m.probed(moment(0), nil, ip), moment(validity+1)), Probe{Addresses: []netip.Addr{ip}})
	first := m.probed(moment(validity+1), nil, ip)
	m.Next(Heard{peerState("b", 2, map[netip.Addr]uint64{ip: 1})}, moment(validity+1)) // somebody has it
	acts(t, m.Next(Heard{peerState("b", 3, nil)}, moment(validity+1)), Probe{Addresses: []netip.Addr{ip}})
	acts(t, m.Next(first, moment(validity+2)))
	acts(t, m.Next(m.probed(moment(validity+2), nil, ip), moment(validity+2)), Take{Address: ip, Epoch: 2, Why: Unheld})
}

// TestMember_SilenceCountsWhileItIsNew: without a majority nothing is taken, and when there is one again it has to be asked anew.
func TestMember_SilenceCountsWhileItIsNew(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t, ip)
	m.Next(Pool{Nodes: []string{"a", "b", "c", "d"}}, moment(0))
	m.Next(Liveness{"c", false}, moment(0))
	acts(t, m.Next(m.probed(moment(0), nil, ip), moment(0)))
	acts(t, m.Next(Liveness{"c", true}, moment(time.Second)), Probe{Addresses: []netip.Addr{ip}})
	m.Next(Heard{peerState("c", 2, nil)}, moment(time.Second))
	acts(t, m.Next(m.probed(moment(time.Second), nil, ip), moment(time.Second)), Take{Address: ip, Epoch: 1, Why: Unheld})
}

func TestMember_OldLooksDoNotCount(t *testing.T) {
	m := newMember("a")
	m.Next(Found{[]netip.Addr{ip1}}, moment(0))
	acts(t, m.Next(Answered{moment(0), []netip.Addr{ip1}}, moment(validity+1)))
	acts(t, m.Next(Looked{At: moment(0)}, moment(validity+1)), LookAround{[]netip.Addr{ip1}})
	acts(t, m.Next(Looked{At: moment(validity + 1), Peers: true}, moment(validity+1)), Advertise{[]netip.Addr{ip1}})
}

// TestMember_TakesNothingOnADeadNetwork: a node that is cut off finds the others dead one by one, and has a majority for a moment. It leaves
// the address to another one, and as long as there is none asks again.
func TestMember_TakesNothingOnADeadNetwork(t *testing.T) {
	ip := mine(t)
	for name, test := range map[string]struct {
		draining bool
		want     Objection
		next     []Action
	}{
		"others can": {false, Failed, nil},
		"nobody can": {true, "", []Action{Probe{Addresses: []netip.Addr{ip}}}},
	} {
		m := newTestMember(t, ip)
		for _, peer := range []string{"b", "c"} {
			s := peerState(peer, 2, nil)
			s.Draining = test.draining
			m.Next(Heard{s}, moment(0))
		}
		acts(t, m.Next(Probed{Number: m.probes, Answers: map[netip.Addr]Answer{ip: {Cut: true}}, At: moment(0)}, moment(0)))
		if got := m.State().objects(ip); got != test.want {
			t.Errorf("%s: tells the others that %q, want %q", name, got, test.want)
		}
		acts(t, m.Next(Tick{}, moment(askAgain)), test.next...)
		m.Next(Tick{}, moment(2*activity))
		if got := m.State().objects(ip); got != test.want {
			t.Errorf("%s: when two that do nothing are passed over, it tells the others that %q, want %q", name, got, test.want)
		}
		m.Next(Tick{}, moment(leftToOthers))
		if got := m.State().objects(ip); got != "" {
			t.Errorf("%s: later it tells that %q", name, got)
		}
	}
}

// TestMember_TakesNothingWithASilentMajority: of five, two are on this side of a partition, and the first one is found dead.
func TestMember_TakesNothingWithASilentMajority(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t, ip)
	m.Next(Pool{Nodes: []string{"a", "b", "c", "d", "e"}}, moment(0))
	m.Next(Liveness{"d", true}, moment(0))
	m.Next(Heard{State{Name: "d", Run: 1, Version: 1}}, moment(0)) // it cannot hold the address
	probed := m.probed(moment(0), nil, ip)
	probed.Silent = []string{"c", "d", "e"}
	acts(t, m.Next(probed, moment(0)))
	acts(t, m.Next(Tick{}, moment(askAgain)), Probe{Addresses: []netip.Addr{ip}})
	probed = m.probed(moment(askAgain), nil, ip)
	probed.Silent = []string{"d", "e"} // e is dead as far as it knows
	acts(t, m.Next(probed, moment(askAgain)), Take{Address: ip, Epoch: 1, Why: Unheld})
}

func TestMember_ProbeThatFailedIsForOthers(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t, ip)
	acts(t, m.Next(Probed{Number: m.probes, Answers: map[netip.Addr]Answer{ip: {Failed: true}}, At: moment(0)}, moment(0)))
	if got := m.Status().Objections(ip)["a"]; got != Failed {
		t.Errorf("the objection is %q, want %q", got, Failed)
	}
}

func TestMember_EpochIsHigherThanAnySeen(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t)
	m.announced("d", map[netip.Addr]uint64{ip: 7})
	m.book.Apply(holders.NodeDeleted{Name: "d"}, moment(0))
	m.Next(Heard{peerState("b", 2, map[netip.Addr]uint64{ip: 5})}, moment(0))
	m.Next(Heard{peerState("b", 3, nil)}, moment(0))
	m.Next(Wanted{Addresses: []netip.Addr{ip}}, moment(0))
	acts(t, m.Next(m.probed(moment(0), nil, ip), moment(0)), Take{Address: ip, Epoch: 8, Why: Unheld})
}

// TestMember_EpochOfWhatWasHeardBefore: an epoch that another member said before the pool was to hold its address counts when that member dies.
func TestMember_EpochOfWhatWasHeardBefore(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t)
	m.Next(Heard{peerState("b", 2, map[netip.Addr]uint64{ip: 5})}, moment(0))
	m.Next(Wanted{Addresses: []netip.Addr{ip}}, moment(0))
	acts(t, m.Next(Liveness{"b", false}, moment(0)), Probe{Addresses: []netip.Addr{ip}})
	acts(t, m.Next(m.probed(moment(0), nil, ip), moment(0)), Take{Address: ip, Epoch: 6, From: "b", Why: Dead})
}

// TestMember_WantsWhatAnotherNodeHas: of an address that a live node announces already when this member is to hold it, that node is trusted
// for a moment.
func TestMember_WantsWhatAnotherNodeHas(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t)
	m.announced("d", map[netip.Addr]uint64{ip: 7})
	acts(t, m.Next(Wanted{Addresses: []netip.Addr{ip}}, moment(0)))
	acts(t, m.Next(Tick{}, moment(freshness)), Probe{Addresses: []netip.Addr{ip}})
}

func TestMember_GivesWayToTheHigherEpoch(t *testing.T) {
	for _, c := range []struct {
		name  string
		own   uint64
		other uint64
		want  []Action
	}{
		{"higher", 3, 4, []Action{Release{Address: ip1, Why: HandedOver, To: "b"}}},
		{"equal, and the later name", 3, 3, []Action{Release{Address: ip1, Why: HandedOver, To: "b"}}},
		{"lower", 3, 2, []Action{Advertise{[]netip.Addr{ip1}}}},
		{"own unknown", 0, 1, []Action{Release{Address: ip1, Why: HandedOver, To: "b"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMember("a")
			m.Next(Found{[]netip.Addr{ip1}}, moment(0))
			m.Next(Looked{At: moment(0), Peers: true}, moment(0))
			if c.own > 0 {
				m.had(map[netip.Addr]uint64{ip1: c.own})
			}
			m.Next(Liveness{"b", true}, moment(0))
			acts(t, m.Next(Heard{peerState("b", 1, map[netip.Addr]uint64{ip1: c.other})}, moment(0)), c.want...)
		})
	}
}

// TestMember_AdvertisesWhatARestartedProcessHad: the kernel of a dead process answers for its addresses when its link comes back.
func TestMember_AdvertisesWhatARestartedProcessHad(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t, ip)
	m.Next(Heard{peerState("b", 2, map[netip.Addr]uint64{ip: 1})}, moment(0))
	m.Next(Liveness{"b", false}, moment(time.Second))
	m.Next(m.probed(moment(time.Second), nil, ip), moment(time.Second))
	m.Next(Liveness{"b", true}, moment(2*time.Second))
	restarted := peerState("b", 1, nil)
	restarted.Run++
	acts(t, m.Next(Heard{restarted}, moment(2*time.Second)), Advertise{[]netip.Addr{ip}})
	restarted.Version++
	acts(t, m.Next(Heard{restarted}, moment(3*time.Second)))
}

// TestMember_AsksWhenACarrierComesBack: that of its addresses, and no other one of the node, also with a larger subnet.
func TestMember_AsksWhenACarrierComesBack(t *testing.T) {
	ip, other := mine(t), Network{Prefix: netip.MustParsePrefix("192.0.0.0/16"), Up: true}
	m := newTestMember(t, ip)
	m.Next(m.probed(moment(0), nil, ip), moment(0))
	acts(t, m.Next(Networks{[]Network{subnet, other}}, moment(0)))
	acts(t, m.Next(Networks{[]Network{{Prefix: subnet.Prefix}, other}}, moment(0)))
	acts(t, m.Next(Networks{[]Network{subnet, other}}, moment(0)), LookAround{[]netip.Addr{ip}})
	acts(t, m.Next(Looked{At: moment(0), Peers: true}, moment(0)), Advertise{[]netip.Addr{ip}})
}

// TestMember_GivesWayToOneThatItFindsDead: a node that comes back to the network hears of the new holder before it finds it alive.
func TestMember_GivesWayToOneThatItFindsDead(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t, ip)
	m.Next(m.probed(moment(0), nil, ip), moment(0))
	m.Next(Liveness{"b", false}, moment(time.Second))
	acts(t, m.Next(Heard{peerState("b", 2, map[netip.Addr]uint64{ip: 2})}, moment(2*time.Second)),
		Release{Address: ip, Why: TakenOver, To: "b"}, Probe{Addresses: []netip.Addr{ip}}) // to see whether b has it
}

// TestMember_GivesWayWhenItIsReminded: of some addresses at a time, also by one whose state as a whole is not known, or is
// newer than that.
func TestMember_GivesWayWhenItIsReminded(t *testing.T) {
	m := newMember("a")
	m.Next(Found{[]netip.Addr{ip1, ip2}}, moment(0))
	m.Next(Looked{At: moment(0), Peers: true}, moment(0))
	m.had(map[netip.Addr]uint64{ip1: 3, ip2: 3})
	remind := func(version uint64, ip netip.Addr, epoch uint64) []Action {
		return m.Next(Reminded{State{Name: "b", Run: 1, Version: version, Part: true, Held: map[netip.Addr]uint64{ip: epoch}}}, moment(0))
	}
	acts(t, remind(2, ip1, 4), Release{Address: ip1, Why: HandedOver, To: "b"})
	m.Next(Heard{peerState("b", 3, map[netip.Addr]uint64{ip1: 4})}, moment(0))
	acts(t, remind(2, ip2, 4)) // it has let go of that one since
	acts(t, remind(3, ip2, 4), Release{Address: ip2, Why: HandedOver, To: "b"})
}

// TestMember_GivesWayToALease: also before it finds out that it reaches no majority. Of two that took an address at once, which have no word of
// each other, the one gives way whose name sorts first.
func TestMember_GivesWayToALease(t *testing.T) {
	ip := mine(t)
	for name, test := range map[string]struct {
		node  string
		more  uint64
		gives bool
	}{"later": {"d", 1, true}, "at once, the last": {"d", 0, true}, "at once, the first": {"0", 0, false}} {
		m := newTestMember(t, ip)
		m.Next(m.probed(moment(0), nil, ip), moment(0))
		m.announced(test.node, map[netip.Addr]uint64{ip: m.State().Held[ip] + test.more})
		var gave []Action
		for _, a := range m.Next(Tick{}, moment(0)) {
			if _, is := a.(Release); is {
				gave = append(gave, a)
			}
		}
		if test.gives {
			acts(t, gave, Release{Address: ip, Why: TakenOver})
		} else if acts(t, gave); !m.holds(ip) {
			t.Errorf("%s: it does not hold the address any more", name)
		}
	}
}

// TestMember_GivesAwayToAMemberNotToALease: what it gives away it serves until the next holder speaks; but not where that cannot be heard.
func TestMember_GivesAwayToAMemberNotToALease(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t, ip)
	m.Next(m.probed(moment(0), nil, ip), moment(0))
	m.Next(Drain{Now: true}, moment(0))
	m.announced("d", map[netip.Addr]uint64{ip: m.State().Held[ip] + 1})
	acts(t, m.Next(Tick{}, moment(0)))
	m.Next(Liveness{"b", false}, moment(0))
	m.view.looking = true
	acts(t, m.Next(Liveness{"c", false}, moment(0)), Release{Address: ip, Why: TakenOver})
}

// TestMember_GivesAwayToANodeThatItDoesNotKnow: a drain ends, too, if the next holder has come into the pool since this node has lost the API
// server. Otherwise nobody outside the pool gets anything.
func TestMember_GivesAwayToANodeThatItDoesNotKnow(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t, ip)
	m.Next(m.probed(moment(0), nil, ip), moment(0))
	next := map[netip.Addr]uint64{ip: m.State().Held[ip] + 1}
	m.Next(Heard{peerState("d", 1, next)}, moment(0))
	acts(t, m.Next(Liveness{"d", true}, moment(0)))
	m.Next(Drain{Now: true}, moment(0))
	if _, has := m.State().Held[ip]; has {
		t.Error("the drained node has the address, and another one, too")
	}
}

// TestMember_ToldWithoutAnEpoch: a process that has just started says what it has before it knows the epochs. That is no less than what its
// Lease says.
func TestMember_ToldWithoutAnEpoch(t *testing.T) {
	m := newTestMember(t, ip1)
	m.announced("b", map[netip.Addr]uint64{ip1: 3})
	if m.told(ip1, 3) || !m.leftToTaker(ip1, moment(0)) {
		t.Error("before b says it, it is not left to b")
	}
	m.Next(Heard{peerState("b", 2, map[netip.Addr]uint64{ip1: 0})}, moment(time.Millisecond))
	if !m.told(ip1, 3) || m.leftToTaker(ip1, moment(time.Millisecond)) {
		t.Error("b has said it, and it counts as not told")
	}
	m.Next(Liveness{"b", false}, moment(2*time.Millisecond))
	if m.told(ip1, 3) {
		t.Error("what b has said of no epoch counts although it is not live any more")
	}
}

func TestState_Parts(t *testing.T) {
	s := peerState("node-1.example", 7, nil)
	if parts := s.Parts(); len(parts) != 1 || len(parts[0].Held) > 0 {
		t.Errorf("no addresses: %+v, want one part", parts)
	}
	s.Held = map[netip.Addr]uint64{}
	for i, ip := range addresses(1000) {
		s.Held[ip] = uint64(i)
	}
	all := map[netip.Addr]uint64{}
	parts := s.Parts()
	for _, part := range parts {
		text, err := json.Marshal(part)
		if err != nil || len(text) > datagram || !part.Part || part.Name != s.Name || part.Version != s.Version {
			t.Errorf("%d bytes, error %v: %s; want at most %d", len(text), err, text, datagram)
		}
		maps.Copy(all, part.Held)
	}
	if !maps.Equal(all, s.Held) || len(parts) > 30 {
		t.Errorf("%d parts have %d of %d addresses", len(parts), len(all), len(s.Held))
	}
}

// TestState_EqualComparesAllThatIsTold: what it left out would not be published.
func TestState_EqualComparesAllThatIsTold(t *testing.T) {
	full := reflect.ValueOf(State{
		Name: "a", Run: 1, Version: 1, Draining: true, Networks: []Network{subnet}, Held: map[netip.Addr]uint64{ip1: 1},
		Claims: map[netip.Addr]string{ip1: ""}, Failed: []netip.Addr{ip1}, Handover: true, Part: true,
	})
	for i := range full.NumField() {
		name, one := full.Type().Field(i).Name, State{}
		if full.Field(i).IsZero() {
			t.Errorf("%s: give it a value in this test", name)
		}
		reflect.ValueOf(&one).Elem().Field(i).Set(full.Field(i))
		if isOfAll := slices.Contains([]string{"Name", "Run", "Version", "Part"}, name); (State{}).equal(one) != isOfAll {
			t.Errorf("%s: a state that differs by it alone is equal: %v", name, !isOfAll)
		}
	}
}

func TestMember_FoundAddressesAreAskedForBeforeTheyAreAdvertised(t *testing.T) {
	m := newMember("a")
	acts(t, m.Next(Found{[]netip.Addr{ip1, ip2}}, moment(0)), LookAround{[]netip.Addr{ip1, ip2}})
	acts(t, m.Next(Answered{moment(time.Second), []netip.Addr{ip1}}, moment(time.Second)), Release{Address: ip1, Why: AnsweredFor})
	acts(t, m.Next(Looked{At: moment(time.Second), Peers: true}, moment(time.Second)), Advertise{[]netip.Addr{ip2}})
}

// TestMember_AsksForItsOwnNowAndThen: while a majority is missing, a member looks around all the time, but asks for its addresses now and
// then, and when the votes are others.
func TestMember_AsksForItsOwnNowAndThen(t *testing.T) {
	m := newMember("a")
	m.Next(Pool{Nodes: []string{"a", "b"}}, moment(0))
	m.Next(Found{[]netip.Addr{ip1}}, moment(0))
	asked := map[time.Duration]bool{}
	for at := time.Duration(0); at < patience+5*time.Second; at += 20 * time.Millisecond {
		event := Event(Tick{})
		if m.view.looking {
			event = Looked{At: moment(at), Gateway: true}
		}
		for _, a := range m.Next(event, moment(at)) {
			if look, is := a.(LookAround); is && len(look.Own) > 0 {
				asked[at.Truncate(time.Second)] = true
			} else if is {
				asked[-1] = true
			}
		}
	}
	if len(asked) != 5+1 {
		t.Errorf("asked in the seconds %v, want in each, and looks without a question in between", slices.Sorted(maps.Keys(asked)))
	}
	at := patience + 5*time.Second
	m.Next(Looked{At: moment(at), Gateway: true}, moment(at))
	m.view.asked, m.view.votes = moment(at), 2 // as if the other one had been alive
	acts(t, m.Next(Tick{}, moment(at+2*lookAgain)), LookAround{[]netip.Addr{ip1}})
}

// TestMember_FormerHolderStillAnswers: it does for a moment after its address was taken over, which is no reason to release
// it; nor if it has released it, or is heard of again, after it answered.
func TestMember_FormerHolderStillAnswers(t *testing.T) {
	ip := mine(t)
	at := func(ms int) time.Time { return moment(time.Duration(ms) * time.Millisecond) }
	looked := func(m *Member, asked, now int) []Action {
		m.view.looking = true
		return slices.Concat(m.Next(Answered{at(asked), []netip.Addr{ip}}, at(now)), m.Next(Looked{At: at(asked), Peers: true}, at(now)))
	}
	m := newTestMember(t, ip)
	m.Next(m.probed(at(0), nil, ip), at(0))
	acts(t, m.Next(Tick{}, at(1))) // no look around: it was not away
	m.Next(Heard{peerState("b", 2, map[netip.Addr]uint64{ip: m.State().Held[ip] - 1})}, at(1))
	again := LookAround{[]netip.Addr{ip}}
	acts(t, looked(m, 2, 2))
	acts(t, m.Next(Tick{}, at(22)), again)
	m.Next(Liveness{"b", false}, at(30))
	advertised := Advertise{[]netip.Addr{ip}}
	acts(t, looked(m, 23, 100), advertised)
	m.Next(Liveness{"b", true}, at(105))
	m.Next(Heard{peerState("b", 3, nil)}, at(110))
	acts(t, m.Next(Tick{}, at(120)), again)
	acts(t, looked(m, 109, 130), advertised)
	acts(t, m.Next(Tick{}, at(150)), again)
	acts(t, looked(m, 300, 310), Release{Address: ip, Why: AnsweredFor}, Probe{Addresses: []netip.Addr{ip}})
}

func TestMember_RenewsEveryTenSeconds(t *testing.T) {
	m := newMember("a")
	renewed := 0
	for _, a := range m.Next(Found{[]netip.Addr{ip1}}, moment(0)) {
		if _, is := a.(Renew); is {
			renewed++
		}
	}
	for at := m.Wake(); !at.IsZero() && at.Before(moment(35*time.Second)); at = m.Wake() {
		for _, a := range m.Next(Tick{}, at) {
			if _, is := a.(Renew); is {
				renewed++
			}
		}
	}
	if renewed != 4 {
		t.Errorf("renewed %d times in 35 s, want 4: at 0, 10, 20 and 30 s", renewed)
	}
}

func TestMember_RenewsAgainAfterAFailure(t *testing.T) {
	m := newMember("a")
	m.Next(Found{[]netip.Addr{ip1}}, moment(0))
	m.Next(RenewFailed{}, moment(0))
	for _, a := range m.Next(Tick{}, moment(renewAgain)) {
		if _, is := a.(Renew); is {
			return
		}
	}
	t.Errorf("renews nothing %v after a failure", renewAgain)
}

// TestMember_StrangerGivesNothingAway: a live node that never was in the pool, and says that it has an address and any epoch, does not
// keep this member from asking whether the member that has it answers, although its process is dead. One that has left the pool
// gives its addresses away, as a member that has never seen it there has to believe of addresses that no other one has.
func TestMember_StrangerGivesNothingAway(t *testing.T) {
	ip := mine(t)
	dead := []Event{Heard{peerState("b", 2, map[netip.Addr]uint64{ip: 5})}, Liveness{"b", false}}
	for name, test := range map[string]struct {
		before []Event
		why    Reason
		taken  bool
	}{
		"a member has it": {dead, Dead, false},
		"nobody has it":   {nil, Drained, true},
		"it was in the pool": {
			append(slices.Clone(dead), Pool{Nodes: []string{"a", "b", "c", "d"}}, Liveness{"d", true}, Pool{Nodes: []string{"a", "b", "c"}}), Drained, true,
		},
	} {
		m := newTestMember(t, ip)
		for _, e := range append(test.before, Liveness{"d", true}, Heard{peerState("d", 2, map[netip.Addr]uint64{ip: 9})}) {
			m.Next(e, moment(0))
		}
		if v := m.vacant[ip]; v == nil || v.why != test.why {
			t.Errorf("%s: it is vacant as %+v, want %v", name, v, test.why)
		}
		m.Next(Tick{}, moment(timeToFindDead(3)))
		if taken := m.holds(ip); taken != test.taken {
			t.Errorf("%s: taken without an answer to a probe: %v, want %v", name, taken, test.taken)
		}
	}
}

// TestMember_HolderDiesWithItsNode: a process ends with its Node object, and its kernel still has its addresses. They are asked for.
func TestMember_HolderDiesWithItsNode(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t, ip)
	m.Next(Heard{peerState("b", 2, map[netip.Addr]uint64{ip: 5})}, moment(0))
	m.Next(Pool{Nodes: []string{"a", "c"}}, moment(0))
	if m.Next(Tick{}, moment(courtesy)); m.holds(ip) {
		t.Error("it takes an address that the kernel of a process that has just ended may have")
	}
	actions := m.Next(Liveness{"b", false}, moment(timeToFindDead(3)-time.Millisecond))
	asks := slices.ContainsFunc(actions, func(a Action) bool {
		p, is := a.(Probe)
		return is && slices.Contains(p.Addresses, ip)
	})
	if !asks || m.holds(ip) {
		t.Errorf("it asks for the address: %v, has it: %v", asks, m.holds(ip))
	}
}

// TestMember_PassesPacketsOn to a drained member that says that it serves its connections for a moment, and drops the rest.
func TestMember_PassesPacketsOn(t *testing.T) {
	for name, test := range map[string]struct {
		change func(b *State)
		why    Reason
		want   bool
	}{
		"drained":          {func(b *State) { b.Draining, b.Handover = true, true }, Drained, true},
		"an older version": {func(b *State) { b.Draining = true }, Drained, false},
		"link down":        {func(b *State) { b.Handover, b.Networks = true, []Network{{Prefix: subnet.Prefix}} }, Detached, false},
		"drained, no link": {func(b *State) { b.Draining, b.Handover, b.Networks = true, true, []Network{{Prefix: subnet.Prefix}} }, Detached, false},
		"no subnet":        {func(b *State) { b.Handover, b.Networks = true, nil }, Detached, false},
	} {
		t.Run(name, func(t *testing.T) {
			ip := mine(t)
			m := newTestMember(t, ip)
			b := peerState("b", 2, map[netip.Addr]uint64{ip: 5})
			test.change(&b)
			m.Next(Heard{b}, moment(0))
			c := peerState("c", 2, nil)
			c.Failed = []netip.Addr{ip}
			m.Next(Heard{c}, moment(0))
			acts(t, m.Next(Tick{}, moment(courtesy)), Take{Address: ip, Epoch: 6, From: "b", Why: test.why, PassOn: test.want})
		})
	}
}

// TestMember_GoesOnWithItsConnections if the member that takes its address over passes packets on, and only then.
func TestMember_GoesOnWithItsConnections(t *testing.T) {
	linkDown := Networks{[]Network{{Prefix: subnet.Prefix}}}
	for name, test := range map[string]struct {
		older   bool
		events  []Event
		passes  bool
		reason  Reason
		suspect bool
		want    bool
	}{
		"drained":                    {events: []Event{Drain{true}}, passes: true, reason: HandedOver, want: true},
		"not in the pool":            {events: []Event{Pool{Nodes: []string{"b", "c"}}}, passes: true, reason: HandedOver, want: true},
		"an older next holder":       {events: []Event{Drain{true}}, reason: HandedOver},
		"a kernel without dup":       {older: true, events: []Event{Drain{true}}, passes: true, reason: HandedOver},
		"link down":                  {events: []Event{linkDown}, passes: true, reason: HandedOver},
		"drained, link down":         {events: []Event{Drain{true}, linkDown}, passes: true, reason: HandedOver},
		"not in the pool, link down": {events: []Event{Pool{Nodes: []string{"b", "c"}}, linkDown}, passes: true, reason: HandedOver},
		"it was out of reach":        {events: []Event{Tick{}}, passes: true, reason: TakenOver},
		"both: it was not live":      {events: []Event{Drain{true}}, passes: true, suspect: true, reason: HandedOver},
	} {
		t.Run(name, func(t *testing.T) {
			ip := mine(t)
			m := newTestMember(t, ip)
			m.handover = !test.older
			m.Next(m.probed(moment(0), nil, ip), moment(0))
			for _, e := range test.events {
				m.Next(e, moment(0))
			}
			m.Next(Liveness{"b", !test.suspect}, moment(0))
			b := peerState("b", 2, map[netip.Addr]uint64{ip: m.State().Held[ip] + 1})
			b.Handover = test.passes
			got := slices.DeleteFunc(moves(m.Next(Heard{b}, moment(0))), func(a Action) bool { _, is := a.(Release); return !is })
			acts(t, got, Release{Address: ip, Why: test.reason, To: "b", GoOn: test.want})
		})
	}
}

// TestMember_EpochsOfFoundAddresses: they may be known before the addresses are.
func TestMember_EpochsOfFoundAddresses(t *testing.T) {
	m := newMember("a")
	m.had(map[netip.Addr]uint64{ip1: 5})
	m.Next(Found{[]netip.Addr{ip1, ip2}}, moment(0))
	if diff := cmp.Diff(map[netip.Addr]uint64{ip1: 5, ip2: 0}, m.State().Held, compare); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
}

func TestMember_HasItsNameBeforeItTellsAnything(t *testing.T) {
	if got := newMember("a").Status().Members[0].Name; got != "a" {
		t.Errorf("the name is %q, want a", got)
	}
}

// TestMember_ClaimOfAMemberThatHangs: others take the address; but not if the claim says that a host has it.
func TestMember_ClaimOfAMemberThatHangs(t *testing.T) {
	ip := mine(t)
	for mac, want := range map[string][]Action{"": {Probe{Addresses: []netip.Addr{ip}}}, "02:00": nil} {
		m := newTestMember(t)
		hanging := peerState("b", 2, nil)
		hanging.Claims = map[netip.Addr]string{ip: mac}
		m.Next(Heard{hanging}, moment(0))
		acts(t, m.Next(Wanted{Addresses: []netip.Addr{ip}}, moment(0)))
		hanging.Version = 3
		acts(t, m.Next(Heard{hanging}, moment(activity-1)))
		acts(t, m.Next(Tick{}, moment(activity)), want...)
	}
}

func TestMember_MemberThatDoesNothingIsPassedOver(t *testing.T) {
	var ip netip.Addr
	for ip = ip1; compareScores(ip, "b", "a") < 0 || compareScores(ip, "a", "c") < 0; ip = ip.Next() {
		continue // b's, and a's after that
	}
	m := newTestMember(t, ip)
	acts(t, m.Next(Tick{}, moment(activity-1)))
	m.Next(Tick{}, moment(activity))
	acts(t, m.Next(Tick{}, m.Wake()), Probe{Addresses: []netip.Addr{ip}})
}

// TestMember_OnADeadNetworkAsksAgain if the only other member that could hold the address does nothing.
func TestMember_OnADeadNetworkAsksAgain(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t)
	b := peerState("b", 2, nil)
	b.Draining = true
	m.Next(Heard{b}, moment(0))
	m.Next(Drain{true}, moment(0))
	acts(t, m.Next(Wanted{Addresses: []netip.Addr{ip}}, moment(0)))
	m.Next(Tick{}, moment(activity)) // c is passed over
	acts(t, m.Next(Drain{false}, moment(activity)), Probe{Addresses: []netip.Addr{ip}})
	acts(t, m.Next(Probed{Number: m.probes, Answers: map[netip.Addr]Answer{ip: {Cut: true}}, At: moment(activity)}, moment(activity)))
	acts(t, m.Next(Tick{}, moment(activity+askAgain)), Probe{Addresses: []netip.Addr{ip}})
}

func TestMember_FailedTakeIsForOthers(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t, ip)
	m.Next(m.probed(moment(0), nil, ip), moment(0))
	acts(t, m.Next(TakeFailed{Addresses: []netip.Addr{ip}}, moment(0)))
	if got := m.Status().Objections(ip)["a"]; got != Failed {
		t.Errorf("the objection is %q, want %q", got, Failed)
	}
	m.Next(Tick{}, moment(passedOver))
	if got := m.Status().Objections(ip)["a"]; got != "" {
		t.Errorf("later the objection is %q, want none", got)
	}
}

// TestMember_ProbesAreFew: however many addresses come one after another.
func TestMember_ProbesAreFew(t *testing.T) {
	m := newTestMember(t)
	var wanted []netip.Addr
	probes := 0
	for ip := ip1; len(wanted) < 100; ip = ip.Next() {
		wanted = append(wanted, ip)
		for _, a := range m.Next(Wanted{Addresses: wanted}, moment(0)) {
			if _, is := a.(Probe); is {
				probes++
			}
		}
	}
	if probes != probesAtOnce {
		t.Errorf("%d probes are under way, want %d", probes, probesAtOnce)
	}
	actions := m.Next(m.probed(moment(0), nil), moment(0))
	if len(moves(actions)) != 1 {
		t.Errorf("after one of them: %v, want a probe of all that are left", moves(actions))
	}
}

// TestMember_LateTakeIsTriedAgain: by the same member, since nothing is wrong with it.
func TestMember_LateTakeIsTriedAgain(t *testing.T) {
	ip := mine(t)
	m := newTestMember(t, ip)
	m.Next(m.probed(moment(0), nil, ip), moment(0))
	acts(t, m.Next(TakeFailed{Late: []netip.Addr{ip}}, moment(0)), Probe{Addresses: []netip.Addr{ip}})
}

func TestMember_KnowsOfNoServicesAndKeepsWhatItHas(t *testing.T) {
	m := newMember("a")
	m.Next(Found{[]netip.Addr{ip1}}, moment(0))
	m.Next(Looked{At: moment(0), Peers: true}, moment(0))
	m.Next(Pool{Nodes: []string{"a"}}, moment(0))
	acts(t, m.Next(Tick{}, moment(Inspection-1)))
	acts(t, m.Next(Wanted{}, moment(Inspection-1)), Release{Address: ip1, Why: Unwanted})
}

func TestMember_OldStatesDoNotCount(t *testing.T) {
	m := newTestMember(t, ip1)
	m.Next(Heard{peerState("b", 5, map[netip.Addr]uint64{ip1: 3})}, moment(0))
	m.Next(Heard{peerState("b", 4, nil)}, moment(0))
	if got := m.holder(ip1); got != "b" {
		t.Errorf("an older state counts: the holder is %q, want b", got)
	}
	restarted := peerState("b", 1, nil)
	restarted.Run = 2
	m.Next(Heard{restarted}, moment(0))
	if got := m.holder(ip1); got != "" {
		t.Errorf("the state of a new process does not count: the holder is %q, want none", got)
	}
}

func TestMember_Majority(t *testing.T) {
	for _, c := range []struct {
		pool, live int
		gateway    bool
		want       bool
	}{
		{1, 1, false, true}, {2, 2, false, true}, {2, 1, false, false}, {2, 1, true, true}, {3, 2, false, true}, {3, 1, true, false},
		{4, 2, false, false}, {4, 2, true, true}, {5, 3, false, true}, {5, 2, true, false},
	} {
		t.Run(fmt.Sprintf("%d of %d, gateway %v", c.live, c.pool, c.gateway), func(t *testing.T) {
			m := newMember("1")
			var names []string
			for i := range c.pool {
				name := fmt.Sprint(i + 1)
				names = append(names, name)
				m.Next(Liveness{name, i < c.live}, moment(0))
			}
			m.Next(Pool{Nodes: names}, moment(0))
			m.Next(Tick{}, moment(patience))
			m.Next(Looked{At: moment(patience), Gateway: c.gateway}, moment(patience))
			if got := m.Majority(); got != c.want {
				t.Errorf("majority: %v, want %v", got, c.want)
			}
		})
	}
}

func TestState_Objections(t *testing.T) {
	down, larger := Network{Prefix: subnet.Prefix}, netip.MustParsePrefix("192.0.0.0/16")
	for _, c := range []struct {
		name  string
		state State
		want  Objection
	}{
		{"none", State{Networks: []Network{subnet}}, ""},
		{"no subnet", State{Networks: []Network{{Prefix: netip.MustParsePrefix("198.51.100.0/24"), Up: true}}}, NoSubnet},
		{"link down", State{Networks: []Network{down}}, LinkDown},
		{"one of two links down", State{Networks: []Network{down, subnet}}, ""},
		{"the link of the larger subnet down", State{Networks: []Network{{Prefix: larger}, subnet}}, ""},
		{"the link of the smaller subnet down", State{Networks: []Network{down, {Prefix: larger, Up: true}}}, LinkDown},
		{"drained", State{Networks: []Network{subnet}, Draining: true}, Draining},
		{"failed", State{Networks: []Network{subnet}, Failed: []netip.Addr{ip1}}, Failed},
		{"another failed", State{Networks: []Network{subnet}, Failed: []netip.Addr{ip2}}, ""},
	} {
		if got := c.state.objects(ip1); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
