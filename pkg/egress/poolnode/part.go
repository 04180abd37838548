package poolnode

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

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/pool"
	"github.com/openshift/origin-node/pkg/egress/steerer"
	"github.com/openshift/origin-node/pkg/kernel/steering"
	"github.com/openshift/origin-node/pkg/wake"
)

// Membership is how this node takes part in the pool.
type Membership struct {
	// Port is where nodes of the pool speak to each other.
	Port uint16
	// DrainFile is there as long as this node is drained; also after a restart, not after a reboot.
	DrainFile string
}

// Config is what a [Part] has to know beside the objects, and whom it asks and tells.
type Config struct {
	Membership
	// Running has all goroutines; they end soon after the context.
	Running *sync.WaitGroup
	// Event tells something about this node, once.
	Event func(reason plan.Reason, note string)
	// RequestSync asks for a sync, Await waits for one of an IP family that begins after the call.
	RequestSync func()
	Await       func(ctx context.Context, family v1.IPFamily)
	// Reserved are the addresses that a load balancer has, Keys those of this moment, and NoKey says why there are none.
	Reserved func() map[netip.Addr]bool
	Keys     func() holders.Keys
	NoKey    func() error
	// Missing are the kinds of objects that are waited for.
	Missing func() []string
}

// Part is this node's part in the pool. Its methods may be called by several goroutines. A nil one, of a node that can have no part, may be
// told of Nodes and syncs, and asked by all who tell people of it but Report.
type Part struct {
	config Config
	state  *cluster.State
	// steerer is that of the node; Start sets it.
	steerer *steerer.Steerer
	// adjacent returns why another node cannot be the next hop of packets of this one.
	adjacent func(self, node netip.Addr) error
	logger   klog.Logger
	ctx      context.Context

	// granted wakes the goroutine of run. told is what that has told the runner last.
	granted wake.Signal
	told    toldPool

	// draining protects whether this node is drained, and the file: an operator says so, or the system goes down.
	draining           sync.Mutex
	drained, goingDown bool

	mu sync.Mutex
	// nodes are those that are in the pool, former those that are by its former label alone.
	nodes, former map[string]bool
	// wanted are the addresses that the pool is to hold, in each IP family whose plan is known.
	wanted map[v1.IPFamily]cluster.Grants
	// refused counts how often in a row the API server has refused this node, before Start.
	refused int
	// stopKeeping ends what keeps the addresses of an earlier process, and waits for that.
	stopKeeping func()
	// runner is nil as long as this node has had no part in the pool.
	runner *pool.Runner
	// asked counts the syncs that run is to follow. due is since when it could have followed the last of them; zero if it has.
	asked int
	due   time.Time
	// looked: it is known whether an earlier process has left addresses.
	looked bool
	// leftToBalancer are the addresses that the pool leaves to a load balancer, and no node has, since when.
	leftToBalancer map[netip.Addr]time.Time
	// moves counts the addresses that this node took or released, by why.
	moves map[pool.Reason]int
	// handovers is nil where the kernel has not what that takes.
	handovers handovers
	// handing are the egress IPs of each handover for whose end the rules here are still waited for, by its number; begun is that of the
	// last one. The book says until when a handover lasts at most.
	handing map[int][]netip.Addr
	begun   int
	// goneAt is when nodes have gone with which the pool still speaks; it is of the goroutine of run.
	goneAt map[string]time.Time
	// unlogged is what is logged when the lock is released.
	unlogged []func()
	// warned is what the log says of networks of the pool inside the cluster, of addresses that this node cannot
	// hold, of nodes with the former label, and of those with another one's address.
	warned struct{ networks, unable, labels, shared []string }
}

// toldPool is what a runner was told last.
type toldPool struct {
	addresses map[string]netip.Addr
	nodes     []string
	zones     map[string]string
	wanted    map[netip.Addr]bool
	siblings  map[netip.Addr][]netip.Addr
}

// New returns the part of a node in the pool that its state is configured with.
func New(ctx context.Context, state *cluster.State, config Config) *Part {
	p := &Part{
		config: config, state: state, ctx: ctx, logger: klog.FromContext(ctx), stopKeeping: func() {}, adjacent: steering.Adjacent,
		nodes: map[string]bool{}, former: map[string]bool{}, wanted: map[v1.IPFamily]cluster.Grants{}, moves: map[pool.Reason]int{},
		handing: map[int][]netip.Addr{}, goneAt: map[string]time.Time{}, leftToBalancer: map[netip.Addr]time.Time{}, granted: wake.New(),
	}
	for why := range pool.Reasons() {
		p.moves[why] = 0 // Prometheus takes the first value of a series for no increase
	}
	p.warnOfSelector()
	return p
}

