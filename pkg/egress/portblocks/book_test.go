package portblocks

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// bookTest is the Book of node-a and an API server that takes its writes at once.
type bookTest struct {
	*testing.T
	*Book
	now    time.Time
	leases map[netip.Addr]version
	writes int
}

func newBookTest(t *testing.T) *bookTest {
	b := &bookTest{T: t, Book: NewBook("node-a"), now: time.Unix(1e9, 0), leases: map[netip.Addr]version{}}
	b.Listed(b.now)
	b.SetNode("node-b", true, b.now)
	b.NodesKnown(b.now)
	return b
}

// settled lets the API server take all writes.
func (b *bookTest) settled() {
	for range 10 {
		writes, _ := b.Next(b.now)
		for _, w := range writes {
			b.writes++
			v := version{b.leases[w.EgressIP].number + 1, w.Claims}
			b.leases[w.EgressIP] = v
			b.Wrote(w, Done, v.number, b.now)
		}
	}
}

// of expects that a pod has a block of so many egress IPs.
func (b *bookTest) of(id string, ips int) Given {
	b.Helper()
	given, decided := b.Of(id)
	if !decided || len(given.Of) != ips {
		b.Errorf("%s has %v, decided %t; expected a block of %d egress IPs", id, given, decided, ips)
	}
	return given
}

func claimsOf(node string, blocks ...kernel.Ports) Claims {
	claims := Claims{}
	for _, ports := range blocks {
		claims[ports] = Claim{Node: node}
	}
	return claims
}

// TestBook_Follow: pods that no list has any more give their blocks back, those of an earlier process have theirs again, and one that has
// ended before it asked gets nothing.
func TestBook_Follow(t *testing.T) {
	b := newBookTest(t)
	first, second := kernel.Ports{First: 1024, Last: 1535}, kernel.Ports{First: 1536, Last: 2047}
	of := []netip.Addr{egressIP}
	restored := &Had{IPs: of, Size: 512, First: Given{first, of}, Second: Given{second, of}}
	if !b.Follow(map[string]*Had{"old": restored, "new": nil}, b.now) || b.Follow(map[string]*Had{"old": restored, "new": nil}, b.now) {
		t.Error("the first list changes something, the same again nothing")
	}
	b.Add("new", of, 512, b.now)
	b.Add("ended", of, 512, b.now)
	b.settled()
	if first, second := b.of("old", 1).Ports, b.of(Second("old"), 1).Ports; first != restored.First.Ports || second != restored.Second.Ports {
		t.Errorf("the pod of an earlier process has %s and %s", first, second)
	}
	b.of("new", 1)
	if given, decided := b.Of("ended"); decided || len(given.Of) > 0 {
		t.Errorf("a pod that has ended has %v", given)
	}
	if !b.Follow(map[string]*Had{"new": nil}, b.now) {
		t.Error("an end changes nothing")
	}
	for _, id := range []string{"old", Second("old")} {
		if _, decided := b.Of(id); decided {
			t.Errorf("%s has ended, and has something", id)
		}
	}
	b.of("new", 1)
}

func TestBook_SpareForTheNext(t *testing.T) {
	b := newBookTest(t)
	for i := range 5 {
		id := fmt.Sprint("pod-", i)
		b.Add(id, []netip.Addr{egressIP, egressIP6}, 512, b.now)
		if _, at := b.Of(id); at != (i > 0) {
			t.Errorf("%s: decided at once: %t", id, at)
		}
		b.settled()
		b.of(id, 2)
		b.now = b.now.Add(calm)
	}
	if len(b.leases[egressIP].claims) != 6 || b.writes != 2*5 {
		t.Errorf("%d claims, %d writes; expected one spare, and one write of each egress IP for a pod", len(b.leases[egressIP].claims), b.writes)
	}
}

