package pool

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/pool/neighbor"
)

// Config is what a [Runner] has to know beside the events.
type Config struct {
	// NodeName is the name of this node, Address the one by which the other nodes reach it.
	NodeName string
	Address  netip.Addr
	// Port is where members speak to each other, by UDP and TCP.
	Port uint16
	// Keys authenticate and encrypt that, each 32 bytes: the first is used, all are accepted. Without keys
	// nothing is.
	Keys [][]byte
	// Networks are where the pool's addresses lie. In them, this node has no addresses that it may lose.
	Networks []netip.Prefix
	// Ignored is the name of an interface that has no neighbours.
	Ignored string
	// Moved is told of each address that was taken or released, before it is removed. It must not wait
	// for the Runner.
	Moved func([]Move)
	// Changed is told when another host is found to have an address that this node is about to take, or not any
	// more. It must not wait.
	Changed func()
}

// Move is an address that this node has taken, or releases.
type Move struct {
	Address netip.Addr
	// Taken: this node has it now, with this epoch. Otherwise it releases it.
	Taken bool
	Epoch uint64
	// Other is the node that had it before, or has it now; empty if none is known.
	Other string
	Why   Reason
	// At is when, Since when it was known that the address has to move.
	At, Since time.Time
}

const (
	// announceAgain is how often an address is announced, for switches that forget.
	announceAgain = time.Minute
	// remembered is how long the last move of an address counts that is not wanted any more.
	remembered = time.Hour
	// openAgain is when the port is tried again that could not be opened, or the kernel that told nothing.
	openAgain = time.Second
	// rereadAfter is how old what the kernel had may be when addresses are renewed.
	rereadAfter = time.Second
	// removeAgain is when an address is removed again that could not be.
	removeAgain = 100 * time.Millisecond
)

// repeats are when the announcement of a move is repeated, which may be lost.
var repeats = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}

// Runner is a node of the pool: a [Member] with its effects.
type Runner struct {
	config Config
	kernel kernel
	wake   chan struct{}

	mu    sync.Mutex
	queue []Event
	// nodes and pool are what the members are told when they are there.
	nodes   map[string]netip.Addr
	pool    []string
	members *members
	// status is what Status returns.
	status Status

	// What follows is for the goroutine of Run.
	member *Member
	// leaving are the released addresses that the kernel may still have. again is when to remove them again.
	leaving map[netip.Addr]bool
	again   time.Time
	// repeats are the announcements that are due.
	repeats  []repeat
	announce time.Time
	last     map[netip.Addr]Move
}

// kernel has the addresses of this node.
type kernel interface {
	read() (*links, error)
	put(ip netip.Addr, index int) error
	remove(ip netip.Addr, index int) error
}

// repeat is an announcement that is due at a time.
type repeat struct {
	at        time.Time
	addresses []netip.Addr
}

// Status is how a node sees the pool.
type Status struct {
	// Votes of the nodes of the pool are live, this one included. Majority: they may act.
	Votes, Of int
	Majority  bool
	// Members are the states of all that have told one, this one included; live if the name is in Alive.
	Members []State
	Alive   map[string]bool
	Pool    []string
	// Objections are why nodes of the pool cannot hold an address.
	Objections map[netip.Addr]Objections
	// Unheld are the addresses that nobody has, since when. Of them Lost have the node that had them last and
	// gives no sign of life: it may still serve them. Moves are the last of this node's, by address.
	Unheld map[netip.Addr]time.Time
	Lost   map[netip.Addr]string
	Moves  map[netip.Addr]Move
	// Tells: of the live nodes, this one is to tell people what is wrong with all of them.
	Tells bool
}

// NewRunner returns the Runner of a node.
func NewRunner(c Config) *Runner {
	var run [8]byte
	_, _ = rand.Read(run[:]) // it never fails
	return &Runner{
		config: c,
		kernel: kernelAddresses{networks: c.Networks, ignored: c.Ignored},
		wake:   make(chan struct{}, 1),
		member: NewMember(c.NodeName, binary.NativeEndian.Uint64(run[:])>>11), // JSON carries 53 bits
		last:   map[netip.Addr]Move{}, leaving: map[netip.Addr]bool{},
	}
}

