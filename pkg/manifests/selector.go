package manifests

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// A query is a list or watch request.
type query struct {
	resource  *resource
	namespace string // empty for all
	name      string // empty for all
	labels    labels.Selector
	fields    fields.Selector

	version   uint64 // 0 for any
	exact     bool   // resourceVersionMatch=Exact
	watch     bool
	initial   bool // the watch begins with what there is
	bookmarks bool
	marksEnd  bool // a bookmark ends what there is
	timeout   time.Duration
}

// defaultTimeout ends a watch that asks for no end, so that it does not outlive
// its client for ever.
const defaultTimeout = time.Hour

// newQuery reads the parameters of a request. The error is a status.
func newQuery(r *resource, namespace, name string, values url.Values) (*query, error) {
	var opts metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&values, &opts, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	q := &query{resource: r, namespace: namespace, name: name, watch: opts.Watch, bookmarks: opts.AllowWatchBookmarks}
	var err error
	if q.labels, err = labels.Parse(opts.LabelSelector); err != nil {
		return nil, apierrors.NewBadRequest("labelSelector: " + err.Error())
	}
	if q.fields, err = r.parseFields(opts.FieldSelector); err != nil {
		return nil, apierrors.NewBadRequest("fieldSelector: " + err.Error())
	}
	if opts.ResourceVersion != "" {
		if q.version, err = strconv.ParseUint(opts.ResourceVersion, 10, 64); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q is not a number", opts.ResourceVersion))
		}
	}
	for _, name := range []string{"continue", "shardSelector"} {
		// No list here has pages or shards.
		if values.Get(name) != "" {
			return nil, apierrors.NewBadRequest(name + " is not supported")
		}
	}
	return q, q.readModes(&opts)
}

// readModes reads how a list or a watch begins, as
// k8s.io/apimachinery/pkg/apis/meta/internalversion/validation has it.
func (q *query) readModes(opts *metav1.ListOptions) error {
	match := opts.ResourceVersionMatch
	if !q.watch {
		if opts.SendInitialEvents != nil {
			return apierrors.NewBadRequest("sendInitialEvents is forbidden for list")
		}
		q.exact = match == metav1.ResourceVersionMatchExact
		return nil
	}
	if (opts.SendInitialEvents != nil) != (match != "") || match != "" && match != metav1.ResourceVersionMatchNotOlderThan {
		return apierrors.NewBadRequest("sendInitialEvents and resourceVersionMatch=NotOlderThan belong together")
	}
	q.initial = q.version == 0
	if opts.SendInitialEvents != nil {
		q.initial = *opts.SendInitialEvents
		q.marksEnd = q.initial && q.bookmarks
	}
	q.timeout = defaultTimeout
	if opts.TimeoutSeconds != nil && *opts.TimeoutSeconds > 0 && *opts.TimeoutSeconds < int64(defaultTimeout/time.Second) {
		q.timeout = time.Duration(*opts.TimeoutSeconds) * time.Second
	}
	return nil
}

func (r *resource) parseFields(text string) (fields.Selector, error) {
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return nil, err
	}
	for _, requirement := range selector.Requirements() {
		if !r.selectable(requirement.Field) {
			return nil, fmt.Errorf("field label not supported: %s", requirement.Field)
		}
	}
	return selector, nil
}

// matches tells whether the query is about the item.
func (q *query) matches(it *item) bool {
	return (q.namespace == "" || q.namespace == it.object.GetNamespace()) &&
		(q.name == "" || q.name == it.object.GetName()) &&
		q.labels.Matches(it.labels) && q.fields.Matches(it.fields)
}
