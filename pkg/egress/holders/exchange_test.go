package holders

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// talk is a few nodes whose datagrams a test carries.
type talk struct {
	*testing.T
	nodes map[string]*exchange
	// heard is what each node has heard of each, last.
	heard map[[2]string]Announced
	now   time.Time
	// lost says of a datagram on its way to a node whether it is lost.
	lost func(d datagram, to string) bool
}

// ours are keys that all nodes have.
var ours = Keys{[]byte("a key that all nodes have")}

func newTalk(t *testing.T) *talk {
	k := &talk{T: t, nodes: map[string]*exchange{}, heard: map[[2]string]Announced{}, now: start,
		lost: func(datagram, string) bool { return false }}
	for _, name := range names {
		k.restart(name)
	}
	return k
}

var lastRandom uint64

// restart makes a node a new process, which takes some time.
func (k *talk) restart(name string) {
	k.now = k.now.Add(time.Second)
	k.nodes[name] = newExchange(ofAddresses, name, func() uint64 { lastRandom++; return lastRandom })
	for _, stranger := range k.nodes[name].setPeers(v4) {
		k.carry(name, k.nodes[name].greet(stranger, k.now), stranger)
	}
}

// carry brings datagrams from a node to others, and what these answer, as it is on the wire.
func (k *talk) carry(from string, datagrams []datagram, to ...string) {
	k.Helper()
	for _, d := range datagrams {
		for _, name := range to {
			if k.nodes[name] != nil && name != from && !k.lost(d, name) {
				k.deliver(d.encode(ours), v4[from], name)
			}
		}
	}
}

// deliver has a node receive a datagram.
func (k *talk) deliver(content []byte, from netip.Addr, to string) {
	k.Helper()
	d, err := decode(content, ours)
	if err != nil {
		k.Fatal(err)
	}
	answers, said, _ := k.nodes[to].receive(d, from, k.now)
	if said != nil {
		k.heard[[2]string{to, said.Node}] = *said
	}
	k.carry(to, answers, d.node)
}

// say has a node say which addresses it has.
func (k *talk) say(name string, s Statement) {
	k.now = k.now.Add(time.Second)
	k.carry(name, k.mustSay(name, s), names...)
}

func (k *talk) mustSay(name string, s Statement) []datagram {
	k.Helper()
	datagrams, err := k.nodes[name].say(s)
	if err != nil {
		k.Fatal(err)
	}
	return datagrams
}

// repeat has a node repeat what it says.
func (k *talk) repeat(name string) {
	k.now = k.now.Add(time.Second)
	k.carry(name, k.nodes[name].repeat(), names...)
}

// knows fails the test unless all others, or these nodes, know what a node says; nothing if want is nil.
func (k *talk) knows(when, name string, want *Statement, by ...string) {
	k.Helper()
	if len(by) == 0 {
		by = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
	}
	for _, other := range by {
		got, known := k.heard[[2]string{other, name}]
		if known != (want != nil) || known && !got.equal(*want) {
			k.Errorf("%s: %s knows what %s says: %v, revision %d of %d addresses; want %.100v", when, other, name, known, got.Revision, len(got.Addresses), want)
		}
	}
}

// many is a statement that needs several datagrams.
func many(revision uint64) Statement {
	s := Statement{map[netip.Addr]uint64{}, revision}
	for i := range 500 {
		s.Addresses[netip.AddrFrom16([16]byte{0x20, 1, 13: byte(i >> 8), 14: byte(i), 15: 1})] = uint64(i) + revision
		s.Addresses[netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})] = uint64(i) + revision
	}
	return s
}

func statementOf(revision uint64, list ...netip.Addr) Statement {
	s := Statement{map[netip.Addr]uint64{}, revision}
	for _, ip := range list {
		s.Addresses[ip] = revision
	}
	return s
}

func TestExchange_AllKnowWhatIsSaid(t *testing.T) {
	for name, s := range map[string]Statement{"an address": statementOf(3, ips[0]), "both families": statementOf(3, ips...), "a thousand": many(3)} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			k.say("node-a", s)
			k.knows("said", "node-a", &s)
			next := statementOf(4)
			k.say("node-a", next)
			k.knows("withdrawn", "node-a", &next)
			k.heard = map[[2]string]Announced{}
			k.repeat("node-a")
			k.knows("repeated", "node-a", &next)
		})
	}
}

