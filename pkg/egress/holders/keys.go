package holders

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
)

// Keys are secrets that the nodes share. The first one signs, all of them are accepted: so keys can be changed
// without a moment in which nodes do not understand each other. Without a key nothing is signed.
type Keys [][]byte

// shortestKey is how many characters a line of a key file has at least.
const shortestKey = 16

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
	if len(keys) == 0 {
		return nil, errors.New("the file has no key: write one into it, for example the output of 'openssl rand -hex 32'")
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

// sign appends a signature, if there is a key.
func (k Keys) sign(message []byte) []byte {
	if len(k) == 0 {
		return message
	}
	return append(message, signature(k[0], message)...)
}

var errUnauthenticated = errors.New("the signature is missing or of another key")

// verify returns the message without its signature.
func (k Keys) verify(signed []byte) (message []byte, err error) {
	if len(k) == 0 {
		return signed, nil
	}
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
