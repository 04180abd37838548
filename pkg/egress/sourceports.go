package egress

import (
	"context"
	"fmt"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
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

// sourcePortsConfig is what sourcePorts need to know, and what they ask and tell. Those that tell must not block, and are called without
// any lock.
type sourcePortsConfig struct {
	// BlockSize is the usual number of ports in a block; 0: this node gives none.
	BlockSize int
	// LeaseNamespace is that of the Leases in which nodes claim blocks.
	LeaseNamespace string
	// Journal is where it is written down which pod has which ports, if blocks are given.
	Journal Journal
	Logger  klog.Logger
	// Attachments returns those of this node. It is not called before a pod is assigned ports, or run is.
	Attachments func() portAttachments
	// Changed asks for a sync, for pods have other ports. FaultsChanged is told that fault returns something else.
	Changed, FaultsChanged func()
	// TellPod and TellNode tell something about a pod of this node, or about this node, once.
	TellPod  func(namespace, name, uid string, reason plan.Reason, note string)
	TellNode func(reason plan.Reason, note string)
	// Explain adds to an error of the API server what an operator needs to act on it.
	Explain func(error) error
}

// portAttachments are the attachments of this node.
type portAttachments interface {
	// All returns all of them.
	All() []attachments.Attachment
	// SetPorts notes what a pod has, SetWidened that it can use its second block, SetRecorded that the end of what it had is written down.
	SetPorts(id string, ports []attachments.Ports, blockSize int) error
	SetWidened(id string) error
	SetRecorded(id string) error
}

// sourcePorts gives this node's pods blocks of source ports of their egress IPs, and knows those of other nodes' pods. Its methods may be
// called by several goroutines; those of a nil one do nothing. Its lock is taken before that of the State, and not under the steerer's; the
// keeper has one of its own, which is the last.
type sourcePorts struct {
	config sourcePortsConfig
	state  *cluster.State
	keeper *portblocks.Keeper
	// journal is nil if nothing is written down, or it could not be opened.
	journal *journal.Journal
	// recorder writes down who has which ports; nil: nobody does. Resume tells it before all else who has some when this process begins;
	// nil: it does not ask.
	recorder portblocks.Recorder
	resume   func(context.Context, []portblocks.Assignment) error
	resumed  sync.Once
	// wake says that pods may be to have other ports.
	wake wake.Signal

	mu sync.Mutex
	// pods are those of this node that run and have ports, pending those that wait for them, late those that have started without any:
	// they share if they are bound later.
	pods          map[string]attachments.Attachment
	pending, late map[string]bool
	followed      bool
	// recording are those whose ports are being written down, each with what is closed then.
	recording map[string]chan struct{}
	// full is about pods whose blocks are in use.
	full fullBlocks
	// others are what other nodes say; generation grows when something of it may count otherwise.
	others     *portblocks.Map
	generation uint64
	// revisions are those of the plans that pods' ports follow.
	revisions map[v1.IPFamily]uint64
	// blocks are those of the last sync, of each IP family that has had one.
	blocks map[v1.IPFamily]*blocksOf
	// mine is what this node's pods have, as of a moment.
	mine ownPorts
	// clashing is what the log says of two pods with the same port. failing is why blocks cannot be claimed.
	clashing map[v1.IPFamily]map[string]bool
	failing  error
	tooMany  bool
	// unsaid is what is logged without the lock.
	unsaid []func()
}

// newSourcePorts returns those of a node. They claim nothing before run. A journal that cannot be opened keeps no pod from running: that is
// told with each that is not written down.
func newSourcePorts(state *cluster.State, config sourcePortsConfig) *sourcePorts {
	s := &sourcePorts{
		config: config, state: state,
		wake: wake.New(), pods: map[string]attachments.Attachment{}, pending: map[string]bool{}, recording: map[string]chan struct{}{}, others: portblocks.NewMap(),
		revisions: map[v1.IPFamily]uint64{}, blocks: map[v1.IPFamily]*blocksOf{}, late: map[string]bool{}, clashing: map[v1.IPFamily]map[string]bool{},
		full: newFullBlocks(),
	}
	s.keeper = portblocks.NewKeeper(portblocks.Config{
		Namespace: config.LeaseNamespace, NodeName: state.Config.NodeName,
		Explain: func(err error) error { return holders.Explain(config.Explain(err)) },
		Changed: func() {
			if s.mayDiffer() {
				config.Changed()
			}
		},
		Failing: func(err error) {
			s.mu.Lock()
			s.failing = err
			s.mu.Unlock()
			config.FaultsChanged()
		},
	})
	if config.BlockSize > 0 && config.Journal.Folder != "" {
		s.keepJournal(config.Journal)
	}
	return s
}

// run claims blocks, and lets pods' ports follow what happens, until ctx ends.
func (s *sourcePorts) run(ctx context.Context, running *sync.WaitGroup, client kubernetes.Interface) {
	if s == nil {
		return
	}
	running.Go(func() { s.keeper.Run(ctx, client) })
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
			}
			s.reconcile(ctx)
		}
	})
	if s.config.BlockSize > 0 {
		running.Go(func() { s.watchFull(ctx) })
	}
}

// setClaims takes the Lease of an egress IP.
func (s *sourcePorts) setClaims(lease *coordinationv1.Lease, deleted bool) {
	if deleted {
		s.keeper.DeleteLease(lease.Name)
		return
	}
	s.keeper.SetLease(lease)
}

// sayLater has something said without the lock, which must be held.
func (s *sourcePorts) sayLater(say func()) {
	s.unsaid = append(s.unsaid, say)
	s.wake.Send()
}

// synced notes that a plan was made.
func (s *sourcePorts) synced(family v1.IPFamily) {
	if s == nil {
		return
	}
	s.mu.Lock()
	revision := s.state.Revision(family)
	changed := revision != s.revisions[family]
	s.revisions[family] = revision
	s.mu.Unlock()
	if changed {
		s.wake.Send()
	}
}

// nodesKnown says that all Nodes are.
func (s *sourcePorts) nodesKnown() {
	if s != nil {
		s.keeper.NodesKnown()
	}
}

// fault returns why blocks cannot be claimed; nil if they can, or need not.
func (s *sourcePorts) fault() error {
	if s == nil || s.config.BlockSize == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing
}

// troubles returns what is wrong with what Services say of blocks.
func (s *sourcePorts) troubles() map[plan.Service]tell.Trouble {
	if s == nil || s.config.BlockSize == 0 {
		return nil
	}
	troubles := map[plan.Service]tell.Trouble{}
	for service, wrong := range s.state.WrongPortBlocks() {
		troubles[service] = tell.Trouble{Reason: invalidBlock, Note: fmt.Sprintf("%s; until it is corrected its pods get blocks of %d ports", wrong, s.config.BlockSize)}
	}
	return troubles
}
