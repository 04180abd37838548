package egress

import (
	"context"
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attach"
	"github.com/openshift/origin-node/pkg/egress/balancer"
	"github.com/openshift/origin-node/pkg/egress/clashes"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/neighbours"
	"github.com/openshift/origin-node/pkg/egress/poolnode"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/egress/portguard"
	"github.com/openshift/origin-node/pkg/egress/report"
	"github.com/openshift/origin-node/pkg/egress/sourceports"
	"github.com/openshift/origin-node/pkg/egress/steerer"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/egress/usage"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
)

// New returns an Extension that acts until ctx ends. Its rules stay then.
func New(ctx context.Context, config Config) *Extension {
	e := &Extension{
		ctx:      ctx,
		logger:   klog.LoggerWithName(klog.FromContext(ctx), "egress"),
		config:   config,
		state:    cluster.New(config.Config),
		gate:     extension.NewGate(kinds(config)...),
		families: map[v1.IPFamily]*ipFamily{},
		keys:     holders.NewKeyring(config.Ways.Keys),
		explain:  func(err error) error { return err },
	}
	for _, name := range cluster.Families {
		e.families[name] = newIPFamily(name, e.logger, config, func() { e.proxier.Repair() })
	}
	e.events = tell.NewEventRecorder(e.logger, config.Config, e.state)
	e.Reporter = report.New(klog.NewContext(ctx, e.logger), e.reportConfig())
	register() // what is counted before counts for nothing
	if !config.Steering.Off() {
		e.sourcePorts = sourceports.New(e.state, e.sourcePortsConfig())
	}
	e.attacher = e.newAttacher()
	e.ports = portguard.New(e.portGuardConfig())
	if config.FollowsMetalLB() {
		e.balancer = balancer.New(e.logger, e.balancerConfig())
	}
	if len(config.Pool.Networks) > 0 && !config.Steering.Off() {
		e.pool = poolnode.New(klog.NewContext(ctx, e.logger), e.state, e.poolConfig())
		e.pool.Keep() // also while the API server is waited for
	}
	e.clashes = clashes.New(e.clashesConfig())
	e.neighbours = neighbours.New(e.logger, e.neighboursConfig())
	e.usage = usage.New(e.usageConfig())
	e.Reporter.SetParts(e.parts())
	registerMetrics(e)
	return e
}

// kinds returns the kinds of objects that a plan needs.
func kinds(config Config) []string {
	kinds := slices.Clone(cluster.Kinds)
	if !config.Steering.Off() {
		kinds = append(kinds, cluster.LeasesKind)
	}
	if config.FollowsMetalLB() {
		kinds = append(kinds, cluster.Balancers)
	}
	return kinds
}

// registerMetrics adds the metrics to the registry that the proxy's endpoint serves. There
// is one Extension in a process; where tests make more, the last one counts.
func registerMetrics(e *Extension) {
	report.Collect(e.Reporter)
	syncPeriod.WithLabelValues().Set(e.config.SyncPeriod.Seconds())
	for _, kind := range e.gate.Missing() {
		waitingForObjects.WithLabelValues(kind).Set(1)
	}
}

// What each part is given to know, to ask and to tell. Watch sets the Steerer, and how errors are explained, after New
// has made the other parts: those are asked for when they are needed.

// reportConfig is that of what tells people the current state.
func (e *Extension) reportConfig() report.Config {
	families := map[v1.IPFamily]report.Family{}
	for name, f := range e.families {
		families[name] = report.Family{Loop: f.loop, Reconciler: f.reconciler, Planned: f.planned.Load}
	}
	return report.Config{
		NodeName: e.config.NodeName, Version: e.config.Version, Steering: e.config.Steering, Transport: e.config.Transport(), Proxier: e.config.Proxier,
		PortSecurity: e.config.PortSecurity.Enabled, LeaseNamespace: e.config.Ways.LeaseNamespace, Keys: e.keys, FastPath: e.config.Ways.Kernel.Fast,
		State: e.state, Events: e.events, Missing: e.gate.Missing, Families: families,
		Served: func() []v1.IPFamily {
			if e.proxier == nil {
				return nil
			}
			return e.proxier.Served()
		},
	}
}

