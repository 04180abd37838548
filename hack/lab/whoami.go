//go:build linux

package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// askTimeout is the deadline of a question whose context has none.
	askTimeout = 5 * time.Second
	// askAgain is when an unanswered datagram is sent again.
	askAgain = 200 * time.Millisecond
)

// Server tells each client the address that it sees it from: "address:port\n" when a TCP
// client connects and again for every line that it sends, and in answer to every
// UDP datagram, SCTP INIT and ICMP echo request. A line, datagram or echo request that is a token, "#...\n", is
// answered with "address:port #...\n", so that a client knows late answers.
type Server struct {
	stop func() error
	wg   sync.WaitGroup

	mu     sync.Mutex
	seen   []netip.AddrPort
	conns  map[net.Conn]struct{}
	closed bool
}

// ServeWhoami starts a server on all addresses of the host and returns when it
// listens. The network is one of tcp4, tcp6, udp4, udp6, sctp4, sctp6, icmp4 and
// icmp6; ICMP has no port. It answers from the address that it was asked at, and
// ends with Close or with the host.
func (h *Host) ServeWhoami(network string, port int) (*Server, error) {
	s := &Server{conns: map[net.Conn]struct{}{}}
	err := h.Do(func() error { return s.listen(network, uint16(port)) })
	if err == nil {
		err = h.track(s)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: serve %s port %d: %w", h.Name, network, port, err)
	}
	return s, nil
}

// listen opens the socket, on a thread in the namespace, and serves it.
func (s *Server) listen(network string, port uint16) error {
	ctx, address := context.Background(), fmt.Sprintf(":%d", port)
	var stream, packet net.ListenConfig
	stream.SetMultipathTCP(false)
	packet.Control = wantDestination
	switch network {
	case "tcp4", "tcp6":
		l, err := stream.Listen(ctx, network, address)
		if err != nil {
			return err
		}
		s.start(l, func() { s.serveTCP(l) })
	case "udp4", "udp6":
		c, err := packet.ListenPacket(ctx, network, address)
		if err != nil {
			return err
		}
		s.start(c, func() { s.serveUDP(c.(*net.UDPConn)) })
	case "sctp4", "sctp6":
		c, err := packet.ListenPacket(ctx, sctpNetwork(network), "")
		if err != nil {
			return err
		}
		s.start(c, func() { s.serveSCTP(c.(*net.IPConn), port) })
	case "icmp4", "icmp6":
		c, err := packet.ListenPacket(ctx, icmpNetwork(network), "")
		if err != nil {
			return err
		}
		s.start(c, func() { s.serveICMP(c.(*net.IPConn)) })
	default:
		return net.UnknownNetworkError(network)
	}
	return nil
}

func (s *Server) start(c io.Closer, serve func()) {
	s.stop = c.Close
	s.wg.Go(serve)
}

// Seen returns every peer that connected or sent, in order; a datagram or INIT
// that was sent again is there again.
func (s *Server) Seen() []netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Close ends the server and its connections and returns when its goroutines have
// ended. Calling it again does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	err := s.stop()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	return err
}

func (s *Server) record(peer netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, peer)
}

// answer is what a peer is told that asked with these words.
func answer(peer netip.AddrPort, question string) string {
	if token := strings.TrimSpace(question); strings.HasPrefix(token, "#") {
		return peer.String() + " " + token + "\n"
	}
	return peer.String() + "\n"
}

// newToken returns a question that no other is like.
func newToken() string { return fmt.Sprintf("#%016x", rand.Uint64()) }

func (s *Server) serveTCP(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			_ = c.Close()
		} else {
			s.conns[c] = struct{}{}
			s.wg.Go(func() { s.serveConn(c) })
		}
		s.mu.Unlock()
	}
}

func (s *Server) serveConn(c net.Conn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	peer := unmap(c.RemoteAddr().(*net.TCPAddr).AddrPort())
	s.record(peer)
	lines := bufio.NewScanner(c)
	for again := true; again; again = lines.Scan() {
		if _, err := io.WriteString(c, answer(peer, lines.Text())); err != nil {
			return
		}
	}
}

