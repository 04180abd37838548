package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// established is how many connections of each kind there are, as many of each pod.
const established = 20

// beat is how often each sends a byte.
var beat = lab.Stretch(20 * time.Millisecond)

// connections are established before a fault, and stay. Of one half both sides send, of the others the far side alone.
type connections struct {
	all     []*connection
	running sync.WaitGroup
	// ends is called when they are closed, unless it is nil.
	ends func()
}

// connection is one of them, as the pod sees it.
type connection struct {
	what string
	conn net.Conn
	stop context.CancelFunc

	mu   sync.Mutex
	last time.Time
	// stall is the longest time between two bytes.
	stall time.Duration
	err   error
}

// keepConnections has pods open connections to the outside, in the family of an address.
func (w *poolWorld) keepConnections(ip string, pods []*lab.Host) *connections {
	w.Helper()
	c, to := &connections{}, w.beats(ip)
	w.Cleanup(c.close)
	for n := range 2 * established {
		pod := pods[n%len(pods)]
		c.keep(w, pod, w.dialFromAnotherPort(c, pod, to), n/len(pods)%2 == 0)
	}
	c.begin(w)
	return c
}

// beats has somebody outside send to all who connect, in the family of an address, and returns where.
func (w *poolWorld) beats(ip string) (address string) {
	w.Helper()
	listener, err := w.Outside().Listen(w.Context(), "tcp", netip.AddrPortFrom(w.outsideFor(ip).Addr(), 0).String())
	w.must(err)
	w.Cleanup(func() { _ = listener.Close() })
	go serveBeats(w.Context(), listener)
	return listener.Addr().String()
}

// keep keeps a connection of a pod, which sends or not.
func (c *connections) keep(w *poolWorld, pod *lab.Host, conn net.Conn, sends bool) {
	ctx, stop := context.WithCancel(w.Context())
	one := &connection{what: fmt.Sprintf("%s on %s, sends %v, %s", pod.Name, pod.Node.Name, sends, conn.LocalAddr()), conn: conn, stop: stop, last: time.Now()}
	c.all = append(c.all, one)
	c.running.Go(one.receive)
	if sends {
		c.running.Go(func() { sendBeats(ctx, conn) })
	}
}

// begin waits until all connections live.
func (c *connections) begin(w *poolWorld) {
	w.Helper()
	w.eventually(func() error {
		if alive := c.alive(); alive < len(c.all) {
			return fmt.Errorf("%d of %d connections have begun", alive, len(c.all))
		}
		return nil
	})
}

// dialFromAnotherPort opens a connection from a port that none of the others has. Of two with the same port one gets another
// port outside, which nobody but the holder knows; so not both outlive it.
func (w *poolWorld) dialFromAnotherPort(c *connections, pod *lab.Host, to string) net.Conn {
	w.Helper()
	for {
		conn, err := pod.DialContext(w.Context(), "tcp", to)
		w.must(err)
		if !slices.ContainsFunc(c.all, func(other *connection) bool { return portOf(other.conn) == portOf(conn) }) {
			return conn
		}
		w.must(conn.Close())
	}
}

// dialFromPort opens a connection from a port.
func (w *poolWorld) dialFromPort(pod *lab.Host, port int, to string) (conn net.Conn) {
	w.Helper()
	w.must(pod.Do(func() (err error) {
		dialer := net.Dialer{Timeout: soon, LocalAddr: &net.TCPAddr{Port: port}, KeepAlive: -1} // it would end what hangs
		conn, err = dialer.DialContext(w.Context(), "tcp", to)
		return err
	}))
	return conn
}

func portOf(conn net.Conn) uint16 { return netip.MustParseAddrPort(conn.LocalAddr().String()).Port() }

// serveBeats sends to all who connect.
func serveBeats(ctx context.Context, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			go sendBeats(ctx, conn)
			for buffer := make([]byte, 100); err == nil; {
				_, err = conn.Read(buffer)
			}
		}()
	}
}

