package holders

import (
	"context"
	"fmt"
	"net"
	"net/netip"
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
	log   []string
}

// announce has three nodes run, in each IP family.
func announce(t *testing.T, test func(s *speakers)) {
	for name, family := range map[string]func(h *lab.Host) netip.Addr{
		"IPv4": func(h *lab.Host) netip.Addr { return h.V4 }, "IPv6": func(h *lab.Host) netip.Addr { return h.V6 },
	} {
		t.Run(name, func(t *testing.T) {
			s := &speakers{T: t, lab: lab.ForTest(t, lab.Config{Nodes: 3, IPv6: true}), family: family, nodes: map[string]*speaker{}}
			for i, host := range s.lab.Nodes() {
				s.nodes[names[i]] = &speaker{host: host}
			}
			for name := range s.nodes {
				s.start(name, nil)
			}
			test(s)
		})
	}
}

// start runs a new process on a node until the test ends, or it is ended.
func (s *speakers) start(name string, keys Keys) {
	s.Helper()
	n := s.nodes[name]
	s.mu.Lock()
	n.Announcer, n.heard, n.log = NewAnnouncer(name, announcePort, keys), map[string]Statement{}, nil
	s.mu.Unlock()
	n.SetNodes(s.family(n.host), s.others(name))
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
				n.heard[event.(Announced).Node] = event.(Announced).Statement
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
		s.start(me, nil)
		s.knows("a process that starts asks", "node-a", thousand, me)
		s.nodes["node-a"].end()
		s.start("node-a", nil)
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

func TestAnnouncer_Keys(t *testing.T) {
	announce(t, func(s *speakers) {
		ours, other := Keys{[]byte("a key that two of us have")}, Keys{[]byte("a key that nobody else has")}
		for name, keys := range map[string]Keys{"node-a": ours, me: ours, "node-c": other} {
			s.nodes[name].end()
			s.start(name, keys)
		}
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

// TestAnnouncer_OtherPrograms of a node cannot announce anything, and neither can another node in its name.
func TestAnnouncer_OtherPrograms(t *testing.T) {
	announce(t, func(s *speakers) {
		s.nodes["node-a"].SetAnnounced(statementOf(1, ips[0]))
		s.knows("said", "node-a", statementOf(1, ips[0]))
		lie := datagram{kind: heartbeat, node: "node-a", revision: 9}.encode(nil)
		s.send("node-a", 0, me, lie)
		s.counted(me, foreign)
		s.nodes["node-c"].end()
		s.send("node-c", announcePort, "node-a", datagram{kind: heartbeat, node: me}.encode(nil))
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
		s.start("node-a", nil)
		s.nodes["node-a"].SetAnnounced(statementOf(1, ips[0]))
		s.eventually("taken", func() error {
			if log := strings.Join(s.nodes["node-a"].log, "\n"); !strings.Contains(log, "egress-snat-announce-port") {
				return fmt.Errorf("logged %q, want what to do", log)
			}
			return nil
		})
		if err := taken.Close(); err != nil {
			s.Fatal(err)
		}
		s.knows("free again", "node-a", statementOf(1, ips[0]))
		s.eventually("logged", func() error {
			if log := s.nodes["node-a"].log; len(log) != 2 {
				return fmt.Errorf("logged %q, want two lines", log)
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
				n.SetNodes(moved, others)
				continue
			}
			others["node-a"] = moved
			n.SetNodes(s.family(n.host), others)
		}
		s.nodes["node-a"].SetAnnounced(statementOf(2, ips[1]))
		s.knows("from another address", "node-a", statementOf(2, ips[1]))
		s.nodes["node-c"].SetAnnounced(statementOf(3, ips[2]))
		s.knows("heard there", "node-c", statementOf(3, ips[2]))
	})
}