// Start begins to take part, as soon as all is known that it takes.
func (p *Part) Start(s *steerer.Steerer) {
	p.steerer = s
	p.config.Running.Go(p.run)
}

// Keep keeps the addresses that an earlier process has put here until it is known who is in the pool: the API server may
// be away for longer than the kernel keeps them.
func (p *Part) Keep() {
	ctx, stop := context.WithCancel(p.ctx)
	ended := make(chan struct{})
	p.config.Running.Go(func() {
		defer close(ended)
		pool.Keep(ctx, p.state.Config.Pool.Networks, steering.Device)
	})
	p.stopKeeping = func() { stop(); <-ended }
}

// Refused is told, before Start and again and again, what the API server answers this node instead of its objects. Without its Node object it
// has no part in the pool. Without rights it does not know of new pods: if that lasts, and it is not an API server that only starts, nobody
// keeps the addresses any more, so that the kernel withdraws them and other nodes take them.
func (p *Part) Refused(err error) {
	var answer apierrors.APIStatus
	named := errors.As(err, &answer) && answer.Status().Details != nil && answer.Status().Details.Name == p.state.Config.NodeName
	switch {
	case named && apierrors.IsNotFound(err): // and not a page that a load balancer does not find
		p.letGo()
	case !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err):
		p.refused = 0
	case p.refused > 0:
		p.stopKeeping()
	default:
		p.refused++
	}
}

// SetNode takes the newest version of a Node, and tells whether another one is in the pool.
func (p *Part) SetNode(node *v1.Node) (changed bool) {
	if p == nil {
		return false
	}
	pool := p.state.Config.Pool
	return p.setInPool(node.Name, pool.Selects(node.Labels), pool.SelectsByFormer(node.Labels))
}

// DeleteNode forgets a Node, and tells whether it was in the pool.
func (p *Part) DeleteNode(name string) (changed bool) {
	return p != nil && p.setInPool(name, false, false)
}

func (p *Part) setInPool(name string, now, byFormer bool) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed = p.nodes[name] != now || p.former[name] != byFormer
	put(p.nodes, name, now)
	put(p.former, name, byFormer)
	return changed
}

func put(set map[string]bool, name string, in bool) {
	if in {
		set[name] = true
	} else {
		delete(set, name)
	}
}

// Sync takes what the plan of a family grants. All objects must be known. It does not wait for what follows.
func (p *Part) Sync(family v1.IPFamily) {
	if p == nil || !p.noteGranted(family) {
		return
	}
	p.noteLeft(time.Now())
	p.mu.Lock()
	p.asked++
	if p.due.IsZero() {
		p.due = time.Now()
	}
	p.mu.Unlock()
	p.granted.Send()
}

// run has this node's part in the pool follow what the plans grant, and the Nodes, until its context ends. Nobody else calls turn.
func (p *Part) run() { p.granted.Follow(p.ctx, p.turn) }

// turn follows, and notes that this is done unless there was a sync meanwhile.
func (p *Part) turn() {
	p.mu.Lock()
	asked := p.asked
	p.mu.Unlock()
	p.follow()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.due = (time.Time{}); p.asked != asked {
		p.due = time.Now()
	}
}

// follow begins this node's part in the pool, if it is time, and tells it what has changed.
func (p *Part) follow() {
	if p.mayStart(p.state.Primary(p.state.Config.NodeName, p.steerer.Outer())) {
		p.start()
	}
	runner, _ := p.part()
	if runner == nil && !p.looked && p.cannotCount() {
		p.letGo()
	}
	now := p.toTell(runner)
	if runner == nil {
		return
	}
	if !slices.Equal(now.nodes, p.told.nodes) || !maps.Equal(now.zones, p.told.zones) || !maps.Equal(now.addresses, p.told.addresses) {
		runner.SetNodes(now.addresses, now.nodes, now.zones)
	}
	if p.told.wanted == nil || !maps.Equal(now.wanted, p.told.wanted) || !maps.EqualFunc(now.siblings, p.told.siblings, slices.Equal) {
		runner.Tell(pool.Wanted{Addresses: slices.Collect(maps.Keys(now.wanted)), Siblings: now.siblings})
	}
	p.told = now
}

