package pool

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"slices"
)

// What members tell each other is sealed by AES-256-GCM. No key is used as it is: a datagram's is derived for its sender's process
// and for the two addresses, that of a message for the stream and the direction. So what was sealed for one node, or by one, is
// nothing to any other, numbers may be nonces, and none is ever used twice with one key.
const (
	// sealVersion is the first byte of each datagram.
	sealVersion = 1
	// sessionSize is the size of the random number that a process has for its life, nonceSize of those that both sides of a stream
	// choose.
	sessionSize, nonceSize = 8, 16
	// headerSize is what is in front of a sealed datagram, overhead what sealing adds to it.
	headerSize = 1 + sessionSize + 8
	overhead   = headerSize + tagSize
	tagSize    = 16
	// chunk is how much of a message is sealed at once, largestMessage how much a message has at most. What is not authentic
	// costs no more memory than one chunk.
	chunk, largestMessage = 16 << 10, 2 << 20
	// last marks the last chunk of a message, in the two bytes that have its length.
	last = 1 << 15
)

var (
	errUnsealed = errors.New("it is not sealed with a key of this node, or for other addresses")
	errTooLarge = errors.New("the message is too large")
	errNoKeys   = errors.New("this node has no key")
)

// session is a random number that a process has for its life.
type session [sessionSize]byte

// way is from the node that seals to the one that opens.
type way struct{ from, to netip.Addr }

// newCipher derives the cipher for a use of a key.
func newCipher(key []byte, use string, salt []byte, w way) cipher.AEAD {
	from, to := w.from.As16(), w.to.As16()
	derived, _ := hkdf.Key(sha256.New, key, salt, "origin-node pool "+use+string(from[:])+string(to[:]), 32) // this length never fails
	block, _ := aes.NewCipher(derived)                                                                       // nor does this one
	sealer, _ := cipher.NewGCM(block)
	return sealer
}

// nonce is that of a number.
func nonce(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 4, 12), n) }

// sealDatagram seals the datagram of this number, the first one is 1, of a process.
func sealDatagram(key []byte, s session, number uint64, w way, text []byte) []byte {
	sealed := append(make([]byte, 0, len(text)+overhead), sealVersion)
	sealed = binary.BigEndian.AppendUint64(append(sealed, s[:]...), number)
	return newCipher(key, "datagram", s[:], w).Seal(sealed, nonce(number), text, sealed)
}

// openDatagram opens a datagram with one of some keys.
func openDatagram(keys [][]byte, w way, sealed []byte) (s session, number uint64, text []byte, err error) {
	if len(sealed) < overhead || sealed[0] != sealVersion {
		return s, 0, nil, errUnsealed
	}
	header := sealed[:headerSize]
	s, number = session(header[1:]), binary.BigEndian.Uint64(header[1+sessionSize:])
	for _, key := range keys {
		if text, err = newCipher(key, "datagram", s[:], w).Open(nil, nonce(number), sealed[headerSize:], header); err == nil {
			return s, number, text, nil
		}
	}
	return s, 0, nil, errUnsealed
}

// sealMessage seals what one side of a stream says.
func sealMessage(sealer cipher.AEAD, text []byte) []byte {
	chunks := slices.Collect(slices.Chunk(text, chunk))
	if len(chunks) == 0 {
		chunks = [][]byte{nil}
	}
	sealed := make([]byte, 0, len(text)+len(chunks)*(2+tagSize))
	for i, one := range chunks {
		length := uint16(len(one) + tagSize)
		if i == len(chunks)-1 {
			length |= last
		}
		header := binary.BigEndian.AppendUint16(nil, length)
		sealed = sealer.Seal(append(sealed, header...), nonce(uint64(i)), one, header)
	}
	return sealed
}

// opener opens what the other side of a stream says.
type opener struct {
	from io.Reader
	// ciphers are those of all keys; when the first chunk is open, that of its key alone, the number of which is key.
	ciphers []cipher.AEAD
	key     int
	chunks  uint64
	text    []byte
}

// next opens the next chunk, and tells whether it was the last one.
func (o *opener) next() (done bool, err error) {
	var header [2]byte
	if _, err := io.ReadFull(o.from, header[:]); err != nil {
		return false, err
	}
	length := binary.BigEndian.Uint16(header[:])
	done = length&last != 0
	size := int(length &^ last)
	if size < tagSize || size > chunk+tagSize || !done && size < chunk+tagSize {
		return false, errUnsealed
	}
	if len(o.text)+size-tagSize > largestMessage {
		return false, errTooLarge
	}
	sealed := make([]byte, size)
	if _, err := io.ReadFull(o.from, sealed); err != nil {
		return false, err
	}
	for i, c := range o.ciphers {
		if text, err := c.Open(nil, nonce(o.chunks), sealed, header[:]); err == nil {
			if o.chunks == 0 {
				o.ciphers, o.key = o.ciphers[i:i+1], i
			}
			o.text = append(o.text, text...)
			o.chunks++
			return done, nil
		}
	}
	return false, errUnsealed
}

// rest opens all that is left.
func (o *opener) rest() ([]byte, error) {
	for {
		if done, err := o.next(); done || err != nil {
			return o.text, err
		}
	}
}

// window says which datagrams of a process have come. Bit n of seen is that of the number highest-n. What is older than the
// window counts as if it had come.
type window struct{ highest, seen uint64 }

// take notes that a datagram has come, and tells whether it is the first time.
func (w *window) take(number uint64) bool {
	switch {
	case number > w.highest:
		w.seen = w.seen<<min(number-w.highest, 64) | 1
		w.highest = number
		return true
	case number == 0 || w.highest-number >= 64:
		return false
	}
	bit := uint64(1) << (w.highest - number)
	first := w.seen&bit == 0
	w.seen |= bit
	return first
}