// TestBook_SparesForMany: where pods start one after the other this node keeps as many spare blocks as may start at once, and claims several in
// a write. When none has started for a while it keeps one.
func TestBook_SparesForMany(t *testing.T) {
	b := newBookTest(t)
	ips := []netip.Addr{egressIP, egressIP6}
	for i := range 40 {
		b.Add(fmt.Sprint("pod-", i), ips, 512, b.now)
		b.settled()
		b.of(fmt.Sprint("pod-", i), 2)
		b.now = b.now.Add(rest)
		b.settled()
		b.now = b.now.Add(time.Second)
	}
	if n := b.Numbers(512, b.now)[egressIP]; b.writes > 2*14 || n.Spare <= MostSpares/2 || n.Spare > MostSpares {
		t.Errorf("%d writes for 40 pods, %d spare blocks; expected one of each egress IP for 4 pods, once all are there, and 5 to %d", b.writes, n.Spare, MostSpares)
	}
	for i := 0; b.Numbers(512, b.now)[egressIP].Spare > MostSpares/2; i++ {
		b.Add(fmt.Sprint("alone-", i), ips, 512, b.now)
	}
	if writes, wake := b.Next(b.now); len(writes) > 0 || wake != b.now.Add(rest) {
		t.Errorf("%d writes, the next time is %s; expected none while a pod starts, and the end of that", len(writes), wake)
	}
	b.now = b.now.Add(rest)
	b.settled()
	before := b.Numbers(512, b.now)[egressIP].Spare
	if before != MostSpares {
		t.Errorf("%d spare blocks when pods have started, expected %d", before, MostSpares)
	}
	for i := range before {
		b.Add(fmt.Sprint("together-", i), ips, 512, b.now)
		b.of(fmt.Sprint("together-", i), 2) // waits for nobody
	}
	for i := range 3 {
		b.Add(fmt.Sprint("more-", i), ips, 512, b.now)
	}
	writes := b.writes
	b.settled()
	for i := range 3 {
		b.of(fmt.Sprint("more-", i), 2)
	}
	if n := b.Numbers(512, b.now)[egressIP]; b.writes != writes+2 || n.Spare != MostSpares {
		t.Errorf("%d writes, %d spare blocks; expected one of each egress IP for the pods that wait and the spare blocks, and %d", b.writes-writes, n.Spare, MostSpares)
	}
	_, wake := b.Next(b.now)
	if wake != b.now.Add(calm) {
		t.Errorf("the next time is %s, expected the end of the time in which pods may start", wake)
	}
	for _, after := range []time.Duration{calm, keepIdle} {
		b.now = b.now.Add(after)
		b.settled()
	}
	if n := b.Numbers(512, b.now)[egressIP]; n.Spare != 1 {
		t.Errorf("%d spare blocks when no pod starts, expected one", n.Spare)
	}
}

// TestBook_SparesWhereFewAreFree: a node has more than one where others have enough. It keeps what it has when they become fewer, to a limit.
func TestBook_SparesWhereFewAreFree(t *testing.T) {
	all := slices.Collect(blocksOf(512))
	for _, c := range []struct{ others, later, spares int }{{20, 20, MostSpares}, {70, 70, 1}, {90, 90, 0}, {20, 70, MostSpares}, {20, 80, 1}, {20, 105, 0}} {
		b := newBookTest(t)
		claim := func(n int) {
			v := version{b.leases[egressIP].number + 1, maps.Clone(b.leases[egressIP].claims)}
			if v.claims == nil {
				v.claims = Claims{}
			}
			for _, ports := range all[:n] {
				if _, has := v.claims[ports]; !has {
					v.claims[ports] = Claim{Node: "node-b"}
				}
			}
			b.leases[egressIP] = v
			b.Seen(egressIP, v.number, v.claims, false, b.now)
		}
		claim(c.others)
		for i := range MostSpares {
			b.Add(fmt.Sprint("pod-", i), []netip.Addr{egressIP}, 512, b.now)
		}
		b.settled()
		claim(c.later)
		b.settled()
		b.now = b.now.Add(keepIdle)
		b.groups[groupKey([]netip.Addr{egressIP}, 512)].start(b.now) // they are expected still
		b.settled()
		if n := b.Numbers(512, b.now)[egressIP]; n.Spare != c.spares {
			t.Errorf("%d blocks are others', and %d later: %d spare ones, expected %d", c.others, c.later, n.Spare, c.spares)
		}
	}
}

// TestBook_Partial: a pod has its block of those egress IPs of which it can be had, and the most of them.
func TestBook_Partial(t *testing.T) {
	b := newBookTest(t)
	var all []kernel.Ports
	for ports := range blocksOf(8192) {
		all = append(all, ports)
	}
	b.Seen(egressIP, 5, claimsOf("node-b", all...), false, b.now)
	b.leases[egressIP] = version{5, claimsOf("node-b", all...)}
	b.Add("pod", []netip.Addr{egressIP, egressIP6}, 8192, b.now)
	b.settled()
	if given := b.of("pod", 1); given.Of[0] != egressIP6 {
		t.Errorf("%v", given)
	}
	b.Add("other", []netip.Addr{egressIP}, 8192, b.now)
	b.of("other", 0)
	b.Seen(egressIP, 6, Claims{}, false, b.now)
	b.settled()
	b.of("other", 0) // it shares for its life
}

