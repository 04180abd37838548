package holders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel"
)

// Watch tells what nodes announce in Leases, and what becomes of it, until ctx ends. It tells from several
// goroutines, and waits for tell. Failures are logged and tried again.
func (l Leases) Watch(ctx context.Context, tell func(Event)) {
	w := &leaseWatch{leases: l, logger: klog.FromContext(ctx), tell: tell, wrong: map[string]failure.Streak{}, chosen: map[string]string{}, assigned: map[string]string{}, lines: flowcontrol.NewTokenBucketPassiveRateLimiter(1./60, linesAtOnce)}
	source := ListWatch{l.Client, &cache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watch}}
	informer := cache.NewSharedIndexInformer(source, &coordinationv1.Lease{}, 0, nil)
	// These fail for a running informer only.
	_ = informer.SetTransform(stripLease)
	_ = informer.SetWatchErrorHandlerWithContext(w.failed)
	registration, _ := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.set(o.(*coordinationv1.Lease)) },
		UpdateFunc: func(_, o any) { w.set(o.(*coordinationv1.Lease)) },
		DeleteFunc: w.deleted,
	})
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			tell(LeasesKnown{})
		}
	}()
	informer.RunWithContext(ctx)
}

// ListWatch is a ListWatch of a client.
type ListWatch struct {
	Client kubernetes.Interface
	*cache.ListWatch
}

// IsWatchListSemanticsUnSupported tells informers that a client of tests cannot stream a list into a watch.
func (w ListWatch) IsWatchListSemanticsUnSupported() bool {
	client, limited := w.Client.(interface{ IsWatchListSemanticsUnSupported() bool })
	return limited && client.IsWatchListSemanticsUnSupported()
}

// stripLease leaves of a Lease what is read.
func stripLease(object any) (any, error) {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok {
		return object, nil
	}
	stripped := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name, UID: lease.UID, ResourceVersion: lease.ResourceVersion},
		Spec:       coordinationv1.LeaseSpec{RenewTime: lease.Spec.RenewTime},
	}
	for _, key := range []string{Annotation, RevisionAnnotation, ChoicesAnnotation, portblocks.Annotation, portblocks.AssignedAnnotation, portblocks.AssignedRevisionAnnotation} {
		if text, given := lease.Annotations[key]; given {
			if key == portblocks.AssignedAnnotation {
				text = portblocks.WithoutNames(text)
			}
			metav1.SetMetaDataAnnotation(&stripped.ObjectMeta, key, text)
		}
	}
	return stripped, nil
}

// linesAtOnce is how many lines the log has at once of what is wrong with Leases. One more follows each minute.
const linesAtOnce = 20

// leaseWatch is a watch of Leases. Its list and watch are the informer's way to them, so that it notes when nothing is heard
// of them: the informer does not say.
type leaseWatch struct {
	leases  Leases
	logger  klog.Logger
	tell    func(Event)
	deaf    atomic.Bool
	trouble failure.Streak
	// wrong is what is wrong with Leases, by name; for the event handler. lines limits what the log has of that: any node may write any Lease.
	wrong map[string]failure.Streak
	lines flowcontrol.PassiveRateLimiter
	// chosen is what was told of Leases' choices, by name, as it was written.
	chosen map[string]string
	// assigned is the same of the source ports of pods.
	assigned map[string]string
}

func (w *leaseWatch) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := w.leases.Client.CoordinationV1().Leases(w.leases.Namespace).List(ctx, options)
	if err != nil {
		w.hears(ctx, false)
	}
	return list, err
}

func (w *leaseWatch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	changes, err := w.leases.Client.CoordinationV1().Leases(w.leases.Namespace).Watch(ctx, options)
	w.hears(ctx, err == nil)
	if err == nil && w.trouble.Turns(nil) {
		w.leases.failing(Reading, nil)
		w.logger.Info("It is known again which nodes have which egress IPs", "namespace", w.leases.Namespace)
	}
	return changes, err
}

// hears says whether the API server has just answered.
func (w *leaseWatch) hears(ctx context.Context, now bool) {
	if ctx.Err() == nil && w.deaf.Swap(!now) == now {
		w.tell(Hearing{now})
	}
}

