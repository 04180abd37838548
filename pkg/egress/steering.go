package egress

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/node"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/pool/neighbor"
	"github.com/openshift/origin-node/pkg/egress/shutdown"
	"github.com/openshift/origin-node/pkg/egress/sourceports"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
	"github.com/openshift/origin-node/pkg/wake"
)

// Ways is how packets get to the nodes that hold their egress IPs.
type Ways struct {
	// LeaseNamespace is where each node tells in a Lease which egress IPs it holds.
	LeaseNamespace string
	// MetalLBNamespace is MetalLB's own; nothing of MetalLB is followed if it is empty.
	MetalLBNamespace string
	// Keys are those of a key file. If there are none, the nodes share some by a Secret in the namespace of the Leases, and KeptKeys
	// is the file in which this node keeps them.
	Keys     holders.Keys
	KeptKeys string
	// Kernel configures the tunnel, the marks and the ports. The IP family and the node's address in it do not
	// count.
	Kernel steering.Config
}

// kernelSteering returns what the kernel's side needs; nil if nothing is steered.
func (c Config) kernelSteering() *steering.Config {
	if c.Steering.Off() {
		return nil
	}
	return &c.Ways.Kernel
}

// Transport says for people how packets get to other nodes.
func (c Config) Transport() string {
	if c.Steering.Off() {
		return string(holders.Off)
	}
	return string(c.Ways.Kernel.Transport)
}

// followsMetalLB tells whether what MetalLB announces counts.
func (c Config) followsMetalLB() bool { return !c.Steering.Off() && c.Ways.MetalLBNamespace != "" }

// steerer knows where the egress IPs of both IP families are, and has other nodes told which are
// here. Its methods may be called by several goroutines; those of a nil steerer steer nothing.
type steerer struct {
	config Ways
	state  *cluster.State
	// outer is the IP family in which the nodes reach each other.
	outer     v1.IPFamily
	publisher *holders.Publisher
	// announcer is nil if nodes do not tell each other directly.
	announcer *holders.Announcer
	logger    klog.Logger
	// adjacent returns why another node cannot be the next hop of packets of this one.
	adjacent func(self, node netip.Addr) error
	// find has the kernel look for another node's hardware address.
	find func(self, node netip.Addr) error
	// announce tells the network that addresses are here. It does not block.
	announce func(addresses []netip.Addr)
	// changed asks for a sync, wake for one that is not due, known tells that all Leases are known, or that none can
	// be.
	changed, wake, known func()

	clashes *clashes
	ports   *sourceports.Allocator

	// mu is taken while no other lock is held, and nobody takes another one under it. Others are told when it was released. Statements, this
	// node's addresses and snapshots of the objects have a number, so that an older one never replaces a newer one.
	mu   sync.Mutex
	node *node.Node
	// own are this node's addresses by where they are known from.
	own ownAddresses
	// told is why nodes, by their names, cannot be the next hop, as the log says.
	told map[string]holders.Reason
	// seen has what the directory was told of each Node, judged what that follows from; nil if it may follow from something else.
	seen   map[string]holders.NodeSeen
	judged *cluster.JudgedNodes
	// objects are the newest that were seen; a sync takes note of what they say.
	objects cluster.Snapshot
	// marked has which rules of others use bits of the mark.
	marked []string
	// failing has why Leases cannot be used, unannounced why nothing is announced directly.
	failing     map[holders.Access]error
	unannounced error
	// uid is that of this node's Node object; empty if it is not known.
	uid types.UID
	// guarded are the IP families of which a sync has written what steers, or has tried to.
	guarded map[v1.IPFamily]bool
	// here are this node's addresses, and balanced those that a load balancer may announce from here: this node plans the pods of all of
	// them, of those that the pool may put here at any moment, and of those that it hands over. heldRevision is that of all of these.
	here, balanced map[netip.Addr]bool
	heldRevision   uint64
	// claimed are the egress IPs of the last syncs, and coming those that were new, until no node is expected to get them
	// any more. In mode required alone.
	claimed map[v1.IPFamily][]netip.Addr
	coming  map[netip.Addr]time.Time
	// claims are the egress IPs of both families that the directory was told last; nil before the first time.
	claims []netip.Addr
	// wakeAt is when the next sync comes because time has passed; zero for never.
	wakeAt time.Time
	// hardware are the hardware addresses of nodes on this node's networks. One that is not there any more keeps the last one.
	hardware map[netip.Addr]kernel.HardwareAddr
	// hardwareLimit is how many there may be until those of nodes that are gone are forgotten.
	hardwareLimit int
	// ask has the kernel tell again which ones it knows, memberWake wakes the pool's member.
	ask, memberWake wake.Signal
}

