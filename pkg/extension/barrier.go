package extension

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Barrier opens when all kinds of objects are known in full. A plan that is made before could remove
// rules that are right, or grant claims that have to be refused. Its methods may be called by several goroutines.
type Barrier struct {
	mu      sync.Mutex
	missing map[string]bool
	open    chan struct{}
}

// NewBarrier returns a Barrier that waits for these kinds.
func NewBarrier(kinds ...string) *Barrier {
	b := &Barrier{missing: map[string]bool{}, open: make(chan struct{})}
	for _, kind := range kinds {
		b.missing[kind] = true
	}
	return b
}

// Known tells that all objects of a kind are known, and returns whether the Barrier opens with it.
// Later calls for the same kind mean nothing.
func (b *Barrier) Known(kind string) (opens bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.missing[kind] {
		return false
	}
	delete(b.missing, kind)
	if len(b.missing) == 0 {
		close(b.open)
		return true
	}
	return false
}

// WaitsFor tells whether a kind is still missing.
func (b *Barrier) WaitsFor(kind string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.missing[kind]
}

// Missing returns the kinds that are waited for, sorted.
func (b *Barrier) Missing() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.missing))
}

// Await returns true when nothing is missing any more, and false if ctx ends before. Every so often it calls remind with
// what is missing.
func (b *Barrier) Await(ctx context.Context, every time.Duration, remind func(missing string)) bool {
	again := time.NewTicker(max(every, time.Millisecond))
	defer again.Stop()
	for {
		select {
		case <-b.open:
			return true
		case <-ctx.Done():
			return false
		case <-again.C:
			remind(strings.Join(b.Missing(), ", "))
		}
	}
}
