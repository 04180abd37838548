package tell

import (
	"cmp"
	"context"
	"crypto/sha256"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/wake"
)

const (
	// eventSource is the component that Events come from.
	eventSource = "network.openshift.io/egress-snat"
	// eventWriters is how many nodes write each Event. One would do if all nodes ran this program;
	// of three, one mostly does.
	eventWriters = 3
	// eventRepeat is how long an Event is not repeated, and up to half of that more. API servers
	// forget it after an hour.
	eventRepeat = 20 * time.Minute
	// eventLook is how often the recorder looks for Events that are due.
	eventLook = 30 * time.Second
	// eventRate and eventBurst limit what is recorded, in Events per second. client-go's recorder
	// limits the Events about one object further.
	eventRate, eventBurst = 5, 25
)

// nodeReasons depend on a node's own configuration, so that they may hold on one node alone.
var nodeReasons = []plan.Reason{plan.NoClusterCIDR, plan.NoProxier}

// EventRecorder writes an Event about each Service for each reason for which something of it is
// refused, in each IP family, and repeats it as long as that holds. It never reads, changes or deletes the Events of
// others: the API server deletes what is not repeated.
//
// All nodes of a cluster refuse the same claims, so few of them write. Which ones follows from the
// Event and the nodes' names alone. What is refused of a pod that an EndpointSlice places on a node, that node writes, and
// one that has an egress IP of the Service: maybe nobody else knows. A refusal that may hold on one node alone is in an Event about that
// Node as well, which the node itself writes.
type EventRecorder struct {
	logger   klog.Logger
	nodeName string
	// allKnowPods: all nodes know what is refused of single pods.
	allKnowPods bool
	state       *cluster.State
	// Here returns this node's addresses; it is nil where nobody keeps track of them. It is set before refusals are told.
	Here  func() map[netip.Addr]bool
	limit flowcontrol.RateLimiter
	wake  wake.Signal

	mu sync.Mutex // protects the following fields
	// refusals has the first refusal for each reason, of each Service that has some.
	refusals map[plan.Service]map[v1.IPFamily]refused
	// troubles are what is wrong with where the egress IPs of Services are, as of the list of this number.
	troubles map[plan.Service][]Trouble
	troubled uint64
	// uids are those of the objects of Services that are refused something, or have troubles, former those of the objects before.
	uids, former map[plan.Service]types.UID
	// warnings are the Events that follow for each Service. Those about this node have no Service, and those that all nodes know
	// about a Node are by [AboutNode].
	warnings map[plan.Service][]Warning
	// news are Events about this node and its pods that are told once.
	news []Warning
}

// refused is what a Service is refused in an IP family: the first refusal for each reason.
type refused struct {
	cluster.Refused
	// uid is that of the Service's object, own are the refused pods of which this node tells.
	uid types.UID
	own map[netip.Addr]bool
}

// Lasting is how long trouble lasts that is told: while an address moves, two nodes have it, or none.
const Lasting = 5 * time.Second

// mostNews is how many Events that are told once wait at most: the log has them all.
const mostNews = 100

// Tell says something about this node, once. It does not block.
func (r *EventRecorder) Tell(reason plan.Reason, note string) {
	r.tell(extension.NodeReference(r.nodeName), v1.EventTypeNormal, reason, note)
}

// Warn says what is wrong with this node, once. It does not block.
func (r *EventRecorder) Warn(reason plan.Reason, note string) {
	r.tell(extension.NodeReference(r.nodeName), v1.EventTypeWarning, reason, note)
}

// WarnPod says what is wrong with a pod of this node, once. It does not block.
func (r *EventRecorder) WarnPod(namespace, name, uid string, reason plan.Reason, note string) {
	about := v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID(uid)}
	r.tell(about, v1.EventTypeWarning, reason, note)
}

func (r *EventRecorder) tell(about v1.ObjectReference, kind string, reason plan.Reason, note string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.news) < mostNews {
		r.news = append(r.news, Warning{About: about, Reason: reason, Note: extension.ValidNote(note), kind: kind})
		r.wake.Send()
	}
}

// Standing returns the Events that are repeated about a Service now; with none, those about this node.
func (r *EventRecorder) Standing(service plan.Service) []Warning {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.warnings[service])
}

// nextNews returns something that is told once; the caller does.
func (r *EventRecorder) nextNews() (Warning, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.news) == 0 {
		return Warning{}, false
	}
	first := r.news[0]
	r.news = r.news[1:]
	return first, true
}

