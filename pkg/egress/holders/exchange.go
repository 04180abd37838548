package holders

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// askAgain is how long an answer may take before the same is asked again.
const askAgain = 10 * time.Millisecond

// reminders are when a node is asked again that is known to say something which is not all here: a part may be lost, or the
// question. After them its next heartbeat has it asked.
var reminders = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 700 * time.Millisecond}

// exchange is what this node has said to the others, and they to it, directly. It decides which datagrams count.
// doc.go has the protocol. It is for one goroutine at a time.
type exchange struct {
	about   topic
	node    string
	session uint64
	// random returns a random number other than 0.
	random   func() uint64
	sequence uint64
	// said is what this node says; nil as long as that is nothing. unsaid is what it does not say, because that is too long.
	said, unsaid *Statement
	// blocks are those of what this node says.
	blocks []kernel.Block
	peers  map[string]*peer
	// at has their names by their addresses.
	at map[netip.Addr]string
	// remindAt is when the next of them has to be asked again; zero for never.
	remindAt time.Time
	// refused is why most nodes are not believed, as it was found last; nil if they are. judgeAt is when to find that out again;
	// zero for never.
	refused error
	judgeAt time.Time
	// example is a node that refused names.
	example string
}

// peer is another node.
type peer struct {
	address netip.Addr
	// session is that of the process that runs there, and sequence the newest of it that was heard. They
	// are 0 as long as it has not answered.
	session, sequence uint64
	// said is what it says. It is never changed, but replaced.
	said Statement
	// blocks are those of what it says. They are never changed, but replaced.
	blocks []kernel.Block
	// nonce is that of a question which is not answered yet; 0 if there is none. askedAt is when it was
	// asked last.
	nonce   uint64
	askedAt time.Time
	// parts of a statement that are here already, by their number, mostParts at most. Those that a process sends of a revision
	// are the same each time, so what was lost of one answer may come with the next.
	parts map[uint16]datagram
	// refusedSince is since when datagrams come from its address that are not authentic, and none that is accepted; zero if none
	// come. refusedAt is when the last one came, and acceptedAt when one was accepted last.
	refusedSince, refusedAt, acceptedAt time.Time
	// answeredAt is when a question of it was answered last.
	answeredAt time.Time
	// remindAt is when it has to be asked again; zero for never. It was so often since its last heartbeat.
	remindAt time.Time
	reminded int
}

// verdict says what became of a datagram.
type verdict string

const (
	// accepted: it says something, or is part of that.
	accepted verdict = "accepted"
	// outdated: it comes too late, or from a process that has to be asked first, or it answers what nobody has asked, or it asks
	// what was answered a moment ago.
	outdated verdict = "outdated"
	// foreign: the Node that it names has another address.
	foreign verdict = "foreign"
	// unauthenticated: it is not signed with one of our keys.
	unauthenticated verdict = "unauthenticated"
	// unreadable: it is something else, or has another version.
	unreadable verdict = "unreadable"
)

func newExchange(about topic, node string, random func() uint64) *exchange {
	return &exchange{about: about, node: node, session: random(), random: random, peers: map[string]*peer{}}
}

// setPeers takes the addresses of the other nodes, and returns the names of those that are new or have
// another address: nothing is known of what they say.
func (x *exchange) setPeers(addresses map[string]netip.Addr) (strangers []string) {
	before := len(x.peers)
	maps.DeleteFunc(x.peers, func(name string, p *peer) bool { return addresses[name] != p.address })
	changed := len(x.peers) != before
	for name, address := range addresses {
		if x.peers[name] == nil && name != x.node {
			x.peers[name] = &peer{address: address}
			strangers = append(strangers, name)
		}
	}
	if changed || len(strangers) > 0 {
		x.at = make(map[netip.Addr]string, len(x.peers))
		for name, p := range x.peers {
			x.at[p.address] = name
		}
	}
	return strangers
}

// say takes what this node says from now on, and returns the datagrams for all others; none if that is what
// it says already. A node that has never had anything to say says nothing. Of a statement that is too long nothing is said: a
// part of it would say that this node has not the other addresses. It is errTooLong, each time.
func (x *exchange) say(s Statement, blocks ...kernel.Block) ([]datagram, error) {
	same := slices.Equal(x.blocks, blocks)
	switch {
	case x.unsaid != nil && x.unsaid.equal(s) && same:
		return nil, errTooLong
	case x.said == nil && x.unsaid == nil && len(s.Addresses)+len(blocks) == 0, x.said != nil && x.said.equal(s) && same:
		return nil, nil
	}
	x.sequence++
	x.blocks = blocks
	datagrams := x.datagram(0).split(s, blocks...)
	if len(datagrams) > mostParts {
		x.said, x.unsaid = nil, &s
		return nil, errTooLong
	}
	x.said, x.unsaid = &s, nil
	return datagrams, nil
}

// repeat returns the datagram that tells all others that what was said still holds; none if nothing was.
func (x *exchange) repeat() []datagram {
	if x.said == nil {
		return nil
	}
	x.sequence++
	d := x.datagram(heartbeat)
	d.revision = x.said.Revision
	return []datagram{d}
}

