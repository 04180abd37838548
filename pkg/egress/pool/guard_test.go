package pool

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"k8s.io/klog/v2"
)

// testGuard is that of a node at 192.0.2.1, of a cluster with others at 192.0.2.2 and 192.0.2.3.
func testGuard() *guard {
	nodes := map[string]netip.Addr{"a": netip.MustParseAddr("192.0.2.1"), "b": netip.MustParseAddr("192.0.2.2"), "c": netip.MustParseAddr("192.0.2.3")}
	g := newGuard(nodes["a"], 7947)
	g.addressOf = func(name string) (netip.Addr, bool) { at, known := nodes[name]; return at, known }
	g.nodeAt = func(at netip.Addr) (string, bool) {
		for name, of := range nodes {
			if of == at {
				return name, true
			}
		}
		return "", false
	}
	return g
}

// pack writes a message of memberlist: names, each followed by a number, a text, or a flag.
func pack(kind byte, values ...any) []byte {
	b := []byte{kind, 0x80 | byte(len(values)/2)}
	for _, v := range values {
		switch v := v.(type) {
		case int:
			b = binary.BigEndian.AppendUint64(append(b, 0xcf), uint64(v))
		case string:
			b = append(append(b, 0xd9, byte(len(v))), v...)
		case bool:
			b = append(b, map[bool]byte{false: 0xc2, true: 0xc3}[v])
		}
	}
	return b
}

const (
	atA, atB, atC = "\xc0\x00\x02\x01", "\xc0\x00\x02\x02", "\xc0\x00\x02\x03"
	versions      = "\x01\x05\x02\x00\x00\x00"
)

// TestGuard_WhatMemberlistMayRead of what another node says to it by datagrams.
func TestGuard_WhatMemberlistMayRead(t *testing.T) {
	alive := func(node, at string, incarnation int) []byte {
		return pack(aliveMsg, "Incarnation", incarnation, "Node", node, "Addr", at, "Port", 7947, "Vsn", versions)
	}
	for name, c := range map[string]struct {
		message []byte
		want    bool
	}{
		"a ping":                            {pack(pingMsg, "SeqNo", 5, "Node", "a", "SourceAddr", atB, "SourcePort", 7947, "SourceNode", "b"), true},
		"a ping for another to answer to":   {pack(pingMsg, "SeqNo", 5, "Node", "a", "SourceAddr", atC, "SourcePort", 7947), false},
		"a ping, to answer to another port": {pack(pingMsg, "SeqNo", 5, "Node", "a", "SourceAddr", atB, "SourcePort", 53), false},
		"a request to ping":                 {pack(indirectPingMsg, "SeqNo", 5, "Node", "c", "Target", atC, "Port", 7947, "SourceAddr", atB, "SourcePort", 7947), true},
		"a request to ping somebody":        {pack(indirectPingMsg, "SeqNo", 5, "Node", "c", "Target", "\x08\x08\x08\x08", "Port", 7947, "SourceAddr", atB, "SourcePort", 7947), false},
		"a request to ping another port":    {pack(indirectPingMsg, "SeqNo", 5, "Node", "c", "Target", atC, "Port", 53, "SourceAddr", atB, "SourcePort", 7947), false},
		"an answer that was asked for":      {pack(ackMsg, "SeqNo", 7, "Payload", ""), true},
		"an answer that was not":            {pack(ackMsg, "SeqNo", 8, "Payload", ""), false},
		"an answer that another was asked":  {pack(ackMsg, "SeqNo", 9, "Payload", ""), false},
		"it is alive":                       {alive("b", atB, 4000000000), true},
		"another is alive":                  {alive("c", atC, slack), true},
		"another, with a huge incarnation":  {alive("c", atC, slack+1), false},
		"another, elsewhere":                {alive("c", atB, 1), false},
		"nobody is alive":                   {alive("d", atC, 1), false},
		"alive at another port":             {pack(aliveMsg, "Incarnation", 1, "Node", "b", "Addr", atB, "Port", 53, "Vsn", versions), false},
		"alive, with another protocol":      {pack(aliveMsg, "Incarnation", 1, "Node", "b", "Addr", atB, "Port", 7947, "Vsn", "\x05\x05\x05\x09\x09\x09"), false},
		"alive, without a protocol":         {pack(aliveMsg, "Incarnation", 1, "Node", "b", "Addr", atB, "Port", 7947), false},
		"alive, with more to say":           {pack(aliveMsg, "Incarnation", 1, "Node", "b", "Addr", atB, "Port", 7947, "Vsn", versions, "Meta", "x"), false},
		"another is suspect":                {pack(suspectMsg, "Incarnation", 1, "Node", "c", "From", "b"), true},
		"suspect, with a huge incarnation":  {pack(suspectMsg, "Incarnation", 1<<32-1, "Node", "c", "From", "b"), false},
		"this one, with a huge incarnation": {pack(suspectMsg, "Incarnation", 1<<32-1, "Node", "a", "From", "b"), false},
		"dead, with a huge incarnation":     {pack(deadMsg, "Incarnation", 1<<32-1, "Node", "c", "From", "b"), false},
		"several":                           {append([]byte{compoundMsg, 2, 0, 1, 0, 5}, "xxxxxx"...), false},
		"several within several":            {append([]byte{compoundMsg, 1, 0, 4}, compoundMsg, 1, 0, 0), false},
		"several, one of them empty":        {[]byte{compoundMsg, 1, 0, 0}, false},
		"more than there is":                {[]byte{compoundMsg, 200}, false},
		"nothing":                           {nil, false},
		"a kind and nothing more":           {[]byte{aliveMsg}, false},
		"a message of the program":          {append([]byte{8}, `{"run":1}`...), false},
		"something compressed":              {pack(9, "Algo", 0, "Buf", "x"), false},
		"something encrypted":               {[]byte{10, 0, 0, 0, 1}, false},
		"something with a label":            {[]byte{244, 1, 'x', 0}, false},
		"a text longer than all":            {append([]byte{suspectMsg, 0x81, 0xa4}, "Node\xdb\xff\xff\xff\xff"...), false},
		"a map within":                      {append([]byte{suspectMsg, 0x81, 0xa4}, "Node\x80"...), false},
		"lists within lists":                {append([]byte{suspectMsg, 0x81, 0xa4}, "Node\x91\x91\x91\x91\x91\x90"...), false},
		"one name twice":                    {pack(suspectMsg, "Node", "c", "Incarnation", 1, "Incarnation", 1<<32-1), false},
		"a name that is a number":           {[]byte{suspectMsg, 0x81, 0x05, 0x05}, false},
		"something behind":                  {append(pack(suspectMsg, "Node", "c", "Incarnation", 1), 0), false},
		"with a checksum":                   {append([]byte{crcMsg, 0, 0, 0, 0}, pack(suspectMsg, "Node", "c", "Incarnation", 1)...), true},
	} {
		g := testGuard()
		now := moment(0)
		g.sent(pack(pingMsg, "SeqNo", 7, "Node", "b"), netip.MustParseAddr("192.0.2.2"), now)
		g.sent(pack(pingMsg, "SeqNo", 9, "Node", "c"), netip.MustParseAddr("192.0.2.3"), now)
		messages, err := g.packet(c.message, netip.MustParseAddr("192.0.2.2"), now)
		if got := err == nil && len(messages) > 0; got != c.want {
			t.Errorf("%s: memberlist may read it: %v (%v), want %v", name, got, err, c.want)
		}
	}
}

