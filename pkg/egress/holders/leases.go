package holders

import (
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
)

// DefaultNamespace is that of the Leases if no other is configured.
const DefaultNamespace = "origin-node"

// Leases are where nodes announce their addresses.
type Leases struct {
	Client    kubernetes.Interface
	Namespace string
	// Configuration is what this node's Lease tells of its configuration, see [ConfigurationAnnotation]; nothing if empty.
	Configuration string
	// Explain, if not nil, adds to an error of the client what an operator needs to act on it.
	Explain func(error) error
	// Failing, if not nil, is told why the Leases cannot be read, or this node's not be written, and nil when
	// that is over. It must not block.
	Failing func(what Access, err error)
	// Claims is told of the Leases in which nodes claim blocks of source ports; deleted: there is none any more.
	Claims func(lease *coordinationv1.Lease, deleted bool)
}

// Access is a use of Leases.
type Access string

// The uses.
const (
	Reading Access = "reading"
	Writing Access = "writing"
)

// failing tells of a failure, or with nil of its end.
func (l Leases) failing(what Access, err error) {
	if l.Failing != nil {
		l.Failing(what, err)
	}
}

// IsRefused tells whether an error about Leases says that a right or the namespace is missing.
func IsRefused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// Explain adds to an error about Leases, or another object in their namespace, which right or namespace is missing, if one is. Any other
// one gets from explain, if that is not nil, what an operator needs to act on it.
func Explain(err error, explain func(error) error) error {
	switch {
	case IsRefused(err):
		return fmt.Errorf("%w; apply images/node/rbac.yaml, which has the namespace of the Leases and the rights in it; if egress-snat-lease-namespace names another namespace than it does, change it accordingly", err)
	case err == nil || explain == nil:
		return err
	}
	return explain(err)
}

// reasonOf is what of an error about Leases is news if it is another one: the texts of requests that failed for one reason differ.
func reasonOf(err error) error { return errors.New(string(apierrors.ReasonForError(err))) }

const (
	// renewal is how often a Lease that announces anything is renewed, and up to a tenth more: not all
	// nodes do it at the same time.
	renewal       = 9 * time.Second
	renewalJitter = 0.1
)
