package egress

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

var _ status.Source = &Extension{}

// Snapshot returns how things stand, for the status's readers, who must not change it. It is made
// for each from all objects, which costs as much as there are; syncs do not.
func (e *Extension) Snapshot() status.Snapshot {
	summary := e.Summary()
	return status.Snapshot{
		Node:     e.config.NodeName,
		Version:  e.config.Version,
		Time:     time.Now(),
		Ready:    summary.Ready,
		Missing:  summary.Missing,
		Families: e.tell(),
	}
}

// tell returns what the status says of each IP family: nothing before the first plan.
func (e *Extension) tell() []status.Family {
	e.mu.Lock()
	planned := e.planned
	e.mu.Unlock()
	if !planned {
		return nil
	}
	var told []status.Family
	for _, family := range families {
		in := e.state.input(family)
		told = append(told, e.syncers[family].tell(in, plan.Build(in)))
	}
	return told
}

// Changed returns a channel that is closed at the next sync.
func (e *Extension) Changed() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

// Verify compares the kernel with the plan and returns the differences by IP family: empty
// for one that agrees. What the loop is writing meanwhile is no difference: it looks again.
func (e *Extension) Verify(ctx context.Context) (map[string][]string, error) {
	const looks, pause = 5, 200 * time.Millisecond
	for n := 1; ; n++ {
		changed, due := e.Changed(), !e.Summary().DueSince.IsZero()
		differences, agrees, err := e.compareWithKernel(ctx)
		select {
		case <-changed: // there was a sync meanwhile
			due = true
		default:
			due = due || !e.Summary().DueSince.IsZero()
		}
		if err != nil || agrees || !due || n == looks {
			return differences, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (e *Extension) compareWithKernel(ctx context.Context) (differences map[string][]string, agrees bool, err error) {
	snapshot := e.Snapshot()
	if len(snapshot.Families) == 0 {
		return nil, false, fmt.Errorf("the node has no plan yet, it waits for %s", strings.Join(snapshot.Missing, ", "))
	}
	differences, agrees = map[string][]string{}, true
	for _, f := range snapshot.Families {
		if f.Input.NoProxier {
			continue
		}
		var err error
		if differences[f.Family], err = compare(ctx, e.config.Backend, f.Family, f.Plan); err != nil {
			return nil, false, fmt.Errorf("reading the %s rules: %w", f.Family, err)
		}
		agrees = agrees && len(differences[f.Family]) == 0
	}
	return differences, agrees, nil
}
