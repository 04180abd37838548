package portsecurity

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
	"github.com/openshift/origin-node/pkg/wake"
)

const (
	// pauseAfterChange is how long changes of interfaces are gathered: several are made for each pod.
	pauseAfterChange = 5 * time.Millisecond
	// writeAgain is when a write is tried again that failed.
	writeAgain = time.Second
	// attempts is how often a write is tried at once: interfaces may go in the moment in which they are looked at.
	attempts = 5
)

// Config is what a [Keeper] has to know.
type Config struct {
	// Own returns this node's addresses, by which other nodes reach it.
	Own func() []netip.Addr
	// Told returns what the CNI plugin has told.
	Told func() []Told
	// Away tells whether a pod is on another node: no interface of this one is looked for then.
	Away func(netip.Addr) bool
	// Period is how often the kernel is looked at.
	Period time.Duration
	// Changed is called when the [Status] has changed.
	Changed func()
	// Placed, if it is not nil, is called after each look, with what interfaces have.
	Placed func(Grants)
}

// Status is the current state.
type Status struct {
	// Fault is why sources are not checked, or not by what is so now; nil if they are.
	Fault error
	// Refused are the addresses of bound pods that are behind interfaces which they do not belong to.
	Refused []Refusal
	// Redirected are the names of the interfaces whose packets are not checked, or not all of them, sorted: a tc filter redirects them
	// before.
	Redirected []string
}

// equal tells whether s and o say the same.
func (s Status) equal(o Status) bool {
	return fmt.Sprint(s.Fault) == fmt.Sprint(o.Fault) && slices.Equal(s.Refused, o.Refused) && slices.Equal(s.Redirected, o.Redirected)
}

// Keeper keeps the table in line with the interfaces of this node and with the pods that are bound. Its methods may be called by several
// goroutines. A nil one keeps nothing, and has nothing to tell.
type Keeper struct {
	config Config
	// work is what the goroutine of Run does next.
	work chan func()
	// looks has the interfaces looked at next.
	looks wake.Signal
	// subscribe is [changes.Subscribe], interfaces is [Interfaces].
	subscribe  func() (*changes.Subscription, error)
	interfaces func(pods []netip.Prefix, own []netip.Addr, known func(Link) bool) ([]Interface, error)

	// What follows is for the goroutine of Run.
	logger klog.Logger
	writer *Writer
	// grants are those of the last look that did not fail; before the first one, those of an earlier process, if known is.
	grants        Grants
	known, looked bool
	// unfollowed is why changes of interfaces are not heard of, unseen why the last look has failed.
	unfollowed, unseen error
	// took is how long the last look took.
	took time.Duration
	pods map[kernel.Family][]netip.Prefix
	// bindings counts those of each pod.
	bindings map[netip.Addr]int
	// claimed are the egress IPs that no pod may send from.
	claimed map[kernel.Family][]netip.Addr
	// adopted are the addresses that an earlier process had bound, as long as nothing is known of the bindings of their family.
	adopted map[kernel.Family][]netip.Addr
	// written: there is a table.
	written bool
	// refused and redirected are of the last look that did not fail.
	refused    []Refusal
	redirected []string

	mu     sync.Mutex
	status Status
	// waiting is for a look that begins now.
	waiting []chan struct{}
}

// NewKeeper returns a Keeper, which does nothing before Run.
func NewKeeper(config Config) *Keeper {
	return &Keeper{
		config: config, work: make(chan func()), looks: wake.New(), subscribe: changes.Subscribe, interfaces: Interfaces,
		pods: map[kernel.Family][]netip.Prefix{}, bindings: map[netip.Addr]int{}, claimed: map[kernel.Family][]netip.Addr{}, adopted: map[kernel.Family][]netip.Addr{},
	}
}