// TestBook_Quiet: nobody gets the block of a pod that has ended for a while, also after a restart.
func TestBook_Quiet(t *testing.T) {
	b := newBookTest(t)
	b.Add("pod", []netip.Addr{egressIP}, 8192, b.now)
	b.settled()
	had := b.of("pod", 1).Ports
	b.Remove("pod", b.now)
	uses := func() (found bool) {
		for i := range 10 {
			b.Add(fmt.Sprint("other-", i), []netip.Addr{egressIP}, 8192, b.now)
			b.settled()
			given, _ := b.Of(fmt.Sprint("other-", i))
			found = found || given.Ports == had
		}
		for i := range 10 {
			b.Remove(fmt.Sprint("other-", i), b.now)
		}
		return found
	}
	b.now = b.now.Add(Quiet - time.Second)
	if uses() {
		t.Error("a block was given again while it was quiet")
	}
	b.Book = NewBook("node-a")
	b.Seen(egressIP, b.leases[egressIP].number, b.leases[egressIP].claims, true, b.now)
	b.Listed(b.now)
	b.now = b.now.Add(Quiet - time.Second)
	if uses() {
		t.Error("a block was given again by a process that does not know who had it")
	}
	b.now = b.now.Add(Quiet + time.Second)
	b.settled()
	if !uses() {
		t.Error("a block is quiet for ever")
	}
}

// TestBook_Restored: a process knows its pods' blocks from the files, and takes them back into a Lease that lost them; what another
// node has claimed meanwhile is lost.
func TestBook_Restored(t *testing.T) {
	b := newBookTest(t)
	b.Book = NewBook("node-a")
	ports := kernel.Ports{First: 8192, Last: 16383}
	for i, ip := range []netip.Addr{egressIP, egressIP6} {
		b.Restore(fmt.Sprint("pod-", i), []netip.Addr{ip}, 8192, Given{ports, []netip.Addr{ip}}, b.now)
		b.of(fmt.Sprint("pod-", i), 1)
	}
	b.Seen(egressIP6, 5, claimsOf("node-b", kernel.Ports{First: 8192, Last: 8255}), false, b.now)
	b.Listed(b.now)
	b.settled()
	b.of("pod-0", 1)
	b.of("pod-1", 0)
	if lost := b.Lost(); len(lost) != 1 || lost[0] != (Lost{"pod-1", egressIP6, ports}) {
		t.Errorf("lost %v", lost)
	}
	if b.leases[egressIP].claims[ports].Node != "node-a" {
		t.Errorf("claims %v", b.leases[egressIP].claims)
	}
}

// TestBook_Change: where a pod leaves from another egress IP it has the same ports, if it can.
func TestBook_Change(t *testing.T) {
	b := newBookTest(t)
	b.Add("pod", []netip.Addr{egressIP}, 512, b.now)
	b.settled()
	ports := b.of("pod", 1).Ports
	b.Change("pod", []netip.Addr{egressIP6}, b.now)
	b.of("pod", 0)
	b.settled()
	if given := b.of("pod", 1); given.Ports != ports || given.Of[0] != egressIP6 {
		t.Errorf("%v, expected %s of %s", given, ports, egressIP6)
	}
	b.Change("pod", []netip.Addr{egressIP}, b.now)
	if given := b.of("pod", 1); given.Ports != ports {
		t.Errorf("%v, expected %s again", given, ports)
	}
}

// TestBook_DeletedLease is written again with what all nodes had claimed.
func TestBook_DeletedLease(t *testing.T) {
	b := newBookTest(t)
	of := kernel.Ports{First: 4096, Last: 4607}
	b.Seen(egressIP, 5, claimsOf("node-b", of), false, b.now)
	b.leases[egressIP] = version{5, claimsOf("node-b", of)}
	b.Add("pod", []netip.Addr{egressIP}, 512, b.now)
	b.settled()
	b.Deleted(egressIP, b.now)
	b.leases = map[netip.Addr]version{}
	b.Add("other", []netip.Addr{egressIP}, 512, b.now)
	b.settled()
	if claims := b.leases[egressIP].claims; claims[of].Node != "node-b" || len(claims) != 5 {
		t.Errorf("claims %v", claims)
	}
}

