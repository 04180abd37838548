package pool

import (
	"bytes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"
)

// TestSeal_EmptyDatagramIsMalformed: what is sealed as it should be, and has nothing inside, or nothing behind its kind, is an error and no
// more, also of a process that is known.
func TestSeal_EmptyDatagramIsMalformed(t *testing.T) {
	a, l := newTestMembers(t, "a"), newLiar(t, testKeys)
	l.say(t, a, map[string]any{"run": 7, "version": 1}) // now its process is known
	from, to := nodesOnLoopback["b"], nodesOnLoopback["a"]
	for i, text := range [][]byte{nil, {}, {gossipText}, {stateText}, {77}} {
		sealed := sealDatagram(testKeys()[0], l.session, 1000+uint64(i), way{from, to}, text)
		if _, _, got, err := openDatagram(testKeys(), way{from, to}, sealed); err != nil || len(got) != len(text) {
			t.Fatalf("%q does not open: %q, %v", text, got, err)
		}
		if err := a.transport.datagram(netip.AddrPortFrom(from, loopbackPort), sealed); !errors.Is(err, errMalformed) {
			t.Errorf("a datagram with %q inside: %v", text, err)
		}
		if _, err := l.udp.WriteToUDPAddrPort(sealed, netip.AddrPortFrom(to, loopbackPort)); err != nil {
			t.Fatal(err)
		}
	}
	if s := l.say(t, a, map[string]any{"run": 7, "version": 2}); s.Version != 2 {
		t.Errorf("heard %+v", s)
	}
}

// TestSeal_EmptyMessageIsMalformed: the same of what is said on a stream, which ends; and no chunk is empty but the last one.
func TestSeal_EmptyMessageIsMalformed(t *testing.T) {
	a, l := newTestMembers(t, "a"), newLiar(t, testKeys)
	for _, text := range [][]byte{nil, {0}, make([]byte, sessionSize), make([]byte, sessionSize+3)} {
		s := &stream{transport: a.transport, peer: nodesOnLoopback["b"], opener: opener{
			from: bytes.NewReader(sealMessage(streamCipher(sealKey), text)), ciphers: []cipher.AEAD{streamCipher(sealKey)},
		}}
		if got, err := s.message(); !errors.Is(err, errMalformed) {
			t.Errorf("a message of %d bytes: %q, %v", len(text), got, err)
		}
		called, err := l.dial(nodesOnLoopback["a"], 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := called.Conn.Write(append(called.greeting, sealMessage(called.sealer, text)...)); err != nil {
			t.Fatal(err)
		}
		if n, err := called.Conn.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			t.Errorf("a message of %d bytes: %d bytes are answered, %v; want the stream to end", len(text), n, err)
		}
		_ = called.Close()
	}
	header := binary.BigEndian.AppendUint16(nil, tagSize) // not marked as the last one
	empty := streamCipher(sealKey).Seal(header, nonce(0), nil, header)
	if got, err := message(empty, sealKey); !errors.Is(err, errUnsealed) {
		t.Errorf("an empty chunk that is not the last one: %q, %v", got, err)
	}
	if s := l.say(t, a, map[string]any{"run": 7, "version": 2}); s.Version != 2 {
		t.Errorf("heard %+v", s)
	}
}
