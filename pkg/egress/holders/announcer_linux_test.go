package holders

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
)

const announcePort = 4798

// speakers are nodes that announce addresses to each other.
type speakers struct {
	*testing.T
	lab    *lab.Lab
	family func(h *lab.Host) netip.Addr

	mu    sync.Mutex
	nodes map[string]*speaker
}

// speaker is a node. What it has heard is by the names of the others.
type speaker struct {
	*Announcer
	host  *lab.Host
	end   func()
	heard map[string]Statement
	ports map[string]Assigned
	log   []string
	// failing is why it announces nothing, as it tells.
	failing error
}

// announce has three nodes run, in each IP family.
func announce(t *testing.T, test func(s *speakers)) {
	t.Helper()
	for name, family := range map[string]func(h *lab.Host) netip.Addr{
		"IPv4": func(h *lab.Host) netip.Addr { return h.V4 }, "IPv6": func(h *lab.Host) netip.Addr { return h.V6 },
	} {
		t.Run(name, func(t *testing.T) {
			s := &speakers{T: t, lab: lab.ForTest(t, lab.Config{Nodes: 3, IPv6: true}), family: family, nodes: map[string]*speaker{}}
			for i, host := range s.lab.Nodes() {
				s.nodes[names[i]] = &speaker{host: host}
			}
			for name := range s.nodes {
				s.start(name, NewKeyring(ours))
			}
			test(s)
		})
	}
}

// start runs a new process on a node until the test ends, or it is ended.
func (s *speakers) start(name string, keys *Keyring) {
	s.Helper()
	n := s.nodes[name]
	s.mu.Lock()
	n.Announcer, n.heard, n.ports, n.log = NewAnnouncer(name, announcePort, keys), map[string]Statement{}, map[string]Assigned{}, nil
	n.AsksBlocks = true
	s.mu.Unlock()
	n.Failing = func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		n.failing = err
	}
	n.SetNodes(0, s.family(n.host), s.others(name))
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), funcr.New(func(_, args string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		n.log = append(n.log, args)
	}, funcr.Options{})))
	ended := make(chan error, 1)
	go func() {
		ended <- n.host.Do(func() error {
			n.Run(ctx, func(event Event) {
				s.mu.Lock()
				defer s.mu.Unlock()
				switch event := event.(type) {
				case Announced:
					n.heard[event.Node] = event.Statement
				case Assigned:
					n.ports[event.Node] = event
				}
			})
			return nil
		})
	}()
	var once sync.Once
	n.end = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				s.Error(err)
			}
		})
	}
	s.Cleanup(n.end)
}

func (s *speakers) others(name string) map[string]netip.Addr {
	others := map[string]netip.Addr{}
	for other, n := range s.nodes {
		if other != name {
			others[other] = s.family(n.host)
		}
	}
	return others
}

// knows waits until nodes, all others if none is named, have heard what a node says.
func (s *speakers) knows(when, name string, want Statement, by ...string) {
	s.Helper()
	if len(by) == 0 {
		for other := range s.others(name) {
			by = append(by, other)
		}
	}
	began := time.Now()
	s.eventually(when, func() error {
		for _, other := range by {
			if got := s.nodes[other].heard[name]; !got.equal(want) {
				return fmt.Errorf("%s knows revision %d of %d addresses of %s, want %d of %d", other, got.Revision, len(got.Addresses), name, want.Revision, len(want.Addresses))
			}
		}
		return nil
	})
	s.Logf("%s: known after %s", when, time.Since(began).Round(time.Millisecond))
}

// eventually waits until check returns nil, which reads what nodes have heard and logged.
func (s *speakers) eventually(when string, check func() error) {
	s.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		err := check()
		s.mu.Unlock()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%s: %v", when, err)
		}
	}
}