// TestBook_WritesADeletedLeaseAgain: soon, so a process that begins finds what other nodes' pods have.
func TestBook_WritesADeletedLeaseAgain(t *testing.T) {
	b := newBookTest(t)
	b.Add("pod", []netip.Addr{egressIP}, 512, b.now)
	b.settled()
	before := b.leases[egressIP].claims
	b.Deleted(egressIP, b.now)
	b.leases = map[netip.Addr]version{}
	_, turn := b.Next(b.now)
	if b.settled(); b.writes != 1 || turn.Sub(b.now) <= 0 || turn.Sub(b.now) > longestTurn {
		t.Errorf("%d writes at once, though all nodes hear of it; the turn is at %s", b.writes, turn)
	}
	b.now = turn
	if b.settled(); !maps.Equal(b.leases[egressIP].claims, before) || b.writes != 2 {
		t.Errorf("claims %v, want %v; %d writes", b.leases[egressIP].claims, before, b.writes)
	}
}

// TestBook_RestartsClaimNothing: the spare block of a process that has ended is quiet for a while, and is the next one's then.
func TestBook_RestartsClaimNothing(t *testing.T) {
	b := newBookTest(t)
	b.Add("pod", []netip.Addr{egressIP}, 512, b.now)
	b.settled()
	has, now, before := b.of("pod", 1), b.now, b.leases[egressIP]
	for range 100 {
		b = newBookTest(t)
		now = now.Add(10 * time.Second)
		b.now, b.leases[egressIP] = now, before
		b.Restore("pod", []netip.Addr{egressIP}, 512, has, b.now)
		b.Seen(egressIP, before.number, before.claims, false, b.now)
		if b.settled(); b.writes > 0 {
			t.Fatalf("claims %v, before %v", b.leases[egressIP].claims, before.claims)
		}
	}
	b.now = b.now.Add(Quiet)
	b.settled()
	b.Add("next", []netip.Addr{egressIP}, 512, b.now)
	if next := b.of("next", 1).Ports; before.claims[next].Node != "node-a" || next == has.Ports {
		t.Errorf("the next pod has %s, before %v", next, before.claims)
	}
}

// TestBook_ForgetsWhatAnybodyWrites: neither nodes that claims named once nor egress IPs whose Lease was deleted stay for ever.
func TestBook_ForgetsWhatAnybodyWrites(t *testing.T) {
	b := newBookTest(t)
	b.Add("pod", []netip.Addr{egressIP}, 512, b.now)
	b.settled()
	blocks, other := slices.Collect(blocksOf(512)), netip.MustParseAddr("203.0.113.200")
	for i := range uint64(100) {
		claims := Claims{}
		for j, ports := range blocks {
			claims[ports] = Claim{Node: fmt.Sprintf("invented-%d-%d", i, j)}
		}
		b.Seen(other, 10+i, claims, false, b.now)
	}
	if n := len(b.gone); n > 4*len(blocks)+200 {
		t.Errorf("%d nodes are kept, %d are named", n, len(blocks))
	}
	b.Deleted(other, b.now)
	b.Deleted(egressIP, b.now)
	for _, after := range []time.Duration{0, Quiet} {
		b.now = b.now.Add(after)
		b.Seen(netip.MustParseAddr("203.0.113.201"), uint64(10+after), Claims{}, false, b.now)
		if kept := b.ledgers[other] != nil; kept != (after == 0) || b.ledgers[egressIP] == nil {
			t.Errorf("after %s: an egress IP of which this node has nothing is kept: %t, the other one: %t", after, kept, b.ledgers[egressIP] != nil)
		}
	}
}

// TestBook_DeletedLeaseOfOthers: what existing nodes have claimed of an egress IP is not forgotten when its Lease is deleted, however long ago:
// who writes the Lease next writes that again.
func TestBook_DeletedLeaseOfOthers(t *testing.T) {
	b := newBookTest(t)
	of := kernel.Ports{First: 4096, Last: 4607}
	b.Seen(egressIP, 5, claimsOf("node-b", of), false, b.now)
	b.Deleted(egressIP, b.now)
	b.now = b.now.Add(2 * Quiet)
	b.Seen(netip.MustParseAddr("203.0.113.201"), 6, Claims{}, false, b.now)
	if !b.Believes("node-b", egressIP, of) {
		t.Error("another node's claim is forgotten")
	}
	b.Add("pod", []netip.Addr{egressIP}, 512, b.now)
	if b.settled(); b.leases[egressIP].claims[of].Node != "node-b" {
		t.Errorf("the Lease is written without another node's claim: %v", b.leases[egressIP].claims)
	}
}

