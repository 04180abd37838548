package portblocks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/wake"
)

// requestPatience bounds a single request.
const requestPatience = 5 * time.Second

// Config is what a [Keeper] has to know.
type Config struct {
	// Namespace is that of the Leases.
	Namespace string
	NodeName  string
	// Explain adds to an error of the client what an operator needs to act on it.
	Explain func(error) error
	// Changed is told that pods may have other blocks than before. It must not block.
	Changed func()
	// Failing is told why blocks cannot be claimed, or what of the Leases cannot be read, and nil when that is over. It must not block.
	Failing func(error)
}

// Keeper keeps the [Book] of a node, and the Leases in which nodes claim blocks. Its methods may be called by several goroutines.
type Keeper struct {
	config Config
	client kubernetes.Interface // Run sets it
	clock  func() time.Time
	wake   wake.Signal

	mu   sync.Mutex
	book *Book
	// followed is the number of the list that Follow has taken last; 0: none yet.
	followed uint64
	// decided is sent when the book may have decided something.
	decided *wake.Broadcast
	// wrong is what is wrong with Leases, by their names, unwritten why the last writes failed, by egress IP. told is what Failing was told.
	wrong     map[string]error
	unwritten map[netip.Addr]error
	told      failure.Streak
}

// NewKeeper returns the Keeper of a node. It writes nothing before Run.
func NewKeeper(config Config) *Keeper {
	return &Keeper{
		config: config, clock: time.Now, wake: wake.New(), decided: wake.NewBroadcast(),
		book: NewBook(config.NodeName), wrong: map[string]error{}, unwritten: map[netip.Addr]error{},
	}
}

// do changes the book, and has Run see what follows.
func (k *Keeper) do(change func(b *Book, now time.Time)) {
	k.mu.Lock()
	change(k.book, k.clock())
	k.mu.Unlock()
	k.wake.Send()
}

// SetLease takes a version of the Lease of an egress IP.
func (k *Keeper) SetLease(lease *coordinationv1.Lease) {
	ip, is := EgressIPOf(lease.Name)
	if !is {
		return
	}
	version, claims, err := readClaims(lease)
	k.do(func(b *Book, now time.Time) {
		delete(k.wrong, lease.Name)
		if err != nil {
			k.wrong[lease.Name] = err
		}
		if claims == nil {
			b.Unreadable(ip)
			return
		}
		b.Seen(ip, version, claims, false, now)
	})
}

// DeleteLease says that there is no Lease of this name any more.
func (k *Keeper) DeleteLease(name string) {
	if ip, is := EgressIPOf(name); is {
		k.do(func(b *Book, now time.Time) {
			delete(k.wrong, name)
			b.Deleted(ip, now)
		})
	}
}

// Listed says that all Leases that there are have been told.
func (k *Keeper) Listed() { k.do((*Book).Listed) }

// SetReachable says whether changes of Leases are heard of.
func (k *Keeper) SetReachable(now bool) { k.do(func(b *Book, _ time.Time) { b.SetReachable(now) }) }

// SetNode says whether there is a Node of this name.
func (k *Keeper) SetNode(name string, exists bool) {
	k.mu.Lock()
	changed := k.book.SetNode(name, exists, k.clock())
	k.mu.Unlock()
	if changed {
		k.wake.Send()
	}
}

// NodesKnown says that all Nodes that there are have been told.
func (k *Keeper) NodesKnown() { k.do((*Book).NodesKnown) }

// Follow says which pods run: see [Book.Follow]. A list whose number is no larger than that of an earlier one is ignored. Call it once before
// Run.
func (k *Keeper) Follow(number uint64, running map[string]*Had) {
	k.mu.Lock()
	changed := false
	if number > k.followed {
		k.followed = number
		changed = k.book.Follow(running, k.clock())
	}
	k.mu.Unlock()
	if changed {
		k.wake.Send()
	}
}

// ErrEnded is why a pod gets no block: it has ended.
var ErrEnded = errors.New("the pod has ended")

