package holders

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/origin-node/pkg/kernel"
)

var compare = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
}

const me = "node-b"

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ips   = addrs("203.0.113.10", "203.0.113.11", "2001:db8:113::10")
	names = []string{"node-a", me, "node-c", "node-d"}
	v4    = map[string]netip.Addr{"node-a": addr("192.0.2.1"), me: addr("192.0.2.2"), "node-c": addr("192.0.2.3"), "node-d": addr("192.0.2.4")}
)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

func addrs(texts ...string) (list []netip.Addr) {
	for _, text := range texts {
		list = append(list, addr(text))
	}
	return list
}

func newDirectory() *Directory { return NewDirectory(Config{NodeName: me, Outer: kernel.IPv4}) }

// seen is a Node with an address.
func seen(name string, ready bool) NodeSeen {
	return NodeSeen{Name: name, Ready: ready, InternalIPs: []netip.Addr{addr("2001:db8::1"), v4[name]}}
}

// announced is what a node's Lease says at a time of its own.
func announced(name string, renewed int, epochs map[netip.Addr]uint64) Announced {
	return Announced{Node: name, Statement: Statement{Addresses: epochs}, Source: Lease, Renewed: start.Add(time.Duration(renewed) * time.Second)}
}

// direct is what a node announces directly.
func direct(name string, revision uint64, epochs map[netip.Addr]uint64) Announced {
	return Announced{Node: name, Statement: Statement{epochs, revision}, Source: Announcement}
}

// at is so many seconds after the start.
func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// timed is an event at a time.
type timed struct {
	second int
	event  Event
}

func apply(d *Directory, history ...timed) {
	for _, h := range history {
		d.Apply(h.event, at(h.second))
	}
}

