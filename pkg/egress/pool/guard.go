package pool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// These are memberlist's messages (its net.go, v0.7.0). The others it never sends as it is configured here.
const (
	pingMsg byte = iota
	indirectPingMsg
	ackMsg
	suspectMsg
	aliveMsg
	deadMsg
	pushPullMsg
	compoundMsg
	nackMsg = 11
	crcMsg  = 12
	errMsg  = 13
)

const (
	// slack is by how much an incarnation may be higher than what its node has said itself: others pass on what it says, and
	// remember its last process.
	slack = 1 << 16
	// askedTime is how long a question may be answered, mostAsked how many are remembered.
	askedTime, mostAsked = 2 * time.Second, 4096
	// mostFields bounds a message of memberlist.
	mostFields = 16
)

// guard says what memberlist may read. Whoever has a key may send anything: memberlist's decoder would use as much stack or heap
// as a message says, and memberlist itself believes anybody about anybody. What passes is flat and complete, and names its sender
// where it says who sends it; and what it says of third nodes does not last:
//
//   - That a node is dead or has left, makes others suspect it: it can contradict.
//   - An incarnation (by which a node contradicts) is never much higher than what the node has said itself. memberlist's numbers
//     have no end that a node could contradict beyond.
//   - An answer counts from whom was asked: a node itself, or those that were asked about it.
type guard struct {
	self netip.Addr
	port uint16
	// nodeAt returns who has an address, addressOf where a node is.
	nodeAt    func(netip.Addr) (name string, known bool)
	addressOf func(name string) (at netip.Addr, known bool)

	mu sync.Mutex
	// vouched are the incarnations that nodes have said themselves.
	vouched map[string]uint64
	// asked are the questions whose answers may come. order has the last ones, and oldest is which of them is overwritten next:
	// others can have this node ask very much.
	asked  map[asked]time.Time
	order  []asked
	oldest int
}

// asked is a question to a node.
type asked struct {
	number uint64
	of     netip.Addr
}

func newGuard(self netip.Addr, port uint16) *guard {
	return &guard{self: self, port: port, vouched: map[string]uint64{}, asked: map[asked]time.Time{}}
}

var errMalformed = errors.New("it is no message of memberlist")

// packet returns what of a packet memberlist may read: single messages.
func (g *guard) packet(b []byte, from netip.Addr, now time.Time) (messages [][]byte, err error) {
	parts, err := messagesOf(b)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		message, err := g.message(part, from, now)
		if err != nil {
			return messages, err
		}
		messages = append(messages, message)
	}
	return messages, nil
}

// sent notes what memberlist sends to a node.
func (g *guard) sent(b []byte, to netip.Addr, now time.Time) {
	parts, err := messagesOf(b)
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, part := range parts {
		f, rest, err := readFields(part[1:])
		switch {
		case err != nil || len(rest) > 0:
		case part[0] == pingMsg || part[0] == indirectPingMsg:
			g.ask(asked{f.number("SeqNo"), to}, now)
		case part[0] == aliveMsg && f.address("Addr") == g.self:
			g.vouched[f.text("Node")] = f.number("Incarnation")
		}
	}
}

// ask notes a question, and forgets the oldest one if there are too many. The lock must be held.
func (g *guard) ask(question asked, now time.Time) {
	if _, known := g.asked[question]; !known && len(g.order) < mostAsked {
		g.order = append(g.order, question)
	} else if !known {
		delete(g.asked, g.order[g.oldest])
		g.order[g.oldest], g.oldest = question, (g.oldest+1)%mostAsked
	}
	g.asked[question] = now
}

// messagesOf splits a packet.
func messagesOf(b []byte) (parts [][]byte, err error) {
	if len(b) > 5 && b[0] == crcMsg {
		b = b[5:] // what is authentic needs no checksum
	}
	if len(b) == 0 {
		return nil, errMalformed
	}
	if b[0] != compoundMsg {
		return [][]byte{b}, nil
	}
	if len(b) < 2 || len(b) < 2+2*int(b[1]) {
		return nil, errMalformed
	}
	lengths, rest := b[2:2+2*int(b[1])], b[2+2*int(b[1]):]
	for ; len(lengths) > 0; lengths = lengths[2:] {
		length := int(binary.BigEndian.Uint16(lengths))
		if length == 0 || length > len(rest) || rest[0] == compoundMsg {
			return nil, errMalformed
		}
		parts, rest = append(parts, rest[:length]), rest[length:]
	}
	return parts, nil
}

