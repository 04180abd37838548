package node

import (
	"fmt"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/pool"
	"github.com/openshift/origin-node/pkg/kernel"
)

// What follows is the rest of a failover: what the nodes announce, in Leases and directly, and which ways packets take.

const (
	// goesOn is how long packets leave from a node that has handed an address over.
	goesOn = time.Second
	// renewLease is how often a Lease is written that says the same, and beat how often a node announces directly that it does.
	renewLease, beat = 10 * time.Second, 9 * time.Second
	// lag is how long a node may take to know what its kernel has.
	lag = 50 * time.Millisecond
)

// address is the node's own.
func (n *simulatedNode) address() netip.Addr {
	return netip.AddrFrom4([4]byte{192, 0, 2, byte(n.index + 1)})
}

// withLeases has nodes write Leases, and announce directly what these say.
func (s *simulation) withLeases() {
	s.leases, s.renewed = make([]holders.Statement, len(s.nodes)), make([]time.Duration, len(s.nodes))
	for _, n := range s.nodes {
		s.know(n)
		n.Speak()
		s.say(n)
		s.after(s.between(0, renewLease), func() { s.every(renewLease, func() { s.write(n, n.run, n.said) }) })
		s.after(s.between(0, beat), func() { s.every(beat, func() { s.announce(n, n.said) }) })
	}
}

// know has a node that starts know of all objects.
func (s *simulation) know(n *simulatedNode) {
	for _, o := range s.nodes {
		s.tell(n, holders.NodeSeen{Name: o.name, Ready: true, InternalIPs: []netip.Addr{o.address()}})
	}
	s.tell(n, holders.Claimed{Addresses: s.claimed()})
	s.hearAll(n)
	s.tell(n, s.own(n))
	s.tell(n, holders.LeasesKnown{})
}

func (s *simulation) claimed() map[netip.Addr]bool {
	claimed := map[netip.Addr]bool{}
	for _, ip := range s.wanted {
		claimed[ip] = true
	}
	return claimed
}

// own is what a node's kernel has.
func (s *simulation) own(n *simulatedNode) holders.OwnAddresses {
	return holders.OwnAddresses{Addresses: append(sorted(n.kernel), n.address())}
}

// report has a node know a moment later what its kernel has then.
func (s *simulation) report(n *simulatedNode) {
	if s.leases != nil {
		s.reply(n, s.between(time.Millisecond, lag/5), func() Event { return s.own(n) })
	}
}

// say has a node tell the others what it has, if that is something else than before.
func (s *simulation) say(n *simulatedNode) {
	before := n.said.Revision
	statement, run := n.Say(), n.run
	if s.leases == nil || statement.Revision == before {
		return
	}
	s.after(s.between(10*time.Millisecond, 60*time.Millisecond), func() { s.write(n, run, statement) })
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second} {
		s.after(after, func() {
			if n.run == run && n.said.Revision == statement.Revision {
				s.announce(n, statement)
			}
		})
	}
}

// announce has a node tell all others directly what it has.
func (s *simulation) announce(n *simulatedNode, statement holders.Statement) {
	if statement.Revision == 0 || s.now < n.paused {
		return
	}
	run := n.run
	for _, o := range s.nodes {
		if o == n || !n.running || !s.wired(n, o) || s.lost() {
			continue
		}
		s.after(s.between(time.Millisecond, 3*time.Millisecond), func() {
			if n.run == run && statement.Revision == n.said.Revision { // what was overtaken does not count
				s.tell(o, holders.Announced{Node: n.name, Statement: statement, Source: holders.Announcement})
			}
		})
	}
}

// question has a node ask another one directly what it has.
func (s *simulation) question(n, o *simulatedNode) {
	if s.leases == nil || s.lost() || s.lost() {
		return
	}
	s.after(s.between(2*time.Millisecond, 6*time.Millisecond), func() {
		if o.said.Revision > 0 && s.speaks(n, o) && s.now >= o.paused {
			s.tell(n, holders.Announced{Node: o.name, Statement: o.said, Source: holders.Announcement})
		}
	})
}

