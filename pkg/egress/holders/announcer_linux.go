package holders

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/portowner"
	"github.com/openshift/origin-node/pkg/wake"
)

// repeats are when something new is repeated, in case it was lost; after them as often as a Lease is renewed.
var repeats = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}

const (
	// openAgain is when the port is tried again that could not be opened.
	openAgain = time.Second
	// receiveBuffer has room for what thousands of nodes ask at the same time.
	receiveBuffer = 4 << 20
)

// The results of datagrams that this node sends, beside the verdicts on those that it receives.
const (
	sent   verdict = "sent"
	failed verdict = "failed"
)

// Announcer tells all other nodes directly which addresses this node has, and which source ports its pods, and hears what they tell: by UDP, from
// node to node, without the API server. doc.go has the protocol. At the end of the process nothing is said: a restart
// moves nothing.
type Announcer struct {
	// Failing, if not nil, is told why this node does not announce anything directly, or does not believe others, and nil when that
	// is over. It must not block, and not change after Run.
	Failing func(err error)
	// AsksBlocks: other nodes are asked for the source ports of their pods. Otherwise this node learns of them when they are told next.
	// It must not change after Run.
	AsksBlocks bool

	port uint16
	ring *Keyring
	keys func() Keys // of the ring
	// wake says that there is something new.
	wake     wake.Signal
	received chan packet

	// What follows is for the goroutine of Run.
	exchange *exchange
	// voices are about addresses, which is what exchange is of, and about blocks.
	voices  [topics]*voice
	tell    func(Event)
	socket  *net.UDPConn // nil if it is not open
	opened  netip.Addr   // the address that it has; invalid if it is to be opened again
	trouble failure.Streak
	// closed is why the port is not open, refused why others are not believed; nil for neither. failing is what Failing was told last.
	closed, refused error
	failing         failure.Streak
	// unsaid is why what there is to say is not said, untold why blocks are not.
	unsaid, untold failure.Streak
	// owner is who has the port.
	owner portowner.Cache
	// known are the keys that the other nodes were greeted with last; nil if all are to be greeted.
	known Keys
	// warned: the log says that somebody has other keys than these.
	warned bool

	mu   sync.Mutex
	said Statement
	// blocks are those of this node's pods, as of a revision.
	blocks   []kernel.Block
	revision uint64
	// self and others are where nodes are, as of nodesRevision. othersKnown: the voices have been told of these.
	self          netip.Addr
	others        map[string]netip.Addr
	othersKnown   bool
	nodesRevision uint64
	// asked are the nodes that Ask was called for since the last step.
	asked  []string
	counts map[string]uint64
}

// voice is what this node says about a topic.
type voice struct {
	*exchange
	// saidAt is when something new was said. It was repeated so often, and is again at repeatAt.
	saidAt, repeatAt time.Time
	repeated         int
}

// packet is what came from an address; an error if the socket fails.
type packet struct {
	content []byte
	from    netip.AddrPort
	socket  *net.UDPConn
	err     error
}

// NewAnnouncer returns the Announcer of a node, for a UDP port that is the same on all nodes. As long as the ring has no key
// it says nothing and believes nobody.
func NewAnnouncer(nodeName string, port uint16, ring *Keyring) *Announcer {
	a := &Announcer{
		port: port, ring: ring, keys: ring.For("announcements"),
		wake: wake.New(), received: make(chan packet, 1024), counts: map[string]uint64{},
	}
	for about := range a.voices {
		a.voices[about] = &voice{exchange: newExchange(topic(about), nodeName, random)}
	}
	a.exchange = a.voices[ofAddresses].exchange
	for _, v := range []verdict{sent, failed, accepted, outdated, foreign, unauthenticated, unreadable} {
		a.counts[string(v)] = 0
	}
	return a
}

// random returns a random number other than 0.
func random() uint64 {
	var bytes [8]byte
	_, _ = rand.Read(bytes[:]) // it never fails
	return max(binary.NativeEndian.Uint64(bytes[:]), 1)
}

// SetAnnounced says what to announce, unless a newer statement was said. It must not be changed any more. It does not wait.
func (a *Announcer) SetAnnounced(s Statement) {
	a.change(func() {
		if s.Revision >= a.said.Revision {
			a.said = s
		}
	})
}

// SetAssigned says which source ports this node's pods have, unless something newer was said; the revision grows each time that this is
// something else. The list must not be changed any more. It does not wait.
func (a *Announcer) SetAssigned(revision uint64, blocks []kernel.Block) {
	a.change(func() {
		if revision >= a.revision {
			a.revision, a.blocks = revision, blocks
		}
	})
}

// SetNodes says which addresses this node and the others have, to send from and to, unless something of a greater revision was said. The
// map must not be changed any more. It does not wait.
func (a *Announcer) SetNodes(revision uint64, self netip.Addr, others map[string]netip.Addr) {
	a.change(func() {
		if revision >= a.nodesRevision {
			a.nodesRevision, a.self, a.others, a.othersKnown = revision, self, others, false
		}
	})
}