// cannotCount tells whether what this node says does not count for the others, because its Node has no InternalIP that does. If that is so
// of all nodes of the pool, an argument is wrong, and none could take the addresses: then they stay, for the packets that come to them.
func (p *Part) cannotCount() bool {
	self, primary := p.state.Config.NodeName, p.state.Primaries(p.steerer.Outer())
	counts := func(name string) bool { return primary[name].IsValid() }
	return !p.state.HasInternalIP(self) || !counts(self) && slices.ContainsFunc(p.selected(), counts)
}

// letGo removes the addresses that an earlier process has put here from a node without a Node object, or without an address in it that
// counts. One of the others is to take them. Nobody else puts any here until it has both.
func (p *Part) letGo() {
	p.stopKeeping()
	removed, err := pool.RemoveAddresses(p.state.Config.Pool.Networks)
	if len(removed) > 0 {
		p.logger.Info("Removed egress IPs", "addresses", removed, "because", "this node has no Node object with an InternalIP that counts")
	}
	if err != nil {
		p.logger.Error(err, "Cannot remove the egress IPs of this node, which has no Node object with an InternalIP that counts; will retry with the next sync")
	}
}

// toTell is what the runner, if there is one, is to know. What is wrong with that is logged.
func (p *Part) toTell(runner *pool.Runner) (now toldPool) {
	judged, reserved, inside := p.state.JudgedNodes(p.steerer.Outer()), p.config.Reserved(), p.state.Inside(p.state.Config.Pool.Networks)
	now.nodes = p.selected()
	now.zones = p.state.ZonesOf(now.nodes)
	var status pool.Status
	if runner != nil {
		status = runner.Status()
	}
	p.mu.Lock()
	defer p.unlock()
	now.addresses = p.owned(judged)
	now.wanted, now.siblings = p.allWanted(reserved)
	if runner != nil {
		p.warn(now.wanted, inside, status)
	}
	return now
}

// selected are the nodes that are in the pool, sorted.
func (p *Part) selected() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.nodes))
}

// noteGranted notes what the plan of a family grants, and tells whether that is known of all families.
func (p *Part) noteGranted(family v1.IPFamily) (known bool) {
	p.mu.Lock()
	revision := p.wanted[family].Revision
	p.mu.Unlock()
	granted := p.state.Granted(family, p.state.Config.Pool.Networks, revision)
	p.mu.Lock()
	defer p.mu.Unlock()
	if granted.Addresses != nil {
		p.wanted[family] = granted
	}
	return len(p.wanted) == len(cluster.Families)
}

// mayStart tells whether this node's part is to be started now.
func (p *Part) mayStart(own netip.Addr) bool {
	hasKey := p.hasKey()
	p.mu.Lock()
	defer p.unlock()
	p.warnOfLabels()
	return p.runner == nil && hasKey && own.IsValid() && (p.nodes[p.state.Config.NodeName] || !p.looked)
}

// owned are the addresses at which the pool speaks with nodes, each with one alone: a node says itself which one it has, and is not
// to silence another one. What nodes share is this one's; or that of the node that has had it since this process took part in the
// pool; or the oldest node's. The lock must be held, by the goroutine of run.
func (p *Part) owned(judged *cluster.JudgedNodes) map[string]netip.Addr {
	owners, self := maps.Clone(judged.Oldest), p.state.Config.NodeName
	maps.DeleteFunc(p.goneAt, func(name string, _ time.Time) bool {
		return judged.Primary[name].IsValid() || !p.told.addresses[name].IsValid()
	})
	for name, ip := range p.told.addresses {
		if judged.Primary[name] == ip || owners[ip] == "" && p.isSpokenWith(name, judged) {
			owners[ip] = name
		}
	}
	if ip, has := judged.Primary[self]; has {
		owners[ip] = self
	}
	owned := make(map[string]netip.Addr, len(owners))
	for ip, name := range owners {
		owned[name] = ip
	}
	p.warnOfShared(judged.Primary, owners)
	return owned
}

// farewell is how long the pool speaks with a node whose Node object is gone: it may live, without the API server, and is to hear who has
// its addresses now.
const farewell = 10 * time.Second

// isSpokenWith tells whether a node that had an address lately is still spoken with although it has none. The lock must be held, by the
// goroutine of run.
func (p *Part) isSpokenWith(name string, judged *cluster.JudgedNodes) bool {
	if _, has := judged.Primary[name]; has {
		return false
	}
	at, known := p.goneAt[name]
	if !known {
		at = time.Now()
		p.goneAt[name] = at
		time.AfterFunc(farewell, p.granted.Send)
	}
	return time.Since(at) < farewell
}

