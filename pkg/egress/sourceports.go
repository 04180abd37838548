package egress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
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
	"github.com/openshift/origin-node/pkg/kernel"
)

// Reasons of Events about pods' source ports.
const (
	portsShared     plan.Reason = "EgressPortsShared"
	portBlockLost   plan.Reason = "EgressPortBlockLost"
	portsUnrecorded plan.Reason = "EgressPortsNotRecorded"
	portBlockClash  plan.Reason = "EgressPortBlockClash"
	invalidBlock    plan.Reason = "InvalidEgressPortBlock"
)

// mostAssigned bounds what the node's Lease has of source ports, in bytes: an API server takes 256 KiB of annotations, of which choices may
// have half.
const mostAssigned = 100 << 10

// sourcePorts gives this node's pods blocks of source ports of their egress IPs, and knows those of other nodes' pods. Its methods may be
// called by several goroutines; those of a nil one do nothing. Its lock is taken after the steerer's and before that of the State; the
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
	all         func() []attachments.Attachment
	// changed asks for a sync, for pods have other ports.
	changed func()
	// tellPod and tellNode tell something once.
	tellPod  func(namespace, name, uid string, reason plan.Reason, note string)
	tellNode func(reason plan.Reason, note string)
	// wake says that pods may be to have other ports; it holds one such message.
	wake chan struct{}

	mu sync.Mutex
	// pods are those of this node that run and have ports, pending those that wait for them, late those that have started without any:
	// they share if they are bound later.
	pods          map[string]attachments.Attachment
	pending, late map[string]bool
	followed      bool
	// others are what other nodes say; generation grows when something of it may count otherwise.
	others     *portblocks.Map
	generation uint64
	// revisions are those of the plans that pods' ports follow.
	revisions map[v1.IPFamily]uint64
	// blocks are those of the last question, of each IP family.
	blocks map[v1.IPFamily]blocksOf
	homes  map[v1.IPFamily]podHomes
	// mine is what this node's pods have, as of a moment.
	mine ownPorts
	// clashing is what the log says of two pods with the same port. failing is why blocks cannot be claimed.
	clashing map[string]bool
	failing  error
	tooMany  bool
	// unsaid is what is logged without the lock.
	unsaid []func()
}

// ownPorts are the blocks of this node's pods, and what its Lease has of them, and what that follows from: mostly a sync is about something
// else.
type ownPorts struct {
	known      bool
	generation uint64
	revisions  [2]uint64
	blocks     []portblocks.Stated
	stated     []kernel.Block
	assigned   string
}

// podHomes are the nodes on which bound pods run, by a revision of the plan.
type podHomes struct {
	revision uint64
	names    map[netip.Addr]string
}

// blocksOf are the blocks of pods of other nodes, and what that follows from.
type blocksOf struct {
	generation uint64
	revision   uint64 // of the plan
	held       map[netip.Addr]bool
	own        []portblocks.Stated
	blocks     []kernel.Block
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
		wake: make(chan struct{}, 1), pods: map[string]attachments.Attachment{}, pending: map[string]bool{}, others: portblocks.NewMap(),
		revisions: map[v1.IPFamily]uint64{}, blocks: map[v1.IPFamily]blocksOf{}, homes: map[v1.IPFamily]podHomes{}, late: map[string]bool{}, clashing: map[string]bool{},
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
}

func (s *sourcePorts) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default: // one waits already
	}
}

// mayDiffer notes that blocks may count otherwise than before, and tells whether they do for what the kernel holds.
func (s *sourcePorts) mayDiffer() (differs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	s.wakeUp()
	return s.differs()
}

// differs tells whether the last answers of steer are not what they would be now. Mostly a node's claims, and what it says of its pods, are
// about egress IPs that are not here. The lock must be held.
func (s *sourcePorts) differs() bool {
	for family, known := range s.blocks {
		if blocks, _ := s.blocksOf(family, known.held); !slices.Equal(blocks, known.blocks) {
			return true
		}
	}
	return false
}

