package egress

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
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
	// eventRetry is after which time a failed request is tried again.
	eventRetry = 30 * time.Second
	// eventWriters is how many nodes may write an Event, one after the other, each
	// eventTurn after the one before: for the first ones may not run this program. What
	// holds on some nodes only, any may, each localTurn after the one before.
	eventWriters = 10
	eventTurn    = 15 * time.Second
	localTurn    = time.Second
	// maxNote is the API's limit of an Event's note.
	maxNote = 1024
	// maxInstance is that of its reporting instance.
	maxInstance = 128
)

// nodeReasons are those that hold on one node, not in the whole cluster.
var nodeReasons = []plan.Reason{plan.NoClusterCIDR, plan.NoProxier}

// eventRecorder keeps an Event on each Service for each reason for which something of it
// is refused, as long as it is. All nodes of a cluster come to the same refusals, so the
// Event's name follows from what it says, and few nodes write it, in an order that
// follows from its name and theirs.
type eventRecorder struct {
	logger   klog.Logger
	nodeName string
	state    *state
	limit    flowcontrol.RateLimiter
	wake     chan struct{}

	mu sync.Mutex // protects the following fields
	// refusals are those of each Service that has some, by IP family.
	refusals map[plan.Service]map[v1.IPFamily][]plan.Refusal
	// wanted are the Events that follow, named those of each Service among them. They are
	// nil before the first plan.
	wanted map[types.NamespacedName]*eventsv1.Event
	named  map[plan.Service][]types.NamespacedName

	// For run's goroutine alone:

	records    map[types.NamespacedName]*record
	complained map[string]bool
}

// record is what is known of a wanted Event, or of one that exists.
type record struct {
	// due is when to make sure that it exists, for the first time or again.
	due time.Time
	// exists: it did when it was last asked for. mine: this node wrote it, so it keeps it
	// alive. local: it is about nodes, so only who wrote it may take it back.
	exists, mine, local bool
	count               int32
}

func newEventRecorder(logger klog.Logger, nodeName string, state *state) *eventRecorder {
	return &eventRecorder{
		logger: logger, nodeName: nodeName, state: state,
		limit:   flowcontrol.NewTokenBucketRateLimiter(eventRate, eventBurst),
		wake:    make(chan struct{}, 1),
		records: map[types.NamespacedName]*record{}, complained: map[string]bool{},
	}
}

// update says what is refused now, where the plans of the IP families changed. It does not block. All
// families come at once: the Events that nobody wants are deleted.
func (r *eventRecorder) update(changes map[v1.IPFamily]plan.Change) {
	refusals := map[v1.IPFamily]map[plan.Service][]plan.Refusal{}
	for family, change := range changes {
		refusals[family] = refusalsOf(change, planned{r.state, family})
	}
	r.set(refusals)
}

// refusalsOf returns what those Services are refused by a plan which a change of it is about.
func refusalsOf(change plan.Change, p planned) map[plan.Service][]plan.Refusal {
	services := maps.Clone(change.Services) // another Service of the same name needs other Events
	for _, refusal := range slices.Concat(change.Refused, change.Lifted) {
		if services == nil {
			services = map[plan.Service]bool{}
		}
		services[refusal.Service] = true
	}
	refusals := make(map[plan.Service][]plan.Refusal, len(services))
	for service := range services {
		refusals[service] = p.RefusalsOf(service)
	}
	return refusals
}

