package egress

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
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

// sourcePorts gives this node's pods blocks of source ports of their egress IPs, and knows those of other nodes' pods. Its methods may be
// called by several goroutines; those of a nil one do nothing. Its lock is taken before that of the State, and not under the steerer's; the
// keeper has one of its own, which is the last.
type sourcePorts struct {
	// size is the usual number of ports in a block; 0: this node gives none.
	size   int
	node   string
	state  *cluster.State
	keeper *portblocks.Keeper
	// recorder writes down who has which ports; nil: nobody does. Resume tells it before all else who has some when this process begins;
	// nil: it does not ask.
	recorder portblocks.Recorder
	resume   func(context.Context, []portblocks.Assignment) error
	resumed  sync.Once
	logger   klog.Logger
	// setPorts notes what a pod has, setRecorded that the end of it is written down, all returns all attachments.
	setPorts    func(id string, ports []attachments.Ports, blockSize int) error
	setRecorded func(id string) error
	// setWidened notes that a pod can use its second block.
	setWidened func(id string) error
	all        func() []attachments.Attachment
	// changed asks for a sync, for pods have other ports.
	changed func()
	// tellPod and tellNode tell something once.
	tellPod  func(namespace, name, uid string, reason plan.Reason, note string)
	tellNode func(reason plan.Reason, note string)
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

// newSourcePorts returns those of an Extension; nil if nothing is steered.
func newSourcePorts(e *Extension) *sourcePorts {
	if e.config.Steering.Off() {
		return nil
	}
	s := offlinePorts(e.config.PortBlocks, e.state)
	s.logger, s.changed = e.logger, func() { e.changed(true, time.Now()) }
	s.tellPod, s.tellNode = func(namespace, name, uid string, reason plan.Reason, note string) {
		e.events.TellPod(namespace, name, uid, reason, note)
	}, func(reason plan.Reason, note string) { e.events.Tell(reason, note) }
	s.setPorts = func(id string, ports []attachments.Ports, size int) error {
		return e.attacher.SetPorts(id, ports, size)
	}
	s.setRecorded = func(id string) error { return e.attacher.SetRecorded(id) }
	s.setWidened = func(id string) error { return e.attacher.SetWidened(id) }
	s.all = func() []attachments.Attachment { return e.attacher.All() }
	s.keeper = portblocks.NewKeeper(portblocks.Config{
		Namespace: e.config.Ways.LeaseNamespace, NodeName: e.config.NodeName,
		Explain: func(err error) error { return holders.Explain(e.explain(err)) },
		Changed: func() { e.changed(s.mayDiffer(), time.Now()) },
		Failing: func(err error) {
			s.mu.Lock()
			s.failing = err
			s.mu.Unlock()
			e.faultsChanged()
		},
	})
	return s
}

// offlinePorts returns source ports that are claimed of nobody.
func offlinePorts(size int, state *cluster.State) *sourcePorts {
	return &sourcePorts{
		size: size, node: state.Config.NodeName, state: state, logger: klog.Background(),
		keeper: portblocks.NewKeeper(portblocks.Config{NodeName: state.Config.NodeName}), changed: func() {},
		wake: wake.New(), pods: map[string]attachments.Attachment{}, pending: map[string]bool{}, recording: map[string]chan struct{}{}, others: portblocks.NewMap(),
		revisions: map[v1.IPFamily]uint64{}, blocks: map[v1.IPFamily]*blocksOf{}, late: map[string]bool{}, clashing: map[v1.IPFamily]map[string]bool{},
		full: newFullBlocks(),
	}
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
	if s.size > 0 {
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
	if s == nil || s.size == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing
}

// troubles returns what is wrong with what Services say of blocks.
func (s *sourcePorts) troubles() map[plan.Service]tell.Trouble {
	if s == nil || s.size == 0 {
		return nil
	}
	troubles := map[plan.Service]tell.Trouble{}
	for service, wrong := range s.state.WrongPortBlocks() {
		troubles[service] = tell.Trouble{Reason: invalidBlock, Note: fmt.Sprintf("%s; until it is corrected its pods get blocks of %d ports", wrong, s.size)}
	}
	return troubles
}
