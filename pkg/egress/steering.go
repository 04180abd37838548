package egress

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// Steering is how packets get to the nodes that hold their egress IPs.
type Steering struct {
	// Mode says what becomes of packets whose egress IP no node holds. Nothing is steered if it is
	// [holders.Off] or empty.
	Mode holders.Mode
	// LeaseNamespace is where each node tells in a Lease which egress IPs it holds.
	LeaseNamespace string
	// Keys sign what nodes announce directly, by the port that Kernel has for it; none if it is not signed.
	Keys holders.Keys
	// Kernel configures the tunnel, the marks and the ports. The IP family and the node's address in it do not
	// count.
	Kernel steering.Config
}

// off tells whether nothing is steered.
func (s Steering) off() bool { return s.Mode == "" || s.Mode == holders.Off }

// forKernel returns what the kernel's side needs; nil if nothing is steered.
func (s Steering) forKernel() *steering.Config {
	if s.off() {
		return nil
	}
	return &s.Kernel
}

// steerer knows where the egress IPs of both IP families are, and has other nodes told which are
// here. Its methods may be called by several goroutines; those of a nil steerer steer nothing.
type steerer struct {
	config Steering
	state  *state
	// outer is the IP family in which the nodes reach each other.
	outer     v1.IPFamily
	publisher *holders.Publisher
	// announcer is nil if nodes do not tell each other directly.
	announcer *holders.Announcer
	// changed asks for a sync, known tells that all Leases are known, or that none can be.
	changed, known func()

	// pool is nil if this program puts no egress IPs on nodes.
	pool *poolNode

	mu        sync.Mutex
	directory *holders.Directory
	// uid is that of this node's Node object; empty if it is not known.
	uid types.UID
	// published is what other nodes were told last.
	published holders.Statement
	// here are this node's addresses, assignable those that it may get at any moment: it plans the pods of both.
	here, assignable map[netip.Addr]bool
}

// newSteerer returns the steerer of an Extension; nil if nothing is steered.
func newSteerer(e *Extension, leases holders.Leases, outer v1.IPFamily) *steerer {
	if e.config.Steering.off() {
		return nil
	}
	s := &steerer{
		config:    e.config.Steering,
		state:     e.state,
		outer:     outer,
		publisher: holders.NewPublisher(leases, e.config.NodeName),
		changed:   func() { e.changed(true, time.Now()) },
		known:     func() { e.known(leasesKind) },
		directory: holders.NewDirectory(holders.Config{NodeName: e.config.NodeName, Outer: kernel.Family(outer)}),
	}
	if port := s.config.Kernel.AnnouncePort; port != 0 {
		s.announcer = holders.NewAnnouncer(e.config.NodeName, port, s.config.Keys)
	}
	return s
}

// steer begins to follow who holds the egress IPs.
func (e *Extension) steer(client kubernetes.Interface, outer v1.IPFamily) {
	leases := holders.Leases{Client: client, Namespace: e.config.Steering.LeaseNamespace, Explain: e.explain}
	if e.steerer = newSteerer(e, leases, outer); e.steerer == nil {
		return
	}
	ctx := klog.NewContext(e.ctx, e.logger)
	e.running.Go(func() { holders.WatchAddresses(ctx, steering.Device, e.steerer.apply) })
	e.running.Go(func() { leases.Watch(ctx, e.steerer.apply) })
	e.running.Go(func() { e.steerer.publisher.Run(ctx) })
	if announcer := e.steerer.announcer; announcer != nil {
		e.running.Go(func() { announcer.Run(ctx, e.steerer.apply) })
	}
	e.pool = newPoolNode(ctx, e)
	e.steerer.pool = e.pool
}

