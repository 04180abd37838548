//go:build linux

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

const (
	// connectTimeout bounds the connection of a link to its target.
	connectTimeout = 5 * time.Second
	// inFlight is how many reads a link may have under way in each direction.
	inFlight = 256
)

// Link forwards TCP connections inside a host's namespace and breaks them on demand.
// A new one forwards faithfully. Its methods may be called from several goroutines.
type Link struct {
	host *lab.Host
	addr netip.AddrPort
	to   netip.AddrPort
	wg   sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while it refuses
	flows    map[*flow]struct{}
	delay    time.Duration
	drop     bool
	held     chan struct{} // not nil while bytes are held; closed when they may go on
	closed   bool
}

// flow is one forwarded connection.
type flow struct {
	reset chan struct{} // closed when both connections are

	// Under the lock of the link:
	lost  bool // some bytes are
	ended bool // one end has closed its connection, and the other does not know

	mu             sync.Mutex
	client, server *net.TCPConn // server is nil while the link connects to it
	over           bool
}

// parcel is what one read brought; nothing when the end did.
type parcel struct {
	data []byte
	due  time.Time
}

// NewLink listens at the address and forwards to another, both in the namespace of
// host. Port 0 is any free one.
func NewLink(host *lab.Host, at, to netip.AddrPort) (*Link, error) {
	l := &Link{host: host, addr: at, to: to, flows: map[*flow]struct{}{}}
	if err := l.listen(); err != nil {
		return nil, err
	}
	return l, nil
}

// Addr is where the link listens, whether it does just now or not.
func (l *Link) Addr() netip.AddrPort { return l.addr }

// URL is that of an HTTPS server behind the link.
func (l *Link) URL() string { return "https://" + l.addr.String() }

// Drop makes the link a black hole: it accepts connections, and what anybody sends or
// that they close, on old connections and new, goes nowhere. A connection that lost
// something stays lost after Heal, as when a firewall forgot it: its ends must notice
// by themselves.
func (l *Link) Drop() { l.set(func() { l.drop = true }) }

// Hold makes nothing arrive until Heal, and everything then, as a network does whose
// cable was out: TCP sends again.
func (l *Link) Hold() {
	l.set(func() {
		if l.held == nil {
			l.held = make(chan struct{})
		}
	})
}

// Delay lets everything arrive so much later, each way.
func (l *Link) Delay(d time.Duration) { l.set(func() { l.delay = d }) }

// Reset ends every connection with RST. New ones are welcome.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range l.flows {
		f.abort()
	}
}

// Refuse stops listening: new connections are refused, old ones go on. It returns
// when it holds.
func (l *Link) Refuse() {
	l.set(func() {
		if l.listener != nil {
			_ = l.listener.Close()
			l.listener = nil
		}
	})
}

// Heal ends Drop, Hold, Delay and Refuse.
func (l *Link) Heal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop, l.delay = false, 0
	l.release()
	if l.listener != nil || l.closed {
		return nil
	}
	return l.listen()
}

// Close resets the connections and returns when the link is gone. Calling it again, or
// anything else, does nothing.
func (l *Link) Close() {
	l.Refuse()
	l.mu.Lock()
	l.closed = true
	l.release()
	for f := range l.flows {
		f.abort()
	}
	l.mu.Unlock()
	l.wg.Wait()
}

func (l *Link) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// release lets held bytes go on.
func (l *Link) release() {
	if l.held != nil {
		close(l.held)
		l.held = nil
	}
}

// listen opens the listener, on a thread in the namespace, and serves it.
func (l *Link) listen() error {
	listener, err := l.host.Listen(context.Background(), "tcp", l.addr.String())
	if err != nil {
		return fmt.Errorf("link to %s: %w", l.to, err)
	}
	port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
	l.addr = netip.AddrPortFrom(l.addr.Addr(), port)
	l.listener = listener
	l.wg.Go(func() { l.serve(listener) })
	return nil
}

func (l *Link) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		f := &flow{client: conn.(*net.TCPConn), reset: make(chan struct{})}
		l.set(func() {
			if l.closed {
				f.abort()
				return
			}
			l.flows[f] = struct{}{}
			l.wg.Go(func() { l.forward(f) })
		})
	}
}

// forward serves a client until its connection and that to the target have ended.
func (l *Link) forward(f *flow) {
	defer l.set(func() { delete(l.flows, f) })
	defer f.close()
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	conn, err := l.host.DialContext(ctx, "tcp", l.to.String())
	if err != nil {
		f.abort() // a refusal, as far as one can refuse what is accepted
		return
	}
	server := conn.(*net.TCPConn)
	if !f.attach(server) {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { l.carry(f, f.client, server) })
	wg.Go(func() { l.carry(f, server, f.client) })
	wg.Wait()
}

// carry moves bytes one way until there are no more.
func (l *Link) carry(f *flow, from, to *net.TCPConn) {
	parcels := make(chan parcel, inFlight)
	var wg sync.WaitGroup
	wg.Go(func() { l.deliver(f, parcels, to) })
	defer wg.Wait()
	defer close(parcels)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil && !errors.Is(err, io.EOF) {
			if !l.loseEnd(f) {
				f.abort() // as its other end did
			}
			return
		}
		p := parcel{data: bytes.Clone(buffer[:n])}
		if !l.fate(f, &p) {
			if err != nil {
				return
			}
			continue
		}
		select {
		case parcels <- p:
		case <-f.reset:
			return
		}
		if err != nil {
			return
		}
	}
}

// fate decides whether a parcel arrives, and when.
func (l *Link) fate(f *flow, p *parcel) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.due = time.Now().Add(l.delay)
	if l.drop {
		f.lost = true
	}
	if f.ended && !l.drop {
		f.abort() // whom this is for has gone
	}
	if f.lost && len(p.data) == 0 {
		f.ended = true
	}
	return !f.lost
}

// loseEnd reports whether an end of a connection that broke remains unknown to the other.
func (l *Link) loseEnd(f *flow) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.lost = f.lost || l.drop
	f.ended = f.ended || f.lost
	return f.lost
}

// deliver writes parcels when they are due.
func (l *Link) deliver(f *flow, parcels <-chan parcel, to *net.TCPConn) {
	for p := range parcels {
		if !l.wait(f, p.due) {
			return
		}
		if len(p.data) == 0 {
			_ = to.CloseWrite() // it may be gone
			return
		}
		if _, err := to.Write(p.data); err != nil {
			f.abort()
			return
		}
	}
}

// wait waits until a parcel is due and nothing holds it, and reports whether its
// connection is still there.
func (l *Link) wait(f *flow, due time.Time) bool {
	select {
	case <-time.After(time.Until(due)):
	case <-f.reset:
		return false
	}
	for {
		l.mu.Lock()
		held := l.held
		l.mu.Unlock()
		if held == nil {
			return true
		}
		select {
		case <-held:
		case <-f.reset:
			return false
		}
	}
}

// attach makes the flow the owner of its connection to the target, unless it is over.
func (f *flow) attach(server *net.TCPConn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		_ = server.SetLinger(0)
		_ = server.Close()
		return false
	}
	f.server = server
	return true
}

// abort ends both connections with RST.
func (f *flow) abort() { f.end(0) }

// close ends both connections, of which everything arrives that was sent.
func (f *flow) close() { f.end(-1) }

func (f *flow) end(linger int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	f.over = true
	for _, conn := range []*net.TCPConn{f.client, f.server} {
		if conn != nil {
			_ = conn.SetLinger(linger)
			_ = conn.Close()
		}
	}
	close(f.reset)
}