// newSteerer returns the steerer of an Extension; nil if nothing is steered.
func newSteerer(e *Extension, leases holders.Leases, outer v1.IPFamily) *steerer {
	if e.config.Steering.Off() {
		return nil
	}
	s := &steerer{
		config:     e.config.Ways,
		state:      e.state,
		outer:      outer,
		logger:     e.logger,
		adjacent:   steering.Adjacent,
		find:       steering.FindNeighbour,
		announce:   func(addresses []netip.Addr) { e.running.Go(func() { e.announce(addresses) }) },
		hardware:   map[netip.Addr]kernel.HardwareAddr{},
		ask:        wake.New(),
		memberWake: wake.New(),
		changed:    func() { e.changed(true, time.Now()) },
		wake:       e.wake,
		known:      func() { e.known(cluster.LeasesKind) },
		told:       map[string]holders.Reason{},
		guarded:    map[v1.IPFamily]bool{},
		failing:    map[holders.Access]error{},
		claimed:    map[v1.IPFamily][]netip.Addr{},
		coming:     map[netip.Addr]time.Time{},
		seen:       map[string]holders.NodeSeen{},
		clashes:    newClashes(),
		ports:      e.sourcePorts,
		node:       node.New(holders.Config{NodeName: e.config.NodeName, Outer: kernel.Family(outer)}),
	}
	s.own.announcedKnown = !e.config.followsMetalLB() // nobody tells then
	s.publisher = holders.NewPublisher(leases, e.config.NodeName, s.published)
	if port := s.config.Kernel.AnnouncePort; port != 0 {
		s.announcer = holders.NewAnnouncer(e.config.NodeName, port, e.keys.ring)
		s.announcer.Failing, s.announcer.AsksBlocks = e.announcerFails, e.config.PortBlocks > 0
	}
	return s
}

// announce tells the network that addresses are here, more than once: what is told may be lost.
func (e *Extension) announce(addresses []netip.Addr) {
	logger := klog.LoggerWithValues(e.logger, "addresses", addresses)
	logger.V(2).Info("Telling the network of egress IPs that other software has put on this node")
	if err := neighbor.AnnounceHere(e.ctx, addresses); err != nil {
		logger.Info("The network could not be told of egress IPs that other software has put on this node; hosts may send to the node that had them for some seconds", "err", err)
	}
}