// message returns a message as memberlist may read it.
func (g *guard) message(b []byte, from netip.Addr, now time.Time) ([]byte, error) {
	f, rest, err := readFields(b[1:])
	if err != nil || len(rest) > 0 {
		return nil, errMalformed
	}
	switch b[0] {
	case pingMsg, indirectPingMsg:
		if f.address("SourceAddr") != from || f.number("SourcePort") != uint64(g.port) {
			return nil, errors.New("it asks for an answer to another node")
		}
		if b[0] == indirectPingMsg {
			return b, g.isNode(f.address("Target"), f.number("Port"))
		}
		return b, nil
	case ackMsg, nackMsg:
		return b, g.answers(asked{f.number("SeqNo"), from}, b[0] == ackMsg, now)
	case aliveMsg:
		return b, g.alive(f, "Node", from)
	case suspectMsg, deadMsg:
		accusation := slices.Clone(b) // both have the same fields
		accusation[0] = suspectMsg
		return accusation, g.plausible(f.text("Node"), f.number("Incarnation"))
	}
	return nil, fmt.Errorf("no member sends a message of kind %d", b[0])
}

// isNode returns an error unless a node is there.
func (g *guard) isNode(at netip.Addr, port uint64) error {
	if _, known := g.nodeAt(at); !known || port != uint64(g.port) {
		return errors.New("no node is there")
	}
	return nil
}

// answers returns an error unless this was asked.
func (g *guard) answers(question asked, last bool, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, was := g.asked[question]
	if last {
		delete(g.asked, question)
	}
	if !was || now.Sub(at) > askedTime {
		return errors.New("it answers a question that was not asked")
	}
	return nil
}

// alive returns an error unless a node may say this of itself, or another one of it. In name is that of the field with the name.
func (g *guard) alive(f fields, name string, from netip.Addr) error {
	node, at := f.text(name), f.address("Addr")
	want, known := g.addressOf(node)
	switch {
	case !known || at != want || f.number("Port") != uint64(g.port):
		return errors.New("no node of the cluster is there")
	case len(f.bytes("Meta")) > 0:
		return errors.New("no member says anything of itself to memberlist")
	case !speaks(f.bytes("Vsn")):
		return errors.New("no member speaks this version of memberlist's protocol")
	}
	if at == from {
		g.mu.Lock()
		g.vouched[node] = f.number("Incarnation")
		g.mu.Unlock()
	}
	return g.plausible(node, f.number("Incarnation"))
}

// speaks tells whether a member may speak these versions of memberlist's protocol. memberlist takes part with nobody any more if it
// believes a node to speak others.
func speaks(versions []byte) bool {
	return len(versions) == 6 && versions[0] == 1 && versions[1] >= 2 && versions[2] == 2 && versions[3]|versions[4]|versions[5] == 0
}

// plausible returns an error if an incarnation is much higher than what its node has said itself.
func (g *guard) plausible(node string, incarnation uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if incarnation > g.vouched[node]+slack {
		return fmt.Errorf("node %q has not said that its incarnation is anything like %d", node, incarnation)
	}
	return nil
}

// forget forgets nodes that are none of the cluster's, which are these.
func (g *guard) forget(nodes map[string]netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.vouched, func(name string, _ uint64) bool { return !nodes[name].IsValid() })
}