// counted waits until a node has counted datagrams of a kind.
func (s *speakers) counted(name string, v verdict) {
	s.Helper()
	s.eventually(string(v), func() error {
		if s.nodes[name].Counts()[string(v)] == 0 {
			return fmt.Errorf("%s counts none: %v", name, s.nodes[name].Counts())
		}
		return nil
	})
}

func (s *speakers) run(name, command string) {
	s.Helper()
	if out, err := s.nodes[name].host.Run(s.Context(), "sh", "-c", command); err != nil {
		s.Fatalf("%v: %s", err, out)
	}
}

func TestAnnouncer_AllNodesKnow(t *testing.T) {
	announce(t, func(s *speakers) {
		one, thousand := statementOf(1, ips[0]), many(2)
		s.nodes["node-a"].SetAnnounced(one)
		s.knows("an address", "node-a", one)
		s.nodes["node-a"].SetAnnounced(thousand)
		s.knows("a thousand", "node-a", thousand)
		s.nodes[me].end()
		s.start(me, NewKeyring(ours))
		s.knows("a process that starts asks", "node-a", thousand, me)
		s.nodes["node-a"].end()
		s.start("node-a", NewKeyring(ours))
		s.nodes["node-a"].SetAnnounced(one)
		s.knows("a process that starts anew is believed", "node-a", one)
		s.nodes["node-a"].SetAnnounced(statementOf(2))
		s.knows("withdrawn", "node-a", statementOf(2))
	})
}

// TestAnnouncer_Loss: what is lost is repeated soon, whatever it is.
func TestAnnouncer_Loss(t *testing.T) {
	announce(t, func(s *speakers) {
		s.nodes["node-a"].SetAnnounced(statementOf(1, ips[0]))
		s.knows("nothing is lost", "node-a", statementOf(1, ips[0]))
		s.run(me, fmt.Sprintf("nft add table inet loss; nft add chain inet loss input '{ type filter hook input priority 0; }'; nft add rule inet loss input udp dport %d numgen random mod 100 '<' 10 drop", announcePort))
		for revision := range uint64(5) {
			said := many(revision + 2)
			s.nodes["node-a"].SetAnnounced(said)
			s.knows("one of ten datagrams is lost", "node-a", said)
		}
	})
}

// TestAnnouncer_Ask: a node that could not hear another one knows what that says at once when it asks, and not by the next heartbeat.
func TestAnnouncer_Ask(t *testing.T) {
	announce(t, func(s *speakers) {
		before, after := statementOf(1, ips[0]), statementOf(2)
		s.nodes["node-a"].SetAnnounced(before)
		s.knows("both hear", "node-a", before)
		s.run(me, fmt.Sprintf("nft add table inet deaf; nft add chain inet deaf input '{ type filter hook input priority 0; }'; nft add rule inet deaf input udp dport %d drop", announcePort))
		s.nodes["node-a"].SetAnnounced(after)
		s.knows("one is deaf", "node-a", after, "node-c")
		time.Sleep(repeats[len(repeats)-1] + 100*time.Millisecond) // it is not repeated any more
		s.run(me, "nft delete table inet deaf")
		began := time.Now()
		s.nodes[me].Ask("node-a")
		s.nodes[me].Ask("a node that is not there")
		s.knows("asked", "node-a", after, me)
		if took := time.Since(began); took > renewal/2 {
			t.Errorf("known after %v, as by a heartbeat", took)
		}
	})
}

