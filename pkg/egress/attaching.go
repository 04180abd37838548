package egress

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
)

// Attaching is how the CNI plugin is answered. Its zero value is: not at all.
type Attaching struct {
	// Socket is the plugin's; empty for none. Attachments are kept beside it.
	Socket string
	// WatchPods: the API server is asked for the labels of this node's pods.
	WatchPods bool
}

func (a Attaching) off() bool { return a.Socket == "" || !a.WatchPods }

const (
	// sweepPeriod is how often it is seen whether pods have ended without a word, and whether other namespaces have claims.
	sweepPeriod = 2 * time.Second
	// listenAgain is how long to wait before the socket is made again after a failure.
	listenAgain = time.Second
)

// newAttacher returns the attacher of an Extension that has no plan yet; nil if nobody asks.
func newAttacher(e *Extension) *attacher {
	socket := e.config.Attaching.Socket
	if e.config.Attaching.off() {
		if err := ForgetAttachments(socket); err != nil {
			e.logger.Error(err, "Where the CNI plugin is still installed, it may keep pods waiting; remove these files")
		}
		return nil
	}
	store, err := attachments.Open(attachments.Folder(socket))
	if err != nil {
		e.logger.Error(err, "Some files about pods cannot be read. Where they are called .corrupt now, delete the pods that they name and then these files")
	}
	a := &attacher{
		state: e.state, store: store, released: attachments.Released(socket), claims: attachments.Claims(socket),
		missing: e.barrier.Missing, failure: e.lastFailure, await: e.awaitSyncs,
		exists: func(netns string) bool {
			_, err := os.Lstat(netns)
			return netns != "" && !os.IsNotExist(err)
		},
	}
	if err := a.load(); err != nil {
		e.logger.Error(err, "Some pods that ended while no node process ran are not known; their bindings end with their EndpointSlices")
	}
	return a
}

// ForgetAttachments removes what is kept for a CNI plugin that asks at a socket, which may be empty for none: the plugin
// then lets pods start although nobody answers.
func ForgetAttachments(socket string) error {
	if socket == "" {
		return nil
	}
	if err := attachments.Remove(socket); err != nil {
		return fmt.Errorf("removing what is kept for the CNI plugin: %w", err)
	}
	return nil
}

// attach follows this node's pods, and answers the CNI plugin, until the context ends.
func (e *Extension) attach(client kubernetes.Interface) {
	if e.attacher == nil {
		return
	}
	pods := newPodWatch(client, e.config.NodeName)
	e.attacher.pods = pods
	e.running.Go(func() { e.watchPods(pods) })
	e.running.Go(e.sweep)
	e.running.Go(e.answerPlugin)
}

// answerPlugin answers the CNI plugin until the context ends. Of failures that last it tells the first.
func (e *Extension) answerPlugin() {
	errorLog := log.New(attachingErrors{e.logger}, "", 0)
	complained := ""
	for {
		err := cni.Serve(e.ctx, e.config.Attaching.Socket, observedNode{e.attacher}, errorLog)
		if e.ctx.Err() != nil {
			return
		}
		if text := fmt.Sprint(err); text != complained {
			complained = text
			e.logger.Error(err, "The CNI plugin is not answered, so pods of namespaces with egress IPs do not start; will retry, further failures are not logged", "socket", e.config.Attaching.Socket)
		}
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}

// lastFailure returns why the last sync of an IP family failed, or nil.
func (e *Extension) lastFailure() error {
	var errs []error
	for _, name := range families {
		errs = append(errs, e.families[name].reconciler.Status().Failure)
	}
	return errors.Join(errs...)
}

// attachingErrors lets net/http log through a logger.
type attachingErrors struct{ logger klog.Logger }

func (w attachingErrors) Write(line []byte) (int, error) {
	w.logger.Info("Answering the CNI plugin", "err", string(line))
	return len(line), nil
}

// sweep sweeps until the context ends. Of errors that last it tells the first.
func (e *Extension) sweep() {
	complained := ""
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(sweepPeriod):
		}
		text := ""
		cniUnconfirmed.WithLabelValues().Set(float64(e.attacher.unconfirmed(time.Now())))
		if err := e.attacher.Sweep(e.ctx, time.Now()); err != nil {
			if text = err.Error(); text != complained && e.ctx.Err() == nil {
				e.logger.Error(err, "Following the ends of pods failed; will retry, further failures are not logged")
			}
		}
		complained = text
	}
}

// watchPods returns when the context ends. No plan waits for it: attachments have the labels that were last known.
func (e *Extension) watchPods(pods *podWatch) {
	set := func(object any) {
		pod := object.(*v1.Pod)
		changed, err := e.attacher.setPod(convertPod(pod))
		if err != nil {
			e.logger.Error(err, "The new labels of a pod hold, but are not in its file; will retry", "pod", klog.KObj(pod))
		}
		e.changed(changed, time.Now())
	}
	_ = pods.informer.SetTransform(stripPod) // fails for a running informer only
	_ = pods.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, e.explain(err))
	})
	_, _ = pods.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, object any) { set(object) },
	})
	pods.informer.RunWithContext(e.ctx)
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
func (w *podWatch) Find(ctx context.Context, pod attachments.Pod) (podObject, bool) {
	for late := time.Now().Add(informerPatience); time.Now().Before(late); {
		if object, known := w.Known(pod); known {
			return object, true
		}
		select {
		case <-ctx.Done():
			return podObject{}, false
		case <-time.After(informerPoll):
		}
	}
	ctx, cancel := context.WithTimeout(ctx, getPatience)
	defer cancel()
	got, err := w.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return podObject{}, false
	}
	object := convertPod(got)
	return object, object.is(pod)
}

// podObject is what predictions need of a Pod.
type podObject struct {
	attachments.Pod
	// static is the UID that a static pod has for the kubelet; its Pod is a mirror with another. Empty for others.
	static string
	// labels are never nil.
	labels map[string]string
	ended  bool
}

// is tells whether an object is that of a pod, with the UID that the kubelet says.
func (o podObject) is(pod attachments.Pod) bool {
	return o.Namespace == pod.Namespace && o.Name == pod.Name && (o.UID == pod.UID || o.static != "" && o.static == pod.UID)
}

// describe says in an attachment what is known of its pod.
func (o podObject) describe(a *attachments.Attachment) {
	a.Object, a.Labels, a.Ended = o.UID, o.labels, o.ended
}

// describes tells whether an attachment says it already.
func (o podObject) describes(a attachments.Attachment) bool {
	return a.Object == o.UID && a.Ended == o.ended && a.Labels != nil && maps.Equal(a.Labels, o.labels)
}

// stripPod leaves of a Pod what predictions need: specs have secrets.
func stripPod(object any) (any, error) {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return object, nil
	}
	stripped := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels},
		Status:     v1.PodStatus{Phase: pod.Status.Phase},
	}
	if static, is := pod.Annotations[v1.MirrorPodAnnotationKey]; is {
		stripped.Annotations = map[string]string{v1.MirrorPodAnnotationKey: static}
	}
	return stripped, nil
}