// exchange returns what of a message of a stream memberlist may read: all that its node knows, without what no node may say.
func (g *guard) exchange(b []byte, from netip.Addr) ([]byte, error) {
	if len(b) > 0 && b[0] == errMsg {
		_, rest, err := readFields(b[1:])
		if err != nil || len(rest) > 0 {
			return nil, errMalformed
		}
		return b, nil
	}
	if len(b) == 0 || b[0] != pushPullMsg {
		return nil, errMalformed
	}
	header, rest, err := readFields(b[1:])
	if err != nil || header.number("UserStateLen") > 0 {
		return nil, errMalformed
	}
	const alive, suspect, dead = 0, 1, 2
	nodes, entries := 0, []byte(nil)
	for range header.number("Nodes") {
		entry := rest
		f, after, err := readFields(entry)
		if err != nil {
			return nil, errMalformed
		}
		rest, entry = after, entry[:len(entry)-len(after)]
		state := f.number("State")
		if state == alive && g.alive(f, "Name", from) == nil ||
			(state == suspect || state == dead) && speaks(f.bytes("Vsn")) && g.plausible(f.text("Name"), f.number("Incarnation")) == nil {
			nodes, entries = nodes+1, append(entries, entry...)
		}
	}
	if len(rest) > 0 {
		return nil, errMalformed
	}
	return append(pushPullHeader(nodes, header.flag("Join")), entries...), nil
}

// pushPullHeader is what is in front of the nodes in a message that has all that a node knows.
func pushPullHeader(nodes int, join bool) []byte {
	name := func(b []byte, s string) []byte { return append(append(b, 0xa0|byte(len(s))), s...) }
	b := name([]byte{pushPullMsg, 0x83}, "Nodes")
	b = binary.BigEndian.AppendUint32(append(b, 0xce), uint32(nodes))
	b = append(name(b, "UserStateLen"), 0)
	if b = name(b, "Join"); join {
		return append(b, 0xc3)
	}
	return append(b, 0xc2)
}

// fields are those of a message: numbers (uint64), flags (bool), texts ([]byte), and nil.
type fields map[string]any

func (f fields) number(name string) uint64      { n, _ := f[name].(uint64); return n }
func (f fields) flag(name string) bool          { is, _ := f[name].(bool); return is }
func (f fields) bytes(name string) []byte       { b, _ := f[name].([]byte); return b }
func (f fields) text(name string) string        { return string(f.bytes(name)) }
func (f fields) address(name string) netip.Addr { return kernel.AddrOf(f.bytes(name)) }

// readFields reads a map of MessagePack that has each name once, and nothing in it but what [fields] has. It returns what
// follows.
func readFields(b []byte) (fields, []byte, error) {
	if len(b) == 0 || b[0]&0xf0 != 0x80 || b[0]&0x0f > mostFields {
		return nil, nil, errMalformed
	}
	f, n := fields{}, int(b[0]&0x0f)
	b = b[1:]
	for range n {
		name, rest, err := readValue(b)
		text, is := name.([]byte)
		if _, twice := f[string(text)]; err != nil || !is || twice {
			return nil, nil, errMalformed
		}
		value, after, err := readValue(rest)
		if err != nil {
			return nil, nil, err
		}
		f[string(text)], b = value, after
	}
	return f, b, nil
}

// readValue reads a value of MessagePack.
func readValue(b []byte) (value any, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errMalformed
	}
	kind, b := b[0], b[1:]
	switch {
	case kind < 0x80:
		return uint64(kind), b, nil
	case kind&0xe0 == 0xa0:
		return readText(b, uint64(kind&0x1f))
	case kind == 0xc0:
		return nil, b, nil
	case kind == 0xc2, kind == 0xc3:
		return kind == 0xc3, b, nil
	}
	lengths := map[byte]int{0xc4: 1, 0xc5: 2, 0xd9: 1, 0xda: 2, 0xcc: 1, 0xcd: 2, 0xce: 4, 0xcf: 8}
	length, known := lengths[kind]
	if !known || len(b) < length {
		return nil, nil, errMalformed
	}
	var n uint64
	for _, digit := range b[:length] {
		n = n<<8 | uint64(digit)
	}
	if kind >= 0xcc && kind <= 0xcf {
		return n, b[length:], nil
	}
	return readText(b[length:], n)
}

func readText(b []byte, length uint64) (value any, rest []byte, err error) {
	if length > uint64(len(b)) {
		return nil, nil, errMalformed
	}
	return b[:length:length], b[length:], nil
}