// allWanted are the addresses that the pool is to hold: not those that a load balancer announces, which are reserved. Their siblings may be
// among these. The lock must be held.
func (p *Part) allWanted(reserved map[netip.Addr]bool) (all map[netip.Addr]bool, siblings map[netip.Addr][]netip.Addr) {
	all, siblings = map[netip.Addr]bool{}, map[netip.Addr][]netip.Addr{}
	for _, of := range p.wanted {
		maps.Copy(all, of.Addresses)
		maps.Copy(siblings, of.Siblings)
	}
	maps.DeleteFunc(all, func(ip netip.Addr, _ bool) bool { return reserved[ip] })
	return all, siblings
}

// hasKey tells whether there is one. Until then addresses stay where they are: nobody would know who speaks.
func (p *Part) hasKey() bool { return len(p.config.Keys()) > 0 }

// start begins to take part, unless this node is not in the pool and has no addresses of an earlier process, which have to be handed
// over. It asks the kernel, so the lock must not be held.
func (p *Part) start() {
	left, err := pool.HasAddresses(p.state.Config.Pool.Networks)
	p.mu.Lock()
	member := p.nodes[p.state.Config.NodeName]
	p.looked = p.looked || err == nil || member // else the next sync looks again
	p.mu.Unlock()
	if !left && !member {
		return
	}
	p.stopKeeping()
	handovers, err := p.startHandovers()
	if err != nil {
		p.logger.Info("Connections that begin while an egress IP is handed over may take a second, because this kernel cannot pass packets on to another node; it needs the modules nft_dup_ipv4 and nft_dup_ipv6", "reason", err.Error())
	}
	runner := pool.NewRunner(pool.Config{
		NodeName: p.state.Config.NodeName, Port: p.config.Port, Keys: p.config.Keys,
		Networks: p.state.Config.Pool.Networks, Ignored: steering.Device,
		Wake:    p.steerer.MemberWake(),
		Moved:   p.moved,
		Changed: p.config.RequestSync,
	}, p.steerer.Join(err == nil))
	if p.remembersDrain() {
		p.logger.Info("This node is drained: it takes no egress IPs until 'openshift egress undrain'", "file", p.config.DrainFile)
		p.draining.Lock()
		p.drained = true
		p.draining.Unlock()
	}
	p.mu.Lock()
	p.handovers, p.runner = handovers, runner
	p.mu.Unlock()
	p.tellDrain(runner)
	p.config.Running.Go(func() { runner.Run(p.ctx) })
}

// DueSince returns since when the part in the pool has not come to something that it has to do; zero if there is nothing.
func (p *Part) DueSince() time.Time {
	if p == nil {
		return time.Time{}
	}
	p.mu.Lock()
	runner, due := p.runner, p.due
	p.mu.Unlock()
	if runner == nil {
		return due
	}
	return holders.Earlier(due, runner.DueSince())
}

// part returns this node's part in the pool; nil if it has none, which may be because it is still to start.
func (p *Part) part() (runner *pool.Runner, starting bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runner, p.runner == nil && !p.due.IsZero()
}

// Absent returns why this node does not hear the other nodes of the pool, nor they it; nil if nothing is in the way, or it has no
// part in the pool.
func (p *Part) Absent() error {
	if p == nil {
		return nil
	}
	runner, _ := p.part()
	if runner == nil {
		return nil
	}
	return runner.Absence()
}

// status returns how the pool stands; not known if this node has no part in it.
func (p *Part) status() (status pool.Status, known bool) {
	if p == nil {
		return pool.Status{}, false
	}
	runner, _ := p.part()
	if runner == nil {
		return pool.Status{}, false
	}
	return runner.Status(), true
}

// absence returns why this node has no part in the pool.
func (p *Part) absence() error {
	p.mu.Lock()
	known, selected, starting := len(p.wanted) == len(cluster.Families), p.nodes[p.state.Config.NodeName], !p.due.IsZero()
	p.mu.Unlock()
	switch {
	case !known:
		return fmt.Errorf("this node has no part in the pool yet: it waits for objects of the API server (%s)", strings.Join(p.config.Missing(), ", "))
	case !selected:
		return fmt.Errorf("this node is not in the pool: its Node does not match %q (proxyArguments.egress-snat-assign-nodes)", p.state.Config.Pool.Nodes)
	case !p.hasKey():
		return p.config.NoKey()
	case starting:
		return errors.New("this node's part in the pool is starting; try again in a moment")
	}
	return fmt.Errorf("this node has no part in the pool: its Node has no InternalIP that counts for %s, in which the nodes reach each other", p.steerer.Outer())
}