func TestExchange_NothingToSay(t *testing.T) {
	k := newTalk(t)
	if x := k.nodes["node-a"]; k.mustSay(x.node, statementOf(1)) != nil || x.repeat() != nil {
		t.Error("a node that never had an address says so")
	}
	if k.say("node-a", statementOf(2, ips[0])); k.mustSay("node-a", statementOf(2, ips[0])) != nil {
		t.Error("it says the same twice")
	}
}

func TestExchange_LostDatagrams(t *testing.T) {
	s := many(1)
	for name, lost := range map[string]func(datagram, string) bool{
		"all of it":   func(d datagram, _ string) bool { return d.kind == statement && d.nonce == 0 },
		"a part":      func(d datagram, _ string) bool { return d.kind == statement && d.nonce == 0 && d.part == 3 },
		"the last":    func(d datagram, _ string) bool { return d.kind == statement && d.nonce == 0 && d.part+1 == d.parts },
		"for a node":  func(d datagram, to string) bool { return d.kind == statement && d.nonce == 0 && to == "node-d" },
		"an answer":   func(d datagram, _ string) bool { return d.kind == statement && d.nonce != 0 && d.part == 0 },
		"a question":  func(d datagram, _ string) bool { return d.kind == question },
		"a heartbeat": func(d datagram, _ string) bool { return d.kind == heartbeat },
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			k.lost = lost
			k.say("node-a", s)
			k.repeat("node-a")
			k.lost = func(datagram, string) bool { return false }
			k.repeat("node-a")
			k.knows("repeated", "node-a", &s)
		})
	}
}

// TestExchange_LostPartIsAskedFor: whoever misses a part, or the answer to a heartbeat, asks by himself, three times within a
// second, and knows all as soon as nothing is lost any more.
func TestExchange_LostPartIsAskedFor(t *testing.T) {
	for name, lost := range map[string]func(d datagram) bool{
		"a part":     func(d datagram) bool { return d.kind == statement && d.part == 1 },
		"all parts":  func(d datagram) bool { return d.kind == statement },
		"a question": func(d datagram) bool { return d.kind == question || d.part == 1 },
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			k.say("node-a", statementOf(1, ips[0]))
			next, b := many(2), k.nodes["node-b"]
			k.lost = func(d datagram, _ string) bool { return lost(d) }
			if k.say("node-a", next); b.remindAt.IsZero() {
				k.repeat("node-a")
			}
			missed := k.now
			var asked []time.Duration
			for !b.remindAt.IsZero() {
				if asked = append(asked, b.remindAt.Sub(missed)); len(asked) > 10 {
					t.Fatal("it asks for ever")
				}
				k.now = b.remindAt
				k.carry("node-b", b.remind(k.now)["node-a"], "node-a")
			}
			if len(asked) != len(reminders) || asked[0] <= 0 || asked[len(asked)-1] > time.Second {
				t.Errorf("it asks after %v, want it three times within a second", asked)
			}
			k.repeat("node-a")
			k.lost = func(datagram, string) bool { return false }
			k.now = b.remindAt
			k.carry("node-b", b.remind(k.now)["node-a"], "node-a")
			k.knows("asked for", "node-a", &next, "node-b")
			if k.now = k.now.Add(time.Minute); len(b.remind(k.now)) > 0 || !b.remindAt.IsZero() {
				t.Error("it asks although it knows all")
			}
		})
	}
}

// TestExchange_StrangersRemindNobody: what comes from a session that is not known has its node asked once, and not again.
func TestExchange_StrangersRemindNobody(t *testing.T) {
	k := newTalk(t)
	k.say("node-a", statementOf(1, ips[0]))
	b := k.nodes["node-b"]
	for _, forged := range []datagram{
		{kind: heartbeat, node: "node-a", session: 99, sequence: 99, revision: 99},
		{kind: statement, node: "node-a", session: 99, sequence: 99, revision: 99, parts: 2},
		{kind: statement, node: "node-a", session: 99, sequence: 99, revision: 99, parts: 2, nonce: 99},
	} {
		if answers, _, v := b.receive(forged, v4["node-a"], k.now); len(answers) > 1 || v != outdated {
			t.Errorf("%+v: %s, answered by %v", forged, v, answers)
		}
	}
	if !b.remindAt.IsZero() {
		t.Error("the node will be asked again")
	}
}