// Status may be called at any time.
func (k *Keeper) Status() Status {
	if k == nil {
		return Status{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}

// Check returns when the interfaces have been looked at, and when what follows is in the kernel, or when that failed, which Status
// tells.
func (k *Keeper) Check(ctx context.Context) {
	if k == nil {
		return
	}
	done := make(chan struct{})
	k.mu.Lock()
	k.waiting = append(k.waiting, done)
	k.mu.Unlock()
	k.looks.Send()
	select {
	case <-ctx.Done():
	case <-done:
	}
}

// Bind returns when the addresses of added bindings of a family are guarded, or when that failed, which Status tells. claimed are all egress
// IPs of the family, which are guarded as well where pods are bound; pods are its cluster CIDRs.
func (k *Keeper) Bind(ctx context.Context, family kernel.Family, added []kernel.Binding, claimed []netip.Addr, pods []netip.Prefix) {
	k.do(ctx, func() { k.bind(ctx, family, added, claimed, pods) })
}

// Unbind takes back what Bind has done for bindings.
func (k *Keeper) Unbind(ctx context.Context, removed []kernel.Binding) {
	if len(removed) == 0 {
		return
	}
	k.do(ctx, func() {
		for _, b := range removed {
			if k.bindings[b.Pod]--; k.bindings[b.Pod] <= 0 {
				delete(k.bindings, b.Pod)
				k.writer.Unbind(b.Pod)
			}
		}
		k.write(ctx, false)
	})
}

// do has the goroutine of Run do something, and waits for it.
func (k *Keeper) do(ctx context.Context, f func()) {
	if k == nil {
		return
	}
	done := make(chan struct{})
	select {
	case <-ctx.Done():
		return
	case k.work <- func() { f(); close(done) }:
	}
	<-done
}

// Unplaced returns the addresses of bound pods that are behind no interface that is known, sorted: what sends from them is not
// checked on all interfaces. Pods of other nodes are among them.
func (k *Keeper) Unplaced(ctx context.Context) (unplaced []netip.Addr) {
	k.do(ctx, func() { unplaced = k.writer.Unplaced() })
	return unplaced
}

// Compare says, for an operator and in a line each, how the kernel differs from what was written. Of an interface that has just gone it may
// say so until Run has heard of it.
func (k *Keeper) Compare(ctx context.Context) (differences []string, err error) {
	if k == nil {
		return nil, nil
	}
	k.do(ctx, func() {
		if k.written {
			differences, err = k.writer.Compare(ctx)
		}
	})
	return differences, errors.Join(err, ctx.Err())
}

// Repair returns when the kernel holds again what was written, or when that failed, which Status tells.
func (k *Keeper) Repair(ctx context.Context) { k.do(ctx, func() { k.write(ctx, true) }) }

// Run keeps the table until ctx ends. The table stays then.
func (k *Keeper) Run(ctx context.Context) {
	if k == nil {
		return
	}
	k.logger, k.writer = klog.FromContext(ctx), NewWriter()
	defer k.writer.Close()
	for ctx.Err() == nil {
		if err := k.follow(ctx); err != nil && ctx.Err() == nil {
			k.logger.V(2).Info("Changes of interfaces were missed; looking at all of them", "reason", err.Error())
		}
	}
}

// address is one of this node, on an interface.
type address struct {
	index int
	ip    netip.Addr
}

// follow does what is to be done until changes of interfaces may have been missed.
func (k *Keeper) follow(ctx context.Context) error {
	s, err := k.subscribe()
	if err != nil {
		k.unfollowed = fmt.Errorf("follow the interfaces of pods: %w", err)
		k.follows(ctx, false)
		return k.rest(ctx, writeAgain, err)
	}
	defer s.End()
	k.unfollowed = nil
	k.looks.Send()
	regular := time.NewTicker(k.config.Period)
	defer regular.Stop()
	had := map[address]bool{}
	var pause <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.Failed:
			return k.rest(ctx, pauseAfterChange, err) // there were more changes than could be heard of, and a look follows
		case f := <-k.work:
			f()
		case <-k.looks:
			k.follows(ctx, false)
		case u := <-s.Links:
			if u.Header.Type == unix.RTM_NEWLINK && !leadsAway(u.Link) {
				continue
			}
			pause = k.later(pause)
		case u := <-s.Addresses:
			if at := (address{u.LinkIndex, kernel.AddrOf(u.LinkAddress.IP)}); !u.NewAddr {
				delete(had, at)
			} else if had[at] {
				continue // its lifetime is renewed, as that of an egress IP every few seconds
			} else {
				had[at] = true
			}
			pause = k.later(pause)
		case <-pause:
			pause = nil
			k.follows(ctx, false)
		case <-regular.C:
			k.follows(ctx, true)
		}
		if k.Status().Fault != nil && pause == nil {
			pause = time.After(writeAgain)
		}
	}
}

// rest does what is to be done for so long, or for as long as a look takes, while interfaces cannot be followed.
func (k *Keeper) rest(ctx context.Context, least time.Duration, err error) error {
	until := time.After(max(least, k.took))
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-until:
			return err
		case f := <-k.work:
			f()
		}
	}
}

// later is when to look after a change, if another one was before: pods may make as many changes as they like, so no more than half
// of the time is spent on looks.
func (k *Keeper) later(pause <-chan time.Time) <-chan time.Time {
	if pause == nil {
		pause = time.After(max(pauseAfterChange, k.took))
	}
	return pause
}

// follows looks at the interfaces, and writes what follows.
func (k *Keeper) follows(ctx context.Context, repair bool) {
	k.mu.Lock()
	waiting := k.waiting
	k.waiting = nil
	k.mu.Unlock()
	k.look(ctx)
	k.write(ctx, repair)
	for _, done := range waiting {
		close(done)
	}
}

// leadsAway tells whether an interface that is new, or has changed, may lead to a pod. A nil one has gone.
func leadsAway(link netlink.Link) bool { return link == nil || isPeered(link) || isTap(link) }

