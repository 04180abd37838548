package holders

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
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

// Published is what a node says in its Lease. None of it must be changed any more.
type Published struct {
	// Statement says which addresses are announced; nothing is written as long as its revision is 0.
	Statement
	// Choices are what this node has chosen for its pods.
	Choices map[string]map[netip.Addr]netip.Addr
	// NodeUID is that of its Node; empty if it is not known.
	NodeUID types.UID
	// Assigned says which source ports its pods have, as [portblocks.AssignedAnnotation] has it, empty for nothing, in a revision.
	Assigned         string
	AssignedRevision uint64
}

// Publisher announces this node's addresses in its Lease, and what it has chosen for its pods, also which source ports: at once when that changes, and again every
// so often as long as there are addresses. A node that never has anything to say has no Lease, and a Lease without addresses is
// not renewed. At the end of the process the Lease stays: a restart moves nothing.
type Publisher struct {
	leases Leases
	node   string
	// ask returns what is to be announced now.
	ask     func() Published
	wake    wake.Signal
	rewrite atomic.Bool
	retry   wait.Backoff
	trouble failure.Streak
	// tried is what was written last, or was to be, wroteAt when that began, and next when it is due again; zero for never. These are of
	// the goroutine of Run.
	tried         *announcement
	wroteAt, next time.Time
}

// NewPublisher returns the Publisher of a node that asks what is to be announced. Run asks it, and no other goroutine.
func NewPublisher(leases Leases, nodeName string, ask func() Published) *Publisher {
	return &Publisher{leases: leases, node: nodeName, ask: ask, wake: wake.New(), retry: retries}
}

// Changed says that something else may be to be announced. It does not wait.
func (p *Publisher) Changed() { p.wake.Send() }

// Rewrite has the Lease written again: somebody else has deleted or changed it. It does not wait.
func (p *Publisher) Rewrite() {
	p.rewrite.Store(true)
	p.wake.Send()
}

// Run announces until ctx ends. Failures are logged and tried again.
func (p *Publisher) Run(ctx context.Context) {
	p.wake.FollowAt(ctx, func() time.Time { return p.round(ctx) })
}

// round writes the Lease if that is due, and returns when it is due next; zero for never.
func (p *Publisher) round(ctx context.Context) (next time.Time) {
	published := p.ask()
	if published.Revision == 0 {
		return time.Time{}
	}
	wanted := announcement{p.node, published, p.leases.Configuration}
	now := time.Now()
	if due := p.dueAt(wanted, p.rewrite.Swap(false), now); due.IsZero() || due.After(now) {
		return due
	}
	p.tried, p.wroteAt, p.next = &wanted, now, time.Time{}
	if after := p.try(ctx, wanted); after > 0 {
		p.next = time.Now().Add(after)
	}
	return p.next
}

// dueAt returns when the Lease is to say this; zero for never. rewrite: somebody else has changed it.
func (p *Publisher) dueAt(wanted announcement, rewrite bool, now time.Time) time.Time {
	switch {
	case rewrite, p.tried == nil, !wanted.isLike(*p.tried):
		return now
	case wanted.Assigned != p.tried.Assigned:
		return Earlier(p.next, p.wroteAt.Add(assignedPause))
	}
	return p.next
}

// try writes the Lease, and returns after how long to do so again; 0 for never.
func (p *Publisher) try(ctx context.Context, wanted announcement) (after time.Duration) {
	logger := klog.FromContext(ctx)
	if err := p.write(ctx, wanted); err != nil {
		if err = Explain(err, p.leases.Explain); ctx.Err() == nil && p.trouble.Changes(reasonOf(err)) {
			p.leases.failing(Writing, err)
			logger.Error(err, "Cannot announce this node's egress IPs to the other nodes; will retry, the same failure is not logged again",
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
	if apierrors.IsNotFound(err) && len(wanted.Addresses)+len(wanted.Choices)+len(wanted.Assigned) == 0 {
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
		now := time.Now()
		patch, err := announcement{node: node, Published: Published{Statement: Statement{Revision: nextRevision(0, said.Revision, now)}}}.patch(now)
		if err != nil {
			return err
		}
		if _, err := leases.Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("write Lease %s/%s: %w", l.Namespace, node, err)
		}
	}
	return nil
}