// greet returns the datagrams for a node of which nothing is known, or nothing any more.
func (x *exchange) greet(name string, now time.Time) []datagram {
	return append(x.ask(x.peers[name], now), x.repeat()...)
}

func (x *exchange) datagram(kind kind) datagram {
	return datagram{about: x.about, kind: kind, node: x.node, session: x.session, sequence: x.sequence}
}

// ask returns a question to a node for what it says, unless it was asked a moment ago.
func (x *exchange) ask(p *peer, now time.Time) []datagram {
	if p.nonce != 0 && now.Before(p.askedAt.Add(askAgain)) {
		return nil
	}
	if p.nonce == 0 {
		p.nonce = x.random()
	}
	p.askedAt = now
	d := x.datagram(question)
	d.nonce = p.nonce
	return []datagram{d}
}

// receive takes a datagram that came from an address. It returns what to answer, and what its node says if
// that is known.
func (x *exchange) receive(d datagram, from netip.Addr, now time.Time) (answers []datagram, said *Announced, v verdict) {
	p := x.peers[d.node]
	if p == nil || p.address != from {
		return nil, nil, foreign
	}
	known := d.session == p.session && p.session != 0
	switch {
	case d.kind == question && now.Before(p.answeredAt.Add(askAgain)):
		return nil, nil, outdated // maybe replayed; who needs the answer asks again
	case d.kind == question:
		p.answeredAt = now
		return x.answer(d.nonce), nil, accepted
	case d.nonce != 0:
		if d.nonce != p.nonce || known && d.revision < p.said.Revision {
			return nil, nil, outdated
		}
		return x.take(p, d, now)
	case !known:
		return x.ask(p, now), nil, outdated
	case d.kind == statement && p.continues(d):
		return x.take(p, d, now)
	case d.sequence <= p.sequence:
		return nil, nil, outdated
	case d.kind == statement:
		return x.take(p, d, now)
	}
	p.sequence, p.reminded = d.sequence, 0
	if d.revision != p.said.Revision {
		x.remindLater(p, now)
		return x.ask(p, now), nil, accepted
	}
	return nil, p.announced(d.node), accepted
}

// answer returns the answer to a question; nothing if this node has nothing to say.
func (x *exchange) answer(nonce uint64) []datagram {
	if x.said == nil {
		return nil
	}
	d := x.datagram(0)
	d.nonce = nonce
	return d.split(*x.said, x.blocks...)
}

// continues tells whether a datagram has a part of the statement whose parts are being gathered.
func (p *peer) continues(d datagram) bool {
	for _, other := range p.parts {
		return other.session == d.session && other.revision == d.revision && other.parts == d.parts
	}
	return false
}

// remindLater has a peer asked again soon. Only what its process has said, or its answer, may lead to that: nobody who forges
// its address has it asked more than once for each datagram.
func (x *exchange) remindLater(p *peer, now time.Time) {
	if p.remindAt.IsZero() && p.reminded < len(reminders) {
		p.remindAt = now.Add(reminders[p.reminded])
		x.remindAt = Earlier(x.remindAt, p.remindAt)
	}
}

// remind returns the questions that are due, by the names of the nodes.
func (x *exchange) remind(now time.Time) (questions map[string][]datagram) {
	if x.remindAt.IsZero() || now.Before(x.remindAt) {
		return nil
	}
	questions, x.remindAt = map[string][]datagram{}, time.Time{}
	for name, p := range x.peers {
		if !p.remindAt.IsZero() && !now.Before(p.remindAt) {
			questions[name], p.remindAt = x.ask(p, now), time.Time{}
			p.reminded++
			x.remindLater(p, now)
		}
		x.remindAt = Earlier(x.remindAt, p.remindAt)
	}
	return questions
}

// take takes a part of a peer's statement, which is an answer, or later than all that was heard.
func (x *exchange) take(p *peer, d datagram, now time.Time) ([]datagram, *Announced, verdict) {
	if !p.continues(d) {
		p.parts = map[uint16]datagram{}
	}
	p.parts[d.part] = d
	if d.nonce == 0 {
		p.sequence = max(p.sequence, d.sequence)
	}
	if len(p.parts) < int(d.parts) {
		x.remindLater(p, now)
		return nil, nil, accepted
	}
	p.remindAt, p.reminded = time.Time{}, 0
	if d.nonce != 0 {
		if p.session != d.session {
			p.sequence = 0
		}
		p.session, p.sequence, p.nonce = d.session, max(p.sequence, d.sequence), 0
	}
	p.said = Statement{Addresses: map[netip.Addr]uint64{}, Revision: d.revision}
	p.blocks = nil
	for _, i := range slices.Sorted(maps.Keys(p.parts)) {
		maps.Copy(p.said.Addresses, p.parts[i].addresses)
		p.blocks = append(p.blocks, p.parts[i].blocks...)
	}
	p.parts = nil
	return nil, p.announced(d.node), accepted
}

func (p *peer) announced(name string) *Announced {
	return &Announced{Node: name, Statement: p.said, Source: Announcement}
}

// names returns the names of all other nodes, sorted.
func (x *exchange) names() []string { return slices.Sorted(maps.Keys(x.peers)) }

// only returns those of these names that are other nodes'.
func (x *exchange) only(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return x.peers[name] == nil })
}
