package programming

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/proxy"

	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/manifests"
)

// patience bounds every single sync.
const patience = 2 * time.Minute

// node is the extension with objects.
type node struct {
	spec
	extension *egress.Extension
	host      *extension.Host
	// away has the numbers of the Services with external IPs whose first pod is on another node.
	away []int
	// changed are the EndpointSlices that are not as at the beginning, by the numbers of their Services.
	changed map[int]*discovery.EndpointSlice
	// changes is how many pods were replaced; claims is how often a Service got or lost its second external IP.
	changes, claims int
}

// newNode makes the extension and returns when it knows all but Services and EndpointSlices.
func newNode(ctx context.Context, s spec) (*node, error) {
	n := &node{spec: s, changed: map[int]*discovery.EndpointSlice{}}
	for i := 0; i < s.Size.Services; i += s.Size.Every {
		if *s.Size.Slice(i).Endpoints[0].NodeName != objects.Node(0) {
			n.away = append(n.away, i)
		}
	}
	clients, err := serve(ctx, s.Manifests)
	if err != nil {
		return nil, err
	}
	n.extension = egress.New(ctx, egress.Config{
		Config: cluster.Config{
			NodeName: objects.Node(0), Scope: s.Scope, ClusterCIDRs: []netip.Prefix{lab.ClusterV4}, ExcludeNodes: true,
		},
		Backend: s.Backend, Proxier: s.Backend,
		// No time for waiting, and no looks at the kernel but after changes.
		MinSyncPeriod: time.Millisecond, SyncPeriod: time.Hour,
	})
	n.host = extension.NewHost(ctx, n.extension)
	n.host.Wrap(idleProxier{}, v1.IPv4Protocol)
	clients.Nodes = extension.NewNodes(clients.Kube, func(err error) error { return err }, nil)
	n.extension.Watch(clients)
	go clients.Nodes.RunWithContext(ctx)
	n.host.SyncLoop()
	for deadline := time.Now().Add(patience); len(n.extension.Summary().Missing) > 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("still missing after %s: %v", patience, n.extension.Summary().Missing)
		}
	}
	return n, nil
}

// serve returns clients of an API server for the folder.
func serve(ctx context.Context, dir string) (clients egress.Clients, err error) {
	source, err := manifests.Open(ctx, dir)
	if err != nil {
		return clients, err
	}
	kubeconfig, remove, err := source.Serve(ctx)
	if err != nil {
		return clients, err
	}
	defer remove()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return clients, err
	}
	if clients.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return clients, err
	}
	clients.Config, err = configclient.NewForConfig(config)
	return clients, err
}

// prepare returns the function that executes an order once.
func (n *node) prepare(ctx context.Context, o order) (do func(k int) error, err error) {
	switch o.Do {
	case install:
		return n.install(ctx), nil
	case elsewhere, moved:
		return n.replace(ctx, o), nil
	case same:
		return func(int) error { return n.same(ctx) }, nil
	}
	return nil, errors.New("unknown order")
}

func (n *node) install(ctx context.Context) func(int) error {
	services, endpoints := make([]*v1.Service, n.Size.Services), make([]*discovery.EndpointSlice, n.Size.Services)
	for i := range services {
		services[i], endpoints[i] = n.service(i), n.Size.Slice(i)
	}
	n.host.AfterSync(v1.IPv4Protocol, true)
	return func(int) error {
		for i := range services {
			n.host.OnServiceAdd(services[i])
			n.host.OnEndpointSliceAdd(endpoints[i])
		}
		n.host.OnServiceSynced()
		n.host.OnEndpointSlicesSynced()
		return n.settled(ctx)
	}
}

// service is one with the fields that an API server sets, as far as they matter here.
func (n *node) service(i int) *v1.Service {
	service := n.Size.Service(i)
	service.Spec.ClusterIP = "172.30.0.1"
	return service
}

func (n *node) replace(ctx context.Context, o order) func(k int) error {
	type update struct{ from, to *discovery.EndpointSlice }
	updates := make([]update, o.Count)
	for k := range updates {
		at := n.changes * 7919 % len(n.away) // all in turn, but not side by side
		i, to := n.away[at], objects.Node(1)
		if o.Do == moved {
			to = objects.Node(0)
			n.away = slices.Delete(n.away, at, at+1)
		}
		from := n.changed[i]
		if from == nil {
			from = n.Size.Slice(i)
		}
		updates[k] = update{from, n.Size.Replace(from, n.changes, to)}
		n.changed[i] = updates[k].to
		n.changes++
	}
	return func(k int) error {
		n.host.OnEndpointSliceUpdate(updates[k].from, updates[k].to)
		return n.settled(ctx)
	}
}

// same gives a Service a second external IP, or takes it away, and waits for the sync: the Service owns the address,
// but no pod leaves from it.
func (n *node) same(ctx context.Context) error {
	services := [2]*v1.Service{n.service(0), n.service(0)}
	services[1].Spec.ExternalIPs = append(services[1].Spec.ExternalIPs, "203.0.113.1")
	synced := n.extension.Changed()
	n.host.OnServiceUpdate(services[n.claims%2], services[1-n.claims%2])
	n.claims++
	select {
	case <-synced:
	case <-time.After(patience):
		return fmt.Errorf("no sync within %s", patience)
	}
	return n.settled(ctx)
}

// settled returns when the kernel has all that the extension was told.
func (n *node) settled(ctx context.Context) error {
	if n.idle() {
		return nil // at once, and at no cost: the change was not about this node
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		changed := n.extension.Changed()
		if n.idle() {
			return nil
		}
		select {
		case <-changed: // a moment later nothing is due
			time.Sleep(50 * time.Microsecond)
		case <-time.After(10 * time.Millisecond): // it was a longer moment
		case <-ctx.Done():
			return fmt.Errorf("the rules are not in place within %s: %+v", patience, n.extension.Summary())
		}
	}
}

func (n *node) idle() bool {
	summary := n.extension.Summary()
	return summary.Ready && summary.DueSince.IsZero()
}

// idleProxier is a proxier that does nothing.
type idleProxier struct{ proxy.Provider }

func (idleProxier) OnServiceAdd(*v1.Service)                            {}
func (idleProxier) OnServiceUpdate(_, _ *v1.Service)                    {}
func (idleProxier) OnServiceSynced()                                    {}
func (idleProxier) OnEndpointSliceAdd(*discovery.EndpointSlice)         {}
func (idleProxier) OnEndpointSliceUpdate(_, _ *discovery.EndpointSlice) {}
func (idleProxier) OnEndpointSlicesSynced()                             {}
func (idleProxier) OnTopologyChange(map[string]string)                  {}
func (idleProxier) OnServiceCIDRsChanged([]string)                      {}
func (idleProxier) Sync()                                               {}
func (idleProxier) SyncLoop()                                           {}
