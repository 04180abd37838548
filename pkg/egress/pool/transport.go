package pool

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/wake"
)

// What a datagram has, in its first byte when it is open.
const (
	gossipText byte = iota // a packet of memberlist
	stateText              // a [State]
)

const (
	// receiveBuffer is how much the kernel is asked to keep of what has come.
	receiveBuffer = 2 << 20
	// mostWaiting is how many streams of an address may be there whose first chunk is not open: of more, the oldest ends.
	mostWaiting = 64
	// mostStreams is how many messages of a node may be on their way at a time.
	mostStreams = 8
)

// transport carries what members tell each other, sealed. It believes nothing that is not from a node of the cluster, sealed with a
// key of this node, by the process that runs there now, for this one.
type transport struct {
	self    netip.Addr
	logger  klog.Logger
	keys    func() holders.Keys
	nodeAt  func(netip.Addr) (name string, known bool)
	guard   *guard
	events  transportEvents
	udp     *net.UDPConn
	tcp     *net.TCPListener
	packets chan *memberlist.Packet
	streams chan net.Conn
	closing chan struct{}
	running sync.WaitGroup

	mu sync.Mutex
	// session is this process's, sent counts the datagrams to each address.
	session session
	sent    map[netip.Addr]uint64
	// heard are the processes of other nodes, as they have said on a stream, with the datagrams that have come of them.
	heard map[netip.Addr]*speaker
	// strange is when a datagram of a process that is not known was opened.
	strange map[netip.Addr]time.Time
	// waiting are the streams whose first chunk is not open, reading counts the others that have more to say.
	waiting map[netip.Addr][]net.Conn
	reading map[netip.Addr]int
}

// speaker is the process of another node.
type speaker struct {
	session session
	window  window
}

// transportEvents are what the owner of a transport is told, and asked.
type transportEvents struct {
	// state returns this node's state, which goes with each message of memberlist on a stream.
	state func() []byte
	// heard is told the state of the node at an address.
	heard func(from netip.Addr, text []byte)
	// stranger is told of a process that has to be spoken with on a stream before its datagrams count.
	stranger func(from netip.Addr)
}

var _ memberlist.NodeAwareTransport = &transport{}

// listenError says at what the members cannot listen.
type listenError struct {
	protocol string
	at       netip.AddrPort
	err      error
}

func (e *listenError) Error() string {
	return fmt.Sprintf("listen for the other nodes of the pool: %v", e.err)
}

func (e *listenError) Unwrap() error { return e.err }

// listen opens the port at an address of this node.
func listen(logger klog.Logger, keys func() holders.Keys, g *guard, events transportEvents) (*transport, error) {
	self := g.self
	at := netip.AddrPortFrom(self, g.port)
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return nil, &listenError{"tcp", at, err}
	}
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		_ = tcp.Close()
		return nil, &listenError{"udp", at, err}
	}
	holders.MakeRoom(udp, receiveBuffer)
	t := &transport{
		self: self, logger: logger, keys: keys, nodeAt: g.nodeAt, guard: g, events: events, udp: udp, tcp: tcp,
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), closing: make(chan struct{}),
		sent: map[netip.Addr]uint64{}, heard: map[netip.Addr]*speaker{}, strange: map[netip.Addr]time.Time{}, waiting: map[netip.Addr][]net.Conn{}, reading: map[netip.Addr]int{},
	}
	_, _ = rand.Read(t.session[:]) // it never fails
	t.running.Go(t.receive)
	t.running.Go(t.accept)
	return t, nil
}

// Shutdown is part of [memberlist.Transport].
func (t *transport) Shutdown() error {
	close(t.closing)
	err := errors.Join(t.udp.Close(), t.tcp.Close())
	t.mu.Lock()
	for _, conns := range t.waiting {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	t.mu.Unlock()
	t.running.Wait()
	return err
}

// FinalAdvertiseAddr is part of [memberlist.Transport].
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.self.AsSlice(), int(t.guard.port), nil
}

// PacketCh is part of [memberlist.Transport].
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh is part of [memberlist.Transport].
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// WriteTo is part of [memberlist.Transport]. What cannot be sent is lost: memberlist finds only those dead whom it could ask.
func (t *transport) WriteTo(b []byte, to string) (time.Time, error) {
	at, err := netip.ParseAddrPort(to)
	if err != nil {
		return time.Time{}, err
	}
	t.guard.sent(b, at.Addr().Unmap(), time.Now())
	_ = t.send(at.Addr().Unmap(), gossipText, b)
	return time.Now(), nil
}

// WriteToAddress is part of [memberlist.NodeAwareTransport].
func (t *transport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, to.Addr)
}

// send sends a datagram to a node, and nothing to others.
func (t *transport) send(to netip.Addr, what byte, text []byte) error {
	if _, known := t.nodeAt(to); !known {
		return fmt.Errorf("no node of the cluster is at %s", to)
	}
	keys := t.keys()
	if len(keys) == 0 {
		return errNoKeys
	}
	t.mu.Lock()
	t.sent[to]++
	number := t.sent[to]
	t.mu.Unlock()
	sealed := sealDatagram(keys[0], t.session, number, way{t.self, to}, append([]byte{what}, text...))
	_, err := t.udp.WriteToUDPAddrPort(sealed, netip.AddrPortFrom(to, t.guard.port))
	return err
}

// receive reads datagrams until the socket is closed.
func (t *transport) receive() {
	buffer := make([]byte, 2*datagram) // members send nothing longer
	for {
		n, from, err := t.udp.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			err = t.datagram(from, buffer[:n])
		}
		if err != nil {
			t.logger.V(4).Info("Ignored a datagram to the port of the pool", "from", from, "reason", err.Error())
		}
	}
}