// Tell tells an event. It does not wait.
func (r *Runner) Tell(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, e)
	select {
	case r.wake <- struct{}{}:
	default: // one waits already
	}
}

// SetNodes says which nodes the cluster has, at which addresses, and which are in the pool.
func (r *Runner) SetNodes(nodes map[string]netip.Addr, pool []string) {
	r.mu.Lock()
	r.nodes, r.pool = nodes, pool
	if r.members != nil {
		r.members.setNodes(nodes, pool)
	}
	r.mu.Unlock()
	r.Tell(Pool{pool})
}

// Status may be called at any time. What it returns must not be changed.
func (r *Runner) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// Run takes part in the pool until ctx ends. The addresses stay then, for as long as the kernel keeps them. Failures
// are logged and tried again. Sockets are opened on the caller's thread, or by goroutines that it starts.
func (r *Runner) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	r.findAddresses(ctx)
	running.Go(func() { r.watchKernel(ctx) })
	running.Go(func() { r.speak(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		for _, e := range append(r.take(), Tick{}) {
			r.do(ctx, logger, r.member.Next(r.asItIs(e), time.Now()))
		}
		r.remove(logger)
		r.announceAgain(logger)
		r.describe()
		timer.Reset(r.pause())
	}
}

// take takes what is in the queue.
func (r *Runner) take() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue := r.queue
	r.queue = nil
	return queue
}

// asItIs leaves the addresses out of a [Removed] that the kernel has: they were taken again since.
func (r *Runner) asItIs(e Event) Event {
	removed, is := e.(Removed)
	if !is {
		return e
	}
	if l, err := r.kernel.read(); err == nil {
		removed.Addresses = slices.DeleteFunc(removed.Addresses, func(ip netip.Addr) bool { _, there := l.ours[ip]; return there })
	}
	return removed
}

// pause is how long nothing is due.
func (r *Runner) pause() time.Duration {
	at := time.Now().Add(announceAgain)
	if wake := r.member.Wake(); !wake.IsZero() && wake.Before(at) {
		at = wake
	}
	for _, due := range r.repeats {
		if due.at.Before(at) {
			at = due.at
		}
	}
	if len(r.leaving) > 0 && r.again.Before(at) {
		at = r.again
	}
	return max(time.Until(at), 0)
}

// findAddresses tells the member what the kernel has, once it can be read.
func (r *Runner) findAddresses(ctx context.Context) {
	for complained := false; ctx.Err() == nil; {
		l, err := r.kernel.read()
		if err == nil {
			r.Tell(Networks{l.networks()})
			r.Tell(Found{sorted(l.ours)})
			return
		}
		if !complained {
			complained = true
			klog.FromContext(ctx).Error(err, "Cannot read this node's interfaces, so it takes no egress IPs; will retry, further failures are not logged")
		}
		sleep(ctx, openAgain)
	}
}

// watchKernel tells the member of this node's subnets, and of addresses that are gone.
func (r *Runner) watchKernel(ctx context.Context) {
	var before map[netip.Addr]int
	changed := func() {
		l, err := r.kernel.read()
		if err != nil {
			return // interrupted: there is another change
		}
		var gone []netip.Addr
		for ip := range before {
			if _, there := l.ours[ip]; !there {
				gone = append(gone, ip)
			}
		}
		before = l.ours
		r.Tell(Networks{l.networks()})
		if len(gone) > 0 {
			r.Tell(Removed{gone})
		}
	}
	for ctx.Err() == nil {
		if err := watchKernel(ctx.Done(), changed); err != nil {
			klog.FromContext(ctx).V(2).Info("Changes of this node's interfaces were missed; reading all", "reason", err.Error())
			sleep(ctx, openAgain)
		}
	}
}