// set says what these Services are refused now, by IP family.
func (r *eventRecorder) set(refusals map[v1.IPFamily]map[plan.Service][]plan.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news := r.wanted == nil
	if news {
		r.refusals, r.wanted, r.named = map[plan.Service]map[v1.IPFamily][]plan.Refusal{}, map[types.NamespacedName]*eventsv1.Event{}, map[plan.Service][]types.NamespacedName{}
	}
	for family, byService := range refusals {
		for service, of := range byService {
			if len(of) > 0 || r.refusals[service] != nil {
				r.replace(service, family, of)
				news = true
			}
		}
	}
	if !news {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// replace has the Events of a Service made anew.
func (r *eventRecorder) replace(service plan.Service, family v1.IPFamily, refusals []plan.Refusal) {
	for _, name := range r.named[service] {
		delete(r.wanted, name)
	}
	delete(r.named, service)
	if r.refusals[service] == nil {
		r.refusals[service] = map[v1.IPFamily][]plan.Refusal{}
	}
	if r.refusals[service][family] = refusals; len(refusals) == 0 {
		delete(r.refusals[service], family)
	}
	if len(r.refusals[service]) == 0 {
		delete(r.refusals, service)
		return
	}
	for _, event := range r.eventsFor(slices.Concat(r.refusals[service][v1.IPv4Protocol], r.refusals[service][v1.IPv6Protocol])) {
		name := types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
		r.wanted[name] = event
		r.named[service] = append(r.named[service], name)
	}
}

// eventsFor returns one Event for each reason for which a Service is refused something.
func (r *eventRecorder) eventsFor(refusals []plan.Refusal) []*eventsv1.Event {
	var events []*eventsv1.Event
	seen := map[plan.Reason]bool{}
	for _, refusal := range refusals {
		if !seen[refusal.Reason] {
			seen[refusal.Reason] = true
			events = append(events, r.event(refusal))
		}
	}
	return events
}

func (r *eventRecorder) event(refusal plan.Refusal) *eventsv1.Event {
	note := "No egress IP: " + refusal.Message
	if refusal.Pod.IsValid() {
		note = "No egress IP for some endpoints: " + refusal.Message + ". 'openshift egress refused' on a node lists all."
	}
	uid := r.state.uid(refusal.Service)
	sum := sha256.Sum256([]byte(string(uid) + "\x00" + string(refusal.Reason) + "\x00" + note))
	if isLocal(refusal.Reason) {
		note = "On some nodes, for example " + r.nodeName + ": " + note
	}
	note = strings.ToValidUTF8(note[:min(len(note), maxNote)], "")
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: refusal.Service.Namespace,
			Name:      refusal.Service.Name + "." + hex.EncodeToString(sum[:8]),
		},
		ReportingController: eventController,
		ReportingInstance:   r.instance(),
		Action:              eventAction,
		Reason:              string(refusal.Reason),
		Type:                v1.EventTypeWarning,
		Note:                note,
		Regarding: v1.ObjectReference{
			APIVersion: "v1", Kind: "Service", Namespace: refusal.Service.Namespace, Name: refusal.Service.Name, UID: uid,
		},
	}
}

// instance is this node's name as Events have it.
func (r *eventRecorder) instance() string { return r.nodeName[:min(len(r.nodeName), maxInstance)] }

func isLocal(reason plan.Reason) bool { return slices.Contains(nodeReasons, reason) }

// run brings the wanted Events about, and those of before away, until the context ends.
func (r *eventRecorder) run(ctx context.Context, client eventsclient.EventsV1Interface) {
	adopted := false
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-ticker.C:
		}
		r.mu.Lock()
		wanted := maps.Clone(r.wanted)
		r.mu.Unlock()
		if wanted == nil {
			continue // no plan yet
		}
		adopted = adopted || r.adopt(ctx, client)
		r.sync(ctx, client, wanted)
	}
}

// adopt takes over the Events that an earlier run has left, and tells whether that is done.
// Events about the whole cluster are everybody's.
func (r *eventRecorder) adopt(ctx context.Context, client eventsclient.EventsV1Interface) bool {
	list, err := client.Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("reportingController", eventController).String(),
	})
	if err != nil {
		r.complain("list", err)
		return apierrors.IsForbidden(err) // they go by themselves, after an hour
	}
	for _, event := range list.Items {
		mine, local := event.ReportingInstance == r.instance(), isLocal(plan.Reason(event.Reason))
		name := types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
		if r.records[name] == nil && (mine || !local) {
			r.records[name] = &record{due: time.Now().Add(eventLife), exists: true, mine: mine, local: local, count: seriesCount(&event)}
		}
	}
	return true
}