// steer begins to follow who holds the egress IPs.
func (e *Extension) steer(client, claims kubernetes.Interface, outer v1.IPFamily) {
	leases := holders.Leases{Client: client, Namespace: e.config.Ways.LeaseNamespace, Configuration: e.config.Published, Explain: e.explain, Failing: e.leasesFail, Claims: e.sourcePorts.SetClaims}
	if e.steerer = newSteerer(e, leases, outer); e.steerer == nil {
		return
	}
	ctx := klog.NewContext(e.ctx, e.logger)
	if e.pool != nil {
		e.pool.steerer = e.steerer
		e.running.Go(e.pool.run)
		e.running.Go(func() { shutdown.Delay(ctx, e.pool.giveAllAway, e.pool.goOn) })
	}
	e.running.Go(func() { holders.WatchAddresses(ctx, steering.Device, e.steerer.setOnInterfaces) })
	e.sourcePorts.Run(ctx, &e.running, claims)
	e.running.Go(func() { leases.Watch(ctx, e.steerer.apply) })
	e.running.Go(func() { e.steerer.publisher.Run(ctx) })
	e.running.Go(func() { e.endClashes(ctx) })
	e.running.Go(e.followRivals)
	e.shareKeys(ctx, client)
	if announcer := e.steerer.announcer; announcer != nil {
		e.running.Go(func() { announcer.Run(ctx, e.steerer.apply) })
	}
	if e.config.Ways.Kernel.Transport == steering.Direct {
		e.running.Go(func() { steering.WatchNeighbours(ctx, e.state.IsPrimary, e.steerer.ask, e.steerer.setHardware) })
	}
}

// apply takes note of an event, and does what follows.
func (s *steerer) apply(event holders.Event) {
	s.mu.Lock()
	after := s.next(event)
	s.mu.Unlock()
	s.follow(event, after)
}

// outcome is what an event has changed.
type outcome struct {
	// changed: answers of the directory. Nodes are told said then. sooner: one changes by itself before the next sync comes.
	changed, sooner bool
	said            holders.Statement
	// came are the addresses that are here now and were not before.
	came map[netip.Addr]bool
}

// next takes note of an event. The lock must be held.
func (s *steerer) next(event holders.Event) (after outcome) {
	now := time.Now()
	if _, after.changed = s.node.Next(event, now); after.changed {
		after.said = s.node.Say()
	}
	after.sooner = s.wakesSooner(now)
	if own, is := event.(holders.OwnAddresses); is {
		here := map[netip.Addr]bool{}
		for _, ip := range own.Addresses {
			here[ip] = true
		}
		after.came = maps.Clone(here)
		maps.DeleteFunc(after.came, func(ip netip.Addr, _ bool) bool { return s.here[ip] })
		s.here = here
	}
	return after
}

// follow does what follows from an event. The lock must not be held.
func (s *steerer) follow(event holders.Event, after outcome) {
	if after.changed {
		s.tell(after.said) // other nodes need not wait for this one's rules
		s.memberWake.Send()
	}
	changed := s.ports.Apply(event) || after.changed
	switch event := event.(type) {
	case holders.OwnAddresses:
		changed = s.setHeld() || changed
		s.clashes.expect(after.came)
	case holders.Chosen:
		changed = s.state.SetChoices(event.Node, event.Choices) || changed
		if event.Node == s.state.Config.NodeName && s.state.TellsOther(event.Choices) {
			s.publisher.Rewrite()
		}
	case holders.LeaseDeleted:
		changed = s.state.Unlease(event.Node) || changed
		if event.Node == s.state.Config.NodeName && s.hasNode(event.Node) { // of one that is gone, the Lease goes with it
			s.publisher.Rewrite()
		}
	case holders.LeasesKnown:
		s.known()
	case holders.Hearing:
		if !event.Now {
			s.known() // rules must not wait for a right that nobody gives
		}
	}
	switch {
	case changed:
		s.changed()
	case after.sooner:
		s.wake()
	}
}

// setHeld tells the plans which addresses this node has, or may get, and tells whether they may change. That may take long, so others have
// the lock meanwhile.
func (s *steerer) setHeld() (changed bool) { return s.state.SetHeld(s.heldNow()) }

// heldNow returns the addresses whose pods this node plans.
func (s *steerer) heldNow() (held map[netip.Addr]bool, revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heldRevision++
	held = map[netip.Addr]bool{}
	for _, addresses := range []map[netip.Addr]bool{s.node.MayAllCome(), s.balanced, s.here} {
		maps.Copy(held, addresses)
	}
	for ip := range s.node.HandingOver(time.Now()) {
		held[ip] = true
	}
	return held, s.heldRevision
}

