package holders

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/wake"
)

const (
	// patience bounds a single request.
	patience = 5 * time.Second
	// assignedPause is how long after a write the next one waits that has other source ports of pods alone. All nodes read it, and pods may
	// start and end all the time. Nodes are told directly besides.
	assignedPause = time.Second
)

// retries are how long after a failed write comes the next one, up to a renewal.
var retries = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: renewalJitter, Steps: 10, Cap: renewal}

// Publisher announces this node's addresses in its Lease, and what it has chosen for its pods, also which source ports: at once when that changes, and again every
// so often as long as there are addresses. A node that never has anything to say has no Lease, and a Lease without addresses is
// not renewed. At the end of the process the Lease stays: a restart moves nothing.
type Publisher struct {
	leases Leases
	node   string
	// wake says that there is another announcement.
	wake    wake.Signal
	retry   wait.Backoff
	trouble failure.Streak

	mu     sync.Mutex
	wanted *announcement // nil as long as nobody has said anything
	// assigned is what SetAssigned was told, wroteAt when the last write began, and later wakes for what waits for its pause; nil if
	// nothing does.
	assigned assigned
	wroteAt  time.Time
	later    *time.Timer
}

// NewPublisher returns the Publisher of a node.
func NewPublisher(leases Leases, nodeName string) *Publisher {
	return &Publisher{leases: leases, node: nodeName, wake: wake.New(), retry: retries}
}

// SetPublished says what to announce, what this node has chosen for its pods, and the UID of its Node; empty if it is not known. None of
// it must be changed any more. Nothing is written before the first call. It does not wait.
func (p *Publisher) SetPublished(statement Statement, choices map[string]map[netip.Addr]netip.Addr, nodeUID types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.wanted
	same := before != nil && before.uid == nodeUID && maps.Equal(before.Addresses, statement.Addresses) && maps.EqualFunc(before.choices, choices, maps.Equal)
	if same && before.Revision == statement.Revision && before.assigned.text == p.assigned.text {
		return
	}
	p.wanted = &announcement{p.node, nodeUID, statement, choices, p.leases.Configuration, p.assigned}
	if same && before.Revision == statement.Revision {
		p.wakeLater()
		return
	}
	p.wake.Send()
}

// SetAssigned says which source ports this node's pods have, as [portblocks.AssignedAnnotation] has it, empty for nothing, and the revision
// of that. It is announced with the next SetPublished.
func (p *Publisher) SetAssigned(text string, revision uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.assigned = assigned{text, revision}
}

// wakeLater wakes after a pause. The lock must be held.
func (p *Publisher) wakeLater() {
	pause := time.Until(p.wroteAt.Add(assignedPause))
	switch {
	case p.later != nil: // it comes
	case pause <= 0:
		p.wake.Send()
	default:
		p.later = time.AfterFunc(pause, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.later = nil
			p.wake.Send()
		})
	}
}

// Rewrite has the Lease written again: somebody else has deleted or changed it.
func (p *Publisher) Rewrite() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted != nil {
		p.wake.Send()
	}
}

// Run announces until ctx ends. Failures are logged and tried again.
func (p *Publisher) Run(ctx context.Context) {
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-again.C:
		}
		if after := p.round(ctx); after > 0 {
			again.Reset(after)
		} else {
			again.Stop()
		}
	}
}

// round writes the Lease, and returns after how long to do so again; 0 for never.
func (p *Publisher) round(ctx context.Context) (after time.Duration) {
	logger := klog.FromContext(ctx)
	p.mu.Lock()
	wanted := *p.wanted
	p.wroteAt = time.Now()
	p.mu.Unlock()
	if err := p.write(ctx, wanted); err != nil {
		if err = p.leases.explain(err); ctx.Err() == nil && p.trouble.Changes(reasonOf(err)) {
			p.leases.failing(Writing, err)
			logger.Error(err, "Cannot announce this node's egress IPs to the other nodes; will retry, further failures are not logged",
				"lease", klog.KRef(p.leases.Namespace, p.node))
		}
		return p.retry.Step()
	}
	p.retry = retries
	if p.trouble.Turns(nil) {
		p.leases.failing(Writing, nil)
		logger.Info("This node's egress IPs are announced to the other nodes again", "lease", klog.KRef(p.leases.Namespace, p.node))
	}
	if len(wanted.Addresses) == 0 {
		return 0
	}
	return wait.Jitter(renewal, renewalJitter)
}

// write makes the Lease what is wanted. One that is there is taken over, whoever made it; one that is not
// is made if there is anything to announce.
func (p *Publisher) write(ctx context.Context, wanted announcement) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	leases := p.leases.Client.CoordinationV1().Leases(p.leases.Namespace)
	now := time.Now()
	patch, err := wanted.patch(now)
	if err != nil {
		return err
	}
	_, err = leases.Patch(ctx, p.node, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) && len(wanted.Addresses)+len(wanted.choices)+len(wanted.assigned.text) == 0 {
		return nil
	}
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, wanted.lease(p.leases.Namespace, now), metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write Lease %s/%s: %w", p.leases.Namespace, p.node, err)
	}
	klog.FromContext(ctx).V(4).Info("Announced egress IPs", "lease", klog.KRef(p.leases.Namespace, p.node), "addresses", wanted.Addresses)
	return nil
}

// Withdraw has a node's Lease announce no address any more, for a node that runs no Publisher. It does nothing if
// that is so, or if there is no Lease.
func (l Leases) Withdraw(ctx context.Context, node string) error {
	leases := l.Client.CoordinationV1().Leases(l.Namespace)
	// A node may list Leases, but not get one.
	list, err := leases.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, node).String()})
	if err != nil {
		return fmt.Errorf("list Leases in %s: %w", l.Namespace, err)
	}
	for _, lease := range list.Items {
		said, _ := readLease(&lease) // what cannot be read goes as well
		if text := lease.Annotations[Annotation]; lease.Name != node || (text == "" || text == "{}") && lease.Annotations[ChoicesAnnotation] == "" && lease.Annotations[portblocks.AssignedAnnotation] == "" {
			continue
		}
		patch, err := announcement{node: node, Statement: Statement{Revision: nextRevision(0, said.Revision)}}.patch(time.Now())
		if err != nil {
			return err
		}
		if _, err := leases.Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("write Lease %s/%s: %w", l.Namespace, node, err)
		}
	}
	return nil
}