// sync stops when there is news, which may make the rest needless.
func (r *eventRecorder) sync(ctx context.Context, client eventsclient.EventsV1Interface, wanted map[types.NamespacedName]*eventsv1.Event) {
	idle := func() bool { return len(r.wake) == 0 && ctx.Err() == nil }
	for name := range r.records {
		if wanted[name] == nil && idle() {
			r.remove(ctx, client, name)
		}
	}
	for name, event := range wanted {
		known := r.records[name]
		if known == nil {
			known = &record{local: isLocal(plan.Reason(event.Reason)), due: time.Now().Add(r.turn(name, event))}
			r.records[name] = known
		}
		if !time.Now().Before(known.due) && idle() {
			r.assert(ctx, client, event, known)
		}
	}
}

// turn returns how long this node leaves it to others to write an Event first. The order of
// the nodes is as random as their and the Event's names.
func (r *eventRecorder) turn(name types.NamespacedName, event *eventsv1.Event) time.Duration {
	weight := func(node string) uint64 {
		sum := sha256.Sum256([]byte(name.String() + "\x00" + node))
		return binary.BigEndian.Uint64(sum[:])
	}
	own, before := weight(r.nodeName), 0
	for _, node := range r.state.nodeNames() {
		if node != r.nodeName && weight(node) < own {
			before++
		}
	}
	switch {
	case isLocal(plan.Reason(event.Reason)):
		return time.Duration(before) * localTurn
	case before < eventWriters:
		return time.Duration(before) * eventTurn
	}
	return math.MaxInt64 // never
}

func (r *eventRecorder) remove(ctx context.Context, client eventsclient.EventsV1Interface, name types.NamespacedName) {
	known := r.records[name]
	if !known.exists || known.local && !known.mine {
		delete(r.records, name)
		return
	}
	if time.Now().Before(known.due) && known.due.Before(time.Now().Add(eventRetry)) || r.limit.Wait(ctx) != nil {
		return // it failed just now
	}
	err := client.Events(name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.complain("delete", err)
		if !apierrors.IsForbidden(err) {
			known.due = time.Now().Add(eventRetry)
			return
		}
	}
	delete(r.records, name)
}

// assert makes sure that an Event exists. Whoever wrote it says from time to time that it
// still holds, before the API server forgets it; others look whether it is still there.
func (r *eventRecorder) assert(ctx context.Context, client eventsclient.EventsV1Interface, event *eventsv1.Event, known *record) {
	if r.limit.Wait(ctx) != nil {
		return
	}
	var err error
	verb := "create"
	if known.mine {
		verb, err = "patch", r.repeat(ctx, client, event, known)
		if apierrors.IsNotFound(err) {
			verb, err = "create", r.create(ctx, client, event, known)
		}
	} else {
		err = r.create(ctx, client, event, known)
	}
	known.due = time.Now().Add(eventLife)
	if err != nil {
		r.complain(verb, err)
		if !apierrors.IsForbidden(err) {
			known.due = time.Now().Add(eventRetry)
		}
	}
}

func (r *eventRecorder) create(ctx context.Context, client eventsclient.EventsV1Interface, event *eventsv1.Event, known *record) error {
	event = event.DeepCopy()
	event.EventTime = metav1.NowMicro()
	_, err := client.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	switch {
	case err == nil:
		known.exists, known.mine, known.count = true, true, 1
	case apierrors.IsAlreadyExists(err):
		known.exists, known.mine = true, false
	case apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
		// A namespace on its way out takes no Events.
	default:
		return err
	}
	return nil
}

// repeat says that what an Event tells still holds.
func (r *eventRecorder) repeat(ctx context.Context, client eventsclient.EventsV1Interface, event *eventsv1.Event, known *record) error {
	count := max(known.count+1, 2) // a series begins with the second time
	patch := fmt.Appendf(nil, `{"series":{"count":%d,"lastObservedTime":%q}}`, count, metav1.NowMicro().UTC().Format(metav1.RFC3339Micro))
	_, err := client.Events(event.Namespace).Patch(ctx, event.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil {
		known.count = count
	}
	return err
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
