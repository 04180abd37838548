package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// prepareEvent does to a new event what the API server does
// (k8s.io/apiserver/pkg/registry/rest/create.go). The error is a status.
func prepareEvent(event *eventsv1.Event, namespace string) error {
	if event.Namespace != "" && event.Namespace != namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if event.ResourceVersion != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	event.SetGroupVersionKind(keptEvents.gvk())
	event.Namespace = namespace
	if event.Name == "" && event.GenerateName != "" {
		event.Name = names.SimpleNameGenerator.GenerateName(event.GenerateName)
	}
	event.UID = types.UID(uuid.NewString())
	event.CreationTimestamp = metav1.Now()
	event.DeletionTimestamp, event.DeletionGracePeriodSeconds = nil, nil
	internal, err := internalEvent(event)
	if err != nil {
		return err
	}
	return invalidEvent(event, corevalidation.ValidateEventCreate(internal, eventsv1.SchemeGroupVersion))
}

// patchEvent returns what a patch makes of an event's JSON, without a version.
// The error is a status.
func patchEvent(raw []byte, contentType string, patch []byte) (*eventsv1.Event, error) {
	merged, err := merge(raw, contentType, patch)
	if err != nil {
		return nil, err
	}
	if len(merged) > maxEventSize {
		return nil, errTooMuch()
	}
	var old, event eventsv1.Event
	if err := errors.Join(json.Unmarshal(raw, &old), json.Unmarshal(merged, &event)); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode patched event: %v", err))
	}
	event.SetGroupVersionKind(keptEvents.gvk())
	switch event.ResourceVersion {
	case "":
		event.ResourceVersion = old.ResourceVersion
	case old.ResourceVersion:
	default:
		return nil, errConflict(old.Name, fmt.Sprintf("the patch is for resource version %s, the event has %s", event.ResourceVersion, old.ResourceVersion))
	}
	internalOld, err := internalEvent(&old)
	if err != nil {
		return nil, err
	}
	internal, err := internalEvent(&event)
	if err != nil {
		return nil, err
	}
	if err := invalidEvent(&event, corevalidation.ValidateEventUpdate(internal, internalOld, eventsv1.SchemeGroupVersion)); err != nil {
		return nil, err
	}
	event.ResourceVersion = "" // it is the store that gives these out
	return &event, nil
}

// merge applies a patch of one of the two kinds that are merged. The error is a
// status.
func merge(raw []byte, contentType string, patch []byte) (merged []byte, err error) {
	defer func() {
		// Upstream's merge panics at some patches that make no sense,
		// {"$retainKeys":[{}]} for one.
		if r := recover(); r != nil {
			merged, err = nil, apierrors.NewBadRequest(fmt.Sprintf("apply patch: %v", r))
		}
	}()
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && mediaType == string(types.StrategicMergePatchType):
		merged, err = strategicpatch.StrategicMergePatch(raw, patch, eventsv1.Event{})
	case err == nil && mediaType == string(types.MergePatchType):
		merged, err = mergePatch(raw, patch)
	default:
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: fmt.Sprintf("a patch of type %q is not supported; accepted: %s, %s", contentType, types.StrategicMergePatchType, types.MergePatchType),
		}}
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("apply patch: %v", err))
	}
	return merged, nil
}

// mergePatch is RFC 7396 for a patch that is an object.
func mergePatch(raw, patch []byte) ([]byte, error) {
	var target, changes map[string]any
	if err := errors.Join(json.Unmarshal(raw, &target), json.Unmarshal(patch, &changes)); err != nil {
		return nil, err
	}
	mergeInto(target, changes)
	return json.Marshal(target)
}

func mergeInto(target, changes map[string]any) {
	for name, change := range changes {
		if nested, ok := change.(map[string]any); ok {
			inner, _ := target[name].(map[string]any)
			if inner == nil {
				inner = map[string]any{}
			}
			mergeInto(inner, nested)
			change = inner
		}
		if target[name] = change; change == nil {
			delete(target, name)
		}
	}
}

// internalEvent converts to the form that upstream validates. It goes by way of
// core's event, which has the same fields under other names
// (pkg/apis/events/v1/conversion.go).
func internalEvent(event *eventsv1.Event) (*core.Event, error) {
	old := &v1.Event{
		ObjectMeta:          event.ObjectMeta,
		InvolvedObject:      event.Regarding,
		Reason:              event.Reason,
		Message:             event.Note,
		Source:              event.DeprecatedSource,
		FirstTimestamp:      event.DeprecatedFirstTimestamp,
		LastTimestamp:       event.DeprecatedLastTimestamp,
		Count:               event.DeprecatedCount,
		Type:                event.Type,
		EventTime:           event.EventTime,
		Action:              event.Action,
		Related:             event.Related,
		ReportingController: event.ReportingController,
		ReportingInstance:   event.ReportingInstance,
	}
	if event.Series != nil {
		old.Series = &v1.EventSeries{Count: event.Series.Count, LastObservedTime: event.Series.LastObservedTime}
	}
	internal, err := legacyscheme.Scheme.ConvertToVersion(old, runtime.InternalGroupVersioner)
	if err != nil {
		return nil, fmt.Errorf("convert event: %w", err)
	}
	converted, ok := internal.(*core.Event)
	if !ok {
		return nil, fmt.Errorf("convert event: became a %T", internal)
	}
	return converted, nil
}

// invalidEvent is the status of what upstream's validation found, or nil.
func invalidEvent(event *eventsv1.Event, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(keptEvents.gvk().GroupKind(), event.Name, errs)
}

// checkPreconditions says whether it is the object that a client means.
func checkPreconditions(it *item, wanted *metav1.Preconditions) error {
	if wanted == nil {
		return nil
	}
	uid, version := it.object.GetUID(), strconv.FormatUint(it.version, 10)
	switch {
	case wanted.UID != nil && *wanted.UID != uid:
		return errConflict(it.object.GetName(), fmt.Sprintf("its UID is %s, not %s", uid, *wanted.UID))
	case wanted.ResourceVersion != nil && *wanted.ResourceVersion != version:
		return errConflict(it.object.GetName(), fmt.Sprintf("its resource version is %s, not %s", version, *wanted.ResourceVersion))
	}
	return nil
}

func errConflict(name, message string) error {
	return apierrors.NewConflict(keptEvents.GroupResource(), name, errors.New(message))
}