// TestBook_WakesForWhatIsOver: claims of a node that is gone can be taken over, and spare blocks of pods that have ended are given back, though
// nothing else happens then.
func TestBook_WakesForWhatIsOver(t *testing.T) {
	b := newBookTest(t)
	b.Seen(egressIP, 5, claimsOf("node-b", slices.Collect(blocksOf(8192))...), false, b.now)
	b.SetNode("node-b", false, b.now)
	if _, wake := b.Next(b.now); !wake.Equal(b.now.Add(Quiet)) {
		t.Errorf("a Node is deleted: wakes at %s, want %s", wake, b.now.Add(Quiet))
	}
	b = newBookTest(t)
	b.Add("pod", []netip.Addr{egressIP}, 512, b.now)
	b.settled()
	b.Remove("pod", b.now)
	for range 20 {
		b.settled()
		_, wake := b.Next(b.now)
		if wake.IsZero() {
			break
		}
		b.now = wake
	}
	if n := b.Numbers(512, b.now)[egressIP]; len(b.groups) > 0 || n.Own > 0 {
		t.Errorf("in the end it keeps %d groups, %+v", len(b.groups), n)
	}
}

// TestBook_LateConflict: what a write that came too late has found may be older than what has been heard since.
func TestBook_LateConflict(t *testing.T) {
	b := newBookTest(t)
	b.Add("pod", []netip.Addr{egressIP}, 512, b.now)
	writes, _ := b.Next(b.now)
	ports := blocksOf(512)
	newer := claimsOf("node-b", slices.Collect(ports)[100:]...)
	b.Seen(egressIP, 11, newer, false, b.now)
	b.Conflict(writes[0], 10, Claims{}, b.now)
	if !b.Believes("node-b", egressIP, slices.Collect(ports)[100]) {
		t.Error("an older version has replaced a newer one")
	}
}

// TestBook_LeftByAGoneNode: its claims are taken over after a while, if there are no others.
func TestBook_LeftByAGoneNode(t *testing.T) {
	b := newBookTest(t)
	all := slices.Collect(blocksOf(8192))
	b.Seen(egressIP, 5, claimsOf("node-b", all...), false, b.now)
	b.leases[egressIP] = version{5, claimsOf("node-b", all...)}
	b.Add("pod", []netip.Addr{egressIP}, 8192, b.now)
	b.SetNode("node-b", false, b.now)
	for _, step := range []struct {
		after time.Duration
		own   int
	}{{Quiet - time.Second, 0}, {2 * time.Second, 1}, {Quiet + time.Second, 1}} {
		b.now = b.now.Add(step.after)
		b.settled()
		if n := b.Numbers(8192, b.now)[egressIP]; n.Own != step.own {
			t.Errorf("after %s: %+v, want %d", step.after, n, step.own)
		}
		if n := b.Numbers(8192, b.now)[egressIP]; n.Own == 1 && (n.Quiet == 1) != (step.after < Quiet) {
			t.Errorf("after %s: %+v; expected that nobody gets it at once", step.after, n)
		}
	}
	b.of("pod", 0)
	b.Add("next", []netip.Addr{egressIP}, 8192, b.now)
	b.of("next", 1)
}

// TestBook_ClaimOfNobody: blocks whose claims name no node are never taken over, however long they are there.
func TestBook_ClaimOfNobody(t *testing.T) {
	b := newBookTest(t)
	all := slices.Collect(blocksOf(8192))
	b.Seen(egressIP, 5, claimsOf("", all...), false, b.now)
	b.leases[egressIP] = version{5, claimsOf("", all...)}
	b.Add("pod", []netip.Addr{egressIP}, 8192, b.now)
	for range 2 {
		b.now = b.now.Add(Quiet + time.Second)
		b.settled()
	}
	if n := b.Numbers(8192, b.now)[egressIP]; n.Own != 0 || b.writes != 0 {
		t.Errorf("%+v after %d writes, expected no own blocks and no writes", n, b.writes)
	}
	b.of("pod", 0)
}