// TestExchange_Disorder: whatever order datagrams come in, how often and however late, an older statement never replaces a
// newer one, and heartbeats bring the newest.
func TestExchange_Disorder(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 7))
		k := newTalk(t)
		var wire [][]byte
		k.lost = func(d datagram, to string) bool {
			if d.node == "node-a" && to == me {
				wire = append(wire, d.encode(ours))
			}
			return r.IntN(3) == 0
		}
		newest := uint64(0)
		for revision := range uint64(6) {
			s := many(revision + 1)
			if r.IntN(2) == 0 {
				s = statementOf(revision+1, ips[:1]...)
			}
			k.say("node-a", s)
			k.now = k.now.Add(time.Second)
			r.Shuffle(len(wire), func(i, j int) { wire[i], wire[j] = wire[j], wire[i] })
			for _, content := range wire {
				k.deliver(content, v4["node-a"], me)
				heard := k.heard[[2]string{me, "node-a"}].Revision
				if heard < newest {
					t.Fatalf("seed %d: revision %d replaces %d", seed, heard, newest)
				}
				newest = heard
			}
		}
		k.lost = func(datagram, string) bool { return false }
		k.repeat("node-a")
		if got := k.heard[[2]string{me, "node-a"}].Revision; got != 6 {
			t.Fatalf("seed %d: at last revision %d is known", seed, got)
		}
	}
}

// TestExchange_Restart: of a process that is started anew even a lower revision counts, and nothing of the old one.
func TestExchange_Restart(t *testing.T) {
	k := newTalk(t)
	k.say("node-a", statementOf(7, ips[0]))
	old := k.nodes["node-a"]
	k.restart("node-a")
	s := statementOf(2, ips[1])
	k.say("node-a", s)
	k.knows("after a restart", "node-a", &s)
	late, _ := old.say(statementOf(8, ips[2]))
	k.carry("node-a", append(old.repeat(), late...), me)
	k.knows("the old process's datagrams, late", "node-a", &s)
	k.restart("node-c")
	k.heard = map[[2]string]Announced{}
	k.restart("node-c")
	k.knows("a node that is started anew asks", "node-a", &s, "node-c")
}

// TestExchange_Replay: what was recorded counts as nothing, not even as a sign of life.
func TestExchange_Replay(t *testing.T) {
	k := newTalk(t)
	var recorded [][]byte
	k.lost = func(d datagram, to string) bool {
		if to == me {
			recorded = append(recorded, d.encode(ours))
		}
		return false
	}
	k.say("node-a", statementOf(1, ips[0]))
	k.repeat("node-a")
	k.say("node-a", statementOf(2))
	k.restart(me) // it asks
	k.lost = func(datagram, string) bool { return false }
	k.say("node-a", statementOf(3, ips[1]))
	k.heard = map[[2]string]Announced{}
	delete(k.nodes, "node-a") // it is silent from now on
	for _, content := range recorded {
		k.deliver(content, v4["node-a"], me)
	}
	k.knows("replayed", "node-a", nil, me)
	k.restart(me)
	for _, content := range recorded {
		k.deliver(content, v4["node-a"], me)
	}
	k.knows("replayed to a new process", "node-a", nil, me)
}

