package node

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/pool"
	"github.com/openshift/origin-node/pkg/kernel"
)

// simulation has members on a network, in a time of its own. What it needs of the world is modelled after
// what the effects do: messages take some milliseconds, a member is found dead after 240 to 360 ms, a probe
// takes 80 ms and is answered by the kernel of a host, whether its process lives or not. States are told to those
// that are found alive when they change, and exchanged with one of them, chosen at random, every 5 s, as memberlist does. Those
// that are not are told every 50 ms. A node that has taken an address passes packets on, and one that has released it drops them, as
// package handover does.
type simulation struct {
	testing.TB
	random *rand.Rand
	now    time.Duration
	queue  queue
	nodes  []*simulatedNode
	wanted []netip.Addr
	// loss is how much of what members tell each other is lost, 0 to 1.
	loss float64
	// foreign are addresses that a host which is no member has.
	foreign map[netip.Addr]bool
	// moves are the addresses that were taken, in order.
	moves []string
	// twice has the addresses that two nodes have which reach each other, with living processes. longest is the longest time that
	// this lasted while what they tell each other arrived, untold where some of it did not.
	twice           map[netip.Addr]*overlap
	longest, untold time.Duration
	// passed is how many addresses were taken of which packets are passed on.
	passed int
	// gateways: each side of a partition has one, but the sides in without.
	gateways bool
	without  map[int]bool
	// reliable: nodes can take all addresses. Otherwise one in fifty fails, and is tried again after 10 s.
	reliable bool
	// leases are what the nodes tell in their Leases, in the order of the nodes; nil if no API server is there. renewed is when. away: it
	// is, for a while.
	leases  []holders.Statement
	renewed []time.Duration
	away    bool
	// sending is since when packets of an address leave from two nodes that hear each other, and twofold the longest time of that.
	sending map[pair]time.Duration
	twofold time.Duration
	// touched is when something changed last of what the checks look at, and checked when they did so last.
	touched, checked time.Duration
	// siblings and zones are what the nodes are told of them.
	siblings map[netip.Addr][]netip.Addr
	zones    map[string]string
}

// overlap is two nodes having an address, since a time, and since when they hear each other. deaf: for a while they did not.
type overlap struct {
	since, heard time.Duration
	deaf         bool
}

// simulatedNode is a node: a kernel, and a process that may be dead.
type simulatedNode struct {
	*Node
	name  string
	index int
	skew  time.Duration
	// run grows with each start of the process; running: it lives. paused until: it does nothing before.
	run     uint64
	running bool
	paused  time.Duration
	// off: the machine is. down: its link is. backAt is when the machine was switched on again: no real one comes back so fast.
	off, down bool
	backAt    time.Duration
	// segment is its side of a partition. deaf: messages between members are lost, ARP is not.
	segment  int
	deaf     bool
	draining bool
	kernel   map[netip.Addr]time.Duration // until when
	// older: its version does not hand addresses over. passes is to whom its kernel passes on what it does not track, drops
	// the addresses whose strays it drops.
	older  bool
	passes map[netip.Addr]passing
	drops  map[netip.Addr]time.Duration
	// seen is which others it finds alive, and since when that is wrong. exchanged: states were since.
	seen, exchanged map[int]bool
	wrong           map[int]time.Duration
	wake            time.Duration
	// busy until: it does what was decided, and decides nothing else.
	busy time.Duration
	// takeFailed: of what it does, an address could not be taken. unsaid is the state that it tells the others when it has done it.
	takeFailed bool
	unsaid     *pool.State
	told       pool.State
	// differs has the addresses of which the node does not know whether they are in its kernel, since when.
	differs map[netip.Addr]time.Duration
	// heard is the highest epoch of each address that the process was told.
	heard map[netip.Addr]uint64
}

// passing is to a node, until a time.
type passing struct {
	to    *simulatedNode
	until time.Duration
}

// tickAgain is how often what goes on by itself is looked at.
const tickAgain = 10 * time.Millisecond

