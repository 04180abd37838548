package steerer

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/node"
	"github.com/openshift/origin-node/pkg/egress/pool/neighbor"
	"github.com/openshift/origin-node/pkg/egress/sourceports"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
	"github.com/openshift/origin-node/pkg/wake"
)

// Config is what a [Steerer] has to know, and whom it tells.
type Config struct {
	// Kernel configures the tunnel, the marks and the ports. The IP family and the node's address in it do not count.
	Kernel steering.Config
	// Outer is the IP family in which the nodes reach each other.
	Outer v1.IPFamily
	// Leases are those in which nodes tell which egress IPs they have. Keys sign what nodes tell each other directly.
	Leases holders.Leases
	Keys   *holders.Keyring
	// Ports has which source ports pods have. AsksBlocks: other nodes are asked for theirs.
	Ports      *sourceports.Allocator
	AsksBlocks bool
	// Balanced: [Steerer.SetAnnounced] will be called; until then this node's addresses are not known.
	Balanced bool
	// Running has all goroutines; they end soon after the context.
	Running *sync.WaitGroup
	// RequestSync asks for a sync, Wake for one that is not due. LeasesKnown is told that all Leases are known, or that none can be.
	RequestSync, Wake, LeasesKnown func()
	// Came is told of addresses that are here now and were not before, and when they came; zero for those of the first report, which may have
	// been here since an earlier process.
	Came func(came map[netip.Addr]bool, at time.Time)
	// Unannounced is told why nothing is announced directly, and with nil that it is.
	Unannounced func(error)
}