// datagram takes a datagram.
func (t *transport) datagram(from netip.AddrPort, sealed []byte) error {
	at := from.Addr().Unmap()
	if _, known := t.nodeAt(at); !known {
		return errUnsealed
	}
	if !t.isWorthIt(at, sealed, time.Now()) {
		return errUnsealed
	}
	s, number, text, err := openDatagram(t.keys(), way{at, t.self}, sealed)
	if err != nil {
		return err
	}
	if len(text) < 2 {
		return errMalformed
	}
	if !t.isNew(at, s, number) {
		return errors.New("it has come before, or is of a process that is not known to run there")
	}
	if text[0] == stateText {
		t.events.heard(at, text[1:])
		return nil
	}
	if text[0] != gossipText {
		return errMalformed
	}
	now := time.Now()
	messages, err := t.guard.packet(text[1:], at, now)
	for _, message := range messages {
		select {
		case t.packets <- &memberlist.Packet{Buf: message, From: net.UDPAddrFromAddrPort(from), Timestamp: now}:
		case <-t.closing:
		}
	}
	return err
}

// isWorthIt tells whether to open a datagram. Of processes that are not known, few are: whoever has no key is not to keep this node busy.
func (t *transport) isWorthIt(from netip.Addr, sealed []byte, now time.Time) bool {
	if len(sealed) < overhead {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if speaker := t.heard[from]; speaker != nil && speaker.session == session(sealed[1:headerSize-8]) {
		return true
	}
	if now.Sub(t.strange[from]) < joinPause {
		return false
	}
	t.strange[from] = now
	return true
}

// isNew tells whether a datagram has not come before, and is of the process that has spoken on a stream last.
func (t *transport) isNew(from netip.Addr, s session, number uint64) bool {
	t.mu.Lock()
	speaker := t.heard[from]
	known := speaker != nil && speaker.session == s
	is := known && speaker.window.take(number)
	t.mu.Unlock()
	if !known {
		t.events.stranger(from)
	}
	return is
}

// forget forgets nodes that are none of the cluster's, which are these.
func (t *transport) forget(nodes map[netip.Addr]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.heard, func(at netip.Addr, _ *speaker) bool { return nodes[at] == "" })
	maps.DeleteFunc(t.strange, func(at netip.Addr, _ time.Time) bool { return nodes[at] == "" })
}

// accept accepts streams until the socket is closed.
func (t *transport) accept() {
	for {
		conn, err := t.tcp.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			t.logger.V(2).Info("Cannot accept a connection of another node of the pool; will retry", "reason", err.Error())
			wake.Sleep(t.closing, SendAgain)
			continue
		}
		t.running.Go(func() {
			if err := t.answer(conn); err != nil {
				_ = conn.Close()
				t.logger.V(4).Info("Ignored a connection to the port of the pool", "from", conn.RemoteAddr(), "reason", err.Error())
			}
		})
	}
}

// answer takes what a node says on a stream, and lets memberlist answer if it is for memberlist. A stream begins with
// a nonce of each side, so nothing of another one can be repeated on it.
func (t *transport) answer(conn net.Conn) error {
	from := addressOf(conn.RemoteAddr())
	if _, known := t.nodeAt(from); !known {
		return errUnsealed
	}
	t.wait(from, conn)
	s, err := t.greeted(conn, from)
	t.waited(from, conn)
	if err != nil {
		return err
	}
	if !t.enter(from) {
		return errors.New("the node says too much at once")
	}
	defer t.leave(from)
	message, err := s.message()
	if err != nil {
		return err
	}
	if len(message) == 0 {
		return conn.Close()
	}
	s.read = bytes.NewReader(message)
	select {
	case t.streams <- s:
	case <-t.closing:
		return net.ErrClosed
	}
	return nil
}

// greeted greets whoever has called, and opens the first chunk of what it says.
func (t *transport) greeted(conn net.Conn, from netip.Addr) (*stream, error) {
	if err := conn.SetDeadline(time.Now().Add(ConnectionTime)); err != nil {
		return nil, err
	}
	var nonces [2 * nonceSize]byte
	_, _ = rand.Read(nonces[:nonceSize]) // it never fails
	if _, err := conn.Write(nonces[:nonceSize]); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(conn, nonces[nonceSize:]); err != nil {
		return nil, err
	}
	keys := t.keys()
	s := &stream{Conn: conn, transport: t, peer: from, opener: opener{from: conn}}
	for _, key := range keys {
		s.opener.ciphers = append(s.opener.ciphers, newCipher(key, "question", nonces[:], way{from, t.self}))
	}
	done, err := s.opener.next()
	if err != nil {
		return nil, err
	}
	s.opened, s.sealer = done, newCipher(keys[s.opener.key], "answer", nonces[:], way{t.self, from})
	return s, nil
}

// wait notes a stream that has said nothing authentic. If its address has too many of them, the oldest ends: so nobody who has no
// key keeps a node from being heard.
func (t *transport) wait(from netip.Addr, conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append(t.waiting[from], conn)
	if len(all) > mostWaiting {
		_ = all[0].Close()
		all = slices.Delete(all, 0, 1)
	}
	t.waiting[from] = all
}

func (t *transport) waited(from netip.Addr, conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[from] = slices.DeleteFunc(t.waiting[from], func(c net.Conn) bool { return c == conn })
	if len(t.waiting[from]) == 0 {
		delete(t.waiting, from)
	}
}

// enter tells whether another message of a node may be read.
func (t *transport) enter(from netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading[from] >= mostStreams {
		return false
	}
	t.reading[from]++
	return true
}

func (t *transport) leave(from netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading[from]--; t.reading[from] == 0 {
		delete(t.reading, from)
	}
}
