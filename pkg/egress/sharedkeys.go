package egress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/keys"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// nodeKeys are those by which nodes know each other.
type nodeKeys struct {
	ring *holders.Keyring

	mu sync.Mutex
	// failing is what is not in order with them; nil if all is.
	failing error
}

// state tells whether this node has no key, and what is not in order.
func (k *nodeKeys) state() (missing bool, failing error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ring.Keys()) == 0, k.failing
}

// shareKeys has this node share keys with the others, unless it has those of a file or needs none, and follows when there are
// others.
func (e *Extension) shareKeys(ctx context.Context, client kubernetes.Interface) {
	if len(e.config.Ways.Keys) > 0 || e.config.Ways.Kernel.AnnouncePort == 0 && e.pool == nil {
		return
	}
	// The file is read before anything is announced.
	keeper := keys.New(ctx, keys.Config{
		Client: client, Namespace: e.config.Ways.LeaseNamespace, File: e.config.Ways.KeptKeys,
		Ring: e.keys.ring, Explain: e.explain, Failing: e.keysFail,
	})
	e.running.Go(func() { keeper.Run(ctx) })
	e.running.Go(func() {
		for {
			changed := e.keys.ring.Changed()
			e.changed(true, time.Now()) // the pool may wait for the first key
			e.faultsChanged()
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	})
}

// keysFail notes what is not in order with the keys, or with nil that all is.
func (e *Extension) keysFail(err error) {
	e.keys.mu.Lock()
	e.keys.failing = err
	e.keys.mu.Unlock()
	e.faultsChanged()
}

// faultsChanged tells people of faults: of steering, and of the CNI plugin.
func (e *Extension) faultsChanged() {
	e.events.SetTroubles(e.troubles())
	e.statusChanged()
}

// Reasons of Events about a Node.
const (
	noKey         plan.Reason = "EgressKeyMissing"
	badKeys       plan.Reason = "EgressKeysFailing"
	notAnnouncing plan.Reason = "EgressIPsNotAnnounced"
)

// keyFaults returns those of the keys.
func (e *Extension) keyFaults() []fault {
	switch missing, err := e.keys.state(); {
	case e.steerer == nil || err == nil:
		return nil
	case missing:
		return []fault{{keyless, fmt.Sprintf("this node has no key by which the other nodes know it, so it neither sends nor accepts direct announcements, has no part in the pool, and learns from the Leases alone where egress IPs are: %v", err)}}
	default:
		return []fault{{rekeying, fmt.Sprintf("this node has keys, but something is wrong with how they are shared or kept: %v", err)}}
	}
}

// errNoKey is why this node has no part in the pool.
func (e *Extension) errNoKey() error {
	_, err := e.keys.state()
	if err == nil {
		err = errors.New("the Secret " + e.config.Ways.LeaseNamespace + "/" + keys.SecretName + " is not read yet")
	}
	return fmt.Errorf("this node has no part in the pool yet: it has no key by which the other nodes know it: %w", err)
}

// betweenNodes is what a verification calls what nodes say to each other, beside the IP families.
const betweenNodes = "between nodes"

// announcementWarnings returns what a verification says of it, of what a load balancer announces, and of a node that sends others no
// packets. Nil if all is well.
func (e *Extension) announcementWarnings() (warnings []string) {
	for _, f := range e.steeringFaults() {
		if slices.Contains([]faultKind{unavailable, keyless, rekeying, unannounced, unfollowed}, f.kind) {
			warnings = append(warnings, status.Warning+f.message)
		}
	}
	return warnings
}