// write writes a Lease, as soon as the API server is there. It is reached from all sides of a partition.
func (s *simulation) write(n *simulatedNode, run uint64, statement holders.Statement) {
	switch {
	case n.run != run || !n.running || statement.Revision == 0 || statement.Revision < s.leases[n.index].Revision:
		return
	case s.away || n.down || s.now < n.paused:
		s.after(100*time.Millisecond, func() { s.write(n, run, statement) })
		return
	}
	s.leases[n.index], s.renewed[n.index] = statement, s.now
	for _, o := range s.nodes {
		s.after(s.between(10*time.Millisecond, 60*time.Millisecond), func() { s.hear(o, n) })
	}
}

// hear has a node hear of another one's Lease, if it reaches the API server.
func (s *simulation) hear(n, of *simulatedNode) {
	if lease := s.leases[of.index]; lease.Revision > 0 && !s.away && !n.down {
		s.tell(n, holders.Announced{Node: of.name, Statement: lease, Source: holders.Lease, Renewed: time.Unix(0, int64(s.renewed[of.index]))})
	}
}

func (s *simulation) hearAll(n *simulatedNode) {
	for _, o := range s.nodes {
		s.hear(n, o)
	}
}

// leave has the API server be away for a while.
func (s *simulation) leave(d time.Duration) {
	if s.away || s.leases == nil {
		return
	}
	s.away = true
	for _, n := range s.nodes {
		s.tell(n, holders.Hearing{})
	}
	s.after(d, s.comeBack)
}

func (s *simulation) comeBack() {
	if !s.away {
		return
	}
	s.away = false
	for _, n := range s.nodes {
		s.hearAll(n)
		s.tell(n, holders.Hearing{Now: true})
	}
}

// wakeAt is when a node is to be told that time has passed; zero for never.
func (n *Node) wakeAt(now time.Time) time.Time {
	return holders.Earlier(n.Directory.Wake(now), n.member.Wake())
}

// checkSaid fails if a node says something that others cannot read, or has an address in its book that it says is elsewhere.
func (s *simulation) checkSaid(n *simulatedNode) {
	for ip, epoch := range n.said.Addresses {
		if epoch == 0 {
			s.Errorf("%v: %s says that it has %s with the epoch 0", s.now, n.name, ip)
		}
	}
	now := s.clock(n)
	n.Holder(n.address(), now) // time passes with a question
	for ip, epoch := range n.Own() {
		if h := n.Holder(ip, now); epoch == 0 || h.State == holders.Lost || h.State == holders.Unclaimed {
			s.Errorf("%v: the book of %s has %s with the epoch %d, and answers %+v", s.now, n.name, ip, epoch, h)
		}
	}
}

// checkHere fails if packets leave from a node for long that has not their address, or do not leave from the one that has it.
func (s *simulation) checkHere() {
	for _, n := range s.nodes {
		if s.leases == nil || !n.running || n.off || s.now < n.paused+lag || n.Own() == nil {
			clear(n.differs)
			continue
		}
		now := s.clock(n)
		for _, ip := range s.wanted {
			_, has := n.kernel[ip]
			if here := n.Holder(ip, now).State == holders.Local; here == has || here && n.handsOver(ip, now) {
				delete(n.differs, ip)
				continue
			}
			since, known := n.differs[ip]
			if !known {
				n.differs[ip] = s.now
			} else if s.now-since > lag {
				s.Errorf("%v: for %v, %s has %s: %v; and sends its packets: %v", s.now, s.now-since, n.name, ip, has, !has)
			}
		}
	}
}

// handsOver tells whether another node has taken an address over, and packets still leave from this one.
func (n *simulatedNode) handsOver(ip netip.Addr, now time.Time) bool {
	for handing := range n.HandingOver(now) {
		if handing == ip {
			return true
		}
	}
	return false
}

// note notes the epochs that a process is told.
func (n *simulatedNode) note(e Event) {
	var told map[netip.Addr]uint64
	switch e := e.(type) {
	case pool.Heard:
		told = e.State.Held
	case pool.Reminded:
		told = e.State.Held
	case holders.Announced:
		told = e.Addresses
	}
	for ip, epoch := range told {
		n.heard[ip] = max(n.heard[ip], epoch)
	}
}

