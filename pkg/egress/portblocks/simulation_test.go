package portblocks

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// simulation has nodes that claim blocks of egress IPs in an API server, in a time of its own: requests, answers and changes take their
// time or are lost, also a write whose answer is lost comes to be, or comes late. Processes are restarted and know what the files say.
// Machines are lost, and their Nodes are deleted; some are made again, with or without the pods.
type simulation struct {
	*testing.T
	seed   uint64
	random *rand.Rand
	now    time.Time
	queue  queue
	ips    []netip.Addr
	size   int
	// leases is what the API server has, revision the last version of it.
	leases   map[netip.Addr]version
	revision uint64
	nodes    []*simulatedNode
	pods     int
	// ended has when a pod of a block ended last.
	ended map[block]time.Time
	// history is what happened, for people.
	history        []string
	given, shared  int
	seconds        int
	longestWait    time.Duration
	takenOver, cut int
}

type version struct {
	number uint64
	claims Claims
}

type block struct {
	ip    netip.Addr
	ports kernel.Ports
}

// simulatedNode is a machine with a process.
type simulatedNode struct {
	name string
	*Book
	// run grows with each start of the process.
	run int
	// off: the machine is. cut: the API server is not reached. exists: there is a Node.
	off, cut, exists bool
	pods             map[string]*simulatedPod
	next             time.Time
}

// simulatedPod runs when its block is decided, and has it in a file then.
type simulatedPod struct {
	id    string
	ips   []netip.Addr
	size  int
	asked time.Time
	runs  bool
	given Given
	// ended is when it ended.
	ended time.Time
}

type occasion struct {
	at   time.Time
	seq  int
	what func()
}

type queue struct {
	list []occasion
	seq  int
}

func (q *queue) Len() int { return len(q.list) }
func (q *queue) Less(i, j int) bool {
	return cmp.Or(q.list[i].at.Compare(q.list[j].at), cmp.Compare(q.list[i].seq, q.list[j].seq)) < 0
}
func (q *queue) Swap(i, j int) { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *queue) Push(x any)    { q.list = append(q.list, x.(occasion)) }
func (q *queue) Pop() any {
	last := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	return last
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{
		T: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1e9, 0), leases: map[netip.Addr]version{}, ended: map[block]time.Time{},
		ips:  []netip.Addr{netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("203.0.113.11"), netip.MustParseAddr("2001:db8::10")},
		size: []int{2048, 4096, 8192}[seed%3],
	}
	for i := range 3 {
		n := &simulatedNode{name: fmt.Sprintf("node-%d", i+1), pods: map[string]*simulatedPod{}, exists: true}
		s.nodes = append(s.nodes, n)
	}
	for _, n := range s.nodes {
		s.boot(n)
	}
	return s
}

func (s *simulation) note(format string, args ...any) {
	s.history = append(s.history, s.now.UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (s *simulation) after(d time.Duration, what func()) {
	s.queue.seq++
	heap.Push(&s.queue, occasion{s.now.Add(d), s.queue.seq, what})
}

// run lets time pass.
func (s *simulation) run(d time.Duration) {
	for end := s.now.Add(d); ; {
		if len(s.queue.list) == 0 || s.queue.list[0].at.After(end) {
			s.now = end
			return
		}
		next := heap.Pop(&s.queue).(occasion)
		s.now = next.at
		next.what()
	}
}

func (s *simulation) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int64N(int64(most-least)))
}

// boot starts a node's process: it knows the pods of the files, and then learns what the API server has, or not.
func (s *simulation) boot(n *simulatedNode) {
	n.run++
	n.Book, n.next = NewBook(n.name), time.Time{}
	for id, p := range n.pods {
		switch {
		case !p.runs && p.ended.IsZero():
			p.asked = s.now // the plugin asks again
		case !p.ended.IsZero():
			delete(n.pods, id)
		default:
			n.Restore(id, p.ips, p.size, p.given, s.now)
		}
	}
	s.list(n)
	for id, p := range n.pods {
		if !p.runs && p.ended.IsZero() {
			n.Add(id, p.ips, p.size, s.now)
		}
	}
	s.step(n)
}