// TestGuard_OwnQuestionsCount: however many questions another node has this one ask, the answers to its own count.
func TestGuard_OwnQuestionsCount(t *testing.T) {
	g, c := testGuard(), netip.MustParseAddr("192.0.2.3")
	ask := func(number int) { g.sent(pack(pingMsg, "SeqNo", number, "Node", "c"), c, moment(0)) }
	for number := range 3 * mostAsked { // some are answered
		ask(number)
		if number%3 == 0 {
			_, _ = g.packet(pack(ackMsg, "SeqNo", number, "Payload", ""), c, moment(0))
		}
	}
	ask(1 << 20)
	for number := range 100 {
		ask(1<<21 + number)
	}
	if _, err := g.packet(pack(ackMsg, "SeqNo", 1<<20, "Payload", ""), c, moment(0)); err != nil {
		t.Errorf("an answer after very many questions: %v", err)
	}
	if len(g.asked) > mostAsked {
		t.Errorf("%d questions are remembered", len(g.asked))
	}
}

// TestGuard_OthersCanOnlyBeSuspected, which they can contradict.
func TestGuard_OthersCanOnlyBeSuspected(t *testing.T) {
	messages, err := testGuard().packet(pack(deadMsg, "Incarnation", 1, "Node", "c", "From", "c"), netip.MustParseAddr("192.0.2.2"), moment(0))
	if err != nil || len(messages) != 1 || messages[0][0] != suspectMsg {
		t.Errorf("that another node is dead becomes %v, error %v; want that it is suspect", messages, err)
	}
}

