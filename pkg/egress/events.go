package egress

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

const (
	// eventController is who reports the Events, for those who look for them.
	eventController = "network.openshift.io/egress-snat"
	eventAction     = "RefuseEgressSNAT"
	// eventRate and eventBurst limit the requests about Events, in requests per second.
	eventRate, eventBurst = 5, 25
	// eventLife is how often an Event is asserted again: API servers forget it after an
	// hour.
	eventLife = 20 * time.Minute
	// maxNote is the API's limit of an Event's note.
	maxNote = 1024
)

// nodeReasons are those that hold on one node, not in the whole cluster.
var nodeReasons = []plan.Reason{plan.NoClusterCIDR, plan.NoProxier}

// eventRecorder keeps an Event on each Service for each reason for which something of it
// is refused, as long as it is. All nodes of a cluster come to the same refusals, so the
// Event's name follows from what it says: the first node writes it, the others find it.
type eventRecorder struct {
	logger   klog.Logger
	nodeName string
	uid      func(plan.Service) types.UID
	limit    flowcontrol.RateLimiter
	wake     chan struct{}

	mu     sync.Mutex
	wanted map[types.NamespacedName]*eventsv1.Event

	// For run's goroutine alone:

	// asserted is when each Event was last known to exist.
	asserted   map[types.NamespacedName]assertion
	complained map[string]bool
}

// assertion is what is known of an Event that exists.
type assertion struct {
	at time.Time
	// mine: this node wrote it, so it keeps it alive.
	mine  bool
	count int32
}

func newEventRecorder(logger klog.Logger, nodeName string, uid func(plan.Service) types.UID) *eventRecorder {
	return &eventRecorder{
		logger: logger, nodeName: nodeName, uid: uid,
		limit:    flowcontrol.NewTokenBucketRateLimiter(eventRate, eventBurst),
		wake:     make(chan struct{}, 1),
		asserted: map[types.NamespacedName]assertion{}, complained: map[string]bool{},
	}
}

// set says what is refused now. It does not block.
func (r *eventRecorder) set(refusals []plan.Refusal) {
	wanted := r.eventsFor(refusals)
	r.mu.Lock()
	r.wanted = wanted
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// eventsFor returns one Event for each Service and reason.
func (r *eventRecorder) eventsFor(refusals []plan.Refusal) map[types.NamespacedName]*eventsv1.Event {
	type key struct {
		service plan.Service
		reason  plan.Reason
	}
	first := map[key]plan.Refusal{}
	for _, refusal := range refusals {
		k := key{refusal.Service, refusal.Reason}
		if _, known := first[k]; !known {
			first[k] = refusal
		}
	}
	events := make(map[types.NamespacedName]*eventsv1.Event, len(first))
	for _, refusal := range first {
		event := r.event(refusal)
		events[types.NamespacedName{Namespace: event.Namespace, Name: event.Name}] = event
	}
	return events
}

func (r *eventRecorder) event(refusal plan.Refusal) *eventsv1.Event {
	note := "No egress IP: " + refusal.Message
	if refusal.Pod.IsValid() {
		note = "No egress IP for some endpoints: " + refusal.Message + ". 'openshift egress refused' on a node lists all."
	}
	if slices.Contains(nodeReasons, refusal.Reason) {
		note = "On the node " + r.nodeName + ": " + note
	}
	note = strings.ToValidUTF8(note[:min(len(note), maxNote)], "")
	uid := r.uid(refusal.Service)
	sum := sha256.Sum256([]byte(string(uid) + "\x00" + string(refusal.Reason) + "\x00" + note))
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: refusal.Service.Namespace,
			Name:      refusal.Service.Name + "." + hex.EncodeToString(sum[:8]),
		},
		ReportingController: eventController,
		ReportingInstance:   r.nodeName,
		Action:              eventAction,
		Reason:              string(refusal.Reason),
		Type:                v1.EventTypeWarning,
		Note:                note,
		Regarding: v1.ObjectReference{
			APIVersion: "v1", Kind: "Service", Namespace: refusal.Service.Namespace, Name: refusal.Service.Name, UID: uid,
		},
	}
}

