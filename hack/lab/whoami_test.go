//go:build linux

package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
)

// What a server says of another question is never taken for the answer.
const another = "203.0.113.7:7 #another\n"

var truth = netip.MustParseAddr("10.9.9.9")

func answerTo(token string) string { return truth.String() + ":9 " + token + "\n" }

func TestAsk_AnswerToAnotherTCPQuestion(t *testing.T) {
	l := ForTest(t, Config{Pods: 1})
	listener, err := l.Outside().Listen(t.Context(), "tcp4", ":9000")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		questions := bufio.NewReader(c)
		token, _ := questions.ReadString('\n')
		_, _ = io.WriteString(c, another+answerTo(strings.TrimSpace(token))+another[:5])
		// The rest of the line comes after the next question was given up.
		_, _ = questions.ReadString('\n')
		token, _ = questions.ReadString('\n')
		_, _ = io.WriteString(c, another[5:]+answerTo(strings.TrimSpace(token)))
	}()
	flow, err := l.Pod(1).Dial(t.Context(), "tcp4", netip.AddrPortFrom(l.Outside().V4, 9000), 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if got, err := flow.Ask(ctx); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("half a line of another answer: got %s, %v, want a timeout", got, err)
	}
	if got, err := flow.Ask(t.Context()); err != nil || got != truth {
		t.Errorf("got %s, %v, want %s", got, err, truth)
	}
}

func TestAsk_AnswerToAnotherUDPQuestion(t *testing.T) {
	l := ForTest(t, Config{Pods: 1})
	var c net.PacketConn
	err := l.Outside().Do(func() (err error) {
		c, err = net.ListenPacket("udp4", ":9000")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	go func() {
		for {
			token := make([]byte, 100)
			n, from, err := c.ReadFrom(token)
			if err != nil {
				return
			}
			for _, answer := range []string{another, answerTo(string(token[:n]))} {
				_, _ = c.WriteTo([]byte(answer), from)
			}
		}
	}()
	got, err := l.Pod(1).Ask(t.Context(), "udp4", netip.AddrPortFrom(l.Outside().V4, 9000), 5000)
	if err != nil || got != truth {
		t.Errorf("got %s, %v, want %s", got, err, truth)
	}
}

func TestFlow_KeptOfUDP(t *testing.T) {
	l := ForTest(t, Config{Pods: 1, IPv6: true, Masquerade: true})
	servers := serveAll(t, l.Outside())
	for _, network := range []string{"udp4", "udp6"} {
		flow, err := l.Pod(1).Dial(t.Context(), network, netip.AddrPortFrom(l.Outside().address(network), port), 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got, err := flow.Ask(t.Context()); err != nil || got != l.Node().address(network) {
				t.Errorf("%s: seen as %s, %v, want the node", network, got, err)
			}
		}
		want := netip.AddrPortFrom(l.Node().address(network), flow.Local().Port())
		for _, peer := range servers[network].Seen() {
			if peer != want {
				t.Errorf("%s: server saw %s, want one flow, %s", network, peer, want)
			}
		}
		if flow.Local().Addr() != l.Pod(1).address(network) {
			t.Errorf("%s: the flow is local to %s", network, flow.Local())
		}
	}
}

func TestDialContext_ToAListener(t *testing.T) {
	l := ForTest(t, Config{Pods: 1, Control: true, IPv6: true})
	for _, addr := range []netip.Addr{l.Control().V4, l.Control().V6} {
		listener, err := l.Control().Listen(t.Context(), "tcp", netip.AddrPortFrom(addr, 6443).String())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if c, err := listener.Accept(); err == nil {
				_, _ = fmt.Fprint(c, c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap())
				_ = c.Close()
			}
		}()
		c, err := l.Node().DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		want := l.Node().sameFamily(addr).String()
		if got, err := io.ReadAll(c); err != nil || string(got) != want {
			t.Errorf("seen as %s, %v, want %s", got, err, want)
		}
	}
	if c, err := l.Node().DialContext(t.Context(), "tcp", "localhost:6443"); err == nil {
		t.Errorf("a name was resolved to %s, wherever", c.RemoteAddr())
	}
	again, err := l.Control().Listen(t.Context(), "tcp4", l.Control().V4.String()+":6443")
	if err == nil {
		t.Errorf("two listeners on %s", again.Addr())
	}
}
