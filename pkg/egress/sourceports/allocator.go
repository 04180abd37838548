package sourceports

import (
	"context"
	"fmt"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/journal"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/wake"
)

// Reasons of Events about pods' source ports.
const (
	portsShared     plan.Reason = "EgressPortsShared"
	portBlockLost   plan.Reason = "EgressPortBlockLost"
	portsUnrecorded plan.Reason = "EgressPortsNotRecorded"
	portBlockClash  plan.Reason = "EgressPortBlockClash"
	invalidBlock    plan.Reason = "InvalidEgressPortBlock"
	portBlockFull   plan.Reason = "EgressPortBlockFull"
)

// Config is what an Allocator has to know, to ask and to tell. None of its functions may block but those of Attachments, and all are called
// without any lock. With BlockSize alone, or nothing, an Allocator answers for plans that nobody brings into a kernel.
type Config struct {
	// BlockSize is the usual number of ports in a block; 0: this node gives none.
	BlockSize int
	// LeaseNamespace is that of the Leases in which nodes claim blocks.
	LeaseNamespace string
	// Journal is where it is written down which pod has which ports, if blocks are given.
	Journal Journal
	Logger  klog.Logger
	// Attachments returns those of this node. It is not called before Assign, or Run.
	Attachments func() Attachments
	// RequestSync asks for a sync, for pods have other ports. FaultsChanged is told that Fault returns something else.
	RequestSync, FaultsChanged func()
	// WarnPod, WarnNode and TellNode tell something about a pod of this node, or about this node, once; the first two what is wrong.
	WarnPod            func(namespace, name, uid string, reason plan.Reason, note string)
	WarnNode, TellNode func(reason plan.Reason, note string)
	// Explain adds to an error of the API server what an operator needs to act on it.
	Explain func(error) error
}

// Attachments are those of this node's pods, by the IDs of their containers.
type Attachments interface {
	// All returns all of them.
	All() []attachments.Attachment
	// SetPorts notes what a pod has, SetWidened that it can use its second block, SetRecorded that the end of what it had is written down.
	SetPorts(id string, ports []attachments.Ports, blockSize int) error
	SetWidened(id string) error
	SetRecorded(id string) error
}

// Allocator gives this node's pods blocks of source ports of their egress IPs, and knows those of other nodes' pods. Its methods may be
// called by several goroutines. Those of a nil one do nothing. It must not be nil for Assign, Recorded, Follow, TakeLocalPorts and
// TakeLease. Neither the State nor the Keeper is asked under its lock.
type Allocator struct {
	config Config
	state  *cluster.State
	keeper *portblocks.Keeper
	// journal is nil if nothing is written down, or it could not be opened.
	journal *journal.Journal
	// recorder writes down who has which ports; nil: nobody does. Resume tells it before all else who has some when this process begins;
	// nil: it does not ask.
	recorder portblocks.Recorder
	resume   func(context.Context, []portblocks.Assignment) error
	resumed  sync.Once
	// beingRecorded has what beginRecording has begun.
	beingRecorded sync.WaitGroup
	// wake says that pods may be to have other ports.
	wake wake.Signal

	mu sync.Mutex
	// pods are those of this node that run and have ports, late those that have started without any: they share if they are bound later. Each
	// change of pods is another map.
	pods map[string]attachments.Attachment
	late map[string]bool
	// followed is the number of the attachments that were taken last; 0: none yet.
	followed uint64
	// recording are those whose ports are being written down, each with what is closed then.
	recording map[string]chan struct{}
	// full is about pods whose blocks are in use.
	full fullBlocks
	// others are what other nodes say. heard grows with that, generation when it, or what this node's pods have, may count otherwise.
	others            *portblocks.Map
	heard, generation uint64
	// revisions are those of the plans that pods' ports follow.
	revisions map[v1.IPFamily]uint64
	// blocks are those of the last sync, of each IP family that has had one.
	blocks map[v1.IPFamily]*blocksOf
	// mine is what this node's pods have, as of a moment.
	mine ownPorts
	// clashing is what the log says of two pods with the same port, in no more than so many lines. failing is why blocks cannot be claimed.
	clashing map[v1.IPFamily]map[string]bool
	lines    flowcontrol.PassiveRateLimiter
	failing  error
	tooMany  bool
	// unsaid is what is logged without the lock.
	unsaid []func()
}