// pair is two nodes, from which packets of an address leave.
type pair struct {
	ip   netip.Addr
	a, b *simulatedNode
}

// checkSending notes how long packets of an address leave from two nodes that hear each other.
func (s *simulation) checkSending() {
	if s.leases == nil {
		return
	}
	sending := map[pair]time.Duration{}
	for _, ip := range s.wanted {
		var from []*simulatedNode
		for _, n := range s.nodes {
			if n.running && s.now >= n.paused && n.Holder(ip, s.clock(n)).State == holders.Local {
				from = append(from, n)
			}
		}
		for i, a := range from {
			for _, b := range from[i+1:] {
				if s.loss > 0 || !s.speaks(a, b) {
					continue
				}
				of := pair{ip, a, b}
				if sending[of] = s.now; s.sending[of] > 0 {
					sending[of] = s.sending[of]
				}
				s.twofold = max(s.twofold, s.now-sending[of])
			}
		}
	}
	s.sending = sending
}

// ledFrom fails unless the ways of a node lead to the ones that have the addresses.
func (s *simulation) ledFrom(n *simulatedNode) {
	s.Helper()
	if wrong := s.misled(n); wrong != "" {
		s.Error(wrong)
	}
}

// misled says which way of a node does not lead to the one that has the address, or that none has it; it is empty if there is no such way.
func (s *simulation) misled(n *simulatedNode) string {
	ways := n.Ways(s.wanted, holders.Auto, s.clock(n))
	for _, ip := range s.wanted {
		name := s.holderOf(ip)
		if name == "" {
			return fmt.Sprintf("%v: nobody has %s", s.now, ip)
		}
		holder, want := s.named(name), kernel.Way{}
		if n != holder {
			want = kernel.Way{Kind: kernel.ToNode, Node: holder.address()}
		}
		if way := ways[ip]; way != want {
			return fmt.Sprintf("%v: %s, which %s has, leads from %s to %+v, want %+v; it knows %+v", s.now, ip, holder.name, n.name, way, want, n.Holder(ip, s.clock(n)))
		}
	}
	return ""
}

// led fails unless the ways of all nodes lead to the one that has an address, and its Lease alone says so.
func (s *simulation) led() {
	s.Helper()
	for _, n := range s.nodes {
		s.ledFrom(n)
		for _, ip := range s.wanted {
			holder := s.named(s.holderOf(ip))
			own, _ := n.Holds(ip)
			if epoch := s.leases[n.index].Addresses[ip]; epoch != own || (epoch > 0) != (n == holder) {
				s.Errorf("%v: the Lease of %s says that it has %s with epoch %d, want %d", s.now, n.name, ip, epoch, own)
			}
		}
	}
}