// TestExchange_Liars: who cannot receive what is sent to a node's address says nothing in its name.
func TestExchange_Liars(t *testing.T) {
	k := newTalk(t)
	k.say("node-a", statementOf(1, ips[0]))
	s := statementOf(1, ips[0])
	lie := datagram{kind: statement, node: "node-a", session: 99, sequence: 1000, revision: 1000, part: 0, parts: 1, addresses: map[netip.Addr]uint64{ips[1]: 1000}}
	for name, change := range map[string]func(d *datagram){
		"from another address":         func(*datagram) {},
		"in the name of another":       func(d *datagram) { d.node = "node-c" },
		"in the name of nobody":        func(d *datagram) { d.node = "node-x" },
		"in the name of the asked":     func(d *datagram) { d.node = me },
		"with its session":             func(d *datagram) { d.session = k.nodes["node-a"].session },
		"an answer nobody asked for":   func(d *datagram) { d.nonce = 1 },
		"a heartbeat with its session": func(d *datagram) { d.kind, d.session, d.addresses = heartbeat, k.nodes["node-a"].session, nil },
	} {
		d := lie
		change(&d)
		if _, said, v := k.nodes[me].receive(d, v4["node-d"], k.now); said != nil || v != foreign && v != outdated {
			t.Errorf("%s: %v is %s", name, said, v)
		}
	}
	k.deliver(lie.encode(ours), v4["node-a"], me)
	k.knows("a forged address, and another session", "node-a", &s, me)
	lie.nonce = 12345
	k.deliver(lie.encode(ours), v4["node-a"], me)
	k.knows("a forged address, and a nonce by chance", "node-a", &s, me)
}

// TestExchange_AsksOnce: datagrams that come together are not all answered by a question.
func TestExchange_AsksOnce(t *testing.T) {
	k := newTalk(t)
	k.restart("node-a")
	k.nodes[me] = newExchange(ofAddresses, me, func() uint64 { return 1 })
	k.nodes[me].setPeers(v4)
	asked := 0
	for _, d := range k.mustSay("node-a", many(1)) {
		answers, _, _ := k.nodes[me].receive(d, v4["node-a"], k.now)
		asked += len(answers)
	}
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
}

// TestExchange_AnswersAreFew: a question that is replayed over and over is not answered each time, but a new process that asks
// meanwhile is answered when it repeats its question, and others at once.
func TestExchange_AnswersAreFew(t *testing.T) {
	k := newTalk(t)
	k.say("node-a", many(1))
	x, parts := k.nodes["node-a"], len(k.mustSay("node-a", many(2)))
	k.now = k.now.Add(time.Second)
	answers := func(from string, session uint64) (n int) {
		got, _, _ := x.receive(datagram{kind: question, node: from, session: session, nonce: session}, v4[from], k.now)
		return len(got)
	}
	sent := 0
	for range 1000 {
		sent += answers("node-c", 7)
	}
	if sent != parts {
		t.Errorf("%d datagrams answer a question that is replayed a thousand times at once, want %d", sent, parts)
	}
	if n := answers("node-d", 8); n != parts {
		t.Errorf("%d datagrams answer another node, want %d", n, parts)
	}
	answers("node-c", 9)
	k.now = k.now.Add(askAgain)
	if n := answers("node-c", 9); n != parts {
		t.Errorf("%d datagrams answer a new process that repeats its question, want %d", n, parts)
	}
}

// TestExchange_TooManyAddresses: a node never says a part of what it has, for it would say that it has not the rest. It says so to
// its own people instead, and nothing to others until there is less.
func TestExchange_TooManyAddresses(t *testing.T) {
	k := newTalk(t)
	small, large := statementOf(1, ips[0]), Statement{map[netip.Addr]uint64{}, 2}
	for i := range mostParts * 70 {
		large.Addresses[netip.AddrFrom16([16]byte{0x20, 1, 13: byte(i >> 8), 14: byte(i), 15: 1})] = 1
	}
	k.say("node-a", small)
	x := k.nodes["node-a"]
	for range 2 {
		if datagrams, err := x.say(large); len(datagrams) > 0 || !errors.Is(err, errTooLong) {
			t.Errorf("it says it in %d datagrams, %v", len(datagrams), err)
		}
	}
	if x.repeat() != nil || x.answer(7) != nil {
		t.Error("it still says something")
	}
	less := statementOf(3, ips[1])
	k.say("node-a", less)
	k.knows("less", "node-a", &less)
}

