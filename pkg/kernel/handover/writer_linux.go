package handover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
	"github.com/openshift/origin-node/pkg/wake"
)

const (
	// Time is how long packets are passed on to a former holder: until all nodes have changed their rules, also busy ones.
	Time = 2 * time.Second
	// remembered is how long a former holder drops what it does not track. It hears of the new one when that one passes packets
	// on already, so this ends later.
	remembered = Time + time.Second
	// patience is how long a caller waits at most until the kernel has what it said. Other changes of nftables may be under way.
	patience = 50 * time.Millisecond
	// again is when a write is tried again that has failed. Until then packets may go in circles.
	again = 100 * time.Millisecond
)

var errLate = fmt.Errorf("the kernel has not changed the nftables table %s within %v", tableName, patience)

// Writer keeps the table of one IP family. Its methods may be called by several goroutines.
type Writer struct {
	family kernel.Family
	// wake has Run write.
	wake wake.Signal

	mu      sync.Mutex
	content content
	// waiters are those that the next write answers.
	waiters []chan error
}

// NewWriter returns one that writes nothing before it is run.
func NewWriter(family kernel.Family) *Writer {
	return &Writer{family: family, wake: wake.New(), content: content{map[nft.Key]nft.Passing{}, map[nft.Key]nft.Passing{}}}
}

// Pass has this node pass on for a moment, to the nodes that had these egress IPs, what belongs to no connection of its own.
// Those nodes are neighbours and have said that they drop what they do not track. An address that has just left this node is
// not passed on. Addresses and nodes are of the Writer's family. It waits a moment for the kernel; an error says
// why packets may be dropped instead.
func (w *Writer) Pass(former map[netip.Addr]netip.Addr) error {
	return w.change(func() {
		for ip, node := range former {
			w.content.former[nft.Key{Pod: ip}] = nft.Passing{Value: node, Until: time.Now().Add(Time)}
		}
	})
}

// Leave has this node drop for a moment what it does not track of egress IPs that another node has now. It waits a moment for
// the kernel.
func (w *Writer) Leave(addresses []netip.Addr) error {
	return w.change(func() {
		for _, ip := range addresses {
			w.content.left[nft.Key{Pod: ip}] = nft.Passing{Until: time.Now().Add(remembered)}
		}
	})
}

func (w *Writer) change(set func()) error {
	written := make(chan error, 1)
	w.mu.Lock()
	set()
	w.waiters = append(w.waiters, written)
	w.mu.Unlock()
	w.wake.Send()
	select {
	case err := <-written:
		return err
	case <-time.After(patience):
		return errLate
	}
}

// Run writes until ctx ends and nothing counts any more: the process of a node that was drained just before it ends waits a
// moment, so that no packets go in circles. Failures are returned to those who asked for the change, or logged if nobody did, and
// tried again. What counts is the network namespace of the caller's thread.
func (w *Writer) Run(ctx context.Context) {
	table := nft.NewWriter(specOf(w.family))
	defer table.Close()
	w.run(ctx, func(c content) error { return write(table, w.family, c) })
}

func (w *Writer) run(ctx context.Context, write func(content) error) {
	due, done := time.NewTimer(0), ctx.Done()
	defer due.Stop()
	var failed failure.Streak
	for there := false; done != nil || there; {
		select {
		case <-done:
			done = nil
		case <-w.wake:
		case <-due.C:
		}
		content, waiters := w.take()
		due.Reset(content.pause())
		if !there && content.empty() {
			continue
		}
		err := write(content)
		for _, waiter := range waiters {
			waiter <- err
		}
		if err != nil {
			due.Reset(again)
		}
		if failed.Turns(err) && err != nil && len(waiters) == 0 {
			klog.FromContext(ctx).Error(err, "Cannot write the nftables table of a drain; will retry, further failures are not logged", "ipFamily", w.family)
		}
		there = !content.empty() || err != nil && done != nil // what is left at the end has no effect
	}
}

// take returns what counts now, and who waits for it to be written.
func (w *Writer) take() (content, []chan error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	over := func(_ nft.Key, p nft.Passing) bool { return !p.Until.After(now) }
	maps.DeleteFunc(w.content.former, over)
	maps.DeleteFunc(w.content.left, over)
	waiters := w.waiters
	w.waiters = nil
	return content{maps.Clone(w.content.former), maps.Clone(w.content.left)}, waiters
}

// Available returns why this kernel cannot do it. It leaves nothing behind, also of an earlier process.
func Available(family kernel.Family) error {
	table := nft.NewWriter(specOf(family))
	defer table.Close()
	if err := write(table, family, content{}); err != nil {
		return err
	}
	if err := table.Try(context.Background(), stateOf(family, content{})); err != nil {
		return fmt.Errorf("write the nftables table %s: %w", tableName, err)
	}
	return nil
}

// Cleanup removes what a process has left in the kernel, of both families; if there is nothing, it writes nothing. Where the kernel
// has no nftables there is nothing.
func Cleanup(ctx context.Context) error {
	return errors.Join(specOf(kernel.IPv4).Remove(ctx), specOf(kernel.IPv6).Remove(ctx))
}