// list has a process learn all that there is in the API, if that is reached.
func (s *simulation) list(n *simulatedNode) {
	if n.cut || n.off {
		return
	}
	for _, ip := range s.ips {
		if v, is := s.leases[ip]; is {
			n.Seen(ip, v.number, v.claims, true, s.now)
		}
	}
	n.Listed(s.now)
	s.tellNodes(n)
}

// tellNodes has a process learn which Nodes exist.
func (s *simulation) tellNodes(n *simulatedNode) {
	for _, o := range s.nodes {
		n.SetNode(o.name, o.exists, s.now)
	}
	n.NodesKnown(s.now)
}

// tell has all processes that are reached learn of a version, sooner or later; what is late may be overtaken.
func (s *simulation) tell(ip netip.Addr, v version) {
	for _, n := range s.nodes {
		run := n.run
		s.after(s.between(time.Millisecond, 200*time.Millisecond), func() {
			if n.run == run && !n.cut && !n.off {
				n.Seen(ip, v.number, v.claims, false, s.now)
				s.step(n)
			}
		})
	}
}

// step does what a process wants now, and sees what has become of its pods.
func (s *simulation) step(n *simulatedNode) {
	if n.off {
		return
	}
	writes, wake := n.Next(s.now)
	for _, w := range writes {
		s.send(n, w)
	}
	for _, id := range slices.Sorted(maps.Keys(n.pods)) {
		s.look(n, n.pods[id])
	}
	s.check()
	if !wake.IsZero() && (n.next.IsZero() || !n.next.After(s.now) || wake.Before(n.next)) {
		n.next = wake
		run := n.run
		s.after(wake.Sub(s.now), func() {
			if n.run == run {
				s.step(n)
			}
		})
	}
}

// look has a pod run whose block is decided.
func (s *simulation) look(n *simulatedNode, p *simulatedPod) {
	given, decided := n.Of(p.id)
	if !decided || !p.ended.IsZero() {
		return
	}
	if !p.runs {
		if First(p.id) == p.id { // nobody waits for a second block
			s.longestWait = max(s.longestWait, s.now.Sub(p.asked))
		}
		s.note("%s: %s runs with %v", n.name, p.id, given)
		if isNone(given.Ports) {
			s.shared++
		} else {
			s.given++
		}
		for _, ip := range given.Of {
			for of, at := range s.ended {
				if of.ip == ip && overlaps(of.ports, given.Ports) && s.now.Sub(at) < Quiet {
					s.fail("%s got %s of %s, %s after a pod that had it ended", p.id, given.Ports, ip, s.now.Sub(at))
				}
			}
		}
	}
	p.runs, p.given = true, given
}

// send brings a write to the API server, and its answer back, if nothing is lost.
func (s *simulation) send(n *simulatedNode, w Write) {
	run, lost := n.run, n.cut || s.random.IntN(20) == 0
	answer := func(outcome func(now time.Time)) {
		s.after(s.between(time.Millisecond, 30*time.Millisecond), func() {
			if n.run == run && !n.off && !lost {
				outcome(s.now)
				s.step(n)
			}
		})
	}
	if lost {
		s.after(5*time.Second, func() {
			if n.run == run && !n.off {
				n.Wrote(w, Unknown, 0, s.now)
				s.step(n)
			}
		})
	}
	arrives := s.between(time.Millisecond, 50*time.Millisecond)
	switch s.random.IntN(20) {
	case 0:
		arrives = s.between(time.Second, 2*time.Minute) // late, which its sender does not know
		lost = true
		s.after(5*time.Second, func() {
			if n.run == run && !n.off {
				n.Wrote(w, Unknown, 0, s.now)
				s.step(n)
			}
		})
	case 1:
		s.after(arrives, func() { answer(func(now time.Time) { n.Wrote(w, Refused, 0, now) }) })
		return
	}
	if n.cut {
		return
	}
	s.after(arrives, func() {
		current := s.leases[w.EgressIP]
		if current.number != w.Version {
			answer(func(now time.Time) {
				newest := s.leases[w.EgressIP] // as a list that the sender makes then
				n.Conflict(w, newest.number, newest.claims, now)
			})
			return
		}
		s.revision++
		v := version{s.revision, maps.Clone(w.Claims)}
		for ports, c := range current.claims {
			for other, claim := range v.claims {
				if overlaps(ports, other) && claim.Node != c.Node {
					s.takenOver++
				}
			}
		}
		s.note("%s wrote version %d of %s: %v", n.name, v.number, w.EgressIP, v.claims)
		s.leases[w.EgressIP] = v
		s.tell(w.EgressIP, v)
		answer(func(now time.Time) { n.Wrote(w, Done, v.number, now) })
	})
}

