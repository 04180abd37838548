//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// kubeletWorkers is how many pods a Kubelet starts and stops at the same time.
const kubeletWorkers = 4

// Kubelet plays the scheduler and the kubelets of its nodes: it binds pods that have no
// node to the node with the fewest, has them started, says that they run and are ready,
// and ends those that are deleted. Pods that CreatePod made are none of its business.
type Kubelet struct {
	ControlPlane *ControlPlane
	// Nodes are the names of its nodes.
	Nodes []string
	// Start makes what a pod runs in and returns its addresses. Stop, which may be nil,
	// takes it away: when Stop is called the pod is terminating, for its Services too,
	// until Stop returns; or it is gone already, if somebody had no patience. Both are
	// called from several goroutines, but one at a time for a pod, and again after an
	// error.
	Start func(ctx context.Context, pod *v1.Pod) ([]netip.Addr, error)
	Stop  func(ctx context.Context, pod *v1.Pod) error

	pods  corelisters.PodLister
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]

	mu      sync.Mutex
	running map[cache.ObjectName]*sandbox
	placed  map[cache.ObjectName]string // the nodes of pods that are bound and not started
}

// sandbox is a pod that Start has started.
type sandbox struct {
	pod   *v1.Pod
	addrs []netip.Addr
}

// Run does its work until ctx ends, also while the API server comes and goes: like every
// client that watches, it may notice only half a minute later that the API server is back.
// What runs when ctx ends is left running. It may be called once.
func (k *Kubelet) Run(ctx context.Context) error {
	k.running, k.placed = map[cache.ObjectName]*sandbox{}, map[cache.ObjectName]string{}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](5*time.Millisecond, time.Second)
	k.queue = workqueue.NewTypedRateLimitingQueue(limiter)
	factory := informers.NewSharedInformerFactory(k.ControlPlane.client, 0)
	informer := factory.Core().V1().Pods()
	k.pods = informer.Lister()
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: k.enqueue, DeleteFunc: k.enqueue, UpdateFunc: func(_, pod any) { k.enqueue(pod) },
	}); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		return ctx.Err()
	}
	defer context.AfterFunc(ctx, k.queue.ShutDown)()
	var workers sync.WaitGroup
	for range kubeletWorkers {
		workers.Go(func() { k.work(ctx) })
	}
	workers.Wait()
	return ctx.Err()
}

func (k *Kubelet) enqueue(object any) {
	name, err := cache.DeletionHandlingObjectToName(object)
	if err == nil { // it is a pod
		k.queue.Add(name)
	}
}

func (k *Kubelet) work(ctx context.Context) {
	for {
		name, shutdown := k.queue.Get()
		if shutdown {
			return
		}
		if err := k.sync(ctx, name); err == nil {
			k.queue.Forget(name)
		} else if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot play kubelet, trying again", "pod", name)
			k.queue.AddRateLimited(name)
		}
		k.queue.Done(name)
	}
}

// sync brings one pod a step ahead. Nobody else has the same pod at the same time.
func (k *Kubelet) sync(ctx context.Context, name cache.ObjectName) error {
	pod, err := k.pods.Pods(name.Namespace).Get(name.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	runs := k.sandbox(name)
	if runs != nil && (pod == nil || pod.UID != runs.pod.UID || pod.DeletionTimestamp != nil) {
		if err := k.stop(ctx, name, runs); err != nil {
			return err
		}
		runs = nil
	}
	switch {
	case pod == nil:
		k.forget(name)
		return nil
	case pod.Annotations[ByHand] != "":
		return nil
	case pod.Spec.NodeName == "":
		return k.bind(ctx, name, pod)
	case !slices.Contains(k.Nodes, pod.Spec.NodeName):
		return nil
	case pod.DeletionTimestamp != nil:
		return k.remove(ctx, pod)
	case runs == nil:
		return k.start(ctx, name, pod)
	case pod.Status.Phase == v1.PodPending:
		return k.report(ctx, runs)
	}
	return nil
}

func (k *Kubelet) forget(name cache.ObjectName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.placed, name)
}

func (k *Kubelet) sandbox(name cache.ObjectName) *sandbox {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running[name]
}

func (k *Kubelet) start(ctx context.Context, name cache.ObjectName, pod *v1.Pod) error {
	addrs, err := k.Start(ctx, pod)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	runs := &sandbox{pod: pod, addrs: addrs}
	k.mu.Lock()
	k.running[name] = runs
	delete(k.placed, name)
	k.mu.Unlock()
	return k.report(ctx, runs)
}

func (k *Kubelet) report(ctx context.Context, runs *sandbox) error {
	_, err := k.ControlPlane.SetPodStatus(ctx, runs.pod, RunningStatus(runs.pod, true, runs.addrs...))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, which the informer is about to tell
	}
	return err
}

func (k *Kubelet) stop(ctx context.Context, name cache.ObjectName, runs *sandbox) error {
	if k.Stop != nil {
		if err := k.Stop(ctx, runs.pod); err != nil {
			return fmt.Errorf("stop: %w", err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.running, name)
	return nil
}

// remove deletes a pod that has ended.
func (k *Kubelet) remove(ctx context.Context, pod *v1.Pod) error {
	err := k.ControlPlane.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// bind places a pod that has no node.
func (k *Kubelet) bind(ctx context.Context, name cache.ObjectName, pod *v1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	node, err := k.place(name)
	if err != nil {
		return err
	}
	err = k.ControlPlane.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or bound by an attempt whose answer was lost
	}
	return err
}

// place chooses the node with the fewest pods, the same again for the same pod.
func (k *Kubelet) place(name cache.ObjectName) (string, error) {
	if len(k.Nodes) == 0 {
		return "", errors.New("there is no node")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if node := k.placed[name]; node != "" {
		return node, nil
	}
	load := map[string]int{}
	for _, node := range k.placed {
		load[node]++
	}
	for _, runs := range k.running {
		load[runs.pod.Spec.NodeName]++
	}
	node := slices.MinFunc(k.Nodes, func(a, b string) int { return load[a] - load[b] })
	k.placed[name] = node
	return node, nil
}
