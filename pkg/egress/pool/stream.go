package pool

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/hashicorp/memberlist"
)

// stream is a connection to another node, on which each side says one message: who calls does, and who is called if it has to answer.
// A message has its process's session, the length of its state in 4 bytes, the state, and what memberlist says; it may have no more
// than the state. memberlist writes each of its messages at once.
type stream struct {
	net.Conn
	transport *transport
	peer      netip.Addr
	// greeting is this side's nonce, which its message follows. said: there was one.
	greeting []byte
	sealer   cipher.AEAD
	said     bool
	// opened: all of the other side's message is. read is what memberlist may read of it; nil before.
	opener opener
	opened bool
	read   *bytes.Reader
}

// addressOf returns the address of a socket's other side.
func addressOf(remote net.Addr) netip.Addr {
	at, _ := netip.ParseAddrPort(remote.String())
	return at.Addr().Unmap().WithZone("")
}

// DialTimeout is part of [memberlist.Transport].
func (t *transport) DialTimeout(to string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: to}, timeout)
}

// DialAddressTimeout is part of [memberlist.NodeAwareTransport].
func (t *transport) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	at, err := netip.ParseAddrPort(to.Addr)
	if err != nil {
		return nil, err
	}
	return t.dial(at.Addr().Unmap(), timeout)
}

// dial calls a node. That one must see this one's address.
func (t *transport) dial(to netip.Addr, timeout time.Duration) (*stream, error) {
	keys := t.keys()
	if _, known := t.nodeAt(to); !known {
		return nil, fmt.Errorf("no node of the cluster is at %s", to)
	}
	if len(keys) == 0 {
		return nil, errNoKeys
	}
	dialer := net.Dialer{Timeout: timeout, LocalAddr: &net.TCPAddr{IP: t.self.AsSlice()}}
	deadline := time.Now().Add(timeout)
	conn, err := dialer.Dial("tcp", netip.AddrPortFrom(to, t.guard.port).String())
	if err != nil {
		return nil, err
	}
	var nonces [2 * nonceSize]byte
	_, _ = rand.Read(nonces[nonceSize:]) // it never fails
	err = conn.SetDeadline(deadline)
	if err == nil {
		_, err = io.ReadFull(conn, nonces[:nonceSize])
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &stream{
		Conn: conn, transport: t, peer: to, greeting: nonces[nonceSize:], sealer: newCipher(keys[0], "question", nonces[:], way{t.self, to}),
		opener: opener{from: conn, ciphers: []cipher.AEAD{newCipher(keys[0], "answer", nonces[:], way{to, t.self})}},
	}, nil
}

// sendState tells a node this one's state, by a connection.
func (t *transport) sendState(to netip.Addr) error {
	s, err := t.dial(to, ConnectionTime)
	if err != nil {
		return err
	}
	_, err = s.Write(nil)
	return errors.Join(err, s.Close())
}

// Write says what memberlist does, with this node's state.
func (s *stream) Write(b []byte) (int, error) {
	if s.said {
		return 0, errors.New("a side of a stream says one message")
	}
	s.said = true
	text := s.transport.events.state()
	message := append(make([]byte, 0, sessionSize+4+len(text)+len(b)), s.transport.session[:]...)
	message = append(binary.BigEndian.AppendUint32(message, uint32(len(text))), text...)
	if message = append(message, b...); len(message) > largestMessage {
		return 0, errTooLarge
	}
	if _, err := s.Conn.Write(append(s.greeting, sealMessage(s.sealer, message)...)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Read reads what the other side says to memberlist.
func (s *stream) Read(b []byte) (int, error) {
	if s.read == nil {
		message, err := s.message()
		if err != nil {
			return 0, err
		}
		s.read = bytes.NewReader(message)
	}
	return s.read.Read(b)
}

// message takes all that the other side says, and returns what of it is for memberlist.
func (s *stream) message() (forMemberlist []byte, err error) {
	text := s.opener.text
	if !s.opened {
		if text, err = s.opener.rest(); err != nil {
			return nil, err
		}
	}
	if len(text) < sessionSize+4 {
		return nil, errMalformed
	}
	process, length, text := session(text[:sessionSize]), binary.BigEndian.Uint32(text[sessionSize:]), text[sessionSize+4:]
	if length > uint32(len(text)) || length > largestState {
		return nil, errTooLarge
	}
	s.transport.learn(s.peer, process)
	if length > 0 {
		s.transport.events.heard(s.peer, text[:length])
	}
	if text = text[length:]; len(text) == 0 {
		return nil, nil
	}
	return s.transport.guard.exchange(text, s.peer)
}

// learn notes which process runs at a node.
func (t *transport) learn(peer netip.Addr, process session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.heard[peer]; old == nil || old.session != process {
		t.heard[peer] = &speaker{session: process}
	}
}