// TestBook_Scarce: no node keeps a spare block that others need.
func TestBook_Scarce(t *testing.T) {
	b := newBookTest(t)
	all := slices.Collect(blocksOf(512))
	claims := claimsOf("node-b", all[:100]...)
	b.Seen(egressIP, 5, maps.Clone(claims), false, b.now)
	b.leases[egressIP] = version{5, maps.Clone(claims)}
	b.Add("pod", []netip.Addr{egressIP}, 512, b.now)
	b.settled()
	b.of("pod", 1)
	if n := b.Numbers(512, b.now)[egressIP]; n.Own != 1 || n.Free != 17 || n.Claimed != 101 {
		t.Errorf("%+v", n)
	}
}

func TestBook_Believes(t *testing.T) {
	b := newBookTest(t)
	ports := kernel.Ports{First: 4096, Last: 4607}
	b.Seen(egressIP, 5, claimsOf("node-b", ports), false, b.now)
	for _, reachable := range []bool{true, false} {
		b.SetReachable(reachable)
		if !b.Believes("node-b", egressIP, ports) || b.Believes("node-c", egressIP, ports) == reachable || b.Believes("node-b", egressIP6, ports) == reachable {
			t.Errorf("reachable %t", reachable)
		}
	}
}

// TestBook_Unreadable: where nobody can read what is claimed, nothing is, also if that was so when this node started. A Lease that is deleted
// then is written anew.
func TestBook_Unreadable(t *testing.T) {
	b := newBookTest(t)
	ports := kernel.Ports{First: 4096, Last: 4607}
	for _, when := range []string{"read", "not yet read"} {
		b.Unreadable(egressIP)
		if when == "not yet read" {
			b.Book = NewBook("node-a")
			b.Unreadable(egressIP)
			b.Listed(b.now)
		}
		b.Add("pod", []netip.Addr{egressIP}, 512, b.now)
		if b.settled(); b.writes > 0 || !b.Believes("node-b", egressIP, ports) {
			t.Errorf("%s: %d writes, believes another node: %v", when, b.writes, b.Believes("node-b", egressIP, ports))
		}
	}
	b.Deleted(egressIP, b.now)
	b.Add("other", []netip.Addr{egressIP}, 512, b.now)
	if b.settled(); b.writes == 0 {
		t.Error("nothing is claimed when the Lease is gone")
	}
}

func TestBlocks(t *testing.T) {
	for size, want := range map[int]int{0: 0, 64: 944, 512: 118, 8192: 6} {
		count := 0
		for ports := range blocksOf(size) {
			count++
			if err := Validate(ports); err != nil || sizeOf(ports) != size {
				t.Errorf("%s: %v", ports, err)
			}
		}
		if count != want {
			t.Errorf("%d blocks of %d ports, want %d", count, size, want)
		}
	}
	for text, right := range map[string]bool{"0": true, "64": true, "512": true, "8192": true, "32": false, "500": false, "16384": false, "-512": false, "x": false, "": false} {
		if _, err := ParseSize(text); (err == nil) != right {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestBook_SpareNearScarcity: claims of several egress IPs are written one after the other, and what was begun is not taken back for that.
func TestBook_SpareNearScarcity(t *testing.T) {
	b := newBookTest(t)
	all := slices.Collect(blocksOf(8192))
	for _, ip := range []netip.Addr{egressIP, egressIP6} {
		claims := claimsOf("node-b", all[:3]...)
		b.leases[ip] = version{5, claims}
		b.Seen(ip, 5, claims, false, b.now)
	}
	b.Add("pod", []netip.Addr{egressIP, egressIP6}, 8192, b.now)
	var under []Write
	for range 20 {
		writes, _ := b.Next(b.now)
		if under = append(under, writes...); len(under) == 0 {
			break
		}
		w := under[0]
		under = under[1:]
		b.writes++
		b.leases[w.EgressIP] = version{b.leases[w.EgressIP].number + 1, w.Claims}
		b.Wrote(w, Done, b.leases[w.EgressIP].number, b.now)
	}
	if n := b.Numbers(8192, b.now)[egressIP]; b.writes > 4 || n.Spare != 1 {
		t.Errorf("%d writes, %+v; expected a spare block at once", b.writes, n)
	}
}

// TestBook_TakenOverAndReleased: a pod has lost its block also if nobody has it now.
func TestBook_TakenOverAndReleased(t *testing.T) {
	b := newBookTest(t)
	b.Add("pod", []netip.Addr{egressIP}, 8192, b.now)
	b.settled()
	b.Seen(egressIP, 100, Claims{}, false, b.now)
	b.of("pod", 0)
	if lost := b.Lost(); len(lost) != 1 {
		t.Errorf("lost %v", lost)
	}
}
