package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/kubelet"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/wake"
)

// podSources know this node's pods: the kubelet, where it has the Pods API, and an informer, where the node may read all
// pods. It is a [Pods].
type podSources struct {
	kubelet *kubelet.Client // nil if it is not asked
	watch   *podWatch       // nil if the API server is not asked
}

const (
	// kubeletPatience is how long the kubelet may take to know a pod: it starts it, but may be starting itself.
	kubeletPatience = 2 * time.Second
	// kubeletPoll is how often it is asked. It answers 100 requests a second: where it refuses some, the next ones of the
	// same pod come less and less often, down to crowdedPoll.
	kubeletPoll, crowdedPoll = 20 * time.Millisecond, 160 * time.Millisecond
	// refreshPeriod is how often it is asked about doubtful pods, and mostRefreshed about how many at once: more than 10 at
	// once are too many for it. About a pod that stays doubtful it is asked less and less often, down to longestRefresh.
	refreshPeriod, longestRefresh = 500 * time.Millisecond, 30 * time.Second
	mostRefreshed                 = 5
)

// Known is part of [Pods].
func (s podSources) Known(pod attachments.Pod) (podObject, bool) {
	if s.watch == nil {
		return podObject{}, false
	}
	return s.watch.Known(pod)
}

// errNotAsked means that the namespace had no claims a moment ago.
var errNotAsked = errors.New("a Service of the namespace has only just claimed an egress IP; the next attempt asks for the pod's labels")

var errNotListed = errors.New("the API server has not listed this node's pods: with egress-snat-watch-pods the node needs images/node/rbac-cni.yaml")

var errNoSource = errors.New("the kubelet has no Pods API (Kubernetes 1.37), and egress-snat-watch-pods is not true")

// Find is part of [Pods]. The sources are asked at the same time: one may be silent.
func (s podSources) Find(ctx context.Context, pod attachments.Pod) (podObject, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var asked []func(context.Context, attachments.Pod) (podObject, error)
	if s.asksKubelet() {
		asked = append(asked, s.ask)
	}
	if s.watch != nil {
		asked = append(asked, s.watch.Find)
	}
	if len(asked) == 0 {
		return podObject{}, errNoSource
	}
	type answer struct {
		podObject
		err error
	}
	answers := make(chan answer, len(asked))
	for _, find := range asked {
		go func() {
			object, err := find(ctx, pod)
			answers <- answer{object, err}
		}()
	}
	var errs []error
	for range asked {
		got := <-answers
		if got.err == nil {
			return got.podObject, nil
		}
		errs = append(errs, got.err)
	}
	return podObject{}, errors.Join(errs...)
}

func (s podSources) asksKubelet() bool { return s.kubelet != nil && s.kubelet.Exists() }

// ask asks the kubelet for a pod until it knows it, for a while.
func (s podSources) ask(ctx context.Context, pod attachments.Pod) (podObject, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletPatience)
	defer cancel()
	for pause := kubeletPoll; ; {
		got, err := s.kubelet.Get(ctx, pod.UID)
		if got != nil {
			if object := convertKubeletPod(got); object.is(pod) {
				return object, nil
			}
		}
		switch status.Code(err) {
		case codes.Unimplemented:
			return podObject{}, err // it will not know it later, either
		case codes.ResourceExhausted:
			pause = min(2*pause, crowdedPoll)
		}
		if !wake.Sleep(ctx.Done(), pause/2+rand.N(pause)) { // those that wait do not ask at the same moments
			return podObject{}, errors.Join(err, fmt.Errorf("the kubelet does not know the pod %s (UID %s)", pod, pod.UID))
		}
	}
}

// All is part of [Pods].
func (s podSources) All(ctx context.Context) (all []podObject, err error) {
	err = errNoSource
	if s.asksKubelet() {
		var pods []*v1.Pod
		pods, err = s.kubelet.List(ctx)
		for _, pod := range pods {
			all = append(all, convertKubeletPod(pod))
		}
	}
	if err == nil || s.watch == nil {
		return all, err
	}
	if !s.watch.informer.HasSynced() {
		if s.asksKubelet() {
			return nil, errors.Join(err, errNotListed)
		}
		return nil, errNotListed
	}
	for _, pod := range s.watch.informer.GetStore().List() {
		all = append(all, convertPod(pod.(*v1.Pod)))
	}
	return all, nil
}

// nobody is the UID of no pod.
const nobody = "00000000-0000-0000-0000-000000000000"