// hereNow are this node's addresses. The map must not be changed.
func (s *steerer) hereNow() map[netip.Addr]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.here
}

// isUnclaimed tells whether no node has an address.
func (s *steerer) isUnclaimed(ip netip.Addr, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node.Holder(ip, now).State == holders.Unclaimed
}

// primaries are the primary addresses of all nodes, in an IP family, as of the last sync. The map must not be changed.
func (s *steerer) primaries(family v1.IPFamily) map[string]netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects.Judged == nil {
		return nil
	}
	return s.objects.Judged[family].Primary
}

// mayCome tells whether an address may come to this node at any moment. The lock must be held.
func (s *steerer) mayCome(ip netip.Addr) bool { return s.node.MayCome(ip) || s.balanced[ip] }

// wakesSooner tells whether an answer changes by itself before the next sync comes: a node that is not Ready, for
// example, is silent some time later, and that is not a moment to be late. The lock must be held.
func (s *steerer) wakesSooner(now time.Time) bool {
	at := s.node.Directory.Wake(now)
	if at.IsZero() || !s.wakeAt.IsZero() && !at.Before(s.wakeAt) {
		return false
	}
	s.wakeAt = at
	return true
}

// setNode takes the newest version of a Node.
func (s *steerer) setNode(node *v1.Node) {
	if s == nil {
		return
	}
	if node.Name == s.state.Config.NodeName {
		s.mu.Lock()
		s.uid = node.UID
		s.mu.Unlock()
	}
	event := s.state.NodeSeen(node, s.outer)
	s.mu.Lock()
	s.seen[node.Name], s.judged = event, nil
	s.mu.Unlock()
	s.apply(event)
}

// readdress tells the directory of nodes whose address counts now, or no longer, because of another object than their Node. The
// lock must be held.
func (s *steerer) readdress(judged *cluster.JudgedNodes, now time.Time) {
	if judged == s.judged {
		return // as mostly
	}
	s.judged = judged
	for name, event := range s.seen {
		address := judged.Primary[name]
		if known := event.InternalIPs; len(known) == 0 && address.IsValid() || len(known) > 0 && known[0] != address {
			if event.InternalIPs = nil; address.IsValid() {
				event.InternalIPs = []netip.Addr{address}
			}
			s.seen[name] = event
			_, _ = s.node.Next(event, now)
		}
	}
}

// hasNode tells whether there is a Node.
func (s *steerer) hasNode(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, has := s.seen[name]
	return has
}

// deleteNode forgets a Node.
func (s *steerer) deleteNode(name string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	delete(s.seen, name)
	s.mu.Unlock()
	s.apply(holders.NodeDeleted{Name: name})
}

// sync returns which ways the packets of an IP family take from now on, and when that changes without an event; zero for never. It
// tells the other nodes which egress IPs are here, if they were told before, and has the kernel look for those that it does not know.
func (s *steerer) sync(family v1.IPFamily) (result kernel.Steering, wake time.Time) {
	if s == nil {
		return kernel.Steering{}, time.Time{}
	}
	if s.note(s.state.Snapshot(), family) { // for the other family as well
		defer s.wake()
	}
	m := s.lockAsked(family)
	result, here := s.steeringAt(family, m)
	said := s.node.Say()
	s.wakeAt = s.node.Directory.Wake(m.now)
	for _, until := range s.coming {
		s.wakeAt = holders.Earlier(s.wakeAt, until)
	}
	wake = s.wakeAt
	s.mu.Unlock()
	s.memberWake.Send() // time has passed
	s.tell(said)
	s.tellPorts(said)
	s.ports.NoteHeld(family, result.Held)
	s.addPods(&result, family, m, here)
	s.findSenders(result)
	return result, wake
}