// TestGuard_ExchangeIsSorted: memberlist reads what nodes may say of one another on a stream, and nothing else of it.
func TestGuard_ExchangeIsSorted(t *testing.T) {
	node := func(name, at string, state, incarnation int) []byte {
		return pack(0, "Name", name, "Addr", at, "Port", 7947, "Incarnation", incarnation, "State", state, "Vsn", versions)[1:]
	}
	say := func(nodes int, entries ...[]byte) []byte {
		return append(pack(pushPullMsg, "Nodes", nodes, "UserStateLen", 0, "Join", true), bytes.Join(entries, nil)...)
	}
	from := netip.MustParseAddr("192.0.2.2")
	got, err := testGuard().exchange(say(6, node("b", atB, 0, 1<<32-1), node("c", atC, 1, 1), node("c", atC, 3, 1), node("c", atC, 0, 1<<32-1), node("c", atB, 0, 1), node("a", atA, 2, 5)), from)
	if err != nil {
		t.Fatal(err)
	}
	header, rest, err := readFields(got[1:])
	if err != nil || header.number("Nodes") != 3 || !header.flag("Join") || header.number("UserStateLen") != 0 {
		t.Errorf("the header has %v, error %v", header, err)
	}
	if want := bytes.Join([][]byte{node("b", atB, 0, 1<<32-1), node("c", atC, 1, 1), node("a", atA, 2, 5)}, nil); !bytes.Equal(rest, want) {
		t.Errorf("memberlist may read %q, want %q", rest, want)
	}
	for name, message := range map[string][]byte{
		"nothing": nil, "a kind": {pushPullMsg}, "a ping": pack(pingMsg, "SeqNo", 1), "fewer nodes than it says": say(2, node("b", atB, 0, 1)),
		"more": say(0, node("b", atB, 0, 1)), "a million": say(1<<20, node("b", atB, 0, 1)), "a state": pack(pushPullMsg, "Nodes", 0, "UserStateLen", 1<<20, "Join", false),
	} {
		if _, err := testGuard().exchange(message, from); err == nil {
			t.Errorf("%s: memberlist may read it", name)
		}
	}
}

// silence is a transport that carries nothing but what a test puts into it.
type silence struct {
	packets chan *memberlist.Packet
	streams chan net.Conn
}

func (silence) FinalAdvertiseAddr(string, int) (net.IP, int, error) { return net.IP(atA), 7947, nil }
func (silence) WriteTo([]byte, string) (time.Time, error)           { return time.Now(), nil }
func (s silence) PacketCh() <-chan *memberlist.Packet               { return s.packets }
func (s silence) StreamCh() <-chan net.Conn                         { return s.streams }
func (silence) Shutdown() error                                     { return nil }
func (silence) DialTimeout(string, time.Duration) (net.Conn, error) { return nil, net.ErrClosed }

// FuzzGuard: memberlist reads whatever a guard lets pass without a panic, and in bounded memory.
func FuzzGuard(f *testing.F) {
	f.Add(pack(pingMsg, "SeqNo", 5, "Node", "a", "SourceAddr", atB, "SourcePort", 7947, "SourceNode", "b"))
	f.Add(pack(indirectPingMsg, "SeqNo", 5, "Node", "c", "Target", atC, "Port", 7947, "SourceAddr", atB, "SourcePort", 7947, "Nack", true))
	f.Add(pack(aliveMsg, "Incarnation", 9, "Node", "c", "Addr", atC, "Port", 7947, "Vsn", versions))
	f.Add(pack(suspectMsg, "Incarnation", 1, "Node", "c", "From", "b"))
	f.Add(append(pack(pushPullMsg, "Nodes", 1, "UserStateLen", 0, "Join", true), pack(0, "Name", "b", "Addr", atB, "Port", 7947, "Incarnation", 1, "State", 0, "Vsn", versions)[1:]...))
	f.Add([]byte{compoundMsg, 1, 0, 4, compoundMsg, 1, 0, 0})
	c := memberlist.DefaultLANConfig()
	c.Name, c.Logger, c.LogOutput = "a", logOf(klog.Background()), nil
	c.DisableTcpPings = true
	silent := silence{make(chan *memberlist.Packet), make(chan net.Conn)}
	c.Transport = silent
	list, err := memberlist.Create(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = list.Shutdown() })
	from := netip.MustParseAddr("192.0.2.2")
	f.Fuzz(func(_ *testing.T, b []byte) {
		g := testGuard()
		messages, _ := g.packet(b, from, time.Now())
		for _, message := range messages {
			silent.packets <- &memberlist.Packet{Buf: message, From: &net.UDPAddr{IP: net.IP(atB), Port: 7947}, Timestamp: time.Now()}
		}
		if text, err := g.exchange(b, from); err == nil {
			near, far := net.Pipe()
			silent.streams <- &stream{Conn: far, read: bytes.NewReader(text), said: true}
			_, _ = near.Read(make([]byte, 1)) // until it is read
		}
	})
}