func (s *simulation) fail(format string, args ...any) {
	s.Helper()
	for _, line := range s.history[max(0, len(s.history)-60):] {
		s.Log(line)
	}
	s.Fatalf("seed %d: "+format, append([]any{s.seed}, args...)...)
}

// check fails if two pods that run have a port of an egress IP. Those of a machine whose Node is gone reach nobody.
func (s *simulation) check() {
	s.Helper()
	owners := map[netip.Addr]map[kernel.Ports]string{}
	for _, n := range s.nodes {
		if n.off || !n.exists {
			continue
		}
		for _, p := range n.pods {
			if !p.runs || !p.ended.IsZero() {
				continue
			}
			for _, ip := range p.given.Of {
				if owners[ip] == nil {
					owners[ip] = map[kernel.Ports]string{}
				}
				for ports, other := range owners[ip] {
					if overlaps(ports, p.given.Ports) {
						s.fail("%s on %s and %s have ports %s of %s", p.id, n.name, other, p.given.Ports, ip)
					}
				}
				owners[ip][p.given.Ports] = p.id + " on " + n.name
			}
		}
	}
}

// happen does something at random.
func (s *simulation) happen() {
	n := s.nodes[s.random.IntN(len(s.nodes))]
	switch what := s.random.IntN(100); {
	case n.off || !n.exists:
		s.comeBack(n)
	case what < 45:
		s.startPod(n)
	case what < 70:
		s.endPod(n)
	case what < 78:
		n.cut = !n.cut
		s.cut++
		s.note("%s cut: %v", n.name, n.cut)
		s.relist(n)
	case what < 86:
		s.note("%s: its process starts again", n.name)
		s.boot(n)
	case what < 89:
		s.note("%s: the machine is lost", n.name)
		s.lose(n)
	case what < 92:
		s.note("%s: its Node is deleted", n.name)
		s.setExists(n, false)
		s.run(s.between(0, 3*Quiet))
	case what < 93:
		s.changePod(n)
	case what < 96:
		s.fillPod(n)
	default:
		s.run(s.between(0, 2*Quiet))
	}
}

// relist has a node that was cut off learn what it missed, and that it was cut off, with some delay.
func (s *simulation) relist(n *simulatedNode) {
	run := n.run
	s.after(s.between(0, 2*time.Second), func() {
		if n.run != run || n.off {
			return
		}
		if n.SetReachable(!n.cut); !n.cut {
			s.list(n)
		}
		s.step(n)
	})
}

func (s *simulation) setExists(n *simulatedNode, exists bool) {
	for _, p := range n.pods {
		if !exists {
			s.noteEnd(p) // it reaches nobody any more, unless the Node is made again
		}
	}
	n.exists = exists
	for _, o := range s.nodes {
		run := o.run
		s.after(s.between(0, time.Second), func() {
			if o.run == run && !o.cut && !o.off {
				s.tellNodes(o)
				s.step(o)
			}
		})
	}
}

// lose ends a machine with its pods and their files. Its flows may live on elsewhere.
func (s *simulation) lose(n *simulatedNode) {
	for _, p := range n.pods {
		if n.exists {
			s.noteEnd(p)
		}
		p.ended = s.now
	}
	n.off, n.pods = true, map[string]*simulatedPod{}
	n.run++
}

// noteEnd notes that what a pod has is not used any more.
func (s *simulation) noteEnd(p *simulatedPod) {
	if p.runs && p.ended.IsZero() {
		for _, ip := range p.given.Of {
			s.ended[block{ip, p.given.Ports}] = s.now
		}
	}
}

// comeBack has a machine be on again, or its Node be made again; then it reaches the API server, which its kubelet did.
func (s *simulation) comeBack(n *simulatedNode) {
	switch {
	case n.off && n.exists && s.random.IntN(2) == 0:
		s.setExists(n, false)
		return
	case n.off && s.random.IntN(3) > 0:
		n.off = false
		s.note("%s: the machine is on", n.name)
		s.boot(n)
	}
	if !n.off && !n.exists {
		n.cut = false
		s.note("%s: there is a Node again", n.name)
		s.setExists(n, true)
		s.list(n)
		s.step(n)
	}
}

