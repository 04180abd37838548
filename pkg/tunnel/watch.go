package tunnel

import (
	"fmt"
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
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

// Watch begins to follow Nodes, which run after it, and the ConfigMap, and to write Events. Explain adds to an error of
// the client what an operator needs to act on it. Call it once, before the proxier's SyncLoop.
func (e *Extension) Watch(client kubernetes.Interface, nodes cache.SharedIndexInformer, explain func(error) error) {
	e.recorder = extension.NewRecorder(klog.NewContext(e.ctx, e.logger), client.CoreV1(), eventSource, e.config.NodeName)
	gone := func(node cache.ObjectName) { e.deleteNode(node.Name) }
	extension.Follow(e.ctx, nodes, extension.Handler(e.setNode, gone), func() { e.gate.Known(nodesKind) })
	if e.config.ConfigMap.Name != "" {
		e.setConfigMap(nil) // as long as there is none
		e.running.Go(func() { e.watchConfigMap(client, explain) })
	}
}

// watchConfigMap returns when the context ends. A ConfigMap that may not be read is waited for no longer: the kubelet's
// ports do not need it.
func (e *Extension) watchConfigMap(client kubernetes.Interface, explain func(error) error) {
	informer := coreinformers.NewFilteredConfigMapInformer(client, e.config.ConfigMap.Namespace, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, e.config.ConfigMap.Name).String()
	})
	known := func() { e.gate.Known(configMapKind) }
	extension.Explain(informer, func(err error) error {
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			known()
		}
		if apierrors.IsForbidden(err) { // the right is not in rbac.yaml, to which other errors lead
			return fmt.Errorf("%w; apply images/node/rbac-tunnel.yaml", err)
		}
		return explain(err)
	})
	extension.Follow(e.ctx, informer, extension.Handler(e.setConfigMap, func(cache.ObjectName) { e.setConfigMap(nil) }), known)
	informer.RunWithContext(e.ctx)
}

// nodeOf returns what a plan needs of a Node.
func (c Config) nodeOf(node *v1.Node) plan.Node {
	n := plan.Node{Name: node.Name}
	n.Agent = slices.ContainsFunc(c.Labels, func(l Label) bool {
		value, has := node.Labels[l.Key]
		return has && value == l.Value
	})
	n.Ready = extension.IsReady(node)
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
	e.mu.Lock()
	e.configMap = v1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: e.config.ConfigMap.Namespace, Name: e.config.ConfigMap.Name}
	if object != nil {
		e.configMap.UID = object.UID
	}
	e.mu.Unlock()
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
