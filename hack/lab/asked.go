package lab

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Asked is what a server of [Host.ServeAsked] says of a connection.
type Asked struct {
	// By is the host on which the server is.
	By string
	// For is the destination that the client asked for, before any DNAT on that host.
	For netip.AddrPort
	// At is the server's end of the connection, and From the client's as the server sees it.
	At, From netip.AddrPort
}

// ServeAsked starts a server at a TCP port of all addresses of the host that tells each client, when it
// connects and again for every line that it sends, which destination it asked for: as a tunnel server does that
// connections are redirected to. It ends with the host.
func (h *Host) ServeAsked(port uint16) error {
	var config net.ListenConfig
	config.SetMultipathTCP(false) // such sockets do not tell the original destination
	var l net.Listener
	err := h.Do(func() (err error) {
		l, err = config.Listen(context.Background(), "tcp", fmt.Sprintf(":%d", port))
		return err
	})
	if err == nil {
		err = h.track(l)
	}
	if err != nil {
		return fmt.Errorf("%s: serve port %d: %w", h.Name, port, err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go h.answerAsked(c.(*net.TCPConn))
		}
	}()
	return nil
}

func (h *Host) answerAsked(c *net.TCPConn) {
	defer c.Close()
	at, from := unmap(c.LocalAddr().(*net.TCPAddr).AddrPort()), unmap(c.RemoteAddr().(*net.TCPAddr).AddrPort())
	answer := fmt.Sprintf("%s %s %s %s\n", h.Name, originalDestination(c, at), at, from)
	lines := bufio.NewScanner(c)
	for more := true; more; more = lines.Scan() {
		if _, err := c.Write([]byte(answer)); err != nil {
			return
		}
	}
}

// originalDestination returns where a client wanted to connect to, as conntrack has it; where nobody has translated
// that, where it is connected to.
func originalDestination(c *net.TCPConn, at netip.AddrPort) (original netip.AddrPort) {
	original = at
	raw, err := c.SyscallConn()
	if err != nil {
		return original
	}
	const option = 80 // SO_ORIGINAL_DST, and IP6T_SO_ORIGINAL_DST
	_ = raw.Control(func(fd uintptr) {
		if original.Addr().Is4() {
			if address, err := unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, option); err == nil { // of the length of a sockaddr_in
				b := address.Multiaddr
				original = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:]))
			}
			return
		}
		if info, err := unix.GetsockoptIPv6MTUInfo(int(fd), unix.SOL_IPV6, option); err == nil { // begins with a sockaddr_in6
			port := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, info.Addr.Port))
			original = netip.AddrPortFrom(netip.AddrFrom16(info.Addr.Addr), port)
		}
	})
	return original
}

// AskedConn is a connection to a server of [Host.ServeAsked].
type AskedConn struct {
	conn  net.Conn
	lines *bufio.Reader
}

// DialAsked connects to such a server, which may be anywhere.
func (h *Host) DialAsked(ctx context.Context, to netip.AddrPort) (*AskedConn, Asked, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	conn, err := h.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, Asked{}, err
	}
	c := &AskedConn{conn, bufio.NewReader(conn)}
	asked, err := c.read(ctx)
	if err != nil {
		conn.Close()
		return nil, Asked{}, fmt.Errorf("%s: %s: %w", h.Name, to, err)
	}
	return c, asked, nil
}

// Ask asks once more.
func (c *AskedConn) Ask(ctx context.Context) (Asked, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	if _, err := c.conn.Write([]byte("again\n")); err != nil {
		return Asked{}, err
	}
	return c.read(ctx)
}

func (c *AskedConn) read(ctx context.Context) (asked Asked, err error) {
	deadline, _ := ctx.Deadline() // withDeadline has set one
	if err := c.conn.SetReadDeadline(deadline); err != nil {
		return Asked{}, err
	}
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return Asked{}, err
	}
	words := strings.Fields(line)
	if len(words) != 4 {
		return Asked{}, fmt.Errorf("the answer %q is none", line)
	}
	asked.By = words[0]
	for i, addr := range []*netip.AddrPort{&asked.For, &asked.At, &asked.From} {
		if *addr, err = netip.ParseAddrPort(words[i+1]); err != nil {
			return Asked{}, err
		}
	}
	return asked, nil
}

// Ends waits until the other side ends the connection, without sending anything: nil if it does within the time.
func (c *AskedConn) Ends(within time.Duration) error {
	if err := c.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := c.lines.ReadByte()
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the connection goes on: %w", syscall.EISCONN)
	}
	return nil
}

// Close ends the connection.
func (c *AskedConn) Close() error { return c.conn.Close() }
