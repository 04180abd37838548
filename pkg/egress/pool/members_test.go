package pool

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/holders"
)

// testMembers are those of a node, with what they tell it.
type testMembers struct {
	*members
	events chan Event
}

// nodesOnLoopback have addresses of their own there.
var nodesOnLoopback = map[string]netip.Addr{"a": onLoopback(0), "b": onLoopback(1)}

// onLoopback is one of four addresses that no other process has which tests: a number of a process has 22 bits.
func onLoopback(n int) netip.Addr {
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, byte(pid >> 14), byte(pid >> 6), byte(pid<<2 | n)})
}

const loopbackPort = 17947

// testKeys are those of all nodes.
func testKeys() holders.Keys { return holders.Keys{bytes.Repeat([]byte{1}, 32)} }

func newTestMembers(t *testing.T, name string) testMembers {
	t.Helper()
	return newTestMembersOf(t, name, testKeys)
}

// newTestMembersOf is newTestMembers with other keys.
func newTestMembersOf(t *testing.T, name string, keys func() holders.Keys) testMembers {
	t.Helper()
	events := make(chan Event, 1000)
	m, err := newMembers(klog.Background(), Config{NodeName: name, Port: loopbackPort, Keys: keys, Networks: []netip.Prefix{subnet.Prefix}}, nodesOnLoopback[name], func(e Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
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

// TestMembers_KeysChange one after another, while both nodes tell each other what is new: nothing is lost on the way.
func TestMembers_KeysChange(t *testing.T) {
	var keys [2]atomic.Value
	node := func(i int, name string) testMembers {
		keys[i].Store(holders.Keys{sealKey})
		return newTestMembersOf(t, name, func() holders.Keys { return keys[i].Load().(holders.Keys) })
	}
	a, b := node(0, "a"), node(1, "b")
	version := uint64(0)
	for _, step := range []struct {
		node int
		keys holders.Keys
	}{
		{0, holders.Keys{sealKey}}, {0, holders.Keys{sealKey, otherKey}}, {1, holders.Keys{sealKey, otherKey}},
		{1, holders.Keys{otherKey, sealKey}}, {0, holders.Keys{otherKey, sealKey}}, {0, holders.Keys{otherKey}}, {1, holders.Keys{otherKey}},
	} {
		keys[step.node].Store(step.keys)
		version++
		a.publish(State{Run: 1, Version: version})
		b.publish(State{Run: 2, Version: version})
		b.await(t, func(s State) bool { return s.Version == version })
		a.await(t, func(s State) bool { return s.Version == version })
	}
	a.awaitMember(t, "b") // one that has not had its share of a processor may have been found dead meanwhile
	b.awaitMember(t, "a")
}

// awaitMember waits until another node is a member.
func (m testMembers) awaitMember(t *testing.T, name string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		m.mu.Lock()
		is := m.peers[name] != nil
		m.mu.Unlock()
		if is {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not find %s alive", m.name, name)
		}
	}
}

// TestMembers_FoundAliveAgain: a member that was found dead by mistake is asked for its state.
func TestMembers_FoundAliveAgain(t *testing.T) {
	a, b := newTestMembers(t, "a"), newTestMembers(t, "b")
	a.publish(State{Name: "a", Version: 1})
	heard := func(s State) bool { return s.Version == 1 }
	b.await(t, heard)
	b.awaitMember(t, "a") // it is told before it is a member
	b.mu.Lock()
	node := b.peers["a"]
	b.mu.Unlock()
	for len(b.events) > 0 {
		<-b.events
	}
	again := &memberlist.Node{Name: node.name, Addr: node.address.AsSlice(), Port: loopbackPort}
	delegate{b.members}.NotifyLeave(again)
	delegate{b.members}.NotifyJoin(again)
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
			if n > datagram {
				t.Fatalf("a datagram has %d bytes, want at most %d", n, datagram)
			}
			_, _, text, err := openDatagram(testKeys(), way{nodesOnLoopback["a"], nodesOnLoopback["b"]}, packet[:n])
			if err != nil {
				t.Fatal(err)
			}
			var s State
			if text[0] != stateText || json.Unmarshal(text[1:], &s) != nil || !s.Part {
				continue // something of memberlist
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
			if e == (Liveness{name, now}) {
				return
			}
		case <-deadline:
			t.Fatalf("%s has not found out that %s is alive: %v", m.name, name, now)
		}
	}
}

// runOnLoopback has a Runner run until the test ends.
func runOnLoopback(t *testing.T) *Runner {
	r, _ := newFakeRunner()
	r.config.Port = loopbackPort
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return r
}

// TestRunner_NodesThatCome: a process that speaks already hears of Nodes that come later, and speaks with them.
func TestRunner_NodesThatCome(t *testing.T) {
	b := newTestMembers(t, "b")
	r := runOnLoopback(t)
	nodes := map[string]netip.Addr{"a": onLoopback(0)}
	r.SetNodes(nodes, []string{"a"}, nil)
	clustertest.Eventually(t, "it speaks", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.members != nil
	})
	nodes = map[string]netip.Addr{"a": onLoopback(0), "b": nodesOnLoopback["b"]}
	b.setNodes(nodes, []string{"a", "b"})
	r.SetNodes(nodes, []string{"a", "b"}, nil)
	b.awaitAlive(t, "a", true)
}

// TestRunner_SpeaksAtItsNewAddress: the address of a Node may change while its process runs.
func TestRunner_SpeaksAtItsNewAddress(t *testing.T) {
	b := newTestMembers(t, "b")
	r := runOnLoopback(t)
	for _, address := range []netip.Addr{onLoopback(0), onLoopback(2)} {
		nodes := map[string]netip.Addr{"a": address, "b": nodesOnLoopback["b"]}
		b.setNodes(nodes, []string{"a", "b"})
		r.SetNodes(nodes, []string{"a", "b"}, nil)
		b.awaitAlive(t, "a", true)
		for found := false; !found; {
			b.mu.Lock()
			if peer := b.peers["a"]; peer != nil {
				found = peer.address == address
			}
			b.mu.Unlock()
			if !found {
				b.awaitAlive(t, "a", true) // that was before
			}
		}
	}
}
