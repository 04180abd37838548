package pool

import (
	"bytes"
	"crypto/cipher"
	"errors"
	"net/netip"
	"testing"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

var (
	sealKey, otherKey = bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	there             = way{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
	there6            = way{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")}
)

// TestSeal_DatagramIsForItsAddresses: it opens with its key from its sender at its receiver, and in no other way.
func TestSeal_DatagramIsForItsAddresses(t *testing.T) {
	for _, w := range []way{there, there6} {
		sealed := sealDatagram(sealKey, session{7}, 5, w, []byte("text"))
		s, number, text, err := openDatagram([][]byte{otherKey, sealKey}, w, sealed)
		if err != nil || s != (session{7}) || number != 5 || string(text) != "text" {
			t.Fatalf("opened session %v, number %d, %q, error %v", s, number, text, err)
		}
		for name, open := range map[string]func() error{
			"another key": func() error { _, _, _, err := openDatagram([][]byte{otherKey}, w, sealed); return err },
			"no key":      func() error { _, _, _, err := openDatagram(nil, w, sealed); return err },
			"reflected":   func() error { _, _, _, err := openDatagram([][]byte{sealKey}, way{w.to, w.from}, sealed); return err },
			"from another node": func() error {
				_, _, _, err := openDatagram([][]byte{sealKey}, way{w.to.Next(), w.to}, sealed)
				return err
			},
			"to another node": func() error {
				_, _, _, err := openDatagram([][]byte{sealKey}, way{w.from, w.to.Next()}, sealed)
				return err
			},
			"without its last": func() error { _, _, _, err := openDatagram([][]byte{sealKey}, w, sealed[:len(sealed)-1]); return err },
			"with something more": func() error {
				_, _, _, err := openDatagram([][]byte{sealKey}, w, append(bytes.Clone(sealed), 0))
				return err
			},
		} {
			if err := open(); !errors.Is(err, errUnsealed) {
				t.Errorf("%s: %v, want that it is not sealed", name, err)
			}
		}
		for i := range sealed {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1
			if _, _, _, err := openDatagram([][]byte{sealKey}, w, changed); err == nil {
				t.Errorf("opens although byte %d was changed", i)
			}
		}
	}
}

// message opens a message as a stream does.
func message(sealed []byte, keys ...[]byte) ([]byte, error) {
	o := opener{from: bytes.NewReader(sealed)}
	for _, key := range keys {
		o.ciphers = append(o.ciphers, streamCipher(key))
	}
	return o.rest()
}

func streamCipher(key []byte) cipher.AEAD { return newCipher(key, "question", []byte("nonces"), there) }

// TestSeal_MessageIsWhole: of any length, and nothing of it missing, twice, or in another order.
func TestSeal_MessageIsWhole(t *testing.T) {
	for _, length := range []int{0, 1, chunk - 1, chunk, chunk + 1, 5 * chunk, largestMessage} {
		text := bytes.Repeat([]byte("0123456789abcdef"), length/16+1)[:length]
		sealed := sealMessage(streamCipher(sealKey), text)
		if got, err := message(sealed, otherKey, sealKey); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%d bytes: opened %d, error %v", length, len(got), err)
		}
		if _, err := message(sealed, otherKey); err == nil {
			t.Errorf("%d bytes open with another key", length)
		}
		if _, err := message(sealed[:len(sealed)-1], sealKey); err == nil {
			t.Errorf("%d bytes open although the last one is missing", length)
		}
	}
	const one = 2 + chunk + tagSize
	text := bytes.Repeat([]byte("x"), 2*chunk+10)
	sealed := sealMessage(streamCipher(sealKey), text)
	first, second, end := sealed[:one], sealed[one:2*one], sealed[2*one:]
	for name, chunks := range map[string][][]byte{
		"the second one first": {second, first, end}, "the first one twice": {first, first, second, end},
		"without the second": {first, end}, "without the last": {first, second},
	} {
		if _, err := message(bytes.Join(chunks, nil), sealKey); err == nil {
			t.Errorf("opens with its chunks so: %s", name)
		}
	}
	if _, err := message(sealMessage(streamCipher(sealKey), make([]byte, largestMessage+1)), sealKey); !errors.Is(err, errTooLarge) {
		t.Errorf("a message that is too large: %v", err)
	}
}

func TestWindow_EachNumberOnce(t *testing.T) {
	var w window
	for _, c := range []struct {
		number uint64
		want   bool
	}{
		{0, false}, {1, true}, {1, false}, {3, true}, {2, true}, {2, false}, {3, false}, {66, true}, {3, false}, {4, true}, {2, false}, {65, true},
		{1 << 40, true}, {66, false}, {1<<40 - 63, true}, {1<<40 - 64, false}, {1<<64 - 1, true}, {1<<64 - 1, false}, {1<<64 - 2, true},
	} {
		if got := w.take(c.number); got != c.want {
			t.Errorf("number %d is new: %v, want %v", c.number, got, c.want)
		}
	}
}

// FuzzSeal: whatever comes, nothing opens that was not sealed, and nothing panics.
func FuzzSeal(f *testing.F) {
	f.Add([]byte{})
	f.Add(sealDatagram(sealKey, session{7}, 5, there, []byte("text")))
	f.Add(sealMessage(streamCipher(sealKey), []byte("text")))
	f.Add(sealMessage(streamCipher(sealKey), make([]byte, chunk+1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, text, err := openDatagram([][]byte{otherKey}, there, b); err == nil {
			t.Errorf("opened %q", text)
		}
		if text, err := message(b, otherKey); err == nil {
			t.Errorf("opened %q", text)
		}
		text, err := message(sealMessage(streamCipher(sealKey), b), sealKey)
		if len(b) <= largestMessage && (err != nil || !bytes.Equal(text, b)) {
			t.Errorf("opened %q, error %v", text, err)
		}
	})
}

// FuzzState: whatever a node says, what is read of it is bounded, and of the pool's networks.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"run":1,"version":2,"networks":[{"prefix":"192.0.2.0/24","up":true}],"held":{"192.0.2.101":7},"claims":{"192.0.2.102":"02:00"},"failed":["192.0.2.103"]}`))
	f.Add([]byte(`{"name":"b","held":{"192.0.2.101":4611686018427387904,"fe80::1%eth0":1,"::ffff:192.0.2.1":1}}`))
	f.Add([]byte(`[[[[`))
	networks := []netip.Prefix{subnet.Prefix, netip.MustParsePrefix("2001:db8::/64")}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseState("a", text, networks)
		if err != nil {
			return
		}
		if s.Name != "a" || s.load()+len(s.Failed) > mostAddresses || len(s.Networks) > mostNetworks {
			t.Fatalf("read %q: %d held, %d claims, %d failed, %d networks", s.Name, len(s.Held), len(s.Claims), len(s.Failed), len(s.Networks))
		}
		for ip, epoch := range s.Held {
			if epoch > holders.MaxEpoch || !networks[0].Contains(ip) && !networks[1].Contains(ip) {
				t.Errorf("%s is held with epoch %d", ip, epoch)
			}
		}
		m := newMember("b")
		m.Next(Wanted{Addresses: []netip.Addr{ip1}}, moment(0))
		m.Next(Heard{s}, moment(0))
		for _, part := range s.Parts() {
			m.Next(Reminded{part}, moment(0))
		}
	})
}
