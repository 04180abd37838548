package tunnel

import (
	"context"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

const (
	// eventSource is the component that Events come from.
	eventSource = "network.openshift.io/tunnel-ports"
	// eventRepeat is how long an Event is not repeated. API servers forget it after an hour.
	eventRepeat = 30 * time.Minute
	// mostNote is how long a note is; events.k8s.io takes 1024 bytes.
	mostNote = 1024
)

// eventRecorder writes an Event about the ConfigMap or the Node that has a problem, and about this node's Node if it is
// the configuration, and repeats it as long as that holds.
type eventRecorder struct {
	nodeName    string
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder

	mu        sync.Mutex // protects what follows
	configMap v1.ObjectReference
	told      map[plan.Problem]time.Time
}

func newEventRecorder(nodeName string) *eventRecorder {
	r := &eventRecorder{nodeName: nodeName, broadcaster: record.NewBroadcaster(), told: map[plan.Problem]time.Time{}}
	r.recorder = r.broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: eventSource, Host: nodeName})
	return r
}

// run writes what is recorded until ctx ends.
func (r *eventRecorder) run(ctx context.Context, client coreclient.EventsGetter) {
	sink := r.broadcaster.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: client.Events("")})
	<-ctx.Done()
	sink.Stop()
	r.broadcaster.Shutdown()
}

func (r *eventRecorder) setConfigMap(name types.NamespacedName, object *v1.ConfigMap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configMap = v1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: name.Namespace, Name: name.Name}
	if object != nil {
		r.configMap.UID = object.UID
	}
}

// record records these problems, but for those of which there is an Event, and forgets all others.
func (r *eventRecorder) record(problems []plan.Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, told := time.Now(), map[plan.Problem]time.Time{}
	for _, p := range problems {
		told[p] = r.told[p]
		if now.Sub(told[p]) < eventRepeat {
			continue
		}
		told[p] = now
		about := r.about(p)
		note := "Not redirected to the tunnel server: " + p.Message
		r.recorder.Event(&about, v1.EventTypeWarning, string(p.Reason), strings.ToValidUTF8(note[:min(len(note), mostNote)], ""))
	}
	r.told = told
}

func (r *eventRecorder) about(p plan.Problem) v1.ObjectReference {
	if p.ConfigMap != "" {
		return r.configMap
	}
	name := p.Node
	if name == "" {
		name = r.nodeName
	}
	// Nodes have their name for a UID in Events, as the kubelet writes them.
	return v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}
