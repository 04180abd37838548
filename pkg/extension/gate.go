package extension

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Gate opens when all kinds of objects are known in full. A plan that is made before could remove
// rules that are right, or grant claims that have to be refused. Its methods may be called by several goroutines.
type Gate struct {
	mu      sync.Mutex
	missing map[string]bool
	open    chan struct{}
}

// NewGate returns a Gate that waits for these kinds.
func NewGate(kinds ...string) *Gate {
	g := &Gate{missing: map[string]bool{}, open: make(chan struct{})}
	for _, kind := range kinds {
		g.missing[kind] = true
	}
	return g
}

// Known tells that all objects of a kind are known, and returns whether the Gate opens with it.
// Later calls for the same kind mean nothing.
func (g *Gate) Known(kind string) (opens bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.missing[kind] {
		return false
	}
	delete(g.missing, kind)
	if len(g.missing) == 0 {
		close(g.open)
		return true
	}
	return false
}

// WaitsFor tells whether a kind is still missing.
func (g *Gate) WaitsFor(kind string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.missing[kind]
}

// Missing returns the kinds that are waited for, sorted.
func (g *Gate) Missing() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.missing))
}

// Await returns true when nothing is missing any more, and false if ctx ends before. Every so often it calls remind with
// what is missing.
func (g *Gate) Await(ctx context.Context, every time.Duration, remind func(missing string)) bool {
	again := time.NewTicker(max(every, time.Millisecond))
	defer again.Stop()
	for {
		select {
		case <-g.open:
			return true
		case <-ctx.Done():
			return false
		case <-again.C:
			remind(strings.Join(g.Missing(), ", "))
		}
	}
}
