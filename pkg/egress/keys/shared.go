package keys

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

// SecretName is the name of the Secret with the keys, in the namespace of the Leases.
const SecretName = "origin-node-keys"

// The entries of the Secret.
const (
	keysEntry    = "keys"
	stepEntry    = "step"
	changedEntry = "changed"
)

const (
	// lifetime is how long a key signs until another one is added.
	lifetime = 30 * 24 * time.Hour
	// distribution is how long all nodes may take to get keys that have changed: that long one has to see them unchanged.
	distribution = 24 * time.Hour
)

// step is one of a rotation.
type step string

const (
	steady   step = "steady"
	adding   step = "adding"
	dropping step = "dropping"
)

// shared is what the Secret has.
type shared struct {
	// keys: the first one signs, all are accepted; empty if somebody has to make one.
	keys holders.Keys
	step step
	// changed is when the step began; zero if that is not known.
	changed time.Time
}

// read returns what a Secret has. It is an error if that is something else than keys.
func read(secret *v1.Secret) (shared, error) {
	text := string(secret.Data[keysEntry])
	if strings.TrimSpace(text) == "" {
		return shared{}, nil
	}
	keys, err := holders.ParseKeys(text)
	if err != nil {
		return shared{}, fmt.Errorf("data.%s: %w; or empty the Secret, and a node makes a key: kubectl -n %s patch secret %s --type=json -p '[{\"op\": \"remove\", \"path\": \"/data\"}]'",
			keysEntry, err, secret.Namespace, secret.Name)
	}
	s := shared{keys: keys, step: step(secret.Data[stepEntry])}
	s.changed, _ = time.Parse(time.RFC3339, string(secret.Data[changedEntry])) // somebody may have written keys without it
	switch {
	case len(keys) == 1:
		s.step = steady
	case s.step != adding:
		s.step = dropping // also what somebody has written without it: the first one signs
	}
	return s, nil
}

// in returns a Secret that has this.
func (s shared) in(secret *v1.Secret) *v1.Secret {
	secret = secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[keysEntry] = lines(s.keys)
	secret.Data[stepEntry] = []byte(s.step)
	secret.Data[changedEntry] = []byte(s.changed.UTC().Format(time.RFC3339))
	return secret
}

// next returns what is due at a time in the place of s; not due if nothing is.
func (s shared) next(now time.Time) (next shared, due bool) {
	age := now.Sub(s.changed)
	next = shared{keys: slices.Clone(s.keys), step: s.step, changed: now}
	switch {
	case len(s.keys) == 0:
		next.keys, next.step = holders.Keys{newKey()}, steady
	case s.changed.IsZero() || age < -distribution: // nobody has said it, or somebody whose clock was wrong
	case s.step == steady && age >= lifetime:
		next.keys, next.step = append(next.keys, newKey()), adding
	case s.step == adding && age >= distribution:
		last := len(next.keys) - 1
		next.keys, next.step = append(holders.Keys{next.keys[last]}, next.keys[:last]...), dropping
	case s.step == dropping && age >= distribution:
		next.keys, next.step = next.keys[:1], steady
	default:
		return s, false
	}
	return next, true
}

// newKey returns a random key, as a line.
func newKey() []byte {
	var bytes [32]byte
	_, _ = rand.Read(bytes[:]) // it never fails
	return []byte(hex.EncodeToString(bytes[:]))
}

// lines returns keys as text.
func lines(keys holders.Keys) (text []byte) {
	for _, key := range keys {
		text = append(append(text, key...), '\n')
	}
	return text
}

// errMissing is why there is no Secret to read.
var errMissing = errors.New("it does not exist: apply images/node/rbac.yaml, which has it, and nodes make a key")

// errUnanswered is why a node does not know whether there is one.
var errUnanswered = errors.New("the API server has not answered yet")

// object names the Secret.
func object(namespace string) *v1.Secret {
	return &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName}}
}