// parts are those that the Reporter asks.
func (e *Extension) parts() report.Parts {
	return report.Parts{
		Steerer: e.steerer, Pool: e.pool, Balancer: e.balancer, SourcePorts: e.sourcePorts, Attacher: e.attacher,
		Ports: e.ports, Neighbours: e.neighbours, Usage: e.usage,
	}
}

// clashesConfig is that of what ends connections that have got the ports of others.
func (e *Extension) clashesConfig() clashes.Config {
	return clashes.Config{
		EgressIPs: e.state.EgressIPs,
		Here:      func() map[netip.Addr]bool { return e.steerer.Here() },
		Blocks:    func(name v1.IPFamily) []kernel.Block { return e.families[name].reconciler.Written().Steering.Blocks },
	}
}

// usageConfig is that of what counts flows.
func (e *Extension) usageConfig() usage.Config {
	return usage.Config{
		NodeName: e.config.NodeName, Steered: !e.config.Steering.Off(), Fast: e.Reporter.FastUsage,
		Written: func(name v1.IPFamily) kernel.Desired { return e.families[name].reconciler.Written() },
		Ports:   func() []portblocks.Assignment { return e.sourcePorts.Assignments() },
	}
}

// neighboursConfig is that of what looks for rules of other software.
func (e *Extension) neighboursConfig() neighbours.Config {
	config := neighbours.Config{
		SourceNATPriority: func(name v1.IPFamily) int32 { return e.families[name].reconciler.SourceNATPriority() },
		LongestRest:       e.config.SyncPeriod / 2, Marked: e.Reporter.MarksUsed, ChangedNAT: e.Reporter.FaultsChanged,
	}
	if !e.config.Steering.Off() {
		config.MarkMask = e.config.Ways.Kernel.MarkMask
	}
	return config
}

// balancerConfig is that of what follows MetalLB.
func (e *Extension) balancerConfig() balancer.Config {
	return balancer.Config{
		NodeName: e.config.NodeName, Namespace: e.config.Ways.MetalLBNamespace, Pool: len(e.config.Pool.Networks) > 0,
		State: e.state, WaitsFor: e.gate.WaitsFor,
		Announced: func(now []netip.Addr, next map[netip.Addr]bool) { e.steerer.SetAnnounced(now, next) },
		Reserved:  func() { e.changed(true, time.Now()) }, Known: func() { e.known(cluster.Balancers) },
		Explain: func(err error) error { return e.explain(err) },
	}
}

// poolConfig is that of this node's part in the pool.
func (e *Extension) poolConfig() poolnode.Config {
	return poolnode.Config{
		Membership: e.config.Membership, Running: &e.running,
		Event:       e.events.Tell,
		RequestSync: func() { e.changed(true, time.Now()) },
		Await: func(ctx context.Context, family v1.IPFamily) {
			if f := e.families[family]; f != nil {
				_ = f.loop.Await(ctx)
			}
		},
		Reserved: func() map[netip.Addr]bool { return e.balancer.Reserved() },
		Keys:     e.keys.For("pool"), NoKey: e.Reporter.NoKey,
		Missing: e.gate.Missing,
	}
}

// sourcePortsConfig is that of the source ports of this node's pods, and of others'.
func (e *Extension) sourcePortsConfig() sourceports.Config {
	return sourceports.Config{
		BlockSize: e.config.PortBlocks, LeaseNamespace: e.config.Ways.LeaseNamespace, Journal: e.config.Journal, Logger: e.logger,
		Attachments: func() sourceports.Attachments { return e.attacher },
		RequestSync: func() { e.changed(true, time.Now()) }, FaultsChanged: e.Reporter.FaultsChanged,
		WarnPod: e.events.WarnPod, WarnNode: e.events.Warn, TellNode: e.events.Tell,
		Explain: func(err error) error { return e.explain(err) },
	}
}