// speak speaks with the other members.
func (r *Runner) speak(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for complained := false; ctx.Err() == nil; {
		members, err := newMembers(logger, r.config, r.Tell)
		if err != nil {
			if !complained {
				complained = true
				logger.Error(err, "Cannot take part in the pool of nodes that egress IPs are put on; will retry, further failures are not logged")
			}
			sleep(ctx, openAgain)
			continue
		}
		r.mu.Lock()
		r.members = members
		members.setNodes(r.nodes, r.pool)
		r.mu.Unlock()
		r.Tell(joined{})
		<-ctx.Done()
		_ = members.close() // the process ends
	}
}

// joined says that members can be told this one's state.
type joined struct{}

func (joined) apply(m *Member, _ time.Time) []Action { return m.publish(true) }

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// do does what the member says.
func (r *Runner) do(ctx context.Context, logger klog.Logger, actions []Action) {
	var takes []Take
	var releases []Release
	var publish []Publish
	for _, a := range actions {
		switch a := a.(type) {
		case Probe:
			go r.probe(ctx, logger, a)
		case LookAround:
			go r.look(ctx, logger, a)
		case Take:
			takes = append(takes, a)
		case Release:
			releases = append(releases, a)
		case Renew:
			r.renew(logger, a.Addresses)
		case Announce:
			r.announceAndRepeat(logger, a.Addresses)
		case Publish:
			publish = append(publish, a)
		}
	}
	r.release(logger, releases)
	if !r.takeAddresses(logger, takes) {
		return // the state says that this node has them; TakeFailed leads to the next one
	}
	for _, p := range publish { // the previous holder of an address removes it when it hears this
		r.mu.Lock()
		if r.members != nil {
			r.members.publish(p.State)
		}
		r.mu.Unlock()
	}
}

// answers are what the hosts of this node's networks have answered.
type answers struct {
	at   time.Time
	macs map[netip.Addr]net.HardwareAddr
	// failed are the addresses that could not be asked for, err is why. cut are those on whose network nobody
	// answered although somebody should be there.
	failed, cut []netip.Addr
	err         error
}

// ask returns who has addresses, by their interfaces. Witnesses are asked on the same interfaces: their answers show that a
// network carries frames.
func (r *Runner) ask(ctx context.Context, l *links, addresses, witnesses map[*net.Interface][]netip.Addr) answers {
	all := answers{at: time.Now(), macs: map[netip.Addr]net.HardwareAddr{}}
	var mu sync.Mutex
	var asking sync.WaitGroup
	own := l.hardware()
	for link, group := range addresses {
		asking.Go(func() {
			macs, err := neighbor.Ask(ctx, link, slices.Concat(group, witnesses[link]), own...)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				all.failed, all.err = append(all.failed, group...), err
			case len(macs) == 0 && len(witnesses[link]) > 0:
				all.cut = append(all.cut, group...)
			}
			maps.Copy(all.macs, macs)
		})
	}
	asking.Wait()
	return all
}

// probe asks whether anybody has addresses.
func (r *Runner) probe(ctx context.Context, logger klog.Logger, p Probe) {
	l, err := r.kernel.read()
	result := Probed{Number: p.Number, At: time.Now(), Answers: map[netip.Addr]string{}}
	if err != nil {
		result.Failed = p.Addresses
	} else {
		all := r.ask(ctx, l, l.byLink(p.Addresses), merge(l.byLink(r.peers()), l.defaultGateways()))
		result.At, result.Failed, result.Cut, err = all.at, all.failed, all.cut, all.err
		for ip, mac := range all.macs {
			result.Answers[ip] = mac.String()
		}
		for _, ip := range p.Addresses {
			if index, foreign := l.foreign[ip]; foreign {
				result.Answers[ip] = fmt.Sprintf("this node, where other software has put it on interface %d", index)
			}
			if !slices.Contains(result.Failed, ip) {
				result.Addresses = append(result.Addresses, ip)
			}
		}
	}
	if err != nil {
		logger.V(2).Info("Cannot ask whether another host has an egress IP, so it is not taken", "addresses", result.Failed, "err", err)
	}
	r.Tell(result)
}

