package tunnel

import (
	"context"
	"net/netip"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

// Watch begins to follow Nodes and the ConfigMap, and to write Events. Explain adds to an error of the client what an
// operator needs to act on it. Call it once, before the proxier's SyncLoop.
func (e *Extension) Watch(client kubernetes.Interface, explain func(error) error) {
	nodes := coreinformers.NewNodeInformer(client, 0, nil)
	_ = nodes.SetTransform(func(o any) (any, error) { return e.config.strip(o), nil }) // fails for a running informer only
	e.follow(nodes, nodesKind, explain, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { e.setNode(o.(*v1.Node)) },
		UpdateFunc: func(_, o any) { e.setNode(o.(*v1.Node)) },
		DeleteFunc: func(o any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
				e.deleteNode(name)
			}
		},
	})
	e.running.Go(func() { e.events.run(e.ctx, client.CoreV1()) })
	if e.config.ConfigMap.Name == "" {
		return
	}
	configMap := coreinformers.NewFilteredConfigMapInformer(client, e.config.ConfigMap.Namespace, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, e.config.ConfigMap.Name).String()
	})
	e.setConfigMap(nil) // as long as there is none
	e.follow(configMap, configMapKind, explain, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { e.setConfigMap(o.(*v1.ConfigMap)) },
		UpdateFunc: func(_, o any) { e.setConfigMap(o.(*v1.ConfigMap)) },
		DeleteFunc: func(any) { e.setConfigMap(nil) },
	})
}

// follow runs an informer until the context ends, and notes when all objects are known. A ConfigMap that may not be
// read is waited for no longer: the kubelet's ports do not need it.
func (e *Extension) follow(informer cache.SharedIndexInformer, kind string, explain func(error) error, handler cache.ResourceEventHandler) {
	// These fail for a running informer only.
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, explain(err))
		if kind == configMapKind && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
			e.barrier.Known(kind)
		}
	})
	registration, _ := informer.AddEventHandler(handler)
	e.running.Go(func() { informer.RunWithContext(e.ctx) })
	e.running.Go(func() {
		if cache.WaitForCacheSync(e.ctx.Done(), registration.HasSynced) {
			e.barrier.Known(kind)
		}
	})
}

// strip leaves of a Node what a plan needs.
func (c Config) strip(object any) any {
	node, ok := object.(*v1.Node)
	if !ok {
		return object
	}
	kept := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: map[string]string{}}}
	for _, l := range c.Labels {
		if value, has := node.Labels[l.Key]; has {
			kept.Labels[l.Key] = value
		}
	}
	kept.Status.Addresses = node.Status.Addresses
	kept.Status.Conditions = slices.DeleteFunc(slices.Clone(node.Status.Conditions), func(c v1.NodeCondition) bool { return c.Type != v1.NodeReady })
	return kept
}

// nodeOf returns what a plan needs of a Node.
func (c Config) nodeOf(node *v1.Node) plan.Node {
	n := plan.Node{Name: node.Name}
	n.Agent = slices.ContainsFunc(c.Labels, func(l Label) bool {
		value, has := node.Labels[l.Key]
		return has && value == l.Value
	})
	n.Ready = slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	for _, a := range node.Status.Addresses {
		if addr, err := netip.ParseAddr(a.Address); err == nil && (a.Type == v1.NodeInternalIP || a.Type == v1.NodeExternalIP) && usable(addr) {
			n.Addresses = append(n.Addresses, addr)
		}
	}
	return n
}

// usable: addresses of other kinds do not belong to one node.
func usable(addr netip.Addr) bool {
	return addr.IsGlobalUnicast() && addr.Zone() == "" && !addr.Is4In6()
}

func (e *Extension) setNode(node *v1.Node) {
	n := e.config.nodeOf(node)
	e.mu.Lock()
	same := reflect.DeepEqual(e.nodes[node.Name], n)
	e.nodes[node.Name] = n
	e.mu.Unlock()
	if !same {
		e.changed()
	}
}

func (e *Extension) deleteNode(name string) {
	e.mu.Lock()
	delete(e.nodes, name)
	e.mu.Unlock()
	e.changed()
}

// setConfigMap takes the ConfigMap, or that there is none.
func (e *Extension) setConfigMap(object *v1.ConfigMap) {
	e.events.setConfigMap(e.config.ConfigMap, object)
	e.readPorts(e.config.configMapOf(object))
	e.changed()
}

func (c Config) configMapOf(object *v1.ConfigMap) plan.ConfigMap {
	if object == nil {
		return plan.ConfigMap{Name: c.ConfigMap.String()}
	}
	return plan.ConfigMap{Name: c.ConfigMap.String(), Found: true, Data: object.Data}
}

func (e *Extension) readPorts(c plan.ConfigMap) {
	ports, problems := plan.ReadPorts(c, portsOf(e.config.Insecure))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ports, e.portProblems = ports, problems
}

func portsOf(addresses []netip.AddrPort) (ports []uint16) {
	for _, a := range addresses {
		ports = append(ports, a.Port())
	}
	return ports
}
