package egress

import (
	"context"
	"time"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/clashes"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/keys"
	"github.com/openshift/origin-node/pkg/egress/shutdown"
	"github.com/openshift/origin-node/pkg/extension"
)

// Clients reach the API server.
type Clients struct {
	Kube kubernetes.Interface
	// Claims claims blocks of source ports, with a limit of requests of its own: pods that start wait for them.
	Claims kubernetes.Interface
	Config configclient.Interface
	// Dynamic is for objects of kinds that a cluster need not have.
	Dynamic dynamic.Interface
	// Nodes is of [extension.NewNodes]; it runs after Watch.
	Nodes cache.SharedIndexInformer
	// Explain adds to an error of theirs what an operator needs to act on it.
	Explain func(error) error
	// Outer is the IP family in which the nodes reach each other.
	Outer v1.IPFamily
}

// Watch begins to watch what the proxier does not, and to write Events. Call it once,
// before the proxier's SyncLoop.
func (e *Extension) Watch(clients Clients) {
	e.explain = clients.Explain
	e.followHolders(clients.Kube, clients.Claims, clients.Outer)
	e.balancer.Follow(e.ctx, &e.running, clients.Dynamic, clients.Kube.Discovery())
	e.running.Go(func() { e.ports.Run(klog.NewContext(e.ctx, e.logger)) })
	e.running.Go(func() { e.neighbours.Run(e.ctx) })
	e.attacher.Run(&e.running, clients.Kube)
	// What Nodes registered with is known before the first of them.
	e.watcher().Run(klog.NewContext(e.ctx, e.logger), &e.running, clients.Kube, clients.Config)
	e.followNodes(clients.Nodes)
	e.running.Go(func() { e.events.Run(e.ctx, clients.Kube.CoreV1()) })
}

// Refused is told, before Watch, what the API server answers this node while it is waited for.
func (e *Extension) Refused(err error) {
	if e.pool != nil {
		e.pool.Refused(err)
	}
}

// followHolders begins to follow who holds the egress IPs.
func (e *Extension) followHolders(client, claims kubernetes.Interface, outer v1.IPFamily) {
	ctx := klog.NewContext(e.ctx, e.logger)
	clashes.EndFormer(ctx)
	if e.config.Steering.Off() {
		return
	}
	e.steerer = e.newSteerer(ctx, client, outer)
	e.events.Here = e.steerer.Here
	e.Reporter.SetParts(e.parts())
	if e.pool != nil {
		e.pool.Start(e.steerer)
		e.running.Go(func() { shutdown.Delay(ctx, e.pool.GiveAllAway, e.pool.GoOn) })
	}
	e.sourcePorts.Run(ctx, &e.running, claims)
	e.shareKeys(ctx, client) // before anything is announced
	e.steerer.Run(ctx)
	e.running.Go(func() { e.clashes.Run(ctx) })
}

// shareKeys has this node share keys with the others, unless it has those of a file or needs none, and follows when there are
// others.
func (e *Extension) shareKeys(ctx context.Context, client kubernetes.Interface) {
	if len(e.config.Ways.Keys) > 0 || e.config.Ways.Kernel.AnnouncePort == 0 && e.pool == nil {
		return
	}
	// The file is read before anything is announced.
	keeper := keys.New(ctx, keys.Config{
		Client: client, Namespace: e.config.Ways.LeaseNamespace, File: e.config.Ways.KeptKeys,
		Ring: e.keys, Explain: e.explain, Failing: e.Reporter.KeysFail,
	})
	e.running.Go(func() { keeper.Run(ctx) })
	e.running.Go(func() {
		for {
			changed := e.keys.Changed()
			e.changed(true, time.Now()) // the pool may wait for the first key
			e.Reporter.FaultsChanged()
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	})
}

func (e *Extension) followNodes(informer cache.SharedIndexInformer) {
	extension.Follow(e.ctx, informer, extension.Handler(e.setNode, func(node cache.ObjectName) {
		changed := e.state.DeleteNode(node.Name)
		e.steerer.DeleteNode(node.Name)
		e.changed(changed, time.Now())
		e.changed(e.pool.DeleteNode(node.Name), time.Now())
	}), func() { e.known(cluster.Nodes) })
}

func (e *Extension) setNode(node *v1.Node) {
	changed := e.state.SetNode(node)
	e.steerer.SetNode(node)
	e.changed(changed, time.Now())
	e.changed(e.pool.SetNode(node), time.Now())
}
