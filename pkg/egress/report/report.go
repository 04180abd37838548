package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attach"
	"github.com/openshift/origin-node/pkg/egress/balancer"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/neighbours"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/poolnode"
	"github.com/openshift/origin-node/pkg/egress/portguard"
	"github.com/openshift/origin-node/pkg/egress/sourceports"
	"github.com/openshift/origin-node/pkg/egress/steerer"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/egress/usage"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/wake"
)

// Config is what a Reporter has to know.
type Config struct {
	// NodeName is this node's, Version the program's.
	NodeName, Version string
	// Steering is whether packets are sent to other nodes, Transport how, for people.
	Steering  cluster.Steering
	Transport string
	// Proxier is how kube-proxy writes its rules.
	Proxier reconcile.Backend
	// PortSecurity: the sources of what pods send are to be checked.
	PortSecurity bool
	// LeaseNamespace has the Secret with the nodes' keys.
	LeaseNamespace string
	// Keys are those of this moment.
	Keys *holders.Keyring
	// FastPath is that of established flows; nil if there is none.
	FastPath *fastpath.Path
	State    *cluster.State
	Events   *tell.EventRecorder
	// Missing are the kinds of objects that are waited for, Served the IP families that the proxier serves; none before it is known.
	Missing  func() []string
	Served   func() []v1.IPFamily
	Families map[v1.IPFamily]Family
}

// Family is how the plans of an IP family come into the kernel.
type Family struct {
	Loop       *extension.Loop
	Reconciler *reconcile.Reconciler
	// Planned tells whether there was a sync, so that there is a plan.
	Planned func() bool
}

// Parts are those of egress SNAT that a Reporter asks.
type Parts struct {
	// Steerer is nil if nothing is steered, or as long as Watch has not begun; Pool, Balancer, SourcePorts and Attacher are nil where this
	// node has none.
	Steerer     *steerer.Steerer
	Pool        *poolnode.Part
	Balancer    *balancer.Balancer
	SourcePorts *sourceports.Allocator
	Attacher    *attach.Attacher
	Ports       *portguard.Guard
	Neighbours  *neighbours.Watcher
	Usage       *usage.Counter
}

// Reporter tells how the parts stand. Its methods may be called by several goroutines.
type Reporter struct {
	ctx    context.Context
	logger klog.Logger
	config Config
	asked  atomic.Pointer[Parts]
	// faults are what parts of this node cannot do.
	faults standingFaults
	// tellings numbers what people are told is wrong.
	tellings atomic.Uint64

	mu sync.Mutex // protects the following fields
	// changed is sent when the status changes.
	changed *wake.Broadcast
	// announced: the log says that the rules are in place.
	announced bool
}

// New returns a Reporter, of which nothing may be asked before SetParts. FaultsChanged tells nothing until then. Its metrics end with ctx, whose
// logger it uses.
func New(ctx context.Context, config Config) *Reporter {
	return &Reporter{
		ctx: ctx, logger: klog.FromContext(ctx), config: config, changed: wake.NewBroadcast(),
		faults: standingFaults{leases: map[holders.Access]error{}},
	}
}

// SetParts says which parts are to be asked from now on.
func (r *Reporter) SetParts(parts Parts) { r.asked.Store(&parts) }

func (r *Reporter) parts() *Parts { return r.asked.Load() }

// Summary tells the current state, in short.
type Summary struct {
	// Ready: the plan has been written, in front of all rules of the proxier's first sync,
	// which is over, in every IP family that the proxier serves.
	Ready bool
	// Missing are the kinds of objects that are waited for.
	Missing []string
	// DueSince is when the oldest change came that is not in the kernel, or of the pool that nobody has dealt with; zero if none, or
	// as long as objects are waited for: that is no fault that a restart would mend.
	DueSince time.Time
	// Numbers over both IP families, of this node's plan.
	Bindings, EgressIPs, Refusals int
	// Problems are what keeps the CNI plugin from doing its work, for people.
	Problems []string
}

// Brief is the summary as the node's status has it.
func (s Summary) Brief() extension.Summary {
	return extension.Summary{
		Name: "egress SNAT", Ready: s.Ready, Missing: s.Missing, DueSince: s.DueSince,
		Numbers: strings.Join(append([]string{fmt.Sprintf("%d bindings to %d egress IPs, %d refused", s.Bindings, s.EgressIPs, s.Refusals)}, s.Problems...), "; "),
	}
}

// Summary may be called at any time.
func (r *Reporter) Summary() Summary {
	summary := Summary{Ready: r.ready(), Missing: r.config.Missing(), Problems: r.parts().Attacher.Problems()}
	for name, f := range r.config.Families {
		summary.count(cluster.Planned{State: r.config.State, Family: name}.Numbers())
		if len(summary.Missing) == 0 {
			summary.DueSince = holders.Earlier(summary.DueSince, f.Loop.DueSince())
		}
	}
	summary.DueSince = holders.Earlier(summary.DueSince, r.parts().Pool.DueSince())
	return summary
}

func (r *Reporter) ready() bool {
	served := r.config.Served()
	return len(served) > 0 && !slices.ContainsFunc(served, func(name v1.IPFamily) bool {
		return !r.config.Families[name].Reconciler.Status().Ready
	})
}

// count adds the numbers of an IP family.
func (s *Summary) count(numbers plan.Numbers) {
	s.Bindings += numbers.Bindings
	s.EgressIPs += numbers.EgressIPs
	for _, n := range numbers.Refusals {
		s.Refusals += n
	}
}

// Changed returns a channel that is closed at the next change of the status.
func (r *Reporter) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed.Next()
}

// StatusChanged wakes those who watch the status.
func (r *Reporter) StatusChanged() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed.Send()
}

// SyncEnded tells what is wrong with the steering, says once that the rules are in place, and wakes those who watch the
// status.
func (r *Reporter) SyncEnded() {
	r.tellTroubles()
	if r.firstTimeReady() {
		summary := r.Summary()
		r.logger.Info("Egress SNAT rules are in place", "bindings", summary.Bindings, "egressIPs", summary.EgressIPs, "refusals", summary.Refusals)
	}
	r.StatusChanged()
}

func (r *Reporter) firstTimeReady() bool {
	ready := r.ready()
	r.mu.Lock()
	defer r.mu.Unlock()
	first := ready && !r.announced
	r.announced = r.announced || ready
	return first
}

// FaultsChanged tells people of faults: of steering, and of the CNI plugin.
func (r *Reporter) FaultsChanged() {
	if r.parts() == nil {
		return
	}
	r.tellTroubles()
	r.StatusChanged()
}

// tellTroubles tells people what is wrong now. It may be called by several goroutines at once: then what the last one finds counts.
func (r *Reporter) tellTroubles() {
	number := r.tellings.Add(1)
	r.config.Events.SetTroubles(number, r.troubles())
}