// blocksOf returns the blocks of this node's pods of a family, and of others' of the egress IPs that are held. The lock must be held.
func (s *sourcePorts) blocksOf(family v1.IPFamily, held map[netip.Addr]bool) (blocks []kernel.Block, clashes []portblocks.Clash) {
	homes := s.homesOf(family)
	return s.others.Of(s.ownOf(family), func(ip netip.Addr) bool { return held[ip] }, func(node string, block kernel.Block) bool {
		if home, known := homes[block.Pod]; known && home != node {
			return false // its address was another pod's, or somebody lies
		}
		return s.keeper.Believes(node, block.EgressIP, block.Ports)
	})
}

// homesOf returns the nodes on which bound pods of a family run. The lock must be held.
func (s *sourcePorts) homesOf(family v1.IPFamily) map[netip.Addr]string {
	known := s.homes[family]
	if names, revision := s.state.Homes(family, known.revision); revision != known.revision {
		known = podHomes{revision, names}
		s.homes[family] = known
	}
	return known.names
}

// ownOf returns the blocks of this node's pods of a family. The lock must be held.
func (s *sourcePorts) ownOf(family v1.IPFamily) []portblocks.Stated {
	return slices.DeleteFunc(slices.Clone(s.own().blocks), func(one portblocks.Stated) bool { return cluster.FamilyOf(one.EgressIP) != family })
}

// setClaims takes the Lease of an egress IP.
func (s *sourcePorts) setClaims(lease *coordinationv1.Lease, deleted bool) {
	if deleted {
		s.keeper.DeleteLease(lease.Name)
		return
	}
	s.keeper.SetLease(lease)
}

// apply takes what is said of source ports, and of nodes, and tells whether something counts otherwise.
func (s *sourcePorts) apply(event holders.Event) (changed bool) {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch event := event.(type) {
	case holders.Assigned:
		if event.Node != s.node {
			changed = s.others.Tell(event.Node, event.Source == holders.Announcement, event.Revision, event.Blocks, time.Now())
		}
	case holders.LeaseDeleted:
		changed = s.others.ForgetLease(event.Node)
	case holders.NodeSeen:
		s.keeper.SetNode(event.Name, true)
	case holders.NodeDeleted:
		changed = s.others.Forget(event.Name)
		s.keeper.SetNode(event.Name, false)
	case holders.LeasesKnown:
		s.keeper.Listed()
	case holders.Hearing:
		s.keeper.SetReachable(event.Now)
	}
	if !changed {
		return false
	}
	s.generation++
	return s.differs()
}