// TestExchange_EndlessParts: a statement of very many parts costs nothing, whoever sends it.
func TestExchange_EndlessParts(t *testing.T) {
	k := newTalk(t)
	k.say("node-a", statementOf(1, ips[0]))
	b, session := k.nodes["node-b"], k.nodes["node-a"].session
	part := many(2).Addresses
	for ip := range part {
		if len(part) > 60 {
			delete(part, ip)
		}
	}
	for i := range 1<<16 - 1 {
		d := datagram{kind: statement, node: "node-a", session: session, sequence: 1000, revision: 2, part: uint16(i), parts: 1<<16 - 1, addresses: part}
		if _, err := decode(d.encode(ours), ours); !errors.Is(err, errUnreadable) {
			t.Fatalf("part %d: %v", i, err)
		}
	}
	for i := range mostParts - 1 {
		d, err := decode(datagram{kind: statement, node: "node-a", session: session, sequence: 1000, revision: 2, part: uint16(i), parts: mostParts, addresses: part}.encode(ours), ours)
		if err != nil {
			t.Fatal(err)
		}
		b.receive(d, v4["node-a"], k.now)
	}
	if parts := len(b.peers["node-a"].parts); parts >= mostParts {
		t.Errorf("%d parts are kept", parts)
	}
}

func TestExchange_SetPeers(t *testing.T) {
	x := newExchange(ofAddresses, me, func() uint64 { return 1 })
	got := x.setPeers(v4)
	slices.Sort(got)
	if want := []string{"node-a", "node-c", "node-d"}; !slices.Equal(got, want) {
		t.Errorf("strangers %q, want %q", got, want)
	}
	others := maps.Clone(v4)
	others["node-a"] = addr("192.0.2.99")
	delete(others, "node-c")
	if got := x.setPeers(others); !slices.Equal(got, []string{"node-a"}) {
		t.Errorf("strangers %q, want the one whose address has changed", got)
	}
	if got := x.names(); !slices.Equal(got, []string{"node-a", "node-d"}) {
		t.Errorf("peers are %q", got)
	}
}

