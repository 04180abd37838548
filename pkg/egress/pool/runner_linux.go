package pool

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel/changes"
	"github.com/openshift/origin-node/pkg/kernel/portowner"
	"github.com/openshift/origin-node/pkg/wake"
)

// Config is what a [Runner] has to know beside the events.
type Config struct {
	// NodeName is the name of this node.
	NodeName string
	// Port is where members speak to each other, by UDP and TCP.
	Port uint16
	// Keys returns what seals that, now: the first key seals, all of them open. Without a key this node neither says nor believes
	// anything. It must not wait.
	Keys func() holders.Keys
	// Networks are where the pool's addresses lie. In them, this node has no addresses that it may lose.
	Networks []netip.Prefix
	// Ignored is the name of an interface that has no neighbours.
	Ignored string
	// Wake is sent when others have written in the member's book, or the member may have something to do.
	Wake wake.Signal
	// Moved is told of each address that was taken or released: of a released one before it is removed, and of a taken one before it
	// is advertised on the network, if its former holder still serves it. It writes into the book that the address has
	// [holders.Arrived] or [holders.Left]. It must not wait for the Runner, nor for long.
	Moved func([]Move)
	// Changed is told when another host is found to have an address that this node is about to take, or not any
	// more, and when what Absence returns changes. It must not wait.
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
	// PassOn: what comes here for connections of the node that had it is to be passed on to that one.
	PassOn bool
	// GoOn: the node that has it now passes on what comes there for connections of this one.
	GoOn bool
	// At is when it moved. Since is when it was known that it has to move.
	At, Since time.Time
}

const (
	// advertiseAgain is how often an address is advertised, for switches that forget.
	advertiseAgain = time.Minute
	// remembered is how long the last move of an address counts that is not here, nor wanted any more.
	remembered = time.Hour
	// openAgain is when the port is tried again that could not be opened, or the kernel that told nothing.
	openAgain = time.Second
	// rereadAfter is how old what the kernel had may be when addresses are renewed, or kept.
	rereadAfter = time.Second
	// removeAgain is when an address is removed again that could not be.
	removeAgain = 100 * time.Millisecond
	// gather is how long changes in the kernel are gathered: a move of many addresses is as many changes.
	gather = 5 * time.Millisecond
)

// repeats are when the advertisement of a move is repeated, which may be lost.
var repeats = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}

// Decider decides what a node of the pool does: a [Member], whose book others may use as well.
type Decider interface {
	Next(Event, time.Time) []Action
	Wake() time.Time
	State() State
	Status() Status
}

// NewRun returns a number that tells a process of a node from an earlier one.
func NewRun() uint64 {
	var run [8]byte
	_, _ = rand.Read(run[:])                        // it never fails
	return binary.NativeEndian.Uint64(run[:]) >> 11 // JSON carries 53 bits
}

// Runner is a node of the pool: a [Decider] with its effects.
type Runner struct {
	config Config
	kernel ownKernel

	mu    sync.Mutex
	queue []Event
	// due is when the oldest event came that the goroutine of Run has not dealt with; zero if there is none.
	due time.Time
	// nodes and pool are what the goroutine of speak tells the members; replaced says that they are other ones. members is nil as long as there
	// are none.
	nodes    map[string]netip.Addr
	pool     []string
	replaced wake.Signal
	members  *members
	// address is this node's, by which the other nodes reach it; readdressed says that it is another one.
	address     netip.Addr
	readdressed wake.Signal
	// status is what Status returns, absence what Absence does.
	status  Status
	absence failure.Streak

	// running has the goroutines that Run waits for.
	running sync.WaitGroup

	// What follows is for the goroutine of Run.
	member Decider
	// removing are the released addresses that the kernel may still have. again is when to remove them again.
	removing map[netip.Addr]bool
	again    time.Time
	// repeats are the advertisements that are due.
	repeats   []repeat
	advertise time.Time
	// last are the last moves of addresses.
	last map[netip.Addr]Move
	// displaced has since when addresses are on an interface that has lost their subnet. It is of the goroutine that renews them.
	displaced map[netip.Addr]time.Time
}

// ownKernel has the addresses of this node.
type ownKernel interface {
	read() (*links, error)
	put(ip netip.Addr, index int) error
	join(put []netip.Addr) (late []netip.Addr, err error)
	remove(ip netip.Addr, index int) error
}