// Warning is an Event that is repeated as long as its reason holds.
type Warning struct {
	About  v1.ObjectReference
	Reason plan.Reason
	Note   string
	// kind is the type of what is told once. All else is a Warning.
	kind string
	// ofFew: maybe only few nodes know, as of what is about a single pod, and this is one of them. They tell.
	ofFew bool
	// due is when to write it, for the first time or again.
	due time.Time
}

// NewEventRecorder returns one that knows the names of nodes, and what is refused, by a State.
func NewEventRecorder(logger klog.Logger, config cluster.Config, state *cluster.State) *EventRecorder {
	return &EventRecorder{
		logger: logger, nodeName: config.NodeName, allKnowPods: config.Scope == placement.Cluster, state: state,
		limit:    flowcontrol.NewTokenBucketRateLimiter(eventRate, eventBurst),
		wake:     wake.New(),
		refusals: map[plan.Service]map[v1.IPFamily]refused{},
		warnings: map[plan.Service][]Warning{}, uids: map[plan.Service]types.UID{}, former: map[plan.Service]types.UID{},
	}
}

// Update says what is refused now, where the plan of an IP family changed. It does not block.
func (r *EventRecorder) Update(family v1.IPFamily, change plan.Change) {
	r.set(family, refusalsOf(change, cluster.Planned{State: r.state, Family: family}))
}

// refusalsOf returns the refusals of those Services that a change of a plan is about.
func refusalsOf(change plan.Change, p cluster.Planned) map[plan.Service]cluster.Refused {
	services := maps.Clone(change.Services) // another Service of the same name needs other Events
	for _, refusal := range slices.Concat(change.Refused, change.Lifted) {
		if services == nil {
			services = map[plan.Service]bool{}
		}
		services[refusal.Service] = true
	}
	refusals := make(map[plan.Service]cluster.Refused, len(services))
	for service := range services {
		refusals[service] = p.RefusalsOf(service)
	}
	return refusals
}

// describe returns what is to be told of Services that are refused something.
func (r *EventRecorder) describe(family v1.IPFamily, refusals map[plan.Service]cluster.Refused) map[plan.Service]refused {
	p := cluster.Planned{State: r.state, Family: family}
	var here map[netip.Addr]bool
	if r.Here != nil {
		here = r.Here()
	}
	described := make(map[plan.Service]refused, len(refusals))
	for service, of := range refusals {
		told := refused{Refused: of, uid: r.state.UID(service), own: p.Tells(service, of.Refusals, here)}
		told.Refusals = oneForEachReason(of.Refusals, told.own)
		described[service] = told
	}
	return described
}

// set says what these Services are refused now in an IP family.
func (r *EventRecorder) set(family v1.IPFamily, refusals map[plan.Service]cluster.Refused) {
	r.take(family, r.describe(family, refusals))
}

// take takes what is to be told of Services. What was found out of an object that was made anew since is not told.
func (r *EventRecorder) take(family v1.IPFamily, described map[plan.Service]refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := false
	for service, of := range described {
		if len(of.Refusals) == 0 && r.refusals[service] == nil && r.troubles[service] == nil || r.isFormer(service, of.uid) {
			continue
		}
		if another := r.meet(service, of.uid); another || len(of.Refusals) > 0 || r.refusals[service] != nil {
			r.refuse(service, family, of)
			r.replace(service, r.warningsAbout(service))
			r.part(service)
			changed = true
		}
	}
	if changed {
		r.replace(plan.Service{}, r.warningsAboutNode())
		r.wake.Send()
	}
}