// follow takes all attachments of this node: those that an earlier process knew, and then each change.
func (s *sourcePorts) follow(all []attachments.Attachment) {
	if s == nil || s.size == 0 {
		return
	}
	pods, run := map[string]attachments.Attachment{}, map[string]bool{}
	for _, a := range all {
		if run[a.ContainerID] = a.Released.IsZero(); a.Ports != nil && run[a.ContainerID] {
			pods[a.ContainerID] = a
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.late, func(id string, _ bool) bool { return !run[id] })
	for id := range run {
		if _, has := pods[id]; run[id] && !has && !s.followed {
			s.late[id] = true // of an earlier process
		}
	}
	s.followed = true
	for id := range s.pods {
		s.pending[id] = true
	}
	for id := range s.pending {
		if _, decided := pods[id]; !run[id] {
			s.keeper.Release(id)
			delete(s.pending, id)
		} else if decided {
			delete(s.pending, id)
		}
	}
	for id, a := range pods {
		if _, known := s.pods[id]; !known && !s.keeper.Knows(id) {
			s.keeper.Restore(id, egressIPsOf(a.Ports), a.BlockSize, givenOf(a))
		}
	}
	s.pods = pods
	s.generation++
	s.wakeUp()
}

// egressIPsOf returns the egress IPs of a pod's ports, sorted.
func egressIPsOf(ports []attachments.Ports) (ips []netip.Addr) {
	for _, p := range ports {
		ips = append(ips, p.EgressIP)
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return slices.Compact(ips)
}

// givenOf returns what a pod has alone.
func givenOf(a attachments.Attachment) portblocks.Given {
	first, last, of := a.Block()
	return portblocks.Given{Ports: kernel.Ports{First: first, Last: last}, Of: of}
}

// assigns returns assign for an [attach.Node]; nil if this node gives no blocks.
func (s *sourcePorts) assigns() func(context.Context, attachments.Attachment, []plan.Binding) ([]attachments.Ports, int, error) {
	if s == nil || s.size == 0 {
		return nil
	}
	return s.assign
}

// assign is that of [attach.Node].
func (s *sourcePorts) assign(ctx context.Context, a attachments.Attachment, bindings []plan.Binding) (ports []attachments.Ports, size int, err error) {
	if s == nil || s.size == 0 {
		return nil, 0, nil
	}
	if len(bindings) == 0 {
		s.mu.Lock()
		s.late[a.ContainerID] = true
		s.mu.Unlock()
		return nil, 0, nil
	}
	if a.Ports != nil {
		return a.Ports, a.BlockSize, nil // for its life
	}
	var given portblocks.Given
	if size = s.sizeFor(bindings); size > 0 {
		s.mu.Lock()
		s.pending[a.ContainerID] = true
		s.mu.Unlock()
		if given, err = s.keeper.Assign(ctx, a.ContainerID, egressIPsIn(bindings), size); err != nil {
			return nil, 0, fmt.Errorf("waiting for a block of source ports of the pod %s: %w", a.Pod, err)
		}
		s.mu.Lock()
		ended := !s.pending[a.ContainerID]
		s.mu.Unlock()
		if ended { // before it had anything that could be given back
			s.keeper.Release(a.ContainerID)
			return nil, 0, fmt.Errorf("the pod %s ends", a.Pod)
		}
	}
	ports = portsFor(nil, bindings, given, time.Now())
	s.record(ctx, a, nil, ports)
	s.tellShared(a, ports, size, fmt.Sprintf("all are taken, or none could be claimed within %s", portblocks.Patience))
	return ports, size, nil
}

// sizeFor returns the number of ports in the block of a pod with these bindings: the largest that one of its Services says.
func (s *sourcePorts) sizeFor(bindings []plan.Binding) (size int) {
	for _, b := range bindings {
		own, given := s.state.PortBlock(b.Service)
		if !given {
			own = s.size
		}
		size = max(size, own)
	}
	return size
}

// egressIPsIn returns the egress IPs of bindings, sorted.
func egressIPsIn(bindings []plan.Binding) (ips []netip.Addr) {
	for _, b := range bindings {
		ips = append(ips, b.EgressIP)
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return slices.Compact(ips)
}

// portsFor returns the ports of a pod with these bindings: those that it had, and of other egress IPs what it is given, or else the shared
// ones. Where it had a block, and is given none, it shares.
func portsFor(had []attachments.Ports, bindings []plan.Binding, given portblocks.Given, now time.Time) []attachments.Ports {
	ports := slices.Clone(had)
	for _, b := range bindings {
		want := attachments.Ports{
			IP: b.Pod, EgressIP: b.EgressIP, Service: b.Service.String(), First: portblocks.Shared.First, Last: portblocks.Shared.Last, Shared: true,
			Since: now.UTC().Truncate(time.Second),
		}
		if slices.Contains(given.Of, b.EgressIP) {
			want.First, want.Last, want.Shared = given.Ports.First, given.Ports.Last, false
		}
		i := slices.IndexFunc(ports, func(p attachments.Ports) bool { return p.IP == b.Pod && p.EgressIP == b.EgressIP })
		switch {
		case i < 0:
			ports = append(ports, want)
		case ports[i].Shared != want.Shared || ports[i].First != want.First || ports[i].Last != want.Last:
			ports[i] = want
		}
	}
	return ports
}

// bindingsOf returns those of a pod now.
func (s *sourcePorts) bindingsOf(a attachments.Attachment) (bindings []plan.Binding) {
	for _, ip := range a.IPs {
		bindings = append(bindings, s.state.BindingsOf(ip)...)
	}
	return bindings
}

// sayLater has something said without the lock, which must be held.
func (s *sourcePorts) sayLater(say func()) {
	s.unsaid = append(s.unsaid, say)
	s.wakeUp()
}

// reconcile lets pods' ports follow their bindings and claims, and records the ends of pods.
func (s *sourcePorts) reconcile(ctx context.Context) {
	s.mu.Lock()
	unsaid := s.unsaid
	s.unsaid = nil
	s.mu.Unlock()
	for _, say := range unsaid {
		say()
	}
	if s.size == 0 {
		return
	}
	s.record(ctx, attachments.Attachment{}, nil, nil) // what there was before
	for _, lost := range s.keeper.Lost() {
		s.logger.Error(nil, "A pod has lost its block of source ports, because another node has claimed it: this node's Node was deleted, or somebody has changed the Lease. The pod shares ports from now on",
			"container", lost.ID, "egressIP", lost.EgressIP, "ports", lost.Ports, "lease", portblocks.LeaseName(lost.EgressIP))
	}
	for _, a := range s.all() {
		var err error
		switch {
		case a.Ports == nil && a.Released.IsZero():
			err = s.reconcileLate(ctx, a)
		case a.Ports == nil || a.Recorded:
		case !a.Released.IsZero():
			s.record(ctx, a, a.Ports, nil)
			err = s.setRecorded(a.ContainerID)
		default:
			err = s.reconcilePod(ctx, a)
		}
		if err != nil {
			s.logger.V(2).Info("The source ports of a pod hold, but are not in its file; will retry", "pod", a.Pod, "err", err)
		}
	}
}

// reconcileLate has a pod share that is bound only after it has started.
func (s *sourcePorts) reconcileLate(ctx context.Context, a attachments.Attachment) error {
	s.mu.Lock()
	late := s.late[a.ContainerID]
	s.mu.Unlock()
	bindings := s.bindingsOf(a)
	if !late || len(bindings) == 0 {
		return nil
	}
	ports := portsFor(nil, bindings, portblocks.Given{}, time.Now())
	s.record(ctx, a, nil, ports)
	size := s.sizeFor(bindings)
	s.tellShared(a, ports, size, "no Service gave it an egress IP when it started, or this node gave no blocks then")
	return s.setPorts(a.ContainerID, ports, size)
}

func (s *sourcePorts) reconcilePod(ctx context.Context, a attachments.Attachment) error {
	bindings := s.bindingsOf(a)
	if len(bindings) == 0 {
		return nil // for a moment, or because it ends: it keeps what it has
	}
	s.keeper.Change(a.ContainerID, egressIPsIn(bindings))
	given, _ := s.keeper.Of(a.ContainerID)
	ports := portsFor(a.Ports, bindings, given, time.Now())
	if slices.Equal(ports, a.Ports) {
		return nil
	}
	s.record(ctx, a, a.Ports, ports)
	for i, p := range a.Ports {
		if !p.Shared && ports[i].Shared {
			s.tellPod(a.Pod.Namespace, a.Pod.Name, uidOf(a), portBlockLost, fmt.Sprintf(
				"the source ports %d-%d of %s are not this pod's alone any more: another node has claimed them. It shares ports with others, so an address and a port do not name it", p.First, p.Last, p.EgressIP))
		}
	}
	err := s.setPorts(a.ContainerID, ports, a.BlockSize)
	s.changed()
	return err
}

// uidOf returns the UID of a pod's object.
func uidOf(a attachments.Attachment) string {
	if a.Object != "" {
		return a.Object
	}
	return a.Pod.UID
}

// tellShared tells of a pod that shares although it was to have a block.
func (s *sourcePorts) tellShared(a attachments.Attachment, ports []attachments.Ports, size int, why string) {
	var of []string
	for _, p := range ports {
		if p.Shared {
			of = append(of, p.EgressIP.String())
		}
	}
	if len(of) == 0 || size == 0 {
		return
	}
	s.tellPod(a.Pod.Namespace, a.Pod.Name, uidOf(a), portsShared, fmt.Sprintf(
		"this pod has no block of %d source ports of %s: %s. It shares the ports %s with others for its life; start it again to try again, or give the Service more egress IPs",
		size, strings.Join(of, ", "), why, portblocks.Shared))
}

// recordPatience bounds how long a pod waits for what is written down of it: the disk may hang.
const recordPatience = 2 * time.Second

// begin tells the recorder who has ports when this process begins, once.
func (s *sourcePorts) begin(ctx context.Context) {
	s.resumed.Do(func() {
		if s.resume == nil {
			return
		}
		var has []portblocks.Assignment
		for _, a := range s.all() {
			for _, p := range a.Ports {
				if !a.Recorded {
					has = append(has, s.assignment(a, p))
				}
			}
		}
		if err := s.resume(ctx, has); err != nil {
			s.unrecorded(err, "pods that ran before this process")
		}
	})
}

// unrecorded tells that it is not written down which source ports somebody has.
func (s *sourcePorts) unrecorded(err error, whose string) {
	unrecordedPorts.WithLabelValues().Inc()
	s.logger.Error(err, "It is not written down which source ports pods have", "pods", whose)
	s.tellNode(portsUnrecorded, fmt.Sprintf("it is not written down which source ports %s have, so it may not be found later who used them: %v", whose, err))
}

// record writes down what a pod has instead of what it had.
func (s *sourcePorts) record(ctx context.Context, a attachments.Attachment, before, after []attachments.Ports) {
	if s.recorder == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	s.begin(ctx)
	var errs []error
	at := a.Released
	if at.IsZero() {
		at = time.Now()
	}
	for _, p := range before {
		if !slices.Contains(after, p) {
			errs = append(errs, s.recorder.Released(ctx, s.assignment(a, p), at))
		}
	}
	var recorded sync.WaitGroup // at once: what waits for the disk together is written together
	assigned := make([]error, len(after))
	for i, p := range after {
		if !slices.Contains(before, p) {
			recorded.Go(func() { assigned[i] = s.recorder.Assigned(ctx, s.assignment(a, p)) })
		}
	}
	recorded.Wait()
	if err := errors.Join(append(errs, assigned...)...); err != nil {
		s.unrecorded(err, "the containers of the pod "+a.Pod.String())
	}
}

func (s *sourcePorts) assignment(a attachments.Attachment, p attachments.Ports) portblocks.Assignment {
	return portblocks.Assignment{
		Pod: portblocks.Pod{Namespace: a.Pod.Namespace, Name: a.Pod.Name, UID: uidOf(a), IP: p.IP}, Service: p.Service, EgressIP: p.EgressIP,
		Ports: kernel.Ports{First: p.First, Last: p.Last}, Shared: p.Shared, Node: s.node, Since: p.Since,
	}
}

// assignments returns what this node's pods have, sorted.
func (s *sourcePorts) assignments() (list []portblocks.Assignment) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ownAssignments()
}

func (s *sourcePorts) ownAssignments() (list []portblocks.Assignment) {
	for _, id := range slices.Sorted(maps.Keys(s.pods)) {
		for _, p := range s.pods[id].Ports {
			list = append(list, s.assignment(s.pods[id], p))
		}
	}
	return list
}

// own returns what pods of this node have. The lock must be held.
func (s *sourcePorts) own() ownPorts {
	revisions := [2]uint64{s.state.Revision(v1.IPv4Protocol), s.state.Revision(v1.IPv6Protocol)}
	if s.mine.known && s.mine.generation == s.generation && s.mine.revisions == revisions {
		return s.mine
	}
	s.mine = ownPorts{known: true, generation: s.generation, revisions: revisions, blocks: s.ownBlocks()}
	for _, one := range s.mine.blocks {
		s.mine.stated = append(s.mine.stated, one.Block)
	}
	if list := s.ownAssignments(); len(list) > 0 {
		s.mine.assigned = portblocks.FormatAssigned(list)
	}
	tooMany := len(s.mine.assigned) > mostAssigned
	if pods := len(s.pods); tooMany && !s.tooMany {
		s.sayLater(func() {
			s.logger.Error(nil, "This node has too many pods with source ports of their own to say in its Lease which; other nodes learn it directly alone", "pods", pods)
		})
	}
	if s.tooMany = tooMany; tooMany {
		s.mine.assigned = portblocks.TooManyAssigned
	}
	return s.mine
}

// ownBlocks returns the blocks that pods of this node have, of the egress IPs that they leave from, sorted. The lock must be held.
func (s *sourcePorts) ownBlocks() (list []portblocks.Stated) {
	for id, a := range s.pods {
		given, _ := s.keeper.Of(id)
		for _, p := range a.Ports {
			bound := func(b plan.Binding) bool { return b.EgressIP == p.EgressIP }
			if p.Shared || !slices.Contains(given.Of, p.EgressIP) || !slices.ContainsFunc(s.state.BindingsOf(p.IP), bound) {
				continue
			}
			list = append(list, portblocks.Stated{
				Block: kernel.Block{Pod: p.IP, EgressIP: p.EgressIP, Ports: kernel.Ports{First: p.First, Last: p.Last}}, Node: s.node, Since: p.Since,
			})
		}
	}
	slices.SortFunc(list, func(a, b portblocks.Stated) int { return kernel.CompareBlocks(a.Block, b.Block) })
	return list
}

// stated returns the blocks that this node says its pods to have, and what its Lease has of them: nothing if that is too much. Neither must
// be changed.
func (s *sourcePorts) stated() (blocks []kernel.Block, assigned string) {
	if s == nil {
		return nil, ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.own()
	return own.stated, own.assigned
}

// steer adds to the ways of an IP family which ports pods have: this node's, and others' of the egress IPs that are here or may come here.
func (s *sourcePorts) steer(family v1.IPFamily, egressIPs []netip.Addr, result *kernel.Steering) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own, known, revision := s.ownOf(family), s.blocks[family], s.state.Revision(family)
	if known.generation != s.generation || known.revision != revision || !maps.Equal(known.held, result.Held) || !slices.Equal(known.own, own) {
		blocks, clashes := s.blocksOf(family, result.Held)
		known = blocksOf{s.generation, revision, maps.Clone(result.Held), own, blocks}
		s.blocks[family] = known
		s.logClashes(family, clashes)
	}
	result.Blocks = known.blocks
	if s.size > 0 && len(egressIPs) > 0 || len(known.blocks) > 0 {
		result.Shared = map[netip.Addr]kernel.Ports{}
	}
	for _, block := range known.blocks {
		result.Shared[block.EgressIP] = portblocks.Shared
	}
	if s.size > 0 {
		for _, ip := range egressIPs {
			result.Shared[ip] = portblocks.Shared
		}
	}
}

// logClashes tells of pods that nodes say to have the same port. That should not be.
func (s *sourcePorts) logClashes(family v1.IPFamily, clashes []portblocks.Clash) {
	portClashes.WithLabelValues(string(family)).Set(float64(len(clashes)))
	now := map[string]bool{}
	for _, c := range clashes {
		text := fmt.Sprintf("the pods %s on %s and %s on %s are said to have the same ports of %s (%s, %s). The first counts, the second one shares. The Lease %s says which node has claimed them; restart the other one, and report this",
			c.Counts.Pod, c.Counts.Node, c.Other.Pod, c.Other.Node, c.Counts.EgressIP, c.Counts.Ports, c.Other.Ports, portblocks.LeaseName(c.Counts.EgressIP))
		if now[text] = true; !s.clashing[text] {
			s.sayLater(func() {
				s.logger.Error(nil, "Two pods have the same source ports", "reason", text)
				s.tellNode(portBlockClash, text)
			})
		}
	}
	s.clashing = now
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
		s.wakeUp()
	}
}

// nodesKnown says that all Nodes are.
func (s *sourcePorts) nodesKnown() {
	if s != nil {
		s.keeper.NodesKnown()
	}
}

// portMap returns the blocks of other nodes' pods of which this node has the egress IP, or may have it.
func (s *sourcePorts) portMap() (list []kernel.Block) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, family := range cluster.Families {
		for _, block := range s.blocks[family].blocks {
			isOwn := func(own portblocks.Stated) bool { return own.Block == block }
			if !slices.ContainsFunc(s.blocks[family].own, isOwn) {
				list = append(list, block)
			}
		}
	}
	return list
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