// sendBeats sends a byte every beat.
func sendBeats(ctx context.Context, to io.Writer) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		if _, err := to.Write([]byte{1}); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// receive notes when bytes come.
func (c *connection) receive() {
	buffer := make([]byte, 100)
	for {
		_, err := c.conn.Read(buffer)
		c.mu.Lock()
		now := time.Now()
		c.stall, c.last, c.err = max(c.stall, now.Sub(c.last)), now, err
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// lives returns an error unless a byte came lately.
func (c *connection) lives() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if silence := time.Since(c.last); c.err == nil && silence > lab.Stretch(500*time.Millisecond) {
		return fmt.Errorf("silent for %v", silence.Round(time.Millisecond))
	}
	return c.err
}

// heard waits until bytes have come on all connections since a moment.
func (c *connections) heard(w *poolWorld, since time.Time) {
	w.Helper()
	w.eventually(func() error {
		for _, one := range c.all {
			one.mu.Lock()
			last, err := one.last, one.err
			one.mu.Unlock()
			if err != nil || last.Before(since) {
				return errors.Join(fmt.Errorf("the connection of %s is silent for %v", one.what, time.Since(last).Round(time.Millisecond)), err)
			}
		}
		return nil
	})
}

func (c *connections) alive() (count int) {
	for _, one := range c.all {
		if one.lives() == nil {
			count++
		}
	}
	return count
}

// longestStall is how long a connection may wait that lives on. TCP repeats a packet after 0.2 s, and waits twice as long
// each time, so it may be twice the time that the address was away, and more: after 1.5 s it is repeated at 3.0 s.
func (w *world) longestStall() time.Duration {
	return lab.Stretch(by(w.T, 2*fastest+time.Second, 2*fastest+time.Second, 2*time.Second))
}

// end waits until all live, or none can any more, prints what has become of them, and fails if fewer live than that many
// per cent, or one of these had to wait too long.
func (c *connections) end(w *poolWorld, ip, what string, least int) {
	w.Helper()
	c.endWithin(w, ip, what, least, w.longestStall())
}

// endWithin is end with how long one of them may wait.
func (c *connections) endWithin(w *poolWorld, ip, what string, least int, longestStall time.Duration) {
	w.Helper()
	for deadline := time.Now().Add(2 * longestStall); c.alive() < len(c.all) && time.Now().Before(deadline); {
		time.Sleep(beat)
	}
	alive, stall := 0, time.Duration(0)
	for _, one := range c.all {
		if err := one.lives(); err != nil {
			w.Logf("%s, %s: the connection of %s is lost: %v", ip, what, one.what, err)
			continue
		}
		alive++
		one.mu.Lock()
		stall = max(stall, one.stall)
		one.mu.Unlock()
	}
	w.Logf("%s, %s: %d of %d established connections live, their longest stall was %v", ip, what, alive, len(c.all), stall.Round(time.Millisecond))
	if alive*100 < least*len(c.all) || stall > longestStall {
		w.Errorf("%s, %s: want %d%% of the established connections alive, and no stall longer than %v", ip, what, least, longestStall)
	}
	c.close()
}

// hanging are those of which nobody has heard anything lately, neither bytes nor an end.
func (c *connections) hanging() (list []string) {
	for _, one := range c.all {
		one.mu.Lock()
		ended := one.err != nil
		one.mu.Unlock()
		if err := one.lives(); err != nil && !ended {
			list = append(list, fmt.Sprintf("%s: %v", one.what, err))
		}
	}
	return list
}

// noneHangs waits until there is no connection left of which nobody hears anything.
func (c *connections) noneHangs(w *poolWorld) {
	w.Helper()
	time.Sleep(time.Second) // for those that hang to be silent
	w.eventually(func() error {
		if hanging := c.hanging(); len(hanging) > 0 {
			return fmt.Errorf("%d of %d connections hang: %s", len(hanging), len(c.all), strings.Join(hanging, "; "))
		}
		return nil
	})
}

func (c *connections) close() {
	for _, one := range c.all {
		one.stop()
		_ = one.conn.Close()
	}
	c.running.Wait()
	if c.ends != nil {
		c.ends()
	}
}
