package tunnel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/redirect"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
	"github.com/openshift/origin-node/pkg/wake"
)

// The resources of the node's socket that this package answers.
const (
	SnapshotPath = "/v1/tunnel/snapshot"
	VerifyPath   = "/v1/tunnel/verify"
)

// Snapshot is the current state of a node.
type Snapshot struct {
	Node string `json:"node"`
	// Missing are the kinds of objects that are waited for: there is no plan yet.
	Missing  []string       `json:"missing,omitempty"`
	Nodes    []NodeStatus   `json:"nodes"`
	Families []FamilyStatus `json:"families"`
	Problems []plan.Problem `json:"problems"`
}

// NodeStatus is a node of the cluster and how connections to its ports go.
type NodeStatus struct {
	plan.Node
	Way plan.Way `json:"way"`
	Why string   `json:"why"`
}

// FamilyStatus is how one IP family stands.
type FamilyStatus struct {
	Family    kernel.Family    `json:"family"`
	Backend   string           `json:"backend"`
	Redirects kernel.Redirects `json:"redirects"`
	// LastSync is when the kernel was last known to hold Redirects; zero for never.
	LastSync time.Time `json:"lastSync,omitzero"`
	// Error is why the last sync failed; empty if it did not.
	Error string `json:"error,omitempty"`
}

// Snapshot may be called at any time.
func (e *Extension) Snapshot(context.Context) (any, error) {
	in := e.input()
	s := Snapshot{Node: e.config.NodeName, Missing: e.gate.Missing(), Nodes: []NodeStatus{}, Families: []FamilyStatus{}, Problems: []plan.Problem{}}
	e.mu.Lock()
	s.Problems = append(s.Problems, e.problems()...)
	e.mu.Unlock()
	for _, n := range in.Nodes {
		way, why := in.WayTo(n)
		s.Nodes = append(s.Nodes, NodeStatus{n, way, why})
	}
	for _, f := range e.families {
		told := FamilyStatus{Family: f.name, Backend: string(e.config.Backend)}
		if last := f.status.Load(); last != nil {
			told.Redirects, told.LastSync = last.redirects, last.lastSync
			if last.err != nil {
				told.Error = last.err.Error()
			}
		}
		s.Families = append(s.Families, told)
	}
	return s, nil
}

// Verify compares the kernel with the plan, and returns what differs, for people, by IP family. What
// the loop is writing meanwhile is no difference: it looks again.
func (e *Extension) Verify(ctx context.Context) (any, error) {
	if missing := e.gate.Missing(); len(missing) > 0 {
		return nil, fmt.Errorf("the node has no plan yet because it waits for %s", strings.Join(missing, ", "))
	}
	differences := map[kernel.Family][]string{}
	var errs []error
	for _, f := range e.families {
		lines, err := f.verify(ctx)
		differences[f.name] = append([]string{}, lines...)
		errs = append(errs, err)
	}
	return differences, errors.Join(errs...)
}

func (f *family) verify(ctx context.Context) (differences []string, err error) {
	const looks, pause = 5, 200 * time.Millisecond
	for range looks {
		want := plan.Build(f.name, f.extension.input()).Redirects
		differences, err = redirect.Compare(ctx, f.extension.config.Backend, f.name, want)
		if err != nil || len(differences) == 0 {
			return nil, err
		}
		if f.loop.DueSince().IsZero() {
			f.loop.Request() // so that it is repaired
			return differences, nil
		}
		if !wake.Sleep(ctx.Done(), pause) {
			return nil, ctx.Err()
		}
	}
	return differences, nil
}