// passTime is how long packets are passed on, dropTime how long those are dropped that might be passed on.
const passTime, dropTime = 2 * time.Second, 3 * time.Second

type occasion struct {
	at   time.Duration
	seq  int
	what func()
}

type queue struct {
	list []occasion
	seq  int
}

func (q *queue) Len() int { return len(q.list) }
func (q *queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q.list[i].at, q.list[j].at), cmp.Compare(q.list[i].seq, q.list[j].seq)) < 0
}
func (q *queue) Swap(i, j int) { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *queue) Push(x any)    { q.list = append(q.list, x.(occasion)) }
func (q *queue) Pop() any {
	last := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	return last
}

func sorted[V any](addresses map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(addresses), netip.Addr.Compare)
}

func addresses(n int) (list []netip.Addr) {
	ip := netip.MustParseAddr("10.0.0.1")
	for range n {
		list = append(list, ip)
		ip = ip.Next()
	}
	return list
}

func newSimulation(t testing.TB, seed uint64, nodes, addrs int) *simulation {
	s := &simulation{TB: t, random: rand.New(rand.NewPCG(seed, 1)), wanted: addresses(addrs), foreign: map[netip.Addr]bool{}, twice: map[netip.Addr]*overlap{}}
	for i := range nodes {
		s.nodes = append(s.nodes, &simulatedNode{
			name: fmt.Sprintf("node-%d", i+1), index: i, skew: time.Duration(s.random.Int64N(int64(2*time.Hour))) - time.Hour,
			kernel: map[netip.Addr]time.Duration{}, passes: map[netip.Addr]passing{}, drops: map[netip.Addr]time.Duration{}, seen: map[int]bool{}, exchanged: map[int]bool{}, wrong: map[int]time.Duration{},
			differs: map[netip.Addr]time.Duration{},
		})
	}
	for _, n := range s.nodes {
		s.boot(n)
		s.after(s.between(0, pool.ExchangeAgain), func() { s.every(pool.ExchangeAgain, func() { s.exchange(n) }) })
		s.after(s.between(0, pool.JoinAgain), func() { s.every(pool.JoinAgain, func() { s.join(n) }) })
		s.after(s.between(0, pool.RemindAgain), func() { s.every(pool.RemindAgain, func() { s.remind(n) }) })
	}
	s.every(tickAgain, s.tick)
	return s
}

func (s *simulation) after(d time.Duration, what func()) {
	s.queue.seq++
	heap.Push(&s.queue, occasion{s.now + d, s.queue.seq, what})
}

func (s *simulation) every(d time.Duration, what func()) {
	s.after(d, func() { what(); s.every(d, what) })
}

// run lets time pass.
func (s *simulation) run(d time.Duration) {
	s.touched = s.now // a test may have changed anything
	for end := s.now + d; len(s.queue.list) > 0 && s.queue.list[0].at <= end; {
		next := heap.Pop(&s.queue).(occasion)
		s.now = next.at
		next.what()
	}
}

func (s *simulation) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int64N(int64(most-least)))
}

// boot starts the process of a node.
func (s *simulation) boot(n *simulatedNode) {
	if run := n.run; s.leases != nil && (s.away || n.down) { // it does nothing before it knows all objects
		s.after(100*time.Millisecond, func() {
			if n.run == run && !n.running && !n.off {
				s.boot(n)
			}
		})
		return
	}
	n.run++
	n.Node = New(holders.Config{NodeName: n.name, Outer: kernel.IPv4})
	n.Join(n.run, !n.older)
	n.running, n.wake, n.busy, n.unsaid, n.told = true, 0, 0, nil, pool.State{}
	n.heard = map[netip.Addr]uint64{}
	clear(n.seen)
	clear(n.exchanged)
	clear(n.wrong)
	s.tell(n, pool.Found{Addresses: sorted(n.kernel)})
	if s.leases != nil {
		s.know(n)
		s.reply(n, s.between(50*time.Millisecond, 200*time.Millisecond), func() Event { n.Speak(); s.say(n); return pool.Tick{} })
	}
	s.tell(n, pool.Networks{Networks: s.networks(n)})
	s.tell(n, s.pool())
	s.tell(n, s.wants())
	s.tell(n, pool.Drain{Now: n.draining})
}