// note takes note of what the objects say that nobody has told of, and tells whether an answer has changed. Older objects than those noted
// last change nothing.
func (s *steerer) note(objects cluster.Snapshot, family v1.IPFamily) (differs bool) {
	if nodes := objects.Judged[s.outer].Primary; s.announcer != nil {
		s.announcer.SetNodes(objects.Revision, nodes[s.state.Config.NodeName], nodes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeObjects(objects)
	now := time.Now()
	s.readdress(s.objects.Judged[s.outer], now)
	s.expectNew(s.objects.EgressIPs[family], family, now)
	return s.noteClaims(now)
}

// takeObjects takes what the objects say, unless something newer is known. The lock must be held.
func (s *steerer) takeObjects(objects cluster.Snapshot) {
	if objects.Revision > s.objects.Revision {
		s.objects = objects
	}
}

// steering returns which ways the packets of an IP family take now. The question changes no way, and nobody is told anything else.
func (s *steerer) steering(family v1.IPFamily) kernel.Steering {
	if s == nil {
		return kernel.Steering{}
	}
	m := s.lockAsked(family)
	result, here := s.steeringAt(family, m)
	s.mu.Unlock()
	s.addPods(&result, family, m, here)
	return result
}

// arrival is how long a new egress IP may take to come to a node, and its announcement to come here: the pool asks first
// whether another host has it.
const arrival = 5 * time.Second

// expectNew notes which egress IPs of a family are new, and which ones are not any more. The lock must be held.
func (s *steerer) expectNew(claimed []netip.Addr, family v1.IPFamily, now time.Time) {
	if s.state.Config.Steering.Mode != holders.Required {
		return // no node is needed
	}
	maps.DeleteFunc(s.coming, func(_ netip.Addr, until time.Time) bool { return !until.After(now) })
	for _, ip := range claimed {
		if _, known := slices.BinarySearchFunc(s.claimed[family], ip, netip.Addr.Compare); !known {
			s.coming[ip] = now.Add(arrival)
		}
	}
	s.claimed[family] = claimed
}

// noteClaims tells the directory which addresses are claimed, if these are others than before, and whether an answer has changed.
// The lock must be held.
func (s *steerer) noteClaims(now time.Time) (changed bool) {
	claims := slices.Concat(s.objects.EgressIPs[v1.IPv4Protocol], s.objects.EgressIPs[v1.IPv6Protocol])
	if s.claims != nil && slices.Equal(claims, s.claims) {
		return false
	}
	s.claims = append([]netip.Addr{}, claims...) // not nil
	claimed := make(map[netip.Addr]bool, len(claims))
	for _, ip := range claims {
		claimed[ip] = true
	}
	_, changed = s.node.Next(holders.Claimed{Addresses: claimed}, now)
	return changed
}

// steeringAt returns which ways the packets of an IP family take, but for what follows from pods, and whether other nodes may send packets
// here. The lock must be held.
func (s *steerer) steeringAt(family v1.IPFamily, m moment) (result kernel.Steering, here bool) {
	self := s.state.Config.NodeName
	result.Self = m.Judged[s.outer].Primary[self]
	for name, ip := range s.nodes(family, m) {
		if name != self && ip != result.Self { // nobody else speaks from this node's address
			result.Nodes = append(result.Nodes, ip)
		}
	}
	slices.SortFunc(result.Nodes, netip.Addr.Compare)
	result.Nodes = slices.Compact(result.Nodes)
	claimed, own := m.EgressIPs[family], s.node.Own()
	result.Ways = s.ways(claimed, m)
	result.Held = map[netip.Addr]bool{}
	for _, ip := range claimed {
		// Connections to one that this node is about to take live on only if it is prepared.
		if s.mayCome(ip) || s.node.Holder(ip, m.now).State == holders.Local {
			result.Held[ip] = true
		}
		_, has := own[ip]
		here = here || has || s.mayCome(ip)
	}
	result.Senders = s.senders(result)
	return result, here
}

// addPods adds to the ways of an IP family which source ports pods have, and, if other nodes may send packets here, on which nodes bound
// pods run. The lock must not be held.
func (s *steerer) addPods(result *kernel.Steering, family v1.IPFamily, m moment, here bool) {
	s.ports.AddPorts(family, m.EgressIPs[family], result)
	result.Roaming = s.state.Config.Scope == placement.Cluster
	if here {
		nodes := maps.Clone(s.nodes(family, m))
		nodes[s.state.Config.NodeName] = result.Self
		result.Homes = s.state.HomesAt(family, nodes)
	}
}

// nodes returns the addresses of all nodes, by their names, to which packets of an IP family are sent. The map must not be
// changed.
func (s *steerer) nodes(family v1.IPFamily, m moment) map[string]netip.Addr {
	if s.config.Kernel.Transport == steering.Direct {
		return m.Judged[family].Primary // a next hop is of the packets' family
	}
	return m.Judged[s.outer].Primary
}

// ways returns which ways the packets of these egress IPs, of a family, take. A refusal is final for a connection, so what has
// a new egress IP is dropped in silence instead: its SYN comes again. The lock must be held.
func (s *steerer) ways(egressIPs []netip.Addr, m moment) map[netip.Addr]kernel.Way {
	ways := s.node.Ways(egressIPs, s.state.Config.Steering.Mode, m.now)
	holder := s.holder(m)
	for ip, way := range ways {
		if _, coming := s.coming[ip]; coming && way.Kind == kernel.Prohibit {
			ways[ip] = kernel.Way{Kind: kernel.Blackhole}
		}
		if way.Kind != kernel.ToNode {
			continue
		}
		ways[ip] = kernel.Way{Kind: kernel.Prohibit}
		if h := holder(ip); h.State == holders.Remote {
			ways[ip] = kernel.Way{Kind: kernel.ToNode, Node: h.Address}
		}
	}
	return ways
}

// senders returns the hardware addresses of the other nodes, as far as they are known. Through a tunnel they do not count. The lock must
// be held.
func (s *steerer) senders(in kernel.Steering) map[netip.Addr]kernel.HardwareAddr {
	if s.config.Kernel.Transport != steering.Direct {
		return nil
	}
	senders := map[netip.Addr]kernel.HardwareAddr{}
	for _, node := range in.Nodes {
		if at, known := s.hardware[node]; known {
			senders[node] = at
		}
	}
	return senders
}

// findSenders has the kernel tell, or look for, the hardware addresses that are not known: it may know one of a node that was none when
// it learned of it.
func (s *steerer) findSenders(in kernel.Steering) {
	if s.config.Kernel.Transport != steering.Direct {
		return
	}
	for _, node := range in.Nodes {
		if _, known := in.Senders[node]; known {
			continue
		}
		if err := s.find(in.Self, node); err != nil {
			s.logger.V(2).Info("Cannot look for the hardware address of a node; what it sends here is dropped until it is known", "node", node, "err", err)
		}
		s.ask.Send()
	}
}

// setHardware takes the hardware address of a host. It keeps those of nodes: any host on the network can claim to be many.
func (s *steerer) setHardware(host netip.Addr, at kernel.HardwareAddr) {
	if !s.state.IsPrimary(host) {
		return
	}
	objects := s.state.Snapshot()
	s.mu.Lock()
	before, known := s.hardware[host]
	s.hardware[host] = at
	if len(s.hardware) > s.hardwareLimit { // some may be of nodes that are gone
		maps.DeleteFunc(s.hardware, func(host netip.Addr, _ kernel.HardwareAddr) bool { return !objects.IsPrimary(host) })
		s.hardwareLimit = 2*len(s.hardware) + 10 // so that a thousand nodes are not looked at for each of them
	}
	s.mu.Unlock()
	if !known || before != at {
		s.changed()
	}
}

// moment is a time, what the objects said shortly before, and which nodes can be the next hop.
type moment struct {
	cluster.Snapshot
	now  time.Time
	next nextHops
}

// nextHops are nodes, by their names, as next hops: under this address, or why they cannot be that; empty for those that can.
type nextHops map[string]nextHop

type nextHop struct {
	address netip.Addr
	why     holders.Reason
}

// lockAsked takes the lock, at a moment at which it is known of all nodes that have an egress IP of a family whether they can be the next
// hop: the kernel is asked without the lock, and so are the objects.
func (s *steerer) lockAsked(family v1.IPFamily) moment {
	m := moment{next: nextHops{}}
	for {
		m.Snapshot = s.state.Snapshot()
		s.mu.Lock()
		m.now = time.Now()
		open := s.unasked(family, m)
		if len(open) == 0 {
			return m
		}
		s.mu.Unlock()
		self, nodes := m.Judged[s.outer].Primary[s.state.Config.NodeName], m.Judged[family].Primary
		for _, name := range open {
			m.next[name] = nextHop{nodes[name], s.unreachable(family, name, self, nodes[name])}
		}
	}
}

// unasked returns the nodes that have an egress IP and are not in next; none where there is a tunnel. The lock must be held.
func (s *steerer) unasked(family v1.IPFamily, m moment) (names []string) {
	if s.config.Kernel.Transport != steering.Direct {
		return nil
	}
	for _, ip := range m.EgressIPs[family] {
		h := s.node.Holder(ip, m.now)
		if _, asked := m.next[h.Node]; h.State == holders.Remote && !asked && !slices.Contains(names, h.Node) {
			names = append(names, h.Node)
		}
	}
	return names
}

// holder returns what says who holds an egress IP of a family. Without a tunnel, one is lost whose holder cannot be
// the next hop of packets of this node. The lock must be held as [steerer.lockAsked] takes it.
func (s *steerer) holder(m moment) func(netip.Addr) holders.Holding {
	if s.config.Kernel.Transport != steering.Direct {
		return func(ip netip.Addr) holders.Holding { return s.node.Holder(ip, m.now) }
	}
	return func(ip netip.Addr) holders.Holding {
		h := s.node.Holder(ip, m.now)
		if h.State != holders.Remote {
			return h
		}
		hop, asked := m.next[h.Node]
		if !asked { // of an address that is not claimed any more
			hop.why = "it is not known yet whether the transport direct reaches the node"
		}
		h.Address = hop.address
		if hop.why != "" {
			h.State, h.Address, h.Why = holders.Lost, netip.Addr{}, hop.why
		}
		return h
	}
}

// unreachable returns why a node cannot be the next hop of packets of an IP family; empty if it can. The log says it
// when that changes. The lock must not be held.
func (s *steerer) unreachable(family v1.IPFamily, name string, self, node netip.Addr) (why holders.Reason) {
	if !node.IsValid() {
		why = holders.Reason(fmt.Sprintf("the node has no InternalIP that counts for %s, which the transport direct needs", family))
	} else if err := s.adjacent(self, node); err != nil {
		why = holders.Reason(fmt.Sprintf("the transport direct does not reach the node: %v", err))
	}
	key := string(family) + " " + name
	s.mu.Lock()
	before := s.told[key]
	s.told[key] = why
	s.mu.Unlock()
	switch {
	case why != "" && why != before:
		s.logger.Error(errors.New(string(why)), "Packets for the egress IPs of a node are rejected, because the transport direct cannot send them there; "+
			"bring these egress IPs to a node of the same network, or set egress-snat-steering-transport to vxlan on all nodes", "node", name, "ipFamily", family)
	case why == "" && before != "":
		s.logger.Info("The transport direct reaches the node again", "node", name, "ipFamily", family)
	}
	return why
}

// SteeringFor returns which ways this node's packets take for these objects, in an IP family; zero if nothing is
// steered. The nodes reach each other by the IP family of this node's first address. What of the Leases cannot be read
// is in err; the ways are complete without it.
func SteeringFor(family v1.IPFamily, config Config, objects cluster.Objects) (result kernel.Steering, err error) {
	if config.Steering.Off() {
		return kernel.Steering{}, nil
	}
	s, comes, err := cluster.StateFor(config.Config, objects)
	outer := cluster.OuterOf(config.NodeName, objects.Nodes)
	steerer, now := steererFor(config.Ways, s, outer), time.Now()
	steerer.hardware = objects.Hardware
	s.Update(family)
	steerer.assign(comes, now)
	for _, node := range objects.Nodes {
		steerer.node.Apply(s.NodeSeen(node, outer), now)
	}
	steerer.ports = sourceports.New(s, sourceports.Config{BlockSize: config.PortBlocks})
	for _, lease := range objects.Leases {
		announced, leaseErr := holders.Announcing(lease)
		assigned, revision, assignedErr := holders.Assigning(lease)
		err = errors.Join(err, leaseErr, assignedErr)
		steerer.node.Apply(announced, now)
		steerer.ports.TakeLease(lease.Name, revision, assigned, now)
	}
	steerer.node.Apply(holders.OwnAddresses{Addresses: slices.Collect(maps.Keys(objects.Held)), Announced: objects.Announced}, now)
	steerer.node.Apply(holders.LeasesKnown{}, now)
	return steerer.steering(family), err
}

// steererFor returns a steerer that tells nobody, and looks for no hardware addresses.
func steererFor(config Ways, s *cluster.State, outer v1.IPFamily) *steerer {
	return &steerer{
		config: config, state: s, outer: outer, logger: klog.Background(), adjacent: steering.Adjacent,
		find: func(netip.Addr, netip.Addr) error { return nil }, told: map[string]holders.Reason{},
		node: node.New(holders.Config{NodeName: s.Config.NodeName, Outer: kernel.Family(outer)}),
	}
}

// synced notes that a sync of an IP family is over. Other nodes are told for the first time when all of those that are
// served have had one. Before, all objects may not be known, so no address would be an egress IP; and what
// others send here would be masqueraded as this node where nothing stops it: a version that does not steer has run before.
func (s *steerer) synced(family v1.IPFamily, served []v1.IPFamily) {
	if s == nil {
		return
	}
	said := s.speak(family, served)
	s.tell(said)
	s.tellPorts(said)
}

// speak returns what other nodes are told from now on if they were told nothing before; zero otherwise, or as long as a family that is
// served has had no sync.
func (s *steerer) speak(family v1.IPFamily, served []v1.IPFamily) (said holders.Statement) {
	objects := s.state.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeObjects(objects)
	s.guarded[family] = true
	if slices.ContainsFunc(served, func(f v1.IPFamily) bool { return !s.guarded[f] }) || !s.node.Speak() {
		return holders.Statement{}
	}
	s.noteClaims(time.Now())
	return s.node.Say()
}

// tell tells other nodes which egress IPs are here: directly, and by this node's Lease. Nothing is told if the statement's revision is 0.
func (s *steerer) tell(said holders.Statement) {
	if said.Revision == 0 {
		return
	}
	if s.announcer != nil {
		s.announcer.SetAnnounced(said)
	}
	s.publisher.Changed()
}

// tellPorts tells other nodes directly which source ports this node's pods have, if they are told which egress IPs are here.
func (s *steerer) tellPorts(said holders.Statement) {
	if said.Revision == 0 || s.announcer == nil {
		return
	}
	if blocks, _, revision := s.ports.Stated(); revision > 0 {
		s.announcer.SetAssigned(revision, blocks)
	}
}

// published is what this node's Lease is to say.
func (s *steerer) published() holders.Published {
	s.mu.Lock()
	p := holders.Published{Statement: s.node.Said(), NodeUID: s.uid}
	s.mu.Unlock()
	if p.Revision > 0 {
		p.Choices = s.state.PublishChoices()
		_, p.Assigned, p.AssignedRevision = s.ports.Stated()
	}
	return p
}