// Available is part of [Pods].
func (s podSources) Available(ctx context.Context) error {
	var errs []error
	if s.asksKubelet() {
		ctx, cancel := context.WithTimeout(ctx, kubeletPatience)
		defer cancel()
		_, err := s.kubelet.Get(ctx, nobody)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	if s.watch != nil {
		if s.watch.informer.HasSynced() {
			return nil
		}
		errs = append(errs, errNotListed)
	}
	if len(errs) == 0 {
		return errNoSource
	}
	return errors.Join(errs...)
}

// unasked tells whether an error of Available means that no kubelet was there to be asked.
func unasked(err error) bool {
	answer, asked := status.FromError(err)
	return !asked || answer.Code() == codes.Unavailable
}

// refreshPods asks the kubelet again about pods whose labels or phase may be others than this node knows, until the
// context ends. There is no event for new labels: but EndpointSlices then no longer name the pod.
func (a *Attacher) refreshPods(sources podSources) {
	defer func() { _ = sources.kubelet.Close() }()
	tick, refreshes := time.NewTicker(refreshPeriod), refreshes{}
	defer tick.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
		}
		doubtful := a.doubtful()
		if len(doubtful) > 0 && !sources.asksKubelet() {
			continue
		}
		rand.Shuffle(len(doubtful), func(i, j int) { doubtful[i], doubtful[j] = doubtful[j], doubtful[i] })
		for _, pod := range refreshes.due(doubtful, time.Now()) {
			if a.refreshPod(sources, pod) {
				refreshes[pod] = refresh{time.Now().Add(longestRefresh), longestRefresh}
			}
		}
	}
}

// refreshes are those of doubtful pods, which take turns.
type refreshes map[attachments.Pod]refresh

// refresh says when a pod is next asked about, and how long after the last time that is.
type refresh struct {
	next time.Time
	wait time.Duration
}

// again returns when to ask again after a question now.
func (r refresh) again(now time.Time) refresh {
	wait := min(max(2*r.wait, refreshPeriod), longestRefresh)
	return refresh{now.Add(wait), wait}
}

// due returns the pods that are to be asked about now.
func (r refreshes) due(doubtful []attachments.Pod, now time.Time) (due []attachments.Pod) {
	maps.DeleteFunc(r, func(pod attachments.Pod, _ refresh) bool { return !slices.Contains(doubtful, pod) })
	for _, pod := range doubtful {
		last := r[pod]
		if now.Before(last.next) || len(due) == mostRefreshed {
			continue
		}
		r[pod] = last.again(now)
		due = append(due, pod)
	}
	return due
}

// refreshPod takes what the kubelet knows of a pod now, and tells whether the kubelet knows no such pod. Nothing follows
// from a failure: it is asked again.
func (a *Attacher) refreshPod(sources podSources, pod attachments.Pod) (isGone bool) {
	ctx, cancel := context.WithTimeout(a.ctx, refreshPeriod)
	defer cancel()
	got, err := sources.kubelet.Get(ctx, pod.UID)
	if err == nil && got != nil {
		a.takePod(convertKubeletPod(got))
	}
	return err == nil && got == nil
}

func (a *Attacher) takePod(object podObject) {
	changed, err := a.setPod(object)
	if err != nil {
		a.logger.Error(err, "The new labels of a pod are in effect, but not yet saved in its file; will retry", "pod", klog.KRef(object.Namespace, object.Name))
	}
	a.node.Changed(changed, time.Now())
}

// doubtful returns the pods that EndpointSlices do not confirm although their labels say that a Service selects them,
// and those that nobody has told anything of.
func (a *Attacher) doubtful() (pods []attachments.Pod) {
	unnamed, _ := a.state.Unconfirmed()
	for _, attachment := range a.store.All() {
		if attachment.Released.IsZero() && !attachment.Ended && (attachment.Labels == nil || unnamed.AnyOf(attachment.IPs)) {
			pods = append(pods, attachment.Pod)
		}
	}
	return pods
}

// watchPods returns when the context ends. No plan waits for it: attachments have the labels that were last known.
func (a *Attacher) watchPods(pods *podWatch) {
	set := func(pod *v1.Pod) { a.takePod(convertPod(pod)) }
	_ = pods.informer.SetTransform(stripPod) // fails for a running informer only
	extension.Explain(pods.informer, a.node.Explain)
	extension.Follow(a.ctx, pods.informer, extension.Handler(set, func(cache.ObjectName) {}), func() {})
	pods.informer.RunWithContext(a.ctx)
}

// podWatch knows the pods of this node by an informer, and asks for one that the informer does not have in time. It is a
// [Pods].
type podWatch struct {
	client   kubernetes.Interface
	informer cache.SharedIndexInformer
}