// look asks who is there. If nobody can be asked, nobody is there.
func (r *Runner) look(ctx context.Context, logger klog.Logger, a LookAround) {
	result := Looked{At: time.Now(), Own: map[netip.Addr]string{}}
	defer func() { r.Tell(result) }()
	l, err := r.kernel.read()
	if err != nil {
		return
	}
	peers := r.peers()
	gateways := l.defaultGateways()
	all := r.ask(ctx, l, merge(l.byLink(slices.Concat(peers, a.Own)), gateways), nil)
	result.At = all.at
	if all.err != nil {
		logger.V(2).Info("Cannot ask whether the other nodes of the pool are there", "err", all.err)
	}
	for ip, mac := range all.macs {
		result.Peers = result.Peers || slices.Contains(peers, ip)
		for _, those := range gateways {
			result.Gateway = result.Gateway || slices.Contains(those, ip)
		}
		if slices.Contains(a.Own, ip) {
			result.Own[ip] = mac.String()
		}
	}
}

func merge(a, b map[*net.Interface][]netip.Addr) map[*net.Interface][]netip.Addr {
	both := maps.Clone(a)
	for link, list := range b {
		both[link] = slices.Concat(both[link], list)
	}
	return both
}

// peers are the addresses of the pool's other nodes.
func (r *Runner) peers() (list []netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.pool {
		if address, known := r.nodes[name]; known && name != r.config.NodeName {
			list = append(list, address)
		}
	}
	return list
}

// renew has the kernel keep addresses for longer that it still has: one that is gone may be another node's now. A process
// that is stopped on the way looks again.
func (r *Runner) renew(logger klog.Logger, addresses []netip.Addr) {
	var l *links
	var read time.Time
	for _, ip := range addresses {
		if now := time.Now(); l == nil || now.Sub(read) > rereadAfter {
			var err error
			if l, err = r.kernel.read(); err != nil {
				logger.Error(err, "Cannot renew the egress IPs of this node; if that goes on, the kernel withdraws them")
				r.Tell(RenewFailed{})
				return
			}
			read = now
		}
		if index, there := l.ours[ip]; there {
			if err := r.kernel.put(ip, index); err != nil {
				logger.Error(err, "Cannot renew an egress IP of this node; if that goes on, the kernel withdraws it", "address", ip)
				r.Tell(RenewFailed{})
			}
		}
	}
}

// takeAddresses puts addresses on this node, announces them, and tells whether all could be taken.
func (r *Runner) takeAddresses(logger klog.Logger, takes []Take) bool {
	if len(takes) == 0 {
		return true
	}
	l, readErr := r.kernel.read()
	var failed, put []netip.Addr
	var moves []Move
	for _, t := range takes {
		delete(r.leaving, t.Address)
		err := readErr
		if err == nil {
			err = r.takeAddress(l, t)
		}
		if err != nil {
			logger.Error(err, "Cannot take an egress IP; another node is to take it", "address", t.Address)
			failed = append(failed, t.Address)
			continue
		}
		put = append(put, t.Address)
		moves = append(moves, Move{Address: t.Address, Taken: true, Epoch: t.Epoch, Other: t.From, Why: t.Why, Since: t.Since})
	}
	r.announceAndRepeat(logger, put)
	for i := range moves {
		moves[i].At = time.Now()
	}
	r.moved(moves)
	if len(failed) > 0 {
		r.Tell(TakeFailed{failed})
	}
	return len(failed) == 0
}

func (r *Runner) takeAddress(l *links, t Take) error {
	if index, foreign := l.foreign[t.Address]; foreign {
		return fmt.Errorf("other software has put %s on interface %d", t.Address, index)
	}
	link, found := l.link(t.Address)
	if !found {
		return fmt.Errorf("no interface has a subnet with %s", t.Address)
	}
	if late := time.Since(t.Until); late > 0 {
		return fmt.Errorf("this process was stopped or starved, and is %v too late: another node may have %s", late, t.Address)
	}
	return r.kernel.put(t.Address, link.Index)
}

// release removes addresses, when those who send packets to them have been told.
func (r *Runner) release(logger klog.Logger, releases []Release) {
	if len(releases) == 0 {
		return
	}
	var moves []Move
	for _, a := range releases {
		moves = append(moves, Move{Address: a.Address, Other: a.To, Why: a.Why, At: time.Now()})
		r.leaving[a.Address] = true
	}
	r.moved(moves)
	r.again = time.Time{}
	r.remove(logger)
}

