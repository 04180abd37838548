package extension

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/openshift/origin-node/pkg/wake"
)

// Loop calls a sync function when somebody asks for it: once changes have paused for a moment, and
// not more often than every so often. A caller of Await gets its sync at once.
type Loop struct {
	// mostRest bounds the rest after a sync; longestRest does if it is 0.
	mostRest              time.Duration
	minPeriod, lookPeriod time.Duration
	// wake asks for a sync, urgent for one without pause and rest.
	wake, urgent wake.Signal

	mu sync.Mutex // protects what follows
	// dueSince is when the oldest request came that no sync has answered; zero if none.
	dueSince time.Time
	// changes are the times of the changes that no sync has answered.
	changes []time.Time
	// waiters are those that no sync has answered. A sync that succeeds closes them.
	waiters []chan struct{}
}

// Sync does what is to be done. It returns when it wants to be called again without a request, zero
// for never, and whether it failed: then what was asked for is still due.
type Sync func(ctx context.Context, regular bool) (again time.Time, failed bool)

const (
	// pause is how long no change comes before a sync. Changes that were made together come one
	// by one, in any order after a watch had to begin anew: in their middle an address could
	// seem to be somebody else's.
	pause = 10 * time.Millisecond
	// mostChanges is how many times of changes are kept while nothing can be written.
	mostChanges = 10000
	// longestRest bounds the rest after a sync, unless LimitRest says otherwise.
	longestRest = time.Second
)

// NewLoop returns a Loop that leaves at least minPeriod between two syncs, and makes a regular one
// every lookPeriod.
func NewLoop(minPeriod, lookPeriod time.Duration) *Loop {
	return &Loop{minPeriod: minPeriod, lookPeriod: max(lookPeriod, time.Millisecond), wake: wake.New(), urgent: wake.New()}
}

// LimitRest bounds the rest after a sync, for syncs that seldom write much. Call it before Run.
func (l *Loop) LimitRest(longest time.Duration) { l.mostRest = longest }

// Request asks for a sync. It may be called by any goroutine; it does not wait for one that is under
// way.
func (l *Loop) Request() {
	l.mu.Lock()
	defer l.mu.Unlock() // so that a sync that ends now sees both or neither
	l.request()
}

func (l *Loop) request() {
	if l.dueSince.IsZero() {
		l.dueSince = time.Now()
	}
	l.Wake()
}

// Wake is Request for a caller that must not wait for any lock. It is not due before the sync begins.
func (l *Loop) Wake() { l.wake.Send() }

// drop takes the request away, if there is one.
func drop(requests chan struct{}) {
	select {
	case <-requests:
	default:
	}
}

// Changed asks for a sync, for an object that changed at a time.
func (l *Loop) Changed(at time.Time) {
	l.mu.Lock()
	if len(l.changes) < mostChanges {
		l.changes = append(l.changes, at)
	}
	l.mu.Unlock()
	l.Request()
}

// Await asks for a sync at once, without a pause before it or a rest before that. It returns nil when a sync that began
// after the call has not failed, or why ctx ended. A sync that fails is made again as Sync says.
func (l *Loop) Await(ctx context.Context) error {
	answered := make(chan struct{})
	l.mu.Lock()
	l.waiters = append(l.waiters, answered)
	l.request()
	l.urgent.Send()
	l.mu.Unlock()
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		l.forget(answered)
		return context.Cause(ctx)
	}
}

// forget takes a waiter away. A sync that is under way may have it, and answers it for nothing.
func (l *Loop) forget(waiter chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiters = slices.DeleteFunc(l.waiters, func(w chan struct{}) bool { return w == waiter })
}

// Restart counts all that is due as due since now, and forgets the times of changes: what was waited for until now could not be hurried.
func (l *Loop) Restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dueSince, l.changes = time.Now(), nil
}

// DueSince returns when the oldest request came that no sync has answered; zero if none.
func (l *Loop) DueSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dueSince
}

// Run calls sync until ctx ends. What a sync that did not fail has answered is told to done: the
// times of the changes.
func (l *Loop) Run(ctx context.Context, sync Sync, done func(changes []time.Time)) {
	look := time.NewTicker(l.lookPeriod)
	defer look.Stop()
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		regular := false
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			regular = true
		case <-again.C:
		case <-l.wake:
		case <-l.urgent:
			l.urgent.Send() // for awaitQuiet
		}
		l.awaitQuiet(ctx) // whatever was the reason, changes may be coming
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		changes, waiters := l.take()
		at, failed := sync(ctx, regular)
		l.answered(began, changes, waiters, failed)
		if !failed {
			done(changes)
		}
		if !at.IsZero() {
			again.Reset(max(time.Until(at), time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.rest(time.Since(began))):
		case <-l.urgent:
			l.urgent.Send()
		}
	}
}

// rest returns how long to wait after a sync that took so long: at least as long, within limits. In
// a large table of iptables a change takes a second, in which nobody else can write.
func (l *Loop) rest(worked time.Duration) time.Duration {
	return max(l.minPeriod, min(worked, cmp.Or(l.mostRest, longestRest)))
}

// awaitQuiet returns when no change has come for a moment, or after the least time between two syncs, or at once if
// somebody waits for the sync.
func (l *Loop) awaitQuiet(ctx context.Context) {
	limit := time.After(l.minPeriod)
	for {
		select {
		case <-l.wake:
		case <-time.After(min(pause, l.minPeriod)):
			return
		case <-limit:
			return
		case <-l.urgent:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (l *Loop) take() (changes []time.Time, waiters []chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changes, l.changes = l.changes, nil
	waiters, l.waiters = l.waiters, nil
	drop(l.wake) // the sync that begins now answers them
	drop(l.urgent)
	if l.dueSince.IsZero() {
		l.dueSince = time.Now() // so that a sync that hangs shows
	}
	return changes, waiters
}

// answered records how the sync went that began at a time, for these changes and waiters.
func (l *Loop) answered(began time.Time, changes []time.Time, waiters []chan struct{}, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case failed && l.dueSince.IsZero():
		l.dueSince = began
	case failed: // what was due still is
	case len(l.wake) > 0: // a request came meanwhile
		l.dueSince = began
	default:
		l.dueSince = time.Time{}
	}
	if failed {
		l.changes = append(changes, l.changes...)
		l.changes = l.changes[:min(len(l.changes), mostChanges)]
		l.waiters = append(waiters, l.waiters...)
		return
	}
	for _, waiter := range waiters {
		close(waiter)
	}
}