// New returns the Allocator of the node of a State. It claims nothing before Run, and opens the journal at once. One that cannot be opened
// keeps no pod from running: that is told with each that is not written down.
func New(state *cluster.State, config Config) *Allocator {
	al := &Allocator{
		config: config, state: state, wake: wake.New(), pods: map[string]attachments.Attachment{}, recording: map[string]chan struct{}{}, others: portblocks.NewMap(),
		revisions: map[v1.IPFamily]uint64{}, blocks: map[v1.IPFamily]*blocksOf{}, late: map[string]bool{}, clashing: map[v1.IPFamily]map[string]bool{},
		full: newFullBlocks(), lines: flowcontrol.NewTokenBucketPassiveRateLimiter(1./60, 20),
	}
	al.keeper = portblocks.NewKeeper(portblocks.Config{
		Namespace: config.LeaseNamespace, NodeName: state.Config.NodeName,
		Explain: func(err error) error { return holders.Explain(err, config.Explain) },
		Changed: func() {
			if al.mayDiffer() {
				config.RequestSync()
			}
		},
		Failing: func(err error) {
			al.mu.Lock()
			al.failing = err
			al.mu.Unlock()
			config.FaultsChanged()
		},
	})
	if config.BlockSize > 0 && config.Journal.Folder != "" {
		al.keepJournal(config.Journal)
	}
	return al
}

// Run begins to claim blocks, and to let pods' ports follow what happens, until ctx ends.
func (al *Allocator) Run(ctx context.Context, running *sync.WaitGroup, client kubernetes.Interface) {
	if al == nil {
		return
	}
	running.Go(func() { al.keeper.Run(ctx, client) })
	running.Go(func() { al.wake.Follow(ctx, func() { al.reconcile(ctx) }) })
	if al.config.BlockSize > 0 {
		running.Go(func() { al.watchFull(ctx) })
	}
}

// SetClaims takes a Lease in which nodes claim blocks of an egress IP, or takes note that it was deleted.
func (al *Allocator) SetClaims(lease *coordinationv1.Lease, deleted bool) {
	if al == nil {
		return
	}
	if deleted {
		al.keeper.DeleteLease(lease.Name)
		return
	}
	al.keeper.SetLease(lease)
}

// sayLater has something said without the lock, which must be held.
func (al *Allocator) sayLater(say func()) {
	al.unsaid = append(al.unsaid, say)
	al.wake.Send()
}

// Synced notes that a sync of an IP family is over: what its plan says of pods is followed. After a regular one all is looked at anew.
func (al *Allocator) Synced(family v1.IPFamily, regular bool) {
	if al == nil {
		return
	}
	revision := al.state.Revision(family)
	al.mu.Lock()
	changed := regular || revision != al.revisions[family]
	al.revisions[family] = revision
	if regular {
		al.generation++
	}
	al.mu.Unlock()
	if changed {
		al.wake.Send()
	}
}

// NodesKnown says that all Nodes have been told.
func (al *Allocator) NodesKnown() {
	if al != nil {
		al.keeper.NodesKnown()
	}
}

// Fault returns why blocks cannot be claimed; nil if they can, or need not.
func (al *Allocator) Fault() error {
	if al == nil || al.config.BlockSize == 0 {
		return nil
	}
	al.mu.Lock()
	defer al.mu.Unlock()
	return al.failing
}

// Troubles returns what is wrong with what Services say of blocks; nothing if this node gives none.
func (al *Allocator) Troubles() map[plan.Service]tell.Trouble {
	if al == nil || al.config.BlockSize == 0 {
		return nil
	}
	troubles := map[plan.Service]tell.Trouble{}
	for service, wrong := range al.state.WrongPortBlocks() {
		troubles[service] = tell.Trouble{Reason: invalidBlock, Note: fmt.Sprintf("%s; until it is corrected its pods get blocks of %d ports", wrong, al.config.BlockSize)}
	}
	return troubles
}