// SetTroubles says what is wrong with where the egress IPs of Services are, with no Service what is wrong with
// this node's steering, and by [AboutNode] what is wrong with any Node, all of it. A list with a smaller number than another one before is
// ignored. It does not block.
func (r *EventRecorder) SetTroubles(number uint64, troubles map[plan.Service][]Trouble) {
	uids := make(map[plan.Service]types.UID, len(troubles))
	for service := range troubles {
		uids[service] = r.state.UID(service)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if number < r.troubled {
		return
	}
	r.troubled = number
	before := r.troubles
	for service, uid := range uids {
		r.meet(service, uid)
	}
	r.troubles = maps.Clone(troubles)
	for _, concerned := range []map[plan.Service][]Trouble{before, troubles} {
		for service := range concerned {
			if slices.Equal(before[service], troubles[service]) {
				continue
			}
			switch {
			case service == (plan.Service{}):
				r.replace(service, r.warningsAboutNode())
			case service.Namespace == "":
				r.replace(service, told(extension.NodeReference(service.Name), troubles[service]))
			default:
				r.replace(service, r.warningsAbout(service))
				r.part(service)
			}
			r.wake.Send()
		}
	}
}

// refuse notes all refusals of a Service in an IP family.
func (r *EventRecorder) refuse(service plan.Service, family v1.IPFamily, of refused) {
	if kernel.Put(r.refusals, service, family, of); len(of.Refusals) == 0 {
		delete(r.refusals[service], family)
	}
	if len(r.refusals[service]) == 0 {
		delete(r.refusals, service)
	}
}

// oneForEachReason returns the first refusal for each reason, of a pod that is this node's own to tell of if there is one.
func oneForEachReason(refusals []plan.Refusal, own map[netip.Addr]bool) []plan.Refusal {
	var first []plan.Refusal
	for _, refusal := range refusals {
		i := slices.IndexFunc(first, func(r plan.Refusal) bool { return r.Reason == refusal.Reason })
		switch {
		case i < 0:
			first = append(first, refusal)
		case own[refusal.Pod] && !own[first[i].Pod]:
			first[i] = refusal
		}
	}
	return first
}

// replace makes these the warnings of a Service. One that was there before is not due earlier.
func (r *EventRecorder) replace(service plan.Service, warnings []Warning) {
	for i := range warnings {
		for _, old := range r.warnings[service] {
			if w := &warnings[i]; old.About == w.About && old.Reason == w.Reason && old.Note == w.Note {
				w.due = old.due
			}
		}
	}
	if r.warnings[service] = warnings; len(warnings) == 0 {
		delete(r.warnings, service)
	}
}

// warningsAbout returns one warning for each reason for which a Service is refused something, of each IP
// family, and one for both if it says the same of both. The families' plans follow their own changes: a
// warning that spoke for both would be another one, and written anew, when the first of them is lifted.
func (r *EventRecorder) warningsAbout(service plan.Service) []Warning {
	about := v1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: service.Namespace, Name: service.Name, UID: r.uids[service]}
	var warnings []Warning
	now := time.Now()
	for _, family := range cluster.Families {
		of := r.refusals[service][family]
		for _, refusal := range of.Refusals {
			w := Warning{About: about, Reason: refusal.Reason, Note: r.note(refusal, of.Others), ofFew: of.own[refusal.Pod] && !r.allKnowPods}
			if settles(refusal.Reason) {
				w.due = now.Add(settledWithin) // as after the end of every pod, until the EndpointSlice follows
			}
			if !slices.Contains(warnings, w) {
				warnings = append(warnings, w)
			}
		}
	}
	return append(warnings, told(about, r.troubles[service])...)
}

// meet notes the UID of a Service of which something may be told, and tells whether it was made anew: what was said of the object before is
// forgotten then, and told again if it holds. A Service that is gone has no UID.
func (r *EventRecorder) meet(service plan.Service, uid types.UID) (another bool) {
	before := r.uids[service]
	if uid == "" || r.isFormer(service, uid) {
		return false
	}
	if r.uids[service] = uid; before == "" || before == uid {
		return false
	}
	r.former[service] = before
	delete(r.refusals, service)
	delete(r.troubles, service)
	return true
}

// isFormer tells whether a UID was that of a Service before it was made anew: several find out at once what is to be told.
func (r *EventRecorder) isFormer(service plan.Service, uid types.UID) bool {
	return uid != "" && uid == r.former[service]
}

// part forgets the UIDs of a Service of which nothing is told any more.
func (r *EventRecorder) part(service plan.Service) {
	if r.refusals[service] == nil && r.troubles[service] == nil {
		delete(r.uids, service)
		delete(r.former, service)
	}
}

// told returns the warnings of troubles with an object.
func told(about v1.ObjectReference, troubles []Trouble) (warnings []Warning) {
	for _, t := range troubles {
		warnings = append(warnings, Warning{About: about, Reason: t.Reason, Note: extension.ValidNote(t.Note), ofFew: t.Own})
	}
	return warnings
}

// note returns what an Event about a Service says that has other egress IPs of the IP family, or none.
func (r *EventRecorder) note(refusal plan.Refusal, others bool) string {
	note := "No egress IP: " + refusal.Message
	if !refusal.Pod.IsValid() && refusal.EgressIP.IsValid() && others {
		note = "Not all egress IPs: " + refusal.Message
	}
	if refusal.Pod.IsValid() {
		note = "No egress IP for some endpoints: " + refusal.Message + ". 'openshift egress refused' on a node lists all."
	}
	if slices.Contains(nodeReasons, refusal.Reason) {
		note = "On some nodes, for example " + r.nodeName + ": " + note
	}
	return extension.ValidNote(note)
}