// run brings the wanted Events about, and those of before away, until the context ends.
func (r *eventRecorder) run(ctx context.Context, client eventsclient.EventsV1Interface) {
	const again = 30 * time.Second // what failed, and what grows old
	adopted := false
	ticker := time.NewTicker(again)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-ticker.C:
		}
		r.mu.Lock()
		wanted := r.wanted
		r.mu.Unlock()
		if wanted == nil {
			continue // no plan yet
		}
		adopted = adopted || r.adopt(ctx, client)
		r.sync(ctx, client, wanted)
	}
}

// adopt takes over the Events that an earlier run has left, and tells whether that worked.
// Events about the whole cluster are everybody's.
func (r *eventRecorder) adopt(ctx context.Context, client eventsclient.EventsV1Interface) bool {
	list, err := client.Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("reportingController", eventController).String(),
	})
	if err != nil {
		r.complain("list", err)
		return false
	}
	for _, event := range list.Items {
		local := slices.Contains(nodeReasons, plan.Reason(event.Reason))
		if local && event.ReportingInstance != r.nodeName {
			continue
		}
		name := types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
		if _, known := r.asserted[name]; !known {
			r.asserted[name] = assertion{mine: event.ReportingInstance == r.nodeName, count: seriesCount(&event)}
		}
	}
	return true
}

func (r *eventRecorder) sync(ctx context.Context, client eventsclient.EventsV1Interface, wanted map[types.NamespacedName]*eventsv1.Event) {
	for name := range r.asserted {
		if wanted[name] == nil {
			r.remove(ctx, client, name)
		}
	}
	for name, event := range wanted {
		if known, exists := r.asserted[name]; !exists || time.Since(known.at) > eventLife {
			r.assert(ctx, client, name, event)
		}
		if len(r.wake) > 0 || ctx.Err() != nil {
			return // there is news, which may make the rest needless
		}
	}
}

func (r *eventRecorder) remove(ctx context.Context, client eventsclient.EventsV1Interface, name types.NamespacedName) {
	if r.limit.Wait(ctx) != nil {
		return
	}
	err := client.Events(name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.complain("delete", err)
		if !apierrors.IsForbidden(err) {
			return // and try again
		}
	}
	delete(r.asserted, name)
}

// assert makes sure that an Event exists. Whoever wrote it writes it again before the API
// server forgets it; the others look whether it is still there.
func (r *eventRecorder) assert(ctx context.Context, client eventsclient.EventsV1Interface, name types.NamespacedName, event *eventsv1.Event) {
	if r.limit.Wait(ctx) != nil {
		return
	}
	known := r.asserted[name]
	if known.mine {
		count, err := r.repeat(ctx, client, name, known.count)
		if err == nil {
			r.asserted[name] = assertion{at: time.Now(), mine: true, count: count}
			return
		}
		if !apierrors.IsNotFound(err) {
			r.complain("patch", err)
			return
		}
	}
	event = event.DeepCopy()
	event.EventTime = metav1.NowMicro()
	_, err := client.Events(name.Namespace).Create(ctx, event, metav1.CreateOptions{})
	gone := apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) || apierrors.IsNotFound(err)
	switch {
	case err == nil:
		r.asserted[name] = assertion{at: time.Now(), mine: true, count: 1}
	case apierrors.IsAlreadyExists(err), gone: // a namespace on its way out takes no Events
		r.asserted[name] = assertion{at: time.Now()}
	default:
		r.complain("create", err)
	}
}

// repeat says that what an Event tells still holds.
func (r *eventRecorder) repeat(ctx context.Context, client eventsclient.EventsV1Interface, name types.NamespacedName, count int32) (int32, error) {
	count = max(count+1, 2) // a series begins with the second time
	patch := fmt.Appendf(nil, `{"series":{"count":%d,"lastObservedTime":%q}}`, count, metav1.NowMicro().UTC().Format(metav1.RFC3339Micro))
	_, err := client.Events(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return count, err
}

func seriesCount(event *eventsv1.Event) int32 {
	if event.Series == nil {
		return 1
	}
	return event.Series.Count
}

// complain says once of each verb that Events cannot be kept as they should be; the log,
// the metrics and the status have the refusals all the same.
func (r *eventRecorder) complain(verb string, err error) {
	if !r.complained[verb] {
		r.complained[verb] = true
		r.logger.Error(err, "Events about refusals are not as they should be; the node's user must list, create, patch and delete events of events.k8s.io", "verb", verb)
	}
}