// Ask asks a node what it says, which may have changed while it could not be heard. Without this, its next heartbeat tells. It does not
// wait.
func (a *Announcer) Ask(node string) {
	a.change(func() { a.asked = append(a.asked, node) })
}

func (a *Announcer) change(set func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	set()
	a.wake.Send()
}

// Counts returns how many datagrams were sent and received, by what became of them.
func (a *Announcer) Counts() map[string]uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.counts)
}

func (a *Announcer) count(v verdict) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[string(v)]++
}

// Run announces, and tells what others announce, until ctx ends. Failures are logged and tried again. The sockets are
// opened on the caller's thread: what counts is the network namespace of that.
func (a *Announcer) Run(ctx context.Context, tell func(Event)) {
	a.tell = tell
	timer, next := time.NewTimer(0), time.Now() // when it goes off; zero for never
	defer timer.Stop()
	defer a.close()
	rekeyed := a.ring.Changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rekeyed:
			rekeyed = a.ring.Changed()
		case p := <-a.received:
			if a.receive(ctx, p) {
				if sooner := Earlier(next, a.dueAt()); !sooner.Equal(next) {
					next = sooner
					timer.Reset(time.Until(next))
				}
				continue
			}
		case <-a.wake:
		case <-timer.C:
		}
		if next = a.step(ctx, time.Now()); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// dueAt is when there is something to do because of what was received; zero for never.
func (a *Announcer) dueAt() (at time.Time) {
	for _, v := range a.voices {
		at = Earlier(at, v.remindAt)
	}
	return Earlier(at, a.exchange.judgeAt)
}

// step does what is due, and returns when there is something to do again; zero for never.
func (a *Announcer) step(ctx context.Context, now time.Time) (again time.Time) {
	a.mu.Lock()
	said, held, revision, self, others, asked := a.said, a.blocks, a.revision, a.self, a.others, a.asked
	known := a.othersKnown
	a.asked, a.othersKnown = nil, true
	a.mu.Unlock()
	var strangers []string
	if !known {
		strangers = a.exchange.setPeers(others)
		a.voices[ofBlocks].setPeers(others) // the same ones
	}
	strangers = append(strangers, a.exchange.only(asked)...)
	if !self.IsValid() {
		a.opened = netip.Addr{}
		return time.Time{}
	}
	if a.socket == nil || a.opened != self {
		if !a.open(ctx, self) {
			return now.Add(openAgain)
		}
		strangers = a.exchange.names()
	}
	keys := a.keys()
	if len(keys) == 0 {
		a.known = nil
		a.exchange.forgive() // nobody is believed, which is told otherwise
		a.judge(now)
		return time.Time{}
	}
	if !keys.shares(a.known) { // so that nothing that was said since we had keys in common is missed
		strangers, a.warned = a.exchange.names(), false
		a.exchange.forgive()
	}
	a.known = keys
	for _, v := range a.voices {
		for _, name := range strangers {
			if v.about != ofBlocks || a.AsksBlocks || v.said != nil {
				a.send(ctx, v.greet(name, now), name)
			}
		}
		for name, questions := range v.remind(now) {
			a.send(ctx, questions, name)
		}
	}
	a.judge(now)
	tooLong := a.sayOrRepeat(ctx, a.voices[ofAddresses], now, said)
	a.setUnsaid(ctx, tooLong, len(said.Addresses))
	tooLong = a.sayOrRepeat(ctx, a.voices[ofBlocks], now, Statement{Revision: revision}, held...)
	a.setUntold(ctx, tooLong, len(held))
	return Earlier(Earlier(a.voices[0].repeatAt, a.voices[1].repeatAt), a.dueAt())
}

// judge finds out whether others are believed.
func (a *Announcer) judge(now time.Time) {
	a.refused = a.exchange.judge(now)
	a.tellFailing()
}

// sayOrRepeat tells all others what is new, or that what was said still holds, if that is due. It returns why it is not said.
func (a *Announcer) sayOrRepeat(ctx context.Context, v *voice, now time.Time, said Statement, of ...kernel.Block) error {
	news, err := v.say(said, of...)
	switch {
	case news != nil:
		v.saidAt, v.repeated = now, 0
		a.send(ctx, news, v.names()...)
	case v.said == nil:
		v.repeatAt = time.Time{}
		return err
	case !now.Before(v.repeatAt):
		v.repeated++
		a.send(ctx, v.repeat(), v.names()...)
	default:
		return err
	}
	v.repeatAt = now.Add(wait.Jitter(renewal, renewalJitter))
	if v.repeated < len(repeats) {
		v.repeatAt = v.saidAt.Add(repeats[v.repeated])
	}
	return err
}

// setUnsaid notes why what there is to say is not said, or with nil that it is.
func (a *Announcer) setUnsaid(ctx context.Context, err error, addresses int) {
	fault := err
	if err != nil {
		fault = fmt.Errorf("this node has %d egress IPs: %w; bring some of them to other nodes", addresses, err)
	}
	if a.unsaid.Turns(fault) && err != nil {
		klog.FromContext(ctx).Error(err, "This node's egress IPs are not announced to the other nodes directly, so these learn of changes from its Lease alone; bring some of them to other nodes",
			"addresses", addresses)
	}
	a.tellFailing()
}