// repeat is an advertisement that is due at a time.
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
	// Wanted are the addresses that the pool is to hold.
	Wanted map[netip.Addr]bool
	// Unheld are the addresses that no live node has, since when: not those of a live node that cannot serve them ([Detached]). Of them
	// Lost have the node that had them last and gives no sign of life: it may still serve them. Moves are the last of this node's, by address.
	Unheld map[netip.Addr]time.Time
	Lost   map[netip.Addr]string
	Moves  map[netip.Addr]Move
	// Tells: of the live nodes, this one is to tell people what is wrong with all of them.
	Tells bool
}

// Objections says of each node of the pool why it cannot hold an address; empty if it can.
func (s Status) Objections(ip netip.Addr) Objections {
	objections := Objections{}
	for _, name := range s.Pool {
		objections[name] = NotLive
	}
	for _, m := range s.Members {
		if objections[m.Name] != "" && s.Alive[m.Name] {
			objections[m.Name] = m.objects(ip)
		}
	}
	return objections
}

// NewRunner returns the Runner of a node, which does what the member decides.
func NewRunner(c Config, member Decider) *Runner {
	return &Runner{
		config: c,
		kernel: kernelAddresses{networks: c.Networks, ignored: c.Ignored}, readdressed: wake.New(), replaced: wake.New(),
		member: member,
		last:   map[netip.Addr]Move{}, displaced: map[netip.Addr]time.Time{}, removing: map[netip.Addr]bool{},
	}
}

// Tell tells an event. It does not wait.
func (r *Runner) Tell(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if answered, is := e.(Answered); is && len(r.queue) > 0 {
		if last, same := r.queue[len(r.queue)-1].(Answered); same && last.At.Equal(answered.At) {
			last.Addresses = append(last.Addresses, answered.Addresses...)
			r.queue[len(r.queue)-1] = last // hundreds of answers are one event
			return
		}
	}
	r.queue = enqueue(r.queue, e)
	r.isDue()
	r.config.Wake.Send()
}

// enqueue appends an event to those that wait. Of what a node says, the newest alone waits: one with the key may say thousands of states
// a second, and each costs more than to say it.
func enqueue(queue []Event, e Event) []Event {
	var place int
	switch e := e.(type) {
	case Heard:
		place = slices.IndexFunc(queue, func(o Event) bool { waits, is := o.(Heard); return is && waits.State.Name == e.State.Name })
		if place >= 0 && !e.State.newer(queue[place].(Heard).State) {
			return queue
		}
	case Reminded:
		place = slices.IndexFunc(queue, func(o Event) bool { waits, is := o.(Reminded); return is && waits.State.Name == e.State.Name })
		if place >= 0 && !e.State.newer(queue[place].(Reminded).State) {
			queue[place].(Reminded).merge(e)
			return queue
		}
	default:
		place = -1
	}
	if place >= 0 {
		queue = slices.Delete(queue, place, place+1)
	}
	return append(queue, e)
}

// DueSince returns since when Run has not come to something that it has to do; zero if there is nothing. It is for those who
// ask whether Run hangs.
func (r *Runner) DueSince() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.due
}

// isDue notes that there is something to do. The lock must be held.
func (r *Runner) isDue() {
	if r.due.IsZero() {
		r.due = time.Now()
	}
}

// SetNodes says which nodes the cluster has, at which addresses, each at one of its own, and which are in the pool. This node's own
// address, the last one that it had, is where it speaks to the others. Zones are those of nodes, as far as they are known. The maps must not
// be changed.
func (r *Runner) SetNodes(nodes map[string]netip.Addr, pool []string, zones map[string]string) {
	r.mu.Lock()
	r.nodes, r.pool = nodes, pool
	if self := nodes[r.config.NodeName]; self.IsValid() && self != r.address {
		r.address = self
		r.readdressed.Send()
	}
	r.mu.Unlock()
	r.replaced.Send()
	r.Tell(Pool{pool, zones})
}