// pool is that of all nodes.
func (s *simulation) pool() pool.Pool {
	all := pool.Pool{Zones: s.zones}
	for _, n := range s.nodes {
		all.Nodes = append(all.Nodes, n.name)
	}
	return all
}

func (s *simulation) wants() pool.Wanted {
	return pool.Wanted{Addresses: s.wanted, Siblings: s.siblings}
}

// named returns a node.
func (s *simulation) named(name string) *simulatedNode {
	return s.nodes[slices.IndexFunc(s.nodes, func(n *simulatedNode) bool { return n.name == name })]
}

// holderOf returns the name of a node whose kernel has an address, and whose machine and link are on.
func (s *simulation) holderOf(ip netip.Addr) string {
	for _, n := range s.nodes {
		if _, has := n.kernel[ip]; has && !n.off && !n.down {
			return n.name
		}
	}
	return ""
}

func (s *simulation) networks(n *simulatedNode) []pool.Network {
	return []pool.Network{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Up: !n.down}}
}

// tell tells a process something, and does what it says.
func (s *simulation) tell(n *simulatedNode, e Event) {
	run := n.run
	if !n.running || n.off {
		return
	}
	if s.now < n.paused {
		s.after(n.paused-s.now, func() {
			if n.run == run {
				s.tell(n, e)
			}
		})
		return
	}
	_, decides := e.(pool.Event)
	if decides && s.now < n.busy {
		s.reply(n, n.busy-s.now, func() Event { return e })
		return
	}
	now := s.clock(n)
	s.publish(n)
	n.note(e)
	actions, changed := n.Next(e, now)
	n.takeFailed = false
	for _, a := range slices.SortedStableFunc(slices.Values(actions), func(a, b pool.Action) int { return stage(a) - stage(b) }) {
		s.do(n, a)
	}
	if changed {
		s.touched = s.now
		s.say(n)
	}
	if decides || changed { // of what else happens, nothing that is checked follows
		s.checkSaid(n)
	}
	if n.wake = 0; !n.wakeAt(now).IsZero() {
		n.wake = s.now + n.wakeAt(now).Sub(now)
	}
}

// clock is a node's time.
func (s *simulation) clock(n *simulatedNode) time.Time {
	return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).Add(s.now + n.skew)
}

// stage is the order in which [pool.Runner] acts: addresses are taken when others are released, and the members are told then.
func stage(a pool.Action) int {
	switch a.(type) {
	case pool.Take:
		return 1
	case pool.Publish:
		return 2
	}
	return 0
}