// setUntold notes why it is not said which source ports this node's pods have, or with nil that it is.
func (a *Announcer) setUntold(ctx context.Context, err error, blocks int) {
	if a.untold.Turns(err) && err != nil {
		klog.FromContext(ctx).Error(err, "The blocks of source ports of this node's pods are not announced to the other nodes directly, so these learn of changes from its Lease alone; bring some pods to other nodes",
			"blocks", blocks)
	}
}

// tellFailing tells why nothing is announced, or believed, if that has changed.
func (a *Announcer) tellFailing() {
	failing := errors.Join(a.closed, a.unsaid.Err(), a.refused)
	if a.failing.Changes(failing) && a.Failing != nil {
		a.Failing(failing)
	}
}

// open opens the port, and tells whether it could.
func (a *Announcer) open(ctx context.Context, self netip.Addr) bool {
	a.close()
	address := netip.AddrPortFrom(self, a.port)
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(address))
	if err != nil {
		if errors.Is(err, unix.EADDRINUSE) {
			err = fmt.Errorf("%w: the port is in use by %s; end that program, or choose another port with egress-snat-announce-port on all nodes", err, a.owner.Find("udp", address))
		}
		if a.closed = err; ctx.Err() == nil {
			a.tellFailing()
		}
		if ctx.Err() == nil && a.trouble.Turns(err) {
			klog.FromContext(ctx).Error(err, "Cannot announce egress IPs to the other nodes directly, so they learn of changes from the API server alone; will retry, further failures are not logged",
				"address", address)
		}
		return false
	}
	if a.trouble.Turns(nil) {
		klog.FromContext(ctx).Info("Egress IPs are announced to the other nodes directly again", "address", address)
	}
	MakeRoom(conn, receiveBuffer)
	a.socket, a.opened, a.closed, a.owner = conn, self, nil, portowner.Cache{}
	a.tellFailing()
	go a.read(ctx, a.socket)
	return true
}

func (a *Announcer) close() {
	if a.socket != nil {
		_ = a.socket.Close() // nothing is written that is not sent
		a.socket = nil
	}
}

// read passes on what comes, until the socket is closed or ctx ends.
func (a *Announcer) read(ctx context.Context, socket *net.UDPConn) {
	for {
		buffer := make([]byte, largestDatagram+1) // a longer one is cut, and cannot be read
		n, from, err := socket.ReadFromUDPAddrPort(buffer)
		select {
		case a.received <- packet{buffer[:n], from, socket, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// receive takes what came, and tells whether the socket is as it was.
func (a *Announcer) receive(ctx context.Context, p packet) bool {
	if p.socket != a.socket {
		return true // it was closed
	}
	if p.err != nil {
		klog.FromContext(ctx).Error(p.err, "The port for direct announcements failed; opening it again")
		a.close()
		return false
	}
	v := a.hear(ctx, p)
	a.count(v)
	if v == unauthenticated && !a.warned && len(a.known) > 0 {
		a.warned = true
		klog.FromContext(ctx).Error(errUnauthenticated, "Ignored a direct announcement. If a node sent it, the egress IPs of that node are known only from its Lease: it runs an older version, or lacks the keys of the other nodes (then its log says so). With egress-snat-key-file, give all nodes the same file. Further ones are counted, not logged",
			"from", p.from)
	}
	return true
}

// hear takes a datagram, answers it, and tells what its node says.
func (a *Announcer) hear(ctx context.Context, p packet) verdict {
	keys, from, now := a.keys(), p.from.Addr().Unmap(), time.Now()
	d, err := decode(p.content, keys)
	switch {
	case errors.Is(err, errUnauthenticated):
		if p.from.Port() == a.port && len(keys) > 0 {
			a.exchange.refuse(from, now)
		}
		return unauthenticated
	case err != nil:
		return unreadable
	case p.from.Port() != a.port: // another program on that node
		return foreign
	}
	x := a.voices[d.about].exchange
	answers, said, v := x.receive(d, from, now)
	if v == accepted {
		a.exchange.accept(d.node, now)
	}
	a.send(ctx, answers, d.node)
	switch {
	case said == nil:
	case d.about == ofBlocks:
		a.tell(Assigned{said.Node, x.peers[d.node].blocks, said.Revision, Announcement})
	default:
		a.tell(*said)
	}
	return v
}

// send sends datagrams to nodes.
func (a *Announcer) send(ctx context.Context, datagrams []datagram, names ...string) {
	keys := a.keys()
	if len(keys) == 0 {
		return
	}
	for _, d := range datagrams {
		content := d.encode(keys)
		for _, name := range names {
			to := netip.AddrPortFrom(a.exchange.peers[name].address, a.port)
			if _, err := a.socket.WriteToUDPAddrPort(content, to); err != nil {
				klog.FromContext(ctx).V(4).Info("A direct announcement could not be sent", "to", to, "err", err)
				a.count(failed)
				continue
			}
			a.count(sent)
		}
	}
}