func TestDirectory_Holder(t *testing.T) {
	ip := ips[0]
	one := map[netip.Addr]uint64{ip: 1}
	remote := []timed{{0, seen("node-a", true)}, {0, announced("node-a", 0, one)}}
	silent := slices.Concat(remote, []timed{{10, seen("node-a", false)}})
	for name, test := range map[string]struct {
		history []timed
		second  int
		want    Holding
		auto    kernel.Way // none if the packets leave from here
	}{
		"nobody": {nil, 0, Holding{State: Unclaimed}, kernel.Way{}},
		"here": {[]timed{{0, LeasesKnown{}}, {1, OwnAddresses{Addresses: ips}}}, 9,
			Holding{State: Local, Node: me, Epoch: 1, Since: at(1), Known: OwnAddress}, kernel.Way{}},
		"here, whatever others say": {slices.Concat(remote, []timed{{1, LeasesKnown{}}, {1, OwnAddresses{Addresses: ips}}}), 9,
			Holding{State: Local, Node: me, Epoch: 2, Since: at(1), Known: OwnAddress}, kernel.Way{}},
		"another node": {remote, 30,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(0), Known: Lease}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"a Lease without a Node": {remote[1:], 30, Holding{State: Unclaimed}, kernel.Way{}},
		"a dead process is no dead node": {remote, 3600,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(0), Known: Lease}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"not Ready, but its Lease is renewed": {slices.Concat(silent, []timed{{20, announced("node-a", 20, one)}}), 59,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(0), Known: Lease}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"not yet silent": {silent, 39,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(0), Known: Lease}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"silent": {silent, 44,
			Holding{State: Lost, Node: "node-a", Epoch: 1, Since: at(40), Known: Lease, Why: Silent}, kernel.Way{Kind: kernel.Blackhole}},
		"silent for long": {silent, 3600,
			Holding{State: Lost, Node: "node-a", Epoch: 1, Since: at(40), Known: Lease, Why: Silent}, kernel.Way{Kind: kernel.Prohibit}},
		"the same Lease once more is no sign of life": {slices.Concat(silent, []timed{{20, announced("node-a", 0, one)}}), 45,
			Holding{State: Lost, Node: "node-a", Epoch: 1, Since: at(40), Known: Lease, Why: Silent}, kernel.Way{Kind: kernel.Prohibit}},
		"long without a renewal, then not Ready": {slices.Concat(remote, []timed{{100, seen("node-a", false)}}), 100,
			Holding{State: Lost, Node: "node-a", Epoch: 1, Since: at(100), Known: Lease, Why: Silent}, kernel.Way{Kind: kernel.Blackhole}},
		"silent, then Ready": {slices.Concat(silent, []timed{{60, seen("node-a", true)}}), 99,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(60), Known: Lease}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"withdrawn": {slices.Concat(remote, []timed{{10, announced("node-a", 10, nil)}}), 14,
			Holding{State: Lost, Node: "node-a", Epoch: 1, Since: at(10), Known: Lease, Why: Withdrawn}, kernel.Way{Kind: kernel.Blackhole}},
		"withdrawn, and nobody takes it": {slices.Concat(remote, []timed{{10, announced("node-a", 10, nil)}}), 15,
			Holding{State: Unclaimed}, kernel.Way{}},
		"withdrawn here": {[]timed{{0, LeasesKnown{}}, {1, OwnAddresses{Addresses: ips}}, {2, OwnAddresses{}}}, 6,
			Holding{State: Lost, Node: me, Epoch: 1, Since: at(2), Known: OwnAddress, Why: Withdrawn}, kernel.Way{Kind: kernel.Blackhole}},
		"Lease deleted": {slices.Concat(remote, []timed{{10, LeaseDeleted{"node-a"}}}), 15, Holding{State: Unclaimed}, kernel.Way{}},
		"Node deleted":  {slices.Concat(remote, []timed{{10, NodeDeleted{"node-a"}}}), 15, Holding{State: Unclaimed}, kernel.Way{}},
		"silent for long, then the Node is deleted": {slices.Concat(silent, []timed{{60, NodeDeleted{"node-a"}}}), 64,
			Holding{State: Lost, Node: "node-a", Epoch: 1, Since: at(40), Known: Lease, Why: Withdrawn}, kernel.Way{Kind: kernel.Prohibit}},
		"no address of the outer family": {slices.Concat(remote, []timed{{10, NodeSeen{"node-a", true, addrs("2001:db8::1")}}}), 20,
			Holding{State: Lost, Node: "node-a", Epoch: 1, Since: at(10), Known: Lease, Why: Unreachable}, kernel.Way{Kind: kernel.Prohibit}},
		"another one takes it": {slices.Concat(silent, []timed{{50, seen("node-c", true)}, {50, announced("node-c", 0, map[netip.Addr]uint64{ip: 2})}}), 50,
			Holding{State: Remote, Node: "node-c", Address: v4["node-c"], Epoch: 2, Since: at(50), Known: Lease}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-c"]}},
		"the watch is down": {slices.Concat(remote, []timed{{10, Hearing{false}}, {60, seen("node-a", false)}}), 3600,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(0), Known: Lease}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"the watch is back, the node is not": {slices.Concat(remote, []timed{{10, Hearing{false}}, {60, seen("node-a", false)}, {70, Hearing{true}}}), 110,
			Holding{State: Lost, Node: "node-a", Epoch: 1, Since: at(110), Known: Lease, Why: Silent}, kernel.Way{Kind: kernel.Blackhole}},
		"told directly": {[]timed{{0, seen("node-a", true)}, {5, direct("node-a", 1, one)}}, 5,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(5), Known: Announcement}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"told in both ways": {slices.Concat(remote, []timed{{5, direct("node-a", 1, one)}}), 5,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(0), Known: LeaseAndAnnouncement}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"withdrawn directly, its Lease is an older one": {slices.Concat(remote, []timed{{5, direct("node-a", 1, nil)}}), 10,
			Holding{State: Unclaimed}, kernel.Way{}},
		"withdrawn directly, its Lease is the later one": {[]timed{{0, seen("node-a", true)}, {5, direct("node-a", 1, nil)},
			{6, Announced{Node: "node-a", Statement: Statement{one, 2}, Source: Lease, Renewed: at(6)}}}, 10,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(6), Known: Lease}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"told directly, and not again": {slices.Concat([]timed{{0, seen("node-a", true)}, {5, direct("node-a", 1, one)}}), 47,
			Holding{State: Lost, Node: "node-a", Epoch: 1, Since: at(45), Known: Announcement, Why: Withdrawn}, kernel.Way{Kind: kernel.Blackhole}},
		"told directly, and not again while the watch is down": {[]timed{{0, seen("node-a", true)}, {1, Hearing{false}}, {5, direct("node-a", 1, one)}}, 3600,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(5), Known: Announcement}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"the port is filtered": {slices.Concat([]timed{{0, direct("node-a", 0, one)}}, remote), 60,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(0), Known: Lease}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"not Ready, but it announces": {slices.Concat(silent, []timed{{30, direct("node-a", 0, one)}}), 60,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(0), Known: LeaseAndAnnouncement}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"silent, then it announces": {slices.Concat(silent, []timed{{50, direct("node-a", 0, one)}}), 60,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 1, Since: at(50), Known: LeaseAndAnnouncement}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"of equal epochs the last name counts, however it is known": {slices.Concat(remote, []timed{{0, seen("node-c", true)}, {5, direct("node-c", 1, one)}}), 5,
			Holding{State: Remote, Node: "node-c", Address: v4["node-c"], Epoch: 1, Since: at(5), Known: Announcement}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-c"]}},
		"the own address counts here, of equal epochs and a later name, too": {[]timed{{0, LeasesKnown{}}, {0, OwnAddresses{Addresses: ips}}, {1, seen("node-d", true)}, {1, direct("node-d", 1, one)}}, 5,
			Holding{State: Local, Node: me, Epoch: 1, Since: at(0), Known: OwnAddress}, kernel.Way{}},
		"another host answers for it, and a node has got it later": {slices.Concat(remote, []timed{{1, LeasesKnown{}}, {1, OwnAddresses{Addresses: ips}}, {2, direct("node-a", 2, map[netip.Addr]uint64{ip: 3})}, {3, Elsewhere{ips}}}), 9,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 3, Since: at(3), Known: Announcement}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"another host answers for it, but no node has got it later": {slices.Concat(remote, []timed{{1, LeasesKnown{}}, {1, OwnAddresses{Addresses: ips}}, {3, Elsewhere{ips}}}), 9,
			Holding{State: Local, Node: me, Epoch: 2, Since: at(1), Known: OwnAddress}, kernel.Way{}},
		"a load balancer announces it from here": {slices.Concat(remote, []timed{{1, LeasesKnown{}}, {1, OwnAddresses{ips, ips}}}), 9,
			Holding{State: Local, Node: me, Epoch: 2, Since: at(1), Known: LoadBalancer}, kernel.Way{}},
		"a load balancer announced it from here first": {[]timed{{0, LeasesKnown{}}, {0, OwnAddresses{ips, ips}}, {1, seen("node-a", true)}, {1, direct("node-a", 1, map[netip.Addr]uint64{ip: 2})}}, 5,
			Holding{State: Remote, Node: "node-a", Address: v4["node-a"], Epoch: 2, Since: at(1), Known: Announcement}, kernel.Way{Kind: kernel.ToNode, Node: v4["node-a"]}},
		"a load balancer announced it first from a node that is lost": {slices.Concat(silent, []timed{{10, LeasesKnown{}}, {10, OwnAddresses{ips, ips}}}), 50,
			Holding{State: Local, Node: me, Epoch: 2, Since: at(10), Known: LoadBalancer}, kernel.Way{}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirectory()
			apply(d, test.history...)
			if diff := cmp.Diff(test.want, d.Holder(ip, at(test.second)), compare); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			ways := map[netip.Addr]kernel.Way{}
			if test.auto.Kind != "" {
				ways[ip] = test.auto
			}
			if diff := cmp.Diff(ways, d.Ways(ips[:1], Auto, at(test.second)), compare); diff != "" {
				t.Errorf("ways (-want +got):\n%s", diff)
			}
			if test.want.State == Unclaimed {
				ways[ip] = kernel.Way{Kind: kernel.Prohibit}
			}
			if diff := cmp.Diff(ways, d.Ways(ips[:1], Required, at(test.second)), compare); diff != "" {
				t.Errorf("ways if required (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDirectory_Outranked: an address on an interface of this node is outranked while another live node has got it later. One that a load
// balancer announces from here is on no interface.
func TestDirectory_Outranked(t *testing.T) {
	d := newDirectory()
	both := ips[:2]
	epochs := func(epoch uint64) map[netip.Addr]uint64 { return map[netip.Addr]uint64{both[0]: epoch, both[1]: epoch} }
	apply(d, timed{0, LeasesKnown{}}, timed{0, OwnAddresses{Addresses: both, Announced: both[1:]}}, timed{0, seen("node-a", true)})
	for second, step := range []struct {
		epoch uint64
		want  []netip.Addr
	}{{1, nil}, {2, both[:1]}, {1, nil}} {
		apply(d, timed{second, direct("node-a", uint64(second+1), epochs(step.epoch))})
		if diff := cmp.Diff(step.want, d.Outranked(at(second)), compare); diff != "" {
			t.Errorf("the other node has epoch %d after %d s (-want +got):\n%s", step.epoch, second, diff)
		}
	}
}

// TestDirectory_Conflicts: a node counts that says that it has an address of another one. By its Lease it has to say so again, some seconds
// later: what comes first may be of before the address was the other one's.
func TestDirectory_Conflicts(t *testing.T) {
	ip := ips[0]
	d := newDirectory()
	epochs := func(epoch uint64) map[netip.Addr]uint64 { return map[netip.Addr]uint64{ip: epoch} }
	apply(d, timed{0, seen("node-a", true)}, timed{0, seen("node-c", true)}, timed{0, seen("node-d", false)}, timed{0, announced("node-a", 0, epochs(7))})
	for second, step := range []struct {
		event Event
		nodes []string
		since int
	}{
		1:  {announced("node-c", 0, epochs(8)), nil, 0},
		2:  {announced("node-a", 1, epochs(7)), nil, 0},
		3:  {announced("node-a", 2, epochs(7)), nil, 0},
		7:  {announced("node-a", 3, epochs(7)), []string{"node-c", "node-a"}, 7},
		8:  {announced("node-d", 0, epochs(6)), []string{"node-c", "node-a"}, 7},
		9:  {direct("node-d", 0, epochs(6)), []string{"node-c", "node-a", "node-d"}, 7},
		10: {announced("node-a", 4, nil), []string{"node-c", "node-d"}, 9},
		11: {direct("node-a", 0, epochs(7)), []string{"node-c", "node-a", "node-d"}, 9},
		12: {LeasesKnown{}, []string{"node-c", "node-a", "node-d"}, 9},
		13: {OwnAddresses{Addresses: ips[:1]}, nil, 0},
		14: {Hearing{false}, nil, 0},
		15: {Hearing{true}, nil, 0},
		16: {direct("node-a", 0, epochs(7)), []string{me, "node-a"}, 16},
		46: {direct("node-c", 0, epochs(8)), []string{me, "node-c", "node-a"}, 16},
		50: {direct("node-d", 0, epochs(6)), []string{me, "node-c", "node-a", "node-d"}, 16},
	} {
		if step.event == nil {
			continue
		}
		apply(d, timed{second, step.event})
		var want []Conflict
		if step.nodes != nil {
			want = []Conflict{{Address: ip, Nodes: step.nodes, Since: at(step.since)}}
		}
		if diff := cmp.Diff(want, d.Conflicts(at(second)), compare); diff != "" {
			t.Errorf("at %d s, %+v (-want +got):\n%s", second, step.event, diff)
		}
	}
	if own, others := d.Own()[ip], d.EpochElsewhere(ip, at(50)); own != 9 || others != 8 || d.EpochElsewhere(ips[1], at(50)) != 0 {
		t.Errorf("its own epoch is %d, the highest of others %d; want 9, 8, and 0 for an address that nobody has", own, others)
	}
}

// TestDirectory_Overtaken: of two that took an address with one epoch, the one whose name sorts last counts. With the highest epoch nobody
// knows here.
func TestDirectory_Overtaken(t *testing.T) {
	ip := ips[0]
	for name, test := range map[string]struct {
		node      string
		its, mine uint64
		want      bool
	}{
		"higher": {"node-a", 8, 7, true}, "lower": {"node-c", 6, 7, false}, "the same, sorts last": {"node-c", 7, 7, true}, "the same, sorts first": {"node-a", 7, 7, false},
		"the highest": {"node-c", MaxEpoch, MaxEpoch, false},
	} {
		d := newDirectory()
		apply(d, timed{0, seen(test.node, true)}, timed{1, direct(test.node, 1, map[netip.Addr]uint64{ip: test.its})})
		if got := d.Overtaken(ip, test.mine, at(2)); got != test.want {
			t.Errorf("%s: overtaken: %v, want %v", name, got, test.want)
		}
	}
}

func TestDirectory_OwnEpochs(t *testing.T) {
	ip := ips[0]
	others := timed{0, announced("node-a", 0, map[netip.Addr]uint64{ip: 7})}
	own := func(epoch uint64) timed { return timed{0, announced(me, 0, map[netip.Addr]uint64{ip: epoch})} }
	known, has, hasNot := timed{1, LeasesKnown{}}, timed{1, OwnAddresses{Addresses: ips[:1]}}, timed{2, OwnAddresses{}}
	for name, test := range map[string]struct {
		history []timed
		want    map[netip.Addr]uint64
	}{
		"addresses are not known":            {[]timed{others, known}, nil},
		"Leases are not known":               {[]timed{others, has}, nil},
		"nobody had it":                      {[]timed{known, has}, map[netip.Addr]uint64{ip: 1}},
		"others had it":                      {[]timed{others, known, has}, map[netip.Addr]uint64{ip: 8}},
		"the Leases were known last":         {[]timed{others, has, known}, map[netip.Addr]uint64{ip: 8}},
		"a restart":                          {[]timed{others, own(5), has, known}, map[netip.Addr]uint64{ip: 5}},
		"a restart, the addresses last":      {[]timed{others, own(9), known, has}, map[netip.Addr]uint64{ip: 9}},
		"back again":                         {[]timed{own(9), known, has, hasNot, {3, OwnAddresses{Addresses: ips[:1]}}}, map[netip.Addr]uint64{ip: 10}},
		"told directly":                      {[]timed{{0, direct("node-a", 1, map[netip.Addr]uint64{ip: 7})}, known, has}, map[netip.Addr]uint64{ip: 8}},
		"in a Lease that does not count":     {[]timed{others, {0, direct("node-a", 1, nil)}, known, has}, map[netip.Addr]uint64{ip: 8}},
		"others that come later":             {[]timed{known, has, {3, announced("node-a", 0, map[netip.Addr]uint64{ip: 7})}}, map[netip.Addr]uint64{ip: 1}},
		"the largest one that can be":        {[]timed{{0, announced("node-a", 0, map[netip.Addr]uint64{ip: MaxEpoch})}, known, has}, map[netip.Addr]uint64{ip: MaxEpoch}},
		"taken from a holder just withdrawn": {[]timed{{0, seen("node-a", true)}, others, known, hasNot, {3, LeaseDeleted{"node-a"}}, {4, OwnAddresses{Addresses: ips[:1]}}}, map[netip.Addr]uint64{ip: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirectory()
			apply(d, test.history...)
			got := d.Own()
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDirectory_PoisonedRevision: whatever revision somebody has written into a node's Lease, at once or over and over, also while
// the node is restarted: all read what the node says next, and follow it, also before it has written its Lease.
func TestDirectory_PoisonedRevision(t *testing.T) {
	for _, poison := range []uint64{0, 7, 1 << 38, doubtful - 2, doubtful - 1, doubtful, doubtful + 1, doubtful + 100, maxRevision - 1, maxRevision} {
		own, reader, said := newDirectory(), newDirectory(), uint64(0)
		apply(reader, timed{0, seen(me, true)}, timed{0, seen("node-a", true)})
		leaseWithRevision := func(name string, revision uint64, epochs map[netip.Addr]uint64, second int) timed {
			a := announced(name, second, epochs)
			a.Revision = revision
			return timed{second, a}
		}
		for i := range 20 {
			lie := leaseWithRevision(me, poison, nil, 2*i)
			apply(own, lie)
			lie.event = Announced{Node: "node-a", Statement: lie.event.(Announced).Statement, Source: Lease, Renewed: lie.event.(Announced).Renewed}
			apply(reader, lie)
			if i%7 == 6 {
				said = 0 // its process ends
			}
			next := own.NextRevision(said)
			if next <= said || next > maxRevision {
				t.Fatalf("poisoned with %d: revision %d follows %d", poison, next, said)
			}
			said = next
			apply(reader, timed{2 * i, direct("node-a", said, map[netip.Addr]uint64{ips[0]: 3})})
			if got := reader.Holder(ips[0], at(2*i)); got.State != Remote || got.Node != "node-a" {
				t.Fatalf("poisoned with %d, revision %d is said: %+v", poison, said, got)
			}
			// Its Lease, with what it says.
			apply(own, leaseWithRevision(me, said, map[netip.Addr]uint64{ips[0]: 3}, 2*i+1))
			apply(reader, leaseWithRevision("node-a", said, map[netip.Addr]uint64{ips[0]: 3}, 2*i+1))
		}
		apply(reader, leaseWithRevision("node-a", said, map[netip.Addr]uint64{ips[1]: 3}, 39))
		if got := reader.Holder(ips[1], at(100)); got.State != Remote {
			t.Errorf("poisoned with %d: the Lease does not count alone: %+v", poison, got)
		}
	}
}

// TestDirectory_RestartedNodeHasNothing: a process that is killed before its Lease has what it announced directly is forgotten with
// the Lease of the next one.
func TestDirectory_RestartedNodeHasNothing(t *testing.T) {
	own, reader := newDirectory(), newDirectory()
	apply(own, timed{0, announced(me, 0, nil)})
	apply(reader, timed{0, seen(me, true)}, timed{0, seen("node-a", true)}, timed{0, announced("node-a", 0, nil)})
	var said uint64
	for range 5 { // addresses came and went, while the API server was away
		said = own.NextRevision(said)
	}
	apply(reader, timed{1, direct("node-a", said, map[netip.Addr]uint64{ips[0]: 3})})
	own = newDirectory()
	apply(own, timed{2, announced(me, 0, nil)})
	restarted := announced("node-a", 2, nil)
	restarted.Revision = own.NextRevision(0)
	apply(reader, timed{2, restarted})
	if got := reader.Holder(ips[0], at(2)); got.State == Remote {
		t.Errorf("packets still go to %s, which has nothing: revision %d after %d", got.Node, restarted.Revision, said)
	}
}

// TestDirectory_MovesAtTheHighestEpoch: once somebody has announced the highest epoch, the address goes on to move.
func TestDirectory_MovesAtTheHighestEpoch(t *testing.T) {
	ip := ips[0]
	d := newDirectory()
	highest := map[netip.Addr]uint64{ip: MaxEpoch}
	apply(d, timed{0, LeasesKnown{}}, timed{0, OwnAddresses{}})
	for i, name := range []string{"node-d", "node-a", "node-c", "node-a", "node-d"} {
		apply(d, timed{i * 10, seen(name, true)}, timed{i * 10, direct(name, uint64(2*i+1), highest)})
		for _, other := range names {
			if other != name && other != me {
				apply(d, timed{i*10 + 1, direct(other, uint64(2*i+2), nil)})
			}
		}
		if got := d.Holder(ip, at(i*10+2)); got.State != Remote || got.Node != name {
			t.Errorf("move %d: %+v, want it on %s", i, got, name)
		}
	}
	apply(d, timed{60, OwnAddresses{Addresses: ips[:1]}}, timed{61, direct("node-d", 99, nil)})
	if got := d.Holder(ip, at(62)); got.State != Local || got.Epoch != MaxEpoch {
		t.Errorf("taken by this node: %+v", got)
	}
	d.take(at(63), ip)
	if got := d.Own()[ip]; got != MaxEpoch {
		t.Errorf("it announces the epoch %d, which nobody reads", got)
	}
}

// TestDirectory_CrashedAtTheHighestEpoch: a holder at the highest epoch whose process has died, and whose Node stays Ready, and its Lease,
// is not the holder for good, whatever its name: not where the move was seen, nor in a process that has started since.
func TestDirectory_CrashedAtTheHighestEpoch(t *testing.T) {
	ip, highest := ips[0], map[netip.Addr]uint64{ips[0]: MaxEpoch}
	known := []timed{{0, OwnAddresses{}}, {0, seen("node-a", true)}, {0, seen("node-d", true)}}
	lease := func(second int, name string) timed { return timed{second, announced(name, second, highest)} }
	crash := []timed{{0, LeasesKnown{}}, lease(0, "node-d"), lease(10, "node-d"), lease(40, "node-a")}
	both := []timed{{0, announced("node-a", -5, highest)}, {0, announced("node-d", -5000, highest)}, {0, LeasesKnown{}}}
	for name, c := range map[string]struct {
		history []timed
		second  int
		want    string
	}{
		"before the move":                       {crash[:3], 30, "node-d"},
		"as soon as it moves":                   {crash, 40, "node-a"},
		"later":                                 {append(crash, lease(50, "node-a"), lease(60, "node-a")), 70, "node-a"},
		"the later one dies, the other is back": {append(crash, lease(60, "node-d")), 81, "node-d"},
		"both are alive: the later one":         {append(crash, lease(60, "node-d")), 61, "node-a"},
		"both are dead: the later one":          {crash, 500, "node-a"},
		"a start, when its Lease is renewed":    {append(both, lease(5, "node-a")), 5, "node-a"},
		"a start, when it is heard":             {append(both, timed{1, direct("node-a", 0, highest)}), 1, "node-a"},
		"a start, months later":                 {append(both, lease(5, "node-a"), lease(3000000, "node-a")), 3000001, "node-a"},
		"a start, and nothing is known":         {both, 1, "node-d"},
		"a start, the newest dies as well":      {append(both, lease(5, "node-a"), lease(50, "node-d")), 60, "node-d"},
		"deaf, nobody is found dead":            {append(crash, timed{41, Hearing{}}), 500, "node-a"},
	} {
		d := newDirectory()
		apply(d, known...)
		apply(d, c.history...)
		if got := d.Holder(ip, at(c.second)); got.State != Remote || got.Node != c.want {
			t.Errorf("%s: %+v, want it on %s", name, got, c.want)
		}
	}
}

// TestDirectory_UnclaimedAddresses: what no Service claims counts for nothing, and as soon as a Service claims it, all that was
// said of it counts.
func TestDirectory_UnclaimedAddresses(t *testing.T) {
	d := newDirectory()
	claimed, unclaimed, own := ips[0], ips[1], ips[2]
	said := map[netip.Addr]uint64{claimed: 4, unclaimed: 7, own: 9}
	apply(d, timed{0, seen("node-a", true)}, timed{0, LeasesKnown{}}, timed{0, Claimed{map[netip.Addr]bool{claimed: true}}}, timed{1, direct("node-a", 1, said)})
	if got := d.Holder(claimed, at(1)); got.Node != "node-a" {
		t.Errorf("what is claimed: %+v", got)
	}
	if got := d.Holder(unclaimed, at(1)); got.State != Unclaimed || len(d.addresses) != 1 {
		t.Errorf("what is not: %+v, and it knows of %d addresses", got, len(d.addresses))
	}
	apply(d, timed{2, OwnAddresses{Addresses: []netip.Addr{own}}})
	if got := d.Own()[own]; got != 10 {
		t.Errorf("the epoch of an address that another node has announced is %d, want 10", got)
	}
	if !d.Apply(Claimed{map[netip.Addr]bool{unclaimed: true}}, at(3)) {
		t.Error("it does not tell that its answers have changed")
	}
	if got := d.Holder(unclaimed, at(3)); got.Node != "node-a" || got.Epoch != 7 {
		t.Errorf("claimed now: %+v", got)
	}
	if got := d.Holder(claimed, at(9)); got.State != Unclaimed {
		t.Errorf("not claimed any more: %+v", got)
	}
	apply(d, timed{10, direct("node-a", 2, nil)}, timed{20, OwnAddresses{}})
	if d.Holder(own, at(30)); len(d.addresses) > 0 {
		t.Errorf("it still knows of %d addresses", len(d.addresses))
	}
}

// TestDirectory_FollowsTheRules compares all answers with those of the oracle, over histories of chance.
func TestDirectory_FollowsTheRules(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		d, o := newDirectory(), newOracle()
		history := someHistory(r, 40)
		for i, h := range history {
			changed := d.Apply(h.event, at(h.second))
			before, rivals := o.answers(), maps.Clone(o.rivals)
			o.apply(h)
			if !changed && o.differs(before, rivals) {
				t.Fatalf("seed %d: not told of a change by event %d of %+v", seed, i, history)
			}
			// Many times pass without a question.
			for _, second := range []int{h.second, h.second + r.IntN(8), h.second + r.IntN(90)} {
				if i+1 < len(history) && second > history[i+1].second || r.IntN(3) == 0 {
					break
				}
				o.pass(second)
				o.check(t, d, fmt.Sprintf("seed %d, second %d, after %+v", seed, second, history[:i+1]))
			}
		}
	}
}

// TestDirectory_OrderDoesNotMatter: the same facts, told in any order, have the same answers.
func TestDirectory_OrderDoesNotMatter(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		facts := []timed{{0, LeasesKnown{}}, {0, OwnAddresses{Addresses: someIPs(r)}}}
		for _, name := range names {
			if r.IntN(4) > 0 {
				facts = append(facts, timed{0, someNode(r, name)})
			}
			if r.IntN(4) > 0 {
				facts = append(facts, timed{0, announced(name, 0, someEpochs(r))})
			}
		}
		d, e := newDirectory(), newDirectory()
		// This node's epochs depend on the Leases, which are known when all of them are told.
		slices.SortStableFunc(facts, func(a, b timed) int { return leasesLast(a.event) - leasesLast(b.event) })
		apply(d, facts...)
		rest := facts[:len(facts)-1]
		r.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
		apply(e, facts...)
		for _, second := range []int{0, 39, 40, 45} {
			if diff := diffAnswers(answersOf(d, at(second)), answersOf(e, at(second))); diff != "" {
				t.Fatalf("seed %d, after %d s (-one order +another):\n%s of %+v", seed, second, diff, facts)
			}
		}
	}
}

func leasesLast(event Event) int {
	if _, last := event.(LeasesKnown); last {
		return 1
	}
	return 0
}

// TestDirectory_WakesInTime: no answer changes before the time that it says, which is to come.
func TestDirectory_WakesInTime(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		d := newDirectory()
		history := someHistory(r, 1+r.IntN(30))
		apply(d, history...)
		second := history[len(history)-1].second
		for range 20 {
			wake := d.Wake(at(second))
			if !wake.IsZero() && !wake.After(at(second)) {
				t.Fatalf("seed %d: at second %d it is to be woken at %s", seed, second, wake)
			}
			before := answersOf(d, at(second))
			for range 60 {
				second++
				if !wake.IsZero() && !at(second).Before(wake) {
					break
				}
				if diff := diffAnswers(before, answersOf(d, at(second))); diff != "" {
					t.Fatalf("seed %d: changed at second %d, to be woken at %s (-before +after):\n%s", seed, second, wake, diff)
				}
			}
		}
	}
}

// TestDirectory_ForgetsWhatIsGone: it does not grow with what has been.
func TestDirectory_ForgetsWhatIsGone(t *testing.T) {
	d := newDirectory()
	for i := range 100 {
		name, ip := fmt.Sprint("node-", i), netip.AddrFrom4([4]byte{203, 0, 113, byte(i)})
		apply(d, timed{0, NodeSeen{name, true, addrs("192.0.2.1")}}, timed{0, announced(name, 0, map[netip.Addr]uint64{ip: 1})},
			timed{0, NodeDeleted{name}}, timed{0, LeaseDeleted{name}})
	}
	d.Holder(ips[0], at(5))
	if len(d.nodes)+len(d.speakers)+len(d.addresses)+len(d.lost)+len(d.leaving) > 0 {
		t.Errorf("it still has %d nodes, %d speakers, %d addresses, %d lost, %d leaving", len(d.nodes), len(d.speakers), len(d.addresses), len(d.lost), len(d.leaving))
	}
}

// TestDirectory_KnowsWhatTimeMayChange: an event costs as much as there are nodes that have said something and addresses that
// are lost, however many there are of others.
func TestDirectory_KnowsWhatTimeMayChange(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		d := newDirectory()
		apply(d, someHistory(r, 1+r.IntN(30))...)
		speakers, lost := map[string]*node{}, map[netip.Addr]*address{}
		for name, n := range d.nodes {
			if n.lease != nil && len(n.lease.Addresses) > 0 || n.direct != nil {
				speakers[name] = n
			}
		}
		for ip, a := range d.addresses {
			if a.holding.State == Lost {
				lost[ip] = a
			}
		}
		if !maps.Equal(speakers, d.speakers) || !maps.Equal(lost, d.lost) {
			t.Fatalf("seed %d: speakers %v and lost addresses %v, want %v and %v", seed, d.speakers, d.lost, speakers, lost)
		}
	}
}

// BenchmarkDirectory_NodeReported is a report of a kubelet, of so many.
func BenchmarkDirectory_NodeReported(b *testing.B) {
	for _, nodes := range []int{100, 5000} {
		b.Run(fmt.Sprint("nodes=", nodes), func(b *testing.B) {
			d := newDirectory()
			for i := range nodes {
				apply(d, timed{0, NodeSeen{fmt.Sprint("node-", i), true, addrs("192.0.2.1")}})
			}
			epochs := map[netip.Addr]uint64{}
			for i := range 1000 {
				epochs[netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})] = 1
			}
			apply(d, timed{0, announced("node-0", 0, epochs)})
			event := NodeSeen{"node-1", true, addrs("192.0.2.1")}
			for b.Loop() {
				d.Apply(event, at(1))
				d.Wake(at(1))
			}
		})
	}
}

// answers are all that a Directory is asked.
type answers struct {
	Holders   map[netip.Addr]Holding
	Own       map[netip.Addr]uint64
	Conflicts []Conflict
	Ways      map[Mode]map[netip.Addr]kernel.Way
}

func answersOf(d *Directory, now time.Time) answers {
	a := answers{map[netip.Addr]Holding{}, d.Own(), d.Conflicts(now), map[Mode]map[netip.Addr]kernel.Way{}}
	for _, ip := range ips {
		a.Holders[ip] = d.Holder(ip, now)
	}
	for _, mode := range []Mode{Auto, Required} {
		a.Ways[mode] = d.Ways(ips, mode, now)
	}
	return a
}

// diffAnswers is cmp.Diff, but quick where they are equal, as they mostly are.
func diffAnswers(want, got answers) string {
	sameConflict := func(a, b Conflict) bool {
		return a.Address == b.Address && a.Since.Equal(b.Since) && slices.Equal(a.Nodes, b.Nodes)
	}
	if maps.Equal(want.Holders, got.Holders) && maps.Equal(want.Own, got.Own) && slices.EqualFunc(want.Conflicts, got.Conflicts, sameConflict) &&
		maps.Equal(want.Ways[Auto], got.Ways[Auto]) && maps.Equal(want.Ways[Required], got.Ways[Required]) {
		return ""
	}
	return cmp.Diff(want, got, compare)
}

// someHistory returns events of chance, in the order of their times.
func someHistory(r *rand.Rand, length int) (history []timed) {
	second := 0
	for range length {
		second += []int{0, 0, 0, 1, 1, 2, 5, 12, 40}[r.IntN(9)]
		history = append(history, timed{second, someEvent(r)})
	}
	return history
}

func someEvent(r *rand.Rand) Event {
	name := names[r.IntN(len(names))]
	switch r.IntN(13) {
	case 12:
		return Elsewhere{someIPs(r)}
	case 0, 1, 2:
		return someNode(r, name)
	case 3:
		return NodeDeleted{name}
	case 4:
		return LeaseDeleted{name}
	case 5:
		own := someIPs(r)
		return OwnAddresses{own, slices.DeleteFunc(slices.Clone(own), func(netip.Addr) bool { return r.IntN(2) == 0 })}
	case 6:
		return LeasesKnown{}
	case 7:
		return Hearing{r.IntN(2) == 0}
	default:
		a := announced(name, r.IntN(3), someEpochs(r))
		a.Revision = r.Uint64N(3)
		if r.IntN(2) == 0 {
			return direct(name, a.Revision, a.Addresses)
		}
		return a
	}
}

func someNode(r *rand.Rand, name string) NodeSeen {
	n := seen(name, r.IntN(2) == 0)
	if r.IntN(6) == 0 {
		n.InternalIPs = n.InternalIPs[:1]
	}
	return n
}

func someIPs(r *rand.Rand) (list []netip.Addr) {
	return slices.DeleteFunc(slices.Clone(ips), func(netip.Addr) bool { return r.IntN(3) > 0 })
}

func someEpochs(r *rand.Rand) map[netip.Addr]uint64 {
	epochs := map[netip.Addr]uint64{}
	for _, ip := range someIPs(r) {
		epochs[ip] = 1 + r.Uint64N(3)
	}
	return epochs
}

// dissenter is a node that says that it has an address of another one, in these seconds. The first change of its Lease, in the second first,
// and those up to 4 s later are none of them.
type dissenter struct {
	renewed bool
	first   int
	seconds []int
}

// oracle answers by the rules that the package's comment gives, second by second, and knows no shortcut.
type oracle struct {
	second                      int
	own                         map[netip.Addr]uint64
	onNoInterface, elsewhere    []netip.Addr
	ownKnown, leasesKnown, told bool
	deaf                        bool
	hearingSince                int
	leases, direct              map[string]Announced
	changed                     map[string]int // when a Lease was seen to change, or a direct announcement was heard
	heardDirectly               map[string]int
	nodes                       map[string]NodeSeen
	unready                     map[string]int // since when
	silent                      map[string]bool
	claimed                     map[netip.Addr]int // the last second in which anybody had it or announced it
	rivals                      map[netip.Addr][]string
	dissents                    map[netip.Addr]map[string]dissenter
	last                        answers
}

func newOracle() *oracle {
	o := &oracle{own: map[netip.Addr]uint64{}, leases: map[string]Announced{}, direct: map[string]Announced{}, heardDirectly: map[string]int{}, changed: map[string]int{}, hearingSince: -1000,
		nodes: map[string]NodeSeen{}, unready: map[string]int{}, silent: map[string]bool{}, claimed: map[netip.Addr]int{}, rivals: map[netip.Addr][]string{}, dissents: map[netip.Addr]map[string]dissenter{}}
	o.last.Holders = map[netip.Addr]Holding{}
	for _, ip := range ips {
		o.last.Holders[ip] = Holding{State: Unclaimed}
		o.claimed[ip], o.rivals[ip] = -1000, nil
	}
	return o
}

// pass lets time pass until a second.
func (o *oracle) pass(second int) {
	for o.second < second {
		o.second++
		o.evaluate()
	}
}

func (o *oracle) apply(h timed) {
	o.pass(h.second)
	var sign *Announced
	switch e := h.event.(type) {
	case OwnAddresses:
		before := o.own
		o.own, o.onNoInterface, o.ownKnown = map[netip.Addr]uint64{}, e.Announced, true
		for _, ip := range e.Addresses {
			o.own[ip] = before[ip]
		}
	case Elsewhere:
		o.elsewhere = e.Addresses
	case LeasesKnown:
		o.leasesKnown = true
	case Announced:
		if e.Source == Announcement {
			o.direct[e.Node], o.heardDirectly[e.Node], o.changed[e.Node] = e, o.second, o.second
			delete(o.silent, e.Node)
			sign = &e
			break
		}
		if l, known := o.leases[e.Node]; !known || !l.Renewed.Equal(e.Renewed) || l.Revision != e.Revision || !maps.Equal(l.Addresses, e.Addresses) {
			o.changed[e.Node] = o.second
			delete(o.silent, e.Node)
			sign = &e
		}
		o.leases[e.Node] = e
	case LeaseDeleted:
		delete(o.leases, e.Node)
	case Hearing:
		if o.deaf && e.Now {
			o.hearingSince = o.second
		}
		o.deaf = !e.Now
	case NodeSeen:
		if before, known := o.nodes[e.Name]; !e.Ready && (!known || before.Ready) {
			o.unready[e.Name] = o.second
		}
		o.nodes[e.Name] = e
	case NodeDeleted:
		delete(o.nodes, e.Name)
	}
	o.evaluate()
	if sign != nil {
		o.insist(sign.Node, sign.Source)
	}
}

// evaluate has the answers of this moment.
func (o *oracle) evaluate() {
	for _, name := range names {
		node, exists := o.nodes[name]
		if !o.deaf && o.second >= max(o.heardDirectly[name], o.hearingSince)+40 {
			for _, ip := range ips {
				if _, _, says := o.says(name, ip); says && exists && name != me {
					o.claimed[ip] = o.second // until now
				}
			}
			delete(o.direct, name)
		}
		heard := max(o.changed[name], o.hearingSince)
		switch {
		case !exists || node.Ready:
			delete(o.silent, name)
		case !o.deaf && o.second >= heard+40:
			o.silent[name] = true
		}
	}
	next := answers{Holders: map[netip.Addr]Holding{}}
	if o.ownKnown && o.leasesKnown {
		for ip, epoch := range o.own {
			if epoch == 0 {
				o.own[ip] = o.takenWith(ip)
			}
		}
		o.told = true
	}
	if o.told {
		next.Own = maps.Clone(o.own)
	}
	for _, ip := range ips {
		holding, live := o.judge(ip)
		before := o.last.Holders[ip]
		holding.Since = at(o.second)
		if holding.State == before.State && (holding.Node == before.Node || holding.State == Lost) {
			holding.Since = before.Since
		}
		if holding.State == Unclaimed {
			holding.Since = time.Time{}
		}
		next.Holders[ip] = holding
		if holding.Node != before.Node || !holding.Since.Equal(before.Since) || o.dissents[ip] == nil {
			o.dissents[ip] = map[string]dissenter{}
		}
		if len(live) < 2 {
			live = nil
		}
		o.rivals[ip] = live
		for _, name := range names {
			if i := slices.Index(live, name); i < 1 {
				delete(o.dissents[ip], name)
			} else if name == me {
				o.dissents[ip][me] = dissenter{seconds: append(o.dissents[ip][me].seconds, o.second)}
			}
		}
	}
	o.last = next
	o.findConflicts()
}

// insist notes that a node says that it has what it announces.
func (o *oracle) insist(name string, by Source) {
	for _, ip := range ips {
		if _, _, says := o.says(name, ip); says && slices.Index(o.rivals[ip], name) > 0 {
			said := o.dissents[ip][name]
			if by == Announcement || said.renewed && o.second > said.first+4 {
				said.seconds = append(said.seconds, o.second)
			} else if !said.renewed {
				said.renewed, said.first = true, o.second
			}
			o.dissents[ip][name] = said
		}
	}
	o.findConflicts()
}

// findConflicts finds the addresses of which others than the holder say that they have them.
func (o *oracle) findConflicts() {
	o.last.Conflicts = nil
	for _, ip := range ips {
		c := Conflict{Address: ip}
		for i, name := range o.rivals[ip] {
			if heard := o.dissents[ip][name].seconds; len(heard) > 0 && (c.Since.IsZero() || at(heard[0]).Before(c.Since)) {
				c.Since = at(heard[0])
			} else if i > 0 && len(heard) == 0 {
				continue
			}
			c.Nodes = append(c.Nodes, name)
		}
		if len(c.Nodes) > 1 {
			o.last.Conflicts = append(o.last.Conflicts, c)
		}
	}
}

// takenWith returns the epoch of an address that this node gets.
func (o *oracle) takenWith(ip netip.Addr) uint64 {
	if kept := max(o.leases[me].Addresses[ip], o.direct[me].Addresses[ip]); kept > 0 && !o.told {
		return kept
	}
	highest := o.last.Holders[ip].Epoch
	for _, name := range names {
		highest = max(highest, o.leases[name].Addresses[ip], o.direct[name].Addresses[ip])
	}
	return highest + 1
}

// says returns which epoch a node announces for an address, and how that is known.
func (o *oracle) says(name string, ip netip.Addr) (epoch uint64, known Source, says bool) {
	lease, leased := o.leases[name]
	direct, told := o.direct[name]
	if told && (!leased || direct.Revision >= lease.Revision) {
		epoch, says = direct.Addresses[ip]
	} else {
		epoch, says = lease.Addresses[ip]
	}
	inLease, inDirect := lease.Addresses[ip] == epoch, direct.Addresses[ip] == epoch
	switch {
	case inLease && inDirect:
		return epoch, LeaseAndAnnouncement, says
	case inDirect:
		return epoch, Announcement, says
	}
	return epoch, Lease, says
}

// judge returns who holds an address, and the names of all live holders.
func (o *oracle) judge(ip netip.Addr) (best Holding, live []string) {
	var all, lost []Holding
	own, here := o.own[ip]
	for _, name := range names {
		if name == me && here && slices.Contains(o.onNoInterface, ip) {
			all = append(all, Holding{State: Local, Node: me, Epoch: own, Known: LoadBalancer})
		} else if name == me && here && slices.Contains(o.elsewhere, ip) {
			all = append(all, Holding{State: Local, Node: me, Epoch: own, Known: OwnAddress})
		}
		epoch, known, lists := o.says(name, ip)
		node, exists := o.nodes[name]
		if !lists || !exists || name == me {
			continue
		}
		h := Holding{State: Remote, Node: name, Epoch: epoch, Known: known}
		for _, address := range node.InternalIPs {
			if address.Is4() {
				h.Address = address
			}
		}
		if o.silent[name] {
			h.State, h.Address, h.Why = Lost, netip.Addr{}, Silent
		} else if !h.Address.IsValid() {
			h.State, h.Why = Lost, Unreachable
		}
		if h.State == Remote {
			all = append(all, h)
		} else {
			lost = append(lost, h)
		}
	}
	// The names are in their order, so of equal epochs the last counts.
	byEpoch := func(a, b Holding) int { return int(a.Epoch) - int(b.Epoch) }
	slices.SortStableFunc(all, byEpoch)
	slices.SortStableFunc(lost, byEpoch)
	if here && !slices.Contains(o.onNoInterface, ip) && !slices.Contains(o.elsewhere, ip) {
		all = append(all, Holding{State: Local, Node: me, Epoch: own, Known: OwnAddress})
	}
	for _, h := range slices.Backward(all) {
		live = append(live, h.Node)
	}
	if len(all)+len(lost) > 0 {
		o.claimed[ip] = o.second
		return slices.Concat(lost, all)[len(lost)+len(all)-1], live
	}
	if o.second-o.claimed[ip] >= 5 {
		return Holding{State: Unclaimed}, nil
	}
	best = o.last.Holders[ip]
	best.State, best.Address, best.Why = Lost, netip.Addr{}, Withdrawn
	return best, nil
}

// ways are those of the egress IPs.
func (o *oracle) ways(mode Mode) map[netip.Addr]kernel.Way {
	ways := map[netip.Addr]kernel.Way{}
	for ip, h := range o.last.Holders {
		switch h.State {
		case Remote:
			ways[ip] = kernel.Way{Kind: kernel.ToNode, Node: v4[h.Node]}
		case Lost:
			ways[ip] = kernel.Way{Kind: kernel.Prohibit}
			if at(o.second).Sub(h.Since) < 5*time.Second {
				ways[ip] = kernel.Way{Kind: kernel.Blackhole}
			}
		case Unclaimed:
			if mode == Required {
				ways[ip] = kernel.Way{Kind: kernel.Prohibit}
			}
		}
	}
	return ways
}

func (o *oracle) answers() answers {
	a := o.last
	a.Ways = map[Mode]map[netip.Addr]kernel.Way{Auto: o.ways(Auto), Required: o.ways(Required)}
	return a
}

// differs tells whether others hold or have an address than before, but for since when.
func (o *oracle) differs(before answers, rivals map[netip.Addr][]string) bool {
	same := func(a, b Holding) bool {
		a.Since = b.Since
		return a == b
	}
	return !maps.EqualFunc(before.Holders, o.last.Holders, same) || !maps.Equal(before.Own, o.last.Own) ||
		(before.Own == nil) != (o.last.Own == nil) ||
		!maps.EqualFunc(rivals, o.rivals, slices.Equal)
}

func (o *oracle) check(t *testing.T, d *Directory, when string) {
	t.Helper()
	if diff := diffAnswers(o.answers(), answersOf(d, at(o.second))); diff != "" {
		t.Fatalf("(-oracle +got):\n%s%s", diff, when)
	}
}