// Steerer knows where the egress IPs of both IP families are, and has other nodes told which are
// here. Its methods may be called by several goroutines. A nil one, where nothing is steered, may be told of Nodes and syncs, and asked for
// Steering, Holders, Via and Troubles; it has none.
type Steerer struct {
	config    Config
	state     *cluster.State
	publisher *holders.Publisher
	// announcer is nil if nodes do not tell each other directly.
	announcer *holders.Announcer
	// toldNodes are those that the announcer was told of last.
	toldNodes atomic.Pointer[cluster.JudgedNodes]
	logger    klog.Logger
	// adjacent returns why another node cannot be the next hop of packets of this one.
	adjacent func(self, node netip.Addr) error
	// find has the kernel look for another node's hardware address.
	find func(self, node netip.Addr) error
	// advertise tells the network that addresses are here. It does not block.
	advertise func(addresses []netip.Addr)

	// mu is taken while no other lock is held, and nobody takes another one under it. Others are told when it was released. Statements, this
	// node's addresses and snapshots of the objects have a number, so that an older one never replaces a newer one.
	mu   sync.Mutex
	node *node.Node
	// own are this node's addresses by where they are known from.
	own ownAddresses
	// unreached are the nodes that cannot be the next hop, as the log says.
	unreached map[hopKey]nextHop
	// seen has what the directory was told of each Node, judged what that follows from; nil if it may follow from something else.
	seen   map[string]holders.NodeSeen
	judged *cluster.JudgedNodes
	// mistakes are what is said of the nodes mistakenOf.
	mistakenOf *cluster.JudgedNodes
	mistakes   map[netip.Addr]holders.Reason
	// objects are the newest that were seen; a sync takes note of what they say.
	objects cluster.Snapshot
	// refused says that the API server has answered with an error when it was asked for Leases, once.
	refused sync.Once
	// uid is that of this node's Node object; empty if it is not known.
	uid types.UID
	// guarded are the IP families of which a sync has written what steers, or has tried to.
	guarded map[v1.IPFamily]bool
	// here are this node's addresses, nil before the first report, and balanced those that a load balancer may announce from here: this node plans the pods of all of
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

// leasesPatience is how long the rules wait for Leases if the API server answers with an error. Perhaps nobody gives the right to them; but one
// that has just started refuses what it allows a moment later.
const leasesPatience = 10 * time.Second

// LeasesRefused says that the API server has answered with an error when it was asked for Leases.
func (s *Steerer) LeasesRefused() {
	s.refused.Do(func() { time.AfterFunc(leasesPatience, s.config.LeasesKnown) })
}

// New returns the Steerer of a node. It watches nothing before [Steerer.Run].
func New(ctx context.Context, state *cluster.State, config Config) *Steerer {
	s := newSteerer(state, config)
	s.logger = klog.FromContext(ctx)
	s.find = steering.FindNeighbour
	s.advertise = func(addresses []netip.Addr) { config.Running.Go(func() { s.tellNetwork(ctx, addresses) }) }
	s.own.announcedKnown = !config.Balanced // nobody tells then
	nodeName := state.Config.NodeName
	s.publisher = holders.NewPublisher(config.Leases, nodeName, s.published)
	if port := config.Kernel.AnnouncePort; port != 0 {
		s.announcer = holders.NewAnnouncer(nodeName, port, config.Keys)
		s.announcer.Failing, s.announcer.AsksBlocks = config.Unannounced, config.AsksBlocks
	}
	return s
}

// newSteerer returns one that tells nobody, and looks for no hardware addresses.
func newSteerer(state *cluster.State, config Config) *Steerer {
	return &Steerer{
		config: config, state: state, logger: klog.Background(), adjacent: steering.Adjacent,
		find: func(netip.Addr, netip.Addr) error { return nil }, ask: wake.New(), memberWake: wake.New(),
		node:      node.New(holders.Config{NodeName: state.Config.NodeName, Outer: kernel.Family(config.Outer)}),
		unreached: map[hopKey]nextHop{}, guarded: map[v1.IPFamily]bool{}, seen: map[string]holders.NodeSeen{},
		claimed: map[v1.IPFamily][]netip.Addr{}, coming: map[netip.Addr]time.Time{}, hardware: map[netip.Addr]kernel.HardwareAddr{},
	}
}

// Run begins to follow who holds the egress IPs, until the context ends.
func (s *Steerer) Run(ctx context.Context) {
	run := s.config.Running
	run.Go(func() { holders.WatchAddresses(ctx, steering.Device, s.SetOnInterfaces) })
	run.Go(func() { s.config.Leases.Watch(ctx, s.Apply) })
	run.Go(func() { s.publisher.Run(ctx) })
	run.Go(func() { s.followRivals(ctx) })
	if s.announcer != nil {
		run.Go(func() { s.announcer.Run(ctx, s.Apply) })
	}
	if s.config.Kernel.Transport == steering.Direct {
		run.Go(func() { steering.WatchNeighbours(ctx, s.state.IsPrimary, s.ask, s.setHardware) })
	}
}

// Outer is the IP family in which the nodes reach each other.
func (s *Steerer) Outer() v1.IPFamily { return s.config.Outer }

// MemberWake is sent when the pool's member may have something to do.
func (s *Steerer) MemberWake() wake.Signal { return s.memberWake }

// Announcements counts the datagrams by which nodes tell each other directly which egress IPs they have, by result; nil if they do not.
func (s *Steerer) Announcements() map[string]uint64 {
	if s.announcer == nil {
		return nil
	}
	return s.announcer.Counts()
}

// tellNetwork tells the network that addresses are here, more than once: what is told may be lost.
func (s *Steerer) tellNetwork(ctx context.Context, addresses []netip.Addr) {
	logger := klog.LoggerWithValues(s.logger, "addresses", addresses)
	logger.V(2).Info("Telling the network of egress IPs that other software has put on this node")
	if err := neighbor.AdvertiseHere(ctx, addresses); err != nil {
		logger.Info("The network could not be told of egress IPs that other software has put on this node; hosts may send to the node that had them for some seconds", "err", err)
	}
}

// Apply takes note of an event, and does what follows.
func (s *Steerer) Apply(event holders.Event) {
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
	// came are the addresses that are here now and were not before, since cameAt; zero for those of the first report.
	came   map[netip.Addr]bool
	cameAt time.Time
}

// next takes note of an event. The lock must be held.
func (s *Steerer) next(event holders.Event) (after outcome) {
	now := time.Now()
	if _, after.changed = s.node.Next(event, now); after.changed {
		after.said = s.node.Say()
	}
	after.sooner = s.wakesSooner(now)
	if own, is := event.(holders.OwnAddresses); is {
		here := kernel.SetOf(own.Addresses)
		after.came = maps.Clone(here)
		maps.DeleteFunc(after.came, func(ip netip.Addr, _ bool) bool { return s.here[ip] })
		if s.here != nil {
			after.cameAt = now
		}
		s.here = here
	}
	return after
}

// follow does what follows from an event. The lock must not be held.
func (s *Steerer) follow(event holders.Event, after outcome) {
	if after.changed {
		s.tell(after.said) // other nodes need not wait for this one's rules
		s.memberWake.Send()
	}
	changed := s.config.Ports.Apply(event) || after.changed
	switch event := event.(type) {
	case holders.OwnAddresses:
		changed = s.setHeld() || changed
		s.config.Came(after.came, after.cameAt)
	case holders.Chosen:
		changed = s.state.SetChoices(event.Node, event.Choices) || changed
		if event.Node == s.state.Config.NodeName && s.state.TellsOther(event.Choices) {
			s.publisher.Rewrite()
		}
	case holders.Announced:
		if event.Node == s.state.Config.NodeName && len(event.Addresses) > 0 && s.saysNone() {
			s.publisher.Rewrite()
		}
	case holders.LeaseDeleted:
		changed = s.state.Unlease(event.Node) || changed
		if event.Node == s.state.Config.NodeName && s.hasNode(event.Node) { // of one that is gone, the Lease goes with it
			s.publisher.Rewrite()
		}
	case holders.LeasesKnown:
		s.config.LeasesKnown()
	}
	switch {
	case changed:
		s.config.RequestSync()
	case after.sooner:
		s.config.Wake()
	}
}

// setHeld tells the plans which addresses this node has, or may get, and tells whether they may change. That may take long, so others have
// the lock meanwhile.
func (s *Steerer) setHeld() (changed bool) { return s.state.SetHeld(s.heldNow()) }

// heldNow returns the addresses whose pods this node plans.
func (s *Steerer) heldNow() (held map[netip.Addr]bool, revision uint64) {
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

// Here are this node's addresses. The map must not be changed.
func (s *Steerer) Here() map[netip.Addr]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.here
}

// Holder says who holds an address by the book, whether or not this node can reach that one.
func (s *Steerer) Holder(ip netip.Addr) holders.Holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node.Holder(ip, time.Now())
}