func (s *simulation) someIPs() []netip.Addr {
	return [][]netip.Addr{s.ips[:1], {s.ips[0], s.ips[2]}, s.ips[1:], s.ips[1:2], {s.ips[0], s.ips[2]}}[s.random.IntN(5)]
}

func (s *simulation) startPod(n *simulatedNode) {
	s.pods++
	size := s.size
	if s.random.IntN(4) == 0 {
		size /= 2
	}
	p := &simulatedPod{id: fmt.Sprintf("pod-%d", s.pods), ips: s.someIPs(), size: size, asked: s.now}
	s.note("%s: %s starts", n.name, p.id)
	n.pods[p.id] = p
	n.Add(p.id, p.ips, p.size, s.now)
	s.step(n)
}

// aPod returns one that runs; nil if there is none.
func (s *simulation) aPod(n *simulatedNode) *simulatedPod {
	var running []*simulatedPod
	for _, id := range slices.Sorted(maps.Keys(n.pods)) {
		if p := n.pods[id]; p.runs && p.ended.IsZero() {
			running = append(running, p)
		}
	}
	if len(running) == 0 {
		return nil
	}
	return running[s.random.IntN(len(running))]
}

func (s *simulation) endPod(n *simulatedNode) {
	if p := s.aPod(n); p != nil {
		s.note("%s: %s ends", n.name, p.id)
		for _, id := range []string{First(p.id), Second(First(p.id))} {
			if p := n.pods[id]; p != nil {
				s.noteEnd(p)
				p.ended = s.now
			}
			n.Remove(id, s.now)
		}
		s.step(n)
	}
}

// fillPod has a pod get a second block, if it has none. The Book has that as another pod's.
func (s *simulation) fillPod(n *simulatedNode) {
	p := s.aPod(n)
	if p == nil || First(p.id) != p.id || len(p.given.Of) == 0 {
		return
	}
	id := Second(p.id)
	if before := n.pods[id]; before != nil && (!before.runs || len(before.given.Of) > 0) {
		return
	}
	s.note("%s: %s is full", n.name, p.id)
	n.AddSecond(p.id, s.now)
	if n.tenants[id] == nil {
		return // it has lost its first one a moment ago
	}
	s.seconds++
	n.pods[id] = &simulatedPod{id: id, ips: p.given.Of, size: sizeOf(p.given.Ports), asked: s.now}
	s.step(n)
}

// changePod has a pod leave from other egress IPs.
func (s *simulation) changePod(n *simulatedNode) {
	p := s.aPod(n)
	if p == nil {
		return
	}
	p.ips = s.someIPs()
	s.note("%s: %s leaves from %v", n.name, p.id, p.ips)
	n.Change(p.id, p.ips, s.now)
	s.step(n)
}

// TestBook_NeverTwoPodsWithAPort of an egress IP, whatever happens, and none waits for longer than Patience. A block is quiet after
// its pod. HISTORIES=10000 takes some minutes, SEED is that
// of the first.
func TestBook_NeverTwoPodsWithAPort(t *testing.T) {
	histories := 500
	if text := os.Getenv("HISTORIES"); text != "" {
		var err error
		if histories, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	var first uint64
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if first, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	var given, shared, seconds, takenOver, cut int
	for seed := range uint64(histories) {
		s := newSimulation(t, first+seed)
		for range 60 {
			s.run([]time.Duration{time.Duration(s.random.IntN(100)) * time.Millisecond, s.between(0, time.Second), s.between(0, time.Minute)}[s.random.IntN(3)])
			s.happen()
		}
		s.run(time.Minute)
		if s.longestWait > Patience {
			s.fail("a pod waited for %s", s.longestWait)
		}
		given, shared, seconds, takenOver, cut = given+s.given, shared+s.shared, seconds+s.seconds, takenOver+s.takenOver, cut+s.cut
	}
	t.Logf("%d histories: %d pods got a block, %d shared, %d were full, %d claims were taken over, %d times a node was cut off or reached again", histories, given, shared, seconds, takenOver, cut)
	if given == 0 || shared == 0 || seconds == 0 || takenOver == 0 || cut == 0 {
		t.Error("the histories do not have what they are for")
	}
}