// Assign gives a pod a block that is the same for all of these egress IPs. It returns within [Patience], or when ctx ends, with what the
// pod has, or [ErrEnded].
func (k *Keeper) Assign(ctx context.Context, id string, ips []netip.Addr, size int) (Given, error) {
	k.do(func(b *Book, now time.Time) { b.Add(id, ips, size, now) })
	for {
		k.mu.Lock()
		given, decided := k.book.Of(id)
		released := k.book.tenants[id] == nil
		changed := k.decided.Next()
		k.mu.Unlock()
		switch {
		case released:
			return Given{}, ErrEnded
		case decided:
			return given, nil
		}
		select {
		case <-ctx.Done():
			return Given{}, context.Cause(ctx)
		case <-changed:
		}
	}
}

// Change says that a pod leaves from these egress IPs now.
func (k *Keeper) Change(id string, ips []netip.Addr) {
	k.mu.Lock()
	now := k.clock()
	first, second := k.book.Change(id, ips, now), k.book.Change(Second(id), ips, now)
	k.mu.Unlock()
	if first || second {
		k.wake.Send()
	}
}

// Release says that a pod needs no block.
func (k *Keeper) Release(id string) {
	k.do(func(b *Book, now time.Time) {
		b.Remove(id, now)
		b.Remove(Second(id), now)
	})
}

// Of returns what a pod has, if that is decided.
func (k *Keeper) Of(id string) (Given, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.book.Of(id)
}

// Believes tells whether a node may say that it has a block: it has claimed that, or nobody knows now.
func (k *Keeper) Believes(node string, egressIP netip.Addr, ports kernel.Ports) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.book.Believes(node, egressIP, ports)
}

// Lost returns the blocks that running pods have lost since the last call.
func (k *Keeper) Lost() []Lost {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.book.Lost()
}

// Numbers counts blocks of a size by egress IP.
func (k *Keeper) Numbers(size int) map[netip.Addr]Numbers {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.book.Numbers(size, k.clock())
}

// Run claims blocks and gives them back until ctx ends. Failures are logged and tried again.
func (k *Keeper) Run(ctx context.Context, client kubernetes.Interface) {
	k.client = client
	var writing sync.WaitGroup
	defer writing.Wait()
	k.wake.Send()
	k.wake.FollowAt(ctx, func() (next time.Time) {
		k.mu.Lock()
		now := k.clock()
		writes, wake := k.book.Next(now)
		changed := k.book.TakeChanged()
		// What failed was done after all, or is not needed any more.
		maps.DeleteFunc(k.unwritten, func(ip netip.Addr, _ error) bool { return !k.book.pending[ip] })
		k.decided.Send()
		k.mu.Unlock()
		for _, w := range writes {
			writing.Go(func() { k.write(ctx, w) })
		}
		k.tell()
		if changed {
			k.config.Changed()
		}
		if !wake.IsZero() {
			next = time.Now().Add(max(wake.Sub(now), time.Millisecond))
		}
		return next
	})
}

// tell tells what fails, if that has changed.
func (k *Keeper) tell() {
	k.mu.Lock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(k.wrong)) {
		errs = append(errs, k.wrong[name])
	}
	for _, ip := range slices.SortedFunc(maps.Keys(k.unwritten), netip.Addr.Compare) {
		errs = append(errs, k.unwritten[ip])
	}
	err := failure.JoinSome("Leases of egress IPs", errs)
	changed := k.told.Changes(err)
	k.mu.Unlock()
	if changed {
		k.config.Failing(err)
	}
}

// write writes claims, and tells the book what became of it.
func (k *Keeper) write(ctx context.Context, w Write) {
	request, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "lease", klog.KRef(k.config.Namespace, LeaseName(w.EgressIP)))
	lease, err := k.put(request, w)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		if version, claims, err := k.get(request, w.EgressIP); err == nil {
			k.do(func(b *Book, now time.Time) { b.Conflict(w, version, claims, now) })
			return
		}
	}
	outcome, version := outcomeOf(err), uint64(0)
	if err == nil {
		version, _, _ = readClaims(lease) // what is wrong with it is told when it comes as news
	}
	if err != nil {
		err = fmt.Errorf("claim blocks of source ports in the Lease %s/%s: %w", k.config.Namespace, LeaseName(w.EgressIP), k.config.Explain(err))
	}
	var news bool
	k.do(func(b *Book, now time.Time) {
		if news = err != nil && k.unwritten[w.EgressIP] == nil; err != nil {
			k.unwritten[w.EgressIP] = err
		} else {
			delete(k.unwritten, w.EgressIP)
		}
		if apierrors.IsNotFound(err) && w.Version > 0 {
			b.Deleted(w.EgressIP, now)
		}
		b.Wrote(w, outcome, version, now)
	})
	if news && ctx.Err() == nil {
		logger.Error(err, "Cannot claim blocks of source ports of an egress IP, or give them back, so pods that start may share ports; will retry, further failures are not logged")
	}
	logger.V(2).Info("Wrote which blocks of source ports nodes have", "blocks", len(w.Claims), "err", err)
}