func newPodWatch(client kubernetes.Interface, node string) *podWatch {
	return &podWatch{client, coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	})}
}

const (
	// informerPatience is how long the informer may be behind the kubelet.
	informerPatience = 2 * time.Second
	// informerPoll is how often it is asked.
	informerPoll = 5 * time.Millisecond
	// getPatience is how long the API server may take to answer.
	getPatience = 2 * time.Second
)

// Known is part of [Pods].
func (w *podWatch) Known(pod attachments.Pod) (podObject, bool) {
	stored, exists, _ := w.informer.GetStore().GetByKey(pod.String())
	if !exists {
		return podObject{}, false
	}
	object := convertPod(stored.(*v1.Pod))
	return object, object.is(pod)
}

// Find is part of [Pods].
func (w *podWatch) Find(ctx context.Context, pod attachments.Pod) (podObject, error) {
	for late := time.Now().Add(informerPatience); time.Now().Before(late); {
		if object, known := w.Known(pod); known {
			return object, nil
		}
		if !wake.Sleep(ctx.Done(), informerPoll) {
			return podObject{}, context.Cause(ctx)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, getPatience)
	defer cancel()
	got, err := w.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return podObject{}, err
	}
	if object := convertPod(got); object.is(pod) {
		return object, nil
	}
	return podObject{}, fmt.Errorf("the API server has another pod %s, with the UID %s instead of %s", pod, got.UID, pod.UID)
}

// podObject is what predictions need of a Pod.
type podObject struct {
	// Pod has the UID of the object in the API; empty for a static pod of the kubelet, which does not know it.
	attachments.Pod
	// isStatic: the pod is a static one, and static is the UID that it has for the kubelet.
	isStatic bool
	static   string
	// labels are never nil.
	labels map[string]string
	ended  bool
	// ips are its own addresses; none before it has a network, nor with that of its node.
	ips []netip.Addr
}

// is tells whether an object is that of a pod, with the UID that the kubelet says.
func (o podObject) is(pod attachments.Pod) bool {
	return o.Namespace == pod.Namespace && o.Name == pod.Name && (o.UID == pod.UID || o.isStatic && o.static == pod.UID)
}

// describe says in an attachment what is known of its pod.
func (o podObject) describe(a *attachments.Attachment) {
	a.Object, a.Static, a.Labels, a.Ended = cmp.Or(o.UID, a.Object), o.isStatic, o.labels, o.ended
}

// describes tells whether an attachment says it already.
func (o podObject) describes(a attachments.Attachment) bool {
	now := a
	o.describe(&now)
	return now.Object == a.Object && now.Static == a.Static && now.Ended == a.Ended && a.Labels != nil && maps.Equal(a.Labels, now.Labels)
}

// stripPod leaves of a Pod what predictions need: specs have secrets.
func stripPod(object any) (any, error) {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return object, nil
	}
	stripped := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels},
		Spec:       v1.PodSpec{HostNetwork: pod.Spec.HostNetwork},
		Status:     v1.PodStatus{Phase: pod.Status.Phase, PodIPs: pod.Status.PodIPs},
	}
	if static, is := pod.Annotations[v1.MirrorPodAnnotationKey]; is {
		stripped.Annotations = map[string]string{v1.MirrorPodAnnotationKey: static}
	}
	return stripped, nil
}

// convertPod reads what predictions need of a Pod, as the API server tells it.
func convertPod(pod *v1.Pod) podObject {
	static := pod.Annotations[v1.MirrorPodAnnotationKey]
	object := podObject{
		Pod:      attachments.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)},
		isStatic: static != "", static: static,
		labels: maps.Clone(pod.Labels),
		ended:  pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed,
	}
	if object.labels == nil {
		object.labels = map[string]string{}
	}
	if pod.Spec.HostNetwork {
		return object
	}
	for _, ip := range pod.Status.PodIPs {
		if addr, err := netip.ParseAddr(ip.IP); err == nil {
			object.ips = append(object.ips, addr.Unmap())
		}
	}
	return object
}

// sourceAnnotation says in a kubelet's pods where it has them from.
const sourceAnnotation = "kubernetes.io/config.source"

// convertKubeletPod is convertPod for a pod as the kubelet tells it.
func convertKubeletPod(pod *v1.Pod) podObject {
	object := convertPod(pod)
	if source, said := pod.Annotations[sourceAnnotation]; said && source != "api" {
		object.isStatic, object.static, object.UID = true, object.UID, ""
	}
	return object
}
