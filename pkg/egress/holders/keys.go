package holders

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/openshift/origin-node/pkg/wake"
)

// Keys are secrets that the nodes share. The first one signs, all of them are accepted: so keys can be changed
// without a moment in which nodes do not understand each other. Without a key nothing is said, and nobody is believed.
type Keys [][]byte

const (
	// shortestKey is how many characters a line of a key file has at least.
	shortestKey = 16
	// mostKeys is how many there are at most: with each of them every datagram of a stranger takes longer.
	mostKeys = 8
)

// ParseKeys reads the text of a key file: a key in each line that is not empty.
func ParseKeys(text string) (keys Keys, err error) {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case len(line) < shortestKey:
			return nil, fmt.Errorf("line %d has %d characters: a key must have at least %d, for example the output of 'openssl rand -hex 32'", i+1, len(line), shortestKey)
		default:
			keys = append(keys, []byte(line))
		}
	}
	switch {
	case len(keys) == 0:
		return nil, errors.New("the file has no key: write one into it, for example the output of 'openssl rand -hex 32'")
	case len(keys) > mostKeys:
		return nil, fmt.Errorf("%d lines have keys, and %d is the most: remove those that no node signs with any more", len(keys), mostKeys)
	}
	return keys, nil
}

// For returns keys of 32 bytes for a purpose: who learns those of one purpose learns nothing of the others.
func (k Keys) For(purpose string) Keys {
	derived := make(Keys, len(k))
	for i, key := range k {
		derived[i], _ = hkdf.Key(sha256.New, key, nil, "origin-node "+purpose, sha256.Size) // this length never fails
	}
	return derived
}

// Equal tells whether these are the same keys in the same order.
func (k Keys) Equal(other Keys) bool { return slices.EqualFunc(k, other, bytes.Equal) }

// shares tells whether a key is in both.
func (k Keys) shares(other Keys) bool {
	return slices.ContainsFunc(k, func(key []byte) bool {
		return slices.ContainsFunc(other, func(o []byte) bool { return bytes.Equal(key, o) })
	})
}

// Keyring has the keys of this moment. Its methods may be called by several goroutines.
type Keyring struct {
	mu       sync.Mutex
	keys     Keys
	changed  *wake.Broadcast
	purposes map[string]Keys
}

// NewKeyring returns a Keyring with these keys, which may be none.
func NewKeyring(keys Keys) *Keyring {
	return &Keyring{keys: keys, changed: wake.NewBroadcast(), purposes: map[string]Keys{}}
}

// Keys returns those of this moment. They must not be changed.
func (r *Keyring) Keys() Keys {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys
}

// Set takes other keys in the place of all. They must not be changed any more.
func (r *Keyring) Set(keys Keys) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys.Equal(keys) {
		return
	}
	r.keys = keys
	clear(r.purposes)
	r.changed.Send()
}

// Changed returns a channel that is closed when there are other keys than now.
func (r *Keyring) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed.Next()
}

// For returns what returns the keys of this moment for a purpose, as [Keys.For] does. They are derived once. They must not be
// changed.
func (r *Keyring) For(purpose string) func() Keys {
	return func() Keys {
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, known := r.purposes[purpose]; !known {
			r.purposes[purpose] = r.keys.For(purpose)
		}
		return r.purposes[purpose]
	}
}

// errUnauthenticated: a datagram is not of a node that has one of our keys, or we have none.
var errUnauthenticated = errors.New("the signature is missing or of another key")

// sign appends a signature. There must be a key.
func (k Keys) sign(message []byte) []byte { return append(message, signature(k[0], message)...) }

// verify returns the message without its signature. Without a key nothing is authentic.
func (k Keys) verify(signed []byte) (message []byte, err error) {
	at := len(signed) - sha256.Size
	if at < 0 {
		return nil, errUnauthenticated
	}
	message, sent := signed[:at], signed[at:]
	for _, key := range k {
		if hmac.Equal(sent, signature(key, message)) {
			return message, nil
		}
	}
	return nil, errUnauthenticated
}

func signature(key, message []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(message) // it never fails
	return mac.Sum(nil)
}
