package pool

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"
)

// testMembers are those of a node, with what they tell it.
type testMembers struct {
	*members
	events chan Event
}

// nodesOnLoopback have addresses of their own there.
var nodesOnLoopback = map[string]netip.Addr{"a": netip.MustParseAddr("127.0.10.1"), "b": netip.MustParseAddr("127.0.10.2")}

const loopbackPort = 17947

func newTestMembers(t *testing.T, name string) testMembers {
	t.Helper()
	events := make(chan Event, 1000)
	m, err := newMembers(klog.Background(), Config{NodeName: name, Port: loopbackPort, Networks: []netip.Prefix{subnet.Prefix}}, nodesOnLoopback[name], func(e Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.close() })
	m.setNodes(nodesOnLoopback, []string{"a", "b"})
	return testMembers{m, events}
}

// await waits for a state of another member.
func (m testMembers) await(t *testing.T, is func(State) bool) {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		select {
		case e := <-m.events:
			if heard, told := e.(Heard); told && is(heard.State) {
				return
			}
		case <-deadline:
			t.Fatalf("%s has not heard the other one's state", m.name)
		}
	}
}

func TestMembers_TellEachOtherTheirStates(t *testing.T) {
	a, b := newTestMembers(t, "a"), newTestMembers(t, "b")
	a.publish(State{Name: "a", Version: 1})
	b.await(t, func(s State) bool { return s.Version == 1 })
	many := map[netip.Addr]uint64{} // more than fit a datagram
	for ip := subnet.Prefix.Addr(); subnet.Prefix.Contains(ip); ip = ip.Next() {
		many[ip] = 1
	}
	a.publish(State{Name: "a", Version: 2, Held: many})
	b.await(t, func(s State) bool { return s.Version == 2 && len(s.Held) == len(many) })
}

// TestMembers_FoundAliveAgain: a member that was found dead by mistake is asked for its state.
func TestMembers_FoundAliveAgain(t *testing.T) {
	a, b := newTestMembers(t, "a"), newTestMembers(t, "b")
	a.publish(State{Name: "a", Version: 1})
	heard := func(s State) bool { return s.Version == 1 }
	b.await(t, heard)
	b.mu.Lock()
	node := b.peers["a"]
	b.mu.Unlock()
	for node == nil {
		time.Sleep(time.Millisecond) // it is told before it is a member
		b.mu.Lock()
		node = b.peers["a"]
		b.mu.Unlock()
	}
	for len(b.events) > 0 {
		<-b.events
	}
	delegate{b.members}.NotifyLeave(node.Node)
	delegate{b.members}.NotifyJoin(node.Node)
	b.await(t, heard)
}

// TestMembers_RemindOneThatIsNotAlive by datagrams, over and over, of all addresses: all else that members send to it needs a
// connection.
func TestMembers_RemindOneThatIsNotAlive(t *testing.T) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(nodesOnLoopback["b"], loopbackPort)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	held := map[netip.Addr]uint64{}
	for ip := netip.MustParseAddr("2001:db8:ffff:ffff:ffff:ffff:ffff:1"); len(held) < 1000; ip = ip.Next() {
		held[ip] = 1<<53 - 1
	}
	newTestMembers(t, "a").publish(State{Name: "a", Run: 1<<53 - 1, Version: 1, Networks: []Network{subnet}, Held: held})
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for left := maps.Clone(held); len(left) > 0; {
			packet := make([]byte, 65536)
			n, _, err := conn.ReadFrom(packet)
			if err != nil {
				t.Fatalf("%d addresses were not told: %v", len(left), err)
			}
			var s State
			if json.Unmarshal(packet[1:n], &s) != nil || !s.Part {
				continue // something else of memberlist
			}
			if n > datagram+1 {
				t.Fatalf("a datagram has %d bytes, want at most %d", n, datagram+1)
			}
			for ip := range s.Held {
				delete(left, ip)
			}
		}
	}
}

// awaitAlive waits until another member is found alive, or dead.
func (m testMembers) awaitAlive(t *testing.T, name string, now bool) {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		select {
		case e := <-m.events:
			if e == (Alive{name, now}) {
				return
			}
		case <-deadline:
			t.Fatalf("%s has not found out that %s is alive: %v", m.name, name, now)
		}
	}
}

// TestRunner_SpeaksAtItsNewAddress: the address of a Node may change while its process runs.
func TestRunner_SpeaksAtItsNewAddress(t *testing.T) {
	b := newTestMembers(t, "b")
	r, _ := newFakeRunner()
	r.config.Port = loopbackPort
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	defer running.Wait()
	defer cancel()
	for _, address := range []string{"127.0.10.1", "127.0.10.3"} {
		nodes := map[string]netip.Addr{"a": netip.MustParseAddr(address), "b": nodesOnLoopback["b"]}
		b.setNodes(nodes, []string{"a", "b"})
		r.SetNodes(nodes, []string{"a", "b"})
		b.awaitAlive(t, "a", true)
		for found := false; !found; {
			b.mu.Lock()
			if peer := b.peers["a"]; peer != nil {
				found = peer.Addr.String() == address
			}
			b.mu.Unlock()
			if !found {
				b.awaitAlive(t, "a", true) // that was before
			}
		}
	}
}

func TestMembers_OnlyOtherNodesOfTheClusterAreHeard(t *testing.T) {
	a := newTestMembers(t, "a")
	user := func(text string) []byte { return append([]byte{8}, text...) } // memberlist's userMsg
	say := func(from netip.Addr, text string) {
		conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(a.nodes["a"], loopbackPort)))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.Write(user(text)); err != nil {
			t.Fatal(err)
		}
	}
	say(netip.MustParseAddr("127.0.10.9"), `{"name":"b","version":1}`)
	say(nodesOnLoopback["b"], `{"name":"a","version":2}`)
	say(nodesOnLoopback["b"], `{"name":"invented","version":3}`)
	say(nodesOnLoopback["b"], `{"name":"b","version":4,"held":{"192.0.2.101":7,"192.0.2.102":18446744073709551615,"203.0.113.1":1},"claims":{"203.0.113.1":""},"failed":["203.0.113.1"]}`)
	for e := range a.events {
		heard, is := e.(Heard)
		if !is {
			continue
		}
		s := heard.State
		if s.Version != 4 || !slices.Equal(sorted(s.Held), []netip.Addr{ip1}) || len(s.Claims)+len(s.Failed) > 0 {
			t.Errorf("heard %+v, want what the other node said of the pool's addresses", s)
		}
		break
	}
}
