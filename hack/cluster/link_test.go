//go:build linux

package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/node"
)

// silence is how long nothing has to come for nothing to come.
const silence = 100 * time.Millisecond

// ends is a link between a client on the node and a server on the outside host.
type ends struct {
	*testing.T
	*Link
	lab      *lab.Lab
	accepted chan net.Conn // what the server accepts
}

func newEnds(t *testing.T, l *lab.Lab) *ends {
	t.Helper()
	to := netip.AddrPortFrom(l.Outside().V4, 7000)
	listener, err := l.Outside().Listen(t.Context(), "tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	link, err := NewLink(l.Outside(), netip.AddrPortFrom(to.Addr(), 0), to)
	if err != nil {
		t.Fatal(err)
	}
	e := &ends{T: t, Link: link, lab: l, accepted: make(chan net.Conn)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			e.accepted <- conn
		}
	}()
	t.Cleanup(func() {
		link.Close()
		_ = listener.Close()
		<-done
	})
	return e
}

// connect returns both ends of a new connection through the link.
func (e *ends) connect() (client, server net.Conn) {
	e.Helper()
	client, err := e.dial()
	if err != nil {
		e.Fatal(err)
	}
	select {
	case server = <-e.accepted:
	case <-time.After(soon):
		e.Fatal("the link does not connect")
	}
	e.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
	})
	return client, server
}

func (e *ends) dial() (net.Conn, error) {
	return e.lab.Node().DialContext(e.Context(), "tcp", e.Addr().String())
}

func (e *ends) say(conn net.Conn, text string) {
	e.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		e.Fatal(err)
	}
}

func (e *ends) hear(conn net.Conn, text string) {
	e.Helper()
	got := make([]byte, len(text))
	_ = conn.SetReadDeadline(time.Now().Add(soon))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		e.Fatalf("heard %q, %v, want %q", got, err, text)
	}
}

func (e *ends) hearNothing(conn net.Conn) {
	e.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(silence))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		e.Fatalf("heard %d bytes, %v, want silence", n, err)
	}
}

func (e *ends) hearReset(conn net.Conn) {
	e.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(soon))
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		e.Fatalf("heard %d bytes, %v, want a reset", n, err)
	}
}

func (e *ends) heal() {
	e.Helper()
	if err := e.Heal(); err != nil {
		e.Fatal(err)
	}
}

func (e *ends) works(client, server net.Conn) {
	e.Helper()
	e.say(client, "question")
	e.hear(server, "question")
	e.say(server, "answer")
	e.hear(client, "answer")
}

// TestLink_EveryTrouble: the links to the API server that tests break do so in each way.
func TestLink_EveryTrouble(t *testing.T) {
	l := lab.ForTest(t, lab.Config{})
	for _, tt := range []struct {
		name string
		test func(*ends)
	}{
		{"forwards everything and each end's close", testForwards},
		{"drops without a word", testDrop},
		{"drops what one end says last", testDropClose},
		{"holds and delivers later", testHold},
		{"delays", testDelay},
		{"resets", testReset},
		{"refuses", testRefuse},
		{"refuses for its target", testTargetGone},
		{"closes", testClose},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(newEnds(t, l)) })
	}
}

func testForwards(e *ends) {
	client, server := e.connect()
	e.works(client, server)
	much := bytes.Repeat([]byte("much "), 1<<20)
	written := make(chan error, 1)
	go func() {
		_, err := server.Write(much)
		written <- errors.Join(err, server.Close())
	}()
	_ = client.SetReadDeadline(time.Now().Add(soon))
	got, err := io.ReadAll(client)
	if err != nil || !bytes.Equal(got, much) {
		e.Errorf("%d bytes came, %v, want %d", len(got), err, len(much))
	}
	if err := <-written; err != nil {
		e.Error(err)
	}

	client, server = e.connect()
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		e.Fatal(err)
	}
	_ = server.SetReadDeadline(time.Now().Add(soon))
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		e.Errorf("got %v, want the client's end", err)
	}
	e.say(server, "late answer")
	e.hear(client, "late answer")
}

func testDrop(e *ends) {
	client, server := e.connect()
	idle, idleServer := e.connect()
	e.Drop()
	e.say(client, "lost")
	e.hearNothing(server)
	e.say(server, "lost")
	e.hearNothing(client)
	young, youngServer := e.connect()
	e.say(young, "lost")
	e.hearNothing(youngServer)
	e.heal()
	e.say(client, "still lost")
	e.hearNothing(server)
	e.works(idle, idleServer)
	e.works(e.connect())
}

func testDropClose(e *ends) {
	client, server := e.connect()
	e.Drop()
	_ = client.Close()
	node.Eventually(e.T, soon, func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		for f := range e.flows {
			if f.ended {
				return nil
			}
		}
		return errors.New("the client's end has not come")
	})
	e.heal()
	e.hearNothing(server)
	e.say(server, "to one that is gone")
	e.hearReset(server)
}

func testHold(e *ends) {
	client, server := e.connect()
	e.Hold()
	e.say(client, "one ")
	e.say(client, "two")
	e.say(server, "three")
	e.hearNothing(server)
	e.hearNothing(client)
	e.heal()
	e.hear(server, "one two")
	e.hear(client, "three")
}

func testDelay(e *ends) {
	client, server := e.connect()
	e.Delay(2 * silence)
	began := time.Now()
	e.works(client, server)
	if took := time.Since(began); took < 4*silence {
		e.Errorf("both ways took %s, want at least %s", took, 4*silence)
	}
}

func testReset(e *ends) {
	client, server := e.connect()
	e.Reset()
	e.hearReset(client)
	e.hearReset(server)
	e.works(e.connect())
}

func testRefuse(e *ends) {
	client, server := e.connect()
	e.Refuse()
	if _, err := e.dial(); !errors.Is(err, syscall.ECONNREFUSED) {
		e.Errorf("got %v, want a refusal", err)
	}
	e.works(client, server)
	e.heal()
	e.works(e.connect())
}

func testTargetGone(e *ends) {
	nowhere, err := NewLink(e.lab.Outside(), netip.AddrPortFrom(e.Addr().Addr(), 0), netip.AddrPortFrom(e.Addr().Addr(), 1))
	if err != nil {
		e.Fatal(err)
	}
	defer nowhere.Close()
	client, err := e.lab.Node().DialContext(e.Context(), "tcp", nowhere.Addr().String())
	if errors.Is(err, syscall.ECONNRESET) {
		return // already
	}
	if err != nil {
		e.Fatal(err)
	}
	defer client.Close()
	e.hearReset(client)
}

func testClose(e *ends) {
	client, server := e.connect()
	e.Drop()
	e.say(client, "lost")
	held, _ := e.connect()
	e.Hold()
	e.say(held, "kept")
	e.Close()
	e.Close()
	e.heal()
	e.hearReset(client)
	e.hearReset(server)
	e.hearReset(held)
	ctx, cancel := context.WithTimeout(e.Context(), soon)
	defer cancel()
	if _, err := e.lab.Node().DialContext(ctx, "tcp", e.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		e.Errorf("got %v, want a refusal", err)
	}
}
