package egress

import (
	"context"
	"log"
	"os"
	"path/filepath"
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
	// Claims is the file that tells the plugin which namespaces have claims.
	Claims string
	// WatchPods: the API server is asked for the labels of this node's pods.
	WatchPods bool
}

func (a Attaching) off() bool { return a.Socket == "" || !a.WatchPods }

// sweepPeriod is how often it is seen whether pods have ended without a word, and whether other namespaces have claims.
const sweepPeriod = 2 * time.Second

// newAttacher returns the attacher of an Extension that has no plan yet; nil if nobody asks.
func newAttacher(e *Extension) *attacher {
	config := e.config.Attaching
	if config.off() {
		return nil
	}
	folder := filepath.Dir(config.Socket)
	store, err := attachments.Open(filepath.Join(folder, "attachments"))
	if err != nil {
		e.logger.Error(err, "Some attachments of pods are lost. Restart these pods if they leave under a wrong address")
	}
	a := &attacher{
		state: e.state, store: store, released: filepath.Join(folder, "released"), claims: config.Claims,
		missing: e.barrier.Missing, await: e.awaitSyncs,
	}
	if err := a.load(); err != nil {
		e.logger.Error(err, "Some pods that ended while no node process ran are not known; their bindings end with their EndpointSlices")
	}
	return a
}

// attach follows this node's pods, and answers the CNI plugin, until the context ends.
func (e *Extension) attach(client kubernetes.Interface) {
	if e.attacher == nil {
		return
	}
	pods := newPodWatch(client, e.config.NodeName)
	e.attacher.pods = pods
	e.running.Go(func() { e.watchPods(pods) })
	e.running.Go(func() { e.sweep() })
	e.running.Go(func() {
		errorLog := log.New(attachingErrors{e.logger}, "", 0)
		if err := cni.Serve(e.ctx, e.config.Attaching.Socket, e.attacher, errorLog); err != nil && e.ctx.Err() == nil {
			e.logger.Error(err, "Pods are not bound before they run: the socket of the CNI plugin failed", "socket", e.config.Attaching.Socket)
		}
	})
}

// attachingErrors lets net/http log through a logger.
type attachingErrors struct{ logger klog.Logger }

func (w attachingErrors) Write(line []byte) (int, error) {
	w.logger.Info("Answering the CNI plugin", "err", string(line))
	return len(line), nil
}

// sweep sweeps until the context ends. Of errors that last it tells the first.
func (e *Extension) sweep() {
	exists := func(netns string) bool {
		_, err := os.Lstat(netns)
		return !os.IsNotExist(err)
	}
	complained := ""
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(sweepPeriod):
		}
		text := ""
		if err := e.attacher.Sweep(e.ctx, exists, time.Now()); err != nil {
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
		changed, err := e.attacher.SetPod(identityOf(pod), labelsOf(pod), ended(pod))
		if err != nil {
			e.logger.Error(err, "The new labels of a pod were not written", "pod", klog.KObj(pod))
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
)

// Pod is part of [Pods].
func (w *podWatch) Pod(ctx context.Context, pod attachments.Pod) (labels map[string]string, terminal, known bool) {
	for late := time.Now().Add(informerPatience); ; {
		if object, exists, _ := w.informer.GetStore().GetByKey(pod.String()); exists && identityOf(object.(*v1.Pod)) == pod {
			return labelsOf(object.(*v1.Pod)), ended(object.(*v1.Pod)), true
		}
		if time.Now().After(late) {
			break
		}
		select {
		case <-ctx.Done():
			return nil, false, false
		case <-time.After(informerPoll):
		}
	}
	object, err := w.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil || identityOf(object) != pod {
		return nil, false, false
	}
	return labelsOf(object), ended(object), true
}

// stripPod leaves of a Pod what predictions need: specs have secrets.
func stripPod(object any) (any, error) {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return object, nil
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels},
		Status:     v1.PodStatus{Phase: pod.Status.Phase},
	}, nil
}
