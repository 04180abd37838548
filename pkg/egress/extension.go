package egress

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attach"
	"github.com/openshift/origin-node/pkg/egress/balancer"
	"github.com/openshift/origin-node/pkg/egress/clashes"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/neighbours"
	"github.com/openshift/origin-node/pkg/egress/poolnode"
	"github.com/openshift/origin-node/pkg/egress/portguard"
	"github.com/openshift/origin-node/pkg/egress/report"
	"github.com/openshift/origin-node/pkg/egress/sourceports"
	"github.com/openshift/origin-node/pkg/egress/steerer"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/egress/usage"
	"github.com/openshift/origin-node/pkg/extension"
)

// Extension keeps the egress rules of a node, beside the proxier of an [extension.Host].
type Extension struct {
	ctx    context.Context
	logger klog.Logger
	config Config
	state  *cluster.State
	events *tell.EventRecorder
	// Reporter tells how all parts stand.
	*report.Reporter
	gate *extension.Gate
	// steerer is nil if nothing is steered; Watch sets it.
	steerer *steerer.Steerer
	// clashes ends connections that have got the ports of others.
	clashes *clashes.Ender
	// usage counts the flows of the egress IPs.
	usage *usage.Counter
	// neighbours looks for rules of other software that do not go together with ours.
	neighbours *neighbours.Watcher
	// keys are those by which nodes know each other.
	keys *holders.Keyring
	// pool is nil if this program puts no egress IPs on nodes.
	pool *poolnode.Part
	// balancer is nil if nothing is steered, for each pod leaves from where it runs then, or if MetalLB is not followed.
	balancer *balancer.Balancer
	// sourcePorts is nil if nothing is steered.
	sourcePorts *sourceports.Allocator
	// attacher is nil if the CNI plugin is not answered.
	attacher *attach.Attacher
	// ports checks the sources of what pods send.
	ports *portguard.Guard
	// families has both IP families. One that no proxier serves has a plan but writes nothing.
	families map[v1.IPFamily]*ipFamily
	proxier  extension.Proxier
	running  sync.WaitGroup

	// explain is that of [Clients]; Watch sets it.
	explain func(error) error
}

var (
	_ extension.Extension       = &Extension{}
	_ extension.ServiceFollower = &Extension{}
)

// Attach is part of [extension.Extension].
func (e *Extension) Attach(proxier extension.Proxier) {
	e.proxier = proxier
	e.state.SetServed(proxier.Served())
}

// ProxierSynced is part of [extension.Extension]: it leaves a note in an atomic, and never waits.
func (e *Extension) ProxierSynced(name v1.IPFamily) {
	e.families[name].reconciler.ProxierSynced()
	e.families[name].loop.Wake()
}

// Wait returns when all that Watch has begun has ended.
func (e *Extension) Wait() {
	e.running.Wait()
	if err := e.sourcePorts.Close(); err != nil {
		e.logger.Error(err, "The journal of source ports may lack its last lines")
	}
}

// changed asks for a sync if changed, for an object that changed at a time.
func (e *Extension) changed(changed bool, at time.Time) {
	if !changed {
		return
	}
	for _, f := range e.families {
		f.loop.Changed(at)
	}
}

// wake has both families sync, for no object that changed.
func (e *Extension) wake() {
	for _, f := range e.families {
		f.loop.Wake()
	}
}

// known tells that all objects of a kind are known. What came before the last of them was not due.
func (e *Extension) known(kind string) {
	if kind == cluster.Nodes {
		e.sourcePorts.NodesKnown()
	}
	opens := e.gate.Known(kind)
	waitingForObjects.WithLabelValues(kind).Set(0)
	if !opens {
		return
	}
	for _, f := range e.families {
		f.loop.Restart()
	}
	e.attacher.ClaimsMayDiffer()
}

// SetService is part of [extension.ServiceFollower].
func (e *Extension) SetService(service *v1.Service) {
	e.balancer.SetService(service) // so that the pool leaves it alone from the first sync on
	e.serviceChanged(e.state.SetService(service))
}

// serviceChanged asks for a sync, and has the CNI plugin's pods predicted anew, if what a Service has or claims has changed.
func (e *Extension) serviceChanged(changed bool) {
	e.changed(changed, time.Now())
	if changed {
		e.attacher.ClaimsMayDiffer()
	}
}

// DeleteService is part of [extension.ServiceFollower].
func (e *Extension) DeleteService(service *v1.Service) {
	e.serviceChanged(e.state.DeleteService(service)) // another one may have its name now
	e.balancer.DeleteService(service)
}

// ServicesKnown is part of [extension.ServiceFollower].
func (e *Extension) ServicesKnown() {
	e.known(cluster.Services)
	e.balancer.ServicesKnown()
}

// SetEndpointSlice is part of [extension.ServiceFollower].
func (e *Extension) SetEndpointSlice(slice *discovery.EndpointSlice) {
	changed, err := e.state.SetSlice(slice)
	if err != nil {
		e.logger.Error(err, "EndpointSlice has addresses that cannot be bound", "endpointSlice", klog.KObj(slice))
	}
	e.endpointsChanged(changed, changeTime(slice))
}

// DeleteEndpointSlice is part of [extension.ServiceFollower].
func (e *Extension) DeleteEndpointSlice(slice *discovery.EndpointSlice) {
	e.endpointsChanged(e.state.DeleteSlice(slice), time.Now())
}

// EndpointSlicesKnown is part of [extension.ServiceFollower].
func (e *Extension) EndpointSlicesKnown() { e.known(cluster.SlicesKind) }

// endpointsChanged asks for a sync if it is about this node's plans. Those who watch the status see
// the whole cluster.
func (e *Extension) endpointsChanged(changed cluster.Effect, at time.Time) {
	e.changed(changed == cluster.Here, at)
	if changed == cluster.Elsewhere {
		e.Reporter.StatusChanged()
	}
}

// changeTime returns when what an EndpointSlice tells of came about, as its controller
// says, or now.
func changeTime(slice *discovery.EndpointSlice) time.Time {
	now := time.Now()
	at, err := time.Parse(time.RFC3339Nano, slice.Annotations[v1.EndpointsLastChangeTriggerTime])
	if err != nil || at.Before(started) || at.After(now) {
		return now // not said, before this process could act, or another clock's
	}
	return at
}

var started = time.Now()