// warningsAboutNode returns one warning for each reason of this node's own for which it refuses
// something to a Service.
func (r *EventRecorder) warningsAboutNode() []Warning {
	about := extension.NodeReference(r.nodeName)
	var warnings []Warning
	for _, reason := range nodeReasons {
		if example, found := r.example(reason); found {
			note := "Services have no egress IP on this node, for example " + example.Service.String() + ": " + example.Message + ". 'openshift egress refused' on it lists all."
			warnings = append(warnings, Warning{About: about, Reason: reason, Note: extension.ValidNote(note)})
		}
	}
	return append(warnings, told(about, r.troubles[plan.Service{}])...)
}

// example returns a refusal for a reason, the same one as long as it is there, if possible: another
// note is another Event.
func (r *EventRecorder) example(reason plan.Reason) (first plan.Refusal, found bool) {
	for _, byFamily := range r.refusals {
		for _, of := range byFamily {
			for _, refusal := range of.Refusals {
				if refusal.Reason == reason && (!found || compareRefusals(refusal, first) < 0) {
					first, found = refusal, true
				}
			}
		}
	}
	return first, found
}

func compareRefusals(a, b plan.Refusal) int {
	return cmp.Or(cmp.Compare(a.Service.String(), b.Service.String()), a.EgressIP.Compare(b.EgressIP))
}

// Run records Events until the context ends. What cannot be written is tried again when the Event is repeated.
func (r *EventRecorder) Run(ctx context.Context, client coreclient.EventsGetter) {
	r.record(ctx, extension.NewRecorder(klog.NewContext(ctx, r.logger), client, eventSource, r.nodeName))
}

// record records the warnings that are due until the context ends.
func (r *EventRecorder) record(ctx context.Context, recorder record.EventRecorder) {
	look := time.NewTicker(eventLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-look.C:
		}
		for w, found := r.nextEvent(); found; w, found = r.nextEvent() {
			if r.limit.Wait(ctx) != nil {
				return
			}
			recorder.Event(&w.About, w.kind, string(w.Reason), w.Note)
		}
	}
}

// nextEvent returns what to write now: what is told once goes before warnings, of which a tenant may have thousands be due.
func (r *EventRecorder) nextEvent() (w Warning, found bool) {
	if w, found = r.nextNews(); found {
		return w, true
	}
	w, found = r.next(time.Now())
	w.kind = v1.EventTypeWarning
	return w, found
}

// next returns a warning that is due and that this node has to write; the caller does.
func (r *EventRecorder) next(now time.Time) (Warning, bool) {
	if !r.isDue(now) {
		return Warning{}, false
	}
	nodes := r.state.NodeNames()
	r.mu.Lock()
	defer r.mu.Unlock()
	for service, warnings := range r.warnings {
		for i := range warnings {
			w := &warnings[i]
			if now.Before(w.due) {
				continue
			}
			w.due = now.Add(wait.Jitter(eventRepeat, 0.5))
			ownToTell := service == (plan.Service{}) || w.ofFew
			if ownToTell || isWriter(r.nodeName, nodes, service.String()+" "+string(w.Reason)) {
				return *w, true
			}
		}
	}
	return Warning{}, false
}

// isDue tells whether any warning is due.
func (r *EventRecorder) isDue(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, warnings := range r.warnings {
		if slices.ContainsFunc(warnings, func(w Warning) bool { return !now.Before(w.due) }) {
			return true
		}
	}
	return false
}

// isWriter tells whether a node is among the first eventWriters of all, in an order that is as random
// as the names and the same on all nodes: rendezvous hashing.
func isWriter(node string, nodes []string, event string) bool {
	weight := func(name string) [sha256.Size]byte { return sha256.Sum256([]byte(event + "\x00" + name)) }
	own, before := weight(node), 0
	for _, name := range nodes {
		if other := weight(name); slices.Compare(other[:], own[:]) < 0 {
			if before++; before == eventWriters {
				return false
			}
		}
	}
	return true
}

// Trouble is what is wrong with where an egress IP is.
type Trouble struct {
	Reason plan.Reason
	Note   string
	// Own: this node has to tell of it, others do not know.
	Own bool
}

// AboutNode names, among Services, the Node that troubles are about: a Service has a namespace.
func AboutNode(name string) plan.Service { return plan.Service{Name: name} }
