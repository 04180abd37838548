package extension

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// MostNote is how long an Event's note is in events.k8s.io, in bytes. The core API has no limit.
const MostNote = 1024

// NewRecorder returns a recorder of Events that come from a component on a node, until ctx ends. What cannot be written
// is tried again for two minutes.
func NewRecorder(ctx context.Context, client coreclient.EventsGetter, component, node string) record.EventRecorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: client.Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: component, Host: node})
}

// NodeReference is what Events about a Node are about. They have its name for a UID, as kube-proxy and the kubelet write
// them.
func NodeReference(name string) v1.ObjectReference {
	return v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}

// ValidNote returns as much of a note as an Event takes.
func ValidNote(note string) string {
	return strings.ToValidUTF8(note[:min(len(note), MostNote)], "")
}