// bind is Bind, for the goroutine of Run.
func (k *Keeper) bind(ctx context.Context, family kernel.Family, added []kernel.Binding, claimed []netip.Addr, pods []netip.Prefix) {
	looked := k.looked && slices.Equal(k.pods[family], pods)
	if looked && len(added)+len(k.adopted[family]) == 0 && slices.Equal(k.claimed[family], claimed) {
		return // as in most syncs; a write that failed is tried again anyway
	}
	if !slices.Equal(k.claimed[family], claimed) {
		k.writer.Claim(family, claimed)
	}
	k.pods[family], k.claimed[family] = pods, claimed
	if !looked {
		k.look(ctx)
	}
	for _, b := range added {
		if k.bindings[b.Pod]++; k.bindings[b.Pod] == 1 {
			k.writer.Bind(b.Pod)
			looked = looked && (k.writer.Placed(b.Pod) || k.config.Away(b.Pod))
		}
	}
	for _, address := range k.adopted[family] {
		if k.bindings[address] == 0 {
			k.writer.Unbind(address)
		}
	}
	delete(k.adopted, family)
	if !looked {
		k.look(ctx)
	}
	k.write(ctx, false)
}

// look finds out which interfaces there are and who is behind them.
func (k *Keeper) look(ctx context.Context) {
	if len(k.pods) == 0 {
		return // which addresses are those of pods is not known yet
	}
	began := time.Now()
	k.unseen = k.findAll(ctx)
	k.took = time.Since(began)
}

func (k *Keeper) findAll(ctx context.Context) (err error) {
	if !k.known {
		if err := k.adopt(ctx); err != nil {
			return err
		}
	}
	told := k.config.Told()
	known := func(link Link) bool {
		ofPod := func(t Told) bool { return slices.Contains(t.Interfaces, link.Name) }
		return len(k.grants[link]) > 0 || slices.ContainsFunc(told, ofPod)
	}
	interfaces, err := k.interfaces(slices.Concat(k.pods[kernel.IPv4], k.pods[kernel.IPv6]), k.config.Own(), known)
	if err != nil {
		return fmt.Errorf("find out which pods are behind which interfaces: %w", err)
	}
	k.grants, k.refused = Assign(k.grants, interfaces, told)
	k.redirected = nil
	for _, i := range interfaces {
		if i.Redirected {
			k.redirected = append(k.redirected, i.Name)
		}
	}
	slices.Sort(k.redirected)
	k.writer.SetInterfaces(interfaces, k.grants)
	if k.config.Placed != nil {
		k.config.Placed(k.grants)
	}
	k.looked = true
	return nil
}

// adopt goes on with what an earlier process has written.
func (k *Keeper) adopt(ctx context.Context) error {
	grants, bound, err := k.writer.Adopt(ctx)
	if err != nil {
		return fmt.Errorf("read which addresses belong to which interfaces of pods: %w", err)
	}
	k.grants, k.written, k.known = grants, grants != nil, true
	for _, address := range bound {
		k.adopted[kernel.FamilyOf(address)] = append(k.adopted[kernel.FamilyOf(address)], address)
	}
	return nil
}

// write writes what is known. As long as no pod has been bound there is no table. With repair it looks at what is there. Before the
// first look that has not failed it leaves what an earlier process has written.
func (k *Keeper) write(ctx context.Context, repair bool) {
	if len(k.bindings) == 0 && !k.written {
		k.tell(Status{})
		return
	}
	var unwritten error
	if k.looked {
		unwritten = k.tryWrite(ctx, repair)
	}
	if ctx.Err() == nil {
		k.tell(Status{Fault: errors.Join(k.unfollowed, k.unseen, unwritten), Refused: k.refusedBound(), Redirected: k.redirected})
	}
}

func (k *Keeper) tryWrite(ctx context.Context, repair bool) (err error) {
	for range attempts {
		if _, err = k.writer.Write(ctx, repair); err == nil {
			k.written = true
			return nil
		}
		if ctx.Err() != nil {
			break
		}
		k.look(ctx)
	}
	return fmt.Errorf("write the nftables table %s: %w", Table, err)
}

// refusedBound returns what was refused of the addresses of bound pods.
func (k *Keeper) refusedBound() (refused []Refusal) {
	for _, r := range k.refused {
		if k.writer.Bound(r.Address) {
			refused = append(refused, r)
		}
	}
	return refused
}

// tell sets the status, and logs what of it is new.
func (k *Keeper) tell(now Status) {
	k.mu.Lock()
	before := k.status
	k.status = now
	k.mu.Unlock()
	if now.equal(before) {
		return
	}
	if now.Fault != nil && before.Fault == nil {
		k.logger.Error(now.Fault, "Cannot check the source addresses of pods, so they may use those of bound pods; will retry, further failures are not logged")
	}
	if now.Fault == nil && before.Fault != nil {
		k.logger.Info("The source addresses of pods are checked again")
	}
	for _, r := range now.Refused {
		if !slices.Contains(before.Refused, r) {
			k.logger.Error(nil, "A pod claims the address of a bound pod; its packets with this source address are dropped", "address", r.Address, "interface", r.Interface, "owner", r.Owner)
		}
	}
	if len(now.Redirected) > 0 && !slices.Equal(now.Redirected, before.Redirected) {
		k.logger.Error(nil, "The sources of packets from some pods are not checked, because a tc filter redirects the packets before", "interfaces", now.Redirected)
	}
	k.config.Changed()
}