// numberOf returns a number that the environment has, or another one.
func numberOf(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// TestNode_HearsWhenItReturns: a node that was cut off sends its pods' packets to the new holder as soon as the pool has it back, whatever
// becomes of its connections to the API server.
func TestNode_HearsWhenItReturns(t *testing.T) {
	for seed := range uint64(20) {
		s := newSimulation(t, seed, 3, 6)
		s.withLeases()
		s.run(5 * time.Second)
		cut := s.named(s.holderOf(s.wanted[0]))
		s.setLink(cut, false)
		s.run(20 * time.Second)
		s.leave(time.Minute)
		s.setLink(cut, true)
		s.run(time.Second)
		s.ledFrom(cut)
	}
}

// TestNode_RandomHistories: whatever happens to nodes, their network and the API server, an address is taken with an epoch higher than any
// that its node was told; packets leave from the node that has it, and from two at once for as long as both have it and a handover takes; and in the end
// each address is on one node, its Lease alone says so, and the ways of all nodes lead there. As many histories as HISTORIES says, from
// SEED on.
func TestNode_RandomHistories(t *testing.T) {
	const faults = 10
	first := numberOf(t, "SEED", 1)
	var longest, twofold, slowest time.Duration
	moves := 0
	for seed := first; seed < first+numberOf(t, "HISTORIES", 40); seed++ {
		s := newSimulation(t, seed, []int{3, 5}[seed%2], 8)
		s.withLeases()
		s.run(5 * time.Second)
		for range faults {
			switch s.random.IntN(5) {
			case 0:
				s.loss = []float64{0, 0.1, 0.3}[s.random.IntN(3)]
			case 1:
				s.leave(s.between(100*time.Millisecond, 5*time.Second))
			default:
				s.fault(s.nodes[s.random.IntN(len(s.nodes))])
			}
			s.run(s.between(50*time.Millisecond, 2*time.Second))
		}
		s.loss = 0
		s.repair()
		s.slowest(&slowest)
		s.run(40 * time.Second)
		s.served()
		if !t.Failed() {
			s.led()
		}
		longest, twofold, moves = max(longest, s.longest), max(twofold, s.twofold), moves+len(s.moves)
		if most := max(s.longest, s.untold) + goesOn + 200*time.Millisecond; s.longest > time.Second || s.twofold > most {
			t.Errorf("two nodes had one address for %v, and its packets left from both for %v; want at most 1s and %v", s.longest, s.twofold, most)
		}
		if t.Failed() {
			t.Fatalf("seed %d; moves:\n%s", seed, strings.Join(s.moves, "\n"))
		}
	}
	t.Logf("%d moves; two nodes had one address for %v at most, and its packets left from both for %v; all were served %v after the last fault", moves, longest, twofold, slowest)
}

// TestNode_Failover: see failover.
func TestNode_Failover(t *testing.T) {
	for seed := range uint64(200) {
		if wrong := failover(t, seed); wrong != "" {
			t.Fatal(wrong)
		}
	}
}

// BenchmarkNode_Failover tells how many whole failovers there are in a second, on all CPUs.
func BenchmarkNode_Failover(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a few MB, which the collector would otherwise go through all the time
	var seed atomic.Uint64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if wrong := failover(b, seed.Add(1)); wrong != "" {
				b.Error(wrong)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "failovers/s")
}

// noted notes what is wrong in the place of telling it.
type noted struct {
	testing.TB
	wrong []string
}

func (n *noted) Error(args ...any) { n.wrong = append(n.wrong, fmt.Sprint(args...)) }
func (n *noted) Errorf(format string, args ...any) {
	n.wrong = append(n.wrong, fmt.Sprintf(format, args...))
}

// failover has the holder of an address fail, one of three nodes that have just started. It says what is wrong unless its addresses are soon on
// the others, and their packets are led there.
func failover(t testing.TB, seed uint64) (wrong string) {
	notes := &noted{TB: t}
	s := newSimulation(notes, seed, 3, 8)
	s.reliable = true
	s.withLeases()
	s.settle(nil)
	if len(notes.wrong) == 0 {
		s.fail(s.named(s.holderOf(s.wanted[s.random.IntN(len(s.wanted))])))
	}
	if len(notes.wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("seed %d: %s; moves:\n%s", seed, strings.Join(notes.wrong, "; "), strings.Join(s.moves, "\n"))
}

// fail has a node fail in a random way.
func (s *simulation) fail(n *simulatedNode) {
	switch s.random.IntN(3) {
	case 0:
		s.powerOff(n)
	case 1:
		s.setLink(n, false)
	case 2:
		s.drain(n, true)
	}
	s.settle(n)
}

// settle lets time pass until all addresses are on nodes besides one, and the packets of these nodes are led there. It fails if that takes long.
func (s *simulation) settle(besides *simulatedNode) {
	s.Helper()
	for end := s.now + 3*time.Second; ; s.run(10 * time.Millisecond) {
		wrong := ""
		for _, n := range s.nodes {
			switch {
			case wrong != "":
			case n != besides:
				wrong = s.misled(n)
			case len(n.kernel) > 0:
				wrong = fmt.Sprintf("%v: %s still has addresses", s.now, n.name)
			}
		}
		if wrong == "" {
			return
		}
		if s.now > end {
			s.Error(wrong)
			return
		}
	}
}