// put sends a write. It fails with a conflict if there is another version than the one before.
func (k *Keeper) put(ctx context.Context, w Write) (*coordinationv1.Lease, error) {
	leases := k.client.CoordinationV1().Leases(k.config.Namespace)
	if w.Version == 0 {
		return leases.Create(ctx, w.lease(k.config.Namespace), metav1.CreateOptions{})
	}
	patch, err := w.patch()
	if err != nil {
		return nil, err
	}
	return leases.Patch(ctx, LeaseName(w.EgressIP), types.MergePatchType, patch, metav1.PatchOptions{})
}

// get returns the newest claims of an egress IP.
func (k *Keeper) get(ctx context.Context, egressIP netip.Addr) (version uint64, claims Claims, err error) {
	lease, err := newestOf(ctx, k.client.CoordinationV1().Leases(k.config.Namespace), LeaseName(egressIP))
	if err != nil {
		return 0, nil, err
	}
	return readClaims(lease)
}

// Withdraw gives back all blocks that a node has claimed in the Leases of a namespace, at once. It is for a node that steers no more, whose pods'
// connections have ended or leave from there. Leases that cannot be read stay as they are, with an error.
func Withdraw(ctx context.Context, client kubernetes.Interface, namespace, node string) error {
	leases := client.CoordinationV1().Leases(namespace)
	list, err := leases.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list Leases in %s: %w", namespace, err)
	}
	var errs []error
	for _, lease := range list.Items {
		if _, is := EgressIPOf(lease.Name); !is {
			continue
		}
		err := giveBack(ctx, leases, &lease, node)
		for apierrors.IsConflict(err) && wake.Sleep(ctx.Done(), rand.N(maxRest)) { // all nodes may do this at once
			var newest *coordinationv1.Lease
			if newest, err = newestOf(ctx, leases, lease.Name); err == nil {
				err = giveBack(ctx, leases, newest, node)
			}
		}
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("give back blocks of source ports in the Lease %s/%s: %w", namespace, lease.Name, err))
		}
	}
	return failure.JoinSome("Leases of "+namespace, errs)
}

// maxRest is the longest wait after a conflict.
const maxRest = 200 * time.Millisecond

// giveBack gives back what a node has claimed in a Lease, of which it must be the newest version.
func giveBack(ctx context.Context, leases coordinationclient.LeaseInterface, lease *coordinationv1.Lease, node string) error {
	version, claims, err := readClaims(lease)
	others := maps.Clone(claims)
	maps.DeleteFunc(others, func(_ kernel.Ports, c Claim) bool { return c.Node == node })
	if err != nil || len(others) == len(claims) {
		return err
	}
	patch, err := Write{Version: version, Claims: others}.patch()
	if err == nil {
		_, err = leases.Patch(ctx, lease.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	return err
}

// newestOf returns the newest version of a Lease. A node may list Leases, but not get one.
func newestOf(ctx context.Context, leases coordinationclient.LeaseInterface, name string) (*coordinationv1.Lease, error) {
	list, err := leases.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return nil, err
	}
	for _, lease := range list.Items {
		if lease.Name == name {
			return &lease, nil
		}
	}
	return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), name)
}

// outcomeOf says what an error means for the write that it is of. Where the API server has said no, nothing of it comes later.
func outcomeOf(err error) Outcome {
	switch reason := apierrors.ReasonForError(err); {
	case err == nil:
		return Done
	case slices.Contains([]metav1.StatusReason{
		metav1.StatusReasonForbidden, metav1.StatusReasonUnauthorized, metav1.StatusReasonNotFound, metav1.StatusReasonConflict, metav1.StatusReasonAlreadyExists,
		metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonTooManyRequests, metav1.StatusReasonRequestEntityTooLarge,
	}, reason):
		return Refused
	}
	return Unknown
}
