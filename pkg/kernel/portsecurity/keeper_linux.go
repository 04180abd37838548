package portsecurity

import (
	"context"
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

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/changes"
)

const (
	// pauseAfterChange is how long changes of interfaces are gathered: several are made for each pod.
	pauseAfterChange = 5 * time.Millisecond
	// writeAgain is when a write is tried again that failed.
	writeAgain = time.Second
	// attempts is how often a write is tried at once: interfaces may go in the moment in which they are looked at.
	attempts = 3
)

// Config is what a [Keeper] has to know.
type Config struct {
	// Own returns this node's addresses, by which other nodes reach it.
	Own func() []netip.Addr
	// Told returns what the CNI plugin has told.
	Told func() []Told
	// Period is how often the kernel is looked at.
	Period time.Duration
	// Changed is called when the [Status] has changed.
	Changed func()
}

// Status is how things stand.
type Status struct {
	// Fault is why sources are not checked, or not by what is so now; nil if they are.
	Fault error
	// Refused are the addresses of bound pods that are behind interfaces which they do not belong to.
	Refused []Refusal
}

// equal tells whether s and o say the same.
func (s Status) equal(o Status) bool {
	return fmt.Sprint(s.Fault) == fmt.Sprint(o.Fault) && slices.Equal(s.Refused, o.Refused)
}

// Keeper keeps the table in line with the interfaces of this node and with the pods that are bound. Its methods may be called by several
// goroutines.
type Keeper struct {
	config Config
	// work is what the goroutine of Run does next.
	work chan func()
	// looks has a value if the interfaces are to be looked at.
	looks chan struct{}

	// What follows is for the goroutine of Run.
	logger klog.Logger
	writer *Writer
	// grants are those of the last look; nil before the first one.
	grants Grants
	pods   map[kernel.Family][]netip.Prefix
	// bindings counts those of each pod.
	bindings map[netip.Addr]int
	// adopted are the addresses that an earlier process had bound, as long as nothing is known of the bindings of their family.
	adopted map[kernel.Family][]netip.Addr
	// written: there is a table.
	written bool
	refused []Refusal

	mu     sync.Mutex
	status Status
}

// NewKeeper returns a Keeper, which does nothing before Run.
func NewKeeper(config Config) *Keeper {
	return &Keeper{
		config: config, work: make(chan func()), looks: make(chan struct{}, 1),
		pods: map[kernel.Family][]netip.Prefix{}, bindings: map[netip.Addr]int{}, adopted: map[kernel.Family][]netip.Addr{},
	}
}

// Status may be called at any time.
func (k *Keeper) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}

// Look has the interfaces looked at soon.
func (k *Keeper) Look() {
	select {
	case k.looks <- struct{}{}:
	default: // it will
	}
}

// Bind returns when the addresses of added bindings of a family are guarded, or when that failed, which Status tells. pods are the
// cluster CIDRs of the family.
func (k *Keeper) Bind(ctx context.Context, family kernel.Family, added []kernel.Binding, pods []netip.Prefix) {
	k.do(ctx, func() { k.bind(ctx, family, added, pods) })
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

// Compare says, for an operator and in a line each, how the kernel differs from what was written.
func (k *Keeper) Compare(ctx context.Context) (differences []string, err error) {
	k.do(ctx, func() {
		if k.written {
			differences, err = k.writer.Compare(ctx)
		}
	})
	return differences, errors.Join(err, ctx.Err())
}

// Run keeps the table until ctx ends. The table stays then.
func (k *Keeper) Run(ctx context.Context) {
	k.logger, k.writer = klog.FromContext(ctx), NewWriter()
	defer k.writer.Close()
	for ctx.Err() == nil {
		if err := k.follow(ctx); err != nil && ctx.Err() == nil {
			k.logger.V(2).Info("Changes of interfaces were missed; looking at all of them", "reason", err.Error())
		}
	}
}

// follow does what is to be done until changes of interfaces may have been missed.
func (k *Keeper) follow(ctx context.Context) error {
	s, err := changes.Subscribe()
	if err != nil {
		k.fail(fmt.Errorf("follow the interfaces of pods: %w", err))
		return k.rest(ctx, err)
	}
	defer s.End()
	k.Look()
	regular := time.NewTicker(k.config.Period)
	defer regular.Stop()
	var pause <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.Failed:
			return err
		case f := <-k.work:
			f()
		case <-k.looks:
			pause = later(pause)
		case u := <-s.Links:
			if u.Header.Type == unix.RTM_NEWLINK && !leadsAway(u.Link) {
				continue
			}
			pause = later(pause)
		case <-s.Addresses:
			pause = later(pause)
		case <-pause:
			pause = nil
			k.look(ctx)
			k.write(ctx, false)
		case <-regular.C:
			k.look(ctx)
			k.write(ctx, true)
		}
		if k.Status().Fault != nil && pause == nil {
			pause = time.After(writeAgain)
		}
	}
}

