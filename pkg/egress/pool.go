package egress

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/pool"
	"github.com/openshift/origin-node/pkg/egress/tell"
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

// poolNode is this node's part in the pool. Its methods may be called by several goroutines; those of a nil one do
// nothing.
type poolNode struct {
	config *Config
	state  *cluster.State
	// steerer is that of the node; set before the first sync.
	steerer *steerer
	running *sync.WaitGroup
	logger  klog.Logger
	ctx     context.Context
	// event tells something about this node, once.
	event func(reason plan.Reason, note string)
	// changed asks for a sync, await waits for one of an IP family that begins after the call.
	changed func(changed bool, at time.Time)
	await   func(ctx context.Context, family v1.IPFamily)
	// reserved are the addresses that a load balancer has, keys those of this moment, and errNoKey why there are none.
	reserved func() map[netip.Addr]bool
	keys     func() holders.Keys
	errNoKey func() error
	// missing are the kinds of objects that are waited for.
	missing func() []string

	// granted wakes the goroutine of run. told is what that has told the runner last.
	granted wake.Signal
	told    toldPool

	// draining has those wait that note and tell whether this node is drained.
	draining sync.Mutex
	mu       sync.Mutex
	// nodes are those that are in the pool, former those that are by its former label alone.
	nodes, former map[string]bool
	// wanted are the addresses that the pool is to hold, in each IP family whose plan is known.
	wanted map[v1.IPFamily]cluster.Grants
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
	// handing are the egress IPs of each handover that is not over, by its number; begun is that of the last one.
	handing map[int][]netip.Addr
	begun   int
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

// newPoolNode returns the part of an Extension's node; nil if there is no pool.
func newPoolNode(ctx context.Context, e *Extension) *poolNode {
	if len(e.config.Pool.Networks) == 0 || e.config.Steering.Off() {
		return nil
	}
	p := &poolNode{
		config: &e.config, state: e.state, running: &e.running, ctx: ctx, logger: klog.FromContext(ctx), stopKeeping: func() {},
		event:   func(reason plan.Reason, note string) { e.events.Tell(reason, note) },
		changed: e.changed,
		await: func(ctx context.Context, family v1.IPFamily) {
			if f := e.families[family]; f != nil {
				_ = f.loop.Await(ctx)
			}
		},
		reserved: func() map[netip.Addr]bool { return e.balancer.reserved() },
		keys:     e.keys.ring.For("pool"), errNoKey: e.errNoKey,
		missing: func() []string { return e.barrier.Missing() },
		nodes:   map[string]bool{}, former: map[string]bool{}, wanted: map[v1.IPFamily]cluster.Grants{}, moves: map[pool.Reason]int{},
		handing: map[int][]netip.Addr{}, leftToBalancer: map[netip.Addr]time.Time{}, granted: wake.New(),
	}
	for why := range pool.Reasons() {
		p.moves[why] = 0 // Prometheus takes the first value of a series for no increase
	}
	p.warnOfSelector()
	return p
}

// keep keeps the addresses that an earlier process has put here until it is known who is in the pool: the API server may
// be away for longer than the kernel keeps them.
func (p *poolNode) keep() {
	ctx, stop := context.WithCancel(p.ctx)
	ended := make(chan struct{})
	p.running.Go(func() {
		defer close(ended)
		pool.Keep(ctx, p.config.Pool.Networks, steering.Device)
	})
	p.stopKeeping = func() { stop(); <-ended }
}

// setNode takes the newest version of a Node, and tells whether another one is in the pool.
func (p *poolNode) setNode(node *v1.Node) (changed bool) {
	if p == nil {
		return false
	}
	pool := p.config.Pool
	return p.setInPool(node.Name, pool.Selects(node.Labels), pool.SelectsByFormer(node.Labels))
}

// deleteNode forgets a Node, and tells whether it was in the pool.
func (p *poolNode) deleteNode(name string) (changed bool) {
	return p != nil && p.setInPool(name, false, false)
}

func (p *poolNode) setInPool(name string, now, byFormer bool) (changed bool) {
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

// sync takes what the plan of a family grants. All objects must be known. It does not wait for what follows.
func (p *poolNode) sync(family v1.IPFamily) {
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
func (p *poolNode) run() {
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.granted:
		}
		p.turn()
	}
}

// turn follows, and notes that this is done unless there was a sync meanwhile.
func (p *poolNode) turn() {
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
func (p *poolNode) follow() {
	s := p.steerer
	if p.mayStart(s.state.Primary(p.config.NodeName, s.outer)) {
		p.start()
	}
	runner, _ := p.part()
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

// toTell is what the runner, if there is one, is to know. What is wrong with that is logged.
func (p *poolNode) toTell(runner *pool.Runner) (now toldPool) {
	judged, reserved, inside := p.state.JudgedNodes(p.steerer.outer), p.reserved(), p.state.Inside(p.config.Pool.Networks)
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
func (p *poolNode) selected() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.nodes))
}

// noteGranted notes what the plan of a family grants, and tells whether that is known of all families.
func (p *poolNode) noteGranted(family v1.IPFamily) (known bool) {
	p.mu.Lock()
	revision := p.wanted[family].Revision
	p.mu.Unlock()
	granted := p.state.Granted(family, p.config.Pool.Networks, revision)
	p.mu.Lock()
	defer p.mu.Unlock()
	if granted.Addresses != nil {
		p.wanted[family] = granted
	}
	return len(p.wanted) == len(cluster.Families)
}

// mayStart tells whether this node's part is to be started now.
func (p *poolNode) mayStart(own netip.Addr) bool {
	hasKey := p.hasKey()
	p.mu.Lock()
	defer p.unlock()
	p.warnOfLabels()
	return p.runner == nil && hasKey && own.IsValid() && (p.nodes[p.config.NodeName] || !p.looked)
}

// owned are the addresses at which the pool speaks with nodes, each with one alone: a node says itself which one it has, and is not
// to silence another one. What nodes share is this one's; or that of the node that has had it since this process took part in the
// pool; or the oldest node's. The lock must be held, by the goroutine of run.
func (p *poolNode) owned(judged *cluster.JudgedNodes) map[string]netip.Addr {
	owners, self := maps.Clone(judged.Oldest), p.config.NodeName
	for name, ip := range p.told.addresses {
		if judged.Primary[name] == ip {
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

// allWanted are the addresses that the pool is to hold: not those that a load balancer announces, which are reserved. Their siblings may be
// among these. The lock must be held.
func (p *poolNode) allWanted(reserved map[netip.Addr]bool) (all map[netip.Addr]bool, siblings map[netip.Addr][]netip.Addr) {
	all, siblings = map[netip.Addr]bool{}, map[netip.Addr][]netip.Addr{}
	for _, of := range p.wanted {
		maps.Copy(all, of.Addresses)
		maps.Copy(siblings, of.Siblings)
	}
	maps.DeleteFunc(all, func(ip netip.Addr, _ bool) bool { return reserved[ip] })
	return all, siblings
}

// hasKey tells whether there is one. Until then addresses stay where they are: nobody would know who speaks.
func (p *poolNode) hasKey() bool { return len(p.keys()) > 0 }

// start begins to take part, unless this node is not in the pool and has no addresses of an earlier process, which have to be handed
// over. It asks the kernel, so the lock must not be held.
func (p *poolNode) start() {
	left := pool.HasAddresses(p.config.Pool.Networks)
	p.mu.Lock()
	p.looked = true
	if !left && !p.nodes[p.config.NodeName] {
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.stopKeeping()
	handovers, err := p.startHandovers()
	if err != nil {
		p.logger.Info("Connections that begin while an egress IP is handed over may take a second, because this kernel cannot pass packets on to another node; it needs the modules nft_dup_ipv4 and nft_dup_ipv6", "reason", err.Error())
	}
	runner := pool.NewRunner(pool.Config{
		NodeName: p.config.NodeName, Port: p.config.Membership.Port, Keys: p.keys,
		Networks: p.config.Pool.Networks, Ignored: steering.Device,
		Wake:    p.steerer.memberWake,
		Moved:   p.moved,
		Changed: func() { p.changed(true, time.Now()) },
	}, p.steerer.join(err == nil))
	if p.isDrained() {
		p.logger.Info("This node is drained: it takes no egress IPs until 'openshift egress undrain'", "file", p.config.Membership.DrainFile)
		runner.Tell(pool.Drain{Now: true})
	}
	p.mu.Lock()
	p.handovers, p.runner = handovers, runner
	p.mu.Unlock()
	p.running.Go(func() { runner.Run(p.ctx) })
}

// dueSince returns since when the part in the pool has not come to something that it has to do; zero if there is nothing.
func (p *poolNode) dueSince() time.Time {
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

// isDrained tells whether this node is drained until somebody says otherwise.
func (p *poolNode) isDrained() bool {
	_, err := os.Stat(p.config.Membership.DrainFile)
	return err == nil
}

// giveAllAway gives this node's addresses to others because the system goes down. It returns when they have them, or ctx ends.
func (p *poolNode) giveAllAway(ctx context.Context) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	runner, starting := p.part()
	for ; starting && ctx.Err() == nil; runner, starting = p.part() {
		<-look.C
	}
	if runner == nil {
		return
	}
	p.logger.Info("The system shuts down: this node gives its egress IPs to other nodes")
	runner.Tell(pool.Drain{Now: true})
	for ; ctx.Err() == nil; <-look.C {
		if own := runner.Status().Members; len(own) > 0 && own[0].Draining && len(own[0].Held) == 0 && len(p.handingOver()) == 0 {
			return
		}
	}
	p.logger.Error(nil, "The system goes down before other nodes have all egress IPs of this one; they take them when it is gone")
}

// part returns this node's part in the pool; nil if it has none, which may be because it is still to start.
func (p *poolNode) part() (runner *pool.Runner, starting bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runner, p.runner == nil && !p.due.IsZero()
}

// goOn ends giveAllAway: the system does not go down after all.
func (p *poolNode) goOn() {
	runner, _ := p.part()
	if runner == nil {
		return
	}
	p.logger.Info("The shutdown was cancelled: this node takes egress IPs again unless it is drained")
	p.draining.Lock()
	defer p.draining.Unlock()
	runner.Tell(pool.Drain{Now: p.isDrained()})
}

// moved tells the directory, the log and the users of moves. What belongs to connections of a node that hands an address over goes
// to that one before anybody sends it here. Where it cannot, the rules of both nodes change at once, and are waited for.
func (p *poolNode) moved(moves []pool.Move) {
	var arrived, handedOver, released, abrupt []netip.Addr
	former, neighbour := map[netip.Addr]netip.Addr{}, p.neighbours()
	for _, m := range moves {
		node, passes := netip.Addr{}, false
		if m.PassOn || m.GoOn {
			node, passes = neighbour(m)
		}
		switch {
		case m.Taken:
			if arrived = append(arrived, m.Address); passes {
				former[m.Address] = node
			}
		case passes:
			handedOver = append(handedOver, m.Address)
		default:
			released = append(released, m.Address)
		}
		if !passes && m.Why.Served() {
			abrupt = append(abrupt, m.Address)
		}
	}
	p.passOn(former)
	if len(arrived) > 0 {
		p.steerer.apply(holders.Arrived{Addresses: arrived})
	}
	if len(handedOver) > 0 {
		p.handOver(handedOver)
	}
	if len(released) > 0 {
		go p.leaveTo(released) // a node that was drained until now may be passed packets all the same
		p.steerer.apply(holders.Left{Addresses: released})
	}
	p.awaitRules(abrupt, ruleTime)
	p.account(moves)
}

// account counts moves and tells people of them: the log of each, and one Event of all that were taken from the same node for the same
// reason.
func (p *poolNode) account(moves []pool.Move) {
	type origin struct {
		from string
		why  pool.Reason
	}
	taken := map[origin][]netip.Addr{}
	p.mu.Lock()
	for _, m := range moves {
		p.moves[m.Why]++
	}
	p.mu.Unlock()
	for _, m := range moves {
		if !m.Taken {
			p.logger.Info("Released an egress IP", "address", m.Address, "to", m.Other, "because", m.Why.Because())
			continue
		}
		takeTime.WithLabelValues().Observe(m.At.Sub(m.Since).Seconds())
		p.logger.Info("Took an egress IP", "address", m.Address, "from", m.Other, "because", m.Why.Because(), "epoch", m.Epoch, "after", m.At.Sub(m.Since).Round(time.Millisecond))
		taken[origin{m.Other, m.Why}] = append(taken[origin{m.Other, m.Why}], m.Address)
	}
	for o, addresses := range taken {
		from := ""
		if o.from != "" {
			from = " from " + o.from
		}
		p.event("EgressIPMoved", fmt.Sprintf("This node has taken egress IPs%s, because %s: %s", from, o.why.Because(), listed(addresses)))
	}
}

// listed lists addresses, as many as an Event has room for.
func listed(addresses []netip.Addr) string {
	const most = 20
	var texts []string
	for _, ip := range addresses[:min(len(addresses), most)] {
		texts = append(texts, ip.String())
	}
	if more := len(addresses) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts, ", "), more)
	}
	return strings.Join(texts, ", ")
}

// The reasons of Events about the pool.
const (
	addressInUse    plan.Reason = "AddressInUse"
	addressUnplaced plan.Reason = "EgressIPNotPlaced"
)

// troubles returns what is wrong with addresses of the pool that this node has to tell of.
func (p *poolNode) troubles() map[netip.Addr]tell.Trouble {
	if wanted := p.empty(); wanted != nil {
		return p.emptyTroubles(wanted)
	}
	status, known := p.status()
	if !known || len(status.Members) == 0 {
		return nil
	}
	troubles, now := map[netip.Addr]tell.Trouble{}, time.Now()
	for ip, other := range status.Members[0].Claims {
		if since, unheld := status.Unheld[ip]; other != "" && unheld && status.Lost[ip] == "" && now.Sub(since) > time.Second {
			troubles[ip] = tell.Trouble{Reason: addressInUse, Own: true, Note: fmt.Sprintf("%s is in use by another host, %s, so it is on no node, and pods that use it get no answers. Remove it there; a node takes it then.", ip, other)}
		}
	}
	if !status.Tells {
		return troubles
	}
	for ip, since := range status.Unheld {
		if able, why := status.Objections[ip].Able(); !able && now.Sub(since) > lasting {
			troubles[ip] = tell.Trouble{Reason: addressUnplaced, Own: true, Note: fmt.Sprintf("%s is on no node, since no node of the pool can hold it: %s.", ip, why)}
		} else if !status.Majority && now.Sub(since) > lasting {
			troubles[ip] = tell.Trouble{Reason: addressUnplaced, Own: true, Note: fmt.Sprintf("%s is on no node, since %s sees only %d of the %d nodes of the pool, which is no majority. Bring nodes back, or remove those that are gone for good from the pool.", ip, p.config.NodeName, status.Votes, status.Of)}
		}
	}
	return troubles
}

// absent returns why this node does not hear the other nodes of the pool, nor they it; nil if nothing is in the way, or it has no
// part in the pool.
func (p *poolNode) absent() error {
	if p == nil {
		return nil
	}
	runner, _ := p.part()
	if runner == nil {
		return nil
	}
	return runner.Absence()
}

// empty returns the addresses that the pool is to hold if it has no nodes; nil if it has some, or that is not known yet.
func (p *poolNode) empty() (wanted map[netip.Addr]bool) {
	if p == nil {
		return nil
	}
	reserved := p.reserved()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.wanted) < len(cluster.Families) || len(p.nodes) > 0 {
		return nil
	}
	wanted, _ = p.allWanted(reserved)
	return wanted
}

// emptyTroubles are those of addresses for which there is no node. All nodes of the cluster know.
func (p *poolNode) emptyTroubles(wanted map[netip.Addr]bool) map[netip.Addr]tell.Trouble {
	troubles := map[netip.Addr]tell.Trouble{}
	for ip := range wanted {
		troubles[ip] = tell.Trouble{Reason: addressUnplaced, Note: fmt.Sprintf("%s is on no node, since no Node matches %q (proxyArguments.egress-snat-assign-nodes). Give nodes this label.", ip, p.config.Pool.Nodes)}
	}
	return troubles
}

// status returns how the pool stands; not known if this node has no part in it.
func (p *poolNode) status() (status pool.Status, known bool) {
	if p == nil {
		return pool.Status{}, false
	}
	runner, _ := p.part()
	if runner == nil {
		return pool.Status{}, false
	}
	return runner.Status(), true
}

// Drain has this node give its egress IPs to the other nodes of the pool, and take none, or not any more. What is
// remembered counts after a restart of the process as well. It is an error if this node has no part in the pool.
func (e *Extension) Drain(now, remember bool) error {
	if _, err := e.Pool(); err != nil {
		return err
	}
	if err := e.pool.setDrained(now, remember); err != nil {
		return err
	}
	if now {
		e.logger.Info("Drain started: this node gives its egress IPs to other nodes, and takes none")
	} else {
		e.logger.Info("Drain ended: this node takes egress IPs again")
	}
	return nil
}

// setDrained is Drain for a node that has a part in the pool, but for the log.
func (p *poolNode) setDrained(now, remember bool) error {
	runner, _ := p.part()
	p.draining.Lock()
	defer p.draining.Unlock()
	file := p.config.Membership.DrainFile
	switch {
	case now && remember:
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return fmt.Errorf("note that this node is drained: %w", err)
		}
	case !now:
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("note that this node is not drained any more: %w", err)
		}
	}
	runner.Tell(pool.Drain{Now: now})
	return nil
}