func (s *Server) serveUDP(c *net.UDPConn) {
	packet, control := make([]byte, 2048), make([]byte, 128)
	for {
		size, n, _, peer, err := c.ReadMsgUDPAddrPort(packet, control)
		if err != nil {
			return
		}
		peer = unmap(peer)
		s.record(peer)
		// What cannot be sent is lost like any datagram: the client asks again.
		_, _, _ = c.WriteMsgUDPAddrPort([]byte(answer(peer, string(packet[:size]))), control[:n], peer)
	}
}

func unmap(ap netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// wantDestination has every packet come with a control message that names the
// address that it was sent to. Sent back with the answer, the same message makes
// that the answer's source, whatever other addresses the host has.
func wantDestination(network, _ string, c syscall.RawConn) error {
	level, option := unix.IPPROTO_IP, unix.IP_PKTINFO
	if strings.HasSuffix(network, "6") { // udp6 or ip6
		level, option = unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO
	}
	var failed error
	err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), level, option, 1) })
	return errors.Join(err, failed)
}

// Ask opens a new flow to a whoami server and returns the address that the server
// saw. src is the source port, or the identifier of ICMP, 0 any. An unanswered datagram or INIT is sent
// again until ctx ends, after 5 s when it has no deadline. A UDP or SCTP question
// from a fixed port continues the flow before it as long as conntrack remembers
// that one: 30 s for UDP, 3 s for SCTP by default.
//
// What an unanswered question leaves in the conntrack of a node is continued by a later one that gets the same port by chance: where
// that matters, src is a [FreshPort].
func (h *Host) Ask(ctx context.Context, network string, dst netip.AddrPort, src uint16) (netip.Addr, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	var seen netip.Addr
	var err error
	switch network {
	case "tcp4", "tcp6":
		seen, err = h.askTCP(ctx, network, dst, src)
	case "udp4", "udp6":
		seen, err = h.askUDP(ctx, network, dst, src)
	case "sctp4", "sctp6":
		seen, err = h.askSCTP(ctx, network, dst, src)
	case "icmp4", "icmp6":
		seen, err = h.askICMP(ctx, network, dst.Addr(), src)
	default:
		err = net.UnknownNetworkError(network)
	}
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%s: ask %s %s: %w", h.Name, network, dst, err)
	}
	return seen, nil
}

// firstFresh and freshPorts are below the ports that Linux gives, and those of NodePorts.
const firstFresh, freshPorts = 20000, 10000

var freshPort atomic.Uint32

// FreshPort returns a source port that the last thousands of calls have not returned.
func FreshPort() uint16 { return uint16(firstFresh + freshPort.Add(1)%freshPorts) }

func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, askTimeout)
}

func (h *Host) askTCP(ctx context.Context, network string, dst netip.AddrPort, src uint16) (netip.Addr, error) {
	f, err := h.dial(ctx, network, dst, src)
	if err != nil {
		return netip.Addr{}, err
	}
	defer func() { _ = f.Close() }()
	return f.answer(ctx, "")
}

func (h *Host) askUDP(ctx context.Context, network string, dst netip.AddrPort, src uint16) (netip.Addr, error) {
	f, err := h.dial(ctx, network, dst, src)
	if err != nil {
		return netip.Addr{}, err
	}
	defer func() { _ = f.Close() }()
	return f.Ask(ctx)
}

// errNotMine is what a reader of answers returns for a packet that is not one.
var errNotMine = errors.New("not the answer")

// exchange sends a request until it is answered or ctx ends.
func exchange(ctx context.Context, c net.Conn, request []byte, read func([]byte) (netip.Addr, error)) (netip.Addr, error) {
	for {
		if _, err := c.Write(request); err != nil {
			return netip.Addr{}, err
		}
		if err := c.SetReadDeadline(earliest(ctx, time.Now().Add(askAgain))); err != nil {
			return netip.Addr{}, err
		}
		seen, err := receive(c, read)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return seen, err
		}
		if ctx.Err() != nil {
			return netip.Addr{}, fmt.Errorf("no answer: %w", ctx.Err())
		}
	}
}