// Primaries are the primary addresses of all nodes, in an IP family, as of the last sync. The map must not be changed.
func (s *Steerer) Primaries(family v1.IPFamily) map[string]netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects.Judged == nil {
		return nil
	}
	return s.objects.Judged[family].Primary
}

// mayCome tells whether an address may come to this node at any moment. The lock must be held.
func (s *Steerer) mayCome(ip netip.Addr) bool { return s.node.MayCome(ip) || s.balanced[ip] }

// wakesSooner tells whether an answer changes by itself before the next sync comes: a node that is not Ready, for
// example, is silent some time later, and that is not a moment to be late. The lock must be held.
func (s *Steerer) wakesSooner(now time.Time) bool {
	at := s.node.Directory.Wake(now)
	if at.IsZero() || !s.wakeAt.IsZero() && !at.Before(s.wakeAt) {
		return false
	}
	s.wakeAt = at
	return true
}

// SetNode takes the newest version of a Node.
func (s *Steerer) SetNode(node *v1.Node) {
	if s == nil {
		return
	}
	if node.Name == s.state.Config.NodeName {
		s.mu.Lock()
		s.uid = node.UID
		s.mu.Unlock()
	}
	event := s.state.NodeSeen(node, s.config.Outer)
	s.mu.Lock()
	s.seen[node.Name], s.judged = event, nil
	s.mu.Unlock()
	s.Apply(event)
}

// readdress tells the directory of nodes whose address counts now, or no longer, because of another object than their Node. The
// lock must be held.
func (s *Steerer) readdress(judged *cluster.JudgedNodes, now time.Time) {
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
func (s *Steerer) hasNode(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, has := s.seen[name]
	return has
}

// DeleteNode forgets a Node.
func (s *Steerer) DeleteNode(name string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	delete(s.seen, name)
	for _, family := range cluster.Families {
		delete(s.unreached, hopKey{family, name})
	}
	s.mu.Unlock()
	s.Apply(holders.NodeDeleted{Name: name})
}