func TestDatagram_ReadsWhatIsWritten(t *testing.T) {
	keys := Keys{[]byte("first"), []byte("second")}
	longest := fmt.Sprintf("%0253d", 7)
	for name, d := range map[string]datagram{
		"a question":  {kind: question, node: "node-a", session: 1, sequence: 2, nonce: 3},
		"a heartbeat": {kind: heartbeat, node: longest, session: 1<<64 - 1, sequence: 1<<64 - 1, revision: maxRevision},
		"a statement": {kind: statement, node: longest, revision: 5, part: 1, parts: 2, addresses: map[netip.Addr]uint64{ips[0]: 1, ips[2]: MaxEpoch}},
	} {
		got, err := decode(d.encode(keys), keys)
		if diff := cmp.Diff(d, got, compare, cmp.AllowUnexported(datagram{})); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	all := map[netip.Addr]uint64{}
	for _, d := range (datagram{node: longest}).split(many(MaxEpoch - 1000)) {
		content := d.encode(keys)
		if len(content) > largestDatagram {
			t.Fatalf("a datagram has %d bytes, want %d at most", len(content), largestDatagram)
		}
		maps.Copy(all, d.addresses)
	}
	if !maps.Equal(all, many(MaxEpoch-1000).Addresses) {
		t.Errorf("the datagrams have %d addresses", len(all))
	}
}

// TestDatagram_Bounds: what no honest node sends is not read.
func TestDatagram_Bounds(t *testing.T) {
	for name, test := range map[string]struct {
		d        datagram
		readable bool
	}{
		"as many parts as there may be": {datagram{kind: statement, node: "node-a", part: 63, parts: 64}, true},
		"one part more":                 {datagram{kind: statement, node: "node-a", part: 0, parts: 65}, false},
		"the highest epoch":             {datagram{kind: statement, node: "node-a", parts: 1, addresses: map[netip.Addr]uint64{ips[0]: MaxEpoch}}, true},
		"a higher epoch":                {datagram{kind: statement, node: "node-a", parts: 1, addresses: map[netip.Addr]uint64{ips[2]: MaxEpoch + 1}}, false},
		"an epoch that poisons":         {datagram{kind: statement, node: "node-a", parts: 1, addresses: map[netip.Addr]uint64{ips[0]: 1 << 62}}, false},
		"a revision that poisons":       {datagram{kind: heartbeat, node: "node-a", revision: 1<<64 - 1}, false},
	} {
		if _, err := decode(test.d.encode(ours), ours); test.readable != (err == nil) || err != nil && !errors.Is(err, errUnreadable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDatagram_Keys(t *testing.T) {
	d := datagram{kind: heartbeat, node: "node-a"}
	a, b := []byte("a"), []byte("b")
	for name, test := range map[string]struct {
		sender, receiver Keys
		right            bool
	}{
		"the same":                {Keys{a}, Keys{a}, true},
		"another one":             {Keys{a}, Keys{b}, false},
		"only the sender has one": {Keys{a}, nil, false},
		"changing: the old one":   {Keys{a}, Keys{b, a}, true},
		"changing: the new one":   {Keys{b, a}, Keys{a, b}, true},
		"the sender's second one": {Keys{a, b}, Keys{b}, false},
	} {
		if _, err := decode(d.encode(test.sender), test.receiver); (err == nil) != test.right || err != nil && !errors.Is(err, errUnauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, flag := range map[string]byte{"unsigned, as of older versions": 0, "unsigned, and it says otherwise": 1} {
		content := d.encode(Keys{a})
		content = content[:len(content)-sha256.Size]
		content[len(magic)+1] = flag
		for _, keys := range []Keys{nil, {a}} {
			if _, err := decode(content, keys); !errors.Is(err, errUnauthenticated) {
				t.Errorf("%s, to a node with %d keys: %v", name, len(keys), err)
			}
		}
	}
	content := d.encode(Keys{a})
	for i := range content {
		changed := slices.Clone(content)
		changed[i] ^= 1
		if _, err := decode(changed, Keys{a}); err == nil {
			t.Errorf("byte %d is changed, and the datagram is accepted", i)
		}
	}
}

// FuzzDatagram: whatever comes, it is read or refused; what is read is written as it was.
func FuzzDatagram(f *testing.F) {
	f.Add([]byte{})
	for _, d := range append((datagram{node: "node-a", session: 1}).split(statementOf(2, ips...)), datagram{kind: question, node: "b", nonce: 1}, datagram{kind: heartbeat, node: "c"}) {
		f.Add(d.encode(ours))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		d, err := decode(content, ours)
		if err != nil {
			return
		}
		again, err := decode(d.encode(ours), ours)
		if diff := cmp.Diff(d, again, compare, cmp.AllowUnexported(datagram{})); diff != "" || err != nil {
			t.Errorf("%v (-read +read again):\n%s", err, diff)
		}
	})
}

func TestParseKeys_Lines(t *testing.T) {
	keys, err := ParseKeys("\n first key of 20 char \r\n\nanother key of 23 chars")
	if err != nil || len(keys) != 2 || string(keys[0]) != "first key of 20 char" {
		t.Errorf("got %q, %v", keys, err)
	}
	for text, words := range map[string]string{"": "has no key", "\n \n": "has no key", "0123456789abcdef\nshort": "line 2 has 5 characters", strings.Repeat("0123456789abcdef\n", 9): "8 is the most"} {
		if _, err := ParseKeys(text); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: got %v, want an error with %q", text, err, words)
		}
	}
	one, other := keys.For("one"), keys.For("other")
	if len(one) != 2 || len(one[0]) != 32 || slices.Equal(one[0], other[0]) || slices.Equal(one[0], one[1]) {
		t.Errorf("keys for two purposes: %x, %x", one, other)
	}
}

func TestKeyring_TellsOfOthers(t *testing.T) {
	ring := NewKeyring(nil)
	announcements := ring.For("announcements")
	if len(announcements()) > 0 || len(ring.Keys()) > 0 {
		t.Error("it has keys")
	}
	for _, keys := range []Keys{ours, {[]byte("another key"), ours[0]}} {
		changed := ring.Changed()
		ring.Set(keys)
		select {
		case <-changed:
		default:
			t.Error("it does not tell")
		}
		if !announcements().Equal(keys.For("announcements")) || !ring.Keys().Equal(keys) {
			t.Errorf("it has not the keys %q", keys)
		}
	}
	changed := ring.Changed()
	ring.Set(slices.Clone(ring.Keys()))
	select {
	case <-changed:
		t.Error("it tells of the same keys")
	default:
	}
}