// apply takes note of an event.
func (s *steerer) apply(event holders.Event) {
	s.mu.Lock()
	changed := s.directory.Apply(event, time.Now())
	if changed && s.published.Revision > 0 {
		s.publish() // other nodes need not wait for this one's rules
	}
	s.mu.Unlock()
	switch event := event.(type) {
	case holders.OwnAddresses:
		changed = s.setHeld(func() { s.here = setOf(event.Addresses) }) || changed
	case holders.LeasesKnown:
		s.known()
	case holders.Hearing:
		if !event.Now {
			s.known() // rules must not wait for a right that nobody gives
		}
	}
	if changed {
		s.changed()
	}
}

// setHeld notes which addresses this node has, or may get, and tells whether plans may change.
func (s *steerer) setHeld(change func()) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	held := maps.Clone(s.assignable)
	if held == nil {
		held = map[netip.Addr]bool{}
	}
	maps.Copy(held, s.here)
	return s.state.setHeld(held)
}

func setOf(addresses []netip.Addr) map[netip.Addr]bool {
	set := make(map[netip.Addr]bool, len(addresses))
	for _, ip := range addresses {
		set[ip] = true
	}
	return set
}

// setNode takes the newest version of a Node.
func (s *steerer) setNode(node *v1.Node) {
	if s == nil {
		return
	}
	if node.Name == s.state.config.NodeName {
		s.mu.Lock()
		s.uid = node.UID
		s.mu.Unlock()
	}
	event := holders.NodeSeen{Name: node.Name}
	for _, condition := range node.Status.Conditions {
		event.Ready = event.Ready || condition.Type == v1.NodeReady && condition.Status == v1.ConditionTrue
	}
	for _, address := range node.Status.Addresses {
		if ip, ok := parseIP(address.Address); ok && address.Type == v1.NodeInternalIP {
			event.InternalIPs = append(event.InternalIPs, ip)
		}
	}
	s.apply(event)
}

// deleteNode forgets a Node.
func (s *steerer) deleteNode(name string) {
	if s != nil {
		s.apply(holders.NodeDeleted{Name: name})
	}
}

// steering returns which ways the packets of an IP family take, and when that changes without an event;
// zero for never. It tells the other nodes which egress IPs are here.
func (s *steerer) steering(family v1.IPFamily) (result kernel.Steering, wake time.Time) {
	if s == nil {
		return kernel.Steering{}, time.Time{}
	}
	nodes := s.state.primaries(s.outer)
	result.Self = nodes[s.state.config.NodeName]
	delete(nodes, s.state.config.NodeName)
	result.Nodes = slices.SortedFunc(maps.Values(nodes), netip.Addr.Compare)
	if s.announcer != nil {
		s.announcer.SetNodes(result.Self, nodes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	claimed := s.state.egressIPs(family)
	result.Ways = s.directory.Ways(claimed, s.config.Mode, now)
	s.publish()
	return result, s.directory.Wake(now)
}

// publish has other nodes told which egress IPs are here. The lock must be held. The first call must wait for
// all objects: before, no address is an egress IP, and that would be told.
func (s *steerer) publish() {
	own := s.directory.Own()
	if own == nil {
		return
	}
	published := map[netip.Addr]uint64{}
	for _, family := range families {
		claimed := s.state.egressIPs(family)
		for _, ip := range claimed {
			if epoch, here := own[ip]; here {
				published[ip] = epoch
			}
		}
	}
	if s.published.Revision == 0 || !maps.Equal(published, s.published.Addresses) {
		s.published = holders.Statement{Addresses: published, Revision: max(s.published.Revision, s.directory.Revision()) + 1}
	}
	s.publisher.SetPublished(s.published, s.uid)
	if s.announcer != nil {
		s.announcer.SetAnnounced(s.published)
	}
}

// primaries returns the primary addresses of all nodes that have one, in an IP family, by their names.
func (s *state) primaries(family v1.IPFamily) map[string]netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	primaries := map[string]netip.Addr{}
	for name, node := range s.nodes {
		if ip := node[family].Primary; ip.IsValid() {
			primaries[name] = ip
		}
	}
	return primaries
}