// TestAnnouncer_OthersComeMeanwhile: who comes while a node has no address, or no key, is greeted when it has one, and not heard by the next
// heartbeat alone.
func TestAnnouncer_OthersComeMeanwhile(t *testing.T) {
	announce(t, func(s *speakers) {
		ring := NewKeyring(ours)
		s.nodes[me].end()
		s.start(me, ring)
		n, said := s.nodes[me], statementOf(1, ips[0])
		at, all := s.family(n.host), s.others(me)
		s.nodes["node-a"].SetAnnounced(said)
		s.knows("at first", "node-a", said, me)
		var revision uint64
		settled := func(self netip.Addr, others map[string]netip.Addr) {
			revision++
			n.SetNodes(revision, self, others)
			time.Sleep(lab.Stretch(50 * time.Millisecond)) // Run takes note of it: nobody is told when it has, and the next call would replace it
		}
		for what, lacks := range map[string]struct{ begin, end func() }{
			"no address": {func() { settled(netip.Addr{}, nil) }, func() { settled(netip.Addr{}, all); settled(at, all) }},
			"no key":     {func() { ring.Set(nil); settled(at, nil) }, func() { settled(at, all); ring.Set(ours) }},
		} {
			lacks.begin()
			said = statementOf(said.Revision+1, ips...)
			s.nodes["node-a"].SetAnnounced(said)
			s.knows(what, "node-a", said, "node-c")
			time.Sleep(lab.Stretch(repeats[len(repeats)-1] + 100*time.Millisecond)) // it is not repeated any more
			began := time.Now()
			lacks.end()
			s.knows(what+" any more", "node-a", said, me)
			if took := time.Since(began); took > renewal/2 {
				t.Errorf("%s: known after %v, as by a heartbeat", what, took)
			}
		}
	})
}

func TestAnnouncer_Keys(t *testing.T) {
	announce(t, func(s *speakers) {
		other := Keys{[]byte("a key that nobody else has")}
		s.nodes["node-c"].end()
		s.start("node-c", NewKeyring(other))
		said := statementOf(1, ips...)
		s.nodes["node-a"].SetAnnounced(said)
		s.knows("the same key", "node-a", said, me)
		s.counted("node-c", unauthenticated)
		s.eventually("logged", func() error {
			n := s.nodes["node-c"]
			if log := strings.Join(n.log, "\n"); len(n.log) != 1 || !strings.Contains(log, "egress-snat-key-file") || len(n.heard) > 0 {
				return fmt.Errorf("heard %v, logged %q; want nothing, and one line that says what to do", n.heard, log)
			}
			return nil
		})
	})
}

// TestAnnouncer_WithoutKey: a node without a key says nothing and believes nobody, not even those without one. It speaks and hears
// as soon as it has the key, and goes on when all get another one, at once or one after the other.
func TestAnnouncer_WithoutKey(t *testing.T) {
	announce(t, func(s *speakers) {
		rings := map[string]*Keyring{}
		for name := range s.nodes {
			s.nodes[name].end()
			rings[name] = NewKeyring(nil)
			s.start(name, rings[name])
			s.nodes[name].SetAnnounced(statementOf(1, ips[0]))
		}
		rings["node-a"].Set(ours)
		rings["node-c"].Set(ours)
		said := statementOf(1, ips[0])
		s.knows("two have the key", "node-a", said, "node-c")
		s.counted(me, unauthenticated)
		unsigned := datagram{kind: question, node: "node-c", nonce: 1}.encode(ours)
		unsigned = unsigned[:len(unsigned)-sha256.Size]
		unsigned[len(magic)+1] = 0
		s.nodes["node-c"].end()
		s.send("node-c", announcePort, me, unsigned)
		s.send("node-c", announcePort, me, []byte("it comes after that"))
		s.counted(me, unreadable)
		s.mu.Lock()
		n, counts := s.nodes[me], s.nodes[me].Counts()
		if counts[string(sent)]+counts[string(accepted)]+counts[string(outdated)]+counts[string(foreign)] > 0 || len(n.heard) > 0 || len(n.log) > 0 {
			t.Errorf("without a key it counts %v, has heard %v and logged %q", counts, n.heard, n.log)
		}
		s.mu.Unlock()
		s.start("node-c", rings["node-c"])
		s.nodes["node-c"].SetAnnounced(said)
		rings[me].Set(ours)
		s.knows("all have the key", "node-a", said)
		s.knows("all have the key", me, said)
		for _, keys := range []Keys{{[]byte("another key"), ours[0]}, {[]byte("another key")}, {[]byte("one in the place of all")}} {
			for _, ring := range rings {
				ring.Set(keys)
			}
			said = statementOf(said.Revision+1, ips...)
			s.nodes["node-a"].SetAnnounced(said)
			s.knows("another key", "node-a", said)
		}
	})
}