// remove removes the addresses that were released, also those that could not be removed before.
func (r *Runner) remove(logger klog.Logger) {
	if len(r.leaving) == 0 || time.Now().Before(r.again) {
		return
	}
	complain := func(err error) {
		if r.again.IsZero() {
			logger.Error(err, "Cannot remove egress IPs that this node must not have any more; will retry, further failures are not logged", "addresses", sorted(r.leaving))
		}
	}
	l, err := r.kernel.read()
	if err == nil {
		for _, ip := range sorted(r.leaving) {
			if index, there := l.ours[ip]; there {
				if failed := r.kernel.remove(ip, index); failed != nil {
					err = failed
					continue
				}
			}
			delete(r.leaving, ip)
		}
	}
	if err != nil {
		complain(err)
		r.again = time.Now().Add(removeAgain)
	}
}

func (r *Runner) moved(moves []Move) {
	if len(moves) == 0 {
		return
	}
	for _, m := range moves {
		r.last[m.Address] = m
	}
	maps.DeleteFunc(r.last, func(_ netip.Addr, m Move) bool { return m.Why == Unwanted && time.Since(m.At) > remembered })
	if r.config.Moved != nil {
		r.config.Moved(moves)
	}
}

// announceAndRepeat tells the network that addresses are here, now and again: what is told may be lost, also because a port
// of a switch that has just come up forwards nothing yet.
func (r *Runner) announceAndRepeat(logger klog.Logger, addresses []netip.Addr) {
	if len(addresses) == 0 {
		return
	}
	r.announceNow(logger, addresses)
	for _, after := range repeats {
		r.repeats = append(r.repeats, repeat{time.Now().Add(after), addresses})
	}
}

// announceNow tells the network that addresses are here.
func (r *Runner) announceNow(logger klog.Logger, addresses []netip.Addr) {
	if len(addresses) == 0 {
		return
	}
	l, err := r.kernel.read()
	if err != nil {
		logger.Error(err, "Cannot announce egress IPs to the network; will retry", "addresses", addresses)
		return
	}
	groups := map[int][]netip.Addr{}
	for _, ip := range addresses {
		if index, there := l.ours[ip]; there {
			groups[index] = append(groups[index], ip)
		}
	}
	for index, group := range groups {
		if link := l.byIndex[index]; link != nil {
			if err := neighbor.Announce(link, group); err != nil {
				logger.V(2).Info("Cannot announce egress IPs to the network; will retry", "addresses", group, "err", err)
			}
		}
	}
}

// announceAgain repeats the announcements that are due.
func (r *Runner) announceAgain(logger klog.Logger) {
	now := time.Now()
	var due []netip.Addr
	r.repeats = slices.DeleteFunc(r.repeats, func(one repeat) bool {
		if one.at.After(now) {
			return false
		}
		due = append(due, one.addresses...)
		return true
	})
	if !now.Before(r.announce) {
		r.announce = now.Add(announceAgain)
		due = sorted(r.member.held)
	}
	slices.SortFunc(due, netip.Addr.Compare)
	r.announceNow(logger, slices.Compact(due))
}

// describe notes how things are, for Status.
func (r *Runner) describe() {
	s := r.member.status()
	s.Moves = make(map[netip.Addr]Move, len(r.last))
	for ip, m := range r.last {
		s.Moves[ip] = m
	}
	r.mu.Lock()
	before := r.status
	r.status = s
	r.mu.Unlock()
	if r.config.Changed != nil && !maps.Equal(inUse(before), inUse(s)) {
		r.config.Changed()
	}
}

// inUse are those of this node's claims that another host has, with its MAC.
func inUse(s Status) map[netip.Addr]string {
	used := map[netip.Addr]string{}
	if len(s.Members) > 0 {
		for ip, mac := range s.Members[0].Claims {
			if mac != "" {
				used[ip] = mac
			}
		}
	}
	return used
}
