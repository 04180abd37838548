package extension

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestGate_OpensWithTheLastKind, whatever the order, and tells of it once.
func TestGate_OpensWithTheLastKind(t *testing.T) {
	g := NewGate("Services", "EndpointSlices", "Nodes")
	for _, step := range []struct {
		known   string
		opens   bool
		missing []string
	}{
		{"Nodes", false, []string{"EndpointSlices", "Services"}},
		{"Nodes", false, []string{"EndpointSlices", "Services"}},
		{"Pods", false, []string{"EndpointSlices", "Services"}},
		{"EndpointSlices", false, []string{"Services"}},
		{"Services", true, nil},
		{"Services", false, nil},
	} {
		if opens := g.Known(step.known); opens != step.opens || isOpen(g) != (step.missing == nil) {
			t.Errorf("%s are known: opens %v, is open %v; want opens %v", step.known, opens, isOpen(g), step.opens)
		}
		if diff := cmp.Diff(step.missing, g.Missing(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s are known, missing (-want +got):\n%s", step.known, diff)
		}
		if g.WaitsFor(step.known) {
			t.Errorf("%s are known, and waited for", step.known)
		}
	}
}

func isOpen(g *Gate) bool {
	select {
	case <-g.open:
		return true
	default:
		return false
	}
}

// TestGate_ManyGoroutines: one of them opens it, although all come at once.
func TestGate_ManyGoroutines(t *testing.T) {
	kinds := []string{"Services", "EndpointSlices", "ServiceCIDRs", "Nodes", "Networks"}
	g := NewGate(kinds...)
	var opened atomic.Int32
	var running sync.WaitGroup
	for range 20 {
		for _, kind := range kinds {
			running.Go(func() {
				if g.Known(kind) {
					opened.Add(1)
				}
			})
		}
	}
	running.Wait()
	if got := opened.Load(); got != 1 || !isOpen(g) {
		t.Errorf("opened %d times, is open %v; want once", got, isOpen(g))
	}
}