// TestAnnouncer_TooManyAddresses: it says so, and waits until there are less; nothing is due meanwhile.
func TestAnnouncer_TooManyAddresses(t *testing.T) {
	a := NewAnnouncer("node-a", announcePort, NewKeyring(ours))
	var failing error
	a.Failing = func(err error) { failing = err }
	small, large := statementOf(1, ips[0]), Statement{map[netip.Addr]uint64{}, 2}
	for i := range mostParts * 200 {
		large.Addresses[netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})] = 1
	}
	say := func(s Statement, now time.Time) {
		a.setUnsaid(t.Context(), a.sayOrRepeat(t.Context(), a.voices[ofAddresses], now, s), len(s.Addresses))
	}
	repeats := a.voices[ofAddresses]
	say(small, start)
	if !repeats.repeatAt.After(start) || failing != nil {
		t.Errorf("one address: it is repeated at %s, and tells %v", repeats.repeatAt, failing)
	}
	for i := range 3 {
		say(large, start.Add(time.Duration(i+1)*time.Minute))
		if !repeats.repeatAt.IsZero() || failing == nil || !strings.Contains(failing.Error(), "this node has 12800 egress IPs: they do not fit") {
			t.Errorf("thousands: something is repeated at %s, and it tells %v", repeats.repeatAt, failing)
		}
	}
	less := start.Add(time.Hour)
	if say(statementOf(3, ips...), less); !repeats.repeatAt.After(less) || failing != nil {
		t.Errorf("less: it is repeated at %s, and tells %v", repeats.repeatAt, failing)
	}
}

// TestAnnouncer_OtherPrograms of a node cannot announce anything, and neither can another node in its name.
func TestAnnouncer_OtherPrograms(t *testing.T) {
	announce(t, func(s *speakers) {
		s.nodes["node-a"].SetAnnounced(statementOf(1, ips[0]))
		s.knows("said", "node-a", statementOf(1, ips[0]))
		lie := datagram{kind: heartbeat, node: "node-a", revision: 9}.encode(ours.For("announcements"))
		s.send("node-a", 0, me, lie)
		s.counted(me, foreign)
		s.nodes["node-c"].end()
		s.send("node-c", announcePort, "node-a", datagram{kind: heartbeat, node: me}.encode(ours.For("announcements")))
		s.counted("node-a", foreign)
		s.send("node-c", announcePort, "node-a", []byte("something else"))
		s.counted("node-a", unreadable)
	})
}

// send has a program on a node send a datagram from a port to another node.
func (s *speakers) send(from string, port uint16, to string, content []byte) {
	s.Helper()
	host := s.nodes[from].host
	err := host.Do(func() error {
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.family(host), port)))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		_, err = conn.WriteToUDPAddrPort(content, netip.AddrPortFrom(s.family(s.nodes[to].host), announcePort))
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
}