// newAttacher returns what answers the CNI plugin. It gives pods their source ports if they get blocks.
func (e *Extension) newAttacher() *attach.Attacher {
	node := attach.Node{
		Missing: e.gate.Missing, Failure: e.lastFailure, Await: e.awaitSyncs, Changed: e.changed, FaultsChanged: e.Reporter.FaultsChanged,
		Via:      func(egressIP netip.Addr) string { return e.steerer.Via(egressIP) },
		Event:    e.events.Tell,
		Explain:  func(err error) error { return e.explain(err) },
		Attached: func(ctx context.Context) { e.ports.Check(ctx) },
	}
	givesBlocks := e.sourcePorts != nil && e.config.PortBlocks > 0
	if givesBlocks {
		node.Assign, node.Recorded, node.Follow, node.TakeLocalPorts = e.sourcePorts.Assign, e.sourcePorts.Recorded, e.sourcePorts.Follow, e.sourcePorts.TakeLocalPorts
	}
	attacher := attach.New(klog.NewContext(e.ctx, e.logger), e.config.Attaching, e.state, node)
	if !givesBlocks && e.config.Steering.Unavailable == nil {
		attacher.ForgetPorts() // what nobody looks after now is not the pods' when it is switched on again
	}
	return attacher
}

// newSteerer returns what knows where the egress IPs are.
func (e *Extension) newSteerer(ctx context.Context, client kubernetes.Interface, outer v1.IPFamily) *steerer.Steerer {
	return steerer.New(ctx, e.state, steerer.Config{
		Kernel: e.config.Ways.Kernel, Outer: outer, Keys: e.keys, Running: &e.running,
		Leases: holders.Leases{
			Client: client, Namespace: e.config.Ways.LeaseNamespace, Configuration: e.config.Published,
			Explain: e.explain, Failing: e.leasesFail, Claims: e.sourcePorts.SetClaims,
		},
		Ports: e.sourcePorts, AsksBlocks: e.config.PortBlocks > 0, Balanced: e.config.FollowsMetalLB(),
		RequestSync: func() { e.changed(true, time.Now()) }, Wake: e.wake, LeasesKnown: func() { e.known(cluster.LeasesKind) },
		Came: e.clashes.Expect, Unannounced: e.Reporter.AnnouncerFails,
	})
}

// leasesFail is told why Leases cannot be used, or with nil that they can.
func (e *Extension) leasesFail(what holders.Access, err error) {
	e.Reporter.LeasesFail(what, err)
	if what == holders.Reading && holders.IsRefused(err) {
		e.steerer.LeasesRefused()
	}
}

// watcher follows what the proxier does not tell of, but Nodes.
func (e *Extension) watcher() *cluster.Watcher {
	return &cluster.Watcher{
		State: e.state, Gate: e.gate, Explain: e.explain, Known: e.known,
		Changed: e.changed, ServiceChanged: e.serviceChanged, EndpointsChanged: e.endpointsChanged,
	}
}

// portGuardConfig is that of what checks the sources of what pods send.
func (e *Extension) portGuardConfig() portguard.Config {
	return portguard.Config{
		Enabled: e.config.PortSecurity.Enabled, Unavailable: e.config.PortSecurity.Unavailable,
		Keeper: portsecurity.Config{
			Own: e.ownAddresses, Told: e.attacher.Behind, Away: e.state.Away, Period: e.config.SyncPeriod / 2, Changed: e.Reporter.FaultsChanged, Placed: e.placed,
		},
	}
}

// ownAddresses returns this node's addresses, by which other nodes reach it.
func (e *Extension) ownAddresses() (own []netip.Addr) {
	for _, name := range cluster.Families {
		if address := e.state.Primary(e.config.NodeName, name); address.IsValid() {
			own = append(own, address)
		}
	}
	return own
}

// placed tells the fast path behind which interfaces pods are.
func (e *Extension) placed(grants portsecurity.Grants) {
	if e.config.Ways.Kernel.Fast == nil {
		return
	}
	places := map[netip.Addr]int{}
	for link, addresses := range grants {
		for _, address := range addresses {
			places[address] = link.Index
		}
	}
	e.config.Ways.Kernel.Fast.Place(places)
}