// Pool returns how the pool stands, as far as this node knows; an error if it has no part in it.
func (e *Extension) Pool() (pool.Status, error) {
	switch {
	case len(e.config.Pool.Networks) == 0:
		return pool.Status{}, errors.New("there is no pool: proxyArguments.egress-snat-assign-cidrs is not set")
	case e.pool == nil:
		return pool.Status{}, fmt.Errorf("this node has no part in the pool, because it cannot send packets to other nodes: %w", e.config.Steering.Unavailable)
	}
	status, known := e.pool.status()
	if !known {
		return pool.Status{}, e.pool.absence()
	}
	return status, nil
}

// absence returns why this node has no part in the pool.
func (p *poolNode) absence() error {
	p.mu.Lock()
	known, selected, starting := len(p.wanted) == len(cluster.Families), p.nodes[p.config.NodeName], !p.due.IsZero()
	p.mu.Unlock()
	switch {
	case !known:
		return fmt.Errorf("this node has no part in the pool yet: it waits for objects of the API server (%s)", strings.Join(p.missing(), ", "))
	case !selected:
		return fmt.Errorf("this node is not in the pool: its Node does not match %q (proxyArguments.egress-snat-assign-nodes)", p.config.Pool.Nodes)
	case !p.hasKey():
		return p.errNoKey()
	case starting:
		return errors.New("this node's part in the pool is starting; try again in a moment")
	}
	return fmt.Errorf("this node has no part in the pool: its Node has no InternalIP that counts for %s, in which the nodes reach each other", p.steerer.outer)
}

// moveCounts returns how many addresses this node took or released, by why.
func (p *poolNode) moveCounts() map[pool.Reason]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.moves)
}