// TestAnnouncer_PortIsTaken: it says so once, and announces as soon as the port is free.
func TestAnnouncer_PortIsTaken(t *testing.T) {
	announce(t, func(s *speakers) {
		s.nodes["node-a"].end()
		var taken net.PacketConn
		err := s.nodes["node-a"].host.Do(func() (err error) {
			taken, err = net.ListenPacket("udp", fmt.Sprintf(":%d", announcePort))
			return err
		})
		if err != nil {
			s.Fatal(err)
		}
		defer func() { _ = taken.Close() }()
		s.start("node-a", NewKeyring(ours))
		s.nodes["node-a"].SetAnnounced(statementOf(1, ips[0]))
		owner := fmt.Sprintf("process %d ", os.Getpid())
		s.eventually("taken", func() error {
			log, failing := strings.Join(s.nodes["node-a"].log, "\n"), s.nodes["node-a"].failing
			if !strings.Contains(log, "egress-snat-announce-port") || !strings.Contains(log, owner) || failing == nil || !strings.Contains(failing.Error(), owner) {
				return fmt.Errorf("logged %q, told %s, want what to do, and %q", log, fmt.Sprint(failing), owner)
			}
			return nil
		})
		if err := taken.Close(); err != nil {
			s.Fatal(err)
		}
		s.knows("free again", "node-a", statementOf(1, ips[0]))
		s.eventually("logged", func() error {
			if log, failing := s.nodes["node-a"].log, s.nodes["node-a"].failing; len(log) != 2 || failing != nil {
				return fmt.Errorf("logged %q, want two lines; told %s", log, fmt.Sprint(failing))
			}
			return nil
		})
	})
}

// TestAnnouncer_AddressOfANodeChanges: it speaks from the new one, and is heard there.
func TestAnnouncer_AddressOfANodeChanges(t *testing.T) {
	announce(t, func(s *speakers) {
		s.nodes["node-a"].SetAnnounced(statementOf(1, ips[0]))
		s.knows("said", "node-a", statementOf(1, ips[0]))
		host := s.nodes["node-a"].host
		moved := s.family(host).Next().Next().Next().Next().Next().Next()
		if err := s.lab.AddAddr(host, moved); err != nil {
			s.Fatal(err)
		}
		for name, n := range s.nodes {
			others := s.others(name)
			if name == "node-a" {
				n.SetNodes(0, moved, others)
				continue
			}
			others["node-a"] = moved
			n.SetNodes(0, s.family(n.host), others)
		}
		s.nodes["node-a"].SetAnnounced(statementOf(2, ips[1]))
		s.knows("from another address", "node-a", statementOf(2, ips[1]))
		s.nodes["node-c"].SetAnnounced(statementOf(3, ips[2]))
		s.knows("heard there", "node-c", statementOf(3, ips[2]))
	})
}

// TestAnnouncer_NoAddressAnyMore: a node that has lost its address says nothing from it, however often it is woken, until it has it again.
func TestAnnouncer_NoAddressAnyMore(t *testing.T) {
	a, here := NewAnnouncer("node-a", 0, NewKeyring(ours)), netip.MustParseAddr("127.0.0.1")
	defer a.close()
	for i, self := range []netip.Addr{here, {}, {}, {}, here} {
		before := a.Counts()
		a.SetNodes(uint64(i), self, map[string]netip.Addr{"node-c": netip.MustParseAddr("127.0.0.2")})
		a.SetAnnounced(statementOf(uint64(i+1), ips[0]))
		next, after := a.step(t.Context(), time.Now()), a.Counts()
		says := after[string(sent)]+after[string(failed)] > before[string(sent)]+before[string(failed)] // they fail: the port is 0
		if says != self.IsValid() || next.IsZero() == self.IsValid() {
			t.Errorf("step %d, with address %v: it says something: %t, and is due at %v", i, self, says, next)
		}
	}
}

// TestAnnouncer_OlderNodes: who is told of nodes late does not go back to them.
func TestAnnouncer_OlderNodes(t *testing.T) {
	a := NewAnnouncer("a", 0, NewKeyring(nil))
	now, before := netip.MustParseAddr("192.0.2.3"), netip.MustParseAddr("192.0.2.2")
	a.SetNodes(2, now, map[string]netip.Addr{"a": now})
	a.SetNodes(1, before, map[string]netip.Addr{"a": before})
	if a.self != now || a.others["a"] != now {
		t.Errorf("it speaks from %s, and knows %v", a.self, a.others)
	}
}
