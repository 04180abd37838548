package pool

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/wake"
)

// liar is a process at node b's address that has the key, and says what it likes.
type liar struct {
	*transport
	mu   sync.Mutex
	says []byte
	// said is what it has said to node a, which may hear it twice.
	said []State
}

// newLiar makes one; its cluster also has node c, which is not there.
func newLiar(t *testing.T, keys func() holders.Keys) *liar {
	t.Helper()
	l := &liar{}
	g := newGuard(nodesOnLoopback["b"], loopbackPort)
	g.nodeAt = func(at netip.Addr) (string, bool) { return "a", at == nodesOnLoopback["a"] }
	g.addressOf = func(string) (netip.Addr, bool) { return nodesOnLoopback["a"], true }
	listening, err := listen(klog.Background(), keys, g, transportEvents{
		state:    func() []byte { l.mu.Lock(); defer l.mu.Unlock(); return l.says },
		heard:    func(netip.Addr, []byte) {},
		stranger: func(netip.Addr) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.transport = listening
	t.Cleanup(func() { _ = l.Shutdown() })
	go func() { // there is no memberlist
		for {
			select {
			case <-l.packets:
			case conn := <-l.streams:
				_ = conn.Close()
			case <-l.closing:
				return
			}
		}
	}()
	return l
}

// say has it say a state to a node, by a connection, until that one hears something new, which it returns. The node learns its process.
func (l *liar) say(t *testing.T, to testMembers, state map[string]any) State {
	t.Helper()
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.says = text
	l.mu.Unlock()
	for deadline := time.Now().Add(10 * time.Second); ; {
		err := l.sendState(nodesOnLoopback["a"]) // it may take longer than a connection may
		if heard, is := l.heard(to, time.Second); is {
			l.said = append(l.said, heard)
			return heard
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing is heard: %v", err)
		}
	}
}

// heard returns the next state that a node hears within some time, other than what was said before.
func (l *liar) heard(by testMembers, within time.Duration) (State, bool) {
	for timeout := time.After(within); ; {
		select {
		case e := <-by.events:
			heard, is := e.(Heard)
			before := func(s State) bool { return s.Run == heard.State.Run && s.Version == heard.State.Version }
			if is && !slices.ContainsFunc(l.said, before) {
				return heard.State, true
			}
		case <-timeout:
			return State{}, false
		}
	}
}

// hears waits for the next state that a node hears.
func (l *liar) hears(t *testing.T, by testMembers) State {
	t.Helper()
	s, is := l.heard(by, 10*time.Second)
	if !is {
		t.Fatal("no state was heard")
	}
	return s
}

// withC adds node c to the cluster of a node.
func (m testMembers) withC() {
	nodes := maps.Clone(nodesOnLoopback)
	nodes["c"] = onLoopback(2)
	m.setNodes(nodes, []string{"a", "b", "c"})
}

// TestAttack_MembersWithTheKeyOfANode: whoever has the key and is a node speaks for that node alone, whatever name it says, of addresses
// of the pool, and with epochs that others can exceed.
func TestAttack_MembersWithTheKeyOfANode(t *testing.T) {
	a := newTestMembers(t, "a")
	a.withC()
	l := newLiar(t, testKeys)
	s := l.say(t, a, map[string]any{
		"name": "c", "Name": "c", "run": 7, "version": 3,
		"held":   map[string]uint64{"192.0.2.101": 7, "192.0.2.102": holders.MaxEpoch + 1, "192.0.2.103": holders.MaxEpoch, "203.0.113.1": 1},
		"claims": map[string]string{"203.0.113.1": ""}, "failed": []string{"203.0.113.1"},
	})
	if want := []netip.Addr{ip1, netip.MustParseAddr("192.0.2.103")}; s.Name != "b" || !slices.Equal(sorted(s.Held), want) || len(s.Claims)+len(s.Failed) > 0 {
		t.Errorf("heard %+v, want what b said of the pool's addresses", s)
	}
	if err := l.send(nodesOnLoopback["a"], stateText, []byte(`{"name":"c","run":7,"version":4}`)); err != nil {
		t.Fatal(err)
	}
	if s := l.hears(t, a); s.Name != "b" || s.Version != 4 {
		t.Errorf("heard %+v, want that b said it", s)
	}
}

// TestAttack_MembersWithoutAKey: nothing is believed that is not sealed, or with another key, also by one who has the key's name.
func TestAttack_MembersWithoutAKey(t *testing.T) {
	for name, keys := range map[string]func() holders.Keys{
		"another key": func() holders.Keys { return holders.Keys{otherKey} },
		"a has none":  testKeys,
	} {
		t.Run(name, func(t *testing.T) {
			var key sync.Map
			key.Store("keys", testKeys())
			a := newTestMembersOf(t, "a", func() holders.Keys { keys, _ := key.Load("keys"); return keys.(holders.Keys) })
			if name == "a has none" {
				key.Store("keys", holders.Keys{})
			}
			l := newLiar(t, keys)
			text := []byte(`{"name":"b","run":7,"version":3,"held":{"192.0.2.101":7}}`)
			for range 10 {
				_ = l.send(nodesOnLoopback["a"], stateText, text)
				_ = l.sendState(nodesOnLoopback["a"])
				_, _ = l.udp.WriteToUDPAddrPort(append([]byte{8}, text...), netip.AddrPortFrom(nodesOnLoopback["a"], loopbackPort))
				_, _ = l.udp.WriteToUDPAddrPort(nil, netip.AddrPortFrom(nodesOnLoopback["a"], loopbackPort))
			}
			key.Store("keys", append(testKeys(), keys()...))
			// Now it is believed, and nothing of before is.
			if s := l.say(t, a, map[string]any{"run": 8, "version": 9}); s.Run != 8 {
				t.Errorf("heard %+v, which was not sealed with a key of this node", s)
			}
		})
	}
}

// TestAttack_MembersReplay: what was sealed before does not count again: not by the same process, nor after that has ended, nor from or to
// another node.
func TestAttack_MembersReplay(t *testing.T) {
	a := newTestMembers(t, "a")
	l := newLiar(t, testKeys)
	l.say(t, a, map[string]any{"run": 7, "version": 1})
	to := netip.AddrPortFrom(nodesOnLoopback["a"], loopbackPort)
	seal := func(number uint64, version int) []byte {
		text := fmt.Sprintf("\x01"+`{"run":7,"version":%d}`, version)
		return sealDatagram(testKeys()[0], l.session, number, way{nodesOnLoopback["b"], nodesOnLoopback["a"]}, []byte(text))
	}
	first, second := seal(1, 2), seal(2, 3)
	for _, packet := range [][]byte{first, first, second, first, second} {
		if _, err := l.udp.WriteToUDPAddrPort(packet, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []uint64{2, 3} {
		if s := l.hears(t, a); s.Version != version {
			t.Fatalf("heard version %d, want %d", s.Version, version)
		}
	}
	third := seal(3, 99)
	l.transport.session = session{9} // as after a restart
	if s := l.say(t, a, map[string]any{"run": 8, "version": 1}); s.Run != 8 {
		t.Errorf("heard %+v again", s)
	}
	for _, packet := range [][]byte{first, second, third} { // of the process before
		_, _ = l.udp.WriteToUDPAddrPort(packet, to)
	}
	if s := l.say(t, a, map[string]any{"run": 8, "version": 2}); s.Run != 8 || s.Version != 2 {
		t.Errorf("heard %+v, of a process that has ended", s)
	}
}

// TestAttack_MembersMalformed: whatever one with the key says to memberlist, the process lives, and in bounded memory.
func TestAttack_MembersMalformed(t *testing.T) {
	a := newTestMembers(t, "a")
	l := newLiar(t, testKeys)
	l.say(t, a, map[string]any{"run": 7, "version": 1})
	huge := pack(pushPullMsg, "Nodes", 1<<20, "UserStateLen", 20<<20, "Join", true)
	texts := [][]byte{
		{}, {0}, {7}, {7, 255}, {10}, {10, 0, 0, 0, 0}, {9, 0x81}, {244}, {244, 0}, {12, 0, 0, 0, 0}, append([]byte{3, 0x81, 0xa4}, "Node\xdb\xff\xff\xff\xff"...),
		append([]byte{4, 0x81, 0xa4}, append([]byte("Addr"), slices.Repeat([]byte{0x91}, 1000)...)...), huge, pack(8, "UserMsgLen", 20<<20),
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, text := range texts {
		for _, what := range []byte{gossipText, stateText, 77} {
			if err := l.send(nodesOnLoopback["a"], what, text); err != nil {
				t.Fatal(err)
			}
		}
		_ = l.send(nodesOnLoopback["a"], gossipText, append([]byte{compoundMsg, 1, 0, byte(len(text))}, text...))
		s, err := l.dial(nodesOnLoopback["a"], time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.Write(text)
		_, _ = s.Read(make([]byte, 1))
		_ = s.Close()
	}
	if s := l.say(t, a, map[string]any{"run": 7, "version": 100}); s.Version != 100 {
		t.Errorf("heard %+v", s)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("malformed messages cost %d MiB", used>>20)
	}
}

// TestAttack_StateIsBounded: a state of the largest size, of any addresses, costs little.
func TestAttack_StateIsBounded(t *testing.T) {
	networks := []netip.Prefix{netip.MustParsePrefix("2001:db8::/64")}
	say := func(n int) []byte {
		text := []byte(`{"run":7,"version":3,"held":{`)
		for ip := networks[0].Addr(); n > 0; n-- {
			ip = ip.Next()
			text = fmt.Appendf(text, `"%s":1,`, ip)
		}
		return append(text[:len(text)-1], "}}"...)
	}
	if _, err := parseState("b", say(mostAddresses), networks); err != nil {
		t.Errorf("as many addresses as a node may have: %v", err)
	}
	for _, n := range []int{mostAddresses + 1, 30000, 1 << 20} {
		var before, after runtime.MemStats
		text := say(n)
		runtime.ReadMemStats(&before)
		_, err := parseState("b", text, networks)
		if runtime.ReadMemStats(&after); err == nil {
			t.Errorf("a state with %d addresses is read", n)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
			t.Errorf("a state with %d addresses costs %d MiB", n, used>>20)
		}
	}
	m := newMember("a")
	m.Next(Wanted{Addresses: []netip.Addr{ip1}}, moment(0))
	ip := networks[0].Addr()
	for version := range uint64(100) { // always others
		held := map[netip.Addr]uint64{}
		for range 1000 {
			ip = ip.Next()
			held[ip] = 1
		}
		m.Next(Heard{State{Name: "b", Run: 1, Version: version, Held: held}}, moment(0))
		m.Next(Reminded{State{Name: "c", Run: 1, Version: version, Held: held, Part: true}}, moment(0))
	}
	if p := m.peers["b"]; len(p.left) > 0 || len(p.state.Held) != 1000 {
		t.Errorf("of a node that always says other addresses, %d are known that it has no more, and %d that it has; want none of those that no Service claims, and the last 1000",
			len(p.left), len(p.state.Held))
	}
	if n := len(m.peers["c"].state.Held); n > mostAddresses {
		t.Errorf("%d addresses are known of a node that says parts, want %d at most", n, mostAddresses)
	}
	m.checkHaving(t)
	m.Next(Pool{Nodes: []string{"a"}}, moment(0))
	if len(m.having) > 0 {
		t.Errorf("%d addresses are known of nodes that are dead and not in the pool", len(m.having))
	}
}

// TestAttack_StatesDoNotQueue: however many states a node says while the Runner does something else, the newest waits alone, with all
// that was said of it in parts, and what others say is not far behind.
func TestAttack_StatesDoNotQueue(t *testing.T) {
	r := NewRunner(Config{NodeName: "a", Keys: testKeys, Wake: wake.New()}, newMember("a"))
	r.Tell(Liveness{"b", true})
	part := func(version uint64, ip netip.Addr) Event {
		return Reminded{State{Name: "b", Run: 1, Version: version, Part: true, Held: map[netip.Addr]uint64{ip: version}}}
	}
	const last = 10000
	ip := netip.MustParseAddr("2001:db8::")
	for version := range uint64(last + 1) {
		held := map[netip.Addr]uint64{ip1: version}
		for _, name := range []string{"b", "c"} {
			r.Tell(Heard{State{Name: name, Run: 1, Version: version, Held: held}})
		}
		ip = ip.Next()
		r.Tell(part(version, ip1))
		r.Tell(part(version, ip2))
		r.Tell(part(last, ip))
	}
	r.Tell(Heard{State{Name: "b", Run: 1, Version: last - 1}}) // overtaken
	r.Tell(Liveness{"b", false})
	queue := r.dequeue()
	if len(queue) != 5 || queue[0] != (Liveness{"b", true}) || queue[4] != (Liveness{"b", false}) {
		t.Fatalf("%d events wait, want 5", len(queue))
	}
	for _, e := range queue[1:4] {
		switch e := e.(type) {
		case Heard:
			if e.State.Version != last || e.State.Held[ip1] != last {
				t.Errorf("heard %+v", e.State)
			}
		case Reminded:
			if n := len(e.State.Held); e.State.Version != last || n > mostAddresses || n < mostAddresses/2 {
				t.Errorf("reminded of version %d, with %d addresses", e.State.Version, n)
			}
		}
	}
}

// TestAttack_ContestsAreFew: a node that says over and over that it has an address of this one has it advertised every so often, and not
// each time; what it says meanwhile is not forgotten.
func TestAttack_ContestsAreFew(t *testing.T) {
	m := newMember("a")
	r := NewRunner(Config{NodeName: "a", Keys: testKeys, Wake: wake.New()}, m)
	m.Next(Wanted{Addresses: []netip.Addr{ip1, ip2}}, moment(0))
	m.had(map[netip.Addr]uint64{ip1: 5, ip2: 5})
	m.Next(Found{[]netip.Addr{ip1, ip2}}, moment(0))
	m.Next(Networks{[]Network{subnet}}, moment(0))
	advertised := map[netip.Addr]int{}
	process := func(at time.Time) {
		for _, e := range append(r.dequeue(), Tick{}) {
			for _, a := range m.Next(e, at) {
				if a, is := a.(Advertise); is {
					for _, ip := range a.Addresses {
						advertised[ip]++
					}
				}
			}
		}
	}
	say := func(version uint64, ips ...netip.Addr) {
		held := map[netip.Addr]uint64{}
		for _, ip := range ips {
			held[ip] = 1
		}
		r.Tell(Heard{State{Name: "b", Run: 1, Version: version, Held: held, Networks: []Network{subnet}}})
		r.Tell(Reminded{State{Name: "b", Run: 1, Version: version, Held: held, Part: true}})
	}
	process(moment(0))
	for i := range 1000 {
		say(uint64(i), ip1)
		process(moment(time.Duration(i) * time.Millisecond))
	}
	if n := advertised[ip1]; n < 10 || n > 1000/50+1 {
		t.Errorf("in 1 s it was advertised %d times, want every 50 ms at most", n)
	}
	say(1000, ip1, ip2)
	process(moment(1000 * time.Millisecond))
	process(moment(1060 * time.Millisecond))
	if advertised[ip2] != 1 {
		t.Errorf("what was said in between was advertised %d times, want once", advertised[ip2])
	}
}

// TestState_LargestOfAnHonestNodeIsRead: what a node may have is what others read, and it takes no more. Of addresses that it could not
// take it tells as many as there is room for.
func TestState_LargestOfAnHonestNodeIsRead(t *testing.T) {
	network := netip.MustParsePrefix("2001:db8:ffff:ffff::/64")
	var all []netip.Addr
	for ip := netip.MustParseAddr("2001:db8:ffff:ffff:ffff:ffff:ffff:0"); len(all) < 2*mostAddresses; ip = ip.Next() {
		all = append(all, ip)
	}
	m := NewMember(newMember("a").book, 1<<53-1, false)
	var networks []Network
	for i := range 2 * mostNetworks {
		networks = append(networks, Network{netip.PrefixFrom(netip.MustParseAddr(fmt.Sprintf("2001:db8:ffff:ffff:%x:ffff:ffff:fff0", i)), 124), true})
	}
	networks[0] = Network{network, true}
	at := moment(patience)
	for _, e := range []Event{Networks{networks}, Pool{Nodes: []string{"a"}}, Tick{}, Wanted{Addresses: all}} {
		m.Next(e, moment(0))
	}
	for _, ip := range all {
		m.book.See(ip, 1<<64-1)
	}
	for range 4 { // to claim all, and take them
		m.Next(Tick{}, at)
		m.Next(m.probed(at, nil, slices.Collect(maps.Keys(m.claims))...), at)
	}
	if len(m.State().Held) != mostAddresses || m.Status().Objections(all[0])["a"] != "" && m.Status().Objections(all[len(all)-1])["a"] != Full {
		t.Errorf("it has %d addresses, want %d, and that it is full", len(m.State().Held), mostAddresses)
	}
	var failed []netip.Addr
	for _, ip := range all {
		if !m.holds(ip) && len(failed) < mostAddresses/2 {
			failed = append(failed, ip)
		}
	}
	m.Next(TakeFailed{Addresses: failed}, at)
	text, err := json.Marshal(m.State())
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseState("a", text, []netip.Prefix{network})
	if err != nil || len(s.Held) != mostAddresses || len(s.Networks) != mostNetworks {
		t.Errorf("%d addresses and %d networks are read of %d bytes, error %v", len(s.Held), len(s.Networks), len(text), err)
	}
}

// TestAttack_StreamsWithoutAKey: connections that say nothing, or garbage, keep no node from being heard, and cost little.
func TestAttack_StreamsWithoutAKey(t *testing.T) {
	a := newTestMembers(t, "a")
	l := newLiar(t, testKeys)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: nodesOnLoopback["b"].AsSlice()}} // of the same address
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 500 {
		conn, err := dialer.Dial("tcp", netip.AddrPortFrom(nodesOnLoopback["a"], loopbackPort).String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if i%2 == 0 {
			garbage := make([]byte, nonceSize+2)
			binary.BigEndian.PutUint16(garbage[nonceSize:], chunk+tagSize)
			_, _ = conn.Write(garbage)
		}
	}
	if s := l.say(t, a, map[string]any{"run": 7, "version": 1}); s.Name != "b" {
		t.Errorf("heard %+v", s)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("connections that say nothing cost %d MiB", used>>20)
	}
	a.transport.mu.Lock()
	waiting := len(a.transport.waiting[nodesOnLoopback["b"]])
	a.transport.mu.Unlock()
	if waiting > mostWaiting {
		t.Errorf("%d streams wait, want at most %d", waiting, mostWaiting)
	}
}

// TestAttack_AccusationsPass: a member that is accused with the highest incarnation, or vouched for with it, is found alive all the same.
func TestAttack_AccusationsPass(t *testing.T) {
	a := newTestMembers(t, "a")
	a.withC()
	nodes := maps.Clone(a.nodes)
	c, err := newMembers(klog.Background(), Config{NodeName: "c", Port: loopbackPort, Keys: testKeys}, nodes["c"], func(Event) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	c.setNodes(nodes, []string{"a", "b", "c"})
	a.awaitAlive(t, "c", true)
	l := newLiar(t, testKeys)
	l.say(t, a, map[string]any{"run": 7, "version": 1})
	at := string(nodes["c"].AsSlice())
	for _, lie := range []struct {
		message []byte
		// contradicted is the incarnation that c has to say, by which it contradicts; 0 if it need not.
		contradicted uint64
	}{
		{pack(aliveMsg, "Incarnation", 1<<32-1, "Node", "c", "Addr", at, "Port", loopbackPort, "Vsn", versions), 0},
		{pack(suspectMsg, "Incarnation", 1<<32-1, "Node", "c", "From", "b"), 0},
		{pack(deadMsg, "Incarnation", 1<<32-1, "Node", "c", "From", "b"), 0},
		{pack(deadMsg, "Incarnation", 1000, "Node", "c", "From", "c"), 1001},
		{pack(deadMsg, "Incarnation", 5, "Node", "c", "From", "b"), 0},
		{pack(suspectMsg, "Incarnation", slack, "Node", "c", "From", "b"), slack + 1},
		{pack(aliveMsg, "Incarnation", slack, "Node", "c", "Addr", at, "Port", loopbackPort, "Vsn", versions), 0},
		{pack(suspectMsg, "Incarnation", slack, "Node", "c", "From", "b"), 0},
		{pack(suspectMsg, "Incarnation", slack+1, "Node", "c", "From", "b"), slack + 2},
	} {
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if err := l.send(nodesOnLoopback["a"], gossipText, lie.message); err != nil {
				t.Fatal(err)
			}
			a.guard.mu.Lock()
			said := a.guard.vouched["c"]
			a.guard.mu.Unlock()
			if said >= lie.contradicted {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("c has said the incarnation %d at last, want %d", said, lie.contradicted)
			}
		}
	}
	a.awaitMember(t, "c")
}