func (s *simulation) do(n *simulatedNode, a pool.Action) {
	switch a := a.(type) {
	case pool.Probe:
		answers, at, heard, nodes := map[netip.Addr]string{}, s.clock(n), false, map[string]bool{}
		ask := func() {
			s.ask(n, a.Addresses, answers)
			heard = heard || s.hears(n)
			for _, o := range s.nodes {
				nodes[o.name] = nodes[o.name] || o == n || s.wired(n, o)
			}
		}
		ask()
		s.after(40*time.Millisecond, ask)
		s.reply(n, 80*time.Millisecond, func() Event {
			probed := pool.Probed{Number: a.Number, Answers: map[netip.Addr]pool.Answer{}, At: at}
			for _, ip := range a.Addresses {
				probed.Answers[ip] = pool.Answer{By: answers[ip], Cut: !heard}
			}
			for name, answered := range nodes {
				if !answered {
					probed.Silent = append(probed.Silent, name)
				}
			}
			return probed
		})
	case pool.LookAround:
		looked, own := pool.Looked{At: s.clock(n)}, map[netip.Addr]string{}
		ask := func() {
			s.ask(n, a.Own, own)
			s.reply(n, time.Millisecond, func() Event { return pool.Answered{At: looked.At, Addresses: sorted(own)} })
			looked.Peers = looked.Peers || s.hearsNodes(n)
			looked.Gateway = looked.Gateway || s.hearsGateway(n)
		}
		ask()
		s.after(40*time.Millisecond, ask)
		s.reply(n, 80*time.Millisecond, func() Event { return looked })
	case pool.Take:
		s.touched = s.now
		s.checkTake(n, a)
		s.take(n, a)
	case pool.Release:
		s.touched = s.now
		if !n.older {
			n.drops[a.Address] = s.now + dropTime
		}
		delete(n.passes, a.Address)
		left := holders.Left{Addresses: []netip.Addr{a.Address}}
		if a.GoOn {
			left.Until = s.clock(n).Add(goesOn)
		}
		s.tell(n, left)
		delete(n.kernel, a.Address)
		s.report(n)
	case pool.Renew:
		for _, ip := range a.Addresses {
			if _, there := n.kernel[ip]; there {
				n.kernel[ip] = s.now + pool.Lifetime
			}
		}
	case pool.Publish:
		if !n.takeFailed {
			n.unsaid = &a.State
			s.after(max(0, n.busy-s.now), func() { s.publish(n) })
		}
	}
}

// publish has a process that has done what was decided tell the other members the state of then.
func (s *simulation) publish(n *simulatedNode) {
	if n.unsaid == nil || s.now < n.busy || s.now < n.paused || !n.running || n.off {
		return
	}
	state := *n.unsaid
	n.told, n.unsaid = state, nil
	for _, o := range s.nodes {
		s.send(n, o, state)
	}
}

// take puts an address on a node, which may fail. With Leases it takes a while until packets leave from there.
func (s *simulation) take(n *simulatedNode, a pool.Take) {
	if s.leases == nil {
		n.kernel[a.Address] = s.now + pool.Lifetime
		if a.PassOn {
			s.pass(n, a)
		}
		s.tell(n, holders.Arrived{Addresses: []netip.Addr{a.Address}})
		return
	}
	n.busy = max(n.busy, s.now+s.between(0, 30*time.Millisecond))
	if s.random.IntN(50) == 0 && !s.reliable {
		n.takeFailed = true
		s.reply(n, n.busy-s.now, func() Event { return pool.TakeFailed{Addresses: []netip.Addr{a.Address}} })
		return
	}
	n.kernel[a.Address] = s.now + pool.Lifetime
	s.report(n)
	s.reply(n, n.busy-s.now, func() Event {
		if a.PassOn {
			s.pass(n, a)
		}
		return holders.Arrived{Addresses: []netip.Addr{a.Address}}
	})
}

// pass has a node pass on what it does not track, unless it has just had the address itself.
func (s *simulation) pass(n *simulatedNode, a pool.Take) {
	s.passed++
	for _, o := range s.nodes {
		if o.name == a.From && !o.off && n.drops[a.Address] <= s.now && (o.backAt == 0 || s.now-o.backAt > passTime) {
			n.passes[a.Address] = passing{o, s.now + passTime}
		}
	}
}

// checkPasses fails if a packet goes in circles: each node that it is passed to has the address, or drops it.
func (s *simulation) checkPasses() {
	for _, n := range s.nodes {
		for ip := range n.passes {
			at, way := n, []string{n.name}
			for p := n.passes[ip]; p.until > s.now && len(way) <= len(s.nodes); p = at.passes[ip] {
				at = p.to
				way = append(way, at.name)
			}
			_, has := at.kernel[ip]
			if at != n && !has && at.drops[ip] <= s.now || len(way) > len(s.nodes) {
				s.Errorf("%v: packets to %s go in circles by way of %v", s.now, ip, way)
			}
		}
	}
}