// publish tells the members, if there are any, this one's state.
func (r *Runner) publish(s State) {
	r.mu.Lock()
	members := r.members
	r.mu.Unlock()
	if members != nil {
		members.publish(s)
	}
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
	defer r.running.Wait()
	found := r.findAddresses(ctx)
	r.advertise = time.Now().Add(advertiseAgain) // when nobody has answered for what is found, the member has it advertised
	r.running.Go(func() { r.watchKernel(ctx, found) })
	r.running.Go(func() { r.speak(ctx) })
	r.config.Wake.Send()
	r.config.Wake.FollowAt(ctx, func() time.Time {
		events := r.dequeue()
		if len(events) == 0 {
			events = []Event{Tick{}} // any other event has the member do what is due as well
		}
		for _, e := range events {
			for e := r.asItIs(e); e != nil; {
				e = r.do(ctx, logger, r.member.Next(e, time.Now()))
			}
		}
		r.remove(logger)
		r.advertiseAgain(logger)
		r.describe(logger)
		r.done()
		return time.Now().Add(r.pause())
	})
}

// dequeue takes what is in the queue.
func (r *Runner) dequeue() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isDue() // maybe only because time has passed
	queue := r.queue
	r.queue = nil
	return queue
}

// done notes that all that dequeue has returned is dealt with.
func (r *Runner) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due = (time.Time{}); len(r.queue) > 0 {
		r.isDue()
	}
}

// asItIs leaves the addresses out of a [Removed] that this node serves where they belong: they were taken again since.
func (r *Runner) asItIs(e Event) Event {
	removed, is := e.(Removed)
	if !is {
		return e
	}
	if l, err := r.kernel.read(); err == nil {
		removed.Addresses = slices.DeleteFunc(removed.Addresses, func(ip netip.Addr) bool { return l.serves(ip) && !r.isAstray(l, ip) })
	}
	return removed
}

// pause is how long nothing is due.
func (r *Runner) pause() time.Duration {
	at := time.Now().Add(advertiseAgain)
	if wake := r.member.Wake(); !wake.IsZero() && wake.Before(at) {
		at = wake
	}
	for _, due := range r.repeats {
		if due.at.Before(at) {
			at = due.at
		}
	}
	if len(r.removing) > 0 && r.again.Before(at) {
		at = r.again
	}
	return max(time.Until(at), 0)
}

// findAddresses tells the member what the kernel has, once it can be read, and returns that.
func (r *Runner) findAddresses(ctx context.Context) (found map[netip.Addr]int) {
	var failed failure.Streak
	for ctx.Err() == nil {
		l, err := r.kernel.read()
		if err == nil {
			r.Tell(Networks{l.networks})
			r.Tell(Found{sorted(l.ours)})
			return l.ours
		}
		if failed.Turns(err) {
			klog.FromContext(ctx).Error(err, "Cannot read this node's interfaces, so it takes no egress IPs; will retry, further failures are not logged")
		}
		r.done() // it waits, and does not hang
		wake.Sleep(ctx.Done(), openAgain)
	}
	return nil
}

// watchKernel tells the member of this node's subnets, and which addresses are gone of those that it had before.
func (r *Runner) watchKernel(ctx context.Context, before map[netip.Addr]int) {
	logger := klog.FromContext(ctx)
	var unread failure.Streak
	for ctx.Err() == nil {
		var unreadNow error
		err := changes.Follow(ctx.Done(), gather, func() error {
			before, unreadNow = r.tellChanges(before)
			return unreadNow
		})
		switch {
		case unread.Turns(unreadNow) && unreadNow != nil:
			logger.Error(err, "Cannot read this node's interfaces, so changes of them are not noticed; will retry, further failures are not logged")
		case err != nil && unreadNow == nil:
			logger.V(2).Info("Changes of this node's interfaces were missed; reading all", "reason", err.Error())
		}
		if err != nil {
			wake.Sleep(ctx.Done(), openAgain)
		}
	}
}

// tellChanges tells the member of this node's subnets, and which of these addresses it serves no more. It returns those that are there. After
// an error, which is not that something changes all the time, what has changed is still to be told.
func (r *Runner) tellChanges(before map[netip.Addr]int) (map[netip.Addr]int, error) {
	l, err := r.kernel.read()
	switch {
	case errors.Is(err, netlink.ErrDumpInterrupted):
		return before, nil // the next change is being told
	case err != nil:
		return before, err
	}
	r.Tell(Networks{l.networks})
	gone := maps.Clone(before)
	maps.DeleteFunc(gone, func(ip netip.Addr, _ int) bool { return l.serves(ip) })
	if len(gone) > 0 {
		r.Tell(Removed{sorted(gone)})
	}
	return l.ours, nil
}

