package extension

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// NewNodes returns an informer of the cluster's Nodes, for all extensions together: Nodes change often. Run it when all
// extensions follow it. Of labels it keeps those with one of these keys.
func NewNodes(client kubernetes.Interface, explain func(error) error, labels []string) cache.SharedIndexInformer {
	informer := coreinformers.NewNodeInformer(client, 0, nil)
	// It fails for a running informer only.
	_ = informer.SetTransform(func(object any) (any, error) { return StripNode(object, labels), nil })
	Explain(informer, explain)
	return informer
}

// TaintUninitialized is on a Node to which its cloud provider has yet to give its addresses (k8s.io/cloud-provider/api).
const TaintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// StripNode leaves of a Node its names, age, addresses, networks of pods, readiness and TaintUninitialized, and labels with one of these keys:
// there are many Nodes, and they are large. It returns other objects as they are.
func StripNode(object any, labels []string) any {
	node, ok := object.(*v1.Node)
	if !ok {
		return object
	}
	stripped := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, CreationTimestamp: node.CreationTimestamp},
		Spec: v1.NodeSpec{
			PodCIDRs: node.Spec.PodCIDRs,
			Taints:   slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t v1.Taint) bool { return t.Key != TaintUninitialized }),
		},
		Status: v1.NodeStatus{
			Addresses:  node.Status.Addresses,
			Conditions: slices.DeleteFunc(slices.Clone(node.Status.Conditions), func(c v1.NodeCondition) bool { return c.Type != v1.NodeReady }),
		},
	}
	for _, key := range labels {
		if value, has := node.Labels[key]; has {
			metav1.SetMetaDataLabel(&stripped.ObjectMeta, key, value)
		}
	}
	return stripped
}

// IsReady tells whether a Node has the condition Ready.
func IsReady(node *v1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
}

// Explain has an informer that does not run yet log the errors of its watch as explain returns them, with what an
// operator needs to act on them.
func Explain(informer cache.SharedIndexInformer, explain func(error) error) {
	// It fails for a running informer only.
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, explain(err))
	})
}

// Follow has an informer tell handler of its objects, and calls known when it has told of all that there were at first.
// It does not wait, and known is not called after ctx ends.
func Follow(ctx context.Context, informer cache.SharedIndexInformer, handler cache.ResourceEventHandler, known func()) {
	registration, _ := informer.AddEventHandler(handler) // fails for an informer that has ended
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			known()
		}
	}()
}

// Handler returns a handler for [Follow] that calls set with each object and each version of it, and gone with the names of those that are
// deleted.
func Handler[T any](set func(T), gone func(cache.ObjectName)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { set(object.(T)) },
		UpdateFunc: func(_, object any) { set(object.(T)) },
		DeleteFunc: func(object any) { // perhaps the last one known, of which the end was not heard
			if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
				gone(name)
			}
		},
	}
}