// reply tells a process of an answer, if it is still the one that asked.
func (s *simulation) reply(n *simulatedNode, d time.Duration, event func() Event) {
	run := n.run
	s.after(d, func() {
		if n.run == run {
			s.tell(n, event())
		}
	})
}

// send has a member's state reach another one that it finds alive: at once by a datagram, and by TCP, which notices a loss
// and sends the newest state again.
func (s *simulation) send(from, to *simulatedNode, state pool.State) {
	if from == to || !from.seen[to.index] {
		return
	}
	arrive := func() {
		if s.speaks(from, to) {
			s.tell(to, pool.Heard{State: asRead(state)})
		}
	}
	if s.speaks(from, to) && !s.lost() {
		s.after(s.between(time.Millisecond, 3*time.Millisecond), arrive)
	}
	if s.speaks(from, to) && !s.lost() {
		s.after(s.between(2*time.Millisecond, 6*time.Millisecond), arrive)
		return
	}
	run := from.run
	s.after(pool.ConnectionTime+pool.SendAgain, func() {
		if from.run == run {
			s.send(from, to, from.told)
		}
	})
}

// asRead is what a member reads of a state.
func asRead(s pool.State) pool.State {
	s.Held, s.Claims, s.Failed = maps.Clone(s.Held), maps.Clone(s.Claims), slices.Clone(s.Failed)
	s.Confine([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	return s
}

// lie has a node tell all others that it has all addresses, with an epoch, for a while.
func (s *simulation) lie(n *simulatedNode, epoch uint64, d time.Duration) {
	held := map[netip.Addr]uint64{}
	for _, ip := range s.wanted {
		held[ip] = epoch
	}
	for version := range uint64(d / (50 * time.Millisecond)) {
		for _, o := range s.nodes {
			if o != n {
				s.tell(o, pool.Heard{State: asRead(pool.State{Name: n.name, Run: 1 << 60, Version: version, Networks: s.networks(n), Held: held})})
			}
		}
		s.run(50 * time.Millisecond)
	}
}

func (s *simulation) lost() bool { return s.random.Float64() < s.loss }

// exchange has a member exchange states with one that it finds alive.
func (s *simulation) exchange(n *simulatedNode) {
	var alive []*simulatedNode
	for _, o := range s.nodes {
		if n.seen[o.index] {
			alive = append(alive, o)
		}
	}
	if len(alive) > 0 {
		s.exchangeWith(n, alive[s.random.IntN(len(alive))])
	}
}

// join has a member exchange states with those with which it has not since it found them alive.
func (s *simulation) join(n *simulatedNode) {
	for _, o := range s.nodes {
		if n.seen[o.index] && !n.exchanged[o.index] {
			s.exchangeWith(n, o)
		}
	}
}

// remind has a member tell its state to those that it does not find alive.
func (s *simulation) remind(n *simulatedNode) {
	for _, o := range s.nodes {
		if o != n && !n.seen[o.index] && n.told.Name != "" && s.speaks(n, o) && s.now >= n.paused && !s.lost() {
			for _, part := range n.told.Parts() {
				s.after(s.between(time.Millisecond, 3*time.Millisecond), func() { s.tell(o, pool.Reminded{State: asRead(part)}) })
			}
		}
	}
}

func (s *simulation) exchangeWith(a, b *simulatedNode) {
	if !s.speaks(a, b) || s.now < a.paused || s.now < b.paused || s.lost() {
		return
	}
	s.after(s.between(2*time.Millisecond, 12*time.Millisecond), func() {
		if !s.speaks(a, b) {
			return
		}
		for _, pair := range [][2]*simulatedNode{{a, b}, {b, a}} {
			pair[0].exchanged[pair[1].index] = true
			if pair[1].told.Name != "" {
				s.tell(pair[0], pool.Heard{State: asRead(pair[1].told)})
			}
		}
	})
}

// wired tells whether frames pass between two nodes.
func (s *simulation) wired(a, b *simulatedNode) bool {
	return !a.off && !b.off && !a.down && !b.down && a.segment == b.segment
}

// speaks tells whether two processes reach each other.
func (s *simulation) speaks(a, b *simulatedNode) bool {
	return s.wired(a, b) && a.running && b.running && !a.deaf && !b.deaf
}

// hears tells whether a node's network has hosts that answer.
func (s *simulation) hears(n *simulatedNode) bool { return s.hearsNodes(n) || s.hearsGateway(n) }

func (s *simulation) hearsNodes(n *simulatedNode) bool {
	return slices.ContainsFunc(s.nodes, func(o *simulatedNode) bool { return o != n && s.wired(n, o) })
}

func (s *simulation) hearsGateway(n *simulatedNode) bool {
	return !n.down && (n.segment == 0 || s.gateways) && !s.without[n.segment]
}

// ask notes the hosts that answer for addresses.
func (s *simulation) ask(n *simulatedNode, addresses []netip.Addr, answers map[netip.Addr]string) {
	for _, ip := range addresses {
		if s.foreign[ip] && !n.down {
			answers[ip] = "foreign"
		}
		for _, o := range s.nodes {
			if _, has := o.kernel[ip]; has && o != n && s.wired(n, o) {
				answers[ip] = o.name
			}
		}
	}
}

// tick is what goes on by itself.
func (s *simulation) tick() {
	for _, n := range s.nodes {
		if since := s.now - n.paused; since >= 0 && since < tickAgain {
			s.touched = s.now // what was left out while it did nothing counts again
		}
		var gone []netip.Addr
		for ip, until := range n.kernel {
			if until <= s.now {
				s.touched = s.now
				delete(n.kernel, ip)
				gone = append(gone, ip)
			}
		}
		if len(gone) > 0 {
			s.tell(n, pool.Removed{Addresses: gone})
			s.report(n)
		}
		for _, o := range s.nodes {
			s.detect(n, o)
		}
		if n.wake > 0 && n.wake <= s.now {
			n.wake = 0
			s.tell(n, pool.Tick{})
		}
	}
	if s.checksNow() {
		s.checked = s.now
		s.checkTwice()
		s.checkPasses()
		s.checkHere()
		s.checkSending()
	}
}

// checksNow tells whether something may be wrong: all the time for a moment after a change and while something lasts that must not last long, and
// now and then for as long as time alone may change something, which is found 2*lag late at most.
func (s *simulation) checksNow() bool {
	since := s.now - s.touched
	switch {
	case len(s.twice)+len(s.sending) > 0 || slices.ContainsFunc(s.nodes, func(n *simulatedNode) bool { return len(n.differs) > 0 }):
		return true
	case since > dropTime+time.Second:
		return false // all is as it was
	}
	return since <= 2*lag || s.now-s.checked >= 2*lag
}

// detect has a process find out that another one is alive or dead.
func (s *simulation) detect(n, o *simulatedNode) {
	is := s.speaks(n, o) && s.now >= o.paused
	if n == o || !n.running || n.seen[o.index] == is {
		delete(n.wrong, o.index)
		return
	}
	at, noted := n.wrong[o.index]
	switch {
	case !noted && is:
		n.wrong[o.index] = s.now + s.between(20*time.Millisecond, 200*time.Millisecond)
	case !noted:
		n.wrong[o.index] = s.now + s.between(240*time.Millisecond, 360*time.Millisecond)
	case at <= s.now:
		delete(n.wrong, o.index)
		s.find(n, o, is)
	}
}

// find has a process find another one alive or dead.
func (s *simulation) find(n, o *simulatedNode, alive bool) {
	n.seen[o.index], n.exchanged[o.index] = alive, false
	s.tell(n, pool.Liveness{Name: o.name, Alive: alive})
	if alive {
		s.question(n, o)
	}
	s.join(n)
}

// accuse has a process find another one dead that lives and says so: only that it lives is told to the first one then, as
// the other one's state has not changed.
func (s *simulation) accuse(n, o *simulatedNode) {
	if n.seen[o.index] {
		s.find(n, o, false)
		n.wrong[o.index] = s.now + s.between(20*time.Millisecond, 200*time.Millisecond)
	}
}

// checkTake fails if an address is taken from a node that serves and wants to keep it.
func (s *simulation) checkTake(n *simulatedNode, a pool.Take) {
	s.moves = append(s.moves, fmt.Sprintf("%v %s to %s, epoch %d: %s", s.now, a.Address, n.name, a.Epoch, a.Why))
	if a.Epoch <= n.heard[a.Address] && a.Epoch < holders.MaxEpoch {
		s.Errorf("%v: %s took %s with epoch %d, and was told of epoch %d", s.now, n.name, a.Address, a.Epoch, n.heard[a.Address])
	}
	n.heard[a.Address] = a.Epoch
	if s.foreign[a.Address] {
		s.Errorf("%v: %s took %s, which a foreign host has", s.now, n.name, a.Address)
	}
	for _, o := range s.nodes {
		if _, has := o.kernel[a.Address]; has && o != n && s.wired(n, o) && !a.Why.GivenAway() {
			// The link may have come back after the probe.
			s.twice[a.Address] = &overlap{since: s.now, heard: s.now}
		}
	}
}

// checkTwice notes how long two nodes that reach each other have an address.
func (s *simulation) checkTwice() {
	for _, ip := range s.wanted {
		var has []*simulatedNode
		for _, n := range s.nodes {
			if _, there := n.kernel[ip]; there && n.running && s.now >= n.paused {
				has = append(has, n)
			}
		}
		both, deaf := false, false
		for _, a := range has {
			for _, b := range has {
				if a != b && s.wired(a, b) {
					both, deaf = true, deaf || !s.speaks(a, b)
				}
			}
		}
		if !both {
			delete(s.twice, ip)
			continue
		}
		o := s.twice[ip]
		if o == nil {
			o = &overlap{since: s.now, heard: s.now}
			s.twice[ip] = o
		}
		if deaf {
			o.deaf, o.heard = true, s.now
		}
		s.longest = max(s.longest, s.now-o.heard)
		if o.deaf {
			s.untold = max(s.untold, s.now-o.since)
		}
	}
}

// served fails unless each address is on exactly one node, and returns how many each has.
func (s *simulation) served() map[string]int {
	s.Helper()
	counts := map[string]int{}
	for _, ip := range s.wanted {
		var has []string
		for _, n := range s.nodes {
			if _, there := n.kernel[ip]; there && !n.off && !n.down {
				has = append(has, n.name)
				counts[n.name]++
			}
		}
		if len(has) != 1 && !s.foreign[ip] {
			s.Errorf("%v: %s is on %q, want one node", s.now, ip, has)
		}
	}
	return counts
}

func (s *simulation) crash(n *simulatedNode) { n.running = false }

// powerOff loses what a kernel has, and powerOn starts it anew.
func (s *simulation) powerOff(n *simulatedNode) {
	n.off, n.running = true, false
	clear(n.kernel)
	clear(n.passes)
	clear(n.drops)
	for _, o := range s.nodes { // nothing goes on from there, and a machine needs longer to come back
		maps.DeleteFunc(o.passes, func(_ netip.Addr, p passing) bool { return p.to == n })
	}
}

func (s *simulation) powerOn(n *simulatedNode) {
	n.off, n.backAt = false, s.now
	s.boot(n)
}

func (s *simulation) setLink(n *simulatedNode, up bool) {
	n.down = !up
	if s.leases != nil && up { // its connections to the API server wait before they try again
		s.after(s.between(10*time.Millisecond, 10*time.Second), func() { s.hearAll(n) })
	}
	s.after(time.Millisecond, func() { s.tell(n, pool.Networks{Networks: s.networks(n)}) })
}

func (s *simulation) drain(n *simulatedNode, now bool) {
	n.draining = now
	s.tell(n, pool.Drain{Now: now})
}