// failed is called when a list or a watch fails; of watches that ended and are begun anew, only if the API
// server says why.
func (w *leaseWatch) failed(_ context.Context, _ *cache.Reflector, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return // watches end like this
	}
	if err = Explain(err, w.leases.Explain); w.trouble.Changes(reasonOf(err)) {
		w.leases.failing(Reading, err)
		w.logger.Error(err, "Cannot learn which nodes have which egress IPs; will retry, the same failure is not logged again",
			"namespace", w.leases.Namespace)
	}
}

func (w *leaseWatch) set(lease *coordinationv1.Lease) {
	if _, is := portblocks.EgressIPOf(lease.Name); is {
		w.setClaims(lease, false)
		return
	}
	e, err := Announcing(lease)
	err = errors.Join(err, w.setAssigned(lease))
	text := lease.Annotations[ChoicesAnnotation]
	if text == w.chosen[lease.Name] {
		w.logWrong(lease.Name, err)
		w.tell(e)
		return
	}
	choices, wrong := Choosing(lease)
	w.logWrong(lease.Name, errors.Join(err, wrong))
	w.tell(e)
	if w.chosen[lease.Name] = text; choices != nil || text == "" { // what cannot be read takes nothing back
		w.tell(Chosen{lease.Name, choices})
	}
}

// setClaims tells of a Lease in which nodes claim blocks of source ports.
func (w *leaseWatch) setClaims(lease *coordinationv1.Lease, deleted bool) {
	if w.leases.Claims != nil {
		w.leases.Claims(lease, deleted)
	}
}

// setAssigned tells of the source ports of a node's pods if a Lease says something new of them.
func (w *leaseWatch) setAssigned(lease *coordinationv1.Lease) error {
	now := lease.Annotations[portblocks.AssignedRevisionAnnotation] + " " + lease.Annotations[portblocks.AssignedAnnotation]
	if before, known := w.assigned[lease.Name]; now == before || !known && now == " " {
		return nil
	}
	w.assigned[lease.Name] = now
	blocks, revision, err := Assigning(lease)
	w.tell(Assigned{lease.Name, blocks, revision, Lease})
	return err
}

// Assigning returns the blocks of source ports that a Lease says its node's pods to have, and the revision of that, without what is wrong
// with it.
func Assigning(lease *coordinationv1.Lease) (blocks []kernel.Block, revision uint64, err error) {
	text, number := lease.Annotations[portblocks.AssignedAnnotation], lease.Annotations[portblocks.AssignedRevisionAnnotation]
	if text == "" && number == "" {
		return nil, 0, nil
	}
	wrong := func(key string, err error) error {
		return fmt.Errorf("read Lease %s/%s: metadata.annotations[%s]: %w", lease.Namespace, lease.Name, key, err)
	}
	if text != "" {
		if blocks, err = portblocks.ParseBlocks(text); err != nil {
			err = wrong(portblocks.AssignedAnnotation, err)
		}
	}
	revision, unread := strconv.ParseUint(number, 10, 64)
	if unread != nil || revision > maxRevision {
		revision, err = 0, errors.Join(err, wrong(portblocks.AssignedRevisionAnnotation, fmt.Errorf("%.100q is not a number from 0 to %d", number, uint64(maxRevision))))
	}
	return blocks, revision, err
}

// Announcing returns what a Lease announces, without what is wrong with it.
func Announcing(lease *coordinationv1.Lease) (Announced, error) {
	statement, err := readLease(lease)
	return Announced{Node: lease.Name, Statement: statement, Source: Lease, Renewed: ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time}, err
}

// logWrong logs what is wrong with a Lease, once, unless there have been too many lines.
func (w *leaseWatch) logWrong(name string, err error) {
	wrong := w.wrong[name]
	if wrong.Changes(err) && err != nil {
		if !w.lines.TryAccept() {
			return // the next version of the Lease may be told
		}
		w.logger.Error(err, "A Lease has invalid entries, which are ignored. If origin-node runs on the node with the Lease's name, it rewrites the Lease; otherwise correct or delete the Lease")
	}
	w.wrong[name] = wrong
}

func (w *leaseWatch) deleted(object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return // it is no object
	}
	_, name, _ := cache.SplitMetaNamespaceKey(key) // a namespace and a name
	if _, is := portblocks.EgressIPOf(name); is {
		w.setClaims(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, true)
		return
	}
	delete(w.wrong, name)
	delete(w.chosen, name)
	delete(w.assigned, name)
	w.tell(LeaseDeleted{name})
}