// rest does what is to be done for a moment, while interfaces cannot be followed.
func (k *Keeper) rest(ctx context.Context, err error) error {
	until := time.After(writeAgain)
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

// later is when to look after a change, if another one was before.
func later(pause <-chan time.Time) <-chan time.Time {
	if pause == nil {
		pause = time.After(pauseAfterChange)
	}
	return pause
}

// leadsAway tells whether an interface that is new, or has changed, may lead to a pod. A nil one has gone.
func leadsAway(link netlink.Link) bool { return link == nil || isPeered(link) || isTap(link) }

// bind is Bind, for the goroutine of Run.
func (k *Keeper) bind(ctx context.Context, family kernel.Family, added []kernel.Binding, pods []netip.Prefix) {
	looked := k.grants != nil && slices.Equal(k.pods[family], pods)
	k.pods[family] = pods
	if !looked {
		k.look(ctx)
	}
	for _, b := range added {
		if k.bindings[b.Pod]++; k.bindings[b.Pod] == 1 {
			k.writer.Bind(b.Pod)
			looked = looked && k.writer.Placed(b.Pod)
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
	if err := k.findAll(ctx); err != nil {
		k.fail(err)
	}
}

func (k *Keeper) findAll(ctx context.Context) (err error) {
	if k.grants == nil {
		if err := k.adopt(ctx); err != nil {
			return err
		}
	}
	interfaces, err := Interfaces(slices.Concat(k.pods[kernel.IPv4], k.pods[kernel.IPv6]), k.config.Own())
	if err != nil {
		return fmt.Errorf("find out which pods are behind which interfaces: %w", err)
	}
	k.grants, k.refused = Assign(k.grants, interfaces, k.config.Told())
	k.writer.SetInterfaces(interfaces, k.grants)
	return nil
}

// adopt goes on with what an earlier process has written.
func (k *Keeper) adopt(ctx context.Context) error {
	grants, bound, err := k.writer.Adopt(ctx)
	if err != nil {
		return fmt.Errorf("read which addresses belong to which interfaces of pods: %w", err)
	}
	k.grants, k.written = Grants{}, grants != nil
	maps.Copy(k.grants, grants)
	for _, address := range bound {
		k.adopted[familyOf(address)] = append(k.adopted[familyOf(address)], address)
	}
	return nil
}

// write writes what is known. As long as no pod has been bound there is no table. With repair it looks at what is there.
func (k *Keeper) write(ctx context.Context, repair bool) {
	if len(k.bindings) == 0 && !k.written {
		return
	}
	var err error
	for range attempts {
		if k.grants == nil {
			break // the look has failed, and told of it
		}
		if _, err = k.writer.Write(ctx, repair); err == nil || ctx.Err() != nil {
			break
		}
		k.look(ctx)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		k.fail(fmt.Errorf("write the nftables table %s: %w", Table, err))
	case k.grants != nil:
		k.written = true
		k.tell(Status{Refused: k.refusedBound()})
	}
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

func (k *Keeper) fail(err error) {
	k.tell(Status{Fault: err, Refused: k.Status().Refused})
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
		k.logger.Error(now.Fault, "Pods may use the addresses of bound pods, because it cannot be checked; will retry, further failures are not logged")
	}
	if now.Fault == nil && before.Fault != nil {
		k.logger.Info("The source addresses of pods are checked again")
	}
	for _, r := range now.Refused {
		if !slices.Contains(before.Refused, r) {
			k.logger.Error(nil, "An interface has the address of a bound pod, which it cannot use", "address", r.Address, "interface", r.Interface, "owner", r.Owner)
		}
	}
	k.config.Changed()
}