func earliest(ctx context.Context, t time.Time) time.Time {
	if d, ok := ctx.Deadline(); ok && d.Before(t) {
		return d
	}
	return t
}

func receive(c net.Conn, read func([]byte) (netip.Addr, error)) (netip.Addr, error) {
	buf := make([]byte, 2048)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return netip.Addr{}, err
		}
		seen, err := read(buf[:n])
		if !errors.Is(err, errNotMine) {
			return seen, err
		}
	}
}

// parseAnswer returns errNotMine for the answer to another question.
func parseAnswer(answer, token string) (netip.Addr, error) {
	peer, its, _ := strings.Cut(strings.TrimSpace(answer), " ")
	if its != token {
		return netip.Addr{}, errNotMine
	}
	ap, err := netip.ParseAddrPort(peer)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("answer %q: %w", answer, err)
	}
	return ap.Addr(), nil
}

// Flow is a TCP connection to a whoami server, or a UDP socket, that is kept: to
// see whether the flow survives a change. One goroutine at a time may use it.
type Flow struct {
	conn  net.Conn
	lines *bufio.Reader // nil for UDP
	begun string        // of a line of which the end has not come yet
}

// Dial opens a flow, network tcp4, tcp6, udp4 or udp6, and returns when the server
// has answered it. src is the source port, 0 any.
func (h *Host) Dial(ctx context.Context, network string, dst netip.AddrPort, src uint16) (*Flow, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	f, err := h.dial(ctx, network, dst, src)
	if err == nil {
		if _, err = f.Ask(ctx); err == nil {
			return f, h.track(f)
		}
		_ = f.Close()
	}
	return nil, fmt.Errorf("%s: dial %s %s: %w", h.Name, network, dst, err)
}

func (h *Host) dial(ctx context.Context, network string, dst netip.AddrPort, src uint16) (*Flow, error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{Port: int(src)}}
	if strings.HasPrefix(network, "udp") {
		dialer.LocalAddr = &net.UDPAddr{Port: int(src)}
	}
	c, err := h.connect(ctx, dialer, network, dst.String())
	if err != nil {
		return nil, err
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return &Flow{conn: c}, nil
	}
	// Closing resets: the source port can be used again at once.
	if err := tcp.SetLinger(0); err != nil {
		_ = c.Close()
		return nil, err
	}
	return &Flow{conn: c, lines: bufio.NewReader(c)}, nil
}

// Ask asks once more in the same flow. It waits until the deadline of ctx, 5 s
// when there is none; an answer proves that packets pass in both directions. After
// a question that went unanswered, the next may be asked.
func (f *Flow) Ask(ctx context.Context) (netip.Addr, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	token := newToken()
	if f.lines == nil {
		return exchange(ctx, f.conn, []byte(token), func(b []byte) (netip.Addr, error) {
			return parseAnswer(string(b), token)
		})
	}
	deadline, _ := ctx.Deadline()
	if err := f.conn.SetWriteDeadline(deadline); err != nil {
		return netip.Addr{}, err
	}
	if _, err := io.WriteString(f.conn, token+"\n"); err != nil {
		return netip.Addr{}, err
	}
	return f.answer(ctx, token)
}

// answer waits for the answer to a question on a TCP connection.
func (f *Flow) answer(ctx context.Context, token string) (netip.Addr, error) {
	deadline, _ := ctx.Deadline()
	if err := f.conn.SetReadDeadline(deadline); err != nil {
		return netip.Addr{}, err
	}
	for {
		part, err := f.lines.ReadString('\n')
		f.begun += part
		if err != nil {
			return netip.Addr{}, err
		}
		line := f.begun
		f.begun = ""
		if seen, err := parseAnswer(line, token); !errors.Is(err, errNotMine) {
			return seen, err
		}
	}
}

// Local returns the client's own end of the flow, before any translation.
func (f *Flow) Local() netip.AddrPort {
	return unmap(f.conn.LocalAddr().(interface{ AddrPort() netip.AddrPort }).AddrPort())
}

// Close ends the flow; it resets a connection.
func (f *Flow) Close() error { return f.conn.Close() }