// Absence returns why this node does not hear the others, nor they it; nil if nothing is in the way.
func (r *Runner) Absence() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.absence.Err()
}

// setAbsence notes it, and tells it when it changes.
func (r *Runner) setAbsence(logger klog.Logger, err error) {
	r.mu.Lock()
	isNew := r.absence.Changes(err)
	r.mu.Unlock()
	if !isNew {
		return
	}
	if err != nil {
		logger.Error(err, "Cannot take part in the pool of nodes that egress IPs are put on; will retry, and log it again only if the reason changes")
	} else {
		logger.Info("Takes part in the pool of nodes that egress IPs are put on")
	}
	if r.config.Changed != nil {
		r.config.Changed()
	}
}

// ErrNoKey is what [Runner.Absence] returns of a node that has no key.
var ErrNoKey = errors.New("this node has no key that the nodes of the pool share, so it ignores their messages, and they ignore its own")

// speak speaks with the other members, at this node's address; at another one when that has changed.
func (r *Runner) speak(ctx context.Context) {
	logger := klog.FromContext(ctx)
	var again <-chan time.Time
	var owners portowner.Cache
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.readdressed:
		case <-again:
		}
		members, err := r.join(logger)
		if err != nil {
			r.setAbsence(logger, withOwner(err, &owners))
			again = time.After(openAgain)
			continue
		}
		again = nil
		r.Tell(joined{})
		r.stay(ctx, logger, members)
		r.endMembers(members)
	}
}

// withOwner adds to an error who has the port that the members cannot have, if that is in use.
func withOwner(err error, owners *portowner.Cache) error {
	var refused *listenError
	if !errors.Is(err, unix.EADDRINUSE) || !errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("%w, by %s: end it, or choose another port with egress-snat-assign-port on all nodes", err, owners.Find(refused.protocol, refused.at))
}

// stay returns when this node's address changes, or ctx ends. Until then it tells the members which nodes there are, and notes whether there is a
// key.
func (r *Runner) stay(ctx context.Context, logger klog.Logger, members *members) {
	look := time.NewTicker(openAgain)
	defer look.Stop()
	for {
		if len(r.config.Keys()) == 0 {
			r.setAbsence(logger, ErrNoKey)
		} else {
			r.setAbsence(logger, nil)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.readdressed:
			r.readdressed.Send() // for the next round
			return
		case <-r.replaced:
			members.setNodes(r.placed())
		case <-look.C:
		}
	}
}

// join begins to speak with the other members.
func (r *Runner) join(logger klog.Logger) (*members, error) {
	r.mu.Lock()
	address := r.address
	r.mu.Unlock()
	members, err := newMembers(logger, r.config, address, r.Tell)
	if err != nil {
		return nil, err
	}
	members.setNodes(r.placed())
	r.mu.Lock()
	r.members = members
	r.mu.Unlock()
	return members, nil
}

// placed returns which nodes there are, at which addresses, and which are in the pool.
func (r *Runner) placed() (nodes map[string]netip.Addr, pool []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes, r.pool
}

// endMembers ends that.
func (r *Runner) endMembers(members *members) {
	r.mu.Lock()
	r.members = nil
	r.mu.Unlock()
	members.close()
}

// joined says that members can be told this one's state.
type joined struct{}

func (joined) apply(m *Member, _ time.Time) []Action { return m.publish(true) }

// describe notes how things are, for Status, and logs which nodes are alive when that changes.
func (r *Runner) describe(logger klog.Logger) {
	s := r.member.Status()
	held := r.member.State().Held
	maps.DeleteFunc(r.last, func(ip netip.Addr, m Move) bool {
		_, here := held[ip]
		return !here && !s.Wanted[ip] && time.Since(m.At) > remembered
	})
	s.Moves = maps.Clone(r.last)
	r.mu.Lock()
	before := r.status
	r.status = s
	r.mu.Unlock()
	if s.Of > 0 && (s.Majority != before.Majority || !maps.Equal(s.Alive, before.Alive)) {
		logger.Info("The pool has changed", "alive", slices.Sorted(maps.Keys(s.Alive)), "of", s.Pool, "majority", s.Majority)
	}
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
