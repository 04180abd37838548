package wake

import (
	"context"
	"time"
)

// Signal is received by the goroutine that is to look for something to do, once for all that was sent before. It holds one element.
type Signal chan struct{}

// New returns a Signal that was not sent.
func New() Signal { return make(Signal, 1) }

// Send has the receiver look now, or as soon as it comes to it. It never waits; any goroutine may call it, under any lock.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default: // one waits already
	}
}

// Follow calls f each time that s was sent, until ctx ends.
func (s Signal) Follow(ctx context.Context, f func()) {
	s.FollowAt(ctx, func() time.Time { f(); return time.Time{} })
}

// FollowAt is Follow, and also calls f at the time that it returned last; zero for never.
func (s Signal) FollowAt(ctx context.Context, f func() (next time.Time)) {
	timer := time.NewTimer(0)
	timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s:
		case <-timer.C:
		}
		timer.Stop()
		if next := f(); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// Sleep waits for a time, or until done is closed. It tells whether it has waited for that long.
func Sleep(done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return false
	case <-time.After(d):
		return true
	}
}
